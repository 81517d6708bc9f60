// The equations of a Newton step of weights, bias and scores,
//
//   D w + X'v = r,   sum v = s,   z = X w + b + lag,   v = H z,      H = diag(h), D = diag(diagonal),
//
// factored once and solved for several right-hand sides. By columns they are (X'HX + D) w + (X'h) b = r and
// (h'X) w + (sum h) b = s. With more columns than rows and D > 0 they are reduced to the rows instead:
// (H^-1 + X D^-1 X') v - b 1 = X D^-1 r + lag and sum v = s, a matrix of order n.
#pragma once
#include <memory>
#include <vector>

#include "core/design.hpp"

namespace hinge {

class CurvatureSystem {
 public:
  virtual ~CurvatureSystem() = default;
  virtual void factor(const double* h, const double* diagonal) = 0;
  // x: in, r and, with a bias, s; out, w and b. z: in, `lag`; out, z, which satisfies v = H z. Where rounding prevents
  // z = X w + b from holding as well, the difference is the lag of the next step.
  virtual void solve(double* x, double* z) const = 0;
};

// Factors a matrix of order d.
std::unique_ptr<CurvatureSystem> column_system(const Products& X, bool intercept);

// Factors a matrix of order n; `transposed` is X'.
std::unique_ptr<CurvatureSystem> row_system(const Products& X, const Products& transposed, bool intercept);

// The Cholesky factor of [X 1]' H [X 1] + diag(diagonal, 0), in column-major order, with as much jitter on the diagonal
// as rounding needs.
void factor_curvature(const Products& X, const double* h, const double* diagonal, bool intercept,
                      std::vector<double>& L);

// A copy of X', for methods that take X as Products.
class Transposed {
 public:
  explicit Transposed(const Design& X);
  const Products& products() const { return *view_; }

 private:
  Columns columns_;
  std::unique_ptr<Design> view_;
};

}  // namespace hinge
