// A tree grown on a table in blocks, from sums of their histograms: bit for bit the same tree as on the table in memory
// (growth.hpp), because integer sums are exact in any order.
//
// A pass over the blocks counts many nodes at once. The nodes that best-first growth will split are not known in
// advance, so a pass counts the children of all leaves that may still be split; a few of them are not used. All counted
// nodes, used or not, form the route, which maps the rows of a block to nodes; it only grows.
#pragma once
#include <vector>

#include "trees/builder.hpp"

namespace hinge::trees {

// Sums of g and h in 64ths of a unit.
struct Fine {
  std::int64_t g = 0, h = 0;
};

class BlockGrowth {
 public:
  // The caller owns the layout of the blocks. rows: the total over all blocks.
  BlockGrowth(const Bins& layout, GrowOptions options, const Draw& draw, Rounding form, const Units& unit, double rows);

  bool done() const { return done_; }
  const Nodes& route() const { return route_; }
  // The route's nodes that the next pass counts, and whether their histograms are needed or only their sums.
  const std::vector<std::int32_t>& wanted() const { return wanted_; }
  const std::vector<std::uint8_t>& full() const { return full_; }
  // Cells of a node: 3 numbers for each of 256 codes of every slot.
  index_t cells() const { return static_cast<index_t>(bins_.slots.size()) * kBins * 3; }
  // The results of the pass: concatenated cells of the `full` nodes; fine sums and total cells of all nodes.
  void supply(const std::int64_t* cells, const Fine* fine, const Cell* totals);

  // The tree, with leaf values limited where they are log-odds and multiplied by eta; values() has the value of every
  // node of the route in which rows can end.
  Nodes finish(bool log_odds, double eta);
  const std::vector<double>& values() const { return values_; }

 private:
  struct RouteNode {  // a node of the route
    OpenLeaf leaf;
    Histogram histogram;
    Fine fine;
    std::int32_t parent = -1, left = -1;
    bool searched = false, counted = false, chosen = false;
  };

  void search(RouteNode& node);
  void add_children(std::int32_t id);
  void plan(std::int32_t next);
  void go_on();

  const Bins& bins_;
  GrowOptions options_;
  Draw draw_;
  double rows_;
  TreeBuilder builder_;
  Nodes route_;
  std::vector<RouteNode> route_nodes_;
  std::vector<std::int32_t> open_, wanted_;
  std::vector<std::uint8_t> full_;
  std::vector<double> values_;
  int leaf_count_ = 1;
  bool done_ = false;
};

}  // namespace hinge::trees
