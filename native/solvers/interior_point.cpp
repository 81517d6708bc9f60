#include "solvers/interior_point.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/blas.hpp"
#include "core/chosen_rows.hpp"
#include "core/random.hpp"
#include "solvers/curvature_system.hpp"
#include "solvers/interior_steps.hpp"

namespace hinge {
namespace {

// The band method pays off with many rows, and many more rows than columns.
constexpr index_t kManyRows = 20'000, kRowsPerColumn = 60;
// The sample has one in this many rows.
constexpr index_t kSampleShare = 16, kSmoothShare = 8, kRoughShare = 6, kFirstShare = 10, kLaterShare = 24;
constexpr double kSampleTol = 1e-2, kFirstTol = 1e-4;
constexpr int kSmoothSteps = 3, kStepsPerRound = 40, kRounds = 8;

// u_i = sum_k u_ik.
std::vector<double> dual_by_row(const std::vector<double>& u, index_t n) {
  std::vector<double> sums(u.begin(), u.begin() + n);
  for (index_t k = n; k < static_cast<index_t>(u.size()); ++k) sums[k % n] += u[k];
  return sums;
}

// Rows far from their kinks stay on the same side, where the loss is linear. So
//   1. a sample of the rows gives rough weights, and a few Newton steps on the smoothed loss over all rows improve
//   them;
//   2. the rows nearest to their kinks, the band, are solved with the other rows as a linear function;
//   3. if some of the other rows have changed sides, they and similar rows form the next band.
// The error of a round is known exactly: the loss of the rows on the wrong side minus their linear function.
class Bands {
 public:
  Bands(const LinearProblem& p, const std::vector<Kinks>& kinks)
      : p_(p), kinks_(kinks), n_(p.n()), d_(p.d()), w_(d_), z_(n_), far_(n_) {}

  // Empty if rows were still on the wrong side after all rounds; `w` and `b` are then a start for the full problem.
  std::optional<LinearSolution> run(double tol, int max_iter, Monitor& monitor) {
    // Smooth steps would move weights away from zero, where an L1 penalty holds them, or beyond their bounds.
    bool smooth = vec::max_abs(p_.penalty.l1, d_) == 0.0;
    for (index_t j = 0; j < d_; ++j)
      smooth = smooth && std::isinf(p_.penalty.lower[j]) && std::isinf(p_.penalty.upper[j]);
    if (!learn_from_sample(smooth ? kSampleTol : kSampleTol / 10, max_iter)) return {};
    for (int k = 0; smooth && k < kSmoothSteps; ++k)
      if (!smooth_step()) break;
    index_t wanted = n_ / (smooth ? kFirstShare : kRoughShare);
    for (int round = 0; round < kRounds && iterations_ < max_iter; ++round) {
      measure();
      const std::vector<index_t> rows = nearest(std::max(wanted, 4 * d_));
      if (static_cast<index_t>(rows.size()) > n_ / 2) return {};
      const double round_tol = std::max(0.5 * tol, round == 0 ? kFirstTol : 0.0), before = objective();
      const std::vector<double> w = w_;
      const double b = b_;
      const LinearSolution found = Part(*this, rows).solve(rest(rows), round_tol, *this, max_iter);
      if (found.outcome == Outcome::stalled) return {};
      take(found);
      const double primal = objective(), wrong = violation();
      if (!(primal <= before + round_tol * std::fabs(before))) {  // the linearised loss increased the objective
        w_ = w;
        b_ = b;
        z_ = sides_;
        wanted = 3 * static_cast<index_t>(rows.size());
        continue;
      }
      wanted = n_ / kLaterShare;
      const bool stop = monitor.report({iterations_, primal, round_tol + wrong / std::max(std::fabs(primal), 1e-300)});
      const bool done = wrong <= (tol - round_tol) * std::fabs(primal) && found.outcome == Outcome::converged;
      if (stop || done) return solution(rows, found, done ? Outcome::converged : Outcome::stopped);
    }
    return {};
  }

  const std::vector<double>& w() const { return w_; }
  double b() const { return b_; }

 private:
  // The problem restricted to some rows.
  struct Part {
    std::unique_ptr<Products> X;
    std::vector<double> c, offset;
    std::vector<Kinks> kinks;

    Part(const Bands& all, const std::vector<index_t>& rows) : X(chosen_rows(all.p_.X, rows)) {
      const auto pick = [&](const double* from) {
        std::vector<double> out(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) out[i] = from[rows[i]];
        return out;
      };
      c = pick(all.p_.c);
      if (all.p_.offset) offset = pick(all.p_.offset);
      for (const Kinks& k : all.kinks_) kinks.push_back({pick(k.a.data()), pick(k.lo.data()), pick(k.hi.data())});
    }

