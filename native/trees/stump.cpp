#include "trees/stump.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/pool.hpp"
#include "trees/scan.hpp"

namespace hinge::trees {
namespace {

constexpr index_t kAbreast = 4;  // features with adjacent bytes
constexpr index_t kRuns = 256;
constexpr double kLowest = -std::numeric_limits<double>::infinity();
// Scores within the slack of clearly_better are equal. A run that may win a tie by being first is searched as well.
constexpr double kEqual = 2e-10;

// Adds the weights of the rows to the cells of their runs (kAbreast x kRuns).
void tally(const std::uint8_t* codes, const double* weight, index_t rows, double* cells) {
  for (index_t i = 0; i < rows; ++i) {
    std::uint32_t word;
    std::memcpy(&word, codes + i * kAbreast, kAbreast);
    const double w = weight[i];
    cells[word & 255] += w;
    cells[kRuns + (word >> 8 & 255)] += w;
    cells[2 * kRuns + (word >> 16 & 255)] += w;
    cells[3 * kRuns + (word >> 24)] += w;
  }
}

// Weight and weight of class 1 on each side.
HINGE_HOT void sum_sides(const std::uint8_t* __restrict right, const std::uint8_t* __restrict y,
                         const double* __restrict weight, index_t n, double* left_sums, double* right_sums) {
  double l0 = 0, l1 = 0, r0 = 0, r1 = 0;
  for (index_t i = 0; i < n; ++i) {
    const double a = y[i] ? 0.0 : weight[i], b = y[i] ? weight[i] : 0.0;
    l0 += right[i] ? 0.0 : a, l1 += right[i] ? 0.0 : b;
    r0 += right[i] ? a : 0.0, r1 += right[i] ? b : 0.0;
  }
  left_sums[0] = l0 + l1, left_sums[1] = l1;
  right_sums[0] = r0 + r1, right_sums[1] = r1;
}

}  // namespace

struct Stumps::Cut {
  double score = kLowest;
  index_t feature = -1, left = 0;  // rows on the left, in the order of the sorted column
};

Stumps::Stumps(std::shared_ptr<const Sorted> sorted, const double* y)
    : sorted_(std::move(sorted)), n_(sorted_->rows), d_(sorted_->cols), groups_((d_ + kAbreast - 1) / kAbreast) {
  y_.resize(n_);
  for (index_t i = 0; i < n_; ++i) y_[i] = y[i] > 0;
  for (const std::uint8_t c : {0, 1})
    for (index_t i = 0; i < n_; ++i)
      if (y_[i] == c) by_class_.push_back(static_cast<std::uint32_t>(i));
  zeros_ = std::count(y_.begin(), y_.end(), 0);
  runs_.resize(d_);
  make_runs();
  make_codes();
}

// Divides the rows into runs of nearly equal length, without separating equal values.
void Stumps::make_runs() {
  parallel_for(d_, [&](index_t j) {
    const Sorted::Entry* e = sorted_->entries.data() + j * n_;
    Runs& runs = runs_[j];
    const bool few = e[n_ - 1].code < kRuns;  // one run per value
    index_t i = 0;
    while (i < n_) {
      runs.begin.push_back(i);
      const index_t left = kRuns - static_cast<index_t>(runs.one.size());
      const index_t length = few ? 1 : (n_ - i + left - 1) / left;
      const index_t begin = i;
      for (index_t end = i + length; i < n_ && (i < end || e[i].code == e[i - 1].code);) ++i;
      runs.one.push_back(e[begin].code == e[i - 1].code);
    }
    runs.begin.push_back(n_);
  });
}

void Stumps::make_codes() {
  codes_.resize(groups_ * n_ * kAbreast);
  std::vector<std::uint32_t> place(n_);
  for (index_t i = 0; i < n_; ++i) place[by_class_[i]] = static_cast<std::uint32_t>(i);
  parallel_for(d_, [&](index_t j) {
    const Sorted::Entry* e = sorted_->entries.data() + j * n_;
    std::uint8_t* codes = codes_.data() + j / kAbreast * n_ * kAbreast + j % kAbreast;
    for (index_t r = 0; r < runs_[j].size(); ++r)
      for (index_t i = runs_[j].begin[r]; i < runs_[j].begin[r + 1]; ++i)
        codes[place[e[i].row] * kAbreast] = static_cast<std::uint8_t>(r);
  });
}

bool Stumps::admissible(index_t count, double w, double total, const CartOptions& o) const {
  return count > 0 && count < n_ && static_cast<double>(count) >= o.min_samples_leaf &&
         static_cast<double>(n_ - count) >= o.min_samples_leaf && w >= o.min_weight_leaf &&
         total - w >= o.min_weight_leaf;
}

void Stumps::measure(index_t group, const double* by_class, const CartOptions& o, std::vector<Edges>& edges) const {
  double cells[2][kAbreast * kRuns] = {};
  const std::uint8_t* codes = codes_.data() + group * n_ * kAbreast;
  tally(codes, by_class, zeros_, cells[0]);
  tally(codes + zeros_ * kAbreast, by_class + zeros_, n_ - zeros_, cells[1]);
  for (index_t j = group * kAbreast; j < std::min(d_, (group + 1) * kAbreast); ++j) {
    const double *zero = cells[0] + j % kAbreast * kRuns, *one = cells[1] + j % kAbreast * kRuns;
    const Runs& runs = runs_[j];
    const index_t m = runs.size();
    Edges& e = edges[j];
    e.w.assign(m + 1, 0.0), e.s.assign(m + 1, 0.0);
    for (index_t r = 0; r < m; ++r) {
      e.w[r + 1] = e.w[r] + (zero[r] + one[r]);
      e.s[r + 1] = e.s[r] + one[r];
    }
    const double total[3] = {static_cast<double>(n_), e.w[m], e.s[m]};
    Prefixes& p = e.prefix;
    p.reserve(3, m);
    // The corners of every run: (a, b) after it (and so before the next), then with the rows of only one class added.
    // If a side is empty the score is undefined, and there is no cut.
    e.bound.assign(m, kLowest), e.best = kLowest;
    for (int corner = 0; corner < 3; ++corner) {
      for (index_t r = 0; r < m; ++r) {
        p.at(2)[r] = e.s[corner == 2 ? r : r + 1];
        p.at(1)[r] = p.at(2)[r] + (corner == 1 ? e.w[r] - e.s[r] : e.w[r + 1] - e.s[r + 1]);
      }
      score_prefixes(o.criterion, 2, p, m, total);
      for (index_t r = 0; r < m; ++r) {
        if (p.score[r] > e.bound[r]) e.bound[r] = p.score[r];
        if (corner == 0 && r > 0 && p.score[r - 1] > e.bound[r]) e.bound[r] = p.score[r - 1];
      }
      if (corner > 0) continue;
      for (index_t r = 0; r + 1 < m; ++r)
        if (p.score[r] > e.best && admissible(runs.begin[r + 1], e.w[r + 1], total[1], o)) e.best = p.score[r];
    }
  }
}

// The best cut inside or at the end of the runs whose bound is at least this score.
Stumps::Cut Stumps::look_inside(index_t j, const Edges& edges, double least, const double* signed_weight,
                                const CartOptions& o) const {
  const Sorted::Entry* e = sorted_->entries.data() + j * n_;
  const Runs& runs = runs_[j];
  const double total[3] = {static_cast<double>(n_), edges.w.back(), edges.s.back()};
  thread_local Prefixes kept;
  Prefixes& p = kept;
  Cut best;
  for (index_t r = 0; r < runs.size(); ++r) {
    if (!(edges.bound[r] >= least)) continue;
    const index_t begin = runs.begin[r], end = runs.begin[r + 1];
    p.reserve(3, end - begin);
    double *w = p.at(1), *s = p.at(2);
    index_t cuts = 0;
    if (runs.one[r]) {
      w[0] = edges.w[r + 1], s[0] = edges.s[r + 1], p.code[0] = static_cast<std::uint32_t>(end);
      cuts = 1;
    } else {
      double sum = edges.w[r], ones = edges.s[r];
      for (index_t i = begin; i < end; ++i) {
        const double here = signed_weight[e[i].row], size = std::fabs(here);
        sum += size, ones += 0.5 * (here + size);  // exact, and no branch on the class
        w[cuts] = sum, s[cuts] = ones, p.code[cuts] = static_cast<std::uint32_t>(i + 1);  // rows on the left
        cuts += i + 1 == n_ || e[i].code != e[i + 1].code;
      }
    }
    score_prefixes(o.criterion, 2, p, cuts, total);
    for (index_t k = 0; k < cuts; ++k)
      if (p.score[k] > best.score && clearly_better(p.score[k], best.score) && admissible(p.code[k], w[k], total[1], o))
        best = {p.score[k], j, p.code[k]};
  }
  return best;
}

CartTree Stumps::grow(const double* weight, const CartOptions& o, std::uint8_t* predicted) const {
  std::vector<double> by_class(n_), signed_weight(n_);
  for (index_t i = 0; i < n_; ++i) by_class[i] = weight[by_class_[i]];
  for (index_t i = 0; i < n_; ++i) signed_weight[i] = y_[i] ? weight[i] : -weight[i];
  std::vector<Edges> edges(d_);
  parallel_for(groups_, [&](index_t group) { measure(group, by_class.data(), o, edges); });
  double least = kLowest;
  for (const Edges& e : edges) least = std::max(least, e.best);
  least -= kEqual * std::fabs(least);
  std::vector<Cut> found(d_);
  parallel_for(d_, [&](index_t j) { found[j] = look_inside(j, edges[j], least, signed_weight.data(), o); });
  Cut best;
  for (const Cut& cut : found)
    if (clearly_better(cut.score, best.score)) best = cut;

  return finish(best, weight, o, predicted);
}

// The cut as a tree. Each side is summed over its rows: a difference would leave rounding errors for an absent class.
CartTree Stumps::finish(const Cut& cut, const double* weight, const CartOptions& o, std::uint8_t* predicted) const {
  const Sorted::Entry* e = sorted_->entries.data() + std::max<index_t>(0, cut.feature) * n_;
  const index_t lefts = cut.feature >= 0 ? cut.left : n_;
  std::fill_n(predicted, n_, std::uint8_t{0});
  for (index_t i = lefts; i < n_; ++i) predicted[e[i].row] = 1;
  double sums[3][3] = {};  // of all, left and right: rows, weight, weight of class 1
  sums[1][0] = static_cast<double>(lefts), sums[2][0] = static_cast<double>(n_ - lefts);
  sum_sides(predicted, y_.data(), weight, n_, sums[1] + 1, sums[2] + 1);
  for (int c = 0; c < 3; ++c) sums[0][c] = sums[1][c] + sums[2][c];

  const auto score = [&](int node) { return side_score(o.criterion, 2, sums[node], 3); };
  const double fall = std::max(0.0, cut.score - score(0));
  const bool split = cut.feature >= 0 && zeros_ > 0 && zeros_ < n_ && sums[0][0] >= o.min_samples_split &&
                     fall / sums[0][1] + 1e-15 >= o.min_decrease;
  CartTree tree;
  Nodes& t = tree.nodes;
  std::uint8_t leaf_class[3];
  for (int node = 0; node < (split ? 3 : 1); ++node) {
    const double share = share_of(sums[node][2], sums[node][1]), quality = score(node) / sums[node][1];
    t.add(1.0 - share, sums[node][1], static_cast<std::int64_t>(sums[node][0]));
    t.value.push_back(share);
    tree.impurity.push_back(std::max(0.0, (o.criterion == Criterion::entropy ? 0.0 : 1.0) - quality));
    leaf_class[node] = share > 1.0 - share;
  }
  if (split) {
    t.feature[0] = static_cast<std::int32_t>(cut.feature);
    t.left[0] = 1;
    t.threshold[0] = split_threshold(sorted_->features[cut.feature], static_cast<int>(e[lefts - 1].code),
                                     static_cast<int>(e[lefts].code));
    t.missing_left[0] = 2 * lefts > n_;
    t.gain[0] = fall;
  }
  for (index_t i = 0; i < n_; ++i) predicted[i] = leaf_class[split ? 1 + predicted[i] : 0];
  return tree;
}

}  // namespace hinge::trees
