// Dual coordinate descent for losses of straight lines and half parabolas with an L2 penalty, on row storage.
//
// Problem     min_{w,b}  sum_i c_i sum_k phi_ik(z_i) + 1/2 sum_j l2_j w_j^2
//             phi_ik(z) = max { u (z - a_ik) - soft/2 u^2 : lo_ik <= u <= hi_ik }: as in interior_point.hpp for soft =
//             0, the squared hinge and its relatives for soft = 1/2 and infinite intervals
// Dual        max_u  -sum_i c_i sum_k (a_ik u_ik + soft/2 u_ik^2) - 1/2 sum_j (x_j'(c u))^2 / l2_j,   lo <= u <= hi,
//             sum c u = 0
// Step        minimise over one u at a time, with w = -X'(c u) / l2 kept up to date:
//             u_i <- clip(u_i + (z_i - a_i - soft u_i) / (soft + c_i q_i)),   q_i = sum_j x_ij^2 / l2_j
// Bias        the constraint sum c u = 0 by the method of multipliers: b = b0 - (1/rho) sum c u, b0 moved to b after
//             every epoch, which is proximal point iteration on the primal bias.
// Shrinking   dual variables at a bound whose outward gradient clearly exceeds the moves of the last epoch are
//             dropped. Evaluating the gap, one pass over X on all threads, finds those that must become active again;
//             the contributions of the visited dual variables estimate the gap and decide when to evaluate it.
// Momentum    after an epoch the dual objective is minimised over the span of this and earlier moves, clipped to the
//             intervals: w is linear in u, so this costs no pass over X. Once the active bounds are found it is
//             conjugate gradients with an epoch as preconditioner.
// Reference   Hsieh, Chang, Lin, Keerthi & Sundararajan (2008), algorithms 1 and 3; Notay (2000) for the momentum.
#pragma once
#include "core/monitor.hpp"
#include "solvers/interior_point.hpp"

namespace hinge {

// `max_iter` limits the epochs, `max_checks` the evaluations of the gap.
LinearSolution dual_coordinate(const LinearProblem& problem, const std::vector<Kinks>& kinks, double soft, double tol,
                               int max_iter, int max_checks, std::uint64_t seed, Monitor& monitor);

}  // namespace hinge
