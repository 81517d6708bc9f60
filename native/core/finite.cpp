#include "core/finite.hpp"

#include <atomic>
#include <type_traits>

#include "core/pool.hpp"

namespace hinge {
namespace {

// NaN and infinity are the numbers whose exponent has all bits set: without the sign, the largest of all as integers.
template <class T, class U>
HINGE_HOT U largest_magnitude(const T* x, index_t n) {
  constexpr U sign = U{1} << (8 * sizeof(U) - 1);
  U most = 0;
  for (index_t i = 0; i < n; ++i) {
    U bits;
    __builtin_memcpy(&bits, x + i, sizeof(U));
    bits &= ~sign;
    most = bits > most ? bits : most;
  }
  return most;
}

}  // namespace

template <class T>
bool all_finite(const T* x, index_t n) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  constexpr Bits infinity = sizeof(T) == 8 ? static_cast<Bits>(0x7FF0000000000000ull) : static_cast<Bits>(0x7F800000u);
  const index_t parts = parts_for(n, 1 << 16);
  std::atomic<bool> finite{true};
  parallel_for(parts, [&](index_t p) {
    const index_t begin = range_begin(n, parts, p), end = range_begin(n, parts, p + 1);
    if (finite.load(std::memory_order_relaxed) && largest_magnitude<T, Bits>(x + begin, end - begin) >= infinity)
      finite.store(false, std::memory_order_relaxed);
  });
  return finite.load();
}

template bool all_finite(const float*, index_t);
template bool all_finite(const double*, index_t);

}  // namespace hinge
