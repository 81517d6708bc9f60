#include "models/chain_online.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/pool.hpp"
#include "core/random.hpp"
#include "core/vec.hpp"
#include "models/tree.hpp"

namespace hinge {
namespace {

index_t parent_of(const Tokens& x, index_t i, index_t t) {
  return x.parent ? x.parent[x.start[i] + t] : t - 1;
}

double best_labels(const Tokens& x, const Potentials& p, index_t i, const double* scores, std::int32_t* best,
                   ChainScratch& scratch) {
  if (x.parent) return tree_best(p, Tree{x.length(i), x.parent + x.start[i], nullptr}, scores, best, scratch);
  return chain_viterbi(p, x.length(i), scores, best, scratch);
}

void add_pair(Potentials& p, index_t before, index_t label, double change) {
  p.pair[before * p.width + label] += change;
  p.pair_t[label * p.width + before] += change;
}

// Calls body(attribute, value) for the attributes of a token.
template <class F>
void attributes_of(const Tokens& x, index_t token, F&& body) {
  for (index_t k = x.indptr[token]; k < x.indptr[token + 1]; ++k) body(x.attribute[k], x.value ? x.value[k] : 1.0);
}

void copy_out(const Potentials& p, const Table& unary, const Table& pair, OnlineFit& fit) {
  fit.unary.resize(p.attributes * p.labels);
  fit.pair.resize(p.labels * p.labels);
  for (index_t a = 0; a < p.attributes; ++a)
    std::copy_n(unary.data() + a * p.width, p.labels, fit.unary.data() + a * p.labels);
  for (index_t i = 0; i < p.labels; ++i)
    for (index_t j = 0; j < p.labels; ++j) {
      const double value = pair[i * p.width + j];
      fit.pair[i * p.labels + j] = std::isfinite(value) ? value : 0.0;  // forbidden pairs have no weight
    }
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
                           std::uint64_t seed, bool shuffle, Monitor& monitor) {
  const Tokens& x = data.x;
  Potentials p = constraints;
  // The mean of w after each of T visits is w_T - (1/T) sum of (visit - 1) * update: `late` holds that sum.
  Table late(average ? p.unary.size() : 0, 0.0), late_pair(average ? p.pair.size() : 0, 0.0);
  Table scores;
  ChainScratch scratch;
  std::vector<std::int32_t> best;
  Visits visits(x.sequences, seed, shuffle);
  OnlineFit fit;
  double visit = 0;
  const auto update = [&](Table& w, Table& sum, index_t at, double change) {
    w[at] += change;
    if (average) sum[at] += visit * change;
  };
  for (; fit.epochs < epochs && !fit.done; ++fit.epochs) {
    double mistakes = 0;
    for (index_t i : visits.next()) {
      const index_t length = x.length(i), begin = x.start[i];
      if (length == 0) continue;
      scores.resize(std::max<std::size_t>(scores.size(), length * p.width));
      best.resize(std::max<std::size_t>(best.size(), length));
      chain_scores(x, p, i, scores.data());
      best_labels(x, p, i, scores.data(), best.data(), scratch);
      const std::int32_t* y = data.y + begin;
      for (index_t t = 0; t < length; ++t) {
        const index_t before = parent_of(x, i, t);
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
      }
      ++visit;
      monitor.poll();
    }
    fit.mistakes.push_back(mistakes);
    fit.done = mistakes == 0;
    if (monitor.report({fit.epochs + 1, mistakes, -1})) {
      ++fit.epochs;
      break;
    }
  }
  if (average && visit > 0) {
    vec::axpy(-1 / visit, late.data(), p.unary.data(), static_cast<index_t>(late.size()));
    vec::axpy(-1 / visit, late_pair.data(), p.pair.data(), static_cast<index_t>(late_pair.size()));
  }
  copy_out(p, p.unary, p.pair, fit);
  return fit;
}

namespace {

// The state of block-coordinate Frank-Wolfe.
class FrankWolfe {
 public:
  FrankWolfe(const Labelled& data, const double* weight, const Potentials& constraints, const double* cost,
             double lambda)
      : data_(data), x_(data.x), weight_(weight), cost_(cost), lambda_(lambda), p(constraints),
        marginal_(x_.tokens * p.width, 0.0), pairs_(x_.sequences * p.labels * p.labels, 0.0), slot_(x_.attributes, -1) {
    for (index_t i = 0; i < x_.sequences; ++i) each_labelled(i, data.y + x_.start[i], 1.0);
  }

