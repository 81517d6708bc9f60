#include "trees/absolute.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace hinge::trees {

std::pair<double, double> median_and_loss(const std::vector<double>& y, const std::vector<double>& w) {
  std::vector<std::size_t> order(y.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return y[a] < y[b]; });
  const double total = std::accumulate(w.begin(), w.end(), 0.0), half = 0.5 * total, slack = 1e-12 * total;
  double sum = 0;
  std::size_t k = 0;
  while (k + 1 < y.size() && (sum += w[order[k]]) < half - slack) ++k;
  double median = y[order[k]];
  if (std::fabs(sum - half) <= slack && k + 1 < y.size()) median = 0.5 * (median + y[order[k + 1]]);
  double loss = 0;
  for (std::size_t i = 0; i < y.size(); ++i) loss += w[i] * std::fabs(y[i] - median);
  return {median, loss};
}

// Uses a Fenwick tree over the ranks of y.
std::vector<double> AbsoluteError::losses(const std::vector<std::size_t>& order, const std::vector<std::size_t>& rank,
                                          const std::vector<double>& sorted, std::vector<double>& medians) {
  const std::size_t n = items.size(), top = std::bit_floor(n);
  std::vector<double> weight(n + 1, 0.0), moment(n + 1, 0.0), out(n + 1, 0.0);
  double total = 0, total_moment = 0;
  for (std::size_t t = 0; t < n; ++t) {
    const Item& item = items[order[t]];
    total += item.w, total_moment += item.w * item.y;
    for (std::size_t i = rank[order[t]] + 1; i <= n; i += i & (~i + 1))
      weight[i] += item.w, moment[i] += item.w * item.y;
    // The first rank at which the cumulative weight reaches one half.
    std::size_t at = 0;
    double below = 0, below_moment = 0;
    for (std::size_t step = top; step > 0; step >>= 1)
      if (at + step <= n && below + weight[at + step] < 0.5 * total)
        at += step, below += weight[at], below_moment += moment[at];
    const double median = sorted[std::min(at, n - 1)];
    out[t + 1] = median * below - below_moment + (total_moment - below_moment) - median * (total - below);
    if (medians.empty()) continue;
    // The first rank at which it exceeds one half: the median is the midpoint of the two.
    std::size_t next = 0;
    double under = 0;
    const double half = 0.5 * total * (1 + 1e-12);
    for (std::size_t step = top; step > 0; step >>= 1)
      if (next + step <= n && under + weight[next + step] <= half) next += step, under += weight[next];
    medians[t + 1] = 0.5 * (median + sorted[std::min(next, n - 1)]);
  }
  return out;
}

void AbsoluteError::scores(const std::uint32_t* codes, index_t n, bool missing_left, double* score, bool medians) {
  const std::size_t m = items.size();
  std::vector<std::size_t> by_y(m), rank(m), order(m);
  std::iota(by_y.begin(), by_y.end(), std::size_t{0});
  order = by_y;
  std::stable_sort(by_y.begin(), by_y.end(), [&](std::size_t a, std::size_t b) { return items[a].y < items[b].y; });
  std::vector<double> sorted(m);
  for (std::size_t i = 0; i < m; ++i) rank[by_y[i]] = i, sorted[i] = items[by_y[i]].y;
  // Items with missing values come first if they go left and last otherwise; the others are ordered by code.
  const auto key = [&](std::size_t i) {
    return items[i].code == 0xffffffffu ? (missing_left ? std::int64_t{-1} : std::int64_t{1} << 40)
                                        : static_cast<std::int64_t>(items[i].code);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  std::vector<double> left_medians(medians ? m + 1 : 0), right_medians(medians ? m + 1 : 0);
  const std::vector<double> left = losses(order, rank, sorted, left_medians);
  std::vector<std::size_t> reverse(order.rbegin(), order.rend());
  const std::vector<double> right = losses(reverse, rank, sorted, right_medians);
  below.resize(medians ? n : 0), above.resize(medians ? n : 0);
  std::size_t t = 0;
  for (index_t i = 0; i < n; ++i) {
    while (t < m && key(order[t]) <= static_cast<std::int64_t>(codes[i])) ++t;
    score[i] = -left[t] - right[m - t];
    if (medians) below[i] = left_medians[t], above[i] = right_medians[m - t];
  }
}

}  // namespace hinge::trees
