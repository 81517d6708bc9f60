// Solvers of linear problems: one function per solver.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include "bind/arrays.hpp"
#include "bind/enter.hpp"
#include "bind/modules.hpp"
#include "solve/newton.hpp"

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
}

}  // namespace hinge
