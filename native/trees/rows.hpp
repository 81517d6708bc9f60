// The rows of a tree, ordered by leaf.
#pragma once
#include <vector>

#include "trees/bins.hpp"
#include "trees/nodes.hpp"

namespace hinge::trees {

class LeafRows {
 public:
  // All rows, or each with probability `share`, drawn from the seed; the others are stored behind them. first: the
  // number of the first row in the table of which these rows are a block.
  void start(index_t n, double share, std::uint64_t seed, index_t first = 0);

  // Moves the rows of [begin, end) that go left at a node before the others, preserving order; returns their number.
  index_t split(const Bins& bins, const Nodes& tree, std::int32_t node, index_t begin, index_t end);

  const std::uint32_t* at(index_t i) const { return rows_.data() + i; }
  index_t used() const { return used_; }  // rows in the tree
  index_t all() const { return all_; }

 private:
  std::vector<std::uint32_t> rows_, spare_;
  index_t used_ = 0, all_ = 0;
};

}  // namespace hinge::trees
