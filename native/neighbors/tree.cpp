#include "neighbors/tree.hpp"

#include <numeric>

#include "core/pool.hpp"

namespace hinge {
namespace {

constexpr index_t kQueries = 64;  // queries per part of the work
constexpr int kDepth = 64;        // larger than the depth of any tree

}  // namespace

KdTree::KdTree(const double* points, index_t n, index_t d, index_t leaf_size) : points_(points), n_(n), d_(d) {
  index_t leaves = 1;
  while (n > leaves * leaf_size) leaves *= 2;
  inner_ = leaves - 1;
  width_ = (n + leaves - 1) / leaves;
  const index_t nodes = 2 * leaves - 1;
  begin_.assign(nodes, 0);
  end_.assign(nodes, 0);
  low_.resize(nodes * d);
  high_.resize(nodes * d);
  order_.resize(n);
  std::iota(order_.begin(), order_.end(), index_t{0});
  end_[0] = n;
  for (index_t level = 1; level <= leaves; level *= 2)  // its nodes are level - 1 ... 2 level - 2
    parallel_for(level, [&](index_t at) {
      const index_t node = level - 1 + at;
      measure(node);
      if (node < inner_) split(node);
    });
  lines_.resize(leaves * d * width_);
  parallel_ranges(leaves, 64, [&](index_t first, index_t last) {
    for (index_t leaf = first; leaf < last; ++leaf) {
      const index_t from = begin_[inner_ + leaf], size = end_[inner_ + leaf] - from;
      for (index_t j = 0; j < size; ++j)
        for (index_t c = 0; c < d; ++c) lines_[(leaf * d + c) * width_ + j] = points[order_[from + j] * d + c];
    }
  });
}

void KdTree::measure(index_t node) {
  double *low = low_.data() + node * d_, *high = high_.data() + node * d_;
  std::fill(low, low + d_, std::numeric_limits<double>::infinity());
  std::fill(high, high + d_, -std::numeric_limits<double>::infinity());
  for (index_t j = begin_[node]; j < end_[node]; ++j)
    for (index_t c = 0; c < d_; ++c) {
      const double x = points_[order_[j] * d_ + c];
      low[c] = std::min(low[c], x);
      high[c] = std::max(high[c], x);
    }
}

void KdTree::split(index_t node) {
  const double *low = low_.data() + node * d_, *high = high_.data() + node * d_;
  index_t widest = 0;
  for (index_t c = 1; c < d_; ++c)
    if (high[c] - low[c] > high[widest] - low[widest]) widest = c;
  const index_t begin = begin_[node], end = end_[node], middle = begin + (end - begin + 1) / 2;
  std::vector<std::pair<double, index_t>> sorted(end - begin);
  for (index_t j = begin; j < end; ++j) sorted[j - begin] = {points_[order_[j] * d_ + widest], order_[j]};
  if (middle < end) std::nth_element(sorted.begin(), sorted.begin() + (middle - begin), sorted.end());
  for (index_t j = begin; j < end; ++j) order_[j] = sorted[j - begin].second;
  begin_[2 * node + 1] = begin;
  end_[2 * node + 1] = begin_[2 * node + 2] = middle;
  end_[2 * node + 2] = end;
}

void KdTree::search(const Distance& distance, const double* query, index_t self, double margin, double* keys,
                    Nearest& best) const {
  struct Waiting {
    double key;
    index_t node;
  } stack[kDepth];
  int depth = 0;
  stack[depth++] = {0.0, 0};
  const auto bound = [&](index_t node) {
    return box_key(distance, query, low_.data() + node * d_, high_.data() + node * d_, d_);
  };
  while (depth > 0) {
    const Waiting next = stack[--depth];
    if (next.key > best.bound() * margin) continue;
    index_t node = next.node;
    while (node < inner_) {
      const index_t left = 2 * node + 1, right = left + 1;
      const double to_left = bound(left), to_right = bound(right);
      const bool first = to_left <= to_right;
      const double far = first ? to_right : to_left;
      if (!(far > best.bound() * margin)) stack[depth++] = {far, first ? right : left};
      node = first ? left : right;
    }
    const index_t begin = begin_[node], n = end_[node] - begin;
    direct_keys(distance, query, lines_.data() + (node - inner_) * d_ * width_, width_, n, d_, keys);
    for (index_t j = 0; (j = next_within(keys, j, n, best.bound() * margin)) < n; ++j) {
      const index_t index = order_[begin + j];
      if (index != self) best.offer(pair_key(distance, query, points_ + index * d_, d_), index);
    }
  }
}

Neighbours KdTree::nearest(const Distance& distance, const double* queries, index_t m, index_t k, bool same) const {
  Neighbours out{std::vector<double>(m * k), std::vector<index_t>(m * k)};
  const double margin = rounding_margin(d_);
  parallel_for((m + kQueries - 1) / kQueries, [&](index_t part) {
    Nearest best(k);
    std::vector<double> keys(width_);
    for (index_t q = part * kQueries; q < std::min(m, (part + 1) * kQueries); ++q) {
      const index_t i = same ? order_[q] : q;  // adjacent points visit the same leaves, which are then in the cache
      search(distance, queries + i * d_, same ? i : -1, margin, keys.data(), best);
      best.drain(out.key.data() + i * k, out.index.data() + i * k);
    }
  });
  return out;
}

}  // namespace hinge
