// Sums of outer products, G = sum_i x_i x_i' for rows of up to some hundred numbers: the matrix of the normal
// equations.
//
// A rank-k update of so small a matrix is over before a general BLAS has hit its stride. Here rows are laid out in
// panels of 24 columns that stay in the first-level cache, and tiles of 8 x 24 of the lower triangle stay in registers
// while they are added up, which needs the 32 registers of AVX-512; elsewhere `OuterSum::suits` is false.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/aligned.hpp"
#include "core/hot.hpp"

namespace hinge {

constexpr index_t kOuterBlock = 128;  // rows that are added up at a time
constexpr index_t kOuterWidth = 24;   // columns of a panel
constexpr index_t kOuterLanes = 8;
using OuterLanes = double __attribute__((vector_size(64), aligned(8), may_alias));
using OuterPlaces = long long __attribute__((vector_size(64)));

// Entry k of the result is entry places[k] of `from`.
HINGE_INLINE OuterLanes permuted(const OuterLanes& from, const OuterPlaces& places) {
#if defined(__clang__)
  OuterLanes to;
  for (index_t k = 0; k < kOuterLanes; ++k) to[k] = from[places[k]];
  return to;
#else
  return __builtin_shuffle(from, places);
#endif
}

// Rows from `begin` on, each a line in panels of a block of rows, until the block, which holds `held`, is full or the
// rows end; `begin` is then the next. Returns how many it holds.
template <class Rows>
HINGE_HOT index_t pack_rows(const Rows row, index_t& begin, index_t end, index_t m, const double* h, const double* y,
                            double* __restrict panel, index_t held) {
  constexpr index_t size = kOuterBlock * kOuterWidth;
  // The last numbers of a row, fewer than a vector, are the end of the vector that ends with the row.
  const index_t last = m % kOuterLanes, left = m % kOuterWidth, vectors = left / kOuterLanes, whole = m - left;
  OuterPlaces places;
  for (index_t k = 0; k < kOuterLanes; ++k) places[k] = std::min(k + kOuterLanes - last, kOuterLanes - 1);
  const index_t of_y = left + 1 < kOuterWidth ? left + 1 : size;  // after 1, in its panel or the next
  for (; begin < end && held < kOuterBlock; ++begin) {
    if (h && h[begin] == 0) continue;
    const double factor = h ? std::sqrt(h[begin]) : 1.0;
    const double* __restrict from = row(begin);
    double* __restrict to = panel + held++ * kOuterWidth;
    for (index_t j = 0; j < whole; j += kOuterWidth, to += size)
      for (index_t k = 0; k < kOuterWidth; ++k) to[k] = factor * from[j + k];
    for (index_t v = 0; v < vectors; ++v)
      *reinterpret_cast<OuterLanes*>(to + v * kOuterLanes) =
          factor * *reinterpret_cast<const OuterLanes*>(from + whole + v * kOuterLanes);
    if (last)
      *reinterpret_cast<OuterLanes*>(to + vectors * kOuterLanes) =
          factor * permuted(*reinterpret_cast<const OuterLanes*>(from + m - kOuterLanes), places);
    if (!y) continue;
    to[left] = factor;
    to[of_y] = factor * y[begin];
  }
  return held;
}

class OuterSum {
 public:
  static constexpr index_t kBlock = kOuterBlock;

  // Whether this is the way to add up rows of d numbers on this machine.
  static bool suits(index_t d);

  explicit OuterSum(index_t d);
  // Takes rows [begin, end): sqrt(h_i) times the numbers of row i and, if y is given, 1 and y_i after them; those with
  // h_i = 0 are left out. h may be null (all ones).
  template <class Rows>
  void add(const Rows& row, index_t begin, index_t end, const double* h, const double* y) {
    while (begin < end) {
      held_ = pack_rows(row, begin, end, d_ - (y ? 2 : 0), h, y, panel_.data(), held_);
      if (held_ == kBlock) flush();
    }
  }
  // G, d x d, of all rows taken: its lower triangle in column-major order (entry (i, j) with i >= j at j d + i).
  void finish(double* G);

 private:
  void flush();

  index_t d_, panels_, held_ = 0;
  std::vector<double, AlignedAllocator<double>> panel_, sum_;
};

}  // namespace hinge
