#include "trees/builder.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.hpp"
#include "trees/bundle.hpp"

namespace hinge::trees {
namespace {

bool contains_all(const std::vector<std::int32_t>& set, const std::vector<std::int32_t>& path) {
  return std::all_of(path.begin(), path.end(),
                     [&](std::int32_t f) { return std::find(set.begin(), set.end(), f) != set.end(); });
}

HINGE_HOT void add_fine(const std::uint32_t* __restrict words, const std::uint32_t* __restrict which, index_t m,
                        std::int64_t& g, std::int64_t& h) {
  std::int64_t a = 0, b = 0;
  for (index_t i = 0; i < m; ++i) {
    const std::uint32_t word = words[which[i]];
    a += Packed::fine_g(word), b += Packed::fine_h(word);
  }
  g = a, h = b;
}

}  // namespace

void fine_sums(const std::uint32_t* words, const std::uint32_t* which, index_t m, std::int64_t& g, std::int64_t& h) {
  add_fine(words, which, m, g, h);
}

// If the rows of a leaf had predicted probability p for a class and belong to it more often, the Newton step is up to
// 1/p, while the log-odds that fit them grow only like log(1/p). Steps up to 2, the longest from p = 1/2, are not
// changed.
double damped(double step) {
  const double size = std::fabs(step);
  return size <= 2 ? step : std::copysign(2 + std::log1p(size - 2), step);
}

double TreeBuilder::fine_value(std::int64_t g, std::int64_t h) const {
  return leaf_value(static_cast<double>(g) * unit_.g / 64, static_cast<double>(h) * unit_.h / 64, options_.split.l2,
                    OpenLeaf{}.sums.bounds);
}

bool TreeBuilder::searchable(const OpenLeaf& leaf) const {
  if (leaf.sums.total.c < std::max(2 * options_.split.min_count, options_.min_split)) return false;
  if (static_cast<double>(leaf.sums.total.h) * unit_.h < 2 * options_.split.min_hessian) return false;
  return options_.max_depth <= 0 || leaf.depth < options_.max_depth;
}

bool TreeBuilder::admits(const OpenLeaf& leaf, index_t j) const {
  if (!leaf.usable.empty() && !leaf.usable[j]) return false;
  if (options_.allowed.empty()) return true;
  return std::any_of(options_.allowed.begin(), options_.allowed.end(), [&](const std::vector<std::int32_t>& set) {
    return std::find(set.begin(), set.end(), j) != set.end() && contains_all(set, leaf.path);
  });
}

void TreeBuilder::search(const OpenLeaf& leaf, Histogram& histogram, bool narrow, const Slots& some,
                         Split& best) const {
  if (!searchable(leaf)) return;
  const auto run = [&]<class Sums>(const typename Sums::Entry* cells) {
    using Entry = typename Sums::Entry;
    Entry unbundled[kBins];
    std::vector<Part> pairs;
    cells += (some.begin - bins_.group_begin[some.group]) * kBins;
    for (index_t k = some.begin; k < some.end; ++k, cells += kBins) {
      const Slot& slot = bins_.slots[k];
      Entry total{};
      if (slot.shared())
        for (int b = 0; b < slot.codes; ++b) total += cells[b];
      pairs.clear();
      for (const Part& part : slot.parts) {
        if (!admits(leaf, part.feature)) continue;
        const Feature& feature = bins_.features[part.feature];
        const int direction = options_.monotone.empty() ? 0 : options_.monotone[part.feature];
        if (slot.shared() && feature.bins == 2 && direction == 0) {
          pairs.push_back(part);
          continue;
        }
        if (slot.shared()) unbundle(cells, total, part, feature.bins, unbundled);
        improve<Sums>(slot.shared() ? unbundled : cells, feature, static_cast<std::int32_t>(part.feature), leaf.sums,
                      direction, options_.split, best);
      }
      if (!pairs.empty()) improve_pairs<Sums>(cells, total, pairs, bins_.features, leaf.sums, options_.split, best);
    }
  };
  if (!narrow) return run.template operator()<WideSums>(histogram.wide(bins_, some.group));
  with_form(form_,
            [&]<class Form>(Form) { run.template operator()<NarrowSums<Form>>(histogram.narrow(bins_, some.group)); });
}

// Draws the features of a node.
void TreeBuilder::draw_features(OpenLeaf& leaf) const {
  if (draw_.features >= 1) return;
  std::vector<std::int32_t> order(bins_.cols);
  std::iota(order.begin(), order.end(), 0);
  Random random(draw_.seed, 0xFEA7 + static_cast<std::uint64_t>(leaf.node));
  random.shuffle(order.data(), bins_.cols);
  const auto keep = std::max<index_t>(1, std::llround(draw_.features * static_cast<double>(bins_.cols)));
  leaf.usable.assign(bins_.cols, 0);
  for (index_t k = 0; k < keep; ++k) leaf.usable[order[k]] = 1;
}

std::int32_t TreeBuilder::add(double value, const Cell& sums) {
  return tree.add(value, static_cast<double>(sums.h) * unit_.h, sums.c);
}

OpenLeaf TreeBuilder::root(const Cell& total) {
  OpenLeaf leaf;
  leaf.sums.unit = unit_;
  leaf.sums.total = total;
  leaf.node = add(leaf_value(total, unit_, options_.split.l2, leaf.sums.bounds), total);
  draw_features(leaf);
  return leaf;
}

std::pair<OpenLeaf, OpenLeaf> TreeBuilder::children(const OpenLeaf& leaf) const {
  const Split& s = leaf.best;
  OpenLeaf left, right;
  left.depth = right.depth = leaf.depth + 1;
  left.sums = {s.left, unit_, leaf.sums.bounds}, right.sums = {s.right, unit_, leaf.sums.bounds};
  const int direction = options_.monotone.empty() ? 0 : options_.monotone[s.feature];
  if (direction != 0) {
    const double middle = 0.5 * (s.left_value + s.right_value);
    (direction > 0 ? left.sums.bounds.upper : left.sums.bounds.lower) = middle;
    (direction > 0 ? right.sums.bounds.lower : right.sums.bounds.upper) = middle;
  }
  if (!options_.allowed.empty()) {
    left.path = leaf.path;
    left.path.push_back(s.feature);
    right.path = left.path;
  }
  return {std::move(left), std::move(right)};
}

void TreeBuilder::record(const OpenLeaf& leaf, OpenLeaf& left, OpenLeaf& right) {
  const Split& s = leaf.best;
  tree.split(leaf.node, s);
  left.node = add(s.left_value, s.left);
  right.node = add(s.right_value, s.right);
  tree.left[leaf.node] = left.node;
  draw_features(left), draw_features(right);
}

std::vector<std::int32_t> cut_back(Nodes& tree, double cost) {
  const std::int32_t n = tree.size();
  std::vector<double> gain(n, 0.0);
  std::vector<std::int32_t> leaves(n, 1), number(n, -1);
  for (std::int32_t t = n - 1; t >= 0; --t) {  // children come after their parents
    const std::int32_t l = tree.left[t];
    if (l < 0) continue;
    gain[t] = tree.gain[t] + gain[l] + gain[l + 1];
    leaves[t] = leaves[l] + leaves[l + 1];
    if (gain[t] > cost * (leaves[t] - 1) * (1 + 1e-12)) continue;
    gain[t] = 0, leaves[t] = 1;
    tree.feature[t] = tree.left[t] = tree.set[t] = -1;
    tree.gain[t] = tree.threshold[t] = 0;
    tree.missing_left[t] = tree.bin[t] = 0;
  }
  std::vector<std::int32_t> kept{0};
  for (std::size_t k = 0; k < kept.size(); ++k) {  // grows during the loop, level by level
    const std::int32_t l = tree.left[kept[k]];
    if (l >= 0) kept.push_back(l), kept.push_back(l + 1);
  }
  for (std::size_t k = 0; k < kept.size(); ++k) number[kept[k]] = static_cast<std::int32_t>(k);
  for (const std::int32_t t : kept)
    if (tree.left[t] >= 0) tree.left[t] = number[tree.left[t]];
  const auto pick = [&](auto& values) {
    auto old = std::move(values);
    values.clear();
    for (const std::int32_t t : kept) values.push_back(old[t]);
  };
  pick(tree.feature), pick(tree.threshold), pick(tree.left), pick(tree.missing_left), pick(tree.set), pick(tree.value);
  pick(tree.gain), pick(tree.weight), pick(tree.count), pick(tree.bin);
  return kept;
}

}  // namespace hinge::trees