    LinearSolution solve(LinearPart rest, double tol, const Bands& all, int max_iter) const {
      Monitor silent;  // the monitor must not receive the objective of a subproblem
      const KinkedProblem problem{
          *X,    c.data(),       offset.empty() ? nullptr : offset.data(), all.p_.intercept, all.p_.penalty,
          kinks, std::move(rest)};
      const int last = std::min(max_iter, all.iterations_ + kStepsPerRound);
      return interior_steps(problem, all.w_, all.b_, tol, all.iterations_, last, silent);
    }
  };

  // False if too few rows have a positive weight.
  bool learn_from_sample(double tol, int max_iter) {
    const std::vector<index_t> rows = sample();
    const index_t m = static_cast<index_t>(rows.size());
    if (m < 2 * d_) return false;
    Part part(*this, rows);
    const double scale = 1.0 / vec::sum(part.c.data(), m);
    for (double& c : part.c) c *= scale;
    take(part.solve({}, tol, *this, max_iter));
    return true;
  }

  // A stratified sample: one row from every run of equal length.
  std::vector<index_t> sample() const {
    const index_t m = std::max(n_ / kSampleShare, std::min(n_ / 4, 20 * d_));
    std::vector<index_t> rows;
    Random random(0);
    for (index_t s = 0; s < m; ++s) {
      const index_t begin = range_begin(n_, m, s), end = range_begin(n_, m, s + 1);
      const index_t i = begin + random.below(end - begin);
      if (p_.c[i] > 0) rows.push_back(i);
    }
    return rows;
  }

  void take(const LinearSolution& found) {
    w_ = found.w;
    b_ = found.b;
    iterations_ = found.iterations;
    scores();
  }

  void scores() {
    p_.X.matvec(w_.data(), z_.data());
    for (index_t i = 0; i < n_; ++i) z_[i] += b_ + (p_.offset ? p_.offset[i] : 0.0);
  }

  // far = the distance of every score from its nearest kink.
  void measure() {
    std::fill(far_.begin(), far_.end(), HUGE_VAL);
    for (const Kinks& k : kinks_)
      for (index_t i = 0; i < n_; ++i)
        if (p_.c[i] > 0) far_[i] = std::min(far_[i], std::fabs(z_[i] - k.a[i]));
  }

  // One Newton step on the loss averaged over scores +- width, which has the curvature (hi - lo) / (2 width) there.
  // False if the step does not decrease the objective.
  bool smooth_step() {
    measure();
    const double width = std::max(distance(n_ / kSmoothShare), 1e-300);
    const index_t m = d_ + (p_.intercept ? 1 : 0);
    std::vector<double> cu(n_), h(n_), step(m), L, dz(n_);
    for (const Kinks& k : kinks_)
      for (index_t i = 0; i < n_; ++i) {
        const double side = (z_[i] - k.a[i]) / width, rise = p_.c[i] * (k.hi[i] - k.lo[i]);
        cu[i] += p_.c[i] * k.lo[i] + rise * 0.5 * (1.0 + std::clamp(side, -1.0, 1.0));
        if (std::fabs(side) < 1.0) h[i] += rise * 0.5 / width;
      }
    p_.X.rmatvec(cu.data(), step.data());
    for (index_t j = 0; j < d_; ++j) step[j] += p_.penalty.l2[j] * w_[j];
    if (p_.intercept) step[d_] = vec::sum(cu.data(), n_);
    factor_curvature(p_.X, h.data(), p_.penalty.l2, p_.intercept, L);
    blas::potrs('L', m, 1, L.data(), m, step.data(), m);
    const double before = objective();
    const std::vector<double> w = w_, z = z_;
    const double b = b_;
    p_.X.matvec(step.data(), dz.data());
    for (double t = 1; t > 0.05; t *= 0.5) {
      for (index_t j = 0; j < d_; ++j) w_[j] = w[j] - t * step[j];
      b_ = p_.intercept ? b - t * step[d_] : b;
      for (index_t i = 0; i < n_; ++i) z_[i] = z[i] - t * (dz[i] + (p_.intercept ? step[d_] : 0.0));
      if (objective() < before) return true;
    }
    w_ = w;
    b_ = b;
    z_ = z;
    return false;
  }

  // The distance of the `rank`-nearest row from its kink.
  double distance(index_t rank) const {
    std::vector<double> sorted = far_;
    std::nth_element(sorted.begin(), sorted.begin() + rank, sorted.end());
    return sorted[rank];
  }

