#include "solve/dual_coordinate.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "core/random.hpp"

namespace hinge {
namespace {

constexpr int kEpochsPerRound = 4;  // epochs between moves of the bias's centre and looks at the gap

template <class Rows>
class Method {
 public:
  Method(const LinearProblem& p, const Rows& rows, const std::vector<Kinks>& kinks, std::uint64_t seed)
      : p_(p),
        rows_(rows),
        n_(p.n()),
        total_(n_ * static_cast<index_t>(kinks.size())),
        random_(seed),
        w_(p.d()),
        inverse_(p.d()),
        q_(n_) {
    for (const Kinks& k : kinks) {
      a_.insert(a_.end(), k.a.begin(), k.a.end());
      lo_.insert(lo_.end(), k.lo.begin(), k.lo.end());
      hi_.insert(hi_.end(), k.hi.begin(), k.hi.end());
    }
    u_.assign(total_, 0.0);  // zero lies in every interval
    for (index_t j = 0; j < p.d(); ++j) inverse_[j] = 1.0 / p.penalty.l2[j];
    uniform_ = std::all_of(inverse_.begin(), inverse_.end(), [&](double x) { return x == inverse_[0]; });
    double mean = 0;
    for (index_t i = 0; i < n_; ++i) {
      rows.each(i, [&](index_t j, double x) { q_[i] += x * x * inverse_[j]; });
      mean += q_[i] / static_cast<double>(n_);
    }
    // The bias as one more feature of typical size: 1 / rho is the mean of q.
    if (p.intercept) {
      bias_step_ = std::max(mean, 1e-300);
      for (double& q : q_) q += bias_step_;
    }
  }

  LinearSolution run(double tol, int max_iter, Monitor& monitor) {
    LinearSolution out;
    std::vector<index_t> order(total_);
    for (index_t k = 0; k < total_; ++k) order[k] = k;
    active_ = total_;
    double margin = 1e300;  // how far past an end a slope must pull before its example is left out
    for (int it = 1; it <= max_iter; ++it) {
      out.iterations = it;
      double worst = 0;
      for (int e = 0; e < kEpochsPerRound; ++e) worst = epoch(order, margin);
      monitor.poll();
      const bool everything = active_ == total_;
      margin = std::max(worst, 1e-300);
      if (p_.intercept) {
        // Method of multipliers: the centre moves to the bias, which shifts every score by the same amount.
        b_ -= bias_step_ * balance_;
      }
      const double relative = gap();
      if (monitor.report({it, primal_, relative})) out.outcome = Outcome::stopped;
      if (relative <= tol) out.outcome = Outcome::converged;
      if (out.outcome != Outcome::max_iter) break;
      if (!everything && worst <= 0.1 * last_full_) {
        active_ = total_;  // what was left out gets another look once the rest has settled
        margin = 1e300;
      }
      if (everything) last_full_ = worst;
    }
    out.w = w_;
    out.b = b_;
    out.dual.assign(n_, 0.0);
    for (index_t k = 0; k < total_; ++k) out.dual[k % n_] += u_[k];
    return out;
  }

 private:
  double score(index_t i) const {
    return rows_.dot(i, w_.data()) + (p_.intercept ? b_ : 0.0) + (p_.offset ? p_.offset[i] : 0.0);
  }

  double epoch(std::vector<index_t>& order, double margin) {
    random_.shuffle(order.data(), active_);
    double worst = 0;
    for (index_t s = 0; s < active_; ++s) {
      const index_t k = order[s], i = k % n_;
      if (s + 3 < active_) rows_.prefetch(order[s + 3] % n_);  // rows come in random order
      const double c = p_.c[i];
      if (c == 0) continue;
      const double pull = score(i) - a_[k];  // positive pulls u up
      if ((u_[k] <= lo_[k] && pull < -margin) || (u_[k] >= hi_[k] && pull > margin)) {
        std::swap(order[s], order[--active_]);
        --s;
        continue;
      }
      const double next = std::clamp(u_[k] + pull / (c * q_[i]), lo_[k], hi_[k]);
      const double step = next - u_[k];
      if (step == 0) continue;
      worst = std::max(worst, std::min(std::fabs(pull), std::fabs(step) * c * q_[i]));
      u_[k] = next;
      const double move = -step * c;
      if (uniform_)
        rows_.axpy(i, move * inverse_[0], w_.data());
      else
        rows_.each(i, [&](index_t j, double x) { w_[j] += move * inverse_[j] * x; });
      if (p_.intercept) {
        balance_ += step * c;
        b_ -= bias_step_ * step * c;
      }
    }
    return worst;
  }

  // Relative gap at (w, b) and u; sum c u counts with the bias it would still move.
  double gap() {
    const index_t d = p_.d();
    std::vector<double> z(n_);
    p_.X.matvec(w_.data(), z.data());
    double loss = 0, linear = 0;
    for (index_t k = 0; k < total_; ++k) {
      const index_t i = k % n_;
      const double v = z[i] + (p_.intercept ? b_ : 0.0) + (p_.offset ? p_.offset[i] : 0.0) - a_[k];
      loss += p_.c[i] * std::max(lo_[k] * v, hi_[k] * v);
      linear += p_.c[i] * u_[k] * (a_[k] - (p_.offset ? p_.offset[i] : 0.0));
    }
    double ridge = 0;
    for (index_t j = 0; j < d; ++j) ridge += 0.5 * p_.penalty.l2[j] * w_[j] * w_[j];
    primal_ = loss + ridge;
    const double dual = -linear - ridge;
    const double unbalanced = p_.intercept ? std::fabs(balance_) * (1.0 + std::fabs(b_)) : 0.0;
    return (primal_ - dual + unbalanced) / std::max(std::fabs(primal_), 1e-300);
  }

  const LinearProblem& p_;
  Rows rows_;
  index_t n_, total_;
  Random random_;
  std::vector<double> w_, inverse_, q_, a_, lo_, hi_, u_;
  double b_ = 0, bias_step_ = 0, balance_ = 0, primal_ = 0, last_full_ = 1e300;
  index_t active_ = 0;
  bool uniform_ = false;
};

}  // namespace

LinearSolution dual_coordinate(const LinearProblem& problem, const std::vector<Kinks>& kinks, double tol, int max_iter,
                               std::uint64_t seed, Monitor& monitor) {
  return std::visit(
      [&](const auto& rows) -> LinearSolution {
        if constexpr (std::is_same_v<std::decay_t<decltype(rows)>, std::monostate>)
          throw std::invalid_argument("dual coordinate descent needs rows");
        else
          return Method(problem, rows, kinks, seed).run(tol, max_iter, monitor);
      },
      problem.X.row_view());
}

}  // namespace hinge
