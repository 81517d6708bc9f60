// From a loss to the gradients and Hessians that trees are fitted to, rounded to whole numbers for the histograms.
//
//   g = w l'(y, s),   h = w l''(y, s)  or  w times a bound of it
#pragma once
#include <cmath>
#include <stdexcept>
#include <vector>

#include "problem/loss.hpp"
#include "trees/histogram.hpp"

namespace hinge::trees {

// How the second derivative enters: the loss's own, or one number for every row (a bound of it).
struct Curvature {
  bool own = true;
  double bound = 1;
};

// Targets, scores (outputs x rows) and weights (may be null).
struct Scored {
  const double *y, *scores, *weight;
  index_t rows, outputs;
};

// Integers have no NaN: what overflowed ends the fit before it is rounded.
inline void require_finite(double x) {
  if (!std::isfinite(x))
    throw std::domain_error(
        "Boosting overflowed: learning_rate, y or sample_weight is too large for floating point. "
        "Lower learning_rate, or rescale y.");
}

// The rounded rows of every output, one after the other.
class Gradients {
 public:
  // exact: 64-bit fixed point. frequency: weights are counts, and count as such in a node.
  Gradients(const Scored& at, bool exact, bool frequency);

  // Of one output. `logistic`: the loss is log(1 + exp(-ys)).
  void of_loss(const Loss& loss, bool logistic, const Curvature& curvature, const Scored& at, std::uint64_t seed);
  // Of the softmax over the outputs; y holds codes.
  void of_softmax(const Scored& at, std::uint64_t seed);

  Rounded rounded(index_t output) const;

 private:
  void round_classes(const Scored& at, double label, std::uint64_t seed);
  void round_exact(const Scored& at);
  void set_units(index_t output, float g_scale, float h_scale);

  index_t rows_;
  Rounding form_ = Rounding::packed;
  std::vector<std::uint32_t> words_;  // of log-likelihoods, for a while: probabilities, as the bits of float
  std::vector<double> g_, h_;         // exact: whole numbers
  std::vector<std::int64_t> count_;
  std::vector<double> g_unit_, h_unit_;
};

}  // namespace hinge::trees
