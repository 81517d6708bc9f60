// One tree, grown best leaf first (or level by level) on rounded gradients.
#pragma once
#include <vector>

#include "trees/nodes.hpp"
#include "trees/rows.hpp"
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

// Memory for growing tree after tree, and the leaves of the last one.
class Growth {
 public:
  struct Leaf {
    std::int32_t node;
    index_t begin, end;
  };

  // Leaf values minimise the second-order model. root_histogram: that of all rows, taken if it is there already.
  Nodes grow(const Bins& bins, const Rounded& gradients, const GrowOptions& options, const Draw& draw,
             Histogram* root_histogram = nullptr);

  const LeafRows& rows() const { return rows_; }
  const std::vector<Leaf>& leaves() const { return leaves_; }

 private:
  struct Open;
  struct Tree;  // what is the same all over one tree

  void find_splits(const Tree& t, Open& small, Open* large, bool filled = false);
  void search(const Tree& t, Open& leaf, const Slots& some, Split& best);
  void prune(Nodes& tree, double cost);
  void values(const Tree& t, Nodes& tree) const;

  LeafRows rows_;
  std::vector<Leaf> leaves_;
  std::vector<Histogram> pool_, partial_;  // of the open leaves; of ranges of the rows of one
};

}  // namespace hinge::trees
