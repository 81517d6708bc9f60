// Gradients and Hessians of a loss, to which trees are fitted, rounded to integers for the histograms.
//
//   g = w l'(y, s),   h = w l''(y, s)  or  w times a bound of it
#pragma once
#include <cmath>
#include <stdexcept>
#include <vector>

#include "problem/loss.hpp"
#include "trees/histogram.hpp"

namespace hinge::trees {

// The second derivative: that of the loss, or one bound of it for every row.
struct Curvature {
  bool own = true;
  double bound = 1;
};

// Targets, scores (outputs x rows) and weights (may be null).
struct Scored {
  const double *y, *scores, *weight;
  index_t rows, outputs;
};

// Integers have no NaN, so an overflow must raise an error before the rounding.
inline void require_finite(double x) {
  if (!std::isfinite(x))
    throw std::domain_error(
        "Boosting overflowed: learning_rate, y or sample_weight is too large for floating point. "
        "Lower learning_rate, or rescale y.");
}

// The largest |g| and h of one output, and the weight of its rows: they determine the unit of the rounded numbers.
struct Extent {
  double g = 0, h = 0, weight = 0;
  void merge(const Extent& o) { g = g > o.g ? g : o.g, h = h > o.h ? h : o.h, weight += o.weight; }
};

// The function that is differentiated: a loss of one output, or (null) the softmax over the outputs, where y has codes.
struct Differentiated {
  const Loss* loss = nullptr;
  bool logistic = false;  // the loss is log(1 + exp(-ys))
  Curvature curvature;
};

// The rounded rows, stored output by output. A table in blocks has one object per block: the units come from the
// extents of all blocks, and stochastic rounding uses the row numbers in the table.
class Gradients {
 public:
  // exact: 64-bit fixed point. frequency: weights are counts and are counted as such in a node.
  Gradients(const Scored& at, bool exact, bool frequency);

  // The extent of every output.
  std::vector<Extent> measure(const Differentiated& what, const Scored& at);
  // Call after measure, with the same scores. first: the number of the first row.
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
  std::vector<std::uint32_t> words_;  // for log-likelihoods, temporarily: probabilities, as the bits of float
  std::vector<double> g_, h_;         // exact: integers in double
  std::vector<std::int64_t> count_;
  std::vector<double> g_unit_, h_unit_;
  std::vector<double> u_, v_;  // derivatives of a loss that is evaluated on whole arrays
};

}  // namespace hinge::trees
