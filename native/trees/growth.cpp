#include "trees/growth.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/pool.hpp"
#include "core/random.hpp"
#include "trees/bundle.hpp"

namespace hinge::trees {
namespace {

constexpr index_t kPoolBytes = index_t{1} << 28;
constexpr index_t kCut = 2048;         // rows that a thread counts at least when a group is cut by rows
constexpr index_t kSlotsTogether = 4;  // slots that are searched in one piece of work
constexpr double kInf = std::numeric_limits<double>::infinity();

bool contains_all(const std::vector<std::int32_t>& set, const std::vector<std::int32_t>& path) {
  return std::all_of(path.begin(), path.end(),
                     [&](std::int32_t f) { return std::find(set.begin(), set.end(), f) != set.end(); });
}

// Sums of g and h in 64ths of a unit over the rows of a leaf.
HINGE_HOT void fine_sums(const std::uint32_t* __restrict words, const std::uint32_t* __restrict which, index_t m,
                         std::int64_t& g, std::int64_t& h) {
  std::int64_t a = 0, b = 0;
  for (index_t i = 0; i < m; ++i) {
    const std::uint32_t word = words[which[i]];
    a += Packed::fine_g(word), b += Packed::fine_h(word);
  }
  g = a, h = b;
}

}  // namespace

struct Growth::Open {
  std::int32_t node = 0;
  index_t begin = 0, end = 0;
  int depth = 0;
  int histogram = -1;
  NodeSums sums{{}, {}, {-kInf, kInf}};
  std::vector<std::int32_t> path;    // features used above, kept under interaction constraints only
  std::vector<std::uint8_t> usable;  // whether it may be split on a feature; empty: on all
  Split best;
  index_t size() const { return end - begin; }
};

struct Growth::Tree {
  const Bins& bins;
  const Rounded& rows;
  const GrowOptions& options;

