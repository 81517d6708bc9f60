"""T9: why ensembles stop helping."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg

pytestmark = pytest.mark.mission("T9")


@pytest.mark.parametrize(
    "ensemble",
    [hg.RandomForestRegressor(n_estimators=16), hg.ExtraTreesRegressor(n_estimators=16), hg.BaggingRegressor(n_estimators=16)],
    ids=lambda e: type(e).__name__,
)  # fmt: skip
def test_the_variance_of_an_average_of_correlated_trees(ensemble, rng):
    """The formula with ρ and σ² from one analysis of variance predicts the variance of averages of fewer members."""
    seed = int(rng.integers(1000))
    found = hg.ensemble_variance(ensemble, hg.generators.SineCurve(noise=0.4), n=50, repeats=60, random_state=seed)
    sizes = np.array([1, 2, 4, 8, 16])
    np.testing.assert_allclose(found.measured[sizes - 1], found.at(sizes), rtol=0.15)
    assert found.measured[-1] == pytest.approx(float(found.at(16)), rel=1e-9)
    assert 0 < found.correlation < 1
    assert found.limit < found.measured[-1] < found.variance
    assert found.at(10**9) == pytest.approx(found.limit)


def test_random_candidates_lower_the_correlation(rng):
    source = hg.generators.LinearGaussian([1.0, 1.0, 1.0, 1.0, 1.0], noise=0.5)
    rho = [
        hg.ensemble_variance(
            hg.RandomForestRegressor(n_estimators=10, max_features=m), source, n=60, repeats=40,
            random_state=int(rng.integers(1000)),
        ).correlation
        for m in (5, 1)
    ]  # fmt: skip
    assert rho[1] < rho[0]


def test_members_that_are_all_the_same_are_correlated_fully():
    """Without samples and candidates at random every tree is the same: averaging does nothing."""
    same = hg.RandomForestRegressor(n_estimators=4, bootstrap=False, max_features=None)
    found = hg.ensemble_variance(same, hg.generators.SineCurve(), n=30, repeats=10)
    assert found.correlation == pytest.approx(1.0)
    np.testing.assert_allclose(found.measured, found.variance)


def test_data_instead_of_a_generator(rng):
    X = rng.normal(size=(300, 2))
    found = hg.ensemble_variance(hg.RandomForestRegressor(n_estimators=5), (X, X[:, 0]), n=100, repeats=10)
    assert found.repeats == 10
    assert "no number of members" in str(found)
    with pytest.raises(ValueError, match="cannot be drawn"):
        hg.ensemble_variance(hg.RandomForestRegressor(n_estimators=5), (X, X[:, 0]), n=400)
    assert (
        len(hg.ensemble_variance(hg.RandomForestRegressor(n_estimators=2), (X, X[:, 0]), n=50, repeats=3).measured) == 2
    )
    with pytest.raises(ValueError, match="one member"):
        hg.ensemble_variance(hg.RandomForestRegressor(n_estimators=1), (X, X[:, 0]), n=100, repeats=2)


def test_exponential_against_logistic_loss_under_label_noise(rng):
    """The exponential loss spends its attention on flipped labels; the slope of the logistic one is at most 1."""
    X = rng.normal(size=(3000, 5))
    truth = np.where(X[:, 0] + X[:, 1] > 0, 1, -1)
    flipped = rng.random(3000) < 0.15
    y = np.where(flipped, -truth, truth)
    attention = {}
    for loss in (hg.Exponential(), hg.Logistic()):
        model = hg.Learner(hg.Boosted(hg.Tree(max_depth=2, min_samples_leaf=5), 40, learning_rate=0.3), loss).fit(X, y)
        weight = np.abs(loss.gradient(y.astype(float), model.decision_function(X)))
        attention[type(loss).__name__] = weight[flipped].sum() / weight.sum()
    assert attention["Exponential"] > attention["Logistic"] > flipped.mean()
