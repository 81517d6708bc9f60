// Newton's method for a smooth loss with a ridge-like penalty (l1 = 0, no box).
//
// Problem     min_{w,b}  sum_i c_i l(y_i, x_i'w + b) + 1/2 sum_j l2_j w_j^2
// Direction   p = -B (g, g_b): B is an inverse Hessian. With few rows it is exact, H = [X 1]' diag(c l'') [X 1] + L2,
//             factored at every step. With many rows per feature H comes from a random sample of the rows and is kept
//             while it works well, corrected by the last steps (L-BFGS, Nocedal & Wright, Algorithm 7.4, with
//             H0 = the factored sample Hessian): a step then costs one pass over X instead of n d^2 operations.
// Step        backtracking from 1 until sufficient decrease (Armijo).
// Stop        when half the squared Newton decrement, the predicted decrease, is below `tol` times the objective.
#pragma once
#include "core/monitor.hpp"
#include "solvers/problem.hpp"

namespace hinge {

struct NewtonOptions {
  double tol = 1e-9;
  int max_iter = 100;
  bool approximate = false;  // l'' is a Fisher information, not the second derivative: corrections are kept
  bool proved = true;        // stop where the gap of a dual point meets tol, not only Newton's decrement
};

LinearSolution newton(const LinearProblem& problem, std::vector<double> w, double b, const NewtonOptions& options,
                      Monitor& monitor);

}  // namespace hinge
