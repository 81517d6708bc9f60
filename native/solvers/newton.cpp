#include "solvers/newton.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <stdexcept>
#include <tuple>

#include "core/blas.hpp"
#include "core/cholesky.hpp"
#include "core/random.hpp"

namespace hinge {
namespace {

// Rows per feature in the sampled Hessian. Its relative error is about sqrt(1 / this), so each step reduces the gap by
// about this factor; measured on logistic 200k x 100 (benchmarks/linear), 50 to 200 take the same time. With fewer rows
// a quarter of them suffices, as long as there is this least number per feature; with few features the sums over all
// rows cost little.
constexpr index_t kRowsPerFeature = 100, kLeastRowsPerFeature = 25, kLeastEntries = 200'000;
constexpr double kRounding = 1e-9;  // a predicted decrease below this share of the objective may be lost in rounding
constexpr int kCorrections = 6;     // corrections kept on top of the sampled Hessian

// A factorisation of the (d+1) x (d+1) Hessian, from all rows or from a sample of them. Where a block E of columns has
// a diagonal Gram matrix (the levels of a category), it is eliminated first: with R the other columns, only the Schur
// complement H_RR - H_RE H_EE^-1 H_ER is factored.
class Factor {
 public:
  explicit Factor(const LinearProblem& p) : p_(p), m_(p.d() + (p.intercept ? 1 : 0)), full_(p.d() * p.d()) {
    const index_t quarter = std::clamp(p.n() / 4, kLeastRowsPerFeature * m_, kRowsPerFeature * m_);
    const index_t wanted = std::max(quarter, kLeastEntries / std::max<index_t>(m_, 1));
    fraction_ = p.X.sparse() || 2 * wanted >= p.n() ? 1.0 : static_cast<double>(wanted) / static_cast<double>(p.n());
    std::tie(first_, last_) = p.X.orthogonal_block();
    for (index_t j = 0; j < m_; ++j)
      if (j < first_ || j >= last_) rest_.push_back(j);
    chol_.resize(rest_.size() * rest_.size());
    edge_.resize((last_ - first_) * rest_.size());
    root_.resize(last_ - first_);
  }

  bool exact() const { return fraction_ >= 1.0; }
  double fraction() const { return fraction_; }
  // Whether a new factor costs much more than a pass over the data, so that an old one is worth keeping.
  bool costly() const {
    const double r = static_cast<double>(rest_.size()), e = static_cast<double>(last_ - first_);
    return last_ > first_ && r * r * (r / 3.0 + e) > 20.0 * static_cast<double>(p_.X.stored());
  }
  // Sets the damping added to the diagonal from the next factorisation on.
  void damp(double amount) { damping_ = amount; }
  double damping() const { return damping_; }
  void use_more_rows() { fraction_ = fraction_ * 4 >= 0.5 ? 1.0 : fraction_ * 4; }

  void rebuild(const Unset<double>& h) {
    const index_t n = p_.n(), d = p_.d();
    rows_.resize(n);
    const Random random(0x5eed);
    parallel_ranges(n, kRows, [&](index_t begin, index_t end) {
      for (index_t i = begin; i < end; ++i)
        rows_[i] = exact()                                                        ? h[i]
                   : random.uniform_at(static_cast<std::uint64_t>(i)) < fraction_ ? h[i] / fraction_
                                                                                  : 0.0;
    });
    p_.X.gram(rows_.data(), full_.data());
    std::vector<double> bias(d);
    double corner = 0;
    if (p_.intercept) {
      p_.X.rmatvec(rows_.data(), bias.data());
      corner = sum_of(rows_);
    }
    const auto entry = [&](index_t i, index_t j) {  // of H, for i >= j
      if (i < d) return full_[j * d + i] + (i == j ? p_.penalty.l2[i] : 0.0);
      return j < d ? bias[j] : corner;
    };
    const index_t r = static_cast<index_t>(rest_.size());
    // A Hessian that is singular up to rounding gets the smallest ridge with which it can be factored, in units of the
    // diagonal: columns may be of very different sizes.
    for (double share = 1e-14;; share *= 100) {
      const auto diagonal = [&](index_t j) { return (1.0 + share) * entry(j, j) + damping_ + 1e-300; };
      for (index_t j = 0; j < r; ++j) {
        chol_[j * r + j] = diagonal(rest_[j]);
        for (index_t i = j + 1; i < r; ++i) chol_[j * r + i] = entry(rest_[i], rest_[j]);
      }
      for (index_t e = first_; e < last_; ++e) {
        const double root = std::sqrt(diagonal(e));
        root_[e - first_] = root;
        double* column = edge_.data() + (e - first_) * r;
        for (index_t i = 0; i < r; ++i) column[i] = entry(std::max(rest_[i], e), std::min(rest_[i], e)) / root;
      }
      subtract_square(r);
      if (cholesky(r, chol_.data(), r)) return;
      if (!std::isfinite(share)) throw std::domain_error(kOverflowed);
    }
  }

