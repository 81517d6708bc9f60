// Splits of one feature from the sorted rows: for Gini with several classes, and for several targets.
//
// A side with class weights n_c has the score sum n_c^2 / W. Adding a row of class c and weight w increases the sum by
// w (2 n_c + w). Two passes, from the left and from the right, therefore score all cuts in a time that does not depend
// on the number of classes. All terms are positive, so nothing cancels.
#include <algorithm>

#include "trees/grower.hpp"

namespace hinge::trees::cart {
namespace {

// Up to this many rows insertion sort is faster than counting sort.
constexpr index_t kFewRows = 48;

// Sorts keys code * 2^24 + place by code; equal codes stay in order of place.
void sort_keys(std::vector<std::uint32_t>& key) {
  const auto m = static_cast<index_t>(key.size());
  if (m <= kFewRows) {
    for (index_t i = 1; i < m; ++i) {
      const std::uint32_t k = key[i];
      index_t at = i;
      for (; at > 0 && key[at - 1] > k; --at) key[at] = key[at - 1];
      key[at] = k;
    }
    return;
  }
  index_t begin[kBins + 1] = {};
  for (const std::uint32_t k : key) ++begin[(k >> 24) + 1];
  for (int b = 0; b < kBins; ++b) begin[b + 1] += begin[b];
  std::vector<std::uint32_t> sorted(m);
  for (const std::uint32_t k : key) sorted[begin[k >> 24]++] = k;
  key.swap(sorted);
}

// The class weights of one side, and the sum of their squares.
struct Side {
  double* tally;
  double squares = 0, weight = 0, count = 0;

