#include "trees/shap.hpp"

#include <algorithm>
#include <vector>

#include "core/pool.hpp"

namespace hinge::trees {
namespace {

// One feature on the path: the fraction of training rows that follow the path (zero), whether x follows it (one), and
// the weight of the subsets of a given size.
struct PathStep {
  std::int32_t feature;
  double zero, one, weight;
};

void extend(PathStep* path, int depth, double zero, double one, std::int32_t feature) {
  path[depth] = {feature, zero, one, depth == 0 ? 1.0 : 0.0};
  for (int i = depth - 1; i >= 0; --i) {
    path[i + 1].weight += one * path[i].weight * (i + 1) / (depth + 1);
    path[i].weight = zero * path[i].weight * (depth - i) / (depth + 1);
  }
}

void unwind(PathStep* path, int depth, int index) {
  const double one = path[index].one, zero = path[index].zero;
  double next = path[depth].weight;
  for (int i = depth - 1; i >= 0; --i) {
    if (one != 0) {
      const double kept = path[i].weight;
      path[i].weight = next * (depth + 1) / ((i + 1) * one);
      next = kept - path[i].weight * zero * (depth - i) / (depth + 1);
    } else {
      path[i].weight = path[i].weight * (depth + 1) / (zero * (depth - i));
    }
  }
  for (int i = index; i < depth; ++i)
    path[i].feature = path[i + 1].feature, path[i].zero = path[i + 1].zero, path[i].one = path[i + 1].one;
}

double unwound_sum(const PathStep* path, int depth, int index) {
  const double one = path[index].one, zero = path[index].zero;
  double next = path[depth].weight, total = 0;
  for (int i = depth - 1; i >= 0; --i) {
    if (one != 0) {
      const double w = next * (depth + 1) / ((i + 1) * one);
      total += w;
      next = path[i].weight - w * zero * (depth - i) / (depth + 1);
    } else if (zero != 0) {
      total += path[i].weight * (depth + 1) / (zero * (depth - i));
    }
  }
  return total;
}

template <class T>
struct Walker {
  const Ensemble& e;
  const std::vector<double>& weight;
  const Table<T>& x;
  index_t row, base;
  double* phi;  // of the row and output, `stride` apart by feature
  index_t stride;

  bool goes_left(index_t at) const {
    const T v = x.at(row, e.feature[at]);
    if (e.set[at] >= 0)
      return v >= 0 && v < 255 ? contains(e.sets.data() + 8 * e.set[at], static_cast<unsigned>(v))
                               : e.missing_left[at] != 0;
    return v == v ? static_cast<double>(v) <= e.threshold[at] : e.missing_left[at] != 0;
  }

  // A node on the stack: the path to its parent is the first `depth` steps of `paths[level - 1]`.
  struct Waiting {
    index_t node, level;
    int depth;
    double zero, one;
    std::int32_t feature;
  };

  // Depth first with an explicit stack, because a tree may be deeper than the call stack allows. A feature occurs once
  // on a path, so paths are no longer than the number of features.
  void walk(std::vector<std::vector<PathStep>>& paths, std::vector<Waiting>& stack) const {
    stack.assign(1, {0, 0, 0, 1, 1, -1});
    while (!stack.empty()) {
      const Waiting now = stack.back();
      stack.pop_back();
      if (static_cast<index_t>(paths.size()) <= now.level) paths.emplace_back();
      std::vector<PathStep>& path = paths[now.level];
      path.resize(now.depth + 2);
      if (now.level > 0) std::copy_n(paths[now.level - 1].begin(), now.depth, path.begin());
      extend(path.data(), now.depth, now.zero, now.one, now.feature);
      const index_t at = base + now.node;
      if (e.feature[at] < 0) {
        for (int i = 1; i <= now.depth; ++i)
          phi[path[i].feature * stride] +=
              unwound_sum(path.data(), now.depth, i) * (path[i].one - path[i].zero) * e.value[at];
        continue;
      }
      const index_t left = e.left[at];
      const double a = weight[base + left], b = weight[base + left + 1];
      const double share = a + b > 0 ? a / (a + b) : 0.5;
      double known_zero = 1, known_one = 1;
      int used = now.depth;
      for (int i = 1; i <= now.depth; ++i)
        if (path[i].feature == e.feature[at]) {
          known_zero = path[i].zero, known_one = path[i].one;
          unwind(path.data(), now.depth, i);
          --used;
          break;
        }
      const bool goes = goes_left(at);
      const index_t level = now.level + 1;
      stack.push_back({left + 1, level, used + 1, (1 - share) * known_zero, goes ? 0.0 : known_one, e.feature[at]});
      stack.push_back({left, level, used + 1, share * known_zero, goes ? known_one : 0.0, e.feature[at]});
    }
  }
};

}  // namespace

template <class T>
void add_shap(const Ensemble& e, const std::vector<double>& weight, const Table<T>& x, double* out) {
  const index_t trees = static_cast<index_t>(e.start.size()) - 1, k = e.outputs;
  const index_t parts = parts_for(x.rows, 4, 256);
  parallel_for(parts, [&](index_t part) {
    std::vector<std::vector<PathStep>> paths;
    std::vector<typename Walker<T>::Waiting> stack;
    for (index_t row = range_begin(x.rows, parts, part); row < range_begin(x.rows, parts, part + 1); ++row)
      for (index_t t = 0; t < trees; ++t) {
        const Walker<T> walker{e, weight, x, row, e.start[t], out + row * x.cols * k + t % k, k};
        walker.walk(paths, stack);
      }
  });
}
template void add_shap(const Ensemble&, const std::vector<double>&, const Table<float>&, double*);
template void add_shap(const Ensemble&, const std::vector<double>&, const Table<double>&, double*);

}  // namespace hinge::trees
