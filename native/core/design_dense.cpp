#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/design.hpp"
#include "core/gram.hpp"
#include "core/gram_narrow.hpp"
#include "core/row_products.hpp"

namespace hinge {
namespace {

// Rows of one cache block: about 256 KiB of X, so that the second use of a row in `fused` finds it in cache.
template <class T>
index_t cache_rows(index_t d) {
  return std::clamp<index_t>((index_t{1} << 18) / (std::max<index_t>(d, 1) * static_cast<index_t>(sizeof(T))), 8, 1024);
}

template <class T>
HINGE_HOT double column_dot(const T* a, const double* u, index_t m) {
  return vec::dot_inline(a, u, m);
}

template <class T>
HINGE_HOT void column_axpy(double c, const T* a, double* out, index_t m) {
  vec::axpy_inline(c, a, out, m);
}

template <class T>
HINGE_HOT void add_squares(const T* __restrict a, double h, double* __restrict out, index_t m) {
  for (index_t j = 0; j < m; ++j) out[j] += h * static_cast<double>(a[j]) * static_cast<double>(a[j]);
}

template <class T>
HINGE_HOT double square_dot(const T* __restrict a, const double* __restrict h, index_t m) {
  double s = 0;
  if (h)
    for (index_t i = 0; i < m; ++i) s += h[i] * static_cast<double>(a[i]) * static_cast<double>(a[i]);
  else
    for (index_t i = 0; i < m; ++i) s += static_cast<double>(a[i]) * static_cast<double>(a[i]);
  return s;
}

}  // namespace

void Design::fused(const double* w, const RowBody& body, double* z, double* u, double* g) const {
  matvec(w, z);
  const index_t parts = parts_for(rows_, 2048);
  parallel_for(parts, [&](index_t part) {
    const index_t begin = range_begin(rows_, parts, part), end = range_begin(rows_, parts, part + 1);
    body(begin, end, z + begin, u + begin);
  });
  rmatvec(u, g);
}

void Design::moments(const double* h, const double* y, double* A) const {
  const index_t d = cols_, m = d + 2;
  std::vector<double> G(d * d), hy(rows_), sums(d), products(d);
  gram(h, G.data());
  rmatvec(h, sums.data());
  for (index_t i = 0; i < rows_; ++i) hy[i] = h[i] * y[i];
  rmatvec(hy.data(), products.data());
  for (index_t i = 0; i < d; ++i) {
    std::copy_n(G.data() + i * d, d, A + i * m);
    A[i * m + d] = A[d * m + i] = sums[i];
    A[i * m + d + 1] = A[(d + 1) * m + i] = products[i];
  }
  A[d * m + d] = vec::sum(h, rows_);
  A[d * m + d + 1] = A[(d + 1) * m + d] = vec::sum(hy.data(), rows_);
  A[(d + 1) * m + d + 1] = vec::dot(hy.data(), y, rows_);
}

template <class T>
class DenseRows final : public Design {
 public:
  DenseRows(const T* x, index_t rows, index_t cols, index_t stride) : Design(rows, cols), x_(x), stride_(stride) {}
  bool sparse() const override { return false; }
  index_t stored() const override { return rows_ * cols_; }
  RowView row_view() const override { return DenseRowView<T>{x_, stride_, cols_}; }

  void matvec(const double* w, double* z) const override { multiply_rows(in_order(), rows_, cols_, w, z); }
  void rmatvec(const double* u, double* g) const override { add_up_rows(in_order(), rows_, cols_, u, g); }

  void fused(const double* w, const RowBody& body, double* z, double* u, double* g) const override {
    const index_t parts = row_parts(rows_, cols_), block = cache_rows<T>(cols_);
    std::vector<std::vector<double>> partial(parts);
    parallel_for(parts, [&](index_t p) {
      const index_t b = range_begin(rows_, parts, p), e = range_begin(rows_, parts, p + 1);
      partial[p].assign(cols_, 0.0);
      for (index_t i = b; i < e; i += block) {
        const index_t m = std::min(block, e - i);
        rows_dot(in_order(), i, i + m, cols_, w, z);
        body(i, i + m, z + i, u + i);
        rows_axpy(in_order(), i, i + m, cols_, u, partial[p].data());
      }
    });
    add_parts(partial, g, cols_);
  }

