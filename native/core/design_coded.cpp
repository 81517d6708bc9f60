#include "core/design_coded.hpp"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "core/row_products.hpp"
#include "core/vec.hpp"

namespace hinge {
namespace {

// Number of parts of a pass over n rows in which each part has its own array of `length`.
index_t scatter_parts(index_t n, index_t length) { return sum_parts(n, 1 << 14, length); }

}  // namespace

class Coded final : public Design {
 public:
  Coded(std::shared_ptr<Design> dense, std::vector<CodeColumn> columns)
      : Design(dense->rows(), dense->cols()), dense_(std::move(dense)), columns_(std::move(columns)) {
    for (const auto& c : columns_) {
      start_.push_back(cols_);
      cols_ += c.levels;
    }
  }

  bool sparse() const override { return true; }
  std::pair<index_t, index_t> orthogonal_block() const override {
    std::size_t most = 0;
    for (std::size_t q = 1; q < columns_.size(); ++q)
      if (columns_[q].levels > columns_[most].levels) most = q;
    return {start_[most], start_[most] + columns_[most].levels};
  }
  index_t stored() const override { return dense_->stored() + rows_ * static_cast<index_t>(columns_.size()); }

  void matvec(const double* w, double* z) const override {
    dense_->matvec(w, z);
    const index_t parts = parts_for(rows_, 1 << 13);
    parallel_for(parts,
                 [&](index_t p) { gather(range_begin(rows_, parts, p), range_begin(rows_, parts, p + 1), w, z); });
  }

  void rmatvec(const double* u, double* g) const override {
    dense_->rmatvec(u, g);
    level_sums(u, g + dense_->cols());
  }

  void matmat(const double* W, index_t k, double* Z) const override {
    dense_->matmat(W, k, Z);
    const index_t parts = parts_for(rows_ * k, 1 << 14);
    parallel_for(parts, [&](index_t p) {
      for (std::size_t q = 0; q < columns_.size(); ++q)
        for (index_t i = range_begin(rows_, parts, p); i < range_begin(rows_, parts, p + 1); ++i)
          if (const index_t level = columns_[q].code[i]; level >= 0)
            vec::axpy(1.0, W + (start_[q] + level) * k, Z + i * k, k);
    });
  }

  void rmatmat(const double* U, index_t k, double* G) const override {
    dense_->rmatmat(U, k, G);
    const index_t d = dense_->cols(), length = (cols_ - d) * k, parts = scatter_parts(rows_ * k, length);
    std::vector<std::vector<double>> partial(parts);
    parallel_for(parts, [&](index_t p) {
      partial[p].assign(length, 0.0);
      for (std::size_t q = 0; q < columns_.size(); ++q)
        for (index_t i = range_begin(rows_, parts, p); i < range_begin(rows_, parts, p + 1); ++i)
          if (const index_t level = columns_[q].code[i]; level >= 0)
            vec::axpy(1.0, U + i * k, partial[p].data() + (start_[q] + level - d) * k, k);
    });
    add_parts(partial, G + d * k, length);
  }

  // The Gram block of two coded columns is a table of sums of h; the block of one column with itself is diagonal.
  void gram(const double* h, double* G) const override {
    const index_t d = dense_->cols();
    std::vector<double> block(d * d);
    if (d > 0) dense_->gram(h, block.data());
    std::fill(G, G + cols_ * cols_, 0.0);
    for (index_t j = 0; j < d; ++j) std::copy(block.begin() + j * d, block.begin() + (j + 1) * d, G + j * cols_);
    with_numbers(h, G);
    std::vector<double> sums(cols_);
    square_sums(h, sums.data());
    for (index_t j = d; j < cols_; ++j) G[j * (cols_ + 1)] = sums[j];
    for (std::size_t q = 0; q < columns_.size(); ++q)
      for (std::size_t r = 0; r < q; ++r) with_another(q, r, h, G);
  }

  void square_sums(const double* h, double* out) const override {
    dense_->square_sums(h, out);
    const std::vector<double> ones(h ? 0 : rows_, 1.0);
    level_sums(h ? h : ones.data(), out + dense_->cols());
  }

