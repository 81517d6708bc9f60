// Chain and tree models: token attributes from Python objects, inference, training.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>

#include "bind/arrays.hpp"
#include "bind/enter.hpp"
#include "bind/modules.hpp"
#include "core/pool.hpp"
#include "models/chain_crf.hpp"
#include "models/chain_online.hpp"
#include "models/chain_sgd.hpp"

namespace hinge {
namespace {

using namespace nb::literals;
using Ints = In1<std::int32_t>;
using Longs = In1<index_t>;
using Flags = In1<std::uint8_t>;

// Owns references to the arrays a Tokens view points into.
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
  return data;
}

Layout make_layout(index_t attributes, index_t labels, const std::optional<Longs>& begin,
                   const std::optional<Ints>& label, const Ints& pair, const std::optional<Longs>& cross,
                   const std::optional<Ints>& cross_pair) {
  Layout layout;
  layout.attributes = attributes;
  layout.labels = labels;
  if (begin) layout.begin.assign(begin->data(), begin->data() + begin->shape(0));
  if (label) layout.label.assign(label->data(), label->data() + label->shape(0));
  layout.pair.assign(pair.data(), pair.data() + pair.shape(0));
  if (cross) layout.cross.assign(cross->data(), cross->data() + cross->shape(0));
  if (cross_pair) layout.cross_pair.assign(cross_pair->data(), cross_pair->data() + cross_pair->shape(0));
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
  const Tokens& x = data.view;
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
  const Tokens& x = data.view;
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
  const Tokens& x = data.view;
  return own(enter([&](Monitor&) {
    std::vector<double> out(x.sequences);
    each_sequence(x, p,
                  [&](index_t i, double* scores, SequenceReader& reader) { out[i] = reader.log_partition(scores); });
    return out;
  }));
}

// Scores of given labels.
auto score(const Potentials& p, const ChainData& data, Ints y) {
  const Tokens& x = data.view;
  return own(enter([&](Monitor&) {
    std::vector<double> out(x.sequences);
    each_sequence(x, p, [&](index_t i, double* scores, SequenceReader& reader) {
      out[i] = reader.value(scores, y.data() + x.start[i]);
    });
    return out;
  }));
}

// For each sequence (labels, scores): the `count` best labellings one after the other, and their scores.
nb::list top(const Potentials& p, const ChainData& data, index_t count) {
  const Tokens& x = data.view;
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

// Attributes of tokens as CSR arrays, by a dictionary name -> column. A token is a dictionary {name: value} or a list
// of names; a string value v under name n is the attribute "n=v". New names are given columns if `grow`, and are
// skipped if not.
class Encoder {
 public:
  Encoder(nb::dict index, bool grow) : index_(index), grow_(grow) {}

  void token(nb::handle token) {
    if (PyDict_Check(token.ptr())) {
      PyObject *key, *value;
      Py_ssize_t at = 0;
      while (PyDict_Next(token.ptr(), &at, &key, &value)) item(key, value);
    } else if (PyUnicode_Check(token.ptr())) {
      throw nb::type_error(
          "a token is a string; expected a dictionary or a list of attribute names per token. Pass "
          "features=TextFeatures() to make attributes from words");
    } else {
      nb::object fast = nb::steal(PySequence_Fast(
          token.ptr(), "X: every token must be a dictionary {name: value} or a list of attribute names"));
      if (!fast.is_valid()) throw nb::python_error();
      PyObject** items = PySequence_Fast_ITEMS(fast.ptr());
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(fast.ptr()); ++k) add(items[k], 1.0);
    }
    indptr.push_back(static_cast<index_t>(attribute.size()));
  }

  std::vector<index_t> indptr{0};
  std::vector<std::int32_t> attribute;
  std::vector<double> value;
  bool ones = true;

 private:
  void item(PyObject* name, PyObject* content) {
    if (PyUnicode_Check(content)) {
      nb::object joined = nb::steal(PyUnicode_FromFormat("%U=%U", name, content));
      if (!joined.is_valid()) throw nb::python_error();
      add(joined.ptr(), 1.0);
    } else {
      const double number = PyFloat_AsDouble(content);
      if (number == -1.0 && PyErr_Occurred()) throw nb::python_error();
      if (!std::isfinite(number)) throw nb::value_error("X: an attribute has a value that is NaN or infinite");
      if (number != 0) add(name, number);
    }
  }

  void add(PyObject* name, double number) {
    if (!PyUnicode_Check(name)) throw nb::type_error("X: attribute names must be strings");
    PyObject* found = PyDict_GetItemWithError(index_.ptr(), name);
    if (!found) {
      if (PyErr_Occurred()) throw nb::python_error();
      if (!grow_) return;
      nb::object column = nb::steal(PyLong_FromSsize_t(PyDict_Size(index_.ptr())));
      if (PyDict_SetItem(index_.ptr(), name, column.ptr()) != 0) throw nb::python_error();
      attribute.push_back(static_cast<std::int32_t>(PyDict_Size(index_.ptr()) - 1));
    } else {
      attribute.push_back(static_cast<std::int32_t>(PyLong_AsLong(found)));
    }
    value.push_back(number);
    ones = ones && number == 1.0;
  }

  nb::dict index_;
  bool grow_;
};

nb::tuple encode(nb::handle sequences, nb::dict index, bool grow) {
  Encoder encoder(index, grow);
  std::vector<index_t> start{0};
  const auto fast = [](nb::handle object, const char* message) {
    nb::object result = nb::steal(PySequence_Fast(object.ptr(), message));
    if (!result.is_valid()) throw nb::python_error();
    return result;
  };
  nb::object outer = fast(sequences, "X must be a list of sequences");
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(outer.ptr()); ++i) {
    nb::object tokens = fast(PySequence_Fast_GET_ITEM(outer.ptr(), i), "X: every sequence must be a list of tokens");
    for (Py_ssize_t t = 0; t < PySequence_Fast_GET_SIZE(tokens.ptr()); ++t)
      encoder.token(PySequence_Fast_GET_ITEM(tokens.ptr(), t));
    start.push_back(static_cast<index_t>(encoder.indptr.size()) - 1);
  }
  nb::object values = encoder.ones ? nb::none() : nb::cast(own(std::move(encoder.value)));
  return nb::make_tuple(own(std::move(start)), own(std::move(encoder.indptr)), own(std::move(encoder.attribute)),
                        values);
}

