// Blocks of rows of a dense design, row-major in double, for any storage.
//
// Kernels that work on a few hundred rows at a time need one layout only. For row-major double storage a block points
// into the data; other storages are converted into a buffer that stays in the cache, so the data are still read from
// memory once.
#pragma once
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "core/design.hpp"

namespace hinge {

struct Block {
  const double* data;
  index_t stride;
};

class RowBlocks {
 public:
  explicit RowBlocks(const Design& X) : rows_(X.row_view()), columns_(X.column_view()), d_(X.cols()) {
    if (X.sparse()) throw std::invalid_argument("a dense matrix is needed");
  }

  // Rows per block such that a block with `width` doubles per row stays in the second-level cache.
  static index_t rows_for(index_t width) {
    return std::clamp<index_t>((index_t{1} << 16) / std::max<index_t>(width, 1), 32, 512);
  }

  // Rows [begin, end). `buffer` has room for (end − begin) x d values; storages other than row-major double use it.
  Block at(index_t begin, index_t end, double* buffer) const;

 private:
  RowView rows_;
  ColumnView columns_;
  index_t d_;
};

}  // namespace hinge
