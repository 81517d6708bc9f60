// Trees over blocks of a table: bins, boosting of blocks, and the growth of a tree from their sums.
#include "bind/tree_blocks.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>

#include "bind/enter.hpp"
#include "bind/modules.hpp"
#include "core/random.hpp"
#include "trees/boost_block.hpp"
#include "trees/cart.hpp"

namespace hinge {
namespace {

using namespace nb::literals;
using namespace trees;

template <class T>
void bind_coding(nb::module_& m) {
  m.def(
      "tree_features",
      [](AnyMatrix<T> x, std::optional<Vector> weight, In1<std::uint8_t> categorical, int max_bins) {
        const auto rows = static_cast<index_t>(x.shape(0));
        expect(categorical.shape(0) == x.shape(1), "categorical must have one entry per column of x");
        expect(!weight || size_of(*weight) == rows, "weight must have one entry per row");
        expect(max_bins >= 2 && max_bins <= 255, "max_bins must lie between 2 and 255");
        BinOptions options;
        options.max_bins = max_bins, options.sample = std::max<index_t>(1, rows);
        const std::vector<Feature> found = enter([&](Monitor&) {
          return find_features(table(x), weight ? weight->data() : nullptr, copy(categorical), options);
        });
        std::vector<double> low, high;
        std::vector<std::int32_t> bins;
        for (const Feature& f : found) {
          bins.push_back(static_cast<std::int32_t>(f.low.size()));
          low.insert(low.end(), f.low.begin(), f.low.end()), high.insert(high.end(), f.high.begin(), f.high.end());
        }
        return nb::make_tuple(own(std::move(low)), own(std::move(high)), own(std::move(bins)));
      },
      "x"_a.noconvert(), "weight"_a.noconvert().none(), "categorical"_a.noconvert(), "max_bins"_a);
  m.def(
      "tree_codes",
      [](const Bins& layout, AnyMatrix<T> x) {
        expect(static_cast<index_t>(x.shape(1)) == layout.cols, "x must have the columns of the layout");
        std::vector<Feature> features = layout.features;
        for (Feature& f : features) f.missing = false, f.bins = f.categorical ? 1 : f.bins;
        std::vector<std::uint8_t> codes(x.shape(0) * x.shape(1)), missing;
        enter([&](Monitor&) { code_columns(table(x), features, codes.data()); });
        std::vector<std::int32_t> bins;
        for (const Feature& f : features) missing.push_back(f.missing), bins.push_back(f.bins);
        return nb::make_tuple(own(std::move(codes), x.shape(1), x.shape(0)), own(std::move(missing)),
                              own(std::move(bins)));
      },
      "layout"_a, "x"_a.noconvert());
}

Bins layout(Vector low, Vector high, In1<std::int32_t> counts, In1<std::int32_t> bins, In1<std::uint8_t> categorical,
            In1<std::uint8_t> missing) {
  const std::size_t cols = counts.shape(0);
  std::int64_t values = 0;
  bool ok = bins.shape(0) == cols && categorical.shape(0) == cols && missing.shape(0) == cols;
  for (std::size_t j = 0; ok && j < cols; ++j) {
    values += counts.data()[j];
    ok = counts.data()[j] >= 0 && counts.data()[j] <= 255 && bins.data()[j] >= 1 && bins.data()[j] <= 255;
  }
  expect(ok && values == size_of(low) && values == size_of(high), "the arrays of the layout are inconsistent");
  std::vector<Feature> features(cols);
  index_t at = 0;
  for (std::size_t j = 0; j < cols; ++j) {
    Feature& f = features[j];
    const index_t n = counts.data()[j];
    f.categorical = categorical.data()[j], f.missing = missing.data()[j];
    f.low.assign(low.data() + at, low.data() + at + n), f.high.assign(high.data() + at, high.data() + at + n);
    f.bins = f.categorical ? bins.data()[j] : std::max(1, static_cast<int>(n));
    for (int b = 0; b + 1 < n; ++b) f.edge.push_back(split_threshold(f, b, b + 1));
    at += n;
  }
  return make_layout(std::move(features));
}

// Checks that codes are within the bins of the layout; later code does not check them again.
void check_codes(const Bins& layout, const In2<std::uint8_t>& codes) {
  expect(static_cast<index_t>(codes.shape(0)) == layout.cols, "codes must have one row per column of the layout");
  for (index_t j = 0; j < layout.cols; ++j) {
    const std::uint8_t* column = codes.data() + j * static_cast<index_t>(codes.shape(1));
    const Feature& f = layout.features[j];
    int top = 0;
    bool missing = false;
    for (std::size_t i = 0; i < codes.shape(1); ++i) {
      missing |= column[i] == kMissing;
      top = std::max(top, column[i] == kMissing ? 0 : static_cast<int>(column[i]));
    }
    expect(top < f.bins && (f.missing || !missing), "codes must lie within the bins of the layout");
  }
}

// The caller's dictionary keeps the loss of a round alive.
BlockRound block_round(const nb::dict& d, index_t outputs) {
  BlockRound round;
  if (!d["loss"].is_none()) round.what.loss = option<std::shared_ptr<Loss>>(d, "loss").get();
  expect((round.what.loss != nullptr) == (outputs == 1), "a loss is for one output");
  round.what.logistic = option<bool>(d, "logistic");
  round.what.curvature = {option<bool>(d, "own_curvature"), option<double>(d, "bound")};
  round.seed = option<std::uint64_t>(d, "seed");
  round.rows = option<double>(d, "rows");
  if (d.contains("extents")) {
    const auto extents = option<Matrix>(d, "extents");
    expect(static_cast<index_t>(extents.shape(0)) == outputs && extents.shape(1) == 3, "extents must be outputs x 3");
    for (index_t k = 0; k < outputs; ++k)
      round.extents.push_back({extents.data()[3 * k], extents.data()[3 * k + 1], extents.data()[3 * k + 2]});
  }
  return round;
}

nb::dict route_dict(const Nodes& t) {
  nb::dict d;
  d["feature"] = own(std::vector<std::int32_t>(t.feature));
  d["bin"] = own(std::vector<std::uint8_t>(t.bin));
  d["left"] = own(std::vector<std::int32_t>(t.left));
  d["missing_left"] = own(std::vector<std::uint8_t>(t.missing_left));
  d["set"] = own(std::vector<std::int32_t>(t.set));
  d["sets"] = own(std::vector<std::uint32_t>(t.sets));
  return d;
}

Nodes route_of(const nb::dict& d, index_t cols) {
  Nodes t;
  t.feature = copy(option<In1<std::int32_t>>(d, "feature"));
  t.bin = copy(option<In1<std::uint8_t>>(d, "bin"));
  t.left = copy(option<In1<std::int32_t>>(d, "left"));
  t.missing_left = copy(option<In1<std::uint8_t>>(d, "missing_left"));
  t.set = copy(option<In1<std::int32_t>>(d, "set"));
  t.sets = copy(option<In1<std::uint32_t>>(d, "sets"));
  const std::size_t n = t.feature.size();
  bool ok = n > 0 && t.bin.size() == n && t.left.size() == n && t.missing_left.size() == n && t.set.size() == n;
  for (std::size_t k = 0; ok && k < n; ++k)
    ok = t.left[k] < 0 || (t.left[k] > static_cast<std::int32_t>(k) && t.left[k] < static_cast<std::int32_t>(n) - 1 &&
                           t.feature[k] >= 0 && t.feature[k] < cols && t.set[k] >= -1 &&
                           t.set[k] < static_cast<std::int64_t>(t.sets.size() / 8));
  expect(ok, "the arrays of the route are inconsistent");
  return t;
}

// Targets, scores (outputs x rows) and weights of a block.
Scored scored(const Vector& y, const Matrix& scores, const std::optional<Vector>& weight) {
  const index_t rows = size_of(y), outputs = static_cast<index_t>(scores.shape(0));
  expect(outputs >= 1 && static_cast<index_t>(scores.shape(1)) == rows && (!weight || size_of(*weight) == rows),
         "scores and weight must fit y");
  for (index_t i = 0; outputs > 1 && i < rows; ++i)
    expect(y.data()[i] >= 0 && y.data()[i] < static_cast<double>(outputs), "y must hold codes of its classes");
  return {y.data(), scores.data(), weight ? weight->data() : nullptr, rows, outputs};
}

// The form of the rounded gradients, and the unit of the integers, from the extents of all rows.
Rounded units_of(const BlockRound& round, index_t outputs, index_t output, bool exact, bool weighted) {
  expect(output >= 0 && output < outputs && round.extents.size() == static_cast<std::size_t>(outputs),
         "output is out of range");
  const double none = 0;
  const Scored at{&none, &none, weighted ? &none : nullptr, 0, outputs};
  Gradients gradients(at, exact, false);
  gradients.round(round.what, at, round.extents, round.seed);
  return gradients.rounded(output);
}

void bind_gradients(nb::module_& m) {
  m.def(
      "boost_extents",
      [](Vector y, Matrix scores, std::optional<Vector> weight, bool exact, const nb::dict& d) {
        const Scored at = scored(y, scores, weight);
        const BlockRound round = block_round(d, at.outputs);
        const std::vector<Extent> found =
            enter([&](Monitor&) { return Gradients(at, exact, false).measure(round.what, at); });
        std::vector<double> out;
        for (const Extent& e : found) out.insert(out.end(), {e.g, e.h, e.weight});
        return own(std::move(out), found.size(), 3);
      },
      "y"_a.noconvert(), "scores"_a.noconvert(), "weight"_a.noconvert().none(), "exact"_a, "round"_a);
  m.def(
      "boost_gradients",
      [](Vector y, Matrix scores, std::optional<Vector> weight, bool exact, const nb::dict& d,
         index_t first) -> nb::object {
        const Scored at = scored(y, scores, weight);
        const BlockRound round = block_round(d, at.outputs);
        expect(round.extents.size() == static_cast<std::size_t>(at.outputs) && first >= 0, "extents or first is wrong");
        const auto n = static_cast<std::size_t>(at.rows), k = static_cast<std::size_t>(at.outputs);
        std::vector<std::uint32_t> words(exact ? 0 : n * k);
        std::vector<double> numbers(exact ? 2 * n * k : 0);
        enter([&](Monitor&) {
          Gradients gradients(at, exact, false);
          gradients.measure(round.what, at);
          gradients.round(round.what, at, round.extents, round.seed, first);
          const Rounded r = gradients.rounded(0);  // the other outputs follow
          if (!exact) {
            std::copy(r.words, r.words + n * k, words.begin());
            return;
          }
          std::copy(r.exact_g, r.exact_g + n * k, numbers.begin());
          std::copy(r.exact_h, r.exact_h + n * k, numbers.begin() + static_cast<std::ptrdiff_t>(n * k));
        });
        return exact ? nb::cast(own(std::move(numbers), 2, n * k)) : nb::cast(own(std::move(words), k, n));
      },
      "y"_a.noconvert(), "scores"_a.noconvert(), "weight"_a.noconvert().none(), "exact"_a, "round"_a, "first"_a);
}

template <class T>
using InOut = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Codes = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// Sums, together with the layout they refer to.
struct OwnedSums {
  std::shared_ptr<const Bins> layout;
  Rounding form;
  index_t outputs, output;
  RouteSums sums;
};

void expect_codes(const Bins& layout, const Codes& codes, std::size_t rows) {
  expect(static_cast<index_t>(codes.shape(0)) == layout.groups && codes.shape(1) == rows && codes.shape(2) == kGroup,
         "codes must be groups x rows x 16");
}

// Checks nodes read from a file.
template <class Word>
void expect_nodes(const InOut<Word>& nodes, const Nodes& route) {
  const Word most = last_node(nodes.data(), size_of(nodes));
  expect(route.size() > 0 && static_cast<std::int64_t>(most) < route.size() &&
             static_cast<std::int64_t>(route.size()) <= static_cast<std::int64_t>(NodeWord<Word>::kNumber) + 1,
         "the nodes of the rows do not fit the route");
}

template <class Word>
void bind_nodes(nb::module_& m, nb::class_<OwnedSums>& sums) {
  m.def(
      "boost_start",
      [](InOut<Word> nodes, index_t first, double share, std::uint64_t seed) {
        start_nodes(nodes.data(), size_of(nodes), first, share, seed);
      },
      "nodes"_a.noconvert(), "first"_a, "share"_a, "seed"_a);
  m.def(
      "boost_follow",
      [](const Bins& layout, Codes codes, const nb::dict& route_arrays, InOut<Word> nodes) {
        const Nodes route = route_of(route_arrays, layout.cols);
        expect_codes(layout, codes, nodes.shape(0)), expect_nodes(nodes, route);
        enter([&](Monitor&) { follow_route(layout, codes.data(), size_of(nodes), route, nodes.data()); });
      },
      "layout"_a, "codes"_a.noconvert(), "route"_a, "nodes"_a.noconvert());
  m.def(
      "boost_add",
      [](nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu> scores, InOut<Word> nodes, Vector values) {
        constexpr Word number = NodeWord<Word>::kNumber;
        expect(scores.shape(0) == nodes.shape(0), "scores must fit the nodes");
        for (std::size_t i = 0; i < nodes.shape(0); ++i) {
          const auto node = static_cast<std::size_t>(nodes.data()[i] & number);
          expect(node < values.shape(0), "the values do not fit the nodes");
          scores.data()[i] += values.data()[node];
        }
      },
      "scores"_a.noconvert(), "nodes"_a.noconvert(), "values"_a.noconvert());
  sums.def(
      "add",
      [](OwnedSums& t, Codes codes, const nb::dict& route_arrays, nb::object gradients, std::optional<Vector> counts,
         InOut<Word> nodes) {
        const Bins& layout = *t.layout;
        const Nodes route = route_of(route_arrays, layout.cols);
        const index_t rows = size_of(nodes);
        expect_codes(layout, codes, nodes.shape(0)), expect_nodes(nodes, route);
        Rounded r;
        r.form = t.form;
        std::vector<std::int64_t> count;
        if (t.form == Rounding::exact) {
          const auto numbers = nb::cast<Matrix>(gradients);
          expect(numbers.shape(0) == 2 && static_cast<index_t>(numbers.shape(1)) == rows * t.outputs &&
                     (!counts || size_of(*counts) == rows),
                 "gradients must fit the nodes");
          r.exact_g = numbers.data() + t.output * rows, r.exact_h = r.exact_g + rows * t.outputs;
          if (counts) count.assign(counts->data(), counts->data() + rows), r.count = count.data();
        } else {
          const auto words = nb::cast<In2<std::uint32_t>>(gradients);
          expect(static_cast<index_t>(words.shape(0)) == t.outputs && static_cast<index_t>(words.shape(1)) == rows,
                 "gradients must fit the nodes");
          r.words = words.data() + t.output * rows;
        }
        enter([&](Monitor&) { t.sums.add(codes.data(), rows, r, route, nodes.data()); });
      },
      "codes"_a.noconvert(), "route"_a, "gradients"_a, "counts"_a.noconvert().none(), "nodes"_a.noconvert());
}

void bind_sums(nb::module_& m) {
  nb::class_<OwnedSums> sums(m, "BoostSums");
  sums.def(
          "__init__",
          [](OwnedSums* self, std::shared_ptr<Bins> layout, const nb::dict& d, index_t outputs, index_t output,
             bool exact, bool weighted, In1<std::int32_t> wanted, In1<std::uint8_t> full) {
            const Rounding form = units_of(block_round(d, outputs), outputs, output, exact, weighted).form;
            expect(wanted.shape(0) == full.shape(0) && std::all_of(wanted.data(), wanted.data() + wanted.shape(0),
                                                                   [](std::int32_t t) { return t >= 0; }),
                   "wanted and full do not fit");
            const Bins& bins = *layout;
            new (self)
                OwnedSums{std::move(layout), form, outputs, output, RouteSums(bins, form, copy(wanted), copy(full))};
          },
          "layout"_a, "round"_a, "outputs"_a, "output"_a, "exact"_a, "weighted"_a, "wanted"_a.noconvert(),
          "full"_a.noconvert())
      .def("sums", [](OwnedSums& t) {
        const std::size_t n = t.sums.totals().size(), width = static_cast<std::size_t>(t.sums.node_cells());
        std::vector<std::int64_t> rest, cells = enter([&](Monitor&) { return t.sums.cells(); });
        for (std::size_t k = 0; k < n; ++k) {
          const Fine& fine = t.sums.fine()[k];
          const Cell& total = t.sums.totals()[k];
          rest.insert(rest.end(), {fine.g, fine.h, total.g, total.h, total.c});
        }
        const std::size_t full = width ? cells.size() / width : 0;
        return nb::make_tuple(own(std::move(cells), full, width), own(std::move(rest), n, 5));
      });
  bind_nodes<std::uint16_t>(m, sums);
  bind_nodes<std::uint32_t>(m, sums);
}

// A growth, together with the layout it refers to.
struct OwnedGrowth {
  std::shared_ptr<const Bins> layout;
  BlockGrowth growth;
};

void bind_growth(nb::module_& m) {
  nb::class_<OwnedGrowth>(m, "BlockGrowth")
      .def(
          "__init__",
          [](OwnedGrowth* self, std::shared_ptr<Bins> layout, const nb::dict& options, const nb::dict& d,
             index_t outputs, index_t output, bool exact, bool weighted, double features, double rows) {
            const BlockRound round = block_round(d, outputs);
            const Rounded rounded = units_of(round, outputs, output, exact, weighted);
            const Draw draw{round.seed, round.seed + static_cast<std::uint64_t>(output), round.rows, features};
            GrowOptions grow = grow_options(options, layout->cols);
            const Bins& bins = *layout;
            new (self) OwnedGrowth{std::move(layout), BlockGrowth(bins, std::move(grow), draw, rounded.form,
                                                                  {rounded.g_unit, rounded.h_unit}, rows)};
          },
          "layout"_a, "options"_a, "round"_a, "outputs"_a, "output"_a, "exact"_a, "weighted"_a, "features"_a, "rows"_a)
      .def_prop_ro("done", [](const OwnedGrowth& g) { return g.growth.done(); })
      .def_prop_ro("cells", [](const OwnedGrowth& g) { return g.growth.cells(); })
      .def("wanted",
           [](const OwnedGrowth& g) {
             return nb::make_tuple(route_dict(g.growth.route()), own(std::vector<std::int32_t>(g.growth.wanted())),
                                   own(std::vector<std::uint8_t>(g.growth.full())));
           })
      .def(
          "supply",
          [](OwnedGrowth& g, In2<std::int64_t> cells, In2<std::int64_t> rest) {
            const std::size_t n = g.growth.wanted().size();
            const auto full = std::count(g.growth.full().begin(), g.growth.full().end(), std::uint8_t{1});
            expect(rest.shape(0) == n && rest.shape(1) == 5 && static_cast<std::ptrdiff_t>(cells.shape(0)) == full &&
                       static_cast<index_t>(cells.shape(1)) == g.growth.cells() && !g.growth.done(),
                   "the sums do not fit the nodes that are wanted");
            std::vector<Fine> fine(n);
            std::vector<Cell> totals(n);
            for (std::size_t k = 0; k < n; ++k) {
              const std::int64_t* r = rest.data() + 5 * k;
              fine[k] = {r[0], r[1]}, totals[k] = {r[2], r[3], r[4]};
            }
            enter([&](Monitor&) { g.growth.supply(cells.data(), fine.data(), totals.data()); });
          },
          "cells"_a.noconvert(), "rest"_a.noconvert())
      .def(
          "finish",
          [](OwnedGrowth& g, bool log_odds, double eta) {
            expect(g.growth.done(), "the tree is still growing");
            Nodes tree = enter([&](Monitor&) { return g.growth.finish(log_odds, eta); });
            return nb::make_tuple(to_dict(std::move(tree)), route_dict(g.growth.route()),
                                  own(std::vector<double>(g.growth.values())));
          },
          "log_odds"_a, "eta"_a);
}

}  // namespace

void bind_tree_blocks(nb::module_& m) {
  bind_coding<float>(m);
  bind_coding<double>(m);
  m.def(
      "tree_layout",
      [](Vector low, Vector high, In1<std::int32_t> counts, In1<std::int32_t> bins, In1<std::uint8_t> categorical,
         In1<std::uint8_t> missing) {
        return std::make_shared<Bins>(layout(low, high, counts, bins, categorical, missing));
      },
      "low"_a.noconvert(), "high"_a.noconvert(), "counts"_a.noconvert(), "bins"_a.noconvert(),
      "categorical"_a.noconvert(), "missing"_a.noconvert());
  m.def(
      "tree_bins_of_codes",
      [](const Bins& layout, In2<std::uint8_t> codes) {
        check_codes(layout, codes);
        return std::make_shared<Bins>(
            enter([&](Monitor&) { return with_codes(layout, codes.data(), static_cast<index_t>(codes.shape(1))); }));
      },
      "layout"_a, "codes"_a.noconvert());
  m.def(
      "tree_cells_of_codes",
      [](const Bins& layout, In2<std::uint8_t> codes, bool known_values) {
        check_codes(layout, codes);
        auto cells = std::make_shared<Cells>();
        cells->rows = static_cast<index_t>(codes.shape(1)), cells->cols = layout.cols;
        cells->known_values = known_values, cells->features = layout.features;
        std::vector<double> values(static_cast<std::size_t>(layout.cols) * kBins, 0.0);
        for (index_t j = 0; j < layout.cols; ++j) {
          Feature& f = cells->features[j];
          double* of_code = values.data() + j * kBins;
          if (f.categorical) {
            for (int b = 0; b < f.bins; ++b) of_code[b] = b;
            f.low.clear();
          }
          std::copy(f.low.begin(), f.low.end(), of_code);
          of_code[kMissing] = std::numeric_limits<double>::quiet_NaN();
        }
        cells->table = CodedTable{codes.data(), cells->rows, std::move(values)};
        return cells;
      },
      "layout"_a, "codes"_a.noconvert(), "known_values"_a, nb::keep_alive<0, 2>());
  m.def(
      "tree_groups",
      [](const Bins& layout, In2<std::uint8_t> codes) {
        expect(static_cast<index_t>(codes.shape(0)) == layout.cols, "codes must have one row per column of the layout");
        const std::size_t rows = codes.shape(1), groups = static_cast<std::size_t>(layout.groups);
        auto* bytes = new Unset<std::uint8_t>(
            enter([&](Monitor&) { return codes_by_group(layout, codes.data(), static_cast<index_t>(rows)); }));
        nb::capsule owner(bytes, [](void* p) noexcept { delete static_cast<Unset<std::uint8_t>*>(p); });
        return nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<3>>(bytes->data(), {groups, rows, kGroup}, owner);
      },
      "layout"_a, "codes"_a.noconvert());
  m.def(
      "tree_sample",
      [](index_t rows, index_t sample, std::uint64_t seed) {
        expect(rows >= 0 && rows < (index_t{1} << 32) && sample >= 1, "there are too many rows, or none");
        BinOptions options;
        options.sample = sample, options.seed = seed;
        return own(sample_rows(rows, options));
      },
      "rows"_a, "sample"_a, "seed"_a);
  m.def(
      "row_draws",
      [](std::uint64_t seed, index_t first, index_t rows) {
        expect(first >= 0 && rows >= 0, "first and rows must not be negative");
        const Random random(seed, 0xB10C);
        std::vector<double> out(static_cast<std::size_t>(rows));
        for (index_t i = 0; i < rows; ++i) out[i] = random.uniform_at(first + i);
        return own(std::move(out));
      },
      "seed"_a, "first"_a, "rows"_a);
  bind_gradients(m);
  bind_sums(m);
  bind_growth(m);
}

}  // namespace hinge
