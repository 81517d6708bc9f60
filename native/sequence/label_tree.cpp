#include "sequence/label_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <tuple>

#include "core/math.hpp"

namespace hinge {
namespace {

constexpr double none = -std::numeric_limits<double>::infinity();

// log sum_j exp(a_j + b_j)
HINGE_INLINE double log_sum(const double* __restrict a, const double* __restrict b, index_t n) {
  double top = none;
  for (index_t j = 0; j < n; ++j) top = a[j] + b[j] > top ? a[j] + b[j] : top;
  if (top == none) return none;
  double sum = 0;
  for (index_t j = 0; j < n; ++j) sum += math::exp(a[j] + b[j] - top);
  return top + std::log(sum);
}

// out_j = log sum_i exp(a_i + T_ij)
HINGE_INLINE void log_sum_columns(const double* __restrict a, const double* __restrict T, index_t labels, index_t width,
                                  double* __restrict top, double* __restrict out) {
  for (index_t j = 0; j < width; ++j) top[j] = none;
  for (index_t i = 0; i < labels; ++i)
    for (index_t j = 0; j < width; ++j) top[j] = a[i] + T[i * width + j] > top[j] ? a[i] + T[i * width + j] : top[j];
  for (index_t j = 0; j < width; ++j) {
    top[j] = top[j] == none ? 0.0 : top[j];
    out[j] = 0;
  }
  for (index_t i = 0; i < labels; ++i)
    for (index_t j = 0; j < width; ++j) out[j] += math::exp(a[i] + T[i * width + j] - top[j]);
  for (index_t j = 0; j < width; ++j) out[j] = top[j] + std::log(out[j]);
}

HINGE_INLINE double highest(const double* a, index_t n) {
  double top = none;
  for (index_t j = 0; j < n; ++j) top = a[j] > top ? a[j] : top;
  return top;
}

HINGE_INLINE const double* table(const Potentials& p, const Tree& tree, index_t t) {
  return tree.tables ? tree.tables + t * p.labels * p.width : p.pair.data();
}

// Messages to the roots. inside[t] = s_t + messages of the children; message[t] is the message of t to its parent,
// shifted to have maximum zero. Returns log Z (-inf if no labelling is allowed).
HINGE_HOT double upward(const Potentials& p, const Tree& tree, const index_t* order, double* __restrict inside,
                        double* __restrict message) {
  const index_t w = p.width, k = p.labels;
  double total = 0;
  for (index_t s = tree.length; s-- > 0;) {
    const index_t t = order ? order[s] : s, parent = tree.up(t);
    double* in = inside + t * w;
    double* out = message + t * w;
    if (parent < 0) {
      const double zero = 0;
      double top = highest(in, w), sum = zero;
      if (top == none) return none;
      for (index_t j = 0; j < w; ++j) sum += math::exp(in[j] - top);
      total += top + std::log(sum);
      continue;
    }
    const double* T = table(p, tree, t);
    for (index_t i = 0; i < k; ++i) out[i] = log_sum(T + i * w, in, k);
    for (index_t i = k; i < w; ++i) out[i] = none;
    const double top = highest(out, w);
    if (top == none) return none;
    total += top;
    double* above = inside + parent * w;
    for (index_t i = 0; i < w; ++i) {
      out[i] -= top;
      above[i] += out[i];
    }
  }
  return total;
}

// Messages from the roots; inside[t] becomes the marginals.
HINGE_HOT void downward(const Potentials& p, const Tree& tree, const index_t* order, double* __restrict inside,
                        const double* __restrict message, double* __restrict outside, double* __restrict row,
                        double weight, double* __restrict pairs, double* __restrict each) {
  const index_t w = p.width, k = p.labels;
  double* cavity = row;  // 3 rows of work space
  double* top = row + w;
  for (index_t s = 0; s < tree.length; ++s) {
    const index_t t = order ? order[s] : s, parent = tree.up(t);
    double* out = outside + t * w;
    if (parent < 0) {
      for (index_t j = 0; j < w; ++j) out[j] = 0;
      continue;
    }
    const double* above = inside + parent * w;
    const double* far = outside + parent * w;
    const double* own = message + t * w;
    for (index_t i = 0; i < w; ++i) cavity[i] = own[i] == none ? none : above[i] + far[i] - own[i];
    const double shift = highest(cavity, w);
    for (index_t i = 0; i < w; ++i) cavity[i] -= shift;
    const double* T = table(p, tree, t);
    log_sum_columns(cavity, T, k, w, top, out);
    if (pairs || each) {
      const double* in = inside + t * w;
      const double z = log_sum(out, in, k);
      for (index_t i = 0; i < k; ++i)
        for (index_t j = 0; j < w; ++j) {
          const double probability = math::exp(cavity[i] + T[i * w + j] + in[j] - z);
          if (pairs) pairs[i * w + j] += weight * probability;
          if (each) each[(t * k + i) * w + j] = probability;
        }
    }
  }
  for (index_t t = 0; t < tree.length; ++t) {
    double* in = inside + t * w;
    const double* out = outside + t * w;
    const double z = log_sum(in, out, k);
    for (index_t j = 0; j < w; ++j) in[j] = math::exp(in[j] + out[j] - z);
  }
}

// Max-product messages to the roots.
HINGE_HOT void upward_best(const Potentials& p, const Tree& tree, const index_t* order, double* __restrict inside) {
  const index_t w = p.width, k = p.labels;
  for (index_t s = tree.length; s-- > 0;) {
    const index_t t = order ? order[s] : s, parent = tree.up(t);
    if (parent < 0) continue;
    const double* T = table(p, tree, t);
    const double* in = inside + t * w;
    double* above = inside + parent * w;
    for (index_t i = 0; i < k; ++i) {
      double top = none;
      for (index_t j = 0; j < k; ++j) top = T[i * w + j] + in[j] > top ? T[i * w + j] + in[j] : top;
      above[i] += top;
    }
  }
}

// The best labellings below each node as sorted lists; the list of each child is merged into that of its parent.
class TopLabellings {
 public:
  TopLabellings(const Potentials& p, const Tree& tree, const double* scores, index_t count)
      : p_(p), tree_(tree), count_(count), k_(p.labels), value_((tree.length + 1) * k_), links_(tree.length * k_) {
    if (tree.parent) tree_order(tree.parent, tree.length, order_);
    for (index_t t = 0; t < tree.length; ++t)
      for (index_t j = 0; j < k_; ++j)
        if (scores[t * p.width + j] > none) value_[t * k_ + j] = {scores[t * p.width + j]};
    value_[tree.length * k_] = {0.0};  // above the roots: a node with one label
    for (index_t s = tree.length; s-- > 0;) merge(node(s));
  }

