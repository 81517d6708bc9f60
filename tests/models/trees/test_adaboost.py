"""AdaBoost's quick search for stumps finds what the search over all cuts finds."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg
from kit.threads import assert_same_bits


def rounds_of(model, base, X, y):
    """Each member beside a tree fitted in the plain way to the weights of its round, found from the definition."""
    w = np.full(len(y), 1.0 / len(y))
    for member, alpha in zip(model.estimators_, model.estimator_weights_):
        alone = hg.DecisionTreeClassifier(**base).fit(X, y, sample_weight=w)
        yield member.trees_, alone.trees_
        w = w * np.exp(alpha * (alone.predict(X) != y))
        w /= w.sum()


def assert_same_stump(ours, alone):
    for name in ("feature", "left", "threshold", "missing_left", "count"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(alone, name), err_msg=name)
    for name in ("value", "weight", "impurity", "gain"):
        np.testing.assert_allclose(getattr(ours, name), getattr(alone, name), rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.mission("T5")
@pytest.mark.parametrize("criterion", ["gini", "entropy", "misclassification"])
@pytest.mark.parametrize(
    ("n", "limits"),
    [(30, {}), (700, {}), (3000, {"min_samples_leaf": 400}), (1500, {"min_weight_fraction_leaf": 0.3})],
)
def test_every_stump_is_the_best_of_all_cuts(criterion, n, limits, rng):
    # Columns with as many values as rows, with ties (some heavy), with two values, and constant.
    X = rng.normal(size=(n, 9))
    X[:, 1] = np.round(X[:, 1], 2)
    X[:, 2] = np.round(X[:, 2] * 40)
    X[:, 3] = np.where(rng.random(n) < 0.6, 0.0, X[:, 3])
    X[:, 4] = X[:, 4] > 0
    X[:, 5] = 1.0
    y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] / 40 + X[:, 3] + rng.normal(size=n) > 0).astype(int)
    base = {"max_depth": 1, "criterion": criterion, **limits}
    model = hg.AdaBoostClassifier(hg.DecisionTreeClassifier(**base), n_estimators=12).fit(X, y)
    assert len(model.estimators_) > 1
    for ours, alone in rounds_of(model, base, X, y):
        assert_same_stump(ours, alone)


@pytest.mark.mission("T5")
def test_a_side_without_a_class_has_probability_zero_exactly(rng):
    X = np.sort(rng.normal(size=(1000, 1)), axis=0)
    y = (np.arange(1000) >= 300) & ((np.arange(1000) < 600) | (rng.random(1000) < 0.5))
    model = hg.AdaBoostClassifier(n_estimators=1).fit(X, y)
    tree = model.estimators_[0].trees_
    assert X[299, 0] < tree.threshold[0] < X[300, 0]
    assert tree.value[1, 1] == 0.0
    assert tree.impurity[1] == 0.0


@pytest.mark.mission("T5")
def test_nothing_to_cut_leaves_a_single_node():
    X, y = np.ones((20, 2)), np.arange(20) % 4 == 0
    model = hg.AdaBoostClassifier(n_estimators=3).fit(X, y)
    assert [t.trees_.node_count for t in model.estimators_] == [1]
    np.testing.assert_array_equal(model.predict(X), np.zeros(20, dtype=bool))
    far = hg.DecisionTreeClassifier(max_depth=1, min_impurity_decrease=0.5)
    X = np.arange(20.0)[:, None]
    assert hg.AdaBoostClassifier(far, n_estimators=3).fit(X, y).estimators_[0].trees_.node_count == 1


@pytest.mark.mission("T5")
def test_stumps_are_the_same_bits_for_any_number_of_threads(rng):
    X = rng.normal(size=(2000, 7)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=2000) > 0

    def arrays():
        model = hg.AdaBoostClassifier(n_estimators=30).fit(X, y)
        return model.decision_function(X), model.estimator_errors_, model.exponential_loss_

    assert_same_bits(arrays)


@pytest.mark.mission("T5")
def test_class_weights_of_the_base_are_heeded(rng):
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + rng.normal(size=400) > 1.2).astype(int)
    base = {"max_depth": 1, "class_weight": {0: 1.0, 1: 5.0}}
    model = hg.AdaBoostClassifier(hg.DecisionTreeClassifier(**base), n_estimators=4).fit(X, y)
    for ours, alone in rounds_of(model, base, X, y):
        assert_same_stump(ours, alone)
