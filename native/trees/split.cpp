#include "trees/split.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace hinge::trees {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();
constexpr int kLanes = 8;

// The quantities for scoring, in the integers of the cells.
struct Limits {
  double g, h;  // of the node
  std::int64_t c, min_c;
  double l2, min_h;
};

// gain[i] of sending the first i + 1 entries left, in units of g_unit^2 / h_unit; -infinity where a side would be too
// small. gain is padded to whole vectors.
template <class Sums>
HINGE_HOT void score(const Sums& p, int n, const Limits& at, double* __restrict gain) {
  for (int i = 0; i < n; ++i) {
    const double gl = static_cast<double>(p.g(i)), hl = static_cast<double>(p.h(i)), gr = at.g - gl, hr = at.h - hl;
    const std::int64_t c = p.c(i);
    const bool valid = (hl >= at.min_h) & (hr >= at.min_h) & (c >= at.min_c) & (at.c - c >= at.min_c);
    const double a = hl + at.l2, b = hr + at.l2;
    gain[i] = valid ? (gl * gl * b + gr * gr * a) / (a * b) : kNone;
  }
  for (int i = n; i % kLanes != 0; ++i) gain[i] = kNone;
}

// The index of the first maximum.
HINGE_HOT int first_largest(const double* __restrict gain, int n) {
  using Numbers [[gnu::vector_size(kLanes * 8)]] = double;
  using Places [[gnu::vector_size(kLanes * 8)]] = std::int64_t;
  Numbers top = Numbers{} + kNone;
  Places where = Places{} - 1;
  for (int i = 0; i < n; i += kLanes) {
    Numbers g;
    std::memcpy(&g, gain + i, sizeof g);
    const Places more = g > top;
    top = more ? g : top;
    where = more ? Places{} + i : where;
  }
  int best = -1;
  for (int k = 0; k < kLanes; ++k) {
    if (where[k] < 0) continue;
    const int at = static_cast<int>(where[k]) + k;
    if (best < 0 || gain[at] > gain[best] || (gain[at] == gain[best] && at < best)) best = at;
  }
  return best;
}

bool unbounded(const Bounds& b) { return std::isinf(b.lower) && std::isinf(b.upper); }

// The search on one feature of one node.
template <class Sums>
class Searcher {
 public:
  Searcher(const NodeSums& node, int direction, const SplitOptions& options)
      : node_(node), o_(options), direction_(direction), free_(direction == 0 && unbounded(node.bounds)) {
    const double g = real_g(node.total.g), h = real_h(node.total.h);
    const double v = leaf_value(g, h, o_.l2, node.bounds);
    parent_ = -(2.0 * g * v + (h + o_.l2) * v * v);
    least_ = std::max(o_.min_gain, 1e-12 * std::fabs(parent_));
  }

  Sums sums;

  // The best prefix among the first n and its gain; -1 if it gains too little.
  int best(int n, double& gain) {
    const double scale = free_ ? node_.unit.g * node_.unit.g / node_.unit.h : 1.0;
    if (free_)
      score(sums, n,
            {static_cast<double>(node_.total.g), static_cast<double>(node_.total.h), node_.total.c, o_.min_count,
             o_.l2 / node_.unit.h, o_.min_hessian / node_.unit.h},
            gain_);
    else
      score_bounded(n);
    const int at = first_largest(gain_, n);
    if (at < 0) return -1;
    gain = gain_[at] * scale - parent_;
    return gain > least_ ? at : -1;
  }

  void record(Split& s, int at, double gain, std::int32_t feature) const {
    s = Split{};
    s.gain = gain, s.feature = feature;
    s.left = {sums.g(at), sums.h(at), sums.c(at)};
    s.right = node_.total;
    s.right -= s.left;
    s.left_value = leaf_value(s.left, node_.unit, o_.l2, node_.bounds);
    s.right_value = leaf_value(s.right, node_.unit, o_.l2, node_.bounds);
  }

 private:
  double real_g(std::int64_t g) const { return static_cast<double>(g) * node_.unit.g; }
  double real_h(std::int64_t h) const { return static_cast<double>(h) * node_.unit.h; }

  // Scores with leaf values clipped to the bounds and, for a monotone feature, in the required order.
  void score_bounded(int n) {
    const auto model = [&](double g, double h, double v) { return -(2.0 * g * v + (h + o_.l2) * v * v); };
    const double G = real_g(node_.total.g), H = real_h(node_.total.h);
    std::fill_n(gain_, (n + kLanes - 1) / kLanes * kLanes, kNone);
    for (int i = 0; i < n; ++i) {
      const double gl = real_g(sums.g(i)), hl = real_h(sums.h(i)), gr = G - gl, hr = H - hl;
      if (hl < o_.min_hessian || hr < o_.min_hessian || sums.c(i) < o_.min_count ||
          node_.total.c - sums.c(i) < o_.min_count)
        continue;
      const double vl = node_.bounds.clip(-gl / (hl + o_.l2)), vr = node_.bounds.clip(-gr / (hr + o_.l2));
      if ((direction_ > 0 && vl > vr) || (direction_ < 0 && vl < vr)) continue;
      gain_[i] = model(gl, hl, vl) + model(gr, hr, vr);
    }
  }

