// The best split of one node on one feature, from its histogram.
//
// With G and H the sums of gradients and Hessians of the rows in a node, the second-order model of the loss there is
//   G v + (H + l2) v^2 / 2,   least at v = -G / (H + l2)   where it is   -G^2 / (H + l2) / 2,
// and the gain of a split is the fall of twice that:  GL^2/(HL+l2) + GR^2/(HR+l2) - G^2/(H+l2).
// Under monotone constraints v is clipped to the bounds of the node before the model is evaluated.
#pragma once
#include "models/tree_hist.hpp"
#include "models/tree_nodes.hpp"

namespace hinge::trees {

struct SplitOptions {
  double l2 = 0;
  double min_hessian = 1e-3;
  std::int64_t min_count = 20;
  double min_gain = 0;
  double category_smoothing = 10;  // added to the Hessian when categories are ordered by -G/H
};

struct Bounds {
  double lower, upper;
  double clip(double v) const { return v < lower ? lower : (v > upper ? upper : v); }
};

struct NodeSums {
  double g = 0, h = 0;
  std::int64_t c = 0;
};

struct Split {
  double gain = 0;
  std::int32_t feature = -1;
  std::int32_t bin = 0;  // bins <= bin go left (numeric)
  bool missing_left = false;
  bool categorical = false;
  Set set{};
  NodeSums left, right;
  double left_value = 0, right_value = 0;  // before shrinkage
  double threshold = 0;

  // A fixed order among equal gains, so that the answer does not depend on who searched first.
  bool better_than(const Split& o) const {
    if (gain != o.gain) return gain > o.gain;
    return feature >= 0 && (o.feature < 0 || feature < o.feature);
  }
};

double leaf_value(const NodeSums& s, double l2, const Bounds& bounds);

// cells: the kBins cells of the feature. direction: +1, -1 or 0 (monotone constraint).
Split best_split(const Cell* cells, const Feature& feature, std::int32_t index, const NodeSums& node, double g_unit,
                 double h_unit, int direction, const Bounds& bounds, const SplitOptions& options);

}  // namespace hinge::trees
