// The inner loops of chain models, over rows of 8 V numbers (V = 0: a width known at run time), float or double.
#pragma once
#include <bit>
#include <cmath>

#include "core/math.hpp"
#include "sequence/chain.hpp"

namespace hinge::chain {

template <class Real>
struct Eight;
template <>
struct Eight<double> {
  typedef double type __attribute__((vector_size(64)));
};
template <>
struct Eight<float> {
  typedef float type __attribute__((vector_size(32)));
};
template <class Real>
using v8 = typename Eight<Real>::type;

template <int V>
HINGE_INLINE index_t wide(index_t width) {
  return V ? 8 * V : width;
}

constexpr index_t lead = 16;  // number of rows prefetched ahead

template <int V, class Real>
HINGE_INLINE void prefetch(const Real* row) {
  constexpr int line = 64 / sizeof(Real);
#pragma GCC unroll 8
  for (int at = 0; at < 8 * V; at += line) __builtin_prefetch(row + at);
}

// out[j] = start[j] + sum_k c_k M[row_k, j]; c null: ones; row null: 0, 1, ...
// `readable`: number of valid entries of `row`, n and those of later calls, whose rows of M are prefetched.
template <int V, class Real>
HINGE_INLINE void combine(const Real* start, const Real* c, const std::int32_t* row, index_t n,
                          const Real* __restrict M, index_t width, Real* __restrict out, index_t readable = 0) {
  using v8 = chain::v8<Real>;
  const index_t w = wide<V>(width);
  const auto at = [&](index_t k) { return M + (row ? static_cast<index_t>(row[k]) : k) * w; };
  if constexpr (V > 0) {
    v8 sum[V], other[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) sum[v] = start ? reinterpret_cast<const v8*>(start)[v] : v8{};
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) other[v] = v8{};
    index_t k = 0;
    for (; k + 1 < n; k += 2) {  // two sums halve the latency
      if (row && k + 1 + lead < readable) {
        prefetch<V, Real>(at(k + lead));
        prefetch<V, Real>(at(k + 1 + lead));
      }
      const v8* a = reinterpret_cast<const v8*>(at(k));
      const v8* b = reinterpret_cast<const v8*>(at(k + 1));
      if (c) {
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) sum[v] += c[k] * a[v];
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) other[v] += c[k + 1] * b[v];
      } else {
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) sum[v] += a[v];
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) other[v] += b[v];
      }
    }
    if (k < n) {
      const v8* a = reinterpret_cast<const v8*>(at(k));
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sum[v] += c ? c[k] * a[v] : a[v];
    }
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) reinterpret_cast<v8*>(out)[v] = sum[v] + other[v];
  } else {
    for (index_t j = 0; j < w; ++j) out[j] = start ? start[j] : Real(0);
    for (index_t k = 0; k < n; ++k) {
      const Real* a = at(k);
      const Real f = c ? c[k] : Real(1);
      for (index_t j = 0; j < w; ++j) out[j] += f * a[j];
    }
  }
}

// out[j] = max_k (c_k + M[k, j])
template <int V>
HINGE_INLINE void combine_max(const double* c, index_t n, const double* __restrict M, index_t width,
                              double* __restrict out) {
  using v8 = chain::v8<double>;
  const index_t w = wide<V>(width);
  if constexpr (V > 0) {
    v8 best[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) best[v] = c[0] + reinterpret_cast<const v8*>(M)[v];
    for (index_t k = 1; k < n; ++k) {
      const v8* a = reinterpret_cast<const v8*>(M + k * w);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        const v8 candidate = c[k] + a[v];
        best[v] = candidate > best[v] ? candidate : best[v];
      }
    }
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) reinterpret_cast<v8*>(out)[v] = best[v];
  } else {
    for (index_t j = 0; j < w; ++j) out[j] = c[0] + M[j];
    for (index_t k = 1; k < n; ++k) {
      const double f = c[k];
      const double* a = M + k * w;
      for (index_t j = 0; j < w; ++j) out[j] = f + a[j] > out[j] ? f + a[j] : out[j];
    }
  }
}

// Calls f<V>(...) with the V of the width.
#define HINGE_BY_WIDTH(width, f, ...) \
  switch ((width) / 8) {              \
    case 1:                           \
      return f<1>(__VA_ARGS__);       \
    case 2:                           \
      return f<2>(__VA_ARGS__);       \
    case 3:                           \
      return f<3>(__VA_ARGS__);       \
    case 4:                           \
      return f<4>(__VA_ARGS__);       \
    case 5:                           \
      return f<5>(__VA_ARGS__);       \
    case 6:                           \
      return f<6>(__VA_ARGS__);       \
    case 7:                           \
      return f<7>(__VA_ARGS__);       \
    case 8:                           \
      return f<8>(__VA_ARGS__);       \
    default:                          \
      return f<0>(__VA_ARGS__);       \
  }

}  // namespace hinge::chain
