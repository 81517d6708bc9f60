#include "core/vec.hpp"

#include <cmath>

namespace hinge::vec {

HINGE_HOT double dot(const double* a, const double* b, index_t n) { return dot_inline(a, b, n); }

HINGE_HOT double dot3(const double* __restrict a, const double* __restrict b, const double* __restrict c, index_t n) {
  double s = 0;
  for (index_t i = 0; i < n; ++i) s += a[i] * b[i] * c[i];
  return s;
}

HINGE_HOT void axpy(double c, const double* a, double* out, index_t n) { axpy_inline(c, a, out, n); }

HINGE_HOT double sum(const double* a, index_t n) {
  double s = 0;
  for (index_t i = 0; i < n; ++i) s += a[i];
  return s;
}

HINGE_HOT double square_sum(const double* a, index_t n) {
  double s = 0;
  for (index_t i = 0; i < n; ++i) s += a[i] * a[i];
  return s;
}

HINGE_HOT double max_abs(const double* a, index_t n) {
  double m = 0;
  for (index_t i = 0; i < n; ++i) m = std::fabs(a[i]) > m ? std::fabs(a[i]) : m;
  return m;
}

}  // namespace hinge::vec
