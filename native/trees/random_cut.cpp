// Random splits (Geurts et al. 2006), one for a feature: a threshold between its smallest and its largest value in the
// node, or a subset of its categories in the node.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "trees/grower.hpp"

namespace hinge::trees::cart {
namespace {

using Lanes [[gnu::vector_size(64), gnu::aligned(8), gnu::may_alias]] = double;

// The minimum and maximum of some numbers, ignoring missing ones. True if any is missing.
HINGE_HOT bool extremes(const double* v, index_t n, double& low, double& high) {
  Lanes least = Lanes{} + low, most = Lanes{} + high, absent = {};
  index_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const Lanes x = *reinterpret_cast<const Lanes*>(v + i);
    least = x < least ? x : least, most = x > most ? x : most;
    absent = x != x ? Lanes{} + 1.0 : absent;
  }
  double any = 0;
  for (int k = 0; k < 8; ++k) low = std::min(low, least[k]), high = std::max(high, most[k]), any += absent[k];
  for (; i < n; ++i) {
    low = v[i] < low ? v[i] : low, high = v[i] > high ? v[i] : high;
    any += v[i] != v[i];
  }
  return any > 0;
}

// Sums of three columns over the rows whose value is at most t.
HINGE_HOT void sums_below(const double* __restrict v, const double* __restrict c, const double* __restrict w,
                          const double* __restrict y, index_t n, double t, double* __restrict out) {
  double count = 0, weight = 0, sum = 0;
  for (index_t i = 0; i < n; ++i) {
    const bool below = v[i] <= t;
    count += below ? c[i] : 0.0, weight += below ? w[i] : 0.0, sum += below ? y[i] : 0.0;
  }
  out[0] = count, out[1] = weight, out[2] = sum;
}

}  // namespace

bool Grower::take_random(const Node& node, index_t j, const Scratch& s, double score, bool missing_left,
                         Cut& best) const {
  if (!clearly_better(score, best.score)) return false;
  best.score = score;
  best.feature = static_cast<std::int32_t>(j);
  best.categorical = false;
  best.missing_left = s.missing[0] > 0 ? missing_left : 2 * s.left[0] > node.total[0];
  return true;
}

double Grower::class_score(const Node& node, index_t m, double most, Scratch& s) const {
  const double* total = node.total.data() + 2;
  std::vector<double>& tally = s.of_class;
  tally.resize(o_.classes, 0.0);
  double count = 0, weight = 0, left = 0, right = s.squares;
  for (index_t i = 0; i < m; ++i) {
    if (s.value[i] > most) continue;
    const double w = s.local_w[i];
    double& t = tally[static_cast<int>(s.local_y[i])];
    left += w * (2 * t + w);
    right -= w * (2 * (total[static_cast<int>(s.local_y[i])] - t) - w);
    t += w, weight += w, count += s.local_c[i];
  }
  for (index_t i = 0; i < m; ++i) tally[static_cast<int>(s.local_y[i])] = 0.0;
  s.left.resize(channels_);
  s.left[0] = count, s.left[1] = weight;
  const double rest = node.total[1] - weight;
  return (weight > 0 ? left / weight : 0.0) + (rest > 0 ? right / rest : 0.0);
}

bool Grower::try_cells(const Node& node, index_t j, Scratch& s, Cut& best) const {
  const index_t m = node.end - node.begin;
  const std::uint32_t* rows = order_.data() + node.begin;
  s.value.resize(m);
  cells_->gather(rows, m, j, s.value.data());
  double low = kInf, high = -kInf;
  const bool missing = extremes(s.value.data(), m, low, high), one_value = low == high;
  if (low > high || (one_value && !missing)) return false;
  s.missing.assign(channels_, 0.0);
  if (missing)
    for (index_t i = 0; i < m; ++i)
      if (s.value[i] != s.value[i]) add_row(s.missing.data(), rows[i]);
  Random random(seed_ ^ mix64(node.key), static_cast<std::uint64_t>(j) + 1);
  const double u = random.uniform(), drawn = low + u * (high - low);
  const bool missing_left = missing && !one_value && random.uniform() < 0.5;
  // Whatever the rounding, the smallest value goes left and the largest right; a single value cannot be split.
  const bool between = drawn >= low && drawn < high;
  const double most = one_value ? low : between ? drawn : std::nextafter(high, -kInf);
  const auto threshold = [&] {
    if (one_value) return kInf;
    if (between) return drawn;
    double below = low;
    for (index_t i = 0; i < m; ++i)
      if (s.value[i] <= most) below = std::max(below, s.value[i]);
    return middle_of(below, high);
  };
  if (by_class_ && !missing) {
    const double score = class_score(node, m, most, s);
    if (allowed(s.left.data(), node.total.data()) && take_random(node, j, s, score, false, best))
      best.threshold = cells_->settled(j, threshold());
    return true;
  }
  s.left.assign(channels_, 0.0);
  if (channels_ == 3) {
    sums_below(s.value.data(), s.local_c.data(), s.local_w.data(), s.local_y.data(), m, most, s.left.data());
  } else {
    for (index_t i = 0; i < m; ++i)
      if (s.value[i] <= most) add_row(s.left.data(), rows[i]);
  }
  if (missing_left)
    for (int c = 0; c < channels_; ++c) s.left[c] += s.missing[c];
  if (!allowed(s.left.data(), node.total.data())) return true;
  double score;
  if (o_.criterion == Criterion::absolute) {
    const std::uint32_t left = 0;
    absolute_scores(s, &left, 1, missing_left, &score, [&](int target) {
      s.absolute.items.clear();
      for (index_t i = 0; i < m; ++i) {
        const double v = s.value[i];
        s.absolute.items.push_back({targets(rows[i])[target], weight(rows[i]), v != v ? kAbsent : v <= most ? 0u : 1u});
      }
    });
  } else {
    score = cut_score(o_.criterion, o_.classes, s.left.data(), node.total.data(), channels_);
  }
  if (!monotone(node, j, s.left.data(), s, 0) || !take_random(node, j, s, score, missing_left, best)) return true;
  best.threshold = cells_->settled(j, threshold());
  return true;
}

