#include "trees/histogram.hpp"

#include <algorithm>
#include <utility>

#include "core/pool.hpp"

namespace hinge::trees {
namespace {

constexpr index_t kAhead = 48;  // rows prefetched in advance if they are not consecutive

// Two rows at a time: additions to the cells of two rows overlap better than those of one.
template <int Width, class Form, bool Indexed>
void accumulate(const std::uint8_t* cells, const std::uint32_t* rows, const std::uint32_t* which, index_t first,
                index_t m, std::int64_t* sums) {
  const auto row_at = [&](index_t i) { return Indexed ? static_cast<index_t>(which[i]) : first + i; };
  const auto fetch = [&](index_t i) {
    // `which` is padded for reading ahead (see kPad in rows.cpp): at worst a prefetch is useless.
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
HINGE_HOT void widen_all(const std::int64_t* __restrict v, index_t n, Cell* __restrict out) {
  for (index_t i = 0; i < n; ++i) out[i] += widen<Form>(v[i]);
}
template <class Form>
HINGE_HOT void less_narrow(Cell* __restrict a, const std::int64_t* __restrict b, index_t n) {
  for (index_t i = 0; i < n; ++i) a[i] -= widen<Form>(b[i]);
}
HINGE_HOT void plus(std::int64_t* __restrict a, const std::int64_t* __restrict b, index_t n) {
  for (index_t i = 0; i < n; ++i) a[i] += b[i];
}
HINGE_HOT void minus(std::int64_t* __restrict a, const std::int64_t* __restrict b, index_t n) {
  for (index_t i = 0; i < n; ++i) a[i] -= b[i];
}

// Calls f(offset of the slot's cells in its group, number of cells).
template <class F>
void each_slot(const Bins& bins, const Slots& some, const F& f) {
  const index_t begin = bins.group_begin[some.group];
  for (index_t k = some.begin; k < some.end; ++k) f((k - begin) * kBins, bins.slots[k].span);
}
template <class F>
void each_slot(const Bins& bins, index_t group, const F& f) {
  each_slot(bins, all_slots(bins, group), f);
}

void clear_wide(const Bins& bins, index_t group, Cell* cells) {
  each_slot(bins, group, [&](index_t at, index_t n) { std::fill_n(cells + at, n, Cell{}); });
}

template <class Form>
void add_to(const Bins& bins, index_t group, const std::uint8_t* cells, const Rounded& r, const std::uint32_t* which,
            index_t first, index_t m, std::int64_t* sums) {
  const index_t width = bins.group_begin[group + 1] - bins.group_begin[group];
  constexpr auto widths = std::make_integer_sequence<int, kGroup>{};
  const auto run = which ? accumulators<Form, true>(widths)[width - 1] : accumulators<Form, false>(widths)[width - 1];
  run(cells, r.words, which, first, m, sums);
}

template <class Form>
void add_rows(const Bins& bins, index_t group, const Rounded& r, const std::uint32_t* which, index_t first, index_t m,
              std::int64_t* sums) {
  each_slot(bins, group, [&](index_t at, index_t n) { std::fill_n(sums + at, n, 0); });
  add_to<Form>(bins, group, bins.group(group), r, which, first, m, sums);
}

template <class Form>
void add_blocks(const Bins& bins, index_t group, const Rounded& r, const std::uint32_t* which, index_t first, index_t m,
                Cell* out) {
  alignas(64) std::int64_t sums[kGroup * kBins];
  for (index_t at = 0; at < m; at += kBlock) {
    add_rows<Form>(bins, group, r, which ? which + at : nullptr, first + at, std::min(kBlock, m - at), sums);
    each_slot(bins, group, [&](index_t k, index_t n) { widen_all<Form>(sums + k, n, out + k); });
  }
}

void add_exact(const Bins& bins, index_t group, const std::uint8_t* cells, const Rounded& r, const std::uint32_t* which,
               index_t first, index_t m, Cell* out) {
  const index_t width = bins.group_begin[group + 1] - bins.group_begin[group];
  for (index_t i = 0; i < m; ++i) {
    const index_t row = which ? static_cast<index_t>(which[i]) : first + i;
    const std::uint8_t* cell = cells + row * kGroup;
    const Cell v = r.exact_cell(row);
    for (index_t j = 0; j < width; ++j) out[j * kBins + cell[j]] += v;
  }
}

template <int C>
struct Lanes {
  typedef std::int32_t Words __attribute__((vector_size(4 * C)));
  typedef std::int64_t Sums __attribute__((vector_size(8 * C), may_alias));
};

// Rows 0 .. m of C sets of words at distance `stride`; sums[(slot * kBins + code) * C + set].
template <int C, int Width>
HINGE_HOT void accumulate_together(const std::uint8_t* cells, const std::uint32_t* words, index_t stride, index_t m,
                                   std::int64_t* sums) {
  using Words = typename Lanes<C>::Words;
  using Sums = typename Lanes<C>::Sums;
  auto* out = reinterpret_cast<Sums*>(sums);
  for (index_t i = 0; i < m; ++i) {
    Words word;
    for (int c = 0; c < C; ++c) word[c] = static_cast<std::int32_t>(words[c * stride + i]);
    // Packed::expand
    const Words g = word & static_cast<std::int32_t>(0xffc00000u), h = word & 0x7f80;
    const Sums v = (__builtin_convertvector(g, Sums) << 17) + (__builtin_convertvector(h, Sums) << 9) + 1;
    const std::uint8_t* cell = cells + i * kGroup;
#pragma GCC unroll 16
    for (int j = 0; j < Width; ++j) out[j * kBins + cell[j]] += v;
  }
}

template <int C, int... W>
auto joint_accumulators(std::integer_sequence<int, W...>) {
  using F = void (*)(const std::uint8_t*, const std::uint32_t*, index_t, index_t, std::int64_t*);
  static constexpr F table[] = {&accumulate_together<C, W + 1>...};
  return table;
}

template <int C>
void fill_sets(Histogram* out, const Bins& bins, index_t group, const std::uint32_t* words) {
  const index_t n = bins.rows, width = bins.group_begin[group + 1] - bins.group_begin[group];
  const auto run = joint_accumulators<C>(std::make_integer_sequence<int, kGroup>{})[width - 1];
  const bool narrow = n <= kBlock;
  alignas(64) std::int64_t sums[kGroup * kBins * C];
  if (!narrow)
    for (int c = 0; c < C; ++c) clear_wide(bins, group, out[c].wide(bins, group));
  for (index_t at = 0; at < n; at += kBlock) {
    each_slot(bins, group, [&](index_t k, index_t m) { std::fill_n(sums + k * C, m * C, 0); });
    run(bins.group(group) + at * kGroup, words + at, n, std::min(kBlock, n - at), sums);
    for (int c = 0; c < C; ++c)
      each_slot(bins, group, [&](index_t k, index_t m) {
        for (index_t i = k; i < k + m; ++i) {
          if (narrow)
            out[c].narrow(bins, group)[i] = sums[i * C + c];
          else
            out[c].wide(bins, group)[i] += widen<Packed>(sums[i * C + c]);
        }
      });
  }
}

template <class Form>
HINGE_HOT std::int64_t add_words(const std::uint32_t* __restrict words, const std::uint32_t* __restrict which,
                                 index_t m) {
  std::int64_t sum = 0;
  if (which)
    for (index_t i = 0; i < m; ++i) sum += Form::expand(words[which[i]]);
  else
    for (index_t i = 0; i < m; ++i) sum += Form::expand(words[i]);
  return sum;
}

}  // namespace

Cell add_up(const Rounded& rows, const std::uint32_t* which, index_t m) {
  std::vector<Cell> blocks((m + kBlock - 1) / kBlock);
  parallel_for(static_cast<index_t>(blocks.size()), [&](index_t k) {
    const index_t at = k * kBlock, size = std::min(kBlock, m - at);
    if (rows.form == Rounding::exact) {
      for (index_t i = at; i < at + size; ++i) blocks[k] += rows.exact_cell(which ? which[i] : i);
      return;
    }
    with_form(rows.form, [&]<class Form>(Form) {
      blocks[k] = widen<Form>(which ? add_words<Form>(rows.words, which + at, size)
                                    : add_words<Form>(rows.words + at, nullptr, size));
    });
  });
  Cell total;
  for (const Cell& block : blocks) total += block;
  return total;
}

void fill(Histogram& out, bool narrow, const Bins& bins, index_t group, const Rounded& rows, const std::uint32_t* which,
          index_t first, index_t m) {
  if (narrow)
    return with_form(rows.form, [&]<class Form>(Form) {
      add_rows<Form>(bins, group, rows, which, first, m, out.narrow(bins, group));
    });
  Cell* cells = out.wide(bins, group);
  clear_wide(bins, group, cells);
  if (rows.form == Rounding::exact) return add_exact(bins, group, bins.group(group), rows, which, first, m, cells);
  with_form(rows.form, [&]<class Form>(Form) { add_blocks<Form>(bins, group, rows, which, first, m, cells); });
}

void add_codes(const Bins& layout, index_t group, const std::uint8_t* codes, const Rounded& rows,
               const std::uint32_t* which, index_t m, index_t held, std::int64_t* narrow, Cell* wide) {
  if (rows.form == Rounding::exact) return add_exact(layout, group, codes, rows, which, 0, m, wide);
  with_form(rows.form, [&]<class Form>(Form) {
    for (index_t at = 0; at < m;) {
      if (held == kBlock) widen_narrow(layout, group, rows.form, narrow, wide), held = 0;
      const index_t size = std::min(kBlock - held, m - at);
      add_to<Form>(layout, group, codes, rows, which ? which + at : nullptr, at, size, narrow);
      held += size, at += size;
    }
  });
}

void widen_narrow(const Bins& layout, index_t group, Rounding form, std::int64_t* narrow, Cell* wide) {
  with_form(form, [&]<class Form>(Form) {
    each_slot(layout, group, [&](index_t k, index_t n) {
      widen_all<Form>(narrow + k, n, wide + k);
      std::fill_n(narrow + k, n, 0);
    });
  });
}

void fill_together(Histogram* out, index_t sets, const Bins& bins, index_t group, const std::uint32_t* words) {
  for (; sets >= 4; sets -= 4, out += 4, words += 4 * bins.rows) fill_sets<4>(out, bins, group, words);
  if (sets >= 2) fill_sets<2>(out, bins, group, words), sets -= 2, out += 2, words += 2 * bins.rows;
  if (sets >= 1) fill_sets<1>(out, bins, group, words);
}

void merge(Histogram& into, Histogram& more, bool narrow, const Bins& bins, const Slots& some) {
  std::int64_t *a = into.narrow(bins, some.group), *b = more.narrow(bins, some.group);
  const index_t numbers = narrow ? 1 : 3;
  each_slot(bins, some, [&](index_t at, index_t n) { plus(a + at * numbers, b + at * numbers, n * numbers); });
}

void subtract(Histogram& parent, bool was, bool is, Histogram& child, bool child_narrow, const Bins& bins,
              const Slots& some, Rounding form) {
  std::int64_t *a = parent.narrow(bins, some.group), *b = child.narrow(bins, some.group);
  if (was == child_narrow) {
    const index_t numbers = was ? 1 : 3;
    each_slot(bins, some, [&](index_t at, index_t n) { minus(a + at * numbers, b + at * numbers, n * numbers); });
    return;
  }
  Cell* wide = parent.wide(bins, some.group);
  with_form(form, [&]<class Form>(Form) {
    // In place: narrow cells are written behind the wide ones that have not been read yet.
    each_slot(bins, some, [&](index_t at, index_t n) {
      less_narrow<Form>(wide + at, b + at, n);
      if (is)
        for (index_t i = 0; i < n; ++i) a[at + i] = Form::narrow(wide[at + i]);
    });
  });
}

}  // namespace hinge::trees
