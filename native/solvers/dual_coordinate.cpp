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

constexpr int kFirstEpochs = 4;     // before the first look at the gap
constexpr int kMostEpochs = 16;     // between two looks
constexpr double kBias = 4.0;       // the bias as a feature has this many times the mean product of two rows
constexpr double kDrop = 0.1;       // look again when the gap seems to have fallen to this share
constexpr double kMargin = 2.0;     // left out: what is pulled past its end by this many times a typical move
constexpr double kMostCut = 0.25;   // of the active dual variables, in a step along past moves
constexpr std::size_t kMemory = 2;  // past moves
constexpr index_t kRun = 16;        // neighbouring rows are visited one after another, runs of them in random order

// One dual variable u of one example, with all that a step needs in one cache line.
struct alignas(64) Slope {
  double a, lo, hi;  // the kink less the offset, and the interval of u
  double c, bend;    // the weight of the example, and soft + c q
  double u;
  index_t row;
  bool left_out;
};

// A move of some dual variables, and what it does to the weights.
struct Move {
  std::vector<index_t> which = {};
  std::vector<double> u = {}, w = {};
};

// u up or down its interval changes the weights (the bias comes last).
struct Weights {
  double* w;
  index_t d;
  const double* inverse;  // 1 / l2
  bool uniform;           // all the same
  double bias_step;       // zero without a bias

  template <class Rows>
  HINGE_INLINE void carry(const Rows& rows, const Slope& s, double change) const {
    const double by = -change * s.c;
    if (uniform)
      rows.axpy(s.row, by * inverse[0], w);
    else
      rows.each(s.row, [&](index_t j, double x) { w[j] += by * inverse[j] * x; });
    w[d] += by * bias_step;
  }
};

// phi(z) = max { u t - soft/2 u^2 : lo <= u <= hi } at t = z - a.
HINGE_INLINE double loss_at(const Slope& s, double t, double soft) {
  if (soft == 0) return std::max(s.lo * t, s.hi * t);
  const double u = std::clamp(t / soft, s.lo, s.hi);
  return u * (t - 0.5 * soft * u);
}

HINGE_INLINE bool held(const Slope& s, double pull, double margin) {
  return (s.u <= s.lo && pull < -margin) || (s.u >= s.hi && pull > margin);
}

// What an epoch saw: the gap of the dual variables it visited, and the sizes of its moves.
struct Tally {
  double gap = 0, squares = 0;
  index_t moves = 0;
};

