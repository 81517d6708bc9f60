// Predictions of tree ensembles on raw tables.
//
// Trees with at most 64 leaves are evaluated by bit masks (QuickScorer; Lucchese et al. 2015): every leaf is a bit,
// every split that sends a row right clears the bits of its left subtree, and the lowest remaining bit is the row's
// leaf. All splits of a tree are applied to a block of rows with vector instructions and no branches. Shallow and
// nearly complete trees are evaluated level by level instead (levels.hpp). Larger trees are walked from the root,
// several rows at a time so that their cache misses overlap.
#pragma once
#include <vector>

#include "trees/bins.hpp"
#include "trees/levels.hpp"
#include "trees/nodes.hpp"

namespace hinge::trees {

struct Ensemble {
  std::vector<std::int64_t> start;  // trees + 1: the first node of each tree
  std::vector<std::int32_t> feature, left, set;
  std::vector<double> threshold;
  std::vector<std::uint8_t> missing_left;
  std::vector<std::uint32_t> sets;
  std::vector<double> value;  // one number per node if `additive`, otherwise `outputs` of them
  std::int64_t outputs = 1;
  bool additive = true;  // tree t adds to output t % outputs; otherwise every tree adds to all outputs
};

// The part of a node that a walk needs, in a quarter of a cache line. The child of a leaf is the leaf itself.
struct Step {
  double threshold;  // exact for tables of either precision; for a categorical split, the index of its set
  std::uint32_t feature : 30, categorical : 1, missing_left : 1;
  std::int32_t left;  // within the tree; the right child is next to it
};

class Predictor {
 public:
  explicit Predictor(Ensemble ensemble);

  index_t trees() const { return static_cast<index_t>(e_.start.size()) - 1; }
  index_t outputs() const { return e_.outputs; }
  index_t largest_feature() const { return largest_feature_; }
  // out (rows x outputs) += trees [first, last) on x
  template <class T>
  void add(const Table<T>& x, index_t first, index_t last, double* out) const;
  // Sums over the trees for which the row is out of bag: in_bag is trees x rows, out rows x outputs, count rows.
  template <class T>
  void add_out_of_bag(const Table<T>& x, const std::uint8_t* in_bag, double* out, double* count) const;
  // out (rows x trees): the leaf of each row
  template <class T>
  void leaves(const Table<T>& x, std::int32_t* out) const;

 private:
  template <class T>
  const T* values_of() const;  // the thresholds in the type of the table
  template <class T, class Mask>
  void add_masked(const Table<T>& x, index_t first, index_t last, double* out) const;
  template <class T>
  void add_walked(const Table<T>& x, index_t first, index_t last, double* out) const;

  void make_steps();

  Ensemble e_;
  std::vector<Step> steps_;
  index_t largest_feature_ = -1;
  int mask_bits_ = 0;      // 32, 64 or 0 (walk)
  bool by_level_ = false;  // blocks of rows without missing values use levels_ instead
  Levels levels_;
  // Splits in the order in which they are applied, tree by tree.
  std::vector<std::int64_t> split_start_, leaf_start_;
  std::vector<std::int32_t> split_node_;
  std::vector<std::uint64_t> split_mask_;
  std::vector<double> leaf_value_;
  std::vector<float> threshold32_;
};

}  // namespace hinge::trees
