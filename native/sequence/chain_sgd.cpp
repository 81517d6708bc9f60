#include "sequence/chain_sgd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/pool.hpp"
#include "core/random.hpp"
#include "core/vec.hpp"

namespace hinge {
namespace {

// w = s v: the unary part of v is in p.unary, the part of observed label pairs in p.cross, and the part of label pairs
// and triples in this class.
class Descent {
 public:
  Descent(const CrfProblem& problem, double l2, double eta0, index_t batch)
      : problem_(problem),
        x_(problem.x),
        l2_(l2),
        eta0_(eta0),
        p_(problem.constraints),
        pair_(problem.layout.pair.size()),
        triple_(problem.layout.triple.size()) {
    p_.load(problem.layout, std::vector<double>(problem.layout.size(), 0.0).data());
    for (index_t b = 0; b < batch; ++b) slots_.emplace_back(x_, p_);
  }

  // Starts averaging with the next step.
  void start_average() {
    averaging_ = true;
    sum_ = 0;
    steps_summed_ = 0;
    late_.assign(problem_.layout.size(), 0.0);
  }

  // One step on the sequences first .. last - 1 (at most `batch`).
  void step(const index_t* first, const index_t* last) {
    const index_t n = last - first;
    parallel_for(n, [&](index_t b) { gradient(slots_[b], first[b], static_cast<double>(n)); });
    const double eta = eta0_ / (1 + eta0_ * l2_ * ++time_);  // keeps 1 - eta l2 positive for any eta_0
    p_.scale *= 1 - eta * l2_;
    if (p_.scale < 1e-6) rescale();
    const double rate = -eta / p_.scale;
    for (index_t b = 0; b < n; ++b) move(slots_[b], first[b], rate);
    for (std::size_t k = 0; k < pair_.size(); ++k) p_.pair[cell(k)] = p_.scale * pair_[k];
    p_.refresh();
    if (p_.second()) {
      for (std::size_t k = 0; k < triple_.size(); ++k) p_.triple[triple_cell(k)] = p_.scale * triple_[k];
      p_.refresh_triples();
    }
    if (averaging_) {
      sum_ += p_.scale;
      ++steps_summed_;
    }
  }

  // The weights in the order of the layout: the mean, if averaging has started.
  std::vector<double> weights() const {
    std::vector<double> w(problem_.layout.size());
    const Layout& layout = problem_.layout;
    index_t at = 0;
    for (index_t a = 0; a < x_.attributes; ++a)
      each_label(a, [&](index_t, index_t j) { w[at++] = p_.unary[a * p_.width + j]; });
    std::copy(pair_.begin(), pair_.end(), w.begin() + layout.unary());
    std::copy(p_.cross.begin(), p_.cross.end(), w.begin() + layout.unary() + static_cast<index_t>(pair_.size()));
    std::copy(triple_.begin(), triple_.end(), w.begin() + layout.before_triples());
    const bool mean = averaging_ && steps_summed_ > 0;
    for (std::size_t k = 0; k < w.size(); ++k)
      w[k] = mean ? (sum_ * w[k] - late_[k]) / static_cast<double>(steps_summed_) : p_.scale * w[k];
    return w;
  }

 private:
  struct Slot {
    Slot(const Tokens& x, const Potentials& p) : reader(x, p) {}
    SequenceReader reader;
    Table difference, pairs, triples;  // share * (marginals - observed); the same for label pairs and triples
    double share = 0;                  // n c_i / |B|
  };

  index_t cell(std::size_t k) const {
    const index_t pair = problem_.layout.pair[k];
    return pair / p_.labels * p_.width + pair % p_.labels;
  }

  index_t triple_cell(std::size_t k) const { return p_.triple_cell(problem_.layout.triple[k]); }

  // Calls body(index of the weight, label) for the weights of an attribute.
  template <class F>
  void each_label(index_t a, F&& body) const {
    const Layout& layout = problem_.layout;
    if (layout.begin.empty()) {
      for (index_t j = 0; j < layout.labels; ++j) body(a * layout.labels + j, j);
    } else {
      for (index_t k = layout.begin[a]; k < layout.begin[a + 1]; ++k) body(k, layout.label[k]);
    }
  }

