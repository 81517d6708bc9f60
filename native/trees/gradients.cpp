#include "trees/gradients.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/math.hpp"
#include "core/pool.hpp"
#include "core/random.hpp"

namespace hinge::trees {
namespace {

constexpr index_t kPiece = 1024;

index_t pieces(index_t n) { return std::max<index_t>(1, (n + kPiece - 1) / kPiece); }

// Pieces are distributed in batches, so that the pool is not entered once per thousand rows.
template <class F>
void for_pieces(index_t n, const F& f) {
  const index_t count = pieces(n), parts = std::min<index_t>(64, count);
  parallel_for(parts, [&](index_t part) {
    for (index_t p = range_begin(count, parts, part); p < range_begin(count, parts, part + 1); ++p)
      f(p * kPiece, std::min(n, (p + 1) * kPiece));
  });
}

constexpr int kLanes = 16;

// Largest |g| and h of a piece.
struct Peak {
  float g = 0, h = 0;
};

// The largest of n nonnegative numbers.
HINGE_INLINE float largest(const float* x, index_t n) {
  float top[kLanes] = {};
  index_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int k = 0; k < kLanes; ++k) top[k] = x[i + k] > top[k] ? x[i + k] : top[k];
  for (; i < n; ++i) top[0] = x[i] > top[0] ? x[i] : top[0];
  return *std::max_element(top, top + kLanes);
}

// The derivatives of the log-likelihood of a class at its probability p.
struct Pair {
  float g, h;
};
HINGE_INLINE Pair at_probability(float p, bool of_it, float w) {
  return {w * (p - (of_it ? 1.0f : 0.0f)), w * (p * (1.0f - p))};
}

HINGE_HOT Peak peak_of_probabilities(const std::uint32_t* __restrict p, const double* __restrict y, double label,
                                     const double* __restrict w, index_t n) {
  float g[kPiece], h[kPiece];
  for (index_t i = 0; i < n; ++i) {
    const Pair d = at_probability(std::bit_cast<float>(p[i]), y[i] == label, w ? static_cast<float>(w[i]) : 1.0f);
    g[i] = std::fabs(d.g), h[i] = d.h;
  }
  return {largest(g, n), largest(h, n)};
}

HINGE_HOT Peak peak_of(const double* __restrict u, const double* __restrict v, index_t n) {
  float g[kPiece], h[kPiece];
  for (index_t i = 0; i < n; ++i) g[i] = static_cast<float>(std::fabs(u[i])), h[i] = static_cast<float>(v[i]);
  return {largest(g, n), largest(h, n)};
}

// Class probabilities, as the bits of float.
HINGE_HOT void logistic_rows(const double* __restrict s, index_t n, std::uint32_t* __restrict p) {
  for (index_t i = 0; i < n; ++i) {
    const float x = static_cast<float>(s[i]), e = math::exp(-std::fabs(x)), q = 1.0f / (1.0f + e);
    p[i] = std::bit_cast<std::uint32_t>(x > 0 ? q : e * q);
  }
}

HINGE_HOT void softmax_rows(const double* __restrict s, index_t n, index_t stride, index_t k,
                            std::uint32_t* __restrict p) {
  double top[kPiece];
  float total[kPiece];
  for (index_t i = 0; i < n; ++i) top[i] = s[i], total[i] = 0;
  for (index_t c = 1; c < k; ++c)
    for (index_t i = 0; i < n; ++i) top[i] = s[c * stride + i] > top[i] ? s[c * stride + i] : top[i];
  for (index_t c = 0; c < k; ++c)
    for (index_t i = 0; i < n; ++i) {
      const float e = math::exp(static_cast<float>(s[c * stride + i] - top[i]));
      p[c * stride + i] = std::bit_cast<std::uint32_t>(e);
      total[i] += e;
    }
  for (index_t i = 0; i < n; ++i) total[i] = 1.0f / total[i];
  for (index_t c = 0; c < k; ++c)
    for (index_t i = 0; i < n; ++i)
      p[c * stride + i] = std::bit_cast<std::uint32_t>(std::bit_cast<float>(p[c * stride + i]) * total[i]);
}

// The same for the exact form, in double and without weights.
HINGE_HOT void exact_logistic(const double* __restrict y, const double* __restrict s, index_t n, double* __restrict g,
                              double* __restrict h) {
  for (index_t i = 0; i < n; ++i) {
    const double e = math::exp(-std::fabs(s[i])), q = 1.0 / (1.0 + e);
    g[i] = (s[i] > 0 ? q : e * q) - (y[i] > 0 ? 1.0 : 0.0);
    h[i] = e * q * q;
  }
}

HINGE_HOT void exact_softmax(const double* __restrict y, const double* __restrict s, index_t n, index_t stride,
                             index_t k, double* __restrict g, double* __restrict h) {
  double top[kPiece], total[kPiece];
  for (index_t i = 0; i < n; ++i) top[i] = s[i], total[i] = 0;
  for (index_t c = 1; c < k; ++c)
    for (index_t i = 0; i < n; ++i) top[i] = std::max(top[i], s[c * stride + i]);
  for (index_t c = 0; c < k; ++c)
    for (index_t i = 0; i < n; ++i) {
      g[c * stride + i] = math::exp(s[c * stride + i] - top[i]);
      total[i] += g[c * stride + i];
    }
  for (index_t c = 0; c < k; ++c)
    for (index_t i = 0; i < n; ++i) {
      const double p = g[c * stride + i] / total[i];
      g[c * stride + i] = p - (y[i] == static_cast<double>(c) ? 1.0 : 0.0);
      h[c * stride + i] = p * (1.0 - p);
    }
}

// u = w l', v = w l'' (or w times the bound).
void loss_rows(const Loss& loss, const double* y, const double* s, const double* w, index_t n,
               const Curvature& curvature, double* u, double* v) {
  std::vector<double> ones;
  if (!w) {
    ones.assign(n, 1.0);
    w = ones.data();
  }
  if (curvature.own) {
    loss.curvature(y, s, w, u, v, n);
    return;
  }
  loss.gradient(y, s, w, u, n);
  for (index_t i = 0; i < n; ++i) v[i] = curvature.bound * w[i];
}

// The rows of a piece, padded to full length by repeating the last row. The compiler may round differently in the
// remainder of a loop than in its body, and the result for a row must not depend on where its block ends.
struct FullPiece {
  std::vector<double> y, scores, weight;
  FullPiece(const Scored& at, index_t begin, index_t m) : y(kPiece), scores(at.outputs * kPiece) {
    const auto fill = [&](const double* from, double* to) {
      std::copy_n(from + begin, m, to);
      std::fill(to + m, to + kPiece, to[m - 1]);
    };
    fill(at.y, y.data());
    for (index_t k = 0; k < at.outputs; ++k) fill(at.scores + k * at.rows, scores.data() + k * kPiece);
    if (at.weight) weight.resize(kPiece), fill(at.weight, weight.data());
  }
  Scored scored(index_t outputs) const {
    return {y.data(), scores.data(), weight.empty() ? nullptr : weight.data(), kPiece, outputs};
  }
};

// Calls f(rows of a full piece, out...) for the rows b ... b + m and copies its results to out (outputs x rows).
template <class F, class... Out>
void on_full_piece(const Scored& at, index_t b, index_t m, const F& f, Out*... out) {
  if (m == 0) return;
  if (m == kPiece)
    return f(Scored{at.y + b, at.scores + b, at.weight ? at.weight + b : nullptr, at.rows, at.outputs}, out + b...);
  const FullPiece piece(at, b, m);
  const auto run = [&](std::vector<Out>&&... held) {
    f(piece.scored(at.outputs), held.data()...);
    for (index_t k = 0; k < at.outputs; ++k) (std::copy_n(held.data() + k * kPiece, m, out + k * at.rows + b), ...);
  };
  run(std::vector<Out>(at.outputs * kPiece)...);
}

// The same for loops over words with two more arrays (`b` may be null).
template <class F>
void on_full_words(std::uint32_t* words, const double* a, const double* b, index_t m, const F& f) {
  if (m == kPiece) return f(words, a, b);
  if (m == 0) return;
  std::uint32_t held[kPiece];
  double one[kPiece], two[kPiece];
  const auto fill = [m](const auto* from, auto* to) {
    std::copy_n(from, m, to);
    std::fill(to + m, to + kPiece, to[m - 1]);
  };
  fill(words, held), fill(a, one);
  if (b) fill(b, two);
  f(held, one, b ? two : nullptr);
  std::copy_n(held, m, words);
}

HINGE_INLINE std::uint32_t mix32(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85EBCA6Bu;
  x ^= x >> 13;
  x *= 0xC2B2AE35u;
  return x ^ (x >> 16);
}

// Rounds to 64ths of a unit, and these stochastically to units.
struct Rounder {
  float g_scale, h_scale;  // 64ths of a unit per one
  std::uint32_t key;

