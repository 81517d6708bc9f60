// Trees: binned tables, boosting, prediction.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bind/arrays.hpp"
#include "bind/enter.hpp"
#include "bind/modules.hpp"
#include "bind/tree_blocks.hpp"
#include "core/pool.hpp"
#include "trees/boosting.hpp"
#include "trees/cart.hpp"
#include "trees/nonzeros.hpp"
#include "trees/predict.hpp"
#include "trees/shap.hpp"
#include "trees/stump.hpp"

namespace hinge {
namespace {

using namespace nb::literals;
using namespace trees;

// Checks shapes, codes and sums; later code does not check them again.
void check_weights(const std::optional<Vector>& weight, index_t rows) {
  if (!weight) return;
  if (static_cast<index_t>(weight->shape(0)) != rows) throw nb::value_error("weight must have one entry per row");
  double total = 0;
  bool negative = false;
  for (index_t i = 0; i < rows; ++i) total += weight->data()[i], negative |= !(weight->data()[i] >= 0);
  if (negative || !std::isfinite(total))
    throw nb::value_error("weights must not be negative, and their sum must be finite");
}

// Codes of classes 0 ... classes - 1, or finite numbers if there are no classes.
void check_targets(const Vector& y, int classes) {
  for (std::size_t i = 0; i < y.shape(0); ++i) {
    const double v = y.data()[i];
    if (classes > 0 ? !(v >= 0 && v < classes) : !std::isfinite(v))
      throw nb::value_error("y must hold codes of its classes, or finite numbers");
  }
}

template <class T>
std::vector<std::uint8_t> column_flags(const AnyMatrix<T>& x, const In1<std::uint8_t>& categorical) {
  if (categorical.shape(0) != x.shape(1)) throw nb::value_error("categorical must have one entry per column of x");
  return copy(categorical);
}

nb::dict to_dict(CartTree&& t) {
  nb::dict d = hinge::to_dict(std::move(t.nodes));
  d["impurity"] = own(std::move(t.impurity));
  return d;
}

template <class T>
void bind_bins(nb::module_& m) {
  m.def(
      "tree_bins",
      [](AnyMatrix<T> x, std::optional<Vector> weight, In1<std::uint8_t> categorical, int max_bins, index_t sample,
         std::uint64_t seed, bool bundle) {
        const std::vector<std::uint8_t> flags = column_flags(x, categorical);
        check_weights(weight, static_cast<index_t>(x.shape(0)));
        if (max_bins < 2 || max_bins > 255 || sample < 1) throw nb::value_error("max_bins must lie between 2 and 255");
        return std::make_unique<Bins>(enter([&](Monitor&) {
          return make_bins(table(x), weight ? weight->data() : nullptr, flags, {max_bins, sample, seed, bundle});
        }));
      },
      "x"_a.noconvert(), "weight"_a.noconvert().none(), "categorical"_a.noconvert(), "max_bins"_a, "sample"_a, "seed"_a,
      "bundle"_a);
}

template <class T>
void bind_sorted(nb::module_& m) {
  m.def(
      "tree_sorted",
      [](AnyMatrix<T> x, In1<std::uint8_t> categorical) {
        const std::vector<std::uint8_t> flags = column_flags(x, categorical);
        return std::make_unique<Sorted>(enter([&](Monitor&) { return sort_columns(table(x), flags); }));
      },
      "x"_a.noconvert(), "categorical"_a.noconvert());
  m.def(
      "order_by_content",
      [](AnyMatrix<T> x, Vector y) {
        if (y.shape(0) != x.shape(0)) throw nb::value_error("y must have one entry per row of x");
        return own(enter([&](Monitor&) { return order_by_key(content_keys(table(x), y.data())); }));
      },
      "x"_a.noconvert(), "y"_a.noconvert());
  m.def(
      "content_keys",
      [](AnyMatrix<T> x, Vector y) {
        if (y.shape(0) != x.shape(0)) throw nb::value_error("y must have one entry per row of x");
        return own(enter([&](Monitor&) { return content_keys(table(x), y.data()); }));
      },
      "x"_a.noconvert(), "y"_a.noconvert());
}

// The columns of a sparse matrix, with its indices checked.
template <class T>
Compressed<T> compressed(const In1<T>& data, const In1<std::int32_t>& row, const In1<std::int64_t>& begin,
                         index_t rows) {
  if (begin.shape(0) == 0) throw nb::value_error("the arrays of the sparse matrix are inconsistent");
  const auto cols = static_cast<index_t>(begin.shape(0)) - 1;
  const auto size = static_cast<std::int64_t>(data.shape(0));
  bool ok = row.shape(0) == data.shape(0) && begin.data()[0] == 0 && begin.data()[cols] == size;
  for (index_t j = 0; ok && j < cols; ++j) {
    const std::int64_t first = begin.data()[j], last = begin.data()[j + 1];
    ok = first <= last && last <= size;
    for (std::int64_t k = first; ok && k < last; ++k)
      ok = row.data()[k] >= 0 && row.data()[k] < rows && (k == first || row.data()[k] > row.data()[k - 1]);
  }
  if (!ok) throw nb::value_error("the arrays of the sparse matrix are inconsistent");
  return {data.data(), row.data(), begin.data(), rows, cols};
}

template <class T>
void bind_nonzeros(nb::module_& m) {
  using Rows = In1<std::int32_t>;
  using Begin = In1<std::int64_t>;
  m.def(
      "tree_sorted_nonzeros",
      [](In1<T> data, Rows row, Begin begin, index_t rows) {
        const Compressed<T> x = compressed(data, row, begin, rows);
        return std::make_shared<Nonzeros>(enter([&](Monitor&) { return sort_nonzeros(x); }));
      },
      "data"_a.noconvert(), "row"_a.noconvert(), "begin"_a.noconvert(), "rows"_a);
  m.def(
      "tree_binned_nonzeros",
      [](In1<T> data, Rows row, Begin begin, index_t rows, std::optional<Vector> weight, int max_bins, index_t sample,
         std::uint64_t seed) {
        const Compressed<T> x = compressed(data, row, begin, rows);
        check_weights(weight, rows);
        if (max_bins < 2 || max_bins > 255 || sample < 1) throw nb::value_error("max_bins must lie between 2 and 255");
        return std::make_shared<Nonzeros>(enter(
            [&](Monitor&) { return bin_nonzeros(x, weight ? weight->data() : nullptr, {max_bins, sample, seed}); }));
      },
      "data"_a.noconvert(), "row"_a.noconvert(), "begin"_a.noconvert(), "rows"_a, "weight"_a.noconvert().none(),
      "max_bins"_a, "sample"_a, "seed"_a);
  m.def(
      "order_by_content",
      [](In1<T> data, Rows row, Begin begin, index_t rows, Vector y) {
        const Compressed<T> x = compressed(data, row, begin, rows);
        if (static_cast<index_t>(y.shape(0)) != rows) throw nb::value_error("y must have one entry per row of x");
        return own(enter([&](Monitor&) { return order_by_content(x, y.data()); }));
      },
      "data"_a.noconvert(), "row"_a.noconvert(), "begin"_a.noconvert(), "rows"_a, "y"_a.noconvert());
}

template <class T>
void bind_cells(nb::module_& m) {
  m.def(
      "tree_cells",
      [](AnyMatrix<T> x, In1<std::uint8_t> categorical) {
        const std::vector<std::uint8_t> flags = column_flags(x, categorical);
        auto cells = std::make_shared<Cells>();
        cells->table = table(x);
        cells->rows = static_cast<index_t>(x.shape(0)), cells->cols = static_cast<index_t>(x.shape(1));
        cells->features.resize(flags.size());
        for (std::size_t j = 0; j < flags.size(); ++j) cells->features[j].categorical = flags[j];
        return cells;
      },
      "x"_a.noconvert(), "categorical"_a.noconvert(), nb::keep_alive<0, 1>());
}

using AnyForm =
    std::variant<std::shared_ptr<Sorted>, std::shared_ptr<Bins>, std::shared_ptr<Nonzeros>, std::shared_ptr<Cells>>;

Forms forms(const AnyForm& table) {
  const auto get = [&]<class F>(const F*) -> const F* {
    const auto* held = std::get_if<std::shared_ptr<F>>(&table);
    return held ? held->get() : nullptr;
  };
  return {get(static_cast<const Sorted*>(nullptr)), get(static_cast<const Bins*>(nullptr)),
          get(static_cast<const Nonzeros*>(nullptr)), get(static_cast<const Cells*>(nullptr))};
}

CartOptions cart_options(const nb::dict& d) {
  CartOptions o;
  o.criterion = static_cast<Criterion>(option<int>(d, "criterion"));
  o.classes = option<int>(d, "classes");
  o.targets = option<int>(d, "targets");
  o.max_depth = option<int>(d, "max_depth");
  o.max_leaf_nodes = option<int>(d, "max_leaf_nodes");
  o.max_features = option<int>(d, "max_features");
  o.min_samples_split = option<double>(d, "min_samples_split");
  o.min_samples_leaf = option<double>(d, "min_samples_leaf");
  o.min_weight_leaf = option<double>(d, "min_weight_leaf");
  o.min_decrease = option<double>(d, "min_decrease");
  o.random_thresholds = option<bool>(d, "random_thresholds");
  for (const int m : option<std::vector<int>>(d, "monotone")) o.monotone.push_back(static_cast<std::int8_t>(m));
  return o;
}

// Grows trees on one table in any of its forms. The trees of an ensemble are numbered from `first` on: the same number
// and seed give the same tree, whichever others are grown in the same call. With draws > 0 each tree has its own
// bootstrap sample.
nb::tuple grow_trees(const AnyForm& table, Vector y, std::optional<Vector> weight, bool frequency,
                     const nb::dict& options, index_t trees, index_t first, std::uint64_t seed, index_t draws,
                     std::optional<In1<std::uint32_t>> order, bool want_bags) {
  const auto [n, cols] = std::visit([](const auto& form) { return std::pair{form->rows, form->cols}; }, table);
  const Forms form = forms(table);
  const CartOptions o = cart_options(options);
  if (form.bins && form.bins->slots.size() < form.bins->features.size())
    throw nb::value_error("trees need bins in which features do not share slots");
  if (o.random_thresholds ? !form.cells && !form.nonzeros : form.cells != nullptr)
    throw nb::value_error("random thresholds, and they alone, take a table that is neither sorted nor binned");
  if (o.targets < 1 || static_cast<index_t>(y.shape(0)) != n * o.targets ||
      (draws > 0 && (!order || static_cast<index_t>(order->shape(0)) != n)))
    throw nb::value_error("y, weight and order must have one entry per row of the table");
  if (!o.monotone.empty() && static_cast<index_t>(o.monotone.size()) != cols)
    throw nb::value_error("monotone must have one entry per column");
  check_weights(weight, n);
  check_targets(y, o.classes);
  // The classes of each target, if every bootstrap sample is to be balanced by class.
  const auto balanced = option<std::vector<int>>(options, "balanced");
  if (!balanced.empty()) {
    const int columns = std::accumulate(balanced.begin(), balanced.end(), 0);
    if (*std::min_element(balanced.begin(), balanced.end()) < 1 ||
        (o.targets == 1 ? balanced != std::vector<int>{o.classes} : columns != o.targets))
      throw nb::value_error("balanced must hold the number of classes of each target");
  }
  const double* w = weight ? weight->data() : nullptr;
  std::vector<CartTree> grown(trees);
  std::vector<std::uint8_t> bags(want_bags ? trees * n : 0);
  const std::vector<std::uint32_t> rows = draws > 0 ? copy(*order) : std::vector<std::uint32_t>{};
  enter([&](Monitor&) {
    const auto one = [&](index_t t) {
      const auto number = static_cast<std::uint64_t>(first + t);
      CartRows r;
      std::vector<double> own_weight;
      r.weight = w, r.frequency = frequency;
      if (draws > 0) {
        own_weight = bootstrap(rows, frequency ? w : nullptr, draws, seed, number + 1);
        if (w && !frequency)
          for (index_t i = 0; i < n; ++i) own_weight[i] *= w[i];
        if (!balanced.empty()) balance_classes(own_weight, y.data(), o.targets, balanced);
        r.weight = own_weight.data();
        r.frequency = (!w || frequency) && balanced.empty();
        for (index_t i = 0; i < n; ++i)
          if (own_weight[i] > 0) r.row.push_back(static_cast<std::uint32_t>(i));
        if (want_bags)
          for (const std::uint32_t i : r.row) bags[t * n + i] = 1;
      } else {
        for (index_t i = 0; i < n; ++i)
          if (!w || w[i] > 0) r.row.push_back(static_cast<std::uint32_t>(i));
      }
      grown[t] = grow_cart(form, y.data(), r, o, mix64(seed + number));
    };
    if (trees == 1)
      one(0);  // the tree itself is grown in parallel
    else
      parallel_for(trees, one);
  });
  nb::list out;
  for (CartTree& t : grown) out.append(to_dict(std::move(t)));
  return nb::make_tuple(out, own(std::move(bags), want_bags ? trees : 0, n));
}

template <class T>
void bind_predict(nb::class_<Predictor>& c) {
  c.def(
      "add",
      [](const Predictor& p, AnyMatrix<T> x, index_t first, index_t last,
         nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> out) {
        if (static_cast<index_t>(x.shape(1)) <= p.largest_feature() || out.shape(0) != x.shape(0) ||
            static_cast<index_t>(out.shape(1)) != p.outputs() || first < 0 || first > last || last > p.trees())
          throw nb::value_error("shapes of x, out and the ensemble do not fit");
        enter([&](Monitor&) { p.add(table(x), first, last, out.data()); });
      },
      "x"_a.noconvert(), "first"_a, "last"_a, "out"_a.noconvert());
  c.def(
      "out_of_bag",
      [](const Predictor& p, AnyMatrix<T> x, In2<std::uint8_t> in_bag) {
        if (static_cast<index_t>(x.shape(1)) <= p.largest_feature() || in_bag.shape(1) != x.shape(0) ||
            static_cast<index_t>(in_bag.shape(0)) != p.trees())
          throw nb::value_error("shapes of x, in_bag and the ensemble do not fit");
        std::vector<double> out(x.shape(0) * static_cast<std::size_t>(p.outputs())), count(x.shape(0));
        enter([&](Monitor&) { p.add_out_of_bag(table(x), in_bag.data(), out.data(), count.data()); });
        return nb::make_tuple(own(std::move(out), x.shape(0), static_cast<std::size_t>(p.outputs())),
                              own(std::move(count)));
      },
      "x"_a.noconvert(), "in_bag"_a.noconvert());
  c.def(
      "leaves",
      [](const Predictor& p, AnyMatrix<T> x) {
        if (static_cast<index_t>(x.shape(1)) <= p.largest_feature())
          throw nb::value_error("x has fewer columns than the ensemble uses");
        std::vector<std::int32_t> out(x.shape(0) * static_cast<std::size_t>(p.trees()));
        enter([&](Monitor&) { p.leaves(table(x), out.data()); });
        return own(std::move(out), x.shape(0), static_cast<std::size_t>(p.trees()));
      },
      "x"_a.noconvert());
}

// Checks every index of an ensemble; later code does not check them again.
Ensemble ensemble(const nb::dict& d) {
  Ensemble e;
  e.start = copy(option<In1<std::int64_t>>(d, "start"));
  e.feature = copy(option<In1<std::int32_t>>(d, "feature"));
  e.left = copy(option<In1<std::int32_t>>(d, "left"));
  e.set = copy(option<In1<std::int32_t>>(d, "set"));
  e.threshold = copy(option<In1<double>>(d, "threshold"));
  e.missing_left = copy(option<In1<std::uint8_t>>(d, "missing_left"));
  e.sets = copy(option<In1<std::uint32_t>>(d, "sets"));
  const auto value = option<Matrix>(d, "value");
  e.value.assign(value.data(), value.data() + value.size());
  e.outputs = option<std::int64_t>(d, "outputs");
  e.additive = option<bool>(d, "additive");
  const std::size_t n = e.feature.size();
  bool ok = !e.start.empty() && e.start.front() == 0 && e.start.back() == static_cast<std::int64_t>(n) &&
            e.left.size() == n && e.set.size() == n && e.threshold.size() == n && e.missing_left.size() == n &&
            e.outputs >= 1 && e.value.size() == n * static_cast<std::size_t>(e.additive ? 1 : e.outputs);
  std::vector<bool> has_parent(ok ? n : 0);
  for (std::size_t t = 0; ok && t + 1 < e.start.size(); ++t) {
    ok = e.start[t] < e.start[t + 1] && e.start[t + 1] <= static_cast<std::int64_t>(n);
    for (std::int64_t i = e.start[t]; ok && i < e.start[t + 1]; ++i) {
      const std::int64_t here = i - e.start[t], left = e.left[i];
      if (e.feature[i] >= 0)  // children come after their parent, so every walk ends
        ok = left > here && left + 1 < e.start[t + 1] - e.start[t] && e.set[i] >= -1 &&
             8 * (static_cast<std::int64_t>(e.set[i]) + 1) <= static_cast<std::int64_t>(e.sets.size());
      if (ok && e.feature[i] >= 0)  // two parents of one child would make the number of paths exponential
        for (const std::int64_t child : {e.start[t] + left, e.start[t] + left + 1}) {
          ok = ok && !has_parent[child];
          has_parent[child] = true;
        }
    }
  }
  if (!ok) throw nb::value_error("the arrays of the trees are inconsistent");
  return e;
}

template <class T>
void bind_shap(nb::module_& m) {
  m.def(
      "tree_shap",
      [](const nb::dict& d, Vector weight, AnyMatrix<T> x) {
        const Ensemble e = ensemble(d);
        const auto cols = static_cast<std::int32_t>(x.shape(1));
        if (!e.additive || weight.shape(0) != e.feature.size() ||
            std::any_of(e.feature.begin(), e.feature.end(), [&](std::int32_t f) { return f >= cols; }))
          throw nb::value_error("x and weight do not fit the ensemble");
        std::vector<double> out(x.shape(0) * x.shape(1) * static_cast<std::size_t>(e.outputs));
        const std::vector<double> w = copy(weight);
        enter([&](Monitor&) { add_shap(e, w, table(x), out.data()); });
        return own(std::move(out));
      },
      "ensemble"_a, "weight"_a.noconvert(), "x"_a.noconvert());
}

}  // namespace

nb::dict to_dict(Nodes&& t) {
  nb::dict d;
  const std::size_t nodes = t.feature.size(), outputs = nodes ? t.value.size() / nodes : 1;
  d["feature"] = own(std::move(t.feature));
  d["threshold"] = own(std::move(t.threshold));
  d["left"] = own(std::move(t.left));
  d["missing_left"] = own(std::move(t.missing_left));
  d["set"] = own(std::move(t.set));
  d["sets"] = own(std::move(t.sets));
  d["value"] = own(std::move(t.value), nodes, outputs);
  d["gain"] = own(std::move(t.gain));
  d["weight"] = own(std::move(t.weight));
  d["count"] = own(std::move(t.count));
  return d;
}

GrowOptions grow_options(const nb::dict& d, index_t cols) {
  GrowOptions o;
  o.max_leaves = option<int>(d, "max_leaves");
  o.max_depth = option<int>(d, "max_depth");
  o.by_level = option<bool>(d, "by_level");
  o.min_split = option<std::int64_t>(d, "min_split");
  o.split.l2 = option<double>(d, "l2");
  o.split.min_hessian = option<double>(d, "min_hessian");
  o.split.min_count = option<std::int64_t>(d, "min_count");
  o.split.min_gain = option<double>(d, "min_gain");
  o.prune = option<double>(d, "prune");
  o.split.category_smoothing = option<double>(d, "category_smoothing");
  for (const int m : option<std::vector<int>>(d, "monotone")) o.monotone.push_back(static_cast<std::int8_t>(m));
  o.allowed = option<std::vector<std::vector<std::int32_t>>>(d, "allowed");
  const auto outside = [&](std::int32_t f) { return f < 0 || f >= cols; };
  bool fits = o.monotone.empty() || static_cast<index_t>(o.monotone.size()) == cols;
  for (const auto& group : o.allowed) fits &= std::none_of(group.begin(), group.end(), outside);
  if (!fits) throw nb::value_error("monotone and allowed must fit the columns of the table");
  return o;
}

void bind_trees(nb::module_& m) {
  nb::class_<Bins>(m, "TreeBins")
      .def_prop_ro("shape", [](const Bins& b) { return nb::make_tuple(b.rows, b.cols); })
      .def_prop_ro("slots", [](const Bins& b) { return b.slots.size(); })
      .def("count", [](const Bins& b, std::size_t j) { return b.features.at(j).bins; })
      .def("edges", [](const Bins& b, std::size_t j) { return own(std::vector<double>(b.features.at(j).edge)); })
      .def("column", [](const Bins& b, std::size_t j) {
        if (static_cast<index_t>(j) >= b.cols) throw nb::index_error();
        return own(std::vector<std::uint8_t>(b.col(static_cast<index_t>(j)), b.col(static_cast<index_t>(j)) + b.rows));
      });
  bind_bins<float>(m);
  bind_bins<double>(m);

  nb::class_<Sorted>(m, "TreeSorted").def_prop_ro("shape", [](const Sorted& s) {
    return nb::make_tuple(s.rows, s.cols);
  });
  bind_sorted<float>(m);
  bind_sorted<double>(m);
  nb::class_<Nonzeros>(m, "TreeNonzeros");
  nb::class_<Cells>(m, "TreeCells");
  bind_nonzeros<float>(m);
  bind_nonzeros<double>(m);
  bind_cells<float>(m);
  bind_cells<double>(m);
  m.def("order_by_key", [](In1<std::uint64_t> keys) { return own(order_by_key(copy(keys))); }, "keys"_a.noconvert());
  m.def("grow_trees", &grow_trees, "table"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "frequency"_a,
        "options"_a, "trees"_a, "first"_a, "seed"_a, "draws"_a, "order"_a.noconvert().none(), "want_bags"_a);
  nb::class_<Stumps>(m, "TreeStumps")
      .def(
          "__init__",
          [](Stumps* self, std::shared_ptr<Sorted> sorted, Vector y) {
            if (static_cast<index_t>(y.shape(0)) != sorted->rows || sorted->rows == 0 ||
                std::any_of(sorted->features.begin(), sorted->features.end(),
                            [](const Feature& f) { return f.categorical || f.missing; }))
              throw nb::value_error("stumps need a class for every row, and numbers without missing values");
            check_targets(y, 2);
            enter([&](Monitor&) { new (self) Stumps(std::move(sorted), y.data()); });
          },
          "sorted"_a, "y"_a.noconvert())
      .def(
          "grow",
          [](const Stumps& s, Vector weight, const nb::dict& options) {
            check_weights(weight, s.rows());
            const CartOptions o = cart_options(options);
            std::vector<std::uint8_t> predicted(static_cast<std::size_t>(s.rows()));
            CartTree tree = enter([&](Monitor&) { return s.grow(weight.data(), o, predicted.data()); });
            return nb::make_tuple(to_dict(std::move(tree)), own(std::move(predicted)));
          },
          "weight"_a.noconvert(), "options"_a);
  m.def(
      "bootstrap",
      [](In1<std::uint32_t> order, std::optional<Vector> count, index_t draws, std::uint64_t seed, std::uint64_t tree) {
        const auto n = static_cast<index_t>(order.shape(0));
        check_weights(count, n);
        const auto outside = [&](std::uint32_t i) { return static_cast<index_t>(i) >= n; };
        if (std::any_of(order.data(), order.data() + n, outside)) throw nb::value_error("order must hold row numbers");
        return own(bootstrap(copy(order), count ? count->data() : nullptr, draws, seed, tree));
      },
      "order"_a.noconvert(), "count"_a.noconvert().none(), "draws"_a, "seed"_a, "tree"_a);

  nb::class_<Booster>(m, "Booster")
      .def(
          "__init__",
          [](Booster* self, std::shared_ptr<Bins> bins, Vector y, std::optional<Vector> weight, index_t outputs,
             bool exact, bool frequency, const nb::dict& options) {
            if (static_cast<index_t>(y.shape(0)) != bins->rows || outputs < 1)
              throw nb::value_error("y must have one entry per row of the table");
            check_weights(weight, bins->rows);
            check_targets(y, outputs > 1 ? static_cast<int>(outputs) : 0);
            GrowOptions o = grow_options(options, bins->cols);
            new (self) Booster(std::move(bins), y.data(), weight ? weight->data() : nullptr, outputs, exact, frequency,
                               std::move(o));
          },
          "bins"_a, "y"_a.noconvert(), "weight"_a.noconvert().none(), "outputs"_a, "exact"_a, "frequency"_a,
          "options"_a, nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>())
      .def("scores",
           [](Booster& b) {
             return own(std::vector<double>(b.scores()), static_cast<std::size_t>(b.outputs()),
                        static_cast<std::size_t>(b.rows()));
           })
      .def(
          "start",
          [](Booster& b, Vector constants) {
            if (static_cast<index_t>(constants.shape(0)) != b.outputs())
              throw nb::value_error("one constant per output is needed");
            for (index_t k = 0; k < b.outputs(); ++k)
              std::fill_n(b.scores().begin() + k * b.rows(), b.rows(), constants.data()[k]);
          },
          "constants"_a.noconvert())
      .def(
          "set_scores",
          [](Booster& b, Matrix s) {
            if (static_cast<index_t>(s.shape(0)) != b.outputs() || static_cast<index_t>(s.shape(1)) != b.rows())
              throw nb::value_error("scores must have one row per output and one column per example");
            std::copy(s.data(), s.data() + s.size(), b.scores().begin());
          },
          "scores"_a.noconvert())
      .def(
          "mean_loss",
          [](const Booster& b, const std::shared_ptr<Loss>& loss) {
            if (loss && b.outputs() != 1) throw nb::value_error("a loss is for one output");
            return enter([&](Monitor&) { return b.mean_loss(loss.get()); });
          },
          "loss"_a.none())
      .def("left_out", [](const Booster& b) { return own(b.left_out()); })
      .def(
          "boost",
          [](Booster& b, const std::shared_ptr<Loss>& loss, bool logistic, bool own_curvature, double bound,
             std::uint64_t seed, double rows, double features, double eta, bool search, double level, bool convex) {
            if (!loss && (logistic || search)) throw nb::value_error("a loss is needed");
            if (loss && b.outputs() != 1) throw nb::value_error("a loss is for one output");
            std::vector<Nodes> trees = enter([&](Monitor&) {
              return b.boost(
                  {loss.get(), logistic, {own_curvature, bound}, seed, rows, features, eta, search, level, convex});
            });
            nb::list out;
            for (Nodes& t : trees) out.append(to_dict(std::move(t)));
            return out;
          },
          "loss"_a.none(), "logistic"_a, "own_curvature"_a, "bound"_a, "seed"_a, "rows"_a, "features"_a, "eta"_a,
          "search"_a, "level"_a, "convex"_a);

  bind_shap<float>(m);
  bind_shap<double>(m);

  nb::class_<Predictor> predictor(m, "TreePredictor");
  predictor.def("__init__", [](Predictor* self, const nb::dict& d) { new (self) Predictor(ensemble(d)); });
  predictor.def_prop_ro("trees", &Predictor::trees);
  bind_predict<float>(predictor);
  bind_predict<double>(predictor);
}

}  // namespace hinge
