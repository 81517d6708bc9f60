#include "generative/class_statistics.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "core/blocks.hpp"
#include "core/gram.hpp"
#include "core/pool.hpp"
#include "core/vec.hpp"
#include "generative/presence.hpp"
#include "generative/scatter.hpp"

namespace hinge {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> class_weights(const std::int32_t* codes, const double* w, index_t n, index_t k) {
  std::vector<double> weight(k, 0.0);
  for (index_t i = 0; i < n; ++i) weight[codes[i]] += w ? w[i] : 1.0;
  return weight;
}

// Number of parts of a pass in which each part has its own table: few if the tables are large compared with the work.
index_t table_parts(index_t work, index_t table) { return sum_parts(work, 1 << 15, table); }

void add_tables(const std::vector<std::vector<double>>& tables, std::vector<double>& out) {
  const index_t size = static_cast<index_t>(out.size()), parts = parts_for(size, 1 << 14);
  parallel_for(parts, [&](index_t p) {
    const index_t b = range_begin(size, parts, p), e = range_begin(size, parts, p + 1);
    for (const auto& t : tables) vec::axpy(1.0, t.data() + b, out.data() + b, e - b);
  });
}

// ------------------------------------------------------------------------------------------------- dense: moments

// Moments of the rows processed so far. A block adds its moments; only classes that occur in it are touched.
struct Moments {
  index_t k, d;
  std::vector<double> weight, mean, square;
  std::vector<double> block_weight, block_mean, block_square;
  std::vector<std::int32_t> present;
  std::vector<char> is_present;

