#include "core/finite.hpp"

#include <atomic>
#include <type_traits>

#include "core/pool.hpp"

namespace hinge {
namespace {

// NaN and infinity are the numbers whose exponent bits are all set: as integers without the sign bit, the largest ones.
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

// The largest of x[0 … n), and the number of entries that are not greater than the one before (reads x[-1] unless
// `first`). As an unsigned integer a negative index is a large one.
template <class U>
HINGE_HOT U largest_and_descents(const U* x, index_t n, bool first, index_t& descents) {
  U most = first && n > 0 ? x[0] : 0;
  index_t count = 0;
  for (index_t i = first ? 1 : 0; i < n; ++i) {
    most = x[i] > most ? x[i] : most;
    count += x[i] <= x[i - 1];
  }
  descents += count;
  return most;
}

// Whether `good(begin, end)` holds for every part of the range [0, n).
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
Compressed check_compressed(const I* start, index_t major, const I* index, index_t minor) {
  using U = std::make_unsigned_t<I>;
  const U* u = reinterpret_cast<const U*>(index);
  const auto n = static_cast<index_t>(start[major]);
  std::atomic<index_t> descents{0};  // entries not greater than the one before …
  const bool within = in_all_parts(n, [&](index_t begin, index_t end) {
    index_t local = 0;
    const U most = largest_and_descents(u + begin, end - begin, begin == 0, local);
    descents.fetch_add(local, std::memory_order_relaxed);
    return begin == end || static_cast<std::uint64_t>(most) < static_cast<std::uint64_t>(minor);
  });
  if (!within) return Compressed::broken;
  index_t at_starts = 0;  // … are allowed only at the start of a row
  for (index_t i = 0; i < major; ++i) {
    const index_t e = start[i];
    if (e > 0 && e < start[i + 1]) at_starts += u[e] <= u[e - 1];
  }
  return descents.load() == at_starts ? Compressed::canonical : Compressed::disordered;
}

template <class I>
bool rising(const I* start, index_t major) {
  I drop = 0;
  for (index_t i = 0; i < major; ++i) drop |= start[i + 1] < start[i];
  return start[0] == 0 && drop == 0;
}

template bool all_finite(const float*, index_t);
template bool all_finite(const double*, index_t);
template Compressed check_compressed(const std::int32_t*, index_t, const std::int32_t*, index_t);
template Compressed check_compressed(const std::int64_t*, index_t, const std::int64_t*, index_t);
template bool rising(const std::int32_t*, index_t);
template bool rising(const std::int64_t*, index_t);

}  // namespace hinge
