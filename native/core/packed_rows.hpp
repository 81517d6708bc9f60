// Inner products of the rows of two tables with few columns.
//
// The rows of one table are packed in groups of two vectors, column by column. A block of 12 rows of the other table
// times one group stays in 24 registers while the columns are read, which needs the 32 registers of AVX-512: a BLAS
// chosen for AVX2 takes twice as long, and packs its factors again for every tile. On other machines `packed_suits` is
// false.
#pragma once
#include <vector>

#include "core/hot.hpp"

namespace hinge {

// Whether these products are the fastest on this machine for rows of d entries.
bool packed_suits(index_t d);

template <class T>
class PackedRows {
 public:
  // The rows of a group; rows that are missing in the last group are zeros.
  static constexpr index_t kGroup = 128 / static_cast<index_t>(sizeof(T));

  // Packs n rows of d entries, `stride` apart.
  void pack(const T* rows, index_t stride, index_t n, index_t d);

  // out[r * ldo + c] = <a_r, row c> for m rows a_r, `stride` apart, and all packed rows; n is rounded up to whole
  // groups, so that some entries behind the n-th are written.
  void products(const T* a, index_t stride, index_t m, T* out, index_t ldo) const;

 private:
  index_t n_ = 0, d_ = 0;
  std::vector<T> values_;
};

}  // namespace hinge