index_t Grower::draw_categories(const Node& node, index_t j, bool missing, std::vector<index_t>& order) const {
  const Random random(seed_ ^ mix64(node.key), static_cast<std::uint64_t>(j) + 1);
  const index_t g = static_cast<index_t>(order.size());
  std::iota(order.begin(), order.end(), index_t{0});
  const auto right =
      std::stable_partition(order.begin(), order.end(), [&](index_t i) { return random.uniform_at(i) < 0.5; });
  const index_t left = right - order.begin();
  if (left > 0 && (left < g || missing)) return left;
  // One side is empty: a category that is drawn changes sides. Missing values alone may be on the right.
  const auto moved = static_cast<index_t>(random.uniform_at(g) * g);
  std::swap(order[moved], left == 0 ? order.front() : order.back());
  return left == 0 ? 1 : g - 1;
}

bool Grower::try_random(const Node& node, index_t j, Scratch& s, Cut& best) const {
  const Feature& f = feature(j);
  const index_t m = node.end - node.begin;
  const Sorted::Entry *begin = s.first, *end = s.last, *last = end;
  s.missing.assign(channels_, 0.0);
  for (; last > begin && last[-1].code == kAbsent; --last) add_row(s.missing.data(), last[-1].row);
  const bool missing = last < end, zeros = end - begin < m;
  const std::uint32_t zero = nonzeros_->zero[j];
  if (last == begin && !(zeros && missing)) return false;
  const std::uint32_t first_code = last == begin ? zero : zeros ? std::min(zero, begin->code) : begin->code;
  const std::uint32_t last_code = last == begin ? zero : zeros ? std::max(zero, last[-1].code) : last[-1].code;
  const bool one_value = first_code == last_code;
  if (one_value && !missing) return false;
  Random random(seed_ ^ mix64(node.key), static_cast<std::uint64_t>(j) + 1);
  const double low = f.low[first_code], high = f.high[last_code], drawn = low + random.uniform() * (high - low);
  const bool missing_left = missing && !one_value && random.uniform() < 0.5;
  const auto goes_left = [&](std::uint32_t code) {
    return code == first_code || (code != last_code && f.high[code] <= drawn);
  };
  const Sorted::Entry* cut =
      std::partition_point(begin, last, [&](const Sorted::Entry& e) { return goes_left(e.code); });
  const bool zero_left = zeros && goes_left(zero);
  // Either sums the entries on the left, or subtracts those on the right from the total.
  if (zero_left) {
    s.left = node.total;
    s.sum.assign(channels_, 0.0);
    for (const Sorted::Entry* e = cut; e < end; ++e) add_row(s.sum.data(), e->row);
    for (int c = 0; c < channels_; ++c) s.left[c] -= s.sum[c];
  } else {
    s.left.assign(channels_, 0.0);
    for (const Sorted::Entry* e = begin; e < cut; ++e) add_row(s.left.data(), e->row);
  }
  if (missing_left)
    for (int c = 0; c < channels_; ++c) s.left[c] += s.missing[c];
  if (!allowed(s.left.data(), node.total.data())) return true;
  double score;
  if (o_.criterion == Criterion::absolute) {
    const std::uint32_t left = 0;
    absolute_scores(s, &left, 1, missing_left, &score, [&](int target) {
      list_targets(node, j, s, target);
      for (AbsoluteError::Item& item : s.absolute.items)
        if (item.code != kAbsent) item.code = goes_left(item.code) ? 0u : 1u;
    });
  } else {
    score = cut_score(o_.criterion, o_.classes, s.left.data(), node.total.data(), channels_);
  }
  if (!monotone(node, j, s.left.data(), s, 0) || !take_random(node, j, s, score, missing_left, best)) return true;
  best.code = cut > begin && !(zero_left && zero > cut[-1].code) ? cut[-1].code : zero;
  best.next = one_value ? kAbsent : cut < last && !(zeros && !zero_left && zero < cut->code) ? cut->code : zero;
  if (one_value)
    best.threshold = kInf;
  else if (drawn >= f.high[best.code] && drawn < f.low[best.next])
    best.threshold = drawn;
  else
    best.threshold = split_threshold(f, static_cast<int>(best.code), static_cast<int>(best.next));
  return true;
}

}  // namespace hinge::trees::cart
