#include "trees/scan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

namespace hinge::trees {
namespace {

// The score of a side times its weight.
double weighted_side(bool gini, const Tally& t) {
  const double rest = t.w - t.s;
  return gini ? t.s * t.s + rest * rest : t.s * t.s;
}

double both_sides(const Search& search, const Tally& left) {
  const Tally right{search.total.w - left.w, search.total.s - left.s};
  return weighted_side(search.gini, left) / left.w + weighted_side(search.gini, right) / right.w;
}

bool large_enough(const Search& search, const Tally& left) {
  return left.w >= search.least && search.total.w - left.w >= search.least;
}

constexpr double kSlack = 1e-10;  // of clearly_better

// The number of cuts that may beat the threshold. The comparison avoids divisions, which are only worth their cost for
// a cut that may be the best.
HINGE_HOT index_t count_promising(const double* __restrict w, const double* __restrict s, index_t n, double W, double S,
                                  double least, double threshold, bool gini) {
  index_t count = 0;
  const double both = gini ? 1.0 : 0.0;
  for (index_t i = 0; i < n; ++i) {
    const double right = W - w[i], sum = S - s[i];
    const double a = w[i] - s[i], b = right - sum;  // the other class, if there are two
    const double score = (s[i] * s[i] + both * a * a) * right + (sum * sum + both * b * b) * w[i];
    count += (score > threshold * (w[i] * right)) & (w[i] >= least) & (right >= least);
  }
  return count;
}

// The sums on the left of every cut between adjacent codes, which are added in increasing order.
struct Cuts {
  alignas(64) double w[kBins];
  alignas(64) double s[kBins];
  int code[kBins];
  int n = 0;
  Tally left{};

  void add(int b, const Tally& cell) {
    left.w += cell.w, left.s += cell.s;
    w[n] = left.w, s[n] = left.s, code[n] = b;
    ++n;
  }

  // Takes the best cut if it beats `best`; returns false if there is none because all codes are the same.
  bool choose(const Search& search, Scan& best) const {
    const double threshold = std::isinf(best.score) ? best.score : best.score + 0.5 * kSlack * std::fabs(best.score);
    if (std::isinf(threshold) ||
        count_promising(w, s, n - 1, search.total.w, search.total.s, search.least, threshold, search.gini) > 0)
      for (int i = 0; i + 1 < n; ++i) {
        const Tally side{w[i], s[i]};
        if (!large_enough(search, side)) continue;
        const double score = both_sides(search, side);
        if (clearly_better(score, best.score)) best = {score, code[i], code[i + 1], side};
      }
    return n > 1;
  }
};

// Tries all nonempty bins of a histogram, and clears it.
bool choose_bins(Tally* cells, int bins, const Search& search, Scan& best) {
  Cuts cuts;
  for (int b = 0; b < bins; ++b)
    if (cells[b].w > 0) cuts.add(b, cells[b]);
  std::fill_n(cells, bins, Tally{});
  return cuts.choose(search, best);
}

// Many rows: a pass over the rows, then one over all bins.
bool scan_large(const std::uint8_t* column, const std::uint32_t* order, const Tally* rows, index_t m, int bins,
                const Search& search, Tally* cells, Scan& best) {
  for (index_t i = 0; i < m; ++i) {
    Tally& cell = cells[column[order[i]]];
    cell.w += rows[i].w, cell.s += rows[i].s;
  }
  return choose_bins(cells, bins, search, best);
}

template <int Width>
void tally_rows(const std::uint8_t* bytes, const std::uint32_t* order, const Tally* rows, index_t m, Tally* cells) {
  constexpr index_t ahead = 16;
  for (index_t i = 0; i < m; ++i) {
    __builtin_prefetch(bytes + static_cast<index_t>(order[std::min(i + ahead, m - 1)]) * kGroup);
    const std::uint8_t* code = bytes + static_cast<index_t>(order[i]) * kGroup;
    const Tally row = rows[i];
#pragma GCC unroll 16
    for (int k = 0; k < Width; ++k) {
      Tally& cell = cells[k * kBins + code[k]];
      cell.w += row.w, cell.s += row.s;
    }
  }
}

template <int... W>
auto tallies(std::integer_sequence<int, W...>) {
  using F = void (*)(const std::uint8_t*, const std::uint32_t*, const Tally*, index_t, Tally*);
  static constexpr F table[] = {&tally_rows<W + 1>...};
  return table;
}

// Calls f(k) for every byte k of a group that is 1; all bytes are 0 or 1.
template <class F>
void each_one(const std::uint8_t* bytes, const F& f) {
  for (int half = 0; half < 2; ++half) {
    std::uint64_t word;
    std::memcpy(&word, bytes + 8 * half, 8);
    for (; word; word &= word - 1) f(8 * half + std::countr_zero(word) / 8);
  }
}

// Features with the codes 0 and 1: sums over the rows with 1, which are few in one-hot columns.
struct Ones {
  Tally sum[kGroup] = {};
  index_t count[kGroup] = {};