// The held-out sequences a trainer is given; null where there are none.
struct Held {
  HeldOut data;
  std::optional<Ints> y;
  const HeldOut* get() const { return y ? &data : nullptr; }
};

Held held_out(const ChainData* data, std::optional<Ints> y, int patience) {
  return data && y ? Held{{data->view, y->data(), patience}, y} : Held{};
}

nb::tuple pack(CrfFit&& fit) {
  return nb::make_tuple(own(std::move(fit.w)), fit.objective, fit.gap, fit.iterations, static_cast<int>(fit.status),
                        own(std::move(fit.validation)));
}

nb::tuple fit(const ChainData& data, Ints y, Vector weight, const Layout& layout, const Potentials& constraints,
              double l1, double l2, Vector start, int memory, int max_iter, double tol, const ChainData* held,
              std::optional<Ints> held_y, int patience, nb::object report) {
  const Held watch = held_out(held, held_y, patience);
  return pack(enter(
      [&](Monitor& monitor) {
        ChainCrf crf(data.view, y.data(), weight.data(), layout, constraints);
        LbfgsOptions options;
        options.memory = memory;
        options.max_iterations = max_iter;
        options.tolerance = tol;
        return fit_crf(crf, std::vector<double>(start.data(), start.data() + start.shape(0)), l1, l2, options,
                       watch.get(), monitor);
      },
      make_report(report)));
}

nb::tuple fit_sgd(const ChainData& data, Ints y, Vector weight, const Layout& layout, const Potentials& constraints,
                  double l2, double eta0, index_t batch, bool average, int epochs, double tol, std::uint64_t seed,
                  const ChainData* held, std::optional<Ints> held_y, int patience, nb::object report) {
  const Held watch = held_out(held, held_y, patience);
  return pack(enter(
      [&](Monitor& monitor) {
        return fit_crf_sgd({data.view, y.data(), weight.data(), layout, constraints}, l2,
                           {eta0, batch, average, epochs, tol, seed}, watch.get(), monitor);
      },
      make_report(report)));
}

nb::tuple loss(const ChainData& data, Ints y, Vector weight, const Layout& layout, const Potentials& constraints,
               Vector w) {
  std::vector<double> g(layout.size());
  const double value = enter([&](Monitor&) {
    ChainCrf crf(data.view, y.data(), weight.data(), layout, constraints);
    return crf.loss(w.data(), g.data());
  });
  return nb::make_tuple(value, own(std::move(g)));
}

nb::tuple pack(OnlineFit&& fit, const Potentials& p) {
  return nb::make_tuple(own(std::move(fit.unary), p.attributes, p.labels), own(std::move(fit.pair), p.labels, p.labels),
                        own(std::move(fit.cross)), fit.epochs, fit.done, own(std::move(fit.mistakes)), fit.primal,
                        fit.gap, fit.early, own(std::move(fit.validation)));
}

