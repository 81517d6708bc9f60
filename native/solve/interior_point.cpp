#include "solve/interior_point.hpp"

#include <algorithm>
#include <cmath>

#include "core/blas.hpp"

namespace hinge {
namespace {

constexpr double kToBoundary = 0.9995;  // the part of the way to the boundary a step may go

// All kinks of all examples, kink after kink: entry k * n + i.
struct Terms {
  index_t n, total;
  std::vector<double> a, lo, hi, u, p, q, theta, rho, du, dp, dq;

  Terms(const std::vector<Kinks>& kinks, index_t rows) : n(rows), total(rows * static_cast<index_t>(kinks.size())) {
    for (const Kinks& k : kinks) {
      a.insert(a.end(), k.a.begin(), k.a.end());
      lo.insert(lo.end(), k.lo.begin(), k.lo.end());
      hi.insert(hi.end(), k.hi.begin(), k.hi.end());
    }
    for (auto* v : {&u, &p, &q, &theta, &rho, &du, &dp, &dq}) v->assign(total, 0.0);
  }
};

template <class F>
void over(index_t n, const F& f) {
  const index_t parts = parts_for(n, 8192);
  parallel_for(parts, [&](index_t part) { f(range_begin(n, parts, part), range_begin(n, parts, part + 1)); });
}

// Sums and minima over fixed pieces, combined in order.
template <class F>
double add_over(index_t n, const F& f) {
  const index_t parts = parts_for(n, 8192);
  std::vector<double> sums(parts);
  parallel_for(parts, [&](index_t part) { sums[part] = f(range_begin(n, parts, part), range_begin(n, parts, part + 1)); });
  double total = 0;
  for (const double s : sums) total += s;
  return total;
}

template <class F>
double least_over(index_t n, const F& f) {
  const index_t parts = parts_for(n, 8192);
  std::vector<double> least(parts);
  parallel_for(parts, [&](index_t part) { least[part] = f(range_begin(n, parts, part), range_begin(n, parts, part + 1)); });
  return *std::min_element(least.begin(), least.end());
}

class Method {
 public:
  Method(const LinearProblem& p, const std::vector<Kinks>& kinks)
      : p_(p), t_(kinks, p.n()), d_(p.d()), m_(p.d() + (p.intercept ? 1 : 0)), w_(d_), z_(p.n()), h_(p.n()), cu_(p.n()),
        scratch_(p.n()), dz_(p.n()), rw_(m_), rhs_(m_), chol_(m_ * m_), gram_(d_ * d_) {
    start();
  }

  LinearSolution run(double tol, int max_iter, Monitor& monitor) {
    LinearSolution out;
    for (int it = 1; it <= max_iter; ++it) {
      out.iterations = it;
      residuals();
      const double primal = objective(), complementarity = add_over(t_.total, [&](index_t b, index_t e) {
        double s = 0;
        for (index_t k = b; k < e; ++k)
          s += c(k) * (t_.p[k] * (t_.hi[k] - t_.u[k]) + t_.q[k] * (t_.u[k] - t_.lo[k]));
        return s;
      });
      const double relative = (complementarity + dual_loss()) / std::max(std::fabs(primal), 1e-300);
      if (monitor.report({it, primal, relative})) out.outcome = Outcome::stopped;
      if (relative <= tol && infeasibility_ <= 1e-6 * tol) out.outcome = Outcome::converged;
      if (out.outcome != Outcome::max_iter) break;
      if (!step(complementarity)) {
        out.outcome = Outcome::stalled;
        break;
      }
    }
    out.w = w_;
    out.b = b_;
    out.dual.assign(p_.n(), 0.0);
    for (index_t k = 0; k < t_.total; ++k) out.dual[k % t_.n] += t_.u[k];
    return out;
  }

 private:
  double c(index_t k) const { return p_.c[k % t_.n]; }
  double v(index_t k) const { return z_[k % t_.n] - t_.a[k]; }

  // w = 0, slopes in the middle of their intervals, p and q split so that p - q = z - a with room on both sides.
  void start() {
    scores();
    const double spread = add_over(t_.total, [&](index_t b, index_t e) {
      double s = 0;
      for (index_t k = b; k < e; ++k) s += c(k) * std::fabs(v(k));
      return s;
    });
    const double room = std::max(0.1 * spread, 1e-8);
    for (index_t k = 0; k < t_.total; ++k) {
      t_.u[k] = 0.5 * (t_.lo[k] + t_.hi[k]);
      t_.p[k] = std::max(v(k), 0.0) + room;
      t_.q[k] = std::max(-v(k), 0.0) + room;
    }
  }

