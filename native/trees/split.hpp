// The best split of one node on one feature, from its histogram.
//
// Let G and H be the sums of gradients and Hessians of the rows in a node. The second-order model of the loss is
//   G v + (H + l2) v^2 / 2,   minimal at v = -G / (H + l2)   with value   -G^2 / (H + l2) / 2,
// and the gain of a split is the decrease of twice that:  GL^2/(HL+l2) + GR^2/(HR+l2) - G^2/(H+l2).
// Under monotone constraints v is clipped to the bounds of the node before the model is evaluated.
#pragma once
#include "trees/histogram.hpp"
#include "trees/nodes.hpp"

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

// The values of the integers in a cell.
struct Units {
  double g = 1, h = 1;
};

struct Split {
  double gain = 0;
  std::int32_t feature = -1;
  std::int32_t bin = 0;  // bins <= bin go left (numeric)
  bool missing_left = false;
  bool categorical = false;
  Set set{};
  Cell left, right;
  double left_value = 0, right_value = 0;  // before shrinkage
  double threshold = 0;

  // Whether a split with this gain is better. Ties have a fixed order, so that the result does not depend on which
  // thread searched first.
  bool loses_to(double other, std::int32_t its_feature) const {
    if (other != gain) return other > gain;
    return its_feature >= 0 && (feature < 0 || its_feature < feature);
  }
};

double leaf_value(double g, double h, double l2, const Bounds& bounds);
inline double leaf_value(const Cell& s, const Units& unit, double l2, const Bounds& bounds) {
  return leaf_value(static_cast<double>(s.g) * unit.g, static_cast<double>(s.h) * unit.h, l2, bounds);
}

// A node whose splits are searched.
struct NodeSums {
  Cell total;
  Units unit;
  Bounds bounds;
};

// Prefix sums over the cells of a feature: of wide cells,
struct WideSums {
  using Entry = Cell;
  alignas(64) std::int64_t g_[kBins], h_[kBins], c_[kBins];
  HINGE_INLINE void set(int i, const Cell& v) { g_[i] = v.g, h_[i] = v.h, c_[i] = v.c; }
  HINGE_INLINE std::int64_t g(int i) const { return g_[i]; }
  HINGE_INLINE std::int64_t h(int i) const { return h_[i]; }
  HINGE_INLINE std::int64_t c(int i) const { return c_[i]; }
  static Cell wide(const Cell& v) { return v; }
};

// and of narrow cells.
template <class Form>
struct NarrowSums {
  using Entry = std::int64_t;
  alignas(64) std::int64_t v_[kBins];
  HINGE_INLINE void set(int i, std::int64_t v) { v_[i] = v; }
  HINGE_INLINE std::int64_t g(int i) const { return Form::g(v_[i]); }
  HINGE_INLINE std::int64_t h(int i) const { return Form::h(v_[i]); }
  HINGE_INLINE std::int64_t c(int i) const { return Form::c(v_[i]); }
  static Cell wide(std::int64_t v) { return widen<Form>(v); }
};

// Stores the best split on one feature in `best` if it is better. cells: the kBins cells of the feature (the last one
// is read only if it has missing values). direction: +1, -1 or 0 (monotone constraint).
template <class Sums>
void improve(const typename Sums::Entry* cells, const Feature& feature, std::int32_t index, const NodeSums& node,
             int direction, const SplitOptions& options, Split& best);

// The same for several features of a shared slot, all with two bins and in increasing order. cells: those of the slot,
// which sum to `total`.
template <class Sums>
void improve_pairs(const typename Sums::Entry* cells, const typename Sums::Entry& total, const std::vector<Part>& parts,
                   const std::vector<Feature>& features, const NodeSums& node, const SplitOptions& options,
                   Split& best);

}  // namespace hinge::trees
