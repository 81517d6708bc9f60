// Solvers of linear problems: one function per solver.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include "bind/arrays.hpp"
#include "bind/enter.hpp"
#include "bind/modules.hpp"
#include "solve/newton.hpp"
#include "solve/proximal_newton.hpp"

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

  m.def(
      "proximal_newton",
      [](const Arguments& a, Vector w, double b, bool constant_curvature, double tol, int max_iter, nb::object report) {
        return to_python(enter(
            [&](Monitor& monitor) {
              const LinearProblem problem = a.problem();
              ProximalNewton solver(problem, constant_curvature, {w.data(), w.data() + w.shape(0)}, b);
              return solver.solve(problem.penalty, tol, max_iter, monitor);
            },
            make_report(report)));
      },
      "problem"_a, "w"_a.noconvert(), "b"_a, "constant_curvature"_a, "tol"_a, "max_iter"_a, "report"_a.none());

  // The penalty times each of `strengths`, one after the other, each from the solution before it.
  m.def(
      "penalty_path",
      [](const Arguments& a, Vector w, double b, bool constant_curvature, Vector strengths, double tol, int max_iter) {
        const index_t d = a.X.cols(), count = static_cast<index_t>(strengths.shape(0));
        std::vector<double> weights(count * d), biases(count);
        std::vector<std::int64_t> iterations(count);
        enter([&](Monitor& monitor) {
          const LinearProblem problem = a.problem();
          ProximalNewton solver(problem, constant_curvature, {w.data(), w.data() + w.shape(0)}, b);
          std::vector<double> l1(d), l2(d);
          for (index_t k = 0; k < count; ++k) {
            for (index_t j = 0; j < d; ++j) {
              l1[j] = strengths.data()[k] * problem.penalty.l1[j];
              l2[j] = strengths.data()[k] * problem.penalty.l2[j];
            }
            const LinearSolution s =
                solver.solve({l1.data(), l2.data(), problem.penalty.lower, problem.penalty.upper}, tol, max_iter, monitor);
            std::copy(s.w.begin(), s.w.end(), weights.begin() + k * d);
            biases[k] = s.b;
            iterations[k] = s.iterations;
          }
          return 0;
        });
        return nb::make_tuple(own(std::move(weights), count, d), own(std::move(biases)), own(std::move(iterations)));
      },
      "problem"_a, "w"_a.noconvert(), "b"_a, "constant_curvature"_a, "strengths"_a.noconvert(), "tol"_a, "max_iter"_a);
}

}  // namespace hinge
