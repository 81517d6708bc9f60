#include "core/changing_cholesky.hpp"

#include <algorithm>
#include <cmath>

#include "core/blas.hpp"
#include "core/cholesky.hpp"
#include "core/pool.hpp"

namespace hinge {
namespace {

// Applies the rotation (cosine, sine) to one column of L and to the vector x of L L' + x x', below the diagonal.
HINGE_HOT void rotate(double* __restrict column, double* __restrict x, double cosine, double sine, index_t n) {
  for (index_t i = 0; i < n; ++i) {
    const double l = column[i];
    column[i] = cosine * l + sine * x[i];
    x[i] = cosine * x[i] - sine * l;
  }
}

}  // namespace

void ChangingCholesky::remove(index_t r) {
  std::vector<double> x(L_.begin() + r * ld_ + r + 1, L_.begin() + r * ld_ + k_);
  for (index_t c = 0; c < r; ++c) {
    double* column = L_.data() + c * ld_;
    std::copy(column + r + 1, column + k_, column + r);
  }
  --k_;
  for (index_t c = r; c < k_; ++c) {  // column c + 1 moves to c and up by one row
    double* column = L_.data() + c * ld_;
    const double* from = L_.data() + (c + 1) * ld_ + 1;
    std::copy(from + c, from + k_, column + c);
    const double diagonal = column[c], beside = x[c - r], both = std::hypot(diagonal, beside);
    column[c] = both;
    rotate(column + c + 1, x.data() + c - r + 1, diagonal / both, beside / both, k_ - c - 1);
  }
}

bool ChangingCholesky::append(index_t count, const std::function<void(index_t, index_t, double*)>& fill) {
  if (count == 0) return true;
  const index_t k = k_, order = k + count;
  reserve(order);
  const index_t parts = parts_for(order * count, 1 << 14);
  parallel_for(parts, [&](index_t p) {
    for (index_t j = range_begin(order, parts, p); j < range_begin(order, parts, p + 1); ++j)
      fill(j, std::max(j, k), L_.data() + j * ld_ + std::max(j, k));
  });
  double *across = L_.data() + k, *corner = L_.data() + k * ld_ + k;
  if (k > 0) {
    blas::trsm('R', 'L', 'T', 'N', count, k, 1.0, L_.data(), ld_, across, ld_);
    blas::syrk('L', 'N', count, k, -1.0, across, ld_, 1.0, corner, ld_);
  }
  const bool definite = cholesky(count, corner, ld_);
  k_ = definite ? order : 0;
  return definite;
}

void ChangingCholesky::solve(double* x) const { blas::potrs('L', k_, 1, L_.data(), ld_, x, k_); }

void ChangingCholesky::reserve(index_t order) {
  if (order <= ld_) return;
  const index_t ld = std::max(order, ld_ + ld_ / 2);
  std::vector<double> larger(ld * ld);
  for (index_t c = 0; c < k_; ++c)
    std::copy(L_.begin() + c * ld_ + c, L_.begin() + c * ld_ + k_, larger.begin() + c * ld + c);
  L_.swap(larger);
  ld_ = ld;
}

}  // namespace hinge
