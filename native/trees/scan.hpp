// The best cut of a node on one binned feature in a single pass, for the commonest trees: squared error, or Gini with
// two classes; rows count as much as they weigh, or leaves may hold a single row; no missing values and no constraints
// on the cut but its sizes.
#pragma once
#include "trees/bins.hpp"

namespace hinge::trees {

// Weight and weighted sum of y: of a row (kept in the order of the nodes, so that a node reads its rows one after the
// other), a bin or a side.
struct Tally {
  double w = 0, s = 0;
};

struct Scan {
  double score;   // of both sides together; in: what has to be beaten
  int code = -1;  // last code on the left, -1 if nothing beats it
  int next = -1;  // first code on the right
  Tally left{};
};

// Scores that differ by rounding only count as equal: the first candidate stays, whatever the order of the rows.
bool clearly_better(double a, double b);

struct Search {
  Tally total;
  double least;  // weight of a side
  bool gini;
};

constexpr index_t kSmallNode = 256;

// cells: kBins of them, all zero before and after. Returns false if the feature is constant in the node.
bool scan_feature(const Bins& bins, index_t feature, const std::uint32_t* order, const Tally* rows, index_t m,
                  const Search& search, Tally* cells, Scan& best);

// All features of a node of at most kSmallNode rows, whose bytes are fetched row by row. Returns the best feature, or
// -1.
index_t scan_small(const Bins& bins, const std::uint32_t* order, const Tally* rows, index_t m, const Search& search,
                   Tally* cells, std::vector<std::uint8_t>& codes, Scan& best);

// All features of one group, whose bytes come with one load a row. cells: kGroup x kBins of them, all zero before and
// after. Returns the best feature if it beats `best`, or -1.
index_t scan_group(const Bins& bins, index_t group, const std::uint32_t* order, const Tally* rows, index_t m,
                   const Search& search, Tally* cells, Scan& best);

}  // namespace hinge::trees
