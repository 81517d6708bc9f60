// Cholesky factorisation on all threads: tiles of fixed size, so that the factor does not depend on their number.
#pragma once
#include "core/hot.hpp"

namespace hinge {

// The lower factor of a symmetric matrix of order n (column-major, columns ld apart) over its lower triangle; the part
// above the diagonal is left alone. False if the matrix is not positive definite.
bool cholesky(index_t n, double* a, index_t ld);

}  // namespace hinge
