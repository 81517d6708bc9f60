#include "solvers/lbfgs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/pool.hpp"
#include "core/vec.hpp"

namespace hinge {
namespace {

using Numbers = std::vector<double>;

// Calls body(first, last) on pieces of [0, n).
template <class F>
void pieces(index_t n, F&& body) {
  const index_t parts = parts_for(n, 32768, 32);
  parallel_for(parts, [&](index_t part) { body(part, range_begin(n, parts, part), range_begin(n, parts, part + 1)); });
}

double dot(const Numbers& a, const Numbers& b) {
  double partial[32] = {};
  const index_t n = static_cast<index_t>(a.size());
  pieces(n, [&](index_t part, index_t i, index_t j) { partial[part] = vec::dot(a.data() + i, b.data() + i, j - i); });
  double sum = 0;
  for (double value : partial) sum += value;
  return sum;
}

void axpy(double c, const Numbers& a, Numbers& out) {
  pieces(static_cast<index_t>(a.size()),
         [&](index_t, index_t i, index_t j) { vec::axpy(c, a.data() + i, out.data() + i, j - i); });
}

double l1_norm(const double* w, index_t n) {
  double sum = 0;
  for (index_t i = 0; i < n; ++i) sum += std::abs(w[i]);
  return sum;
}

// The smallest subgradient of f + l1 |w| (Andrew & Gao 2007, equation 4).
void pseudo_gradient(const double* w, const Numbers& g, double l1, Numbers& out) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (w[i] != 0) {
      out[i] = g[i] + (w[i] > 0 ? l1 : -l1);
    } else {
      out[i] = g[i] > l1 ? g[i] - l1 : (g[i] < -l1 ? g[i] + l1 : 0.0);
    }
  }
}

class Memory {
 public:
  Memory(index_t n, int size) : steps_(size, Numbers(n)), changes_(size, Numbers(n)), rho_(size), alpha_(size) {}

  // Stores step = w - w_before and change = g - g_before if their curvature is positive.
  void push(const double* w, const Numbers& w_before, const Numbers& g, const Numbers& g_before) {
    Numbers& s = steps_[next_];
    Numbers& y = changes_[next_];
    pieces(static_cast<index_t>(s.size()), [&](index_t, index_t i, index_t j) {
      for (index_t k = i; k < j; ++k) s[k] = w[k] - w_before[k];
      for (index_t k = i; k < j; ++k) y[k] = g[k] - g_before[k];
    });
    const double sy = dot(s, y), yy = dot(y, y);
    if (!(sy > 1e-14 * yy) || !(yy > 0)) return;
    rho_[next_] = 1 / sy;
    scale_ = sy / yy;
    next_ = (next_ + 1) % static_cast<int>(steps_.size());
    held_ = std::min<int>(held_ + 1, static_cast<int>(steps_.size()));
  }

  // d <- H d by the two-loop recursion.
  void apply(Numbers& d) {
    const int size = static_cast<int>(steps_.size());
    for (int k = 1; k <= held_; ++k) {
      const int at = (next_ - k + size) % size;
      alpha_[at] = rho_[at] * dot(steps_[at], d);
      axpy(-alpha_[at], changes_[at], d);
    }
    for (double& value : d) value *= scale_;
    for (int k = held_; k >= 1; --k) {
      const int at = (next_ - k + size) % size;
      axpy(alpha_[at] - rho_[at] * dot(changes_[at], d), steps_[at], d);
    }
  }

  bool empty() const { return held_ == 0; }
  void clear() { held_ = 0, scale_ = 1; }

 private:
  std::vector<Numbers> steps_, changes_;
  Numbers rho_, alpha_;
  double scale_ = 1;
  int next_ = 0, held_ = 0;
};

// The minimiser of the cubic through (a, fa, da) and (b, fb, db), kept well inside the interval.
double interpolate(double a, double fa, double da, double b, double fb, double db) {
  const double u = da + db - 3 * (fa - fb) / (a - b);
  const double discriminant = u * u - da * db;
  double at = 0.5 * (a + b);
  if (discriminant >= 0) {
    const double v = std::copysign(std::sqrt(discriminant), b - a);
    const double candidate = b - (b - a) * (db + v - u) / (db - da + 2 * v);
    if (std::isfinite(candidate)) at = candidate;
  }
  const double low = std::min(a, b), high = std::max(a, b), margin = 0.1 * (high - low);
  return std::clamp(at, low + margin, high - margin);
}

struct Search {
  index_t n;
  const SmoothFunction& f;
  double l1;
  int evaluations = 0;

