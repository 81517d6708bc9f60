// Cholesky factorisation on all threads: tiles of fixed size, so that the factor does not depend on their number.
#pragma once
#include "core/hot.hpp"

namespace hinge {

// The lower factor of a symmetric matrix of order n (column-major, columns ld apart) over its lower triangle; the part
// above the diagonal is left alone. False if the matrix is not positive definite.
bool cholesky(index_t n, double* a, index_t ld);

// B = A^-1 B by that factor, for nrhs columns of n numbers one after the other.
void cholesky_solve(index_t n, const double* a, index_t ld, index_t nrhs, double* b);

}  // namespace hinge
