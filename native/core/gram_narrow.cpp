#include "core/gram_narrow.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/pool.hpp"

namespace hinge {
namespace narrow {
namespace {

constexpr index_t kLanes = 8, kMost = 2 * kLanes;
constexpr index_t kBlock = 128;  // rows whose products are summed before they are added to the total
using Lanes = double __attribute__((vector_size(64), aligned(8), may_alias));
using Mask = long long __attribute__((vector_size(64)));
using FloatLanes = float __attribute__((vector_size(32), aligned(4), may_alias));

template <class T>
HINGE_INLINE Lanes load(const T* from) {
  if constexpr (std::is_same_v<T, double>)
    return *reinterpret_cast<const Lanes*>(from);
  else
    return __builtin_convertvector(*reinterpret_cast<const FloatLanes*>(from), Lanes);
}

// Masks of the entries of a row that are x_i, the 1 and y_i.
template <int V>
struct Layout {
  Mask inside[V];
  Lanes one[V], target[V];

  Layout(index_t cols, bool more) {
    for (index_t k = 0; k < V * kLanes; ++k) {
      inside[k / kLanes][k % kLanes] = k < cols ? -1 : 0;
      one[k / kLanes][k % kLanes] = more && k == cols ? 1.0 : 0.0;
      target[k / kLanes][k % kLanes] = more && k == cols + 1 ? 1.0 : 0.0;
    }
  }
};

// sum += the lower triangle, in whole vectors, of up to kBlock rows; sum is 8V x 8V.
template <int V, class T>
HINGE_HOT void add_rows(const T* x, index_t stride, index_t n, const double* h, const double* y,
                        const Layout<V>& layout, double* sum) {
  Lanes left[V * kLanes] = {}, right[kLanes] = {};  // columns 0-7; columns 8-15 of the rows below
  alignas(64) double scaled[V * kLanes];
  for (index_t i = 0; i < n; ++i, x += stride) {
    const double weight = h ? h[i] : 1.0, target = y ? y[i] : 0.0;
    if (weight == 0) continue;
    Lanes a[V];
    for (int v = 0; v < V; ++v) {
      a[v] = layout.inside[v] ? load(x + v * kLanes) : layout.one[v] + target * layout.target[v];
      *reinterpret_cast<Lanes*>(scaled + v * kLanes) = weight * a[v];
    }
    for (int r = 0; r < V * kLanes; ++r) left[r] += scaled[r] * a[0];
    if constexpr (V == 2)
      for (int r = 0; r < kLanes; ++r) right[r] += scaled[kLanes + r] * a[1];
  }
  for (int r = 0; r < V * kLanes; ++r) *reinterpret_cast<Lanes*>(sum + r * V * kLanes) += left[r];
  if constexpr (V == 2)
    for (int r = 0; r < kLanes; ++r) *reinterpret_cast<Lanes*>(sum + (kLanes + r) * V * kLanes + kLanes) += right[r];
}

template <int V, class T>
void add_up(const T* x, index_t stride, index_t rows, index_t cols, const double* h, const double* y, double* A) {
  constexpr index_t width = V * kLanes;
  const index_t m = cols + (y ? 2 : 0);
  const Layout<V> layout(cols, y != nullptr);
  // Rows before `free` can be read in whole vectors without leaving the table; the others are copied with padding.
  const index_t room = (rows - 1) * stride + cols - width;
  const index_t free = room < 0 || stride < 1 ? 0 : std::min(rows, room / stride + 1);
  std::vector<T> padded((rows - free) * width, T(0));
  for (index_t i = free; i < rows; ++i) std::copy_n(x + i * stride, cols, padded.data() + (i - free) * width);

  const index_t parts = parts_for(rows * width, 1 << 15);
  std::vector<std::vector<double>> partial(parts);
  parallel_for(parts, [&](index_t p) {
    partial[p].assign(width * width, 0.0);
    const index_t end = range_begin(rows, parts, p + 1);
    for (index_t i = range_begin(rows, parts, p); i < end;) {
      const bool inside = i < free;
      const index_t n = std::min({kBlock, end - i, inside ? free - i : rows - i}), s = inside ? stride : width;
      const T* from = inside ? x + i * stride : padded.data() + (i - free) * width;
      add_rows<V>(from, s, n, h ? h + i : nullptr, y ? y + i : nullptr, layout, partial[p].data());
      i += n;
    }
  });
  for (index_t r = 0; r < m; ++r)
    for (index_t c = 0; c <= r; ++c) {
      double total = 0;
      for (const auto& part : partial) total += part[r * width + c];
      A[r * m + c] = A[c * m + r] = total;
    }
}

}  // namespace
}  // namespace narrow

bool narrow_suits(index_t m) {
#if defined(__x86_64__) && defined(__GNUC__)
  return m > 0 && m <= narrow::kMost && __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

template <class T>
void narrow_gram(const T* x, index_t stride, index_t rows, index_t cols, const double* h, const double* y, double* A) {
  if (cols + (y ? 2 : 0) <= narrow::kLanes)
    narrow::add_up<1>(x, stride, rows, cols, h, y, A);
  else
    narrow::add_up<2>(x, stride, rows, cols, h, y, A);
}

template void narrow_gram(const double*, index_t, index_t, index_t, const double*, const double*, double*);
template void narrow_gram(const float*, index_t, index_t, index_t, const double*, const double*, double*);

}  // namespace hinge
