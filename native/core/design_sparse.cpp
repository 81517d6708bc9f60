#include <algorithm>
#include <numeric>

#include "core/design.hpp"
#include "core/gram.hpp"
#include "core/matmul_thin.hpp"
#include "core/pool.hpp"
#include "core/vec.hpp"

namespace hinge {
namespace {

template <class T, class I>
HINGE_HOT double gather_dot(const T* __restrict v, const I* __restrict at, index_t m, const double* __restrict w) {
  double s = 0;
  for (index_t k = 0; k < m; ++k) s += static_cast<double>(v[k]) * w[at[k]];
  return s;
}

// The same for the sparse vectors [begin, end), whose entries start at `start`.
template <class T, class I>
HINGE_HOT void gather_dots(const T* __restrict v, const I* __restrict at, const I* __restrict start, index_t begin,
                           index_t end, const double* __restrict w, double* __restrict out) {
  for (index_t m = begin; m < end; ++m) {
    double s = 0;
    const index_t last = static_cast<index_t>(start[m + 1]);
    for (index_t k = static_cast<index_t>(start[m]); k < last; ++k) s += static_cast<double>(v[k]) * w[at[k]];
    out[m] = s;
  }
}

template <class T, class I>
HINGE_INLINE void scatter_axpy(double c, const T* __restrict v, const I* __restrict at, index_t m,
                               double* __restrict out) {
  for (index_t k = 0; k < m; ++k) out[at[k]] += c * static_cast<double>(v[k]);
}

// Number of parts of a scattering pass in which each part has its own vector of `length`. Long vectors get few parts,
// because each vector has to be cleared and added.
index_t scatter_parts(index_t stored, index_t length) { return sum_parts(stored, 1 << 14, length); }

// Both compressed storages are a list of `major` sparse vectors of length `minor`.
template <class T, class I>
struct Compressed {
  const T* data;
  const I* indices;
  const I* indptr;
  index_t major, minor;

  index_t stored() const { return static_cast<index_t>(indptr[major]) - static_cast<index_t>(indptr[0]); }
  index_t begin(index_t m) const { return static_cast<index_t>(indptr[m]); }
  index_t length(index_t m) const { return static_cast<index_t>(indptr[m + 1]) - static_cast<index_t>(indptr[m]); }

  // The first vector of part p of `parts`; parts have equal numbers of stored entries, not of vectors.
  index_t cut(index_t parts, index_t p) const {
    if (p == parts) return major;
    const I target = static_cast<I>(begin(0) + stored() * p / parts);
    return std::lower_bound(indptr, indptr + major, target) - indptr;
  }

  void dots(const double* w, double* out) const {  // out_m = v_m . w
    const index_t parts = parts_for(stored() + major, 1 << 14);
    parallel_for(parts,
                 [&](index_t p) { gather_dots(data, indices, indptr, cut(parts, p), cut(parts, p + 1), w, out); });
  }

  void combine(const double* c, double* out) const {  // out = sum_m c_m v_m
    const index_t parts = scatter_parts(stored(), minor);
    std::vector<std::vector<double>> partial(parts);
    parallel_for(parts, [&](index_t p) {
      partial[p].assign(minor, 0.0);
      for (index_t m = cut(parts, p), last = cut(parts, p + 1); m < last; ++m)
        if (c[m] != 0.0) scatter_axpy(c[m], data + begin(m), indices + begin(m), length(m), partial[p].data());
    });
    add_parts(partial, out, minor);
  }

  // The same for k <= K columns: the rows of W are padded to K entries, which fit in registers.
  template <index_t K>
  void dots_thin(const double* W, index_t k, double* out) const {
    constexpr index_t block = 64;
    std::vector<double> wide(minor * K, 0.0);
    for (index_t j = 0; j < minor; ++j) std::copy(W + j * k, W + (j + 1) * k, wide.begin() + j * K);
    const SparseRowView<T, I> view{data, indices, indptr};
    const index_t parts = parts_for((stored() + major) * k, 1 << 15);
    parallel_for(parts, [&](index_t p) {
      double z[block * K];
      for (index_t m = cut(parts, p), last = cut(parts, p + 1); m < last; m += block) {
        const index_t end = std::min(m + block, last);
        thin::times<K>(view, m, end, wide.data(), z);
        for (index_t i = m; i < end; ++i) std::copy(z + (i - m) * K, z + (i - m) * K + k, out + i * k);
      }
    });
  }

  void dots_many(const double* W, index_t k, double* out) const {  // out (major x k) = V W
    if (k <= 24 && stored() > 2 * minor) {
      return k <= 8 ? dots_thin<8>(W, k, out) : k <= 16 ? dots_thin<16>(W, k, out) : dots_thin<24>(W, k, out);
    }
    const index_t parts = parts_for((stored() + major) * k, 1 << 15);
    parallel_for(parts, [&](index_t p) {
      for (index_t m = cut(parts, p), last = cut(parts, p + 1); m < last; ++m) {
        double* z = out + m * k;
        std::fill(z, z + k, 0.0);
        for (index_t e = begin(m); e < begin(m) + length(m); ++e)
          vec::axpy(static_cast<double>(data[e]), W + static_cast<index_t>(indices[e]) * k, z, k);
      }
    });
  }