  void matmat(const double* W, index_t k, double* Z) const override {
    const index_t parts = row_parts(rows_, cols_), block = 256;
    std::vector<T> Wt = cast(W, cols_ * k);
    parallel_for(parts, [&](index_t p) {
      const index_t b = range_begin(rows_, parts, p), e = range_begin(rows_, parts, p + 1);
      std::vector<T> out(std::is_same_v<T, double> ? 0 : block * k);
      for (index_t i = b; i < e; i += block) {
        const index_t m = std::min(block, e - i);
        // Row-major Z = X W is column-major Z' = W' X'.
        if constexpr (std::is_same_v<T, double>) {
          blas::gemm('N', 'N', k, m, cols_, 1.0, Wt.data(), k, row(i), stride_, 0.0, Z + i * k, k);
        } else {
          blas::gemm('N', 'N', k, m, cols_, T(1), Wt.data(), k, row(i), stride_, T(0), out.data(), k);
          std::copy(out.begin(), out.begin() + m * k, Z + i * k);
        }
      }
    });
  }

  void rmatmat(const double* U, index_t k, double* G) const override {
    // BLAS does about sixteen multiplications in the time it takes to clear and add one entry of a partial sum.
    const index_t parts = row_parts(rows_, cols_ * k / 16, cols_ * k), block = 256;
    std::vector<std::vector<double>> partial(parts);
    parallel_for(parts, [&](index_t p) {
      const index_t b = range_begin(rows_, parts, p), e = range_begin(rows_, parts, p + 1);
      partial[p].assign(cols_ * k, 0.0);
      std::vector<T> product(std::is_same_v<T, double> ? 0 : cols_ * k);
      for (index_t i = b; i < e; i += block) {
        const index_t m = std::min(block, e - i);
        if constexpr (std::is_same_v<T, double>) {
          blas::gemm('N', 'T', k, cols_, m, 1.0, U + i * k, k, row(i), stride_, 1.0, partial[p].data(), k);
        } else {
          const std::vector<T> u = cast(U + i * k, m * k);
          blas::gemm('N', 'T', k, cols_, m, T(1), u.data(), k, row(i), stride_, T(0), product.data(), k);
          for (index_t t = 0; t < cols_ * k; ++t) partial[p][t] += static_cast<double>(product[t]);
        }
      }
    });
    add_parts(partial, G, cols_ * k);
  }

  void gram(const double* h, double* G) const override {
    if (narrow_suits(cols_)) return narrow_gram(x_, stride_, rows_, cols_, h, nullptr, G);
    dense_gram<T>(in_order(), rows_, cols_, h, G);
  }

  void moments(const double* h, const double* y, double* A) const override {
    if (narrow_suits(cols_ + 2)) return narrow_gram(x_, stride_, rows_, cols_, h, y, A);
    if constexpr (std::is_same_v<T, double>)
      if (OuterSum::suits(cols_ + 2)) return outer_gram(in_order(), rows_, cols_ + 2, h, y, A);
    Design::moments(h, y, A);
  }

  void square_sums(const double* h, double* out) const override {
    const index_t parts = row_parts(rows_, cols_);
    std::vector<std::vector<double>> partial(parts);
    parallel_for(parts, [&](index_t p) {
      partial[p].assign(cols_, 0.0);
      for (index_t i = range_begin(rows_, parts, p); i < range_begin(rows_, parts, p + 1); ++i)
        add_squares(row(i), h ? h[i] : 1.0, partial[p].data(), cols_);
    });
    add_parts(partial, out, cols_);
  }