  void solve(double* x) const {
    const index_t r = static_cast<index_t>(rest_.size()), width = last_ - first_;
    std::vector<double> inner(r);
    for (index_t i = 0; i < r; ++i) inner[i] = x[rest_[i]];
    for (index_t e = 0; e < width; ++e) vec::axpy(-x[first_ + e] / root_[e], edge_.data() + e * r, inner.data(), r);
    blas::potrs('L', r, 1, chol_.data(), r, inner.data(), r);
    for (index_t e = 0; e < width; ++e) {
      const double shared = vec::dot(edge_.data() + e * r, inner.data(), r);
      x[first_ + e] = (x[first_ + e] / root_[e] - shared) / root_[e];
    }
    for (index_t i = 0; i < r; ++i) x[rest_[i]] = inner[i];
  }

  // The weights of the rows in the factored matrix.
  const Unset<double>& rows() const { return rows_; }

 private:
  // chol -= edge edge', lower tiles in parallel.
  void subtract_square(index_t r) {
    constexpr index_t kTile = 256;
    const index_t width = last_ - first_, tiles = (r + kTile - 1) / kTile;
    if (width == 0) return;
    parallel_for(tiles * (tiles + 1) / 2, [&](index_t t) {
      index_t a = 0;
      while ((a + 1) * (a + 2) / 2 <= t) ++a;
      const index_t b = t - a * (a + 1) / 2, row = a * kTile, col = b * kTile;
      blas::gemm('N', 'T', std::min(kTile, r - row), std::min(kTile, r - col), width, -1.0, edge_.data() + row, r,
                 edge_.data() + col, r, 1.0, chol_.data() + col * r + row, r);
    });
  }

  const LinearProblem& p_;
  index_t m_, first_ = 0, last_ = 0;
  double fraction_;
  double damping_ = 0;
  std::vector<index_t> rest_;
  std::vector<double> full_, chol_, edge_, root_;
  Unset<double> rows_;
};

struct Correction {
  std::vector<double> s, y;
  double rho;
};

// r = B g by the two-loop recursion around the factor.
std::vector<double> apply_inverse(const Factor& factor, const std::deque<Correction>& memory,
                                  const std::vector<double>& g) {
  const index_t m = static_cast<index_t>(g.size());
  std::vector<double> r = g, alpha(memory.size());
  for (std::size_t k = memory.size(); k-- > 0;) {
    alpha[k] = memory[k].rho * vec::dot(memory[k].s.data(), r.data(), m);
    vec::axpy(-alpha[k], memory[k].y.data(), r.data(), m);
  }
  factor.solve(r.data());
  for (std::size_t k = 0; k < memory.size(); ++k) {
    const double beta = memory[k].rho * vec::dot(memory[k].y.data(), r.data(), m);
    vec::axpy(alpha[k] - beta, memory[k].s.data(), r.data(), m);
  }
  return r;
}

// The decrease of the dual value because the gradient is not zero. With a penalty on all weights the natural dual point
// is used, where Omega*(-g) grows by |grad J|^2 / (2 l2); otherwise `balanced_dual`, which moves only the sampled rows,
// by a factor 1 / fraction more.
double dual_slack(const LinearProblem& p, const std::vector<double>& gradient, double decrement, double fraction) {
  double slack = 0;
  for (index_t j = 0; j < p.d(); ++j) {
    if (p.penalty.l2[j] == 0) return 0.5 * decrement * (1.0 / fraction - 1.0);
    slack += 0.5 * gradient[j] * gradient[j] / p.penalty.l2[j];
  }
  return slack;
}

class State {
 public:
  explicit State(const LinearProblem& p) : p_(&p), at_(p.n(), p.d()), w_(p.d()) {}

  void move_to(const std::vector<double>& w, double b) {
    w_ = w;
    b_ = b;
    evaluate(*p_, w_.data(), b_, true, at_);
    objective_ = at_.risk + penalty_value(p_->penalty, w_.data(), p_->d());
    g_ = at_.g;
    for (index_t j = 0; j < p_->d(); ++j) g_[j] += p_->penalty.l2[j] * w_[j];
    if (p_->intercept) g_.push_back(at_.gb);
  }

  double objective() const { return objective_; }
  const std::vector<double>& gradient() const { return g_; }
  const Unset<double>& curvature() const { return at_.h; }
  const Unset<double>& gradients() const { return at_.u; }  // c l'
  const std::vector<double>& w() const { return w_; }
  double b() const { return b_; }

