// A sparse table for trees: the nonzero entries of every column, sorted by code.
//
// All rows without an entry have the code of zero, which is otherwise an ordinary code. Their statistics are those of
// the node minus those of the entries, so the cost of a search is proportional to the number of entries. The codes are
// the ones that the dense table would have: ranks of distinct values, or bins.
#pragma once
#include <vector>

#include "trees/bins.hpp"
#include "trees/cart.hpp"

namespace hinge::trees {

// Compressed columns: rows increase within a column.
template <class T>
struct Compressed {
  const T* data;
  const std::int32_t* row;
  const std::int64_t* begin;  // cols + 1
  index_t rows, cols;
};

struct Nonzeros {
  index_t rows = 0, cols = 0;
  std::vector<Feature> features;
  std::vector<std::uint32_t> zero;     // the code of zero
  std::vector<index_t> begin;          // cols + 1
  std::vector<Sorted::Entry> entries;  // those with another code; missing values last, with code kAbsent
  std::vector<std::uint32_t> order;    // the rows, in the order of the root of a tree
};

template <class T>
Nonzeros sort_nonzeros(const Compressed<T>& x);
template <class T>
Nonzeros bin_nonzeros(const Compressed<T>& x, const double* weight, const BinOptions& options);
template <class T>
std::vector<std::uint32_t> order_by_content(const Compressed<T>& x, const double* y);

}  // namespace hinge::trees
