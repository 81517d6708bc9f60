// Newton's method with conjugate gradients, for a smooth loss with a ridge-like penalty and many features.
//
// Problem     min_{w,b}  sum_i c_i l(y_i, x_i'w + b) + 1/2 sum_j l2_j w_j^2
// Direction   H p = -grad solved approximately by conjugate gradients with the diagonal of H as preconditioner; a
//             product H v = X' diag(c l'') X v + L2 v is one pass over X. Never forms anything of size d^2.
// Step        backtracking from 1 until sufficient decrease.
// Stop        when the predicted decrease plus the slack of the natural dual point (|grad|^2 / 2 l2) is below `tol`
//             times the objective.
// Reference   Nocedal & Wright (2006), algorithm 7.1; the forcing sequence of Eisenstat & Walker (1996), choice 1.
#pragma once
#include "core/monitor.hpp"
#include "solvers/problem.hpp"

namespace hinge {

// `constant_curvature`: the second derivative of the loss does not depend on the scores, and every weight has a ridge.
LinearSolution newton_cg(const LinearProblem& problem, std::vector<double> w, double b, bool constant_curvature,
                         double tol, int max_iter, bool proved, Monitor& monitor);

}  // namespace hinge