  // One block: towards the labelling that violates most. Returns the block's share of the gap.
  double visit(index_t i) {
    const index_t length = x_.length(i), w = p.width, k = p.labels;
    if (length == 0) return 0;
    const double c = weight_[i];
    if (c == 0) return 0;
    const double violation = look(i, scores_, best_, scratch_) * c;
    // direction = vertex - M; its image in w-space is -c/lambda X'direction
    direction_.assign(length * w, 0.0);
    const double* M = marginal_.data() + x_.start[i] * w;
    for (index_t t = 0; t < length * w; ++t) direction_[t] = -M[t];
    for (index_t t = 0; t < length; ++t) direction_[t * w + best_[t]] += 1;
    double* Q = pairs_.data() + i * k * k;
    pair_direction_.assign(Q, Q + k * k);
    for (double& value : pair_direction_) value = -value;
    for (index_t t = 0; t < length; ++t) {
      const index_t before = parent_of(x_, i, t);
      if (before >= 0) pair_direction_[best_[before] * k + best_[t]] += 1;
    }
    const double square = project(i, length) + vec::square_sum(pair_direction_.data(), k * k);
    if (!(square > 0) || !(violation > 0)) return std::max(violation, 0.0);
    const double step = std::min(1.0, violation * lambda_ / (c * c * square));
    move(i, length, step, -step * c / lambda_);
    return violation;
  }

  // primal and gap at the present w, from a pass over all sequences.
  std::pair<double, double> judge() {
    const auto parts = sequence_parts(x_);
    std::vector<double> gap(parts.size(), 0.0), loss(parts.size(), 0.0);
    parallel_for(static_cast<index_t>(parts.size()) - 1, [&](index_t part) {
      Table scores;
      std::vector<std::int32_t> best;
      ChainScratch scratch;
      for (index_t i = parts[part]; i < parts[part + 1]; ++i) {
        if (x_.length(i) == 0) continue;
        double hinge = 0;
        gap[part] += weight_[i] * look(i, scores, best, scratch, &hinge);
        loss[part] += weight_[i] * hinge;
      }
    });
    double square = vec::square_sum(p.unary.data(), static_cast<index_t>(p.unary.size()));
    for (double value : p.pair)
      if (std::isfinite(value)) square += value * value;
    const double primal = std::accumulate(loss.begin(), loss.end(), 0.0) + 0.5 * lambda_ * square;
    return {primal, std::max(0.0, std::accumulate(gap.begin(), gap.end(), 0.0))};
  }

 private:
  // Sets M_i to the indicator of the labels y.
  void each_labelled(index_t i, const std::int32_t* y, double value) {
    for (index_t t = 0; t < x_.length(i); ++t) {
      marginal_[(x_.start[i] + t) * p.width + y[t]] = value;
      const index_t before = parent_of(x_, i, t);
      if (before >= 0) pairs_[(i * p.labels + y[before]) * p.labels + y[t]] += value;
    }
  }

  // The labelling with the largest cost + score; returns by how much it beats M_i: the block's gap / c_i.
  double look(index_t i, Table& scores, std::vector<std::int32_t>& best, ChainScratch& scratch,
              double* hinge = nullptr) {
    const index_t length = x_.length(i), w = p.width, k = p.labels;
    const std::int32_t* y = data_.y + x_.start[i];
    if (static_cast<index_t>(scores.size()) < length * w) scores.resize(length * w);
    if (static_cast<index_t>(best.size()) < length) best.resize(length);
    chain_scores(x_, p, i, scores.data());
    double observed = 0;
    for (index_t t = 0; t < length; ++t) {
      const index_t before = parent_of(x_, i, t);
      observed += scores[t * w + y[t]] + (before >= 0 ? p.pair[y[before] * w + y[t]] : 0.0);
      for (index_t j = 0; j < k; ++j) scores[t * w + j] += cost_[y[t] * k + j];
    }
    const double top = best_labels(x_, p, i, scores.data(), best.data(), scratch);
    const double* M = marginal_.data() + x_.start[i] * w;
    const double* Q = pairs_.data() + i * k * k;
    double held = 0;  // forbidden labels score -inf and have no mass
    for (index_t t = 0; t < length; ++t)
      for (index_t j = 0; j < k; ++j)
        if (M[t * w + j] != 0) held += M[t * w + j] * scores[t * w + j];
    for (index_t a = 0; a < k; ++a)
      for (index_t b = 0; b < k; ++b)
        if (Q[a * k + b] != 0) held += Q[a * k + b] * p.pair[a * w + b];
    if (hinge) *hinge = top - observed;
    return top - held;
  }

