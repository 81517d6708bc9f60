// Stochastic gradient descent for the conditional random field.
//
//   w <- (1 - eta_t l2) w - eta_t / |B| sum_{i in B} n c_i grad loss_i(w),      eta_t = eta_0 / (1 + eta_0 l2 t), t =
//   1, 2, ...
//
// over batches B of a new random order in every epoch (Bottou 2010), for the objective of chain_crf.hpp with l1 = 0.
// With `average` the mean of w over all steps from the second epoch on is returned (Polyak & Juditsky 1992).
//
// Shrinking w is cheap: w = s v, and only s is multiplied. So is averaging: with S_t = s_1 + ... + s_t and
// v_t = v_{t-1} + d_t, the sum of all w is S_t v_t - sum_t S_{t-1} d_t, and both terms change only where d_t is not
// zero.
#pragma once
#include "sequence/chain_crf.hpp"

namespace hinge {

struct CrfSgdOptions {
  double eta0 = 0;  // if not positive, 0.1 times the best power of two on a sample
  index_t batch = 8;
  bool average = true;
  int epochs = 100;
  double tolerance = 1e-3;  // of the relative gap, which is computed after 1, 2, 4, ... epochs
  std::uint64_t seed = 0;
};

struct CrfProblem {
  const Tokens& x;
  const std::int32_t* y;
  const double* weight;  // c_i
  const Layout& layout;
  const Potentials& constraints;
};

CrfFit fit_crf_sgd(const CrfProblem& problem, double l2, const CrfSgdOptions& options, const HeldOut* held,
                   Monitor& monitor);

}  // namespace hinge