  void scores() {
    p_.X.matvec(w_.data(), z_.data());
    for (index_t i = 0; i < p_.n(); ++i) z_[i] += (p_.intercept ? b_ : 0.0) + (p_.offset ? p_.offset[i] : 0.0);
  }

  double objective() const {
    return penalty_value(p_.penalty, w_.data(), d_) + add_over(t_.total, [&](index_t b, index_t e) {
             double s = 0;
             for (index_t k = b; k < e; ++k) s += c(k) * std::max(t_.lo[k] * v(k), t_.hi[k] * v(k));
             return s;
           });
  }

  // What the dual value loses because L2 w + X'(c u) is not exactly zero.
  double dual_loss() const {
    double s = 0;
    for (index_t j = 0; j < d_; ++j)
      if (p_.penalty.l2[j] > 0) s += 0.5 * rw_[j] * rw_[j] / p_.penalty.l2[j];
    return s;
  }

  // rw = (L2 w + X'(c u), sum c u); the splitting z - a = p - q is kept up exactly by `step`.
  void residuals() {
    over(p_.n(), [&](index_t b, index_t e) {
      for (index_t i = b; i < e; ++i) {
        double s = 0;
        for (index_t k = i; k < t_.total; k += t_.n) s += t_.u[k];
        cu_[i] = p_.c[i] * s;
      }
    });
    p_.X.rmatvec(cu_.data(), rw_.data());
    for (index_t j = 0; j < d_; ++j) rw_[j] += p_.penalty.l2[j] * w_[j];
    if (p_.intercept) rw_[d_] = vec::sum(cu_.data(), p_.n());
    double scale = add_over(p_.n(), [&](index_t b, index_t e) {
      double s = 0;
      for (index_t i = b; i < e; ++i) s += std::fabs(cu_[i]);
      return s;
    });
    infeasibility_ = p_.intercept ? std::fabs(rw_[d_]) / std::max(scale, 1e-300) : 0.0;
  }

  void factor() {
    over(p_.n(), [&](index_t b, index_t e) {
      for (index_t i = b; i < e; ++i) {
        double s = 0;
        for (index_t k = i; k < t_.total; k += t_.n) {
          t_.theta[k] = t_.p[k] / (t_.hi[k] - t_.u[k]) + t_.q[k] / (t_.u[k] - t_.lo[k]);
          s += 1.0 / t_.theta[k];
        }
        h_[i] = p_.c[i] * s;
      }
    });
    // Rows far from every kink hardly count: leaving them out of the matrix changes the step by less than rounding.
    const double top = *std::max_element(h_.begin(), h_.end());
    for (index_t i = 0; i < p_.n(); ++i) scratch_[i] = h_[i] > 1e-13 * top ? h_[i] : 0.0;
    p_.X.gram(scratch_.data(), gram_.data());
    std::vector<double> edge(d_);
    double corner = 0, trace = 0;
    if (p_.intercept) {
      p_.X.rmatvec(h_.data(), edge.data());
      corner = vec::sum(h_.data(), p_.n());
    }
    for (index_t j = 0; j < d_; ++j) trace += gram_[j * d_ + j] + p_.penalty.l2[j];
    for (double ridge = 1e-14 * trace / static_cast<double>(d_) + 1e-300;; ridge *= 100) {
      for (index_t j = 0; j < d_; ++j) {
        std::copy(gram_.begin() + j * d_, gram_.begin() + (j + 1) * d_, chol_.begin() + j * m_);
        chol_[j * m_ + j] += p_.penalty.l2[j] + ridge;
        if (p_.intercept) chol_[j * m_ + d_] = edge[j];
      }
      if (p_.intercept) chol_[d_ * m_ + d_] = corner + ridge;
      if (blas::potrf('L', m_, chol_.data(), m_)) return;
    }
  }

