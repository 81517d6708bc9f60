// Networks in float (names ending in 32) and double (64). NumPy owns weights and optimiser state, which are changed in
// place.
#include "network/network.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <numeric>
#include <string>

#include "bind/arrays.hpp"
#include "bind/enter.hpp"
#include "bind/modules.hpp"
#include "core/random.hpp"

namespace hinge {
namespace {

using namespace nb::literals;
using namespace hinge::network;

template <class T>
using InOut1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using InOut2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A net over arrays that Python owns, and its batch buffers.
template <class T>
struct Bound {
  std::vector<InOut2<T>> weights;
  std::vector<InOut1<T>> biases;
  Net<T> net;
  std::unique_ptr<Machine<T>> machine;
  index_t capacity = 0;

  Bound(int activation, std::vector<InOut2<T>> w, std::vector<InOut1<T>> b)
      : weights(std::move(w)), biases(std::move(b)), net{static_cast<Activation>(activation), {}} {
    expect(!weights.empty() && weights.size() == biases.size(), "one bias vector per weight matrix");
    for (std::size_t l = 0; l < weights.size(); ++l) {
      const auto in = static_cast<index_t>(weights[l].shape(0)), out = static_cast<index_t>(weights[l].shape(1));
      expect(in > 0 && out > 0 && static_cast<index_t>(biases[l].shape(0)) == out, "bias and weights must match");
      expect(l == 0 || net.layers.back().out == in, "consecutive weight matrices must match");
      net.layers.push_back({in, out, weights[l].data(), biases[l].data()});
    }
  }

  Machine<T>& ready(index_t rows) {
    if (!machine || capacity < rows) {
      machine = std::make_unique<Machine<T>>(net, rows);
      capacity = rows;
    }
    return *machine;
  }

