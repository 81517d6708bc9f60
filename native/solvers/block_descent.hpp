// Block coordinate descent for least squares with several targets and a penalty on the rows of the weights.
//
// Problem     min_W  1/2 tr(W'GW) - tr(W'Q) + s/2 + t sum_j (l1_j |W_j| + l2_j/2 |W_j|^2),   W of d x k with rows W_j
//             G = X'CX, Q = X'CY and s = tr(Y'CY) of centred X and Y: the examples enter through these sums only
// Step        minimise over one row at a time, with R = Q - GW kept up to date:
//             v = R_j + G_jj W_j,   W_j <- max(0, 1 - t l1_j / |v|) v / (G_jj + t l2_j)
// Dual        residuals, scaled until |R_j| <= t l1_j where l2_j = 0: the gap after every round costs d k operations
// Optimality  |R_j| <= t l1_j where W_j = 0;  R_j = t (l1_j W_j / |W_j| + l2_j W_j) elsewhere
// Reference   Simon, Friedman & Hastie (2013), A blockwise descent algorithm for group-penalized multiresponse
//             regression
#pragma once
#include <vector>

#include "core/hot.hpp"
#include "core/monitor.hpp"

namespace hinge {

struct BlockProblem {
  index_t d, k;
  const double *G, *Q;  // d x d and d x k, by rows
  double s;
  const double *l1, *l2;
};

struct BlockSolution {
  int iterations = 0;  // rounds
  bool converged = false;
};

class BlockDescent {
 public:
  BlockDescent(const BlockProblem& problem, std::vector<double> W);

  // Minimises for the penalty times `strength`, from the current weights, until gap <= tol objective.
  BlockSolution solve(double strength, double tol, int max_iter, Monitor& monitor);

  const std::vector<double>& weights() const { return W_; }

 private:
  void round();
  double relative_gap() const;

  BlockProblem p_;
  std::vector<double> W_, R_, step_;
  double strength_ = 0;
};

}  // namespace hinge