  Moments(index_t k, index_t d)
      : k(k),
        d(d),
        weight(k, 0.0),
        mean(k * d, 0.0),
        square(k * d, 0.0),
        block_weight(k, 0.0),
        block_mean(k * d, 0.0),
        block_square(k * d, 0.0),
        is_present(k, 0) {}
};

HINGE_HOT void merge(double wa, double wb, const double* __restrict mb, const double* __restrict sb,
                     double* __restrict ma, double* __restrict sa, index_t d) {
  const double share = wb / (wa + wb), cross = wa * share;
  for (index_t j = 0; j < d; ++j) {
    const double delta = mb[j] - ma[j];
    ma[j] += delta * share;
    sa[j] += sb[j] + delta * delta * cross;
  }
}

HINGE_HOT void take_block(Moments& m, Block x, index_t rows, const std::int32_t* __restrict codes, const double* w) {
  const index_t d = m.d;
  m.present.clear();
  for (index_t i = 0; i < rows; ++i) {
    const std::int32_t c = codes[i];
    if (!m.is_present[c]) {
      m.is_present[c] = 1;
      m.present.push_back(c);
      std::fill_n(m.block_mean.begin() + c * d, d, 0.0);
      std::fill_n(m.block_square.begin() + c * d, d, 0.0);
    }
    const double wi = w ? w[i] : 1.0;
    m.block_weight[c] += wi;
    const double* __restrict row = x.data + i * x.stride;
    double* __restrict sum = m.block_mean.data() + c * d;
    if (w)
      for (index_t j = 0; j < d; ++j) sum[j] += wi * row[j];
    else
      for (index_t j = 0; j < d; ++j) sum[j] += row[j];
  }
  for (const std::int32_t c : m.present) {
    const double scale = m.block_weight[c] > 0 ? 1.0 / m.block_weight[c] : 0.0;
    for (index_t j = 0; j < d; ++j) m.block_mean[c * d + j] *= scale;
  }
  for (index_t i = 0; i < rows; ++i) {
    const std::int32_t c = codes[i];
    const double wi = w ? w[i] : 1.0;
    const double* __restrict row = x.data + i * x.stride;
    const double* __restrict mean = m.block_mean.data() + c * d;
    double* __restrict square = m.block_square.data() + c * d;
    for (index_t j = 0; j < d; ++j) {
      const double t = row[j] - mean[j];
      square[j] += wi * t * t;
    }
  }
  for (const std::int32_t c : m.present) {
    if (m.block_weight[c] > 0)
      merge(m.weight[c], m.block_weight[c], m.block_mean.data() + c * d, m.block_square.data() + c * d,
            m.mean.data() + c * d, m.square.data() + c * d, d);
    m.weight[c] += m.block_weight[c];
    m.block_weight[c] = 0.0;
    m.is_present[c] = 0;
  }
}

ClassMoments dense_moments(const Design& X, const std::int32_t* codes, const double* w, index_t k) {
  const index_t n = X.rows(), d = X.cols(), parts = table_parts(n * d, k * d), block = RowBlocks::rows_for(d);
  const RowBlocks blocks(X);
  std::vector<ClassMoments> partial(parts);
  parallel_for(parts, [&](index_t p) {
    const index_t begin = range_begin(n, parts, p), end = range_begin(n, parts, p + 1);
    std::vector<double> buffer(block * d);
    Moments moments(k, d);
    const auto take = may_throw(&take_block);
    for (index_t i = begin; i < end; i += block) {
      const index_t e = std::min(i + block, end);
      take(moments, blocks.at(i, e, buffer.data()), e - i, codes + i, w ? w + i : nullptr);
    }
    partial[p] = {std::move(moments.weight), std::move(moments.mean), std::move(moments.square)};
  });
  ClassMoments all = std::move(partial[0]);
  for (index_t p = 1; p < parts; ++p)
    for (index_t c = 0; c < k; ++c) {
      if (partial[p].weight[c] > 0)
        merge(all.weight[c], partial[p].weight[c], partial[p].mean.data() + c * d, partial[p].square.data() + c * d,
              all.mean.data() + c * d, all.square.data() + c * d, d);
      all.weight[c] += partial[p].weight[c];
    }
  return all;
}

// ---------------------------------------------------------------------------------------------------- dense: sums

template <bool binary>
HINGE_HOT double sum_block(Block x, index_t rows, index_t d, const std::int32_t* __restrict codes, const double* w,
                           double threshold, double* __restrict table) {
  double least = kInfinity;
  for (index_t i = 0; i < rows; ++i) {
    const double wi = w ? w[i] : 1.0;
    const double* __restrict row = x.data + i * x.stride;
    double* __restrict sum = table + codes[i] * d;
    for (index_t j = 0; j < d; ++j) {
      const double v = row[j];
      sum[j] += wi * (binary ? presence(v, threshold) : v);
      least = v < least ? v : least;
    }
  }
  return least;
}

ClassSums dense_sums(const Design& X, const std::int32_t* codes, const double* w, index_t k, const double* threshold) {
  const index_t n = X.rows(), d = X.cols(), parts = table_parts(n * d, k * d), block = RowBlocks::rows_for(d);
  const RowBlocks blocks(X);
  std::vector<std::vector<double>> tables(parts);
  std::vector<double> least(parts, kInfinity);
  parallel_for(parts, [&](index_t p) {
    const index_t begin = range_begin(n, parts, p), end = range_begin(n, parts, p + 1);
    std::vector<double> buffer(block * d);
    tables[p].assign(k * d, 0.0);
    for (index_t i = begin; i < end; i += block) {
      const index_t e = std::min(i + block, end);
      const Block x = blocks.at(i, e, buffer.data());
      const double* weights = w ? w + i : nullptr;
      const double low = threshold ? sum_block<true>(x, e - i, d, codes + i, weights, *threshold, tables[p].data())
                                   : sum_block<false>(x, e - i, d, codes + i, weights, 0.0, tables[p].data());
      least[p] = std::min(least[p], low);
    }
  });
  ClassSums all{class_weights(codes, w, n, k), std::vector<double>(k * d, 0.0),
                *std::min_element(least.begin(), least.end())};
  add_tables(tables, all.sum);
  return all;
}

// --------------------------------------------------------------------------------------------------------- sparse

// The contribution of a stored entry x of weight w to a table whose entry for its class and column is at `at`.
struct Entries {
  HINGE_INLINE double operator()(double w, double x, index_t) const { return w * x; }
};
struct Occurrences {
  HINGE_INLINE double operator()(double w, double, index_t) const { return w; }
};
struct Deviations {
  const double* mean;
  HINGE_INLINE double operator()(double w, double x, index_t at) const {
    const double t = x - mean[at];
    return w * t * t;
  }
};
struct Presences {
  double threshold;
  HINGE_INLINE double operator()(double w, double x, index_t) const { return w * presence(x, threshold); }
};

// Rows sorted by class.
struct RowsByClass {
  std::vector<index_t> first, order,
      stored;  // first row of a class; rows; stored entries before a position in the order
};

// sum[j] += map(w, x, c * d + j) over the rows between two positions in the order, all of class c.
using AddRows = std::function<void(index_t from, index_t to, index_t c, double* sum)>;

template <class View, class Map>
AddRows add_rows(const View& X, index_t n, index_t d, const double* w, const std::vector<index_t>& order,
                 const Map& map) {
  return [=, &order](index_t from, index_t to, index_t c, double* sum) {
    for (index_t t = from; t < to; ++t) {
      if (t + 4 < n) X.prefetch(order[t + 4]);
      const index_t i = order[t];
      const double wi = w ? w[i] : 1.0;
      for (auto e = X.indptr[i]; e < X.indptr[i + 1]; ++e) {
        const index_t j = static_cast<index_t>(X.indices[e]);
        sum[j] += map(wi, static_cast<double>(X.data[e]), c * d + j);
      }
    }
  };
}

RowsByClass rows_by_class(const std::function<index_t(index_t)>& row_size, index_t n, const std::int32_t* codes,
                          index_t k) {
  RowsByClass rows{std::vector<index_t>(k + 1, 0), std::vector<index_t>(n), std::vector<index_t>(n + 1, 0)};
  for (index_t i = 0; i < n; ++i) ++rows.first[codes[i] + 1];
  for (index_t c = 0; c < k; ++c) rows.first[c + 1] += rows.first[c];
  std::vector<index_t> at(rows.first.begin(), rows.first.end() - 1);
  for (index_t i = 0; i < n; ++i) rows.order[at[codes[i]]++] = i;
  for (index_t t = 0; t < n; ++t) rows.stored[t + 1] = rows.stored[t] + row_size(rows.order[t]);
  return rows;
}

// Rows are processed class by class, so that one row of the table is in the cache at a time, and divided into parts by
// stored entries; a class that spans several parts is summed in each, and the sums are added.
void pass_rows(const RowsByClass& rows, index_t n, index_t d, const std::int32_t* codes, const AddRows& add,
               double* out) {
  const auto& [first, order, stored] = rows;
  const index_t parts = sum_parts(stored[n], 1 << 15, d);
  const auto cut = [&, &stored = stored](index_t p) {
    if (p == parts) return n;
    return static_cast<index_t>(std::lower_bound(stored.begin(), stored.end(), stored[n] * p / parts) - stored.begin());
  };
  struct Piece {
    index_t cls;
    std::vector<double> sum;
  };
  std::vector<std::vector<Piece>> pieces(parts);
  parallel_for(parts, [&, &first = first, &order = order](index_t p) {
    const index_t end = cut(p + 1);
    for (index_t t = cut(p); t < end;) {
      const index_t c = codes[order[t]], stop = std::min(end, first[c + 1]);
      double* sum = out + c * d;
      if (t != first[c] || stop != first[c + 1]) {
        pieces[p].push_back({c, std::vector<double>(d, 0.0)});
        sum = pieces[p].back().sum.data();
      }
      add(t, stop, c, sum);
      t = stop;
    }
  });
  for (const auto& part : pieces)
    for (const Piece& piece : part) vec::axpy(1.0, piece.sum.data(), out + piece.cls * d, d);
}

// sum[c] += map(w, x, c * d + j) over column j.
using AddColumn = std::function<void(index_t j, double* sum)>;

template <class View, class Map>
AddColumn add_column(const View& X, index_t d, const std::int32_t* codes, const double* w, const Map& map) {
  return [=](index_t j, double* sum) {
    X.each(j, [&](index_t i, double x) { sum[codes[i]] += map(w ? w[i] : 1.0, x, codes[i] * d + j); });
  };
}

void pass_columns(index_t stored, index_t d, index_t k, const AddColumn& add, double* out) {
  const index_t parts = parts_for(stored, 1 << 15);
  parallel_for(parts, [&](index_t p) {
    std::vector<double> sum(k);
    for (index_t j = range_begin(d, parts, p); j < range_begin(d, parts, p + 1); ++j) {
      std::fill(sum.begin(), sum.end(), 0.0);
      add(j, sum.data());
      for (index_t c = 0; c < k; ++c) out[c * d + j] = sum[c];
    }
  });
}

// out[c, j] += map(w, x, c * d + j) over the stored entries.
template <class Map>
std::vector<double> sparse_pass(const Design& X, const std::int32_t* codes, const double* w, index_t k,
                                const Map& map) {
  const index_t n = X.rows(), d = X.cols();
  std::vector<double> out(k * d, 0.0);
  std::visit(
      [&]<class View>(const View& view) {
        if constexpr (requires { view.indptr; }) {
          const auto size = [&](index_t i) { return static_cast<index_t>(view.indptr[i + 1] - view.indptr[i]); };
          const RowsByClass rows = rows_by_class(size, n, codes, k);
          pass_rows(rows, n, d, codes, add_rows(view, n, d, w, rows.order, map), out.data());
        }
      },
      X.row_view());
  std::visit(
      [&]<class View>(const View& view) {
        if constexpr (requires { view.indptr; })
          pass_columns(static_cast<index_t>(view.indptr[d]), d, k, add_column(view, d, codes, w, map), out.data());
      },
      X.column_view());
  return out;
}

// The smallest stored entry.
double sparse_least(const Design& X) {
  const auto look = [&]<class View>(const View& view) -> double {
    if constexpr (requires { view.indptr; }) {
      const index_t stored = X.stored(), parts = parts_for(stored, 1 << 16);
      std::vector<double> least(parts, kInfinity);
      parallel_for(parts, [&](index_t p) {
        double low = kInfinity;
        const auto* data = view.data + view.indptr[0];
        for (index_t e = range_begin(stored, parts, p); e < range_begin(stored, parts, p + 1); ++e)
          low = std::min(low, static_cast<double>(data[e]));
        least[p] = low;
      });
      return *std::min_element(least.begin(), least.end());
    } else {
      return kInfinity;
    }
  };
  return std::min(std::visit(look, X.row_view()), std::visit(look, X.column_view()));
}

}  // namespace

