#include "solvers/interior_steps.hpp"

#include <algorithm>
#include <cmath>

#include "solvers/curvature_system.hpp"

namespace hinge {
namespace {

constexpr double kToBoundary = 0.9995;  // share of the distance to the boundary that a step may go

template <class F>
void over(index_t n, const F& f) {
  const index_t parts = parts_for(n, 4096);
  parallel_for(parts, [&](index_t part) { f(range_begin(n, parts, part), range_begin(n, parts, part + 1)); });
}

// The values of f on fixed pieces of [0, n).
template <class F>
std::vector<double> pieces(index_t n, const F& f) {
  const index_t parts = n == 0 ? 0 : parts_for(n, 4096);
  std::vector<double> out(parts);
  parallel_for(parts,
               [&](index_t part) { out[part] = f(range_begin(n, parts, part), range_begin(n, parts, part + 1)); });
  return out;
}

template <class F>
double add_over(index_t n, const F& f) {
  double total = 0;
  for (const double s : pieces(n, f)) total += s;
  return total;
}

template <class F>
double least_over(index_t n, const F& f) {
  double least = 1e300;
  for (const double s : pieces(n, f)) least = std::min(least, s);
  return least;
}

// Kinks with their multipliers, kink after kink: entry k n + i belongs to z[i] with weight c[i].
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

