#include "multiclass/svm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/pool.hpp"
#include "core/random.hpp"
#include "core/vec.hpp"
#include "multiclass/newton.hpp"
#include "multiclass/rows.hpp"

namespace hinge {
namespace {

using namespace multiclass;

// A rise of the dual objective below this share of the primal is rounding. After so many evaluations without a larger
// one, four passes apart, no progress is possible.
constexpr double kRounding = 1e-15;
constexpr int kIdle = 25;

// V, v and u of svm.hpp, updated with rows of x.
struct LinearSpace {
  const Rows& x;
  index_t width;
  Table V, v, u;
  std::vector<double> along;  // x_i.m
  double level = 0;           // |m|^2 + B^2

  LinearSpace(const Rows& x, index_t width) : x(x), width(width), V(x.cols * width, 0.0), v(width, 0.0), u(width, 0.0) {
    if (!x.mean) return;
    level = vec::square_sum(x.mean, x.cols) + x.constant * x.constant;
    along.resize(x.rows);
    for (index_t i = 0; i < x.rows; ++i) along[i] = each(i, [&](index_t a, double value) { return value * x.mean[a]; });
  }
  index_t rows() const { return x.rows; }
  double square(index_t i) const {
    const double norm2 = each(i, [](index_t, double value) { return value * value; });
    return x.mean ? std::max(norm2 - 2 * along[i] + level, x.constant * x.constant) : norm2;
  }
  void scores(index_t i, double* s) const {
    row_scores(x, V, width, i, s);
    if (!x.mean) return;
    for (index_t j = 0; j < width; ++j) s[j] += (level - along[i]) * v[j] - u[j];
  }
  void move(index_t i, const double* change) {
    add_row(x, V, width, i, change);
    if (!x.mean) return;
    for (index_t j = 0; j < width; ++j) v[j] += change[j], u[j] += along[i] * change[j];
  }
  // Recomputes them for the dual coefficients written by residual(i, r).
  template <class Residual>
  void restore(const Residual& residual) {
    sum_rows(x, width, residual, V, v);
    std::fill(u.begin(), u.end(), 0.0);
    for (index_t a = 0; a < x.cols && x.mean; ++a) vec::axpy(x.mean[a], V.data() + a * width, u.data(), width);
  }
  void prefetch(index_t i) const {
    const index_t first = x.indptr ? x.indptr[i] : i * x.cols, last = x.indptr ? x.indptr[i + 1] : first + x.cols;
    for (index_t k = first; k < std::min(last, first + 256); k += 8) {
      __builtin_prefetch(x.value + k);
      if (x.indptr) __builtin_prefetch(x.index + k);
    }
  }
  double weight(index_t a, index_t j) const { return V[a * width + j] - (x.mean ? x.mean[a] * v[j] : 0.0); }
  double norm() const {
    double sum = 0;
    for (index_t a = 0; a < x.cols; ++a)
      for (index_t j = 0; j < width; ++j) sum += weight(a, j) * weight(a, j);
    return sum + x.constant * x.constant * vec::square_sum(v.data(), width);
  }

 private:
  template <class F>
  double each(index_t i, F&& f) const {  // sum of f(column, value) over a row
    double sum = 0;
    const index_t first = x.indptr ? x.indptr[i] : i * x.cols, n = x.indptr ? x.indptr[i + 1] - first : x.cols;
    for (index_t k = 0; k < n; ++k) sum += f(x.indptr ? x.index[first + k] : k, x.value[first + k]);
    return sum;
  }
};

// The scores of all samples, updated with columns of K.
struct KernelSpace {
  const double* K;
  index_t n, width;
  Table F, dual;

