// Loops over contiguous arrays, compiled for each instruction set.
#pragma once
#include "core/hot.hpp"

namespace hinge::vec {

template <class T>
HINGE_INLINE double dot_inline(const T* __restrict a, const double* __restrict b, index_t n) {
  double s = 0;
  for (index_t i = 0; i < n; ++i) s += static_cast<double>(a[i]) * b[i];
  return s;
}

template <class T>
HINGE_INLINE void axpy_inline(double c, const T* __restrict a, double* __restrict out, index_t n) {
  for (index_t i = 0; i < n; ++i) out[i] += c * static_cast<double>(a[i]);
}

double dot(const double* a, const double* b, index_t n);
double dot3(const double* a, const double* b, const double* c, index_t n);  // sum a_i b_i c_i
void axpy(double c, const double* a, double* out, index_t n);
double sum(const double* a, index_t n);
double square_sum(const double* a, index_t n);
double max_abs(const double* a, index_t n);

}  // namespace hinge::vec
