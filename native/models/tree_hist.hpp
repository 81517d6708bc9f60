// Histograms of gradients, in integers.
//
// Gradients and Hessians are rounded to integers once per tree, so sums are exact and do not depend on the order or
// the number of threads. Three forms of the rounded rows:
//   packed    g in 13 bits, h in 11 bits, rounded at random so that sums are unbiased; one 64-bit addition per cell
//   constant  the same Hessian everywhere: g in 32 bits, the count stands for h; one 64-bit addition per cell
//   exact     g and h as 64-bit fixed point (2^-36 of the largest): for small data
// A 64-bit accumulator of the first two holds the sums over kBlock rows; it is then spread into a Cell.
#pragma once
#include <vector>

#include "models/tree_bins.hpp"

namespace hinge::trees {

struct Cell {
  std::int64_t g = 0, h = 0, c = 0;
  void add(const Cell& o) { g += o.g, h += o.h, c += o.c; }
  void subtract(const Cell& o) { g -= o.g, h -= o.h, c -= o.c; }
};

enum class Rounding { packed, constant, exact };

struct Rounded {
  Rounding form = Rounding::exact;
  std::vector<std::uint32_t> packed;  // packed and constant
  std::vector<std::int64_t> exact;    // g, h of each row
  std::vector<std::int64_t> count;    // what a row counts for, if not one (exact only)
  double g_unit = 1, h_unit = 1;      // what one integer step is worth
};

inline Cell exact_cell(const Rounded& r, index_t row) {
  return {r.exact[2 * row], r.exact[2 * row + 1], r.count.empty() ? 1 : r.count[row]};
}

constexpr index_t kBlock = 8192;

// cells[k * kBins + code] for the slots of one group over rows[0 .. m) (or first + 0 .. m if rows is null) are added
// to `out`, which points to the cells of the group's first slot.
void add_histogram(const Bins& bins, index_t group, const Rounded& rows, const std::uint32_t* which, index_t first,
                   index_t m, Cell* out);

}  // namespace hinge::trees
