// BLAS and LAPACK through the function pointers that SciPy exports: hinge links no BLAS of its own and uses the one the
// user has installed.
//
// Column-major, 32-bit dimensions, Fortran calling convention. The table is filled once, when hinge is imported. During
// a native call BLAS runs on one thread (SerialBlas); the core runs in parallel over pieces of fixed size instead.
#pragma once
#include "core/hot.hpp"

namespace hinge::blas {

struct Table {
  void (*dgemm)(char*, char*, int*, int*, int*, double*, double*, int*, double*, int*, double*, double*,
                int*) = nullptr;
  void (*sgemm)(char*, char*, int*, int*, int*, float*, float*, int*, float*, int*, float*, float*, int*) = nullptr;
  void (*dsyrk)(char*, char*, int*, int*, double*, double*, int*, double*, double*, int*) = nullptr;
  void (*ssyrk)(char*, char*, int*, int*, float*, float*, int*, float*, float*, int*) = nullptr;
  void (*dtrsm)(char*, char*, char*, char*, int*, int*, double*, double*, int*, double*, int*) = nullptr;
  void (*dtrsv)(char*, char*, char*, int*, double*, int*, double*, int*) = nullptr;
  void (*dpotrf)(char*, int*, double*, int*, int*) = nullptr;
  void (*dpotrs)(char*, int*, int*, double*, int*, double*, int*, int*) = nullptr;
  void (*set_threads)(int) = nullptr;  // absent if SciPy's BLAS is not OpenBLAS
  int (*get_threads)() = nullptr;
};

Table& table();

// C = alpha op(A) op(B) + beta C
void gemm(char ta, char tb, index_t m, index_t n, index_t k, double alpha, const double* a, index_t lda,
          const double* b, index_t ldb, double beta, double* c, index_t ldc);
void gemm(char ta, char tb, index_t m, index_t n, index_t k, float alpha, const float* a, index_t lda, const float* b,
          index_t ldb, float beta, float* c, index_t ldc);
// C = alpha A A' + beta C (trans 'N') or alpha A'A + beta C (trans 'T'); only the `uplo` triangle of C is written
void syrk(char uplo, char trans, index_t n, index_t k, double alpha, const double* a, index_t lda, double beta,
          double* c, index_t ldc);
void syrk(char uplo, char trans, index_t n, index_t k, float alpha, const float* a, index_t lda, float beta, float* c,
          index_t ldc);
// B = alpha inv(op(A)) B (side 'L') or alpha B inv(op(A)) (side 'R'), A triangular
void trsm(char side, char uplo, char trans, char diag, index_t m, index_t n, double alpha, const double* a, index_t lda,
          double* b, index_t ldb);
void trsv(char uplo, char trans, char diag, index_t n, const double* a, index_t lda, double* x);
// Cholesky factor in place; false if the matrix is not positive definite
bool potrf(char uplo, index_t n, double* a, index_t lda);
void potrs(char uplo, index_t n, index_t nrhs, const double* a, index_t lda, double* b, index_t ldb);

// Keeps BLAS on one thread while any native call is running.
class SerialBlas {
 public:
  SerialBlas();
  ~SerialBlas();
  SerialBlas(const SerialBlas&) = delete;
  SerialBlas& operator=(const SerialBlas&) = delete;
};

}  // namespace hinge::blas
