// C = keep C + A B for the shapes of a network's batch: a few dozen rows, a weight matrix, no time to pack.
//
// A(i, p) = a[i * row + p * step] with row or step equal to 1, so that one routine takes both X W and X'D. B and C are
// row-major. float on AVX-512 uses a kernel of our own that reads A and B where they are: on an Ice Lake core 120
// GFLOP/s for 64x784x128 and 85 for 784x128x128, where OpenBLAS's packing leaves 78 and 61. Everything else is BLAS.
#pragma once
#include "core/hot.hpp"

namespace hinge::network {

template <class T>
void product(index_t m, index_t n, index_t k, const T* a, index_t row, index_t step, const T* b, index_t ldb, T keep,
             T* c, index_t ldc);

}  // namespace hinge::network
