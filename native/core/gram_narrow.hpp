// Sums of outer products of short rows, A = sum_i h_i a_i a_i' with a_i = x_i or (x_i, 1, y_i): tables of a few
// columns.
//
// All of A stays in registers while rows stream past: up to 16 numbers make 24 vectors of 8, which needs the 32
// registers of AVX-512; elsewhere `narrow_suits` is false. Rows are read in whole vectors, beyond their end; what
// belongs to the next row is put aside, and the last rows are copied to where there is room.
#pragma once
#include "core/hot.hpp"

namespace hinge {

// Whether this is the way to add up rows of m numbers, 1 and y counted, on this machine.
bool narrow_suits(index_t m);

// A is m x m with m = cols, or cols + 2 if y is given; both triangles. h may be null (all ones); rows with h_i = 0 are
// left out.
template <class T>
void narrow_gram(const T* x, index_t stride, index_t rows, index_t cols, const double* h, const double* y, double* A);

}  // namespace hinge
