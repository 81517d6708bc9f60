// Shared by the solvers of the multiclass support vector machine: products with rows of x, and the projection onto the
// simplex.
#pragma once
#include <algorithm>
#include <limits>
#include <vector>

#include "core/pool.hpp"
#include "core/vec.hpp"
#include "multiclass/svm.hpp"
#include "sequence/chain.hpp"
#include "sequence/chain_kernels.hpp"

namespace hinge::multiclass {

// Projects v onto the simplex (Held, Wolfe & Crowder 1974): takes the largest entries one by one while they stay
// positive; usually there are two or three.
inline void project_simplex(double* v, index_t k, double* left) {
  std::copy(v, v + k, left);
  double sum = -1, shift = 0;
  for (index_t taken = 1; taken <= k; ++taken) {
    index_t top = 0;
    for (index_t j = 1; j < k; ++j) top = left[j] > left[top] ? j : top;
    const double candidate = (sum + left[top]) / static_cast<double>(taken);
    if (taken > 1 && !(left[top] > candidate)) break;
    sum += left[top];
    shift = candidate;
    left[top] = -std::numeric_limits<double>::infinity();
  }
  for (index_t j = 0; j < k; ++j) v[j] = std::max(0.0, v[j] - shift);
}

namespace detail {

template <int V>
HINGE_HOT void scores(const Rows& x, const Table& W, index_t width, index_t i, double* s) {
  if (x.indptr) {
    const index_t at = x.indptr[i];
    chain::combine<V, double>(nullptr, x.value + at, x.index + at, x.indptr[i + 1] - at, W.data(), width, s);
  } else {
    chain::combine<V, double>(nullptr, x.value + i * x.cols, nullptr, x.cols, W.data(), width, s);
  }
}

template <int V>
HINGE_HOT void add(const Rows& x, Table& W, index_t width, index_t i, const double* update) {
  const index_t w = chain::wide<V>(width);
  alignas(64) double copy[V ? 8 * V : 1];  // a copy without aliases stays in registers
  if constexpr (V > 0) std::copy_n(update, 8 * V, copy);
  const double* __restrict change = V ? copy : update;
  const index_t first = x.indptr ? x.indptr[i] : i * x.cols, n = x.indptr ? x.indptr[i + 1] - first : x.cols;
  for (index_t k = 0; k < n; ++k) {
    double* __restrict row = W.data() + (x.indptr ? x.index[first + k] : k) * w;
    const double v = x.value[first + k];
    for (index_t j = 0; j < w; ++j) row[j] += v * change[j];
  }
}

}  // namespace detail

// s = W'x_i, where W has `width` columns.
inline void row_scores(const Rows& x, const Table& W, index_t width, index_t i, double* s) {
  HINGE_BY_WIDTH(width, detail::scores, x, W, width, i, s)
}

// W += x_i change'
inline void add_row(const Rows& x, Table& W, index_t width, index_t i, const double* change) {
  HINGE_BY_WIDTH(width, detail::add, x, W, width, i, change)
}

// V = sum_i x_i r_i' and v = sum_i r_i; residual(i, r) writes r_i, or returns false if it is zero.
template <class Residual>
void sum_rows(const Rows& x, index_t width, const Residual& residual, Table& V, Table& v) {
  const index_t parts = parts_for((x.indptr ? x.indptr[x.rows] : x.rows * x.cols) * width, 1 << 16);
  std::vector<Table> sums(parts), totals(parts);
  parallel_for(parts, [&](index_t part) {
    sums[part].assign(x.cols * width, 0.0);
    totals[part].assign(width, 0.0);
    Table r(width, 0.0);
    for (index_t i = range_begin(x.rows, parts, part); i < range_begin(x.rows, parts, part + 1); ++i) {
      if (!residual(i, r.data())) continue;
      add_row(x, sums[part], width, i, r.data());
      for (index_t j = 0; j < width; ++j) totals[part][j] += r[j];
    }
  });
  std::fill(V.begin(), V.end(), 0.0);
  std::fill(v.begin(), v.end(), 0.0);
  for (index_t part = 0; part < parts; ++part) {
    vec::axpy(1.0, sums[part].data(), V.data(), x.cols * width);
    vec::axpy(1.0, totals[part].data(), v.data(), width);
  }
}

}  // namespace hinge::multiclass
