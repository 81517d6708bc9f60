#include "solvers/dual_coordinate.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "core/blas.hpp"
#include "core/cholesky.hpp"
#include "core/random.hpp"

namespace hinge {
namespace {

constexpr int kFirstEpochs = 4;  // before the first evaluation of the gap
constexpr int kMostEpochs = 16;  // between two evaluations
constexpr double kBias = 4.0;    // squared value of the bias feature, in units of the mean product of two rows
constexpr double kDrop = 0.1;    // evaluate the gap again when its estimate has fallen to this share
constexpr double kMargin = 2.0;  // shrink a variable at a bound with an outward gradient above this many typical moves
constexpr double kMostCut = 0.25;   // largest share of the active dual variables that a momentum step may clip
constexpr std::size_t kMemory = 2;  // past moves in a momentum step
constexpr index_t kRun = 16;        // rows per run: rows of a run are visited in order, the runs in random order

// One dual variable u of one example, with everything a step needs in one cache line.
struct alignas(64) DualVariable {
  double a, lo, hi;     // the kink minus the offset, and the interval of u
  double c, curvature;  // the weight of the example, and soft + c q
  double u;
  index_t row;
  bool left_out;
};

// A move of some dual variables, and the resulting change of the weights.
struct Move {
  std::vector<index_t> which = {};
  std::vector<double> u = {}, w = {};
};

// The weights with the update for a change of u (the bias comes last).
struct Weights {
  double* w;
  index_t d;
  const double* inverse;  // 1 / l2
  bool uniform;           // whether all l2 are equal
  double bias_step;       // zero without a bias

  template <class Rows>
  HINGE_INLINE void update(const Rows& rows, const DualVariable& s, double change) const {
    const double by = -change * s.c;
    if (uniform)
      rows.axpy(s.row, by * inverse[0], w);
    else
      rows.each(s.row, [&](index_t j, double x) { w[j] += by * inverse[j] * x; });
    w[d] += by * bias_step;
  }
};

// phi(z) = max { u t - soft/2 u^2 : lo <= u <= hi } at t = z - a.
HINGE_INLINE double loss_at(const DualVariable& s, double t, double soft) {
  if (soft == 0) return std::max(s.lo * t, s.hi * t);
  const double u = std::clamp(t / soft, s.lo, s.hi);
  return u * (t - 0.5 * soft * u);
}

HINGE_INLINE bool held(const DualVariable& s, double gradient, double margin) {
  return (s.u <= s.lo && gradient < -margin) || (s.u >= s.hi && gradient > margin);
}

// Statistics of an epoch: the gap of the dual variables it visited, and the sizes of its moves.
struct Tally {
  double gap = 0, squares = 0;
  index_t moves = 0;
};

// Maximises the dual over each listed variable in turn, except those held at a bound.
template <class Rows>
HINGE_HOT Tally sweep(const Rows& rows, const index_t* visit, index_t m, double margin, double soft,
                      DualVariable* variables, const Weights& to) {
  Tally tally;
  const double* w = to.w;
  for (index_t s = 0; s < m; ++s) {
    if (s + 6 < m) __builtin_prefetch(variables + visit[s + 6]);
    if (s + 3 < m) rows.prefetch(variables[visit[s + 3]].row);
    DualVariable& x = variables[visit[s]];
    double score = 0;
    rows.each(x.row, [&](index_t j, double v) { score += v * w[j]; });
    const double t = score + w[to.d] - x.a, gradient = t - soft * x.u;  // gradient > 0 increases u
    tally.gap += x.c * (loss_at(x, t, soft) - x.u * (t - 0.5 * soft * x.u));
    x.left_out = held(x, gradient, margin);
    if (x.left_out || gradient == 0) continue;
    const double next = std::clamp(x.u + gradient / x.curvature, x.lo, x.hi), change = next - x.u;
    if (change == 0) continue;
    const double size = std::min(std::fabs(gradient), std::fabs(change) * x.curvature);
    tally.squares += size * size;
    ++tally.moves;
    x.u = next;
    to.update(rows, x, change);
  }
  return tally;
}

template <class Rows>
void weighted_squares(const Rows& rows, const std::vector<double>& factor, index_t begin, index_t end,
                      std::vector<double>& q) {
  for (index_t i = begin; i < end; ++i) rows.each(i, [&](index_t j, double x) { q[i] += x * x * factor[j]; });
}

class Method {
 public:
  Method(const LinearProblem& p, const std::vector<Kinks>& kinks, double soft, std::uint64_t seed)
      : p_(p),
        rows_(p.X.row_view()),
        n_(p.n()),
        d_(p.d()),
        soft_(soft),
        random_(seed),
        w_(p.d() + 1),
        l2_(p.d() + 1),
        inverse_(p.d()) {
    for (index_t j = 0; j < d_; ++j) {
      l2_[j] = p.penalty.l2[j];
      inverse_[j] = 1.0 / l2_[j];
    }
    uniform_ = std::all_of(inverse_.begin(), inverse_.end(), [&](double x) { return x == inverse_[0]; });
    std::vector<double> q(n_);
    const index_t parts = parts_for(p.X.stored(), 1 << 16);
    parallel_for(parts, [&](index_t part) {
      with_rows([&](const auto& rows) {
        weighted_squares(rows, inverse_, range_begin(n_, parts, part), range_begin(n_, parts, part + 1), q);
      });
    });
    if (p.intercept) {
      bias_step_ = kBias * std::max(mean_product(q), 1e-300);
      l2_[d_] = 1.0 / bias_step_;
      for (double& x : q) x += bias_step_;
    }
    variables_.reserve(kinks.size() * static_cast<std::size_t>(n_));
    for (const Kinks& k : kinks)
      for (index_t i = 0; i < n_; ++i) {
        const double a = k.a[i] - (p.offset ? p.offset[i] : 0.0);
        variables_.push_back(
            {a, k.lo[i], k.hi[i], p.c[i], soft + p.c[i] * q[i], 0.0, i, false});  // 0 lies in every interval
      }
    moved_.assign(variables_.size(), 0.0);
    marked_.assign(variables_.size(), 0);
  }

