#include "sequence/chain_recursions.hpp"

#include <limits>

#include "sequence/chain_kernels.hpp"

namespace hinge::chain {
namespace {

template <class Real>
constexpr Real least = sizeof(Real) == 8 ? Real(1e-200) : Real(1e-30);

template <int V, class Real>
HINGE_HOT double forward_of(const Steps<Real>& steps, index_t length, const Real* __restrict scores, Real* __restrict e,
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

template <int V, class Real>
HINGE_HOT bool backward_of(const Steps<Real>& steps, index_t length, Real* __restrict e, const Real* __restrict alpha,
                           Real* __restrict gamma, Real weight) {
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
    scale = 1 / sum;  // for the next step
  }
  return true;
}

template <int V, class Real>
HINGE_HOT void outer_of(const Real* __restrict left, const Real* __restrict right, index_t rows, index_t width,
                        Real* __restrict A) {
  using v8 = chain::v8<Real>;
  const index_t w = wide<V>(width);
  if constexpr (V > 0) {
    constexpr int block = V <= 3 ? 4 : 2;
    for (index_t i = 0; i < w; i += block) {
      v8 sum[block][V];
#pragma GCC unroll 4
      for (int b = 0; b < block; ++b)
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) sum[b][v] = reinterpret_cast<const v8*>(A + (i + b) * w)[v];
      for (index_t t = 0; t < rows; ++t) {
        const Real* l = left + t * w + i;
        const v8* r = reinterpret_cast<const v8*>(right + t * w);
#pragma GCC unroll 4
        for (int b = 0; b < block; ++b)
#pragma GCC unroll 8
          for (int v = 0; v < V; ++v) sum[b][v] += l[b] * r[v];
      }
#pragma GCC unroll 4
      for (int b = 0; b < block; ++b)
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) reinterpret_cast<v8*>(A + (i + b) * w)[v] = sum[b][v];
    }
  } else {
    for (index_t t = 0; t < rows; ++t)
      for (index_t i = 0; i < w; ++i) {
        const Real l = left[t * w + i];
        if (l == 0) continue;
        for (index_t j = 0; j < w; ++j) A[i * w + j] += l * right[t * w + j];
      }
  }
}

}  // namespace

template <class Real>
double forward(const Steps<Real>& steps, index_t length, const Real* scores, Real* e, Real* alpha) {
  HINGE_BY_WIDTH(steps.width, forward_of, steps, length, scores, e, alpha)
}

template <class Real>
bool backward(const Steps<Real>& steps, index_t length, Real* e, const Real* alpha, Real* gamma, Real weight) {
  HINGE_BY_WIDTH(steps.width, backward_of, steps, length, e, alpha, gamma, weight)
}

template <class Real>
void outer(const Real* left, const Real* right, index_t rows, index_t width, Real* A) {
  HINGE_BY_WIDTH(width, outer_of, left, right, rows, width, A)
}

template double forward(const Steps<float>&, index_t, const float*, float*, float*);
template double forward(const Steps<double>&, index_t, const double*, double*, double*);
template bool backward(const Steps<float>&, index_t, float*, const float*, float*, float);
template bool backward(const Steps<double>&, index_t, double*, const double*, double*, double);
template void outer(const float*, const float*, index_t, index_t, float*);
template void outer(const double*, const double*, index_t, index_t, double*);

}  // namespace hinge::chain