  KernelSpace(const double* K, index_t n, index_t width)
      : K(K), n(n), width(width), F(n * width, 0.0), dual(n * width, 0.0) {}
  index_t rows() const { return n; }
  double square(index_t i) const { return K[i * n + i]; }
  void scores(index_t i, double* s) const { std::copy_n(F.data() + i * width, width, s); }
  void move(index_t i, const double* change) {
    vec::axpy(1.0, change, dual.data() + i * width, width);
    const index_t parts = parts_for(n * width, 65536, 8);
    parallel_for(parts, [&](index_t part) {
      for (index_t r = range_begin(n, parts, part); r < range_begin(n, parts, part + 1); ++r)
        if (K[i * n + r] != 0) vec::axpy(K[i * n + r], change, F.data() + r * width, width);
    });
  }
  template <class Residual>
  void restore(const Residual& residual) {
    std::fill(F.begin(), F.end(), 0.0);
    std::fill(dual.begin(), dual.end(), 0.0);
    Table r(width, 0.0);
    for (index_t i = 0; i < n; ++i)
      if (residual(i, r.data())) move(i, r.data());
  }
  void prefetch(index_t) const {}
  double norm() const { return vec::dot(F.data(), dual.data(), static_cast<index_t>(F.size())); }
};

template <class Space>
class Ascent {
 public:
  Ascent(Space& space, const MulticlassSvmProblem& problem)
      : space_(space),
        problem_(problem),
        k_(problem.classes),
        width_(space.width),
        p_(space.rows() * k_, 0.0),
        square_(space.rows()),
        asleep_(space.rows(), 0),
        naps_(space.rows(), 0) {
    for (index_t i = 0; i < space.rows(); ++i) {
      p_[i * k_ + problem.y[i]] = 1;
      square_[i] = space.square(i);
    }
    if (problem.start) update_by([&](std::vector<double>& p) { begin(problem.start, p); });
  }

  // Visits the samples that shrinking does not skip.
  void pass(const std::vector<index_t>& order, Monitor& monitor) {
    index_t visits = 0;
    Table s(width_), change(width_, 0.0);
    std::vector<double> target(k_), sorted(k_);
    for (std::size_t at = 0; at < order.size(); ++at) {
      const index_t i = order[at];
      // Rows are visited in random order, so the next one is prefetched.
      if (at + 1 < order.size() && asleep_[order[at + 1]] == 0) space_.prefetch(order[at + 1]);
      if (asleep_[i] > 0) {
        --asleep_[i];
        continue;
      }
      ++visits;
      const double curvature = problem_.c[i] * square_[i];
      if (!(curvature > 0)) continue;
      space_.scores(i, s.data());
      const double* cost = problem_.cost + problem_.y[i] * k_;
      double* p = p_.data() + i * k_;
      for (index_t j = 0; j < k_; ++j) target[j] = p[j] + (cost[j] + s[j]) / curvature;
      project_simplex(target.data(), k_, sorted.data());
      double moved = 0;
      for (index_t j = 0; j < k_; ++j) {
        change[j] = problem_.c[i] * (p[j] - target[j]);
        moved = std::max(moved, std::abs(p[j] - target[j]));
        p[j] = target[j];
      }
      if (moved > 1e-14) {
        space_.move(i, change.data());
        naps_[i] = 0;
      } else if (naps_[i]++ > 0) {
        asleep_[i] = std::min(1 << std::min(naps_[i], 4), 16);
      }
      if (visits % 256 == 0) monitor.poll();  // reading the clock costs as much as visiting a short row
    }
  }

  void wake() { std::fill(asleep_.begin(), asleep_.end(), 0); }

  // Primal objective and duality gap, from a pass over all samples.
  std::pair<double, double> objective_and_gap() const {
    const index_t n = space_.rows(), parts = parts_for(n, 256, 32);
    std::vector<double> gap(parts, 0.0), loss(parts, 0.0);
    parallel_for(parts, [&](index_t part) {
      Table s(width_);
      for (index_t i = range_begin(n, parts, part); i < range_begin(n, parts, part + 1); ++i) {
        space_.scores(i, s.data());
        const double* cost = problem_.cost + problem_.y[i] * k_;
        double top = -std::numeric_limits<double>::infinity(), held = 0;
        for (index_t j = 0; j < k_; ++j) {
          top = std::max(top, cost[j] + s[j]);
          held += p_[i * k_ + j] * (cost[j] + s[j]);
        }
        gap[part] += problem_.c[i] * (top - held);
        loss[part] += problem_.c[i] * (top - s[problem_.y[i]]);
      }
    });
    return {std::accumulate(loss.begin(), loss.end(), 0.0) + 0.5 * space_.norm(),
            std::max(0.0, std::accumulate(gap.begin(), gap.end(), 0.0))};
  }

  // Lets another method change p by f(p).
  template <class F>
  void update_by(const F& f) {
    f(p_);
    space_.restore([&](index_t i, double* r) {
      dual(i, r);
      return p_[i * k_ + problem_.y[i]] != 1.0;
    });
  }

  std::vector<double> dual() const {
    std::vector<double> out(p_.size());
    for (index_t i = 0; i < space_.rows(); ++i) dual(i, out.data() + i * k_);
    return out;
  }

