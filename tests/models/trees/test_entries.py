"""What trees and their ensembles are given: several targets, one class, huge weights, sparse tables of any kind."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.tree

import hinge as hg
from hinge._native import core

CLASSIFIERS = [
    hg.DecisionTreeClassifier, hg.ExtraTreeClassifier, hg.RandomForestClassifier, hg.ExtraTreesClassifier,
    hg.GradientBoostingClassifier, hg.HistGradientBoostingClassifier, hg.AdaBoostClassifier, hg.BaggingClassifier,
]  # fmt: skip
REGRESSORS = [
    hg.DecisionTreeRegressor, hg.ExtraTreeRegressor, hg.RandomForestRegressor, hg.ExtraTreesRegressor,
    hg.GradientBoostingRegressor, hg.HistGradientBoostingRegressor, hg.AdaBoostRegressor, hg.BaggingRegressor,
    hg.AnyBoost, hg.ForwardStagewise,
]  # fmt: skip
EVERY = CLASSIFIERS + REGRESSORS
every = pytest.mark.parametrize("cls", EVERY, ids=lambda c: c.__name__)


def small(cls, **more):
    """The estimator with few members."""
    known = inspect.signature(cls).parameters
    if "n_estimators" in known:
        more.setdefault("n_estimators", 5)
    return cls(**more)


def table(rng, n=60):
    X = rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.6)
    return X, rng.integers(0, 2, n)


@every
def test_weights_whose_sum_overflows_are_refused(cls, rng):
    X, y = table(rng)
    with pytest.raises(ValueError, match="sum of sample_weight overflows"):
        small(cls).fit(X, y, sample_weight=np.full(len(y), 1e308))


@every
@pytest.mark.parametrize("weight", [1e300, 1e-300])
def test_weights_of_any_size_count_alike(cls, weight, rng):
    X, y = table(rng)
    seed = {"random_state": 0} if "random_state" in inspect.signature(cls).parameters else {}
    scaled = small(cls, **seed).fit(X, y, sample_weight=np.full(len(y), weight))
    assert np.all(np.isfinite(scaled.predict(X)))


@every
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.coo_array], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool], ids=lambda t: t.__name__)
def test_sparse_tables_are_predicted_like_dense_ones(cls, form, dtype, rng):
    X, y = table(rng)
    X = np.round(2 * X).astype(dtype)
    seed = {"random_state": 0} if "random_state" in inspect.signature(cls).parameters else {}
    dense, sparse = small(cls, **seed).fit(X, y), small(cls, **seed).fit(form(X), y)
    methods = ["predict", "predict_proba", "decision_function", "apply", "predict_log_proba"]
    for name in (m for m in methods if hasattr(dense, m)):
        wanted = getattr(dense, name)(X)
        np.testing.assert_allclose(getattr(sparse, name)(form(X)), wanted, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(getattr(dense, name)(form(X)), wanted, rtol=1e-12)
    if hasattr(dense, "staged_predict"):
        for a, b in zip(dense.staged_predict(form(X)), dense.staged_predict(X)):
            np.testing.assert_array_equal(a, b)
    if hasattr(dense, "decision_path"):
        dense.decision_path(form(X))


FORESTS = [hg.RandomForestClassifier, hg.ExtraTreesClassifier]
TREES = [hg.DecisionTreeClassifier, hg.ExtraTreeClassifier]


@pytest.mark.parametrize("cls", FORESTS + TREES, ids=lambda c: c.__name__)
@pytest.mark.parametrize("weight", [None, "balanced", "balanced_subsample"])
@pytest.mark.parametrize("bootstrap", [True, False])
def test_class_weights_of_several_targets(cls, weight, bootstrap, rng):
    X = rng.normal(size=(90, 3))
    Y = np.column_stack([rng.integers(0, 3, 90), rng.integers(5, 7, 90)])
    extra = {"bootstrap": bootstrap} if cls in FORESTS else {}
    if weight == "balanced_subsample" and cls in TREES:
        weight = "balanced"
    model = small(cls, class_weight=weight, random_state=0, **extra).fit(X, Y)
    assert model.predict(X).shape == (90, 2)


def test_balanced_subsamples_of_two_equal_targets_weigh_twice(rng):
    """Weights of several targets are multiplied: a class as rare in both has the square of its weight."""
    X = rng.normal(size=(400, 1))
    y = (rng.random(400) < 0.1).astype(int)
    both = np.column_stack([y, y])
    options = {"max_depth": 1, "max_features": None, "n_estimators": 30, "random_state": 0}
    shares = []
    for target in (y, both):
        p = hg.RandomForestClassifier(class_weight="balanced_subsample", **options).fit(np.zeros_like(X), target)
        found = p.predict_proba(np.zeros((1, 1)))
        shares.append((found[0] if isinstance(found, list) else found)[0, 1])
    rare = y.mean()
    assert shares[0] == pytest.approx(0.5)
    assert shares[1] == pytest.approx(1 / rare / (1 / rare + 1 / (1 - rare)), abs=0.03)


@pytest.mark.parametrize("cls", CLASSIFIERS, ids=lambda c: c.__name__)
def test_one_class_alone(cls, rng):
    X = rng.normal(size=(30, 2))
    y = np.array(["only"] * 30)
    if cls is hg.GradientBoostingClassifier:
        with pytest.raises(ValueError, match="one class"):
            small(cls).fit(X, y)
        return
    model = small(cls).fit(X, y)
    assert list(model.classes_) == ["only"]
    assert set(model.predict(X)) == {"only"}
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((30, 1)))


@pytest.mark.parametrize("cls", FORESTS + TREES, ids=lambda c: c.__name__)
def test_one_class_in_one_of_several_targets(cls, rng):
    X = rng.normal(size=(30, 2))
    Y = np.column_stack([np.ones(30, int), rng.integers(0, 3, 30)])
    first, second = small(cls).fit(X, Y).predict_proba(X)
    assert first.shape == (30, 1)
    assert second.shape == (30, 3)


@pytest.mark.parametrize("cls", [c for c in REGRESSORS if "criterion" in inspect.signature(c).parameters and "Boost" not in c.__name__],
                         ids=lambda c: c.__name__)  # fmt: skip
@pytest.mark.parametrize("outputs", [1, 2])
def test_friedman_mse_is_the_squared_error(cls, outputs, rng):
    X, y = rng.normal(size=(80, 3)), rng.normal(size=(80, outputs))
    y = y[:, 0] if outputs == 1 else y
    a, b = (small(cls, criterion=c, random_state=0).fit(X, y).predict(X) for c in ("squared_error", "friedman_mse"))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("cls", [hg.DecisionTreeRegressor, hg.ExtraTreeRegressor, hg.RandomForestRegressor, hg.ExtraTreesRegressor],
                         ids=lambda c: c.__name__)  # fmt: skip
@pytest.mark.parametrize("more", [{}, {"max_leaf_nodes": 6}, {"max_features": 1}], ids=str)
def test_poisson_leaves_never_predict_zero(cls, more, rng):
    X = rng.normal(size=(120, 3))
    y = np.where(X[:, 0] > 0.5, rng.poisson(3.0, 120), 0.0)
    y[0] = 1.0
    assert (
        small(cls, criterion="poisson", random_state=0, bootstrap=False, **more).fit(X, y).predict(X).min() > 0
        if ("bootstrap" in inspect.signature(cls).parameters)
        else small(cls, criterion="poisson", random_state=0, **more).fit(X, y).predict(X).min() > 0
    )


def test_poisson_trees_match_scikit_learn(rng):
    X = rng.normal(size=(300, 3))
    y = rng.poisson(np.exp(X[:, 0])).astype(float)
    ours = hg.DecisionTreeRegressor(criterion="poisson", max_depth=4).fit(X, y)
    theirs = sklearn.tree.DecisionTreeRegressor(criterion="poisson", max_depth=4, random_state=0).fit(X, y)
    deviance = [np.sum(p - y * np.log(p)) for p in (ours.predict(X), theirs.predict(X))]
    assert deviance[0] == pytest.approx(deviance[1], rel=1e-3)


class TestNativeChecks:
    """The compiled entries refuse shapes, codes and sums they would otherwise trust."""

    def sorted(self, rng):
        return core.tree_sorted(rng.normal(size=(20, 3)), np.zeros(3, np.uint8))

    def options(self, **more):
        return {
            "criterion": 0, "classes": 2, "targets": 1, "max_depth": 0, "max_leaf_nodes": 0, "max_features": 0,
            "min_samples_split": 2.0, "min_samples_leaf": 1.0, "min_weight_leaf": 0.0, "min_decrease": 0.0,
            "balanced": [], "random_thresholds": False, "monotone": [],
        } | more  # fmt: skip

    def grow(self, rng, y, weight=None, **more):
        order = np.arange(20, dtype=np.uint32)
        return core.grow_trees(
            self.sorted(rng), y, weight, False, self.options(**more), 1, 0, 0, 20 if more.get("balanced") else 0,
            order, False,
        )  # fmt: skip

    def test_trees(self, rng):
        y = np.arange(20.0) % 2
        self.grow(rng, y)
        bad = [
            ({"y": y + 1}, "codes"),
            ({"y": np.full(20, np.nan), "classes": 0, "criterion": 3}, "codes"),
            ({"y": y[:19]}, "one entry per row"),
            ({"y": y, "weight": np.full(20, 1e308)}, "finite"),
            ({"y": y, "weight": np.full(20, -1.0)}, "negative"),
            ({"y": y, "weight": np.full(20, np.nan)}, "negative"),
            ({"y": y, "balanced": [3]}, "balanced"),
            ({"y": y, "balanced": [0]}, "balanced"),
            ({"y": y, "monotone": [1]}, "monotone"),
            ({"y": y, "targets": 0}, "one entry per row"),
        ]
        for given, word in bad:
            with pytest.raises(ValueError, match=word):
                self.grow(rng, **given)
        with pytest.raises(TypeError, match="table"):
            core.grow_trees(None, y, None, False, self.options(), 1, 0, 0, 0, None, False)

    def test_tables(self, rng):
        X = rng.normal(size=(20, 3))
        with pytest.raises(ValueError, match="categorical"):
            core.tree_sorted(X, np.zeros(2, np.uint8))
        with pytest.raises(ValueError, match="categorical"):
            core.tree_bins(X, None, np.zeros(2, np.uint8), 255, 100, 0, False)
        with pytest.raises(ValueError, match="weight"):
            core.tree_bins(X, np.ones(3), np.zeros(3, np.uint8), 255, 100, 0, False)
        with pytest.raises(ValueError, match="max_bins"):
            core.tree_bins(X, None, np.zeros(3, np.uint8), 1000, 100, 0, False)

    def test_sparse_tables(self, rng):
        value, row, begin = np.ones(3), np.array([0, 1, 0], np.int32), np.array([0, 2, 3], np.int64)
        core.tree_sorted_nonzeros(value, row, begin, 2)
        bad = [
            (value, row, begin, 1), (value[:2], row, begin, 2), (value, np.array([1, 0, 0], np.int32), begin, 2), (value, -row, begin, 2),
            (value, row, np.array([0, 3, 2], np.int64), 2), (value, row, np.array([1, 2, 3], np.int64), 2),
            (value, row * 0, begin, 2), (value, row, np.array([], np.int64), 2),
        ]  # fmt: skip
        for given in bad:
            with pytest.raises(ValueError, match="sparse"):
                core.tree_sorted_nonzeros(*given)
            with pytest.raises(ValueError, match="sparse"):
                core.tree_binned_nonzeros(*given, None, 255, 100, 0)
        cells = core.tree_cells(rng.normal(size=(20, 3)), np.zeros(3, np.uint8))
        with pytest.raises(ValueError, match="random thresholds"):
            core.grow_trees(cells, np.arange(20.0) % 2, None, False, self.options(), 1, 0, 0, 0, None, False)
        bins = core.tree_bins(np.eye(20)[:, :6].copy(), None, np.zeros(6, np.uint8), 255, 100, 0, True)
        with pytest.raises(ValueError, match="share"):
            core.grow_trees(bins, np.arange(20.0) % 2, None, False, self.options(), 1, 0, 0, 0, None, False)

    def test_stumps_and_bags(self, rng):
        with pytest.raises(ValueError, match="codes"):
            core.TreeStumps(self.sorted(rng), np.full(20, 7.0))
        stumps = core.TreeStumps(self.sorted(rng), np.arange(20.0) % 2)
        for weight in (np.full(20, 1e308), np.ones(19), np.full(20, np.inf)):
            with pytest.raises(ValueError, match="weight"):
                stumps.grow(weight, self.options())
        with pytest.raises(ValueError, match="row numbers"):
            core.bootstrap(np.array([5], dtype=np.uint32), None, 1, 0, 0)
        with pytest.raises(ValueError, match="weight"):
            core.bootstrap(np.arange(3, dtype=np.uint32), np.ones(2), 1, 0, 0)

    def test_boosters(self, rng):
        bins = core.tree_bins(rng.normal(size=(20, 3)), None, np.zeros(3, np.uint8), 255, 100, 0, False)
        options = {
            "max_leaves": 4, "max_depth": 0, "by_level": False, "min_split": 2, "l2": 0.0, "min_hessian": 0.0,
            "min_count": 1, "min_gain": 0.0, "prune": 0.0, "category_smoothing": 10.0, "monotone": [], "allowed": [],
        }  # fmt: skip
        y = np.arange(20.0) % 3
        core.Booster(bins, y, None, 3, True, False, options)
        bad = [
            ((y, None, 2, True, False, options), "codes"),
            ((np.full(20, np.inf), None, 1, True, False, options), "codes"),
            ((y, np.full(20, 1e308), 1, True, False, options), "finite"),
            ((y, np.ones(2), 1, True, False, options), "weight"),
            ((y, None, 0, True, False, options), "one entry per row"),
            ((y, None, 1, True, False, options | {"allowed": [[9]]}), "allowed"),
            ((y, None, 1, True, False, options | {"monotone": [1]}), "monotone"),
        ]
        for given, word in bad:
            with pytest.raises(ValueError, match=word):
                core.Booster(bins, *given)
