#include "solve/interior_point.hpp"

#include <algorithm>
#include <cmath>

#include "core/blas.hpp"
#include "core/cholesky.hpp"

namespace hinge {
namespace {

constexpr double kToBoundary = 0.9995;  // the part of the way to the boundary a step may go

// Kinks with their multipliers, kink after kink: entry k * n + i belongs to z[i] with weight c[i].
struct Terms {
  index_t n, total;
  const double* c;
  std::vector<double> a, lo, hi, u, p, q, theta, rho, du, dp, dq;

  Terms(const std::vector<Kinks>& kinks, index_t rows, const double* weights)
      : n(rows), total(rows * static_cast<index_t>(kinks.size())), c(weights) {
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
  if (n == 0) return 0.0;
  const index_t parts = parts_for(n, 8192);
  std::vector<double> sums(parts);
  parallel_for(parts,
               [&](index_t part) { sums[part] = f(range_begin(n, parts, part), range_begin(n, parts, part + 1)); });
  double total = 0;
  for (const double s : sums) total += s;
  return total;
}

template <class F>
double least_over(index_t n, const F& f) {
  if (n == 0) return 1e300;
  const index_t parts = parts_for(n, 8192);
  std::vector<double> least(parts);
  parallel_for(parts,
               [&](index_t part) { least[part] = f(range_begin(n, parts, part), range_begin(n, parts, part + 1)); });
  return *std::min_element(least.begin(), least.end());
}

// The mean distance of z from the kinks.
double spread(const Terms& t, const double* z) {
  return add_over(t.total, [&](index_t b, index_t e) {
    double s = 0;
    for (index_t k = b; k < e; ++k) s += t.c[k % t.n] * std::fabs(z[k % t.n] - t.a[k]);
    return s;
  });
}

// Slopes in the middle of their intervals, p and q split so that p - q = z - a and p (hi - u), q (u - lo) are at least
// `product`.
void start(Terms& t, const double* z, double product) {
  for (index_t k = 0; k < t.total; ++k) {
    const double v = z[k % t.n] - t.a[k], room = 2.0 * product / (t.hi[k] - t.lo[k]);
    t.u[k] = 0.5 * (t.lo[k] + t.hi[k]);
    t.p[k] = std::max(v, 0.0) + room;
    t.q[k] = std::max(-v, 0.0) + room;
  }
}

double value(const Terms& t, const double* z) {
  return add_over(t.total, [&](index_t b, index_t e) {
    double s = 0;
    for (index_t k = b; k < e; ++k) {
      const double v = z[k % t.n] - t.a[k];
      s += t.c[k % t.n] * std::max(t.lo[k] * v, t.hi[k] * v);
    }
    return s;
  });
}

// sum c (p (hi - u) + q (u - lo)) after a step of the given length.
double complementarity(const Terms& t, double step) {
  return add_over(t.total, [&](index_t b, index_t e) {
    double s = 0;
    for (index_t k = b; k < e; ++k) {
      const double u = t.u[k] + step * t.du[k];
      s += t.c[k % t.n] * ((t.p[k] + step * t.dp[k]) * (t.hi[k] - u) + (t.q[k] + step * t.dq[k]) * (u - t.lo[k]));
    }
    return s;
  });
}

// h_i = c_i sum_k 1 / theta_ik: the weights of the rows in the Newton matrix.
void curvatures(Terms& t, double* h) {
  over(t.n, [&](index_t b, index_t e) {
    for (index_t i = b; i < e; ++i) {
      double s = 0;
      for (index_t k = i; k < t.total; k += t.n) {
        t.theta[k] = t.p[k] / (t.hi[k] - t.u[k]) + t.q[k] / (t.u[k] - t.lo[k]);
        s += 1.0 / t.theta[k];
      }
      h[i] = t.c[i] * s;
    }
  });
}

// What is asked of p (hi - u) in Newton's equations for the target mu; `second` adds the predictor's product.
double wanted_p(const Terms& t, index_t k, double mu, bool second) {
  return mu - t.p[k] * (t.hi[k] - t.u[k]) + (second ? t.dp[k] * t.du[k] : 0.0);
}

// out_i = c_i sum_k rho_ik / theta_ik: the kinks' part of the right-hand side. The splitting residual z - a - p + q is
// zero by construction.
void right_hand_side(Terms& t, double mu, bool second, double* out) {
  over(t.n, [&](index_t b, index_t e) {
    for (index_t i = b; i < e; ++i) {
      double s = 0;
      for (index_t k = i; k < t.total; k += t.n) {
        const double up = t.hi[k] - t.u[k], down = t.u[k] - t.lo[k];
        const double rq = mu - t.q[k] * down - (second ? t.dq[k] * t.du[k] : 0.0);
        t.rho[k] = wanted_p(t, k, mu, second) / up - rq / down;
        s += t.rho[k] / t.theta[k];
      }
      out[i] = t.c[i] * s;
    }
  });
}

// Steps of u, p and q from the step of z.
void back_substitute(Terms& t, double mu, bool second, const double* dz) {
  over(t.n, [&](index_t b, index_t e) {
    for (index_t i = b; i < e; ++i)
      for (index_t k = i; k < t.total; k += t.n) {
        const double rp = wanted_p(t, k, mu, second), du = (dz[i] - t.rho[k]) / t.theta[k];
        t.dp[k] = (rp + t.p[k] * du) / (t.hi[k] - t.u[k]);
        t.dq[k] = t.dp[k] - dz[i];  // so that p - q stays z - a
        t.du[k] = du;
      }
  });
}

double longest(const Terms& t) {
  return least_over(t.total, [&](index_t b, index_t e) {
    double s = 1e300;
    for (index_t k = b; k < e; ++k) {
      if (t.du[k] > 0) s = std::min(s, (t.hi[k] - t.u[k]) / t.du[k]);
      if (t.du[k] < 0) s = std::min(s, (t.lo[k] - t.u[k]) / t.du[k]);
      if (t.dp[k] < 0) s = std::min(s, -t.p[k] / t.dp[k]);
      if (t.dq[k] < 0) s = std::min(s, -t.q[k] / t.dq[k]);
    }
    return s;
  });
}

void advance(Terms& t, double alpha) {
  vec::axpy(alpha, t.du.data(), t.u.data(), t.total);
  vec::axpy(alpha, t.dp.data(), t.p.data(), t.total);
  vec::axpy(alpha, t.dq.data(), t.q.data(), t.total);
  // Rounding must not put anything on the boundary itself.
  for (index_t k = 0; k < t.total; ++k) {
    const double least = 1e-15 * (t.hi[k] - t.lo[k]);
    t.u[k] = std::clamp(t.u[k], t.lo[k] + least, t.hi[k] - least);
    t.p[k] = std::max(t.p[k], 1e-200);
    t.q[k] = std::max(t.q[k], 1e-200);
  }
}

// An L1 penalty is one more loss with a kink at zero, on the weights themselves: l1 |w| = share max {u w : |u| <=
// l1 / share}. A share of 1/n makes each weight count as much as an example, which keeps the central path balanced.
std::vector<Kinks> weight_kinks(const LinearProblem& p, double share) {
  if (std::none_of(p.penalty.l1, p.penalty.l1 + p.d(), [](double l1) { return l1 > 0; })) return {};
  // An unpenalised weight among penalised ones gets an interval too narrow to matter.
  const double least = 1e-12 * *std::max_element(p.penalty.l1, p.penalty.l1 + p.d());
  Kinks k{std::vector<double>(p.d(), 0.0), std::vector<double>(p.d()), std::vector<double>(p.d())};
  for (index_t j = 0; j < p.d(); ++j) {
    k.hi[j] = std::max(p.penalty.l1[j], least) / share;
    k.lo[j] = -k.hi[j];
  }
  return {k};
}

class Method {
 public:
  Method(const LinearProblem& p, const std::vector<Kinks>& kinks)
      : p_(p),
        shares_(p.d(), 1.0 / static_cast<double>(p.n())),
        loss_(kinks, p.n(), p.c),
        l1_(weight_kinks(p, shares_[0]), p.d(), shares_.data()),
        d_(p.d()),
        m_(p.d() + (p.intercept ? 1 : 0)),
        w_(d_),
        z_(p.n()),
        h_(p.n()),
        hw_(d_),
        scratch_(p.n()),
        dz_(p.n()),
        rw_(m_),
        rhs_(m_),
        rhs_l1_(d_),
        chol_(m_ * m_),
        gram_(d_ * d_) {
    if (p.offset) std::copy(p.offset, p.offset + p.n(), z_.begin());
    const double product = std::max(0.05 * spread(loss_, z_.data()), 1e-8);
    start(loss_, z_.data(), product);
    start(l1_, w_.data(), product);
  }

