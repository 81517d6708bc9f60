// Kernels and the dual solver of support vector machines.
#include "problem/kernels.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

#include "bind/arrays.hpp"
#include "bind/enter.hpp"
#include "bind/modules.hpp"
#include "core/aligned.hpp"
#include "core/finite.hpp"
#include "problem/strings.hpp"
#include "solvers/decomposition.hpp"
#include "solvers/decomposition_many.hpp"

namespace hinge {
namespace {

using namespace nb::literals;

using Code = std::vector<std::array<double, 4>>;  // operator, three parameters (hinge.problem.kernels.program)

KernelProgram decode(const Code& code) {
  KernelProgram program;
  for (const auto& c : code) program.push_back({static_cast<KernelOp>(static_cast<int>(c[0])), {c[1], c[2], c[3]}});
  return program;
}

nb::tuple to_python(DualSolution&& s) {
  return nb::make_tuple(own(std::move(s.alpha)), own(std::move(s.F)), s.bias, s.rho, s.violation, s.stopped, s.batches,
                        s.steps);
}

// The dual of a kernel machine, and when to end, as Python passes them (solvers/decomposition.py).
struct Dual {
  Vector sign, target, upper;
  int groups;
  double cache_bytes;
  int max_iter;
  index_t max_steps;
  bool shrinking;

  template <class T>
  DualSolution solve(RowSource<T>& source, const Vector& alpha, const std::optional<Vector>& scores, double tol,
                     Monitor& monitor) const {
    for (const Vector& v : {target, upper, alpha})
      expect(size_of(v) == size_of(sign), "target, upper and alpha must have one entry per dual variable");
    const DualProblem problem{
        source.points(), static_cast<index_t>(sign.shape(0)), sign.data(), target.data(), upper.data(), groups};
    expect(!scores || size_of(*scores) == source.points(), "scores must have one entry per point");
    std::vector<double> F;
    if (scores) F.assign(scores->data(), scores->data() + source.points());
    return decompose<T>(source, problem, {alpha.data(), alpha.data() + alpha.shape(0)}, std::move(F),
                        {tol, cache_bytes, max_iter, max_steps, shrinking}, monitor);
  }
};

// The points of many problems, row p of `rows` those of problem p; `tables` have the shape of `rows`.
ManyDuals many_duals(const Matrix& values, const In2<index_t>& rows, const In1<index_t>& length,
                     const std::vector<Matrix>& tables) {
  const auto n = static_cast<index_t>(values.shape(0)), width = static_cast<index_t>(rows.shape(1));
  expect(static_cast<index_t>(values.shape(1)) == n, "the kernel matrix must be square");
  expect(size_of(length) == size_of(rows), "there must be a length for every problem");
  for (const Matrix& table : tables)
    expect(size_of(table) == size_of(rows) && static_cast<index_t>(table.shape(1)) == width,
           "the tables of the problems must have one shape");
  expect(std::all_of(length.data(), length.data() + size_of(length), [&](index_t m) { return m >= 0 && m <= width; }),
         "a problem has more points than its line");
  expect(std::all_of(rows.data(), rows.data() + size_of(rows) * width, [&](index_t i) { return i >= 0 && i < n; }),
         "a problem has points that the kernel matrix does not have");
  return {values.data(), n, size_of(rows), width, rows.data(), length.data(), nullptr, nullptr, nullptr, 1};
}

// The arrays of many duals. Row p of the tables is problem p, of which the first length[p] entries are used.
struct ManyArguments {
  Matrix values;
  In2<index_t> rows;
  In1<index_t> length;
  Matrix sign, target, upper;
  int groups;

