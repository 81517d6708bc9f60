// Gradient boosting on binned data: scores, gradients and the growth of one tree after another.
//
//   minimise  sum_i w_i l(y_i, f(x_i)),   f = f_0 + eta * (tree_1 + tree_2 + ...)
//
// Each tree is fitted to the second-order model of the objective at the current scores (split.hpp). The caller runs the
// rounds; a round grows one tree for every output.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "trees/gradients.hpp"
#include "trees/growth.hpp"

namespace hinge::trees {

struct Round {
  const Loss* loss = nullptr;  // null: the softmax over the outputs
  bool logistic = false;       // the loss is log(1 + exp(-ys))
  Curvature curvature;
  std::uint64_t seed = 0;
  double rows = 1, features = 1;  // fraction of the rows per round and of the features per node
  double eta = 1;
  // Leaf values are argmin_v sum_leaf w l(y, s + v) instead of the minimiser of the second-order model. `level` is in
  // (0, 1) if that is a quantile of y - s.
  bool search = false;
  double level = 0;
  bool convex = true;  // whether the loss is convex, so that the search may use the sign of its derivative
};

class Booster {
 public:
  // The caller owns y and weight (may be null). exact: 64-bit histograms, for small data. frequency: weights are
  // counts, which min_count then includes.
  Booster(std::shared_ptr<const Bins> bins, const double* y, const double* weight, index_t outputs, bool exact,
          bool frequency, GrowOptions options);
  Booster(const Booster&) = delete;

  std::vector<double>& scores() { return scores_; }  // outputs x rows

  // Grows one tree per output, scales it by eta and adds it to the scores. (Long steps of log-odds are damped.)
  std::vector<Nodes> boost(const Round& round);

  // The rows that were not in the sample of the last round.
  std::vector<std::uint32_t> left_out() const;

  // The weighted mean of the loss at the current scores; null stands for the softmax over the outputs.
  double mean_loss(const Loss* loss) const;

  index_t rows() const { return bins_->rows; }
  index_t outputs() const { return outputs_; }

 private:
  bool fill_roots(const Round& round);
  Nodes grow(const Round& round, index_t output, Growth& growth, Histogram* root);
  void search_leaves(Nodes& tree, const Growth& growth, const Round& round, const double* scores) const;
  void update(Nodes& tree, const Growth& growth, double eta, double* scores) const;

  std::shared_ptr<const Bins> bins_;
  const double *y_, *weight_;
  index_t outputs_;
  GrowOptions options_;
  std::vector<double> scores_;
  Gradients gradients_;
  std::vector<Histogram> roots_;  // one per output
  std::deque<Growth> growths_;    // one per tree that is grown concurrently
  Growth* last_ = nullptr;        // one of those used in the last round
};

}  // namespace hinge::trees
