// The best cut of a node on one binned feature in a single pass, for the most common trees: squared error, or Gini with
// two classes; weights are counts, or leaves may have a single row; no missing values and no constraints except minimum
// sizes.
#pragma once
#include "trees/bins.hpp"

namespace hinge::trees {

// Weight and weighted sum of y of a row, a bin or a side. Those of the rows are stored in the order of the nodes, so
// that a node reads its rows consecutively.
struct Tally {
  double w = 0, s = 0;
};

struct Scan {
  double score;   // sum of the scores of both sides; on input the score to beat
  int code = -1;  // last code on the left, -1 if no cut is better
  int next = -1;  // first code on the right
  Tally left{};
};

// Scores that differ only by rounding are equal: the first candidate wins, whatever the order of the rows.
bool clearly_better(double a, double b);

struct Search {
  Tally total;
  double least;  // minimum weight of a side
  bool gini;
};

constexpr index_t kSmallNode = 256;

// cells: kBins of them, all zero before and after. Returns false if the feature is constant in the node.
bool scan_feature(const Bins& bins, index_t feature, const std::uint32_t* order, const Tally* rows, index_t m,
                  const Search& search, Tally* cells, Scan& best);

// Tries all features of a node of at most kSmallNode rows, reading their bytes row by row. Returns the best feature, or
// -1.
index_t scan_small(const Bins& bins, const std::uint32_t* order, const Tally* rows, index_t m, const Search& search,
                   Tally* cells, std::vector<std::uint8_t>& codes, Scan& best);

// Tries all features of one group, whose bytes are one load per row. cells: kGroup x kBins, all zero before and after.
// Returns the best feature if it beats `best`, or -1.
index_t scan_group(const Bins& bins, index_t group, const std::uint32_t* order, const Tally* rows, index_t m,
                   const Search& search, Tally* cells, Scan& best);

}  // namespace hinge::trees
