"""Rivals, constants and probes of a diagnosis: which models are tried, with which settings, and what they are compared by."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hinge as hg
from hinge.explain.diagnosis.alternatives import (
    KernelRival,
    constant_held,
    depends_on_scale,
    measure_probes,
    measure_rivals,
    richer_models,
    strength_changes,
)
from hinge.models.kernel.approximate import Nystroem
from hinge.select.estimate import Estimate
from hinge.select.measure import make_measure
from hinge.select.resample import Resampler
from hinge.select.ridge import RidgeCV

# --- Richer classes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("components", "size"), [(4, 4), (200, 5)])
def test_the_kernel_rival_is_a_linear_model_on_features_of_standardised_columns(components, size, rng):
    """At most half as many features as rows; a constant column is only centred."""
    A = np.column_stack([5.0 + 3.0 * rng.normal(size=(11, 2)), np.full(11, 7.0)])
    y, new = rng.normal(size=11), 5.0 + rng.normal(size=(4, 3))
    scale = np.array([*A[:, :2].std(axis=0), 1.0])
    Z, at = (A - A.mean(axis=0)) / scale, (new - A.mean(axis=0)) / scale
    features = Nystroem(gamma=1 / 3, n_components=size, random_state=0).fit(Z)
    assert features.transform(Z).shape[1] == size
    twin = hg.Ridge().fit(features.transform(Z), y)
    assert KernelRival(hg.Ridge(), components).fit(A, y).predict(new) == pytest.approx(
        twin.predict(features.transform(at))
    )
    labels = np.where(y > np.median(y), "b", "a")
    classifier = KernelRival(hg.LogisticRegression(), components).fit(A, labels)
    expected = hg.LogisticRegression().fit(features.transform(Z), labels).predict_proba(features.transform(at))
    assert classifier.predict_proba(new) == pytest.approx(expected)
    assert list(classifier.classes_) == ["a", "b"]


def test_one_row_has_one_feature():
    assert KernelRival(hg.LinearRegression()).fit(np.ones((1, 2)), [3.0]).predict(np.zeros((1, 2))) == pytest.approx(
        [3.0]
    )


BOTH = {"boosted trees", "an RBF kernel"}


@pytest.mark.parametrize(
    ("model", "columns", "expected"),
    [
        (hg.Ridge(), 5000, BOTH), (hg.Ridge(), 5001, {"an RBF kernel"}), (hg.SVR(), 3, {"boosted trees"}),
        (hg.DecisionTreeRegressor(), 3, BOTH), (hg.RandomForestRegressor(), 3, {"an RBF kernel"}),
        (hg.HistGradientBoostingRegressor(), 3, {"an RBF kernel"}), (hg.MLPRegressor(), 3, BOTH), (hg.SVR(), 5001, set()),
    ],
)  # fmt: skip
def test_richer_classes_are_not_the_class_itself(model, columns, expected):
    """Several trees are not compared with boosted trees, nor kernels with a kernel; wide tables have no trees."""
    assert set(richer_models(model, sp.csr_array((3, columns)))) == expected


@pytest.mark.parametrize(("rows", "leaves", "least"), [(999, 8, 10), (1000, 31, 20)])
def test_few_rows_get_small_trees(rows, leaves, least):
    for model, kind in (
        (hg.Ridge(), hg.HistGradientBoostingRegressor),
        (hg.LogisticRegression(), hg.HistGradientBoostingClassifier),
    ):
        found = richer_models(model, np.empty((rows, 2)))["boosted trees"]
        assert type(found) is kind
        assert (found.max_leaf_nodes, found.min_samples_leaf, found.max_iter) == (leaves, least, 100)
        assert found.early_stopping is False


def test_the_rival_has_an_inner_model_of_the_same_task_and_stays_in_the_pipeline():
    for model, kind in ((hg.Ridge(), RidgeCV), (hg.LogisticRegression(), hg.LogisticRegression)):
        inner = richer_models(model, np.empty((9, 2)))["an RBF kernel"].inner
        assert type(inner) is kind
    assert inner.C == 10.0
    assert richer_models(hg.Ridge(), np.empty((9, 2)))["an RBF kernel"].inner.alphas == pytest.approx(
        10.0 ** np.linspace(-3, 2, 11)
    )
    inside = richer_models(make_pipeline(StandardScaler(), hg.Ridge()), np.empty((9, 2)))["boosted trees"]
    assert [type(step) for _, step in inside.steps] == [StandardScaler, hg.HistGradientBoostingRegressor]


def data_of(model, X, y, folds=2):
    """Rows dealt to the folds in turn."""
    measure, place = make_measure(model, y), np.arange(len(y)) % folds
    splits = [(np.flatnonzero(place != k), np.flatnonzero(place == k)) for k in range(folds)]
    return Resampler(X, y, measure.code(y), measure, splits, 0)


def test_rivals_are_measured_on_the_same_folds_and_sorted(rng):
    X = rng.normal(size=(40, 2))
    y = np.sin(3 * X[:, 0]) + 3.0 + 0.01 * rng.normal(size=40)
    data, model = data_of(hg.Ridge(), X, y), hg.Ridge()
    held = data.held_out(model)
    found = measure_rivals(data, model, held)
    assert {r.name for r in found} == BOTH | {"a constant"}
    assert [r.risk.value for r in found] == sorted(r.risk.value for r in found)
    for name, rival in richer_models(model, X).items():
        losses = np.concatenate(
            [(y[test] - rival.fit(X[learn], y[learn]).predict(X[test])) ** 2 for learn, test in data.folds]
        )
        measured = next(r for r in found if r.name == name)
        assert measured.risk.value == pytest.approx(losses.mean())
        assert measured.advantage.value == pytest.approx(held.losses.mean() - losses.mean())


def test_tables_without_dense_finite_numbers_have_no_kernel_rival(rng):
    X, y = rng.normal(size=(24, 2)), rng.normal(size=24)
    gaps = np.where(X > 1.5, np.nan, X)
    gaps[0, 0] = np.nan
    for table, expected in ((X, True), (X.astype(int), True), (sp.csr_array(X), False), (gaps, False)):
        model = hg.HistGradientBoostingRegressor(max_iter=2)
        data = data_of(model, table, y)
        names = {r.name for r in measure_rivals(data, model, data.held_out(model))}
        assert ("an RBF kernel" in names) == expected
    piped = make_pipeline(SimpleImputer(), hg.Ridge())
    data = data_of(piped, gaps, y)  # the steps before decide what the rival sees
    assert "an RBF kernel" in {r.name for r in measure_rivals(data, piped, data.held_out(piped))}


@pytest.mark.parametrize("kind", ["squared error", "absolute error", "Brier score", "error rate"])
def test_the_constant_of_every_fold(kind, rng):
    y = rng.exponential(size=15) if "error" in kind and kind != "error rate" else rng.integers(0, 3, 15)
    model = hg.Ridge() if "error" in kind and kind != "error rate" else hg.LogisticRegression()
    measure = make_measure(model if kind != "error rate" else hg.LinearSVC(), y, kind)
    folds = [(np.arange(15)[np.arange(15) % 3 != k], np.arange(15)[np.arange(15) % 3 == k]) for k in range(3)]
    found = constant_held(SimpleNamespace(measure=measure, folds=folds, targets=measure.code(y)))
    losses, train = [], []
    for learn, test in folds:
        shares = (
            np.bincount(y[learn], minlength=3) / len(learn) if "error" not in kind or kind == "error rate" else None
        )
        mean, median = np.mean(y[learn]), np.median(y[learn])
        loss = {
            "squared error": lambda t, a=mean: (t - a) ** 2,
            "absolute error": lambda t, a=median: np.abs(t - a),
            "Brier score": lambda t, p=shares: 0.5 * np.sum((np.eye(3)[t] - p) ** 2, axis=1),
            "error rate": lambda t, p=shares: (t != np.argmax(p)).astype(float),
        }[kind]
        losses.append(loss(y[test]))
        train.append(np.mean(loss(y[learn])))
    assert found.losses == pytest.approx(np.concatenate(losses))
    assert found.train == pytest.approx(train)
    assert list(found.rows) == [i for _, test in folds for i in test]
    assert list(found.fold) == [0] * 5 + [1] * 5 + [2] * 5


# --- Penalties ------------------------------------------------------------------------------------------------------


def changes(model):
    return [(c.parameter, c.value, c.tried, c.more) for c in strength_changes(model)]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (hg.Ridge(alpha=2.0), [("alpha", 2.0, 20.0, True), ("alpha", 2.0, 0.2, False)]),
        (hg.LogisticRegression(C=2.0), [("C", 2.0, 0.2, True), ("C", 2.0, 20.0, False)]),
        (hg.Learner(penalty=hg.L1(0.5)), [("lam", 0.5, 5.0, True), ("lam", 0.5, 0.05, False)]),
        (hg.Ridge(alpha=0.0), [("alpha", 0.0, 1.0, True)]), (hg.LogisticRegression(C=np.inf), [("C", np.inf, 1.0, True)]),
        (hg.DecisionTreeRegressor(min_samples_leaf=3), [
            ("min_samples_leaf", 3.0, 30.0, True), ("min_samples_leaf", 3.0, 1.0, False),
        ]),
        (hg.DecisionTreeRegressor(min_samples_leaf=16), [
            ("min_samples_leaf", 16.0, 160.0, True), ("min_samples_leaf", 16.0, 2.0, False),
        ]),
        (hg.DecisionTreeRegressor(min_samples_leaf=1), [("min_samples_leaf", 1.0, 10.0, True)]),
        (hg.DecisionTreeRegressor(min_samples_leaf=0.01), [
            ("min_samples_leaf", 0.01, 0.1, True), ("min_samples_leaf", 0.01, 0.001, False),
        ]),
        (hg.GradientBoostingRegressor(min_samples_leaf=2), [("min_samples_leaf", 2.0, 20.0, True), ("min_samples_leaf", 2.0, 1.0, False)]),
        (hg.LinearRegression(positive=True), []), (hg.Learner(penalty=hg.L1(0.0)), []), (hg.GaussianNB(), []),
    ],
    ids=lambda part: repr(part) if not isinstance(part, list) else "",
)  # fmt: skip
def test_which_strengths_are_tried(model, expected):
    """Ten times more penalty and ten times less; C is its reciprocal; leaves hold whole numbers of rows, at least one."""
    found = changes(model)
    assert [(name, more) for name, _, _, more in found] == [(name, more) for name, _, _, more in expected]
    assert [c[1:3] for c in found] == [pytest.approx(c[1:3]) for c in expected]
    for change in strength_changes(model):  # the copy has the setting, and the model still has its own
        settings = change.copy.get_params()
        now = settings["penalty"].lam if change.parameter == "lam" else settings[change.parameter]
        assert now == pytest.approx(change.tried)


def test_least_squares_is_compared_with_ridge():
    (change,) = strength_changes(make_pipeline(StandardScaler(), hg.LinearRegression(fit_intercept=False)))
    ridge = change.copy.steps[-1][1]
    assert type(ridge) is RidgeCV
    assert ridge.alphas == pytest.approx(10.0 ** np.linspace(-3, 5, 17))
    assert ridge.fit_intercept is False
    assert (change.parameter, change.value, change.more) == ("alpha", 0.0, True)
    assert np.isnan(change.tried)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (hg.Ridge(), True), (hg.LogisticRegression(), True), (hg.SVC(), True), (hg.Learner(penalty=hg.L2(0.1)), True),
        (hg.Ridge(alpha=0.0), False), (hg.LinearRegression(), False), (hg.LogisticRegression(C=np.inf), False),
        (hg.DecisionTreeClassifier(), False), (hg.GaussianNB(), False),
        (make_pipeline(StandardScaler(), hg.Ridge()), False),
    ],
    ids=repr,
)  # fmt: skip
def test_which_models_depend_on_the_units_of_their_columns(model, expected):
    """Those with a penalty and no step before them; predictions of the others are the same in any units."""
    assert depends_on_scale(model) is expected


def test_fitted_ensembles_do_not_depend_on_units(rng):
    X, y = rng.normal(size=(12, 2)), rng.normal(size=12)
    assert not depends_on_scale(hg.DecisionTreeRegressor(ccp_alpha=0.1).fit(X, y))
    bag = hg.BaggingRegressor(hg.DecisionTreeRegressor(), n_estimators=2).fit(X, y)
    assert not depends_on_scale(bag)


def probed(model, gains, train=0.5, error=1e-9):
    """The values tried for a model whose copies lower the risk by gains[value]."""
    order = []

    def held_out(copy):
        order.append(copy.get_params().get("alpha", copy.get_params().get("min_samples_leaf")))
        return gains.get(order[-1], 0.0)

    held = SimpleNamespace(
        train_risk=Estimate(train, 0.0), risk=Estimate(2.0, 0.0), minus=lambda gain: Estimate(gain, error)
    )
    found = measure_probes(SimpleNamespace(held_out=held_out), model, held)
    assert [p.tried for p in found] == pytest.approx(order)
    assert [p.gain.value for p in found] == [gains.get(v, 0.0) for v in order]
    return pytest.approx(order)


def test_much_stronger_penalties_are_tried_where_the_fit_is_far_better_on_its_own_rows():
    """Held-out risk 2; below a training risk of 1.6 factors of 10³ and 10⁵ follow, until one clearly gains 5 %."""
    few, all_ = [10.0, 0.1], [10.0, 0.1, 1e3, 1e5]
    assert probed(hg.Ridge(), {}) == all_
    assert probed(hg.Ridge(), {}, train=1.59) == all_
    assert probed(hg.Ridge(), {}, train=1.6) == few
    assert probed(hg.Ridge(), {10.0: 0.11}) == few
    assert probed(hg.Ridge(), {10.0: 0.09}) == all_
    assert probed(hg.Ridge(), {10.0: 0.11}, error=0.1) == all_  # not clear
    assert probed(hg.Ridge(), {0.1: 0.5}) == all_  # less penalty
    assert probed(hg.Ridge(), {1e3: 0.11}) == [10.0, 0.1, 1e3]
    assert probed(hg.Ridge(alpha=0.0), {}) == [1.0]
    assert probed(hg.DecisionTreeRegressor(min_samples_leaf=10), {}) == [100, 1]


def test_the_strength_that_ridge_regression_chose_is_reported():
    held = SimpleNamespace(train_risk=Estimate(1.0, 0.0), risk=Estimate(1.0, 0.0), minus=lambda g: Estimate(g, 0.1))
    rows = []
    data = SimpleNamespace(
        X=np.empty((7, 1)), held_out=lambda copy: 0.25,
        fit=lambda copy, chosen: (rows.append(list(chosen)), SimpleNamespace(alpha_=31.0, steps=None))[1],
    )  # fmt: skip
    (found,) = measure_probes(data, hg.LinearRegression(), held)
    assert (found.parameter, found.value, found.tried, found.more, found.gain.value) == ("alpha", 0.0, 31.0, True, 0.25)
    assert rows == [list(range(7))]
