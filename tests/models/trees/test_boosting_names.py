"""Boosting under both of scikit-learn's names: every parameter and attribute does what its documentation states."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn import ensemble

import hinge as hg
from hinge._native import core
from hinge.models.trees.arrays import SHAPE
from hinge.models.trees.boosting_loss import BoostedLoss, rounds_of
from hinge.models.trees.boosting_options import WeightFacts, boosting_options
from hinge.models.trees.inputs import Binned, Coder

NAMES = [
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
]


def make(rng, n=500, d=6):
    X = rng.normal(size=(n, d))
    return X, X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.3 * rng.normal(size=n)


def assert_same_trees(a, b):
    for name in ("start", *SHAPE, "value"):
        np.testing.assert_array_equal(getattr(a.trees_, name), getattr(b.trees_, name), err_msg=name)


@pytest.mark.mission("T8")
@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_of_scikit_learn_is_taken_by_the_same_name(name):
    theirs = set(inspect.signature(getattr(ensemble, name)).parameters)
    assert theirs <= set(inspect.signature(getattr(hg, name)).parameters)
    methods = {m for m in dir(getattr(ensemble, name)) if not m.startswith("_") and "request" not in m}
    assert methods - {"n_iter_"} <= set(dir(getattr(hg, name)))


@pytest.mark.mission("T8")
def test_only_the_import_changes(rng):
    X, y = make(rng, 1500)
    train, test = slice(0, 1000), slice(1000, None)
    given = {
        "n_estimators": 120, "max_depth": 3, "learning_rate": 0.1, "subsample": 0.8, "max_features": "sqrt",
        "min_samples_leaf": 5, "min_samples_split": 12, "max_leaf_nodes": None,
    }  # fmt: skip
    for name, target in (("GradientBoostingRegressor", y), ("GradientBoostingClassifier", np.digitize(y, [-0.5, 0.5]))):
        models = [
            [getattr(m, name)(random_state=k, **given).fit(X[train], target[train]) for k in range(4)]
            for m in (hg, ensemble)
        ]
        # Rows and columns are drawn at random: the means of the draws differ by less than five standard errors.
        scores = np.array([[model.score(X[test], target[test]) for model in draws] for draws in models])
        spread = np.sqrt(scores.var(axis=1, ddof=1).sum() / 4)
        assert scores[0].mean() > scores[1].mean() - 5 * spread
        ours, theirs = models[0][0], models[1][0]
        assert ours.n_estimators_ == theirs.n_estimators_ == 120
        assert ours.apply(X).shape == theirs.apply(X).shape
        assert ours.train_score_.shape == theirs.train_score_.shape
        assert len(list(ours.staged_predict(X[:2]))) == 120


@pytest.mark.mission("T8")
def test_rounds_have_two_names_and_one_meaning(rng):
    X, y = make(rng)
    a = hg.GradientBoostingRegressor(n_estimators=15).fit(X, y)
    b = hg.GradientBoostingRegressor(max_iter=15).fit(X, y)
    assert_same_trees(a, b)
    hist = [hg.HistGradientBoostingRegressor(**{name: 15}).fit(X, y) for name in ("max_iter", "n_estimators")]
    assert_same_trees(*hist)
    assert a.n_iter_ == a.n_estimators_ == 15
    hg.GradientBoostingRegressor(n_estimators=7, max_iter=7).fit(X, y)
    with pytest.raises(ValueError, match="two names of one thing"):
        hg.GradientBoostingRegressor(n_estimators=7, max_iter=8).fit(X, y)
    with pytest.raises(ValueError, match="'n_estimators' parameter"):
        hg.GradientBoostingRegressor(n_estimators=0).fit(X, y)
    longer = hg.GradientBoostingRegressor(n_estimators=6, warm_start=True).fit(X, y)
    longer.set_params(n_estimators=15).fit(X, y)
    np.testing.assert_allclose(longer.predict(X), a.predict(X))
    np.testing.assert_allclose(longer.train_score_, a.train_score_)
    sampled = hg.GradientBoostingRegressor(n_estimators=6, subsample=0.5, warm_start=True).fit(X, y)
    first = sampled.oob_improvement_
    sampled.set_params(n_estimators=15).fit(X, y)
    assert len(sampled.oob_improvement_) == len(sampled.oob_scores_) == 15
    np.testing.assert_array_equal(sampled.oob_improvement_[:6], first)
    best = hg.tune(hg.GradientBoostingRegressor(n_estimators=20), X, y, grid=4, cv=3)
    assert set(best.candidates[best.index]) == {"n_estimators"}


@pytest.mark.mission("T8")
def test_when_stopping_early_is_the_default(rng):
    X, y = make(rng, 10_500, 3)
    y = rng.permutation(y)  # nothing to learn: the monitor stops
    assert hg.HistGradientBoostingRegressor(max_iter=60).fit(X, y).n_iter_ < 60
    assert hg.GradientBoostingRegressor(n_estimators=60).fit(X, y).n_iter_ == 60
    assert hg.GradientBoostingRegressor(n_estimators=60, n_iter_no_change=3).fit(X[:900], y[:900]).n_iter_ < 60
    assert hg.HistGradientBoostingRegressor(max_iter=60, n_iter_no_change=3).fit(X[:900], y[:900]).n_iter_ == 60
    assert hg.HistGradientBoostingRegressor(max_iter=60, n_iter_no_change=3).fit(X, y).n_iter_ < 60


@pytest.mark.mission("T8")
def test_features_by_number_share_or_name(rng):
    X, y = make(rng, 300, 9)
    fits = [
        hg.GradientBoostingRegressor(n_estimators=8, max_features=m, random_state=1).fit(X, y)
        for m in (3, 1 / 3, "sqrt", "log2")
    ]
    for other in fits[1:]:
        assert_same_trees(fits[0], other)
    one = hg.GradientBoostingRegressor(n_estimators=8, max_features=1, max_depth=1).fit(X, y).trees_.feature
    assert len(np.unique(one[one >= 0])) > 3  # what a split may choose from is drawn, not the best of all
    assert_same_trees(*(hg.GradientBoostingRegressor(n_estimators=5, max_features=m).fit(X, y) for m in (None, 1.0)))
    with pytest.raises(ValueError, match="max_features"):
        hg.GradientBoostingRegressor(max_features=0.0).fit(X, y)


@pytest.mark.mission("T8")
def test_limits_of_nodes(rng):
    X, y = make(rng, 400)
    weight = rng.integers(1, 4, 400).astype(float)
    free = {"n_estimators": 6, "min_samples_leaf": 1, "max_leaf_nodes": None, "max_depth": 8}
    for w, rows in ((None, 400), (weight, weight.sum())):
        tree = hg.GradientBoostingRegressor(min_samples_split=0.1, **free).fit(X, y, sample_weight=w).trees_
        assert tree.count[tree.feature >= 0].min() >= np.ceil(0.1 * rows)
        assert tree.count.min() < 0.05 * rows
        tree = hg.GradientBoostingRegressor(**free | {"min_samples_leaf": 0.05}).fit(X, y, sample_weight=w).trees_
        assert tree.count.min() >= np.ceil(0.05 * rows)
        tree = hg.GradientBoostingRegressor(min_weight_fraction_leaf=0.05, **free).fit(X, y, sample_weight=w).trees_
        assert tree.count.min() >= np.ceil(0.05 * rows)
    tree = (
        hg.GradientBoostingRegressor(min_weight_fraction_leaf=0.05, **free).fit(X, y, sample_weight=weight / 7).trees_
    )
    assert tree.weight.min() >= 0.05 * (weight / 7).sum() * (1 - 1e-6)  # rows counted by their weights
    with pytest.raises(ValueError, match="min_weight_fraction_leaf"):
        hg.GradientBoostingRegressor(min_weight_fraction_leaf=0.7).fit(X, y)


@pytest.mark.mission("T8")
@pytest.mark.parametrize("weighted", [False, True])
def test_the_least_impurity_decrease_is_that_of_a_regression_tree(weighted, rng):
    X, y = make(rng, 250, 3)  # fewer rows than bins: the same cuts
    weight = rng.uniform(0.5, 2.0, 250) if weighted else None
    for least in (0.0, 0.01, 0.05):
        boosted = hg.GradientBoostingRegressor(
            n_estimators=1, learning_rate=1.0, min_impurity_decrease=least, min_samples_leaf=1, max_leaf_nodes=None,
            max_depth=4,
        ).fit(X, y, sample_weight=weight)  # fmt: skip
        tree = hg.DecisionTreeRegressor(max_depth=4, min_impurity_decrease=least).fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(boosted.predict(X), tree.predict(X), atol=1e-7)


@pytest.mark.mission("T7", "T8")
def test_recorded_losses_are_those_of_the_stages(rng):
    X, y = make(rng, 300)
    weight = rng.uniform(0.5, 2.0, 300)
    labels = np.digitize(y, [-0.5, 0.5])
    model = hg.GradientBoostingRegressor("huber", n_estimators=12).fit(X, y, sample_weight=weight)
    losses = [np.average(hg.Huber().value(y, s), weights=weight) for s in model.staged_predict(X)]
    np.testing.assert_allclose(model.train_score_, losses)
    classifier = hg.GradientBoostingClassifier(n_estimators=12).fit(X, labels)
    losses = [-np.mean(np.log(p[np.arange(300), labels])) for p in classifier.staged_predict_proba(X)]
    np.testing.assert_allclose(classifier.train_score_, losses)
    for scores, p in zip(classifier.staged_decision_function(X), classifier.staged_predict_proba(X)):
        np.testing.assert_allclose(hg.Softmax().inverse_link(scores), p)
    assert len(hg.HistGradientBoostingRegressor(max_iter=3).fit(X, y).train_score_) == 0


@pytest.mark.mission("T7", "T8")
@pytest.mark.parametrize("classes", [2, 3])
def test_out_of_sample_improvement_is_the_fall_of_the_loss_on_rows_left_out(classes, rng):
    X, y = make(rng, 400)
    labels = np.where(y > 0, 1.0, -1.0) if classes == 2 else np.digitize(y, [-0.5, 0.5]).astype(float)
    loss = BoostedLoss(hg.Logistic(), 1) if classes == 2 else BoostedLoss(hg.Softmax(), 3)
    model = hg.GradientBoostingClassifier(n_estimators=10, subsample=0.6, random_state=5).fit(X, labels)
    # The same rounds by hand.
    seed = int(np.random.RandomState(5).randint(np.iinfo(np.int32).max))
    table = Binned(X, Coder(), None, 255, seed).native
    booster = core.Booster(
        table, labels, None, loss.outputs, True, False, boosting_options(model, 6, 400, loss, WeightFacts.of(None, 400))
    )
    booster.start(model.baseline_)
    boost = rounds_of(booster, loss, 0.1, 0.6, 1.0)
    for t in range(10):
        before = booster.scores().T
        boost(seed + 7919 * t)
        out, after = booster.left_out(), booster.scores().T
        assert 100 < len(out) < 220
        unit = 2.0 if classes == 2 else 1.0  # the binomial deviance, as in scikit-learn
        was, now = (unit * loss.mean(labels[out], s[out], None) for s in (before, after))
        assert model.oob_improvement_[t] == pytest.approx(was - now, abs=1e-12)
        assert model.oob_scores_[t] == pytest.approx(now, abs=1e-12)


@pytest.mark.mission("T8")
def test_rows_out_of_the_sample_separate_noise_from_signal(rng):
    X, y = make(rng, 400)
    noise = hg.GradientBoostingRegressor(n_estimators=80, subsample=0.5, max_leaf_nodes=8).fit(X, rng.permutation(y))
    assert noise.oob_improvement_.sum() < 0 < noise.train_score_[0] - noise.train_score_[-1]
    assert not hasattr(hg.GradientBoostingRegressor(n_estimators=3).fit(X, y), "oob_improvement_")


@pytest.mark.mission("T2", "T8")
@pytest.mark.parametrize("alpha", [0.003, 0.02, 10.0])
def test_every_round_is_pruned_as_a_tree_on_its_residuals(alpha, rng):
    X, y = make(rng, 240)  # fewer values than bins: both look at all cuts
    shape = {"max_depth": 4, "min_samples_leaf": 1, "ccp_alpha": alpha}
    model = hg.GradientBoostingRegressor(n_estimators=6, learning_rate=0.5, max_leaf_nodes=None, **shape).fit(X, y)
    scores, leaves = np.full(240, y.mean()), []
    for after in model.staged_predict(X):
        tree = hg.DecisionTreeRegressor(**shape).fit(X, y - scores)
        scores += 0.5 * tree.predict(X)
        leaves.append(tree.get_n_leaves())
        np.testing.assert_allclose(after, scores, atol=1e-9)
    trees = model.trees_
    found = [np.sum(trees.feature[a:b] < 0) for a, b in zip(trees.start[:-1], trees.start[1:])]
    assert found == leaves
    assert min(leaves) < 16  # unpruned, a round has up to 16 leaves
    assert alpha < 10 or leaves == [1] * 6


@pytest.mark.mission("T8")
@pytest.mark.parametrize("classes", [2, 3])
def test_a_score_is_the_start_and_the_shrunken_sum_of_the_trees(classes, rng):
    X, y = make(rng, 300)
    X[rng.random(X.shape) < 0.1] = np.nan
    labels = np.digitize(y, [-0.5, 0.5][: classes - 1])
    frame = pd.DataFrame(X).assign(kind=pd.Categorical(np.where(labels > 0, "a", "b")))
    frame.columns = frame.columns.astype(str)
    model = hg.GradientBoostingClassifier(n_estimators=7, learning_rate=0.2, max_leaf_nodes=6).fit(frame, labels)
    trees = model.estimators_
    assert trees.shape == (7, 1 if classes == 2 else 3)
    sums = np.array([[tree.predict(frame) for tree in row] for row in trees]).sum(axis=0).T
    np.testing.assert_allclose(
        model.baseline_ + 0.2 * sums, model.decision_function(frame).reshape(300, -1), atol=1e-12
    )
    np.testing.assert_array_equal(trees[3, 0].apply(frame), model.apply(frame)[:, 3, 0])
    assert sum(tree.get_n_leaves() for tree in trees.ravel()) == np.sum(model.trees_.feature < 0)
    assert "kind" in trees[0, 0].rules()
    assert not hasattr(hg.GradientBoostingClassifier(), "estimators_")


@pytest.mark.mission("T8")
def test_leaves_start_and_quantile(rng):
    X, y = make(rng, 400)
    model = hg.GradientBoostingRegressor(n_estimators=9, init="zero").fit(X, y)
    assert model.baseline_[0] == 0.0
    leaves = model.apply(X)
    values = model.trees_.value[model.trees_.start[:-1] + leaves, 0]
    np.testing.assert_allclose(values.sum(axis=1), model.predict(X))
    for level in (0.2, 0.8):
        upper = hg.GradientBoostingRegressor("quantile", alpha=level, n_estimators=60, max_leaf_nodes=4).fit(X, y)
        assert np.mean(y <= upper.predict(X)) == pytest.approx(level, abs=0.06)
        named = hg.GradientBoostingRegressor("quantile", quantile=level, n_estimators=60, max_leaf_nodes=4).fit(X, y)
        assert_same_trees(upper, named)
    for wrong, says in (
        ({"init": "one"}, "init"), ({"ccp_alpha": -0.1}, "ccp_alpha"), ({"criterion": "gini"}, "criterion"),
        ({"min_impurity_decrease": -1.0}, "min_impurity_decrease"), ({"min_samples_split": 1}, "min_samples_split"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=says):
            hg.GradientBoostingRegressor(**wrong).fit(X, y)


def test_interactions_by_name_are_the_groups_they_stand_for():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    for name, groups in (("no_interactions", [[0], [1], [2], [3]]),
                         ("pairwise", [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])):  # fmt: skip
        named, spelled = (
            hg.GradientBoostingRegressor(max_iter=20, interaction_cst=c).fit(X, y).predict(X) for c in (name, groups)
        )
        np.testing.assert_array_equal(named, spelled)
    with pytest.raises(ValueError, match="'interaction_cst' parameter"):
        hg.GradientBoostingRegressor(interaction_cst="none").fit(X, y)


def test_without_limits_trees_grow_until_the_leaves_are_small():
    """No limit on leaves and depth: with leaves of single rows one tree at full rate interpolates."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    model = hg.GradientBoostingRegressor(
        max_iter=1, learning_rate=1.0, max_leaf_nodes=None, max_depth=None, min_samples_leaf=1
    ).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)
    assert model.do_early_stopping_ is False
    assert (model.n_trees_per_iteration_, model.is_categorical_) == (1, None)


@pytest.mark.parametrize("classes", [0, 2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_train_scores_are_the_mean_loss(classes, weighted, rng):
    X = rng.normal(size=(300, 3))
    y = rng.integers(0, classes, 300) if classes else rng.normal(size=300)
    weight = rng.random(300) if weighted else None
    cls = hg.GradientBoostingClassifier if classes else hg.GradientBoostingRegressor
    model = cls(n_estimators=4, random_state=0).fit(X, y, sample_weight=weight)
    if classes:
        p = model.predict_proba(X)[np.arange(300), np.searchsorted(model.classes_, y)]
        losses = -np.log(p) * (2.0 if classes == 2 else 1.0)  # the binomial deviance, as in scikit-learn
    else:
        losses = (y - model.predict(X)) ** 2
    assert model.train_score_[-1] == pytest.approx(np.average(losses, weights=weight))
