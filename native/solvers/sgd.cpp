#include "solvers/sgd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/random.hpp"
#include "core/shuffled.hpp"

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

// Gradients of a loss are clipped to this, as in scikit-learn. First steps that are too long make the scores diverge;
// with clipping they recover as the steps become shorter. No reasonable fit comes close to this value.
constexpr double kSteepest = 1e12;

// Below this value the common factor s is multiplied into the weights.
constexpr double kSmallScale = 1e-9;

// Weights w = s v whose soft thresholds and averages are applied to a feature only when it next occurs.
class LazyWeights {
 public:
  LazyWeights(const LinearProblem& p, const SgdOptions& o, const SgdState& state)
      : penalty_(p.penalty), v_(state.w), d_(p.d()), average_(o.average > 0), plain_(o.plain), l2_(o.l2) {
    for (index_t j = 0; j < d_; ++j) {
      shrinks_ = shrinks_ || penalty_.l1[j] > 0;
      bounded_ = bounded_ || std::isfinite(penalty_.lower[j]) || std::isfinite(penalty_.upper[j]);
    }
    if (plain_ && shrinks_) {
      running_ = state.applied;
      shrinks_ = false;
    }
    if (lazy()) applied_.resize(d_);
    if (average_) sum_.assign(d_, 0.0);
    forget();
  }

  bool lazy() const { return shrinks_; }
  bool clips() const { return bounded_ || running_; }
  double* data() { return v_; }
  double scale() const { return s_; }

  // Applies the pending thresholds and sums of feature j.
  HINGE_INLINE void apply_pending(index_t j) {
    Totals& applied = applied_[j];
    const double size = std::fabs(v_[j]), l1 = penalty_.l1[j], left = size - l1 * (now_.threshold - applied.threshold);
    if (size > 0) {
      if (average_)
        sum_[j] += std::copysign(
            left > 0 ? pending_sum(applied, now_, size, l1) : pending_sum_to_zero(applied, size, l1), v_[j]);
      v_[j] = std::copysign(left > 0 ? left : 0.0, v_[j]);
    }
    applied = now_;
  }

  // x_i . v after the pending updates of the features of row i.
  template <class View>
  double updated_dot(const View& rows, index_t i) {
    double total = 0;
    rows.each(i, [&](index_t j, double x) {
      apply_pending(j);
      total += x * v_[j];
    });
    return total;
  }

  // v += c x_i. Without thresholds the sum of s v over the steps is (sum of s) v minus the steps that precede each
  // change of v: c x_i times `counted`, which is subtracted at the end.
  template <class View>
  void add(const View& rows, index_t i, double c) {
    row_axpy(rows, i, c, v_);
  }
  double counted() const { return now_.factor; }

  // The ridge part of a plain step, before the gradient of the loss is added.
  void decay(double eta) {
    const double kept = 1.0 - eta * l2_;
    if (!plain_ || kept == 1.0) return;
    if (kept > 0) {
      s_ *= kept;
    } else {
      fold();
      std::fill(v_, v_ + d_, 0.0);
    }
  }

  // The prox of a step of length eta, left pending for all features; of a plain step, its lasso part.
  void shrink(double eta) {
    if (running_) running_[d_] += eta;
    if (plain_) return;
    now_.threshold += eta / s_;
    s_ /= 1.0 + eta * l2_;
  }

  // After shrink: updates a feature at once if a bound or the running total may stop it.
  void clip(index_t j) {
    if (shrinks_) apply_pending(j);
    const double free = running_ ? apply_running(j, s_ * v_[j]) : s_ * v_[j];
    const double inside = std::clamp(free, penalty_.lower[j], penalty_.upper[j]) / s_;
    if (average_ && !shrinks_) sum_[j] -= now_.factor * (inside - v_[j]);
    v_[j] = inside;
  }

  // Moves weight j towards zero by its pending part of the running total, but not across zero.
  HINGE_INLINE double apply_running(index_t j, double w) {
    const double total = penalty_.l1[j] * running_[d_];
    const double left = w > 0   ? std::max(0.0, w - (total + running_[j]))
                        : w < 0 ? std::min(0.0, w + (total - running_[j]))
                                : 0.0;
    running_[j] += left - w;
    return left;
  }

  // Restarts the average with the next step.
  void restart() {
    fold();
    std::fill(sum_.begin(), sum_.end(), 0.0);
  }

