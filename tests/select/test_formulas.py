"""The statistics and searches of hinge.select against their formulas, or against trying everything."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import scipy.stats
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hinge as hg
from hinge.select.active import LabelCurve, LabelCurves, active_curves, informativeness, query
from hinge.select.choice import choose_candidate
from hinge.select.design import _best_in_box, _climb, _stationary, largest_on_ball
from hinge.select.estimate import Estimate, mean_of, plain
from hinge.select.features import LeastSquaresErrors
from hinge.select.grids import complexity_of, path_grid
from hinge.select.measure import (
    absolute,
    brier,
    log_loss,
    make_measure,
    mistake,
    own_loss,
    poisson_deviance,
    squared,
)  # fmt: skip
from hinge.select.resample import deal, growing_fits, make_folds, resampler, spread_order, with_final_step


class TestEstimate:
    def test_bounds_are_those_of_the_normal_law(self):
        e, z = Estimate(2.0, 0.5), scipy.stats.norm.ppf(0.975)
        assert (e.low, e.high) == pytest.approx((2.0 - 0.5 * z, 2.0 + 0.5 * z))
        assert e.clear
        assert not Estimate(0.9, 0.5).clear
        assert not Estimate(z, 1.0).clear or Estimate(z, 1.0).low > 0

    def test_the_root_by_the_delta_method(self):
        root = Estimate(4.0, 0.8).root()
        assert (root.value, root.standard_error) == (2.0, 0.2)
        assert Estimate(0.0, 0.3).root() == Estimate(0.0, 0.0)
        assert Estimate(0.25, 0.1).root() == Estimate(0.5, 0.1)

    def test_the_larger_error_of_examples_and_folds_is_taken(self, rng):
        x, fold = rng.normal(size=30), np.arange(30) % 3
        means = [x[fold == k].mean() for k in range(3)]
        over_examples, over_folds = np.std(x, ddof=1) / np.sqrt(30), np.std(means, ddof=1) / np.sqrt(3)
        assert mean_of(x).standard_error == pytest.approx(over_examples)
        assert mean_of(x, fold).standard_error == pytest.approx(max(over_examples, over_folds))
        shifted = x + 5.0 * fold
        means = [shifted[fold == k].mean() for k in range(3)]
        assert mean_of(shifted, fold).standard_error == pytest.approx(np.std(means, ddof=1) / np.sqrt(3))
        assert mean_of(shifted, fold).value == pytest.approx(shifted.mean())
        assert mean_of(x, np.zeros(30)).standard_error == pytest.approx(over_examples)
        assert mean_of(np.array([0.0, 2.0])).standard_error == pytest.approx(1.0)
        assert math.isnan(mean_of(np.array([3.0])).standard_error)

    def test_plain_values(self):
        found = plain(
            {"a": Estimate(1.0, math.nan), 2: (np.float64(0.5), np.arange(2), math.inf), "c": [True, None, "x"]}
        )
        assert found["a"] == {"value": 1.0, "standard_error": None, "low": None, "high": None}
        assert found["2"] == [0.5, [0, 1], None]
        assert found["c"] == [True, None, "x"]


class TestMeasures:
    def test_pointwise_losses(self, rng):
        y, s = rng.normal(size=9), rng.normal(size=9)
        np.testing.assert_allclose(squared(y, s), (y - s) ** 2)
        np.testing.assert_allclose(absolute(y, s), abs(y - s))
        P, codes = rng.dirichlet(np.ones(3), 9), rng.integers(0, 3, 9)
        np.testing.assert_allclose(brier(codes, P), 0.5 * ((P - np.eye(3)[codes]) ** 2).sum(axis=1))
        np.testing.assert_allclose(log_loss(codes, P), -np.log(P[np.arange(9), codes]))
        assert log_loss(np.array([0]), np.array([[0.0, 1.0]])) == pytest.approx(-math.log(1e-7))
        np.testing.assert_array_equal(mistake(codes, P), codes != P.argmax(axis=1))
        np.testing.assert_array_equal(mistake(codes, codes), np.zeros(9))
        counts, mu = rng.poisson(1.0, 9).astype(float), rng.random(9) + 0.1
        expected = 2 * (scipy.special.xlogy(counts, counts / mu) - counts + mu)
        np.testing.assert_allclose(poisson_deviance(counts, mu), expected)
        assert poisson_deviance(np.zeros(1), np.zeros(1), 5.0) == pytest.approx(2 * 5e-3)

    def test_the_measure_that_suits_an_estimator(self, rng):
        y, labels = rng.normal(size=20), np.repeat(["a", "b"], 10)
        assert make_measure(hg.Ridge(), y).name == "squared error"
        assert make_measure(hg.Ridge(), y).squared
        assert not make_measure(hg.Ridge(), y, "absolute error").squared
        assert make_measure(hg.LogisticRegression(), labels).name == "Brier score"
        assert make_measure(hg.LogisticRegression(), labels).probabilities
        assert make_measure(hg.LinearSVC(), labels).name == "error rate"
        assert not make_measure(hg.LinearSVC(), labels).probabilities
        for model in (
            hg.QuantileRegressor(quantile=0.3), hg.GradientBoostingRegressor(loss="quantile", alpha=0.3),
            hg.HistGradientBoostingRegressor(loss="quantile", quantile=0.3),
        ):  # fmt: skip
            measure = make_measure(model, y)
            np.testing.assert_allclose(measure.pointwise(y, np.zeros(20)), np.where(y > 0, 0.3 * y, -0.7 * y))
            assert own_loss(model) == hg.Quantile(0.3)
        assert isinstance(own_loss(hg.DecisionTreeRegressor(criterion="absolute_error")), hg.Absolute)
        assert own_loss(hg.GradientBoostingRegressor(loss=hg.Huber(0.7))) == hg.Huber(0.7)
        assert own_loss(hg.Ridge()) is None
        assert own_loss(hg.GradientBoostingRegressor(loss="squared_error")) is None
        with pytest.raises(ValueError, match="needs probabilities"):
            make_measure(hg.LinearSVC(), labels, "log loss")
        with pytest.raises(ValueError, match="measure must be"):
            make_measure(hg.Ridge(), y, "log loss")

    def test_codes_and_outputs(self, rng):
        labels = np.array(["b", "a", "c", "a", "b", "c"])
        measure, X = make_measure(hg.LogisticRegression(), labels), rng.normal(size=(6, 2))
        np.testing.assert_array_equal(measure.code(labels), [1, 0, 2, 0, 1, 2])
        with pytest.raises(ValueError, match="not seen"):
            measure.code(["d"])
        fold = hg.LogisticRegression().fit(X[labels != "b"], labels[labels != "b"])  # a fold without "b"
        P = measure.output(fold, X)
        np.testing.assert_allclose(P[:, [0, 2]], fold.predict_proba(X))
        np.testing.assert_array_equal(P[:, 1], 0.0)
        root = make_measure(hg.Ridge(), [1.0])
        assert type(root)("RMSE", None, False, squared, True, True).estimate(np.array([1.0, 7.0])).value == 2.0
        assert root.estimate(np.array([1.0, 7.0])).value == 4.0


class TestFolds:
    @pytest.mark.parametrize("classify", [False, True])
    def test_folds_are_of_one_size_and_classes_spread(self, classify, rng):
        y = rng.permutation(np.repeat([0, 1, 2], [30, 12, 5]))
        fold = deal(y, 4, rng, classify=classify)
        sizes = np.bincount(fold)
        assert sizes.max() - sizes.min() <= 1
        if classify:
            counts = np.array([np.bincount(fold[y == k], minlength=4) for k in range(3)])
            assert np.all(counts.max(axis=1) - counts.min(axis=1) <= 1)

    def test_beginnings_have_the_classes_in_proportion(self, rng):
        y = rng.permutation(np.repeat([0, 1], [60, 20]))
        order = spread_order(y, True, rng)
        assert sorted(order) == list(range(80))
        for size in range(1, 81):
            assert abs(np.sum(y[order[:size]] == 1) - size / 4) <= 1
        assert sorted(spread_order(y, False, rng)) == list(range(80))

    def test_splits_are_a_partition(self, rng):
        X, y = rng.normal(size=(23, 2)), rng.normal(size=23)
        for cv in (2, 23):
            folds = make_folds(cv, X, y, False, None, 0)
            assert len(folds) == cv
            assert sorted(np.concatenate([test for _, test in folds])) == list(range(23))
            assert all(sorted([*learn, *test]) == list(range(23)) for learn, test in folds)
        for cv in (1, 24):
            with pytest.raises(ValueError, match="cv must be"):
                make_folds(cv, X, y, False, None, 0)

    def test_growing_fits_stop_at_the_limit(self):
        order = np.arange(10)
        every = list(growing_fits(len, order, [2, 4, 6, 8]))
        assert [(i, len(rows), model) for i, rows, model, _ in every] == [(0, 2, 2), (1, 4, 4), (2, 6, 6), (3, 8, 8)]
        assert [i for i, *_ in growing_fits(len, order, [2, 4, 6, 8], seconds=-1.0)] == [0, 1]
        assert [i for i, *_ in growing_fits(len, order, [2, 4, 6, 8], seconds=-1.0, least=3)] == [0, 1, 2]

    def test_held_out_losses_and_curves(self, rng):
        X = rng.normal(size=(30, 2))
        y = X @ [1.0, -1.0] + rng.normal(size=30)
        data = resampler(hg.Ridge(), X, y, make_measure(hg.Ridge(), y), 3, None, 0)
        held, other = data.held_out(hg.Ridge()), data.held_out(hg.Ridge(100.0))
        for k, (learn, test) in enumerate(data.folds):
            model = hg.Ridge().fit(X[learn], y[learn])
            mine = held.fold == k
            np.testing.assert_array_equal(held.rows[mine], test)
            np.testing.assert_allclose(held.output[mine], model.predict(X[test]))
            np.testing.assert_allclose(held.losses[mine], (y[test] - model.predict(X[test])) ** 2)
            assert held.train[k] == pytest.approx(np.mean((y[learn] - model.predict(X[learn])) ** 2))
        assert held.risk == mean_of(held.losses, held.fold)
        assert held.train_risk == mean_of(held.train)
        assert held.minus(other) == mean_of(held.losses - other.losses, held.fold)
        for known in (None, held):
            sizes, train, test = data.learning_curve(hg.Ridge(), [0.01, 0.5, 1.0], known)
            np.testing.assert_array_equal(sizes, [2, 10, 20])
            assert test.mean(axis=1) == pytest.approx(data.learning_curve(hg.Ridge(), [0.01, 0.5, 1.0])[2].mean(axis=1))
            for k in range(3):
                learn, rest = data.folds[k]
                assert len(learn) == 20
                draw = np.random.default_rng([0, k])
                rows = learn[draw.permutation(len(learn))][:10]
                model = hg.Ridge().fit(X[rows], y[rows])
                assert train[1, k] == pytest.approx(np.mean((y[rows] - model.predict(X[rows])) ** 2))
                assert test[1, k] == pytest.approx(np.mean((y[rest] - model.predict(X[rest])) ** 2))
            if known is not None:
                np.testing.assert_allclose(train[2], held.train)
                np.testing.assert_allclose(test[2], [held.losses[held.fold == k].mean() for k in range(3)])

    def test_the_last_step_is_replaced(self):
        pipe = make_pipeline(StandardScaler(), hg.Ridge())
        changed = with_final_step(pipe, hg.Lasso())
        assert [type(step).__name__ for _, step in changed.steps] == ["StandardScaler", "Lasso"]
        assert isinstance(pipe.steps[-1][1], hg.Ridge)
        lasso = hg.Lasso()
        assert with_final_step(hg.Ridge(), lasso) is lasso


class TestChoice:
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("paired", [False, True])
    def test_one_standard_error(self, weighted, paired, rng):
        errors, complexity = rng.random((12, 5)) + 0.3 * rng.random(5), rng.permutation(12)
        weight = rng.random(5) if weighted else np.ones(5)
        c = weight / weight.sum()
        mean = errors @ c
        error = np.sqrt((errors - mean[:, None]) ** 2 @ c / 4)
        best = int(np.argmin(mean))
        difference = errors - errors[best]
        gap = difference @ c
        limit = np.sqrt((difference - gap[:, None]) ** 2 @ c / 4) if paired else np.full(12, error[best])
        near = [k for k in range(12) if gap[k] <= limit[k]]
        found = choose_candidate(errors, complexity, weight if weighted else None, paired=paired)
        np.testing.assert_allclose(found.mean, mean)
        np.testing.assert_allclose(found.standard_error, error)
        assert (found.best, found.simplest) == (best, min(near, key=lambda k: complexity[k]))
        assert (found.pick("best"), found.pick("one-standard-error")) == (found.best, found.simplest)

    def test_one_fold_has_no_standard_error(self):
        found = choose_candidate(np.array([[1.0], [2.0]]), [1, 0])
        np.testing.assert_array_equal(found.standard_error, 0.0)
        assert found.simplest == found.best == 0

    def test_ranks_of_complexity(self):
        grid = [{"C": c, "alpha": a, "solver": s} for c in (0.1, 1.0, 10.0) for a in (1.0, 3.0) for s in ("x", "y")]
        for candidate in grid:
            expected = {0.1: 0.0, 1.0: 0.5, 10.0: 1.0}[candidate["C"]] + {1.0: 1.0, 3.0: 0.0}[candidate["alpha"]]
            assert complexity_of(candidate, grid) == expected
        depths = [{"tree__max_depth": d} for d in (1, None, 5)]
        assert [complexity_of(c, depths) for c in depths] == [0.0, 1.0, 0.5]
        assert complexity_of({"C": 1.0}, [{"C": 1.0}]) == 0.0
        assert complexity_of({"C": True}, [{"C": True}, {"C": False}]) == 0.0

    def test_grids(self, rng):
        X, y = rng.normal(size=(30, 4)), rng.normal(size=30)
        np.testing.assert_allclose(path_grid(hg.LinearSVC(), X, y, 7)["C"], np.geomspace(1e-3, 1e3, 7))
        size = np.sum(X**2) / 4
        np.testing.assert_allclose(path_grid(hg.Ridge(), X, y, 5)["alpha"], size * np.geomspace(1e3, 1e-4, 5))
        alphas = path_grid(hg.Lasso(), X, y, 5)["alpha"]
        largest = np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max() / 30
        np.testing.assert_allclose(alphas, largest * np.geomspace(1.0, 1e-3, 5))
        assert path_grid(hg.HistGradientBoostingRegressor(max_iter=100), X, y, 4) == {"max_iter": [25, 50, 75, 100]}
        assert path_grid(hg.GradientBoostingRegressor(n_estimators=2), X, y, 9) == {"n_estimators": [1, 2]}
        piped = path_grid(make_pipeline(StandardScaler(), hg.Ridge()), X, y, 3)["ridge__alpha"]
        np.testing.assert_allclose(piped, 30 * np.geomspace(1e3, 1e-4, 3))
        for count in (0, -1):
            with pytest.raises(ValueError, match="at least 1"):
                path_grid(hg.Ridge(), X, y, count)
        assert len(path_grid(hg.Ridge(), X, y, 1)["alpha"]) == 1


def residual(X, y, features, intercept, s):
    """The weighted mean squared error of least squares on some columns."""
    A = np.column_stack([X[:, list(features)], *([np.ones(len(y))] if intercept else [])])
    root = np.sqrt(s / s.sum())
    if A.shape[1] == 0:
        return float(np.sum((root * y) ** 2))
    w = np.linalg.lstsq(root[:, None] * A, root * y, rcond=None)[0]
    return float(np.sum((root * (y - A @ w)) ** 2))


class TestFeatureSearch:
    @pytest.mark.parametrize("intercept", [True, False])
    @pytest.mark.parametrize("case", ["plain", "weights", "copies", "perfect"])
    def test_searches_are_what_refitting_gives(self, intercept, case, rng):
        n, d = 25, 5
        X = rng.normal(size=(n, d)) + 1.0
        if case == "copies":
            X[:, 4] = X[:, 0] - 2 * X[:, 2]
        y = X @ rng.normal(size=d) + (0.0 if case == "perfect" else 0.5) * rng.normal(size=n)
        s = rng.random(n) if case == "weights" else np.ones(n)
        given = {"sample_weight": s if case == "weights" else None}
        errors = LeastSquaresErrors(X, y, s, intercept)
        sets = [c for k in range(d + 1) for c in itertools.combinations(range(d), k)]
        scale = np.average((y - intercept * np.average(y, weights=s)) ** 2, weights=s)
        for chosen in sets:
            assert errors.error(chosen) == pytest.approx(residual(X, y, chosen, intercept, s), abs=2e-9 * scale)
        if case == "copies":
            assert errors.rank == 4
        best = hg.BestSubset(fit_intercept=intercept).fit(X, y, **given)
        assert [len(step.features) for step in best.path_] == list(range(d + 1))
        for step in best.path_:
            least = min(residual(X, y, c, intercept, s) for c in sets if len(c) == len(step.features))
            assert step.error == pytest.approx(least, abs=2e-9 * scale)
            assert step.objective == step.error
        forward, chosen = hg.ForwardSelector(fit_intercept=intercept, lam=0.01).fit(X, y, **given), ()
        assert forward.path_[0].error == pytest.approx(residual(X, y, (), intercept, s))
        for step in forward.path_[1:]:
            options = [tuple(sorted((*chosen, j))) for j in range(d) if j not in chosen]
            least = min(residual(X, y, c, intercept, s) for c in options)
            assert step.error == pytest.approx(least, abs=2e-9 * scale)
            assert step.objective == pytest.approx(step.error + 0.01 * len(step.features))
            chosen = step.features
        assert forward.objective_ == min(step.objective for step in forward.path_)
        assert forward.n_features_ == forward.support_.sum()
        backward, kept = hg.BackwardSelector(fit_intercept=intercept).fit(X, y, **given), tuple(range(d))
        if case != "copies":  # there, which of the copies goes first is open
            for step in backward.path_[-2::-1]:
                options = [tuple(j for j in kept if j != out) for out in kept]
                least = min(residual(X, y, c, intercept, s) for c in options)
                assert step.error == pytest.approx(least, abs=2e-9 * scale)
                kept = step.features
            assert kept == ()

    @pytest.mark.parametrize("cv", [None, 3])
    @pytest.mark.parametrize("search", [hg.ForwardSelector, hg.BackwardSelector, hg.BestSubset])
    def test_any_learner(self, search, cv, rng):
        from sklearn.model_selection import KFold

        X = rng.normal(size=(40, 3))
        y, s = X @ [2.0, 0.0, 1.0] + rng.normal(size=40), rng.random(40)
        folds = [(np.arange(40), np.arange(40))] if cv is None else list(KFold(3).split(X))

        def error(features):
            part = X[:, list(features)] if features else np.zeros((40, 1))
            scores = [
                hg.Ridge().fit(part[a], y[a], sample_weight=s[a]).score(part[b], y[b], sample_weight=s[b])
                for a, b in folds
            ]
            return -np.mean(scores)

        found = search(hg.Ridge(), cv=cv).fit(X, y, sample_weight=s)
        assert [len(step.features) for step in found.path_] == [0, 1, 2, 3]
        for step in found.path_:
            assert step.error == pytest.approx(error(step.features))
        one = search(hg.Ridge(), cv=cv, n_features_to_select=1).fit(X, y, sample_weight=s)
        assert one.error_ == pytest.approx(error(tuple(np.flatnonzero(one.support_))))
        assert one.n_features_ == 1
        if search is not hg.BackwardSelector:
            assert one.error_ == pytest.approx(min(error((j,)) for j in range(3)))
        if search is hg.BestSubset:
            assert (found.nodes_, one.nodes_) == (8, 4)
        with pytest.raises(ValueError, match="does not take it"):
            search(KNeighborsRegressor()).fit(X, y, sample_weight=s)


class TestDesign:
    @pytest.mark.parametrize("criterion", ["trace", "variance"])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_the_pool_is_searched_by_the_formula(self, criterion, intercept, rng):
        pool = rng.normal(size=(15, 2))
        design = hg.active.SequentialDesign(pool, criterion=criterion, ridge=0.1, intercept=intercept)
        V = np.column_stack([np.ones(15), pool]) if intercept else pool
        precision, free = 0.1 * np.eye(V.shape[1]), set(range(15))
        for step in range(6):
            A = np.linalg.inv(precision)
            variance = np.sum((V @ A) * V, axis=1)
            gains = variance if criterion == "variance" else np.sum((V @ A) ** 2, axis=1) / (1 + variance)
            np.testing.assert_allclose(design.criterion_at(pool), gains)
            i = max(free, key=lambda k: gains[k])
            x = design.ask()[0]
            np.testing.assert_array_equal(x, pool[i])
            assert design.gains_[step] == pytest.approx(gains[i])
            precision, free = precision + np.outer(V[i], V[i]), free - {i}
            np.testing.assert_allclose(design.A_, np.linalg.inv(precision))
            assert design.trace_ == pytest.approx(np.trace(np.linalg.inv(precision)))
        assert design.indices_ == [int(np.flatnonzero(np.all(pool == x, axis=1))[0]) for x in design.points_]
        again = hg.active.SequentialDesign(pool, criterion=criterion, ridge=0.1, intercept=intercept)
        again.add(np.array(design.points_))
        np.testing.assert_allclose(again.A_, design.A_)
        rows = hg.active.SequentialDesign(pool, criterion=criterion, ridge=0.1, intercept=intercept).add_index(
            design.indices_
        )
        np.testing.assert_allclose(rows.A_, design.A_)
        np.testing.assert_array_equal(rows.ask(), design.ask())

    def test_the_pool_is_used_up_or_used_again(self, rng):
        pool = rng.normal(size=(3, 2))
        design = hg.active.SequentialDesign(pool)
        assert sorted(map(tuple, design.ask(3))) == sorted(map(tuple, pool))
        with pytest.raises(ValueError, match="0 candidates left"):
            design.ask()
        assert len(hg.active.SequentialDesign(pool, replace=True).ask(7)) == 7

    @pytest.mark.parametrize("d", [1, 2, 4])
    def test_quadratics_on_a_ball(self, d, rng):
        for _ in range(20):
            Q = rng.normal(size=(d, d))
            Q, g, radius = Q + Q.T, rng.normal(size=d) * 10.0 ** rng.integers(-2, 2), rng.random() + 0.2
            x = largest_on_ball(Q, g, radius)
            value = x @ Q @ x + 2 * g @ x
            assert np.linalg.norm(x) <= radius * (1 + 1e-9)
            others = rng.normal(size=(2000, d))
            others *= radius * rng.random((2000, 1)) ** (1 / d) / np.linalg.norm(others, axis=1, keepdims=True)
            others = np.vstack([others, others / np.linalg.norm(others, axis=1, keepdims=True) * radius])
            assert value >= np.max(np.sum((others @ Q) * others, axis=1) + 2 * others @ g) - 1e-9
            mu = (Q @ x + g) @ x / (x @ x)  # (μI − Q)x = g
            np.testing.assert_allclose(mu * x - Q @ x, g, atol=1e-6 * (1 + abs(mu)))

    @pytest.mark.parametrize("criterion", ["trace", "variance"])
    @pytest.mark.parametrize("intercept", [0, 1])
    def test_the_best_point_of_a_box(self, criterion, intercept, rng):
        """Against a grid of the box; coordinates are searched exactly."""
        low, high = np.array([-1.0, 0.5]), np.array([2.0, 1.5])
        axes = [np.linspace(a, b, 61) for a, b in zip(low, high)]
        grid = np.array(list(itertools.product(*axes)))
        for _ in range(10):
            V = rng.normal(size=(6, 2 + intercept))
            A = np.linalg.inv(V.T @ V + 0.1 * np.eye(2 + intercept))
            points = np.column_stack([np.ones(len(grid)), grid]) if intercept else grid

            def value(v, A=A):
                variance = np.sum((v @ A) * v, axis=-1)
                return variance if criterion == "variance" else np.sum((v @ A) ** 2, axis=-1) / (1 + variance)

            x = _best_in_box(A, criterion, bool(intercept), low, high)
            assert np.all((x >= low) & (x <= high))
            v = np.concatenate([np.ones(intercept), x])
            assert value(v) >= value(points).max() * (1 - 1e-9)
            start = np.concatenate([np.ones(intercept), (low + high) / 2])
            climbed, reached = _climb(A, criterion, start, intercept, low, high)
            assert reached == pytest.approx(value(climbed))
            for j in range(2):
                along = np.repeat(climbed[None], 61, axis=0)
                along[:, intercept + j] = axes[j]
                assert reached >= value(along).max() * (1 - 1e-9)
            if criterion == "trace":
                for t in _stationary(A, A @ A, start, intercept):
                    around = np.repeat(start[None], 2, axis=0)
                    h = 1e-5 * (1 + abs(t))
                    around[:, intercept] = [t - h, t + h]
                    slope = np.diff(value(around))[0] / (2 * h)
                    assert abs(slope) < 1e-6 * (1 + value(start))


class Scored:
    def __init__(self, scores):
        self.scores = scores

    def decision_function(self, X):
        return self.scores


class Sure(Scored):
    def predict_proba(self, X):
        return self.scores


class Voter:
    def __init__(self, votes):
        self.votes, self.classes_ = votes, np.arange(3)

    def predict(self, X):
        return self.votes


class TestActive:
    def test_criteria(self, rng):
        P, X = rng.dirichlet(np.ones(3), 8), np.zeros((8, 1))
        np.testing.assert_allclose(informativeness(Sure(P), X, "uncertainty"), 1 - P.max(axis=1))
        np.testing.assert_allclose(informativeness(Sure(P), X, "entropy"), -np.sum(P * np.log(P), axis=1))
        ranked = np.sort(P, axis=1)
        np.testing.assert_allclose(informativeness(Sure(P), X, "margin"), ranked[:, 1] - ranked[:, 2])
        np.testing.assert_allclose(informativeness(Scored(P), X, "margin"), ranked[:, 1] - ranked[:, 2])
        np.testing.assert_allclose(informativeness(Scored(P[:, 0] - 0.4), X, "margin"), -np.abs(P[:, 0] - 0.4))
        members = [Voter(rng.integers(0, 3, 8)) for _ in range(5)]
        share = np.array([[np.mean([m.votes[i] == c for m in members]) for c in range(3)] for i in range(8)])
        np.testing.assert_allclose(
            informativeness(members, X, "committee"), -scipy.special.xlogy(share, share).sum(axis=1), atol=1e-15
        )
        chosen = query(Sure(P), X, "uncertainty", batch=3)
        np.testing.assert_array_equal(chosen, np.argsort(P.max(axis=1))[:3])
        np.testing.assert_array_equal(query(None, X, lambda model, X: np.arange(8.0), batch=2), [7, 6])

    def test_labels_saved(self):
        labels = np.array([10, 20, 30, 40])
        random = LabelCurve("random", labels, np.array([[0.5, 0.6, 0.55, 0.8], [0.5, 0.6, 0.75, 0.8]]), [])
        quick = LabelCurve("margin", labels, np.array([[0.5, 0.9, 0.8, 0.9]]), [])
        np.testing.assert_allclose(random.mean, [0.5, 0.6, 0.65, 0.8])
        assert [random.needed(s) for s in (0.5, 0.6, 0.61, 0.8)] == [10, 20, 30, 40]
        assert math.isnan(random.needed(0.81))
        needed, saved = LabelCurves({"random": random, "margin": quick}, "score").labels_saved("margin")
        np.testing.assert_allclose(needed, [10, 20, 30, 40])
        np.testing.assert_allclose(saved, [0.0, 0.0, 1 - 20 / 30, 0.5])

    def test_curves_are_the_loop(self, rng):
        """Fit, score, ask, by hand."""
        X = rng.normal(size=(60, 2))
        y = (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)
        curves = active_curves(
            hg.LogisticRegression(), X[:40], y[:40], X[40:], y[40:], strategies=["margin"], start=6, batch=4, budget=15,
            repeats=2,
        )  # fmt: skip
        for name, curve in curves.curves.items():
            np.testing.assert_array_equal(curve.labels, [6, 10, 14, 15])
            for scores, chosen in zip(curve.scores, curve.chosen):
                assert len(set(chosen)) == len(chosen) == 15
                for k, count in enumerate(curve.labels):
                    model = hg.LogisticRegression().fit(X[chosen[:count]], y[chosen[:count]])
                    assert scores[k] == model.score(X[40:], y[40:])
                    if name == "margin" and count < 15:
                        rest = np.setdiff1d(np.arange(40), chosen[:count])
                        unsure = np.abs(model.predict_proba(X[rest])[:, 1] - 0.5)
                        labelled = chosen[count : curve.labels[k + 1]]
                        assert (
                            np.max(np.abs(model.predict_proba(X[labelled])[:, 1] - 0.5))
                            <= np.sort(unsure)[len(labelled) - 1] + 1e-12
                        )
        starts = [{tuple(chosen[:6]) for chosen in curve.chosen} for curve in curves.curves.values()]
        assert starts[0] == starts[1]
        for wrong in ({"start": 1}, {"start": 15}, {"budget": 41}, {"batch": 0}):
            with pytest.raises(ValueError, match="start"):
                active_curves(hg.LogisticRegression(), X[:40], y[:40], X, y, **{"start": 6, "budget": 15, **wrong})


@pytest.mark.mission("V1")
def test_the_grid_of_ridge_is_as_large_as_the_diagonal_of_the_gram_matrix(rng):
    X = rng.normal(size=(30, 6)) * (rng.random((30, 6)) < 0.4)
    size = np.trace(X.T @ X) / 6
    for form in (X, scipy.sparse.csr_array(X), scipy.sparse.csc_matrix(X)):
        grid = path_grid(hg.Ridge(), form, None, 8)
        np.testing.assert_allclose(grid["alpha"], size * np.geomspace(1e3, 1e-4, 8), rtol=1e-12)
