#include "problem/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/blas.hpp"
#include "core/gram.hpp"
#include "core/packed_rows.hpp"
#include "core/pool.hpp"
#include "problem/kernel_row.hpp"

namespace hinge {
namespace {

// A tile is the block that one matrix product computes; its factors stay in the second-level cache.
constexpr index_t kTileRows = 128;
constexpr index_t kTileParts = 128;  // number of pieces of work a matrix is divided into, if it has as many tiles
// Sparse rows are expanded this many at a time.
constexpr index_t kSpread = 32;

// A group of sparse rows in expanded form: `at` maps a column to a line of kSpread values (one per row of the group),
// or to -1 if no row of the group stores that column.
template <class T>
struct Spread {
  std::vector<std::int32_t> at;
  std::vector<T> lines;
};

template <class T>
HINGE_HOT void spread_dots(const Spread<T>& group, index_t m, const Points<T>& b, index_t c0, index_t c1,
                           T* __restrict dot) {
  for (index_t c = c0; c < c1; ++c) {
    T sum[kSpread] = {};
    for (auto e = b.start[c]; e < b.start[c + 1]; ++e) {
      const auto line = group.at[b.column[e]];
      if (line < 0) continue;
      const T v = b.value[e];
      const T* __restrict s = group.lines.data() + line * kSpread;
      for (index_t q = 0; q < kSpread; ++q) sum[q] += v * s[q];
    }
    for (index_t q = 0; q < m; ++q) dot[q * kTileCols + (c - c0)] = sum[q];
  }
}

// dot[r][c] = <a_r, b_c> for rows [r0, r1) and columns [c0, c1), row-major with rows of kTileCols.
template <class T>
void sparse_dots(const Points<T>& a, index_t r0, index_t r1, const Points<T>& b, index_t c0, index_t c1,
                 Spread<T>& group, T* dot) {
  for (index_t r = r0; r < r1; r += kSpread) {
    const index_t m = std::min(kSpread, r1 - r);
    group.lines.clear();
    for (index_t q = 0; q < m; ++q)
      for (auto e = a.start[r + q]; e < a.start[r + q + 1]; ++e) {
        auto& line = group.at[a.column[e]];
        if (line < 0) {
          line = static_cast<std::int32_t>(group.lines.size() / kSpread);
          group.lines.resize(group.lines.size() + kSpread, T(0));
        }
        group.lines[line * kSpread + q] = a.value[e];
      }
    spread_dots<T>(group, m, b, c0, c1, dot + (r - r0) * kTileCols);
    for (auto e = a.start[r]; e < a.start[r + m]; ++e) group.at[a.column[e]] = -1;
  }
}

// Computes one tile at a time; each part of a parallel loop has its own and reuses it.
template <class T>
class Tiler {
 public:
  Tiler(const KernelProgram& program, const Points<T>& a, const Points<T>& b)
      : program_(program),
        a_(a),
        b_(b),
        coordinates_(looks_at_coordinates(program)),
        packs_(!a.sparse() && packed_suits(a.d)) {
    dot_.resize(kTileRows * kTileCols);
    stack_.resize(stack_depth(program) * kTileCols);
    if (coordinates_) transposed_.resize(b.d * kTileCols);
    if (a.sparse()) spread_.at.assign(a.d, -1);
  }

  // out(r) points to where the c1 - c0 values of row r are written, r in [r0, r1); done(r) is called once they are.
  template <class Out, class Done>
  void tile(index_t r0, index_t r1, index_t c0, index_t c1, const Out& out, const Done& done) {
    const index_t n = c1 - c0, d = a_.d;
    if (a_.sparse())
      sparse_dots<T>(a_, r0, r1, b_, c0, c1, spread_, dot_.data());
    else if (packs_)
      packed_dots(r0, r1, c0, c1);
    else
      blas::gemm('T', 'N', n, r1 - r0, d, T(1), b_.dense + c0 * d, d, a_.dense + r0 * d, d, T(0), dot_.data(),
                 kTileCols);
    if (coordinates_ && c0 != transposed_at_) {
      for (index_t j = 0; j < n; ++j)
        for (index_t k = 0; k < d; ++k) transposed_[k * kTileCols + j] = b_.dense[(c0 + j) * d + k];
      transposed_at_ = c0;
    }
    for (index_t r = r0; r < r1; ++r) {
      const KernelRow<T> row{n,
                             dot_.data() + (r - r0) * kTileCols,
                             a_.square[r],
                             b_.square.data() + c0,
                             a_.sparse() ? nullptr : a_.dense + r * d,
                             transposed_.data(),
                             d,
                             kTileCols};
      run_row<T>(program_, row, out(r), stack_.data());
      done(r);
    }
  }

