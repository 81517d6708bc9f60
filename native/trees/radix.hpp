// Radix sort of numbers with a payload.
#pragma once
#include <bit>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/hot.hpp"

namespace hinge::trees {

template <class T>
using Key = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

// Unsigned keys in the same order as the numbers.
template <class T>
Key<T> to_key(T x) {
  auto bits = std::bit_cast<Key<T>>(x);
  if (Key<T>(bits << 1) == 0) bits = 0;  // -0 and 0 are one value (on bits: signed zeros are not kept by the compiler)
  constexpr Key<T> sign = Key<T>(1) << (8 * sizeof(T) - 1);
  return (bits & sign) ? ~bits : (bits | sign);
}
template <class T>
T from_key(Key<T> k) {
  constexpr Key<T> sign = Key<T>(1) << (8 * sizeof(T) - 1);
  return std::bit_cast<T>((k & sign) ? Key<T>(k & ~sign) : Key<T>(~k));
}

// Up to this many keys insertion sort is faster than clearing the digit counts.
constexpr std::size_t kFewKeys = 48;

// Stable least-significant-digit radix sort with digits of 11 bits; passes in which all digits agree are skipped.
template <class K, class P>
void radix_sort(std::vector<K>& keys, std::vector<P>& payload) {
  constexpr int digit = 11, size = 1 << digit, passes = (8 * sizeof(K) + digit - 1) / digit;
  const std::size_t n = keys.size();
  const bool carry = !payload.empty();
  if (n <= kFewKeys) {
    for (std::size_t i = 1; i < n; ++i) {
      const K key = keys[i];
      const P with = carry ? payload[i] : P{};
      std::size_t at = i;
      for (; at > 0 && keys[at - 1] > key; --at) {
        keys[at] = keys[at - 1];
        if (carry) payload[at] = payload[at - 1];
      }
      keys[at] = key;
      if (carry) payload[at] = with;
    }
    return;
  }
  std::vector<K> other(n);
  std::vector<P> other_payload(payload.size());
  std::vector<std::size_t> count(size * passes, 0);
  for (const K k : keys)
    for (int p = 0; p < passes; ++p) ++count[p * size + ((k >> (p * digit)) & (size - 1))];
  for (int p = 0; p < passes; ++p) {
    std::size_t* c = count.data() + p * size;
    if (n > 0 && c[(keys[0] >> (p * digit)) & (size - 1)] == n) continue;
    std::size_t total = 0;
    for (int i = 0; i < size; ++i) total += std::exchange(c[i], total);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t to = c[(keys[i] >> (p * digit)) & (size - 1)]++;
      other[to] = keys[i];
      if (carry) other_payload[to] = payload[i];
    }
    keys.swap(other);
    payload.swap(other_payload);
  }
}

}  // namespace hinge::trees
