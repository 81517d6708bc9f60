#include "generative/class_scores.hpp"

#include <atomic>
#include <cmath>
#include <cstring>

#include "core/blas.hpp"
#include "core/math.hpp"
#include "generative/presence.hpp"

namespace hinge {
namespace {

HINGE_HOT void exp_all(double* z, index_t n) {
  for (index_t e = 0; e < n; ++e) z[e] = math::exp(z[e]);
}

// The best class of each row; false if some row has no finite score.
bool best_of(const double* z, index_t m, index_t k, std::int32_t* best) {
  bool finite = true;
  for (index_t i = 0; i < m; ++i, z += k) {
    index_t top = 0;
    bool ok = std::isfinite(z[0]);
    for (index_t c = 1; c < k; ++c) {
      if (z[c] > z[top]) top = c;
      ok |= std::isfinite(z[c]);
    }
    finite &= ok && z[top] == z[top];
    best[i] = static_cast<std::int32_t>(top);
  }
  return finite;
}

bool any_finite_everywhere(const double* z, index_t m, index_t k) {
  for (index_t i = 0; i < m; ++i, z += k)
    if (std::none_of(z, z + k, [](double v) { return std::isfinite(v); })) return false;
  return true;
}

// Calls make()(begin, end, z) on blocks of rows to fill z, and stores the requested output of z.
template <class Make>
Scores score_rows(index_t n, index_t k, index_t work, index_t block, Output output, const Make& make) {
  Scores s;
  if (output == Output::best)
    s.best.resize(n);
  else
    s.value.resize(output == Output::total ? n : n * k);
  const index_t parts = parts_for(n * work, 1 << 15, 64);
  std::vector<char> finite(parts, 1);
  parallel_for(parts, [&](index_t p) {
    auto fill = make();
    const index_t begin = range_begin(n, parts, p), end = range_begin(n, parts, p + 1);
    std::vector<double> scratch(block * k), total(block);
    for (index_t i = begin; i < end; i += block) {
      const index_t m = std::min(block, end - i);
      const bool in_place = output != Output::best && output != Output::total;
      double* z = in_place ? s.value.data() + i * k : scratch.data();
      fill(i, i + m, z);
      if (output == Output::best) {
        finite[p] &= best_of(z, m, k, s.best.data() + i);
        continue;
      }
      finite[p] &= any_finite_everywhere(z, m, k);
      if (output == Output::joint) continue;
      if (output == Output::log_probability) {
        scratch.assign(z, z + m * k);
        softmax_rows(scratch.data(), m, k, total.data());
        for (index_t r = 0; r < m; ++r)
          for (index_t c = 0; c < k; ++c) z[r * k + c] -= total[r];
        scratch.resize(block * k);
      } else {
        softmax_rows(z, m, k, output == Output::total ? s.value.data() + i : total.data());
      }
    }
  });
  s.finite = std::all_of(finite.begin(), finite.end(), [](char ok) { return ok != 0; });
  return s;
}

// z = b + Σ W_j t(x_j) over the stored entries of a row, for K classes held in registers. W has `stride` columns.
template <int K, bool binary, class View>
HINGE_HOT void sparse_scores(const View& X, index_t begin, index_t end, const double* __restrict W, index_t stride,
                             const double* __restrict b, double threshold, index_t k, double* __restrict z,
                             index_t z_stride) {
  constexpr int kAhead = 8;
  const auto last = X.indptr[end];
  for (index_t i = begin; i < end; ++i) {
    double sum[K];
    for (int c = 0; c < K; ++c) sum[c] = c < k ? b[c] : 0.0;
    for (auto e = X.indptr[i]; e < X.indptr[i + 1]; ++e) {
      // The next rows of W are known in advance and are prefetched, which hides their latency. (The last prefetched
      // entries may belong to the next row of X.)
      const double* ahead = W + static_cast<index_t>(X.indices[e + kAhead < last ? e + kAhead : e]) * stride;
      for (int c = 0; c < K; c += 8) __builtin_prefetch(ahead + c);
      const double x = static_cast<double>(X.data[e]);
      const double t = binary ? presence(x, threshold) : x;
      const double* __restrict row = W + static_cast<index_t>(X.indices[e]) * stride;
      for (int c = 0; c < K; ++c) sum[c] += t * row[c];
    }
    for (index_t c = 0; c < k; ++c) z[(i - begin) * z_stride + c] = sum[c];
  }
}

// The largest number of classes held in registers; more classes are processed in several passes.
constexpr index_t kWidest = 32;
index_t table_width(index_t k) {
  for (const index_t width : {2, 4, 8, 16, 24, 32})
    if (k <= width) return width;
  return kWidest;
}

template <bool binary, class View>
void sparse_scores_any(const View& X, index_t begin, index_t end, const double* W, const Linear& model,
                       double threshold, double* z) {
  for (index_t c = 0; c < model.k; c += kWidest) {
    const index_t k = std::min(model.k - c, kWidest);
    const auto run = [&]<int K>(std::integral_constant<int, K>) {
      sparse_scores<K, binary>(X, begin, end, W + c, model.k, model.b + c, threshold, k, z + c, model.k);
    };
    switch (table_width(k)) {
      case 2:
        run(std::integral_constant<int, 2>{});
        break;
      case 4:
        run(std::integral_constant<int, 4>{});
        break;
      case 8:
        run(std::integral_constant<int, 8>{});
        break;
      case 16:
        run(std::integral_constant<int, 16>{});
        break;
      case 24:
        run(std::integral_constant<int, 24>{});
        break;
      default:
        run(std::integral_constant<int, 32>{});
    }
  }
}

// Squared distances in units of P, four rows at a time so that μ and P are read once for four rows.
HINGE_HOT void diagonal_scores(Block x, index_t m, index_t k, index_t d, const double* __restrict b,
                               const double* __restrict mean, const double* __restrict P, double* __restrict z) {
  index_t i = 0;
  for (; i + 4 <= m; i += 4) {
    const double *x0 = x.data + i * x.stride, *x1 = x0 + x.stride, *x2 = x1 + x.stride, *x3 = x2 + x.stride;
    for (index_t c = 0; c < k; ++c) {
      const double *mu = mean + c * d, *r = P + c * d;
      double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
      for (index_t j = 0; j < d; ++j) {
        const double t0 = (x0[j] - mu[j]) * r[j], t1 = (x1[j] - mu[j]) * r[j];
        const double t2 = (x2[j] - mu[j]) * r[j], t3 = (x3[j] - mu[j]) * r[j];
        s0 += t0 * t0, s1 += t1 * t1, s2 += t2 * t2, s3 += t3 * t3;
      }
      z[i * k + c] = b[c] - 0.5 * s0;
      z[(i + 1) * k + c] = b[c] - 0.5 * s1;
      z[(i + 2) * k + c] = b[c] - 0.5 * s2;
      z[(i + 3) * k + c] = b[c] - 0.5 * s3;
    }
  }
  for (; i < m; ++i)
    for (index_t c = 0; c < k; ++c) {
      const double *row = x.data + i * x.stride, *mu = mean + c * d, *r = P + c * d;
      double s = 0;
      for (index_t j = 0; j < d; ++j) {
        const double t = (row[j] - mu[j]) * r[j];
        s += t * t;
      }
      z[i * k + c] = b[c] - 0.5 * s;
    }
}

// Up to this many columns the whitening is done in registers; with more columns BLAS is faster.
constexpr index_t kSmall = 64;
constexpr index_t kLanes = 16;  // rows processed at a time

// Rows minus the centre, interleaved by kLanes: out[chunk][column][lane]. Padding rows are zero.
HINGE_HOT void interleave(Block x, index_t m, index_t d, const double* __restrict centre, double* __restrict out) {
  for (index_t i = 0; i < m; i += kLanes, out += d * kLanes)
    for (index_t q = 0; q < kLanes; ++q)
      if (i + q < m)
        for (index_t j = 0; j < d; ++j) out[j * kLanes + q] = x.data[(i + q) * x.stride + j] - centre[j];
      else
        for (index_t j = 0; j < d; ++j) out[j * kLanes + q] = 0.0;
}

typedef double Lanes __attribute__((vector_size(64)));

HINGE_INLINE Lanes load(const double* at) {
  Lanes v;
  std::memcpy(&v, at, sizeof v);
  return v;
}

// z = b − ½ Σ_a (Σ_{b ≤ a} P_ba x_b − offset_a)² for every component and kLanes rows. Four columns of the triangle at a
// time share the reads of x.
HINGE_HOT void triangle_scores(const double* __restrict x, index_t rows, index_t k, index_t d,
                               const double* __restrict packed, const double* __restrict offset,
                               const double* __restrict b, double* __restrict z) {
  for (index_t c = 0; c < k; ++c) {
    const double* P = packed + c * (d * (d + 1) / 2);
    const double* o = offset + c * d;
    Lanes low = {}, high = {};
    index_t a = 0;
    for (; a + 4 <= d; a += 4) {
      const double *p0 = P, *p1 = p0 + a + 1, *p2 = p1 + a + 2, *p3 = p2 + a + 3;
      P = p3 + a + 4;
      Lanes l0 = Lanes{} - o[a], l1 = Lanes{} - o[a + 1], l2 = Lanes{} - o[a + 2], l3 = Lanes{} - o[a + 3];
      Lanes h0 = l0, h1 = l1, h2 = l2, h3 = l3;
      for (index_t j = 0; j <= a; ++j) {
        const Lanes xl = load(x + j * kLanes), xh = load(x + j * kLanes + 8);
        l0 += p0[j] * xl, l1 += p1[j] * xl, l2 += p2[j] * xl, l3 += p3[j] * xl;
        h0 += p0[j] * xh, h1 += p1[j] * xh, h2 += p2[j] * xh, h3 += p3[j] * xh;
      }
      for (index_t j = a + 1; j < a + 4; ++j) {
        const Lanes xl = load(x + j * kLanes), xh = load(x + j * kLanes + 8);
        if (j == a + 1) l1 += p1[j] * xl, h1 += p1[j] * xh;
        if (j <= a + 2) l2 += p2[j] * xl, h2 += p2[j] * xh;
        l3 += p3[j] * xl, h3 += p3[j] * xh;
      }
      low += l0 * l0 + l1 * l1 + l2 * l2 + l3 * l3;
      high += h0 * h0 + h1 * h1 + h2 * h2 + h3 * h3;
    }
    for (; a < d; P += a + 1, ++a) {
      Lanes l = Lanes{} - o[a], h = l;
      for (index_t j = 0; j <= a; ++j) l += P[j] * load(x + j * kLanes), h += P[j] * load(x + j * kLanes + 8);
      low += l * l, high += h * h;
    }
    double sum[kLanes];
    std::memcpy(sum, &low, sizeof low);
    std::memcpy(sum + 8, &high, sizeof high);
    for (index_t q = 0; q < rows; ++q) z[q * k + c] = b[c] - 0.5 * sum[q];
  }
}

HINGE_HOT void subtract_row(Block x, index_t m, index_t d, const double* __restrict centre, double* __restrict out) {
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < d; ++j) out[i * d + j] = x.data[i * x.stride + j] - centre[j];
}

// z_c = b_c − ½ Σ over the d entries of y that belong to component c.
HINGE_HOT void norms(const double* __restrict y, index_t m, index_t group, index_t d, const double* __restrict b,
                     double* __restrict z, index_t k) {
  for (index_t i = 0; i < m; ++i)
    for (index_t c = 0; c < group; ++c) {
      const double* v = y + (i * group + c) * d;
      double s = 0;
      for (index_t j = 0; j < d; ++j) s += v[j] * v[j];
      z[i * k + c] = b[c] - 0.5 * s;
    }
}

}  // namespace

