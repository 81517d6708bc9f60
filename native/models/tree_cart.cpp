#include "models/tree_cart.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>

#include "core/monitor.hpp"
#include "core/pool.hpp"
#include "models/tree_absolute.hpp"
#include "models/tree_criteria.hpp"
#include "models/tree_scan.hpp"

namespace hinge::trees {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Cut {
  double score = -kInf;
  std::int32_t feature = -1;
  std::uint32_t code = 0, next = 0;  // the last code on the left, the first on the right (kAbsent: none)
  bool missing_left = false, categorical = false;
  Set set{};
  double threshold = 0;
  std::vector<double> left;  // statistics of the left side
};

struct Node {
  index_t begin = 0, end = 0;
  int depth = 0;
  std::int32_t id = 0;
  std::uint64_t key = 1;
  double lower = -kInf, upper = kInf;  // bounds of the value, under monotone constraints
  std::vector<double> total;
  double impurity = 0;
  bool final = false;
  Cut cut;
};

// What one thread works with.
struct Scratch {
  Prefixes prefix;
  std::vector<double> cells;  // histogram: codes x channels
  std::vector<double> missing, sum, local_w, local_y, local_c;
  std::vector<std::uint32_t> rows;
  std::vector<Tally> weighted;
  std::vector<std::uint8_t> codes;
  std::vector<Tally> tallies = std::vector<Tally>(kGroup * kBins);
  std::vector<std::int32_t> features;  // in the order they are tried
  std::vector<Sorted::Entry> entries;
  AbsoluteError absolute;
};

class Grower {
 public:
  Grower(const Sorted* sorted, const Bins* bins, const double* y, const CartRows& rows, const CartOptions& options,
         std::uint64_t seed)
      : sorted_(sorted), bins_(bins), y_(y), rows_(rows), o_(options), seed_(seed) {
    cols_ = sorted ? sorted->cols : bins->cols;
    channels_ = o_.classes > 2 ? 2 + o_.classes : 3;
    outputs_ = std::max(1, o_.classes);
    const index_t n = static_cast<index_t>(rows.row.size());
    if (sorted) {
      const index_t all = sorted->rows;
      side_.resize(all);
      if (n < all) {
        entries_.resize(cols_ * n);
        for (const std::uint32_t r : rows.row) side_[r] = 1;
        parallel_for(cols_, [&](index_t j) {
          std::copy_if(sorted->entries.begin() + j * all, sorted->entries.begin() + (j + 1) * all,
                       entries_.begin() + j * n, [&](const Sorted::Entry& e) { return side_[e.row]; });
        });
      } else if (o_.max_depth == 1) {
        // A stump moves no rows but those of the first column, from which its leaves are read.
        shared_ = true;
        entries_.assign(sorted->entries.begin(), sorted->entries.begin() + n);
      } else {
        entries_ = sorted->entries;
      }
      size_ = n;
    } else {
      order_ = rows.row;
      size_ = n;
      one_pass_ = (o_.criterion == Criterion::squared || (o_.criterion == Criterion::gini && o_.classes == 2)) &&
                  (rows.frequency || !rows.weight) && o_.monotone.empty() && !o_.random_thresholds &&
                  std::none_of(bins->features.begin(), bins->features.end(),
                               [](const Feature& f) { return f.categorical || f.missing; });
      if (one_pass_) {
        weighted_.resize(n);
        for (index_t i = 0; i < n; ++i) weighted_[i] = {weight(order_[i]), weight(order_[i]) * y_[order_[i]]};
      }
    }
  }

  CartTree grow() {
    CartTree tree;
    Node root;
    root.end = size_;
    Scratch scratch;
    start(root);
    total_weight_ = root.total[1];
    add(tree, root);
    if (o_.max_leaf_nodes > 0)
      best_first(tree, root, scratch);
    else
      depth_first(tree, root, scratch);
    return tree;
  }

 private:
  const Feature& feature(index_t j) const { return sorted_ ? sorted_->features[j] : bins_->features[j]; }
  double weight(std::uint32_t row) const { return rows_.weight ? rows_.weight[row] : 1.0; }
  double count(std::uint32_t row) const { return rows_.frequency && rows_.weight ? rows_.weight[row] : 1.0; }

  void add_row(double* stats, double c, double w, double y) const {
    stats[0] += c, stats[1] += w;
    if (o_.classes > 2)
      stats[2 + static_cast<int>(y)] += w;
    else
      stats[2] += w * y;
  }

