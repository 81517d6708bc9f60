#include "trees/bins.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include "core/pool.hpp"
#include "core/random.hpp"
#include "trees/bundle.hpp"
#include "trees/radix.hpp"

namespace hinge::trees {

template <class T>
void cut_bins(const std::vector<T>& values, const std::vector<double>& weights, int max_bins, Feature& f) {
  const std::size_t m = values.size();
  f.low.clear(), f.high.clear(), f.edge.clear();
  if (m <= static_cast<std::size_t>(max_bins)) {
    for (const T v : values) f.low.push_back(v), f.high.push_back(v);
  } else {
    double remaining = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::size_t begin = 0;
    for (int b = 0; b < max_bins && begin < m; ++b) {
      const double target = remaining / (max_bins - b);
      double held = weights[begin];
      std::size_t end = begin + 1;
      // Adds the next value if that brings the bin closer to its share, but leaves one value for every later bin.
      while (end < m && (b == max_bins - 1 ||
                         (held + 0.5 * weights[end] <= target && m - end > static_cast<std::size_t>(max_bins - b - 1))))
        held += weights[end++];
      f.low.push_back(values[begin]), f.high.push_back(values[end - 1]);
      remaining -= held;
      begin = end;
    }
  }
  f.bins = std::max<int>(1, static_cast<int>(f.low.size()));
  for (int b = 0; b + 1 < f.bins; ++b) f.edge.push_back(split_threshold(f, b, b + 1));
}
template void cut_bins(const std::vector<float>&, const std::vector<double>&, int, Feature&);
template void cut_bins(const std::vector<double>&, const std::vector<double>&, int, Feature&);

std::vector<std::uint32_t> sample_rows(index_t n, const BinOptions& options) {
  std::vector<std::uint32_t> rows;
  if (n <= options.sample) {
    rows.resize(n);
    std::iota(rows.begin(), rows.end(), 0u);
    return rows;
  }
  const Random random(options.seed, 0xB135);
  for (index_t k = 0; k < options.sample; ++k) {  // one row from each of `sample` equal strata
    const index_t begin = range_begin(n, options.sample, k), end = range_begin(n, options.sample, k + 1);
    rows.push_back(static_cast<std::uint32_t>(begin + static_cast<index_t>(random.uniform_at(k) * (end - begin))));
  }
  return rows;
}

namespace {

constexpr int kFew = 8;

// Keeps the marks of entries that differ from v; returns the number of marks kept.
template <class T>
HINGE_HOT int unmark(const T* __restrict x, int n, T v, std::uint8_t* __restrict marks) {
  int kept = 0;
  for (int i = 0; i < n; ++i) {
    marks[i] = static_cast<std::uint8_t>(marks[i] & (x[i] != v));
    kept += marks[i];
  }
  return kept;
}

// The values of a column in increasing order, if it has at most kFew distinct ones besides missing values (binary and
// other low-cardinality columns). Finds them by comparison, without sorting. Returns whether it succeeded.
template <class T>
bool few_values(const T* x, index_t n, std::vector<T>& values, bool& missing) {
  constexpr int kRun = 1024;
  std::uint8_t marks[kRun];
  for (index_t at = 0; at < n; at += kRun) {
    const int m = static_cast<int>(std::min<index_t>(kRun, n - at));
    const T* run = x + at;
    int left = 0;
    for (int i = 0; i < m; ++i) left += marks[i] = run[i] == run[i];
    missing |= left < m;
    for (std::size_t k = 0; left > 0; ++k) {
      if (k == values.size()) {
        if (k == static_cast<std::size_t>(kFew)) return false;
        values.push_back(run[std::find(marks, marks + m, std::uint8_t{1}) - marks]);
      }
      left = unmark(run, m, values[k], marks);
    }
  }
  std::sort(values.begin(), values.end());
  return true;
}

// x: the sampled values of one column; weight: the weights of the sampled rows, or null.
template <class T>
void find_edges(const T* x, const double* weight, index_t n, int max_bins, Feature& f) {
  std::vector<T> values;
  if (max_bins >= kFew && few_values(x, n, values, f.missing)) return cut_bins(values, {}, max_bins, f);
  values.clear();
  std::vector<Key<T>> keys;
  std::vector<double> w, weights;
  keys.reserve(n);
  if (weight) w.reserve(n);
  for (index_t i = 0; i < n; ++i) {
    if (x[i] != x[i]) {
      f.missing = true;
      continue;
    }
    keys.push_back(to_key(x[i]));
    if (weight) w.push_back(weight[i]);
  }
  radix_sort(keys, w);
  for (std::size_t i = 0; i < keys.size();) {
    double total = 0;
    const Key<T> k = keys[i];
    for (; i < keys.size() && keys[i] == k; ++i) total += weight ? w[i] : 1.0;
    values.push_back(from_key<T>(k));
    weights.push_back(total);
  }
  cut_bins(values, weights, max_bins, f);
}

// out[i] = number of edges below v[i]; edges are padded to 256 with +infinity.
template <class T>
HINGE_HOT void search(const T* __restrict v, index_t n, const T* __restrict edges, std::uint8_t* __restrict out) {
  using I = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  for (index_t i = 0; i < n; ++i) {
    const T x = v[i];
    I at = 0;
    at += edges[at + 127] < x ? 128 : 0;
    at += edges[at + 63] < x ? 64 : 0;
    at += edges[at + 31] < x ? 32 : 0;
    at += edges[at + 15] < x ? 16 : 0;
    at += edges[at + 7] < x ? 8 : 0;
    at += edges[at + 3] < x ? 4 : 0;
    at += edges[at + 1] < x ? 2 : 0;
    at += edges[at] < x ? 1 : 0;
    out[i] = static_cast<std::uint8_t>(x == x ? at : I(kMissing));
  }
}

// The same for few edges, compared one after another.
template <class T>
HINGE_HOT void search_few(const T* __restrict v, index_t n, const T* __restrict edges, int count,
                          std::uint8_t* __restrict out) {
  for (index_t i = 0; i < n; ++i) out[i] = v[i] == v[i] ? 0 : kMissing;
  for (int k = 0; k < count; ++k)
    for (index_t i = 0; i < n; ++i) out[i] = static_cast<std::uint8_t>(out[i] + (edges[k] < v[i]));
}

// Finds whether any byte is the code of a missing value, and the largest of the others.
HINGE_HOT void look_over(const std::uint8_t* __restrict column, index_t n, std::uint8_t& any, std::uint8_t& top) {
  std::uint8_t missing = 0, most = 0;
  for (index_t i = 0; i < n; ++i) {
    const std::uint8_t c = column[i], held = c == kMissing ? 0 : c;
    missing |= c == kMissing;
    most = held > most ? held : most;
  }
  any = missing, top = most;
}

constexpr index_t kFewRows = 500000;

// Divides the slots into groups.
void make_groups(Bins& bins) {
  const auto slots = static_cast<index_t>(bins.slots.size());
  bins.groups = (slots + kGroup - 1) / kGroup;
  // Leaves of small tables have too few rows to divide them among threads: an even number of groups keeps two (four,
  // ...) threads busy.
  if (bins.rows <= kFewRows && bins.groups % 2 == 1 && slots >= 4) ++bins.groups;
  for (index_t g = 0; g <= bins.groups; ++g) bins.group_begin.push_back(range_begin(slots, bins.groups, g));
  for (index_t g = 0; g < bins.groups; ++g)
    bins.two_codes.push_back(std::all_of(bins.slots.begin() + bins.group_begin[g],
                                         bins.slots.begin() + bins.group_begin[g + 1],
                                         [](const Slot& slot) { return slot.span <= 2 && slot.codes <= 2; }));
}

// Writes the bytes of the slots, adjacent within a group.
void fill_groups(Bins& bins) {
  bins.by_group.resize(bins.groups * bins.rows * kGroup);
  constexpr index_t block = 4096;
  const index_t parts = std::max<index_t>(1, (bins.rows + block - 1) / block);
  parallel_for(parts * bins.groups, [&](index_t task) {
    const index_t g = task / parts, begin = task % parts * block, end = std::min(bins.rows, begin + block);
    std::uint8_t* all = bins.by_group.data() + g * bins.rows * kGroup;
    std::fill(all + begin * kGroup, all + end * kGroup, std::uint8_t{0});
    for (index_t k = bins.group_begin[g]; k < bins.group_begin[g + 1]; ++k) {
      std::uint8_t* out = all + (k - bins.group_begin[g]);
      const Slot& slot = bins.slots[k];
      for (const Part& part : slot.parts) {
        const std::uint8_t* column = bins.col(part.feature);
        if (!slot.shared()) {
          for (index_t i = begin; i < end; ++i) out[i * kGroup] = column[i];
          continue;
        }
        std::uint8_t codes[kBins];
        slot_codes(part, bins.features[part.feature].bins, codes);
        for (index_t i = begin; i < end; ++i)
          out[i * kGroup] |= codes[column[i]];  // the other features of the slot add 0
      }
    }
  });
}

}  // namespace

double split_threshold(const Feature& feature, int left, int right) {
  return middle_of(feature.high[left], feature.low[right]);
}

double middle_of(double a, double b) {
  constexpr double far = std::numeric_limits<float>::max();
  if (std::isinf(a)) return std::isinf(b) ? 0.0 : -far < b ? -far : a;
  if (std::isinf(b)) return a < far ? far : a;
  const double middle = a + 0.5 * (b - a);
  return middle < b && std::isfinite(middle) ? middle : a;
}

template <class T>
T round_down(double x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    const T t = static_cast<T>(x);
    return static_cast<double>(t) > x ? std::nextafter(t, -std::numeric_limits<T>::infinity()) : t;
  }
}
template float round_down<float>(double);
template double round_down<double>(double);

