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

// The largest |g| and h of one output, and the weight of its rows: what the unit of the rounded numbers comes from.
struct Extent {
  double g = 0, h = 0, weight = 0;
  void merge(const Extent& o) { g = g > o.g ? g : o.g, h = h > o.h ? h : o.h, weight += o.weight; }
};

// Which gradients: of a loss of one output, or (null) of the softmax over the outputs, whose y holds codes.
struct Differentiated {
  const Loss* loss = nullptr;
  bool logistic = false;  // the loss is log(1 + exp(-ys))
  Curvature curvature;
};

// The rounded rows of every output, one after the other. A table in blocks has one object per block: the units come
// from the extents of all blocks together, and random rounding from the numbers of the rows in the table.
class Gradients {
 public:
  // exact: 64-bit fixed point. frequency: weights are counts, and count as such in a node.
  Gradients(const Scored& at, bool exact, bool frequency);

  // The extent of every output.
  std::vector<Extent> measure(const Differentiated& what, const Scored& at);
  // After measure, with the same scores. first: the number of the first row.
  void round(const Differentiated& what, const Scored& at, const std::vector<Extent>& extents, std::uint64_t seed,
             index_t first = 0);

  Rounded rounded(index_t output) const;

 private:
  template <class F>
  void evaluate(const Differentiated& what, const Scored& at, const F& f);
  void measure_exact(const Differentiated& what, const Scored& at);
  void set_units(index_t output, float g_scale, float h_scale);

  index_t rows_;
  Rounding form_ = Rounding::packed;
  std::vector<std::uint32_t> words_;  // of log-likelihoods, for a while: probabilities, as the bits of float
  std::vector<double> g_, h_;         // exact: whole numbers
  std::vector<std::int64_t> count_;
  std::vector<double> g_unit_, h_unit_;
  std::vector<double> u_, v_;  // derivatives of a loss that is evaluated for all rows at once
};

}  // namespace hinge::trees