HINGE_HOT void softmax_rows(double* z, index_t m, index_t k, double* total) {
  for (index_t i = 0; i < m; ++i) {
    double top = z[i * k];
    for (index_t c = 1; c < k; ++c) top = z[i * k + c] > top ? z[i * k + c] : top;
    if (!std::isfinite(top)) top = 0.0;
    total[i] = top;
    for (index_t c = 0; c < k; ++c) z[i * k + c] -= top;
  }
  exp_all(z, m * k);
  for (index_t i = 0; i < m; ++i) {
    double s = 0;
    for (index_t c = 0; c < k; ++c) s += z[i * k + c];
    total[i] += std::log(s);
    const double scale = 1.0 / s;
    for (index_t c = 0; c < k; ++c) z[i * k + c] *= scale;
  }
}

Scores linear_scores(const Design& X, const Linear& model, Output output) {
  const index_t n = X.rows(), d = X.cols(), k = model.k;
  const double threshold = model.threshold ? *model.threshold : 0.0;
  if (!X.sparse()) {
    const RowBlocks blocks(X);
    const index_t block = RowBlocks::rows_for(d);
    return score_rows(n, k, d * k, block, output, [&] {
      return [&, buffer = std::vector<double>(block * d)](index_t begin, index_t end, double* z) mutable {
        const index_t m = end - begin;
        Block x = blocks.at(begin, end, buffer.data());
        if (model.threshold) {
          for (index_t i = 0; i < m; ++i)
            for (index_t j = 0; j < d; ++j) buffer[i * d + j] = presence(x.data[i * x.stride + j], threshold);
          x = {buffer.data(), d};
        }
        for (index_t i = 0; i < m; ++i) std::copy(model.b, model.b + k, z + i * k);
        blas::gemm('N', 'N', k, m, d, 1.0, model.W, k, x.data, x.stride, 1.0, z, k);
      };
    });
  }
  // A vector load may read past the last row.
  std::vector<double> padded(d * k + kWidest, 0.0);
  std::copy(model.W, model.W + d * k, padded.begin());
  const double* W = padded.data();
  const index_t work = (X.stored() / std::max<index_t>(n, 1) + 1) * k;
  return std::visit(
      [&]<class View>(const View& view) -> Scores {
        if constexpr (requires { view.indptr; }) {
          return score_rows(n, k, work, 256, output, [&] {
            return [&](index_t begin, index_t end, double* z) {
              if (model.threshold)
                sparse_scores_any<true>(view, begin, end, W, model, threshold, z);
              else
                sparse_scores_any<false>(view, begin, end, W, model, threshold, z);
            };
          });
        } else {
          throw std::invalid_argument("sparse scores need compressed rows");
        }
      },
      X.row_view());
}

