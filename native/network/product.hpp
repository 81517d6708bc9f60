// C = keep C + A B for the shapes of a network's batch: a few dozen rows and a weight matrix, for which packing is too
// expensive.
//
// A(i, p) = a[i * row + p * step] with row or step equal to 1, so that one routine computes both X W and X'D. B and C
// are row-major. float on AVX-512 uses a kernel that reads A and B in place: on an Ice Lake core 120 GFLOP/s for
// 64x784x128 and 85 for 784x128x128, where OpenBLAS with its packing reaches 78 and 61. Everything else uses BLAS.
#pragma once
#include "core/hot.hpp"

namespace hinge::network {

template <class T>
void product(index_t m, index_t n, index_t k, const T* a, index_t row, index_t step, const T* b, index_t ldb, T keep,
             T* c, index_t ldc);

}  // namespace hinge::network
