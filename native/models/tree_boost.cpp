#include "models/tree_boost.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/pool.hpp"
#include "core/random.hpp"
#include "models/tree_bundle.hpp"

namespace hinge::trees {
namespace {

constexpr index_t kPad = 64;  // room behind the row numbers, for prefetches that run ahead
constexpr index_t kChunk = 1 << 15;
constexpr index_t kPoolBytes = index_t{1} << 28;
constexpr double kInf = std::numeric_limits<double>::infinity();

// Moves the rows that go left to the front, the others to `spare`, both in order; returns how many went left.
template <class Test>
HINGE_INLINE index_t separate(std::uint32_t* rows, index_t n, std::uint32_t* out, std::uint32_t* spare,
                              const Test& left) {
  index_t nl = 0, nr = 0;
  for (index_t i = 0; i < n; ++i) {
    const std::uint32_t row = rows[i];
    const bool l = left(row);
    out[nl] = row;
    spare[nr] = row;
    nl += l;
    nr += !l;
  }
  return nl;
}

// The Newton step of a log-odds, made shorter where it would overshoot. A leaf whose rows were thought to be of a class
// with probability p, and are in fact of it more often, asks for a step of up to 1/p, while the log-odds that fit it
// grow like log(1/p) only. Steps up to 2, the longest from p = 1/2, are left alone.
double damped(double step) {
  const double size = std::fabs(step);
  return size <= 2 ? step : std::copysign(2 + std::log1p(size - 2), step);
}

bool contains_all(const std::vector<std::int32_t>& set, const std::vector<std::int32_t>& path) {
  return std::all_of(path.begin(), path.end(),
                     [&](std::int32_t f) { return std::find(set.begin(), set.end(), f) != set.end(); });
}

}  // namespace

struct Booster::Leaf {
  std::int32_t node = 0;
  index_t begin = 0, end = 0;
  int depth = 0;
  int histogram = -1;
  NodeSums sums;
  Bounds bounds{-kInf, kInf};
  std::vector<std::int32_t> path;    // features used above, kept under interaction constraints only
  std::vector<std::uint8_t> usable;  // whether it may be split on a feature; empty: on all
  Split best;
  index_t size() const { return end - begin; }
};

Booster::Booster(std::shared_ptr<const Bins> bins, std::vector<double> y, std::vector<double> weight, index_t outputs,
                 bool exact, bool frequency, GrowOptions options)
    : bins_(std::move(bins)),
      y_(std::move(y)),
      weight_(std::move(weight)),
      outputs_(outputs),
      exact_(exact),
      options_(std::move(options)),
      scores_(bins_->rows * outputs, 0.0),
      rows_(bins_->rows + kPad, 0),
      spare_(bins_->rows + kPad, 0) {
  const std::size_t size = static_cast<std::size_t>(bins_->rows * outputs);
  if (exact_ && frequency) rounded_.count.assign(weight_.begin(), weight_.end());
  if (exact_)
    g64_.resize(size), h64_.resize(size);
  else
    g32_.resize(size), h32_.resize(size);
}

void Booster::gradients(const Loss& loss, bool logistic, const Curvature& curvature) {
  const index_t n = rows();
  // The exact form multiplies by the weights when it rounds.
  if (exact_)
    trees::gradients(loss, logistic, y_.data(), scores_.data(), nullptr, n, curvature, g64_.data(), h64_.data());
  else
    trees::gradients(loss, logistic, y_.data(), scores_.data(), weight_.empty() ? nullptr : weight_.data(), n,
                     curvature, g32_.data(), h32_.data());
  constant_h_ = !curvature.own && weight_.empty() ? curvature.bound : 0;
  damped_ = logistic;
}

void Booster::softmax() {
  const double* w = weight_.empty() ? nullptr : weight_.data();
  if (exact_)
    softmax_gradients(y_.data(), scores_.data(), nullptr, rows(), outputs_, g64_.data(), h64_.data());
  else
    softmax_gradients(y_.data(), scores_.data(), w, rows(), outputs_, g32_.data(), h32_.data());
  constant_h_ = 0;
  damped_ = true;
}

void Booster::sample_rows(const Draw& draw) {
  const index_t n = rows();
  if (draw.rows >= 1) {
    std::iota(rows_.begin(), rows_.begin() + n, 0u);
    used_ = n;
    return;
  }
  // Each row is in with probability draw.rows; the rest are kept behind, for the update.
  const Random random(draw.seed, 0x5A3B);
  index_t in = 0, out = 0;
  for (index_t i = 0; i < n; ++i) {
    if (random.uniform_at(i) < draw.rows)
      rows_[in++] = static_cast<std::uint32_t>(i);
    else
      spare_[out++] = static_cast<std::uint32_t>(i);
  }
  std::copy(spare_.begin(), spare_.begin() + out, rows_.begin() + in);
  used_ = in;
}

index_t Booster::partition(const Nodes& tree, std::int32_t node, index_t begin, index_t end) {
  const std::uint8_t* column = bins_->col(tree.feature[node]);
  const int bin = tree.bin[node];
  const bool missing_left = tree.missing_left[node];
  const std::uint32_t* set = tree.set[node] >= 0 ? tree.sets.data() + 8 * tree.set[node] : nullptr;
  const auto run = [&](std::uint32_t* from, index_t n, std::uint32_t* out, std::uint32_t* spare) {
    if (set)
      return separate(from, n, out, spare, [&](std::uint32_t row) {
        return column[row] == kMissing ? missing_left : contains(set, column[row]);
      });
    if (missing_left)  // 255 + 1 wraps to 0, below every threshold
      return separate(from, n, out, spare,
                      [&](std::uint32_t row) { return static_cast<std::uint8_t>(column[row] + 1) <= bin + 1; });
    return separate(from, n, out, spare, [&](std::uint32_t row) { return column[row] <= bin; });
  };
  const index_t n = end - begin;
  std::uint32_t* rows = rows_.data() + begin;
  std::uint32_t* spare = spare_.data() + begin;
  const index_t parts = (n + kChunk - 1) / kChunk;
  if (parts <= 1) {
    const index_t left = run(rows, n, rows, spare);
    std::copy(spare, spare + (n - left), rows + left);
    return left;
  }
  // Chunk by chunk in place, then the pieces are put together through `spare`.
  std::vector<index_t> lefts(parts);
  parallel_for(parts, [&](index_t p) {
    const index_t b = p * kChunk, size = std::min(kChunk, n - b);
    lefts[p] = run(rows + b, size, rows + b, spare + b);
  });
  std::vector<index_t> to(parts);
  index_t left = 0, right = 0;
  for (index_t p = 0; p < parts; ++p) {
    to[p] = left;
    left += lefts[p];
  }
  // Left pieces only move down, one after the other; right pieces are in `spare` and go to their places in parallel.
  for (index_t p = 1; p < parts; ++p) std::copy_n(rows + p * kChunk, lefts[p], rows + to[p]);
  std::vector<index_t> right_to(parts);
  for (index_t p = 0; p < parts; ++p) {
    right_to[p] = left + right;
    right += std::min(kChunk, n - p * kChunk) - lefts[p];
  }
  parallel_for(parts, [&](index_t p) {
    std::copy_n(spare + p * kChunk, std::min(kChunk, n - p * kChunk) - lefts[p], rows + right_to[p]);
  });
  return left;
}

// Fills the histogram of `small` from its rows, that of `large` (which holds the parent's) by subtraction, and searches
// both for their best splits. `large` is null for the root.
void Booster::find_splits(Leaf& small, Leaf* large) {
  const Bins& bins = *bins_;
  const index_t groups = bins.groups, m = small.size();
  Cell* mine = pool_[small.histogram].data();
  Cell* other = large ? pool_[large->histogram].data() : nullptr;
  const bool all = small.begin == 0 && m == rows();
  const std::uint32_t* which = all ? nullptr : rows_.data() + small.begin;

  const auto each_slot = [&](index_t group, auto&& f) {
    for (index_t k = bins.group_begin[group]; k < bins.group_begin[group + 1]; ++k) f(k, bins.slots[k]);
  };
  const auto clear = [&](Cell* cells, index_t group) {
    each_slot(group, [&](index_t k, const Slot& slot) {
      std::fill_n(cells + k * kBins, slot.codes, Cell{});
      cells[k * kBins + kMissing] = Cell{};
    });
  };
  const auto combine = [&](Cell* into, const Cell* from, index_t group, auto&& op) {
    each_slot(group, [&](index_t k, const Slot& slot) {
      for (int b = 0; b < slot.codes; ++b) op(into[k * kBins + b], from[k * kBins + b]);
      op(into[k * kBins + kMissing], from[k * kBins + kMissing]);
    });
  };
  const auto searchable = [&](const Leaf& leaf) {
    if (leaf.sums.c < std::max(2 * options_.split.min_count, options_.min_split)) return false;
    if (leaf.sums.h < 2 * options_.split.min_hessian) return false;
    return options_.max_depth <= 0 || leaf.depth < options_.max_depth;
  };
  const auto admits = [&](const Leaf& leaf, index_t j) {
    if (options_.allowed.empty()) return true;
    return std::any_of(options_.allowed.begin(), options_.allowed.end(), [&](const std::vector<std::int32_t>& set) {
      return std::find(set.begin(), set.end(), j) != set.end() && contains_all(set, leaf.path);
    });
  };
  std::vector<Split> found(2 * groups);
  const auto search = [&](const Leaf& leaf, const Cell* cells, index_t group, Split& best) {
    if (!searchable(leaf)) return;
    const auto try_feature = [&](index_t j, const Cell* own) {
      const Split s =
          best_split(own, bins.features[j], static_cast<std::int32_t>(j), leaf.sums, rounded_.g_unit, rounded_.h_unit,
                     options_.monotone.empty() ? 0 : options_.monotone[j], leaf.bounds, options_.split);
      if (s.feature >= 0 && s.better_than(best)) best = s;
    };
    Cell own[kBins];
    each_slot(group, [&](index_t k, const Slot& slot) {
      const Cell* held = cells + k * kBins;
      Cell total;
      if (slot.shared())
        for (int b = 0; b < slot.codes; ++b) total.add(held[b]);
      for (const Part& part : slot.parts) {
        if ((!leaf.usable.empty() && !leaf.usable[part.feature]) || !admits(leaf, part.feature)) continue;
        if (slot.shared()) unbundle(held, total, part, bins.features[part.feature].bins, own);
        try_feature(part.feature, slot.shared() ? own : held);
      }
    });
  };
  const auto finish = [&](index_t group) {
    if (large) combine(other, mine, group, [](Cell& a, const Cell& b) { a.subtract(b); });
    search(small, mine, group, found[2 * group]);
    if (large) search(*large, other, group, found[2 * group + 1]);
  };

  // Sums of integers do not depend on how the rows are cut, so this may look at the number of threads.
  const index_t threads = num_threads();
  const index_t cuts = groups % threads == 0 || groups >= 8 * threads ? 1 : std::min<index_t>(threads, m / kBlock);
  if (cuts <= 1) {
    const auto task = [&](index_t group) {
      clear(mine, group);
      add_histogram(bins, group, rounded_, which, 0, m, mine + bins.group_begin[group] * kBins);
      finish(group);
    };
    if (m * bins.cols < 20000 && groups == 1)
      task(0);
    else
      parallel_for(groups, task);
  } else {
    const index_t size = static_cast<index_t>(bins.slots.size()) * kBins;
    std::vector<std::vector<Cell>> partial(cuts - 1);
    for (auto& p : partial) p.resize(size);
    parallel_for(groups * cuts, [&](index_t task) {
      const index_t group = task / cuts, cut = task % cuts;
      const index_t begin = range_begin(m, cuts, cut), end = range_begin(m, cuts, cut + 1);
      Cell* cells = cut == 0 ? mine : partial[cut - 1].data();
      if (cut == 0) clear(cells, group);
      add_histogram(bins, group, rounded_, which ? which + begin : nullptr, begin, end - begin,
                    cells + bins.group_begin[group] * kBins);
    });
    parallel_for(groups, [&](index_t group) {
      for (const auto& p : partial) combine(mine, p.data(), group, [](Cell& a, const Cell& b) { a.add(b); });
      finish(group);
    });
  }
  for (index_t group = 0; group < groups; ++group) {
    if (found[2 * group].feature >= 0 && found[2 * group].better_than(small.best)) small.best = found[2 * group];
    if (large && found[2 * group + 1].feature >= 0 && found[2 * group + 1].better_than(large->best))
      large->best = found[2 * group + 1];
  }
}

Nodes Booster::grow(index_t output, const Draw& draw) {
  const Bins& bins = *bins_;
  const index_t n = rows();
  if (exact_)
    round_rows(g64_.data() + output * n, h64_.data() + output * n, weight_.empty() ? nullptr : weight_.data(), n,
               rounded_);
  else
    round_rows(g32_.data() + output * n, h32_.data() + output * n, n, constant_h_, draw.seed, rounded_);
  sample_rows(draw);

  // Every node draws its features.
  const auto draw_features = [&](Leaf& leaf) {
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
  std::vector<Leaf> open;
  // Open leaves keep their histograms for the subtraction below them, within a budget of memory; a leaf without one
  // has both of its children counted from their rows.
  const auto cells = static_cast<index_t>(bins.slots.size()) * kBins;
  const index_t bytes = cells * static_cast<index_t>(sizeof(Cell));
  const index_t budget = std::min<index_t>(options_.max_leaves + 1, std::max<index_t>(4, kPoolBytes / bytes));
  pool_.resize(budget);
  std::vector<int> free_histograms;
  for (index_t k = budget - 1; k >= 0; --k) free_histograms.push_back(static_cast<int>(k));
  const auto take_histogram = [&] {
    const int k = free_histograms.back();
    free_histograms.pop_back();
    if (pool_[k].empty()) pool_[k].resize(cells);
    return k;
  };
  const auto release = [&](Leaf& leaf) {
    if (leaf.histogram >= 0) free_histograms.push_back(leaf.histogram);
    leaf.histogram = -1;
  };

  Leaf root;
  root.end = used_;
  root.histogram = take_histogram();
  {
    // Totals of the root, in integers as everything else.
    const index_t parts = std::max<index_t>(1, (used_ + kChunk - 1) / kChunk);
    std::vector<Cell> totals(parts);
    parallel_for(parts, [&](index_t p) {
      Cell sum;
      for (index_t i = p * kChunk; i < std::min(used_, (p + 1) * kChunk); ++i) {
        const index_t row = rows_[i];
        if (rounded_.form == Rounding::exact)
          sum.add(exact_cell(rounded_, row));
        else if (rounded_.form == Rounding::constant)
          sum.add({static_cast<std::int32_t>(rounded_.packed[row]), 1, 1});
        else
          sum.add({static_cast<std::int16_t>(rounded_.packed[row] >> 16), rounded_.packed[row] & 0xffff, 1});
      }
      totals[p] = sum;
    });
    Cell total;
    for (const Cell& t : totals) total.add(t);
    root.sums = {static_cast<double>(total.g) * rounded_.g_unit, static_cast<double>(total.h) * rounded_.h_unit,
                 total.c};
  }
  root.node = tree.add(leaf_value(root.sums, options_.split.l2, root.bounds), root.sums.h, root.sums.c);
  draw_features(root);
  if (options_.max_leaves > 1) find_splits(root, nullptr);
  open.push_back(root);

  const auto close = [&](Leaf& leaf) {
    leaves_.push_back({leaf.node, leaf.begin, leaf.end});
    release(leaf);
  };
  int leaf_count = 1;
  while (!open.empty()) {
    // The next leaf to split: the largest gain, or the highest level and there the largest gain.
    std::size_t pick = 0;
    for (std::size_t k = 1; k < open.size(); ++k) {
      const bool level = options_.by_level && open[k].depth != open[pick].depth;
      if (level ? open[k].depth < open[pick].depth : open[k].best.gain > open[pick].best.gain) pick = k;
    }
    Leaf leaf = std::move(open[pick]);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(pick));
    if (leaf.best.feature < 0 || leaf_count >= options_.max_leaves) {
      close(leaf);
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
    Leaf left, right;
    left.node = tree.add(s.left_value, s.left.h, s.left.c);
    right.node = tree.add(s.right_value, s.right.h, s.right.c);
    tree.left[leaf.node] = left.node;
    draw_features(left), draw_features(right);
    left.depth = right.depth = leaf.depth + 1;
    left.sums = s.left, right.sums = s.right;
    left.bounds = right.bounds = leaf.bounds;
    const int direction = options_.monotone.empty() ? 0 : options_.monotone[s.feature];
    if (direction != 0) {
      const double middle = 0.5 * (s.left_value + s.right_value);
      (direction > 0 ? left.bounds.upper : left.bounds.lower) = middle;
      (direction > 0 ? right.bounds.lower : right.bounds.upper) = middle;
    }
    if (!options_.allowed.empty()) {
      left.path = leaf.path;
      left.path.push_back(s.feature);
      right.path = left.path;
    }
    const index_t went_left = partition(tree, leaf.node, leaf.begin, leaf.end);
    left.begin = leaf.begin, left.end = right.begin = leaf.begin + went_left, right.end = leaf.end;
    Leaf& small = left.size() <= right.size() ? left : right;
    Leaf& large = left.size() <= right.size() ? right : left;
    if (leaf_count < options_.max_leaves) {
      const bool kept = leaf.histogram >= 0;
      large.histogram = kept ? leaf.histogram : take_histogram();
      if (!kept) find_splits(large, nullptr);
      small.histogram = take_histogram();
      find_splits(small, kept ? &large : nullptr);
      for (Leaf* child : {&small, &large})
        if (child->best.feature < 0 || free_histograms.size() < 2) release(*child);
    } else {
      release(leaf);
    }
    open.push_back(std::move(left));
    open.push_back(std::move(right));
  }
  if (rounded_.form == Rounding::packed) refit(tree, output);
  if (damped_)
    for (const LeafRows& leaf : leaves_) tree.value[leaf.node] = damped(tree.value[leaf.node]);
  return tree;
}

// Leaf values from the gradients themselves instead of the rounded ones.
void Booster::refit(Nodes& tree, index_t output) {
  if (!options_.monotone.empty()) return;  // the values came with bounds that a refit would ignore
  const float* g = g32_.data() + output * rows();
  const float* h = h32_.data() + output * rows();
  struct Part {
    std::size_t leaf;
    index_t begin, end;
    double g = 0, h = 0;
  };
  std::vector<Part> parts;
  for (std::size_t k = 0; k < leaves_.size(); ++k)
    for (index_t b = leaves_[k].begin; b < leaves_[k].end; b += kChunk)
      parts.push_back({k, b, std::min(leaves_[k].end, b + kChunk)});
  parallel_for(static_cast<index_t>(parts.size()), [&](index_t p) {
    double a = 0, b = 0;
    for (index_t i = parts[p].begin; i < parts[p].end; ++i) {
      a += static_cast<double>(g[rows_[i]]);
      b += static_cast<double>(h[rows_[i]]);
    }
    parts[p].g = a, parts[p].h = b;
  });
  std::vector<NodeSums> sums(leaves_.size());
  for (const Part& p : parts) sums[p.leaf].g += p.g, sums[p.leaf].h += p.h;
  for (std::size_t k = 0; k < leaves_.size(); ++k)
    tree.value[leaves_[k].node] = leaf_value(sums[k], options_.split.l2, {-kInf, kInf});
}

void Booster::update(Nodes& tree, index_t output, double eta) {
  for (double& v : tree.value) v *= eta;
  double* s = scores_.data() + output * rows();
  struct Part {
    double value;
    index_t begin, end;
  };
  std::vector<Part> parts;
  for (const LeafRows& leaf : leaves_)
    for (index_t b = leaf.begin; b < leaf.end; b += kChunk)
      parts.push_back({tree.value[leaf.node], b, std::min(leaf.end, b + kChunk)});
  parallel_for(static_cast<index_t>(parts.size()), [&](index_t p) {
    for (index_t i = parts[p].begin; i < parts[p].end; ++i) s[rows_[i]] += parts[p].value;
  });
  if (used_ == rows()) return;
  const index_t rest = rows() - used_, chunks = (rest + kChunk - 1) / kChunk;
  parallel_for(chunks, [&](index_t p) {
    for (index_t i = used_ + p * kChunk; i < std::min(rows(), used_ + (p + 1) * kChunk); ++i) {
      const index_t row = rows_[i];
      std::int32_t node = 0;
      while (tree.feature[node] >= 0)
        node = tree.left[node] + !tree.goes_left(node, bins_->col(tree.feature[node])[row]);
      s[row] += tree.value[node];
    }
  });
}

}  // namespace hinge::trees
