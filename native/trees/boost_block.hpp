// A block of a table that is boosted: its codes, targets and scores, and where its rows are in the trees that grow.
//
// Every method takes what it needs of the round, so that a block which was read from a file again, with its scores but
// without rounded gradients and sorted rows, gives the same answers.
#pragma once
#include <memory>
#include <vector>

#include "trees/block_growth.hpp"
#include "trees/gradients.hpp"
#include "trees/rows.hpp"

namespace hinge::trees {

// What a round is the same for in all blocks.
struct BlockRound {
  Differentiated what;
  std::uint64_t seed = 0;
  double rows = 1;  // share of the rows in the trees
  std::vector<Extent> extents;
};

class BoostBlock {
 public:
  // first: the number of the first row in the table. weight may be empty.
  BoostBlock(const Bins& layout, const std::uint8_t* codes, index_t rows, index_t first, std::vector<double> y,
             std::vector<double> weight, index_t outputs, bool exact, bool frequency);
  BoostBlock(const BoostBlock&) = delete;

  std::vector<double>& scores() { return scores_; }  // outputs x rows
  index_t rows() const { return bins_.rows; }
  index_t outputs() const { return outputs_; }
  index_t cols() const { return bins_.cols; }
  index_t cells() const { return static_cast<index_t>(bins_.slots.size()) * kBins * 3; }

  std::vector<Extent> measure(const Differentiated& what);
  // What whole numbers are worth in the tree of an output.
  Rounded rounded(const BlockRound& round, index_t output);
  // The sums of the nodes of a route: cells of those that are `full`, fine sums and totals of all.
  void count(const BlockRound& round, index_t output, const Nodes& route, const std::vector<std::int32_t>& wanted,
             const std::vector<std::uint8_t>& full, std::int64_t* cells, Fine* fine, Cell* totals);
  // Adds the value of the node of the route that a row ends in to its score.
  void add(const BlockRound& round, index_t output, const Nodes& route, const std::vector<double>& values);

 private:
  struct Placed {  // the rows in the tree of one output, by nodes of the route
    LeafRows rows;
    std::vector<index_t> begin, end;
    std::vector<std::uint8_t> split;
    std::uint64_t round = 0;
  };

  Scored scored() const;
  const Placed& place(const BlockRound& round, index_t output, const Nodes& route);

  Bins bins_;
  index_t first_, outputs_;
  std::vector<double> y_, weight_, scores_;
  Gradients gradients_;
  std::vector<Placed> placed_;
  std::uint64_t round_ = 0;
  bool is_rounded_ = false;
};

}  // namespace hinge::trees