  const Sorted::Entry* list(index_t j, const Node& node) const {
    return (shared_ && j > 0 ? sorted_->entries.data() : entries_.data()) + j * size_ + node.begin;
  }
  std::uint32_t row_at(const Node& node, index_t i) const {
    return sorted_ ? list(0, node)[i].row : order_[node.begin + i];
  }

  // Weight and weighted target of a row of the node.
  Tally weighted_at(const Node& node, index_t i) const {
    if (one_pass_) return weighted_[node.begin + i];
    const std::uint32_t row = row_at(node, i);
    return {weight(row), weight(row) * y_[row]};
  }

  // Statistics, impurity and whether the node can be split at all.
  void start(Node& node) const {
    const index_t m = node.end - node.begin;
    node.total.assign(channels_, 0.0);
    double deviance = 0;
    bool pure = true;
    if (one_pass_) {
      const Tally* rows = weighted_.data() + node.begin;
      for (index_t i = 0; i < m; ++i) {
        node.total[0] += rows[i].w, node.total[1] += rows[i].w, node.total[2] += rows[i].s;
        // Equal targets may differ by rounding after the multiplication by their weights.
        const double a = rows[i].s * rows[0].w, b = rows[0].s * rows[i].w;
        pure &= std::fabs(a - b) <= 1e-15 * std::fabs(b);
      }
    } else {
      const double first = y_[row_at(node, 0)];
      for (index_t i = 0; i < m; ++i) {
        const std::uint32_t row = row_at(node, i);
        const double w = weight(row), y = y_[row];
        add_row(node.total.data(), count(row), w, y);
        pure &= y == first;
        if (o_.criterion == Criterion::poisson && y > 0) deviance += w * y * std::log(y);
      }
    }
    const double W = node.total[1], score = side_score(o_.criterion, o_.classes, node.total.data(), channels_);
    switch (o_.criterion) {
      case Criterion::squared: {
        const double mean = node.total[2] / W;
        double spread = 0;  // a second pass: no cancellation
        for (index_t i = 0; i < m; ++i) {
          const Tally row = weighted_at(node, i);
          const double off = row.s / row.w - mean;
          spread += row.w * off * off;
        }
        node.impurity = spread / W;
        break;
      }
      case Criterion::poisson:
        node.impurity = (deviance - score) / W;
        break;
      case Criterion::absolute:
        break;  // by `add`, which also finds the median
      case Criterion::entropy:
        node.impurity = std::max(0.0, -score / W);
        break;
      default:
        node.impurity = std::max(0.0, 1.0 - score / W);
    }
    node.final = pure || (o_.max_depth > 0 && node.depth >= o_.max_depth) || node.total[0] < o_.min_samples_split ||
                 node.total[0] < 2 * o_.min_samples_leaf || W < 2 * o_.min_weight_leaf;
  }

  void add(CartTree& tree, Node& node) const {
    node.id = tree.nodes.add(0, node.total[1], static_cast<std::int64_t>(std::llround(node.total[0])));
    std::vector<double>& value = tree.nodes.value;
    value.pop_back();
    if (o_.classes > 2) {
      for (int c = 0; c < o_.classes; ++c) value.push_back(node.total[2 + c] / node.total[1]);
    } else if (o_.classes > 0) {
      const double p = std::clamp(node.total[2] / node.total[1], node.lower, node.upper);
      if (o_.classes == 2) value.push_back(1.0 - p);
      value.push_back(o_.classes == 2 ? p : 1.0);
    } else if (o_.criterion == Criterion::absolute) {
      std::vector<double> y, w;
      for (index_t i = 0; i < node.end - node.begin; ++i) {
        const std::uint32_t row = row_at(node, i);
        y.push_back(y_[row]), w.push_back(weight(row));
      }
      const auto [median, loss] = median_and_loss(y, w);
      value.push_back(std::clamp(median, node.lower, node.upper));
      node.impurity = loss / node.total[1];
    } else {
      value.push_back(std::clamp(node.total[2] / node.total[1], node.lower, node.upper));
    }
    tree.impurity.push_back(node.impurity);
  }

