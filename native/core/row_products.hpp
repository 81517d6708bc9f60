// Products with rows of a dense matrix at any address: row(i) points to row i.
#pragma once
#include <algorithm>
#include <vector>

#include "core/pool.hpp"
#include "core/vec.hpp"

namespace hinge {

// Number of parts of a pass over the rows: enough for any machine, few enough that one d-vector per part is cheap.
inline index_t row_parts(index_t n, index_t d, index_t table) { return sum_parts(n * d, 1 << 15, table); }
inline index_t row_parts(index_t n, index_t d) { return row_parts(n, d, d); }

// Consecutive rows.
template <class T>
struct RowsInOrder {
  const T* data;
  index_t stride;
  HINGE_INLINE const T* operator()(index_t i) const { return data + i * stride; }
};

// A list of rows, in any order.
template <class T>
struct RowsByList {
  const T* data;
  index_t stride;
  const index_t* which;
  HINGE_INLINE const T* operator()(index_t i) const { return data + which[i] * stride; }
};

// z_i = x_i . w for rows [begin, end), four rows at a time so that w is read once for four.
template <class Rows>
HINGE_HOT void rows_dot(const Rows row, index_t begin, index_t end, index_t d, const double* __restrict w,
                        double* __restrict z) {
  index_t i = begin;
  for (; i + 4 <= end; i += 4) {
    const auto* __restrict a = row(i), * __restrict b = row(i + 1), * __restrict c = row(i + 2), * __restrict e = row(i + 3);
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (index_t j = 0; j < d; ++j) {
      const double v = w[j];
      s0 += static_cast<double>(a[j]) * v;
      s1 += static_cast<double>(b[j]) * v;
      s2 += static_cast<double>(c[j]) * v;
      s3 += static_cast<double>(e[j]) * v;
    }
    z[i] = s0, z[i + 1] = s1, z[i + 2] = s2, z[i + 3] = s3;
  }
  for (; i < end; ++i) z[i] = vec::dot_inline(row(i), w, d);
}

// g += sum_i u_i x_i for rows [begin, end), four rows at a time.
template <class Rows>
HINGE_HOT void rows_axpy(const Rows row, index_t begin, index_t end, index_t d, const double* __restrict u,
                         double* __restrict g) {
  index_t i = begin;
  for (; i + 4 <= end; i += 4) {
    const double u0 = u[i], u1 = u[i + 1], u2 = u[i + 2], u3 = u[i + 3];
    if (u0 == 0 && u1 == 0 && u2 == 0 && u3 == 0) continue;  // with subsampling most weights are zero
    const auto* __restrict a = row(i), * __restrict b = row(i + 1), * __restrict c = row(i + 2), * __restrict e = row(i + 3);
    for (index_t j = 0; j < d; ++j)
      g[j] += u0 * static_cast<double>(a[j]) + u1 * static_cast<double>(b[j]) + u2 * static_cast<double>(c[j]) +
              u3 * static_cast<double>(e[j]);
  }
  for (; i < end; ++i) vec::axpy_inline(u[i], row(i), g, d);
}

template <class T>
HINGE_HOT void scale_row(const T* __restrict x, T factor, T* __restrict out, index_t d) {
  for (index_t j = 0; j < d; ++j) out[j] = factor * x[j];
}

// Adds the vectors of the parts in order of their number, so that the sum does not depend on the threads.
inline void add_parts(const std::vector<std::vector<double>>& partial, double* out, index_t d) {
  const index_t grain = (index_t{1} << 15) / std::max<index_t>(static_cast<index_t>(partial.size()), 1);
  parallel_ranges(d, std::max<index_t>(grain, 256), [&](index_t b, index_t e) {
    std::fill(out + b, out + e, 0.0);
    for (const auto& v : partial) vec::axpy(1.0, v.data() + b, out + b, e - b);
  });
}

// z = X w and g = X'u over n rows, on all threads.
template <class Rows>
void multiply_rows(const Rows& row, index_t n, index_t d, const double* w, double* z) {
  const index_t parts = row_parts(n, d);
  parallel_for(parts,
               [&](index_t p) { rows_dot(row, range_begin(n, parts, p), range_begin(n, parts, p + 1), d, w, z); });
}

template <class Rows>
void add_up_rows(const Rows& row, index_t n, index_t d, const double* u, double* g) {
  const index_t parts = row_parts(n, d);
  std::vector<std::vector<double>> partial(parts);
  parallel_for(parts, [&](index_t p) {
    partial[p].assign(d, 0.0);
    rows_axpy(row, range_begin(n, parts, p), range_begin(n, parts, p + 1), d, u, partial[p].data());
  });
  add_parts(partial, g, d);
}

}  // namespace hinge