  // local_ <- X'direction on the attributes of the sequence; returns its squared norm.
  double project(index_t i, index_t length) {
    const index_t w = p.width;
    for (index_t a : used_) slot_[a] = -1;
    used_.clear();
    local_.clear();
    for (index_t t = 0; t < length; ++t) {
      const double* d = direction_.data() + t * w;
      if (std::all_of(d, d + p.labels, [](double value) { return value == 0; })) continue;
      attributes_of(x_, x_.start[i] + t, [&](index_t a, double v) {
        if (slot_[a] < 0) {
          slot_[a] = static_cast<std::int32_t>(used_.size());
          used_.push_back(a);
          local_.resize(local_.size() + w, 0.0);
        }
        vec::axpy(v, d, local_.data() + slot_[a] * w, w);
      });
    }
    return vec::square_sum(local_.data(), static_cast<index_t>(local_.size()));
  }

  void move(index_t i, index_t length, double step, double scale) {
    const index_t w = p.width, k = p.labels;
    for (std::size_t u = 0; u < used_.size(); ++u)
      vec::axpy(scale, local_.data() + u * w, p.unary.data() + used_[u] * w, w);
    double* Q = pairs_.data() + i * k * k;
    for (index_t a = 0; a < k; ++a)
      for (index_t b = 0; b < k; ++b) {
        const double d = pair_direction_[a * k + b];
        if (d == 0) continue;
        add_pair(p, a, b, scale * d);
        Q[a * k + b] += step * d;
      }
    vec::axpy(step, direction_.data(), marginal_.data() + x_.start[i] * w, length * w);
  }

  const Labelled& data_;
  const Tokens& x_;
  const double* weight_;
  const double* cost_;
  double lambda_;

 public:
  Potentials p;

 private:
  Table marginal_;             // M: tokens x width
  std::vector<double> pairs_;  // sequences x labels x labels, summed over the tokens of a sequence
  Table scores_, direction_, local_;
  std::vector<double> pair_direction_;
  std::vector<std::int32_t> best_, slot_;
  std::vector<index_t> used_;
  ChainScratch scratch_;
};

}  // namespace

OnlineFit chain_svm(const Labelled& data, const double* weight, const Potentials& constraints, const double* cost,
                    double lambda, int epochs, double tolerance, std::uint64_t seed, Monitor& monitor) {
  FrankWolfe state(data, weight, constraints, cost, lambda);
  Visits visits(data.x.sequences, seed, true);
  OnlineFit fit;
  std::tie(fit.primal, fit.gap) = state.judge();
  fit.done = fit.gap <= tolerance * fit.primal;
  while (fit.epochs < epochs && !fit.done) {
    double seen = 0;  // the blocks' gaps as they were met: what decides whether a full look is worth its price
    for (index_t i : visits.next()) {
      seen += state.visit(i);
      monitor.poll();
    }
    ++fit.epochs;
    if (seen <= 1.5 * tolerance * fit.primal || fit.epochs % 10 == 0 || fit.epochs == epochs) {
      std::tie(fit.primal, fit.gap) = state.judge();
      fit.done = fit.gap <= tolerance * fit.primal;
    }
    if (monitor.report({fit.epochs, fit.primal, fit.gap})) break;
  }
  std::tie(fit.primal, fit.gap) = state.judge();
  fit.done = fit.gap <= tolerance * fit.primal;
  copy_out(state.p, state.p.unary, state.p.pair, fit);
  return fit;
}

}  // namespace hinge