  LinearSolution run(double tol, int max_iter, int max_checks, Monitor& monitor) {
    LinearSolution out;
    for (std::size_t k = 0; k < variables_.size(); ++k)
      if (variables_[k].c > 0) active_.push_back(static_cast<index_t>(k));
    double target = 0, before = 1e300;  // the gap at which to evaluate it again, and its last value
    for (int checks = 1; checks <= max_checks && out.iterations < max_iter; ++checks) {
      const int most = std::min(checks == 1 ? kFirstEpochs : kMostEpochs, max_iter - out.iterations);
      for (int e = 1; e <= most && (e <= 2 || estimate_ > target); ++e, ++out.iterations) {
        epoch();
        monitor.poll();
        // Method of multipliers: the centre moves to the bias, which shifts every score by the same amount.
        if (p_.intercept) w_[d_] -= bias_step_ * balance();
      }
      const double gap = evaluate_gap(), size = std::max(std::fabs(primal_), 1e-300);
      if (monitor.report({out.iterations, primal_, gap / size})) out.outcome = Outcome::stopped;
      if (gap <= tol * size) out.outcome = Outcome::converged;
      if (out.outcome != Outcome::max_iter) break;
      target = std::max(kDrop * gap, tol * size);
      if (gap > 0.5 * before) rebuild();
      before = gap;
    }
    out.b = w_[d_];
    out.w = w_;
    out.w.pop_back();
    out.dual = balanced();
    return out;
  }

 private:
  // Dispatches on the storage once per sweep, so that only the sweep is compiled for each storage.
  template <class F>
  void with_rows(const F& f) const {
    std::visit(
        [&]<class Rows>(const Rows& rows) {
          if constexpr (!std::is_same_v<Rows, std::monostate>) f(rows);
        },
        rows_);
  }

  // The mean of x_i'diag(1/l2) x_j over pairs of rows, or that of (q + soft/c)/n if it is larger. A bias of that size
  // adds no more to the Hessian of the dual than is there already: a much larger one slows every epoch down, a much
  // smaller one makes the bias converge slowly.
  double mean_product(const std::vector<double>& q) const {
    const double n = static_cast<double>(n_);
    std::vector<double> mean(d_);
    p_.X.rmatvec(std::vector<double>(n_, 1.0 / n).data(), mean.data());
    double product = 0;
    for (index_t j = 0; j < d_; ++j) product += mean[j] * mean[j] * inverse_[j];
    return std::max(product, vec::sum(q.data(), n_) / (n * n) + soft_);
  }

  Weights weights(std::vector<double>& w) const { return {w.data(), d_, inverse_.data(), uniform_, bias_step_}; }

  void arrange() {
    const index_t m = static_cast<index_t>(active_.size()), runs = (m + kRun - 1) / kRun;
    std::vector<index_t> order(runs);
    for (index_t r = 0; r < runs; ++r) order[r] = r;
    random_.shuffle(order.data(), runs);
    visit_.clear();
    for (const index_t r : order)
      visit_.insert(visit_.end(), active_.begin() + r * kRun, active_.begin() + std::min(m, (r + 1) * kRun));
  }

