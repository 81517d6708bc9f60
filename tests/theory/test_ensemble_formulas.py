"""Quantities of boosting, bagging and pruning, each computed again from its definition."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold

import hinge as hg
from hinge._native import core
from hinge.models.trees.inputs import order_of_rows


@pytest.mark.mission("T5")
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_samme_round_by_round(k, rate, rng):
    """α = η (log((1 − err)/err) + log(k − 1)) and w ← w exp(α [miss]), weights of the examples included."""
    X = rng.normal(size=(200, 3))
    y = rng.integers(0, k, 200)
    start = rng.random(200) + 0.1
    base = hg.DecisionTreeClassifier(max_depth=2)
    model = hg.AdaBoostClassifier(base, n_estimators=4, learning_rate=rate).fit(X, y, sample_weight=start)
    assert len(model.estimators_) > 1
    w = start / start.sum()
    for member, alpha, error in zip(model.estimators_, model.estimator_weights_, model.estimator_errors_):
        miss = member.predict(X) != y
        assert error == pytest.approx(w @ miss)
        assert alpha == pytest.approx(rate * (np.log((1 - w @ miss) / (w @ miss)) + np.log(k - 1)))
        w = w * np.exp(alpha * miss)
        w /= w.sum()


@pytest.mark.mission("T5")
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("trees", [True, False])
def test_margins_from_the_votes(k, trees, rng):
    """(vote of the right class − best other vote)/Σ α, from the members' own predictions."""
    X = rng.normal(size=(150, 3))
    y = rng.integers(0, k, 150)
    base = hg.DecisionTreeClassifier(max_depth=2) if trees else hg.GaussianNB()
    model = hg.AdaBoostClassifier(base, n_estimators=5).fit(X, y)
    votes = np.zeros((150, k))
    for member, alpha in zip(model.estimators_, model.estimator_weights_):
        votes[np.arange(150), member.predict(X)] += alpha
    right = votes[np.arange(150), y].copy()
    votes[np.arange(150), y] = -np.inf
    margins = (right - votes.max(axis=1)) / np.sum(model.estimator_weights_)
    np.testing.assert_allclose(model.margins(X, y), margins, atol=1e-12)
    assert np.all(np.abs(model.margins(X, y)) <= 1 + 1e-12)
    np.testing.assert_array_equal((margins > 0)[margins != 0], (model.predict(X) == y)[margins != 0])


