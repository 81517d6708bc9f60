// Cholesky factorisation on all threads, by tiles of fixed size: the factor does not depend on the number of threads.
#pragma once
#include "core/hot.hpp"

namespace hinge {

// Overwrites the lower triangle of a symmetric matrix of order n (column-major, leading dimension ld) with its lower
// factor; the part above the diagonal is not touched. Returns false if the matrix is not positive definite.
bool cholesky(index_t n, double* a, index_t ld);

// B = A^-1 B from that factor, for nrhs contiguous columns of length n.
void cholesky_solve(index_t n, const double* a, index_t ld, index_t nrhs, double* b);

}  // namespace hinge