  // Newton's direction for the target p (hi - u) = target_p etc.; `second` adds the predictor's products.
  void direction(double mu, bool second) {
    over(p_.n(), [&](index_t b, index_t e) {
      for (index_t i = b; i < e; ++i) {
        double s = 0;
        for (index_t k = i; k < t_.total; k += t_.n) {
          const double up = t_.hi[k] - t_.u[k], down = t_.u[k] - t_.lo[k];
          const double rp = mu - t_.p[k] * up + (second ? t_.dp[k] * t_.du[k] : 0.0);
          const double rq = mu - t_.q[k] * down - (second ? t_.dq[k] * t_.du[k] : 0.0);
          // The splitting residual z - a - p + q is zero by construction.
          t_.rho[k] = rp / up - rq / down;
          s += t_.rho[k] / t_.theta[k];
        }
        scratch_[i] = p_.c[i] * s;
      }
    });
    p_.X.rmatvec(scratch_.data(), rhs_.data());
    if (p_.intercept) rhs_[d_] = vec::sum(scratch_.data(), p_.n());
    for (index_t j = 0; j < m_; ++j) rhs_[j] -= rw_[j];
    blas::potrs('L', m_, 1, chol_.data(), m_, rhs_.data(), m_);
    p_.X.matvec(rhs_.data(), dz_.data());
    const double shift = p_.intercept ? rhs_[d_] : 0.0;
    over(p_.n(), [&](index_t b, index_t e) {
      for (index_t i = b; i < e; ++i) {
        dz_[i] += shift;
        for (index_t k = i; k < t_.total; k += t_.n) {
          const double up = t_.hi[k] - t_.u[k], down = t_.u[k] - t_.lo[k];
          const double du = (dz_[i] - t_.rho[k]) / t_.theta[k];
          const double rp = mu - t_.p[k] * up + (second ? t_.dp[k] * t_.du[k] : 0.0);
          const double dp = (rp + t_.p[k] * du) / up;
          t_.du[k] = du;
          t_.dp[k] = dp;
          t_.dq[k] = dp - dz_[i];  // so that p - q stays z - a
        }
      }
    });
  }

  double longest() const {
    return least_over(t_.total, [&](index_t b, index_t e) {
      double s = 1e300;
      for (index_t k = b; k < e; ++k) {
        if (t_.du[k] > 0) s = std::min(s, (t_.hi[k] - t_.u[k]) / t_.du[k]);
        if (t_.du[k] < 0) s = std::min(s, (t_.lo[k] - t_.u[k]) / t_.du[k]);
        if (t_.dp[k] < 0) s = std::min(s, -t_.p[k] / t_.dp[k]);
        if (t_.dq[k] < 0) s = std::min(s, -t_.q[k] / t_.dq[k]);
      }
      return s;
    });
  }

  bool step(double complementarity) {
    factor();
    const double count = 2.0 * static_cast<double>(t_.total) / static_cast<double>(t_.n);  // sum of c over the terms, twice
    const double mu = complementarity / count;
    direction(0.0, false);
    const double full = std::min(1.0, longest());
    const double after = add_over(t_.total, [&](index_t b, index_t e) {
      double s = 0;
      for (index_t k = b; k < e; ++k) {
        const double u = t_.u[k] + full * t_.du[k];
        s += c(k) * ((t_.p[k] + full * t_.dp[k]) * (t_.hi[k] - u) + (t_.q[k] + full * t_.dq[k]) * (u - t_.lo[k]));
      }
      return s;
    }) / count;
    const double ratio = std::max(after / mu, 0.0);
    direction(ratio * ratio * ratio * mu, true);
    const double alpha = std::min(1.0, kToBoundary * longest());
    if (!(alpha > 1e-10)) return false;
    vec::axpy(alpha, rhs_.data(), w_.data(), d_);
    if (p_.intercept) b_ += alpha * rhs_[d_];
    vec::axpy(alpha, dz_.data(), z_.data(), p_.n());
    vec::axpy(alpha, t_.du.data(), t_.u.data(), t_.total);
    vec::axpy(alpha, t_.dp.data(), t_.p.data(), t_.total);
    vec::axpy(alpha, t_.dq.data(), t_.q.data(), t_.total);
    if (Monitor* monitor = Monitor::current()) monitor->poll();
    return true;
  }

  const LinearProblem& p_;
  Terms t_;
  index_t d_, m_;
  std::vector<double> w_;
  double b_ = 0, infeasibility_ = 0;
  std::vector<double> z_, h_, cu_, scratch_, dz_, rw_, rhs_, chol_, gram_;
};

}  // namespace

LinearSolution interior_point(const LinearProblem& problem, const std::vector<Kinks>& kinks, double tol, int max_iter,
                              Monitor& monitor) {
  return Method(problem, kinks).run(tol, max_iter, monitor);
}

}  // namespace hinge