// Every dual variable in the list once to its best value, unless it is held at an end.
template <class Rows>
HINGE_HOT Tally sweep(const Rows& rows, const index_t* visit, index_t m, double margin, double soft, Slope* slopes,
                      const Weights& to) {
  Tally tally;
  const double* w = to.w;
  for (index_t s = 0; s < m; ++s) {
    if (s + 6 < m) __builtin_prefetch(slopes + visit[s + 6]);
    if (s + 3 < m) rows.prefetch(slopes[visit[s + 3]].row);
    Slope& x = slopes[visit[s]];
    double score = 0;
    rows.each(x.row, [&](index_t j, double v) { score += v * w[j]; });
    const double t = score + w[to.d] - x.a, pull = t - soft * x.u;  // positive pulls u up
    tally.gap += x.c * (loss_at(x, t, soft) - x.u * (t - 0.5 * soft * x.u));
    x.left_out = held(x, pull, margin);
    if (x.left_out || pull == 0) continue;
    const double next = std::clamp(x.u + pull / x.bend, x.lo, x.hi), change = next - x.u;
    if (change == 0) continue;
    const double size = std::min(std::fabs(pull), std::fabs(change) * x.bend);
    tally.squares += size * size;
    ++tally.moves;
    x.u = next;
    to.carry(rows, x, change);
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
    slopes_.reserve(kinks.size() * static_cast<std::size_t>(n_));
    for (const Kinks& k : kinks)
      for (index_t i = 0; i < n_; ++i) {
        const double a = k.a[i] - (p.offset ? p.offset[i] : 0.0);
        slopes_.push_back(
            {a, k.lo[i], k.hi[i], p.c[i], soft + p.c[i] * q[i], 0.0, i, false});  // 0 lies in every interval
      }
    moved_.assign(slopes_.size(), 0.0);
    marked_.assign(slopes_.size(), 0);
  }

  LinearSolution run(double tol, int max_iter, int max_looks, Monitor& monitor) {
    LinearSolution out;
    for (std::size_t k = 0; k < slopes_.size(); ++k)
      if (slopes_[k].c > 0) active_.push_back(static_cast<index_t>(k));
    double target = 0, before = 1e300;  // a gap that is worth a look, and that of the last one
    for (int looks = 1; looks <= max_looks && out.iterations < max_iter; ++looks) {
      const int most = std::min(looks == 1 ? kFirstEpochs : kMostEpochs, max_iter - out.iterations);
      for (int e = 1; e <= most && (e <= 2 || estimate_ > target); ++e, ++out.iterations) {
        epoch();
        monitor.poll();
        // Method of multipliers: the centre moves to the bias, which shifts every score by the same amount.
        if (p_.intercept) w_[d_] -= bias_step_ * balance();
      }
      const double gap = look(), size = std::max(std::fabs(primal_), 1e-300);
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
  // The storage is told apart once for a sweep: all else is compiled once for all of them.
  template <class F>
  void with_rows(const F& f) const {
    std::visit(
        [&]<class Rows>(const Rows& rows) {
          if constexpr (!std::is_same_v<Rows, std::monostate>) f(rows);
        },
        rows_);
  }

  // The mean of x_i'diag(1/l2) x_j over pairs of rows, or that of (q + soft/c)/n if it is larger. A bias of that size
  // adds to the Hessian of the dual no more than is there already: a much larger one makes every epoch slower, a much
  // smaller one is found late.
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

  // Every active dual variable once to its best value; then the best combination with the moves of the epochs before.
  void epoch() {
    arrange();
    const index_t m = static_cast<index_t>(visit_.size());
    // Combining moves costs a few times d.
    const bool remember = static_cast<double>(m) * static_cast<double>(p_.X.stored()) >= static_cast<double>(n_ * d_);
    Move step;
    if (remember) {
      step.which = visit_;
      step.w = w_;
      for (const index_t k : visit_) step.u.push_back(slopes_[k].u);
    }
    Tally tally;
    with_rows(
        [&](const auto& rows) { tally = sweep(rows, visit_.data(), m, margin_, soft_, slopes_.data(), weights(w_)); });
    estimate_ = tally.gap;
    std::erase_if(active_, [&](index_t k) { return slopes_[k].left_out; });
    margin_ = kMargin * std::sqrt(tally.squares / static_cast<double>(std::max<index_t>(tally.moves, 1)));
    if (!remember) return past_.clear();

    for (index_t s = 0; s < m; ++s) step.u[s] = slopes_[visit_[s]].u - step.u[s];
    for (index_t j = 0; j <= d_; ++j) step.w[j] = w_[j] - step.w[j];
    past_.push_back(std::move(step));
    if (past_.size() > 1) combine();
    if (past_.size() > kMemory) past_.erase(past_.begin());
  }

  // The least value over the span of past moves, cut to the intervals, if that is an improvement. With exact intervals
  // this is the method of conjugate gradients, preconditioned by an epoch.
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
      const Slope& s = slopes_[k];
      cut += s.u + moved_[k] < s.lo || s.u + moved_[k] > s.hi;
    }
    if (static_cast<double>(cut) <= kMostCut * static_cast<double>(active_.size()) && cut_and_weigh(which, w) > 0) {
      Move& last = past_.back();
      for (const index_t k : which) {
        Slope& s = slopes_[k];
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

  // Cuts the step to the intervals, carries that into w, and returns what the dual objective gains.
  double cut_and_weigh(const std::vector<index_t>& which, std::vector<double>& w) {
    double gain = 0;
    with_rows([&](const auto& rows) {
      for (const index_t k : which) {
        const Slope& s = slopes_[k];
        const double wanted = s.u + moved_[k], next = std::clamp(wanted, s.lo, s.hi);
        if (next != wanted) weights(w).carry(rows, s, next - wanted);
        moved_[k] = next - s.u;
        gain -= s.c * moved_[k] * (s.a + 0.5 * soft_ * (s.u + next));
      }
    });
    for (index_t j = 0; j <= d_; ++j) gain -= 0.5 * l2_[j] * (w[j] - w_[j]) * (w[j] + w_[j]);
    return gain;
  }

  // The t that minimises -D(u + sum_a t_a move_a); empty if a move is lost in the rounding of w.
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
        const Slope& x = slopes_[move.which[s]];
        t[a] -= x.c * (x.a + soft_ * x.u) * move.u[s];
      }
      if (soft_ > 0) add_softness(a, H.data() + a * k);
      // A move is the difference of two w, each with its rounding: its derivative is known to 1e-16 size only.
      if (!(H[a * k + a] > 1e-13 * size)) return {};
      scale[a] = 1.0 / std::sqrt(H[a * k + a]);
    }
    for (index_t a = 0; a < k; ++a) {
      for (index_t b = a; b < k; ++b) H[a * k + b] *= scale[a] * scale[b];
      H[a * k + a] += 1e-6;  // moves that are alike are told apart by rounding only
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
      moved_[move.which[s]] = soft_ * slopes_[move.which[s]].c * move.u[s];
    for (std::size_t b = a; b < past_.size(); ++b) {
      const Move& other = past_[b];
      for (std::size_t s = 0; s < other.which.size(); ++s) H[b] += moved_[other.which[s]] * other.u[s];
    }
    for (const index_t k : move.which) moved_[k] = 0;
  }

  // The slopes of the examples; with a bias the heavier sign is shrunk until sum c u = 0 but for rounding, which stays
  // inside all intervals, as they hold zero.
  std::vector<double> balanced() const {
    double up = 0, down = 0;
    for (const Slope& s : slopes_) (s.u > 0 ? up : down) += s.c * std::fabs(s.u);
    const double less = p_.intercept ? std::min(up, down) : 1.0;
    std::vector<double> u(n_, 0.0);
    for (const Slope& s : slopes_) {
      const double all = p_.intercept ? (s.u > 0 ? up : down) : 1.0;
      if (s.u != 0 && all > 0) u[s.row] += less / all * s.u;
    }
    return u;
  }

  // Sum of c u, which a bias wants to be zero.
  double balance() const {
    double sum = 0;
    for (const Slope& s : slopes_) sum += s.c * s.u;
    return sum;
  }

  // w from u, free of what rounding has added up to.
  void rebuild() {
    std::vector<double> cu(n_, 0.0);
    for (const Slope& s : slopes_) cu[s.row] -= s.c * s.u;
    p_.X.rmatvec(cu.data(), w_.data());
    for (index_t j = 0; j < d_; ++j) w_[j] *= inverse_[j];
    past_.clear();
  }

  // The gap at (w, b) and u; sum c u counts with the bias it would still move. Every dual variable that has reason to
  // move becomes active again.
  double look() {
    std::vector<double> z(n_);
    p_.X.matvec(w_.data(), z.data());
    double loss = 0, linear = 0, ridge = 0;
    active_.clear();
    for (std::size_t k = 0; k < slopes_.size(); ++k) {
      const Slope& s = slopes_[k];
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
  std::vector<Slope> slopes_;
  std::vector<index_t> active_, visit_;  // the same dual variables, in order and as they are visited
  std::vector<Move> past_;
  std::vector<double> moved_;  // room for a step along past moves
  std::vector<char> marked_;
  double bias_step_ = 0, primal_ = 0, margin_ = 1e300, estimate_ = 0;
  bool uniform_ = false;
};

}  // namespace

LinearSolution dual_coordinate(const LinearProblem& problem, const std::vector<Kinks>& kinks, double soft, double tol,
                               int max_iter, int max_looks, std::uint64_t seed, Monitor& monitor) {
  if (std::holds_alternative<std::monostate>(problem.X.row_view()))
    throw std::invalid_argument("dual coordinate descent needs rows");
  return Method(problem, kinks, soft, seed).run(tol, max_iter, max_looks, monitor);
}

}  // namespace hinge