  void gradient(Slot& slot, index_t i, double batch) {
    const index_t length = x_.length(i), w = p_.width;
    if (length == 0) return;
    const double c = slot.share = problem_.weight[i] * static_cast<double>(x_.sequences) / batch;
    const std::int32_t* y = problem_.y + x_.start[i];
    grow(slot.difference, length * w);
    slot.pairs.assign(p_.labels * w, 0.0);
    double* s = slot.difference.data();
    slot.reader.read(i, s);
    slot.triples.assign(p_.triple.size(), 0.0);
    slot.reader.posterior(s, c, slot.pairs.data(), p_.crossed(), p_.second() ? slot.triples.data() : nullptr);
    slot.reader.triples_of(y, [&](index_t cell) { slot.triples[cell] -= c; });
    for (index_t t = 0; t < length; ++t) {
      s[t * w + y[t]] -= 1;
      const index_t up = slot.reader.parent(t);
      if (up >= 0) slot.pairs[y[up] * w + y[t]] -= c;
    }
    for (index_t k = 0; k < length * w; ++k) s[k] *= c;
  }

  void move(Slot& slot, index_t i, double rate) {
    const index_t length = x_.length(i), w = p_.width;
    if (length == 0) return;
    const auto late = [&](index_t at, double change) {
      if (averaging_) late_[at] += sum_ * change;
    };
    for (index_t t = 0; t < length; ++t) {
      const double* row = slot.difference.data() + t * w;
      const index_t token = x_.start[i] + t;
      for (index_t at = x_.indptr[token]; at < x_.indptr[token + 1]; ++at) {
        const double step = rate * (x_.value ? x_.value[at] : 1.0);
        double* out = p_.unary.data() + x_.attribute[at] * w;
        each_label(x_.attribute[at], [&](index_t k, index_t j) {
          out[j] += step * row[j];
          late(k, step * row[j]);
        });
      }
    }
    const index_t first = problem_.layout.unary();
    for (std::size_t k = 0; k < pair_.size(); ++k) {
      pair_[k] += rate * slot.pairs[cell(k)];
      late(first + static_cast<index_t>(k), rate * slot.pairs[cell(k)]);
    }
    for (std::size_t k = 0; k < triple_.size(); ++k) {
      const double change = rate * slot.triples[triple_cell(k)];
      triple_[k] += change;
      late(problem_.layout.before_triples() + static_cast<index_t>(k), change);
    }
    if (!p_.crossed()) return;
    const index_t crossed = first + static_cast<index_t>(pair_.size());
    const auto change = [&](index_t k, double by) {
      p_.cross[k] += rate * slot.share * by;
      late(crossed + k, rate * slot.share * by);
    };
    const std::int32_t* y = problem_.y + x_.start[i];
    slot.reader.each_cross(change);
    for (index_t t = 0; t < length; ++t)
      if (const index_t up = slot.reader.parent(t); up >= 0)
        slot.reader.cross_of(t, y[up], y[t], [&](index_t k, double v) { change(k, -v); });
  }

  void rescale() {
    for (double& value : p_.unary) value *= p_.scale;
    for (double& value : pair_) value *= p_.scale;
    for (double& value : triple_) value *= p_.scale;
    for (double& value : p_.cross) value *= p_.scale;
    sum_ /= p_.scale;
    p_.scale = 1;
  }

