// The best cut of a node: over sorted values, histograms and categories.
#include <bit>
#include <cmath>
#include <numeric>

#include "core/pool.hpp"
#include "trees/grower.hpp"

namespace hinge::trees::cart {

void Grower::collect(const Node& node, index_t j, Scratch& s) const {
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
      for (; i < m && e[i].code == code; ++i) add_row(s.sum.data(), e[i].row);
      for (int c = 0; c < channels_; ++c) p.at(c)[groups] = s.sum[c];
      p.code[groups++] = code;
    }
    for (; i < m; ++i) add_row(s.missing.data(), e[i].row);
  } else if (nonzeros_) {
    return collect_nonzeros(node, j, s);
  } else if (bins_) {
    const std::uint8_t* column = bins_->col(j);
    const std::uint32_t* order = order_.data() + node.begin;
    return collect_codes(node, s, [&](index_t i) { return column[order[i]]; });
  } else {
    s.value.resize(m);
    cells_->gather(order_.data() + node.begin, m, j, s.value.data());
    return collect_codes(node, s, [&](index_t i) {
      const double v = s.value[i];
      return v == v ? static_cast<std::uint8_t>(v) : kMissing;
    });
  }
  p.groups = groups;
}

template <class Code>
void Grower::collect_codes(const Node& node, Scratch& s, const Code& code_of) const {
  const index_t m = node.end - node.begin;
  Prefixes& p = s.prefix;
  index_t groups = 0;
  p.reserve(channels_, kBins);
  const std::uint32_t* order = order_.data() + node.begin;
  if (static_cast<index_t>(s.cells.size()) != kBins * channels_) s.cells.assign(kBins * channels_, 0.0);
  double* cells = s.cells.data();
  std::uint64_t touched[4] = {0, 0, 0, 0};
  const double *lw = s.local_w.data(), *ly = s.local_y.data(), *lc = s.local_c.data();
  if (channels_ == 3) {
    for (index_t i = 0; i < m; ++i) {
      const unsigned b = code_of(i);
      touched[b >> 6] |= std::uint64_t{1} << (b & 63);
      double* cell = cells + 3 * b;
      cell[0] += lc[i], cell[1] += lw[i], cell[2] += ly[i];  // ly holds w * y
    }
  } else if (o_.targets > 1) {
    for (index_t i = 0; i < m; ++i) {
      const unsigned b = code_of(i);
      touched[b >> 6] |= std::uint64_t{1} << (b & 63);
      double* cell = cells + channels_ * b;
      cell[0] += lc[i], cell[1] += lw[i];
      add_targets(cell + 2, order[i], lw[i]);
    }
  } else {
    for (index_t i = 0; i < m; ++i) {
      const unsigned b = code_of(i);
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
  p.groups = groups;
}

void Grower::collect_nonzeros(const Node& node, index_t j, Scratch& s) const {
  const index_t n = s.last - s.first;
  const Sorted::Entry* e = s.first;
  const std::uint32_t zero = nonzeros_->zero[j];
  Prefixes& p = s.prefix;
  p.reserve(channels_, n + 1);
  for (index_t i = 0; i < n; ++i) add_row(s.sum.data(), e[i].row);
  s.left.resize(channels_);
  for (int c = 0; c < channels_; ++c) s.left[c] = node.total[c] - s.sum[c];  // of the rows without entries
  s.sum.assign(channels_, 0.0);
  index_t groups = 0, i = 0;
  bool placed = n == node.end - node.begin;
  while (true) {
    const bool more = i < n && e[i].code != kAbsent;
    std::uint32_t code = zero;
    if (!placed && (!more || e[i].code > zero)) {
      for (int c = 0; c < channels_; ++c) s.sum[c] += s.left[c];
      placed = true;
    } else if (more) {
      code = e[i].code;
      for (; i < n && e[i].code == code; ++i) add_row(s.sum.data(), e[i].row);
    } else {
      break;
    }
    for (int c = 0; c < channels_; ++c) p.at(c)[groups] = s.sum[c];
    p.code[groups++] = code;
  }
  for (; i < n; ++i) add_row(s.missing.data(), e[i].row);
  p.groups = groups;
}

void Grower::gather(const Node& node, Scratch& s) const {
  if (sorted_ || nonzeros_ || one_pass_) return;
  const index_t m = node.end - node.begin;
  s.local_w.resize(m), s.local_y.resize(m), s.local_c.resize(m);
  for (index_t i = 0; i < m; ++i) {
    const std::uint32_t row = order_[node.begin + i];
    const double w = weight(row);
    s.local_w[i] = w;
    s.local_y[i] = o_.targets > 1 ? 0.0 : channels_ == 3 ? w * y_[row] : y_[row];
    s.local_c[i] = count(row);
  }
  if (by_class_) s.squares = std::inner_product(node.total.begin() + 2, node.total.end(), node.total.begin() + 2, 0.0);
}

index_t Grower::best_prefix(const Node& node, index_t j, Scratch& s, index_t n) const {
  Prefixes& p = s.prefix;
  index_t best = -1;
  for (index_t i = 0; i < n; ++i) {
    if (best >= 0 && !clearly_better(p.score[i], p.score[best])) continue;
    const double left[3] = {p.at(0)[i], p.at(1)[i], o_.monotone.empty() ? 0.0 : p.at(2)[i]};
    if (allowed(left, node.total.data()) && monotone(node, j, left, s, i)) best = i;
  }
  return best;
}

void Grower::take(const Node& node, index_t j, Scratch& s, index_t i, bool missing_left, Cut& best) const {
  Prefixes& p = s.prefix;
  if (i < 0 || !clearly_better(p.score[i], best.score)) return;
  best.score = p.score[i];
  best.feature = static_cast<std::int32_t>(j);
  best.code = p.code[i];
  best.next = i + 1 < p.groups ? p.code[i + 1] : kAbsent;
  best.categorical = false;
  best.missing_left = s.missing[0] > 0 ? missing_left : 2 * p.at(0)[i] > node.total[0];
  best.threshold = best.next == kAbsent
                       ? kInf
                       : split_threshold(feature(j), static_cast<int>(best.code), static_cast<int>(best.next));
}

void Grower::score(const Node& node, index_t j, Scratch& s, index_t n, bool missing_left) const {
  if (o_.criterion != Criterion::absolute) {
    score_prefixes(o_.criterion, o_.classes, s.prefix, n, node.total.data());
    return;
  }
  absolute_scores(s, s.prefix.code.data(), n, missing_left, s.prefix.score.data(),
                  [&](int target) { list_targets(node, j, s, target); });
}

void Grower::list_targets(const Node& node, index_t j, Scratch& s, int target) const {
  const index_t m = node.end - node.begin;
  std::vector<AbsoluteError::Item>& items = s.absolute.items;
  items.clear();
  if (nonzeros_) {
    s.code.resize(nonzeros_->rows);
    for (index_t i = 0; i < m; ++i) s.code[row_at(node, i)] = nonzeros_->zero[j];
    for (const Sorted::Entry* e = s.first; e < s.last; ++e) s.code[e->row] = e->code;
  } else if (cells_) {
    s.value.resize(m);
    cells_->gather(order_.data() + node.begin, m, j, s.value.data());
  }
  const auto code_of = [&](index_t i, std::uint32_t row) -> std::uint32_t {
    if (sorted_) return list(j, node)[i].code;
    if (nonzeros_) return s.code[row];
    if (cells_) return s.value[i] == s.value[i] ? static_cast<std::uint32_t>(s.value[i]) : kAbsent;
    return bins_->col(j)[row] == kMissing ? kAbsent : bins_->col(j)[row];
  };
  for (index_t i = 0; i < m; ++i) {
    const std::uint32_t row = sorted_ ? list(j, node)[i].row : row_at(node, i);
    items.push_back({targets(row)[target], weight(row), code_of(i, row)});
  }
}

void Grower::shift(Prefixes& p, const std::vector<double>& by, double sign) {
  for (int c = 0; c < p.channels; ++c)
    for (index_t i = 0; i < p.groups; ++i) p.at(c)[i] += sign * by[c];
}

void Grower::try_order(const Node& node, index_t j, Scratch& s, const std::vector<double>& cells,
                       const std::vector<index_t>& order, Cut& best, index_t only) const {
  Prefixes& p = s.prefix;
  std::vector<std::uint32_t> codes(p.code.begin(), p.code.begin() + p.groups), kept = codes;
  std::vector<double> sum(channels_, 0.0);
  for (index_t i = 0; i < p.groups; ++i) {
    for (int c = 0; c < channels_; ++c) p.at(c)[i] = (sum[c] += cells[order[i] * channels_ + c]);
    p.code[i] = codes[order[i]];
  }
  const index_t n = s.missing[0] > 0 ? p.groups : p.groups - 1;
  if (o_.criterion == Criterion::absolute) {
    // Replaces the codes of the items by their places in the order.
    std::vector<std::uint32_t> place(kBins, kAbsent), places(p.groups);
    for (index_t i = 0; i < p.groups; ++i) place[p.code[i]] = places[i] = static_cast<std::uint32_t>(i);
    absolute_scores(s, places.data(), n, false, p.score.data(), [&](int target) {
      list_targets(node, j, s, target);
      for (AbsoluteError::Item& item : s.absolute.items)
        if (item.code != kAbsent) item.code = place[item.code];
    });
  } else {
    score_prefixes(o_.criterion, o_.classes, p, n, node.total.data());
  }
  if (only >= 0)
    for (index_t i = 0; i < n; ++i)
      if (i != only) p.score[i] = -kInf;
  const double before = best.score;
  const index_t at = best_prefix(node, j, s, n);
  if (at >= 0 && clearly_better(p.score[at], before)) {
    best.score = p.score[at];
    best.feature = static_cast<std::int32_t>(j);
    best.categorical = true;
    best.set = Set{};
    for (index_t i = 0; i <= at; ++i) best.set[p.code[i] >> 5] |= 1u << (p.code[i] & 31);
    best.missing_left = s.missing[0] == 0 && 2 * p.at(0)[at] > node.total[0];
    best.threshold = 0;
  }
  std::copy(kept.begin(), kept.end(), p.code.begin());
}

std::vector<double> Grower::medians_of_groups(const Node& node, index_t j, Scratch& s) const {
  const Prefixes& p = s.prefix;
  std::vector<std::vector<double>> y(kBins), w(kBins);
  list_targets(node, j, s, 0);
  for (const AbsoluteError::Item& item : s.absolute.items)
    if (item.code != kAbsent) y[item.code].push_back(item.y), w[item.code].push_back(item.w);
  std::vector<double> medians(p.groups);
  for (index_t i = 0; i < p.groups; ++i) medians[i] = median_and_loss(y[p.code[i]], w[p.code[i]]).first;
  return medians;
}

void Grower::try_categories(const Node& node, index_t j, Scratch& s, Cut& best) const {
  Prefixes& p = s.prefix;
  const index_t g = p.groups;
  std::vector<double> cells(g * channels_);
  for (index_t i = 0; i < g; ++i)
    for (int c = 0; c < channels_; ++c) cells[i * channels_ + c] = p.at(c)[i] - (i > 0 ? p.at(c)[i - 1] : 0.0);
  std::vector<index_t> order(g);
  if (o_.random_thresholds) {
    const index_t left = draw_categories(node, j, s.missing[0] > 0, order);
    return try_order(node, j, s, cells, order, best, left - 1);
  }
  const auto by = [&](const auto& value) {
    std::iota(order.begin(), order.end(), index_t{0});
    std::stable_sort(order.begin(), order.end(), [&](index_t a, index_t b) { return value(a) < value(b); });
    try_order(node, j, s, cells, order, best);
  };
  const auto by_share = [&](int channel) {
    by([&](index_t i) { return cells[i * channels_ + channel] / cells[i * channels_ + 1]; });
  };
  if (o_.criterion == Criterion::absolute) {
    const std::vector<double> medians = medians_of_groups(node, j, s);
    return by([&](index_t i) { return medians[i]; });
  }
  if (channels_ == 3) return by_share(2);
  if (g > 8) {
    for (int c = 2; c < channels_; ++c) by_share(c);
    return;
  }
  // Few categories: tries every subset that has the last category on the right.
  for (unsigned subset = 1; subset < (1u << (g - 1)); ++subset) {
    order.clear();
    for (index_t i = 0; i < g; ++i)
      if (i < g - 1 && (subset >> i & 1u)) order.push_back(i);
    for (index_t i = 0; i < g; ++i)
      if (!(i < g - 1 && (subset >> i & 1u))) order.push_back(i);
    try_order(node, j, s, cells, order, best);
  }
}

void Grower::take_scan(const Node& node, index_t j, const Scan& scan, Cut& best) const {
  best.score = scan.score;
  best.feature = static_cast<std::int32_t>(j);
  best.code = static_cast<std::uint32_t>(scan.code), best.next = static_cast<std::uint32_t>(scan.next);
  best.missing_left = 2 * scan.left.w > node.total[1];
  best.threshold = split_threshold(feature(j), scan.code, scan.next);
}

bool Grower::try_scan(const Node& node, index_t j, Scratch& s, Cut& best) const {
  Scan scan{best.score};
  const bool varies = scan_feature(*bins_, j, order_.data() + node.begin, weighted_.data() + node.begin,
                                   node.end - node.begin, limits(node), s.tallies.data(), scan);
  if (scan.code >= 0) take_scan(node, j, scan, best);
  return varies;
}

void Grower::try_groups(const Node& node, Scratch& s, Cut& best) const {
  const index_t m = node.end - node.begin, groups = bins_->groups;
  const auto scan = [&](index_t group, Scratch& scratch, Cut& cut) {
    Scan found{cut.score};
    const index_t j = scan_group(*bins_, group, order_.data() + node.begin, weighted_.data() + node.begin, m,
                                 limits(node), scratch.tallies.data(), found);
    if (j >= 0) take_scan(node, j, found, cut);
  };
  if (m * cols_ < kParallel) {
    for (index_t group = 0; group < groups; ++group) scan(group, s, best);
    return;
  }
  std::vector<Cut> found(groups);
  parallel_for(groups, [&](index_t group) {
    thread_local Scratch scratch;
    scan(group, scratch, found[group]);
  });
  for (const Cut& cut : found)
    if (cut.feature >= 0 && clearly_better(cut.score, best.score)) best = cut;
}

void Grower::try_small(const Node& node, Scratch& s, Cut& best) const {
  Scan scan{best.score};
  const index_t j = scan_small(*bins_, order_.data() + node.begin, weighted_.data() + node.begin, node.end - node.begin,
                               limits(node), s.tallies.data(), s.codes, scan);
  if (j >= 0) take_scan(node, j, scan, best);
}

bool Grower::try_feature(const Node& node, index_t j, Scratch& s, Cut& best) const {
  if (one_pass_) return try_scan(node, j, s, best);
  const index_t m = node.end - node.begin;
  if (sorted_ && list(j, node)[0].code == list(j, node)[m - 1].code) return false;
  if (nonzeros_ && s.last - s.first == m && s.first->code == s.last[-1].code) return false;
  const bool categorical = feature(j).categorical;
  if (o_.random_thresholds && !categorical) return cells_ ? try_cells(node, j, s, best) : try_random(node, j, s, best);
  if (by_target_ && !categorical && !feature(j).missing && m < (bins_ ? kRowsPerBins : size_ + 1))
    return try_targets(node, j, s, best);
  const bool in_order = by_class_ && !categorical && (!bins_ || m < std::min(kRowsPerClass * o_.classes, kMostRows));
  if (in_order)
    list_classes(node, j, s);
  else
    collect(node, j, s);
  const bool missing = s.missing[0] > 0;
  if (s.prefix.groups < 2 && !(missing && s.prefix.groups == 1)) return false;
  if (categorical) {
    try_categories(node, j, s, best);
    return true;
  }
  const auto look = [&](index_t n, bool missing_left) {
    if (in_order) {
      scan_classes(s, missing_left);
    } else {
      if (missing_left) shift(s.prefix, s.missing, 1.0);
      score(node, j, s, n, missing_left);
    }
    take(node, j, s, best_prefix(node, j, s, n), missing_left, best);
  };
  look(missing ? s.prefix.groups : s.prefix.groups - 1, false);
  if (missing && s.prefix.groups >= 2) look(s.prefix.groups - 1, true);
  return true;
}

void Grower::search(Node& node, Scratch& s) const {
  if (node.final) return;
  gather(node, s);
  Cut best;
  if (o_.max_features > 0 && o_.max_features < cols_) {
    try_drawn(node, s, best);
  } else if (one_pass_ && node.end - node.begin <= kSmallNode) {
    try_small(node, s, best);
  } else if (one_pass_) {
    try_groups(node, s, best);
  } else if ((node.end - node.begin) * candidates(node) >= kParallel) {
    const index_t count = candidates(node), parts = std::min<index_t>(count, 32);
    std::vector<Cut> found(parts);
    parallel_for(parts, [&](index_t part) {
      thread_local Scratch scratch;  // reused for all nodes and trees: allocating it would cost more than the search
      if (bins_ || cells_)
        scratch.local_w = s.local_w, scratch.local_y = s.local_y, scratch.local_c = s.local_c,
        scratch.squares = s.squares;
      for (index_t k = range_begin(count, parts, part); k < range_begin(count, parts, part + 1); ++k)
        try_candidate(node, k, scratch, found[part]);
    });
    for (const Cut& cut : found)
      if (cut.feature >= 0 && clearly_better(cut.score, best.score)) best = cut;
  } else {
    for (index_t k = 0; k < candidates(node); ++k) try_candidate(node, k, s, best);
  }
  if (best.feature < 0) {
    node.final = true;
    return;
  }
  // The decrease of W Q, relative to the node's own score.
  double node_score = side_score(o_.criterion, o_.classes, node.total.data(), channels_);
  if (o_.criterion == Criterion::absolute) node_score = -node.impurity * node.total[1];
  const double fall = std::max(0.0, best.score - node_score);
  best.score = fall;
  if (fall / total_weight_or(node) + 1e-15 < o_.min_decrease) node.final = true;
  node.cut = std::move(best);
}

}  // namespace hinge::trees::cart
