// The growth of CART trees (cart.hpp): the state of a node, the search for its best cut (search.cpp), and the loop that
// splits nodes until none can be split (cart.cpp).
#pragma once
#include <algorithm>
#include <atomic>
#include <limits>
#include <tuple>

#include "trees/absolute.hpp"
#include "trees/cart.hpp"
#include "trees/criteria.hpp"
#include "trees/nonzeros.hpp"
#include "trees/scan.hpp"

namespace hinge::trees::cart {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Cut {
  double score = -kInf;
  std::int32_t feature = -1;
  std::uint32_t code = 0, next = 0;  // last code on the left, first code on the right (kAbsent: none)
  bool missing_left = false, categorical = false;
  Set set{};
  double threshold = 0;
};

// The entries of one feature of a sparse table that are in a node.
struct Span {
  std::int32_t feature;
  index_t begin, end;
};

struct Node {
  index_t begin = 0, end = 0;
  std::vector<Span> spans;  // sparse tables: the features with entries in the node, in increasing order
  int depth = 0;
  std::int32_t id = 0;
  std::uint64_t key = 1;
  std::uint32_t label = 0;
  double lower = -kInf, upper = kInf;  // bounds of the leaf value, under monotone constraints
  std::vector<double> total;
  double impurity = 0;
  bool final = false;
  Cut cut;
};

// A row in a list sorted by code.
struct Step {
  std::int32_t label;
  double weight, count;
};

// The rows of a node sorted by one feature, for several classes.
struct Steps {
  std::vector<Step> rows, absent;  // rows with a value; rows without one
  std::vector<index_t> end;        // the end of each group of equal codes
  index_t zero = -1;               // sparse tables: the group of the rows without entries
  std::vector<double> rest;        // the statistics of that group
  std::vector<double> tally;       // class weights on one side
  std::vector<std::uint32_t> key;
};

// An entry of a sparse table in the list of its row.
struct RowCell {
  std::uint32_t feature, code, row;
  bool operator<(const RowCell& other) const {
    return std::tie(feature, code, row) < std::tie(other.feature, other.code, other.row);
  }
};

// The working memory of one thread.
struct Scratch {
  Prefixes prefix;
  std::vector<double> cells;  // histogram: codes x channels
  std::vector<double> missing, sum, local_w, local_y, local_c;
  double squares = 0;            // sum of squares of the class weights in the node
  std::vector<double> of_class;  // class weights on one side, all zero between cuts
  std::vector<std::uint32_t> rows;
  std::vector<Tally> weighted;
  std::vector<std::uint8_t> codes;
  std::vector<Tally> tallies = std::vector<Tally>(kGroup * kBins);
  std::vector<std::int32_t> features;  // in the order in which they are tried
  std::vector<index_t> swaps;          // that produced this order
  Steps steps;
  std::vector<Sorted::Entry> entries;
  const Sorted::Entry* first = nullptr;  // sparse tables: entries of the current feature in the node
  const Sorted::Entry* last = nullptr;
  std::vector<Span> spans;  // of the node, if they were read from its rows
  std::vector<RowCell> cells_of_rows;
  std::vector<std::int32_t> place;  // by feature: the index of its span in the node, or -1
  std::vector<std::uint32_t> code;  // by row
  std::vector<double> value, left;  // of the node's rows, for tables of cells; statistics of a side
  AbsoluteError absolute;
};

class Grower {
 public:
  Grower(const Forms& table, const double* y, const CartRows& rows, const CartOptions& options, std::uint64_t seed);

  CartTree grow();

 private:
  const Feature& feature(index_t j) const { return (*features_)[j]; }
  double weight(std::uint32_t row) const { return rows_.weight ? rows_.weight[row] : 1.0; }
  double count(std::uint32_t row) const { return rows_.frequency && rows_.weight ? rows_.weight[row] : 1.0; }