  HINGE_INLINE std::uint32_t word(index_t row, const Pair& d) const {
    const std::uint32_t noise = mix32(static_cast<std::uint32_t>(row) * 0x9E3779B1u ^ key);
    const auto fine_g = static_cast<std::int32_t>(std::rint(d.g * g_scale));
    const auto fine_h = static_cast<std::int32_t>(std::rint(d.h * h_scale));
    const std::int32_t g = (fine_g + static_cast<std::int32_t>(noise >> 26)) >> Packed::kLost;
    const std::int32_t h = (fine_h + static_cast<std::int32_t>(noise & 63)) >> Packed::kLost;
    return Packed::word(g, fine_g - g * 64, h, fine_h - h * 64);
  }
};

HINGE_HOT void round_probabilities(std::uint32_t* __restrict words, const double* __restrict y, double label,
                                   const double* __restrict w, index_t first, index_t n, Rounder round) {
  for (index_t i = 0; i < n; ++i)
    words[i] = round.word(
        first + i, at_probability(std::bit_cast<float>(words[i]), y[i] == label, w ? static_cast<float>(w[i]) : 1.0f));
}

HINGE_HOT void round_pairs(const double* __restrict u, const double* __restrict v, index_t first, index_t n,
                           Rounder round, std::uint32_t* __restrict words) {
  for (index_t i = 0; i < n; ++i)
    words[i] = round.word(first + i, {static_cast<float>(u[i]), static_cast<float>(v[i])});
}

HINGE_HOT void round_constant(const double* __restrict u, index_t n, double scale, std::uint32_t* __restrict words) {
  for (index_t i = 0; i < n; ++i)
    words[i] = static_cast<std::uint32_t>(static_cast<std::int32_t>(std::rint(u[i] * scale)));
}

Peak highest(const std::vector<Peak>& peaks) {
  Peak most;
  for (const Peak& p : peaks) most.g = std::max(most.g, p.g), most.h = std::max(most.h, p.h);
  return most;
}

Rounder rounder(const Peak& most, std::uint64_t seed) {
  const auto scale = [](float peak, int units) { return peak > 0 ? static_cast<float>(units * 64) / peak : 1.0f; };
  return {scale(most.g, Packed::kMostG), scale(most.h, Packed::kMostH), static_cast<std::uint32_t>(mix64(seed))};
}

// A power of two that keeps |sum| * unit below 2^61 and the largest number at about 2^36: this rounds away the last
// bits, which depend on how a loop was vectorised.
double power_of_two(double largest, double count) {
  if (!(largest > 0)) return 1.0;
  int exponent, sum_exponent;
  std::frexp(largest, &exponent);
  std::frexp(largest * count, &sum_exponent);
  return std::ldexp(1.0, std::min(36 - exponent, 61 - sum_exponent));
}

}  // namespace

