// Proximal stochastic gradient descent over rows, one epoch at a time.
//
// Problem     min_{w,b}  sum_i c_i l(y_i, x_i'w + b) + sum_j ( l1_j |w_j| + l2/2 w_j^2 )   on [lower_j, upper_j]
// Step t      w <- prox_{eta Omega}(w - eta g),  b <- b - eta bias_rate g_b,  g = (1/m) sum over the batch of
//             n c_i l'(z_i) x_i: an unbiased estimate of the risk's gradient
//             eta_t = eta0 / (1 + decay t)^power
// Sparse rows The prox moves every weight at every step, but is applied to a weight only when its feature next occurs:
//             the ridge part is one common factor, w = s v, and soft thresholds add up, so nothing is approximated.
//             The average of all iterates is kept in the same lazy way.
// Plain       The ridge part enters the gradient instead, w <- max(0, 1 - eta l2) w - eta g, and the lasso part is a
//             running total: a visit moves a weight towards zero by all of the total not yet applied to it. What could
//             not be applied at zero reduces later steps, so weights stay at zero.
// Passive     tau x_i instead of eta g, tau = min(eta0, l_i / |x_i|^2) or l_i / (|x_i|^2 + 1/(2 eta0)).
// Reference   Duchi & Singer (2009) for the forward-backward steps and their lazy form; Xu (2011) for the averaging;
//             Tsuruoka, Tsujii & Ananiadou (2009) for the running total; Crammer et al. (2006) for passive-aggressive
//             steps
#pragma once
#include <cstdint>

#include "core/monitor.hpp"
#include "solvers/problem.hpp"

namespace hinge {

struct SgdOptions {
  index_t batch = 1;
  double eta0 = 0.1, decay = 0, power = 0;
  double l2 = 0;  // the same for every weight; the other parts of the penalty are in the problem
  double bias_rate = 1;
  index_t average = 0;  // the first step, from 1, whose weights enter the average; 0: no averaging
  bool shuffle = true;
  std::uint64_t seed = 0;
  index_t epoch = 0;
  bool plain = false;
  int passive = 0;  // 1 or 2: the first or the second form of tau; batches of one
};

// State between epochs. `mean` is the average of the iterates so far (unused without averaging); `applied`, of plain
// steps, is the lasso part applied to each weight so far, with its sign, followed by the sum of eta.
struct SgdState {
  double* w;
  double* mean;
  double b = 0, mean_b = 0;
  index_t steps = 0;
  double* applied = nullptr;
};

// Runs one epoch; returns the mean loss of the examples, each evaluated before its step. Not finite if the steps were
// too long.
double sgd_epoch(const LinearProblem& problem, const SgdOptions& options, SgdState& state, Monitor& monitor);

}  // namespace hinge