  const CrfProblem& problem_;
  const Tokens& x_;
  double l2_, eta0_;
  Potentials p_;
  std::vector<double> pair_, triple_;
  std::vector<Slot> slots_;
  double time_ = 0;
  bool averaging_ = false;
  double sum_ = 0;  // S_t
  index_t steps_summed_ = 0;
  std::vector<double> late_;  // sum of S_{t-1} d_t
};

void epoch(Descent& descent, const std::vector<index_t>& order, index_t batch, Monitor& monitor) {
  const index_t n = static_cast<index_t>(order.size());
  for (index_t at = 0; at < n; at += batch) {
    descent.step(order.data() + at, order.data() + std::min(n, at + batch));
    monitor.poll();
  }
}

// sum over a sample of n c_i loss_i, divided by its size, + l2/2 |w|^2
double sample_objective(const CrfProblem& problem, const std::vector<index_t>& sample, const std::vector<double>& w,
                        double l2) {
  Potentials p = problem.constraints;
  p.load(problem.layout, w.data());
  const index_t n = static_cast<index_t>(sample.size()), parts = parts_for(n, 16, 32);
  std::vector<double> loss(parts, 0.0);
  parallel_for(parts, [&](index_t part) {
    SequenceReader reader(problem.x, p);
    for (index_t k = range_begin(n, parts, part); k < range_begin(n, parts, part + 1); ++k) {
      const index_t i = sample[k];
      if (problem.x.length(i) == 0) continue;
      const double* scores = reader.read(i);
      loss[part] +=
          problem.weight[i] * (reader.log_partition(scores) - reader.value(scores, problem.y + problem.x.start[i]));
    }
  });
  const double share = static_cast<double>(problem.x.sequences) / static_cast<double>(n);
  return share * std::accumulate(loss.begin(), loss.end(), 0.0) +
         0.5 * l2 * vec::square_sum(w.data(), static_cast<index_t>(w.size()));
}

// The first step size: starting from 0.1, doubled or halved while one pass over a sample ends at a lower objective.
double calibrate(const CrfProblem& problem, double l2, const std::vector<index_t>& sample, index_t batch,
                 Monitor& monitor) {
  const auto reached = [&](double eta) {
    Descent trial(problem, l2, eta, batch);
    epoch(trial, sample, batch, monitor);
    const double value = sample_objective(problem, sample, trial.weights(), l2);
    return std::isfinite(value) ? value : std::numeric_limits<double>::infinity();
  };
  double eta = 0.1, value = reached(eta);
  const double doubled = reached(2 * eta), factor = doubled < value ? 2.0 : 0.5;
  for (int trial = 0; trial < 20; ++trial) {
    const double next = trial == 0 && factor == 2.0 ? doubled : reached(factor * eta);
    if (!(next < value) && std::isfinite(value)) break;
    eta *= factor;
    value = next;
  }
  return eta;
}

}  // namespace

CrfFit fit_crf_sgd(const CrfProblem& problem, double l2, const CrfSgdOptions& options, const HeldOut* held,
                   Monitor& monitor) {
  std::vector<index_t> order(problem.x.sequences);
  std::iota(order.begin(), order.end(), index_t{0});
  Random random(options.seed);
  random.shuffle(order.data(), static_cast<index_t>(order.size()));
  double eta0 = options.eta0;
  if (!(eta0 > 0)) {
    const std::vector<index_t> sample(order.begin(), order.begin() + std::min<index_t>(500, problem.x.sequences));
    eta0 = calibrate(problem, l2, sample, options.batch, monitor);
  }
  Descent descent(problem, l2, eta0, options.batch);
  ChainCrf crf(problem.x, problem.y, problem.weight, problem.layout, problem.constraints);
  EarlyStop early(held);
  CrfFit fit;
  std::vector<double> best;
  int next_look = 1;
  while (fit.iterations < options.epochs) {
    if (fit.iterations > 0) random.shuffle(order.data(), static_cast<index_t>(order.size()));
    if (fit.iterations == 1 && options.average) descent.start_average();
    epoch(descent, order, options.batch, monitor);
    ++fit.iterations;
    fit.w = descent.weights();
    if (fit.iterations == next_look) {
      next_look *= 2;
      evaluate_crf(crf, 0.0, l2, fit);
      if (fit.gap <= options.tolerance * fit.objective) fit.status = CrfStatus::converged;
    }
    if (early) {
      Potentials now = problem.constraints;
      now.load(problem.layout, fit.w.data());
      if (early.look(now, [&] { best = fit.w; })) fit.status = CrfStatus::early;
    }
    if (monitor.report({fit.iterations, fit.objective, fit.gap / std::max(fit.objective, 1e-300)}))
      fit.status = CrfStatus::stopped;
    if (fit.status != CrfStatus::iteration_limit) break;
  }
  if (!best.empty()) fit.w = std::move(best);
  if (fit.w.empty()) fit.w.assign(problem.layout.size(), 0.0);
  fit.validation = std::move(early.scores);
  return fit;
}

}  // namespace hinge
