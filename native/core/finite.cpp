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

// A negative index is a large one without a sign.
template <class U>
HINGE_HOT U largest(const U* x, index_t n) {
  U most = 0;
  for (index_t i = 0; i < n; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

// Whether `good(begin, end)` holds for all parts of n numbers.
template <class F>
bool in_all_parts(index_t n, const F& good) {
  const index_t parts = parts_for(n, 1 << 16);
  std::atomic<bool> all{true};
  parallel_for(parts, [&](index_t p) {
    if (all.load(std::memory_order_relaxed) && !good(range_begin(n, parts, p), range_begin(n, parts, p + 1)))
      all.store(false, std::memory_order_relaxed);
  });
  return all.load();
}

}  // namespace

template <class T>
bool all_finite(const T* x, index_t n) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  constexpr Bits infinity = sizeof(T) == 8 ? static_cast<Bits>(0x7FF0000000000000ull) : static_cast<Bits>(0x7F800000u);
  return in_all_parts(
      n, [&](index_t begin, index_t end) { return largest_magnitude<T, Bits>(x + begin, end - begin) < infinity; });
}

template <class I>
bool all_within(const I* x, index_t n, index_t bound) {
  using U = std::make_unsigned_t<I>;
  const U* u = reinterpret_cast<const U*>(x);
  return in_all_parts(n, [&](index_t begin, index_t end) {
    return begin == end ||
           static_cast<std::uint64_t>(largest(u + begin, end - begin)) < static_cast<std::uint64_t>(bound);
  });
}

template bool all_finite(const float*, index_t);
template bool all_finite(const double*, index_t);
template bool all_within(const std::int32_t*, index_t, index_t);
template bool all_within(const std::int64_t*, index_t, index_t);

}  // namespace hinge