  const NodeSums& node_;
  const SplitOptions& o_;
  int direction_;
  bool free_;
  double parent_, least_;
  alignas(64) double gain_[kBins];
};

}  // namespace

double leaf_value(double g, double h, double l2, const Bounds& bounds) {
  return bounds.clip(h + l2 > 0 ? -g / (h + l2) : 0.0);
}

template <class Sums>
void improve(const typename Sums::Entry* cells, const Feature& feature, std::int32_t index, const NodeSums& node,
             int direction, const SplitOptions& options, Split& best) {
  using Entry = typename Sums::Entry;
  Searcher<Sums> search(node, feature.categorical ? 0 : direction, options);
  const auto count = [&](int b) { return Sums::wide(cells[b]).c; };
  const bool missing = feature.missing && count(kMissing) > 0;
  double gain;

  if (feature.categorical) {
    // In the order of mean gradient, one of the prefixes is the best of all two-set splits (Fisher 1958).
    int order[kBins], n = 0;
    double key[kBins];
    for (int b = 0; b < feature.bins; ++b) {
      const Cell cell = Sums::wide(cells[b]);
      if (cell.c == 0) continue;
      key[b] = static_cast<double>(cell.g) * node.unit.g /
               (static_cast<double>(cell.h) * node.unit.h + options.category_smoothing);
      order[n++] = b;
    }
    std::stable_sort(order, order + n, [&](int a, int b) { return key[a] < key[b]; });
    Entry sum{};
    for (int i = 0; i < n; ++i) search.sums.set(i, sum += cells[order[i]]);
    // Without missing rows the last prefix contains everything; with them it is "present against missing".
    const int at = search.best(missing ? n : n - 1, gain);
    if (at < 0 || !best.loses_to(gain, index)) return;
    search.record(best, at, gain, index);
    best.categorical = true;
    for (int i = 0; i <= at; ++i) best.set[order[i] >> 5] |= 1u << (order[i] & 31);
    best.missing_left = !missing && best.left.c > best.right.c;
    return;
  }

  // Missing rows go right in the first pass and left in the second.
  for (int pass = 0; pass < (missing ? 2 : 1); ++pass) {
    Entry sum = pass == 1 ? cells[kMissing] : Entry{};
    for (int b = 0; b < feature.bins; ++b) search.sums.set(b, sum += cells[b]);
    const int at = search.best(pass == 0 && missing ? feature.bins : feature.bins - 1, gain);
    if (at < 0 || !best.loses_to(gain, index)) continue;
    search.record(best, at, gain, index);
    best.missing_left = missing ? pass == 1 : best.left.c > best.right.c;
    // The last bin with rows on the left and the first one on the right: the threshold is midway between their values.
    int last = at, next = at + 1;
    while (last > 0 && count(last) == 0) --last;
    while (next < feature.bins && count(next) == 0) ++next;
    best.bin = last;
    best.threshold =
        next < feature.bins ? split_threshold(feature, last, next) : std::numeric_limits<double>::infinity();
  }
}

template <class Sums>
void improve_pairs(const typename Sums::Entry* cells, const typename Sums::Entry& total, const std::vector<Part>& parts,
                   const std::vector<Feature>& features, const NodeSums& node, const SplitOptions& options,
                   Split& best) {
  Searcher<Sums> search(node, 0, options);
  int n = 0;
  for (const Part& part : parts) {
    typename Sums::Entry zero = cells[part.first];
    if (part.usual == 0) {
      zero = total;
      zero -= cells[part.first];
    }
    search.sums.set(n++, zero);
  }
  double gain;
  const int at = search.best(n, gain);
  if (at < 0) return;
  const auto index = static_cast<std::int32_t>(parts[at].feature);
  if (!best.loses_to(gain, index)) return;
  search.record(best, at, gain, index);
  best.missing_left = best.left.c > best.right.c;
  best.threshold = split_threshold(features[index], 0, 1);
}

#define HINGE_SUMS(...)                                                                                             \
  template void improve<__VA_ARGS__>(const __VA_ARGS__::Entry*, const Feature&, std::int32_t, const NodeSums&, int, \
                                     const SplitOptions&, Split&);                                                  \
  template void improve_pairs<__VA_ARGS__>(const __VA_ARGS__::Entry*, const __VA_ARGS__::Entry&,                    \
                                           const std::vector<Part>&, const std::vector<Feature>&, const NodeSums&,  \
                                           const SplitOptions&, Split&);
HINGE_SUMS(WideSums)
HINGE_SUMS(NarrowSums<Packed>)
HINGE_SUMS(NarrowSums<Constant>)
#undef HINGE_SUMS

}  // namespace hinge::trees
