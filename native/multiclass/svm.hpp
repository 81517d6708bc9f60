// The multiclass support vector machine of Crammer & Singer (2001), with any cost matrix.
//
//   J(W) = sum_i c_i max_j [ D(y_i, j) - s_iy + s_ij ] + 1/2 |W|^2,      s_i = W'x_i
//
// With biases, x_i stands for (x_i - m, B): inputs centred at their mean m, and a constant. Neither is ever formed:
// with V = sum_i x_i d_i', v = sum_i d_i and u = V'm for the dual coefficients d_i, s_i = V'x_i + (|m|^2 + B^2 - x_i.m)
// v - u. This penalises biases by 1/2 |b|^2 / B^2, which is a proximal step from zero. The caller takes steps from
// other points a by replacing D(y, j) with D(y, j) + a_j - a_y, until the biases are constant and the penalty vanishes.
//
//   dual: max over p_i in the simplex   sum_i c_i sum_j p_ij D(y_i, j) - 1/2 |W|^2,   W = sum_i c_i x_i (e_y - p_i)'
//
// Dual coordinate ascent over samples: with the others fixed, the best p_i is the Euclidean projection of
// p_i + (D(y_i, .) + s_i) / (c_i |x_i|^2) onto the simplex. The gap is sum_i c_i [ max_j (D_ij + s_ij) - p_i.(D_i +
// s_i) ]. Shrinking: samples whose visit changes nothing are skipped for a growing number of passes, and all samples
// are visited before stopping. If the remaining passes, extrapolated from the last gaps, cost more than Newton's method
// (newton.hpp), that method takes over.
#pragma once
#include <vector>

#include "core/hot.hpp"
#include "core/monitor.hpp"

namespace hinge {

// Rows of a matrix: dense (indptr null; `cols` doubles per row) or sparse.
struct Rows {
  index_t rows, cols;
  const double* value;
  const index_t* indptr;
  const std::int32_t* index;
  const double* mean = nullptr;  // null: no biases
  double constant = 0;           // B
};

struct MulticlassSvmFit {
  std::vector<double> w;     // cols x classes (linear), empty (kernel)
  std::vector<double> bias;  // classes: of x itself, not of x - m
  std::vector<double> dual;  // rows x classes: c_i (e_y - p_i)
  int passes = 0;            // including Newton steps
  int steps = 0;             // Newton steps among them
  bool done = false;
  double primal = 0, gap = 0;
};

struct MulticlassSvmProblem {
  const std::int32_t* y;
  const double* c;     // c_i >= 0
  const double* cost;  // classes x classes
  index_t classes;
  const double* start = nullptr;  // rows x classes, as MulticlassSvmFit::dual; null: zeros
};

MulticlassSvmFit multiclass_svm(const Rows& x, const MulticlassSvmProblem& problem, double tolerance, int max_passes,
                                std::uint64_t seed, Monitor& monitor);

// The same with inner products K (rows x rows, symmetric) instead of x.
MulticlassSvmFit multiclass_kernel_svm(const double* K, index_t rows, const MulticlassSvmProblem& problem,
                                       double tolerance, int max_passes, std::uint64_t seed, Monitor& monitor);

}  // namespace hinge
