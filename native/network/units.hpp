// Activation functions h and their derivatives h'. They are branch-free in float so that loops vectorise; double uses
// the accurate functions (it is meant for full-batch training and gradient checks).
#pragma once
#include <cmath>

#include "core/math.hpp"

namespace hinge::network::units {

using math::exp;

HINGE_INLINE float tanh(float x) {
  const float q = x * x;
  const float series = x * std::fma(q, std::fma(q, std::fma(q, -17.0f / 315.0f, 2.0f / 15.0f), -1.0f / 3.0f), 1.0f);
  const float closed = 1.0f - 2.0f / (exp(2.0f * x) + 1.0f);
  return q < 0.0625f ? series : closed;
}
HINGE_INLINE double tanh(double x) { return std::tanh(x); }

// Phi(x), the normal distribution function.
HINGE_INLINE double normal_cdf(double x) { return 0.5 * std::erfc(-0.70710678118654752440 * x); }
// Abramowitz & Stegun 7.1.26 (error 1.5e-7, about that of a float).
HINGE_INLINE float normal_cdf(float x) {
  const float a = 0.70710678f * std::fabs(x);
  const float t = 1.0f / std::fma(0.3275911f, a, 1.0f);
  float p = 1.061405429f;
  p = std::fma(p, t, -1.453152027f);
  p = std::fma(p, t, 1.421413741f);
  p = std::fma(p, t, -0.284496736f);
  p = std::fma(p, t, 0.254829592f);
  const float tail = 0.5f * p * t * exp(-a * a);
  return x < 0 ? tail : 1.0f - tail;
}

// h(a) and h'(a), the latter from z = h(a) where that suffices.
struct Identity {
  template <class T>
  HINGE_INLINE static T value(T a) {
    return a;
  }
  template <class T>
  HINGE_INLINE static T derivative(T, T) {
    return T(1);
  }
};
struct Logistic {
  template <class T>
  HINGE_INLINE static T value(T a) {
    return T(1) / (T(1) + exp(-a));
  }
  template <class T>
  HINGE_INLINE static T derivative(T, T z) {
    return z * (T(1) - z);
  }
};
struct Tanh {
  template <class T>
  HINGE_INLINE static T value(T a) {
    return tanh(a);
  }
  template <class T>
  HINGE_INLINE static T derivative(T, T z) {
    return T(1) - z * z;
  }
};
struct Relu {
  template <class T>
  HINGE_INLINE static T value(T a) {
    return a > T(0) ? a : (a == a ? T(0) : a);  // NaN stays NaN, so that divergence is detected
  }
  template <class T>
  HINGE_INLINE static T derivative(T, T z) {
    return z > T(0) ? T(1) : T(0);
  }
};
struct Gelu {
  template <class T>
  HINGE_INLINE static T value(T a) {
    return a * normal_cdf(a);
  }
  template <class T>
  HINGE_INLINE static T derivative(T a, T) {
    return normal_cdf(a) + a * T(0.39894228040143267794) * exp(T(-0.5) * a * a);
  }
};

}  // namespace hinge::network::units