  Columns columns(const index_t* which, index_t m) const override {
    const index_t d = dense_->cols();
    // Numeric columns become sparse columns as well, so that the selection has one storage.
    std::vector<std::vector<index_t>> rows(m);
    std::vector<std::vector<double>> values(m);
    std::vector<index_t> place(cols_, -1);
    for (index_t j = 0; j < m; ++j) place[which[j]] = j;
    std::vector<index_t> numbers;
    for (index_t j = 0; j < m; ++j)
      if (which[j] < d) numbers.push_back(which[j]);
    const Columns taken = dense_->columns(numbers.data(), static_cast<index_t>(numbers.size()));
    for (std::size_t t = 0; t < numbers.size(); ++t) {
      auto& row = rows[place[numbers[t]]];
      auto& value = values[place[numbers[t]]];
      if (taken.sparse) {
        row.assign(taken.row.begin() + taken.start[t], taken.row.begin() + taken.start[t + 1]);
        value.assign(taken.value.begin() + taken.start[t], taken.value.begin() + taken.start[t + 1]);
      } else {
        row.resize(rows_);
        for (index_t i = 0; i < rows_; ++i) row[i] = i;
        const auto from = taken.dense.begin() + static_cast<index_t>(t) * rows_;
        value.assign(from, from + rows_);
      }
    }
    for (std::size_t q = 0; q < columns_.size(); ++q)
      for (index_t i = 0; i < rows_; ++i)
        if (const index_t level = columns_[q].code[i]; level >= 0)
          if (const index_t j = place[start_[q] + level]; j >= 0) {
            rows[j].push_back(i);
            values[j].push_back(1.0);
          }
    Columns out{.rows = rows_, .cols = m, .sparse = true, .start = {0}, .square = std::vector<double>(m)};
    for (index_t j = 0; j < m; ++j) {
      out.row.insert(out.row.end(), rows[j].begin(), rows[j].end());
      out.value.insert(out.value.end(), values[j].begin(), values[j].end());
      out.start.push_back(static_cast<index_t>(out.row.size()));
      out.square[j] = vec::square_sum(values[j].data(), static_cast<index_t>(values[j].size()));
    }
    return out;
  }

  void fused(const double* w, const RowBody& body, double* z, double* u, double* g) const override {
    // Computes the scores, the body and the sums of a block of rows while its numbers and codes are in the cache.
    const index_t d = dense_->cols(), length = cols_ - d, parts = scatter_parts(rows_, length), block = 2048;
    std::vector<std::vector<double>> partial(parts);
    dense_->matvec(w, z);
    parallel_for(parts, [&](index_t p) {
      partial[p].assign(length, 0.0);
      const index_t end = range_begin(rows_, parts, p + 1);
      for (index_t i = range_begin(rows_, parts, p); i < end; i += block) {
        const index_t last = std::min(i + block, end);
        gather(i, last, w, z);
        body(i, last, z + i, u + i);
        scatter(i, last, u, partial[p].data());
      }
    });
    add_parts(partial, g + d, length);
    dense_->rmatvec(u, g);
  }

 private:
  void gather(index_t begin, index_t end, const double* w, double* z) const {
    for (std::size_t q = 0; q < columns_.size(); ++q) {
      const std::int32_t* code = columns_[q].code;
      const double* level = w + start_[q];
      for (index_t i = begin; i < end; ++i) z[i] += code[i] >= 0 ? level[code[i]] : 0.0;
    }
  }

  void scatter(index_t begin, index_t end, const double* u, double* sums) const {
    for (std::size_t q = 0; q < columns_.size(); ++q) {
      const std::int32_t* code = columns_[q].code;
      double* level = sums + start_[q] - dense_->cols();
      for (index_t i = begin; i < end; ++i)
        if (code[i] >= 0) level[code[i]] += u[i];
    }
  }

  // Sums of u by level, for all coded columns.
  void level_sums(const double* u, double* out) const {
    const index_t length = cols_ - dense_->cols(), parts = scatter_parts(rows_, length);
    std::vector<std::vector<double>> partial(parts);
    parallel_for(parts, [&](index_t p) {
      partial[p].assign(length, 0.0);
      scatter(range_begin(rows_, parts, p), range_begin(rows_, parts, p + 1), u, partial[p].data());
    });
    add_parts(partial, out, length);
  }

