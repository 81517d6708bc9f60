#include "solvers/newton_cg.hpp"

#include <algorithm>
#include <cmath>

namespace hinge {
namespace {

constexpr int kMostProducts = 250;  // conjugate gradient steps per Newton step
constexpr double kRounding = 1e-9;  // a predicted decrease below this share of the objective may be lost in rounding

// The bias is always the last entry of every vector here; without a bias this entry stays zero.
class Hessian {
 public:
  Hessian(const LinearProblem& p, const Evaluation& at) : p_(p), at_(at), z_(p.n()), u_(p.n()) {}

  void apply(const std::vector<double>& v, std::vector<double>& out) {
    const index_t d = p_.d();
    const double shift = p_.intercept ? v[d] : 0.0;
    p_.X.fused(
        v.data(),
        [&](index_t begin, index_t end, const double* z, double* u) {
          for (index_t i = begin; i < end; ++i) u[i - begin] = at_.h[i] * (z[i - begin] + shift);
        },
        z_.data(), u_.data(), out.data());
    for (index_t j = 0; j < d; ++j) out[j] += (p_.penalty.l2[j] + damping_) * v[j];
    out[d] = p_.intercept ? vec::sum(u_.data(), p_.n()) + damping_ * v[d] : 0.0;
  }

  // Sets the damping added to the diagonal.
  void damp(double amount) { damping_ = amount; }
  double damping() const { return damping_; }

  std::vector<double> diagonal() const {
    const index_t d = p_.d();
    std::vector<double> out(d + 1);
    p_.X.square_sums(at_.h.data(), out.data());
    for (index_t j = 0; j < d; ++j) out[j] = std::max(out[j] + p_.penalty.l2[j] + damping_, 1e-300);
    out[d] = p_.intercept ? std::max(vec::sum(at_.h.data(), p_.n()) + damping_, 1e-300) : 1.0;
    return out;
  }

 private:
  const LinearProblem& p_;
  const Evaluation& at_;
  double damping_ = 0;
  std::vector<double> z_, u_;
};

double norm_in(const std::vector<double>& g, const std::vector<double>& diagonal) {
  double s = 0;
  for (std::size_t j = 0; j < g.size(); ++j) s += g[j] * g[j] / diagonal[j];
  return std::sqrt(s);
}

// sum_j g_j^2 / 2 l2_j: the contribution of a gradient g to the gap (unknown, and left out, for weights without a
// ridge).
double bound(const LinearProblem& p, const std::vector<double>& g) {
  double s = 0;
  for (index_t j = 0; j < p.d(); ++j)
    if (p.penalty.l2[j] > 0) s += 0.5 * g[j] * g[j] / p.penalty.l2[j];
  return s;
}

struct Point {
  std::vector<double> w;  // d weights and the bias
  std::vector<double> gradient;
  double objective = 0;
};

void evaluate_point(const LinearProblem& p, Point& x, Evaluation& at) {
  const index_t d = p.d();
  evaluate(p, x.w.data(), x.w[d], true, at);
  x.objective = at.risk + penalty_value(p.penalty, x.w.data(), d);
  x.gradient.assign(at.g.begin(), at.g.end());
  for (index_t j = 0; j < d; ++j) x.gradient[j] += p.penalty.l2[j] * x.w[j];
  x.gradient.push_back(at.gb);
}

}  // namespace

LinearSolution newton_cg(const LinearProblem& p, std::vector<double> w, double b, bool constant_curvature, double tol,
                         int max_iter, bool proved, Monitor& monitor) {
  const index_t d = p.d(), m = d + 1;
  Evaluation at(p.n(), d);
  Point now{std::move(w), {}, 0};
  now.w.push_back(p.intercept ? b : 0.0);
  evaluate_point(p, now, at);
  Hessian hessian(p, at);
  std::vector<double> diagonal = hessian.diagonal(), s(m), direction(m), r(m), v(m), Hv(m);
  double forcing = 0.3, size = norm_in(now.gradient, diagonal);
  LinearSolution out;
  for (int it = 1; it <= max_iter; ++it) {
    out.iterations = it;
    // Conjugate gradients on H s = -g until the residual is `forcing` of the gradient.
    std::fill(s.begin(), s.end(), 0.0);
    r = now.gradient;
    double rs = 0, decrement = 0, value = now.objective;
    for (index_t j = 0; j < m; ++j) {
      direction[j] = -r[j] / diagonal[j];
      rs += r[j] * r[j] / diagonal[j];
    }
    const double enough = constant_curvature ? 0.0 : forcing * forcing * rs;
    bool flat = false;
    for (int k = 0; k < kMostProducts && rs > enough; ++k) {
      hessian.apply(direction, Hv);
      const double curvature = vec::dot(direction.data(), Hv.data(), m);
      if (!(curvature > 0)) {
        flat = k == 0;
        break;
      }
      const double alpha = rs / curvature;
      vec::axpy(alpha, direction.data(), s.data(), m);
      vec::axpy(alpha, Hv.data(), r.data(), m);
      // Where the model is exact the residual is the next gradient: one Newton step suffices if it is solved
      // accurately.
      value -= 0.5 * alpha * rs;
      if (constant_curvature && bound(p, r) <= 0.3 * tol * std::fabs(value)) break;
      const double before = rs;
      rs = 0;
      for (index_t j = 0; j < m; ++j) rs += r[j] * r[j] / diagonal[j];
      for (index_t j = 0; j < m; ++j) direction[j] = -r[j] / diagonal[j] + rs / before * direction[j];
      monitor.poll();
    }
    decrement = -vec::dot(now.gradient.data(), s.data(), m);
    const double slack = 0.5 * decrement + (proved ? bound(p, now.gradient) : 0.0);
    if (monitor.report({it, now.objective, -1.0})) out.outcome = Outcome::stopped;
    if (!flat && hessian.damping() == 0 && slack <= tol * std::fabs(now.objective)) {
      if (!proved) vec::axpy(1.0, s.data(), now.w.data(), m);  // a step this short needs no line search
      out.outcome = Outcome::converged;
    }
    if (out.outcome != Outcome::max_iter) break;

    Point next;
    double step = 1.0;
    bool accepted = false;
    for (int halving = 0; halving < 40 && !flat; ++halving, step *= 0.5) {
      next.w = now.w;
      vec::axpy(step, s.data(), next.w.data(), m);
      evaluate_point(p, next, at);
      accepted = next.objective <= now.objective - 1e-4 * step * decrement + 1e-14 * std::fabs(now.objective);
      if (accepted) break;
    }
    if (!accepted) {
      evaluate_point(p, now, at);
      if (hessian.damping() > 0 || (!flat && decrement <= kRounding * std::fabs(now.objective))) {
        out.outcome = Outcome::stalled;
        break;
      }
      // This is not rounding: the loss is flat here and curved elsewhere, as in newton.cpp.
      hessian.damp(std::sqrt(vec::dot(now.gradient.data(), now.gradient.data(), m) /
                             (1.0 + vec::dot(now.w.data(), now.w.data(), m))));
      diagonal = hessian.diagonal();
      size = norm_in(now.gradient, diagonal);
      continue;
    }
    now = std::move(next);
    hessian.damp(0.0);
    diagonal = hessian.diagonal();
    const double before = size;
    size = norm_in(now.gradient, diagonal);
    forcing = std::clamp(0.5 * size / before, 1e-4, 0.3);
  }
  out.b = now.w[d];
  out.w = std::move(now.w);
  out.w.pop_back();
  return out;
}

}  // namespace hinge
