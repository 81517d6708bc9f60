// Chain and tree models: token attributes from Python objects, inference, training.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>

#include "bind/arrays.hpp"
#include "bind/attributes.hpp"
#include "bind/enter.hpp"
#include "bind/modules.hpp"
#include "core/pool.hpp"
#include "sequence/chain_check.hpp"
#include "sequence/chain_crf.hpp"
#include "sequence/chain_online.hpp"
#include "sequence/chain_sgd.hpp"

namespace hinge {
namespace {

using namespace nb::literals;
using Ints = In1<std::int32_t>;
using Longs = In1<index_t>;
using Flags = In1<std::uint8_t>;

// Owns references to the arrays that a Tokens view points into.
struct ChainData {
  Longs start, indptr;
  Ints attribute;
  std::optional<Vector> value;
  std::optional<Ints> parent;
  Tokens view;
};

ChainData make_data(Longs start, Longs indptr, Ints attribute, std::optional<Vector> value, std::optional<Ints> parent,
                    index_t attributes) {
  ChainData data{start, indptr, attribute, value, parent, {}};
  data.view.sequences = static_cast<index_t>(start.shape(0)) - 1;
  data.view.tokens = static_cast<index_t>(indptr.shape(0)) - 1;
  data.view.attributes = attributes;
  data.view.start = start.data();
  data.view.indptr = indptr.data();
  data.view.attribute = attribute.data();
  data.view.value = value ? value->data() : nullptr;
  data.view.parent = parent ? parent->data() : nullptr;
  const auto size = [](const auto& a) { return static_cast<index_t>(a.shape(0)); };
  check_tokens(data.view, size(start), size(indptr), size(attribute), value ? size(*value) : -1,
               parent ? size(*parent) : -1);
  return data;
}

// Input sequences of a model.
const Tokens& readable(const Potentials& p, const ChainData& data) {
  expect(data.view.attributes == p.attributes, "X must have as many attributes as the model knows");
  expect(!p.second() || !data.view.parent, "label triples need chains, not trees");
  return data.view;
}

// Labelled sequences for training, and for validation, as Python passes them (models/structured/base.py).
struct Training {
  const ChainData& data;
  Ints y;
  Vector weight;
  const ChainData* held;
  std::optional<Ints> held_y;
  HeldOut held_out;

  // Null if there are no held-out sequences.
  const HeldOut* watch() const { return held_y ? &held_out : nullptr; }

