#include "solvers/curvature_system.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "core/blas.hpp"
#include "core/cholesky.hpp"
#include "core/vec.hpp"
#include "solvers/problem.hpp"

namespace hinge {
namespace {

constexpr double kLeast = 1e-20;  // least h of a row, as a share of the largest, so that 1/h is finite

// Factors a positive semidefinite matrix of order m, written by `fill(L, jitter)`, with as much jitter as it needs.
template <class Fill>
void factor_with_jitter(index_t m, double jitter, std::vector<double>& L, const Fill& fill) {
  L.assign(m * m, 0.0);
  for (;; jitter *= 100) {
    fill(L, jitter);
    if (cholesky(m, L.data(), m)) return;
    if (!std::isfinite(jitter)) throw std::domain_error(kOverflowed);
  }
}

class ColumnSystem final : public CurvatureSystem {
 public:
  ColumnSystem(const Products& X, bool intercept) : X_(X), intercept_(intercept) {}

  void factor(const double* h, const double* diagonal) override {
    factor_curvature(X_, h, diagonal, intercept_, chol_);
  }

  // The scores are computed from the weights, so the lag is always zero.
  void solve(double* x, double* z) const override {
    const index_t d = X_.cols(), m = d + (intercept_ ? 1 : 0);
    blas::potrs('L', m, 1, chol_.data(), m, x, m);
    X_.matvec(x, z);
    if (intercept_)
      for (index_t i = 0; i < X_.rows(); ++i) z[i] += x[d];
  }

 private:
  const Products& X_;
  bool intercept_;
  std::vector<double> chol_;
};

// As sum v = s, adding bias_ 1 1' to the matrix and bias_ s 1 to the right-hand side leaves the solution unchanged.
// Without this term the matrix at an optimum, which has one more row at a kink than weights in use, is singular up to
// rounding.
class RowSystem final : public CurvatureSystem {
 public:
  RowSystem(const Products& X, const Products& transposed, bool intercept)
      : X_(X), transposed_(transposed), n_(X.rows()), d_(X.cols()), intercept_(intercept), h_(n_), diagonal_(d_) {}

  void factor(const double* h, const double* diagonal) override {
    const double least = kLeast * *std::max_element(h, h + n_) + 1e-300;
    for (index_t i = 0; i < n_; ++i) h_[i] = std::max(h[i], least);
    std::copy(diagonal, diagonal + d_, diagonal_.begin());
    std::vector<double> inverse(d_), outer(n_ * n_);
    for (index_t j = 0; j < d_; ++j) inverse[j] = 1.0 / diagonal[j];
    transposed_.gram(inverse.data(), outer.data());
    double smallest = HUGE_VAL, trace = 0;
    for (index_t i = 0; i < n_; ++i) {
      smallest = std::min(smallest, outer[i * n_ + i] + 1.0 / h_[i]);
      trace += outer[i * n_ + i];
    }
    bias_ = intercept_ ? trace / static_cast<double>(n_) : 0.0;
    factor_with_jitter(n_, 1e-16 * smallest, chol_, [&](std::vector<double>& L, double jitter) {
      for (index_t k = 0; k < n_ * n_; ++k) L[k] = outer[k] + bias_;
      for (index_t i = 0; i < n_; ++i) L[i * n_ + i] += 1.0 / h_[i] + jitter;
    });
    ones_.assign(n_, 1.0);
    cholesky_solve(n_, chol_.data(), n_, 1, ones_.data());
  }

  void solve(double* x, double* z) const override {
    std::vector<double> v(z, z + n_), more(d_ + 1), lag(n_);
    const double sum = intercept_ ? x[d_] : 0.0;
    solve_once(x, v.data());
    // One step of iterative refinement: the residual of the scores X w + b, and of the sum.
    X_.matvec(x, lag.data());
    for (index_t i = 0; i < n_; ++i) lag[i] += (intercept_ ? x[d_] : 0.0) + z[i] - v[i] / h_[i];
    more[d_] = sum - vec::sum(v.data(), n_);
    solve_once(more.data(), lag.data());
    for (index_t j = 0; j < d_ + (intercept_ ? 1 : 0); ++j) x[j] += more[j];
    for (index_t i = 0; i < n_; ++i) z[i] = (v[i] + lag[i]) / h_[i];
  }