  LinearSolution run(double tol, int max_iter, Monitor& monitor) {
    LinearSolution out;
    for (int it = 1; it <= max_iter; ++it) {
      out.iterations = it;
      residuals();
      const double primal = value(loss_, z_.data()) + value(l1_, w_.data()) + ridge();
      const double left = complementarity(loss_, 0.0) + complementarity(l1_, 0.0);
      const double relative = (left + dual_loss()) / std::max(std::fabs(primal), 1e-300);
      if (monitor.report({it, primal, relative})) out.outcome = Outcome::stopped;
      if (relative <= tol && infeasibility_ <= 1e-2 * tol) out.outcome = Outcome::converged;
      if (out.outcome != Outcome::max_iter) break;
      if (!step(left)) {
        out.outcome = Outcome::stalled;
        break;
      }
    }
    // What an L1 penalty would make zero is as small as the tolerance here.
    const double largest = vec::max_abs(w_.data(), d_);
    for (index_t j = 0; j < l1_.total; ++j)
      if (std::fabs(w_[j]) < 1e-2 * tol * largest) w_[j] = 0.0;
    out.w = w_;
    out.b = b_;
    out.dual.assign(p_.n(), 0.0);
    for (index_t k = 0; k < loss_.total; ++k) out.dual[k % loss_.n] += loss_.u[k];
    return out;
  }

