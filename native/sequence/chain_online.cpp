#include "sequence/chain_online.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/pool.hpp"
#include "core/random.hpp"
#include "core/vec.hpp"

namespace hinge {
namespace {

void add_pair(Potentials& p, index_t before, index_t label, double change) {
  p.pair[before * p.width + label] += change;
  p.pair_t[label * p.width + before] += change;
}

// Calls body(attribute, value) for the attributes of a token.
template <class F>
void attributes_of(const Tokens& x, index_t token, F&& body) {
  for (index_t k = x.indptr[token]; k < x.indptr[token + 1]; ++k) body(x.attribute[k], x.value ? x.value[k] : 1.0);
}

void copy_out(const Potentials& p, OnlineFit& fit) {
  fit.unary.resize(p.attributes * p.labels);
  fit.pair.resize(p.labels * p.labels);
  fit.cross = p.cross;
  for (index_t a = 0; a < p.attributes; ++a)
    std::copy_n(p.unary.data() + a * p.width, p.labels, fit.unary.data() + a * p.labels);
  for (index_t i = 0; i < p.labels; ++i)
    for (index_t j = 0; j < p.labels; ++j) {
      const double value = p.pair[i * p.width + j];
      fit.pair[i * p.labels + j] = std::isfinite(value) ? value : 0.0;  // forbidden pairs have no weight
    }
  if (p.second()) fit.triple.resize(p.labels * p.labels * p.labels);
  for (std::size_t k = 0; k < fit.triple.size(); ++k) fit.triple[k] = p.triple[p.triple_cell(static_cast<index_t>(k))];
}

struct Visits {
  Visits(index_t n, std::uint64_t seed, bool shuffle) : order(n), random(seed), shuffle(shuffle) {
    std::iota(order.begin(), order.end(), index_t{0});
  }
  const std::vector<index_t>& next() {
    if (shuffle) random.shuffle(order.data(), static_cast<index_t>(order.size()));
    return order;
  }
  std::vector<index_t> order;
  Random random;
  bool shuffle;
};

}  // namespace

OnlineFit chain_perceptron(const Labelled& data, const Potentials& constraints, int epochs, bool average,
                           std::uint64_t seed, bool shuffle, const HeldOut* held, Monitor& monitor) {
  const Tokens& x = data.x;
  Potentials p = constraints;
  p.allocate();
  SequenceReader reader(x, p);
  EarlyStop early(held);
  // The mean of w after each of T visits is w_T - (1/T) sum of (visit - 1) * update; `late` stores that sum.
  Table late(average ? p.unary.size() : 0, 0.0), late_pair(average ? p.pair.size() : 0, 0.0);
  Table late_cross(average ? p.cross.size() : 0, 0.0), late_triple(average ? p.triple.size() : 0, 0.0);
  std::vector<std::int32_t> best;
  Visits visits(x.sequences, seed, shuffle);
  OnlineFit fit;
  double visit = 0;
  const auto update = [&](auto& w, Table& sum, index_t at, double change) {
    w[at] += change;
    if (average) sum[at] += visit * change;
  };
  const auto present = [&] {  // the weights to return at this point
    Potentials mean = p;
    if (average && visit > 0) {
      vec::axpy(-1 / visit, late.data(), mean.unary.data(), static_cast<index_t>(late.size()));
      vec::axpy(-1 / visit, late_pair.data(), mean.pair.data(), static_cast<index_t>(late_pair.size()));
      vec::axpy(-1 / visit, late_cross.data(), mean.cross.data(), static_cast<index_t>(late_cross.size()));
      vec::axpy(-1 / visit, late_triple.data(), mean.triple.data(), static_cast<index_t>(late_triple.size()));
      mean.refresh();
    }
    return mean;
  };
  for (; fit.epochs < epochs && !fit.done; ++fit.epochs) {
    double mistakes = 0;
    for (index_t i : visits.next()) {
      const index_t length = x.length(i), begin = x.start[i];
      if (length == 0) continue;
      best.resize(std::max<std::size_t>(best.size(), length));
      reader.best(reader.read(i), best.data());
      const std::int32_t* y = data.y + begin;
      for (index_t t = 0; t < length; ++t) {
        const index_t before = reader.parent(t);
        if (best[t] != y[t]) {
          ++mistakes;
          attributes_of(x, begin + t, [&](index_t a, double v) {
            update(p.unary, late, a * p.width + y[t], v);
            update(p.unary, late, a * p.width + best[t], -v);
          });
        }
        if (before < 0 || (best[t] == y[t] && best[before] == y[before])) continue;
        add_pair(p, y[before], y[t], 1.0);
        add_pair(p, best[before], best[t], -1.0);
        if (average) {
          late_pair[y[before] * p.width + y[t]] += visit;
          late_pair[best[before] * p.width + best[t]] -= visit;
        }
        reader.cross_of(t, y[before], y[t], [&](index_t k, double v) { update(p.cross, late_cross, k, v); });
        reader.cross_of(t, best[before], best[t], [&](index_t k, double v) { update(p.cross, late_cross, k, -v); });
      }
      reader.triples_of(y, [&](index_t cell) { update(p.triple, late_triple, cell, 1.0); });
      reader.triples_of(best.data(), [&](index_t cell) { update(p.triple, late_triple, cell, -1.0); });
      ++visit;
      monitor.poll();
    }
    fit.mistakes.push_back(mistakes);
    fit.done = mistakes == 0;
    bool enough = false;
    if (early) {
      const Potentials now = present();
      enough = early.look(now, [&] { copy_out(now, fit); });
    }
    if (monitor.report({fit.epochs + 1, mistakes, -1}) || enough) {
      ++fit.epochs;
      break;
    }
  }
  fit.validation = std::move(early.scores);
  fit.early = early.stopped;
  if (fit.validation.empty()) copy_out(present(), fit);
  return fit;
}

namespace {

// The state of block-coordinate Frank-Wolfe with pairwise steps.
class FrankWolfe {
 public:
  FrankWolfe(const Labelled& data, const double* weight, const Potentials& constraints, const double* cost,
             double lambda)
      : data_(data),
        x_(data.x),
        weight_(weight),
        cost_(cost),
        lambda_(lambda),
        p(constraints),
        active_(x_.sequences),
        work_(x_, p),
        slot_(x_.attributes, -1),
        pair_change_(p.labels * p.labels, 0.0),
        cross_change_(p.cross.size(), 0.0),
        triple_change_(p.triple.size(), 0.0) {
    p.allocate();
    for (index_t i = 0; i < x_.sequences; ++i)
      active_[i].push_back({std::vector<std::int32_t>(data.y + x_.start[i], data.y + x_.start[i + 1]), 1.0});
  }

