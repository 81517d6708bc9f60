// Naive Bayes, discriminants and mixtures: counting, scoring, one pass of EM.
#include <nanobind/stl/optional.h>

#include <optional>

#include "bind/arrays.hpp"
#include "bind/enter.hpp"
#include "bind/modules.hpp"
#include "generative/class_statistics.hpp"
#include "generative/mixture.hpp"

namespace hinge {
namespace {

using namespace nb::literals;
using Codes = In1<std::int32_t>;
using Starts = In1<index_t>;

const double* pointer(const std::optional<Vector>& v) { return v ? v->data() : nullptr; }

void check_rows(const Design& X, const Codes& codes, const std::optional<Vector>& w) {
  expect(static_cast<index_t>(codes.shape(0)) == X.rows(), "codes must have one entry per row of X");
  if (w) expect(static_cast<index_t>(w->shape(0)) == X.rows(), "weights must have one entry per row of X");
}

nb::tuple pack(Scores&& s, Output output, index_t n, index_t k) {
  if (output == Output::best) return nb::make_tuple(own(std::move(s.best)), s.finite);
  if (output == Output::total) return nb::make_tuple(own(std::move(s.value)), s.finite);
  return nb::make_tuple(own(std::move(s.value), n, k), s.finite);
}

Gaussians gaussians(const Design& X, const Vector& b, const Matrix& mean, const Matrix& P) {
  const auto k = static_cast<index_t>(b.shape(0)), d = X.cols();
  expect(static_cast<index_t>(mean.shape(0)) == k && static_cast<index_t>(mean.shape(1)) == d,
         "means must have one row per component and one column per column of X");
  const auto rows = static_cast<index_t>(P.shape(0)), cols = static_cast<index_t>(P.shape(1));
  expect(rows == k && (cols == d || cols == d * d), "the factors of the precisions have the wrong shape");
  return {k, d, b.data(), mean.data(), P.data(), cols == d * d && d > 1};
}

}  // namespace

void bind_generative(nb::module_& m) {
  nb::enum_<Output>(m, "Output")
      .value("joint", Output::joint)
      .value("log_probability", Output::log_probability)
      .value("probability", Output::probability)
      .value("best", Output::best)
      .value("total", Output::total);

  m.def(
      "class_moments",
      [](const Design& X, Codes codes, std::optional<Vector> w, index_t k) {
        check_rows(X, codes, w);
        ClassMoments s = enter([&](Monitor&) { return class_moments(X, codes.data(), pointer(w), k); });
        return nb::make_tuple(own(std::move(s.weight)), own(std::move(s.mean), k, X.cols()),
                              own(std::move(s.square), k, X.cols()));
      },
      "X"_a, "codes"_a.noconvert(), "weights"_a.noconvert().none(), "k"_a);

  m.def(
      "class_sums",
      [](const Design& X, Codes codes, std::optional<Vector> w, index_t k, std::optional<double> threshold) {
        check_rows(X, codes, w);
        ClassSums s = enter(
            [&](Monitor&) { return class_sums(X, codes.data(), pointer(w), k, threshold ? &*threshold : nullptr); });
        return nb::make_tuple(own(std::move(s.weight)), own(std::move(s.sum), k, X.cols()), s.least);
      },
      "X"_a, "codes"_a.noconvert(), "weights"_a.noconvert().none(), "k"_a, "threshold"_a.none());

  m.def(
      "class_categories",
      [](const Design& X, Codes codes, std::optional<Vector> w, index_t k, Starts start) {
        check_rows(X, codes, w);
        expect(static_cast<index_t>(start.shape(0)) == X.cols() + 1, "start must have one entry per column, and one");
        const index_t total = start.data()[X.cols()];
        return own(enter([&](Monitor&) { return class_categories(X, codes.data(), pointer(w), k, start.data()); }),
                   total, k);
      },
      "X"_a, "codes"_a.noconvert(), "weights"_a.noconvert().none(), "k"_a, "start"_a.noconvert());

  m.def(
      "class_scatter",
      [](const Design& X, Codes codes, std::optional<Vector> w, Matrix mean, bool pooled) {
        check_rows(X, codes, w);
        const auto k = static_cast<index_t>(mean.shape(0)), d = X.cols();
        expect(static_cast<index_t>(mean.shape(1)) == d, "mean must have one column per column of X");
        return own(enter([&](Monitor&) { return class_scatter(X, codes.data(), pointer(w), k, mean.data(), pooled); }),
                   (pooled ? 1 : k) * d, d);
      },
      "X"_a, "codes"_a.noconvert(), "weights"_a.noconvert().none(), "mean"_a.noconvert(), "pooled"_a);

  m.def(
      "linear_scores",
      [](const Design& X, Matrix W, Vector b, std::optional<double> threshold, Output output) {
        const auto k = static_cast<index_t>(W.shape(1));
        expect(static_cast<index_t>(W.shape(0)) == X.cols() && static_cast<index_t>(b.shape(0)) == k,
               "the weights have the wrong shape");
        const Linear model{k, W.data(), b.data(), threshold ? &*threshold : nullptr};
        return pack(enter([&](Monitor&) { return linear_scores(X, model, output); }), output, X.rows(), k);
      },
      "X"_a, "W"_a.noconvert(), "b"_a.noconvert(), "threshold"_a.none(), "output"_a);

  m.def(
      "category_scores",
      [](const Design& X, Matrix T, Vector b, Starts start, Output output) {
        const auto k = static_cast<index_t>(b.shape(0)), d = X.cols();
        expect(static_cast<index_t>(start.shape(0)) == d + 1 && start.data()[0] == 0,
               "start must have one entry per column, and one");
        for (index_t j = 0; j < d; ++j) expect(start.data()[j + 1] >= start.data()[j], "start must not fall");
        expect(static_cast<index_t>(T.shape(0)) == start.data()[d] && static_cast<index_t>(T.shape(1)) == k,
               "the table has the wrong shape");
        const Categories model{k, T.data(), b.data(), start.data()};
        return pack(enter([&](Monitor&) { return category_scores(X, model, output); }), output, X.rows(), k);
      },
      "X"_a, "T"_a.noconvert(), "b"_a.noconvert(), "start"_a.noconvert(), "output"_a);

  m.def(
      "gaussian_scores",
      [](const Design& X, Vector b, Matrix mean, Matrix P, Output output) {
        const Gaussians model = gaussians(X, b, mean, P);
        return pack(enter([&](Monitor&) { return gaussian_scores(X, model, output); }), output, X.rows(), model.k);
      },
      "X"_a, "b"_a.noconvert(), "mean"_a.noconvert(), "P"_a.noconvert(), "output"_a);

  m.def(
      "mixture_moments",
      [](const Design& X, std::optional<Vector> w, Vector b, Matrix mean, Matrix P, bool hard) {
        if (w) expect(static_cast<index_t>(w->shape(0)) == X.rows(), "weights must have one entry per row of X");
        const Gaussians model = gaussians(X, b, mean, P);
        MixtureMoments s = enter([&](Monitor&) { return mixture_moments(X, pointer(w), model, hard); });
        const std::size_t entries = s.square.size() / model.k;
        return nb::make_tuple(s.likelihood, own(std::move(s.weight)), own(std::move(s.shift), model.k, model.d),
                              own(std::move(s.square), model.k, entries));
      },
      "X"_a, "weights"_a.noconvert().none(), "b"_a.noconvert(), "mean"_a.noconvert(), "P"_a.noconvert(), "hard"_a);
}

}  // namespace hinge
