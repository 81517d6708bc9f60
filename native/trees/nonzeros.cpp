#include "trees/nonzeros.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/pool.hpp"
#include "core/random.hpp"
#include "trees/radix.hpp"

namespace hinge::trees {
namespace {

// The nonzero values of a column in increasing order with their rows, and the rows whose value is missing.
template <class T>
struct Column {
  std::vector<Key<T>> keys;
  std::vector<std::uint32_t> rows, absent;
  index_t zeros;

  Column(const Compressed<T>& x, index_t j) {
    for (std::int64_t k = x.begin[j]; k < x.begin[j + 1]; ++k) {
      const auto row = static_cast<std::uint32_t>(x.row[k]);
      if (x.data[k] != x.data[k])
        absent.push_back(row);
      else if (to_key(x.data[k]) != to_key(T(0)))
        keys.push_back(to_key(x.data[k])), rows.push_back(row);
    }
    zeros = x.rows - static_cast<index_t>(keys.size() + absent.size());
    radix_sort(keys, rows);
  }
};

// Concatenates the columns' entries; `make` returns those of one column and sets its code of zero and its feature.
template <class Make>
Nonzeros join(index_t rows, index_t cols, const Make& make) {
  Nonzeros out;
  out.rows = rows, out.cols = cols;
  out.features.resize(cols), out.zero.resize(cols), out.begin.resize(cols + 1);
  std::vector<std::vector<Sorted::Entry>> columns(cols);
  parallel_for(cols, [&](index_t j) { columns[j] = make(j, out.features[j], out.zero[j]); });
  for (index_t j = 0; j < cols; ++j) out.begin[j + 1] = out.begin[j] + static_cast<index_t>(columns[j].size());
  out.entries.reserve(out.begin[cols]);
  for (std::vector<Sorted::Entry>& column : columns) {
    out.entries.insert(out.entries.end(), column.begin(), column.end());
    column = {};
  }
  return out;
}

}  // namespace

template <class T>
Nonzeros sort_nonzeros(const Compressed<T>& x) {
  Nonzeros out = join(x.rows, x.cols, [&](index_t j, Feature& f, std::uint32_t& zero) {
    const Column<T> column(x, j);
    std::vector<Sorted::Entry> entries;
    bool placed = column.zeros == 0;
    const auto place = [&] {
      zero = static_cast<std::uint32_t>(f.low.size());
      f.low.push_back(0.0);
      placed = true;
    };
    for (std::size_t i = 0; i < column.keys.size(); ++i) {
      if (!placed && column.keys[i] > to_key(T(0))) place();
      if (i == 0 || column.keys[i] != column.keys[i - 1]) f.low.push_back(from_key<T>(column.keys[i]));
      entries.push_back({column.rows[i], static_cast<std::uint32_t>(f.low.size() - 1)});
    }
    if (!placed) place();
    f.high = f.low;
    f.missing = !column.absent.empty();
    f.bins = static_cast<int>(std::max<std::size_t>(1, f.low.size()));
    for (const std::uint32_t row : column.absent) entries.push_back({row, kAbsent});
    return entries;
  });
  if (x.cols == 0) return out;
  // Rows in the order of the first column, as in a dense table.
  std::vector<std::uint8_t> nonzero(x.rows, 0);
  for (index_t k = 0; k < out.begin[1]; ++k) nonzero[out.entries[k].row] = 1;
  index_t k = 0;
  for (; k < out.begin[1] && out.entries[k].code < out.zero[0]; ++k) out.order.push_back(out.entries[k].row);
  for (index_t i = 0; i < x.rows; ++i)
    if (!nonzero[i]) out.order.push_back(static_cast<std::uint32_t>(i));
  for (; k < out.begin[1]; ++k) out.order.push_back(out.entries[k].row);
  return out;
}
template Nonzeros sort_nonzeros(const Compressed<float>&);
template Nonzeros sort_nonzeros(const Compressed<double>&);

template <class T>
Nonzeros bin_nonzeros(const Compressed<T>& x, const double* weight, const BinOptions& options) {
  const std::vector<std::uint32_t> sample = sample_rows(x.rows, options);
  std::vector<std::uint8_t> drawn(x.rows, 0);
  for (const std::uint32_t i : sample) drawn[i] = 1;
  Nonzeros out = join(x.rows, x.cols, [&](index_t j, Feature& f, std::uint32_t& zero) {
    const Column<T> column(x, j);
    std::vector<T> values;
    std::vector<double> weights;
    std::vector<std::uint8_t> other;  // rows whose value is not zero
    if (weight) {
      other.assign(x.rows, 0);
      for (const std::uint32_t row : column.rows) other[row] = 1;
      for (const std::uint32_t row : column.absent) other[row] = 1;
    }
    auto left = static_cast<index_t>(sample.size());  // sampled rows with value zero
    for (const std::uint32_t row : column.rows) left -= drawn[row];
    for (const std::uint32_t row : column.absent) left -= drawn[row];
    bool placed = left == 0;
    const auto place = [&] {
      double total = 0;
      for (const std::uint32_t i : sample)
        if (weight && !other[i]) total += weight[i];
      values.push_back(0), weights.push_back(weight ? total : static_cast<double>(left));
      placed = true;
    };
    for (std::size_t i = 0; i < column.keys.size(); ++i) {
      if (!placed && column.keys[i] > to_key(T(0))) place();
      if (!drawn[column.rows[i]]) continue;
      const T value = from_key<T>(column.keys[i]);
      if (values.empty() || values.back() != value) values.push_back(value), weights.push_back(0);
      weights.back() += weight ? weight[column.rows[i]] : 1.0;
    }
    if (!placed) place();
    cut_bins(values, weights, options.max_bins, f);
    f.missing = !column.absent.empty();
    const auto bin = [&](double v) {
      return static_cast<std::uint32_t>(std::lower_bound(f.edge.begin(), f.edge.end(), v) - f.edge.begin());
    };
    zero = bin(0);
    std::vector<Sorted::Entry> entries;
    for (std::size_t i = 0; i < column.keys.size(); ++i)
      if (const std::uint32_t code = bin(from_key<T>(column.keys[i])); code != zero)
        entries.push_back({column.rows[i], code});
    for (const std::uint32_t row : column.absent) entries.push_back({row, kAbsent});
    return entries;
  });
  out.order.resize(x.rows);
  std::iota(out.order.begin(), out.order.end(), 0u);
  return out;
}
template Nonzeros bin_nonzeros(const Compressed<float>&, const double*, const BinOptions&);
template Nonzeros bin_nonzeros(const Compressed<double>&, const double*, const BinOptions&);

template <class T>
std::vector<std::uint32_t> order_by_content(const Compressed<T>& x, const double* y) {
  std::vector<std::uint64_t> key(x.rows);
  for (index_t i = 0; i < x.rows; ++i) key[i] = content_key(y[i]);
  const index_t parts = parts_for(x.rows, 1024);
  parallel_for(parts, [&](index_t part) {
    const index_t begin = range_begin(x.rows, parts, part), end = range_begin(x.rows, parts, part + 1);
    std::vector<T> values(end - begin);
    for (index_t j = 0; j < x.cols; ++j) {
      std::fill(values.begin(), values.end(), T(0));
      const std::int32_t *first = x.row + x.begin[j], *last = x.row + x.begin[j + 1];
      for (const std::int32_t* at = std::lower_bound(first, last, begin); at < last && *at < end; ++at)
        values[*at - begin] = x.data[at - x.row];
      for (index_t i = begin; i < end; ++i) key[i] = content_key(key[i], values[i - begin]);
    }
  });
  return order_by_key(key);
}
template std::vector<std::uint32_t> order_by_content(const Compressed<float>&, const double*);
template std::vector<std::uint32_t> order_by_content(const Compressed<double>&, const double*);

}  // namespace hinge::trees
