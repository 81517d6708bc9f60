// The multiclass support vector machine.
#include <nanobind/stl/optional.h>

#include <optional>

#include "bind/arrays.hpp"
#include "bind/enter.hpp"
#include "bind/modules.hpp"
#include "multiclass/svm.hpp"

namespace hinge {
namespace {

using namespace nb::literals;

nb::tuple pack(MulticlassSvmFit&& fit, index_t rows, index_t cols, index_t classes) {
  nb::object w = nb::none(), bias = nb::none();
  if (cols > 0) {
    w = nb::cast(own(std::move(fit.w), cols, classes));
    bias = nb::cast(own(std::move(fit.bias)));
  }
  return nb::make_tuple(w, bias, own(std::move(fit.dual), rows, classes), fit.passes, fit.steps, fit.done, fit.primal,
                        fit.gap);
}

// The rows of X, dense or sparse, less their mean where there is one, as Python passes them
// (solvers/multiclass_proximal.py).
struct RowArguments {
  Vector value;
  std::optional<In1<index_t>> indptr;
  std::optional<In1<std::int32_t>> index;
  index_t n, d;
  std::optional<Vector> mean;

  Rows rows(double constant) const {
    return {n,
            d,
            value.data(),
            indptr ? indptr->data() : nullptr,
            index ? index->data() : nullptr,
            mean ? mean->data() : nullptr,
            constant};
  }
};

void check_targets(const In1<std::int32_t>& y, const Vector& c, const Matrix& cost, index_t rows) {
  expect(cost.shape(0) == cost.shape(1), "cost must be a matrix of classes by classes");
  expect(size_of(y) == rows && size_of(c) == rows, "y and sample_weight must have one entry per row of X");
  for (index_t i = 0; i < rows; ++i)
    expect(y.data()[i] >= 0 && y.data()[i] < size_of(cost), "y has a class that cost does not know");
}

void check_start(const std::optional<Matrix>& start, index_t rows, index_t classes) {
  expect(!start || (static_cast<index_t>(start->shape(0)) == rows && static_cast<index_t>(start->shape(1)) == classes),
         "start must be a matrix of rows by classes");
}

}  // namespace

void bind_multiclass(nb::module_& m) {
  nb::class_<RowArguments>(m, "MulticlassRows")
      .def(
          "__init__",
          [](RowArguments* self, Vector value, std::optional<In1<index_t>> indptr,
             std::optional<In1<std::int32_t>> index, index_t rows, index_t cols, std::optional<Vector> mean) {
            expect(indptr ? size_of(*indptr) == rows + 1 && index && indptr->data()[rows] <= size_of(value)
                          : size_of(value) == rows * cols,
                   "X does not have the declared shape");
            expect(!mean || size_of(*mean) == cols, "the mean must have one entry per column of X");
            new (self) RowArguments{value, indptr, index, rows, cols, mean};
          },
          "value"_a.noconvert(), "indptr"_a.noconvert().none(), "index"_a.noconvert().none(), "rows"_a, "cols"_a,
          "mean"_a.noconvert().none());
  m.def(
      "multiclass_svm",
      [](const RowArguments& X, double constant, In1<std::int32_t> y, Vector c, Matrix cost, double tol, int max_iter,
         std::uint64_t seed, std::optional<Matrix> start, nb::object report) {
        const auto classes = static_cast<index_t>(cost.shape(0));
        check_targets(y, c, cost, X.n);
        check_start(start, X.n, classes);
        const Rows x = X.rows(constant);
        const MulticlassSvmProblem problem{y.data(), c.data(), cost.data(), classes, start ? start->data() : nullptr};
        return pack(enter([&](Monitor& monitor) { return multiclass_svm(x, problem, tol, max_iter, seed, monitor); },
                          make_report(report)),
                    X.n, X.d, classes);
      },
      "X"_a, "constant"_a, "y"_a.noconvert(), "c"_a.noconvert(), "cost"_a.noconvert(), "tol"_a, "max_iter"_a, "seed"_a,
      "start"_a.noconvert() = nb::none(), "report"_a = nb::none());
  m.def(
      "multiclass_kernel_svm",
      [](Matrix K, In1<std::int32_t> y, Vector c, Matrix cost, double tol, int max_iter, std::uint64_t seed,
         std::optional<Matrix> start, nb::object report) {
        const auto rows = static_cast<index_t>(K.shape(0)), classes = static_cast<index_t>(cost.shape(0));
        check_targets(y, c, cost, rows);
        check_start(start, rows, classes);
        expect(static_cast<index_t>(K.shape(1)) == rows, "K must be square");
        const MulticlassSvmProblem problem{y.data(), c.data(), cost.data(), classes, start ? start->data() : nullptr};
        return pack(enter(
                        [&](Monitor& monitor) {
                          return multiclass_kernel_svm(K.data(), rows, problem, tol, max_iter, seed, monitor);
                        },
                        make_report(report)),
                    rows, 0, classes);
      },
      "K"_a.noconvert(), "y"_a.noconvert(), "c"_a.noconvert(), "cost"_a.noconvert(), "tol"_a, "max_iter"_a, "seed"_a,
      "start"_a.noconvert() = nb::none(), "report"_a = nb::none());
}

}  // namespace hinge
