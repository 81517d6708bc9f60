// The dual of a support vector machine, by decomposition.
//
// Problem     min_a  1/2 sum_vw s_v s_w a_v a_w K(v, w) - sum_v s_v t_v a_v
//             s.t.   0 <= a_v <= upper_v,   sum_v s_v a_v as at the start
//             Variable v belongs to point v mod n. Classification: one variable per point, s = t = y. Regression: two
//             per point, (s, t) = (+1, y - epsilon) and (-1, y + epsilon).
// State       F_i = sum_v s_v a_v K(v, i); the value of a variable is e_v = t_v - F.
// Optimality  max e over {v that may rise: s = 1, a < upper or s = -1, a > 0} <= min e over {v that may fall};
//             the bias lies between the two.
// Groups      With two groups the sum of a_v is kept within each sign (the nu forms): the optimality condition holds
//             for each sign on its own, pairs are made within a sign, and e lies at b - rho for s = 1 and at b + rho
//             for s = -1.
// Method      Batches of variables, half of them new (those that violate optimality most, from both ends) and half
//             from the batch before. The kernel rows of a batch come from one matrix product, or from a cache of rows
//             bounded in bytes. Within a batch: pairs, the second by the largest predicted decrease (Fan, Chen & Lin
//             2005, working set selection 2). Then F is updated with the rows of the variables that moved.
// Shrinking   Points whose variables are at a bound, with a gradient that points outwards, are left out until the rest
//             has converged; F is then recomputed for them, and the optimality condition is checked on all points.
// Stops       when the optimality condition holds to `tol`, when batches or steps are used up, or when the objective no
//             longer falls by more than its rounding error (the returned violation is then larger than `tol`).
// Reference   Joachims (1999), Making large-scale SVM learning practical; Wen et al. (2018), ThunderSVM (batches);
//             Chang & Lin (2001), Training nu-support vector classifiers (groups).
//
// All sums are added in an order that depends on the data only, so results do not depend on the number of threads.
#pragma once
#include <algorithm>
#include <functional>
#include <vector>

#include "core/monitor.hpp"
#include "problem/kernels.hpp"

namespace hinge {

// A source of kernel rows. Its columns can be restricted to some of the points.
template <class T>
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual index_t points() const = 0;
  virtual void restrict(const index_t* columns, index_t count) = 0;       // sorted; initially all columns
  virtual void rows(const index_t* which, index_t m, T* const* out) = 0;  // out[r][c], c over the columns
  virtual const T* kept(index_t) const { return nullptr; }  // the row of a point, null unless all are in memory
};

// Rows computed from the points by a kernel program.
template <class T>
class ProgramRows final : public RowSource<T> {
 public:
  ProgramRows(KernelProgram program, const Points<T>& points) : program_(std::move(program)), all_(points) {}
  index_t points() const override { return all_.n; }
  void restrict(const index_t* columns, index_t count) override;
  void rows(const index_t* which, index_t m, T* const* out) override;

 private:
  KernelProgram program_;
  const Points<T>& all_;
  std::unique_ptr<Gathered<T>> some_;
};

// Full rows from a function (a matrix in memory, a kernel written in Python), cut to the active columns.
template <class T>
class FullRows final : public RowSource<T> {
 public:
  using Fill = std::function<void(const index_t* which, index_t m, T* out)>;  // m x n, row-major
  FullRows(index_t n, Fill fill) : n_(n), fill_(std::move(fill)) {}
  index_t points() const override { return n_; }
  void restrict(const index_t* columns, index_t count) override { columns_.assign(columns, columns + count); }
  void rows(const index_t* which, index_t m, T* const* out) override;

 private:
  index_t n_;
  Fill fill_;
  std::vector<index_t> columns_;
  std::vector<T> buffer_;
};

// Rows of a matrix in memory: they are used in place, and points are never shrunk.
class MatrixRows final : public RowSource<double> {
 public:
  MatrixRows(const double* values, index_t n) : values_(values), n_(n) {}
  index_t points() const override { return n_; }
  void restrict(const index_t*, index_t) override {}
  void rows(const index_t* which, index_t m, double* const* out) override {
    for (index_t r = 0; r < m; ++r) std::copy_n(kept(which[r]), n_, out[r]);
  }
  const double* kept(index_t point) const override { return values_ + point * n_; }

 private:
  const double* values_;
  index_t n_;
};

struct DualProblem {
  index_t n = 0, variables = 0;  // variables = n or 2 n
  const double *sign, *target, *upper;
  int groups = 1;  // 2: the sum of a is fixed for each sign
};

struct DecompositionOptions {
  double tol = 1e-3;         // largest violation, max e - min e of the optimality condition
  double cache_bytes = 2e8;  // size of the cache of kernel rows
  int max_iter = 100000;     // limit on the number of batches
  index_t max_steps = index_t{1} << 62;
  bool shrinking = true;
};

struct DualSolution {
  std::vector<double> alpha, F;
  double bias = 0, rho = 0, violation = 0;
  int batches = 0;
  index_t steps = 0;
  bool stopped = false;  // whether the monitor stopped the run
};

// `scores` are F at alpha; if they are empty, they are computed.
template <class T>
DualSolution decompose(RowSource<T>& source, const DualProblem& problem, std::vector<double> alpha,
                       std::vector<double> scores, const DecompositionOptions& options, Monitor& monitor);

}  // namespace hinge