// Adjacent columns are gathered in one pass, because they share cache lines in a row-major table.
template <class T>
std::vector<Feature> find_features(const Table<T>& x, const double* weight,
                                   const std::vector<std::uint8_t>& categorical, const BinOptions& options) {
  std::vector<Feature> features(x.cols);
  for (index_t j = 0; j < x.cols; ++j) features[j].categorical = categorical[j];
  const std::vector<std::uint32_t> sample = sample_rows(x.rows, options);
  const auto n = static_cast<index_t>(sample.size());
  std::vector<double> drawn;
  if (weight)
    for (const std::uint32_t i : sample) drawn.push_back(weight[i]);
  constexpr index_t kHeld = index_t{1} << 19;  // values held in memory by one task
  const index_t width = std::clamp<index_t>(kHeld / std::max<index_t>(1, n), 1, 16);
  parallel_for((x.cols + width - 1) / width, [&](index_t task) {
    const index_t begin = task * width, count = std::min(width, x.cols - begin);
    std::vector<T> values(n * count);
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < count; ++j) values[j * n + i] = x.at(sample[i], begin + j);
    for (index_t j = 0; j < count; ++j)
      if (!features[begin + j].categorical)
        find_edges(values.data() + j * n, weight ? drawn.data() : nullptr, n, options.max_bins, features[begin + j]);
  });
  return features;
}

