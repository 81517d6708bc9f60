#include "trees/criteria.hpp"

#include <algorithm>
#include <utility>

namespace hinge::trees {
namespace {

HINGE_HOT void squared_scores(const double* __restrict w, const double* __restrict s, index_t n, double W, double S,
                              double* __restrict out) {
  for (index_t i = 0; i < n; ++i) {
    const double r = S - s[i];
    out[i] = s[i] * s[i] / w[i] + r * r / (W - w[i]);
  }
}

// Two classes: (n1^2 + n0^2) / W on each side.
HINGE_HOT void gini2_scores(const double* __restrict w, const double* __restrict s, index_t n, double W, double S,
                            double* __restrict out) {
  for (index_t i = 0; i < n; ++i) {
    const double a = s[i], b = w[i] - a, c = S - a, d = (W - w[i]) - c;
    out[i] = (a * a + b * b) / w[i] + (c * c + d * d) / (W - w[i]);
  }
}

HINGE_HOT void add_squares(const double* __restrict s, index_t n, double S, double* __restrict left,
                           double* __restrict right) {
  for (index_t i = 0; i < n; ++i) {
    const double a = s[i], c = S - a;
    left[i] += a * a, right[i] += c * c;
  }
}

HINGE_HOT void divide(const double* __restrict w, index_t n, double W, const double* __restrict right,
                      double* __restrict out) {
  for (index_t i = 0; i < n; ++i) out[i] = out[i] / w[i] + right[i] / (W - w[i]);
}

HINGE_HOT std::pair<double, double> sums_of_squares(const double* __restrict left, const double* __restrict total,
                                                    int n) {
  double a = 0, b = 0;
  for (int c = 0; c < n; ++c) {
    const double rest = total[c] - left[c];
    a += left[c] * left[c], b += rest * rest;
  }
  return {a, b};
}

}  // namespace

double side_score(Criterion criterion, int classes, const double* stats, int channels) {
  const double w = stats[1];
  if (!(w > 0)) return 0.0;
  if (criterion == Criterion::squared) {
    double sum = 0;
    for (int c = 2; c < channels; ++c) sum += stats[c] * stats[c];
    return sum / w;
  }
  if (criterion == Criterion::poisson) {
    double sum = 0;
    for (int c = 2; c < channels; ++c) sum += stats[c] > 0 ? stats[c] * std::log(stats[c] / w) : -INFINITY;
    return sum;
  }
  double two[2] = {classes == 2 ? w - stats[2] : 0.0, stats[2]};
  const double* s = classes == 2 ? two : stats + 2;
  const int k = classes == 2 ? 2 : channels - 2;
  if (criterion == Criterion::misclassification) return *std::max_element(s, s + k);
  double sum = 0;
  if (criterion == Criterion::gini) {
    for (int c = 0; c < k; ++c) sum += s[c] * s[c];
    return sum / w;
  }
  for (int c = 0; c < k; ++c) sum += xlog2(s[c]);
  return sum - (classes < 0 ? -classes : 1) * xlog2(w);
}

double cut_score(Criterion criterion, int classes, const double* left, const double* total, int channels) {
  const double w = left[1], rest = total[1] - w;
  if (channels > 3 && (criterion == Criterion::squared || criterion == Criterion::gini)) {
    const auto [a, b] = sums_of_squares(left + 2, total + 2, channels - 2);
    return a / w + b / rest;
  }
  // A leaf with only zero targets would predict a mean of zero, for which the Poisson deviance of any event is
  // infinite.
  if (criterion == Criterion::poisson)
    for (int c = 2; c < channels; ++c)
      if (std::min(left[c], total[c] - left[c]) <= 1e-12 * total[c]) return -INFINITY;
  double few[3];
  std::vector<double> many(channels > 3 ? channels : 0);
  double* right = channels > 3 ? many.data() : few;
  for (int c = 0; c < channels; ++c) right[c] = total[c] - left[c];
  return side_score(criterion, classes, left, channels) + side_score(criterion, classes, right, channels);
}

void score_prefixes(Criterion criterion, int classes, Prefixes& p, index_t n, const double* total) {
  double* out = p.score.data();
  const bool squared = criterion == Criterion::squared;
  if (squared && p.channels == 3) return squared_scores(p.at(1), p.at(2), n, total[1], total[2], out);
  if (criterion == Criterion::gini && classes == 2) return gini2_scores(p.at(1), p.at(2), n, total[1], total[2], out);
  if (squared || criterion == Criterion::gini) {
    std::fill_n(out, n, 0.0);
    std::vector<double> right(n, 0.0);
    for (int c = 2; c < p.channels; ++c) add_squares(p.at(c), n, total[c], out, right.data());
    return divide(p.at(1), n, total[1], right.data(), out);
  }
  std::vector<double> left(p.channels);
  for (index_t i = 0; i < n; ++i) {
    for (int c = 0; c < p.channels; ++c) left[c] = p.at(c)[i];
    out[i] = cut_score(criterion, classes, left.data(), total, p.channels);
  }
}

}  // namespace hinge::trees