Scores category_scores(const Design& X, const Categories& model, Output output) {
  const index_t n = X.rows(), d = X.cols(), k = model.k, block = RowBlocks::rows_for(d);
  const RowBlocks blocks(X);
  std::atomic<bool> all_known{true};
  Scores s = score_rows(n, k, d * k, block, output, [&] {
    return [&, buffer = std::vector<double>(block * d)](index_t begin, index_t end, double* z) mutable {
      const Block x = blocks.at(begin, end, buffer.data());
      for (index_t i = 0; i < end - begin; ++i, z += k) {
        std::copy(model.b, model.b + k, z);
        for (index_t j = 0; j < d; ++j) {
          const double v = x.data[i * x.stride + j];
          if (!(v >= 0 && v < static_cast<double>(model.start[j + 1] - model.start[j]))) {
            all_known = false;
            continue;
          }
          const double* row = model.T + (model.start[j] + static_cast<index_t>(v)) * k;
          for (index_t c = 0; c < k; ++c) z[c] += row[c];
        }
      }
    };
  });
  s.finite &= all_known;
  return s;
}

GaussianBlock::GaussianBlock(const Gaussians& model, index_t rows) : g_(model) {
  if (!model.full) return;
  const index_t k = model.k, d = model.d;
  centre_.assign(d, 0.0);
  for (index_t c = 0; c < k; ++c)
    for (index_t j = 0; j < d; ++j) centre_[j] += model.mean[c * d + j] / static_cast<double>(k);
  offset_.assign(k * d, 0.0);  // (μ − centre) P
  for (index_t c = 0; c < k; ++c)
    for (index_t a = 0; a < d; ++a)
      for (index_t b = a; b < d; ++b)
        offset_[c * d + b] += (model.mean[c * d + a] - centre_[a]) * model.P[(c * d + a) * d + b];
  if (d <= kSmall) {
    whiten_.reserve(k * d * (d + 1) / 2);  // the triangles, column by column
    for (index_t c = 0; c < k; ++c)
      for (index_t b = 0; b < d; ++b)
        for (index_t a = 0; a <= b; ++a) whiten_.push_back(model.P[(c * d + a) * d + b]);
    x_.resize((rows + kLanes - 1) / kLanes * kLanes * d);
    return;
  }
  // The factors of a group of components as one d x (group d) matrix, group after group.
  group_ = std::clamp<index_t>(256 / d, 1, k);
  whiten_.assign(k * d * d, 0.0);
  for (index_t c = 0; c < k; ++c) {
    const index_t first = c / group_ * group_, width = std::min(group_, k - first) * d;
    double* out = whiten_.data() + first * d * d + (c - first) * d;
    for (index_t a = 0; a < d; ++a)
      for (index_t b = a; b < d; ++b) out[a * width + b] = model.P[(c * d + a) * d + b];
  }
  y_.resize(rows * group_ * d);
  x_.resize(rows * d);
}

