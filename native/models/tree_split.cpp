#include "models/tree_split.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hinge::trees {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

struct Prefix {
  alignas(64) double g[kBins];
  alignas(64) double h[kBins];
  alignas(64) double c[kBins];
  alignas(64) double gain[kBins];
};

// gain[i] of sending the first i + 1 entries left; -infinity where a side would be too small.
HINGE_HOT void score(Prefix& p, int n, double G, double H, double C, double l2, double min_h, double min_c) {
  for (int i = 0; i < n; ++i) {
    const double gl = p.g[i], hl = p.h[i], gr = G - gl, hr = H - hl;
    const bool valid = (hl >= min_h) & (hr >= min_h) & (p.c[i] >= min_c) & (C - p.c[i] >= min_c);
    const double gain = gl * gl / (hl + l2) + gr * gr / (hr + l2);
    p.gain[i] = valid ? gain : kNone;
  }
}

// The same with values clipped to the bounds and, for a monotone feature, in the demanded order.
void score_bounded(Prefix& p, int n, const NodeSums& node, const SplitOptions& o, int direction, const Bounds& bounds) {
  const auto model = [&](double g, double h, double v) { return -(2.0 * g * v + (h + o.l2) * v * v); };
  for (int i = 0; i < n; ++i) {
    const double gl = p.g[i], hl = p.h[i], gr = node.g - gl, hr = node.h - hl;
    p.gain[i] = kNone;
    if (hl < o.min_hessian || hr < o.min_hessian || p.c[i] < static_cast<double>(o.min_count) ||
        static_cast<double>(node.c) - p.c[i] < static_cast<double>(o.min_count))
      continue;
    const double vl = bounds.clip(-gl / (hl + o.l2)), vr = bounds.clip(-gr / (hr + o.l2));
    if ((direction > 0 && vl > vr) || (direction < 0 && vl < vr)) continue;
    p.gain[i] = model(gl, hl, vl) + model(gr, hr, vr);
  }
}

bool unbounded(const Bounds& b) { return std::isinf(b.lower) && std::isinf(b.upper); }

int best_position(Prefix& p, int n, const NodeSums& node, const SplitOptions& o, int direction, const Bounds& bounds) {
  if (direction == 0 && unbounded(bounds))
    score(p, n, node.g, node.h, static_cast<double>(node.c), o.l2, o.min_hessian, static_cast<double>(o.min_count));
  else
    score_bounded(p, n, node, o, direction, bounds);
  int best = -1;
  double gain = kNone;
  for (int i = 0; i < n; ++i)
    if (p.gain[i] > gain) gain = p.gain[i], best = i;
  return best;
}

double own_score(const NodeSums& node, const SplitOptions& o, const Bounds& bounds) {
  const double v = leaf_value(node, o.l2, bounds);
  return -(2.0 * node.g * v + (node.h + o.l2) * v * v);
}

void fill(Split& s, const Prefix& p, int at, const NodeSums& node, const SplitOptions& o, const Bounds& bounds) {
  s.left = {p.g[at], p.h[at], static_cast<std::int64_t>(p.c[at])};
  s.right = {node.g - p.g[at], node.h - p.h[at], node.c - s.left.c};
  s.left_value = leaf_value(s.left, o.l2, bounds);
  s.right_value = leaf_value(s.right, o.l2, bounds);
}

}  // namespace

double leaf_value(const NodeSums& s, double l2, const Bounds& bounds) {
  const double h = s.h + l2;
  return bounds.clip(h > 0 ? -s.g / h : 0.0);
}

Split best_split(const Cell* cells, const Feature& feature, std::int32_t index, const NodeSums& node, double g_unit,
                 double h_unit, int direction, const Bounds& bounds, const SplitOptions& options) {
  Split best;
  const Cell& missing = cells[kMissing];
  const double parent = own_score(node, options, bounds);
  const double least = std::max(options.min_gain, 1e-12 * std::fabs(parent));
  Prefix p;

  if (feature.categorical) {
    // Ordered by mean gradient, one of the prefixes is the best of all two-set splits (Fisher 1958).
    int order[kBins], n = 0;
    double key[kBins];
    for (int b = 0; b < feature.bins; ++b) {
      if (cells[b].c == 0) continue;
      key[b] = static_cast<double>(cells[b].g) * g_unit /
               (static_cast<double>(cells[b].h) * h_unit + options.category_smoothing);
      order[n++] = b;
    }
    std::stable_sort(order, order + n, [&](int a, int b) { return key[a] < key[b]; });
    Cell sum;
    for (int i = 0; i < n; ++i) {
      sum.add(cells[order[i]]);
      p.g[i] = static_cast<double>(sum.g) * g_unit, p.h[i] = static_cast<double>(sum.h) * h_unit;
      p.c[i] = static_cast<double>(sum.c);
    }
    // Without missing rows the last prefix is everything; with them it is "present against missing".
    const int at = best_position(p, missing.c > 0 ? n : n - 1, node, options, 0, bounds);
    if (at < 0 || !(p.gain[at] - parent > least)) return best;
    best.gain = p.gain[at] - parent;
    best.categorical = true;
    for (int i = 0; i <= at; ++i) best.set[order[i] >> 5] |= 1u << (order[i] & 31);
    best.feature = index;
    fill(best, p, at, node, options, bounds);
    best.missing_left = missing.c == 0 && best.left.c >= best.right.c;
    return best;
  }

  // Missing rows go right in the first pass and left in the second.
  for (int pass = 0; pass < (missing.c > 0 ? 2 : 1); ++pass) {
    Cell sum;
    if (pass == 1) sum.add(missing);
    for (int b = 0; b < feature.bins; ++b) {
      sum.add(cells[b]);
      p.g[b] = static_cast<double>(sum.g) * g_unit, p.h[b] = static_cast<double>(sum.h) * h_unit;
      p.c[b] = static_cast<double>(sum.c);
    }
    const int n = pass == 0 && missing.c > 0 ? feature.bins : feature.bins - 1;
    const int at = best_position(p, n, node, options, direction, bounds);
    if (at < 0) continue;
    const double gain = p.gain[at] - parent;
    if (!(gain > least) || gain <= best.gain) continue;
    best.gain = gain;
    best.feature = index;
    fill(best, p, at, node, options, bounds);
    best.missing_left = missing.c > 0 ? pass == 1 : best.left.c >= best.right.c;
    // The last bin with rows on the left and the first one on the right: the threshold is half way between.
    int last = at, next = at + 1;
    while (last > 0 && cells[last].c == 0) --last;
    while (next < feature.bins && cells[next].c == 0) ++next;
    best.bin = last;
    best.threshold =
        next < feature.bins ? split_threshold(feature, last, next) : std::numeric_limits<double>::infinity();
  }
  return best;
}

}  // namespace hinge::trees
