#include "trees/shap.hpp"

#include <algorithm>

#include "core/pool.hpp"

namespace hinge::trees {
namespace {

// One feature on the path: the share of unknown rows that pass (zero), whether x passes (one), and the weight of the
// subsets of a given size.
struct Step {
  std::int32_t feature;
  double zero, one, weight;
};

void extend(Step* path, int depth, double zero, double one, std::int32_t feature) {
  path[depth] = {feature, zero, one, depth == 0 ? 1.0 : 0.0};
  for (int i = depth - 1; i >= 0; --i) {
    path[i + 1].weight += one * path[i].weight * (i + 1) / (depth + 1);
    path[i].weight = zero * path[i].weight * (depth - i) / (depth + 1);
  }
}

void unwind(Step* path, int depth, int index) {
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

double unwound_sum(const Step* path, int depth, int index) {
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
  double* phi;  // of the row and output: stride between features is `stride`
  index_t stride;

  bool goes_left(index_t at) const {
    const T v = x.at(row, e.feature[at]);
    if (e.set[at] >= 0)
      return v >= 0 && v < 255 ? contains(e.sets.data() + 8 * e.set[at], static_cast<unsigned>(v))
                               : e.missing_left[at] != 0;
    return v == v ? static_cast<double>(v) <= e.threshold[at] : e.missing_left[at] != 0;
  }

  void visit(index_t node, const Step* parent, int depth, double zero, double one, std::int32_t feature) const {
    std::vector<Step> path(depth + 2);
    std::copy_n(parent, depth, path.begin());
    extend(path.data(), depth, zero, one, feature);
    const index_t at = base + node;
    if (e.feature[at] < 0) {
      for (int i = 1; i <= depth; ++i)
        phi[path[i].feature * stride] +=
            unwound_sum(path.data(), depth, i) * (path[i].one - path[i].zero) * e.value[at];
      return;
    }
    const index_t left = e.left[at];
    const double a = weight[base + left], b = weight[base + left + 1];
    const double share = a + b > 0 ? a / (a + b) : 0.5;
    double known_zero = 1, known_one = 1;
    int used = depth;
    for (int i = 1; i <= depth; ++i)
      if (path[i].feature == e.feature[at]) {
        known_zero = path[i].zero, known_one = path[i].one;
        unwind(path.data(), depth, i);
        --used;
        break;
      }
    const bool goes = goes_left(at);
    visit(left, path.data(), used + 1, share * known_zero, goes ? known_one : 0.0, e.feature[at]);
    visit(left + 1, path.data(), used + 1, (1 - share) * known_zero, goes ? 0.0 : known_one, e.feature[at]);
  }
};

}  // namespace

template <class T>
void add_shap(const Ensemble& e, const std::vector<double>& weight, const Table<T>& x, double* out) {
  const index_t trees = static_cast<index_t>(e.start.size()) - 1, k = e.outputs;
  const index_t parts = parts_for(x.rows, 4, 256);
  parallel_for(parts, [&](index_t part) {
    for (index_t row = range_begin(x.rows, parts, part); row < range_begin(x.rows, parts, part + 1); ++row)
      for (index_t t = 0; t < trees; ++t) {
        const Walker<T> walker{e, weight, x, row, e.start[t], out + row * x.cols * k + t % k, k};
        walker.visit(0, nullptr, 0, 1, 1, -1);
      }
  });
}
template void add_shap(const Ensemble&, const std::vector<double>&, const Table<float>&, double*);
template void add_shap(const Ensemble&, const std::vector<double>&, const Table<double>&, double*);

}  // namespace hinge::trees
