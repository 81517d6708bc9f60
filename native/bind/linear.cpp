// Solvers of linear problems: one function per solver.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "bind/arrays.hpp"
#include "bind/enter.hpp"
#include "bind/modules.hpp"
#include "solvers/block_descent.hpp"
#include "solvers/dual_coordinate.hpp"
#include "solvers/interior_point.hpp"
#include "solvers/multinomial.hpp"
#include "solvers/newton.hpp"
#include "solvers/newton_cg.hpp"
#include "solvers/perceptron.hpp"
#include "solvers/proximal_newton.hpp"
#include "solvers/sgd.hpp"
#include "solvers/subset.hpp"

namespace hinge {
namespace {

using namespace nb::literals;

// The arguments that describe a linear problem, as Python passes them (solvers/native.py).
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

// The arrays of least squares with several targets (solvers/block_descent.hpp).
struct BlockArguments {
  Matrix G, Q;
  double s;
  Vector l1, l2;

  BlockProblem problem() const {
    return {size_of(G), static_cast<index_t>(Q.shape(1)), G.data(), Q.data(), s, l1.data(), l2.data()};
  }
};

nb::object to_python(LinearSolution&& s) {
  nb::object dual = s.dual.empty() ? nb::object(nb::none()) : nb::cast(own(std::move(s.dual)));
  return nb::make_tuple(own(std::move(s.w)), s.b, static_cast<int>(s.outcome), s.iterations, dual);
}

// One (a, lo, hi) per kink of the loss, each with n entries.
using KinkArrays = std::vector<std::array<Vector, 3>>;

std::vector<Kinks> copy_kinks(const KinkArrays& kinks) {
  const auto copy = [](const Vector& v) { return std::vector<double>(v.data(), v.data() + v.shape(0)); };
  std::vector<Kinks> lists;
  for (const auto& k : kinks) lists.push_back({copy(k[0]), copy(k[1]), copy(k[2])});
  return lists;
}

}  // namespace

void bind_linear(nb::module_& m) {
  m.def(
      "evaluate",  // risk, scores, c l' and the gradient of the risk, in one pass over X
      [](const Design& X, const Loss& loss, Vector y, Vector c, std::optional<Vector> offset, Vector w, double b) {
        const auto n = static_cast<std::size_t>(X.rows());
        if (y.shape(0) != n || c.shape(0) != n || (offset && offset->shape(0) != n))
          throw nb::value_error("y, c and offset must have one entry per row of X");
        if (w.shape(0) != static_cast<std::size_t>(X.cols()))
          throw nb::value_error("w must have one entry per column of X");
        Evaluation at(X.rows(), X.cols());
        enter([&](Monitor&) {
          const double* shift = offset ? offset->data() : nullptr;
          evaluate({X, y.data(), c.data(), shift, loss, b != 0.0, {}}, w.data(), b, false, at);
        });
        return nb::make_tuple(at.risk, own(std::move(at.z)), own(std::move(at.u)), own(std::move(at.g)));
      },
      "X"_a, "loss"_a, "y"_a.noconvert(), "c"_a.noconvert(), "offset"_a.noconvert().none(), "w"_a.noconvert(), "b"_a);
  nb::class_<Arguments>(m, "LinearProblem")
      .def(
          "__init__",
          [](Arguments* self, const Design& X, Vector y, Vector c, std::optional<Vector> offset, const Loss& loss,
             bool intercept, Vector l1, Vector l2, Vector lower, Vector upper) {
            expect(size_of(y) == X.rows() && size_of(c) == X.rows() && (!offset || size_of(*offset) == X.rows()),
                   "y, sample_weight and offset must have one entry per row of X");
            for (const Vector& v : {l1, l2, lower, upper})
              expect(size_of(v) == X.cols(), "the penalty must have one entry per column of X");
            new (self) Arguments{X, y, c, offset, loss, intercept, l1, l2, lower, upper};
          },
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 6>());

  m.def(
      "newton",
      [](const Arguments& a, Vector w, double b, bool approximate, bool proved, double tol, int max_iter,
         nb::object report) {
        expect(size_of(w) == a.X.cols(), "the first weights must have one entry per column of X");
        return to_python(enter(
            [&](Monitor& monitor) {
              return newton(a.problem(), {w.data(), w.data() + w.shape(0)}, b, {tol, max_iter, approximate, proved},
                            monitor);
            },
            make_report(report)));
      },
      "problem"_a, "w"_a.noconvert(), "b"_a, "approximate"_a, "proved"_a, "tol"_a, "max_iter"_a, "report"_a.none());

  m.def(
      "proximal_newton",
      [](const Arguments& a, Vector w, double b, bool constant_curvature, double tol, int max_iter, nb::object report) {
        expect(size_of(w) == a.X.cols(), "the first weights must have one entry per column of X");
        return to_python(enter(
            [&](Monitor& monitor) {
              const LinearProblem problem = a.problem();
              ProximalNewton solver(problem, constant_curvature, {w.data(), w.data() + w.shape(0)}, b);
              return solver.solve(problem.penalty, tol, max_iter, monitor);
            },
            make_report(report)));
      },
      "problem"_a, "w"_a.noconvert(), "b"_a, "constant_curvature"_a, "tol"_a, "max_iter"_a, "report"_a.none());

  m.def(
      "newton_cg",
      [](const Arguments& a, Vector w, double b, bool constant_curvature, bool proved, double tol, int max_iter,
         nb::object report) {
        expect(size_of(w) == a.X.cols(), "the first weights must have one entry per column of X");
        return to_python(enter(
            [&](Monitor& monitor) {
              return newton_cg(a.problem(), {w.data(), w.data() + w.shape(0)}, b, constant_curvature, tol, max_iter,
                               proved, monitor);
            },
            make_report(report)));
      },
      "problem"_a, "w"_a.noconvert(), "b"_a, "constant_curvature"_a, "proved"_a, "tol"_a, "max_iter"_a,
      "report"_a.none());

  m.def(
      "interior_point",
      [](const Arguments& a, Vector, double, const KinkArrays& kinks, double tol, int max_iter, nb::object report) {
        const std::vector<Kinks> lists = copy_kinks(kinks);
        return to_python(
            enter([&](Monitor& monitor) { return interior_point(a.problem(), lists, tol, max_iter, monitor); },
                  make_report(report)));
      },
      "problem"_a, "w"_a.noconvert(), "b"_a, "kinks"_a, "tol"_a, "max_iter"_a, "report"_a.none());

  m.def(
      "dual_coordinate",
      [](const Arguments& a, Vector, double, const KinkArrays& kinks, double soft, std::uint64_t seed, double tol,
         int max_iter, int max_checks, nb::object report) {
        const std::vector<Kinks> lists = copy_kinks(kinks);
        return to_python(enter(
            [&](Monitor& monitor) {
              return dual_coordinate(a.problem(), lists, soft, tol, max_iter, max_checks, seed, monitor);
            },
            make_report(report)));
      },
      "problem"_a, "w"_a.noconvert(), "b"_a, "kinks"_a, "soft"_a, "seed"_a, "tol"_a, "max_iter"_a, "max_checks"_a,
      "report"_a.none());

  // Solves for the penalty times each of `strengths` in turn, each from the previous solution.
  m.def(
      "penalty_path",
      [](const Arguments& a, Vector w, double b, bool constant_curvature, Vector strengths, double tol, int max_iter) {
        expect(size_of(w) == a.X.cols(), "the first weights must have one entry per column of X");
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
            const LinearSolution s = solver.solve({l1.data(), l2.data(), problem.penalty.lower, problem.penalty.upper},
                                                  tol, max_iter, monitor);
            std::copy(s.w.begin(), s.w.end(), weights.begin() + k * d);
            biases[k] = s.b;
            iterations[k] = s.iterations;
          }
          return 0;
        });
        return nb::make_tuple(own(std::move(weights), count, d), own(std::move(biases)), own(std::move(iterations)));
      },
      "problem"_a, "w"_a.noconvert(), "b"_a, "constant_curvature"_a, "strengths"_a.noconvert(), "tol"_a, "max_iter"_a);

  nb::class_<BlockArguments>(m, "BlockProblem")
      .def(
          "__init__",
          [](BlockArguments* self, Matrix G, Matrix Q, double s, Vector l1, Vector l2) {
            const index_t d = size_of(G);
            expect(static_cast<index_t>(G.shape(1)) == d && size_of(Q) == d && size_of(l1) == d && size_of(l2) == d,
                   "G, Q and the penalty must have one row per feature");
            new (self) BlockArguments{G, Q, s, l1, l2};
          },
          nb::kw_only(), "G"_a.noconvert(), "Q"_a.noconvert(), "s"_a, "l1"_a.noconvert(), "l2"_a.noconvert());

  // Solves for the penalty times each of `strengths` in turn: returns the weights as concatenated row-major matrices,
  // the rounds, and whether each solution met the tolerance.
  m.def(
      "block_path",
      [](const BlockArguments& a, Matrix W, Vector strengths, double tol, int max_iter) {
        const BlockProblem problem = a.problem();
        const index_t d = problem.d, k = problem.k, count = size_of(strengths);
        expect(size_of(W) == d && static_cast<index_t>(W.shape(1)) == k,
               "the first weights must have one row per feature and one column per target");
        std::vector<double> weights(count * d * k);
        std::vector<std::int64_t> rounds(count), converged(count);
        enter([&](Monitor& monitor) {
          BlockDescent solver(problem, {W.data(), W.data() + d * k});
          for (index_t i = 0; i < count; ++i) {
            const BlockSolution found = solver.solve(strengths.data()[i], tol, max_iter, monitor);
            std::copy(solver.weights().begin(), solver.weights().end(), weights.begin() + i * d * k);
            rounds[i] = found.iterations;
            converged[i] = found.converged;
          }
          return 0;
        });
        return nb::make_tuple(own(std::move(weights), count * d, k), own(std::move(rounds)), own(std::move(converged)));
      },
      "problem"_a, "W"_a.noconvert(), "strengths"_a.noconvert(), "tol"_a, "max_iter"_a);

  m.def(
      "multinomial_newton_cg",
      [](const Design& X, Vector y, Vector c, bool intercept, Vector l2, Matrix W, Vector b, double tol, int max_iter,
         bool proved, nb::object report) {
        const index_t d = X.cols(), k = static_cast<index_t>(W.shape(1));
        expect(size_of(W) == d && size_of(b) == k && size_of(l2) == d,
               "the first weights must have one row per column of X");
        expect(size_of(y) == X.rows() && size_of(c) == X.rows(),
               "y and sample_weight must have one entry per row of X");
        for (index_t i = 0; i < X.rows(); ++i)
          expect(y.data()[i] >= 0 && y.data()[i] < static_cast<double>(k),
                 "y has a class that the weights do not know");
        MultinomialSolution s = enter(
            [&](Monitor& monitor) {
              return multinomial_newton_cg({X, y.data(), c.data(), k, intercept, l2.data()},
                                           {W.data(), W.data() + d * k}, {b.data(), b.data() + k}, tol, max_iter,
                                           proved, monitor);
            },
            make_report(report));
        return nb::make_tuple(own(std::move(s.W), d, k), own(std::move(s.b)), static_cast<int>(s.outcome),
                              s.iterations);
      },
      "X"_a, "y"_a.noconvert(), "c"_a.noconvert(), "intercept"_a, "l2"_a.noconvert(), "W"_a.noconvert(),
      "b"_a.noconvert(), "tol"_a, "max_iter"_a, "proved"_a, "report"_a.none());

  // One epoch in place: updates w, mean and `applied` (whose presence selects plain steps); returns the biases, the
  // number of steps so far and the mean loss.
  using Inout = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  nb::class_<SgdOptions>(m, "SgdOptions")
      .def(
          "__init__",
          [](SgdOptions* self, double l2, double eta0, double decay, double power, double bias_rate, index_t average,
             bool shuffle, std::uint64_t seed, index_t epoch, index_t batch, int passive) {
            expect(batch > 0, "a batch must have at least one row");
            expect(average >= 0, "average must not be negative");
            expect(passive == 0 || (batch == 1 && eta0 > 0),
                   "passive-aggressive steps need batches of one and eta0 > 0");
            new (self)
                SgdOptions{batch, eta0, decay, power, l2, bias_rate, average, shuffle, seed, epoch, false, passive};
          },
          nb::kw_only(), "l2"_a, "eta0"_a, "decay"_a, "power"_a, "bias_rate"_a, "average"_a, "shuffle"_a, "seed"_a,
          "epoch"_a, "batch"_a = 1, "passive"_a = 0);
  m.def(
      "sgd_epoch",
      [](const Arguments& a, SgdOptions options, Inout w, Inout mean, double b, double mean_b, index_t steps,
         std::optional<Inout> applied) {
        expect(size_of(w) == a.X.cols() && size_of(mean) == a.X.cols(),
               "the weights must have one entry per column of X");
        expect(!applied || size_of(*applied) == a.X.cols() + 1,
               "applied must have one entry per column of X and one more");
        SgdState state{w.data(), mean.data(), b, mean_b, steps, applied ? applied->data() : nullptr};
        options.plain = applied.has_value();
        const double loss = enter([&](Monitor& monitor) { return sgd_epoch(a.problem(), options, state, monitor); });
        return nb::make_tuple(state.b, state.mean_b, state.steps, loss);
      },
      "problem"_a, "options"_a, "w"_a.noconvert(), "mean"_a.noconvert(), "b"_a, "mean_b"_a, "steps"_a,
      "applied"_a.noconvert().none() = nb::none());

  nb::class_<Visits>(m, "Visits")
      .def(
          "__init__",
          [](Visits* self, bool shuffle, std::uint64_t seed, index_t epoch) {
            new (self) Visits{shuffle, seed, epoch};
          },
          nb::kw_only(), "shuffle"_a, "seed"_a, "epoch"_a);

  // One epoch in place: updates w and late; returns the biases, the age, and the row and age of every mistake.
  using Weights = std::optional<Vector>;
  m.def(
      "perceptron_epoch",
      [](const Design& X, Vector y, Weights weight, Inout w, Inout late, double b, double late_b, double age,
         bool intercept, double rate, const Visits& visits) {
        expect(size_of(w) == X.cols() && size_of(late) == X.cols(), "the weights must have one entry per column of X");
        expect(size_of(y) == X.rows() && (!weight || size_of(*weight) == X.rows()),
               "y and sample_weight must have one entry per row of X");
        PerceptronState state{w.data(), late.data(), b, late_b, age};
        Mistakes mistakes = enter([&](Monitor& monitor) {
          return perceptron_epoch(X, y.data(), weight ? weight->data() : nullptr, intercept, rate, visits, state,
                                  monitor);
        });
        return nb::make_tuple(state.b, state.late_b, state.age, own(std::move(mistakes.row)),
                              own(std::move(mistakes.age)));
      },
      "X"_a, "y"_a, "weight"_a.none(), "w"_a.noconvert(), "late"_a.noconvert(), "b"_a, "late_b"_a, "age"_a,
      "intercept"_a, "rate"_a, "visits"_a);

  // One epoch in place: updates w and late, each with a row per feature; returns the mistakes and the age.
  using InoutMatrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
  m.def(
      "multiclass_perceptron_epoch",
      [](const Design& X, In1<std::int32_t> y, Weights weight, InoutMatrix w, InoutMatrix late, double age,
         bool intercept, const Visits& visits) {
        const index_t rows = X.cols() + (intercept ? 1 : 0);
        expect(size_of(w) >= rows && size_of(late) >= rows && w.shape(1) == late.shape(1),
               "the weights must have one row per column of X");
        expect(size_of(y) == X.rows() && (!weight || size_of(*weight) == X.rows()),
               "y and sample_weight must have one entry per row of X");
        for (index_t i = 0; i < X.rows(); ++i)
          expect(y.data()[i] >= 0 && y.data()[i] < static_cast<index_t>(w.shape(1)), "y has an unknown class");
        const auto mistakes = enter([&](Monitor& monitor) {
          return multiclass_perceptron_epoch(X, y.data(), weight ? weight->data() : nullptr,
                                             static_cast<index_t>(w.shape(1)), intercept, visits, w.data(), late.data(),
                                             age, monitor);
        });
        return nb::make_tuple(mistakes, age);
      },
      "X"_a, "y"_a.noconvert(), "weight"_a.none(), "w"_a.noconvert(), "late"_a.noconvert(), "age"_a, "intercept"_a,
      "visits"_a);

  // M is [X y]'[X y], flat; returns RSS and member bits for every size, and the number of nodes visited.
  const auto subsets = [](Subsets (*search)(const double*, index_t, index_t, Monitor&)) {
    return [search](Vector M, index_t d, index_t most) {
      expect(d >= 0 && most >= 0 && most <= d && size_of(M) == (d + 1) * (d + 1), "M must be [X y]'[X y]");
      Subsets s = enter([&](Monitor& monitor) { return search(M.data(), d, most, monitor); });
      return nb::make_tuple(own(std::move(s.rss)), s.member, s.nodes);
    };
  };
  m.def("best_subsets", subsets(best_subsets), "M"_a.noconvert(), "d"_a, "most"_a);
  m.def("grow_subsets", subsets(grow_subsets), "M"_a.noconvert(), "d"_a, "most"_a);
}

}  // namespace hinge