  void combine_many(const double* C, index_t k, double* out) const {  // out (minor x k) = V'C
    const index_t parts = scatter_parts(stored() * k, minor * k);
    std::vector<std::vector<double>> partial(parts);
    parallel_for(parts, [&](index_t p) {
      partial[p].assign(minor * k, 0.0);
      for (index_t m = cut(parts, p), last = cut(parts, p + 1); m < last; ++m)
        for (index_t e = begin(m); e < begin(m) + length(m); ++e)
          vec::axpy(static_cast<double>(data[e]), C + m * k, partial[p].data() + static_cast<index_t>(indices[e]) * k,
                    k);
    });
    add_parts(partial, out, minor * k);
  }
};

}  // namespace

template <class T, class I>
class Csr final : public Design {
 public:
  Csr(Compressed<T, I> v) : Design(v.major, v.minor), v_(v) {}
  bool sparse() const override { return true; }
  index_t stored() const override { return v_.stored(); }
  RowView row_view() const override { return view(); }

  void matvec(const double* w, double* z) const override { v_.dots(w, z); }
  void rmatvec(const double* u, double* g) const override { v_.combine(u, g); }
  void matmat(const double* W, index_t k, double* Z) const override { v_.dots_many(W, k, Z); }
  void rmatmat(const double* U, index_t k, double* G) const override { v_.combine_many(U, k, G); }

  void fused(const double* w, const RowBody& body, double* z, double* u, double* g) const override {
    const index_t parts = scatter_parts(stored(), cols_), block = 512;
    std::vector<std::vector<double>> partial(parts);
    parallel_for(parts, [&](index_t p) {
      partial[p].assign(cols_, 0.0);
      const index_t b = v_.cut(parts, p), e = v_.cut(parts, p + 1);
      for (index_t i0 = b; i0 < e; i0 += block) {
        const index_t i1 = std::min(i0 + block, e);
        gather_dots(v_.data, v_.indices, v_.indptr, i0, i1, w, z);
        body(i0, i1, z + i0, u + i0);
        for (index_t i = i0; i < i1; ++i)
          if (u[i] != 0.0)
            scatter_axpy(u[i], v_.data + v_.begin(i), v_.indices + v_.begin(i), v_.length(i), partial[p].data());
      }
    });
    add_parts(partial, g, cols_);
  }

  void gram(const double* h, double* G) const override {
    sparse_row_gram(view(), [](index_t i) { return i; }, rows_, cols_, h, G);
  }

  void square_sums(const double* h, double* out) const override {
    const index_t parts = scatter_parts(stored(), cols_);
    std::vector<std::vector<double>> partial(parts);
    parallel_for(parts, [&](index_t p) {
      partial[p].assign(cols_, 0.0);
      for (index_t i = v_.cut(parts, p), last = v_.cut(parts, p + 1); i < last; ++i)
        for (index_t e = v_.begin(i); e < v_.begin(i) + v_.length(i); ++e)
          partial[p][v_.indices[e]] +=
              (h ? h[i] : 1.0) * static_cast<double>(v_.data[e]) * static_cast<double>(v_.data[e]);
    });
    add_parts(partial, out, cols_);
  }

  Columns columns(const index_t* which, index_t m) const override {
    std::vector<index_t> place(cols_, -1);
    for (index_t j = 0; j < m; ++j) place[which[j]] = j;
    // Two passes over the rows in parts: the first counts, the second fills, each part in its own slots of every
    // column.
    const index_t parts = sum_parts(stored(), 1 << 16, m);
    std::vector<std::vector<index_t>> slot(parts);
    parallel_for(parts, [&](index_t p) {
      slot[p].assign(m, 0);
      for (index_t e = v_.begin(v_.cut(parts, p)), last = v_.begin(v_.cut(parts, p + 1)); e < last; ++e)
        if (const index_t j = place[v_.indices[e]]; j >= 0) ++slot[p][j];
    });
    Columns c{.rows = rows_,
              .cols = m,
              .sparse = true,
              .start = std::vector<index_t>(m + 1, 0),
              .square = std::vector<double>(m, 0.0)};
    index_t total = 0;
    for (index_t j = 0; j < m; ++j) {
      c.start[j] = total;
      for (index_t p = 0; p < parts; ++p) {
        const index_t count = slot[p][j];
        slot[p][j] = total;
        total += count;
      }
    }
    c.start[m] = total;
    c.row.resize(total);
    c.value.resize(total);
    parallel_for(parts, [&](index_t p) {
      for (index_t i = v_.cut(parts, p), last = v_.cut(parts, p + 1); i < last; ++i)
        for (index_t e = v_.begin(i); e < v_.begin(i) + v_.length(i); ++e)
          if (const index_t j = place[v_.indices[e]]; j >= 0) {
            const index_t at = slot[p][j]++;
            c.row[at] = i;
            c.value[at] = static_cast<double>(v_.data[e]);
          }
    });
    for (index_t j = 0; j < m; ++j)
      c.square[j] = vec::square_sum(c.value.data() + c.start[j], c.start[j + 1] - c.start[j]);
    return c;
  }

