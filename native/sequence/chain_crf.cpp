#include "sequence/chain_crf.hpp"

#include <algorithm>
#include <cmath>

#include "core/pool.hpp"
#include "core/vec.hpp"

namespace hinge {

namespace {

constexpr double single_gap = 1e-5;  // smallest relative gap that single precision resolves

}  // namespace

ChainCrf::ChainCrf(const Tokens& x, const std::int32_t* y, const double* weight, Layout layout,
                   const Potentials& constraints)
    : data_{x, y, weight},
      layout_(std::move(layout)),
      potentials_(constraints),
      plan_(x, layout_, constraints.width),
      observed_pairs_(constraints.labels * constraints.width, 0.0) {
  if (!layout_.plain()) {
    observed_cross_.assign(layout_.crossed(), 0.0);
    potentials_.load(layout_, std::vector<double>(layout_.size(), 0.0).data());
    observed_triples_.assign(potentials_.triple.size(), 0.0);
    SequenceReader reader(x, potentials_);
    for (index_t i = 0; i < x.sequences; ++i) {
      if (x.length(i) == 0) continue;
      reader.read(i);
      const std::int32_t* labels = y + x.start[i];
      for (index_t t = 0; t < reader.length(); ++t)
        if (const index_t up = reader.parent(t); up >= 0)
          reader.cross_of(t, labels[up], labels[t], [&](index_t k, double v) { observed_cross_[k] += weight[i] * v; });
      reader.triples_of(labels, [&](index_t cell) { observed_triples_[cell] += weight[i]; });
    }
  }
  for (index_t i = 0; i < x.sequences; ++i)
    for (index_t t = x.start[i]; t < x.start[i + 1]; ++t) {
      const index_t parent = x.parent ? x.parent[t] : t - x.start[i] - 1;
      if (parent >= 0) observed_pairs_[y[x.start[i] + parent] * constraints.width + y[t]] += weight[i];
    }
}

const Potentials& ChainCrf::potentials(const double* w) {
  potentials_.load(layout_, w);
  return potentials_;
}

double ChainCrf::loss(const double* w, double* g, bool single) {
  if (plain()) {
    potentials_.load_pairs(layout_, w);
  } else {
    potentials_.load(layout_, w);
  }
  const index_t labels = potentials_.labels, width = potentials_.width;
  Table pairs(labels * width, 0.0), triples(observed_triples_.size(), 0.0);
  double* out = g + layout_.unary();
  double* cross = out + layout_.pair.size();
  for (std::size_t k = 0; k < observed_cross_.size(); ++k) cross[k] = -observed_cross_[k];
  double sum = 0;
  if (single && plain()) {
    if (!single_) single_ = std::make_unique<ChainPass<float>>(data_, layout_, plan_);
    sum = single_->loss(w, potentials_, g, pairs.data(), cross, triples.data());
  } else {
    if (!double_) double_ = std::make_unique<ChainPass<double>>(data_, layout_, plan_);
    single_.reset();  // no longer needed: the precision never goes back to single
    sum = double_->loss(w, potentials_, g, pairs.data(), cross, triples.data());
  }
  for (std::size_t k = 0; k < layout_.pair.size(); ++k) {
    const index_t at = layout_.pair[k] / labels * width + layout_.pair[k] % labels;
    out[k] = pairs[at] - observed_pairs_[at];
  }
  for (std::size_t k = 0; k < layout_.triple.size(); ++k) {
    const index_t at = potentials_.triple_cell(layout_.triple[k]);
    g[layout_.before_triples() + static_cast<index_t>(k)] = triples[at] - observed_triples_[at];
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

void evaluate_crf(ChainCrf& crf, double l1, double l2, CrfFit& fit) {
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
  std::vector<double> gradient(n);  // of the loss without the penalty, at the last point
  double last_loss = 0;
  bool single = crf.plain() && l1 == 0;  // with L1 the gap depends on the largest component, the orthant on signs
  const SmoothFunction smooth = [&](const double* at, double* g) {
    last_loss = crf.loss(at, gradient.data(), single);
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
    const auto relative = [&] {
      return ChainCrf::gap(last_loss, at, gradient.data(), n, l1, l2) / std::max(objective, 1e-300);
    };
    const double gap = relative();
    if (!single || gap > std::max(options.tolerance, single_gap)) return gap;
    single = false;  // the stopping decision and all later steps are in double precision
    last_loss = crf.loss(at, gradient.data());
    return relative();
  };
  CrfFit fit;
  fit.w = std::move(w);
  EarlyStop early(held);
  std::vector<double> best;
  Monitor watched([&] { return monitor.poll(), false; },
                  [&](const Progress& progress) {
                    const bool enough = early && early.look(crf.potentials(fit.w.data()), [&] { best = fit.w; });
                    return monitor.report(progress) || enough;
                  });
  LbfgsResult solver = lbfgs(n, fit.w.data(), smooth, options, watched);
  if (solver.status == LbfgsStatus::stalled && single) {  // because of rounding: continue in double precision
    single = false;
    const int before = solver.iterations;
    options.max_iterations -= before;
    solver = lbfgs(n, fit.w.data(), smooth, options, watched);
    solver.iterations += before;
  }
  fit.status = early.stopped ? CrfStatus::early : static_cast<CrfStatus>(solver.status);
  fit.iterations = solver.iterations;
  fit.validation = std::move(early.scores);
  if (!best.empty()) fit.w = std::move(best);
  return fit;
}

}  // namespace hinge
