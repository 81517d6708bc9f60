// The compiled versions of src/hinge/problem/losses: pointwise value, first and second derivative in the score s, and
// Fenchel conjugate l*(y, u) = sup_s us - l(y, s). The Python classes are the definition; contract tests compare both.
//
// Outside the domain of a conjugate the value is +infinity. Labels y of margin losses are -1 or +1.
#pragma once
#include <array>
#include <limits>

#include "core/math.hpp"

namespace hinge::losses {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kEdge = 1.0 + 1e-12;  // rounding may put dual variables this far outside the domain
using math::positive;

struct Squared {
  static constexpr const char* name = "Squared";
  static constexpr std::array<const char*, 0> params{};
  HINGE_INLINE double value(double y, double s) const { return 0.5 * (s - y) * (s - y); }
  HINGE_INLINE double d1(double y, double s) const { return s - y; }
  HINGE_INLINE double d2(double, double) const { return 1.0; }
  HINGE_INLINE double conj(double y, double u) const { return 0.5 * u * u + u * y; }
};

struct Absolute {
  static constexpr const char* name = "Absolute";
  static constexpr std::array<const char*, 0> params{};
  HINGE_INLINE double value(double y, double s) const { return std::fabs(s - y); }
  HINGE_INLINE double d1(double y, double s) const { return s > y ? 1.0 : (s < y ? -1.0 : 0.0); }
  HINGE_INLINE double d2(double, double) const { return 0.0; }
  HINGE_INLINE double conj(double y, double u) const { return std::fabs(u) <= kEdge ? u * y : kInf; }
};

struct RelativeError {
  static constexpr const char* name = "RelativeError";
  static constexpr std::array<const char*, 0> params{};
  HINGE_INLINE double value(double y, double s) const { return std::fabs(s - y) / std::fabs(y); }
  HINGE_INLINE double d1(double y, double s) const { return (s > y ? 1.0 : (s < y ? -1.0 : 0.0)) / std::fabs(y); }
  HINGE_INLINE double d2(double, double) const { return 0.0; }
  HINGE_INLINE double conj(double y, double u) const { return std::fabs(u * y) <= kEdge ? u * y : kInf; }
};

struct Huber {
  double delta;
  static constexpr const char* name = "Huber";
  static constexpr std::array params{"delta"};
  HINGE_INLINE double value(double y, double s) const {
    const double r = std::fabs(s - y);
    return r <= delta ? 0.5 * r * r : delta * (r - 0.5 * delta);
  }
  HINGE_INLINE double d1(double y, double s) const {
    const double r = s - y;
    return r > delta ? delta : (r < -delta ? -delta : r);
  }
  HINGE_INLINE double d2(double y, double s) const { return std::fabs(s - y) <= delta ? 1.0 : 0.0; }
  HINGE_INLINE double conj(double y, double u) const {
    return std::fabs(u) <= delta * kEdge ? 0.5 * u * u + u * y : kInf;
  }
};

struct EpsilonInsensitive {
  double epsilon;
  static constexpr const char* name = "EpsilonInsensitive";
  static constexpr std::array params{"epsilon"};
  HINGE_INLINE double value(double y, double s) const { return positive(std::fabs(s - y) - epsilon); }
  HINGE_INLINE double d1(double y, double s) const {
    const double r = s - y;
    return r > epsilon ? 1.0 : (r < -epsilon ? -1.0 : 0.0);
  }
  HINGE_INLINE double d2(double, double) const { return 0.0; }
  HINGE_INLINE double conj(double y, double u) const {
    return std::fabs(u) <= kEdge ? u * y + epsilon * std::fabs(u) : kInf;
  }
};

struct SquaredEpsilonInsensitive {
  double epsilon;
  static constexpr const char* name = "SquaredEpsilonInsensitive";
  static constexpr std::array params{"epsilon"};
  HINGE_INLINE double value(double y, double s) const {
    const double r = positive(std::fabs(s - y) - epsilon);
    return r * r;
  }
  HINGE_INLINE double d1(double y, double s) const {
    const double r = s - y;
    return 2.0 * (positive(r - epsilon) - positive(-r - epsilon));
  }
  HINGE_INLINE double d2(double y, double s) const { return std::fabs(s - y) > epsilon ? 2.0 : 0.0; }
  HINGE_INLINE double conj(double y, double u) const { return u * y + epsilon * std::fabs(u) + 0.25 * u * u; }
};

struct Quantile {
  double quantile;
  static constexpr const char* name = "Quantile";
  static constexpr std::array params{"quantile"};
  HINGE_INLINE double value(double y, double s) const {
    const double r = y - s;
    return r >= 0 ? quantile * r : (quantile - 1.0) * r;
  }
  HINGE_INLINE double d1(double y, double s) const { return s > y ? 1.0 - quantile : (s < y ? -quantile : 0.0); }
  HINGE_INLINE double d2(double, double) const { return 0.0; }
  HINGE_INLINE double conj(double y, double u) const {
    return u >= -quantile * kEdge && u <= (1.0 - quantile) * kEdge ? u * y : kInf;
  }
};

struct LogCosh {
  static constexpr const char* name = "LogCosh";
  static constexpr std::array<const char*, 0> params{};
  HINGE_INLINE double value(double y, double s) const {
    const double r = std::fabs(s - y);
    return r + math::log1p_unit(math::exp(-2.0 * r)) - 0.69314718055994530942;
  }
  HINGE_INLINE double d1(double y, double s) const { return std::tanh(s - y); }
  HINGE_INLINE double d2(double y, double s) const {
    const double e = math::exp(-2.0 * std::fabs(s - y));
    return 4.0 * e / ((1.0 + e) * (1.0 + e));
  }
  HINGE_INLINE double conj(double y, double u) const {
    if (!(std::fabs(u) <= kEdge)) return kInf;
    return u * y + 0.5 * (math::xlogx(positive(1.0 + u)) + math::xlogx(positive(1.0 - u)));
  }
};

struct Hinge {
  static constexpr const char* name = "Hinge";
  static constexpr std::array<const char*, 0> params{};
  HINGE_INLINE double value(double y, double s) const { return positive(1.0 - y * s); }
  HINGE_INLINE double d1(double y, double s) const { return y * s < 1.0 ? -y : 0.0; }
  HINGE_INLINE double d2(double, double) const { return 0.0; }
  HINGE_INLINE double conj(double y, double u) const { return -y * u >= 0 && -y * u <= kEdge ? y * u : kInf; }
};

struct SquaredHinge {
  static constexpr const char* name = "SquaredHinge";
  static constexpr std::array<const char*, 0> params{};
  HINGE_INLINE double value(double y, double s) const {
    const double t = positive(1.0 - y * s);
    return t * t;
  }
  HINGE_INLINE double d1(double y, double s) const { return -2.0 * y * positive(1.0 - y * s); }
  HINGE_INLINE double d2(double y, double s) const { return y * s < 1.0 ? 2.0 : 0.0; }
  HINGE_INLINE double conj(double y, double u) const { return -y * u >= 0 ? y * u + 0.25 * u * u : kInf; }
};

struct ModifiedHuber {
  static constexpr const char* name = "ModifiedHuber";
  static constexpr std::array<const char*, 0> params{};
  HINGE_INLINE double value(double y, double s) const {
    const double m = y * s, t = positive(1.0 - m);
    return m >= -1.0 ? t * t : -4.0 * m;
  }
  HINGE_INLINE double d1(double y, double s) const {
    const double t = positive(1.0 - y * s);
    return -2.0 * y * (t < 2.0 ? t : 2.0);
  }
  HINGE_INLINE double d2(double, double s) const { return std::fabs(s) < 1.0 ? 2.0 : 0.0; }
  HINGE_INLINE double conj(double y, double u) const {
    return -y * u >= 0 && -y * u <= 4.0 * kEdge ? y * u + 0.25 * u * u : kInf;
  }
};

struct PerceptronLoss {
  static constexpr const char* name = "PerceptronLoss";
  static constexpr std::array<const char*, 0> params{};
  HINGE_INLINE double value(double y, double s) const { return positive(-y * s); }
  // A score of zero counts as a mistake; otherwise the perceptron would never leave w = 0.
  HINGE_INLINE double d1(double y, double s) const { return y * s <= 0.0 ? -y : 0.0; }
  HINGE_INLINE double d2(double, double) const { return 0.0; }
  HINGE_INLINE double conj(double y, double u) const { return -y * u >= 0 && -y * u <= kEdge ? 0.0 : kInf; }
};

struct Logistic {
  double scale;  // 1, or 1/log 2 so that the loss is 1 at margin 0
  static constexpr const char* name = "Logistic";
  static constexpr std::array params{"scale"};
  HINGE_INLINE double value(double y, double s) const {
    const double m = y * s;
    return scale * (positive(-m) + math::log1p_unit(math::exp(-std::fabs(m))));
  }
  HINGE_INLINE double d1(double y, double s) const {
    const double m = y * s, e = math::exp(-std::fabs(m));
    return -scale * y * (m > 0 ? e : 1.0) / (1.0 + e);
  }
  HINGE_INLINE double d2(double, double s) const {
    const double e = math::exp(-std::fabs(s));
    return scale * e / ((1.0 + e) * (1.0 + e));
  }
  HINGE_INLINE double conj(double y, double u) const {
    const double p = -y * u / scale;
    return p >= 0 && p <= kEdge ? scale * (math::xlogx(p) + math::xlogx(positive(1.0 - p))) : kInf;
  }
};

struct Exponential {
  static constexpr const char* name = "Exponential";
  static constexpr std::array<const char*, 0> params{};
  HINGE_INLINE double value(double y, double s) const { return math::exp(-y * s); }
  HINGE_INLINE double d1(double y, double s) const { return -y * math::exp(-y * s); }
  HINGE_INLINE double d2(double y, double s) const { return math::exp(-y * s); }
  HINGE_INLINE double conj(double y, double u) const {
    const double p = -y * u;
    return p >= 0 ? math::xlogx(p) - p : kInf;
  }
};

struct SquaredMargin {
  static constexpr const char* name = "SquaredMargin";
  static constexpr std::array<const char*, 0> params{};
  HINGE_INLINE double value(double y, double s) const { return (1.0 - y * s) * (1.0 - y * s); }
  HINGE_INLINE double d1(double y, double s) const { return -2.0 * y * (1.0 - y * s); }
  HINGE_INLINE double d2(double, double) const { return 2.0; }
  HINGE_INLINE double conj(double y, double u) const { return y * u + 0.25 * u * u; }
};

// Likelihoods are half unit deviances, which are zero at the saturated fit. Bernoulli, for proportions y in [0, 1], has
// the logit link; the ones after it have the log link.
struct Bernoulli {
  static constexpr const char* name = "Bernoulli";
  static constexpr std::array<const char*, 0> params{};
  HINGE_INLINE static double entropy(double p) { return math::xlogx(p) + math::xlogx(1.0 - p); }
  HINGE_INLINE double value(double y, double s) const {
    return positive(s) + math::log1p_unit(math::exp(-std::fabs(s))) - y * s + entropy(y);
  }
  HINGE_INLINE double d1(double y, double s) const {
    const double e = math::exp(-std::fabs(s));
    // The smaller of p and 1 - p is accurate to rounding, and so is p - y if y is 0 or 1.
    const double small = e / (1.0 + e);
    return s > 0 ? (1.0 - y) - small : small - y;
  }
  HINGE_INLINE double d2(double, double s) const {
    const double e = math::exp(-std::fabs(s));
    return e / ((1.0 + e) * (1.0 + e));
  }
  HINGE_INLINE double conj(double y, double u) const {
    const double p = u + y;
    return p >= -1e-12 && p <= kEdge ? entropy(positive(p < 1.0 ? p : 1.0)) - entropy(y) : kInf;
  }
};

struct Poisson {
  static constexpr const char* name = "Poisson";
  static constexpr std::array<const char*, 0> params{};
  HINGE_INLINE double value(double y, double s) const { return math::exp(s) - y * s + math::xlogx(y) - y; }
  HINGE_INLINE double d1(double y, double s) const { return math::exp(s) - y; }
  HINGE_INLINE double d2(double, double s) const { return math::exp(s); }
  HINGE_INLINE double conj(double y, double u) const {
    const double v = positive(u + y);
    return u >= -y * kEdge ? math::xlogx(v) - v - math::xlogx(y) + y : kInf;
  }
};

struct Gamma {
  static constexpr const char* name = "Gamma";
  static constexpr std::array<const char*, 0> params{};
  HINGE_INLINE double value(double y, double s) const { return s + y * math::exp(-s) - math::log(y) - 1.0; }
  HINGE_INLINE double d1(double y, double s) const { return 1.0 - y * math::exp(-s); }
  HINGE_INLINE double d2(double y, double s) const { return y * math::exp(-s); }
  HINGE_INLINE double conj(double y, double u) const {
    const double v = positive(1.0 - u);
    return u <= kEdge ? math::xlogy(v, v / y) - v + math::log(y) + 1.0 : kInf;
  }
};

struct Tweedie {
  double power;  // strictly between 1 and 2
  static constexpr const char* name = "Tweedie";
  static constexpr std::array params{"power"};
  HINGE_INLINE double value(double y, double s) const {
    const double a = 1.0 - power, b = 2.0 - power;
    return math::exp(b * s) / b - y * math::exp(a * s) / a +
           (y > 0 ? math::exp(b * math::log(y > 0 ? y : 1.0)) / (a * b) : 0.0);
  }
  HINGE_INLINE double d1(double y, double s) const {
    return math::exp((2.0 - power) * s) - y * math::exp((1.0 - power) * s);
  }
  HINGE_INLINE double d2(double y, double s) const {
    return (2.0 - power) * math::exp((2.0 - power) * s) + (power - 1.0) * y * math::exp((1.0 - power) * s);
  }
  // d1(s) = u has no closed form. d1 increases from -inf (or 0 if y = 0) to inf: bracket, then Newton inside.
  double conj(double y, double u) const {
    if (y == 0) {
      if (u < 0) return kInf;
      if (u == 0) return 0.0;
      const double s = std::log(u) / (2.0 - power);
      return u * s - value(0.0, s);
    }
    double lo = std::log(y), hi = lo;
    for (double step = 1.0; d1(y, lo) > u && step < 1e4; step *= 2) lo -= step;
    for (double step = 1.0; d1(y, hi) < u && step < 1e4; step *= 2) hi += step;
    double s = 0.5 * (lo + hi);
    for (int it = 0; it < 60; ++it) {
      const double f = d1(y, s) - u;
      (f > 0 ? hi : lo) = s;
      double next = s - f / d2(y, s);
      if (!(next > lo && next < hi)) next = 0.5 * (lo + hi);
      if (std::fabs(next - s) <= 1e-15 * (1.0 + std::fabs(s))) break;
      s = next;
    }
    return u * s - value(y, s);
  }
};

struct NegativeBinomial {
  double alpha;  // variance = mu + alpha mu^2
  static constexpr const char* name = "NegativeBinomial";
  static constexpr std::array params{"alpha"};
  HINGE_INLINE double value(double y, double s) const {
    const double mu = math::exp(s);
    return math::xlogx(y) - y * s - (y + 1.0 / alpha) * math::log((1.0 + alpha * y) / (1.0 + alpha * mu));
  }
  HINGE_INLINE double d1(double y, double s) const {
    const double mu = math::exp(s);
    return (mu - y) / (1.0 + alpha * mu);
  }
  HINGE_INLINE double d2(double y, double s) const {
    const double mu = math::exp(s), q = 1.0 + alpha * mu;
    return mu * (1.0 + alpha * y) / (q * q);
  }
  double conj(double y, double u) const {
    const double v = positive(u + y), q = positive(1.0 - alpha * u);
    if (!(u >= -y * kEdge && alpha * u <= kEdge)) return kInf;
    // At the stationary point mu = v / q and 1 + alpha mu = (1 + alpha y) / q.
    return math::xlogx(v) - math::xlogx(y) + math::xlogx(q) / alpha;
  }
};

}  // namespace hinge::losses