  template <class Out>
  void tile(index_t r0, index_t r1, index_t c0, index_t c1, const Out& out) {
    tile(r0, r1, c0, c1, out, [](index_t) {});
  }

 private:
  // Adjacent tiles of the same columns share the packed points.
  void packed_dots(index_t r0, index_t r1, index_t c0, index_t c1) {
    const index_t d = a_.d;
    if (c0 != packed_begin_ || c1 != packed_end_) {
      packed_.pack(b_.dense + c0 * d, d, c1 - c0, d);
      packed_begin_ = c0;
      packed_end_ = c1;
    }
    packed_.products(a_.dense + r0 * d, d, r1 - r0, dot_.data(), kTileCols);
  }

  const KernelProgram& program_;
  const Points<T>&a_, &b_;
  bool coordinates_, packs_;
  index_t transposed_at_ = -1, packed_begin_ = -1, packed_end_ = -1;
  PackedRows<T> packed_;
  std::vector<T> dot_, stack_, transposed_;
  Spread<T> spread_;
};

// c += A' B for A (m x p) and B (m x q) row-major in T, summed in double.
template <class T>
void add_product(index_t p, index_t q, index_t m, const T* a, index_t lda, const T* b, index_t ldb, double* c,
                 index_t ldc, std::vector<T>& buffer) {
  if constexpr (std::is_same_v<T, double>) {
    blas::gemm('N', 'T', q, p, m, 1.0, b, ldb, a, lda, 1.0, c, ldc);
  } else {
    buffer.resize(p * q);
    blas::gemm('N', 'T', q, p, m, T(1), b, ldb, a, lda, T(0), buffer.data(), q);
    for (index_t i = 0; i < p; ++i)
      for (index_t j = 0; j < q; ++j) c[i * ldc + j] += static_cast<double>(buffer[i * q + j]);
  }
}

template <class T>
HINGE_HOT double dot_row(const T* __restrict k, const double* __restrict v, index_t n) {
  double s = 0;
  for (index_t j = 0; j < n; ++j) s += static_cast<double>(k[j]) * v[j];
  return s;
}

template <class T>
HINGE_HOT void axpy_row(double c, const T* __restrict k, double* __restrict out, index_t n) {
  for (index_t j = 0; j < n; ++j) out[j] += c * static_cast<double>(k[j]);
}

// Calls body(part, begin, end, block) for pieces of a, where block is K(a[begin:end], b), row-major with b.n entries
// per row. The pieces of one part come in order; parts may run concurrently.
constexpr index_t kPassRows = 128;
index_t pass_parts(index_t n) { return parts_for(n, 2 * kPassRows); }

template <class T, class Body>
void pass(const KernelProgram& program, const Points<T>& a, const Points<T>& b, const Body& body) {
  const index_t parts = pass_parts(a.n);
  parallel_for(parts, [&](index_t part) {
    const index_t begin = range_begin(a.n, parts, part), end = range_begin(a.n, parts, part + 1);
    Tiler<T> tiler(program, a, b);
    std::vector<T> block(kPassRows * b.n);
    for (index_t r0 = begin; r0 < end; r0 += kPassRows) {
      const index_t r1 = std::min(r0 + kPassRows, end);
      for (index_t c0 = 0; c0 < b.n; c0 += kTileCols)
        tiler.tile(r0, r1, c0, std::min(c0 + kTileCols, b.n),
                   [&](index_t r) { return block.data() + (r - r0) * b.n + c0; });
      body(part, r0, r1, block.data());
    }
  });
}

}  // namespace

template <class T>
void Points<T>::measure() {
  square.resize(n);
  const index_t parts = parts_for(n * (sparse() ? 64 : d), 1 << 16);
  parallel_for(parts, [&](index_t part) {
    for (index_t i = range_begin(n, parts, part); i < range_begin(n, parts, part + 1); ++i) {
      double s = 0;
      if (sparse())
        for (auto e = start[i]; e < start[i + 1]; ++e) s += static_cast<double>(value[e]) * value[e];
      else
        for (index_t j = 0; j < d; ++j) s += static_cast<double>(dense[i * d + j]) * dense[i * d + j];
      square[i] = static_cast<T>(s);
    }
  });
}

template <class T>
Gathered<T>::Gathered(const Points<T>& from, const index_t* which, index_t m) {
  points.n = m;
  points.d = from.d;
  points.square.resize(m);
  for (index_t i = 0; i < m; ++i) points.square[i] = from.square[which[i]];
  if (from.sparse()) {
    start.assign(m + 1, 0);
    for (index_t i = 0; i < m; ++i) start[i + 1] = start[i] + from.start[which[i] + 1] - from.start[which[i]];
    value.resize(start[m]);
    column.resize(start[m]);
    for (index_t i = 0; i < m; ++i) {
      const auto begin = from.start[which[i]], end = from.start[which[i] + 1];
      std::copy(from.value + begin, from.value + end, value.begin() + start[i]);
      std::copy(from.column + begin, from.column + end, column.begin() + start[i]);
    }
    points.value = value.data();
    points.column = column.data();
    points.start = start.data();
  } else {
    dense.resize(m * from.d);
    for (index_t i = 0; i < m; ++i)
      std::copy(from.dense + which[i] * from.d, from.dense + (which[i] + 1) * from.d, dense.begin() + i * from.d);
    points.dense = dense.data();
  }
}

template <class T>
void kernel_rows(const KernelProgram& program, const Points<T>& a, const Points<T>& b, T* const* out) {
  const index_t columns = (b.n + kTileCols - 1) / kTileCols;
  // A part is a run of adjacent tiles; if there are few runs, rows are split as well.
  const index_t bands = std::clamp<index_t>(kTileParts / columns, 1, (a.n + kTileRows - 1) / kTileRows);
  const index_t groups = std::min<index_t>(columns, kTileParts);
  parallel_for(groups * bands, [&](index_t part) {
    const index_t band = part / groups, group = part % groups;
    const index_t first = range_begin(a.n, bands, band), last = range_begin(a.n, bands, band + 1);
    Tiler<T> tiler(program, a, b);
    for (index_t t = range_begin(columns, groups, group); t < range_begin(columns, groups, group + 1); ++t) {
      const index_t c0 = t * kTileCols, c1 = std::min(c0 + kTileCols, b.n);
      for (index_t r0 = first; r0 < last; r0 += kTileRows)
        tiler.tile(r0, std::min(r0 + kTileRows, last), c0, c1, [&](index_t r) { return out[r] + c0; });
    }
  });
}

template <class T>
void kernel_tiles(const KernelProgram& program, const Points<T>& a, const Points<T>& b, index_t begin, index_t end,
                  const TileVisitor<T>& visit) {
  Tiler<T> tiler(program, a, b);
  std::vector<T> values(kTileRows * kTileCols);
  for (index_t r0 = begin; r0 < end; r0 += kTileRows) {
    const index_t r1 = std::min(r0 + kTileRows, end);
    const auto row = [&](index_t r) { return values.data() + (r - r0) * kTileCols; };
    for (index_t c0 = 0; c0 < b.n; c0 += kTileCols) {
      const index_t c1 = std::min(c0 + kTileCols, b.n);
      tiler.tile(r0, r1, c0, c1, row);
      for (index_t r = r0; r < r1; ++r) visit(r, c0, c1, row(r));
    }
  }
}

template <class T>
void kernel_scores(const KernelProgram& program, const Points<T>& a, const Points<T>& b, const double* coef, index_t k,
                   double* z) {
  const index_t parts = parts_for(a.n, 32);
  std::vector<T> narrow(coef, coef + b.n * k);
  parallel_for(parts, [&](index_t part) {
    const index_t begin = range_begin(a.n, parts, part), end = range_begin(a.n, parts, part + 1);
    Tiler<T> tiler(program, a, b);
    std::vector<T> values((k == 1 ? 1 : kTileRows) * kTileCols), product(k == 1 ? 0 : kTileRows * k);
    std::fill(z + begin * k, z + end * k, 0.0);
    for (index_t c0 = 0; c0 < b.n; c0 += kTileCols) {
      const index_t c1 = std::min(c0 + kTileCols, b.n);
      for (index_t r0 = begin; r0 < end; r0 += kTileRows) {
        const index_t r1 = std::min(r0 + kTileRows, end);
        if (k == 1) {  // a row is used while it is in the first-level cache
          tiler.tile(
              r0, r1, c0, c1, [&](index_t) { return values.data(); },
              [&](index_t r) { z[r] += dot_row<T>(values.data(), coef + c0, c1 - c0); });
        } else {
          tiler.tile(r0, r1, c0, c1, [&](index_t r) { return values.data() + (r - r0) * kTileCols; });
          blas::gemm('N', 'N', k, r1 - r0, c1 - c0, T(1), narrow.data() + c0 * k, k, values.data(), kTileCols, T(0),
                     product.data(), k);
          for (index_t e = 0; e < (r1 - r0) * k; ++e) z[r0 * k + e] += static_cast<double>(product[e]);
        }
      }
    }
  });
}

template <class T>
void kernel_self_scores(const KernelProgram& program, const Points<T>& a, const double* coef, double* z) {
  const index_t bands = (a.n + kTileRows - 1) / kTileRows, parts = std::min<index_t>(bands, 32);
  std::vector<std::vector<double>> partial(parts);
  parallel_for(parts, [&](index_t part) {
    std::vector<double>& sums = partial[part];
    sums.assign(a.n, 0.0);
    Tiler<T> tiler(program, a, a);
    std::vector<T> row(kTileCols);
    for (index_t band = part; band < bands; band += parts) {  // in turns, as later bands are longer
      const index_t r0 = band * kTileRows, r1 = std::min(r0 + kTileRows, a.n);
      for (index_t c0 = 0; c0 < r1; c0 += c0 < r0 ? std::min(kTileCols, r0 - c0) : kTileRows) {
        const index_t c1 = c0 < r0 ? std::min(c0 + kTileCols, r0) : r1;
        tiler.tile(
            r0, r1, c0, c1, [&](index_t) { return row.data(); },
            [&](index_t r) {
              sums[r] += dot_row<T>(row.data(), coef + c0, c1 - c0);
              // the same values below the diagonal
              if (c1 <= r0) axpy_row<T>(coef[r], row.data(), sums.data() + c0, c1 - c0);
            });
      }
    }
  });
  add_parts(partial, z, a.n);
}

template <class T>
void kernel_normal(const KernelProgram& program, const Points<T>& a, const Points<T>& b, const double* h, double* G,
                   const double* U, index_t k, double* r) {
  const index_t m = b.n;
  // Computing a block of K alternates with using it. The second step splits the columns of G among the parts, so that
  // there is one G for any number of threads.
  constexpr index_t rows = 2048;
  std::vector<T> block(std::min(rows, a.n) * m);
  std::vector<T*> where(std::min(rows, a.n));
  const index_t tiles = (m + kGramTile - 1) / kGramTile;
  std::vector<std::pair<index_t, index_t>> lower;
  for (index_t i = 0; i < tiles; ++i)
    for (index_t j = 0; j <= i; ++j) lower.emplace_back(i, j);
  if (G) std::fill(G, G + m * m, 0.0);
  if (U) std::fill(r, r + m * k, 0.0);
  for (index_t begin = 0; begin < a.n; begin += rows) {
    const index_t count = std::min(rows, a.n - begin);
    std::vector<index_t> which(count);
    for (index_t i = 0; i < count; ++i) which[i] = begin + i, where[i] = block.data() + i * m;
    const Gathered<T> some(a, which.data(), count);
    kernel_rows<T>(program, some.points, b, where.data());
    if (U) {
      std::vector<T> right(count * k);
      for (index_t e = 0; e < count * k; ++e) right[e] = static_cast<T>(U[begin * k + e]);
      parallel_for(tiles, [&](index_t t) {
        const index_t c = t * kGramTile, width = std::min(kGramTile, m - c);
        std::vector<T> buffer;
        add_product<T>(width, k, count, block.data() + c, m, right.data(), k, r + c * k, k, buffer);
      });
    }
    if (!G) continue;
    if (h)
      parallel_for(parts_for(count, 64), [&](index_t part) {
        const index_t pieces = parts_for(count, 64);
        for (index_t i = range_begin(count, pieces, part); i < range_begin(count, pieces, part + 1); ++i) {
          const T factor = static_cast<T>(std::sqrt(h[begin + i]));
          for (index_t j = 0; j < m; ++j) where[i][j] *= factor;
        }
      });
    parallel_for(static_cast<index_t>(lower.size()), [&](index_t t) {
      const index_t i = lower[t].first * kGramTile, j = lower[t].second * kGramTile;
      std::vector<T> buffer;
      add_product<T>(std::min(kGramTile, m - j), std::min(kGramTile, m - i), count, block.data() + j, m,
                     block.data() + i, m, G + j * m + i, m, buffer);
    });
  }
  if (G) mirror_lower(G, m);
}

namespace {

// Sums of h * (K v + shift) and of its products with rows of K; one per part, added in order.
struct Quadratic {
  const double *h, *v;
  double shift;
  index_t m;
  std::vector<std::vector<double>> partial;
  std::vector<double> total;

