"""class_weight="balanced" beside sample weights: a weight of 2 is two examples, a weight of 0 none."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg
from hinge.models.trees.inputs import weights_of


@pytest.mark.parametrize("targets", [1, 2])
def test_balanced_classes_weigh_the_same(targets, rng):
    y = rng.integers(0, 3, size=(60, targets)) if targets > 1 else rng.integers(0, 3, 60)
    s = rng.integers(0, 4, 60).astype(float)
    weight = weights_of(s, np.zeros((60, 1)), "balanced", y)
    again = np.repeat(np.arange(60), s.astype(int))
    repeated = weights_of(None, np.zeros((len(again), 1)), "balanced", y[again])
    np.testing.assert_allclose(weight[again], repeated * s[again], rtol=1e-12)
    if targets == 1:
        np.testing.assert_allclose(np.bincount(y, weight), s.sum() / 3, rtol=1e-12)


def test_a_class_without_weight_does_not_count():
    weight = weights_of(np.array([1.0, 1.0, 2.0, 0.0]), np.zeros((4, 1)), "balanced", np.array([0, 0, 1, 2]))
    np.testing.assert_allclose(weight, [1.0, 1.0, 2.0, 0.0])


@pytest.mark.mission("T1")
@pytest.mark.parametrize(
    "model",
    [
        hg.DecisionTreeClassifier(class_weight="balanced", max_depth=3),
        hg.HistGradientBoostingClassifier(class_weight="balanced", max_iter=5),
    ],
    ids=repr,
)
def test_rows_of_weight_zero_change_nothing(model, rng):
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] + rng.normal(size=200) > 1.0).astype(int)
    s = np.where((y == 0) & (rng.uniform(size=200) < 0.7), 0.0, 1.0)
    all_rows = model.fit(X, y, sample_weight=s).predict_proba(X)
    np.testing.assert_allclose(model.fit(X[s > 0], y[s > 0]).predict_proba(X), all_rows, atol=1e-12)


def test_networks_and_several_labels_balance_by_weights_too(rng):
    y = rng.integers(0, 3, 60)
    s = rng.integers(0, 4, 60).astype(float)
    weight = hg.MLPClassifier(class_weight="balanced")._example_weights(y, s)
    np.testing.assert_allclose(np.bincount(y, weight), s.sum() / 3, rtol=1e-12)

    X, Y = rng.normal(size=(60, 3)), rng.integers(0, 2, size=(60, 2))
    again = np.repeat(np.arange(60), s.astype(int))
    weighted, repeated = (hg.RidgeClassifier(class_weight="balanced") for _ in range(2))
    weighted.fit(X, Y, s)
    np.testing.assert_allclose(weighted.coef_, repeated.fit(X[again], Y[again]).coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        lambda X, y: hg.LogisticRegression().fit(X, y * 0),
        lambda X, y: hg.SVC().fit(X, y, sample_weight=np.where(y == 0, 0.0, 1.0)),
        lambda X, y: hg.TunedThresholdClassifierCV(hg.LogisticRegression()).fit(X, y * 0),
    ],
)
def test_errors_write_labels_without_their_numpy_type(call):
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 2, 0, 1, 2])
    with pytest.raises(ValueError, match=r"class:? 0\b|class, 0\b"):
        call(X, y)