  ManyDuals problems(const Matrix& alpha) const {
    ManyDuals found = many_duals(values, rows, length, {sign, target, upper, alpha});
    found.sign = sign.data();
    found.target = target.data();
    found.upper = upper.data();
    found.groups = groups;
    return found;
  }
};

template <class T>
void bind_points(nb::module_& m, const char* name) {
  nb::class_<Points<T>>(m, name)
      .def(
          "__init__",
          [](Points<T>* self, In2<T> x) {
            auto* p = new (self) Points<T>;
            p->n = static_cast<index_t>(x.shape(0));
            p->d = static_cast<index_t>(x.shape(1));
            p->dense = x.data();
            enter([&](Monitor&) { p->measure(); });
          },
          "x"_a.noconvert(), nb::keep_alive<1, 2>())
      .def(
          "__init__",
          [](Points<T>* self, In1<T> value, In1<std::int32_t> column, In1<std::int32_t> start, index_t d) {
            expect(size_of(start) > 0 && rising(start.data(), size_of(start) - 1), "the rows of X overlap");
            const index_t stored = start.data()[size_of(start) - 1];
            expect(stored <= size_of(value) && stored <= size_of(column), "X has rows without entries");
            expect(std::all_of(column.data(), column.data() + stored, [&](std::int32_t j) { return j >= 0 && j < d; }),
                   "an index of X lies outside its columns");
            auto* p = new (self) Points<T>;
            p->n = static_cast<index_t>(start.shape(0)) - 1;
            p->d = d;
            p->value = value.data();
            p->column = column.data();
            p->start = start.data();
            enter([&](Monitor&) { p->measure(); });
          },
          "value"_a.noconvert(), "column"_a.noconvert(), "start"_a.noconvert(), "d"_a, nb::keep_alive<1, 2>(),
          nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>());

  m.def(
      "kernel_gram",
      [](const Code& code, const Points<T>& a, const Points<T>& b) {
        const auto program = decode(code);
        expect(a.d == b.d, "both sets of points must have the same number of columns");
        Unset<T> K(a.n * b.n);
        enter([&](Monitor&) {
          std::vector<T*> out(a.n);
          for (index_t i = 0; i < a.n; ++i) out[i] = K.data() + i * b.n;
          kernel_rows<T>(program, a, b, out.data());
        });
        return own(std::move(K), a.n, b.n);
      },
      "program"_a, "a"_a, "b"_a);
  m.def(
      "kernel_scores",
      [](const Code& code, const Points<T>& a, const Points<T>& b, Matrix coef) {
        const auto program = decode(code);
        const auto k = static_cast<index_t>(coef.shape(1));
        expect(a.d == b.d && size_of(coef) == b.n, "there must be one row of coefficients per point");
        std::vector<double> z(a.n * k);
        enter([&](Monitor&) { kernel_scores<T>(program, a, b, coef.data(), k, z.data()); });
        return own(std::move(z), a.n, k);
      },
      "program"_a, "a"_a, "b"_a, "coef"_a.noconvert());
  m.def(
      "kernel_self_scores",
      [](const Code& code, const Points<T>& a, Vector coef) {
        const auto program = decode(code);
        expect(size_of(coef) == a.n, "there must be one coefficient per point");
        std::vector<double> z(a.n);
        enter([&](Monitor&) { kernel_self_scores<T>(program, a, coef.data(), z.data()); });
        return own(std::move(z));
      },
      "program"_a, "a"_a, "coef"_a.noconvert());
  m.def(
      "kernel_normal",
      [](const Code& code, const Points<T>& a, const Points<T>& b, Vector h, Matrix U) {
        const auto program = decode(code);
        const auto k = static_cast<index_t>(U.shape(1));
        expect(a.d == b.d && size_of(h) == a.n && size_of(U) == a.n, "h and u must have one entry per point");
        std::vector<double> G(b.n * b.n), r(b.n * k);
        enter([&](Monitor&) { kernel_normal<T>(program, a, b, h.data(), G.data(), U.data(), k, r.data()); });
        return nb::make_tuple(own(std::move(G), b.n, b.n), own(std::move(r), b.n, k));
      },
      "program"_a, "a"_a, "b"_a, "h"_a.noconvert(), "u"_a.noconvert());
  m.def(
      "kernel_pull",
      [](const Code& code, const Points<T>& a, const Points<T>& b, Matrix U) {
        const auto program = decode(code);
        const auto k = static_cast<index_t>(U.shape(1));
        expect(a.d == b.d && size_of(U) == a.n, "u must have one row per point");
        std::vector<double> r(b.n * k);
        enter([&](Monitor&) { kernel_normal<T>(program, a, b, nullptr, nullptr, U.data(), k, r.data()); });
        return own(std::move(r), b.n, k);
      },
      "program"_a, "a"_a, "b"_a, "u"_a.noconvert());
  m.def(
      "kernel_quadratic",
      [](const Code& code, const Points<T>& a, const Points<T>& b, Vector h, Vector v, double shift) {
        const auto program = decode(code);
        expect(a.d == b.d && size_of(h) == a.n && size_of(v) == b.n, "h and v must have one entry per point");
        std::vector<double> r(b.n);
        const double sum =
            enter([&](Monitor&) { return kernel_quadratic<T>(program, a, b, h.data(), v.data(), shift, r.data()); });
        return nb::make_tuple(own(std::move(r)), sum);
      },
      "program"_a, "a"_a, "b"_a, "h"_a.noconvert(), "v"_a.noconvert(), "shift"_a);
  m.def(
      "block_quadratic",
      [](In2<T> K, Vector h, Vector v, double shift) {
        const auto n = static_cast<index_t>(K.shape(0)), width = static_cast<index_t>(K.shape(1));
        expect(size_of(h) == n && size_of(v) == width, "h and v must have one entry per row and column of k");
        std::vector<double> r(width);
        const double sum = enter(
            [&](Monitor&) { return block_quadratic<T>(K.data(), n, width, h.data(), v.data(), shift, r.data()); });
        return nb::make_tuple(own(std::move(r)), sum);
      },
      "k"_a.noconvert(), "h"_a.noconvert(), "v"_a.noconvert(), "shift"_a);
  m.def(
      "decompose",
      [](const Code& code, const Points<T>& points, const Dual& dual, Vector alpha, std::optional<Vector> scores,
         double tol, nb::object report) {
        ProgramRows<T> source(decode(code), points);
        return to_python(enter([&](Monitor& monitor) { return dual.solve<T>(source, alpha, scores, tol, monitor); },
                               make_report(report)));
      },
      "program"_a, "points"_a, "dual"_a, "alpha"_a.noconvert(), "scores"_a.noconvert().none(), "tol"_a,
      "report"_a.none());
}

}  // namespace

void bind_kernels(nb::module_& m) {
  nb::class_<Dual>(m, "Dual").def(
      "__init__",
      [](Dual* self, Vector sign, Vector target, Vector upper, int groups, double cache_bytes, int max_iter,
         index_t max_steps,
         bool shrinking) { new (self) Dual{sign, target, upper, groups, cache_bytes, max_iter, max_steps, shrinking}; },
      nb::kw_only(), "sign"_a.noconvert(), "target"_a.noconvert(), "upper"_a.noconvert(), "groups"_a, "cache_bytes"_a,
      "max_iter"_a, "max_steps"_a, "shrinking"_a);
  bind_points<double>(m, "KernelPoints64");
  bind_points<float>(m, "KernelPoints32");
  m.def(
      "subsequence_gram",
      [](In1<std::int32_t> a, In1<index_t> a_start, In1<std::int32_t> b, In1<index_t> b_start, int length, double decay,
         bool same) {
        const Strings left{a.data(), a_start.data(), static_cast<index_t>(a_start.shape(0)) - 1};
        const Strings right{b.data(), b_start.data(), static_cast<index_t>(b_start.shape(0)) - 1};
        std::vector<double> K(left.n * right.n);
        enter([&](Monitor&) { subsequence_gram(left, right, length, decay, same, K.data()); });
        return own(std::move(K), left.n, right.n);
      },
      "a"_a.noconvert(), "a_start"_a.noconvert(), "b"_a.noconvert(), "b_start"_a.noconvert(), "length"_a, "decay"_a,
      "same"_a);
  m.def(
      "decompose_matrix",
      [](Matrix values, const Dual& dual, Vector alpha, std::optional<Vector> scores, double tol, nb::object report) {
        MatrixRows source(values.data(), static_cast<index_t>(values.shape(0)));
        return to_python(
            enter([&](Monitor& monitor) { return dual.solve<double>(source, alpha, scores, tol, monitor); },
                  make_report(report)));
      },
      "values"_a.noconvert(), "dual"_a, "alpha"_a.noconvert(), "scores"_a.noconvert().none(), "tol"_a,
      "report"_a.none());
  nb::class_<ManyArguments>(m, "ManyDuals")
      .def(
          "__init__",
          [](ManyArguments* self, Matrix values, In2<index_t> rows, In1<index_t> length, Matrix sign, Matrix target,
             Matrix upper, int groups) { new (self) ManyArguments{values, rows, length, sign, target, upper, groups}; },
          nb::kw_only(), "values"_a.noconvert(), "rows"_a.noconvert(), "length"_a.noconvert(), "sign"_a.noconvert(),
          "target"_a.noconvert(), "upper"_a.noconvert(), "groups"_a);
  m.def(
      "decompose_many",
      [](const ManyArguments& duals, Matrix alpha, Vector tol, index_t max_steps) {
        const ManyDuals problems = duals.problems(alpha);
        expect(size_of(tol) == problems.count, "there must be a tolerance for every problem");
        const index_t count = problems.count, width = problems.width;
        std::vector<double> a(alpha.data(), alpha.data() + count * width), bias(count), rho(count), violation(count);
        std::vector<index_t> steps(count);
        enter([&](Monitor&) {
          decompose_many(problems, tol.data(), max_steps,
                         {a.data(), bias.data(), rho.data(), violation.data(), steps.data()});
        });
        return nb::make_tuple(own(std::move(a), count, width), own(std::move(bias)), own(std::move(rho)),
                              own(std::move(violation)), own(std::move(steps)));
      },
      "duals"_a, "alpha"_a.noconvert(), "tol"_a.noconvert(), "max_steps"_a);
  m.def(
      "scores_of_many",
      [](Matrix values, In2<index_t> rows, In1<index_t> length, Matrix coefficients) {
        const ManyDuals problems = many_duals(values, rows, length, {coefficients});
        std::vector<double> scores(problems.count * problems.width);
        enter([&](Monitor&) { scores_of_many(problems, coefficients.data(), scores.data()); });
        return own(std::move(scores), problems.count, problems.width);
      },
      "values"_a.noconvert(), "rows"_a.noconvert(), "length"_a.noconvert(), "coefficients"_a.noconvert());
  m.def(
      "decompose_rows",
      // rows(which) returns the rows of the kernel matrix for these points, float64
      [](nb::object rows, index_t n, const Dual& dual, Vector alpha, std::optional<Vector> scores, double tol,
         nb::object report) {
        FullRows<double> source(n, [&](const index_t* which, index_t m, double* out) {
          nb::gil_scoped_acquire gil;
          auto block = nb::cast<Matrix>(rows(own(std::vector<index_t>(which, which + m))));
          expect(size_of(block) == m && static_cast<index_t>(block.shape(1)) == n,
                 "the kernel returned a block of wrong shape");
          std::copy(block.data(), block.data() + m * n, out);
        });
        return to_python(
            enter([&](Monitor& monitor) { return dual.solve<double>(source, alpha, scores, tol, monitor); },
                  make_report(report)));
      },
      "rows"_a, "n"_a, "dual"_a, "alpha"_a.noconvert(), "scores"_a.noconvert().none(), "tol"_a, "report"_a.none());
}

}  // namespace hinge
