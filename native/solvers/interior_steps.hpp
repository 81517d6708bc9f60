// The steps of the interior point method (see interior_point.hpp) on some rows of the data.
//
// The rows that are left out enter as the linear function of the weights that they are while their scores stay on the
// same side of every kink.
#pragma once
#include "core/design.hpp"
#include "core/monitor.hpp"
#include "solvers/interior_point.hpp"

namespace hinge {

// gradient . w + bias b + constant.
struct LinearPart {
  std::vector<double> gradient;
  double bias = 0, constant = 0;
};

// min_{w,b} sum_i c_i sum_k phi_ik(z_i) + sum_j l1_j |w_j| + l2_j/2 w_j^2 + rest(w, b),   z = X w + b + offset
struct KinkedProblem {
  const Products& X;
  const double* c;
  const double* offset;  // may be null
  bool intercept;
  Coordinates penalty;
  const std::vector<Kinks>& kinks;
  LinearPart rest;
  const Products* transposed = nullptr;  // X' where there are more columns than rows, all of them penalised
};

// Starts from (w, b); the iterations of `from` count as done. The solution has one list of dual variables per kink,
// concatenated.
LinearSolution interior_steps(const KinkedProblem& problem, std::vector<double> w, double b, double tol, int from,
                              int max_iter, Monitor& monitor);

}  // namespace hinge
