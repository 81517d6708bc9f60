// Solvers of linear problems: one function per solver.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include "bind/arrays.hpp"
#include "bind/enter.hpp"
#include "bind/modules.hpp"
#include "solve/newton.hpp"
#include "solve/sgd.hpp"

namespace hinge {
namespace {

using namespace nb::literals;

// The arguments that describe a linear problem, as Python passes them (solve/native.py). Shapes are checked there.
struct Arguments {
  const Design& X;
  Vector y, c;
  std::optional<Vector> offset;
  const Loss& loss;
  bool intercept;
  Vector l1, l2, lower, upper;

  LinearProblem problem() const {
    return {X,
            y.data(),
            c.data(),
            offset ? offset->data() : nullptr,
            loss,
            intercept,
            {l1.data(), l2.data(), lower.data(), upper.data()}};
  }
};

nb::object to_python(LinearSolution&& s) {
  nb::object dual = s.dual.empty() ? nb::object(nb::none()) : nb::cast(own(std::move(s.dual)));
  return nb::make_tuple(own(std::move(s.w)), s.b, static_cast<int>(s.outcome), s.iterations, dual);
}

}  // namespace

void bind_linear(nb::module_& m) {
  nb::class_<Arguments>(m, "LinearProblem")
      .def(
          "__init__",
          [](Arguments* self, const Design& X, Vector y, Vector c, std::optional<Vector> offset, const Loss& loss,
             bool intercept, Vector l1, Vector l2, Vector lower,
             Vector upper) { new (self) Arguments{X, y, c, offset, loss, intercept, l1, l2, lower, upper}; },
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 6>());

  m.def(
      "newton",
      [](const Arguments& a, Vector w, double b, double tol, int max_iter, nb::object report) {
        return to_python(enter(
            [&](Monitor& monitor) {
              return newton(a.problem(), {w.data(), w.data() + w.shape(0)}, b, {tol, max_iter}, monitor);
            },
            make_report(report)));
      },
      "problem"_a, "w"_a.noconvert(), "b"_a, "tol"_a, "max_iter"_a, "report"_a.none());

  // One epoch in place: changes w (and mean); returns the biases, the number of steps so far and the mean loss.
  using Inout = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  m.def(
      "sgd_epoch",
      [](const Arguments& a, Inout w, Inout mean, double b, double mean_b, index_t steps, double l2, index_t batch,
         double eta0, double decay, double power, double bias_rate, bool average, bool shuffle, std::uint64_t seed,
         index_t epoch) {
        SgdState state{w.data(), mean.data(), b, mean_b, steps};
        const SgdOptions options{batch, eta0, decay, power, l2, bias_rate, average, shuffle, seed, epoch};
        const double loss =
            enter([&](Monitor& monitor) { return sgd_epoch(a.problem(), options, state, monitor); });
        return nb::make_tuple(state.b, state.mean_b, state.steps, loss);
      },
      "problem"_a, "w"_a.noconvert(), "mean"_a.noconvert(), "b"_a, "mean_b"_a, "steps"_a, "l2"_a, "batch"_a, "eta0"_a,
      "decay"_a, "power"_a, "bias_rate"_a, "average"_a, "shuffle"_a, "seed"_a, "epoch"_a);
}

}  // namespace hinge
