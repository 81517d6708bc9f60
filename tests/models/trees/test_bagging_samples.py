"""Bagging on other samples than bootstraps of rows, and the paths of trees."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg


@pytest.fixture
def table(rng):
    X = rng.normal(size=(120, 6))
    return X, X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.1 * rng.normal(size=120)


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")  # few members, on purpose
def test_pasting_draws_every_row_at_most_once(table):
    X, y = table
    model = hg.BaggingRegressor(hg.Ridge(alpha=0.1), 5, bootstrap=False, max_samples=0.5, oob_score=True).fit(X, y)
    assert [len(bag) for bag in model.bags_] == [60] * 5
    assert len({tuple(bag) for bag in model.bags_}) == 5
    first = hg.Ridge(alpha=0.1).fit(X[model.bags_[0]], y[model.bags_[0]])
    np.testing.assert_allclose(model.estimators_[0].coef_, first.coef_, rtol=1e-9)
    assert np.isfinite(model.oob_score_)
    whole = hg.BaggingRegressor(hg.Ridge(alpha=0.1), 3, bootstrap=False).fit(X, y)
    np.testing.assert_allclose(whole.predict(X), hg.Ridge(alpha=0.1).fit(X, y).predict(X), rtol=1e-9)
    with pytest.raises(ValueError, match="oob_score needs bootstrap"):
        hg.BaggingRegressor(bootstrap=False, oob_score=True).fit(X, y)


def test_random_subspaces(table):
    X, y = table
    model = hg.BaggingRegressor(hg.Ridge(), 8, max_features=2, bootstrap=False).fit(X, y)
    assert all(len(np.unique(c)) == 2 for c in model.estimators_features_)
    mean = np.mean([hg.Ridge().fit(X[:, c], y).predict(X[:, c]) for c in model.estimators_features_], axis=0)
    np.testing.assert_allclose(model.predict(X), mean, rtol=1e-9)
    repeated = hg.BaggingClassifier(n_estimators=8, max_features=0.9, bootstrap_features=True).fit(X, y > 0)
    assert any(len(np.unique(c)) < len(c) == 5 for c in repeated.estimators_features_)
    with pytest.raises(ValueError, match="max_features"):
        hg.BaggingRegressor(max_features=7).fit(X, y)


def test_decision_paths_go_from_the_root_to_the_leaf(table):
    X, y = table
    tree = hg.DecisionTreeRegressor(max_depth=4).fit(X, y)
    path = tree.decision_path(X).toarray()
    assert np.all(path[:, 0] == 1)
    rows = np.arange(len(X))
    assert np.all(path[rows, tree.apply(X)] == 1)
    np.testing.assert_array_equal(path.sum(axis=1), tree.trees_.depths()[tree.apply(X)] + 1)
    np.testing.assert_array_equal(
        path.sum(axis=0), tree.trees_.count
    )  # every node is passed by the rows it was grown on
    forest = hg.RandomForestRegressor(4, max_depth=3).fit(X, y)
    together, start = forest.decision_path(X)
    np.testing.assert_array_equal(np.diff(start).sum(), together.shape[1])
    for t in range(4):
        part = together[:, start[t] : start[t + 1]].toarray()
        assert np.all(part[:, 0] == 1)
        assert np.all(part[rows, forest.apply(X)[:, t]] == 1)


@pytest.mark.parametrize("classes", [2, 3])
def test_staged_forms_of_adaboost_end_at_the_final_ones(table, classes):
    X, f = table
    y = np.digitize(f, np.quantile(f, np.arange(1, classes) / classes))
    model = hg.AdaBoostClassifier(n_estimators=6).fit(X, y)
    for staged, final in (
        (model.staged_decision_function(X), model.decision_function(X)),
        (model.staged_predict_proba(X), model.predict_proba(X)),
        (model.staged_predict(X), model.predict(X)),
    ):
        *_, last = staged
        np.testing.assert_allclose(last, final)
    scores = list(model.staged_score(X, y))
    assert scores[-1] == pytest.approx(model.score(X, y))
    shorter = hg.AdaBoostClassifier(n_estimators=2).fit(X, y)
    assert scores[1] == pytest.approx(shorter.score(X, y))
