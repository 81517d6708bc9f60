#include "models/chain_crf.hpp"

#include <algorithm>
#include <cmath>

#include "core/pool.hpp"
#include "core/vec.hpp"
#include "models/chain_kernels.hpp"

namespace hinge {

using namespace chain;

namespace {

constexpr index_t table_bytes = index_t{2} << 20;    // of the sums of common attributes, for each part
constexpr index_t cross_bytes = index_t{256} << 20;  // of the sums of observed label pairs, for all parts
constexpr index_t block_bytes = index_t{384} << 10;  // of the rows of a block: part of a second-level cache

// Cuts the sequences where the tokens reach multiples of `size`.
std::vector<index_t> cut(const Tokens& x, index_t size) {
  std::vector<index_t> bounds{0};
  for (index_t i = 1; i < x.sequences; ++i)
    if (x.start[i] / size != x.start[bounds.back()] / size) bounds.push_back(i);
  bounds.push_back(x.sequences);
  return bounds;
}

}  // namespace

ChainCrf::ChainCrf(const Tokens& x, const std::int32_t* y, const double* weight, Layout layout,
                   const Potentials& constraints)
    : x_(x),
      y_(y),
      weight_(weight),
      layout_(std::move(layout)),
      potentials_(constraints),
      hot_(std::min<index_t>(x.attributes, table_bytes / (constraints.width * static_cast<index_t>(sizeof(double))))),
      blocks_(cut(x, std::max<index_t>(64, block_bytes / (constraints.width * static_cast<index_t>(sizeof(double)))))),
      column_(x.attributes + 1, 0),
      difference_(x.tokens * constraints.width),
      observed_pairs_(constraints.labels * constraints.width, 0.0) {
  const index_t blocks = static_cast<index_t>(blocks_.size()) - 1;
  index_t parts = std::min(blocks, parts_for(x.tokens, 8192, 32));
  if (layout_.crossed() > 0) parts = std::min(parts, std::max<index_t>(2, cross_bytes / (8 * layout_.crossed())));
  for (index_t part = 0; part <= parts; ++part) parts_.push_back(range_begin(blocks, parts, part));
  index_hot();
  index_others();
  if (layout_.crossed() > 0) {
    observed_cross_.assign(layout_.crossed(), 0.0);
    potentials_.load(layout_, std::vector<double>(layout_.size(), 0.0).data());
    SequenceReader reader(x_, potentials_);
    for (index_t i = 0; i < x.sequences; ++i) {
      if (x.length(i) == 0) continue;
      reader.read(i);
      const std::int32_t* labels = y + x.start[i];
      for (index_t t = 0; t < reader.length(); ++t)
        if (const index_t up = reader.parent(t); up >= 0)
          reader.cross_of(t, labels[up], labels[t], [&](index_t k, double v) { observed_cross_[k] += weight[i] * v; });
    }
  }
  for (index_t i = 0; i < x.sequences; ++i)
    for (index_t t = x.start[i]; t < x.start[i + 1]; ++t) {
      const index_t parent = x.parent ? x.parent[t] : t - x.start[i] - 1;
      if (parent >= 0) observed_pairs_[y[x.start[i] + parent] * constraints.width + y[t]] += weight[i];
    }
}

void ChainCrf::index_hot() {
  std::vector<index_t> next(hot_);
  block_entry_.push_back(0);
  hot_begin_.push_back(0);
  for (std::size_t b = 0; b + 1 < blocks_.size(); ++b) {
    const index_t first = x_.start[blocks_[b]], last = x_.start[blocks_[b + 1]];
    std::fill(next.begin(), next.end(), 0);
    for (index_t k = x_.indptr[first]; k < x_.indptr[last]; ++k)
      if (x_.attribute[k] < hot_) ++next[x_.attribute[k]];
    for (index_t a = 0; a < hot_; ++a) {
      if (next[a] == 0) continue;
      hot_attribute_.push_back(static_cast<std::int32_t>(a));
      hot_begin_.push_back(hot_begin_.back() + next[a]);
      next[a] = hot_begin_.back() - next[a];
    }
    hot_token_.resize(hot_begin_.back());
    if (x_.value) hot_value_.resize(hot_begin_.back());
    for (index_t t = first; t < last; ++t)
      for (index_t k = x_.indptr[t]; k < x_.indptr[t + 1]; ++k) {
        if (x_.attribute[k] >= hot_) continue;
        const index_t at = next[x_.attribute[k]]++;
        hot_token_[at] = static_cast<std::int32_t>(t);
        if (x_.value) hot_value_[at] = x_.value[k];
      }
    block_entry_.push_back(static_cast<index_t>(hot_attribute_.size()));
  }
}

void ChainCrf::index_others() {
  const index_t all = x_.indptr[x_.tokens];
  for (index_t k = 0; k < all; ++k)
    if (x_.attribute[k] >= hot_) ++column_[x_.attribute[k] + 1];
  for (index_t a = 0; a < x_.attributes; ++a) column_[a + 1] += column_[a];
  const index_t stored = column_.back();
  token_.resize(stored);
  if (x_.value) token_value_.resize(stored);
  std::vector<index_t> next(column_.begin(), column_.end() - 1);
  for (index_t t = 0; t < x_.tokens; ++t)
    for (index_t k = x_.indptr[t]; k < x_.indptr[t + 1]; ++k) {
      if (x_.attribute[k] < hot_) continue;
      const index_t at = next[x_.attribute[k]]++;
      token_[at] = static_cast<std::int32_t>(t);
      if (x_.value) token_value_[at] = x_.value[k];
    }
  const index_t parts = parts_for(stored, 16384, 64);
  column_parts_.assign(parts + 1, x_.attributes);
  column_parts_[0] = hot_;
  for (index_t part = 1; part < parts; ++part)
    column_parts_[part] = std::max<index_t>(
        hot_, std::lower_bound(column_.begin(), column_.end() - 1, range_begin(stored, parts, part)) - column_.begin());
}

void ChainCrf::sequences(index_t first, index_t last, double* value, double* pairs, double* cross) {
  const Potentials& p = potentials_;
  const index_t w = p.width;
  SequenceReader reader(x_, p);
  double sum = 0;
  for (index_t i = first; i < last; ++i) {
    const index_t begin = x_.start[i], length = x_.length(i);
    if (length == 0) continue;
    double* s = difference_.data() + begin * w;
    const std::int32_t* y = y_ + begin;
    reader.read(i, s);
    const double observed = reader.value(s, y);
    const double c = weight_[i];
    sum += c * (reader.posterior(s, c, pairs, p.crossed()) - observed);
    if (p.crossed()) reader.each_cross([&](index_t k, double expected) { cross[k] += c * expected; });
    for (index_t t = 0; t < length; ++t) s[t * w + y[t]] -= 1;
    for (index_t k = 0; k < length * w; ++k) s[k] *= c;
  }
  *value += sum;
}

template <int V>
HINGE_HOT void crf_gather_hot(const ChainCrf& crf, index_t block, double* sums) {
  const index_t w = wide<V>(crf.potentials_.width);
  alignas(64) double fixed[V ? 8 * V : 1];
  Table heap(V ? 0 : w);
  double* row = V ? fixed : heap.data();
  for (index_t e = crf.block_entry_[block]; e < crf.block_entry_[block + 1]; ++e) {
    const index_t at = crf.hot_begin_[e], n = crf.hot_begin_[e + 1] - at;
    double* out = sums + crf.hot_attribute_[e] * w;
    combine<V>(out, crf.x_.value ? crf.hot_value_.data() + at : nullptr, crf.hot_token_.data() + at, n,
               crf.difference_.data(), w, row);
    for (index_t j = 0; j < w; ++j) out[j] = row[j];
  }
}

void ChainCrf::gather_hot(index_t block, double* sums) const {
  HINGE_BY_WIDTH(potentials_.width, crf_gather_hot, *this, block, sums)
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
  const index_t crossed = layout_.crossed();
  std::vector<double> value(parts, 0.0);
  cross_sums_.assign(parts * crossed, 0.0);
  sums_.resize(parts * table);
  parallel_for(parts, [&](index_t part) {
    double* pairs = sums_.data() + part * table;  // then the gradients of the hot attributes
    std::fill(pairs, pairs + table, 0.0);
    for (index_t block = parts_[part]; block < parts_[part + 1]; ++block) {
      sequences(blocks_[block], blocks_[block + 1], &value[part], pairs, cross_sums_.data() + part * crossed);
      gather_hot(block, pairs + labels * width);
    }
  });
  parallel_for(static_cast<index_t>(column_parts_.size()) - 1,
               [&](index_t part) { gather(column_parts_[part], column_parts_[part + 1], g); });
  double sum = 0;
  for (double part : value) sum += part;
  const index_t pieces = parts_for(table, 4096, 16);
  parallel_for(pieces, [&](index_t piece) {
    const index_t i = range_begin(table, pieces, piece), n = range_begin(table, pieces, piece + 1) - i;
    for (index_t part = 1; part < parts; ++part) vec::axpy(1.0, sums_.data() + part * table + i, sums_.data() + i, n);
  });
  for (index_t a = 0; a < hot_; ++a) put(a, sums_.data() + (labels + a) * width, g);
  double* out = g + layout_.unary();
  for (std::size_t k = 0; k < layout_.pair.size(); ++k) {
    const index_t at = layout_.pair[k] / labels * width + layout_.pair[k] % labels;
    out[k] = sums_[at] - observed_pairs_[at];
  }
  out += layout_.pair.size();
  for (index_t k = 0; k < crossed; ++k) {
    out[k] = -observed_cross_[k];
    for (index_t part = 0; part < parts; ++part) out[k] += cross_sums_[part * crossed + k];
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

void judge_crf(ChainCrf& crf, double l1, double l2, CrfFit& fit) {
  const index_t n = crf.size();
  std::vector<double> gradient(n);
  fit.loss = crf.loss(fit.w.data(), gradient.data());
  double absolute = 0;
  for (double value : fit.w) absolute += std::abs(value);
  fit.objective = fit.loss + l1 * absolute + 0.5 * l2 * vec::square_sum(fit.w.data(), n);
  fit.gap = ChainCrf::gap(fit.loss, fit.w.data(), gradient.data(), n, l1, l2);
}

CrfFit fit_crf(ChainCrf& crf, std::vector<double> w, double l1, double l2, const LbfgsOptions& given,
               const HeldOut* held, Monitor& monitor) {
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
  CrfFit fit;
  fit.w = std::move(w);
  EarlyStop early(held);
  std::vector<double> best;
  // An iteration ends with the evaluation of its point, so the potentials of crf are those of fit.w.
  Monitor watched([&] { return monitor.poll(), false; },
                  [&](const Progress& progress) {
                    const bool enough = early.look(crf.potentials(), [&] { best = fit.w; });
                    return monitor.report(progress) || enough;
                  });
  const LbfgsResult solver = lbfgs(n, fit.w.data(), smooth, options, watched);
  fit.status = early.stopped ? CrfStatus::early : static_cast<CrfStatus>(solver.status);
  fit.iterations = solver.iterations;
  fit.validation = std::move(early.scores);
  if (!best.empty()) fit.w = std::move(best);
  judge_crf(crf, l1, l2, fit);  // it looks at what is returned
  return fit;
}

}  // namespace hinge