  Quadratic(const double* h_, const double* v_, double shift_, index_t m_, index_t parts)
      : h(h_), v(v_), shift(shift_), m(m_), partial(parts), total(parts, 0.0) {
    for (auto& p : partial) p.assign(m, 0.0);
  }

  template <class T>
  void add(index_t part, index_t begin, index_t end, const T* block) {
    for (index_t i = begin; i < end; ++i) {
      const T* row = block + (i - begin) * m;
      const double u = h[i] * (dot_row<T>(row, v, m) + shift);
      axpy_row<T>(u, row, partial[part].data(), m);
      total[part] += u;
    }
  }

  double finish(double* r) const {
    std::fill(r, r + m, 0.0);
    double sum = 0;
    for (std::size_t p = 0; p < partial.size(); ++p) {
      for (index_t j = 0; j < m; ++j) r[j] += partial[p][j];
      sum += total[p];
    }
    return sum;
  }
};

}  // namespace

template <class T>
double kernel_quadratic(const KernelProgram& program, const Points<T>& a, const Points<T>& b, const double* h,
                        const double* v, double shift, double* r) {
  Quadratic q(h, v, shift, b.n, pass_parts(a.n));
  pass<T>(program, a, b,
          [&](index_t part, index_t begin, index_t end, const T* block) { q.add<T>(part, begin, end, block); });
  return q.finish(r);
}

template <class T>
double block_quadratic(const T* K, index_t n, index_t m, const double* h, const double* v, double shift, double* r) {
  const index_t parts = pass_parts(n);
  Quadratic q(h, v, shift, m, parts);
  parallel_for(parts, [&](index_t part) {
    const index_t begin = range_begin(n, parts, part), end = range_begin(n, parts, part + 1);
    q.add<T>(part, begin, end, K + begin * m);
  });
  return q.finish(r);
}

#define HINGE_KERNELS(T)                                                                                           \
  template struct Points<T>;                                                                                       \
  template struct Gathered<T>;                                                                                     \
  template void kernel_rows<T>(const KernelProgram&, const Points<T>&, const Points<T>&, T* const*);               \
  template void kernel_tiles<T>(const KernelProgram&, const Points<T>&, const Points<T>&, index_t, index_t,        \
                                const TileVisitor<T>&);                                                            \
  template void kernel_self_scores<T>(const KernelProgram&, const Points<T>&, const double*, double*);             \
  template void kernel_scores<T>(const KernelProgram&, const Points<T>&, const Points<T>&, const double*, index_t, \
                                 double*);                                                                         \
  template void kernel_normal<T>(const KernelProgram&, const Points<T>&, const Points<T>&, const double*, double*, \
                                 const double*, index_t, double*);                                                 \
  template double kernel_quadratic<T>(const KernelProgram&, const Points<T>&, const Points<T>&, const double*,     \
                                      const double*, double, double*);                                             \
  template double block_quadratic<T>(const T*, index_t, index_t, const double*, const double*, double, double*);
HINGE_KERNELS(float)
HINGE_KERNELS(double)
#undef HINGE_KERNELS

}  // namespace hinge
