// The conditional random field: the loss that L-BFGS minimises, and its duality gap.
//
//   L(w) = sum_i c_i [ log Z(x_i) - score(x_i, y_i) ],   J(w) = L(w) + l1 |w|_1 + l2/2 |w|^2,   sum_i c_i = 1
//
// grad L = expected - observed features. With p the model at w and H = sum_i c_i entropy(p_i) = L - w.grad L, a dual
// point is p itself (mixed with the observed labels if l2 = 0):
//   l2 > 0:  D = H - sum_j soft(grad_j L, l1)^2 / (2 l2)
//   l2 = 0:  D = min(1, l1 / max_j |grad_j L|) H           (entropy is concave)
// so J - D bounds how far w is from the optimum. With l1 = 0 it is |grad J|^2 / (2 l2).
#pragma once
#include "core/monitor.hpp"
#include "models/sequence.hpp"
#include "solve/lbfgs.hpp"

namespace hinge {

class ChainCrf {
 public:
  // y: a label per token; weight: c_i. All arrays must outlive this object.
  ChainCrf(const Tokens& x, const std::int32_t* y, const double* weight, Layout layout, const Potentials& constraints);

  double loss(const double* w, double* g);  // L and its gradient
  index_t size() const { return layout_.size(); }
  const Potentials& potentials() const { return potentials_; }  // of the w last asked for

  static double gap(double loss, const double* w, const double* g, index_t n, double l1, double l2);

 private:
  template <int V>
  friend void crf_gather(const ChainCrf&, index_t, index_t, double*);
  template <int V>
  friend void crf_gather_hot(const ChainCrf&, index_t, double*);
  void sequences(index_t first, index_t last, double* value, double* pairs, double* cross);
  void gather_hot(index_t block, double* sums) const;
  void index_hot();
  void index_others();
  // The row of attribute a to where its weights are in g.
  void put(index_t a, const double* row, double* g) const {
    if (layout_.begin.empty()) {
      for (index_t j = 0; j < layout_.labels; ++j) g[a * layout_.labels + j] = row[j];
    } else {
      for (index_t k = layout_.begin[a]; k < layout_.begin[a + 1]; ++k) g[k] = row[layout_.label[k]];
    }
  }
  void gather(index_t first, index_t last, double* g) const;

  Tokens x_;
  const std::int32_t* y_;
  const double* weight_;
  Layout layout_;
  Potentials potentials_;
  std::vector<index_t> parts_;  // of the blocks
  std::vector<index_t> column_parts_;
  // The gradient of attribute a is a sum of rows of `difference_`. For the first attributes (fit numbers them by how
  // common they are) the rows are summed block of tokens by block of tokens, while the block is in cache, into one
  // table per part; for the others over all tokens at once, which needs no table.
  index_t hot_;
  std::vector<index_t> blocks_;              // blocks of sequences; each part is some of them
  std::vector<index_t> block_entry_;         // blocks + 1 offsets into the next two
  std::vector<std::int32_t> hot_attribute_;  // hot attributes in the block,
  std::vector<index_t> hot_begin_;           // and where their tokens begin in the next two
  std::vector<std::int32_t> hot_token_;
  std::vector<double> hot_value_;
  std::vector<index_t> column_;  // the tokens of the other attributes
  std::vector<std::int32_t> token_;
  std::vector<double> token_value_;
  Table difference_;  // tokens x width: c_i (marginal - observed)
  Table observed_pairs_;
  std::vector<double> observed_cross_;
  Table sums_;  // for each part of the sequences: expected label pairs and gradients of the hot attributes
  std::vector<double> cross_sums_;  // for each part: expected label pairs of the attributes that have them
};

enum class CrfStatus { converged, iteration_limit, stalled, stopped, early };

struct CrfFit {
  std::vector<double> w;
  CrfStatus status = CrfStatus::iteration_limit;
  int iterations = 0;
  double loss = 0, objective = 0, gap = 0;
  std::vector<double> validation;  // accuracy on the held-out sequences after each iteration
};

// With `held` (may be null) training stops when the held-out accuracy no longer improves, and the best w is returned.
CrfFit fit_crf(ChainCrf& crf, std::vector<double> w, double l1, double l2, const LbfgsOptions& options,
               const HeldOut* held, Monitor& monitor);

// Loss, objective and gap of fit.w, from a fresh look.
void judge_crf(ChainCrf& crf, double l1, double l2, CrfFit& fit);

}  // namespace hinge
