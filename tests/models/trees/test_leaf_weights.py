"""``min_weight_fraction_leaf`` of boosting is a share of the weight, whatever the unit of the weights."""

import numpy as np
import pytest
import sklearn.ensemble

import hinge as hg

FRACTION = 0.2


def example(rng):
    X = np.round(rng.normal(size=(120, 3)), 1)
    weight = np.exp(1.5 * rng.normal(size=120))
    return X, X[:, 0] ** 2 + X[:, 1] + 0.1 * rng.normal(size=120), weight


def leaf_weights(model, X, weight):
    leaves = model.estimators_.ravel()[0].apply(X)
    return np.array([weight[leaves == leaf].sum() for leaf in np.unique(leaves)])


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e4])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber"])
@pytest.mark.parametrize("cls", [hg.GradientBoostingRegressor, hg.HistGradientBoostingRegressor])
def test_no_leaf_weighs_less(cls, loss, unit, rng):
    X, y, weight = example(rng)
    rounds = {"n_estimators": 1} if cls is hg.GradientBoostingRegressor else {"max_iter": 1, "early_stopping": False}
    model = cls(loss=loss, min_weight_fraction_leaf=FRACTION, min_samples_leaf=1, **rounds)
    model.fit(X, y, unit * weight)
    found = leaf_weights(model, X, weight)
    assert len(found) > 1
    assert found.min() >= FRACTION * weight.sum() * (1 - 1e-6)


def test_the_tree_is_scikit_learns(rng):
    X, y, weight = example(rng)
    options = {"n_estimators": 1, "learning_rate": 1.0, "min_weight_fraction_leaf": FRACTION}
    theirs = sklearn.ensemble.GradientBoostingRegressor(**options).fit(X, y, weight)
    ours = hg.GradientBoostingRegressor(**options).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5, atol=1e-6)