 private:
  SparseRowView<T, I> view() const { return {v_.data, v_.indices, v_.indptr}; }
  Compressed<T, I> v_;
};

template <class T, class I>
class Csc final : public Design {
 public:
  Csc(Compressed<T, I> v) : Design(v.minor, v.major), v_(v) {}
  bool sparse() const override { return true; }
  index_t stored() const override { return v_.stored(); }
  ColumnView column_view() const override { return SparseRowView<T, I>{v_.data, v_.indices, v_.indptr}; }

  void matvec(const double* w, double* z) const override { v_.combine(w, z); }
  void rmatvec(const double* u, double* g) const override { v_.dots(u, g); }
  void matmat(const double* W, index_t k, double* Z) const override { v_.combine_many(W, k, Z); }
  void rmatmat(const double* U, index_t k, double* G) const override { v_.dots_many(U, k, G); }

  void gram(const double* h, double* G) const override {
    const index_t parts = parts_for(stored(), 1 << 14);
    parallel_for(parts, [&](index_t p) {
      std::vector<double> dense(rows_, 0.0);
      for (index_t j = v_.cut(parts, p), last = v_.cut(parts, p + 1); j < last; ++j) {
        for (index_t e = v_.begin(j); e < v_.begin(j) + v_.length(j); ++e)
          dense[v_.indices[e]] += (h ? h[v_.indices[e]] : 1.0) * static_cast<double>(v_.data[e]);
        for (index_t k = 0; k < cols_; ++k)
          G[j * cols_ + k] = gather_dot(v_.data + v_.begin(k), v_.indices + v_.begin(k), v_.length(k), dense.data());
        for (index_t e = v_.begin(j); e < v_.begin(j) + v_.length(j); ++e) dense[v_.indices[e]] = 0.0;
      }
    });
  }

  void square_sums(const double* h, double* out) const override {
    const index_t parts = parts_for(stored(), 1 << 14);
    parallel_for(parts, [&](index_t p) {
      for (index_t j = v_.cut(parts, p), last = v_.cut(parts, p + 1); j < last; ++j) {
        double s = 0;
        for (index_t e = v_.begin(j); e < v_.begin(j) + v_.length(j); ++e)
          s += (h ? h[v_.indices[e]] : 1.0) * static_cast<double>(v_.data[e]) * static_cast<double>(v_.data[e]);
        out[j] = s;
      }
    });
  }

  Columns columns(const index_t* which, index_t m) const override {
    Columns c{.rows = rows_,
              .cols = m,
              .sparse = true,
              .start = std::vector<index_t>(m + 1, 0),
              .square = std::vector<double>(m)};
    for (index_t j = 0; j < m; ++j) c.start[j + 1] = c.start[j] + v_.length(which[j]);
    c.row.resize(c.start[m]);
    c.value.resize(c.start[m]);
    for (index_t j = 0; j < m; ++j) {
      const index_t from = v_.begin(which[j]), length = v_.length(which[j]);
      std::copy(v_.indices + from, v_.indices + from + length, c.row.begin() + c.start[j]);
      std::copy(v_.data + from, v_.data + from + length, c.value.begin() + c.start[j]);
      c.square[j] = vec::square_sum(c.value.data() + c.start[j], length);
    }
    return c;
  }

 private:
  Compressed<T, I> v_;
};

template <class T, class I>
std::unique_ptr<Design> csr(const T* data, const I* indices, const I* indptr, index_t rows, index_t cols) {
  return std::make_unique<Csr<T, I>>(Compressed<T, I>{data, indices, indptr, rows, cols});
}
template <class T, class I>
std::unique_ptr<Design> csc(const T* data, const I* indices, const I* indptr, index_t rows, index_t cols) {
  return std::make_unique<Csc<T, I>>(Compressed<T, I>{data, indices, indptr, cols, rows});
}

#define HINGE_SPARSE(T, I)                                                              \
  template std::unique_ptr<Design> csr(const T*, const I*, const I*, index_t, index_t); \
  template std::unique_ptr<Design> csc(const T*, const I*, const I*, index_t, index_t);
HINGE_SPARSE(float, std::int32_t)
HINGE_SPARSE(float, std::int64_t)
HINGE_SPARSE(double, std::int32_t)
HINGE_SPARSE(double, std::int64_t)
#undef HINGE_SPARSE

}  // namespace hinge
