// Gradient histograms in integers.
//
// Gradients and Hessians are rounded to integers once per tree, so sums are exact and depend neither on the order of
// summation nor on the number of threads. The rounded rows (gradients.hpp) have three forms:
//   packed    g in 10 bits, h in 8 bits, with stochastic rounding so that sums are unbiased
//   constant  the same Hessian everywhere: g in 32 bits, and the count replaces h
//   exact     g and h as 64-bit fixed point (2^-36 of the largest): for small data
// The first two need one 64-bit addition per cell, and such a cell has room for up to kBlock rows. The histogram of a
// node with no more rows is stored in this form ("narrow"), a third of the memory of a wide one with three numbers.
#pragma once
#include <vector>

#include "trees/bins.hpp"

namespace hinge::trees {

struct Cell {
  std::int64_t g = 0, h = 0, c = 0;
  HINGE_INLINE Cell& operator+=(const Cell& o) { return g += o.g, h += o.h, c += o.c, *this; }
  HINGE_INLINE Cell& operator-=(const Cell& o) { return g -= o.g, h -= o.h, c -= o.c, *this; }
};

constexpr index_t kBlock = 32768;

// A row's word: [ g : 10 | its rounding error : 7 | h : 8 | its rounding error : 7 ], errors in 64ths.
// A narrow cell: [ g : 25 | h : 23 | count : 16 ].
struct Packed {
  static constexpr int kLost = 6;  // fractional bits of a rounding error
  static constexpr int kMostG = 511, kMostH = 255;
  static HINGE_INLINE std::uint32_t word(std::int32_t g, std::int32_t lost_g, std::int32_t h, std::int32_t lost_h) {
    return (static_cast<std::uint32_t>(g) << 22) | ((static_cast<std::uint32_t>(lost_g) & 127) << 15) |
           (static_cast<std::uint32_t>(h) << 7) | (static_cast<std::uint32_t>(lost_h) & 127);
  }
  static HINGE_INLINE std::int64_t expand(std::uint32_t word) {
    return (static_cast<std::int64_t>(static_cast<std::int32_t>(word & 0xffc00000u)) << 17) +
           (static_cast<std::int64_t>(word & 0x7f80u) << 9) + 1;
  }
  // g and h in 64ths.
  static HINGE_INLINE std::int64_t fine_g(std::uint32_t word) {
    const auto signed_word = static_cast<std::int32_t>(word);
    return (signed_word >> 22) * 64 + (static_cast<std::int32_t>(word << 10) >> 25);
  }
  static HINGE_INLINE std::int64_t fine_h(std::uint32_t word) {
    return static_cast<std::int32_t>((word >> 7) & 255) * 64 + (static_cast<std::int32_t>(word << 25) >> 25);
  }
  static HINGE_INLINE std::int64_t g(std::int64_t v) { return v >> 39; }
  static HINGE_INLINE std::int64_t h(std::int64_t v) { return (v >> 16) & 0x7fffff; }
  static HINGE_INLINE std::int64_t c(std::int64_t v) { return v & 0xffff; }
  static HINGE_INLINE std::int64_t narrow(const Cell& v) { return (v.g << 39) + (v.h << 16) + v.c; }
};

// A row's word: g. A narrow cell: [ g : 48 | count : 16 ].
struct Constant {
  static HINGE_INLINE std::int64_t expand(std::uint32_t word) {
    return (static_cast<std::int64_t>(static_cast<std::int32_t>(word)) << 16) + 1;
  }
  static HINGE_INLINE std::int64_t g(std::int64_t v) { return v >> 16; }
  static HINGE_INLINE std::int64_t h(std::int64_t v) { return v & 0xffff; }
  static HINGE_INLINE std::int64_t c(std::int64_t v) { return v & 0xffff; }
  static HINGE_INLINE std::int64_t narrow(const Cell& v) { return (v.g << 16) + v.c; }
};

template <class Form>
HINGE_INLINE Cell widen(std::int64_t v) {
  return {Form::g(v), Form::h(v), Form::c(v)};
}

enum class Rounding { packed, constant, exact };

// The rounded rows of one tree.
struct Rounded {
  Rounding form = Rounding::exact;
  const std::uint32_t* words = nullptr;                 // packed and constant
  const double *exact_g = nullptr, *exact_h = nullptr;  // integers in double
  const std::int64_t* count = nullptr;                  // number of samples a row stands for, if not one (exact only)
  double g_unit = 1, h_unit = 1;                        // value of one integer step

