#include "core/packed_rows.hpp"

#include <algorithm>

namespace hinge {
namespace {

// A packed group of so many columns and the rows that it meets fit in the first-level cache.
constexpr index_t kMostColumns = 192;
constexpr int kBlockRows = 12;

template <class T>
using Vector [[gnu::vector_size(64), gnu::aligned(sizeof(T)), gnu::may_alias]] = T;

// R rows of a times one group.
template <int R, class T>
HINGE_INLINE void block(const T* a, index_t stride, const T* group, index_t d, T* out, index_t ldo) {
  constexpr index_t lanes = PackedRows<T>::kGroup / 2;
  Vector<T> sum[R][2] = {};
  for (index_t k = 0; k < d; ++k) {
    const auto* b = reinterpret_cast<const Vector<T>*>(group + 2 * lanes * k);
    for (int r = 0; r < R; ++r) {
      const T v = a[r * stride + k];
      sum[r][0] += v * b[0];
      sum[r][1] += v * b[1];
    }
  }
  for (int r = 0; r < R; ++r)
    for (int half = 0; half < 2; ++half) *reinterpret_cast<Vector<T>*>(out + r * ldo + half * lanes) = sum[r][half];
}

template <class T>
HINGE_HOT void group_products(const T* a, index_t stride, index_t m, const T* group, index_t d, T* out, index_t ldo) {
  index_t r = 0;
  for (; r + kBlockRows <= m; r += kBlockRows) block<kBlockRows>(a + r * stride, stride, group, d, out + r * ldo, ldo);
  for (; r + 4 <= m; r += 4) block<4>(a + r * stride, stride, group, d, out + r * ldo, ldo);
  for (; r < m; ++r) block<1>(a + r * stride, stride, group, d, out + r * ldo, ldo);
}

template <class T>
HINGE_HOT void transpose(const T* rows, index_t stride, index_t d, T* group) {
  constexpr index_t width = PackedRows<T>::kGroup;
  for (index_t k = 0; k < d; ++k)
    for (index_t j = 0; j < width; ++j) group[k * width + j] = rows[j * stride + k];
}

}  // namespace

bool packed_suits(index_t d) {
#if defined(__x86_64__) && defined(__GNUC__)
  return d <= kMostColumns && __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

template <class T>
void PackedRows<T>::pack(const T* rows, index_t stride, index_t n, index_t d) {
  n_ = n;
  d_ = d;
  const index_t whole = n / kGroup, rest = n - whole * kGroup;
  values_.resize((whole + (rest > 0)) * kGroup * d);
  for (index_t g = 0; g < whole; ++g) transpose(rows + g * kGroup * stride, stride, d, values_.data() + g * kGroup * d);
  if (!rest) return;
  T* last = values_.data() + whole * kGroup * d;
  std::fill(last, last + kGroup * d, T(0));
  for (index_t j = 0; j < rest; ++j)
    for (index_t k = 0; k < d; ++k) last[k * kGroup + j] = rows[(whole * kGroup + j) * stride + k];
}

template <class T>
void PackedRows<T>::products(const T* a, index_t stride, index_t m, T* out, index_t ldo) const {
  for (index_t c = 0; c < n_; c += kGroup) group_products(a, stride, m, values_.data() + c * d_, d_, out + c, ldo);
}

template class PackedRows<float>;
template class PackedRows<double>;

}  // namespace hinge
