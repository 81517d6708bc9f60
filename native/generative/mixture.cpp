#include "generative/mixture.hpp"

#include <algorithm>
#include <cmath>

#include "core/gram.hpp"
#include "core/pool.hpp"
#include "core/vec.hpp"
#include "generative/scatter.hpp"

namespace hinge {
namespace {

constexpr index_t kMostSums = 96;  // maximum number of parts, each of which has a scatter matrix for every component

// A smaller responsibility changes no digit of a component with appreciable weight.
constexpr double kNegligible = 1e-20;

HINGE_HOT void add_diagonal(Block x, index_t m, index_t k, index_t d, const double* __restrict r,
                            const double* __restrict mean, MixtureMoments& out) {
  for (index_t i = 0; i < m; ++i)
    for (index_t c = 0; c < k; ++c) {
      const double ri = r[i * k + c];
      if (ri < kNegligible) continue;
      out.weight[c] += ri;
      const double *row = x.data + i * x.stride, *mu = mean + c * d;
      double* __restrict shift = out.shift.data() + c * d, * __restrict square = out.square.data() + c * d;
      for (index_t j = 0; j < d; ++j) {
        const double t = row[j] - mu[j];
        shift[j] += ri * t;
        square[j] += ri * t * t;
      }
    }
}

HINGE_HOT void add_full(Block x, index_t m, index_t k, index_t d, const double* __restrict r, const double* mean,
                        std::vector<Scatter>& scatters, MixtureMoments& out) {
  for (index_t i = 0; i < m; ++i)
    for (index_t c = 0; c < k; ++c) {
      const double ri = r[i * k + c];
      if (ri < kNegligible) continue;
      out.weight[c] += ri;
      const double* __restrict row = x.data + i * x.stride, * __restrict mu = mean + c * d;
      double* __restrict shift = out.shift.data() + c * d;
      for (index_t j = 0; j < d; ++j) shift[j] += ri * (row[j] - mu[j]);
      scatters[c].add(row, mu, std::sqrt(ri));
    }
}

double harden(double* z, index_t m, index_t k, const double* w) {
  double likelihood = 0;
  for (index_t i = 0; i < m; ++i, z += k) {
    const index_t best = std::max_element(z, z + k) - z;
    const double wi = w ? w[i] : 1.0;
    likelihood += wi * z[best];
    std::fill(z, z + k, 0.0);
    z[best] = wi;
  }
  return likelihood;
}

double soften(double* z, index_t m, index_t k, const double* w, double* total) {
  softmax_rows(z, m, k, total);
  if (!w) return vec::sum(total, m);
  double likelihood = 0;
  for (index_t i = 0; i < m; ++i) {
    if (w[i] > 0) likelihood += w[i] * total[i];
    for (index_t c = 0; c < k; ++c) z[i * k + c] *= w[i];
  }
  return likelihood;
}

}  // namespace

MixtureMoments mixture_moments(const Design& X, const double* w, const Gaussians& g, bool hard) {
  const index_t n = X.rows(), d = g.d, k = g.k, entries = g.full ? d * d : d;
  // A part has enough rows that processing them costs more than allocating its d x d sums.
  const index_t least = g.full ? std::max<index_t>(4, d / 2) : 4;
  const index_t parts =
      std::min(kMostSums, sum_parts(n * k * entries, std::max<index_t>(1 << 15, least * k * entries), k * entries));
  const index_t block = RowBlocks::rows_for(g.full ? std::max<index_t>(d, 256) : d);
  const RowBlocks blocks(X);
  std::vector<MixtureMoments> partial(parts);
  parallel_for(parts, [&](index_t p) {
    MixtureMoments& out = partial[p];
    out = {0.0, std::vector<double>(k, 0.0), std::vector<double>(k * d, 0.0), {}};
    if (!g.full) out.square.assign(k * d, 0.0);
    std::vector<Scatter> scatters;
    scatters.reserve(g.full ? k : 0);
    for (index_t c = 0; g.full && c < k; ++c) scatters.emplace_back(d);
    std::vector<double> z(block * k), total(block), buffer(block * d);
    GaussianBlock score(g, block);
    const index_t end = range_begin(n, parts, p + 1);
    for (index_t i = range_begin(n, parts, p); i < end; i += block) {
      const index_t m = std::min(block, end - i);
      const double* weights = w ? w + i : nullptr;
      const Block x = blocks.at(i, i + m, buffer.data());
      score(x, m, z.data());
      out.likelihood += hard ? harden(z.data(), m, k, weights) : soften(z.data(), m, k, weights, total.data());
      if (g.full)
        add_full(x, m, k, d, z.data(), g.mean, scatters, out);
      else
        add_diagonal(x, m, k, d, z.data(), g.mean, out);
    }
    for (Scatter& s : scatters) {
      s.flush();
      if (k == 1)
        out.square = s.take();
      else
        out.square.insert(out.square.end(), s.sum().begin(), s.sum().end());
    }
  });
  MixtureMoments all = std::move(partial[0]);
  for (index_t p = 1; p < parts; ++p) {
    all.likelihood += partial[p].likelihood;
    vec::axpy(1.0, partial[p].weight.data(), all.weight.data(), k);
    vec::axpy(1.0, partial[p].shift.data(), all.shift.data(), k * d);
  }
  parallel_ranges(k * entries, 512, [&](index_t begin, index_t end) {
    for (index_t p = 1; p < parts; ++p)
      vec::axpy(1.0, partial[p].square.data() + begin, all.square.data() + begin, end - begin);
  });
  if (g.full)
    for (index_t c = 0; c < k; ++c) mirror_lower(all.square.data() + c * d * d, d);
  return all;
}

}  // namespace hinge