template std::vector<Feature> find_features(const Table<float>&, const double*, const std::vector<std::uint8_t>&,
                                            const BinOptions&);
template std::vector<Feature> find_features(const Table<double>&, const double*, const std::vector<std::uint8_t>&,
                                            const BinOptions&);

template <class T>
void code_columns(const Table<T>& x, std::vector<Feature>& features, std::uint8_t* by_col) {
  std::vector<T> edges(x.cols * kBins, std::numeric_limits<T>::infinity());
  for (index_t j = 0; j < x.cols; ++j)
    std::transform(features[j].edge.begin(), features[j].edge.end(), edges.begin() + j * kBins, round_down<T>);
  constexpr index_t block = 512;
  const index_t parts = std::max<index_t>(1, (x.rows + block - 1) / block);
  std::vector<std::uint8_t> missing(parts * x.cols, 0), largest(parts * x.cols, 0);
  parallel_for(parts, [&](index_t part) {
    const index_t begin = part * block, m = std::min(block, x.rows - begin);
    constexpr index_t width = 8;  // adjacent columns share cache lines in a row-major table
    T values[width * block];
    for (index_t j = 0; j < x.cols; ++j) {
      if (j % width == 0)
        for (index_t i = 0; i < m; ++i)
          for (index_t k = 0; k < std::min(width, x.cols - j); ++k) values[k * block + i] = x.at(begin + i, j + k);
      const T* column_values = values + j % width * block;
      const Feature& f = features[j];
      const auto count = static_cast<int>(f.edge.size());
      std::uint8_t* column = by_col + j * x.rows + begin;
      if (f.categorical)
        for (index_t i = 0; i < m; ++i)
          column[i] = column_values[i] == column_values[i] ? static_cast<std::uint8_t>(column_values[i]) : kMissing;
      else if (count <= 8)
        search_few(column_values, m, edges.data() + j * kBins, count, column);
      else
        search(column_values, m, edges.data() + j * kBins, column);
      look_over(column, m, missing[part * x.cols + j], largest[part * x.cols + j]);
    }
  });
  for (index_t part = 0; part < parts; ++part)
    for (index_t j = 0; j < x.cols; ++j) {
      Feature& f = features[j];
      f.missing |= missing[part * x.cols + j] != 0;
      if (f.categorical) f.bins = std::max(f.bins, largest[part * x.cols + j] + 1);
    }
}
template void code_columns(const Table<float>&, std::vector<Feature>&, std::uint8_t*);
template void code_columns(const Table<double>&, std::vector<Feature>&, std::uint8_t*);