  bool searchable(const Open& leaf) const {
    if (leaf.sums.total.c < std::max(2 * options.split.min_count, options.min_split)) return false;
    if (static_cast<double>(leaf.sums.total.h) * rows.h_unit < 2 * options.split.min_hessian) return false;
    return options.max_depth <= 0 || leaf.depth < options.max_depth;
  }
  bool admits(const Open& leaf, index_t j) const {
    if (!leaf.usable.empty() && !leaf.usable[j]) return false;
    if (options.allowed.empty()) return true;
    return std::any_of(options.allowed.begin(), options.allowed.end(), [&](const std::vector<std::int32_t>& set) {
      return std::find(set.begin(), set.end(), j) != set.end() && contains_all(set, leaf.path);
    });
  }
};

// The best split of a leaf on the features of some slots.
void Growth::search(const Tree& t, Open& leaf, const Slots& some, Split& best) {
  if (!t.searchable(leaf)) return;
  const Bins& bins = t.bins;
  const auto run = [&]<class Sums>(const typename Sums::Entry* cells) {
    using Entry = typename Sums::Entry;
    Entry own[kBins];
    std::vector<Part> pairs;
    cells += (some.begin - bins.group_begin[some.group]) * kBins;
    for (index_t k = some.begin; k < some.end; ++k, cells += kBins) {
      const Slot& slot = bins.slots[k];
      Entry total{};
      if (slot.shared())
        for (int b = 0; b < slot.codes; ++b) total += cells[b];
      pairs.clear();
      for (const Part& part : slot.parts) {
        if (!t.admits(leaf, part.feature)) continue;
        const Feature& feature = bins.features[part.feature];
        const int direction = t.options.monotone.empty() ? 0 : t.options.monotone[part.feature];
        if (slot.shared() && feature.bins == 2 && direction == 0) {
          pairs.push_back(part);
          continue;
        }
        if (slot.shared()) unbundle(cells, total, part, feature.bins, own);
        improve<Sums>(slot.shared() ? own : cells, feature, static_cast<std::int32_t>(part.feature), leaf.sums,
                      direction, t.options.split, best);
      }
      if (!pairs.empty()) improve_pairs<Sums>(cells, total, pairs, bins.features, leaf.sums, t.options.split, best);
    }
  };
  Histogram& histogram = pool_[leaf.histogram];
  if (!t.rows.narrow(leaf.size())) return run.template operator()<WideSums>(histogram.wide(bins, some.group));
  with_form(t.rows.form,
            [&]<class Form>(Form) { run.template operator()<NarrowSums<Form>>(histogram.narrow(bins, some.group)); });
}

// Fills the histogram of `small` from its rows, that of `large` (which holds the parent's) by subtraction, and searches
// both for their best splits. `large` is null for the root, whose histogram may be filled.
void Growth::find_splits(const Tree& t, Open& small, Open* large, bool filled) {
  const Bins& bins = t.bins;
  const index_t groups = bins.groups, m = small.size();
  const bool narrow = t.rows.narrow(m);
  Histogram& mine = pool_[small.histogram];
  const bool all = small.begin == 0 && m == rows_.all();
  const std::uint32_t* which = all ? nullptr : rows_.at(small.begin);
  const bool was = large && t.rows.narrow(m + large->size()), is = large && t.rows.narrow(large->size());
  const auto take_from_parent = [&](const Slots& some) {
    subtract(pool_[large->histogram], was, is, mine, narrow, bins, some, t.rows.form);
  };

  // Sums of integers do not depend on how the rows are cut, so this may look at the number of threads.
  const index_t threads = threads_here();
  const bool by_group = groups % threads == 0 || groups >= 8 * threads;
  const index_t cuts = filled || by_group ? 1 : std::clamp<index_t>(m / kCut, 1, threads);
  if (static_cast<index_t>(partial_.size()) < cuts - 1) partial_.resize(cuts - 1);
  for (index_t c = 0; c < cuts - 1; ++c) partial_[c].make(bins);
  const auto count = [&](index_t task) {
    const index_t group = task / cuts, cut = task % cuts;
    const index_t begin = range_begin(m, cuts, cut), end = range_begin(m, cuts, cut + 1);
    fill(cut == 0 ? mine : partial_[cut - 1], narrow, bins, group, t.rows, which ? which + begin : nullptr, begin,
         end - begin);
  };
  const auto finish = [&](const Slots& some, Split* found) {
    for (index_t c = 0; c < cuts - 1; ++c) merge(mine, partial_[c], narrow, bins, some);
    if (large && was == is) take_from_parent(some);
    search(t, small, some, found[0]);
    if (large && was == is) search(t, *large, some, found[1]);
  };

  std::vector<Slots> pieces;
  for (index_t group = 0; group < groups; ++group) {
    const Slots all = all_slots(bins, group);
    const index_t together = by_group ? all.end - all.begin : kSlotsTogether;
    for (index_t k = all.begin; k < all.end; k += together)
      pieces.push_back({group, k, std::min(all.end, k + together)});
  }
  std::vector<Split> found(2 * pieces.size());
  if (by_group && !filled) {  // a group is a piece: the thread that has counted it finds it in its cache
    parallel_for(groups, [&](index_t group) {
      count(group);
      finish(pieces[group], &found[2 * group]);
    });
  } else {
    if (!filled) parallel_for(groups * cuts, count);
    parallel_for(static_cast<index_t>(pieces.size()), [&](index_t k) { finish(pieces[k], &found[2 * k]); });
  }
  if (large && was != is) {
    parallel_for(groups, [&](index_t group) { take_from_parent(all_slots(bins, group)); });
    parallel_for(static_cast<index_t>(pieces.size()),
                 [&](index_t k) { search(t, *large, pieces[k], found[2 * k + 1]); });
  }
  const auto keep = [](Open& leaf, const Split& s) {
    if (s.feature >= 0 && leaf.best.loses_to(s.gain, s.feature)) leaf.best = s;
  };
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    keep(small, found[2 * k]);
    if (large) keep(*large, found[2 * k + 1]);
  }
}

