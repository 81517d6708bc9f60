// Blocks of a table that is boosted: the nodes of their rows in the growing trees, and the sums over them.
//
// The data of a row (its codes, rounded gradients and node) is in arrays of the caller, in memory or read from files. A
// pass over the blocks moves their rows along a route (block_growth.hpp) and adds them to the sums of the wanted nodes.
// Sums are integers, so the result does not depend on the order or the size of the blocks.
#pragma once
#include <vector>

#include "trees/block_growth.hpp"
#include "trees/gradients.hpp"

namespace hinge::trees {

// The settings of a round that all blocks share.
struct BlockRound {
  Differentiated what;
  std::uint64_t seed = 0;
  double rows = 1;  // share of the rows in the trees
  std::vector<Extent> extents;
};

// The node of a row: its index in a route, and whether the row is in the tree's sample.
template <class Word>
struct NodeWord {
  static constexpr Word kLeftOut = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));
  static constexpr Word kNumber = static_cast<Word>(kLeftOut - 1);
};

// Puts rows into the root; `first` is the number of the first one in the table.
template <class Word>
void start_nodes(Word* nodes, index_t rows, index_t first, double share, std::uint64_t seed);

// The largest node of some rows.
template <class Word>
Word last_node(const Word* nodes, index_t rows);

// Moves rows to the ends of a route. codes: groups x rows x kGroup.
template <class Word>
void follow_route(const Bins& layout, const std::uint8_t* codes, index_t rows, const Nodes& route, Word* nodes);

// Sums of the wanted nodes of a route over the blocks that were added.
class RouteSums {
 public:
  // The caller owns the layout. full: whether histograms are needed, or only sums.
  RouteSums(const Bins& layout, Rounding form, std::vector<std::int32_t> wanted, std::vector<std::uint8_t> full);

  // Moves the rows of a block to the ends of a route, and adds those of wanted nodes.
  template <class Word>
  void add(const std::uint8_t* codes, index_t rows, const Rounded& gradients, const Nodes& route, Word* nodes);

  // Concatenated cells of the `full` nodes, and fine sums and totals of all nodes: the input of BlockGrowth.
  const std::vector<std::int64_t>& cells();
  const std::vector<Fine>& fine() const { return fine_; }
  const std::vector<Cell>& totals() const { return totals_; }
  index_t node_cells() const { return static_cast<index_t>(layout_.slots.size()) * kBins * 3; }

 private:
  std::int64_t* narrow(std::size_t k, index_t group);
  Cell* wide(std::size_t k, index_t group);

  const Bins& layout_;
  Rounding form_;
  std::vector<std::int32_t> wanted_;
  std::vector<std::size_t> counted_;  // the indices in `wanted` of the nodes whose histograms are needed
  std::vector<std::int64_t> narrow_, wide_;
  std::vector<index_t> held_;  // rows in the narrow cells
  std::vector<Fine> fine_;
  std::vector<Cell> totals_;
  std::vector<std::uint32_t> rows_;  // row numbers of a block: within every chunk, by wanted node
};

}  // namespace hinge::trees
