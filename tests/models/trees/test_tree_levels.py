"""Trees that are descended level by level end where trees that are walked do."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg


def walked(model, X):
    """Scores from the leaf of each row in each tree, which are found by walking."""
    trees = model.trees_
    value = trees.value[trees.start[:-1] + trees.leaves(X), 0]
    return model.baseline_ + value.reshape(len(X), -1, model._loss.outputs).sum(axis=1)


@pytest.mark.mission("T8")
@pytest.mark.parametrize("depth", [4, 5, 6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("grow", ["leaf", "level"])
def test_shallow_trees_by_level_and_by_walking(depth, dtype, grow, rng):
    X = np.round(rng.normal(size=(1500, 7)), 2).astype(dtype)  # values that thresholds lie between, and on
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + 0.1 * rng.normal(size=1500)
    settings = {
        "max_iter": 12, "max_depth": depth, "max_leaf_nodes": 60, "min_samples_leaf": 2, "early_stopping": False,
        "grow": grow, "learning_rate": 0.3,
    }  # fmt: skip
    model = hg.HistGradientBoostingRegressor(**settings).fit(X, y)
    sizes = (np.diff(model.trees_.start) + 1) / 2
    assert sizes.mean() >= 8
    assert sizes.max() <= 64
    new = rng.normal(size=(700, 7)).astype(dtype)
    new[:40, :] = model.trees_.threshold[model.trees_.feature >= 0][:40, None]  # on the thresholds themselves
    for table in (X, new, np.asfortranarray(new), new[:5]):
        np.testing.assert_allclose(model.predict(table), walked(model, table)[:, 0], rtol=1e-12, atol=1e-12)
    several = hg.HistGradientBoostingClassifier(**settings | {"max_iter": 4}).fit(X, np.digitize(y, [-0.5, 0.5]))
    np.testing.assert_allclose(several.decision_function(new), walked(several, new), rtol=1e-12, atol=1e-12)


@pytest.mark.mission("T8")
def test_blocks_with_and_without_missing_values(rng):
    X = rng.normal(size=(1200, 5))
    y = X[:, 0] + np.abs(X[:, 1]) + 0.1 * rng.normal(size=1200)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[300:800] = rng.normal(size=(500, 5))
    model = hg.HistGradientBoostingRegressor(max_iter=10, max_depth=6, max_leaf_nodes=40, min_samples_leaf=5).fit(X, y)
    np.testing.assert_allclose(model.predict(X), walked(model, X)[:, 0], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X)[400:600], model.predict(X[400:600]))