  // Fills prefix sums over the groups of equal codes in the node, in increasing order of code; missing rows apart.
  void collect(const Node& node, index_t j, Scratch& s) const {
    const index_t m = node.end - node.begin;
    s.missing.assign(channels_, 0.0);
    s.sum.assign(channels_, 0.0);
    Prefixes& p = s.prefix;
    index_t groups = 0;
    if (sorted_) {
      p.reserve(channels_, m);
      const Sorted::Entry* e = list(j, node);
      index_t i = 0;
      while (i < m && e[i].code != kAbsent) {
        const std::uint32_t code = e[i].code;
        for (; i < m && e[i].code == code; ++i) add_row(s.sum.data(), count(e[i].row), weight(e[i].row), y_[e[i].row]);
        for (int c = 0; c < channels_; ++c) p.at(c)[groups] = s.sum[c];
        p.code[groups++] = code;
      }
      for (; i < m; ++i) add_row(s.missing.data(), count(e[i].row), weight(e[i].row), y_[e[i].row]);
    } else {
      p.reserve(channels_, kBins);
      const std::uint8_t* column = bins_->col(j);
      const std::uint32_t* order = order_.data() + node.begin;
      if (static_cast<index_t>(s.cells.size()) != kBins * channels_) s.cells.assign(kBins * channels_, 0.0);
      double* cells = s.cells.data();
      std::uint64_t touched[4] = {0, 0, 0, 0};
      const double *lw = s.local_w.data(), *ly = s.local_y.data(), *lc = s.local_c.data();
      if (channels_ == 3) {
        for (index_t i = 0; i < m; ++i) {
          const unsigned b = column[order[i]];
          touched[b >> 6] |= std::uint64_t{1} << (b & 63);
          double* cell = cells + 3 * b;
          cell[0] += lc[i], cell[1] += lw[i], cell[2] += ly[i];  // ly holds w * y
        }
      } else {
        for (index_t i = 0; i < m; ++i) {
          const unsigned b = column[order[i]];
          touched[b >> 6] |= std::uint64_t{1} << (b & 63);
          double* cell = cells + channels_ * b;
          cell[0] += lc[i], cell[1] += lw[i], cell[2 + static_cast<int>(ly[i])] += lw[i];  // ly holds the class
        }
      }
      for (unsigned word = 0; word < 4; ++word)
        for (std::uint64_t bits = touched[word]; bits; bits &= bits - 1) {
          const unsigned b = 64 * word + static_cast<unsigned>(std::countr_zero(bits));
          double* cell = cells + channels_ * b;
          if (b == kMissing) {
            std::copy_n(cell, channels_, s.missing.begin());
          } else {
            for (int c = 0; c < channels_; ++c) p.at(c)[groups] = (s.sum[c] += cell[c]);
            p.code[groups++] = b;
          }
          std::fill_n(cell, channels_, 0.0);
        }
    }
    p.groups = groups;
  }

  // Rows of the node gathered once, for histograms over many features.
  void gather(const Node& node, Scratch& s) const {
    if (sorted_ || one_pass_) return;
    const index_t m = node.end - node.begin;
    s.local_w.resize(m), s.local_y.resize(m), s.local_c.resize(m);
    for (index_t i = 0; i < m; ++i) {
      const std::uint32_t row = order_[node.begin + i];
      const double w = weight(row);
      s.local_w[i] = w;
      s.local_y[i] = channels_ == 3 ? w * y_[row] : y_[row];
      s.local_c[i] = count(row);
    }
  }

  bool allowed(const double* left, const double* total) const {
    return left[0] >= o_.min_samples_leaf && total[0] - left[0] >= o_.min_samples_leaf &&
           left[1] >= o_.min_weight_leaf && total[1] - left[1] >= o_.min_weight_leaf && left[0] > 0 &&
           total[0] - left[0] > 0;
  }

  bool monotone(const Node& node, int direction, const double* left) const {
    if (o_.monotone.empty()) return true;
    const double a = left[2] / left[1], b = (node.total[2] - left[2]) / (node.total[1] - left[1]);
    if (direction != 0 && direction * (b - a) < 0) return false;
    return std::min(a, b) >= node.lower && std::max(a, b) <= node.upper;
  }

  // The best admissible cut among the first n prefixes (one of them at random if so asked).
  index_t best_prefix(const Node& node, index_t j, Scratch& s, index_t n) const {
    Prefixes& p = s.prefix;
    const int direction = o_.monotone.empty() ? 0 : o_.monotone[j];
    std::vector<double> left(channels_);
    index_t best = -1;
    for (index_t i = 0; i < n; ++i) {
      if (best >= 0 && !clearly_better(p.score[i], p.score[best])) continue;
      for (int c = 0; c < channels_; ++c) left[c] = p.at(c)[i];
      if (allowed(left.data(), node.total.data()) && monotone(node, direction, left.data())) best = i;
    }
    return best;
  }

