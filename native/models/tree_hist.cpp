#include "models/tree_hist.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hinge::trees {
namespace {

constexpr index_t kAhead = 48;  // rows fetched in advance when they are not consecutive

struct Packed {  // [ g : 26 | h : 24 | count : 14 ]
  static HINGE_INLINE std::int64_t expand(std::uint32_t row) {
    const std::int64_t g = static_cast<std::int16_t>(row >> 16), h = row & 0xffff;
    return g * (std::int64_t{1} << 38) + (h << 14) + 1;
  }
  static HINGE_INLINE void spread(std::int64_t v, Cell& out) {
    out.g += v >> 38;
    out.h += (v >> 14) & 0xffffff;
    out.c += v & 0x3fff;
  }
};

struct Constant {  // [ g : 50 | count : 14 ]
  static HINGE_INLINE std::int64_t expand(std::uint32_t row) {
    return static_cast<std::int64_t>(static_cast<std::int32_t>(row)) * (1 << 14) + 1;
  }
  static HINGE_INLINE void spread(std::int64_t v, Cell& out) {
    out.g += v >> 14;
    out.h += v & 0x3fff;
    out.c += v & 0x3fff;
  }
};

// Two rows at a time: their additions to different cells overlap better than those of one row alone.
template <int Width, class Form, bool Indexed>
void accumulate(const std::uint8_t* cells, const std::uint32_t* rows, const std::uint32_t* which, index_t first,
                index_t m, std::int64_t* sums) {
  const auto row_at = [&](index_t i) { return Indexed ? static_cast<index_t>(which[i]) : first + i; };
  const auto fetch = [&](index_t i) {
    // `which` has room for reading ahead (see kPad in tree_boost.cpp): at worst a useless prefetch.
    if constexpr (Indexed) {
      __builtin_prefetch(cells + static_cast<index_t>(which[i]) * kGroup);
      __builtin_prefetch(rows + which[i]);
    }
  };
  index_t i = 0;
  for (; i + 1 < m; i += 2) {
    fetch(i + kAhead), fetch(i + kAhead + 1);
    const index_t a = row_at(i), b = row_at(i + 1);
    const std::uint8_t *cell_a = cells + a * kGroup, *cell_b = cells + b * kGroup;
    const std::int64_t v = Form::expand(rows[a]), u = Form::expand(rows[b]);
#pragma GCC unroll 16
    for (int j = 0; j < Width; ++j) {
      sums[j * kBins + cell_a[j]] += v;
      sums[j * kBins + cell_b[j]] += u;
    }
  }
  if (i < m)
    for (int j = 0; j < Width; ++j) sums[j * kBins + cells[row_at(i) * kGroup + j]] += Form::expand(rows[row_at(i)]);
}

template <class Form, bool Indexed, int... W>
auto accumulators(std::integer_sequence<int, W...>) {
  using F = void (*)(const std::uint8_t*, const std::uint32_t*, const std::uint32_t*, index_t, index_t, std::int64_t*);
  static constexpr F table[] = {&accumulate<W + 1, Form, Indexed>...};
  return table;
}

template <class Form>
HINGE_HOT void spread_all(const std::int64_t* __restrict sums, index_t n, Cell* __restrict out) {
  for (index_t i = 0; i < n; ++i) Form::spread(sums[i], out[i]);
}

template <class Form>
void add_blocks(const Bins& bins, index_t group, const Rounded& r, const std::uint32_t* which, index_t first, index_t m,
                Cell* out) {
  const index_t begin = bins.group_begin[group], width = bins.group_begin[group + 1] - begin;
  const std::uint8_t* cells = bins.group(group);
  constexpr auto widths = std::make_integer_sequence<int, kGroup>{};
  const auto run = which ? accumulators<Form, true>(widths)[width - 1] : accumulators<Form, false>(widths)[width - 1];
  alignas(64) std::int64_t sums[kGroup * kBins];
  const auto used = [&](index_t j) { return static_cast<index_t>(bins.slots[begin + j].codes); };
  for (index_t j = 0; j < width; ++j) {
    std::fill_n(sums + j * kBins, used(j), 0);
    sums[j * kBins + kMissing] = 0;
  }
  for (index_t at = 0; at < m; at += kBlock) {
    const index_t size = std::min(kBlock, m - at);
    run(cells, r.packed.data(), which ? which + at : nullptr, first + at, size, sums);
    for (index_t j = 0; j < width; ++j) {
      spread_all<Form>(sums + j * kBins, used(j), out + j * kBins);
      Form::spread(sums[j * kBins + kMissing], out[j * kBins + kMissing]);
      if (at + size < m) {
        std::fill_n(sums + j * kBins, used(j), 0);
        sums[j * kBins + kMissing] = 0;
      }
    }
  }
}

// Straight into the cells: for few rows, where clearing and spreading the short sums would cost more.
template <class Row>
void add_direct(const Bins& bins, index_t group, const std::uint32_t* which, index_t first, index_t m, Cell* out,
                const Row& row_cell) {
  const index_t width = bins.group_begin[group + 1] - bins.group_begin[group];
  const std::uint8_t* cells = bins.group(group);
  for (index_t i = 0; i < m; ++i) {
    const index_t row = which ? static_cast<index_t>(which[i]) : first + i;
    const std::uint8_t* cell = cells + row * kGroup;
    const Cell v = row_cell(row);
    for (index_t j = 0; j < width; ++j) out[j * kBins + cell[j]].add(v);
  }
}

template <class Form>
void add_form(const Bins& bins, index_t group, const Rounded& r, const std::uint32_t* which, index_t first, index_t m,
              Cell* out) {
  if (m >= 1024) return add_blocks<Form>(bins, group, r, which, first, m, out);
  add_direct(bins, group, which, first, m, out, [&](index_t row) {
    Cell v;
    Form::spread(Form::expand(r.packed[row]), v);
    return v;
  });
}

}  // namespace

void add_histogram(const Bins& bins, index_t group, const Rounded& rows, const std::uint32_t* which, index_t first,
                   index_t m, Cell* out) {
  switch (rows.form) {
    case Rounding::packed:
      return add_form<Packed>(bins, group, rows, which, first, m, out);
    case Rounding::constant:
      return add_form<Constant>(bins, group, rows, which, first, m, out);
    case Rounding::exact:
      return add_direct(bins, group, which, first, m, out, [&](index_t row) { return exact_cell(rows, row); });
  }
}

}  // namespace hinge::trees