  Columns columns(const index_t* which, index_t m) const override {
    Columns c{.rows = rows_, .cols = m, .dense = std::vector<double>(rows_ * m), .square = std::vector<double>(m)};
    const index_t parts = parts_for(rows_ * m, 1 << 14);
    parallel_for(parts, [&](index_t p) {
      // A few rows at a time, so that the strided reads use every cache line before it is evicted.
      for (index_t i = range_begin(rows_, parts, p); i < range_begin(rows_, parts, p + 1); ++i) {
        const T* x = row(i);
        for (index_t j = 0; j < m; ++j) c.dense[j * rows_ + i] = static_cast<double>(x[which[j]]);
      }
    });
    parallel_for(parts_for(rows_ * m, 1 << 14), [&, total = parts_for(rows_ * m, 1 << 14)](index_t p) {
      for (index_t j = range_begin(m, total, p); j < range_begin(m, total, p + 1); ++j)
        c.square[j] = vec::square_sum(c.dense.data() + j * rows_, rows_);
    });
    return c;
  }

 private:
  RowsInOrder<T> in_order() const { return {x_, stride_}; }
  const T* row(index_t i) const { return x_ + i * stride_; }
  static std::vector<T> cast(const double* a, index_t n) {
    std::vector<T> out(n);
    for (index_t i = 0; i < n; ++i) out[i] = static_cast<T>(a[i]);
    return out;
  }
  const T* x_;
  index_t stride_;
};

template <class T>
class DenseCols final : public Design {
 public:
  DenseCols(const T* x, index_t rows, index_t cols, index_t stride) : Design(rows, cols), x_(x), stride_(stride) {}
  bool sparse() const override { return false; }
  index_t stored() const override { return rows_ * cols_; }
  ColumnView column_view() const override { return DenseColumnView<T>{x_, stride_, rows_}; }

  void matvec(const double* w, double* z) const override {
    const index_t parts = row_parts(rows_, cols_), block = 2048;
    parallel_for(parts, [&](index_t p) {
      const index_t b = range_begin(rows_, parts, p), e = range_begin(rows_, parts, p + 1);
      for (index_t i = b; i < e; i += block) scores(i, std::min(block, e - i), w, z + i);
    });
  }

  void rmatvec(const double* u, double* g) const override {
    const index_t parts = parts_for(rows_ * cols_, 1 << 15, std::min<index_t>(cols_, 64));
    parallel_for(parts, [&](index_t p) {
      for (index_t j = range_begin(cols_, parts, p); j < range_begin(cols_, parts, p + 1); ++j)
        g[j] = column_dot(col(j), u, rows_);
    });
  }

  void fused(const double* w, const RowBody& body, double* z, double* u, double* g) const override {
    if (cols_ > 2048) return Design::fused(w, body, z, u, g);  // a useful block of rows would not fit in cache
    const index_t parts = row_parts(rows_, cols_);
    const index_t block = std::max<index_t>(cache_rows<T>(cols_), 64);
    std::vector<std::vector<double>> partial(parts);
    parallel_for(parts, [&](index_t p) {
      const index_t b = range_begin(rows_, parts, p), e = range_begin(rows_, parts, p + 1);
      partial[p].assign(cols_, 0.0);
      for (index_t i = b; i < e; i += block) {
        const index_t m = std::min(block, e - i);
        scores(i, m, w, z + i);
        body(i, i + m, z + i, u + i);
        for (index_t j = 0; j < cols_; ++j) partial[p][j] += column_dot(col(j) + i, u + i, m);
      }
    });
    add_parts(partial, g, cols_);
  }

  void matmat(const double* W, index_t k, double* Z) const override {
    // Z' (k x n, column-major) = W' (k x d) X' (d x n); X is column-major, hence transposed here.
    const index_t parts = row_parts(rows_, cols_), block = 256;
    const std::vector<T> Wt(W, W + cols_ * k);
    parallel_for(parts, [&](index_t p) {
      const index_t b = range_begin(rows_, parts, p), e = range_begin(rows_, parts, p + 1);
      std::vector<T> out(block * k);
      for (index_t i = b; i < e; i += block) {
        const index_t m = std::min(block, e - i);
        blas::gemm('N', 'T', k, m, cols_, T(1), Wt.data(), k, x_ + i, stride_, T(0), out.data(), k);
        std::copy(out.begin(), out.begin() + m * k, Z + i * k);
      }
    });
  }