  index_t write(std::int32_t* best, double* value) const {
    const index_t n = tree_.length, found = static_cast<index_t>(value_[n * k_].size());
    std::vector<std::int32_t> rank(n + 1);
    for (index_t r = 0; r < found; ++r) {
      value[r] = value_[n * k_][r];
      rank[n] = static_cast<std::int32_t>(r);
      for (index_t s = 0; s < n; ++s) {  // children in the reverse order of the merges
        const index_t t = node(s), above = up(t);
        const Link& link = links_[t * k_ + (above == n ? 0 : best[r * n + above])][rank[above]];
        best[r * n + t] = link.label;
        rank[t] = link.rank;
        rank[above] = link.before;
      }
    }
    return found;
  }

 private:
  // A child's label, its index in the child's list, and the index in the parent's list before that merge.
  struct Link {
    double value;
    std::int32_t before, label, rank;
    bool operator<(const Link& other) const {
      if (value != other.value) return value > other.value;
      return std::tie(before, label, rank) < std::tie(other.before, other.label, other.rank);
    }
  };

  index_t node(index_t s) const { return tree_.parent ? order_[s] : s; }
  index_t up(index_t t) const { return tree_.up(t) < 0 ? tree_.length : tree_.up(t); }

  void keep(std::vector<Link>& links) const {
    const index_t most = std::min<index_t>(count_, static_cast<index_t>(links.size()));
    std::partial_sort(links.begin(), links.begin() + most, links.end());
    links.resize(most);
  }

  void merge(index_t t) {
    const index_t above = up(t), labels = above == tree_.length ? 1 : k_;
    const double* T = above == tree_.length ? nullptr : table(p_, tree_, t);
    std::vector<Link> below;
    for (index_t i = 0; i < labels; ++i) {
      below.clear();
      for (index_t j = 0; j < k_; ++j) {
        const double step = T ? T[i * p_.width + j] : 0.0;
        const std::vector<double>& list = value_[t * k_ + j];
        for (std::size_t r = 0; r < list.size() && step > none; ++r)
          below.push_back({step + list[r], 0, static_cast<std::int32_t>(j), static_cast<std::int32_t>(r)});
      }
      keep(below);
      std::vector<double>& list = value_[above * k_ + i];
      std::vector<Link>& links = links_[t * k_ + i];
      for (std::size_t a = 0; a < list.size(); ++a)  // a pair has at least (a + 1)(b + 1) - 1 better ones
        for (std::size_t b = 0; b < below.size() && static_cast<index_t>((a + 1) * (b + 1)) <= count_; ++b)
          links.push_back({list[a] + below[b].value, static_cast<std::int32_t>(a), below[b].label, below[b].rank});
      keep(links);
      list.resize(links.size());
      for (std::size_t r = 0; r < links.size(); ++r) list[r] = links[r].value;
    }
    for (index_t j = 0; j < k_; ++j) std::vector<double>().swap(value_[t * k_ + j]);
  }

