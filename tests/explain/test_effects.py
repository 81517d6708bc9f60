"""Importances and partial dependence against their definitions, number by number."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hinge as hg
from hinge.explain import importance
from hinge.explain.dependence import _distinct, partial_dependence
from hinge.explain.importance import Importances, LinearScores, idle_columns
from hinge.select.estimate import mean_of
from hinge.select.measure import make_measure

# --- Importances ----------------------------------------------------------------------------------------------------


def orders(seed, d, repeats, n):
    drawn = int(np.random.RandomState(seed).randint(2**31 - 1))
    return drawn, [[np.random.default_rng([drawn, j, r]).permutation(n) for r in range(repeats)] for j in range(d)]


class Odd(RegressorMixin, BaseEstimator):
    """Neither linear nor trees: sin(3x₀) + x₁."""

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        X = np.asarray(X)
        return np.sin(3 * X[:, 0]) + X[:, 1]


@pytest.mark.mission("T4")
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("kind", ["linear", "classifier", "odd", "frame"])
def test_importances_are_falls_of_the_score(kind, weighted, rng):
    X = rng.normal(size=(30, 3))
    y = X @ [1.0, -0.5, 0.2] + 0.1 * rng.normal(size=30)
    weight = rng.random(30) + 0.1 if weighted else None
    if kind == "classifier":
        y = np.where(y + 0.5 * rng.normal(size=30) > 0, "b", "a")
    model = {"classifier": hg.LogisticRegression(), "odd": Odd()}.get(kind, hg.LinearRegression())
    table = pd.DataFrame(X, columns=list("uvw")) if kind == "frame" else X
    model.fit(table, y)
    found = hg.permutation_importance(model, table, y, n_repeats=2, random_state=5, sample_weight=weight)
    score = accuracy_score if kind == "classifier" else r2_score
    base = score(y, model.predict(table), sample_weight=weight)
    _, shuffles = orders(5, 3, 2, 30)
    for j in range(3):
        for r in range(2):
            moved = X.copy()
            moved[:, j] = X[shuffles[j][r], j]
            moved = pd.DataFrame(moved, columns=list("uvw")) if kind == "frame" else moved
            fall = base - score(y, model.predict(moved), sample_weight=weight)
            assert found.importances[j, r] == pytest.approx(fall, abs=1e-12)
    assert found.baseline == pytest.approx(base)
    assert found.names == (tuple("uvw") if kind == "frame" else ("x0", "x1", "x2"))
    assert found.standard_error is None


def test_importances_of_some_rows(rng):
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    weight, model = rng.random(20) + 0.1, Odd().fit(None, None)
    for share, size in ((0.5, 10), (7, 7), (0.99, 19), (1, 1)):
        drawn, _ = orders(5, 1, 1, 1)
        rows = np.random.default_rng(drawn).permutation(20)[:size]
        part = hg.permutation_importance(
            model,
            X,
            y,
            max_samples=share,
            n_repeats=2,
            random_state=5,
            sample_weight=weight,
            scoring="neg_mean_squared_error",
        )
        whole = hg.permutation_importance(
            model,
            X[rows],
            y[rows],
            n_repeats=2,
            random_state=5,
            sample_weight=weight[rows],
            scoring="neg_mean_squared_error",
        )
        assert part.importances == pytest.approx(whole.importances)
        assert part.baseline == pytest.approx(whole.baseline)
    for share in (20, 1.0):  # all rows, as they are
        full = hg.permutation_importance(model, X, y, max_samples=share, random_state=5)
        assert full.baseline == pytest.approx(r2_score(y, model.predict(X)))
    for wrong in (0, 21, 0.01, 1.1, -0.5):
        with pytest.raises(ValueError, match="max_samples"):
            hg.permutation_importance(model, X, y, max_samples=wrong)
    with pytest.raises(ValueError, match="n_repeats"):
        hg.permutation_importance(model, X, y, n_repeats=0)
    assert hg.permutation_importance(model, X, y, n_repeats=1).importances.shape == (2, 1)
    table = Importances(np.array([[1.0, 3.0, 8.0], [0.0, 0.0, 6.0]]), ("a", "b"), 0.5)
    assert table.importances_mean == pytest.approx([4.0, 2.0])
    assert table.importances_std == pytest.approx([np.sqrt(26 / 3), np.sqrt(8.0)])


def test_rises_of_a_loss(rng, monkeypatch):
    """With errors over rows; where all columns would take too long, once and on fewer rows, but at least 300."""
    X, y = rng.normal(size=(700, 3)), rng.normal(size=700)
    model = hg.Ridge().fit(X, y)
    model.coef_[2] = 0.0
    measure = make_measure(model, y)
    base = (y - model.predict(X)) ** 2

    def rises(rows, repeats):
        _, shuffles = orders(2, 3, repeats, rows)
        expected = np.zeros((3, repeats, rows))
        for j in (0, 1):
            for r in range(repeats):
                moved = X[:rows].copy()
                moved[:, j] = moved[shuffles[j][r], j]
                expected[j, r] = (y[:rows] - model.predict(moved)) ** 2 - base[:rows]
        return expected

    def check(found, rows, repeats):
        expected = rises(rows, repeats)
        assert found.importances == pytest.approx(expected.mean(axis=2))
        errors = [mean_of(expected[j].mean(axis=0)).standard_error for j in range(3)]
        assert found.standard_error == pytest.approx(errors)
        assert found.baseline == pytest.approx(base[:rows].mean())

    options = {"measure": measure, "n_repeats": 4, "random_state": 2}
    check(hg.permutation_importance(model, X, y, **options), 700, 4)
    # One pass takes a second: 2 columns × 4 repeats take 8.
    for seconds, rows, repeats in ((8.0, 700, 4), (7.9, 700, 1), (2.0, 525, 1), (0.5, 300, 1)):
        ticks = iter([0.0, 1.0])
        monkeypatch.setattr(importance.time, "perf_counter", lambda ticks=ticks: next(ticks))
        check(hg.permutation_importance(model, X, y, seconds=seconds, **options), rows, repeats)


def test_columns_that_cannot_matter(rng):
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    trees = hg.DecisionTreeClassifier(max_depth=1).fit(X, y)
    assert idle_columns(trees, 4).sum() == 3
    used = int(np.flatnonzero(~idle_columns(trees, 4))[0])
    assert used in trees.trees_.feature
    linear = SimpleNamespace(coef_=np.array([0.0, 1.0, 0.0, 2.0]))
    assert list(idle_columns(linear, 4)) == [True, False, True, False]
    linear.coef_ = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0]])
    assert list(idle_columns(linear, 4)) == [True, False, True, False]
    for other, d in (
        (SimpleNamespace(coef_=np.zeros((1, 3))), 4), (SimpleNamespace(coef_=np.zeros((1, 4)), kernel="rbf"), 4),
        (SimpleNamespace(coef_=sp.csr_array((1, 4))), 4), (SimpleNamespace(), 4),
        (make_pipeline(StandardScaler(), hg.DecisionTreeClassifier(max_depth=1)).fit(X, y), 4),
    ):  # fmt: skip
        assert not np.any(idle_columns(other, d))
        assert len(idle_columns(other, d)) == d
    constant = hg.permutation_importance(trees, X, y, n_repeats=2)
    assert np.array_equal(constant.importances[idle_columns(trees, 4)], np.zeros((3, 2)))


def test_which_models_have_linear_scores(rng):
    """Dense floats and one target; the scores must be those of the weights, or nothing is known."""
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    labels = (y > 0).astype(int)
    for model, table, target, known in (
        (hg.Ridge(), X, y, True), (hg.LogisticRegression(), X, labels, True), (hg.Ridge(), X, np.column_stack([y, y]), False),
        (hg.Ridge(), (10 * X).astype(int), y, False), (hg.Ridge(), pd.DataFrame(X), y, False),
        (hg.LogisticRegression(), X, np.arange(20) % 3, False), (hg.DecisionTreeRegressor(), X, y, False),
        (hg.PoissonRegressor(), X, labels, False),
    ):  # fmt: skip
        found = LinearScores.of(model.fit(table, target), table, target, None)
        assert (found is not None) == known
    moved = hg.Ridge().fit(X, y)
    moved.coef_ = moved.coef_ + 1.0
    scores = LinearScores.of(moved, X, y, None)
    assert scores is None or scores.scores == pytest.approx(X @ moved.coef_ + moved.intercept_)


# --- Partial dependence ---------------------------------------------------------------------------------------------


def by_hand(respond, X, columns, values):
    """Rows × points: the response with the columns set to each point."""
    out = []
    for point in values:
        moved = np.array(X, dtype=float)
        moved[:, columns] = point
        out.append(respond(moved))
    return np.stack(out, axis=1)


@pytest.mark.parametrize("columns", [[0], [1, 0]])
@pytest.mark.parametrize("kind", ["linear", "trees", "odd", "probability", "score", "integers"])
def test_dependence_is_the_mean_over_rows_with_columns_set(kind, columns, rng, monkeypatch):
    """Closed forms of linear models and cells of trees give what each row gives by itself, in blocks of any size."""
    from hinge.explain import dependence

    X = rng.normal(size=(23, 3))
    if kind == "integers":
        X = rng.integers(0, 4, size=(23, 3))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * rng.normal(size=23)
    labels = np.digitize(y, np.quantile(y, [0.4, 0.7]))
    model = {
        "linear": hg.Ridge(), "trees": hg.HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=2), "odd": Odd(),
        "probability": hg.DecisionTreeClassifier(max_depth=3), "score": hg.LinearSVC(), "integers": hg.Ridge(),
    }[kind].fit(X, labels if kind in ("probability", "score") else y)  # fmt: skip
    target = 1 if kind in ("probability", "score") else None
    respond = {
        "probability": lambda A: model.predict_proba(A)[:, 1], "score": lambda A: model.decision_function(A)[:, 1],
    }.get(kind, lambda A: model.predict(A))  # fmt: skip
    for block in (200_000, 50):
        monkeypatch.setattr(dependence, "BLOCK", block)
        found = partial_dependence(model, X, columns, grid_resolution=5, kind="both", target=target)
        grids = found.grid_values
        points = [(a,) for a in grids[0]] if len(columns) == 1 else [(a, b) for a in grids[0] for b in grids[1]]
        expected = by_hand(respond, X, columns, points)
        shape = tuple(len(g) for g in grids)
        assert found.individual == pytest.approx(expected.reshape(23, *shape), abs=1e-10)
        assert found.average == pytest.approx(expected.mean(axis=0).reshape(shape), abs=1e-10)
    assert found.features == tuple(columns)
    assert found.names == tuple(f"x{j}" for j in columns)
    assert partial_dependence(model, X, columns, grid_resolution=5, target=target).individual is None
    assert (
        partial_dependence(model, X, columns, grid_resolution=5, kind="individual", target=target).individual
        is not None
    )


def test_grids(rng):
    """All values, if there are few; else evenly between the quantiles."""
    from scipy.stats.mstats import mquantiles

    X = np.column_stack(
        [rng.normal(size=50), np.arange(50) % 5, np.where(np.arange(50) % 7 == 0, np.nan, rng.normal(size=50))]
    )
    model = Odd().fit(None, None)

    def grid(j, **how):
        return partial_dependence(model, X, j, **how).grid_values[0]

    assert grid(1) == pytest.approx(np.arange(5.0))
    assert grid(1, grid_resolution=5) == pytest.approx(np.arange(5.0))
    assert grid(1, grid_resolution=4) == pytest.approx(np.linspace(0, 4, 4))
    assert grid(0, grid_resolution=7) == pytest.approx(np.linspace(*mquantiles(X[:, 0], [0.05, 0.95]), 7))
    assert grid(0, grid_resolution=3, percentiles=(0.0, 1.0)) == pytest.approx(
        np.linspace(X[:, 0].min(), X[:, 0].max(), 3)
    )
    assert grid(0) == pytest.approx(np.unique(X[:, 0]))
    assert len(grid(0, grid_resolution=100)) == 50
    known = X[~np.isnan(X[:, 2]), 2]
    assert grid(2, grid_resolution=4) == pytest.approx(np.linspace(*mquantiles(known, [0.05, 0.95]), 4))
    assert grid(2) == pytest.approx(np.unique(known))
    assert grid(-1) == pytest.approx(np.unique(known))
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    assert partial_dependence(model, frame, "b").features == (1,)
    assert partial_dependence(model, frame, ("b", -2)).features == (1, 0)
    for wrong, message in (
        ("c", "no column 'c'"), (2, "no column 2"), (-3, "no column -3"), ([], "one column or a pair"), ([0, 1, 0], "a pair"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            partial_dependence(model, frame, wrong)
    for ends in ((0.5, 0.5), (-0.1, 0.5), (0.2, 1.1), (0.7, 0.2)):
        with pytest.raises(ValueError, match="percentiles"):
            partial_dependence(model, frame, 0, percentiles=ends)
    with pytest.raises(ValueError, match="kind"):
        partial_dependence(model, frame, 0, kind="mean")


def test_points_that_no_tree_separates_are_evaluated_once(rng):
    X = rng.normal(size=(40, 2))
    model = hg.DecisionTreeRegressor(max_depth=1).fit(X, (X[:, 0] > 0.0).astype(float))
    points = np.array([[-1.0], [2.0], [-0.5], [1.0]])
    kept, back = _distinct(model, (0,), points)
    assert len(kept) == 2
    assert np.array_equal(kept[back] > 0, points > 0)
    for other in (Odd(), make_pipeline(StandardScaler(), hg.DecisionTreeRegressor(max_depth=1)).fit(X, X[:, 0])):
        same, place = _distinct(other, (0,), points)
        assert np.array_equal(same, points)
        assert list(place) == [0, 1, 2, 3]
    texts = np.array([["a"], ["b"]], dtype=object)
    assert np.array_equal(_distinct(model, (0,), texts)[0], texts)


def test_the_class_whose_probability_is_averaged(rng):
    X = rng.normal(size=(30, 2))
    y = np.array(["u", "v", "w"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = hg.LogisticRegression().fit(X, y)
    every = partial_dependence(model, X, 0, target="all", kind="both")
    assert every.average.shape == (30, 3)
    assert every.average.sum(axis=1) == pytest.approx(np.ones(30))
    for k, label in enumerate("uvw"):
        found = partial_dependence(model, X, 0, target=label, kind="both")
        assert found.average == pytest.approx(every.average[:, k])
        assert found.individual == pytest.approx(every.individual[:, :, k])
    assert partial_dependence(model, X, 0).average == pytest.approx(every.average[:, 2])
    named = np.where(X[:, 0] > 0, "all", "none")  # a class of this name is a class
    assert partial_dependence(hg.LogisticRegression().fit(X, named), X, 0, target="all").average.ndim == 1
    two = hg.LinearSVC().fit(X, y == "u")
    assert partial_dependence(two, X, 0, grid=[0.0, 1.0]).average == pytest.approx(
        by_hand(two.decision_function, X, [0], [0.0, 1.0]).mean(axis=0)
    )
