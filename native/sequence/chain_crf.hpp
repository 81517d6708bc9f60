// The conditional random field: the loss that L-BFGS minimises, and its duality gap.
//
//   L(w) = sum_i c_i [ log Z(x_i) - score(x_i, y_i) ],   J(w) = L(w) + l1 |w|_1 + l2/2 |w|^2,   sum_i c_i = 1
//
// grad L = expected - observed features. With p the model at w and H = sum_i c_i entropy(p_i) = L - w.grad L, p itself
// is a dual point (mixed with the observed labels if l2 = 0):
//   l2 > 0:  D = H - sum_j soft(grad_j L, l1)^2 / (2 l2)
//   l2 = 0:  D = min(1, l1 / max_j |grad_j L|) H           (entropy is concave)
// so J - D bounds the suboptimality of w. With l1 = 0 it is |grad J|^2 / (2 l2).
#pragma once
#include <memory>

#include "core/monitor.hpp"
#include "sequence/chain_pass.hpp"
#include "solvers/lbfgs.hpp"

namespace hinge {

class ChainCrf {
 public:
  // y: a label per token; weight: c_i. All arrays must outlive this object.
  ChainCrf(const Tokens& x, const std::int32_t* y, const double* weight, Layout layout, const Potentials& constraints);

  // L and its gradient; `single`: in single precision (relative error about 1e-7), where that is faster.
  double loss(const double* w, double* g, bool single = false);
  index_t size() const { return layout_.size(); }
  bool plain() const { return !data_.x.parent && layout_.plain(); }
  const Potentials& potentials(const double* w);  // the scores at w

  static double gap(double loss, const double* w, const double* g, index_t n, double l1, double l2);

 private:
  LabelledChains data_;
  Layout layout_;
  Potentials potentials_;
  ChainPlan plan_;
  std::unique_ptr<ChainPass<float>> single_;
  std::unique_ptr<ChainPass<double>> double_;
  Table observed_pairs_, observed_triples_;
  std::vector<double> observed_cross_;
};

enum class CrfStatus { converged, iteration_limit, stalled, stopped, early };

struct CrfFit {
  std::vector<double> w;
  CrfStatus status = CrfStatus::iteration_limit;
  int iterations = 0;
  double loss = 0, objective = 0, gap = 0;
  std::vector<double> validation;  // accuracy on the held-out sequences after each iteration
};

// With `held` (may be null) training stops when the held-out accuracy stops improving, and the best w is returned.
CrfFit fit_crf(ChainCrf& crf, std::vector<double> w, double l1, double l2, const LbfgsOptions& options,
               const HeldOut* held, Monitor& monitor);

// Recomputes loss, objective and gap of fit.w.
void evaluate_crf(ChainCrf& crf, double l1, double l2, CrfFit& fit);

}  // namespace hinge