@pytest.mark.mission("T5")
@pytest.mark.parametrize("name", ["linear", "square", "exponential"])
@pytest.mark.parametrize("rate", [1.0, 0.6])
def test_adaboost_r2_round_by_round(name, rate, rng):
    """L = loss(|error| / largest), β = L̄/(1 − L̄), w ← w β^{η(1 − L)}, voice η log(1/β); weighted median."""
    X = rng.normal(size=(200, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=200)
    start = rng.random(200) + 0.1
    model = hg.AdaBoostRegressor(n_estimators=5, loss=name, learning_rate=rate).fit(X, y, sample_weight=start)
    assert len(model.estimators_) > 1
    shape = {"linear": lambda e: e, "square": lambda e: e**2, "exponential": lambda e: 1 - np.exp(-e)}[name]
    w = start / start.sum()
    for member, voice, mean in zip(model.estimators_, model.estimator_weights_, model.estimator_errors_):
        error = np.abs(member.predict(X) - y)
        losses = shape(error / error.max())
        beta = (w @ losses) / (1 - w @ losses)
        assert mean == pytest.approx(w @ losses)
        assert voice == pytest.approx(rate * np.log(1 / beta))
        w = w * beta ** (rate * (1 - losses))
        w /= w.sum()
    predictions = np.column_stack([m.predict(X) for m in model.estimators_])
    for row, value in zip(predictions, model.predict(X)):
        order = np.argsort(row)
        cumulative = np.cumsum(model.estimator_weights_[order])
        assert value == row[order][np.argmax(cumulative >= 0.5 * cumulative[-1])]


class Recorder(hg.DecisionTreeRegressor):
    """Keeps what it was fitted to."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        Recorder.seen.append((X.copy(), y.copy(), None if sample_weight is None else sample_weight.copy()))
        return super().fit(X, y, sample_weight=sample_weight)


@pytest.mark.mission("T6")
@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
def test_anyboost_fits_members_to_a_sample_of_the_rows(share, rng):
    """Each member sees about that share of the rows, another one each round, with its own residuals and weights."""
    X = np.column_stack([np.arange(400.0), rng.normal(size=400)])
    y, weight = rng.normal(size=400), rng.random(400) + 0.5
    Recorder.seen = []
    model = hg.AnyBoost(hg.Squared(), Recorder(max_depth=1), n_estimators=4, learning_rate=0.5, subsample=share)
    model.fit(X, y, sample_weight=weight)
    f = np.full(400, np.average(y, weights=weight))
    rows_before = None
    for (A, residual, w), (v, member, _) in zip(Recorder.seen, model.members_):
        rows = A[:, 0].astype(int)
        assert abs(len(rows) - 400 * share) <= 5 * np.sqrt(400 * share * (1 - share))
        np.testing.assert_allclose(residual, (y - f)[rows], atol=1e-10)
        np.testing.assert_array_equal(w, weight[rows])
        if share < 1:
            assert rows_before is None or set(rows) != set(rows_before)
        rows_before = rows
        f = f + v * member.predict(X)
    np.testing.assert_allclose(model.predict(X), f)


@pytest.mark.mission("T2")
def test_alphas_tried_by_pruning_are_geometric_means(rng):
    """Between two neighbouring α of the path the tree is the same; their geometric mean stands for the interval."""
    from hinge.models.trees.pruning import choose_alpha

    X = rng.normal(size=(150, 2))
    y = np.sin(2 * X[:, 0]) + 0.5 * rng.normal(size=150)
    tree, folds = hg.DecisionTreeRegressor(), KFold(3)
    alphas = tree.cost_complexity_pruning_path(X, y).ccp_alphas
    candidates = [*np.sqrt(alphas[:-1] * alphas[1:]), alphas[-1]]
    scores = np.zeros(len(candidates))
    for train, test in folds.split(X):
        for k, alpha in enumerate(candidates):
            scores[k] += hg.DecisionTreeRegressor(ccp_alpha=alpha).fit(X[train], y[train]).score(
                X[test], y[test]
            ) * len(test)
    best = np.flatnonzero(scores >= scores.max() - 1e-9)[-1]
    assert choose_alpha(tree.fit(X, y), X, y, folds) == pytest.approx(candidates[best], rel=1e-9)


def forest_bags(model, X, y, n_estimators):
    order = order_of_rows(X, y)
    return [core.bootstrap(order, None, len(X), model._seed, t + 1) > 0 for t in range(n_estimators)]


@pytest.mark.mission("T4")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cls", [hg.RandomForestRegressor, hg.ExtraTreesRegressor], ids=lambda c: c.__name__)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")  # few members, on purpose
def test_out_of_bag_predictions_of_forests(cls, weighted, rng):
    """Row by row the mean of the trees whose bag lacks it; the score is weighted."""
    X = rng.normal(size=(80, 2))
    y = X[:, 0] + rng.normal(size=80)
    weight = rng.random(80) * 3 + 0.01 if weighted else None
    model = cls(n_estimators=12, bootstrap=True, oob_score=True, random_state=3).fit(X, y, sample_weight=weight)
    bags = np.array(forest_bags(model, X, y, 12))
    predictions = np.array([tree.predict(X) for tree in model.estimators_])
    assert 0.5 < bags.mean() < 0.75
    with np.errstate(invalid="ignore"):
        mean = np.sum(predictions * ~bags, axis=0) / np.sum(~bags, axis=0)
    np.testing.assert_allclose(model.oob_prediction_, mean, rtol=1e-9)
    seen = ~np.isnan(mean)
    w = None if weight is None else weight[seen]
    assert model.oob_score_ == pytest.approx(r2_score(y[seen], mean[seen], sample_weight=w))


@pytest.mark.mission("T4")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")  # few members, on purpose
def test_out_of_bag_decisions_of_forests(weighted, rng):
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] + rng.normal(size=80) > 0).astype(int)
    weight = rng.random(80) * 3 + 0.01 if weighted else None
    model = hg.RandomForestClassifier(n_estimators=12, oob_score=True, random_state=3).fit(X, y, sample_weight=weight)
    bags = np.array(forest_bags(model, X, y.astype(float), 12))
    shares = np.array([tree.predict_proba(X) for tree in model.estimators_])
    with np.errstate(invalid="ignore"):
        mean = np.sum(shares * ~bags[:, :, None], axis=0) / np.sum(~bags, axis=0)[:, None]
    np.testing.assert_allclose(model.oob_decision_function_, mean, rtol=1e-9)
    seen = ~np.isnan(mean[:, 0])
    right = np.argmax(mean[seen], axis=1) == y[seen]
    assert model.oob_score_ == pytest.approx(np.average(right, weights=None if weight is None else weight[seen]))


@pytest.mark.mission("T4")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("more", [{}, {"max_features": 1}, {"max_samples": 0.4, "bootstrap": False}], ids=str)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")  # few members, on purpose
def test_out_of_bag_of_bagging(weighted, classes, more, rng):
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int) if classes else X[:, 0] + rng.normal(size=60)
    weight = rng.random(60) * 3 + 0.01 if weighted else None
    cls = hg.BaggingClassifier if classes else hg.BaggingRegressor
    model = cls(n_estimators=9, oob_score=True, random_state=1, **more).fit(X, y, sample_weight=weight)
    sums, count = np.zeros((60, 2 if classes else 1)), np.zeros(60)
    for member, rows, columns in zip(model.estimators_, model.estimators_samples_, model.estimators_features_):
        out = ~np.isin(np.arange(60), rows)
        p = member.predict_proba(X[:, columns]) if classes else member.predict(X[:, columns])[:, None]
        sums[out] += p[out]
        count += out
    seen = count > 0
    mean = sums[seen] / count[seen, None]
    w = None if weight is None else weight[seen]
    if classes:
        np.testing.assert_allclose(model.oob_decision_function_[seen], mean)
        assert model.oob_score_ == pytest.approx(np.average(np.argmax(mean, axis=1) == y[seen], weights=w))
    else:
        np.testing.assert_allclose(model.oob_prediction_[seen], mean[:, 0])
        assert model.oob_score_ == pytest.approx(r2_score(y[seen], mean[:, 0], sample_weight=w))
