// S = Σ f² (x − μ)(x − μ)', collected row by row and multiplied by BLAS a few hundred rows at a time.
#pragma once
#include <cmath>
#include <utility>
#include <vector>

#include "core/blas.hpp"
#include "core/hot.hpp"

namespace hinge {

class Scatter {
 public:
  explicit Scatter(index_t d) : d_(d), rows_(kRows * d), sum_(d * d, 0.0) {}

  // Adds the row factor * (x − mean); factor is the square root of the weight.
  HINGE_INLINE void add(const double* __restrict x, const double* __restrict mean, double factor) {
    double* __restrict out = rows_.data() + count_ * d_;
    for (index_t j = 0; j < d_; ++j) out[j] = factor * (x[j] - mean[j]);
    if (++count_ == kRows) flush();
  }

  void flush() {
    if (count_ == 0) return;
    blas::syrk('L', 'N', d_, count_, 1.0, rows_.data(), d_, 1.0, sum_.data(), d_);
    count_ = 0;
  }

  // The lower triangle (column-major); flush first.
  const std::vector<double>& sum() const { return sum_; }
  std::vector<double> take() { return std::move(sum_); }

 private:
  static constexpr index_t kRows = 256;
  index_t d_, count_ = 0;
  std::vector<double> rows_, sum_;
};

}  // namespace hinge