  void take(const Node& node, index_t j, Scratch& s, index_t i, bool missing_left, Cut& best) const {
    Prefixes& p = s.prefix;
    if (i < 0 || !clearly_better(p.score[i], best.score)) return;
    best.score = p.score[i];
    best.feature = static_cast<std::int32_t>(j);
    best.code = p.code[i];
    best.next = i + 1 < p.groups ? p.code[i + 1] : kAbsent;
    best.categorical = false;
    best.left.resize(channels_);
    for (int c = 0; c < channels_; ++c) best.left[c] = p.at(c)[i];
    best.missing_left = s.missing[0] > 0 ? missing_left : 2 * best.left[0] >= node.total[0];
    best.threshold = best.next == kAbsent
                         ? kInf
                         : split_threshold(feature(j), static_cast<int>(best.code), static_cast<int>(best.next));
  }

  void score(const Node& node, index_t j, Scratch& s, index_t n, bool missing_left) const {
    if (o_.criterion != Criterion::absolute) {
      score_prefixes(o_.criterion, o_.classes, s.prefix, n, node.total.data());
      return;
    }
    // Rows in order of code; the losses of both sides at the end of every group.
    AbsoluteError& a = s.absolute;
    const index_t m = node.end - node.begin;
    a.items.clear();
    for (index_t i = 0; i < m; ++i) {
      const std::uint32_t row = row_at(node, i);
      const std::uint32_t code = sorted_ ? 0 : bins_->col(j)[row] == kMissing ? kAbsent : bins_->col(j)[row];
      if (!sorted_) a.items.push_back({y_[row], weight(row), code});
    }
    if (sorted_)
      for (index_t i = 0; i < m; ++i) {
        const Sorted::Entry e = list(j, node)[i];
        a.items.push_back({y_[e.row], weight(e.row), e.code});
      }
    a.scores(s.prefix.code.data(), n, missing_left, s.prefix.score.data());
  }

  void try_random(const Node& node, index_t j, Scratch& s, Cut& best) const {
    Prefixes& p = s.prefix;
    const Feature& f = feature(j);
    Random random(seed_ ^ mix64(node.key), static_cast<std::uint64_t>(j) + 1);
    const double u = random.uniform();
    const double low = f.low[p.code[0]], high = f.high[p.code[p.groups - 1]];
    const double threshold = low + u * (high - low);
    index_t at = 0;
    while (at + 2 < p.groups && f.high[p.code[at + 1]] <= threshold) ++at;
    const bool missing_left = s.missing[0] > 0 && random.uniform() < 0.5;
    if (missing_left) shift(p, s.missing, 1.0);
    score(node, j, s, p.groups - 1, missing_left);
    std::vector<double> left(channels_);
    for (int c = 0; c < channels_; ++c) left[c] = p.at(c)[at];
    if (!allowed(left.data(), node.total.data()) ||
        !monotone(node, o_.monotone.empty() ? 0 : o_.monotone[j], left.data()))
      return;
    const double before = best.score;
    take(node, j, s, at, missing_left, best);
    if (best.score > before && threshold >= f.high[p.code[at]] && threshold < f.low[p.code[at + 1]])
      best.threshold = threshold;
  }

  static void shift(Prefixes& p, const std::vector<double>& by, double sign) {
    for (int c = 0; c < p.channels; ++c)
      for (index_t i = 0; i < p.groups; ++i) p.at(c)[i] += sign * by[c];
  }