  void rmatmat(const double* U, index_t k, double* G) const override {
    const index_t parts = parts_for(rows_ * cols_ * k, 1 << 16, std::min<index_t>(cols_, 64)), block = 4096;
    parallel_for(parts, [&](index_t p) {
      const index_t b = range_begin(cols_, parts, p), e = range_begin(cols_, parts, p + 1);
      std::fill(G + b * k, G + e * k, 0.0);
      std::vector<T> u, product((e - b) * k);
      for (index_t i = 0; i < rows_; i += block) {
        const index_t m = std::min(block, rows_ - i);
        u.assign(U + i * k, U + (i + m) * k);
        blas::gemm('N', 'N', k, e - b, m, T(1), u.data(), k, col(b) + i, stride_, T(0), product.data(), k);
        for (index_t t = 0; t < (e - b) * k; ++t) G[b * k + t] += static_cast<double>(product[t]);
      }
    });
  }

  void gram(const double* h, double* G) const override {
    blocked_gram<T>(
        rows_, cols_, h,
        [&](const ScaledRow* kept, index_t m, T* out) {
          // Transposes in strips of 16 columns so that both sides stay in cache.
          for (index_t j0 = 0; j0 < cols_; j0 += 16)
            for (index_t i = 0; i < m; ++i) {
              const T factor = T(kept[i].factor);
              for (index_t j = j0; j < std::min(j0 + 16, cols_); ++j) out[i * cols_ + j] = factor * col(j)[kept[i].row];
            }
        },
        G);
  }

  void square_sums(const double* h, double* out) const override {
    const index_t parts = parts_for(rows_ * cols_, 1 << 15, std::min<index_t>(cols_, 64));
    parallel_for(parts, [&](index_t p) {
      for (index_t j = range_begin(cols_, parts, p); j < range_begin(cols_, parts, p + 1); ++j)
        out[j] = square_dot(col(j), h, rows_);
    });
  }

  Columns columns(const index_t* which, index_t m) const override {
    Columns c{.rows = rows_, .cols = m, .dense = std::vector<double>(rows_ * m), .square = std::vector<double>(m)};
    const index_t parts = parts_for(rows_ * m, 1 << 14, std::max<index_t>(std::min<index_t>(m, 64), 1));
    parallel_for(parts, [&](index_t p) {
      for (index_t j = range_begin(m, parts, p); j < range_begin(m, parts, p + 1); ++j) {
        double* out = c.dense.data() + j * rows_;
        std::copy(col(which[j]), col(which[j]) + rows_, out);
        c.square[j] = vec::square_sum(out, rows_);
      }
    });
    return c;
  }

 private:
  const T* col(index_t j) const { return x_ + j * stride_; }
  void scores(index_t i, index_t m, const double* w, double* z) const {
    std::fill(z, z + m, 0.0);
    for (index_t j = 0; j < cols_; ++j)
      if (w[j] != 0.0) column_axpy(w[j], col(j) + i, z, m);
  }
  const T* x_;
  index_t stride_;
};

template <class T>
std::unique_ptr<Design> dense_rows(const T* data, index_t rows, index_t cols, index_t stride) {
  return std::make_unique<DenseRows<T>>(data, rows, cols, stride);
}
template <class T>
std::unique_ptr<Design> dense_cols(const T* data, index_t rows, index_t cols, index_t stride) {
  return std::make_unique<DenseCols<T>>(data, rows, cols, stride);
}
template std::unique_ptr<Design> dense_rows(const float*, index_t, index_t, index_t);
template std::unique_ptr<Design> dense_rows(const double*, index_t, index_t, index_t);
template std::unique_ptr<Design> dense_cols(const float*, index_t, index_t, index_t);
template std::unique_ptr<Design> dense_cols(const double*, index_t, index_t, index_t);

}  // namespace hinge
