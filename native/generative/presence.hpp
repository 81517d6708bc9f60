// [x > threshold] as a number; NaN if x is not finite, so that NaN propagates to the results.
#pragma once
#include <cmath>
#include <limits>

#include "core/hot.hpp"

namespace hinge {

HINGE_INLINE double presence(double x, double threshold) {
  const double there = x > threshold ? 1.0 : 0.0;
  return std::isfinite(x) ? there : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace hinge