  void check(const Potentials& p) const {
    check_labels(readable(p, data), y.data(), size_of(y), p.labels);
    if (held_y) check_labels(readable(p, *held), held_y->data(), size_of(*held_y), p.labels);
  }
};

Training make_training(const ChainData& data, Ints y, Vector weight, const ChainData* held, std::optional<Ints> held_y,
                       int patience) {
  expect(size_of(weight) == data.view.sequences, "sample_weight must have one entry per sequence");
  expect((held != nullptr) == held_y.has_value(), "held-out sequences need their labels");
  const HeldOut watched = held ? HeldOut{held->view, held_y->data(), patience} : HeldOut{{}, nullptr, 0};
  return {data, y, weight, held, held_y, watched};
}

void check_layout(const Training& training, const Layout& layout, const Potentials& p) {
  training.check(p);
  expect(layout.attributes == p.attributes && layout.labels == p.labels, "the weights do not fit the model");
  expect(layout.triple.empty() || !training.data.view.parent, "label triples need chains, not trees");
}

Layout make_layout(index_t attributes, index_t labels, const std::optional<Longs>& begin,
                   const std::optional<Ints>& label, const Ints& pair, const std::optional<Longs>& cross,
                   const std::optional<Ints>& cross_pair, const std::optional<Ints>& triple) {
  Layout layout;
  layout.attributes = attributes;
  layout.labels = labels;
  if (begin) layout.begin.assign(begin->data(), begin->data() + begin->shape(0));
  if (label) layout.label.assign(label->data(), label->data() + label->shape(0));
  layout.pair.assign(pair.data(), pair.data() + pair.shape(0));
  if (cross) layout.cross.assign(cross->data(), cross->data() + cross->shape(0));
  if (cross_pair) layout.cross_pair.assign(cross_pair->data(), cross_pair->data() + cross_pair->shape(0));
  if (triple) layout.triple.assign(triple->data(), triple->data() + triple->shape(0));
  check_layout(layout);
  return layout;
}

// Runs body(sequence, scores, reader) for every sequence, in parallel.
template <class F>
void each_sequence(const Tokens& x, const Potentials& p, F&& body) {
  const auto parts = sequence_parts(x);
  parallel_for(static_cast<index_t>(parts.size()) - 1, [&](index_t part) {
    SequenceReader reader(x, p);
    for (index_t i = parts[part]; i < parts[part + 1]; ++i)
      if (x.length(i) > 0) body(i, reader.read(i), reader);
  });
}

// Adds cost[y_t, j] to the scores of every token.
void augment(const Potentials& p, index_t length, const std::int32_t* y, const double* cost, double* scores) {
  for (index_t t = 0; t < length; ++t)
    for (index_t j = 0; j < p.labels; ++j) scores[t * p.width + j] += cost[y[t] * p.labels + j];
}

auto decode(const Potentials& p, const ChainData& data, std::optional<Ints> y, std::optional<Matrix> cost) {
  const Tokens& x = readable(p, data);
  if (cost) {
    expect(y.has_value(), "cost needs the labels y");
    check_labels(x, y->data(), size_of(*y), p.labels);
    expect(size_of(*cost) == p.labels && static_cast<index_t>(cost->shape(1)) == p.labels,
           "cost must be a matrix of labels by labels");
  }
  auto result = enter([&](Monitor&) {
    std::pair<std::vector<std::int32_t>, std::vector<double>> out(x.tokens, x.sequences);
    each_sequence(x, p, [&](index_t i, double* scores, SequenceReader& reader) {
      if (cost) augment(p, reader.length(), y->data() + x.start[i], cost->data(), scores);
      out.second[i] = reader.best(scores, out.first.data() + x.start[i]);
    });
    return out;
  });
  return nb::make_tuple(own(std::move(result.first)), own(std::move(result.second)));
}

auto marginals(const Potentials& p, const ChainData& data) {
  const Tokens& x = readable(p, data);
  auto result = enter([&](Monitor&) {
    std::pair<std::vector<double>, std::vector<double>> out(x.tokens * p.labels, x.sequences);
    each_sequence(x, p, [&](index_t i, double* scores, SequenceReader& reader) {
      out.second[i] = reader.posterior(scores, 1.0, nullptr);
      for (index_t t = 0; t < reader.length(); ++t)
        std::copy(scores + t * p.width, scores + t * p.width + p.labels,
                  out.first.data() + (x.start[i] + t) * p.labels);
    });
    return out;
  });
  return nb::make_tuple(own(std::move(result.first), x.tokens, p.labels), own(std::move(result.second)));
}

auto log_partition(const Potentials& p, const ChainData& data) {
  const Tokens& x = readable(p, data);
  return own(enter([&](Monitor&) {
    std::vector<double> out(x.sequences);
    each_sequence(x, p,
                  [&](index_t i, double* scores, SequenceReader& reader) { out[i] = reader.log_partition(scores); });
    return out;
  }));
}

// Scores of given labels.
auto score(const Potentials& p, const ChainData& data, Ints y) {
  const Tokens& x = readable(p, data);
  check_labels(x, y.data(), size_of(y), p.labels);
  return own(enter([&](Monitor&) {
    std::vector<double> out(x.sequences);
    each_sequence(x, p, [&](index_t i, double* scores, SequenceReader& reader) {
      out[i] = reader.value(scores, y.data() + x.start[i]);
    });
    return out;
  }));
}

// For each sequence (labels, scores): the `count` best labellings, concatenated, and their scores.
nb::list top(const Potentials& p, const ChainData& data, index_t count) {
  const Tokens& x = readable(p, data);
  struct Best {
    std::vector<std::int32_t> labels;
    std::vector<double> value;
  };
  auto result = enter([&](Monitor&) {
    std::vector<Best> out(x.sequences);
    each_sequence(x, p, [&](index_t i, double* scores, SequenceReader& reader) {
      const index_t length = reader.length();
      Best best{std::vector<std::int32_t>(count * length), std::vector<double>(count)};
      const index_t found = reader.top(scores, count, best.labels.data(), best.value.data());
      best.labels.resize(found * length);
      best.value.resize(found);
      out[i] = std::move(best);
    });
    return out;
  });
  nb::list list;
  for (index_t i = 0; i < x.sequences; ++i) {
    const auto found = result[i].value.size();
    list.append(nb::make_tuple(own(std::move(result[i].labels), found, found ? x.length(i) : 0),
                               own(std::move(result[i].value))));
  }
  return list;
}

nb::tuple pack(CrfFit&& fit) {
  return nb::make_tuple(own(std::move(fit.w)), fit.iterations, static_cast<int>(fit.status),
                        own(std::move(fit.validation)));
}

nb::tuple fit(const Training& training, const Layout& layout, const Potentials& constraints, double l1, double l2,
              Vector start, int memory, int max_iter, double tol, nb::object report) {
  check_layout(training, layout, constraints);
  expect(size_of(start) == layout.size(), "the first weights do not fit the model");
  return pack(enter(
      [&](Monitor& monitor) {
        ChainCrf crf(training.data.view, training.y.data(), training.weight.data(), layout, constraints);
        LbfgsOptions options;
        options.memory = memory;
        options.max_iterations = max_iter;
        options.tolerance = tol;
        return fit_crf(crf, std::vector<double>(start.data(), start.data() + start.shape(0)), l1, l2, options,
                       training.watch(), monitor);
      },
      make_report(report)));
}

nb::tuple fit_sgd(const Training& training, const Layout& layout, const Potentials& constraints, double l2, double eta0,
                  index_t batch, bool average, int epochs, double tol, std::uint64_t seed, nb::object report) {
  check_layout(training, layout, constraints);
  return pack(enter(
      [&](Monitor& monitor) {
        return fit_crf_sgd({training.data.view, training.y.data(), training.weight.data(), layout, constraints}, l2,
                           {eta0, batch, average, epochs, tol, seed}, training.watch(), monitor);
      },
      make_report(report)));
}

nb::tuple loss(const ChainData& data, Ints y, Vector weight, const Layout& layout, const Potentials& constraints,
               Vector w) {
  check_layout(make_training(data, y, weight, nullptr, {}, 0), layout, constraints);
  expect(size_of(w) == layout.size(), "w does not fit the model");
  std::vector<double> g(layout.size());
  const double value = enter([&](Monitor&) {
    ChainCrf crf(data.view, y.data(), weight.data(), layout, constraints);
    return crf.loss(w.data(), g.data());
  });
  return nb::make_tuple(value, own(std::move(g)));
}

nb::tuple pack(OnlineFit&& fit, const Potentials& p) {
  return nb::make_tuple(own(std::move(fit.unary), p.attributes, p.labels), own(std::move(fit.pair), p.labels, p.labels),
                        own(std::move(fit.cross)), own(std::move(fit.triple)), fit.epochs, fit.done,
                        own(std::move(fit.mistakes)), fit.primal, fit.gap, fit.early, own(std::move(fit.validation)));
}

nb::tuple perceptron(const Training& training, const Potentials& constraints, int epochs, bool average,
                     std::uint64_t seed, bool shuffle, nb::object report) {
  training.check(constraints);
  return pack(enter(
                  [&](Monitor& monitor) {
                    return chain_perceptron({training.data.view, training.y.data()}, constraints, epochs, average, seed,
                                            shuffle, training.watch(), monitor);
                  },
                  make_report(report)),
              constraints);
}

nb::tuple svm(const Training& training, const Potentials& constraints, Matrix cost, double lambda, int epochs,
              double tol, std::uint64_t seed, nb::object report) {
  training.check(constraints);
  expect(size_of(cost) == constraints.labels && static_cast<index_t>(cost.shape(1)) == constraints.labels,
         "cost must be a matrix of labels by labels");
  return pack(enter(
                  [&](Monitor& monitor) {
                    return chain_svm({training.data.view, training.y.data()}, training.weight.data(), constraints,
                                     cost.data(), lambda, epochs, tol, seed, training.watch(), monitor);
                  },
                  make_report(report)),
              constraints);
}

}  // namespace

void bind_structured(nb::module_& m) {
  bind_attributes(m);

  nb::class_<ChainData>(m, "ChainData")
      .def(
          "__init__",
          [](ChainData* self, Longs start, Longs indptr, Ints attribute, std::optional<Vector> value,
             std::optional<Ints> parent, index_t attributes) {
            new (self) ChainData(make_data(start, indptr, attribute, value, parent, attributes));
          },
          "start"_a.noconvert(), "indptr"_a.noconvert(), "attribute"_a.noconvert(), "value"_a.noconvert().none(),
          "parent"_a.noconvert().none(), "attributes"_a);

  nb::class_<Layout>(m, "ChainLayout")
      .def(
          "__init__",
          [](Layout* self, index_t attributes, index_t labels, std::optional<Longs> begin, std::optional<Ints> label,
             Ints pair, std::optional<Longs> cross, std::optional<Ints> cross_pair, std::optional<Ints> triple) {
            new (self) Layout(make_layout(attributes, labels, begin, label, pair, cross, cross_pair, triple));
          },
          "attributes"_a, "labels"_a, "begin"_a.noconvert().none(), "label"_a.noconvert().none(), "pair"_a.noconvert(),
          "cross"_a.noconvert() = nb::none(), "cross_pair"_a.noconvert() = nb::none(),
          "triple"_a.noconvert() = nb::none())
      .def_prop_ro("size", &Layout::size);

  nb::class_<Potentials>(m, "ChainModel")
      .def(nb::init<index_t, index_t>(), "attributes"_a, "labels"_a)
      .def(
          "forbid",
          [](Potentials& p, std::optional<Flags> pairs, std::optional<Flags> first, std::optional<Flags> last) {
            expect(!pairs || size_of(*pairs) == p.labels * p.labels, "forbidden pairs must be labels by labels");
            expect((!first || size_of(*first) == p.labels) && (!last || size_of(*last) == p.labels),
                   "forbidden first and last labels must have one entry per label");
            p.forbid(pairs ? pairs->data() : nullptr, first ? first->data() : nullptr, last ? last->data() : nullptr);
          },
          "pairs"_a.noconvert().none(), "first"_a.noconvert().none(), "last"_a.noconvert().none())
      .def(
          "load",
          [](Potentials& p, const Layout& layout, Vector w) {
            expect(layout.attributes == p.attributes && layout.labels == p.labels && size_of(w) == layout.size(),
                   "the weights do not fit the model");
            p.load(layout, w.data());
          },
          "layout"_a, "w"_a.noconvert())
      .def("decode", &decode, "data"_a, "y"_a.noconvert() = nb::none(), "cost"_a.noconvert() = nb::none())
      .def("marginals", &marginals, "data"_a)
      .def("log_partition", &log_partition, "data"_a)
      .def("score", &score, "data"_a, "y"_a.noconvert())
      .def("top", &top, "data"_a, "count"_a);

  nb::class_<Training>(m, "ChainTraining")
      .def(
          "__init__",
          [](Training* self, const ChainData& data, Ints y, Vector weight, const ChainData* held,
             std::optional<Ints> held_y,
             int patience) { new (self) Training(make_training(data, y, weight, held, held_y, patience)); },
          "data"_a, "y"_a.noconvert(), "weight"_a.noconvert(), "held"_a.none() = nb::none(),
          "held_y"_a.noconvert().none() = nb::none(), "patience"_a = 0, nb::keep_alive<1, 2>(), nb::keep_alive<1, 5>());

  m.def("crf_fit", &fit, "training"_a, "layout"_a, "constraints"_a, "l1"_a, "l2"_a, "start"_a.noconvert(), "memory"_a,
        "max_iter"_a, "tol"_a, "report"_a = nb::none());
  m.def("crf_sgd", &fit_sgd, "training"_a, "layout"_a, "constraints"_a, "l2"_a, "eta0"_a, "batch"_a, "average"_a,
        "epochs"_a, "tol"_a, "seed"_a, "report"_a = nb::none());
  m.def("crf_loss", &loss, "data"_a, "y"_a.noconvert(), "weight"_a.noconvert(), "layout"_a, "constraints"_a,
        "w"_a.noconvert());
  m.def("chain_perceptron", &perceptron, "training"_a, "constraints"_a, "epochs"_a, "average"_a, "seed"_a, "shuffle"_a,
        "report"_a = nb::none());
  m.def("chain_svm", &svm, "training"_a, "constraints"_a, "cost"_a.noconvert(), "l2"_a, "epochs"_a, "tol"_a, "seed"_a,
        "report"_a = nb::none());
}

}  // namespace hinge