  // At least `wanted` rows, and all rows not much farther than the largest error of the last round.
  std::vector<index_t> nearest(index_t wanted) const {
    const double limit = std::max(distance(wanted), 1.5 * deepest_);
    std::vector<index_t> rows;
    for (index_t i = 0; i < n_; ++i)
      if (far_[i] <= limit && p_.c[i] > 0) rows.push_back(i);
    return rows;
  }

  // The linear function of all rows outside the band, on the current sides of their scores.
  LinearPart rest(const std::vector<index_t>& rows) {
    LinearPart part{std::vector<double>(d_), 0, 0};
    sides_ = z_;
    outside_.assign(n_, true);
    for (const index_t i : rows) outside_[i] = false;
    std::vector<double> cu(n_);
    for (const Kinks& k : kinks_)
      for (index_t i = 0; i < n_; ++i)
        if (outside_[i]) {
          const double gradient = p_.c[i] * line(k, i);
          cu[i] += gradient;
          part.constant += gradient * ((p_.offset ? p_.offset[i] : 0.0) - k.a[i]);
        }
    p_.X.rmatvec(cu.data(), part.gradient.data());
    part.bias = vec::sum(cu.data(), n_);
    return part;
  }

  double line(const Kinks& k, index_t i) const { return sides_[i] > k.a[i] ? k.hi[i] : k.lo[i]; }

  // The loss minus its linear function; records how far rows on the wrong side are beyond their kinks at most.
  double violation() {
    double wrong = 0;
    deepest_ = 0;
    for (const Kinks& k : kinks_)
      for (index_t i = 0; i < n_; ++i)
        if (outside_[i] && (z_[i] > k.a[i]) != (sides_[i] > k.a[i])) {
          const double v = std::fabs(z_[i] - k.a[i]);
          wrong += p_.c[i] * (k.hi[i] - k.lo[i]) * v;
          if (p_.c[i] > 0) deepest_ = std::max(deepest_, v);
        }
    return wrong;
  }

  double objective() const {
    double sum = penalty_value(p_.penalty, w_.data(), d_);
    for (const Kinks& k : kinks_)
      for (index_t i = 0; i < n_; ++i) {
        const double v = z_[i] - k.a[i];
        sum += p_.c[i] * std::max(k.lo[i] * v, k.hi[i] * v);
      }
    return sum;
  }

  LinearSolution solution(const std::vector<index_t>& rows, const LinearSolution& found, Outcome outcome) const {
    LinearSolution out = found;
    out.outcome = outcome;
    out.dual.assign(n_, 0.0);
    for (const Kinks& k : kinks_)
      for (index_t i = 0; i < n_; ++i)
        if (outside_[i]) out.dual[i] += line(k, i);
    const index_t m = static_cast<index_t>(rows.size());
    const std::vector<double> u = dual_by_row(found.dual, m);
    for (index_t i = 0; i < m; ++i) out.dual[rows[i]] = u[i];
    return out;
  }

  const LinearProblem& p_;
  const std::vector<Kinks>& kinks_;
  index_t n_, d_;
  std::vector<double> w_;
  double b_ = 0, deepest_ = 0;
  int iterations_ = 0;
  std::vector<double> z_, far_, sides_;
  std::vector<char> outside_;
};

bool all_penalised(const LinearProblem& p) {
  for (index_t j = 0; j < p.d(); ++j)
    if (!(p.penalty.l1[j] > 0 || p.penalty.l2[j] > 0)) return false;
  return true;
}

}  // namespace

LinearSolution interior_point(const LinearProblem& p, const std::vector<Kinks>& kinks, double tol, int max_iter,
                              Monitor& monitor) {
  std::vector<double> w(p.d());
  double b = 0;
  if (p.n() >= std::max(kManyRows, kRowsPerColumn * p.d()) && chosen_rows(p.X, {})) {
    Bands bands(p, kinks);
    if (auto found = bands.run(tol, max_iter, monitor)) return *found;
    w = bands.w();  // a start; its iterations, on few rows, do not count towards max_iter
    b = bands.b();
  }
  std::optional<Transposed> transposed;
  if (p.d() > p.n() && all_penalised(p)) transposed.emplace(p.X);
  const KinkedProblem problem{p.X,       p.c,   p.offset, p.intercept,
                              p.penalty, kinks, {},       transposed ? &transposed->products() : nullptr};
  LinearSolution out = interior_steps(problem, w, b, tol, 0, max_iter, monitor);
  out.dual = dual_by_row(out.dual, p.n());
  return out;
}

}  // namespace hinge