  // Updates one block: moves mass from the worst active labelling to the most violated one. Returns the block's part of
  // the gap.
  double visit(index_t i) {
    const double c = weight_[i];
    if (x_.length(i) == 0 || c == 0) return 0;
    const Oracle oracle = this->oracle(i, work_);
    std::vector<Vertex>& active = active_[i];
    Vertex& from = active[oracle.worst];
    const double gain = oracle.top - oracle.worst_value;
    const double square = difference(i, work_.best.data(), from.labels.data());
    if (gain > 0 && square > 0) {
      const double step = std::min(from.mass, gain * lambda_ / (c * square));
      shift(step * c / lambda_);
      from.mass -= step;
      const std::vector<std::int32_t> best(work_.best.begin(), work_.best.begin() + x_.length(i));
      const auto found = std::find_if(active.begin(), active.end(), [&](const Vertex& v) { return v.labels == best; });
      if (found != active.end()) {
        found->mass += step;
      } else {
        active.push_back({best, step});
      }
      std::erase_if(active, [](const Vertex& v) { return v.mass <= 0; });
    }
    return c * std::max(0.0, oracle.top - oracle.held);
  }

  // Primal objective and duality gap at the current w, from a pass over all sequences.
  std::pair<double, double> objective_and_gap() const {
    const auto parts = sequence_parts(x_);
    std::vector<double> gap(parts.size(), 0.0), loss(parts.size(), 0.0);
    parallel_for(static_cast<index_t>(parts.size()) - 1, [&](index_t part) {
      Work work(x_, p);
      for (index_t i = parts[part]; i < parts[part + 1]; ++i) {
        if (x_.length(i) == 0) continue;
        const Oracle oracle = this->oracle(i, work);
        gap[part] += weight_[i] * (oracle.top - oracle.held);
        loss[part] += weight_[i] * (oracle.top - oracle.observed);
      }
    });
    double square = vec::square_sum(p.unary.data(), static_cast<index_t>(p.unary.size()));
    for (double value : p.pair)
      if (std::isfinite(value)) square += value * value;
    square += vec::square_sum(p.cross.data(), static_cast<index_t>(p.cross.size())) +
              vec::square_sum(p.triple.data(), static_cast<index_t>(p.triple.size()));
    const double primal = std::accumulate(loss.begin(), loss.end(), 0.0) + 0.5 * lambda_ * square;
    return {primal, std::max(0.0, std::accumulate(gap.begin(), gap.end(), 0.0))};
  }

