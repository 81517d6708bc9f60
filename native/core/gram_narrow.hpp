// Sums of outer products of short rows, A = sum_i h_i a_i a_i' with a_i = x_i or (x_i, 1, y_i), for tables of a few
// columns.
//
// All of A stays in registers while the rows are read: up to 16 entries per row make 24 vectors of 8, which needs the
// 32 registers of AVX-512; on other machines `narrow_suits` is false. Rows are read in whole vectors, past their end;
// a mask removes what belongs to the next row, and the last rows are copied to a padded buffer.
#pragma once
#include "core/hot.hpp"

namespace hinge {

// Whether these sums are the fastest on this machine for rows of m entries, 1 and y included.
bool narrow_suits(index_t m);

// A is m x m with m = cols, or cols + 2 if y is given; both triangles are written. h may be null (all ones); rows with
// h_i = 0 are skipped.
template <class T>
void narrow_gram(const T* x, index_t stride, index_t rows, index_t cols, const double* h, const double* y, double* A);

}  // namespace hinge