  const Potentials& p_;
  const Tree& tree_;
  index_t count_, k_;
  std::vector<index_t> order_;
  std::vector<std::vector<double>> value_;  // node x label: scores of the best labellings below, best first
  std::vector<std::vector<Link>> links_;    // node x label of its parent
};

const index_t* prepare(const Tree& tree, ChainScratch& scratch) {
  if (!tree.parent) return nullptr;
  tree_order(tree.parent, tree.length, scratch.order);
  return scratch.order.data();
}

}  // namespace

void tree_order(const std::int32_t* parent, index_t length, std::vector<index_t>& order) {
  order.assign(3 * length, -1);  // the order, then for each node its first child and its next sibling
  index_t* child = order.data() + length;
  index_t* sibling = child + length;
  index_t filled = 0;
  for (index_t t = length; t-- > 0;) {
    if (parent[t] >= length || parent[t] < -1 || parent[t] == t)
      throw std::invalid_argument("parents must be -1 or the position of another token of the sequence");
    if (parent[t] >= 0) {
      sibling[t] = child[parent[t]];
      child[parent[t]] = t;
    }
  }
  for (index_t t = 0; t < length; ++t)
    if (parent[t] < 0) order[filled++] = t;
  for (index_t s = 0; s < filled; ++s)
    for (index_t c = child[order[s]]; c >= 0; c = sibling[c]) order[filled++] = c;
  if (filled != length) throw std::invalid_argument("parents have a cycle: outputs must be trees");
}

double tree_log_partition(const Potentials& p, const Tree& tree, const double* scores, ChainScratch& scratch) {
  const index_t n = tree.length * p.width;
  grow(scratch.alpha, n);
  grow(scratch.beta, n);
  std::copy(scores, scores + n, scratch.alpha.begin());
  return upward(p, tree, prepare(tree, scratch), scratch.alpha.data(), scratch.beta.data());
}

double tree_posterior(const Potentials& p, const Tree& tree, double* scores, double weight, double* pairs, double* each,
                      ChainScratch& scratch) {
  const index_t n = tree.length * p.width;
  grow(scratch.alpha, n);
  grow(scratch.beta, n + 3 * p.width);
  const index_t* order = prepare(tree, scratch);
  const double log_z = upward(p, tree, order, scores, scratch.alpha.data());
  if (log_z == none) throw std::invalid_argument("the constraints allow no labelling of one of the sequences");
  if (each) std::fill(each, each + tree.length * p.labels * p.width, 0.0);
  downward(p, tree, order, scores, scratch.alpha.data(), scratch.beta.data(), scratch.beta.data() + n, weight, pairs,
           each);
  return log_z;
}

double tree_best(const Potentials& p, const Tree& tree, const double* scores, std::int32_t* best,
                 ChainScratch& scratch) {
  const index_t w = p.width, n = tree.length * w;
  grow(scratch.alpha, n);
  std::copy(scores, scores + n, scratch.alpha.begin());
  const index_t* order = prepare(tree, scratch);
  double* inside = scratch.alpha.data();
  upward_best(p, tree, order, inside);
  double total = 0;
  for (index_t s = 0; s < tree.length; ++s) {
    const index_t t = order ? order[s] : s, parent = tree.up(t);
    const double* T = parent < 0 ? nullptr : table(p, tree, t) + best[parent] * w;
    double top = none;
    index_t label = 0;
    for (index_t j = 0; j < p.labels; ++j) {
      const double value = inside[t * w + j] + (T ? T[j] : 0.0);
      if (value > top) top = value, label = j;
    }
    best[t] = static_cast<std::int32_t>(label);
    if (!T) total += top;
  }
  return total;
}

index_t tree_top(const Potentials& p, const Tree& tree, const double* scores, index_t count, std::int32_t* best,
                 double* value) {
  return TopLabellings(p, tree, scores, count).write(best, value);
}

}  // namespace hinge
