// Sums of outer products, G = sum_i x_i x_i', for rows of up to a few hundred entries: the matrix of the normal
// equations.
//
// A general BLAS does not reach its full speed on a rank-k update of so small a matrix. Here rows are packed into
// panels of 24 columns that stay in the first-level cache, and tiles of 8 x 24 of the lower triangle stay in registers
// while they are summed. This needs the 32 registers of AVX-512; on other machines `OuterSum::suits` is false.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/aligned.hpp"
#include "core/hot.hpp"

namespace hinge {

constexpr index_t kOuterBlock = 128;  // rows summed at a time
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

// Packs rows from `begin` on into the panels of a block that already holds `held` rows, until the block is full or the
// rows end. Advances `begin` to the next row and returns the number of rows in the block.
template <class Rows>
HINGE_HOT index_t pack_rows(const Rows row, index_t& begin, index_t end, index_t m, const double* h, const double* y,
                            double* __restrict panel, index_t held) {
  constexpr index_t size = kOuterBlock * kOuterWidth;
  // The last entries of a row, fewer than a vector, are read as the end of the vector that ends with the row.
  const index_t last = m % kOuterLanes, partial = m % kOuterWidth, vectors = partial / kOuterLanes, full = m - partial;
  OuterPlaces places;
  for (index_t k = 0; k < kOuterLanes; ++k) places[k] = std::min(k + kOuterLanes - last, kOuterLanes - 1);
  const index_t of_y = partial + 1 < kOuterWidth ? partial + 1 : size;  // after the 1, in its panel or the next
  for (; begin < end && held < kOuterBlock; ++begin) {
    if (h && h[begin] == 0) continue;
    const double factor = h ? std::sqrt(h[begin]) : 1.0;
    const double* __restrict from = row(begin);
    double* __restrict to = panel + held++ * kOuterWidth;
    for (index_t j = 0; j < full; j += kOuterWidth, to += size)
      for (index_t k = 0; k < kOuterWidth; ++k) to[k] = factor * from[j + k];
    for (index_t v = 0; v < vectors; ++v)
      *reinterpret_cast<OuterLanes*>(to + v * kOuterLanes) =
          factor * *reinterpret_cast<const OuterLanes*>(from + full + v * kOuterLanes);
    if (last)
      *reinterpret_cast<OuterLanes*>(to + vectors * kOuterLanes) =
          factor * permuted(*reinterpret_cast<const OuterLanes*>(from + m - kOuterLanes), places);
    if (!y) continue;
    to[partial] = factor;
    to[of_y] = factor * y[begin];
  }
  return held;
}

class OuterSum {
 public:
  static constexpr index_t kBlock = kOuterBlock;

  // Whether these sums are the fastest on this machine for rows of d entries.
  static bool suits(index_t d);

  explicit OuterSum(index_t d);
  // Adds rows [begin, end): sqrt(h_i) times the entries of row i and, if y is given, 1 and y_i after them. Rows with
  // h_i = 0 are skipped. h may be null (all ones).
  template <class Rows>
  void add(const Rows& row, index_t begin, index_t end, const double* h, const double* y) {
    while (begin < end) {
      held_ = pack_rows(row, begin, end, d_ - (y ? 2 : 0), h, y, panel_.data(), held_);
      if (held_ == kBlock) flush();
    }
  }
  // G, d x d, of all rows added: its lower triangle in column-major order (entry (i, j) with i >= j at j d + i).
  void finish(double* G);

 private:
  void flush();

  index_t d_, panels_, held_ = 0;
  std::vector<double, AlignedAllocator<double>> panel_, sum_;
};

}  // namespace hinge
