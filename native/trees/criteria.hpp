// Impurity criteria as scores of a side: the best split has the largest sum of the scores of its two sides.
//
// W Q = constant - score for every criterion except the absolute error, where score = -W Q.
// The statistics of a side are `channels` numbers: [count, weight, s_0, s_1, ...], where s are the weights of the
// classes (three or more), the weight of class 1 (two classes) or the weighted sums of the targets (regression).
#pragma once
#include <cmath>
#include <vector>

#include "core/hot.hpp"
#include "trees/cart.hpp"

namespace hinge::trees {

struct Prefixes {  // stored by channel: at(c)[i] = sum over the first i + 1 groups
  index_t groups = 0, capacity = 0;
  int channels = 0;
  std::vector<double> data;
  std::vector<double> score;
  std::vector<std::uint32_t> code;
  double* at(int c) { return data.data() + c * capacity; }
  const double* at(int c) const { return data.data() + c * capacity; }
  void reserve(int channels_, index_t groups_) {
    channels = channels_;
    if (groups_ > capacity || static_cast<index_t>(data.size()) < channels * capacity) {
      capacity = std::max(groups_, capacity);
      data.resize(channels * capacity);
      score.resize(capacity);
      code.resize(capacity);
    }
  }
};

inline double xlog2(double x) { return x > 0 ? x * std::log2(x) : 0.0; }

// The proportion of class 1 of two. A proportion within rounding of a half is set to a half: if the classes in a leaf
// have equal weight, as in AdaBoost, the label does not depend on the order of summation.
inline double share_of(double part, double total) {
  const double share = part / total;
  return std::fabs(share - 0.5) < 1e-12 ? 0.5 : share;
}

// Score of one side from its statistics. classes < 0: the statistics are those of -classes targets.
double side_score(Criterion criterion, int classes, const double* stats, int channels);

// Score of a cut: that of the left side plus that of total - left.
double cut_score(Criterion criterion, int classes, const double* left, const double* total, int channels);

// score[i] = score of the first i + 1 groups plus score of the others, for i < n.
void score_prefixes(Criterion criterion, int classes, Prefixes& p, index_t n, const double* total);

}  // namespace hinge::trees