  void add_row(double* stats, std::uint32_t row) const {
    const double w = weight(row);
    stats[0] += count(row), stats[1] += w;
    if (o_.targets > 1)
      add_targets(stats + 2, row, w);
    else if (o_.classes > 2)
      stats[2 + static_cast<int>(y_[row])] += w;
    else
      stats[2] += w * y_[row];
  }
  const double* targets(std::uint32_t row) const { return y_ + static_cast<index_t>(row) * o_.targets; }
  void add_targets(double* sums, std::uint32_t row, double w) const {
    const double* y = targets(row);
    for (int k = 0; k < o_.targets; ++k) sums[k] += w * y[k];
  }

  const Sorted::Entry* list(index_t j, const Node& node) const {
    return (shared_ && j > 0 ? sorted_->entries.data() : entries_.data()) + j * size_ + node.begin;
  }
  std::uint32_t row_at(const Node& node, index_t i) const {
    return sorted_ ? list(0, node)[i].row : order_[node.begin + i];
  }

  // Weight and weighted target of a row of the node.
  Tally weighted_at(const Node& node, index_t i) const {
    if (one_pass_) return weighted_[node.begin + i];
    const std::uint32_t row = row_at(node, i);
    return {weight(row), weight(row) * y_[row]};
  }

  // Computes the statistics, the impurity and whether the node can be split. Integer sums are the difference of those
  // of the parent and the sibling if these are given.
  void start(Node& node, const Node* parent = nullptr, const Node* sibling = nullptr) const;

  void add(CartTree& tree, Node& node) const;

  // The median of target k in the node, and its absolute loss.
  std::pair<double, double> median(const Node& node, int k) const;

  // Fills prefix sums over the groups of equal codes in the node, in increasing order of code; missing rows are
  // separate.
  void collect(const Node& node, index_t j, Scratch& s) const;
  void collect_nonzeros(const Node& node, index_t j, Scratch& s) const;
  template <class Code>
  void collect_codes(const Node& node, Scratch& s, const Code& code_of) const;

  // Gathers the rows of the node once, for histograms over many features.
  void gather(const Node& node, Scratch& s) const;

  bool allowed(const double* left, const double* total) const {
    return left[0] >= o_.min_samples_leaf && total[0] - left[0] >= o_.min_samples_leaf &&
           left[1] >= o_.min_weight_leaf && total[1] - left[1] >= o_.min_weight_leaf && left[0] > 0 &&
           total[0] - left[0] > 0;
  }

  // Whether the values of the two sides of cut i are within the node's bounds and satisfy the monotone constraint.
  bool monotone(const Node& node, index_t j, const double* left, const Scratch& s, index_t i) const {
    if (o_.monotone.empty()) return true;
    const int direction = o_.monotone[j];
    const bool medians = o_.criterion == Criterion::absolute;
    const double a = medians ? s.absolute.below[i] : left[2] / left[1];
    const double b = medians ? s.absolute.above[i] : (node.total[2] - left[2]) / (node.total[1] - left[1]);
    if (direction != 0 && direction * (b - a) < 0) return false;
    return std::min(a, b) >= node.lower && std::max(a, b) <= node.upper;
  }

  // The best admissible cut among the first n prefixes.
  index_t best_prefix(const Node& node, index_t j, Scratch& s, index_t n) const;

  void take(const Node& node, index_t j, Scratch& s, index_t i, bool missing_left, Cut& best) const;

  void score(const Node& node, index_t j, Scratch& s, index_t n, bool missing_left) const;

  // Lists targets, weights and codes of the node's rows, for the absolute error.
  void list_targets(const Node& node, index_t j, Scratch& s, int target) const;

