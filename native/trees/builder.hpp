// A tree under construction: its nodes, its open leaves, and the search for their splits. The caller fills the
// histograms, from one table in memory (growth.hpp) or from blocks of a table (block_growth.hpp).
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
  std::int64_t min_split = 2;  // minimum number of rows of a node that may be split
  SplitOptions split;
  double prune = 0;                   // cost of a leaf, in units of gain summed over all rows, when the tree is pruned
  std::vector<std::int8_t> monotone;  // one per feature, or empty
  std::vector<std::vector<std::int32_t>> allowed;  // interaction constraints: sets of features, or empty
};

// The sample of one tree: a fraction of the rows and, at each node, of the features, drawn from seeds.
struct Draw {
  std::uint64_t row_seed = 0, seed = 0;
  double rows = 1, features = 1;
};

struct OpenLeaf {
  std::int32_t node = 0;
  int depth = 0;
  NodeSums sums{{}, {}, {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()}};
  std::vector<std::int32_t> path;    // features of its ancestors' splits, stored only under interaction constraints
  std::vector<std::uint8_t> usable;  // by feature, whether it may be split on; empty means all
  Split best;

  void keep(const Split& s) {
    if (s.feature >= 0 && best.loses_to(s.gain, s.feature)) best = s;
  }
};

class TreeBuilder {
 public:
  TreeBuilder(const Bins& bins, const GrowOptions& options, const Draw& draw, Rounding form, const Units& unit)
      : bins_(bins), options_(options), draw_(draw), form_(form), unit_(unit) {}

  // Adds the root to the tree.
  OpenLeaf root(const Cell& total);
  // The two children of a leaf under its best split, with their sums but not yet in the tree.
  std::pair<OpenLeaf, OpenLeaf> children(const OpenLeaf& leaf) const;
  // Splits a leaf in the tree: its children get node numbers and draw their features.
  void record(const OpenLeaf& leaf, OpenLeaf& left, OpenLeaf& right);

  bool searchable(const OpenLeaf& leaf) const;
  // Stores the best split of a leaf on the features of some slots in `best`, if it is better.
  void search(const OpenLeaf& leaf, Histogram& histogram, bool narrow, const Slots& some, Split& best) const;

  // The open leaf that is split next: the one with the largest gain, or the one with the largest gain on the top level.
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

  // Whether leaf values are computed from gradients before stochastic rounding. Under monotone constraints they are
  // not, because the split search has already clipped the values to bounds.
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

// Prunes a tree to the subtree that maximises  sum of gains - cost * leaves  (Breiman et al. 1984, chapter 3), the
// smallest one in case of ties. Returns the old numbers of the remaining nodes in their new order.
std::vector<std::int32_t> cut_back(Nodes& tree, double cost);

// Sums of g and h in 64ths of a unit over some rows, in the packed form.
void fine_sums(const std::uint32_t* words, const std::uint32_t* which, index_t m, std::int64_t& g, std::int64_t& h);

// The Newton step of a log-odds, shortened where it would overshoot.
double damped(double step);

}  // namespace hinge::trees