 private:
  struct Vertex {
    std::vector<std::int32_t> labels;
    double mass;
  };
  struct Work {
    Work(const Tokens& x, const Potentials& p) : reader(x, p) {}
    SequenceReader reader;
    std::vector<std::int32_t> best;
  };
  struct Oracle {
    double top;         // max over labellings of cost + score
    double held;        // the mean of cost + score over the active labellings
    double observed;    // the score of y, whose cost is zero
    std::size_t worst;  // the active labelling with the smallest cost + score
    double worst_value;
  };

  Oracle oracle(index_t i, Work& work) const {
    const index_t length = x_.length(i), w = p.width, k = p.labels;
    const std::int32_t* y = data_.y + x_.start[i];
    if (static_cast<index_t>(work.best.size()) < length) work.best.resize(length);
    double* scores = work.reader.read(i);
    for (index_t t = 0; t < length; ++t)
      for (index_t j = 0; j < k; ++j) scores[t * w + j] += cost_[y[t] * k + j];
    Oracle found{work.reader.best(scores, work.best.data()), 0, work.reader.value(scores, y), 0, 0};
    for (std::size_t v = 0; v < active_[i].size(); ++v) {
      const double value = work.reader.value(scores, active_[i][v].labels.data());
      found.held += active_[i][v].mass * value;
      if (v == 0 || value < found.worst_value) found.worst = v, found.worst_value = value;
    }
    return found;
  }

  // change <- features(b) - features(a), where the two labellings differ; returns its squared norm.
  double difference(index_t i, const std::int32_t* a, const std::int32_t* b) {
    const index_t length = x_.length(i), k = p.labels, w = p.width;
    for (index_t at : used_) slot_[at] = -1;
    used_.clear();
    change_.clear();
    for (index_t at : cross_used_) cross_change_[at] = 0;
    cross_used_.clear();
    const auto cross = [&](index_t at, double v) { cross_used_.push_back(at), cross_change_[at] += v; };
    std::fill(pair_change_.begin(), pair_change_.end(), 0.0);
    std::fill(triple_change_.begin(), triple_change_.end(), 0.0);
    work_.reader.triples_of(b, [&](index_t cell) { triple_change_[cell] += 1; });
    work_.reader.triples_of(a, [&](index_t cell) { triple_change_[cell] -= 1; });
    for (index_t t = 0; t < length; ++t) {
      const index_t before = work_.reader.parent(t);
      if (before >= 0) {
        pair_change_[b[before] * k + b[t]] += 1;
        pair_change_[a[before] * k + a[t]] -= 1;
        work_.reader.cross_of(t, b[before], b[t], [&](index_t at, double v) { cross(at, v); });
        work_.reader.cross_of(t, a[before], a[t], [&](index_t at, double v) { cross(at, -v); });
      }
      if (a[t] == b[t]) continue;
      attributes_of(x_, x_.start[i] + t, [&](index_t at, double v) {
        if (slot_[at] < 0) {
          slot_[at] = static_cast<std::int32_t>(used_.size());
          used_.push_back(at);
          change_.resize(change_.size() + w, 0.0);
        }
        change_[slot_[at] * w + b[t]] += v;
        change_[slot_[at] * w + a[t]] -= v;
      });
    }
    std::sort(cross_used_.begin(), cross_used_.end());
    cross_used_.erase(std::unique(cross_used_.begin(), cross_used_.end()), cross_used_.end());
    double square = vec::square_sum(change_.data(), static_cast<index_t>(change_.size())) +
                    vec::square_sum(pair_change_.data(), k * k) +
                    vec::square_sum(triple_change_.data(), static_cast<index_t>(triple_change_.size()));
    for (index_t at : cross_used_) square += cross_change_[at] * cross_change_[at];
    return square;
  }

