// Shallow trees evaluated level by level.
//
// A tree of depth D is filled up to a complete one (below an early leaf every path ends in its value), so that all rows
// of a block take exactly D steps: node -> 2 node + (x > threshold), with vector instructions that gather thresholds
// and values. That is D steps where masks (tree_predict.hpp) apply up to 2^D - 1 splits.
#pragma once
#include <vector>

#include "core/hot.hpp"

namespace hinge::trees {

struct Ensemble;

class Levels {
 public:
  static constexpr int kDeepest = 6;
  static constexpr index_t kRows = 128;  // rows of a block

  // False, and nothing is kept, if the trees do not suit: one deeper than kDeepest, categories, or so few leaves that
  // masks are quicker.
  bool build(const Ensemble& ensemble);
  // sums[i] += the value of tree t, for a block of rows without missing values; columns[j * kRows + i] is x_ij.
  template <class T>
  void add(index_t t, const T* columns, double* sums) const;

 private:
  int depth_ = 0;
  std::vector<std::int32_t> offset_;  // (2^D - 1) per tree, level after level: feature times kRows
  std::vector<double> threshold_, value_;
  std::vector<float> threshold32_;  // rounded down: the same answers for float32
};

}  // namespace hinge::trees