  // Weak Wolfe search from w_before along d. On success w, g and the returned objective are at the new point.
  bool wolfe(const Numbers& before, const Numbers& d, double f0, double slope0, double step, double* w, Numbers& g,
             double& value) {
    double low = 0, f_low = f0, slope_low = slope0, high = 0, f_high = 0, slope_high = 0;
    bool bracketed = false;
    for (int trial = 0; trial < 40; ++trial) {
      pieces(n, [&](index_t, index_t i, index_t j) {
        for (index_t k = i; k < j; ++k) w[k] = before[k] + step * d[k];
      });
      value = f(w, g.data());
      ++evaluations;
      const double slope = dot(g, d);
      if (!std::isfinite(value) || value > f0 + 1e-4 * step * slope0) {
        high = step, f_high = value, slope_high = slope, bracketed = true;
      } else if (slope < 0.9 * slope0) {
        low = step, f_low = value, slope_low = slope;
      } else {
        return true;
      }
      if (!bracketed) {
        step *= 4;
      } else if (!std::isfinite(f_high)) {
        step = 0.5 * (low + high);
      } else {
        step = interpolate(low, f_low, slope_low, high, f_high, slope_high);
      }
    }
    return false;
  }

  // Backtracking over projected steps (Andrew & Gao 2007, section 3.2).
  bool orthant(const Numbers& before, const Numbers& d, const Numbers& pseudo, double f0, double step, double* w,
               Numbers& g, double& value) {
    for (int trial = 0; trial < 40; ++trial, step *= 0.5) {
      double decrease = 0;
      for (index_t k = 0; k < n; ++k) {
        const double side = before[k] != 0 ? before[k] : -pseudo[k];
        const double moved = before[k] + step * d[k];
        w[k] = moved * side > 0 ? moved : 0.0;
        decrease += pseudo[k] * (w[k] - before[k]);
      }
      value = f(w, g.data()) + l1 * l1_norm(w, n);
      ++evaluations;
      if (std::isfinite(value) && value <= f0 + 1e-4 * decrease) return true;
    }
    return false;
  }
};

}  // namespace

LbfgsResult lbfgs(index_t n, double* w, const SmoothFunction& f, const LbfgsOptions& options, Monitor& monitor) {
  const double l1 = options.l1;
  Numbers g(n), g_before(n), w_before(n), d(n), pseudo(l1 > 0 ? n : 0);
  Memory memory(n, options.memory);
  Search search{n, f, l1};
  double objective = f(w, g.data()) + (l1 > 0 ? l1 * l1_norm(w, n) : 0.0);
  search.evaluations = 1;
  const auto measure = [&] {
    if (l1 > 0) pseudo_gradient(w, g, l1, pseudo);
    if (options.measure) return options.measure(objective, w, g.data());
    return vec::max_abs(l1 > 0 ? pseudo.data() : g.data(), n);
  };
  LbfgsResult result{LbfgsStatus::iteration_limit, 0, 1, objective, measure()};
  const auto finish = [&](LbfgsStatus status) {
    result.status = status;
    result.evaluations = search.evaluations;
    result.objective = objective;
    return result;
  };
  if (result.measure <= options.tolerance) return finish(LbfgsStatus::converged);

  while (result.iterations < options.max_iterations) {
    const Numbers& slope = l1 > 0 ? pseudo : g;
    for (index_t k = 0; k < n; ++k) d[k] = -slope[k];
    memory.apply(d);
    if (l1 > 0)
      for (index_t k = 0; k < n; ++k)
        if (d[k] * pseudo[k] >= 0) d[k] = 0;
    const double descent = dot(d, slope);
    if (!(descent < 0)) {
      if (memory.empty()) return finish(LbfgsStatus::stalled);
      memory.clear();
      continue;
    }
    const double step = memory.empty() ? std::min(1.0, 1 / std::sqrt(dot(d, d))) : 1.0;
    std::copy(w, w + n, w_before.begin());
    g_before.swap(g);
    const double before = objective;
    const bool moved = l1 > 0 ? search.orthant(w_before, d, pseudo, objective, step, w, g, objective)
                              : search.wolfe(w_before, d, objective, descent, step, w, g, objective);
    if (!moved) {
      std::copy(w_before.begin(), w_before.end(), w);
      g_before.swap(g);
      objective = before;
      if (memory.empty()) return finish(LbfgsStatus::stalled);
      memory.clear();  // rounding may have corrupted the pairs: try once more along the gradient
      continue;
    }
    memory.push(w, w_before, g, g_before);
    ++result.iterations;
    result.measure = measure();
    if (monitor.report({result.iterations, objective, result.measure})) return finish(LbfgsStatus::stopped);
    if (result.measure <= options.tolerance) return finish(LbfgsStatus::converged);
  }
  return finish(LbfgsStatus::iteration_limit);
}

}  // namespace hinge
