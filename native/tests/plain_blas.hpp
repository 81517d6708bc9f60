// The few routines of BLAS and LAPACK that the tests need, as their definitions read: the core has no other without
// Python.
#pragma once
#include <cmath>

#include "core/blas.hpp"

namespace hinge::tests {

inline void plain_gemm(char* ta, char* tb, int* m, int* n, int* k, double* alpha, double* a, int* lda, double* b,
                       int* ldb, double* beta, double* c, int* ldc) {
  for (int j = 0; j < *n; ++j)
    for (int i = 0; i < *m; ++i) {
      double sum = 0;
      for (int l = 0; l < *k; ++l)
        sum += (*ta == 'N' ? a[l * *lda + i] : a[i * *lda + l]) * (*tb == 'N' ? b[j * *ldb + l] : b[l * *ldb + j]);
      double& cell = c[j * *ldc + i];
      cell = *alpha * sum + (*beta == 0 ? 0.0 : *beta * cell);
    }
}

// The lower triangle of alpha A A' + beta C.
inline void plain_syrk(char*, char*, int* n, int* k, double* alpha, double* a, int* lda, double* beta, double* c,
                       int* ldc) {
  for (int j = 0; j < *n; ++j)
    for (int i = j; i < *n; ++i) {
      double sum = 0;
      for (int l = 0; l < *k; ++l) sum += a[l * *lda + i] * a[l * *lda + j];
      c[j * *ldc + i] = *alpha * sum + *beta * c[j * *ldc + i];
    }
}

// With a lower triangle: B inv(A'), inv(A) B or inv(A') B.
inline void plain_trsm(char* side, char*, char* trans, char*, int* m, int* n, double*, double* a, int* lda, double* b,
                       int* ldb) {
  const auto A = [&](int i, int j) { return a[j * *lda + i]; };
  const auto B = [&](int i, int j) -> double& { return b[j * *ldb + i]; };
  if (*side == 'R') {
    for (int i = 0; i < *m; ++i)
      for (int j = 0; j < *n; ++j) {
        double sum = B(i, j);
        for (int l = 0; l < j; ++l) sum -= B(i, l) * A(j, l);
        B(i, j) = sum / A(j, j);
      }
    return;
  }
  for (int j = 0; j < *n; ++j)
    for (int step = 0; step < *m; ++step) {
      const int i = *trans == 'N' ? step : *m - 1 - step;
      double sum = B(i, j);
      if (*trans == 'N')
        for (int l = 0; l < i; ++l) sum -= A(i, l) * B(l, j);
      else
        for (int l = i + 1; l < *m; ++l) sum -= A(l, i) * B(l, j);
      B(i, j) = sum / A(i, i);
    }
}

inline void plain_potrf(char*, int* n, double* a, int* lda, int* info) {
  *info = 0;
  for (int j = 0; j < *n; ++j) {
    double pivot = a[j * *lda + j];
    for (int l = 0; l < j; ++l) pivot -= a[l * *lda + j] * a[l * *lda + j];
    if (!(pivot > 0)) {
      *info = j + 1;
      return;
    }
    a[j * *lda + j] = std::sqrt(pivot);
    for (int i = j + 1; i < *n; ++i) {
      double sum = a[j * *lda + i];
      for (int l = 0; l < j; ++l) sum -= a[l * *lda + i] * a[l * *lda + j];
      a[j * *lda + i] = sum / a[j * *lda + j];
    }
  }
}

inline void plain_potrs(char* uplo, int* n, int* sides, double* a, int* lda, double* b, int* ldb, int* info) {
  char left = 'L', plain = 'N', transposed = 'T';
  double one = 1;
  plain_trsm(&left, uplo, &plain, &plain, n, sides, &one, a, lda, b, ldb);
  plain_trsm(&left, uplo, &transposed, &plain, n, sides, &one, a, lda, b, ldb);
  *info = 0;
}

inline void use_plain_blas() {
  blas::Table& table = blas::table();
  table.dgemm = plain_gemm, table.dsyrk = plain_syrk, table.dtrsm = plain_trsm;
  table.dpotrf = plain_potrf, table.dpotrs = plain_potrs;
}

}  // namespace hinge::tests