  // Ends a step: its weights enter the average.
  void count() {
    now_.factor += s_;
    now_.product += s_ * now_.threshold;
    if (average_ && shrinks_) history_.push_back(now_);
    if (s_ < kSmallScale) fold();
  }

  // Applies all pending updates and multiplies the factor into the weights.
  void fold() {
    if (lazy())
      for (index_t j = 0; j < d_; ++j) apply_pending(j);
    else if (average_)
      for (index_t j = 0; j < d_; ++j) sum_[j] += now_.factor * v_[j];
    for (index_t j = 0; j < d_; ++j) v_[j] *= s_;
    forget();
  }

  // The sum of all iterates since the beginning, without the changes passed to `add`. Call after fold().
  const std::vector<double>& sum() const { return sum_; }

 private:
  // Sums over the steps since the last fold: eta / s, s, and s times the first.
  struct Totals {
    double threshold = 0, factor = 0, product = 0;
  };

  // The sum of s (size - l1 (threshold - applied.threshold)) over the steps between `applied` and `until`.
  static double pending_sum(const Totals& applied, const Totals& until, double size, double l1) {
    return (size + l1 * applied.threshold) * (until.factor - applied.factor) - l1 * (until.product - applied.product);
  }

  // The same for a weight that the thresholds set to zero within these steps.
  double pending_sum_to_zero(const Totals& applied, double size, double l1) const {
    const double limit = applied.threshold + size / l1;
    const auto end = std::lower_bound(history_.begin(), history_.end(), limit,
                                      [](const Totals& t, double value) { return t.threshold < value; });
    if (end == history_.begin() || (end - 1)->factor <= applied.factor) return 0.0;
    return pending_sum(applied, *(end - 1), size, l1);
  }

  void forget() {
    s_ = 1.0;
    now_ = {};
    history_.clear();
    std::fill(applied_.begin(), applied_.end(), Totals{});
  }

  const Coordinates penalty_;
  double* v_;
  index_t d_;
  bool average_, plain_, shrinks_ = false, bounded_ = false;
  double l2_, s_ = 1.0;
  double* running_ = nullptr;  // SgdState::applied, where the lasso part is a running total
  Totals now_;
  std::vector<Totals> applied_, history_;  // totals applied to each feature; of all steps, if needed
  std::vector<double> sum_;                // of the iterates
};

// Targets, weights and scores of the rows of a range of visits: gathered before the steps, summed to the loss after
// them.
class VisitData {
 public:
  struct Range {
    std::vector<double> y, z, c;  // targets, scores at the visit, weights
  };

  VisitData(const LinearProblem& p, const std::vector<index_t>& order) : p_(p), order_(order) {}

  Range& at(index_t slot) { return ranges_[slot]; }
  double total() const { return total_; }

  void before(index_t slot, index_t begin, index_t end) {
    Range& r = ranges_[slot];
    for (auto* v : {&r.y, &r.z, &r.c}) v->resize(end - begin);
    for (index_t k = begin; k < end; ++k) {
      const index_t i = order_[k];
      r.y[k - begin] = p_.y[i];
      r.c[k - begin] = p_.c[i];
      r.z[k - begin] = p_.offset ? p_.offset[i] : 0.0;
    }
  }

  bool after(index_t slot, index_t begin, index_t end) {
    const Range& r = ranges_[slot];
    total_ += p_.loss.value(r.y.data(), r.z.data(), r.c.data(), end - begin);
    return std::isfinite(total_);
  }

 private:
  const LinearProblem& p_;
  const std::vector<index_t>& order_;
  Range ranges_[kSlots];
  double total_ = 0;
};

// Permutes one number per visit to one number per row.
std::vector<double> by_row(const std::vector<double>& of_visits, const std::vector<index_t>& order) {
  const index_t n = static_cast<index_t>(order.size()), parts = parts_for(n, 1 << 14);
  std::vector<double> out(n);
  parallel_for(parts, [&](index_t p) {
    for (index_t k = range_begin(n, parts, p); k < range_begin(n, parts, p + 1); ++k) out[order[k]] = of_visits[k];
  });
  return out;
}