  // One epoch over the active dual variables, then the best combination with the moves of earlier epochs.
  void epoch() {
    arrange();
    const index_t m = static_cast<index_t>(visit_.size());
    // Combining moves costs a few times d operations.
    const bool remember = static_cast<double>(m) * static_cast<double>(p_.X.stored()) >= static_cast<double>(n_ * d_);
    Move step;
    if (remember) {
      step.which = visit_;
      step.w = w_;
      for (const index_t k : visit_) step.u.push_back(variables_[k].u);
    }
    Tally tally;
    with_rows([&](const auto& rows) {
      tally = sweep(rows, visit_.data(), m, margin_, soft_, variables_.data(), weights(w_));
    });
    estimate_ = tally.gap;
    std::erase_if(active_, [&](index_t k) { return variables_[k].left_out; });
    margin_ = kMargin * std::sqrt(tally.squares / static_cast<double>(std::max<index_t>(tally.moves, 1)));
    if (!remember) return past_.clear();

    for (index_t s = 0; s < m; ++s) step.u[s] = variables_[visit_[s]].u - step.u[s];
    for (index_t j = 0; j <= d_; ++j) step.w[j] = w_[j] - step.w[j];
    past_.push_back(std::move(step));
    if (past_.size() > 1) combine();
    if (past_.size() > kMemory) past_.erase(past_.begin());
  }

  // Minimises over the span of past moves, clipped to the intervals, and keeps the result if it is an improvement.
  // Where nothing is clipped this is the method of conjugate gradients, preconditioned by an epoch.
  void combine() {
    const std::vector<double> t = best_coefficients();
    if (t.empty()) return;
    std::vector<index_t> which;
    std::vector<double> w = w_;
    for (std::size_t a = 0; a < past_.size(); ++a) {
      vec::axpy(t[a], past_[a].w.data(), w.data(), d_ + 1);
      for (std::size_t s = 0; s < past_[a].which.size(); ++s) {
        const index_t k = past_[a].which[s];
        if (!marked_[k]) which.push_back(k);
        marked_[k] = 1;
        moved_[k] += t[a] * past_[a].u[s];
      }
    }
    index_t cut = 0;
    for (const index_t k : which) {
      const DualVariable& s = variables_[k];
      cut += s.u + moved_[k] < s.lo || s.u + moved_[k] > s.hi;
    }
    if (static_cast<double>(cut) <= kMostCut * static_cast<double>(active_.size()) && cut_and_weigh(which, w) > 0) {
      Move& last = past_.back();
      for (const index_t k : which) {
        DualVariable& s = variables_[k];
        s.u = std::clamp(s.u + moved_[k], s.lo, s.hi);
      }
      for (std::size_t s = 0; s < last.which.size(); ++s) moved_[last.which[s]] += last.u[s];
      for (index_t j = 0; j <= d_; ++j) last.w[j] += w[j] - w_[j];
      last.u.clear();
      for (const index_t k : which) last.u.push_back(moved_[k]);
      last.which = which;
      w_.swap(w);
    }
    for (const index_t k : which) moved_[k] = marked_[k] = 0;
  }

  // Clips the step to the intervals, updates w, and returns the gain of the dual objective.
  double cut_and_weigh(const std::vector<index_t>& which, std::vector<double>& w) {
    double gain = 0;
    with_rows([&](const auto& rows) {
      for (const index_t k : which) {
        const DualVariable& s = variables_[k];
        const double wanted = s.u + moved_[k], next = std::clamp(wanted, s.lo, s.hi);
        if (next != wanted) weights(w).update(rows, s, next - wanted);
        moved_[k] = next - s.u;
        gain -= s.c * moved_[k] * (s.a + 0.5 * soft_ * (s.u + next));
      }
    });
    for (index_t j = 0; j <= d_; ++j) gain -= 0.5 * l2_[j] * (w[j] - w_[j]) * (w[j] + w_[j]);
    return gain;
  }

  // The t that minimises -D(u + sum_a t_a move_a); empty if a move is smaller than the rounding of w.
  std::vector<double> best_coefficients() {
    const index_t k = static_cast<index_t>(past_.size());
    std::vector<double> H(k * k), t(k), scale(k), lw(d_ + 1);
    double size = 0;
    for (index_t j = 0; j <= d_; ++j) size += l2_[j] * w_[j] * w_[j];
    for (index_t a = 0; a < k; ++a) {
      const Move& move = past_[a];
      for (index_t j = 0; j <= d_; ++j) lw[j] = l2_[j] * move.w[j];
      for (index_t b = a; b < k; ++b) H[a * k + b] = vec::dot(lw.data(), past_[b].w.data(), d_ + 1);
      t[a] = -vec::dot(lw.data(), w_.data(), d_ + 1);
      for (std::size_t s = 0; s < move.which.size(); ++s) {
        const DualVariable& x = variables_[move.which[s]];
        t[a] -= x.c * (x.a + soft_ * x.u) * move.u[s];
      }
      if (soft_ > 0) add_softness(a, H.data() + a * k);
      // A move is the difference of two w, each with its rounding: its derivative has an error of 1e-16 size.
      if (!(H[a * k + a] > 1e-13 * size)) return {};
      scale[a] = 1.0 / std::sqrt(H[a * k + a]);
    }
    for (index_t a = 0; a < k; ++a) {
      for (index_t b = a; b < k; ++b) H[a * k + b] *= scale[a] * scale[b];
      H[a * k + a] += 1e-6;  // nearly parallel moves would make H singular
      t[a] *= scale[a];
    }
    if (!cholesky(k, H.data(), k)) return {};
    blas::potrs('L', k, 1, H.data(), k, t.data(), k);
    for (index_t a = 0; a < k; ++a) t[a] *= scale[a];
    return t;
  }

