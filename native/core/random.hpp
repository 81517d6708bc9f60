// Counter-based random numbers: the value at (seed, position) needs no state, so draws do not depend on the order in
// which threads make them. The mixing function is the finaliser of SplitMix64 (Steele, Lea & Flood 2014).
#pragma once
#include <cmath>
#include <utility>
#include <vector>

#include "core/hot.hpp"

namespace hinge {

HINGE_INLINE std::uint64_t mix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0)
      : key_(mix64(mix64(seed) ^ (stream * 0xD1342543DE82EF95ull))) {}

  std::uint64_t bits_at(std::uint64_t position) const { return mix64(key_ ^ mix64(position)); }
  double uniform_at(std::uint64_t position) const { return (bits_at(position) >> 11) * 0x1.0p-53; }

  std::uint64_t bits() { return bits_at(position_++); }
  double uniform() { return uniform_at(position_++); }
  // Uniform on [0, n) by multiplication (Lemire 2019); the bias is below n / 2^64.
  index_t below(index_t n) {
    return static_cast<index_t>((static_cast<unsigned __int128>(bits()) * static_cast<std::uint64_t>(n)) >> 64);
  }
  double normal() {
    const double u = 1.0 - uniform(), v = uniform();
    return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
  }
  template <class T>
  void shuffle(T* items, index_t n) {
    for (index_t i = n - 1; i > 0; --i) std::swap(items[i], items[below(i + 1)]);
  }

 private:
  std::uint64_t key_;
  std::uint64_t position_ = 0;
};

}  // namespace hinge