Gradients::Gradients(const Scored& at, bool exact, bool frequency)
    : rows_(at.rows), g_unit_(at.outputs, 1.0), h_unit_(at.outputs, 1.0) {
  const std::size_t size = static_cast<std::size_t>(at.rows * at.outputs);
  if (!exact) {
    words_.resize(size);
    return;
  }
  form_ = Rounding::exact;
  g_.resize(size), h_.resize(size);
  if (frequency) count_.assign(at.weight, at.weight + at.rows);
}

Rounded Gradients::rounded(index_t output) const {
  Rounded r{form_, nullptr, nullptr, nullptr, nullptr, g_unit_[output], h_unit_[output]};
  if (form_ != Rounding::exact) {
    r.words = words_.data() + output * rows_;
  } else {
    r.exact_g = g_.data() + output * rows_, r.exact_h = h_.data() + output * rows_;
    r.count = count_.empty() ? nullptr : count_.data();
  }
  return r;
}

// Derivatives before rounding, without weights, which are applied when rounding.
void Gradients::measure_exact(const Differentiated& what, const Scored& at) {
  const index_t n = rows_;
  if (what.loss && what.loss->whole_arrays())
    return loss_rows(*what.loss, at.y, at.scores, nullptr, n, what.curvature, g_.data(), h_.data());
  for_pieces(n, [&](index_t b, index_t e) {
    const auto rows = [&](const Scored& piece, double* g, double* h) {
      if (!what.loss)
        exact_softmax(piece.y, piece.scores, kPiece, piece.rows, piece.outputs, g, h);
      else if (what.logistic)
        exact_logistic(piece.y, piece.scores, kPiece, g, h);
      else
        loss_rows(*what.loss, piece.y, piece.scores, nullptr, kPiece, what.curvature, g, h);
    };
    on_full_piece(at, b, e - b, rows, g_.data(), h_.data());
  });
}

