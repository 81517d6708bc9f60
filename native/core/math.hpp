// Branch-free elementary functions, so that loops over them vectorise. Errors are a few units in the last place
// (tests/contracts compares with mpmath).
#pragma once
#include <bit>
#include <cmath>
#include <limits>

#include "core/hot.hpp"

namespace hinge::math {

// exp(x) = 2^k exp(r), |r| <= ln2/2, with the Taylor polynomial of degree 13 for exp(r).
HINGE_INLINE double exp(double x) {
  const double clamped = x > 709.7 ? 709.7 : (x < -708.0 ? -708.0 : x);
  const double k = std::rint(clamped * 1.4426950408889634074);
  const double r = std::fma(-k, 1.90821492927058770002e-10, std::fma(-k, 6.93147180369123816490e-01, clamped));
  double p = 1.0 / 6227020800.0;
  p = std::fma(p, r, 1.0 / 479001600.0);
  p = std::fma(p, r, 1.0 / 39916800.0);
  p = std::fma(p, r, 1.0 / 3628800.0);
  p = std::fma(p, r, 1.0 / 362880.0);
  p = std::fma(p, r, 1.0 / 40320.0);
  p = std::fma(p, r, 1.0 / 5040.0);
  p = std::fma(p, r, 1.0 / 720.0);
  p = std::fma(p, r, 1.0 / 120.0);
  p = std::fma(p, r, 1.0 / 24.0);
  p = std::fma(p, r, 1.0 / 6.0);
  p = std::fma(p, r, 0.5);
  p = std::fma(p, r, 1.0);
  p = std::fma(p, r, 1.0);
  const std::int64_t exponent = (static_cast<std::int64_t>(static_cast<std::int32_t>(k)) + 1023) << 52;
  const double value = p * std::bit_cast<double>(exponent);
  const double large = x > 709.78 ? std::numeric_limits<double>::infinity() : value;
  const double small = x < -708.0 ? 0.0 : large;  // subnormal results are flushed to zero
  return x == x ? small : x;
}

// The same in single precision, with the polynomial of degree 7 (relative error 5e-9, plus rounding). Results stay
// finite: above 88.3 the result is e^88.3; below -87.3, where it would be subnormal, it is zero.
HINGE_INLINE float exp(float x) {
  const float clamped = x > 88.3f ? 88.3f : (x < -87.3f ? -87.3f : x);
  const float k = std::rint(clamped * 1.44269504088896341f);
  const float r = std::fma(-k, 1.42860682030941723212e-6f, std::fma(-k, 6.93145751953125e-1f, clamped));
  float p = 1.0f / 5040.0f;
  p = std::fma(p, r, 1.0f / 720.0f);
  p = std::fma(p, r, 1.0f / 120.0f);
  p = std::fma(p, r, 1.0f / 24.0f);
  p = std::fma(p, r, 1.0f / 6.0f);
  p = std::fma(p, r, 0.5f);
  p = std::fma(p, r, 1.0f);
  p = std::fma(p, r, 1.0f);
  const std::int32_t exponent = (static_cast<std::int32_t>(k) + 127) << 23;
  const float value = p * std::bit_cast<float>(exponent);
  const float small = x < -87.3f ? 0.0f : value;
  return x == x ? small : x;
}

// log(1 + t) for 0 <= t <= 1: with a = 1+t folded into [1/sqrt2, sqrt2], 2 artanh((a-1)/(a+1)).
HINGE_INLINE double log1p_unit(double t) {
  const bool high = t > 0.41421356237309505;
  const double f = high ? (t - 1.0) / (t + 3.0) : t / (t + 2.0);
  const double q = f * f;
  double p = 1.0 / 21.0;
  p = std::fma(p, q, 1.0 / 19.0);
  p = std::fma(p, q, 1.0 / 17.0);
  p = std::fma(p, q, 1.0 / 15.0);
  p = std::fma(p, q, 1.0 / 13.0);
  p = std::fma(p, q, 1.0 / 11.0);
  p = std::fma(p, q, 1.0 / 9.0);
  p = std::fma(p, q, 1.0 / 7.0);
  p = std::fma(p, q, 1.0 / 5.0);
  p = std::fma(p, q, 1.0 / 3.0);
  p = std::fma(p, q, 1.0);
  return std::fma(2.0 * f, p, high ? 0.69314718055994530942 : 0.0);
}

// log(x) = k log 2 + log(a), a in [1/sqrt2, sqrt2], log(a) = 2 artanh((a-1)/(a+1)). Zero and subnormal numbers give
// -infinity, negative ones NaN.
HINGE_INLINE double log(double x) {
  const std::int64_t bits = std::bit_cast<std::int64_t>(x);
  const std::int64_t k = (bits - 0x3fe6a09e667f3bcdLL) >> 52;  // 0x3fe6... is sqrt(1/2)
  const double a = std::bit_cast<double>(bits - (k << 52));
  const double f = (a - 1.0) / (a + 1.0), q = f * f;
  double p = 2.0 / 21.0;
  p = std::fma(p, q, 2.0 / 19.0);
  p = std::fma(p, q, 2.0 / 17.0);
  p = std::fma(p, q, 2.0 / 15.0);
  p = std::fma(p, q, 2.0 / 13.0);
  p = std::fma(p, q, 2.0 / 11.0);
  p = std::fma(p, q, 2.0 / 9.0);
  p = std::fma(p, q, 2.0 / 7.0);
  p = std::fma(p, q, 2.0 / 5.0);
  p = std::fma(p, q, 2.0 / 3.0);
  const double kd = static_cast<double>(static_cast<std::int32_t>(k));
  const double small = std::fma(p * q, f, 2.0 * f);
  const double value = std::fma(kd, 6.93147180369123816490e-01, std::fma(kd, 1.90821492927058770002e-10, small));
  const double high = x > 1.7976931348623157e308 ? x : value;
  const double low = x < 2.2250738585072014e-308 ? -std::numeric_limits<double>::infinity() : high;
  return x >= 0 ? low : std::numeric_limits<double>::quiet_NaN();
}

HINGE_INLINE double xlogx(double x) {
  const double value = x * log(x > 0 ? x : 1.0);
  return x > 0 ? value : 0.0;
}
HINGE_INLINE double xlogy(double x, double y) { return x > 0 ? x * log(y) : 0.0; }
HINGE_INLINE double positive(double x) { return x > 0 ? x : 0.0; }

}  // namespace hinge::math
