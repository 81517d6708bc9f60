// Row access to a Design, for methods that process one sample at a time.
//
// A RowView has what one storage needs to read row i; `visit_rows` calls a template with the view of the right type.
// Column storages (dense columns, CSC) have a ColumnView instead.
#pragma once
#include <variant>

#include "core/hot.hpp"

namespace hinge {

// Rows of a dense matrix.
template <class T>
struct DenseRowView {
  const T* data;
  index_t stride, cols;
  static constexpr bool sparse = false;

  HINGE_INLINE void announce(index_t) const {}
  HINGE_INLINE void prefetch(index_t i) const { __builtin_prefetch(data + i * stride); }
  HINGE_INLINE double dot(index_t i, const double* __restrict w) const {
    const T* __restrict x = data + i * stride;
    double s = 0;
    for (index_t j = 0; j < cols; ++j) s += static_cast<double>(x[j]) * w[j];
    return s;
  }
  HINGE_INLINE void axpy(index_t i, double c, double* __restrict w) const {
    const T* __restrict x = data + i * stride;
    for (index_t j = 0; j < cols; ++j) w[j] += c * static_cast<double>(x[j]);
  }
  HINGE_INLINE void axpy_twice(index_t i, double c, double* __restrict w, double e, double* __restrict v) const {
    const T* __restrict x = data + i * stride;
    for (index_t j = 0; j < cols; ++j) {
      w[j] += c * static_cast<double>(x[j]);
      v[j] += e * static_cast<double>(x[j]);
    }
  }
  template <class F>
  HINGE_INLINE void each(index_t i, const F& f) const {
    const T* x = data + i * stride;
    for (index_t j = 0; j < cols; ++j) f(j, static_cast<double>(x[j]));
  }
};

// Rows of a CSR matrix.
template <class T, class I>
struct SparseRowView {
  const T* data;
  const I* indices;
  const I* indptr;
  static constexpr bool sparse = true;

  // Row i can be prefetched only after indptr[i] is in the cache, so that is prefetched several rows earlier.
  HINGE_INLINE void announce(index_t i) const { __builtin_prefetch(indptr + i); }
  HINGE_INLINE void prefetch(index_t i) const {
    const char* value = reinterpret_cast<const char*>(data + indptr[i]);
    const char* index = reinterpret_cast<const char*>(indices + indptr[i]);
    const index_t m = static_cast<index_t>(indptr[i + 1] - indptr[i]);
    for (index_t at = 0; at < m * static_cast<index_t>(sizeof(T)) && at < 1024; at += 64)
      __builtin_prefetch(value + at);
    for (index_t at = 0; at < m * static_cast<index_t>(sizeof(I)) && at < 1024; at += 64)
      __builtin_prefetch(index + at);
  }
  // Four partial sums, so that the scattered reads of w overlap.
  HINGE_INLINE double dot(index_t i, const double* __restrict w) const {
    const T* __restrict v = data + indptr[i];
    const I* __restrict at = indices + indptr[i];
    const index_t m = static_cast<index_t>(indptr[i + 1] - indptr[i]);
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    index_t k = 0;
    for (; k + 4 <= m; k += 4) {
      s0 += static_cast<double>(v[k]) * w[at[k]];
      s1 += static_cast<double>(v[k + 1]) * w[at[k + 1]];
      s2 += static_cast<double>(v[k + 2]) * w[at[k + 2]];
      s3 += static_cast<double>(v[k + 3]) * w[at[k + 3]];
    }
    for (; k < m; ++k) s0 += static_cast<double>(v[k]) * w[at[k]];
    return (s0 + s1) + (s2 + s3);
  }
  HINGE_INLINE void axpy(index_t i, double c, double* __restrict w) const {
    for (index_t e = static_cast<index_t>(indptr[i]); e < static_cast<index_t>(indptr[i + 1]); ++e)
      w[indices[e]] += c * static_cast<double>(data[e]);
  }
  // Updates two vectors in one pass over the row.
  HINGE_INLINE void axpy_twice(index_t i, double c, double* __restrict w, double f, double* __restrict v) const {
    for (index_t e = static_cast<index_t>(indptr[i]); e < static_cast<index_t>(indptr[i + 1]); ++e) {
      const double x = static_cast<double>(data[e]);
      w[indices[e]] += c * x;
      v[indices[e]] += f * x;
    }
  }
  template <class F>
  HINGE_INLINE void each(index_t i, const F& f) const {
    for (index_t e = static_cast<index_t>(indptr[i]); e < static_cast<index_t>(indptr[i + 1]); ++e)
      f(static_cast<index_t>(indices[e]), static_cast<double>(data[e]));
  }
};

// Adds the rows [lo, hi) of s x_i x_i' to the lower triangle of G (d x d). The indices of a row are sorted.
template <class T, class I>
HINGE_INLINE void add_outer(const SparseRowView<T, I>& rows, index_t i, double s, index_t lo, index_t hi, double* G,
                            index_t d) {
  const index_t b = static_cast<index_t>(rows.indptr[i]), end = static_cast<index_t>(rows.indptr[i + 1]);
  for (index_t a = b; a < end; ++a) {
    const index_t j = static_cast<index_t>(rows.indices[a]);
    if (j < lo) continue;
    if (j >= hi) break;
    const double sv = s * static_cast<double>(rows.data[a]);
    double* __restrict out = G + j * d;
    for (index_t f = b; f <= a; ++f) out[rows.indices[f]] += sv * static_cast<double>(rows.data[f]);
  }
}

using RowView = std::variant<std::monostate, DenseRowView<float>, DenseRowView<double>,
                             SparseRowView<float, std::int32_t>, SparseRowView<float, std::int64_t>,
                             SparseRowView<double, std::int32_t>, SparseRowView<double, std::int64_t>>;

// Columns of a dense matrix.
template <class T>
struct DenseColumnView {
  const T* data;
  index_t stride, rows;
};

// A CSC matrix is the CSR matrix of its transpose: `each(j, f)` calls f(row, value) for column j.
using ColumnView = std::variant<std::monostate, DenseColumnView<float>, DenseColumnView<double>,
                                SparseRowView<float, std::int32_t>, SparseRowView<float, std::int64_t>,
                                SparseRowView<double, std::int32_t>, SparseRowView<double, std::int64_t>>;

// How many visits ahead memory is prefetched: the row pointer and the target of a row, and the row itself.
constexpr index_t kAnnounced = 12, kFetched = 4;

// Prefetches for the visits after row at[k], for n rows in random order.
template <class View>
HINGE_INLINE void look_ahead(const View& rows, const index_t* at, index_t k, index_t n) {
  if (k + kAnnounced < n) rows.announce(at[k + kAnnounced]);
  if (k + kFetched < n) rows.prefetch(at[k + kFetched]);
}

// The same for the targets and weights of the rows; `weight` may be null.
template <class Target>
HINGE_INLINE void look_ahead(const Target* y, const double* weight, const index_t* order, index_t k, index_t n) {
  if (k + kAnnounced >= n) return;
  __builtin_prefetch(y + order[k + kAnnounced]);
  if (weight) __builtin_prefetch(weight + order[k + kAnnounced]);
}

}  // namespace hinge