  // Categories: `order` sorts the groups, prefixes of that order are the candidates.
  void try_order(const Node& node, index_t j, Scratch& s, const std::vector<double>& cells,
                 const std::vector<index_t>& order, Cut& best) const {
    Prefixes& p = s.prefix;
    std::vector<std::uint32_t> codes(p.code.begin(), p.code.begin() + p.groups), kept = codes;
    std::vector<double> sum(channels_, 0.0);
    for (index_t i = 0; i < p.groups; ++i) {
      for (int c = 0; c < channels_; ++c) p.at(c)[i] = (sum[c] += cells[order[i] * channels_ + c]);
      p.code[i] = codes[order[i]];
    }
    const index_t n = s.missing[0] > 0 ? p.groups : p.groups - 1;
    score_prefixes(o_.criterion, o_.classes, p, n, node.total.data());
    const double before = best.score;
    const index_t at = best_prefix(node, j, s, n);
    if (at >= 0 && clearly_better(p.score[at], before)) {
      best.score = p.score[at];
      best.feature = static_cast<std::int32_t>(j);
      best.categorical = true;
      best.set = Set{};
      for (index_t i = 0; i <= at; ++i) best.set[p.code[i] >> 5] |= 1u << (p.code[i] & 31);
      best.left.resize(channels_);
      for (int c = 0; c < channels_; ++c) best.left[c] = p.at(c)[at];
      best.missing_left = s.missing[0] == 0 && 2 * best.left[0] >= node.total[0];
      best.threshold = 0;
    }
    std::copy(kept.begin(), kept.end(), p.code.begin());
  }

  void try_categories(const Node& node, index_t j, Scratch& s, Cut& best) const {
    Prefixes& p = s.prefix;
    const index_t g = p.groups;
    std::vector<double> cells(g * channels_);
    for (index_t i = 0; i < g; ++i)
      for (int c = 0; c < channels_; ++c) cells[i * channels_ + c] = p.at(c)[i] - (i > 0 ? p.at(c)[i - 1] : 0.0);
    std::vector<index_t> order(g);
    const auto by_share = [&](int channel) {
      std::iota(order.begin(), order.end(), index_t{0});
      std::stable_sort(order.begin(), order.end(), [&](index_t a, index_t b) {
        return cells[a * channels_ + channel] / cells[a * channels_ + 1] <
               cells[b * channels_ + channel] / cells[b * channels_ + 1];
      });
      try_order(node, j, s, cells, order, best);
    };
    if (channels_ == 3) return by_share(2);
    if (g > 8) {
      for (int c = 2; c < channels_; ++c) by_share(c);
      return;
    }
    // Few categories: every subset that holds the last one on the right.
    for (unsigned subset = 1; subset < (1u << (g - 1)); ++subset) {
      order.clear();
      for (index_t i = 0; i < g; ++i)
        if (i < g - 1 && (subset >> i & 1u)) order.push_back(i);
      for (index_t i = 0; i < g; ++i)
        if (!(i < g - 1 && (subset >> i & 1u))) order.push_back(i);
      try_order(node, j, s, cells, order, best);
    }
  }

  Search limits(const Node& node) const {
    return {{node.total[1], node.total[2]},
            std::max({o_.min_samples_leaf, o_.min_weight_leaf, kTiny}),
            o_.criterion == Criterion::gini};
  }

  void take_scan(const Node& node, index_t j, const Scan& scan, Cut& best) const {
    best.score = scan.score;
    best.feature = static_cast<std::int32_t>(j);
    best.code = static_cast<std::uint32_t>(scan.code), best.next = static_cast<std::uint32_t>(scan.next);
    best.left = {scan.left.w, scan.left.w, scan.left.s};
    best.missing_left = 2 * scan.left.w >= node.total[0];
    best.threshold = split_threshold(feature(j), scan.code, scan.next);
  }

  bool try_scan(const Node& node, index_t j, Scratch& s, Cut& best) const {
    Scan scan{best.score};
    const bool varies = scan_feature(*bins_, j, order_.data() + node.begin, weighted_.data() + node.begin,
                                     node.end - node.begin, limits(node), s.tallies.data(), scan);
    if (scan.code >= 0) take_scan(node, j, scan, best);
    return varies;
  }

  void try_groups(const Node& node, Scratch& s, Cut& best) const {
    const index_t m = node.end - node.begin, groups = bins_->groups;
    const auto scan = [&](index_t group, Scratch& own, Cut& cut) {
      Scan found{cut.score};
      const index_t j = scan_group(*bins_, group, order_.data() + node.begin, weighted_.data() + node.begin, m,
                                   limits(node), own.tallies.data(), found);
      if (j >= 0) take_scan(node, j, found, cut);
    };
    if (m * cols_ < kParallel) {
      for (index_t group = 0; group < groups; ++group) scan(group, s, best);
      return;
    }
    std::vector<Cut> found(groups);
    parallel_for(groups, [&](index_t group) {
      thread_local Scratch mine;
      scan(group, mine, found[group]);
    });
    for (const Cut& cut : found)
      if (cut.feature >= 0 && clearly_better(cut.score, best.score)) best = cut;
  }

