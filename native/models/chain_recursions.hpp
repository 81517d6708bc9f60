// The forward and backward recursions on scaled probabilities, in either precision.
//
// Each direction has its own scale (Rabiner 1989, section V.A). All a scale can hide are terms below the smallest
// number of the precision; a sequence where a normaliser falls under `least` has to be done again with logarithms.
#pragma once
#include <limits>

#include "models/chain_kernels.hpp"

namespace hinge::chain {

template <class Real>
constexpr Real least = sizeof(Real) == 8 ? Real(1e-200) : Real(1e-30);

// exp(T - shift) and its transpose, labels x width.
template <class Real>
struct Steps {
  index_t labels, width;
  double shift;
  const Real *power, *power_t;
};

// e_t = exp(s_t - max s_t), alpha_t = e_t * (alpha_{t-1} E) / c_{t-1}, c_t the sum of alpha_t: the division is by the
// sum before, so that the product need not wait for it. Returns log Z, or NaN if a scale got too small.
template <int V, class Real>
HINGE_INLINE double forward(const Steps<Real>& steps, index_t length, const Real* __restrict scores, Real* __restrict e,
                            Real* __restrict alpha) {
  const index_t w = wide<V>(steps.width);
  double log_z = steps.shift * static_cast<double>(length - 1), product = 1;
  Real inverse = 1;
  for (index_t t = 0; t < length; ++t) {
    const Real* s = scores + t * w;
    Real* et = e + t * w;
    Real* a = alpha + t * w;
    Real top = -std::numeric_limits<Real>::infinity();
    for (index_t j = 0; j < w; ++j) top = s[j] > top ? s[j] : top;
    for (index_t j = 0; j < w; ++j) et[j] = math::exp(s[j] - top);
    Real c = 0;
    if (t == 0) {
      for (index_t j = 0; j < w; ++j) c += (a[j] = et[j]);
    } else {
      combine<V, Real>(nullptr, a - w, nullptr, steps.labels, steps.power, w, a);
      for (index_t j = 0; j < w; ++j) c += (a[j] *= et[j] * inverse);
    }
    if (!(c > least<Real>)) return std::numeric_limits<double>::quiet_NaN();
    inverse = 1 / c;
    product *= static_cast<double>(c);
    if (product < 1e-80 || product > 1e80) log_z += std::log(product), product = 1;
    log_z += static_cast<double>(top);
  }
  return log_z + std::log(product);
}

// Backwards with a scale of its own; gamma gets the marginals, e_t becomes weight * e_t b_t / z_t. False if a scale got
// too small.
template <int V, class Real>
HINGE_INLINE bool backward(const Steps<Real>& steps, index_t length, Real* __restrict e, const Real* __restrict alpha,
                           Real* __restrict gamma, Real weight = 1) {
  const index_t w = wide<V>(steps.width);
  Real total = 0, scale = 1;
  for (index_t j = 0; j < w; ++j) total += alpha[(length - 1) * w + j];
  for (index_t j = 0; j < w; ++j) gamma[(length - 1) * w + j] = alpha[(length - 1) * w + j] / total;
  alignas(64) Real b[V ? 8 * V : 1];
  std::vector<Real, AlignedAllocator<Real>> heap(V ? 0 : w);
  Real* back = V ? b : heap.data();
  for (index_t j = 0; j < w; ++j) back[j] = 1;
  for (index_t t = length - 1; t > 0; --t) {
    Real* v = e + t * w;
    const Real* a = alpha + (t - 1) * w;
    Real* g = gamma + (t - 1) * w;
    for (index_t j = 0; j < w; ++j) v[j] *= back[j];
    combine<V, Real>(nullptr, v, nullptr, steps.labels, steps.power_t, w, back);
    Real z = 0, sum = 0;
    for (index_t j = 0; j < w; ++j) {
      back[j] *= scale;
      g[j] = a[j] * back[j];
      z += g[j];
      sum += back[j];
    }
    if (!(z > least<Real>) || !(sum < 1 / least<Real>)) return false;
    const Real inverse = 1 / z, share = weight * scale * inverse;
    for (index_t j = 0; j < w; ++j) {
      g[j] *= inverse;
      v[j] *= share;
    }
    scale = 1 / sum;  // for the step to come
  }
  return true;
}

}  // namespace hinge::chain
