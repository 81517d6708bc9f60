// A tree grown on a table in blocks, from sums of their histograms: the same tree, bit for bit, as on the table in
// memory (growth.hpp), as integers add up exactly in any order.
//
// A pass over the blocks counts many nodes at once. Which nodes best-first growth will want is not known in advance, so
// a pass counts the children of all leaves that may still be split; a few of them are not used. Nodes that have been
// counted, used or not, form the route, which tells a block where its rows are; it only grows.
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
  // The layout of the blocks belongs to the caller. rows: how many there are in all blocks.
  BlockGrowth(const Bins& layout, GrowOptions options, const Draw& draw, Rounding form, const Units& unit, double rows);

  bool done() const { return done_; }
  const Nodes& route() const { return route_; }
  // The nodes of the route that the next pass counts, and whether their histograms are needed or their sums alone.
  const std::vector<std::int32_t>& wanted() const { return wanted_; }
  const std::vector<std::uint8_t>& full() const { return full_; }
  // Cells of a node: 3 numbers for each of 256 codes of every slot.
  index_t cells() const { return static_cast<index_t>(bins_.slots.size()) * kBins * 3; }
  // What the pass found: cells of the nodes that are `full` one after the other; fine sums and total cells of all
  // nodes.
  void supply(const std::int64_t* cells, const Fine* fine, const Cell* totals);

  // The tree, with leaf values shortened where they are log-odds and multiplied by eta; values() has the value of every
  // node of the route that rows can end in.
  Nodes finish(bool log_odds, double eta);
  const std::vector<double>& values() const { return values_; }

 private:
  struct Sprout {  // a node of the route
    OpenLeaf leaf;
    Histogram histogram;
    Fine fine;
    std::int32_t parent = -1, left = -1;
    bool searched = false, counted = false, chosen = false;
  };

  void search(Sprout& sprout);
  void sprout(std::int32_t id);
  void plan(std::int32_t next);
  void go_on();

  const Bins& bins_;
  GrowOptions options_;
  Draw draw_;
  double rows_;
  TreeBuilder builder_;
  Nodes route_;
  std::vector<Sprout> sprouts_;
  std::vector<std::int32_t> open_, wanted_;
  std::vector<std::uint8_t> full_;
  std::vector<double> values_;
  int leaf_count_ = 1;
  bool done_ = false;
};

}  // namespace hinge::trees
