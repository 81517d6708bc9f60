// A tree in the making: its nodes, its open leaves, and the search for their splits. Who counts the histograms is left
// to the caller: one table in memory (growth.hpp), or many blocks of one (block_growth.hpp).
#pragma once
#include <limits>
#include <utility>
#include <vector>

#include "trees/nodes.hpp"
#include "trees/split.hpp"

namespace hinge::trees {

struct GrowOptions {
  int max_leaves = 31;
  int max_depth = 0;  // 0: no limit
  bool by_level = false;
  std::int64_t min_split = 2;  // rows a node must have to be split
  SplitOptions split;
  double prune = 0;                   // what a leaf costs, in gain, when the grown tree is cut back; for all rows
  std::vector<std::int8_t> monotone;  // one per feature, or empty
  std::vector<std::vector<std::int32_t>> allowed;  // interaction constraints: sets of features, or empty
};

// What one tree may use: a share of the rows, and at each node of the features, drawn from seeds.
struct Draw {
  std::uint64_t row_seed = 0, seed = 0;
  double rows = 1, features = 1;
};

struct OpenLeaf {
  std::int32_t node = 0;
  int depth = 0;
  NodeSums sums{{}, {}, {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()}};
  std::vector<std::int32_t> path;    // features used above, kept under interaction constraints only
  std::vector<std::uint8_t> usable;  // whether it may be split on a feature; empty: on all
  Split best;

  void keep(const Split& s) {
    if (s.feature >= 0 && best.loses_to(s.gain, s.feature)) best = s;
  }
};

class TreeBuilder {
 public:
  TreeBuilder(const Bins& bins, const GrowOptions& options, const Draw& draw, Rounding form, const Units& unit)
      : bins_(bins), options_(options), draw_(draw), form_(form), unit_(unit) {}

  // The root, added to the tree.
  OpenLeaf root(const Cell& total);
  // The children of a leaf by its best split: with their sums, but not yet in the tree.
  std::pair<OpenLeaf, OpenLeaf> children(const OpenLeaf& leaf) const;
  // Splits a leaf in the tree; its children get their numbers and draw their features.
  void record(const OpenLeaf& leaf, OpenLeaf& left, OpenLeaf& right);

  bool searchable(const OpenLeaf& leaf) const;
  // Puts the best split of a leaf on the features of some slots into `best`, if it is better.
  void search(const OpenLeaf& leaf, Histogram& histogram, bool narrow, const Slots& some, Split& best) const;

  // Which of the open leaves is split next: the largest gain, or the highest level and there the largest gain.
  template <class Leaf>
  std::size_t pick(std::size_t count, const Leaf& leaf) const {
    std::size_t pick = 0;
    for (std::size_t k = 1; k < count; ++k) {
      const OpenLeaf &a = leaf(k), &b = leaf(pick);
      const bool level = options_.by_level && a.depth != b.depth;
      if (level ? a.depth < b.depth : a.best.gain > b.best.gain) pick = k;
    }
    return pick;
  }

  // Whether leaves get their values from gradients before they were rounded at random. Under monotone constraints the
  // values came with bounds that this would ignore.
  bool fine() const { return form_ == Rounding::packed && options_.monotone.empty(); }
  // The value of a leaf from sums of g and h in 64ths of a unit.
  double fine_value(std::int64_t g, std::int64_t h) const;

  Nodes tree;

 private:
  bool admits(const OpenLeaf& leaf, index_t j) const;
  void draw_features(OpenLeaf& leaf) const;
  std::int32_t add(double value, const Cell& sums);

  const Bins& bins_;
  const GrowOptions& options_;
  Draw draw_;
  Rounding form_;
  Units unit_;
};

// Cuts a tree back to the subtree that maximises  sum of gains - cost * leaves  (Breiman et al. 1984, chapter 3); the
// smallest among equals. Returns the nodes that are kept, by their old numbers in the new order.
std::vector<std::int32_t> cut_back(Nodes& tree, double cost);

// Sums of g and h in 64ths of a unit over some rows, in the packed form.
void fine_sums(const std::uint32_t* words, const std::uint32_t* which, index_t m, std::int64_t& g, std::int64_t& h);

// The Newton step of a log-odds, made shorter where it would overshoot.
double damped(double step);

}  // namespace hinge::trees