nb::tuple perceptron(const ChainData& data, Ints y, const Potentials& constraints, int epochs, bool average,
                     std::uint64_t seed, bool shuffle, const ChainData* held, std::optional<Ints> held_y, int patience,
                     nb::object report) {
  const Held watch = held_out(held, held_y, patience);
  return pack(enter(
                  [&](Monitor& monitor) {
                    return chain_perceptron({data.view, y.data()}, constraints, epochs, average, seed, shuffle,
                                            watch.get(), monitor);
                  },
                  make_report(report)),
              constraints);
}

nb::tuple svm(const ChainData& data, Ints y, Vector weight, const Potentials& constraints, Matrix cost, double lambda,
              int epochs, double tol, std::uint64_t seed, const ChainData* held, std::optional<Ints> held_y,
              int patience, nb::object report) {
  const Held watch = held_out(held, held_y, patience);
  return pack(enter(
                  [&](Monitor& monitor) {
                    return chain_svm({data.view, y.data()}, weight.data(), constraints, cost.data(), lambda, epochs,
                                     tol, seed, watch.get(), monitor);
                  },
                  make_report(report)),
              constraints);
}

}  // namespace

void bind_structured(nb::module_& m) {
  m.def("chain_encode", &encode, "sequences"_a, "index"_a, "grow"_a);

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
             Ints pair, std::optional<Longs> cross, std::optional<Ints> cross_pair) {
            new (self) Layout(make_layout(attributes, labels, begin, label, pair, cross, cross_pair));
          },
          "attributes"_a, "labels"_a, "begin"_a.noconvert().none(), "label"_a.noconvert().none(), "pair"_a.noconvert(),
          "cross"_a.noconvert() = nb::none(), "cross_pair"_a.noconvert() = nb::none())
      .def_prop_ro("size", &Layout::size);

  nb::class_<Potentials>(m, "ChainModel")
      .def(nb::init<index_t, index_t>(), "attributes"_a, "labels"_a)
      .def(
          "forbid",
          [](Potentials& p, std::optional<Flags> pairs, std::optional<Flags> first, std::optional<Flags> last) {
            p.forbid(pairs ? pairs->data() : nullptr, first ? first->data() : nullptr, last ? last->data() : nullptr);
          },
          "pairs"_a.noconvert().none(), "first"_a.noconvert().none(), "last"_a.noconvert().none())
      .def(
          "load", [](Potentials& p, const Layout& layout, Vector w) { p.load(layout, w.data()); }, "layout"_a,
          "w"_a.noconvert())
      .def("decode", &decode, "data"_a, "y"_a.noconvert() = nb::none(), "cost"_a.noconvert() = nb::none())
      .def("marginals", &marginals, "data"_a)
      .def("log_partition", &log_partition, "data"_a)
      .def("score", &score, "data"_a, "y"_a.noconvert())
      .def("top", &top, "data"_a, "count"_a);

  m.def("crf_fit", &fit, "data"_a, "y"_a.noconvert(), "weight"_a.noconvert(), "layout"_a, "constraints"_a, "l1"_a,
        "l2"_a, "start"_a.noconvert(), "memory"_a, "max_iter"_a, "tol"_a, "held"_a = nb::none(),
        "held_y"_a.noconvert() = nb::none(), "patience"_a = 0, "report"_a = nb::none());
  m.def("crf_sgd", &fit_sgd, "data"_a, "y"_a.noconvert(), "weight"_a.noconvert(), "layout"_a, "constraints"_a, "l2"_a,
        "eta0"_a, "batch"_a, "average"_a, "epochs"_a, "tol"_a, "seed"_a, "held"_a = nb::none(),
        "held_y"_a.noconvert() = nb::none(), "patience"_a = 0, "report"_a = nb::none());
  m.def("crf_loss", &loss, "data"_a, "y"_a.noconvert(), "weight"_a.noconvert(), "layout"_a, "constraints"_a,
        "w"_a.noconvert());
  m.def("chain_perceptron", &perceptron, "data"_a, "y"_a.noconvert(), "constraints"_a, "epochs"_a, "average"_a,
        "seed"_a, "shuffle"_a, "held"_a = nb::none(), "held_y"_a.noconvert() = nb::none(), "patience"_a = 0,
        "report"_a = nb::none());
  m.def("chain_svm", &svm, "data"_a, "y"_a.noconvert(), "weight"_a.noconvert(), "constraints"_a, "cost"_a.noconvert(),
        "l2"_a, "epochs"_a, "tol"_a, "seed"_a, "held"_a = nb::none(), "held_y"_a.noconvert() = nb::none(),
        "patience"_a = 0, "report"_a = nb::none());
}

}  // namespace hinge