  // w += scale * change
  void shift(double scale) {
    const index_t k = p.labels, w = p.width;
    for (std::size_t u = 0; u < used_.size(); ++u)
      vec::axpy(scale, change_.data() + u * w, p.unary.data() + used_[u] * w, w);
    for (index_t at : cross_used_) p.cross[at] += scale * cross_change_[at];
    vec::axpy(scale, triple_change_.data(), p.triple.data(), static_cast<index_t>(triple_change_.size()));
    for (index_t before = 0; before < k; ++before)
      for (index_t label = 0; label < k; ++label)
        if (pair_change_[before * k + label] != 0) add_pair(p, before, label, scale * pair_change_[before * k + label]);
  }

  const Labelled& data_;
  const Tokens& x_;
  const double* weight_;
  const double* cost_;
  double lambda_;

 public:
  Potentials p;

 private:
  std::vector<std::vector<Vertex>> active_;
  Work work_;
  Table change_;
  std::vector<std::int32_t> slot_;
  std::vector<index_t> used_;
  std::vector<double> pair_change_;
  std::vector<double> cross_change_, triple_change_;
  std::vector<index_t> cross_used_;
};

}  // namespace

OnlineFit chain_svm(const Labelled& data, const double* weight, const Potentials& constraints, const double* cost,
                    double lambda, int epochs, double tolerance, std::uint64_t seed, const HeldOut* held,
                    Monitor& monitor) {
  FrankWolfe state(data, weight, constraints, cost, lambda);
  Visits visits(data.x.sequences, seed, true);
  EarlyStop early(held);
  OnlineFit fit, best;
  std::tie(fit.primal, fit.gap) = state.objective_and_gap();
  fit.done = fit.gap <= tolerance * fit.primal;
  while (fit.epochs < epochs && !fit.done) {
    double estimate = 0;  // the sum of the blocks' gaps at their visits, which decides whether to compute the full gap
    for (index_t i : visits.next()) {
      estimate += state.visit(i);
      monitor.poll();
    }
    ++fit.epochs;
    if (estimate <= 1.5 * tolerance * fit.primal || fit.epochs % 10 == 0 || fit.epochs == epochs) {
      std::tie(fit.primal, fit.gap) = state.objective_and_gap();
      fit.done = fit.gap <= tolerance * fit.primal;
    }
    const bool enough = early.look(state.p, [&] {
      copy_out(state.p, best);
      std::tie(best.primal, best.gap) = state.objective_and_gap();
    });
    if (monitor.report({fit.epochs, fit.primal, fit.gap}) || enough) break;
  }
  if (early.scores.empty()) {
    copy_out(state.p, fit);
    std::tie(fit.primal, fit.gap) = state.objective_and_gap();
  } else {  // the gap must belong to the weights that are returned
    best.epochs = fit.epochs;
    fit = std::move(best);
    fit.validation = std::move(early.scores);
  }
  fit.done = fit.gap <= tolerance * fit.primal;
  fit.early = early.stopped;
  return fit;
}

}  // namespace hinge
