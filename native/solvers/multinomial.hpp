// Newton's method with conjugate gradients for the softmax loss over k classes, with a ridge.
//
// Problem     min_{W,b}  sum_i c_i [log sum_a exp(z_ia) - z_iy] + 1/2 sum_j l2_j ||w_j||^2,   z_i = W'x_i + b
// Hessian     H V = X'(c p o (Z - <p, Z>)) + l2 o V,  Z = X V: one pass over X, each block used twice while in cache
// Direction   conjugate gradients on H s = -g, preconditioned by the diagonal blocks X'diag(c p_a (1 - p_a))X + l2 of
//             the classes over a sample of the rows (their diagonals where d is large or X sparse)
// Optimality  X'(c (p - e_y)) + l2 o W = 0, and the same for the biases
// Returns     W and b with biases of mean zero; iterations; the reason it stopped
// Reference   Nocedal & Wright (2006), algorithm 7.1
#pragma once
#include <vector>

#include "core/design.hpp"
#include "core/monitor.hpp"
#include "solvers/problem.hpp"

namespace hinge {

struct MultinomialProblem {
  const Design& X;
  const double* y;  // class numbers 0 … k-1
  const double* c;
  index_t classes;
  bool intercept;
  const double* l2;  // d entries
};

struct MultinomialSolution {
  std::vector<double> W;  // d x k, row-major
  std::vector<double> b;  // k
  int iterations = 0;
  Outcome outcome = Outcome::max_iter;
};

MultinomialSolution multinomial_newton_cg(const MultinomialProblem& problem, std::vector<double> W,
                                          std::vector<double> b, double tol, int max_iter, bool proved,
                                          Monitor& monitor);

}  // namespace hinge
