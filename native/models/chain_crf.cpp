#include "models/chain_crf.hpp"

#include <algorithm>
#include <cmath>

#include "core/pool.hpp"
#include "core/vec.hpp"
#include "models/chain_kernels.hpp"
#include "models/tree.hpp"

namespace hinge {

using namespace chain;

namespace {
constexpr index_t cache_bytes = index_t{1024} << 10;  // of a second-level cache, for the sums of common attributes

std::vector<index_t> merge_parts(const std::vector<index_t>& parts, index_t most) {
  const index_t n = static_cast<index_t>(parts.size()) - 1, m = std::min(n, most);
  std::vector<index_t> merged(m + 1);
  for (index_t k = 0; k <= m; ++k) merged[k] = parts[range_begin(n, m, k)];
  return merged;
}
}  // namespace

ChainCrf::ChainCrf(const Tokens& x, const std::int32_t* y, const double* weight, Layout layout,
                   const Potentials& constraints)
    : x_(x),
      y_(y),
      weight_(weight),
      layout_(std::move(layout)),
      potentials_(constraints),
      parts_(merge_parts(sequence_parts(x), 16)),
      hot_(std::min<index_t>(x.attributes, cache_bytes / (constraints.width * static_cast<index_t>(sizeof(double))))),
      hot_begin_(x.tokens + 1, 0),
      column_(x.attributes + 1, 0),
      difference_(x.tokens * constraints.width),
      observed_pairs_(constraints.labels * constraints.width, 0.0) {
  for (index_t t = 0; t < x.tokens; ++t) {
    hot_begin_[t + 1] = hot_begin_[t];
    for (index_t k = x.indptr[t]; k < x.indptr[t + 1]; ++k) {
      if (x.attribute[k] < hot_) {
        ++hot_begin_[t + 1];
        hot_attribute_.push_back(x.attribute[k]);
        if (x.value) hot_value_.push_back(x.value[k]);
      } else {
        ++column_[x.attribute[k] + 1];
      }
    }
  }
  for (index_t a = 0; a < x.attributes; ++a) column_[a + 1] += column_[a];
  const index_t stored = column_.back();
  token_.resize(stored);
  if (x.value) token_value_.resize(stored);
  std::vector<index_t> next(column_.begin(), column_.end() - 1);
  for (index_t t = 0; t < x.tokens; ++t)
    for (index_t k = x.indptr[t]; k < x.indptr[t + 1]; ++k) {
      if (x.attribute[k] < hot_) continue;
      const index_t at = next[x.attribute[k]]++;
      token_[at] = static_cast<std::int32_t>(t);
      if (x.value) token_value_[at] = x.value[k];
    }
  const index_t parts = parts_for(stored, 16384, 64);
  column_parts_.assign(parts + 1, x.attributes);
  column_parts_[0] = hot_;
  for (index_t part = 1; part < parts; ++part)
    column_parts_[part] = std::max<index_t>(
        hot_, std::lower_bound(column_.begin(), column_.end() - 1, range_begin(stored, parts, part)) - column_.begin());
  for (index_t i = 0; i < x.sequences; ++i)
    for (index_t t = x.start[i]; t < x.start[i + 1]; ++t) {
      const index_t parent = x.parent ? x.parent[t] : t - x.start[i] - 1;
      if (parent >= 0) observed_pairs_[y[x.start[i] + parent] * constraints.width + y[t]] += weight[i];
    }
}

// `sums`: room for the expected label pairs, then for the gradients of the hot attributes.
void ChainCrf::sequences(index_t first, index_t last, double* value, double* sums) {
  double* pairs = sums;
  const Potentials& p = potentials_;
  const index_t w = p.width;
  ChainScratch scratch;
  double sum = 0;
  for (index_t i = first; i < last; ++i) {
    const index_t begin = x_.start[i], length = x_.length(i);
    if (length == 0) continue;
    double* s = difference_.data() + begin * w;
    const std::int32_t* y = y_ + begin;
    chain_scores(x_, p, i, s);
    double observed = 0;
    for (index_t t = 0; t < length; ++t) {
      const index_t parent = x_.parent ? x_.parent[begin + t] : t - 1;
      observed += s[t * w + y[t]] + (parent >= 0 ? p.pair[y[parent] * w + y[t]] : 0.0);
    }
    const double c = weight_[i];
    const double log_z =
        x_.parent ? tree_posterior(p, Tree{length, x_.parent + begin, nullptr}, s, c, pairs, nullptr, scratch)
                  : chain_posterior(p, length, s, c, pairs, scratch);
    sum += c * (log_z - observed);
    for (index_t t = 0; t < length; ++t) s[t * w + y[t]] -= 1;
    for (index_t k = 0; k < length * w; ++k) s[k] *= c;
    scatter(begin, begin + length, sums + p.labels * w);
  }
  *value = sum;
}

template <int V>
HINGE_HOT void crf_scatter(const ChainCrf& crf, index_t first, index_t last, double* sums) {
  const index_t w = wide<V>(crf.potentials_.width);
  for (index_t t = first; t < last; ++t) {
    const index_t at = crf.hot_begin_[t], n = crf.hot_begin_[t + 1] - at;
    chain::scatter<V>(crf.difference_.data() + t * w, crf.x_.value ? crf.hot_value_.data() + at : nullptr,
                      crf.hot_attribute_.data() + at, n, w, sums, crf.hot_begin_.back() - at);
  }
}

void ChainCrf::scatter(index_t first, index_t last, double* sums) const {
  HINGE_BY_WIDTH(potentials_.width, crf_scatter, *this, first, last, sums)
}

template <int V>
HINGE_HOT void crf_gather(const ChainCrf& crf, index_t first, index_t last, double* g) {
  const index_t w = wide<V>(crf.potentials_.width);
  alignas(64) double fixed[V ? 8 * V : 1];
  Table heap(V ? 0 : w);
  double* row = V ? fixed : heap.data();
  for (index_t a = first; a < last; ++a) {
    const index_t at = crf.column_[a], n = crf.column_[a + 1] - at;
    const double* value = crf.x_.value ? crf.token_value_.data() + at : nullptr;
    combine<V>(nullptr, value, crf.token_.data() + at, n, crf.difference_.data(), w, row, crf.column_.back() - at);
    crf.put(a, row, g);
  }
}

void ChainCrf::gather(index_t first, index_t last, double* g) const {
  HINGE_BY_WIDTH(potentials_.width, crf_gather, *this, first, last, g)
}

double ChainCrf::loss(const double* w, double* g) {
  potentials_.load(layout_, w);
  const index_t parts = static_cast<index_t>(parts_.size()) - 1;
  const index_t labels = potentials_.labels, width = potentials_.width, table = (labels + hot_) * width;
  std::vector<double> value(parts);
  sums_.assign(parts * table, 0.0);
  parallel_for(parts, [&](index_t part) {
    sequences(parts_[part], parts_[part + 1], &value[part], sums_.data() + part * table);
  });
  parallel_for(static_cast<index_t>(column_parts_.size()) - 1,
               [&](index_t part) { gather(column_parts_[part], column_parts_[part + 1], g); });
  double sum = value[0];
  for (index_t part = 1; part < parts; ++part) {
    sum += value[part];
    vec::axpy(1.0, sums_.data() + part * table, sums_.data(), table);
  }
  for (index_t a = 0; a < hot_; ++a) put(a, sums_.data() + (labels + a) * width, g);
  double* out = g + layout_.unary();
  for (std::size_t k = 0; k < layout_.pair.size(); ++k) {
    const index_t at = layout_.pair[k] / labels * width + layout_.pair[k] % labels;
    out[k] = sums_[at] - observed_pairs_[at];
  }
  return sum;
}

double ChainCrf::gap(double loss, const double* w, const double* g, index_t n, double l1, double l2) {
  const double entropy = std::max(0.0, loss - vec::dot(w, g, n));
  double absolute = 0, square = 0, conjugate = 0;
  for (index_t j = 0; j < n; ++j) {
    absolute += std::abs(w[j]);
    square += w[j] * w[j];
    const double excess = std::max(0.0, std::abs(g[j]) - l1);
    conjugate += excess * excess;
  }
  const double primal = loss + l1 * absolute + 0.5 * l2 * square;
  if (l2 > 0) return primal - (entropy - conjugate / (2 * l2));
  const double largest = vec::max_abs(g, n);
  return primal - (largest > l1 ? l1 / largest : 1.0) * entropy;
}

CrfFit fit_crf(ChainCrf& crf, std::vector<double> w, double l1, double l2, const LbfgsOptions& given,
               Monitor& monitor) {
  const index_t n = crf.size();
  std::vector<double> gradient(n);  // of the loss alone, at the point last asked for
  double last_loss = 0;
  const SmoothFunction smooth = [&](const double* at, double* g) {
    last_loss = crf.loss(at, gradient.data());
    double square = 0;
    const index_t parts = parts_for(n, 32768, 32);
    std::vector<double> partial(parts, 0.0);
    parallel_for(parts, [&](index_t part) {
      const index_t i = range_begin(n, parts, part), j = range_begin(n, parts, part + 1);
      for (index_t k = i; k < j; ++k) g[k] = gradient[k] + l2 * at[k];
      partial[part] = vec::square_sum(at + i, j - i);
    });
    for (double part : partial) square += part;
    return last_loss + 0.5 * l2 * square;
  };
  LbfgsOptions options = given;
  options.l1 = l1;
  options.measure = [&](double objective, const double* at, const double*) {
    return ChainCrf::gap(last_loss, at, gradient.data(), n, l1, l2) / std::max(objective, 1e-300);
  };
  CrfFit fit{std::move(w), {}, 0, 0, 0};
  fit.solver = lbfgs(n, fit.w.data(), smooth, options, monitor);
  fit.loss = crf.loss(fit.w.data(), gradient.data());  // the judge looks at what is returned
  fit.gap = ChainCrf::gap(fit.loss, fit.w.data(), gradient.data(), n, l1, l2);
  fit.objective = fit.solver.objective;
  return fit;
}

}  // namespace hinge
