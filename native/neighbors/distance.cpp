#include "neighbors/distance.hpp"

#include <cmath>

namespace hinge {
namespace {

// The term of one coordinate in a key.
template <Metric M>
HINGE_INLINE double share(double t, double p) {
  if constexpr (M == Metric::manhattan || M == Metric::chebyshev) return std::fabs(t);
  if constexpr (M == Metric::minkowski) return std::pow(std::fabs(t), p);
  return t * t;
}

template <Metric M>
HINGE_INLINE double joined(double sum, double share) {
  return M == Metric::chebyshev ? (share > sum ? share : sum) : sum + share;
}

template <class T, Metric M>
HINGE_HOT double pair_sum(const T* a, const T* b, index_t d, double p) {
  double sum = 0;
  for (index_t k = 0; k < d; ++k)
    sum = joined<M>(sum, share<M>(static_cast<double>(a[k]) - static_cast<double>(b[k]), p));
  return sum;
}

template <class T>
HINGE_HOT double unit_pair(const T* a, const T* b, index_t d) {
  double sum = 0, aa = 0, bb = 0;
  for (index_t k = 0; k < d; ++k) {
    const double x = a[k], y = b[k];
    sum += (x - y) * (x - y);
    aa += x * x;
    bb += y * y;
  }
  return aa > 0 && bb > 0 ? sum : 2.0;
}

template <Metric M>
HINGE_HOT void direct(const double* a, const double* points, index_t stride, index_t n, index_t d, double p,
                      double* __restrict out) {
  for (index_t j = 0; j < n; ++j) out[j] = 0;
  for (index_t k = 0; k < d; ++k) {
    const double* __restrict line = points + k * stride;
    for (index_t j = 0; j < n; ++j) out[j] = joined<M>(out[j], share<M>(a[k] - line[j], p));
  }
}

template <Metric M>
HINGE_HOT double box(const double* a, const double* low, const double* high, index_t d, double p) {
  double sum = 0;
  for (index_t k = 0; k < d; ++k)
    sum = joined<M>(sum, share<M>(std::fmax(0.0, std::fmax(low[k] - a[k], a[k] - high[k])), p));
  return sum;
}

}  // namespace

template <class T>
double pair_key(const Distance& distance, const T* a, const T* b, index_t d) {
  switch (distance.metric) {
    case Metric::manhattan:
      return pair_sum<T, Metric::manhattan>(a, b, d, 1);
    case Metric::chebyshev:
      return pair_sum<T, Metric::chebyshev>(a, b, d, 1);
    case Metric::minkowski:
      return pair_sum<T, Metric::minkowski>(a, b, d, distance.p);
    case Metric::cosine:
      return unit_pair<T>(a, b, d);
    default:
      return pair_sum<T, Metric::euclidean>(a, b, d, 2);
  }
}

template double pair_key<float>(const Distance&, const float*, const float*, index_t);
template double pair_key<double>(const Distance&, const double*, const double*, index_t);

void direct_keys(const Distance& distance, const double* a, const double* points, index_t stride, index_t n, index_t d,
                 double* out) {
  switch (distance.metric) {
    case Metric::manhattan:
      return direct<Metric::manhattan>(a, points, stride, n, d, 1, out);
    case Metric::chebyshev:
      return direct<Metric::chebyshev>(a, points, stride, n, d, 1, out);
    case Metric::minkowski:
      return direct<Metric::minkowski>(a, points, stride, n, d, distance.p, out);
    default:
      return direct<Metric::euclidean>(a, points, stride, n, d, 2, out);
  }
}

double box_key(const Distance& distance, const double* a, const double* low, const double* high, index_t d) {
  switch (distance.metric) {
    case Metric::manhattan:
      return box<Metric::manhattan>(a, low, high, d, 1);
    case Metric::chebyshev:
      return box<Metric::chebyshev>(a, low, high, d, 1);
    case Metric::minkowski:
      return box<Metric::minkowski>(a, low, high, d, distance.p);
    default:
      return box<Metric::euclidean>(a, low, high, d, 2);
  }
}

template <class T>
HINGE_HOT index_t next_within(const T* values, index_t begin, index_t n, T limit) {
  constexpr index_t kChunk = 64;
  index_t j = begin;
  for (; j + kChunk <= n; j += kChunk) {
    int found = 0;
    for (index_t q = 0; q < kChunk; ++q) found |= !(values[j + q] > limit);
    if (found) break;
  }
  for (; j < n; ++j)
    if (!(values[j] > limit)) return j;
  return n;
}

template index_t next_within<float>(const float*, index_t, index_t, float);
template index_t next_within<double>(const double*, index_t, index_t, double);

}  // namespace hinge
