// The inner problem of proximal Newton on a working set of m columns of X:
//
//   q(delta, beta) = r'(X delta + beta 1) + 1/2 (X delta + beta 1)' diag(h) (X delta + beta 1)
//                    + sum_j omega_j(w_j + delta_j)
//
// minimised by cyclic coordinate descent (Friedman, Hastie & Tibshirani 2010) with an occasional Newton step on the
// nonzero weights ("polish"), which ends the search once the support is right.
//
// Two representations of the quadratic: GramQuadratic keeps X'diag(h)X and the gradient in all m coordinates, so a move
// costs m operations; DirectQuadratic keeps the n residuals, so a move costs the stored entries of one column. Both
// offer
//   gradient(j), curvature(j)  first and second derivative of the smooth part in coordinate j (j = m is the bias)
//   move(j, step)      change coordinate j
//   move(which, v)     change several
//   newton(which, l2, step)  the step v with A v = step, where A is the Hessian in the chosen coordinates
//   product(which, l2, few, delta, v)  v'A delta, where only the listed few of delta are not zero
//   kSupportEpochs     passes over the support per pass over all coordinates; fewer (kCloseEpochs) from a close start
//   kPatience          cycles of coordinate descent before the first Newton step
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "core/changing_cholesky.hpp"
#include "core/design.hpp"
#include "solvers/problem.hpp"

namespace hinge {

// One weight's penalty: a|w| + b/2 w^2 on [lower, upper].
struct CoordinatePenalty {
  double l1, l2, lower, upper;

  // The minimiser of gradient * (x - w) + curvature/2 (x - w)^2 + omega(x).
  double minimiser(double w, double gradient, double curvature) const {
    const double total = curvature + l2;
    if (!(total > 0)) return w;
    const double v = curvature * w - gradient;
    const double shrunk = v > l1 ? v - l1 : (v < -l1 ? v + l1 : 0.0);
    const double x = shrunk / total;
    return x < lower ? lower : (x > upper ? upper : x);
  }

  // Distance of -gradient (the smooth part only) from the subdifferential at w.
  double violation(double w, double gradient) const {
    const double s = -gradient - l2 * w;
    double low = w > 0 ? l1 : -l1, high = w < 0 ? -l1 : l1;
    if (w <= lower) low = -1e300;
    if (w >= upper) high = 1e300;
    return s < low ? low - s : (s > high ? s - high : 0.0);
  }

  double value(double w) const { return l1 * (w < 0 ? -w : w) + 0.5 * l2 * w * w; }
  bool smooth_at(double w) const { return (w != 0 || l1 == 0) && w > lower && w < upper; }
};

// The last Cholesky factor, with the coordinates of the Hessian and the ridge it belongs to, in its own order: from one
// Newton step to the next, and along a path, few coordinates change.
struct KeptFactor {
  ChangingCholesky cholesky = {};
  std::vector<index_t> which = {};
  std::vector<double> l2 = {};
  std::vector<double> scratch = {};  // workspace for factors that are not kept

  void forget() {
    cholesky.clear();
    which.clear();
    l2.clear();
  }
};

class GramQuadratic {
 public:
  static constexpr int kSupportEpochs = 10;  // cost about as much as one factorisation
  static constexpr int kPatience = 0;
  // G has order m+1 with the bias last (its row and column are zero without one) and leading dimension ld; gradients
  // has m+1 entries. `factor` is kept from one quadratic to the next; a caller that changes existing entries of G must
  // reset it.
  GramQuadratic(const std::vector<double>& G, index_t ld, std::vector<double> gradients, index_t m, KeptFactor& factor)
      : G_(G), ld_(ld), q_(std::move(gradients)), m_(m), factor_(factor) {}
  double gradient(index_t j) const { return q_[j]; }
  double curvature(index_t j) const { return G_[j * ld_ + j]; }
  void move(index_t j, double step);
  void move(const std::vector<index_t>& which, const std::vector<double>& v);
  bool newton(const std::vector<index_t>& which, const std::vector<double>& l2, std::vector<double>& step);
  double product(const std::vector<index_t>& which, const std::vector<double>& l2, const std::vector<index_t>& few,
                 const std::vector<double>& delta, const std::vector<double>& v) const;

 private:
  const std::vector<double>& G_;
  index_t ld_;
  std::vector<double> q_;
  index_t m_;
  KeptFactor& factor_;

  bool update_factor(const std::vector<index_t>& which, const std::vector<double>& l2);
};

class DirectQuadratic {
 public:
  static constexpr int kSupportEpochs = 3;
  static constexpr int kPatience = 3;
  DirectQuadratic(const Columns& X, const Unset<double>& h, Unset<double> r, KeptFactor& factor);
  double gradient(index_t j) const;
  double curvature(index_t j) const { return curvature_[j]; }
  void move(index_t j, double step);
  void move(const std::vector<index_t>& which, const std::vector<double>& v);
  bool newton(const std::vector<index_t>& which, const std::vector<double>& l2, std::vector<double>& step);
  double product(const std::vector<index_t>& which, const std::vector<double>& l2, const std::vector<index_t>& few,
                 const std::vector<double>& delta, const std::vector<double>& v) const;

 private:
  // z += X v for the chosen coordinates, or diag(h) X v.
  void add(const std::vector<index_t>& which, const std::vector<double>& v, bool weighted, double* z) const;
  bool factorised(const std::vector<index_t>& which, const std::vector<double>& l2, std::vector<double>& step);
  void conjugate_gradients(const std::vector<index_t>& which, const std::vector<double>& l2,
                           std::vector<double>& step) const;
  const Columns& X_;
  const Unset<double>& h_;
  Unset<double> r_;
  std::vector<double> hx_, curvature_;
  KeptFactor& factor_;
};

struct QuadraticOptions {
  double tol;  // largest violation at the solution
  int max_epochs;
  bool intercept;
  bool close = false;  // the start is close to the minimiser, as along a path
};

// Minimises q over w (m weights, changed in place) and b. Returns the number of epochs.
template <class Q>
int minimise_quadratic(Q& q, const std::vector<CoordinatePenalty>& penalty, std::vector<double>& w, double& b,
                       const QuadraticOptions& options);

// Gathered sparse columns in row order, each row sorted by rank: columns from `from` on come last, and within both
// groups columns with more entries come first, so that most of a Gram matrix is summed in one corner of it.
struct ByRow {
  std::vector<index_t> start = {};
  std::vector<std::int32_t> rank = {};
  std::vector<double> value = {};
  std::vector<index_t> order = {};  // the columns by rank
  index_t cols = -1, from = 0;
  double pairs = 0;                               // multiplications for their Gram matrix
  std::vector<std::vector<double>> partial = {};  // workspace for the partial sums
};
void by_row(const Columns& X, index_t from, ByRow& out);

// Columns [from, m) of the Gram matrix of m gathered columns, written to both triangles of a matrix of order m+1 with
// leading dimension ld. The bias goes last; without one its row and column are zero. `rows` is X by row if it is
// sparse.
void working_gram(const Columns& X, ByRow& rows, const Unset<double>& h, index_t from, bool intercept,
                  std::vector<double>& G, index_t ld);

}  // namespace hinge