void GaussianBlock::operator()(Block x, index_t m, double* z) {
  const index_t k = g_.k, d = g_.d;
  if (!g_.full) return diagonal_scores(x, m, k, d, g_.b, g_.mean, g_.P, z);
  if (d <= kSmall) {
    interleave(x, m, d, centre_.data(), x_.data());
    for (index_t i = 0; i < m; i += kLanes)
      triangle_scores(x_.data() + i * d, std::min(kLanes, m - i), k, d, whiten_.data(), offset_.data(), g_.b,
                      z + i * k);
    return;
  }
  subtract_row(x, m, d, centre_.data(), x_.data());
  for (index_t first = 0; first < k; first += group_) {
    const index_t count = std::min(group_, k - first), width = count * d;
    for (index_t i = 0; i < m; ++i)
      std::transform(offset_.begin() + first * d, offset_.begin() + first * d + width, y_.begin() + i * width,
                     [](double v) { return -v; });
    blas::gemm('N', 'N', width, m, d, 1.0, whiten_.data() + first * d * d, width, x_.data(), d, 1.0, y_.data(), width);
    norms(y_.data(), m, count, d, g_.b + first, z + first, k);
  }
}

Scores gaussian_scores(const Design& X, const Gaussians& model, Output output) {
  const RowBlocks blocks(X);
  const index_t block = RowBlocks::rows_for(model.full ? std::max<index_t>(model.d, 256) : model.d);
  return score_rows(X.rows(), model.k, model.d * model.k * (model.full ? model.d : 1), block, output, [&] {
    return [&, score = GaussianBlock(model, block), buffer = std::vector<double>(block * model.d)](
               index_t begin, index_t end, double* z) mutable {
      score(blocks.at(begin, end, buffer.data()), end - begin, z);
    };
  });
}

}  // namespace hinge