Nodes Growth::grow(const Bins& bins, const Rounded& gradients, const GrowOptions& options, const Draw& draw,
                   Histogram* root_histogram) {
  const Tree t{bins, gradients, options};
  const Units unit{gradients.g_unit, gradients.h_unit};
  rows_.start(bins.rows, draw.rows, draw.row_seed);

  // Every node draws its features.
  const auto draw_features = [&](Open& leaf) {
    if (draw.features >= 1) return;
    std::vector<std::int32_t> order(bins.cols);
    std::iota(order.begin(), order.end(), 0);
    Random random(draw.seed, 0xFEA7 + static_cast<std::uint64_t>(leaf.node));
    random.shuffle(order.data(), bins.cols);
    const auto keep = std::max<index_t>(1, std::llround(draw.features * static_cast<double>(bins.cols)));
    leaf.usable.assign(bins.cols, 0);
    for (index_t k = 0; k < keep; ++k) leaf.usable[order[k]] = 1;
  };

  Nodes tree;
  leaves_.clear();
  std::vector<Open> open;
  // Open leaves keep their histograms for the subtraction below them, within a budget of memory; a leaf without one
  // has both of its children counted from their rows.
  const index_t bytes = static_cast<index_t>(bins.slots.size()) * kBins * static_cast<index_t>(sizeof(Cell));
  const index_t budget = std::min<index_t>(options.max_leaves + 1, std::max<index_t>(4, kPoolBytes / bytes));
  pool_.resize(budget);
  std::vector<int> free_histograms;
  for (index_t k = budget - 1; k >= 0; --k) free_histograms.push_back(static_cast<int>(k));
  const auto take_histogram = [&] {
    const int k = free_histograms.back();
    free_histograms.pop_back();
    pool_[k].make(bins);
    return k;
  };
  const auto release = [&](Open& leaf) {
    if (leaf.histogram >= 0) free_histograms.push_back(leaf.histogram);
    leaf.histogram = -1;
  };
  const auto add = [&](double value, const Cell& sums) {
    return tree.add(value, static_cast<double>(sums.h) * unit.h, sums.c);
  };

  Open root;
  root.end = rows_.used();
  root.histogram = take_histogram();
  root.sums.unit = unit;
  root.sums.total = add_up(gradients, rows_.used() == bins.rows ? nullptr : rows_.at(0), rows_.used());
  root.node = add(leaf_value(root.sums.total, unit, options.split.l2, root.sums.bounds), root.sums.total);
  draw_features(root);
  if (root_histogram) std::swap(pool_[root.histogram], *root_histogram);
  if (options.max_leaves > 1) find_splits(t, root, nullptr, root_histogram != nullptr);
  open.push_back(std::move(root));

  int leaf_count = 1;
  while (!open.empty()) {
    // The next leaf to split: the largest gain, or the highest level and there the largest gain.
    std::size_t pick = 0;
    for (std::size_t k = 1; k < open.size(); ++k) {
      const bool level = options.by_level && open[k].depth != open[pick].depth;
      if (level ? open[k].depth < open[pick].depth : open[k].best.gain > open[pick].best.gain) pick = k;
    }
    Open leaf = std::move(open[pick]);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(pick));
    if (leaf.best.feature < 0 || leaf_count >= options.max_leaves) {
      leaves_.push_back({leaf.node, leaf.begin, leaf.end});
      release(leaf);
      continue;
    }
    ++leaf_count;
    const Split& s = leaf.best;
    tree.feature[leaf.node] = s.feature;
    tree.threshold[leaf.node] = s.threshold;
    tree.bin[leaf.node] = static_cast<std::uint8_t>(s.bin);
    tree.missing_left[leaf.node] = s.missing_left;
    tree.gain[leaf.node] = s.gain;
    if (s.categorical) {
      tree.set[leaf.node] = static_cast<std::int32_t>(tree.sets.size() / 8);
      tree.sets.insert(tree.sets.end(), s.set.begin(), s.set.end());
    }
    Open left, right;
    left.node = add(s.left_value, s.left);
    right.node = add(s.right_value, s.right);
    tree.left[leaf.node] = left.node;
    draw_features(left), draw_features(right);
    left.depth = right.depth = leaf.depth + 1;
    left.sums = {s.left, unit, leaf.sums.bounds}, right.sums = {s.right, unit, leaf.sums.bounds};
    const int direction = options.monotone.empty() ? 0 : options.monotone[s.feature];
    if (direction != 0) {
      const double middle = 0.5 * (s.left_value + s.right_value);
      (direction > 0 ? left.sums.bounds.upper : left.sums.bounds.lower) = middle;
      (direction > 0 ? right.sums.bounds.lower : right.sums.bounds.upper) = middle;
    }
    if (!options.allowed.empty()) {
      left.path = leaf.path;
      left.path.push_back(s.feature);
      right.path = left.path;
    }
    const index_t went_left = rows_.split(bins, tree, leaf.node, leaf.begin, leaf.end);
    left.begin = leaf.begin, left.end = right.begin = leaf.begin + went_left, right.end = leaf.end;
    Open& small = left.size() <= right.size() ? left : right;
    Open& large = left.size() <= right.size() ? right : left;
    if (leaf_count < options.max_leaves) {
      const bool kept = leaf.histogram >= 0;
      large.histogram = kept ? leaf.histogram : take_histogram();
      if (!kept) find_splits(t, large, nullptr);
      small.histogram = take_histogram();
      find_splits(t, small, kept ? &large : nullptr);
      for (Open* child : {&small, &large})
        if (child->best.feature < 0 || free_histograms.size() < 2) release(*child);
    } else {
      release(leaf);
    }
    open.push_back(std::move(left));
    open.push_back(std::move(right));
  }
  if (options.prune > 0)
    prune(tree, options.prune * static_cast<double>(rows_.used()) / static_cast<double>(bins.rows));
  values(t, tree);
  return tree;
}