template <class T>
Bins make_bins(const Table<T>& x, const double* weight, const std::vector<std::uint8_t>& categorical,
               const BinOptions& options) {
  Bins bins;
  bins.rows = x.rows, bins.cols = x.cols;
  bins.features = find_features(x, weight, categorical, options);
  bins.by_col.resize(x.cols * x.rows + 4);  // gathers read whole words
  code_columns(x, bins.features, bins.by_col.data());
  bins.slots = make_slots(bins, options.bundle);
  make_groups(bins);
  fill_groups(bins);
  return bins;
}

Bins make_layout(std::vector<Feature> features) {
  Bins bins;
  bins.cols = static_cast<index_t>(features.size());
  bins.features = std::move(features);
  bins.slots = make_slots(bins, false);
  make_groups(bins);
  return bins;
}

Unset<std::uint8_t> codes_by_group(const Bins& layout, const std::uint8_t* codes, index_t rows) {
  return std::move(with_codes(layout, codes, rows).by_group);
}

Bins with_codes(const Bins& layout, const std::uint8_t* codes, index_t rows) {
  Bins bins;
  bins.rows = rows, bins.cols = layout.cols;
  bins.features = layout.features, bins.slots = layout.slots;
  bins.groups = layout.groups, bins.group_begin = layout.group_begin, bins.two_codes = layout.two_codes;
  bins.by_col.resize(bins.cols * rows + 4);
  std::copy(codes, codes + bins.cols * rows, bins.by_col.begin());
  fill_groups(bins);
  return bins;
}

template Bins make_bins(const Table<float>&, const double*, const std::vector<std::uint8_t>&, const BinOptions&);
template Bins make_bins(const Table<double>&, const double*, const std::vector<std::uint8_t>&, const BinOptions&);

}  // namespace hinge::trees