  // Scores of n cuts by the absolute error, summed over the targets; list(target) fills the items.
  template <class List>
  void absolute_scores(Scratch& s, const std::uint32_t* codes, index_t n, bool missing_left, double* score,
                       const List& list) const {
    std::vector<double> part(n);
    std::fill(score, score + n, 0.0);
    for (int k = 0; k < o_.targets; ++k) {
      list(k);
      s.absolute.scores(codes, n, missing_left, part.data(), !o_.monotone.empty());
      for (index_t i = 0; i < n; ++i) score[i] += part[i];
    }
  }
  std::vector<double> medians_of_groups(const Node& node, index_t j, Scratch& s) const;

  // Gini with several classes: sorts the rows by the feature and scores all cuts, in a time that does not depend on the
  // number of classes (class_scan.cpp).
  void list_classes(const Node& node, index_t j, Scratch& s) const;
  void scan_classes(Scratch& s, bool missing_left) const;
  // Squared error of several targets: the best cut of a feature without missing values, without a histogram of targets.
  bool try_targets(const Node& node, index_t j, Scratch& s, Cut& best) const;
  // Sorts the rows of the node by bin: keys bin * 2^24 + place.
  void sort_rows(const Node& node, index_t j, Scratch& s) const;

  // Tries a random threshold between the smallest and largest value in the node. Returns false if the feature is
  // constant.
  bool try_cells(const Node& node, index_t j, Scratch& s, Cut& best) const;
  // Gini with several classes: the score of the cut at `most`, in a time that does not depend on the number of classes.
  double class_score(const Node& node, index_t m, double most, Scratch& s) const;

  bool try_random(const Node& node, index_t j, Scratch& s, Cut& best) const;

  // Takes a cut whose left side has the statistics s.left, if it is allowed and beats the best one.
  bool take_random(const Node& node, index_t j, const Scratch& s, double score, bool missing_left, Cut& best) const;

  static void shift(Prefixes& p, const std::vector<double>& by, double sign);

  // Categories: sorts the groups by `order`; the prefixes of that order are the candidates, or one of them alone.
  void try_order(const Node& node, index_t j, Scratch& s, const std::vector<double>& cells,
                 const std::vector<index_t>& order, Cut& best, index_t only = -1) const;
  // Random splits of categories: each of the node's goes left or right with equal probability, and neither side is
  // empty. Returns the number of those on the left, which come first in `order`.
  index_t draw_categories(const Node& node, index_t j, bool missing, std::vector<index_t>& order) const;

  void try_categories(const Node& node, index_t j, Scratch& s, Cut& best) const;

  Search limits(const Node& node) const {
    // If weights are not counts, one row of any weight satisfies min_samples_leaf here.
    const double count = rows_.frequency || !rows_.weight ? o_.min_samples_leaf : 0.0;
    return {
        {node.total[1], node.total[2]}, std::max({count, o_.min_weight_leaf, kTiny}), o_.criterion == Criterion::gini};
  }

  void take_scan(const Node& node, index_t j, const Scan& scan, Cut& best) const;

  bool try_scan(const Node& node, index_t j, Scratch& s, Cut& best) const;

  void try_groups(const Node& node, Scratch& s, Cut& best) const;

  void try_small(const Node& node, Scratch& s, Cut& best) const;

  // Returns false if the feature is constant in the node.
  bool try_feature(const Node& node, index_t j, Scratch& s, Cut& best) const;

  // The number of features that may vary in the node: all, or those with entries.
  index_t candidates(const Node& node) const { return nonzeros_ ? static_cast<index_t>(node.spans.size()) : cols_; }
  bool try_candidate(const Node& node, index_t k, Scratch& s, Cut& best) const {
    if (!nonzeros_) return try_feature(node, k, s, best);
    look_at(entries_.data(), node.spans[k], s);
    return try_feature(node, node.spans[k].feature, s, best);
  }
  static void look_at(const Sorted::Entry* entries, const Span& span, Scratch& s) {
    s.first = entries + span.begin, s.last = entries + span.end;
  }