// The subtree that maximises  sum of gains - cost * leaves  (Breiman et al. 1984, chapter 3); the smallest among
// equals.
void Growth::prune(Nodes& tree, double cost) {
  const std::int32_t n = tree.size();
  std::vector<double> gain(n, 0.0);
  std::vector<std::int32_t> leaves(n, 1), number(n, -1);
  std::vector<index_t> begin(n, rows_.used()), end(n, 0);
  for (const Leaf& leaf : leaves_) begin[leaf.node] = leaf.begin, end[leaf.node] = leaf.end;
  for (std::int32_t t = n - 1; t >= 0; --t) {  // children come after their parents
    const std::int32_t l = tree.left[t];
    if (l < 0) continue;
    begin[t] = std::min(begin[l], begin[l + 1]), end[t] = std::max(end[l], end[l + 1]);
    gain[t] = tree.gain[t] + gain[l] + gain[l + 1];
    leaves[t] = leaves[l] + leaves[l + 1];
    if (gain[t] > cost * (leaves[t] - 1) * (1 + 1e-12)) continue;
    gain[t] = 0, leaves[t] = 1;
    tree.feature[t] = tree.left[t] = tree.set[t] = -1;
    tree.gain[t] = tree.threshold[t] = 0;
    tree.missing_left[t] = tree.bin[t] = 0;
  }
  std::vector<std::int32_t> kept{0};
  for (std::size_t k = 0; k < kept.size(); ++k) {  // grows as it goes: level by level
    const std::int32_t l = tree.left[kept[k]];
    if (l >= 0) kept.push_back(l), kept.push_back(l + 1);
  }
  for (std::size_t k = 0; k < kept.size(); ++k) number[kept[k]] = static_cast<std::int32_t>(k);
  leaves_.clear();
  for (const std::int32_t t : kept) {
    if (tree.left[t] < 0)
      leaves_.push_back({number[t], begin[t], end[t]});
    else
      tree.left[t] = number[tree.left[t]];
  }
  const auto pick = [&](auto& values) {
    auto old = std::move(values);
    values.clear();
    for (const std::int32_t t : kept) values.push_back(old[t]);
  };
  pick(tree.feature), pick(tree.threshold), pick(tree.left), pick(tree.missing_left), pick(tree.set), pick(tree.value);
  pick(tree.gain), pick(tree.weight), pick(tree.count), pick(tree.bin);
}

// Leaf values from gradients before they were rounded at random.
void Growth::values(const Tree& t, Nodes& tree) const {
  // Under monotone constraints the values came with bounds that this would ignore.
  if (t.rows.form != Rounding::packed || !t.options.monotone.empty()) return;
  struct Sums {
    std::size_t leaf;
    index_t begin, end;
    std::int64_t g = 0, h = 0;
  };
  std::vector<Sums> pieces;
  for (std::size_t k = 0; k < leaves_.size(); ++k)
    for (index_t at = leaves_[k].begin; at < leaves_[k].end; at += kBlock)
      pieces.push_back({k, at, std::min(leaves_[k].end, at + kBlock)});
  parallel_for(static_cast<index_t>(pieces.size()), [&](index_t p) {
    Sums& s = pieces[p];
    fine_sums(t.rows.words, rows_.at(s.begin), s.end - s.begin, s.g, s.h);
  });
  for (std::size_t p = 0; p < pieces.size();) {
    const std::size_t k = pieces[p].leaf;
    std::int64_t g = 0, h = 0;
    for (; p < pieces.size() && pieces[p].leaf == k; ++p) g += pieces[p].g, h += pieces[p].h;
    tree.value[leaves_[k].node] =
        leaf_value(static_cast<double>(g) * t.rows.g_unit / 64, static_cast<double>(h) * t.rows.h_unit / 64,
                   t.options.split.l2, {-kInf, kInf});
  }
}

}  // namespace hinge::trees