  // Sums by level of h times each column of D: by rows if D has rows, otherwise by columns.
  void with_numbers(const double* h, double* G) const {
    const index_t d = dense_->cols(), length = (cols_ - d) * d;
    std::vector<double> sums(length, 0.0);  // levels x d
    if (dense_->row_view().index() != 0) {
      const index_t parts = scatter_parts(rows_, length);
      std::vector<std::vector<double>> partial(parts);
      std::visit(
          [&](const auto& rows) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(rows)>, std::monostate>)
              parallel_for(parts, [&](index_t p) {
                partial[p].assign(length, 0.0);
                for (index_t i = range_begin(rows_, parts, p); i < range_begin(rows_, parts, p + 1); ++i)
                  for (std::size_t q = 0; q < columns_.size(); ++q)
                    if (const index_t level = columns_[q].code[i]; level >= 0)
                      rows.axpy(i, h ? h[i] : 1.0, partial[p].data() + (start_[q] + level - d) * d);
              });
          },
          dense_->row_view());
      add_parts(partial, sums.data(), length);
    } else {
      parallel_for(d, [&](index_t j) {
        const Columns taken = dense_->columns(&j, 1);
        const index_t stored = taken.sparse ? taken.start[1] : rows_;
        for (index_t e = 0; e < stored; ++e) {
          const index_t i = taken.sparse ? taken.row[e] : e;
          const double x = (taken.sparse ? taken.value[e] : taken.dense[e]) * (h ? h[i] : 1.0);
          for (std::size_t q = 0; q < columns_.size(); ++q)
            if (const index_t level = columns_[q].code[i]; level >= 0) sums[(start_[q] + level - d) * d + j] += x;
        }
      });
    }
    for (index_t level = d; level < cols_; ++level)
      for (index_t j = 0; j < d; ++j) {
        const double sum = sums[(level - d) * d + j];
        G[j * cols_ + level] = G[level * cols_ + j] = sum;
      }
  }

  // The table of sums of h by the codes of columns q and r.
  void with_another(std::size_t q, std::size_t r, const double* h, double* G) const {
    const std::int32_t *a = columns_[q].code, *b = columns_[r].code;
    const index_t levels = columns_[q].levels, other_levels = columns_[r].levels;
    const index_t parts = levels * other_levels > (index_t{1} << 21) ? 1 : scatter_parts(rows_, levels * other_levels);
    std::vector<std::vector<double>> partial(parts);
    parallel_for(parts, [&](index_t p) {
      partial[p].assign(levels * other_levels, 0.0);
      double* sums = partial[p].data();
      const index_t end = range_begin(rows_, parts, p + 1);
      constexpr index_t ahead = 16;
      for (index_t i = range_begin(rows_, parts, p); i < end; ++i) {
        if (const index_t j = i + ahead; j < end && a[j] >= 0 && b[j] >= 0)
          __builtin_prefetch(sums + a[j] * other_levels + b[j], 1);
        if (a[i] >= 0 && b[i] >= 0) sums[a[i] * other_levels + b[i]] += h ? h[i] : 1.0;
      }
    });
    const index_t pieces = parts_for(levels * other_levels, 1 << 14);
    parallel_for(pieces, [&](index_t p) {
      for (index_t s = range_begin(levels, pieces, p); s < range_begin(levels, pieces, p + 1); ++s) {
        double* row = G + (start_[q] + s) * cols_ + start_[r];
        for (const auto& sums : partial) vec::axpy(1.0, sums.data() + s * other_levels, row, other_levels);
      }
    });
    for (index_t s = 0; s < levels; ++s)
      for (index_t t = 0; t < other_levels; ++t)
        G[(start_[r] + t) * cols_ + start_[q] + s] = G[(start_[q] + s) * cols_ + start_[r] + t];
  }

  std::shared_ptr<Design> dense_;
  std::vector<CodeColumn> columns_;
  std::vector<index_t> start_;  // the first column of X for each coded column
};

std::unique_ptr<Design> coded(std::shared_ptr<Design> dense, std::vector<CodeColumn> columns) {
  return std::make_unique<Coded>(std::move(dense), std::move(columns));
}

}  // namespace hinge