 private:
  double ridge() const { return 0.5 * vec::dot3(p_.penalty.l2, w_.data(), w_.data(), d_); }

  // What the dual value loses because the slopes and the weights do not agree exactly.
  double dual_loss() const {
    double s = 0;
    for (index_t j = 0; j < d_; ++j)
      if (p_.penalty.l2[j] > 0) s += 0.5 * rw_[j] * rw_[j] / p_.penalty.l2[j];
    return s;
  }

  // rw = (L2 w + u_l1 + X'(c u), sum c u).
  void residuals() {
    double scale = 0;
    std::vector<double> cu(p_.n(), 0.0);
    for (index_t k = 0; k < loss_.total; ++k) cu[k % loss_.n] += p_.c[k % loss_.n] * loss_.u[k];
    for (const double x : cu) scale += std::fabs(x);
    p_.X.rmatvec(cu.data(), rw_.data());
    for (index_t j = 0; j < d_; ++j) rw_[j] += p_.penalty.l2[j] * w_[j];
    for (index_t j = 0; j < l1_.total; ++j) rw_[j] += shares_[j] * l1_.u[j];
    if (p_.intercept) rw_[d_] = vec::sum(cu.data(), p_.n());
    infeasibility_ = p_.intercept ? std::fabs(rw_[d_]) / std::max(scale, 1e-300) : 0.0;
  }

  void factor() {
    curvatures(loss_, h_.data());
    curvatures(l1_, hw_.data());
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
    for (index_t j = 0; j < d_; ++j) {
      gram_[j * d_ + j] += p_.penalty.l2[j] + (l1_.total ? hw_[j] : 0.0);
      trace += gram_[j * d_ + j];
    }
    for (double jitter = 1e-14 * trace / static_cast<double>(d_) + 1e-300;; jitter *= 100) {
      for (index_t j = 0; j < d_; ++j) {
        std::copy(gram_.begin() + j * d_, gram_.begin() + (j + 1) * d_, chol_.begin() + j * m_);
        chol_[j * m_ + j] += jitter;
        if (p_.intercept) chol_[j * m_ + d_] = edge[j];
      }
      if (p_.intercept) chol_[d_ * m_ + d_] = corner + jitter;
      if (cholesky(m_, chol_.data(), m_)) return;
    }
  }

  void direction(double mu, bool second) {
    right_hand_side(loss_, mu, second, scratch_.data());
    right_hand_side(l1_, mu, second, rhs_l1_.data());
    p_.X.rmatvec(scratch_.data(), rhs_.data());
    if (p_.intercept) rhs_[d_] = vec::sum(scratch_.data(), p_.n());
    for (index_t j = 0; j < l1_.total; ++j) rhs_[j] += rhs_l1_[j];
    for (index_t j = 0; j < m_; ++j) rhs_[j] -= rw_[j];
    blas::potrs('L', m_, 1, chol_.data(), m_, rhs_.data(), m_);
    p_.X.matvec(rhs_.data(), dz_.data());
    if (p_.intercept)
      for (double& x : dz_) x += rhs_[d_];
    back_substitute(loss_, mu, second, dz_.data());
    back_substitute(l1_, mu, second, rhs_.data());
  }

  bool step(double left) {
    factor();
    // The weights of the kinks add up to one per list of kinks, and to d / n for the L1 part; each has two products.
    const double count =
        2.0 * (static_cast<double>(loss_.total / loss_.n) + shares_[0] * static_cast<double>(l1_.total));
    const double mu = left / count;
    direction(0.0, false);
    const double full = std::min({1.0, longest(loss_), longest(l1_)});
    const double after = (complementarity(loss_, full) + complementarity(l1_, full)) / count;
    const double ratio = std::max(after / mu, 0.0);
    direction(ratio * ratio * ratio * mu, true);
    const double reach = std::min(longest(loss_), longest(l1_));
    const double alpha = std::min(1.0, kToBoundary * reach);
    if (!(alpha > 1e-10) || !std::isfinite(vec::square_sum(rhs_.data(), m_))) return false;
    vec::axpy(alpha, rhs_.data(), w_.data(), d_);
    if (p_.intercept) b_ += alpha * rhs_[d_];
    vec::axpy(alpha, dz_.data(), z_.data(), p_.n());
    advance(loss_, alpha);
    advance(l1_, alpha);
    if (Monitor* monitor = Monitor::current()) monitor->poll();
    return true;
  }

  const LinearProblem& p_;
  std::vector<double> shares_;
  Terms loss_, l1_;
  index_t d_, m_;
  std::vector<double> w_;
  double b_ = 0, infeasibility_ = 0;
  std::vector<double> z_, h_, hw_, scratch_, dz_, rw_, rhs_, rhs_l1_, chol_, gram_;
};

}  // namespace

LinearSolution interior_point(const LinearProblem& problem, const std::vector<Kinks>& kinks, double tol, int max_iter,
                              Monitor& monitor) {
  return Method(problem, kinks).run(tol, max_iter, monitor);
}

}  // namespace hinge