// Calls f(g, h, first row, rows) for pieces of the rows. Only the words of a row are stored, so the loss is evaluated
// twice: once for the extent and once for the rounding.
template <class F>
void Gradients::evaluate(const Differentiated& what, const Scored& at, const F& f) {
  for_pieces(rows_, [&](index_t b, index_t e) {
    if (!u_.empty()) return f(u_.data() + b, v_.data() + b, b, e - b);
    if (b == e) return;
    double g[kPiece], h[kPiece];
    const auto rows = [&](const Scored& piece) {
      loss_rows(*what.loss, piece.y, piece.scores, piece.weight, kPiece, what.curvature, g, h);
    };
    on_full_piece(at, b, e - b, rows);
    f(g, h, b, e - b);
  });
}

std::vector<Extent> Gradients::measure(const Differentiated& what, const Scored& at) {
  const index_t n = rows_;
  std::vector<Extent> extents(static_cast<std::size_t>(at.outputs));
  if (form_ == Rounding::exact) {
    measure_exact(what, at);
    double weight = 0;
    for (index_t i = 0; i < n; ++i) weight += at.weight ? at.weight[i] : 1.0;
    for (index_t k = 0; k < at.outputs; ++k) {
      Extent& most = extents[k];
      most.weight = weight;
      for (index_t i = k * n; i < (k + 1) * n; ++i) {
        require_finite(g_[i]), require_finite(h_[i]);
        most.g = std::max(most.g, std::fabs(g_[i])), most.h = std::max(most.h, h_[i]);
      }
    }
    return extents;
  }
  std::vector<Peak> peaks(pieces(n));
  const auto keep = [&](index_t k) {
    const Peak most = highest(peaks);
    extents[k].g = most.g, extents[k].h = most.h;
  };
  if (what.loss && !what.logistic) {
    if (what.loss->whole_arrays()) {
      u_.resize(n), v_.resize(n);
      loss_rows(*what.loss, at.y, at.scores, at.weight, n, what.curvature, u_.data(), v_.data());
    }
    evaluate(what, at, [&](const double* g, const double* h, index_t b, index_t m) {
      on_full_words(words_.data() + b, g, h, m, [&](std::uint32_t*, const double* u, const double* v) {
        peaks[b / kPiece] = peak_of(u, v, kPiece);
      });
    });
    keep(0);
    require_finite(extents[0].g), require_finite(extents[0].h);
    return extents;
  }
  for_pieces(n, [&](index_t b, index_t e) {
    const auto rows = [&](const Scored& piece, std::uint32_t* p) {
      if (what.loss)
        logistic_rows(piece.scores, kPiece, p);
      else
        softmax_rows(piece.scores, kPiece, piece.rows, piece.outputs, p);
    };
    on_full_piece(at, b, e - b, rows, words_.data());
  });
  for (index_t k = 0; k < at.outputs; ++k) {
    const double label = what.loss ? 1.0 : static_cast<double>(k);
    for_pieces(n, [&](index_t b, index_t e) {
      on_full_words(words_.data() + k * n + b, at.y + b, at.weight ? at.weight + b : nullptr, e - b,
                    [&](const std::uint32_t* p, const double* y, const double* w) {
                      peaks[b / kPiece] = peak_of_probabilities(p, y, label, w, kPiece);
                    });
    });
    keep(k);
  }
  return extents;
}

