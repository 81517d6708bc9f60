"""Forests that are continued and forests that are pruned."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg
from hinge._native import core
from hinge.models.trees.arrays import SHAPE, Trees
from hinge.models.trees.pruning import node_risks, prune_trees

pytestmark = pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")  # few members, on purpose

FORESTS = [hg.RandomForestClassifier, hg.RandomForestRegressor, hg.ExtraTreesClassifier, hg.ExtraTreesRegressor]


def table(make, rng, n=300):
    X = rng.normal(size=(n, 5))
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 4] = rng.integers(0, 6, n)
    y = np.nan_to_num(X[:, 0] * X[:, 1]) + (X[:, 4] % 3 == 1) + 0.5 * rng.normal(size=n)
    return X, np.digitize(y, [0.0, 1.0]) if "Classifier" in make.__name__ else y


def assert_same_forest(a, b):
    assert len(a.trees_) == len(b.trees_)
    for name in ("start", *SHAPE, "sets", "value"):
        np.testing.assert_array_equal(getattr(a.trees_, name), getattr(b.trees_, name), err_msg=name)
    np.testing.assert_array_equal(a.feature_importances_, b.feature_importances_)


@pytest.mark.mission("T4")
@pytest.mark.parametrize("make", FORESTS, ids=lambda m: m.__name__)
@pytest.mark.parametrize("settings", [{}, {"ccp_alpha": 0.004}, {"oob_score": True, "bootstrap": True}], ids=str)
def test_a_forest_grown_in_two_fits_is_the_forest_grown_in_one(make, settings, rng):
    X, y = table(make, rng)
    settings = settings | {"random_state": 7, "categorical_features": [4], "keep_leaves": True}
    weight = rng.integers(1, 4, len(y)).astype(float)
    whole = make(40, **settings).fit(X, y, sample_weight=weight)
    parts = make(20, warm_start=True, **settings).fit(X, y, sample_weight=weight)
    first = parts.predict(X)
    parts.set_params(n_estimators=40).fit(X, y, sample_weight=weight)
    assert_same_forest(parts, whole)
    np.testing.assert_array_equal(parts.predict(X), whole.predict(X))
    np.testing.assert_array_equal(parts.leaves_, whole.leaves_)
    if "oob_score" in settings:
        assert parts.oob_score_ == whole.oob_score_
    parts.set_params(warm_start=False, n_estimators=20).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(parts.predict(X), first)


@pytest.mark.mission("T4")
def test_what_a_continued_forest_cannot_do_is_an_error(rng):
    X, y = table(hg.RandomForestClassifier, rng, 60)
    forest = hg.RandomForestClassifier(5, warm_start=True).fit(X, y)
    with pytest.warns(UserWarning, match="adds no trees"):
        forest.fit(X, y)
    with pytest.raises(ValueError, match="at least the 5 trees"):
        forest.set_params(n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match="classes of the first fit"):
        forest.set_params(n_estimators=8).fit(X, y > 0)
    with pytest.raises(ValueError, match="features"):
        forest.fit(X[:, :3], y)
    # Other rows may be added, with the classes there were; trees keep their draws for a generator as seed.
    forest.fit(np.vstack([X, X]), np.append(y, y))
    assert len(forest.trees_) == 8
    with pytest.raises(ValueError, match="ccp_alpha"):
        hg.RandomForestClassifier(2, ccp_alpha=-1.0).fit(X, y)


@pytest.mark.mission("T2", "T4")
@pytest.mark.parametrize("make", FORESTS[:2], ids=lambda m: m.__name__)
def test_pruning_a_forest_prunes_every_tree_alone(make, rng):
    X, y = table(make, rng, 200)  # as many bins as rows: the forest's trees are those of the exact search
    alpha, trees = 0.006, 6
    settings = {"random_state": 3, "max_features": None}
    pruned = make(trees, ccp_alpha=alpha, **settings).fit(X, y)
    assert pruned.trees_.node_count < make(trees, **settings).fit(X, y).trees_.node_count
    single = hg.DecisionTreeClassifier if "Classifier" in make.__name__ else hg.DecisionTreeRegressor
    order = core.order_by_content(X, np.asarray(y, dtype=float))
    for t in range(trees):
        drawn = core.bootstrap(order, None, len(y), pruned._seed, t + 1)
        alone = single(ccp_alpha=alpha).fit(X, y, sample_weight=drawn)
        at = pruned.trees_.nodes(t)
        assert at.stop - at.start == alone.trees_.node_count
        np.testing.assert_allclose(pruned.trees_.sums(X, t, t + 1), alone.trees_.sums(X), rtol=1e-12)


@pytest.mark.mission("T2")
def test_many_trees_are_pruned_as_each_is(rng):
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    trees = []
    for k in range(5):
        tree = hg.DecisionTreeRegressor(max_depth=k + 2).fit(X, y + X[:, k % 3])
        trees.append(tree.trees_)
    together = trees[0]
    for other in trees[1:]:
        together = together.followed_by(other)
    for alpha in (0.0, 0.003, 0.02, 10.0):
        pruned = prune_trees(together, alpha)
        for t, tree in enumerate(trees):
            alone, at = prune_trees(tree, alpha), pruned.nodes(t)
            for name in (*SHAPE, "value", "gain", "weight", "count", "impurity"):
                np.testing.assert_array_equal(getattr(pruned, name)[at], getattr(alone, name))
            # The smallest best subtree: cutting any branch costs more than α for each leaf saved.
            risk, left = node_risks(alone), alone.left
            branch, leaves = risk.copy(), np.ones(len(risk))
            for i in np.flatnonzero(alone.feature >= 0)[::-1]:
                branch[i], leaves[i] = branch[left[i]] + branch[left[i] + 1], leaves[left[i]] + leaves[left[i] + 1]
                assert risk[i] - branch[i] > alpha * (leaves[i] - 1)
    assert isinstance(pruned, Trees)
    assert pruned.node_count == 5  # nothing but roots


@pytest.mark.mission("T2")
def test_pruned_forests_agree_with_scikit_learn_in_size(rng):
    from sklearn.ensemble import RandomForestRegressor

    X = rng.normal(size=(500, 4))
    y = np.sin(2 * X[:, 0]) + 0.5 * rng.normal(size=500)
    sizes = []
    for make in (hg.RandomForestRegressor, RandomForestRegressor):
        forest = make(30, ccp_alpha=0.01, random_state=0).fit(X, y)
        leaves = forest.apply(X)
        sizes.append(np.mean([len(np.unique(leaves[:, t])) for t in range(30)]))
    assert sizes[0] == pytest.approx(sizes[1], rel=0.15)  # other draws of the same distribution
