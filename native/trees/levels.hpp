// Evaluation of shallow trees level by level.
//
// A tree of depth D is padded to a complete one (all leaves below an early leaf have its value), so that all rows of a
// block take exactly D steps: node -> 2 node + (x > threshold), with vector instructions that gather thresholds and
// values. That is D steps, where masks (predict.hpp) apply up to 2^D - 1 splits.
#pragma once
#include <vector>

#include "core/hot.hpp"

namespace hinge::trees {

struct Ensemble;

class Levels {
 public:
  static constexpr int kDeepest = 6;
  static constexpr index_t kRows = 128;  // rows of a block

  // Returns false and stores nothing if the trees are unsuitable: a depth above kDeepest, categorical splits, or so few
  // leaves that masks are faster.
  bool build(const Ensemble& ensemble);
  // sums[i] += the value of tree t, for a block of rows without missing values; columns[j * kRows + i] is x_ij.
  template <class T>
  void add(index_t t, const T* columns, double* sums) const;

 private:
  int depth_ = 0;
  std::vector<std::int32_t> offset_;  // (2^D - 1) per tree, level by level: feature times kRows
  std::vector<double> threshold_, value_;
  std::vector<float> threshold32_;  // rounded down, so that float32 values compare the same
};

}  // namespace hinge::trees
