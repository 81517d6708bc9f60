"""O11: the 0-1 loss minimised exactly, a smooth surrogate that is not convex, and what the convex ones lose."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import hinge as hg

pytestmark = pytest.mark.mission("O11")


def separable(X, labels):
    """Whether some (w, b) gives every point its label: a linear program."""
    A = -labels[:, None] * np.column_stack([X, np.ones(len(X))])
    free = [(None, None)] * A.shape[1]
    return linprog(np.zeros(A.shape[1]), A_ub=A, b_ub=-np.ones(len(X)), bounds=free).status == 0


def least_error(X, y, c):
    """By all labellings that a hyperplane can make, the cheapest first."""
    labellings = [np.array(v) for v in itertools.product([-1.0, 1.0], repeat=len(y))]
    labellings.sort(key=lambda v: c[v != y].sum())
    return next(c[v != y].sum() for v in labellings if separable(X, v))


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("position", ["general", "grid", "line"])
def test_exact_in_any_position(d, position, rng):
    for _ in range(3):
        X = rng.normal(size=(7, d))
        if position == "grid":  # many points on one hyperplane, and duplicates
            X = rng.integers(-1, 2, size=(7, d)).astype(float)
        elif position == "line":
            X = rng.normal(size=(7, 1)) * np.ones(d)
        y = np.append(rng.choice([-1.0, 1.0], size=5), [-1.0, 1.0])
        c = rng.random(7)
        c /= c.sum()
        found = hg.minimise_zero_one(X, y, c)
        assert found.error == pytest.approx(least_error(X, y, c), abs=1e-12)
        assert c[found.predict(X) != y].sum() == pytest.approx(found.error, abs=1e-12)


def contaminated(rng, n=40, outliers=3):
    """Two classes apart along x₁, and a few mislabelled points far out on the wrong side."""
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += 0.3 * y
    far = np.column_stack([rng.uniform(6, 9, outliers), rng.normal(size=outliers)])
    return np.vstack([X, far]), np.append(y, np.full(outliers, -1))


def test_what_convex_surrogates_lose(rng):
    """Outliers cost convex losses without bound, so they give up good examples for them. The 0-1 loss does not."""
    X, y = contaminated(rng)
    exact = hg.minimise_zero_one(X, y).error
    assert exact <= 3 / 43 + 1e-12
    convex = []
    for loss in (hg.Hinge(), hg.Logistic(), hg.SquaredHinge(), hg.SquaredMargin()):
        model = hg.Learner(loss=loss, penalty=hg.L2(1e-4)).fit(X, y)
        convex.append(np.mean(model.predict(X) != y))
    assert min(convex) >= exact
    assert max(convex) > exact
    smooth = np.mean(hg.Learner(loss=hg.SigmoidLoss(), penalty=hg.L2(1e-4)).fit(X, y).predict(X) != y)
    assert exact <= smooth < max(convex)


def test_the_sigmoid_loss(rng):
    y, s = rng.choice([-1.0, 1.0], size=200), 4 * rng.normal(size=200)
    for sharpness in (0.5, 1.0, 10.0):
        loss = hg.SigmoidLoss(sharpness)
        assert np.all(loss.value(y, s) >= hg.ZeroOne().value(y, s))
        facts = hg.probe_loss(loss)
        assert not facts.convex
        assert facts.steepest <= loss.curvature * 1.001
    np.testing.assert_allclose(hg.SigmoidLoss(1e6).value(y, s), 2 * hg.ZeroOne().value(y, s), atol=1e-12)
    with pytest.raises(ValueError, match="sharpness"):
        hg.SigmoidLoss(0.0)


def test_a_loss_that_is_not_convex_gets_no_gap(rng):
    X, y = contaminated(rng)
    assert hg.Learner(loss=hg.SigmoidLoss(), penalty=hg.L2(1e-3)).fit(X, y).certificate_.kind == "stationarity"


def test_limits_are_named(rng):
    X, y = rng.normal(size=(60, 8)), np.arange(60) % 2
    with pytest.raises(ValueError, match="max_hyperplanes"):
        hg.minimise_zero_one(X, y)
    with pytest.raises(ValueError, match="two classes"):
        hg.minimise_zero_one(X, np.arange(60) % 3)


def test_separable_points_cost_nothing_and_weights_count(rng):
    X = rng.normal(size=(30, 2))
    y = np.where(X @ [1.0, 2.0] > 0.3, "b", "a")
    assert hg.minimise_zero_one(X, y).error == 0.0
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 0])
    assert hg.minimise_zero_one(X, y, [1.0, 1.0, 3.0]).error == pytest.approx(0.2)
    assert hg.minimise_zero_one(X, y, [1.0, 1.0, 0.0]).error == 0.0
