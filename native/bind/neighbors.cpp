// Nearest neighbours.
#include "bind/arrays.hpp"
#include "bind/enter.hpp"
#include "bind/modules.hpp"
#include "neighbors/brute.hpp"
#include "neighbors/tree.hpp"

namespace hinge {
namespace {

using namespace nb::literals;

Distance distance_of(int metric, double p) { return {static_cast<Metric>(metric), p}; }

nb::tuple to_python(Neighbours&& found, index_t m, index_t k) {
  return nb::make_tuple(own(std::move(found.key), m, k), own(std::move(found.index), m, k));
}

void expect_enough(index_t m, index_t n, index_t k, bool same) {
  expect(k >= 1 && k <= n - (same ? 1 : 0), "there are fewer points than neighbours");
  expect(!same || m == n, "the queries must be the points");
}

template <class T>
void bind_search(nb::module_& m) {
  m.def(
      "nearest_of_all",
      [](int metric, double p, const Points<T>& queries, const Points<T>& points, index_t k, bool same) {
        expect_enough(queries.n, points.n, k, same);
        expect(queries.d == points.d && queries.sparse() == points.sparse(),
               "both sets of points must have the same number of columns and one storage");
        const Distance distance = distance_of(metric, p);
        expect(!points.sparse() || distance.metric == Metric::euclidean || distance.metric == Metric::cosine,
               "sparse points have Euclidean and cosine distances only");
        return to_python(enter([&](Monitor&) { return nearest_of_all<T>(distance, queries, points, k, same); }),
                         queries.n, k);
      },
      "metric"_a, "p"_a, "queries"_a, "points"_a, "k"_a, "same"_a);
}

}  // namespace

void bind_neighbors(nb::module_& m) {
  bind_search<double>(m);
  bind_search<float>(m);
  nb::class_<KdTree>(m, "KdTree")
      .def(
          "__init__",
          [](KdTree* self, Matrix points, index_t leaf_size) {
            expect(points.shape(0) > 0 && points.shape(1) > 0 && leaf_size > 0, "a tree needs points");
            enter([&](Monitor&) {
              new (self) KdTree(points.data(), size_of(points), static_cast<index_t>(points.shape(1)), leaf_size);
            });
          },
          "points"_a.noconvert(), "leaf_size"_a, nb::keep_alive<1, 2>())
      .def(
          "nearest",
          [](const KdTree& self, int metric, double p, Matrix queries, index_t k, bool same) {
            const index_t rows = size_of(queries);
            expect_enough(rows, self.rows(), k, same);
            expect(static_cast<index_t>(queries.shape(1)) == self.cols(), "the queries have other columns");
            const Distance distance = distance_of(metric, p);
            return to_python(enter([&](Monitor&) { return self.nearest(distance, queries.data(), rows, k, same); }),
                             rows, k);
          },
          "metric"_a, "p"_a, "queries"_a.noconvert(), "k"_a, "same"_a);
}

}  // namespace hinge