  void try_small(const Node& node, Scratch& s, Cut& best) const {
    Scan scan{best.score};
    const index_t j = scan_small(*bins_, order_.data() + node.begin, weighted_.data() + node.begin,
                                 node.end - node.begin, limits(node), s.tallies.data(), s.codes, scan);
    if (j >= 0) take_scan(node, j, scan, best);
  }

  // False if the feature is constant in the node.
  bool try_feature(const Node& node, index_t j, Scratch& s, Cut& best) const {
    if (one_pass_) return try_scan(node, j, s, best);
    const index_t m = node.end - node.begin;
    if (sorted_ && list(j, node)[0].code == list(j, node)[m - 1].code) return false;
    collect(node, j, s);
    const bool missing = s.missing[0] > 0;
    if (s.prefix.groups < 2 && !(missing && s.prefix.groups == 1)) return false;
    if (feature(j).categorical && o_.criterion != Criterion::absolute) {
      try_categories(node, j, s, best);
      return true;
    }
    if (o_.random_thresholds && s.prefix.groups >= 2) {
      try_random(node, j, s, best);
      return true;
    }
    const index_t n = missing ? s.prefix.groups : s.prefix.groups - 1;
    score(node, j, s, n, false);
    take(node, j, s, best_prefix(node, j, s, n), false, best);
    if (missing && s.prefix.groups >= 2) {
      shift(s.prefix, s.missing, 1.0);
      score(node, j, s, s.prefix.groups - 1, true);
      take(node, j, s, best_prefix(node, j, s, s.prefix.groups - 1), true, best);
    }
    return true;
  }

  void search(Node& node, Scratch& s) const {
    if (node.final) return;
    gather(node, s);
    Cut best;
    if (o_.max_features > 0 && o_.max_features < cols_) {
      std::vector<std::int32_t>& order = s.features;
      order.resize(cols_);
      std::iota(order.begin(), order.end(), 0);
      Random random(seed_ ^ mix64(node.key), 0);
      int tried = 0;
      for (index_t k = 0; k < cols_ && tried < o_.max_features; ++k) {
        std::swap(order[k], order[k + random.below(cols_ - k)]);
        tried += try_feature(node, order[k], s, best);
      }
    } else if (one_pass_ && node.end - node.begin <= kSmallNode) {
      try_small(node, s, best);
    } else if (one_pass_) {
      try_groups(node, s, best);
    } else if ((node.end - node.begin) * cols_ >= kParallel) {
      const index_t parts = std::min<index_t>(cols_, 32);
      std::vector<Cut> found(parts);
      parallel_for(parts, [&](index_t part) {
        thread_local Scratch mine;  // kept between nodes and trees: fresh memory would cost more than the search
        if (!sorted_) mine.local_w = s.local_w, mine.local_y = s.local_y, mine.local_c = s.local_c;
        for (index_t j = range_begin(cols_, parts, part); j < range_begin(cols_, parts, part + 1); ++j)
          try_feature(node, j, mine, found[part]);
      });
      for (const Cut& cut : found)
        if (cut.feature >= 0 && clearly_better(cut.score, best.score)) best = cut;
    } else {
      for (index_t j = 0; j < cols_; ++j) try_feature(node, j, s, best);
    }
    if (best.feature < 0) {
      node.final = true;
      return;
    }
    // The fall of W Q, measured against the node's own score.
    double own = side_score(o_.criterion, o_.classes, node.total.data(), channels_);
    if (o_.criterion == Criterion::absolute) own = -node.impurity * node.total[1];
    const double fall = std::max(0.0, best.score - own);
    best.score = fall;
    if (fall / total_weight_or(node) + 1e-15 < o_.min_decrease) node.final = true;
    node.cut = std::move(best);
  }

  double total_weight_or(const Node& node) const { return total_weight_ > 0 ? total_weight_ : node.total[1]; }

  bool goes_left(const Cut& cut, std::uint32_t code) const {
    if (code == kAbsent) return cut.missing_left;
    return cut.categorical ? contains(cut.set.data(), code) : code <= cut.code;
  }