  void check(const Examples<T>& x, const Criterion<T>* loss) const {
    expect(x.cols() == net.layers.front().in, "X must have one column per input of the network");
    expect(!loss || loss->outputs() == net.layers.back().out, "the loss must have one score per output");
  }
};

// Loss and flat gradient over all of X, in chunks: used by L-BFGS and the gradient checks.
template <class T>
nb::tuple full_gradient(Bound<T>& self, const Examples<T>& x, const Criterion<T>& loss, double dropout,
                        std::uint64_t seed) {
  self.check(x, &loss);
  constexpr index_t kChunk = 512;
  std::vector<T> G(self.net.parameters());
  const double value = enter([&](Monitor& monitor) {
    const index_t n = x.rows();
    auto& machine = self.ready(std::min(n, kChunk));
    std::vector<index_t> rows(n);
    std::iota(rows.begin(), rows.end(), index_t{0});
    double sum = 0;
    for (index_t begin = 0; begin < n; begin += kChunk) {
      monitor.poll();
      const index_t size = std::min(kChunk, n - begin);
      const Dropout mask{dropout, seed, static_cast<std::uint64_t>(begin)};
      sum += machine.passes(x, loss, rows.data() + begin, size, 1.0 / static_cast<double>(n), mask);
      machine.gradient(x, rows.data() + begin, size, begin > 0, G.data());
    }
    return sum / static_cast<double>(n);
  });
  return nb::make_tuple(value, own(std::move(G)));
}

// All results of one forward and backward pass: the loss, then z, delta and the gradients, layer by layer.
template <class T>
nb::tuple trace(Bound<T>& self, const Examples<T>& x, const Criterion<T>& loss) {
  self.check(x, &loss);
  const index_t n = x.rows();
  const auto depth = static_cast<index_t>(self.net.layers.size());
  std::vector<T> G(self.net.parameters());
  std::vector<std::vector<T>> z(depth), delta(depth);
  const double value = enter([&](Monitor&) {
    Machine<T> machine(self.net, n);
    std::vector<index_t> rows(n);
    std::iota(rows.begin(), rows.end(), index_t{0});
    const double sum = machine.passes(x, loss, rows.data(), n, 1.0 / static_cast<double>(n), {});
    machine.gradient(x, rows.data(), n, 0, G.data());
    for (index_t l = 0; l < depth; ++l) {
      const index_t size = n * self.net.layers[l].out;
      z[l].assign(machine.activation(l + 1), machine.activation(l + 1) + size);
      delta[l].assign(machine.delta(l + 1), machine.delta(l + 1) + size);
    }
    return sum / static_cast<double>(n);
  });
  nb::list activations, deltas;
  for (index_t l = 0; l < depth; ++l) {
    activations.append(own(std::move(z[l]), n, self.net.layers[l].out));
    deltas.append(own(std::move(delta[l]), n, self.net.layers[l].out));
  }
  return nb::make_tuple(value, activations, deltas, own(std::move(G)));
}

template <class T, class S, class I>
void bind_sparse_examples(nb::module_& m, const std::string& name) {
  m.def(
      name.c_str(),
      [](In1<S> data, In1<I> indices, In1<I> indptr, index_t rows, index_t cols) {
        return sparse_examples<T, S, I>(data.data(), indices.data(), indptr.data(), rows, cols);
      },
      "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "rows"_a, "cols"_a, nb::keep_alive<0, 1>(),
      nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>());
}

template <class T, class S>
void bind_examples(nb::module_& m, const std::string& bits) {
  m.def(("network_dense" + bits).c_str(),
        [](In2<S> x) {
          const auto rows = static_cast<index_t>(x.shape(0)), cols = static_cast<index_t>(x.shape(1));
          return dense_examples<T, S>(x.data(), rows, cols, cols);
        },
        "x"_a.noconvert(), nb::keep_alive<0, 1>());
  bind_sparse_examples<T, S, std::int32_t>(m, "network_sparse" + bits);
  bind_sparse_examples<T, S, std::int64_t>(m, "network_sparse" + bits);
}

template <class T>
void bind_network(nb::module_& m, const std::string& bits) {
  nb::class_<Examples<T>>(m, ("NetworkExamples" + bits).c_str());
  bind_examples<T, float>(m, bits);
  bind_examples<T, double>(m, bits);

  nb::class_<Criterion<T>>(m, ("NetworkCriterion" + bits).c_str());
  m.def(("network_softmax" + bits).c_str(),
        [](Vector y, Vector c, index_t outputs) { return softmax_criterion<T>(y.data(), c.data(), outputs); },
        "y"_a.noconvert(), "c"_a.noconvert(), "outputs"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>());
  m.def(("network_outputs" + bits).c_str(),
        [](std::shared_ptr<Loss> loss, Matrix y, Vector c) {
          return output_criterion<T>(std::move(loss), y.data(), c.data(), static_cast<index_t>(y.shape(1)));
        },
        "loss"_a, "y"_a.noconvert(), "c"_a.noconvert(), nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>());

  nb::class_<Bound<T>>(m, ("Network" + bits).c_str())
      .def(nb::init<int, std::vector<InOut2<T>>, std::vector<InOut1<T>>>(), "activation"_a, "weights"_a.noconvert(),
           "biases"_a.noconvert())
      .def(
          "scores",
          [](const Bound<T>& self, const Examples<T>& x) {
            self.check(x, nullptr);
            const index_t k = self.net.layers.back().out;
            std::vector<T> out(x.rows() * k);
            enter([&](Monitor&) { scores(self.net, x, out.data()); });
            return own(std::move(out), x.rows(), k);
          },
          "x"_a)
      .def("gradient", &full_gradient<T>, "x"_a, "loss"_a, "dropout"_a = 0.0, "seed"_a = 0)
      .def("trace", &trace<T>, "x"_a, "loss"_a)
      .def(
          "epoch",
          [](Bound<T>& self, const Examples<T>& x, const Criterion<T>& loss, index_t batch, Vector rates,
             const Recipe& recipe, bool shuffle, std::uint64_t seed, std::uint64_t number, std::uint64_t first_count,
             InOut1<T> first, std::optional<InOut1<T>> second) {
            self.check(x, &loss);
            const auto size = static_cast<std::size_t>(self.net.parameters());
            expect(first.shape(0) == size && (!second || second->shape(0) == size), "one moment per parameter");
            expect(second || recipe.method == Method::Sgd, "Adam needs a second moment");
            expect(batch > 0 && static_cast<index_t>(rates.shape(0)) * batch >= x.rows(), "one rate per batch");
            return enter([&](Monitor&) {
              std::vector<index_t> order(x.rows());
              std::iota(order.begin(), order.end(), index_t{0});
              if (shuffle) Random(seed, number).shuffle(order.data(), x.rows());
              return epoch(self.ready(std::min(batch, x.rows())), x, loss, order, batch, rates.data(), recipe, seed,
                           first_count, first.data(), second ? second->data() : nullptr);
            });
          },
          "x"_a, "loss"_a, "batch"_a, "rates"_a.noconvert(), "recipe"_a, "shuffle"_a, "seed"_a, "number"_a,
          "first_count"_a, "first"_a.noconvert(), "second"_a.noconvert() = nb::none());
}

}  // namespace

void bind_networks(nb::module_& m) {
  nb::class_<Recipe>(m, "NetworkRecipe")
      .def(
          "__init__",
          [](Recipe* self, bool adam, double momentum, bool nesterov, double beta2, double epsilon, double l2,
             double decay, double clip, double dropout) {
            new (self)
                Recipe{adam ? Method::Adam : Method::Sgd, momentum, nesterov, beta2, epsilon, l2, decay, clip, dropout};
          },
          "adam"_a, "momentum"_a, "nesterov"_a, "beta2"_a, "epsilon"_a, "l2"_a, "decay"_a, "clip"_a, "dropout"_a);
  bind_network<float>(m, "32");
  bind_network<double>(m, "64");
}

}  // namespace hinge