 private:
  // x: in, r and s; out, w and b. v: in, the lag; out, v.
  void solve_once(double* x, double* v) const {
    std::vector<double> scaled(d_), back(d_), scores(n_);
    for (index_t j = 0; j < d_; ++j) scaled[j] = x[j] / diagonal_[j];
    X_.matvec(scaled.data(), scores.data());
    for (index_t i = 0; i < n_; ++i) v[i] += scores[i] + (intercept_ ? bias_ * x[d_] : 0.0);
    cholesky_solve(n_, chol_.data(), n_, 1, v);
    if (intercept_) {
      const double b = (x[d_] - vec::sum(v, n_)) / vec::sum(ones_.data(), n_);
      vec::axpy(b, ones_.data(), v, n_);
      x[d_] = b;
    }
    X_.rmatvec(v, back.data());
    for (index_t j = 0; j < d_; ++j) x[j] = (x[j] - back[j]) / diagonal_[j];
  }

  const Products &X_, &transposed_;
  index_t n_, d_;
  bool intercept_;
  double bias_ = 0;
  std::vector<double> h_, diagonal_, chol_, ones_;  // ones: the inverse of the matrix times 1
};

Columns all_columns(const Design& X) {
  std::vector<index_t> all(X.cols());
  std::iota(all.begin(), all.end(), index_t{0});
  return X.columns(all.data(), X.cols());
}

}  // namespace

std::unique_ptr<CurvatureSystem> column_system(const Products& X, bool intercept) {
  return std::make_unique<ColumnSystem>(X, intercept);
}

std::unique_ptr<CurvatureSystem> row_system(const Products& X, const Products& transposed, bool intercept) {
  return std::make_unique<RowSystem>(X, transposed, intercept);
}

Transposed::Transposed(const Design& X) : columns_(all_columns(X)) {
  view_ = columns_.sparse
              ? csr(columns_.value.data(), columns_.row.data(), columns_.start.data(), columns_.cols, columns_.rows)
              : dense_rows(columns_.dense.data(), columns_.cols, columns_.rows, columns_.rows);
}

void factor_curvature(const Products& X, const double* h, const double* diagonal, bool intercept,
                      std::vector<double>& L) {
  const index_t d = X.cols(), m = d + (intercept ? 1 : 0);
  std::vector<double> gram(d * d), edge(d);
  X.gram(h, gram.data());
  double corner = 0, trace = 0;
  if (intercept) {
    X.rmatvec(h, edge.data());
    corner = vec::sum(h, X.rows());
  }
  // The jitter is a share of each diagonal entry, since columns may be of very different sizes; for columns of zeros it
  // is a share of the mean, which leaves their weights where they are.
  std::vector<double> unit(m);
  for (index_t j = 0; j < d; ++j) {
    const double squares = gram[j * d + j];
    trace += gram[j * d + j] += diagonal[j];
    unit[j] = squares > 0 ? gram[j * d + j] : 0.0;
  }
  if (intercept) unit[d] = corner;
  for (double& u : unit)
    if (!(u > 0)) u = trace / static_cast<double>(d) + 1e-300;
  factor_with_jitter(m, 1e-14, L, [&](std::vector<double>& out, double jitter) {
    for (index_t j = 0; j < d; ++j) {
      std::copy(gram.begin() + j * d, gram.begin() + (j + 1) * d, out.begin() + j * m);
      out[j * m + j] += jitter * unit[j];
      if (intercept) out[j * m + d] = edge[j];
    }
    if (intercept) out[d * m + d] = corner + jitter * unit[d];
  });
}

}  // namespace hinge
