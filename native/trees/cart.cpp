#include "trees/cart.hpp"

#include <cmath>

#include "core/pool.hpp"
#include "trees/grower.hpp"

namespace hinge::trees {
namespace cart {

Grower::Grower(const Forms& table, const double* y, const CartRows& rows, const CartOptions& options,
               std::uint64_t seed)
    : sorted_(table.sorted),
      bins_(table.bins),
      nonzeros_(table.nonzeros),
      cells_(table.cells),
      y_(y),
      rows_(rows),
      o_(options),
      seed_(seed) {
  const auto read = [&](const auto* form) {
    if (form) cols_ = form->cols, features_ = &form->features;
  };
  read(sorted_), read(bins_), read(nonzeros_), read(cells_);
  channels_ = o_.targets > 1 ? 2 + o_.targets : o_.classes > 2 ? 2 + o_.classes : 3;
  outputs_ = std::max(o_.targets, o_.classes);
  const index_t n = static_cast<index_t>(rows.row.size());
  size_ = n;
  whole_counts_ = o_.classes >= 2 && o_.targets == 1 && (rows.frequency || !rows.weight);
  by_target_ = o_.criterion == Criterion::squared && o_.targets > 1 && o_.monotone.empty() && !nonzeros_ && !cells_;
  by_class_ = o_.criterion == Criterion::gini && o_.targets == 1 && o_.classes > 2 && o_.monotone.empty();
  if (const Sorted* sorted = sorted_) {
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
      // A stump partitions only the first column, from which its leaves take their rows.
      shared_ = true;
      entries_.assign(sorted->entries.begin(), sorted->entries.begin() + n);
    } else {
      entries_ = sorted->entries;
    }
  } else if (nonzeros_) {
    side_.resize(nonzeros_->rows);
    for (const std::uint32_t r : rows.row) side_[r] = 1;
    const auto kept = [&](std::uint32_t row) { return side_[row] != 0; };
    std::copy_if(nonzeros_->order.begin(), nonzeros_->order.end(), std::back_inserter(order_), kept);
    in_place_ = o_.max_features > 0 && o_.max_features * kFewDrawn <= cols_;
    if (in_place_) {
      list_cells();
      return;
    }
    entries_.reserve(nonzeros_->entries.size());
    for (index_t j = 0; j < cols_; ++j) {
      const auto begin = static_cast<index_t>(entries_.size());
      for (index_t k = nonzeros_->begin[j]; k < nonzeros_->begin[j + 1]; ++k)
        if (kept(nonzeros_->entries[k].row)) entries_.push_back(nonzeros_->entries[k]);
      const auto end = static_cast<index_t>(entries_.size());
      if (begin < end) spans_.push_back({static_cast<std::int32_t>(j), begin, end});
    }
  } else {
    order_ = rows.row;
    if (cells_) return;
    const Bins* bins = bins_;
    one_pass_ = o_.targets == 1 &&
                (o_.criterion == Criterion::squared || (o_.criterion == Criterion::gini && o_.classes == 2)) &&
                (rows.frequency || !rows.weight || o_.min_samples_leaf <= 1) && o_.monotone.empty() &&
                !o_.random_thresholds &&
                std::none_of(bins->features.begin(), bins->features.end(),
                             [](const Feature& f) { return f.categorical || f.missing; });
    if (one_pass_) {
      weighted_.resize(n);
      for (index_t i = 0; i < n; ++i) weighted_[i] = {weight(order_[i]), weight(order_[i]) * y_[order_[i]]};
    }
  }
}

CartTree Grower::grow() {
  CartTree tree;
  Node root;
  root.end = size_;
  root.spans = std::move(spans_);
  Scratch scratch;
  // At most two nodes per row: reserved pages that are not written cost nothing, while growing vectors are copied.
  if (const index_t most = 2 * size_ * outputs_; most <= kMostReserved) tree.nodes.value.reserve(most);
  start(root);
  total_weight_ = root.total[1];
  add(tree, root);
  if (o_.max_leaf_nodes > 0)
    best_first(tree, root, scratch);
  else
    depth_first(tree, root, scratch);
  return tree;
}

void Grower::start(Node& node, const Node* parent, const Node* sibling) const {
  const index_t m = node.end - node.begin;
  node.total.assign(channels_, 0.0);
  double deviance = 0;
  bool pure = true;
  if (parent && whole_counts_) {
    for (int c = 0; c < channels_; ++c) node.total[c] = parent->total[c] - sibling->total[c];
    const double *classes = node.total.data() + 2, *end = node.total.data() + channels_;
    pure =
        std::any_of(classes, end, [&](double w) { return w == node.total[1]; }) || (channels_ == 3 && classes[0] == 0);
  } else if (one_pass_) {
    const Tally* rows = weighted_.data() + node.begin;
    for (index_t i = 0; i < m; ++i) {
      node.total[1] += rows[i].w, node.total[2] += rows[i].s;
      // Equal targets may differ by rounding after the multiplication by their weights.
      const double a = rows[i].s * rows[0].w, b = rows[0].s * rows[i].w;
      pure &= std::fabs(a - b) <= 1e-15 * std::fabs(b);
    }
    node.total[0] = rows_.frequency ? node.total[1] : static_cast<double>(m);
  } else {
    const double* first = targets(row_at(node, 0));
    for (index_t i = 0; i < m; ++i) {
      const std::uint32_t row = row_at(node, i);
      const double* y = targets(row);
      add_row(node.total.data(), row);
      pure &= std::equal(y, y + o_.targets, first);
      if (o_.criterion == Criterion::poisson)
        for (int k = 0; k < o_.targets; ++k) deviance += y[k] > 0 ? weight(row) * y[k] * std::log(y[k]) : 0.0;
    }
  }
  const double W = node.total[1], score = side_score(o_.criterion, o_.classes, node.total.data(), channels_);
  switch (o_.criterion) {
    case Criterion::squared: {
      const double mean = node.total[2] / W;
      double spread = 0;  // a second pass avoids cancellation
      if (o_.targets > 1) {
        for (index_t i = 0; i < m; ++i) {
          const std::uint32_t row = row_at(node, i);
          for (int k = 0; k < o_.targets; ++k) {
            const double off = targets(row)[k] - node.total[2 + k] / W;
            spread += weight(row) * off * off;
          }
        }
        node.impurity = spread / W;
        break;
      }
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
      break;  // `add` computes it along with the median
    case Criterion::entropy:
      node.impurity = std::max(0.0, -score / W);
      break;
    default:
      node.impurity = std::max(0.0, 1.0 - score / W);
  }
  node.final = pure || (o_.max_depth > 0 && node.depth >= o_.max_depth) || node.total[0] < o_.min_samples_split ||
               node.total[0] < 2 * o_.min_samples_leaf || W < 2 * o_.min_weight_leaf;
}

std::pair<double, double> Grower::median(const Node& node, int k) const {
  std::vector<double> y, w;
  for (index_t i = 0; i < node.end - node.begin; ++i) {
    const std::uint32_t row = row_at(node, i);
    y.push_back(targets(row)[k]), w.push_back(weight(row));
  }
  return median_and_loss(y, w);
}

void Grower::add(CartTree& tree, Node& node) const {
  node.id = tree.nodes.add(0, node.total[1], static_cast<std::int64_t>(std::llround(node.total[0])));
  std::vector<double>& value = tree.nodes.value;
  value.pop_back();
  if (o_.criterion == Criterion::absolute) {
    node.impurity = 0;
    for (int k = 0; k < o_.targets; ++k) {
      const auto [value_k, loss] = median(node, k);
      value.push_back(std::clamp(value_k, node.lower, node.upper));
      node.impurity += loss / node.total[1];
    }
  } else if (outputs_ > 2 || o_.targets > 1) {
    for (int c = 0; c < outputs_; ++c) value.push_back(node.total[2 + c] / node.total[1]);
  } else if (o_.classes > 0) {
    const double p = std::clamp(share_of(node.total[2], node.total[1]), node.lower, node.upper);
    if (o_.classes == 2) value.push_back(1.0 - p);
    value.push_back(o_.classes == 2 ? p : 1.0);
  } else {
    value.push_back(std::clamp(node.total[2] / node.total[1], node.lower, node.upper));
  }
  tree.impurity.push_back(node.impurity);
}

index_t Grower::partition(const Node& node, Scratch& s) {
  const index_t m = node.end - node.begin;
  const Cut& cut = node.cut;
  if (nonzeros_ || cells_) return partition_rows(node, s);
  if (bins_) {
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
    move(0, s.entries);  // the children are leaves, so one list of their rows is enough
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

index_t Grower::partition_rows(const Node& node, Scratch& s) {
  const index_t m = node.end - node.begin;
  const Cut& cut = node.cut;
  std::uint32_t* rows = order_.data() + node.begin;
  const auto place = [&](const auto& goes) {
    s.rows.resize(m);
    index_t left = 0, right = 0;
    for (index_t i = 0; i < m; ++i) {
      const std::uint32_t row = rows[i];
      const bool l = goes(row, i);
      rows[left] = row, s.rows[right] = row;
      left += l, right += !l;
    }
    std::copy_n(s.rows.begin(), right, rows + left);
    return left;
  };
  if (cells_) {
    s.value.resize(m);
    cells_->gather(rows, m, cut.feature, s.value.data());
    return place([&](std::uint32_t, index_t i) {
      const double v = s.value[i];
      if (v != v) return cut.missing_left;
      return cut.categorical ? contains(cut.set.data(), static_cast<unsigned>(v)) : v <= cut.threshold;
    });
  }
  const bool zero = goes_left(cut, nonzeros_->zero[cut.feature]);
  if (in_place_) {
    look_at_column(node, cut.feature, s);
    for (const Sorted::Entry* e = s.first; e < s.last; ++e) side_[e->row] = goes_left(cut, e->code) != zero;
    const index_t left = place([&](std::uint32_t row, index_t) { return (side_[row] != 0) != zero; });
    for (const Sorted::Entry* e = s.first; e < s.last; ++e) side_[e->row] = 0;
    return left;
  }
  const auto at = std::lower_bound(node.spans.begin(), node.spans.end(), cut.feature,
                                   [](const Span& a, std::int32_t feature) { return a.feature < feature; });
  look_at(entries_.data(), *at, s);
  for (index_t i = 0; i < m; ++i) side_[rows[i]] = zero;
  for (const Sorted::Entry* e = s.first; e < s.last; ++e) side_[e->row] = goes_left(cut, e->code);
  return place([&](std::uint32_t row, index_t) { return side_[row] != 0; });
}

void Grower::part_spans(const Node& node, Node& left, Node& right, Scratch& s) {
  const auto n = static_cast<index_t>(node.spans.size());
  std::vector<index_t> middle(n);
  const auto part = [&](index_t begin, index_t end, std::vector<Sorted::Entry>& spare) {
    for (index_t k = begin; k < end; ++k) {
      const Span& span = node.spans[k];
      if (static_cast<index_t>(spare.size()) < span.end - span.begin) spare.resize(span.end - span.begin);
      index_t l = span.begin, r = 0;
      for (index_t i = span.begin; i < span.end; ++i) {
        const Sorted::Entry entry = entries_[i];
        const bool goes = side_[entry.row];
        entries_[l] = entry, spare[r] = entry;
        l += goes, r += !goes;
      }
      std::copy_n(spare.begin(), r, entries_.begin() + l);
      middle[k] = l;
    }
  };
  if (node.end - node.begin >= kParallel) {
    const index_t parts = std::min<index_t>(n, 32);
    parallel_for(parts, [&](index_t k) {
      std::vector<Sorted::Entry> spare;
      part(range_begin(n, parts, k), range_begin(n, parts, k + 1), spare);
    });
  } else {
    part(0, n, s.entries);
  }
  for (index_t k = 0; k < n; ++k) {
    const Span& span = node.spans[k];
    if (span.begin < middle[k]) left.spans.push_back({span.feature, span.begin, middle[k]});
    if (middle[k] < span.end) right.spans.push_back({span.feature, middle[k], span.end});
  }
}

std::pair<Node, Node> Grower::split(CartTree& tree, const Node& node, Scratch& s) {
  Nodes& t = tree.nodes;
  const Cut& cut = node.cut;
  Node left, right;
  left.begin = node.begin;
  left.end = right.begin = node.begin + partition(node, s);
  right.end = node.end;
  left.depth = right.depth = node.depth + 1;
  left.key = mix64(2 * node.key), right.key = mix64(2 * node.key + 1);
  left.lower = right.lower = node.lower, left.upper = right.upper = node.upper;
  const bool left_is_small = 2 * (left.end - left.begin) <= node.end - node.begin;
  Node &small = left_is_small ? left : right, &large = left_is_small ? right : left;
  if (in_place_) label_children(node, small, large);
  if (nonzeros_ && !in_place_ && !(o_.max_depth > 0 && left.depth >= o_.max_depth)) part_spans(node, left, right, s);
  start(small), start(large, &node, &small);
  if (const int direction = o_.monotone.empty() ? 0 : o_.monotone[cut.feature]; direction != 0) {
    const bool medians = o_.criterion == Criterion::absolute;
    const double a = medians ? median(left, 0).first : left.total[2] / left.total[1];
    const double b = medians ? median(right, 0).first : right.total[2] / right.total[1];
    const double middle = 0.5 * (a + b);
    (direction > 0 ? left.upper : left.lower) = middle;
    (direction > 0 ? right.lower : right.upper) = middle;
  }
  add(tree, left), add(tree, right);
  t.left[node.id] = left.id;
  t.feature[node.id] = cut.feature;
  t.threshold[node.id] = cut.threshold;
  t.missing_left[node.id] = cut.missing_left;
  t.gain[node.id] = cut.score;
  if (bins_) t.bin[node.id] = static_cast<std::uint8_t>(cut.code);
  if (cut.categorical) {
    t.set[node.id] = static_cast<std::int32_t>(t.sets.size() / 8);
    t.sets.insert(t.sets.end(), cut.set.begin(), cut.set.end());
  }
  return {std::move(left), std::move(right)};
}

void Grower::best_first(CartTree& tree, Node& root, Scratch& s) {
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

void Grower::subtree(CartTree& tree, Node&& top, Scratch& s) {
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

void Grower::depth_first(CartTree& tree, Node& root, Scratch& s) {
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
  if (threads_here() == 1) {  // the same nodes in the same order, without copies
    for (Node& top : tops) subtree(tree, std::move(top), s);
    return;
  }
  std::vector<CartTree> below(tops.size());
  std::vector<std::int32_t> ids(tops.size());
  parallel_for(static_cast<index_t>(tops.size()), [&](index_t k) {
    Scratch scratch;
    ids[k] = tops[k].id;
    add(below[k], tops[k]);
    subtree(below[k], std::move(tops[k]), scratch);
  });
  for (std::size_t k = 0; k < below.size(); ++k) graft(tree, ids[k], below[k]);
}

void Grower::graft(CartTree& tree, std::int32_t id, const CartTree& branch) const {
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

}  // namespace cart

CartTree grow_cart(const Forms& table, const double* y, const CartRows& rows, const CartOptions& options,
                   std::uint64_t seed) {
  return cart::Grower(table, y, rows, options, seed).grow();
}

}  // namespace hinge::trees
