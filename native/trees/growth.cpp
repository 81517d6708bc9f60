#include "trees/growth.hpp"

#include <algorithm>

#include "core/pool.hpp"

namespace hinge::trees {
namespace {

constexpr index_t kPoolBytes = index_t{1} << 28;
constexpr index_t kCut = 2048;         // minimum number of rows per thread when the rows of a group are divided
constexpr index_t kSlotsTogether = 4;  // slots searched in one piece of work

}  // namespace

struct Growth::Open : OpenLeaf {
  index_t begin = 0, end = 0;
  int histogram = -1;
  Open() = default;
  explicit Open(OpenLeaf&& leaf) : OpenLeaf(std::move(leaf)) {}
  index_t size() const { return end - begin; }
};

struct Growth::Tree {
  const Bins& bins;
  const Rounded& rows;
  TreeBuilder& builder;
};

// Fills the histogram of `small` from its rows and that of `large` (which holds the parent's) by subtraction, then
// searches both for their best splits. `large` is null for the root; `filled` means that its histogram exists.
void Growth::find_splits(const Tree& t, Open& small, Open* large, bool filled) {
  const Bins& bins = t.bins;
  const index_t groups = bins.groups, m = small.size();
  const bool narrow = t.rows.narrow(m);
  Histogram& counted = pool_[small.histogram];
  const bool all = small.begin == 0 && m == rows_.all();
  const std::uint32_t* which = all ? nullptr : rows_.at(small.begin);
  const bool was = large && t.rows.narrow(m + large->size()), is = large && t.rows.narrow(large->size());
  const auto search = [&](Open& leaf, const Slots& some, Split& best) {
    t.builder.search(leaf, pool_[leaf.histogram], t.rows.narrow(leaf.size()), some, best);
  };
  const auto take_from_parent = [&](const Slots& some) {
    subtract(pool_[large->histogram], was, is, counted, narrow, bins, some, t.rows.form);
  };

  // Integer sums do not depend on the partition of the rows, so the partition may depend on the number of threads.
  const index_t threads = threads_here();
  const bool by_group = groups % threads == 0 || groups >= 8 * threads;
  const index_t cuts = filled || by_group ? 1 : std::clamp<index_t>(m / kCut, 1, threads);
  if (static_cast<index_t>(partial_.size()) < cuts - 1) partial_.resize(cuts - 1);
  for (index_t c = 0; c < cuts - 1; ++c) partial_[c].make(bins);
  const auto count = [&](index_t task) {
    const index_t group = task / cuts, cut = task % cuts;
    const index_t begin = range_begin(m, cuts, cut), end = range_begin(m, cuts, cut + 1);
    fill(cut == 0 ? counted : partial_[cut - 1], narrow, bins, group, t.rows, which ? which + begin : nullptr, begin,
         end - begin);
  };
  const auto finish = [&](const Slots& some, Split* found) {
    for (index_t c = 0; c < cuts - 1; ++c) merge(counted, partial_[c], narrow, bins, some);
    if (large && was == is) take_from_parent(some);
    search(small, some, found[0]);
    if (large && was == is) search(*large, some, found[1]);
  };

  std::vector<Slots> pieces;
  for (index_t group = 0; group < groups; ++group) {
    const Slots all = all_slots(bins, group);
    const index_t slots_per_piece = by_group ? all.end - all.begin : kSlotsTogether;
    for (index_t k = all.begin; k < all.end; k += slots_per_piece)
      pieces.push_back({group, k, std::min(all.end, k + slots_per_piece)});
  }
  std::vector<Split> found(2 * pieces.size());
  if (by_group && !filled) {  // a group is one piece: its histogram is in the cache of the thread that filled it
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
    parallel_for(static_cast<index_t>(pieces.size()), [&](index_t k) { search(*large, pieces[k], found[2 * k + 1]); });
  }
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    small.keep(found[2 * k]);
    if (large) large->keep(found[2 * k + 1]);
  }
}

Nodes Growth::grow(const Bins& bins, const Rounded& gradients, const GrowOptions& options, const Draw& draw,
                   Histogram* root_histogram) {
  TreeBuilder builder(bins, options, draw, gradients.form, {gradients.g_unit, gradients.h_unit});
  const Tree t{bins, gradients, builder};
  rows_.start(bins.rows, draw.rows, draw.row_seed);

  leaves_.clear();
  std::vector<Open> open;
  // Open leaves keep their histograms, from which those of their children are subtracted, within a memory budget. For a
  // leaf without one, both children are counted from their rows.
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

  Open root(builder.root(add_up(gradients, rows_.used() == bins.rows ? nullptr : rows_.at(0), rows_.used())));
  root.end = rows_.used();
  root.histogram = take_histogram();
  if (root_histogram) std::swap(pool_[root.histogram], *root_histogram);
  if (options.max_leaves > 1) find_splits(t, root, nullptr, root_histogram != nullptr);
  open.push_back(std::move(root));

  int leaf_count = 1;
  while (!open.empty()) {
    const std::size_t pick = builder.pick(open.size(), [&](std::size_t k) -> const OpenLeaf& { return open[k]; });
    Open leaf = std::move(open[pick]);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(pick));
    if (leaf.best.feature < 0 || leaf_count >= options.max_leaves) {
      leaves_.push_back({leaf.node, leaf.begin, leaf.end});
      release(leaf);
      continue;
    }
    ++leaf_count;
    auto [first, second] = builder.children(leaf);
    Open left(std::move(first)), right(std::move(second));
    builder.record(leaf, left, right);
    const index_t went_left = rows_.split(bins, builder.tree, leaf.node, leaf.begin, leaf.end);
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
    prune(builder.tree, options.prune * static_cast<double>(rows_.used()) / static_cast<double>(bins.rows));
  values(t);
  return std::move(builder.tree);
}

// A leaf of the pruned tree holds the rows of the leaves it replaces, which are adjacent.
void Growth::prune(Nodes& tree, double cost) {
  const std::int32_t n = tree.size();
  std::vector<index_t> begin(n, rows_.used()), end(n, 0);
  for (const Leaf& leaf : leaves_) begin[leaf.node] = leaf.begin, end[leaf.node] = leaf.end;
  for (std::int32_t t = n - 1; t >= 0; --t)  // children come after their parents
    if (const std::int32_t l = tree.left[t]; l >= 0)
      begin[t] = std::min(begin[l], begin[l + 1]), end[t] = std::max(end[l], end[l + 1]);
  const std::vector<std::int32_t> kept = cut_back(tree, cost);
  leaves_.clear();
  for (std::size_t k = 0; k < kept.size(); ++k)
    if (tree.left[k] < 0) leaves_.push_back({static_cast<std::int32_t>(k), begin[kept[k]], end[kept[k]]});
}

// Computes leaf values from gradients before stochastic rounding.
void Growth::values(const Tree& t) {
  if (!t.builder.fine()) return;
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
    t.builder.tree.value[leaves_[k].node] = t.builder.fine_value(g, h);
  }
}

}  // namespace hinge::trees
