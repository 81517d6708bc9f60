#include "solve/sgd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/random.hpp"

namespace hinge {
namespace {

template <class View>
HINGE_HOT double row_dot(const View& rows, index_t i, const double* w) {
  return rows.dot(i, w);
}

template <class View>
HINGE_HOT void row_axpy(const View& rows, index_t i, double c, double* w) {
  rows.axpy(i, c, w);
}

// Below this the common factor is multiplied into the weights.
constexpr double kSmallScale = 1e-9;

// Weights w = s v with soft thresholds and averages that are still owed to features not met for a while.
class LazyWeights {
 public:
  LazyWeights(const LinearProblem& p, const SgdOptions& o, double* w)
      : p_(p), v_(w), d_(p.d()), average_(o.average), l2_(o.l2) {
    const auto& c = p.penalty;
    for (index_t j = 0; j < d_; ++j) {
      shrinks_ = shrinks_ || c.l1[j] > 0;
      bounded_ = bounded_ || std::isfinite(c.lower[j]) || std::isfinite(c.upper[j]);
    }
    if (lazy()) seen_.assign(d_, 0);
    if (average_) sum_.assign(d_, 0.0);
    forget();
  }

  bool lazy() const { return shrinks_ || bounded_ || average_; }
  double* data() { return v_; }
  double scale() const { return s_; }

  // Pays what feature j is owed up to now.
  void settle(index_t j) {
    const index_t now = static_cast<index_t>(factor_.size()) - 1, from = seen_[j];
    if (from < now) {
      const double l1 = p_.penalty.l1[j], size = std::fabs(v_[j]);
      if (size > 0) {
        if (l1 > 0) {
          // The step at which the thresholds add up to the weight: from there on it is zero.
          const auto end = std::lower_bound(threshold_.begin() + from + 1, threshold_.end(),
                                            threshold_[from] + size / l1) -
                           threshold_.begin() - 1;
          if (average_)
            sum_[j] += std::copysign((size + l1 * threshold_[from]) * (factor_[end] - factor_[from]) -
                                         l1 * (product_[end] - product_[from]),
                                     v_[j]);
          v_[j] = std::copysign(std::max(size - l1 * (threshold_[now] - threshold_[from]), 0.0), v_[j]);
        } else if (average_) {
          sum_[j] += v_[j] * (factor_[now] - factor_[from]);
        }
      }
      seen_[j] = now;
    }
  }

  void clip(index_t j) {
    const double w = s_ * v_[j], lower = p_.penalty.lower[j], upper = p_.penalty.upper[j];
    if (w < lower) v_[j] = lower / s_;
    if (w > upper) v_[j] = upper / s_;
  }

  bool bounded() const { return bounded_; }

  // The prox of a step of length eta, owed by all features.
  void shrink(double eta) {
    if (shrinks_) threshold_.push_back(threshold_.back() + eta / s_);
    s_ /= 1.0 + eta * l2_;
    if (!lazy()) {
      if (s_ < kSmallScale) fold();
      return;
    }
    factor_.push_back(factor_.back() + s_);
    if (shrinks_) product_.push_back(product_.back() + s_ * threshold_.back());
    if (s_ < kSmallScale) fold();
  }

  // Everything paid and the factor multiplied in.
  void fold() {
    if (lazy())
      for (index_t j = 0; j < d_; ++j) settle(j);
    for (index_t j = 0; j < d_; ++j) v_[j] *= s_;
    forget();
  }

  // The sum of all iterates since the beginning. Call after fold().
  const std::vector<double>& sum() const { return sum_; }

 private:
  void forget() {
    s_ = 1.0;
    factor_.assign(1, 0.0);
    threshold_.assign(1, 0.0);
    product_.assign(1, 0.0);
    std::fill(seen_.begin(), seen_.end(), 0);
  }

  const LinearProblem& p_;
  double* v_;
  index_t d_;
  bool average_, shrinks_ = false, bounded_ = false;
  double l2_, s_ = 1.0;
  std::vector<index_t> seen_;  // the step up to which a feature is settled
  std::vector<double> sum_;
  // Cumulative over the steps since the last fold: of s, of eta / s, and of s times the latter.
  std::vector<double> factor_, threshold_, product_;
};

template <class View>
double run_epoch(const View& rows, const LinearProblem& p, const SgdOptions& o, SgdState& state, Monitor& monitor) {
  const index_t n = p.n(), d = p.d();
  std::vector<index_t> order(n);
  std::iota(order.begin(), order.end(), index_t{0});
  if (o.shuffle) Random(o.seed, static_cast<std::uint64_t>(o.epoch) + 1).shuffle(order.data(), n);
  LazyWeights w(p, o, state.w);
  std::vector<double> y(o.batch), z(o.batch), c(o.batch), u(o.batch);
  double total = 0, b = state.b, b_sum = 0;
  const index_t steps_before = state.steps;
  for (index_t first = 0; first < n; first += o.batch, ++state.steps) {
    const index_t m = std::min(o.batch, n - first);
    for (index_t k = 0; k < m; ++k) {
      const index_t i = order[first + k];
      if (first + k + 2 < n) rows.prefetch(order[first + k + 2]);
      if (w.lazy()) rows.each(i, [&](index_t j, double) { w.settle(j); });
      z[k] = w.scale() * row_dot(rows, i, w.data()) + (p.intercept ? b : 0.0) + (p.offset ? p.offset[i] : 0.0);
      y[k] = p.y[i];
      c[k] = p.c[i] * static_cast<double>(n) / static_cast<double>(m);
    }
    const double loss = p.loss.gradient(y.data(), z.data(), c.data(), u.data(), m);
    if (!std::isfinite(loss)) return std::numeric_limits<double>::infinity();
    total += loss * static_cast<double>(m);
    const double t = static_cast<double>(state.steps);
    const double eta = o.power == 0   ? o.eta0
                       : o.power == 1 ? o.eta0 / (1.0 + o.decay * t)
                                      : o.eta0 / std::pow(1.0 + o.decay * t, o.power);
    double gb = 0;
    for (index_t k = 0; k < m; ++k)
      if (u[k] != 0.0) {
        row_axpy(rows, order[first + k], -eta * u[k] / w.scale(), w.data());
        gb += u[k];
      }
    if (p.intercept) b -= eta * o.bias_rate * gb;
    w.shrink(eta);
    if (w.bounded())
      for (index_t k = 0; k < m; ++k)
        rows.each(order[first + k], [&](index_t j, double) {
          w.settle(j);
          w.clip(j);
        });
    b_sum += b;
    if ((state.steps & 1023) == 0) monitor.poll();
  }
  w.fold();
  state.b = b;
  if (o.average) {
    const double steps = static_cast<double>(state.steps), fresh = 1.0 / steps;
    const double kept = static_cast<double>(steps_before) * fresh;
    for (index_t j = 0; j < d; ++j) state.mean[j] = kept * state.mean[j] + fresh * w.sum()[j];
    state.mean_b = kept * state.mean_b + fresh * b_sum;
  }
  return total / static_cast<double>(n);
}

}  // namespace

double sgd_epoch(const LinearProblem& problem, const SgdOptions& options, SgdState& state, Monitor& monitor) {
  return std::visit(
      [&](const auto& rows) -> double {
        if constexpr (std::is_same_v<std::decay_t<decltype(rows)>, std::monostate>)
          return std::numeric_limits<double>::quiet_NaN();  // the caller has converted storages by column
        else
          return run_epoch(rows, problem, options, state, monitor);
      },
      problem.X.row_view());
}

}  // namespace hinge
