// Proximal stochastic gradient descent over rows, one epoch at a time.
//
// Problem     min_{w,b}  sum_i c_i l(y_i, x_i'w + b) + sum_j ( l1_j |w_j| + l2/2 w_j^2 )   on [lower_j, upper_j]
// Step t      w <- prox_{eta Omega}(w - eta g),  b <- b - eta bias_rate g_b,  g = (1/m) sum over the batch of
//             n c_i l'(z_i) x_i: an unbiased estimate of the risk's gradient
//             eta_t = eta0 / (1 + decay t)^power
// Sparse rows The prox moves every weight at every step, but is applied to a weight only when its feature is next met:
//             the ridge part is one common factor, w = s v, and soft thresholds add up, so nothing is approximated.
//             The average of all iterates is kept in the same lazy way.
// Reference   Duchi & Singer (2009) for the forward-backward steps and their lazy form; Xu (2011) for the averaging
#pragma once
#include <cstdint>

#include "core/monitor.hpp"
#include "solvers/problem.hpp"

namespace hinge {

struct SgdOptions {
  index_t batch = 1;
  double eta0 = 0.1, decay = 0, power = 0;
  double l2 = 0;  // the same for every weight; the other parts of the penalty come with the problem
  double bias_rate = 1;
  bool average = false, shuffle = true;
  std::uint64_t seed = 0;
  index_t epoch = 0;
};

// What lasts from epoch to epoch. `mean` is the average of the iterates so far (unused without averaging).
struct SgdState {
  double* w;
  double* mean;
  double b = 0, mean_b = 0;
  index_t steps = 0;
};

// Runs one epoch; returns the mean loss of the examples when they were met, before learning from them. Not finite if
// the steps were too long.
double sgd_epoch(const LinearProblem& problem, const SgdOptions& options, SgdState& state, Monitor& monitor);

}  // namespace hinge
