// Exact line search in the leaves, for losses whose second-order model is uninformative (kinks, flat parts).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/pool.hpp"
#include "trees/boosting.hpp"

namespace hinge::trees {
namespace {

// A minimiser of sum w rho_level(r - v): the midpoint of the interval of minimisers.
double weighted_quantile(std::vector<double>& r, const std::vector<double>& w, double level) {
  const std::size_t n = r.size();
  if (w.empty()) {
    const double position = level * static_cast<double>(n), slack = 1e-9;
    const auto rank = static_cast<std::size_t>(std::max(0.0, std::ceil(position - slack) - 1.0));
    const bool tie = std::fabs(position - std::round(position)) <= slack && rank + 1 < n;
    std::nth_element(r.begin(), r.begin() + static_cast<std::ptrdiff_t>(rank), r.end());
    if (!tie) return r[rank];
    return 0.5 * (r[rank] + *std::min_element(r.begin() + static_cast<std::ptrdiff_t>(rank) + 1, r.end()));
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return r[a] < r[b]; });
  const double total = std::accumulate(w.begin(), w.end(), 0.0), target = level * total, slack = 1e-12 * total;
  double sum = 0;
  std::size_t k = 0;
  while (k + 1 < n && (sum += w[order[k]]) < target - slack) ++k;
  const bool tie = std::fabs(sum - target) <= slack && k + 1 < n;
  return tie ? 0.5 * (r[order[k]] + r[order[k + 1]]) : r[order[k]];
}

// The rows of one leaf, and the objective as a function of its value: phi(v) = sum w l(y, s + v) + l2 v^2 / 2.
struct Leaf {
  const Loss& loss;
  const std::vector<double>&y, &s, &w;
  double l2;
  std::vector<double> at, u;

  index_t shift(double v) {
    at.resize(s.size());
    for (std::size_t i = 0; i < s.size(); ++i) at[i] = s[i] + v;
    return static_cast<index_t>(s.size());
  }
  double derivative(double v) {
    const index_t n = shift(v);
    u.resize(s.size());
    loss.gradients(y.data(), at.data(), w.data(), u.data(), n);
    return std::accumulate(u.begin(), u.end(), l2 * v);
  }
  double value(double v) {
    const index_t n = shift(v);
    const double total = loss.value(y.data(), at.data(), w.data(), n) + 0.5 * l2 * v * v;
    return std::isfinite(total) ? total : INFINITY;
  }
};

// The zero of an increasing derivative, by bracketing and bisection.
double derivative_root(Leaf& leaf, double start) {
  if (leaf.derivative(0.0) == 0) return 0.0;
  double step = std::max(std::fabs(start), 1e-3), low = 0, high = 0;
  for (int k = 0; k < 60 && leaf.derivative(low) > 0; ++k, step *= 2) low -= step;
  for (int k = 0; k < 60 && leaf.derivative(high) < 0; ++k, step *= 2) high += step;
  for (int k = 0; k < 100 && high - low > 1e-10 * (std::fabs(low) + std::fabs(high)); ++k) {
    const double middle = 0.5 * (low + high);
    (leaf.derivative(middle) < 0 ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

// A leaf value that decreases phi, for nonconvex losses: the best of a geometric grid in the descent direction, refined
// by golden-section search between its neighbours. 0 if none decreases phi.
double lowest_value(Leaf& leaf, double start) {
  const double derivative = leaf.derivative(0.0);
  if (derivative == 0 || !std::isfinite(derivative)) return 0.0;
  const double down = derivative > 0 ? -1.0 : 1.0, before = leaf.value(0.0);
  double unit = std::max(std::fabs(start), 1e-3);
  while (unit > 1e-12 && !(leaf.value(down * unit) < before)) unit /= 4;
  double best = before, middle = 0;
  for (int k = -2; k < 12; ++k)
    if (const double step = std::ldexp(unit, k), at = leaf.value(down * step); at < best) best = at, middle = step;
  if (middle == 0) return 0.0;
  const double ratio = 0.5 * (std::sqrt(5.0) - 1.0);
  double low = 0.5 * middle, high = 2 * middle;
  double a = high - ratio * (high - low), b = low + ratio * (high - low);
  double at_a = leaf.value(down * a), at_b = leaf.value(down * b);
  for (int k = 0; k < 40 && high - low > 1e-8 * high; ++k)
    if (at_a <= at_b) {
      high = b, b = a, at_b = at_a, a = high - ratio * (high - low), at_a = leaf.value(down * a);
    } else {
      low = a, a = b, at_a = at_b, b = low + ratio * (high - low), at_b = leaf.value(down * b);
    }
  const double refined = 0.5 * (low + high);
  return down * (leaf.value(down * refined) <= best ? refined : middle);
}

}  // namespace

void Booster::search_leaves(Nodes& tree, const Growth& growth, const Round& round, const double* scores) const {
  const auto task = [&](index_t k) {
    const Growth::Leaf& leaf = growth.leaves()[k];
    const auto n = static_cast<std::size_t>(leaf.end - leaf.begin);
    std::vector<double> y(n), s(n), w;
    if (weight_) w.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      const index_t row = growth.rows().at(leaf.begin)[i];
      y[i] = y_[row], s[i] = scores[row];
      if (weight_) w[i] = weight_[row];
    }
    double& value = tree.value[leaf.node];
    if (round.level > 0 && options_.split.l2 == 0) {
      for (std::size_t i = 0; i < n; ++i) y[i] -= s[i];
      value = weighted_quantile(y, w, round.level);
    } else {
      if (w.empty()) w.assign(n, 1.0);
      Leaf rows{*round.loss, y, s, w, options_.split.l2, {}, {}};
      value = round.convex ? derivative_root(rows, value) : lowest_value(rows, value);
    }
  };
  const auto count = static_cast<index_t>(growth.leaves().size());
  if (round.loss->whole_arrays())
    for (index_t k = 0; k < count; ++k) task(k);
  else
    parallel_for(count, task);
}

}  // namespace hinge::trees