ClassMoments class_moments(const Design& X, const std::int32_t* codes, const double* w, index_t k) {
  if (!X.sparse()) return dense_moments(X, codes, w, k);
  const index_t d = X.cols();
  ClassMoments all{class_weights(codes, w, X.rows(), k), {}, {}};
  all.mean = sparse_pass(X, codes, w, k, Entries{});
  for (index_t c = 0; c < k; ++c)
    for (index_t j = 0; j < d; ++j) all.mean[c * d + j] *= all.weight[c] > 0 ? 1.0 / all.weight[c] : 0.0;
  const std::vector<double> stored = sparse_pass(X, codes, w, k, Occurrences{});
  all.square = sparse_pass(X, codes, w, k, Deviations{all.mean.data()});
  for (index_t c = 0; c < k; ++c)  // entries that are not stored are zero
    for (index_t at = c * d; at < (c + 1) * d; ++at)
      all.square[at] += std::max(0.0, all.weight[c] - stored[at]) * all.mean[at] * all.mean[at];
  return all;
}

ClassSums class_sums(const Design& X, const std::int32_t* codes, const double* w, index_t k, const double* threshold) {
  if (!X.sparse()) return dense_sums(X, codes, w, k, threshold);
  ClassSums all{class_weights(codes, w, X.rows(), k), {}, sparse_least(X)};
  if (threshold)
    all.sum = sparse_pass(X, codes, w, k, Presences{*threshold});
  else
    all.sum = sparse_pass(X, codes, w, k, Entries{});
  return all;
}