 private:
  // p from dual coefficients c_i (e_y - p_i), projected onto the simplex so that rounding errors do not accumulate.
  void begin(const double* start, std::vector<double>& p) const {
    std::vector<double> sorted(k_);
    for (index_t i = 0; i < space_.rows(); ++i) {
      double* row = p.data() + i * k_;
      for (index_t j = 0; j < k_; ++j) row[j] = (j == problem_.y[i]) - start[i * k_ + j] / problem_.c[i];
      project_simplex(row, k_, sorted.data());
    }
  }

  void dual(index_t i, double* out) const {
    for (index_t j = 0; j < k_; ++j) out[j] = problem_.c[i] * ((j == problem_.y[i] ? 1.0 : 0.0) - p_[i * k_ + j]);
  }

  Space& space_;
  const MulticlassSvmProblem& problem_;
  index_t k_, width_;
  std::vector<double> p_, square_;
  std::vector<std::int32_t> asleep_, naps_;
};

template <class Space>
MulticlassSvmFit ascend(Space& space, const MulticlassSvmProblem& problem, double tolerance, int max_passes,
                        std::uint64_t seed, Monitor& monitor) {
  Ascent<Space> ascent(space, problem);
  std::vector<index_t> order(space.rows());
  std::iota(order.begin(), order.end(), index_t{0});
  Random random(seed);
  MulticlassSvmFit fit;
  double before = 0;  // the gap at the last evaluation
  double best = -std::numeric_limits<double>::infinity();
  int idle = 0;            // evaluations since the dual objective has risen by more than its rounding error
  bool try_newton = true;  // Newton's method is tried once
  const auto evaluate = [&] {
    before = fit.gap;
    std::tie(fit.primal, fit.gap) = ascent.objective_and_gap();
    fit.done = fit.gap <= tolerance * fit.primal;
    const double dual = fit.primal - fit.gap;
    idle = dual > best + kRounding * std::fabs(fit.primal) ? 0 : idle + 1;
    best = std::max(best, dual);
  };
  evaluate();
  while (fit.passes < max_passes && !fit.done && idle < kIdle) {
    random.shuffle(order.data(), static_cast<index_t>(order.size()));
    ascent.pass(order, monitor);
    ++fit.passes;
    if (fit.passes % 4 == 0 || fit.passes == max_passes) {
      evaluate();
      if (fit.gap <= 4 * tolerance * fit.primal) ascent.wake();
    }
    if (monitor.report({fit.passes, fit.primal, fit.gap})) {
      evaluate();
      break;
    }
    if constexpr (std::is_same_v<Space, LinearSpace>) {
      if (fit.passes % 4 || fit.done || !try_newton) continue;
      // Coordinate ascent reduces the gap by about the same factor every four passes.
      const double remaining = 4 * std::log(fit.gap / (tolerance * fit.primal)) / std::log(before / fit.gap);
      if (remaining <= multiclass_newton_passes(space.x, problem.classes) && before > fit.gap) continue;
      try_newton = false;
      MulticlassNewtonResult newton;
      ascent.update_by([&](std::vector<double>& p) {
        newton = multiclass_newton(space.x, problem, tolerance, fit.passes, max_passes - fit.passes, p, monitor);
      });
      fit.passes += fit.steps = newton.steps;
      evaluate();
      if (newton.stopped) break;
    }
  }
  fit.dual = ascent.dual();
  return fit;
}

}  // namespace

MulticlassSvmFit multiclass_svm(const Rows& x, const MulticlassSvmProblem& problem, double tolerance, int max_passes,
                                std::uint64_t seed, Monitor& monitor) {
  LinearSpace space(x, padded(problem.classes));
  MulticlassSvmFit fit = ascend(space, problem, tolerance, max_passes, seed, monitor);
  const index_t k = problem.classes;
  fit.w.resize(x.cols * k);
  fit.bias.assign(k, 0.0);
  for (index_t j = 0; j < k; ++j) {
    fit.bias[j] = x.constant * x.constant * space.v[j];
    for (index_t a = 0; a < x.cols; ++a) {
      fit.w[a * k + j] = space.weight(a, j);
      if (x.mean) fit.bias[j] -= x.mean[a] * fit.w[a * k + j];
    }
  }
  return fit;
}

MulticlassSvmFit multiclass_kernel_svm(const double* K, index_t rows, const MulticlassSvmProblem& problem,
                                       double tolerance, int max_passes, std::uint64_t seed, Monitor& monitor) {
  KernelSpace space(K, rows, padded(problem.classes));
  return ascend(space, problem, tolerance, max_passes, seed, monitor);
}

}  // namespace hinge
