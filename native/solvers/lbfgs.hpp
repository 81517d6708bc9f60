// Limited-memory BFGS, with an L1 term by orthants.
//
//   minimise  F(w) = f(w) + sum_j l1 |w_j|        f smooth, given by value and gradient
//
// Without L1: the two-loop recursion and a line search for the weak Wolfe conditions
//   f(w + s d) <= f(w) + 1e-4 s f'(w)d,   f'(w + s d)d >= 0.9 f'(w)d
// (Nocedal & Wright 2006, algorithms 7.4 and 7.5), so curvature pairs always have s'y > 0. With L1: OWL-QN (Andrew &
// Gao 2007, section 3): the direction follows the pseudo-gradient, steps are projected on its orthant.
// Sums are split by the length of w alone, so results do not depend on the number of threads.
#pragma once
#include <functional>

#include "core/hot.hpp"
#include "core/monitor.hpp"

namespace hinge {

using SmoothFunction = std::function<double(const double* w, double* g)>;

struct LbfgsOptions {
  int memory = 10;
  int max_iterations = 1000;
  double tolerance = 1e-6;  // stop when measure <= tolerance
  double l1 = 0;
  // The quantity compared with the tolerance, from F, w and the gradient of f; null: the largest |pseudo-gradient|.
  std::function<double(double objective, const double* w, const double* g)> measure;
};

enum class LbfgsStatus { converged, iteration_limit, stalled, stopped };

struct LbfgsResult {
  LbfgsStatus status;
  int iterations;
  int evaluations;
  double objective;
  double measure;
};

// Improves w in place.
LbfgsResult lbfgs(index_t n, double* w, const SmoothFunction& f, const LbfgsOptions& options, Monitor& monitor);

}  // namespace hinge
