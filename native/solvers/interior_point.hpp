// A primal-dual interior point method for piecewise linear losses: hinge, absolute, quantile, epsilon-insensitive.
//
// Problem     min_{w,b}  sum_i c_i sum_k phi_ik(z_i) + sum_j l1_j |w_j| + l2_j/2 w_j^2,    z = X w + b + offset
//             phi_ik(z) = max { u (z - a_ik) : lo_ik <= u <= hi_ik }            one term per kink of the loss
//             l1_j |w_j| is one more term of this kind, on w_j; so are bounds, as exact penalties (interior_steps.cpp)
// Optimality  L2 w + X'(c u) + u_l1 = 0,  sum c u = 0,  z - a = p - q,  p (hi - u) = 0,  q (u - lo) = 0,  p, q >= 0
// Method      Newton on these equations with p (hi - u) = q (u - lo) = mu, mu -> 0 (Mehrotra's predictor-corrector;
//             Nocedal & Wright, algorithm 16.4). Eliminating u, p and q leaves X' diag(h) X + L2, of order d + 1.
// Returns     w, b and the dual variables u, strictly inside their intervals: a dual point for the certificate.
//
// For n rows and d features an iteration costs n d^2 operations, and about 20 iterations suffice whatever the
// conditioning: this is the method for dense data on which dual coordinate descent stalls. With many rows most
// iterations use only the rows near the kinks (interior_point.cpp).
#pragma once
#include "core/monitor.hpp"
#include "solvers/problem.hpp"

namespace hinge {

// One kink per example; a loss with two kinks gives two such lists.
struct Kinks {
  std::vector<double> a, lo, hi;
};

LinearSolution interior_point(const LinearProblem& problem, const std::vector<Kinks>& kinks, double tol, int max_iter,
                              Monitor& monitor);

}  // namespace hinge