void Gradients::round(const Differentiated& what, const Scored& at, const std::vector<Extent>& extents,
                      std::uint64_t seed, index_t first) {
  const index_t n = rows_;
  if (form_ == Rounding::exact) {
    // Fixed point with a power-of-two unit. Weights multiply integers, so that an integer weight is exactly equivalent
    // to repeating the row.
    const double* w = at.weight;
    for (index_t k = 0; k < at.outputs; ++k) {
      double *g = g_.data() + k * n, *h = h_.data() + k * n;
      const double g_scale = power_of_two(extents[k].g, extents[k].weight);
      const double h_scale = power_of_two(extents[k].h, extents[k].weight);
      g_unit_[k] = 1.0 / g_scale, h_unit_[k] = 1.0 / h_scale;
      for (index_t i = 0; i < n; ++i) {
        g[i] = std::rint((w ? w[i] : 1.0) * std::rint(g[i] * g_scale));
        h[i] = std::rint((w ? w[i] : 1.0) * std::rint(h[i] * h_scale));
      }
    }
    return;
  }
  const auto peak = [&](index_t k) { return Peak{static_cast<float>(extents[k].g), static_cast<float>(extents[k].h)}; };
  form_ = Rounding::packed;
  if (!what.loss || what.logistic) {
    for (index_t k = 0; k < at.outputs; ++k) {
      const double label = what.loss ? 1.0 : static_cast<double>(k);
      const Rounder round = rounder(peak(k), seed + static_cast<std::uint64_t>(k));
      set_units(k, round.g_scale, round.h_scale);
      for_pieces(n, [&](index_t b, index_t e) {
        on_full_words(words_.data() + k * n + b, at.y + b, at.weight ? at.weight + b : nullptr, e - b,
                      [&](std::uint32_t* words, const double* y, const double* w) {
                        round_probabilities(words, y, label, w, first + b, kPiece, round);
                      });
      });
    }
    return;
  }
  if (!what.curvature.own && !at.weight) {
    form_ = Rounding::constant;
    const double scale = extents[0].g > 0 ? 2147480000.0 / extents[0].g : 1.0;
    g_unit_[0] = 1.0 / scale, h_unit_[0] = what.curvature.bound;
    return evaluate(what, at, [&](const double* g, const double*, index_t b, index_t m) {
      on_full_words(words_.data() + b, g, nullptr, m, [&](std::uint32_t* words, const double* u, const double*) {
        round_constant(u, kPiece, scale, words);
      });
    });
  }
  const Rounder round = rounder(peak(0), seed);
  set_units(0, round.g_scale, round.h_scale);
  evaluate(what, at, [&](const double* g, const double* h, index_t b, index_t m) {
    on_full_words(words_.data() + b, g, h, m, [&](std::uint32_t* words, const double* u, const double* v) {
      round_pairs(u, v, first + b, kPiece, round, words);
    });
  });
}

void Gradients::set_units(index_t output, float g_scale, float h_scale) {
  g_unit_[output] = 64.0 / static_cast<double>(g_scale), h_unit_[output] = 64.0 / static_cast<double>(h_scale);
}

}  // namespace hinge::trees
