#include "solve/newton.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

#include "core/blas.hpp"
#include "core/cholesky.hpp"
#include "core/random.hpp"

namespace hinge {
namespace {

// Rows per feature in the sampled Hessian. Its relative error is about sqrt(1 / this), so each step gains about a
// factor of this; measured on logistic 200k x 100 (benchmarks/linear), 50 to 200 take the same time.
constexpr index_t kRowsPerFeature = 100;
constexpr int kMemory = 6;  // corrections kept on top of the sampled Hessian

// The Cholesky factor of the (d+1) x (d+1) Hessian, from all rows or from a sample of them.
class Factor {
 public:
  explicit Factor(const LinearProblem& p)
      : p_(p), m_(p.d() + (p.intercept ? 1 : 0)), full_(p.d() * p.d()), chol_(m_ * m_) {
    const index_t wanted = std::max<index_t>(kRowsPerFeature * m_, 5000);
    fraction_ = p.X.sparse() || 2 * wanted >= p.n() ? 1.0 : static_cast<double>(wanted) / static_cast<double>(p.n());
  }

  bool exact() const { return fraction_ >= 1.0; }
  void use_more_rows() { fraction_ = fraction_ * 4 >= 0.5 ? 1.0 : fraction_ * 4; }

  void rebuild(const std::vector<double>& h) {
    const index_t n = p_.n(), d = p_.d();
    const double* rows = h.data();
    if (!exact()) {
      sampled_.resize(n);
      const Random random(0x5eed);
      for (index_t i = 0; i < n; ++i)
        sampled_[i] = random.uniform_at(static_cast<std::uint64_t>(i)) < fraction_ ? h[i] / fraction_ : 0.0;
      rows = sampled_.data();
    }
    p_.X.gram(rows, full_.data());
    std::vector<double> edge(d);
    double corner = 0;
    if (p_.intercept) {
      p_.X.rmatvec(rows, edge.data());
      corner = vec::sum(rows, n);
    }
    double trace = corner;
    for (index_t j = 0; j < d; ++j) trace += full_[j * d + j] + p_.penalty.l2[j];
    // A Hessian that is singular to rounding gets just enough of a diagonal to be factored.
    for (double ridge = 1e-14 * trace / static_cast<double>(m_) + 1e-300;; ridge *= 100) {
      for (index_t j = 0; j < d; ++j) {
        std::copy(full_.begin() + j * d, full_.begin() + (j + 1) * d, chol_.begin() + j * m_);
        chol_[j * m_ + j] += p_.penalty.l2[j] + ridge;
        if (p_.intercept) chol_[j * m_ + d] = edge[j];
      }
      if (p_.intercept) chol_[d * m_ + d] = corner + ridge;
      if (cholesky(m_, chol_.data(), m_)) return;
    }
  }

  void solve(double* x) const { blas::potrs('L', m_, 1, chol_.data(), m_, x, m_); }

 private:
  const LinearProblem& p_;
  index_t m_;
  double fraction_;
  std::vector<double> full_, chol_, sampled_;
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

// What the natural dual point loses to a gradient that is not zero: Omega*(-g) grows by |grad J|^2 / (2 l2).
double dual_slack(const LinearProblem& p, const std::vector<double>& gradient) {
  double slack = 0;
  for (index_t j = 0; j < p.d(); ++j)
    if (p.penalty.l2[j] > 0) slack += 0.5 * gradient[j] * gradient[j] / p.penalty.l2[j];
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
  const std::vector<double>& curvature() const { return at_.h; }
  const std::vector<double>& w() const { return w_; }
  double b() const { return b_; }

 private:
  const LinearProblem* p_;
  Evaluation at_;
  std::vector<double> w_, g_;
  double b_ = 0, objective_ = 0;
};

}  // namespace

LinearSolution newton(const LinearProblem& p, std::vector<double> w, double b, const NewtonOptions& options,
                      Monitor& monitor) {
  const index_t d = p.d(), m = d + (p.intercept ? 1 : 0);
  State now(p), trial(p);
  now.move_to(w, b);
  Factor factor(p);
  std::deque<Correction> memory;
  LinearSolution out;
  bool fresh = false;
  double decrement_before = 0;

  for (int it = 1; it <= options.max_iter; ++it) {
    out.iterations = it;
    if (!fresh) {
      factor.rebuild(now.curvature());
      memory.clear();
      fresh = true;
    }
    const std::vector<double> r = apply_inverse(factor, memory, now.gradient());
    const double decrement = vec::dot(r.data(), now.gradient().data(), m);
    const bool stop = monitor.report({it, now.objective(), -1.0});
    if (stop) out.outcome = Outcome::stopped;
    if (0.5 * decrement + dual_slack(p, now.gradient()) <= options.tol * std::fabs(now.objective()))
      out.outcome = Outcome::converged;
    if (out.outcome != Outcome::max_iter) break;

    double step = 1.0;
    bool accepted = false;
    for (int halving = 0; halving < 40 && !accepted; ++halving, step *= 0.5) {
      w = now.w();
      vec::axpy(-step, r.data(), w.data(), d);
      b = now.b() - (p.intercept ? step * r[d] : 0.0);
      trial.move_to(w, b);
      // Near the optimum the decrease drowns in rounding; there the step of a convex problem is trusted.
      const double rounding = 1e-14 * std::fabs(now.objective());
      accepted = trial.objective() <= now.objective() - 1e-4 * step * decrement + rounding;
    }
    if (!accepted) {
      if (factor.exact() && memory.empty()) {
        out.outcome = Outcome::stalled;
        break;
      }
      if (memory.empty()) factor.use_more_rows();
      fresh = false;
      continue;
    }
    if (factor.exact()) {
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
        if (memory.size() > kMemory) memory.pop_front();
      }
      // A sample taken far from here misleads: take it again while the steps are large or the gain is small.
      const bool far = std::fabs(trial.objective() - now.objective()) > 1e-2 * std::fabs(now.objective());
      const bool slow = decrement_before > 0 && decrement > 0.25 * decrement_before;
      if (far || slow) {
        if (slow && !far) factor.use_more_rows();
        fresh = false;
      }
      decrement_before = far ? 0.0 : decrement;
    }
    std::swap(now, trial);
  }
  out.w = now.w();
  out.b = now.b();
  return out;
}

}  // namespace hinge
