#include "problem/softmax.hpp"

#include <cmath>
#include <vector>

#include "core/math.hpp"
#include "core/pool.hpp"

namespace hinge {

// Subtracts the largest score first, so that nothing overflows.
HINGE_HOT double softmax_row(const double* __restrict s, index_t k, double* __restrict p) {
  double top = s[0];
  for (index_t j = 1; j < k; ++j) top = s[j] > top ? s[j] : top;
  double total = 0;
  for (index_t j = 0; j < k; ++j) {
    p[j] = math::exp(s[j] - top);
    total += p[j];
  }
  const double inverse = 1.0 / total;
  for (index_t j = 0; j < k; ++j) p[j] *= inverse;
  return top + std::log(total);
}

double softmax_gradient(const double* y, const double* S, const double* c, index_t n, index_t k, double* U) {
  const index_t parts = parts_for(n * k, 1 << 13);
  std::vector<double> sums(parts, 0.0);
  parallel_for(parts, [&](index_t part) {
    for (index_t i = range_begin(n, parts, part); i < range_begin(n, parts, part + 1); ++i) {
      const index_t label = static_cast<index_t>(y[i]);
      double* u = U + i * k;
      sums[part] += c[i] * (softmax_row(S + i * k, k, u) - S[i * k + label]);
      u[label] -= 1.0;
      for (index_t j = 0; j < k; ++j) u[j] *= c[i];
    }
  });
  double total = 0;
  for (const double s : sums) total += s;
  return total;
}

void softmax_rows(const double* S, index_t n, index_t k, double* P) {
  const index_t parts = parts_for(n * k, 1 << 13);
  parallel_for(parts, [&](index_t part) {
    for (index_t i = range_begin(n, parts, part); i < range_begin(n, parts, part + 1); ++i)
      softmax_row(S + i * k, k, P + i * k);
  });
}

}  // namespace hinge