  void add(const Step& row) {
    double& t = tally[row.label];
    squares += row.weight * (2 * t + row.weight);
    t += row.weight;
    weight += row.weight, count += row.count;
  }
  void add(const double* stats, int classes) {
    count += stats[0], weight += stats[1], squares = 0;
    for (int c = 0; c < classes; ++c) {
      tally[c] += stats[2 + c];
      squares += tally[c] * tally[c];
    }
  }
  double score() const { return weight > 0 ? squares / weight : 0.0; }
};

// Adds w y to left, then returns the sums of squares of left and of total − left.
HINGE_HOT std::pair<double, double> add_and_square(double* __restrict left, const double* __restrict total,
                                                   const double* __restrict y, double w, int n) {
  double a = 0, b = 0;
  for (int k = 0; k < n; ++k) {
    const double l = left[k] + w * y[k], r = total[k] - l;
    left[k] = l;
    a += l * l, b += r * r;
  }
  return {a, b};
}

}  // namespace

void Grower::sort_rows(const Node& node, index_t j, Scratch& s) const {
  const index_t m = node.end - node.begin;
  const std::uint8_t* column = bins_->col(j);
  const std::uint32_t* order = order_.data() + node.begin;
  s.steps.key.resize(m);
  for (index_t i = 0; i < m; ++i)
    s.steps.key[i] = static_cast<std::uint32_t>(column[order[i]]) << 24 | static_cast<std::uint32_t>(i);
  sort_keys(s.steps.key);
}

bool Grower::try_targets(const Node& node, index_t j, Scratch& s, Cut& best) const {
  const index_t m = node.end - node.begin;
  if (!sorted_) sort_rows(node, j, s);
  const Sorted::Entry* entries = sorted_ ? list(j, node) : nullptr;
  const std::uint32_t* order = order_.data() + node.begin;
  const auto code = [&](index_t i) { return sorted_ ? entries[i].code : s.steps.key[i] >> 24; };
  if (code(0) == code(m - 1)) return false;
  s.left.assign(channels_, 0.0);
  for (index_t i = 0; i + 1 < m; ++i) {
    const std::uint32_t row = sorted_ ? entries[i].row : order[s.steps.key[i] & 0xffffffu];
    const double w = weight(row);
    const auto [a, b] = add_and_square(s.left.data() + 2, node.total.data() + 2, targets(row), w, o_.targets);
    s.left[0] += count(row), s.left[1] += w;
    if (code(i) == code(i + 1)) continue;
    const double score = a / s.left[1] + b / (node.total[1] - s.left[1]);
    if (!clearly_better(score, best.score) || !allowed(s.left.data(), node.total.data())) continue;
    best.score = score;
    best.feature = static_cast<std::int32_t>(j);
    best.code = code(i), best.next = code(i + 1);
    best.categorical = false;
    best.missing_left = 2 * s.left[0] > node.total[0];
    best.threshold = split_threshold(feature(j), static_cast<int>(best.code), static_cast<int>(best.next));
  }
  return true;
}

void Grower::list_classes(const Node& node, index_t j, Scratch& s) const {
  const index_t m = node.end - node.begin;
  Steps& steps = s.steps;
  steps.rows.clear(), steps.absent.clear(), steps.end.clear();
  steps.zero = -1;
  Prefixes& p = s.prefix;
  const auto step = [&](std::uint32_t row) {
    return Step{static_cast<std::int32_t>(y_[row]), weight(row), count(row)};
  };
  p.reserve(2, m);
  const auto place = [&](std::uint32_t code, const Step& row) {
    const auto groups = static_cast<index_t>(steps.end.size());
    if (groups == 0 || p.code[groups - 1] != code) p.code[groups] = code, steps.end.push_back(0);
    steps.rows.push_back(row);
    steps.end.back() = static_cast<index_t>(steps.rows.size());
  };
  if (sorted_) {
    const Sorted::Entry* e = list(j, node);
    for (index_t i = 0; i < m; ++i)
      if (e[i].code != kAbsent)
        place(e[i].code, step(e[i].row));
      else
        steps.absent.push_back(step(e[i].row));
  } else if (nonzeros_) {
    const Sorted::Entry *e = s.first, *end = s.last;
    const std::uint32_t zero = nonzeros_->zero[j];
    steps.rest = node.total;
    const auto place_zero = [&] {
      const auto groups = static_cast<index_t>(steps.end.size());
      steps.zero = groups;
      p.code[groups] = zero;
      steps.end.push_back(static_cast<index_t>(steps.rows.size()));
    };
    bool placed = end - e == m;
    for (; e < end; ++e) {
      const Step row = step(e->row);
      steps.rest[0] -= row.count, steps.rest[1] -= row.weight, steps.rest[2 + row.label] -= row.weight;
      if (!placed && e->code > zero) place_zero(), placed = true;  // missing values have the largest code
      if (e->code != kAbsent)
        place(e->code, row);
      else
        steps.absent.push_back(row);
    }
    if (!placed) place_zero();
  } else {
    sort_rows(node, j, s);
    for (const std::uint32_t key : steps.key) {
      const std::uint32_t i = key & 0xffffffu;
      const Step row{static_cast<std::int32_t>(s.local_y[i]), s.local_w[i], s.local_c[i]};
      if (key >> 24 != kMissing)
        place(key >> 24, row);
      else
        steps.absent.push_back(row);
    }
  }
  p.groups = static_cast<index_t>(steps.end.size());
  s.missing.assign(1, 0.0);
  for (const Step& row : steps.absent) s.missing[0] += row.count;
}

void Grower::scan_classes(Scratch& s, bool missing_left) const {
  Steps& steps = s.steps;
  Prefixes& p = s.prefix;
  const auto add_group = [&](Side& side, index_t g) {
    if (g == steps.zero) return side.add(steps.rest.data(), o_.classes);
    for (index_t i = g > 0 ? steps.end[g - 1] : 0; i < steps.end[g]; ++i) side.add(steps.rows[i]);
  };
  const auto start = [&](bool missing) {
    steps.tally.assign(o_.classes, 0.0);
    Side side{steps.tally.data()};
    if (missing)
      for (const Step& row : steps.absent) side.add(row);
    return side;
  };
  Side left = start(missing_left);
  for (index_t g = 0; g < p.groups; ++g) {
    add_group(left, g);
    p.at(0)[g] = left.count, p.at(1)[g] = left.weight, p.score[g] = left.score();
  }
  Side right = start(!missing_left);
  for (index_t g = p.groups; g-- > 0;) {
    p.score[g] += right.score();
    add_group(right, g);
  }
}

}  // namespace hinge::trees::cart