  // Reorders the rows of the node; returns the number on the left.
  index_t partition(const Node& node, Scratch& s) {
    const index_t m = node.end - node.begin;
    const Cut& cut = node.cut;
    if (!sorted_) {
      const std::uint8_t* column = bins_->col(cut.feature);
      std::uint32_t* rows = order_.data() + node.begin;
      Tally* kept = weighted_.data() + node.begin;
      s.rows.resize(m);
      if (one_pass_) s.weighted.resize(m);
      index_t left = 0, right = 0;
      for (index_t i = 0; i < m; ++i) {
        const std::uint32_t row = rows[i];
        const std::uint8_t b = column[row];
        const bool l = goes_left(cut, b == kMissing ? kAbsent : b);
        rows[left] = row, s.rows[right] = row;
        if (one_pass_) kept[left] = s.weighted[right] = kept[i];
        left += l, right += !l;
      }
      std::copy_n(s.rows.begin(), right, rows + left);
      if (one_pass_) std::copy_n(s.weighted.begin(), right, kept + left);
      return left;
    }
    const Sorted::Entry* chosen = list(cut.feature, node);
    index_t lefts = 0;
    for (index_t i = 0; i < m; ++i) {
      const bool l = goes_left(cut, chosen[i].code);
      side_[chosen[i].row] = l;
      lefts += l;
    }
    const auto move = [&](index_t j, std::vector<Sorted::Entry>& spare) {
      if (static_cast<index_t>(spare.size()) < m) spare.resize(m);
      Sorted::Entry* e = entries_.data() + j * size_ + node.begin;
      index_t left = 0, right = 0;
      for (index_t i = 0; i < m; ++i) {
        const Sorted::Entry entry = e[i];
        const bool l = side_[entry.row];
        e[left] = entry, spare[right] = entry;
        left += l, right += !l;
      }
      std::copy_n(spare.begin(), right, e + left);
    };
    if (o_.max_depth > 0 && node.depth + 1 >= o_.max_depth) {
      move(0, s.entries);  // the children are leaves: one list of their rows is enough
    } else if (m * cols_ >= kParallel) {
      const index_t parts = std::min<index_t>(cols_, 32);
      parallel_for(parts, [&](index_t part) {
        std::vector<Sorted::Entry> spare;
        for (index_t j = range_begin(cols_, parts, part); j < range_begin(cols_, parts, part + 1); ++j) move(j, spare);
      });
    } else {
      for (index_t j = 0; j < cols_; ++j) move(j, s.entries);
    }
    return lefts;
  }

  // Splits the node by its cut: two children, added to the tree, started but not searched.
  std::pair<Node, Node> split(CartTree& tree, const Node& node, Scratch& s) {
    Nodes& t = tree.nodes;
    const Cut& cut = node.cut;
    Node left, right;
    left.begin = node.begin;
    left.end = right.begin = node.begin + partition(node, s);
    right.end = node.end;
    left.depth = right.depth = node.depth + 1;
    left.key = mix64(2 * node.key), right.key = mix64(2 * node.key + 1);
    left.lower = right.lower = node.lower, left.upper = right.upper = node.upper;
    start(left), start(right);
    if (const int direction = o_.monotone.empty() ? 0 : o_.monotone[cut.feature]; direction != 0) {
      const double middle = 0.5 * (left.total[2] / left.total[1] + right.total[2] / right.total[1]);
      (direction > 0 ? left.upper : left.lower) = middle;
      (direction > 0 ? right.lower : right.upper) = middle;
    }
    add(tree, left), add(tree, right);
    t.left[node.id] = left.id;
    t.feature[node.id] = cut.feature;
    t.threshold[node.id] = cut.threshold;
    t.missing_left[node.id] = cut.missing_left;
    t.gain[node.id] = cut.score;
    if (!sorted_) t.bin[node.id] = static_cast<std::uint8_t>(cut.code);
    if (cut.categorical) {
      t.set[node.id] = static_cast<std::int32_t>(t.sets.size() / 8);
      t.sets.insert(t.sets.end(), cut.set.begin(), cut.set.end());
    }
    return {std::move(left), std::move(right)};
  }

  void best_first(CartTree& tree, Node& root, Scratch& s) {
    const auto worse = [](const Node& a, const Node& b) {
      return a.cut.score < b.cut.score || (a.cut.score == b.cut.score && a.id > b.id);
    };
    std::vector<Node> heap;
    const auto offer = [&](Node&& node) {
      search(node, s);
      if (node.final) return;
      heap.push_back(std::move(node));
      std::push_heap(heap.begin(), heap.end(), worse);
    };
    offer(std::move(root));
    for (int leaves = 1; !heap.empty() && leaves < o_.max_leaf_nodes; ++leaves) {
      std::pop_heap(heap.begin(), heap.end(), worse);
      Node node = std::move(heap.back());
      heap.pop_back();
      auto [left, right] = split(tree, node, s);
      offer(std::move(left));
      offer(std::move(right));
    }
  }