  Ones(const std::uint8_t* bytes, const std::uint32_t* order, const Tally* rows, index_t m) {
    constexpr index_t ahead = 16;
    for (index_t i = 0; i < m; ++i) {
      __builtin_prefetch(bytes + static_cast<index_t>(order[std::min(i + ahead, m - 1)]) * kGroup);
      each_one(bytes + static_cast<index_t>(order[i]) * kGroup, [&](int k) {
        sum[k].w += rows[i].w, sum[k].s += rows[i].s;
        ++count[k];
      });
    }
  }

  // The best feature of the group if it beats `best`, or -1.
  index_t choose(const Bins& bins, index_t group, index_t m, const Search& search, Scan& best) const {
    index_t found = -1;
    const index_t begin = bins.group_begin[group];
    for (index_t k = begin; k < bins.group_begin[group + 1]; ++k) {
      const Tally one = sum[k - begin], zero{search.total.w - one.w, search.total.s - one.s};
      if (count[k - begin] == 0 || count[k - begin] == m || !large_enough(search, zero)) continue;
      const double score = both_sides(search, zero);
      if (!clearly_better(score, best.score)) continue;
      best = {score, 0, 1, zero};
      found = bins.slots[k].parts[0].feature;
    }
    return found;
  }
};

// Few rows: visits only the bins that occur.
template <class Code>
bool scan_few(const Code& code, const Tally* rows, index_t m, const Search& search, Tally* cells, Scan& best) {
  std::uint64_t touched[4] = {0, 0, 0, 0};
  for (index_t i = 0; i < m; ++i) {
    const unsigned b = code(i);
    touched[b >> 6] |= std::uint64_t{1} << (b & 63);
    cells[b].w += rows[i].w, cells[b].s += rows[i].s;
  }
  Cuts cuts;
  for (unsigned word = 0; word < 4; ++word)
    for (std::uint64_t bits = touched[word]; bits; bits &= bits - 1) {
      const int b = static_cast<int>(64 * word) + std::countr_zero(bits);
      cuts.add(b, cells[b]);
      cells[b] = Tally{};
    }
  return cuts.choose(search, best);
}

// Very few rows: there are only 2^(m-1) - 1 ways to divide them, so all are scored in advance. Features are then
// searched for the best division they allow, until one allows the best of all.
constexpr index_t kTable = 6;

struct Partings {
  index_t m;
  double top = -std::numeric_limits<double>::infinity();
  Tally sums[1 << kTable];  // of the rows in a set
  double scores[1 << kTable];

  Partings(const Tally* rows, index_t m_, const Search& search) : m(m_) {
    for (unsigned set = 1; set + 1 < 1u << m; ++set) {
      const Tally rest = sums[set & (set - 1)], row = rows[std::countr_zero(set)];
      sums[set] = {rest.w + row.w, rest.s + row.s};
      scores[set] =
          large_enough(search, sums[set]) ? both_sides(search, sums[set]) : -std::numeric_limits<double>::infinity();
      top = std::max(top, scores[set]);
    }
  }

  // Takes the best cut of the feature with these codes if it beats `best`.
  template <class Code>
  void look(const Code& code, Scan& best) const {
    unsigned keys[kTable];  // code and row, sorted
    for (index_t i = 0; i < m; ++i) {
      const unsigned key = static_cast<unsigned>(code(i)) << 8 | static_cast<unsigned>(i);
      index_t k = i;
      for (; k > 0 && keys[k - 1] > key; --k) keys[k] = keys[k - 1];
      keys[k] = key;
    }
    unsigned set = 0;
    for (index_t i = 0; i + 1 < m; ++i) {
      set |= 1u << (keys[i] & 0xff);
      const unsigned here = keys[i] >> 8, next = keys[i + 1] >> 8;
      if (here == next || !clearly_better(scores[set], best.score)) continue;
      best = {scores[set], static_cast<int>(here), static_cast<int>(next), sums[set]};
    }
  }

