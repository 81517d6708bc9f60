#include "trees/block_growth.hpp"

#include <algorithm>

#include "core/pool.hpp"
#include "trees/gradients.hpp"

namespace hinge::trees {
namespace {

constexpr index_t kPassBytes = index_t{1} << 27;  // size of the histograms that one pass counts

}  // namespace

BlockGrowth::BlockGrowth(const Bins& layout, GrowOptions options, const Draw& draw, Rounding form, const Units& unit,
                         double rows)
    : bins_(layout),
      options_(std::move(options)),
      draw_(draw),
      rows_(rows),
      builder_(bins_, options_, draw_, form, unit) {
  route_.add(0, 0, 0);
  route_nodes_.resize(1);
  wanted_ = {0}, full_ = {1};
}

void BlockGrowth::search(RouteNode& node) {
  node.searched = true;
  if (!node.histogram.made()) return;
  std::vector<Split> found(bins_.groups);
  parallel_for(bins_.groups, [&](index_t group) {
    builder_.search(node.leaf, node.histogram, false, all_slots(bins_, group), found[group]);
  });
  for (const Split& s : found) node.leaf.keep(s);
}

// Adds the children of a node to the route.
void BlockGrowth::add_children(std::int32_t id) {
  auto [left, right] = builder_.children(route_nodes_[id].leaf);
  route_.split(id, route_nodes_[id].leaf.best);
  route_nodes_[id].left = route_.left[id] = route_.add(0, 0, 0);
  route_.add(0, 0, 0);
  for (OpenLeaf* leaf : {&left, &right}) {
    RouteNode& child = route_nodes_.emplace_back();
    child.leaf = std::move(*leaf), child.parent = id;
  }
}

// Requests the children of a leaf, and those of others that may be split soon.
void BlockGrowth::plan(std::int32_t next) {
  std::vector<std::int32_t> chosen, reach = open_;
  for (std::size_t k = 0; k < reach.size(); ++k) {  // reach grows within the loop
    const RouteNode& s = route_nodes_[reach[k]];
    if (s.left >= 0 && route_nodes_[s.left].counted)
      reach.push_back(s.left), reach.push_back(s.left + 1);
    else if (s.left < 0 && s.searched && s.leaf.best.feature >= 0 && reach[k] != next)
      chosen.push_back(reach[k]);
  }
  std::stable_sort(chosen.begin(), chosen.end(), [&](std::int32_t a, std::int32_t b) {
    return route_nodes_[a].leaf.best.gain > route_nodes_[b].leaf.best.gain;
  });
  chosen.insert(chosen.begin(), next);
  const index_t most = std::clamp<index_t>(kPassBytes / (cells() * 8), 1, options_.max_leaves - leaf_count_);
  if (static_cast<index_t>(chosen.size()) > most) chosen.resize(most);
  for (const std::int32_t id : chosen) {
    add_children(id);
    const std::int32_t l = route_nodes_[id].left;
    const OpenLeaf &left = route_nodes_[l].leaf, &right = route_nodes_[l + 1].leaf;
    wanted_.push_back(left.sums.total.c <= right.sums.total.c ? l : l + 1);
    const bool last = leaf_count_ + 1 >= options_.max_leaves;  // the children are not split any more
    full_.push_back(!last && (builder_.searchable(left) || builder_.searchable(right)));
  }
}

void BlockGrowth::supply(const std::int64_t* cells, const Fine* fine, const Cell* totals) {
  for (std::size_t k = 0; k < wanted_.size(); ++k) {
    const std::int32_t id = wanted_[k];
    if (id == 0) {
      route_nodes_[0].leaf = builder_.root(totals[0]);
      open_.push_back(0);
    }
    RouteNode& mine = route_nodes_[id];
    mine.fine = fine[k], mine.counted = true;
    if (full_[k]) {
      mine.histogram.take(cells, this->cells());
      cells += this->cells();
    }
    if (id == 0) {
      if (options_.max_leaves > 1) search(mine);
      continue;
    }
    RouteNode& parent = route_nodes_[mine.parent];
    RouteNode& other = route_nodes_[parent.left == id ? id + 1 : id - 1];
    other.fine = {parent.fine.g - mine.fine.g, parent.fine.h - mine.fine.h}, other.counted = true;
    if (full_[k]) {
      std::swap(other.histogram, parent.histogram);
      other.histogram.subtract(mine.histogram);
    }
    parent.histogram = {};
    if (draw_.features >= 1) search(mine), search(other);  // otherwise they are searched when they are chosen
    for (RouteNode* s : {&mine, &other})
      if (s->searched && s->leaf.best.feature < 0) s->histogram = {};
  }
  wanted_.clear(), full_.clear();
  go_on();
}

void BlockGrowth::go_on() {
  while (!open_.empty()) {
    const std::size_t pick =
        builder_.pick(open_.size(), [&](std::size_t k) -> const OpenLeaf& { return route_nodes_[open_[k]].leaf; });
    const std::int32_t id = open_[pick];
    const bool final = route_nodes_[id].leaf.best.feature < 0 || leaf_count_ >= options_.max_leaves;
    if (!final && route_nodes_[id].left < 0) {
      const auto [left, right] = builder_.children(route_nodes_[id].leaf);
      const bool more =
          leaf_count_ + 1 < options_.max_leaves && (builder_.searchable(left) || builder_.searchable(right));
      if (more || builder_.fine()) return plan(id);
      add_children(id);
    }
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(pick));
    route_nodes_[id].chosen = true;
    if (final) continue;
    ++leaf_count_;
    const std::int32_t l = route_nodes_[id].left;
    builder_.record(route_nodes_[id].leaf, route_nodes_[l].leaf, route_nodes_[l + 1].leaf);
    for (const std::int32_t child : {l, l + 1}) {
      if (leaf_count_ < options_.max_leaves && !route_nodes_[child].searched) search(route_nodes_[child]);
      open_.push_back(child);
    }
  }
  done_ = true;
}

Nodes BlockGrowth::finish(bool log_odds, double eta) {
  Nodes& tree = builder_.tree;
  std::vector<std::int32_t> node(route_nodes_.size(), -1), kept(tree.size());
  for (std::int32_t t = 0; t < tree.size(); ++t) kept[t] = t;
  if (options_.prune > 0) {
    const auto used = static_cast<double>(tree.count[0]);
    kept = cut_back(tree, options_.prune * used / rows_);
  }
  std::vector<std::int32_t> number(route_nodes_.size() + kept.size(), -1);
  for (std::size_t k = 0; k < kept.size(); ++k) number[kept[k]] = static_cast<std::int32_t>(k);
  values_.assign(route_nodes_.size(), 0.0);
  for (std::size_t id = 0; id < route_nodes_.size(); ++id) {  // children come after their parents
    const RouteNode& s = route_nodes_[id];
    const std::int32_t t = s.chosen ? number[s.leaf.node] : -1;
    const std::int32_t above = s.parent < 0 ? -1 : node[s.parent];
    if (above >= 0) {  // below a leaf of the tree
      node[id] = above, values_[id] = values_[s.parent];
      continue;
    }
    if (t < 0 || tree.left[t] >= 0) continue;
    double& value = tree.value[t];
    if (builder_.fine()) value = builder_.fine_value(s.fine.g, s.fine.h);
    if (log_odds) value = damped(value);
    node[id] = t, values_[id] = value * eta;
  }
  for (double& v : tree.value) require_finite(v *= eta);
  return std::move(tree);
}

}  // namespace hinge::trees