 private:
  const LinearProblem* p_;
  Evaluation at_;
  std::vector<double> w_, g_;
  double b_ = 0, objective_ = 0;
};

// A dual point for the certificate: u - v (X delta + delta_b) / c, where the factored matrix [X 1]' diag(v) [X 1] + L2
// maps delta to the gradient of J. Then X'(c u) + l2 (w - delta) = 0 and sum c u = 0, for any sample of rows in v.
std::vector<double> balanced_dual(const LinearProblem& p, const Factor& factor, const State& now) {
  std::vector<double> delta = now.gradient(), z(p.n());
  factor.solve(delta.data());
  p.X.matvec(delta.data(), z.data());
  const double shift = p.intercept ? delta[p.d()] : 0.0;
  parallel_ranges(p.n(), kRows, [&](index_t begin, index_t end) {
    for (index_t i = begin; i < end; ++i)
      z[i] = p.c[i] > 0 ? (now.gradients()[i] - factor.rows()[i] * (z[i] + shift)) / p.c[i] : 0.0;
  });
  return z;
}

}  // namespace

LinearSolution newton(const LinearProblem& p, std::vector<double> w, double b, const NewtonOptions& options,
                      Monitor& monitor) {
  const index_t d = p.d(), m = d + (p.intercept ? 1 : 0);
  State now(p), trial(p);
  now.move_to(w, b);
  Factor factor(p);
  std::deque<Correction> memory;
  LinearSolution out;
  const bool keep = factor.costly();
  bool fresh = false, here = false;  // whether the factor is usable, and whether it was computed at the current point
  double decrement_before = 0;

  for (int it = 1; it <= options.max_iter; ++it) {
    out.iterations = it;
    if (!fresh) {
      factor.rebuild(now.curvature());
      if (!options.approximate) memory.clear();
      fresh = here = true;
    }
    const std::vector<double> r = apply_inverse(factor, memory, now.gradient());
    const double decrement = vec::dot(r.data(), now.gradient().data(), m);
    const bool stop = monitor.report({it, now.objective(), -1.0});
    if (stop) out.outcome = Outcome::stopped;
    const double slack = options.proved ? dual_slack(p, now.gradient(), decrement, factor.fraction()) : 0.0;
    if (factor.damping() == 0 && 0.5 * decrement + slack <= options.tol * std::fabs(now.objective()))
      out.outcome = Outcome::converged;
    if (out.outcome != Outcome::max_iter) break;

    double step = 1.0;
    bool accepted = false;
    for (int halving = 0; halving < 40 && !accepted; ++halving, step *= 0.5) {
      w = now.w();
      vec::axpy(-step, r.data(), w.data(), d);
      b = now.b() - (p.intercept ? step * r[d] : 0.0);
      trial.move_to(w, b);
      // Near the optimum the decrease is below rounding; there the Newton step of a convex problem is accepted.
      const double rounding = 1e-14 * std::fabs(now.objective());
      accepted = trial.objective() <= now.objective() - 1e-4 * step * decrement + rounding;
    }
    if (!accepted) {
      if (factor.exact() && here && (memory.empty() || !options.approximate)) {
        if (factor.damping() > 0 || decrement <= kRounding * std::fabs(now.objective())) {
          out.outcome = Outcome::stalled;
          break;
        }
        // This is not rounding: the loss is flat here and curved elsewhere (Huber's, where all residuals are large),
        // and the step is as long as the curvature is small. Damping limits steps in such directions to the size of the
        // weights.
        const double size = vec::dot(now.w().data(), now.w().data(), d) + now.b() * now.b();
        factor.damp(std::sqrt(vec::dot(now.gradient().data(), now.gradient().data(), m) / (1.0 + size)));
        fresh = false;
        continue;
      }
      if (memory.empty()) factor.use_more_rows();
      memory.clear();
      fresh = false;
      continue;
    }
    here = false;
    if (factor.damping() > 0) {
      factor.damp(0.0);
      fresh = false;
    } else if (factor.exact() && !keep && !options.approximate) {
      fresh = false;
    } else {
      Correction c{r, trial.gradient(), 0.0};
      for (index_t j = 0; j < m; ++j) {
        c.s[j] *= -2.0 * step;  // step was halved once more after acceptance
        c.y[j] -= now.gradient()[j];
      }
      const double sy = vec::dot(c.s.data(), c.y.data(), m);
      if (sy > 0) {
        c.rho = 1.0 / sy;
        memory.push_back(std::move(c));
        if (memory.size() > kCorrections) memory.pop_front();
      }
      // A sample drawn far from the current point misleads: draw it again while steps are large or progress is slow.
      const bool far = std::fabs(trial.objective() - now.objective()) > 1e-2 * std::fabs(now.objective());
      const bool slow = decrement_before > 0 && decrement > 0.25 * decrement_before;
      if (far || slow) {
        if (slow && !far) factor.use_more_rows();
        fresh = false;
      }
      decrement_before = far ? 0.0 : decrement;
      if (options.approximate) fresh = false;
    }
    std::swap(now, trial);
  }
  out.w = now.w();
  out.b = now.b();
  // Without a bias and with a penalty on all weights the natural dual point at w suffices (see dual_slack), and the
  // certificate computes it anyway.
  const double* l2 = p.penalty.l2;
  const bool natural = !p.intercept && std::all_of(l2, l2 + d, [](double strength) { return strength > 0; });
  if (p.loss.has_conjugate() && !factor.rows().empty() && !natural) out.dual = balanced_dual(p, factor, now);
  return out;
}

}  // namespace hinge
