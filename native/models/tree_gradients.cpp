#include "models/tree_gradients.hpp"

#include <algorithm>
#include <cmath>

#include "core/math.hpp"
#include "core/pool.hpp"
#include "core/random.hpp"

namespace hinge::trees {
namespace {

constexpr index_t kPiece = 1024;

index_t pieces(index_t n) { return std::max<index_t>(1, (n + kPiece - 1) / kPiece); }

// Pieces are handed out in bundles, so that the pool is not asked for each thousand rows.
template <class F>
void for_pieces(index_t n, const F& f) {
  const index_t count = pieces(n), parts = std::min<index_t>(64, count);
  parallel_for(parts, [&](index_t part) {
    for (index_t p = range_begin(count, parts, part); p < range_begin(count, parts, part + 1); ++p)
      f(p * kPiece, std::min(n, (p + 1) * kPiece));
  });
}

// One exponential for both derivatives of log(1 + exp(-ys)).
template <class T>
HINGE_HOT void logistic_rows(const double* __restrict y, const double* __restrict s, const double* __restrict w,
                             index_t n, T* __restrict g, T* __restrict h) {
  if (w) {
    for (index_t i = 0; i < n; ++i) {
      const double e = math::exp(-std::fabs(s[i])), q = 1.0 / (1.0 + e);
      const double p = s[i] > 0 ? q : e * q;
      g[i] = static_cast<T>(w[i] * (p - (y[i] > 0 ? 1.0 : 0.0)));
      h[i] = static_cast<T>(w[i] * e * q * q);
    }
  } else {
    for (index_t i = 0; i < n; ++i) {
      const double e = math::exp(-std::fabs(s[i])), q = 1.0 / (1.0 + e);
      const double p = s[i] > 0 ? q : e * q;
      g[i] = static_cast<T>(p - (y[i] > 0 ? 1.0 : 0.0));
      h[i] = static_cast<T>(e * q * q);
    }
  }
}

template <class T>
void loss_rows(const Loss& loss, const double* y, const double* s, const double* w, index_t n,
               const Curvature& curvature, T* g, T* h) {
  std::vector<double> u(n), v(n), ones;
  if (!w) {
    ones.assign(n, 1.0);
    w = ones.data();
  }
  if (curvature.own) {
    loss.curvature(y, s, w, u.data(), v.data(), n);
  } else {
    loss.gradient(y, s, w, u.data(), n);
    for (index_t i = 0; i < n; ++i) v[i] = curvature.bound * w[i];
  }
  for (index_t i = 0; i < n; ++i) g[i] = static_cast<T>(u[i]), h[i] = static_cast<T>(v[i]);
}

template <class T>
void all_gradients(const Loss& loss, bool logistic, const double* y, const double* s, const double* w, index_t n,
                   const Curvature& curvature, T* g, T* h) {
  if (loss.whole_arrays()) return loss_rows(loss, y, s, w, n, curvature, g, h);
  for_pieces(n, [&](index_t b, index_t e) {
    const double* weight = w ? w + b : nullptr;
    if (logistic)
      logistic_rows(y + b, s + b, weight, e - b, g + b, h + b);
    else
      loss_rows(loss, y + b, s + b, weight, e - b, curvature, g + b, h + b);
  });
}

template <class T>
HINGE_HOT void softmax_rows(const double* __restrict y, const double* __restrict s, const double* __restrict w,
                            index_t n, index_t stride, index_t k, T* __restrict g, T* __restrict h) {
  double top[kPiece], total[kPiece];
  for (index_t i = 0; i < n; ++i) top[i] = s[i], total[i] = 0;
  for (index_t c = 1; c < k; ++c)
    for (index_t i = 0; i < n; ++i) top[i] = std::max(top[i], s[c * stride + i]);
  for (index_t c = 0; c < k; ++c)
    for (index_t i = 0; i < n; ++i) {
      const double e = math::exp(s[c * stride + i] - top[i]);
      g[c * stride + i] = static_cast<T>(e);
      total[i] += e;
    }
  for (index_t i = 0; i < n; ++i) total[i] = 1.0 / total[i];
  for (index_t c = 0; c < k; ++c)
    for (index_t i = 0; i < n; ++i) {
      const double p = static_cast<double>(g[c * stride + i]) * total[i], weight = w ? w[i] : 1.0;
      g[c * stride + i] = static_cast<T>(weight * (p - (y[i] == static_cast<double>(c) ? 1.0 : 0.0)));
      h[c * stride + i] = static_cast<T>(weight * p * (1.0 - p));
    }
}

HINGE_HOT void largest(const float* __restrict g, const float* __restrict h, index_t n, float& top_g, float& top_h) {
  float a = 0, b = 0;
  for (index_t i = 0; i < n; ++i) {
    const float x = std::fabs(g[i]), y = h[i];
    a = x > a ? x : a;
    b = y > b ? y : b;
  }
  top_g = a, top_h = b;
}

HINGE_INLINE std::uint32_t mix32(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85EBCA6Bu;
  x ^= x >> 13;
  x *= 0xC2B2AE35u;
  return x ^ (x >> 16);
}

HINGE_HOT void round_packed(const float* __restrict g, const float* __restrict h, index_t first, index_t n,
                            float g_scale, float h_scale, std::uint32_t key, std::uint32_t* __restrict out) {
  for (index_t i = 0; i < n; ++i) {
    const std::uint32_t noise = mix32(static_cast<std::uint32_t>(first + i) * 0x9E3779B1u ^ key);
    const float u = static_cast<float>(noise >> 16) * 0x1.0p-16f, v = static_cast<float>(noise & 0xffff) * 0x1.0p-16f;
    const auto a = static_cast<std::int32_t>(std::floor(g[i] * g_scale + u));
    const auto b = static_cast<std::int32_t>(h[i] * h_scale + v);
    out[i] = (static_cast<std::uint32_t>(a) << 16) | (static_cast<std::uint32_t>(b) & 0xffff);
  }
}

HINGE_HOT void round_constant(const float* __restrict g, index_t n, double scale, std::uint32_t* __restrict out) {
  for (index_t i = 0; i < n; ++i)
    out[i] = static_cast<std::uint32_t>(static_cast<std::int32_t>(std::rint(static_cast<double>(g[i]) * scale)));
}

// A power of two that keeps |sum| * unit below 2^61, and the largest number at about 2^36: the last bits, which depend
// on how a loop was vectorised, are rounded away.
double power_of_two(double largest, double count) {
  if (!(largest > 0)) return 1.0;
  int exponent, sum_exponent;
  std::frexp(largest, &exponent);
  std::frexp(largest * count, &sum_exponent);
  return std::ldexp(1.0, std::min(36 - exponent, 61 - sum_exponent));
}

}  // namespace

void gradients(const Loss& loss, bool logistic, const double* y, const double* s, const double* w, index_t n,
               const Curvature& curvature, float* g, float* h) {
  all_gradients(loss, logistic, y, s, w, n, curvature, g, h);
}
void gradients(const Loss& loss, bool logistic, const double* y, const double* s, const double* w, index_t n,
               const Curvature& curvature, double* g, double* h) {
  all_gradients(loss, logistic, y, s, w, n, curvature, g, h);
}

template <class T>
void softmax_gradients(const double* y, const double* s, const double* w, index_t n, index_t k, T* g, T* h) {
  for_pieces(n,
             [&](index_t b, index_t e) { softmax_rows(y + b, s + b, w ? w + b : nullptr, e - b, n, k, g + b, h + b); });
}
template void softmax_gradients(const double*, const double*, const double*, index_t, index_t, float*, float*);
template void softmax_gradients(const double*, const double*, const double*, index_t, index_t, double*, double*);

void round_rows(const float* g, const float* h, index_t n, double constant_h, std::uint64_t seed, Rounded& out) {
  const index_t count = pieces(n);
  std::vector<float> top_g(count), top_h(count);
  for_pieces(n, [&](index_t b, index_t e) { largest(g + b, h + b, e - b, top_g[b / kPiece], top_h[b / kPiece]); });
  const float most_g = *std::max_element(top_g.begin(), top_g.end());
  const float most_h = *std::max_element(top_h.begin(), top_h.end());
  out.packed.resize(n);
  if (constant_h > 0) {
    const double scale = most_g > 0 ? 2147480000.0 / static_cast<double>(most_g) : 1.0;
    out.form = Rounding::constant;
    out.g_unit = 1.0 / scale, out.h_unit = constant_h;
    for_pieces(n, [&](index_t b, index_t e) { round_constant(g + b, e - b, scale, out.packed.data() + b); });
    return;
  }
  // A hair below the largest integer, so that rounding up at random cannot pass it.
  const float g_scale = most_g > 0 ? 4093.9f / most_g : 1.0f, h_scale = most_h > 0 ? 2045.9f / most_h : 1.0f;
  out.form = Rounding::packed;
  out.g_unit = 1.0 / static_cast<double>(g_scale), out.h_unit = 1.0 / static_cast<double>(h_scale);
  const auto key = static_cast<std::uint32_t>(mix64(seed));
  for_pieces(n, [&](index_t b, index_t e) {
    round_packed(g + b, h + b, b, e - b, g_scale, h_scale, key, out.packed.data() + b);
  });
}

void round_rows(const double* g, const double* h, const double* w, index_t n, Rounded& out) {
  double most_g = 0, most_h = 0, weight = 0;
  for (index_t i = 0; i < n; ++i) {
    most_g = std::max(most_g, std::fabs(g[i]));
    most_h = std::max(most_h, h[i]);
    weight += w ? w[i] : 1.0;
  }
  const double g_scale = power_of_two(most_g, weight), h_scale = power_of_two(most_h, weight);
  out.form = Rounding::exact;
  out.g_unit = 1.0 / g_scale, out.h_unit = 1.0 / h_scale;
  out.exact.resize(2 * n);
  const auto scaled = [&](double x, double scale, double weight_) {
    return static_cast<std::int64_t>(std::rint(weight_ * std::rint(x * scale)));
  };
  for (index_t i = 0; i < n; ++i) {
    out.exact[2 * i] = scaled(g[i], g_scale, w ? w[i] : 1.0);
    out.exact[2 * i + 1] = scaled(h[i], h_scale, w ? w[i] : 1.0);
  }
}

}  // namespace hinge::trees
