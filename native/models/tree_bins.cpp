#include "models/tree_bins.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include "core/pool.hpp"
#include "core/random.hpp"

namespace hinge::trees {
namespace {

template <class T>
using Key = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

// Unsigned keys in the order of the numbers.
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

// Least-significant-digit radix sort with digits of 11 bits; passes in which all digits agree are skipped.
template <class K, class P>
void radix_sort(std::vector<K>& keys, std::vector<P>& payload) {
  constexpr int digit = 11, size = 1 << digit, passes = (8 * sizeof(K) + digit - 1) / digit;
  const std::size_t n = keys.size();
  const bool carry = !payload.empty();
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

// Cuts the distinct values (increasing, with their weights) into bins of nearly equal weight.
template <class T>
void cut(const std::vector<T>& values, const std::vector<double>& weights, int max_bins, Feature& f) {
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
      // Take the next value if that brings the bin nearer to its share, and leave one value for every bin to come.
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

template <class T>
void find_edges(const Table<T>& x, index_t j, const double* weight, const std::vector<std::uint32_t>& sample,
                int max_bins, Feature& f) {
  std::vector<Key<T>> keys;
  std::vector<double> w;
  keys.reserve(sample.size());
  if (weight) w.reserve(sample.size());
  for (const std::uint32_t i : sample) {
    const T v = x.at(i, j);
    if (v != v) {
      f.missing = true;
      continue;
    }
    keys.push_back(to_key(v));
    if (weight) w.push_back(weight[i]);
  }
  radix_sort(keys, w);
  std::vector<T> values;
  std::vector<double> weights;
  for (std::size_t i = 0; i < keys.size();) {
    double total = 0;
    const Key<T> k = keys[i];
    for (; i < keys.size() && keys[i] == k; ++i) total += weight ? w[i] : 1.0;
    values.push_back(from_key<T>(k));
    weights.push_back(total);
  }
  cut(values, weights, max_bins, f);
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

}  // namespace

double split_threshold(const Feature& feature, int left, int right) {
  const double a = feature.high[left], b = feature.low[right];
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

template <class T>
Bins make_bins(const Table<T>& x, const double* weight, const std::vector<std::uint8_t>& categorical,
               const BinOptions& options) {
  Bins bins;
  bins.rows = x.rows, bins.cols = x.cols;
  bins.features.resize(x.cols);
  const std::vector<std::uint32_t> sample = sample_rows(x.rows, options);
  parallel_for(x.cols, [&](index_t j) {
    Feature& f = bins.features[j];
    f.categorical = categorical[j];
    if (!f.categorical) find_edges(x, j, weight, sample, options.max_bins, f);
  });

  bins.groups = (x.cols + kGroup - 1) / kGroup;
  for (index_t g = 0; g <= bins.groups; ++g) bins.group_begin.push_back(range_begin(x.cols, bins.groups, g));
  std::vector<index_t> group_of(x.cols);
  for (index_t g = 0; g < bins.groups; ++g)
    for (index_t j = bins.group_begin[g]; j < bins.group_begin[g + 1]; ++j) group_of[j] = g;

  std::vector<T> edges(x.cols * kBins, std::numeric_limits<T>::infinity());
  for (index_t j = 0; j < x.cols; ++j)
    std::transform(bins.features[j].edge.begin(), bins.features[j].edge.end(), edges.begin() + j * kBins,
                   round_down<T>);
  bins.by_group.assign(bins.groups * x.rows * kGroup, 0);
  bins.by_col.resize(x.cols * x.rows);
  constexpr index_t block = 512;
  const index_t parts = std::max<index_t>(1, (x.rows + block - 1) / block);
  std::vector<std::uint8_t> missing(parts * x.cols, 0), largest(parts * x.cols, 0);
  parallel_for(parts, [&](index_t part) {
    const index_t begin = part * block, m = std::min(block, x.rows - begin);
    T values[block];
    for (index_t j = 0; j < x.cols; ++j) {
      for (index_t i = 0; i < m; ++i) values[i] = x.at(begin + i, j);
      std::uint8_t* column = bins.by_col.data() + j * x.rows + begin;
      if (bins.features[j].categorical) {
        for (index_t i = 0; i < m; ++i)
          column[i] = values[i] == values[i] ? static_cast<std::uint8_t>(values[i]) : kMissing;
      } else {
        search(values, m, edges.data() + j * kBins, column);
      }
      std::uint8_t any = 0, top = 0;
      for (index_t i = 0; i < m; ++i) {
        any |= column[i] == kMissing;
        top = std::max<std::uint8_t>(top, column[i] == kMissing ? 0 : column[i]);
      }
      missing[part * x.cols + j] = any;
      largest[part * x.cols + j] = top;
      const index_t g = group_of[j];
      std::uint8_t* grouped = bins.by_group.data() + (g * x.rows + begin) * kGroup + (j - bins.group_begin[g]);
      for (index_t i = 0; i < m; ++i) grouped[i * kGroup] = column[i];
    }
  });
  for (index_t part = 0; part < parts; ++part)
    for (index_t j = 0; j < x.cols; ++j) {
      Feature& f = bins.features[j];
      f.missing |= missing[part * x.cols + j] != 0;
      if (f.categorical) f.bins = std::max(f.bins, largest[part * x.cols + j] + 1);
    }
  return bins;
}

template Bins make_bins(const Table<float>&, const double*, const std::vector<std::uint8_t>&, const BinOptions&);
template Bins make_bins(const Table<double>&, const double*, const std::vector<std::uint8_t>&, const BinOptions&);

}  // namespace hinge::trees
