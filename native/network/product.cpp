#include "network/product.hpp"

#include <algorithm>
#include <vector>

#include "core/blas.hpp"

namespace hinge::network {
namespace {

template <class T>
void by_blas(index_t m, index_t n, index_t k, const T* a, index_t row, index_t step, const T* b, index_t ldb, T keep,
             T* c, index_t ldc) {
  // The stride of a matrix with one row or column does not matter, but BLAS rejects the product if it is too small.
  const bool plain = step == 1;
  const index_t lda = plain ? std::max(row, k) : std::max(step, m);
  blas::gemm('N', plain ? 'N' : 'T', n, m, k, T(1), b, ldb, a, lda, keep, c, ldc);
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(HINGE_NO_CLONES)

constexpr index_t kLanes = 16;
constexpr index_t kRows = 12;     // 12 x 2 accumulators, 2 vectors of B and a broadcast fill the 32 registers
constexpr index_t kPacked = 256;  // shorter strips of B are copied, because their rows would compete for cache sets
using Lanes = float __attribute__((vector_size(64), aligned(4)));

template <int R, int V>
HINGE_INLINE void tile(index_t k, const float* a, index_t row, index_t step, const float* b, index_t ldb, float keep,
                       float* c, index_t ldc) {
  Lanes sum[R][V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) {
      sum[r][v] = Lanes{};
      if (keep != 0.0f) sum[r][v] += keep * *reinterpret_cast<const Lanes*>(c + r * ldc + kLanes * v);
    }
  for (index_t p = 0; p < k; ++p) {
    Lanes right[V];
    for (int v = 0; v < V; ++v) right[v] = *reinterpret_cast<const Lanes*>(b + p * ldb + kLanes * v);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Lanes left = a[r * row + p * step] - Lanes{};
      for (int v = 0; v < V; ++v) sum[r][v] += left * right[v];
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) *reinterpret_cast<Lanes*>(c + r * ldc + kLanes * v) = sum[r][v];
}

template <int V>
HINGE_INLINE void column_strip(index_t m, index_t k, const float* a, index_t row, index_t step, const float* b,
                               index_t ldb, float keep, float* c, index_t ldc) {
  index_t i = 0;
  for (; i + kRows <= m; i += kRows) tile<kRows, V>(k, a + i * row, row, step, b, ldb, keep, c + i * ldc, ldc);
  for (; i + 4 <= m; i += 4) tile<4, V>(k, a + i * row, row, step, b, ldb, keep, c + i * ldc, ldc);
  for (; i < m; ++i) tile<1, V>(k, a + i * row, row, step, b, ldb, keep, c + i * ldc, ldc);
}

#define HINGE_WIDE __attribute__((target("arch=x86-64-v4")))

HINGE_WIDE void strips(index_t m, index_t n, index_t k, const float* a, index_t row, index_t step, const float* b,
                       index_t ldb, float keep, float* c, index_t ldc) {
  alignas(64) float room[kPacked * 2 * kLanes];
  const bool pack = k <= kPacked && m >= 2 * kRows;
  index_t j = 0;
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
    const float* strip = b + j;
    if (pack) {
      for (index_t p = 0; p < k; ++p)
        for (index_t q = 0; q < 2 * kLanes; ++q) room[p * 2 * kLanes + q] = strip[p * ldb + q];
      strip = room;
    }
    column_strip<2>(m, k, a, row, step, strip, pack ? 2 * kLanes : ldb, keep, c + j, ldc);
  }
  for (; j + kLanes <= n; j += kLanes) column_strip<1>(m, k, a, row, step, b + j, ldb, keep, c + j, ldc);
}

// The last n < 16 columns: B and C padded with zeros to full vectors.
void last_columns(index_t m, index_t n, index_t k, const float* a, index_t row, index_t step, const float* b,
                  index_t ldb, float keep, float* c, index_t ldc) {
  thread_local std::vector<float> room;
  room.assign(static_cast<std::size_t>((k + m) * kLanes), 0.0f);
  float *right = room.data(), *out = right + k * kLanes;
  for (index_t p = 0; p < k; ++p) std::copy(b + p * ldb, b + p * ldb + n, right + p * kLanes);
  if (keep != 0.0f)
    for (index_t i = 0; i < m; ++i) std::copy(c + i * ldc, c + i * ldc + n, out + i * kLanes);
  strips(m, kLanes, k, a, row, step, right, kLanes, keep, out, kLanes);
  for (index_t i = 0; i < m; ++i) std::copy(out + i * kLanes, out + i * kLanes + n, c + i * ldc);
}

bool have_kernel() {
  static const bool have = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                           __builtin_cpu_supports("avx512cd");
  return have;
}

#else

constexpr index_t kLanes = 16;
void strips(index_t, index_t, index_t, const float*, index_t, index_t, const float*, index_t, float, float*, index_t) {}
void last_columns(index_t, index_t, index_t, const float*, index_t, index_t, const float*, index_t, float, float*,
                  index_t) {}
bool have_kernel() { return false; }

#endif

}  // namespace

template <>
void product<double>(index_t m, index_t n, index_t k, const double* a, index_t row, index_t step, const double* b,
                     index_t ldb, double keep, double* c, index_t ldc) {
  by_blas(m, n, k, a, row, step, b, ldb, keep, c, ldc);
}

template <>
void product<float>(index_t m, index_t n, index_t k, const float* a, index_t row, index_t step, const float* b,
                    index_t ldb, float keep, float* c, index_t ldc) {
  if (!have_kernel()) {
    by_blas(m, n, k, a, row, step, b, ldb, keep, c, ldc);
    return;
  }
  const index_t full = n / kLanes * kLanes;
  strips(m, full, k, a, row, step, b, ldb, keep, c, ldc);
  if (full < n) last_columns(m, n - full, k, a, row, step, b + full, ldb, keep, c + full, ldc);
}

}  // namespace hinge::network