  // The best of a group of features with the codes 0 and 1, if it beats `best`; or -1.
  index_t look_ones(const Bins& bins, index_t group, const std::uint32_t* order, Scan& best) const {
    unsigned ones[kGroup] = {};
    for (index_t i = 0; i < m; ++i)
      each_one(bins.group(group) + static_cast<index_t>(order[i]) * kGroup, [&](int k) { ones[k] |= 1u << i; });
    const unsigned all = (1u << m) - 1;
    index_t found = -1;
    const index_t begin = bins.group_begin[group];
    for (index_t k = begin; k < bins.group_begin[group + 1]; ++k) {
      const unsigned zeros = all & ~ones[k - begin];
      if (zeros == 0 || zeros == all || !clearly_better(scores[zeros], best.score)) continue;
      best = {scores[zeros], 0, 1, sums[zeros]};
      found = bins.slots[k].parts[0].feature;
    }
    return found;
  }
};

}  // namespace

bool clearly_better(double a, double b) {
  return b == -std::numeric_limits<double>::infinity() ? a > b : a > b + kSlack * std::fabs(b);
}

bool scan_feature(const Bins& bins, index_t feature, const std::uint32_t* order, const Tally* rows, index_t m,
                  const Search& search, Tally* cells, Scan& best) {
  const std::uint8_t* column = bins.col(feature);
  if (m > kSmallNode) return scan_large(column, order, rows, m, bins.features[feature].bins, search, cells, best);
  return scan_few([&](index_t i) { return column[order[i]]; }, rows, m, search, cells, best);
}

index_t scan_small(const Bins& bins, const std::uint32_t* order, const Tally* rows, index_t m, const Search& search,
                   Tally* cells, std::vector<std::uint8_t>& codes, Scan& best) {
  codes.resize(kSmallNode * kGroup);
  std::optional<Partings> partings;
  if (m <= kTable) partings.emplace(rows, m, search);
  index_t found = -1;
  for (index_t g = 0; g < bins.groups; ++g) {
    if (bins.two_codes[g]) {
      const index_t j = partings ? partings->look_ones(bins, g, order, best)
                                 : Ones(bins.group(g), order, rows, m).choose(bins, g, m, search, best);
      if (j >= 0) found = j;
    } else {
      for (index_t i = 0; i < m; ++i)
        std::memcpy(codes.data() + i * kGroup, bins.group(g) + static_cast<index_t>(order[i]) * kGroup, kGroup);
      for (index_t k = bins.group_begin[g]; k < bins.group_begin[g + 1]; ++k) {
        const std::uint8_t* bytes = codes.data() + (k - bins.group_begin[g]);
        const auto code = [&](index_t i) { return bytes[i * kGroup]; };
        const double before = best.score;
        if (partings)
          partings->look(code, best);
        else
          scan_few(code, rows, m, search, cells, best);
        if (best.score > before) found = bins.slots[k].parts[0].feature;
      }
    }
    if (partings && !clearly_better(partings->top, best.score)) break;
  }
  return found;
}

index_t scan_group(const Bins& bins, index_t group, const std::uint32_t* order, const Tally* rows, index_t m,
                   const Search& search, Tally* cells, Scan& best) {
  if (bins.two_codes[group]) return Ones(bins.group(group), order, rows, m).choose(bins, group, m, search, best);
  const index_t begin = bins.group_begin[group], width = bins.group_begin[group + 1] - begin;
  tallies(std::make_integer_sequence<int, kGroup>{})[width - 1](bins.group(group), order, rows, m, cells);
  index_t found = -1;
  for (index_t k = 0; k < width; ++k) {
    const Slot& slot = bins.slots[begin + k];
    Tally* slot_cells = cells + k * kBins;
    const double before = best.score;
    choose_bins(slot_cells, slot.codes, search, best);
    if (best.score > before) found = slot.parts[0].feature;
  }
  return found;
}

}  // namespace hinge::trees
