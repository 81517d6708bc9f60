"""L1 and L6: risks of any predictor; penalised and constrained problems are one path."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg
import zoo
from hinge.solvers.run import solve


@pytest.mark.mission("L1")
@pytest.mark.parametrize("loss", zoo.LOSSES, ids=zoo.name)
def test_risk_is_the_weighted_mean_loss(loss, rng):
    y = zoo.targets(loss, 20, rng)
    s = 0.5 * rng.normal(size=20)
    weight = rng.integers(0, 4, size=20)
    assert hg.risk(loss, y, s) == pytest.approx(np.mean(loss.value(y, s)))
    repeated = np.repeat(np.arange(20), weight)
    assert hg.risk(loss, y, s, weight) == pytest.approx(hg.risk(loss, y[repeated], s[repeated]))


@pytest.mark.mission("L1")
def test_risk_of_any_predictor(rng):
    X = rng.normal(size=(40, 2))
    y = X[:, 0] + rng.normal(size=40)
    assert hg.empirical_risk(lambda X: 2 * X[:, 0], X, y, hg.Absolute()) == pytest.approx(
        np.mean(np.abs(2 * X[:, 0] - y))
    )
    model = hg.Learner(loss=hg.Squared()).fit(X, y)
    assert hg.empirical_risk(model, X, y, hg.Squared()) == pytest.approx(model.certificate_.primal)

    labels = np.where(X[:, 0] > 0, "yes", "no")
    labels[:5] = "no"
    classifier = hg.Learner(loss=hg.Logistic(), penalty=hg.L2(0.1)).fit(X, labels)
    errors = np.mean(classifier.predict(X) != labels)
    assert hg.empirical_risk(classifier, X, labels, hg.ZeroOne()) == pytest.approx(errors)
    assert hg.empirical_risk(classifier, X, labels, hg.Logistic(1 / np.log(2))) >= errors
    with pytest.raises(ValueError, match="labels"):
        hg.empirical_risk(classifier, X, np.full(40, "maybe"), hg.ZeroOne())


@pytest.mark.mission("L1")
def test_softmax_risk(rng):
    s, y = rng.normal(size=(10, 3)), rng.integers(0, 3, size=10)
    p = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    assert hg.risk(hg.Softmax(), y, s) == pytest.approx(-np.mean(np.log(p[np.arange(10), y])))


@pytest.mark.mission("L6")
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("loss", [hg.Squared(), hg.Logistic()], ids=repr)
def test_tikhonov_and_ivanov_paths_coincide(norm, loss, rng):
    X = rng.normal(size=(80, 5))
    y = X @ [2.0, -1.0, 0.5, 0.0, 0.0] + rng.normal(size=80)
    y = y if isinstance(loss, hg.Squared) else np.where(y > 0, 1.0, -1.0)
    o = hg.make_objective(X, y, loss)
    strengths = np.geomspace(0.2, 0.005, 6)
    path = hg.constrained_path(o, strengths, norm=norm, tol=1e-10)
    radii = [point.radius for point in path]
    assert np.all(np.diff(radii) > 0)  # less penalty, larger ball
    for point in path:
        assert point.difference <= 1e-4 * max(point.radius, 1.0)
        assert point.multiplier == pytest.approx(point.strength, rel=1e-3)  # λ → r → λ


@pytest.mark.mission("L6")
def test_ridge_radius_in_closed_form(rng):
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    o = hg.make_objective(X, y, hg.Squared(), fit_intercept=False)
    for point in hg.constrained_path(o, [0.1, 1.0], norm="l2", tol=1e-10):
        exact = np.linalg.solve(X.T @ X / 30 + point.strength * np.eye(3), X.T @ y / 30)
        assert point.radius == pytest.approx(np.linalg.norm(exact), rel=1e-5)
        assert point.constrained == pytest.approx(exact, abs=1e-5)


@pytest.mark.mission("L6")
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("loss", [hg.Hinge(), hg.Absolute(), hg.Quantile(0.3), hg.EpsilonInsensitive(0.1)], ids=repr)
def test_kinked_losses_have_an_interval_of_multipliers(norm, loss, rng):
    """The λ one began with is among them, and every λ between the ends gives the same weights back."""
    X = rng.normal(size=(40, 4))
    y = X @ [2.0, -1.0, 0.0, 0.0] + rng.normal(size=40)
    y = np.where(y > 0, 1.0, -1.0) if isinstance(loss, hg.Hinge) else y
    o = hg.make_objective(X, y, loss)
    (point,) = hg.constrained_path(o, [0.15], norm=norm, tol=1e-9)
    low, high = point.multipliers
    assert low - 1e-4 <= 0.15 <= high + 1e-4
    assert point.multiplier == pytest.approx(0.15, abs=1e-4)
    if norm == "l1" and high > low * 1.01:
        for lam in (0.99 * low + 0.01 * high, 0.5 * (low + high), 0.01 * low + 0.99 * high):
            again = solve(o.with_penalty(hg.L1(lam)), tol=1e-10)
            assert o.with_penalty(hg.L1(lam)).value(point.penalised, again.b) == pytest.approx(
                again.certificate.primal, rel=1e-5
            )
