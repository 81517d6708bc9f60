// The growth of one tree on rounded gradients, best leaf first or level by level.
#pragma once
#include <vector>

#include "trees/builder.hpp"
#include "trees/rows.hpp"

namespace hinge::trees {

// The working memory for growing one tree after another, and the leaves of the last tree.
class Growth {
 public:
  struct Leaf {
    std::int32_t node;
    index_t begin, end;
  };

  // Leaf values minimise the second-order model. root_histogram: the histogram of all rows, if it has been filled.
  Nodes grow(const Bins& bins, const Rounded& gradients, const GrowOptions& options, const Draw& draw,
             Histogram* root_histogram = nullptr);

  const LeafRows& rows() const { return rows_; }
  const std::vector<Leaf>& leaves() const { return leaves_; }

 private:
  struct Open;
  struct Tree;  // what stays constant during the growth of one tree

  void find_splits(const Tree& t, Open& small, Open* large, bool filled = false);
  void prune(Nodes& tree, double cost);
  void values(const Tree& t);

  LeafRows rows_;
  std::vector<Leaf> leaves_;
  std::vector<Histogram> pool_, partial_;  // of the open leaves; of ranges of rows of one leaf
};

}  // namespace hinge::trees
