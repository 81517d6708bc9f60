// Products of X with a thin matrix of K columns, K a multiple of eight known at compile time: Z = X W and G += X'U.
// BLAS packs X for every product, which costs as much as the product itself; here a row of W or U stays in registers.
//
// W, Z, U and G are row-major with K entries per row. X is given by a RowView (core/rows.hpp).
#pragma once
#include "core/rows.hpp"

namespace hinge::thin {

using Lane = double __attribute__((vector_size(64), aligned(8)));
constexpr index_t kLane = 8;
constexpr index_t kRows = 4;     // dense rows at a time
constexpr index_t kStrip = 128;  // columns at a time

// Dense rows are processed in strips of columns: the strip's part of W or G stays in the first-level cache.
template <index_t K, class T>
HINGE_INLINE void times_inline(const DenseRowView<T>& X, index_t begin, index_t end, const double* __restrict W,
                               double* __restrict Z) {
  constexpr index_t L = K / kLane;
  for (index_t e = 0; e < (end - begin) * K; ++e) Z[e] = 0.0;
  for (index_t from = 0; from < X.cols; from += kStrip) {
    const index_t to = from + kStrip < X.cols ? from + kStrip : X.cols;
    index_t i = begin;
    for (; i + kRows <= end; i += kRows) {
      const T* __restrict x = X.data + i * X.stride;
      Lane* z = reinterpret_cast<Lane*>(Z + (i - begin) * K);
      Lane sum[kRows][L];
      for (index_t r = 0; r < kRows; ++r)
        for (index_t l = 0; l < L; ++l) sum[r][l] = z[r * L + l];
      for (index_t j = from; j < to; ++j) {
        const Lane* w = reinterpret_cast<const Lane*>(W + j * K);
#pragma GCC unroll 4
        for (index_t r = 0; r < kRows; ++r) {
          const double v = static_cast<double>(x[r * X.stride + j]);
#pragma GCC unroll 4
          for (index_t l = 0; l < L; ++l) sum[r][l] += v * w[l];
        }
      }
      for (index_t r = 0; r < kRows; ++r)
        for (index_t l = 0; l < L; ++l) z[r * L + l] = sum[r][l];
    }
    for (; i < end; ++i) {
      Lane* z = reinterpret_cast<Lane*>(Z + (i - begin) * K);
      for (index_t j = from; j < to; ++j) {
        const double v = static_cast<double>(X.data[i * X.stride + j]);
        for (index_t l = 0; l < L; ++l) z[l] += v * reinterpret_cast<const Lane*>(W + j * K)[l];
      }
    }
  }
}

template <index_t K, class T>
HINGE_INLINE void add_transposed_inline(const DenseRowView<T>& X, index_t begin, index_t end,
                                        const double* __restrict U, double* __restrict G) {
  constexpr index_t L = K / kLane;
  for (index_t from = 0; from < X.cols; from += kStrip) {
    const index_t to = from + kStrip < X.cols ? from + kStrip : X.cols;
    index_t i = begin;
    for (; i + kRows <= end; i += kRows) {
      const T* __restrict x = X.data + i * X.stride;
      const Lane* rows = reinterpret_cast<const Lane*>(U + (i - begin) * K);
      Lane u[kRows][L];
      for (index_t r = 0; r < kRows; ++r)
        for (index_t l = 0; l < L; ++l) u[r][l] = rows[r * L + l];
      for (index_t j = from; j < to; ++j) {
        Lane* g = reinterpret_cast<Lane*>(G + j * K);
        Lane sum[L];
        for (index_t l = 0; l < L; ++l) sum[l] = g[l];
#pragma GCC unroll 4
        for (index_t r = 0; r < kRows; ++r) {
          const double v = static_cast<double>(x[r * X.stride + j]);
#pragma GCC unroll 4
          for (index_t l = 0; l < L; ++l) sum[l] += v * u[r][l];
        }
        for (index_t l = 0; l < L; ++l) g[l] = sum[l];
      }
    }
    for (; i < end; ++i) {
      const Lane* u = reinterpret_cast<const Lane*>(U + (i - begin) * K);
      for (index_t j = from; j < to; ++j) {
        const double v = static_cast<double>(X.data[i * X.stride + j]);
        for (index_t l = 0; l < L; ++l) reinterpret_cast<Lane*>(G + j * K)[l] += v * u[l];
      }
    }
  }
}

template <index_t K, class T, class I>
HINGE_INLINE void times_inline(const SparseRowView<T, I>& X, index_t begin, index_t end, const double* __restrict W,
                               double* __restrict Z) {
  constexpr index_t L = K / kLane;
  for (index_t i = begin; i < end; ++i) {
    Lane sum[L] = {};
    X.each(i, [&](index_t j, double v) {
      for (index_t l = 0; l < L; ++l) sum[l] += v * reinterpret_cast<const Lane*>(W + j * K)[l];
    });
    for (index_t l = 0; l < L; ++l) reinterpret_cast<Lane*>(Z + (i - begin) * K)[l] = sum[l];
  }
}

template <index_t K, class T, class I>
HINGE_INLINE void add_transposed_inline(const SparseRowView<T, I>& X, index_t begin, index_t end,
                                        const double* __restrict U, double* __restrict G) {
  constexpr index_t L = K / kLane;
  for (index_t i = begin; i < end; ++i)
    X.each(i, [&](index_t j, double v) {
      for (index_t l = 0; l < L; ++l)
        reinterpret_cast<Lane*>(G + j * K)[l] += v * reinterpret_cast<const Lane*>(U + (i - begin) * K)[l];
    });
}

// Z (rows begin … end) = X W.
template <index_t K, class View>
HINGE_HOT void times(const View& X, index_t begin, index_t end, const double* W, double* Z) {
  times_inline<K>(X, begin, end, W, Z);
}

// G += X'U over rows begin … end.
template <index_t K, class View>
HINGE_HOT void add_transposed(const View& X, index_t begin, index_t end, const double* U, double* G) {
  add_transposed_inline<K>(X, begin, end, U, G);
}

}  // namespace hinge::thin