// The gradient c_i l' of one example, replaced by one that makes the step tau long at the rate eta.
template <class View>
double passive_gradient(const View& rows, index_t i, double gradient, double loss, const SgdOptions& o) {
  double size = 0;
  rows.each(i, [&](index_t, double x) { size += x * x; });
  if (gradient == 0.0 || (o.passive == 1 && size == 0.0)) return 0.0;
  const double tau = o.passive == 1 ? std::min(o.eta0, loss / size) : loss / (size + 0.5 / o.eta0);
  return std::copysign(tau / o.eta0, gradient);
}

template <class View>
double run_epoch(const View& rows, const LinearProblem& p, const SgdOptions& o, SgdState& state, Monitor& monitor) {
  const index_t n = p.n(), d = p.d();
  std::vector<index_t> order(n);
  std::iota(order.begin(), order.end(), index_t{0});
  if (o.shuffle) Random(o.seed, static_cast<std::uint64_t>(o.epoch) + 1).shuffle(order.data(), n);
  LazyWeights w(p, o, state);
  std::vector<double> u(o.batch), late(o.average > 0 && !w.lazy() ? n : 0);  // of a batch; see LazyWeights::add
  VisitData visit_data(p, order);
  double b = state.b, b_sum = 0;
  const index_t steps_before = state.steps;
  // Not inlined: it is called from two places, and compiling it takes seconds.
  const auto steps = [&](index_t slot, const View& view, const index_t* at, index_t begin,
                         index_t end) __attribute__((noinline)) {
    const index_t visits = end - begin;
    auto& [y, z, c] = visit_data.at(slot);
    for (index_t first = 0; first < visits; first += o.batch, ++state.steps) {
      const index_t m = std::min(o.batch, visits - first);
      if (o.average > 1 && state.steps + 1 == o.average) {
        w.restart();
        std::fill(late.begin(), late.end(), 0.0);
        b_sum = 0;
      }
      for (index_t k = first; k < first + m; ++k) {
        look_ahead(view, at, k, visits);
        const double dot = w.lazy() ? w.updated_dot(view, at[k]) : row_dot(view, at[k], w.data());
        z[k] += w.scale() * dot + (p.intercept ? b : 0.0);
      }
      p.loss.gradients(y.data() + first, z.data() + first, c.data() + first, u.data(), m);
      const double t = static_cast<double>(state.steps);
      const double eta = o.power == 0   ? o.eta0
                         : o.power == 1 ? o.eta0 / (1.0 + o.decay * t)
                                        : o.eta0 / std::pow(1.0 + o.decay * t, o.power);
      const double rate = eta * static_cast<double>(n) / static_cast<double>(m);
      if (o.passive && c[first] > 0) {
        const double loss = p.loss.value(y.data() + first, z.data() + first, c.data() + first, 1) / c[first];
        u[0] = c[first] * passive_gradient(view, at[first], u[0], loss, o);
      }
      w.decay(eta);
      double gb = 0;
      for (index_t k = 0; k < m; ++k)
        if (u[k] != 0.0) {
          u[k] = std::clamp(u[k], -kSteepest * c[first + k], kSteepest * c[first + k]);
          const double step = -rate * u[k] / w.scale();
          w.add(view, at[first + k], step);
          if (!late.empty()) late[begin + first + k] = step * w.counted();
          gb += u[k];
        }
      if (p.intercept) b -= rate * o.bias_rate * gb;
      w.shrink(eta);
      if (w.clips())
        for (index_t k = first; k < first + m; ++k) view.each(at[k], [&](index_t j, double) { w.clip(j); });
      w.count();
      b_sum += b;
    }
  };
  visit_rows(rows, order, o.batch, p.loss.whole_arrays(), monitor, steps, visit_data);
  if (!std::isfinite(visit_data.total())) return std::numeric_limits<double>::infinity();
  w.fold();
  state.b = b;
  if (o.average && state.steps >= o.average) {
    const index_t skipped = o.average - 1;
    const double fresh = 1.0 / static_cast<double>(state.steps - skipped);
    const double kept = static_cast<double>(std::max(index_t{0}, steps_before - skipped)) * fresh;
    std::vector<double> moved(d);
    if (!late.empty()) p.X.rmatvec(by_row(late, order).data(), moved.data());
    for (index_t j = 0; j < d; ++j) state.mean[j] = kept * state.mean[j] + fresh * (w.sum()[j] - moved[j]);
    state.mean_b = kept * state.mean_b + fresh * b_sum;
  }
  return visit_data.total();
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