  // Adds soft sum c u_a u_b to H[b] for the moves b >= a.
  void add_softness(index_t a, double* H) {
    const Move& move = past_[a];
    for (std::size_t s = 0; s < move.which.size(); ++s)
      moved_[move.which[s]] = soft_ * variables_[move.which[s]].c * move.u[s];
    for (std::size_t b = a; b < past_.size(); ++b) {
      const Move& other = past_[b];
      for (std::size_t s = 0; s < other.which.size(); ++s) H[b] += moved_[other.which[s]] * other.u[s];
    }
    for (const index_t k : move.which) moved_[k] = 0;
  }

  // The dual point of the examples. With a bias the heavier sign is shrunk until sum c u = 0 up to rounding; this stays
  // inside all intervals, as they contain zero.
  std::vector<double> balanced() const {
    double up = 0, down = 0;
    for (const DualVariable& s : variables_) (s.u > 0 ? up : down) += s.c * std::fabs(s.u);
    const double less = p_.intercept ? std::min(up, down) : 1.0;
    std::vector<double> u(n_, 0.0);
    for (const DualVariable& s : variables_) {
      const double all = p_.intercept ? (s.u > 0 ? up : down) : 1.0;
      if (s.u != 0 && all > 0) u[s.row] += less / all * s.u;
    }
    return u;
  }

  // Sum of c u, which is zero at the optimum with a bias.
  double balance() const {
    double sum = 0;
    for (const DualVariable& s : variables_) sum += s.c * s.u;
    return sum;
  }

  // Recomputes w from u, which removes accumulated rounding.
  void rebuild() {
    std::vector<double> cu(n_, 0.0);
    for (const DualVariable& s : variables_) cu[s.row] -= s.c * s.u;
    p_.X.rmatvec(cu.data(), w_.data());
    for (index_t j = 0; j < d_; ++j) w_[j] *= inverse_[j];
    past_.clear();
  }

  // Evaluates the gap at (w, b) and u, including the gain that a step of the bias would make where sum c u is not zero,
  // and reactivates every dual variable whose gradient points into its interval.
  double evaluate_gap() {
    std::vector<double> z(n_);
    p_.X.matvec(w_.data(), z.data());
    double loss = 0, linear = 0, ridge = 0;
    active_.clear();
    for (std::size_t k = 0; k < variables_.size(); ++k) {
      const DualVariable& s = variables_[k];
      if (s.c == 0) continue;
      const double t = z[s.row] + w_[d_] - s.a;
      loss += s.c * loss_at(s, t, soft_);
      linear += s.c * s.u * (s.a + 0.5 * soft_ * s.u);
      if (!held(s, t - soft_ * s.u, margin_)) active_.push_back(static_cast<index_t>(k));
    }
    for (index_t j = 0; j < d_; ++j) ridge += 0.5 * l2_[j] * w_[j] * w_[j];
    primal_ = loss + ridge;
    const double unbalanced = p_.intercept ? std::fabs(balance()) * (1.0 + std::fabs(w_[d_])) : 0.0;
    return primal_ + linear + ridge + unbalanced;
  }

  const LinearProblem& p_;
  RowView rows_;
  index_t n_, d_;
  double soft_;
  Random random_;
  std::vector<double> w_, l2_, inverse_;  // the bias comes last in w and l2, and is zero if there is none
  std::vector<DualVariable> variables_;
  std::vector<index_t> active_, visit_;  // the active dual variables, sorted and in the order of the visits
  std::vector<Move> past_;
  std::vector<double> moved_;  // workspace of a momentum step
  std::vector<char> marked_;
  double bias_step_ = 0, primal_ = 0, margin_ = 1e300, estimate_ = 0;
  bool uniform_ = false;
};

}  // namespace

LinearSolution dual_coordinate(const LinearProblem& problem, const std::vector<Kinks>& kinks, double soft, double tol,
                               int max_iter, int max_checks, std::uint64_t seed, Monitor& monitor) {
  if (std::holds_alternative<std::monostate>(problem.X.row_view()))
    throw std::invalid_argument("dual coordinate descent needs rows");
  return Method(problem, kinks, soft, seed).run(tol, max_iter, max_checks, monitor);
}

}  // namespace hinge
