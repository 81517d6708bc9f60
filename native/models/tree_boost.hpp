// Gradient boosting on binned data: scores, gradients and the growth of one tree after another.
//
//   minimise  sum_i w_i l(y_i, f(x_i)),   f = f_0 + eta * (tree_1 + tree_2 + ...)
//
// Each tree is fitted to the second-order model of the objective at the current scores (tree_split.hpp), best leaf
// first (or level by level). The caller drives the rounds: gradients, then for every output grow, search the leaf
// values if the loss asks for it, and update.
#pragma once
#include <memory>
#include <vector>

#include "models/tree_gradients.hpp"
#include "models/tree_nodes.hpp"
#include "models/tree_split.hpp"

namespace hinge::trees {

struct GrowOptions {
  int max_leaves = 31;
  int max_depth = 0;  // 0: no limit
  bool by_level = false;
  std::int64_t min_split = 2;  // rows a node must have to be split
  SplitOptions split;
  std::vector<std::int8_t> monotone;               // one per feature, or empty
  std::vector<std::vector<std::int32_t>> allowed;  // interaction constraints: sets of features, or empty
};

// What one tree may use: a share of the rows, and at each node of the features, drawn from the seed.
struct Draw {
  std::uint64_t seed = 0;
  double rows = 1, features = 1;
};

class Booster {
 public:
  // exact: 64-bit histograms, for small data. frequency: weights are counts, and then count in min_count too.
  Booster(std::shared_ptr<const Bins> bins, std::vector<double> y, std::vector<double> weight, index_t outputs,
          bool exact, bool frequency, GrowOptions options);

  std::vector<double>& scores() { return scores_; }  // outputs x rows

  void gradients(const Loss& loss, bool logistic, const Curvature& curvature);
  void softmax();

  // Grows the tree of one output. Leaf values minimise the second-order model (long steps of log-odds are damped).
  Nodes grow(index_t output, const Draw& draw);
  // Replaces the leaf values by argmin_v sum_leaf w l(y, s + v): `level` in (0, 1) if that is a quantile of y - s.
  void search_leaves(Nodes& tree, const Loss& loss, index_t output, double level);
  // scores += eta * tree, and the values in the tree are multiplied by eta.
  void update(Nodes& tree, index_t output, double eta);

  // The rows that the sample of the last tree did not hold.
  std::vector<std::uint32_t> left_out() const { return {rows_.begin() + used_, rows_.begin() + rows()}; }

  index_t rows() const { return bins_->rows; }
  index_t outputs() const { return outputs_; }

 private:
  struct Leaf;
  struct LeafRows {
    std::int32_t node;
    index_t begin, end;
  };

  void sample_rows(const Draw& draw);
  index_t partition(const Nodes& tree, std::int32_t node, index_t begin, index_t end);
  void find_splits(Leaf& small, Leaf* large);
  void refit(Nodes& tree, index_t output);

  std::shared_ptr<const Bins> bins_;
  std::vector<double> y_, weight_;
  index_t outputs_;
  bool exact_;
  GrowOptions options_;
  std::vector<double> scores_;
  std::vector<float> g32_, h32_;
  std::vector<double> g64_, h64_;
  double constant_h_ = 0;
  bool damped_ = false;  // the scores are log-odds
  Rounded rounded_;
  std::vector<std::uint32_t> rows_, spare_;  // row numbers, leaf after leaf
  index_t used_ = 0;                         // how many of them are in the tree (the rest are out of the sample)
  std::vector<LeafRows> leaves_;
  std::vector<std::vector<Cell>> pool_;
};

}  // namespace hinge::trees