  // The whole subtree below a started node that is already in `tree`.
  void subtree(CartTree& tree, Node&& top, Scratch& s) {
    std::vector<Node> stack;
    stack.push_back(std::move(top));
    while (!stack.empty()) {
      Node node = std::move(stack.back());
      stack.pop_back();
      search(node, s);
      if (node.final) continue;
      auto [left, right] = split(tree, node, s);
      stack.push_back(std::move(right));
      stack.push_back(std::move(left));
    }
  }

  // Large nodes one by one (their features in parallel), then the subtrees of the small ones in parallel.
  void depth_first(CartTree& tree, Node& root, Scratch& s) {
    const index_t small = std::max<index_t>(1024, size_ / 16);
    std::vector<Node> tops, stack;
    stack.push_back(std::move(root));
    while (!stack.empty()) {
      Node node = std::move(stack.back());
      stack.pop_back();
      if (node.end - node.begin <= small) {
        if (!node.final) tops.push_back(std::move(node));
        continue;
      }
      search(node, s);
      if (node.final) continue;
      auto [left, right] = split(tree, node, s);
      stack.push_back(std::move(right));
      stack.push_back(std::move(left));
    }
    std::vector<CartTree> below(tops.size());
    std::vector<std::int32_t> ids(tops.size());
    parallel_for(static_cast<index_t>(tops.size()), [&](index_t k) {
      Scratch mine;
      ids[k] = tops[k].id;
      add(below[k], tops[k]);
      subtree(below[k], std::move(tops[k]), mine);
    });
    for (std::size_t k = 0; k < below.size(); ++k) graft(tree, ids[k], below[k]);
  }

  void graft(CartTree& tree, std::int32_t id, const CartTree& branch) const {
    Nodes& t = tree.nodes;
    const Nodes& b = branch.nodes;
    const std::int32_t offset = t.size() - 1, sets = static_cast<std::int32_t>(t.sets.size() / 8);
    const auto set_of = [&](std::int32_t i) { return b.set[i] >= 0 ? b.set[i] + sets : -1; };
    const auto left_of = [&](std::int32_t i) { return b.feature[i] >= 0 ? b.left[i] + offset : -1; };
    t.feature[id] = b.feature[0], t.threshold[id] = b.threshold[0], t.left[id] = left_of(0), t.set[id] = set_of(0);
    t.missing_left[id] = b.missing_left[0], t.gain[id] = b.gain[0], t.bin[id] = b.bin[0];
    for (std::int32_t i = 1; i < b.size(); ++i) {
      t.feature.push_back(b.feature[i]), t.threshold.push_back(b.threshold[i]), t.left.push_back(left_of(i));
      t.missing_left.push_back(b.missing_left[i]), t.set.push_back(set_of(i)), t.gain.push_back(b.gain[i]);
      t.weight.push_back(b.weight[i]), t.count.push_back(b.count[i]), t.bin.push_back(b.bin[i]);
      tree.impurity.push_back(branch.impurity[i]);
    }
    t.value.insert(t.value.end(), b.value.begin() + outputs_, b.value.end());
    t.sets.insert(t.sets.end(), b.sets.begin(), b.sets.end());
  }

  static constexpr index_t kParallel = 1 << 16;
  static constexpr double kTiny = std::numeric_limits<double>::min();

  const Sorted* sorted_;
  const Bins* bins_;
  const double* y_;
  const CartRows& rows_;
  const CartOptions& o_;
  std::uint64_t seed_;
  index_t cols_, size_ = 0;
  int channels_, outputs_;
  double total_weight_ = 0;
  bool shared_ = false;  // columns other than the first are read where they were sorted
  std::vector<Sorted::Entry> entries_;
  std::vector<std::uint8_t> side_;
  std::vector<std::uint32_t> order_;
  bool one_pass_ = false;        // tree_scan.hpp
  std::vector<Tally> weighted_;  // beside order_
};

}  // namespace

CartTree grow_cart(const Sorted* sorted, const Bins* bins, const double* y, const CartRows& rows,
                   const CartOptions& options, std::uint64_t seed) {
  return Grower(sorted, bins, y, rows, options, seed).grow();
}

}  // namespace hinge::trees