  // The best cut over max_features features that are not constant, drawn one by one (drawn.cpp).
  void try_drawn(const Node& node, Scratch& s, Cut& best) const;
  // For a sparse table whose entries are not moved: the features with entries in the node and their entries, from its
  // rows; and the entries of one feature in the node, from its column.
  const std::vector<Span>* spans_of(const Node& node, Scratch& s) const;
  void look_at_column(const Node& node, index_t j, Scratch& s) const;
  bool holds(const Node& node, std::uint32_t row) const;
  void list_cells();
  void label_children(const Node& node, Node& small, Node& large);

  void search(Node& node, Scratch& s) const;

  double total_weight_or(const Node& node) const { return total_weight_ > 0 ? total_weight_ : node.total[1]; }

  bool goes_left(const Cut& cut, std::uint32_t code) const {
    if (code == kAbsent) return cut.missing_left;
    return cut.categorical ? contains(cut.set.data(), code) : code <= cut.code;
  }

  // Partitions the rows of the node; returns the number on the left.
  index_t partition(const Node& node, Scratch& s);

  index_t partition_rows(const Node& node, Scratch& s);

  // Partitions the entries among the children, after `side_` has been set for the rows of the node.
  void part_spans(const Node& node, Node& left, Node& right, Scratch& s);

  // Splits the node at its cut: adds two children to the tree, started but not searched.
  std::pair<Node, Node> split(CartTree& tree, const Node& node, Scratch& s);

  void best_first(CartTree& tree, Node& root, Scratch& s);

  // Grows the subtree below a started node that is already in `tree`.
  void subtree(CartTree& tree, Node&& top, Scratch& s);

  // Splits large nodes one by one (their features in parallel), then grows the subtrees of small nodes in parallel.
  void depth_first(CartTree& tree, Node& root, Scratch& s);

  void graft(CartTree& tree, std::int32_t id, const CartTree& branch) const;

  static constexpr index_t kParallel = 1 << 16;
  static constexpr index_t kMostReserved = 1 << 23;  // values of nodes
  static constexpr double kSorting = 8;              // cost of sorting a cell, relative to reading it
  static constexpr index_t kFewDrawn = 8;            // from this many features per drawn one on, entries are not moved
  // With fewer rows per class than this, sorting the rows of a node by bin is faster than a histogram of classes.
  static constexpr index_t kRowsPerClass = 128;
  static constexpr index_t kRowsPerBins = 4 * kBins;  // the same for several targets
  static constexpr index_t kMostRows = 1 << 24;       // largest number of rows that keys of this form can hold
  static constexpr double kTiny = std::numeric_limits<double>::min();

  const Sorted* sorted_;
  const Bins* bins_;
  const Nonzeros* nonzeros_;
  const Cells* cells_;
  const std::vector<Feature>* features_;
  const double* y_;
  const CartRows& rows_;
  const CartOptions& o_;
  std::uint64_t seed_;
  index_t cols_, size_ = 0;
  int channels_, outputs_;
  double total_weight_ = 0;
  bool shared_ = false;  // columns other than the first are not partitioned
  std::vector<Sorted::Entry> entries_;
  std::vector<Span> spans_;  // of the root
  // Set for a sparse table of whose features few are drawn: entries are not moved. The node of each row, and the cells
  // of each row, are stored instead.
  bool in_place_ = false;
  std::vector<std::uint32_t> label_;
  std::atomic<std::uint32_t> labels_ = 0;  // number of labels in use
  std::vector<index_t> cells_begin_;
  std::vector<RowCell> cells_of_rows_;
  std::vector<std::uint8_t> side_;
  std::vector<std::uint32_t> order_;
  bool one_pass_ = false;  // use scan.hpp
  bool by_class_ = false;  // use class_scan.cpp
  bool by_target_ = false;
  bool whole_counts_ = false;    // statistics are sums of integers, exact in any order
  std::vector<Tally> weighted_;  // in the order of order_
};

}  // namespace hinge::trees::cart