  double weight() const { return n == 0 ? 0.0 : vec::sum(c, n) * static_cast<double>(total / n); }
};

// The mean distance of z from the kinks.
double spread(const Terms& t, const double* z) {
  const double sum = add_over(t.n, [&](index_t b, index_t e) {
    double s = 0;
    for (index_t first = 0; first < t.total; first += t.n)
      for (index_t i = b; i < e; ++i) s += t.c[i] * std::fabs(z[i] - t.a[first + i]);
    return s;
  });
  return sum / std::max(t.weight(), 1e-300);
}

// Sets u to the middle of its interval and splits p and q so that p - q = z - a, and p (hi - u) and q (u - lo) are at
// least `product`.
void start(Terms& t, const double* z, double product) {
  for (index_t first = 0; first < t.total; first += t.n)
    for (index_t i = 0; i < t.n; ++i) {
      const index_t k = first + i;
      const double v = z[i] - t.a[k], room = 2.0 * product / (t.hi[k] - t.lo[k]);
      t.u[k] = 0.5 * (t.lo[k] + t.hi[k]);
      t.p[k] = std::max(v, 0.0) + room;
      t.q[k] = std::max(-v, 0.0) + room;
    }
}

HINGE_HOT double value_of(const double* c, const double* z, const double* a, const double* lo, const double* hi,
                          index_t n) {
  double s = 0;
  for (index_t i = 0; i < n; ++i) s += c[i] * std::max(lo[i] * (z[i] - a[i]), hi[i] * (z[i] - a[i]));
  return s;
}

double value(const Terms& t, const double* z) {
  return add_over(t.n, [&](index_t b, index_t e) {
    double s = 0;
    for (index_t k = b; k < t.total; k += t.n)
      s += value_of(t.c + b, z + b, t.a.data() + k, t.lo.data() + k, t.hi.data() + k, e - b);
    return s;
  });
}

// sum c (p (hi - u) + q (u - lo)) after a step of the given length.
HINGE_HOT double products_after(const Terms& t, double step, index_t b, index_t e) {
  double s = 0;
  for (index_t first = 0; first < t.total; first += t.n)
    for (index_t i = b; i < e; ++i) {
      const index_t k = first + i;
      const double u = t.u[k] + step * t.du[k];
      s += t.c[i] * ((t.p[k] + step * t.dp[k]) * (t.hi[k] - u) + (t.q[k] + step * t.dq[k]) * (u - t.lo[k]));
    }
  return s;
}

double complementarity(const Terms& t, double step) {
  return add_over(t.n, [&](index_t b, index_t e) { return products_after(t, step, b, e); });
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

// The right side for p (hi - u) in Newton's equations for the target mu; `second` adds the predictor's product.
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

// The longest step that keeps all variables strictly inside their bounds.
HINGE_HOT double most_of_room(const Terms& t, index_t b, index_t e) {
  double most = 1e-300;
  for (index_t k = b; k < e; ++k) {
    most = std::max(most, t.du[k] / (t.hi[k] - t.u[k]));
    most = std::max(most, t.du[k] / (t.lo[k] - t.u[k]));
    most = std::max(most, -t.dp[k] / t.p[k]);
    most = std::max(most, -t.dq[k] / t.q[k]);
  }
  return most;
}

double longest(const Terms& t) {
  return least_over(t.total, [&](index_t b, index_t e) { return 1.0 / most_of_room(t, b, e); });
}

HINGE_HOT void advance_part(Terms& t, double alpha, index_t b, index_t e) {
  for (index_t k = b; k < e; ++k) {
    const double least = 1e-15 * (t.hi[k] - t.lo[k]);  // rounding must not put a variable on the boundary
    t.u[k] = std::min(std::max(t.u[k] + alpha * t.du[k], t.lo[k] + least), t.hi[k] - least);
    t.p[k] = std::max(t.p[k] + alpha * t.dp[k], 1e-200);
    t.q[k] = std::max(t.q[k] + alpha * t.dq[k], 1e-200);
  }
}

void advance(Terms& t, double alpha) {
  over(t.total, [&](index_t b, index_t e) { advance_part(t, alpha, b, e); });
}

// A bound on the gradient in every weight beyond which its bounds cannot pull: |x_j'(c u)| + |rest_j| + l1_j + l2_j
// |bound_j|, with the steepest u of every row. A loss of this gradient beyond a bound has its minimisers inside (an
// exact penalty).
std::vector<double> steepest(const KinkedProblem& p) {
  const index_t n = p.X.rows(), d = p.X.cols();
  std::vector<double> squares(n), gram(d * d), out(d);
  for (const Kinks& k : p.kinks)
    for (index_t i = 0; i < n; ++i) squares[i] += std::max(std::fabs(k.lo[i]), std::fabs(k.hi[i]));
  double sum = 0;
  for (index_t i = 0; i < n; ++i) sum += p.c[i] * squares[i] * squares[i];
  p.X.gram(p.c, gram.data());
  for (index_t j = 0; j < d; ++j) {
    double bound = 0;
    for (const double limit : {p.penalty.lower[j], p.penalty.upper[j]})
      if (std::isfinite(limit)) bound = std::max(bound, std::fabs(limit));
    out[j] = std::sqrt(gram[j * d + j] * sum) + p.penalty.l1[j] + p.penalty.l2[j] * bound;
    if (!p.rest.gradient.empty()) out[j] += std::fabs(p.rest.gradient[j]);
    out[j] = 1.01 * out[j] + 1e-300;
  }
  return out;
}

// An L1 penalty is one more loss with a kink at zero, on the weights themselves: l1 |w| = share max {u w : |u| <=
// l1 / share}. A share of 1/n makes each weight count as much as an example, which keeps the central path balanced.
// Bounds are further kinks, at the bounds, with the gradients of `steepest` beyond them; a bound at zero shares the
// kink of the L1 penalty.
std::vector<Kinks> weight_kinks(const KinkedProblem& p, double share) {
  const index_t d = p.X.cols();
  const Coordinates& q = p.penalty;
  const auto any = [&](const auto& rule) {
    for (index_t j = 0; j < d; ++j)
      if (rule(j)) return true;
    return false;
  };
  const bool below = any([&](index_t j) { return std::isfinite(q.lower[j]); });
  const bool above = any([&](index_t j) { return std::isfinite(q.upper[j]); });
  const bool at_zero = any([&](index_t j) { return q.l1[j] > 0 || q.lower[j] == 0 || q.upper[j] == 0; });
  if (!(below || above || at_zero)) return {};
  const std::vector<double> wall = below || above ? steepest(p) : std::vector<double>(d, 0.0);
  const double top = std::max(*std::max_element(q.l1, q.l1 + d), *std::max_element(wall.begin(), wall.end()));
  const double least = 1e-12 * top;  // a weight without this kink gets an interval too narrow to matter
  std::vector<Kinks> out;
  const auto add = [&](const auto& fill) {
    Kinks k{std::vector<double>(d, 0.0), std::vector<double>(d, -least / share), std::vector<double>(d, least / share)};
    for (index_t j = 0; j < d; ++j) fill(k, j);
    out.push_back(std::move(k));
  };
  if (at_zero)
    add([&](Kinks& k, index_t j) {
      k.lo[j] = -(q.lower[j] == 0 ? wall[j] : std::max(q.l1[j], least)) / share;
      k.hi[j] = (q.upper[j] == 0 ? wall[j] : std::max(q.l1[j], least)) / share;
    });
  if (any([&](index_t j) { return std::isfinite(q.lower[j]) && q.lower[j] != 0; }))
    add([&](Kinks& k, index_t j) {
      if (!std::isfinite(q.lower[j]) || q.lower[j] == 0) return;
      k.a[j] = q.lower[j];
      k.lo[j] = -wall[j] / share;
    });
  if (any([&](index_t j) { return std::isfinite(q.upper[j]) && q.upper[j] != 0; }))
    add([&](Kinks& k, index_t j) {
      if (!std::isfinite(q.upper[j]) || q.upper[j] == 0) return;
      k.a[j] = q.upper[j];
      k.hi[j] = wall[j] / share;
    });
  return out;
}

class Method {
 public:
  Method(const KinkedProblem& p, std::vector<double> w, double b)
      : p_(p),
        n_(p.X.rows()),
        d_(p.X.cols()),
        m_(d_ + (p.intercept ? 1 : 0)),
        shares_(d_, vec::sum(p.c, n_) / static_cast<double>(n_)),
        loss_(p.kinks, n_, p.c),
        l1_(weight_kinks(p, shares_[0]), d_, shares_.data()),
        w_(std::move(w)),
        b_(b),
        z_(n_),
        h_(n_),
        hw_(d_),
        scratch_(n_),
        dz_(n_),
        lag_(n_),
        rw_(m_),
        rhs_(m_),
        rhs_l1_(d_),
        diagonal_(d_),
        system_(p.transposed ? row_system(p.X, *p.transposed, p.intercept) : column_system(p.X, p.intercept)) {
    rounding_ = 1e-15 * value(loss_, z_.data());
    p.X.matvec(w_.data(), z_.data());
    for (index_t i = 0; i < n_; ++i) z_[i] += b_ + (p.offset ? p.offset[i] : 0.0);
    const double product = std::max(0.05 * spread(loss_, z_.data()), 1e-8);
    start(loss_, z_.data(), product);
    start(l1_, w_.data(), product);
  }

  LinearSolution run(double tol, int from, int max_iter, Monitor& monitor) {
    LinearSolution out;
    out.iterations = from;
    residuals();
    for (int it = from + 1; it <= max_iter; ++it) {
      out.iterations = it;
      measure(monitor, it, out);
      if (met(tol)) {
        residuals();  // recompute the residuals, which were predicted from the steps so far
        if (met(tol)) out.outcome = Outcome::converged;
      }
      if (out.outcome != Outcome::max_iter) break;
      if (!step(left_)) {
        out.outcome = Outcome::stalled;
        break;
      }
    }
    // Weights that an L1 penalty or a bound holds are within the tolerance of it: put them exactly there.
    const double largest = vec::max_abs(w_.data(), d_), near = 1e-2 * tol * largest;
    if (l1_.total) drop_small(tol, near);
    hold_at_bounds(largest);
    for (index_t j = 0; j < d_; ++j) {
      if (w_[j] < p_.penalty.lower[j] + near) w_[j] = p_.penalty.lower[j];
      if (w_[j] > p_.penalty.upper[j] - near) w_[j] = p_.penalty.upper[j];
    }
    out.w = w_;
    out.b = b_;
    out.dual = loss_.u;
    return out;
  }

 private:
  // Sets weights up to `near` to zero, or fewer of them where the objective would rise too much.
  void drop_small(double tol, double near) {
    const double most = primal() + 0.1 * tol * std::fabs(primal());
    const std::vector<double> w = w_, z = z_;
    for (int trial = 0; trial < 4; ++trial, near *= 1e-2) {
      for (index_t j = 0; j < d_; ++j) w_[j] = std::fabs(w[j]) < near ? 0.0 : w[j];
      p_.X.matvec(w_.data(), z_.data());
      for (index_t i = 0; i < n_; ++i) z_[i] += b_ + (p_.offset ? p_.offset[i] : 0.0);
      if (primal() <= most) return;
    }
    w_ = w;
    z_ = z;
  }

  // By complementarity either the distance of a weight from its bound or that of the dual variable from the end of its
  // interval tends to zero: in the first case the bound is active.
  void hold_at_bounds(double largest) {
    double widest = 0;
    for (index_t k = 0; k < l1_.total; ++k) widest = std::max(widest, l1_.hi[k] - l1_.lo[k]);
    for (index_t k = 0; k < l1_.total; ++k) {
      const index_t j = k % d_;
      const double width = l1_.hi[k] - l1_.lo[k];
      const bool bound = l1_.a[k] == p_.penalty.lower[j] || l1_.a[k] == p_.penalty.upper[j];
      if (!bound || width <= 1e-9 * widest) continue;
      const double room = std::min(l1_.hi[k] - l1_.u[k], l1_.u[k] - l1_.lo[k]) / width;
      if (std::fabs(w_[j] - l1_.a[k]) < room * largest) w_[j] = l1_.a[k];
    }
  }

  // The objective, including the linear function of the rows that are left out.
  double primal() const {
    double rest = p_.rest.constant + p_.rest.bias * b_;
    if (!p_.rest.gradient.empty()) rest += vec::dot(p_.rest.gradient.data(), w_.data(), d_);
    const double ridge = 0.5 * vec::dot3(p_.penalty.l2, w_.data(), w_.data(), d_);
    return value(loss_, z_.data()) + value(l1_, w_.data()) + ridge + rest;
  }

  // Evaluates the objective and its gap, and reports them for iteration `it`.
  void measure(Monitor& monitor, int it, LinearSolution& out) {
    primal_ = primal();
    left_ = complementarity(loss_, 0.0) + complementarity(l1_, 0.0);
    if (monitor.report({it, primal_, gap_share()})) out.outcome = Outcome::stopped;
  }

  bool met(double tol) const { return gap_share() == 0.0 || (gap_share() <= tol && infeasibility_ <= 1e-2 * tol); }

  // Relative to the objective; zero if the objective is zero up to rounding.
  double gap_share() const {
    const double gap = left_ + dual_loss();
    return gap <= rounding_ ? 0.0 : gap / std::max(std::fabs(primal_), 1e-300);
  }

  // The decrease of the dual value because X'(c u) and the weights do not agree exactly: rw^2 / (2 l2) where there is a
  // ridge. Under an L1 penalty alone |X'(c u)| may exceed l1 by some factor, and all dual variables must then be
  // divided by it.
  double dual_loss() const {
    double s = 0, excess = 0;
    for (index_t j = 0; j < d_; ++j) {
      if (p_.penalty.l2[j] > 0)
        s += 0.5 * rw_[j] * rw_[j] / p_.penalty.l2[j];
      else if (p_.penalty.l1[j] > 0 && std::isinf(p_.penalty.lower[j]) && std::isinf(p_.penalty.upper[j]))
        excess = std::max(excess, std::fabs(rw_[j] - shares_[j] * l1_.u[j]) / p_.penalty.l1[j] - 1.0);
    }
    return s + excess * std::fabs(primal_);
  }

  // rw = (L2 w + u_l1 + X'(c u), sum c u) plus the gradient of the linear function of the other rows.
  void residuals() {
    std::fill(scratch_.begin(), scratch_.end(), 0.0);
    over(n_, [&](index_t b, index_t e) {
      for (index_t first = 0; first < loss_.total; first += n_)
        for (index_t i = b; i < e; ++i) scratch_[i] += p_.c[i] * loss_.u[first + i];
    });
    p_.X.rmatvec(scratch_.data(), rw_.data());
    for (index_t j = 0; j < d_; ++j) rw_[j] += p_.penalty.l2[j] * w_[j];
    for (index_t k = 0; k < l1_.total; ++k) rw_[k % d_] += shares_[k % d_] * l1_.u[k];
    if (!p_.rest.gradient.empty()) vec::axpy(1.0, p_.rest.gradient.data(), rw_.data(), d_);
    infeasibility_ = 0;
    if (p_.intercept) {
      double size =
          std::fabs(p_.rest.bias) + 1e-10 * loss_.weight();  // the scale of sum c u where all dual variables vanish
      for (const double x : scratch_) size += std::fabs(x);
      rw_[d_] = vec::sum(scratch_.data(), n_) + p_.rest.bias;
      infeasibility_ = std::fabs(rw_[d_]) / std::max(size, 1e-300);
    }
  }

  void factor() {
    curvatures(loss_, h_.data());
    curvatures(l1_, hw_.data());
    // Rows far from every kink have negligible weights: leaving them out of the matrix changes the step by less than
    // rounding.
    const double top = *std::max_element(h_.begin(), h_.end());
    for (index_t i = 0; i < n_; ++i) scratch_[i] = h_[i] > 1e-13 * top ? h_[i] : 0.0;
    for (index_t j = 0; j < d_; ++j) diagonal_[j] = p_.penalty.l2[j] + (l1_.total ? hw_[j] : 0.0);
    system_->factor(scratch_.data(), diagonal_.data());
  }

  void direction(double mu, bool second) {
    right_hand_side(loss_, mu, second, scratch_.data());
    right_hand_side(l1_, mu, second, rhs_l1_.data());
    p_.X.rmatvec(scratch_.data(), rhs_.data());
    if (p_.intercept) rhs_[d_] = vec::sum(scratch_.data(), n_);
    for (index_t j = 0; l1_.total && j < d_; ++j) rhs_[j] += rhs_l1_[j];
    for (index_t j = 0; j < m_; ++j) rhs_[j] -= rw_[j];
    dz_ = lag_;
    system_->solve(rhs_.data(), dz_.data());
    back_substitute(loss_, mu, second, dz_.data());
    back_substitute(l1_, mu, second, rhs_.data());
  }

  // lag = X w + b + offset - z, the rounding error of a row system.
  void follow() {
    p_.X.matvec(w_.data(), lag_.data());
    for (index_t i = 0; i < n_; ++i) lag_[i] += b_ + (p_.offset ? p_.offset[i] : 0.0) - z_[i];
  }

  bool step(double left) {
    factor();
    const double mu = left / (2.0 * (loss_.weight() + l1_.weight()));  // each kink has two products
    direction(0.0, false);
    const double full = std::min({1.0, longest(loss_), longest(l1_)});
    const double ratio = std::max((complementarity(loss_, full) + complementarity(l1_, full)) / left, 0.0);
    direction(ratio * ratio * ratio * mu, true);
    const double reach = std::min(longest(loss_), longest(l1_));
    const double alpha = std::min(1.0, kToBoundary * reach);
    if (!(alpha > 1e-10) || !std::isfinite(vec::square_sum(rhs_.data(), m_))) return false;
    vec::axpy(alpha, rhs_.data(), w_.data(), d_);
    if (p_.intercept) b_ += alpha * rhs_[d_];
    vec::axpy(alpha, dz_.data(), z_.data(), n_);
    advance(loss_, alpha);
    advance(l1_, alpha);
    if (p_.transposed) follow();
    // The equations of rw are linear: a step of length alpha scales the residual by 1 - alpha.
    for (double& r : rw_) r *= 1.0 - alpha;
    infeasibility_ *= 1.0 - alpha;
    if (Monitor* monitor = Monitor::current()) monitor->poll();
    return true;
  }

  const KinkedProblem& p_;
  index_t n_, d_, m_;
  std::vector<double> shares_;
  Terms loss_, l1_;
  std::vector<double> w_;
  double b_, infeasibility_ = 0, primal_ = 0, left_ = 0, rounding_ = 0;
  std::vector<double> z_, h_, hw_, scratch_, dz_, lag_, rw_, rhs_, rhs_l1_, diagonal_;
  std::unique_ptr<CurvatureSystem> system_;
};

}  // namespace

LinearSolution interior_steps(const KinkedProblem& problem, std::vector<double> w, double b, double tol, int from,
                              int max_iter, Monitor& monitor) {
  return Method(problem, std::move(w), b).run(tol, from, max_iter, monitor);
}

}  // namespace hinge