  bool narrow(index_t rows) const { return form != Rounding::exact && rows <= kBlock; }
  Cell exact_cell(index_t row) const {
    return {static_cast<std::int64_t>(exact_g[row]), static_cast<std::int64_t>(exact_h[row]), count ? count[row] : 1};
  }
};

// Calls f with the form of narrow cells.
template <class F>
decltype(auto) with_form(Rounding form, F&& f) {
  return form == Rounding::packed ? f(Packed{}) : f(Constant{});
}

// Sum over rows[0 .. m), or 0 .. m if `which` is null.
Cell add_up(const Rounded& rows, const std::uint32_t* which, index_t m);

// The cells of all slots. A group has room for wide cells; narrow cells are stored from its beginning.
class Histogram {
 public:
  void make(const Bins& bins) {
    if (data_.empty()) data_.resize(bins.slots.size() * kBins * 3);
  }
  std::int64_t* narrow(const Bins& bins, index_t group) { return data_.data() + bins.group_begin[group] * kBins * 3; }
  Cell* wide(const Bins& bins, index_t group) { return reinterpret_cast<Cell*>(narrow(bins, group)); }

  // All numbers of wide cells, including those of codes that do not occur: for sums over blocks of a table.
  bool made() const { return !data_.empty(); }
  void take(const std::int64_t* numbers, index_t n) { data_.assign(numbers, numbers + n); }
  const std::vector<std::int64_t>& numbers() const { return data_; }
  void subtract(const Histogram& o) {
    for (std::size_t k = 0; k < data_.size(); ++k) data_[k] -= o.data_[k];
  }

 private:
  std::vector<std::int64_t> data_;
};

// Some slots of a group, as a range of slot numbers.
struct Slots {
  index_t group, begin, end;
};
inline Slots all_slots(const Bins& bins, index_t group) {
  return {group, bins.group_begin[group], bins.group_begin[group + 1]};
}

// Fills the cells of one group over rows[0 .. m) (or first + 0 .. m if `which` is null).
void fill(Histogram& out, bool narrow, const Bins& bins, index_t group, const Rounded& rows, const std::uint32_t* which,
          index_t first, index_t m);

// Sums that grow with the blocks of a table (boost_block.hpp). Adds rows which[0 .. m) (0 .. m if null) of a block,
// whose codes of one group are given, to its narrow cells, which have `held` rows; whenever these have kBlock, they are
// moved to the wide ones. After it they have (held + m) modulo kBlock, or kBlock. The exact form uses the wide ones
// alone.
void add_codes(const Bins& layout, index_t group, const std::uint8_t* codes, const Rounded& rows,
               const std::uint32_t* which, index_t m, index_t held, std::int64_t* narrow, Cell* wide);
// Adds narrow cells to the wide ones, and clears them.
void widen_narrow(const Bins& layout, index_t group, Rounding form, std::int64_t* narrow, Cell* wide);

// What `fill` gives over all rows for several sets of gradients in the packed form, stored one after another: each cell
// is located once for up to kWordSets of them. out[k] receives the cells of set k.
constexpr index_t kWordSets = 4;
void fill_together(Histogram* out, index_t sets, const Bins& bins, index_t group, const std::uint32_t* words);

// Adds the cells of some slots; both histograms have the same width.
void merge(Histogram& into, Histogram& more, bool narrow, const Bins& bins, const Slots& some);

// Subtracts a child from some slots of its parent, in place. `was` and `is`: whether the parent is narrow before and
// after. If that changes, the slots must be all slots of a group, because narrow cells overwrite others.
void subtract(Histogram& parent, bool was, bool is, Histogram& child, bool child_narrow, const Bins& bins,
              const Slots& some, Rounding form);

}  // namespace hinge::trees