std::vector<double> class_categories(const Design& X, const std::int32_t* codes, const double* w, index_t k,
                                     const index_t* start) {
  const index_t n = X.rows(), d = X.cols(), size = start[d] * k, parts = table_parts(n * d, size);
  const index_t block = RowBlocks::rows_for(d);
  const RowBlocks blocks(X);
  std::vector<std::vector<double>> tables(parts);
  parallel_for(parts, [&](index_t p) {
    const index_t begin = range_begin(n, parts, p), end = range_begin(n, parts, p + 1);
    std::vector<double> buffer(block * d);
    tables[p].assign(size, 0.0);
    for (index_t b = begin; b < end; b += block) {
      const index_t e = std::min(b + block, end);
      const Block x = blocks.at(b, e, buffer.data());
      for (index_t i = b; i < e; ++i) {
        const double wi = w ? w[i] : 1.0;
        const double* row = x.data + (i - b) * x.stride;
        for (index_t j = 0; j < d; ++j)
          if (row[j] >= 0 && row[j] < static_cast<double>(start[j + 1] - start[j]))
            tables[p][(start[j] + static_cast<index_t>(row[j])) * k + codes[i]] += wi;
      }
    }
  });
  std::vector<double> out(size, 0.0);
  add_tables(tables, out);
  return out;
}

std::vector<double> class_scatter(const Design& X, const std::int32_t* codes, const double* w, index_t k,
                                  const double* mean, bool pooled) {
  const index_t n = X.rows(), d = X.cols(), tables = pooled ? 1 : k, block = RowBlocks::rows_for(d);
  const index_t parts = sum_parts(n * d * d, 1 << 18, 2 * tables * d * d);
  const RowBlocks blocks(X);
  std::vector<std::vector<double>> partial(parts);
  parallel_for(parts, [&](index_t p) {
    const index_t begin = range_begin(n, parts, p), end = range_begin(n, parts, p + 1);
    std::vector<double> buffer(block * d);
    std::vector<Scatter> scatters(tables, Scatter(d));
    for (index_t b = begin; b < end; b += block) {
      const index_t e = std::min(b + block, end);
      const Block x = blocks.at(b, e, buffer.data());
      for (index_t i = b; i < e; ++i)
        if (const double wi = w ? w[i] : 1.0; wi > 0)
          scatters[pooled ? 0 : codes[i]].add(x.data + (i - b) * x.stride, mean + codes[i] * d, std::sqrt(wi));
    }
    partial[p].reserve(tables * d * d);
    for (Scatter& s : scatters) {
      s.flush();
      partial[p].insert(partial[p].end(), s.sum().begin(), s.sum().end());
    }
  });
  std::vector<double> out(tables * d * d, 0.0);
  add_tables(partial, out);
  for (index_t t = 0; t < tables; ++t) mirror_lower(out.data() + t * d * d, d);
  return out;
}

}  // namespace hinge
