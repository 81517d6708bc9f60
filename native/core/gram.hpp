// G = sum over row blocks of B'B, where a block B (rows x d) of scaled data is written by the storage.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/blas.hpp"
#include "core/gram_outer.hpp"
#include "core/row_products.hpp"
#include "core/rows.hpp"

namespace hinge {

// Up to this many columns each part has its own G, and the parts are added; with more columns the parts are tiles of G.
// A partial G of 512^2 doubles is 2 MB and stays in the second-level cache.
constexpr index_t kGramTiled = 512;
constexpr index_t kGramTile = 128;  // 784 columns make 28 tiles, more than one for each of 16 threads

inline void mirror_lower(double* G, index_t d) {
  // Square tiles stay in cache; a row of tiles is one piece of work.
  constexpr index_t kTile = 64;
  const index_t tiles = (d + kTile - 1) / kTile, pieces = d > 4 * kTile ? tiles : 1;
  parallel_for(pieces, [&](index_t p) {
    for (index_t a = range_begin(tiles, pieces, p); a < range_begin(tiles, pieces, p + 1); ++a)
      for (index_t b = 0; b <= a; ++b)
        for (index_t i = a * kTile; i < std::min(d, (a + 1) * kTile); ++i)
          for (index_t j = b * kTile; j < std::min(i, (b + 1) * kTile); ++j) G[i * d + j] = G[j * d + i];
  });
}

// G = X' diag(h) X, where fill(rows, m, block) writes m rows of X, each scaled by its factor, as a d x m column-major
// block. Rows with h = 0 are skipped, so the cost is that of the other rows.
struct ScaledRow {
  index_t row;
  double factor;  // sqrt(h)
};

inline std::vector<ScaledRow> rows_that_count(index_t total, const double* h) {
  std::vector<ScaledRow> kept;
  kept.reserve(total);
  for (index_t i = 0; i < total; ++i)
    if (!h || h[i] > 0) kept.push_back({i, h ? std::sqrt(h[i]) : 1.0});
  return kept;
}

// The same by OuterSum, for rows at any address (see row_products.hpp); with y, of [X 1 y] (d counts all of them).
template <class Rows>
void outer_gram(const Rows& row, index_t n, index_t d, const double* h, const double* y, double* G) {
  const index_t parts = sum_parts(n * d, 1 << 15, d * d);
  std::vector<std::vector<double>> partial(parts);
  parallel_for(parts, [&](index_t part) {
    OuterSum sum(d);
    sum.add(row, range_begin(n, parts, part), range_begin(n, parts, part + 1), h, y);
    partial[part].assign(d * d, 0.0);
    sum.finish(partial[part].data());
  });
  add_parts(partial, G, d * d);
  mirror_lower(G, d);
}

template <class T, class Fill>
void blocked_gram(index_t total, index_t d, const double* h, const Fill& fill_rows, double* G) {
  const std::vector<ScaledRow> kept = rows_that_count(total, h);
  const index_t n = static_cast<index_t>(kept.size());
  const auto fill = [&](index_t begin, index_t end, T* out) { fill_rows(kept.data() + begin, end - begin, out); };
  std::fill(G, G + d * d, 0.0);
  const index_t block = std::clamp<index_t>((index_t{1} << 19) / (d * static_cast<index_t>(sizeof(T))), 64, 1024);
  if (d <= kGramTiled) {
    const index_t parts = sum_parts(n * d, 1 << 15, d * d);
    std::vector<std::vector<double>> partial(parts);
    parallel_for(parts, [&](index_t part) {
      const index_t begin = range_begin(n, parts, part), end = range_begin(n, parts, part + 1);
      std::vector<T> buffer(block * d), product(d * d, T(0));
      partial[part].assign(d * d, 0.0);
      for (index_t i = begin; i < end; i += block) {
        const index_t m = std::min(block, end - i);
        fill(i, i + m, buffer.data());
        blas::syrk('L', 'N', d, m, T(1), buffer.data(), d, std::is_same_v<T, double> ? T(1) : T(0), product.data(), d);
        if constexpr (!std::is_same_v<T, double>)
          for (index_t e = 0; e < d * d; ++e) partial[part][e] += static_cast<double>(product[e]);
      }
      if constexpr (std::is_same_v<T, double>) partial[part].swap(product);
    });
    add_parts(partial, G, d * d);
  } else {
    // Row blocks are processed in order; within a block the lower tiles of G are independent pieces of work.
    const index_t rows = 2048, tiles = (d + kGramTile - 1) / kGramTile;
    std::vector<T> buffer(std::min(rows, n) * d);
    std::vector<std::pair<index_t, index_t>> lower;
    for (index_t a = 0; a < tiles; ++a)
      for (index_t b = 0; b <= a; ++b) lower.emplace_back(a, b);
    for (index_t i = 0; i < n; i += rows) {
      const index_t m = std::min(rows, n - i), pieces = parts_for(m, 128);
      parallel_for(pieces, [&](index_t p) {
        const index_t b = range_begin(m, pieces, p), e = range_begin(m, pieces, p + 1);
        fill(i + b, i + e, buffer.data() + b * d);
      });
      parallel_for(static_cast<index_t>(lower.size()), [&](index_t t) {
        const index_t r = lower[t].first * kGramTile, c = lower[t].second * kGramTile;
        const index_t nr = std::min(kGramTile, d - r), nc = std::min(kGramTile, d - c);
        if constexpr (std::is_same_v<T, double>) {
          blas::gemm('N', 'T', nr, nc, m, 1.0, buffer.data() + r, d, buffer.data() + c, d, 1.0, G + c * d + r, d);
        } else {
          std::vector<T> product(nr * nc);
          blas::gemm('N', 'T', nr, nc, m, T(1), buffer.data() + r, d, buffer.data() + c, d, T(0), product.data(), nr);
          for (index_t j = 0; j < nc; ++j)
            for (index_t q = 0; q < nr; ++q) G[(c + j) * d + r + q] += static_cast<double>(product[j * nr + q]);
        }
      });
    }
  }
  mirror_lower(G, d);
}

// For rows of a dense matrix at any address (see row_products.hpp).
template <class T, class Rows>
void dense_gram(const Rows& row, index_t n, index_t d, const double* h, double* G) {
  if constexpr (std::is_same_v<T, double>)
    if (OuterSum::suits(d)) return outer_gram(row, n, d, h, nullptr, G);
  blocked_gram<T>(
      n, d, h,
      [&](const ScaledRow* kept, index_t m, T* out) {
        for (index_t i = 0; i < m; ++i, out += d) scale_row(row(kept[i].row), T(kept[i].factor), out, d);
      },
      G);
}

// For rows of a CSR matrix, where row(i) is the index of row i in it. If G fits in the cache each part sums its own
// rows into its own G; otherwise each part owns some rows of G, reads all rows of X and writes only what it owns.
template <class T, class I, class Row>
void sparse_row_gram(const SparseRowView<T, I>& X, const Row& row, index_t n, index_t d, const double* h, double* G) {
  std::fill(G, G + d * d, 0.0);
  const auto add = [&](index_t begin, index_t end, index_t lo, index_t hi, double* out) {
    for (index_t i = begin; i < end; ++i)
      if (!h || h[i] != 0) add_outer(X, row(i), h ? h[i] : 1.0, lo, hi, out, d);
  };
  if (d <= kGramTiled) {
    const index_t parts = sum_parts(n, 1024, d * d);
    std::vector<std::vector<double>> partial(parts);
    parallel_for(parts, [&](index_t p) {
      partial[p].assign(d * d, 0.0);
      add(range_begin(n, parts, p), range_begin(n, parts, p + 1), 0, d, partial[p].data());
    });
    add_parts(partial, G, d * d);
  } else {
    const index_t parts = parts_for(d, 16);
    parallel_for(parts, [&](index_t p) { add(0, n, range_begin(d, parts, p), range_begin(d, parts, p + 1), G); });
  }
  for (index_t j = 0; j < d; ++j)
    for (index_t i = j + 1; i < d; ++i) G[j * d + i] = G[i * d + j];
}

}  // namespace hinge
