// Sorting columns and drawing bootstrap samples.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/pool.hpp"
#include "trees/cart.hpp"
#include "trees/radix.hpp"

namespace hinge::trees {

template <class T>
Sorted sort_columns(const Table<T>& x, const std::vector<std::uint8_t>& categorical) {
  Sorted s;
  s.rows = x.rows, s.cols = x.cols;
  s.features.resize(x.cols);
  s.entries.resize(x.rows * x.cols);
  parallel_for(x.cols, [&](index_t j) {
    Feature& f = s.features[j];
    f.categorical = categorical[j];
    std::vector<Key<T>> keys;
    std::vector<std::uint32_t> rows, absent;
    keys.reserve(x.rows), rows.reserve(x.rows);
    for (index_t i = 0; i < x.rows; ++i) {
      const T v = x.at(i, j);
      if (v == v)
        keys.push_back(to_key(v)), rows.push_back(static_cast<std::uint32_t>(i));
      else
        absent.push_back(static_cast<std::uint32_t>(i));
    }
    radix_sort(keys, rows);  // stable: rows of equal values stay in order
    Sorted::Entry* out = s.entries.data() + j * x.rows;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const T value = from_key<T>(keys[i]);
      if (f.categorical) {
        *out++ = {rows[i], static_cast<std::uint32_t>(value)};
        continue;
      }
      if (i == 0 || keys[i] != keys[i - 1]) f.low.push_back(value);
      *out++ = {rows[i], static_cast<std::uint32_t>(f.low.size() - 1)};
    }
    f.high = f.low;
    f.missing = !absent.empty();
    f.bins = static_cast<int>(f.categorical ? 255 : std::max<std::size_t>(1, f.low.size()));
    for (const std::uint32_t row : absent) *out++ = {row, kAbsent};
  });
  return s;
}
template Sorted sort_columns(const Table<float>&, const std::vector<std::uint8_t>&);
template Sorted sort_columns(const Table<double>&, const std::vector<std::uint8_t>&);

std::vector<std::uint32_t> order_by_key(const std::vector<std::uint64_t>& key) {
  std::vector<std::uint32_t> order(key.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return key[a] < key[b] || (key[a] == key[b] && a < b); });
  return order;
}

template <class T>
std::vector<std::uint64_t> content_keys(const Table<T>& x, const double* y) {
  std::vector<std::uint64_t> key(x.rows);
  const index_t parts = parts_for(x.rows, 1024);
  parallel_for(parts, [&](index_t part) {
    for (index_t i = range_begin(x.rows, parts, part); i < range_begin(x.rows, parts, part + 1); ++i) {
      std::uint64_t k = content_key(y[i]);
      for (index_t j = 0; j < x.cols; ++j) k = content_key(k, x.at(i, j));
      key[i] = k;
    }
  });
  return key;
}
template std::vector<std::uint64_t> content_keys(const Table<float>&, const double*);
template std::vector<std::uint64_t> content_keys(const Table<double>&, const double*);

std::vector<double> bootstrap(const std::vector<std::uint32_t>& order, const double* count, index_t draws,
                              std::uint64_t seed, std::uint64_t tree) {
  std::vector<double> drawn(order.size(), 0.0);
  std::vector<std::uint32_t> copies;
  if (count) {
    for (const std::uint32_t row : order) copies.insert(copies.end(), static_cast<std::size_t>(count[row]), row);
  }
  const std::vector<std::uint32_t>& from = count ? copies : order;
  Random random(seed, tree);
  for (index_t i = 0; i < draws; ++i) drawn[from[random.below(static_cast<index_t>(from.size()))]] += 1.0;
  return drawn;
}

void balance_classes(std::vector<double>& weight, const double* y, int targets, const std::vector<int>& classes) {
  const std::vector<double> drawn = weight;
  int column = 0;
  for (const int k : classes) {
    // The class of row i: its code, or the indicator that is set.
    const auto code = [&](std::size_t i) {
      if (targets == 1) return static_cast<std::size_t>(y[i]);
      const double* row = y + i * static_cast<std::size_t>(targets) + column;
      return static_cast<std::size_t>(std::max_element(row, row + k) - row);
    };
    std::vector<double> sums(static_cast<std::size_t>(k));
    for (std::size_t i = 0; i < drawn.size(); ++i) sums[code(i)] += drawn[i];
    double total = 0, present = 0;
    for (const double s : sums) total += s, present += s > 0;
    for (std::size_t i = 0; i < drawn.size(); ++i)
      if (drawn[i] > 0) weight[i] *= total / (present * sums[code(i)]);
    column += k;
  }
}

}  // namespace hinge::trees
