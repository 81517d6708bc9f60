// Proximal Newton with working sets, for a twice differentiable loss and any penalty that is a sum over weights.
//
// Problem     min_{w,b}  sum_i c_i l(y_i, z_i) + sum_j omega_j(w_j),   z = X w + b + offset
// Dual        max_u  -sum_i c_i l*(y_i, u_i) - sum_j omega_j*(-x_j'(c u)),   sum_i c_i u_i = 0 with a bias
// Optimality  -x_j'(c l'(z)) in the subdifferential of omega_j at w_j, for every j
// Outer loop  one pass over X gives the gradient and the gap. The features that violate their condition most join the
//             working set (Massias, Gramfort & Salmon 2018).
// Inner loop  quadratic models of the risk in the working set's weights (solvers/quadratic.hpp), with a line search on
//             the scores; for the squared loss the model is exact, and its Gram matrix is kept while the set grows.
// Path        the solver object keeps working set, columns and Gram matrix from one penalty to the next.
#pragma once
#include "core/monitor.hpp"
#include "solvers/problem.hpp"
#include "solvers/quadratic.hpp"

namespace hinge {

class ProximalNewton {
 public:
  // `constant_curvature`: the loss's second derivative does not depend on the scores (squared loss).
  ProximalNewton(const LinearProblem& problem, bool constant_curvature, std::vector<double> w, double b);

  // Continues from the current weights. `penalty` may differ from call to call.
  LinearSolution solve(const Coordinates& penalty, double tol, int max_iter, Monitor& monitor);

 private:
  void evaluate_all();
  void refresh();
  bool gram_pays();
  double gap(double primal);
  void grow();
  void gather(const std::vector<index_t>& fresh);
  void drop_idle();
  void reserve_gram(index_t order);
  bool improve(double target, bool close);
  double share_to_leave(bool next_lasso) const;
  double objective_at(double step, const std::vector<double>& dz, const std::vector<double>& dw);
  CoordinatePenalty omega(index_t j) const {
    return {penalty_.l1[j], penalty_.l2[j], penalty_.lower[j], penalty_.upper[j]};
  }

  LinearProblem p_;
  Coordinates penalty_;
  std::vector<double> last_l1_;  // of the previous penalty, until the first working set of the new one is chosen
  bool constant_;
  std::vector<double> w_;
  double b_;
  Evaluation at_;
  std::vector<index_t> set_;  // the working set, in the order of cols_
  std::vector<char> inside_;  // whether feature j is in the working set
  Columns cols_;
  ByRow rows_;                // the same columns by row, if sparse and up to date
  std::vector<double> gram_;  // order m+1, for the squared loss kept across iterations
  index_t gram_ld_ = 0;       // its leading dimension
  index_t gram_cols_ = 0;     // how many columns of the working set it covers
  KeptFactor factor_;
  bool started_ = false;  // whether at_ holds scores, gradients and curvature
  double steepest_ = 0;   // largest gradient of the risk at the first pass: the unit of stationarity
  bool current_ = false;  // whether at_ belongs to the current weights
  double violation_ = 0;  // largest over all features, at the last full pass
  std::vector<double> violations_;
};

}  // namespace hinge
