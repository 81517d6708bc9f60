"""Dual coordinate descent for losses whose kinks are rounded off by parabolas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import hinge as hg
import zoo
from hinge.solvers import dual_coordinate
from hinge.solvers.base import Need
from hinge.solvers.run import choose, minimise, solve

SOFT = [loss for loss in zoo.LOSSES if loss.softness > 0]


def test_some_losses_are_soft():
    assert {type(loss).__name__ for loss in SOFT} >= {
        "SquaredHinge",
        "ModifiedHuber",
        "SquaredEpsilonInsensitive",
        "Huber",
    }


@pytest.mark.parametrize("loss", SOFT, ids=zoo.name)
def test_soft_kinks_are_those_of_the_loss(loss, rng):
    """ℓ(s) = Σ over kinks of max {u (s − a) − κ/2 u² : low ≤ u ≤ high}; the maximiser is the gradient."""
    y, s, kappa = zoo.targets(loss, 50, rng), 3 * rng.normal(size=50), loss.softness
    total, slope = np.zeros(50), np.zeros(50)
    for kink in loss.kinks(y):
        u = np.clip((s - kink.at) / kappa, kink.low, kink.high)
        total += u * (s - kink.at) - 0.5 * kappa * u**2
        slope += u
    np.testing.assert_allclose(total, loss.value(y, s), atol=1e-12)
    np.testing.assert_allclose(slope, loss.gradient(y, s), atol=1e-12)


@pytest.mark.mission("O7")
@pytest.mark.parametrize("C", [0.1, 1e3])
@pytest.mark.parametrize("fit_intercept", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", SOFT, ids=zoo.name)
def test_soft_losses_reach_the_optimum_of_newtons_method(loss, sparse, fit_intercept, C, rng):
    X = rng.normal(size=(60, 80)) * (rng.uniform(size=(60, 80)) < 0.3) + 0.2
    y = zoo.targets(loss, 60, rng)
    objective = hg.make_objective(
        scipy.sparse.csr_matrix(X) if sparse else X, y, loss, hg.L2(1 / (60 * C)), fit_intercept=fit_intercept,
        sample_weight=rng.uniform(0, 2, 60),
    )  # fmt: skip
    found = solve(objective, solver="dual-coordinate-descent", tol=1e-9)
    known = solve(objective, solver="newton", tol=1e-11, warn=False)
    assert found.certificate.converged
    assert found.certificate.primal <= known.certificate.primal * (1 + 1e-8)
    np.testing.assert_allclose(found.w, known.w, atol=10 * found.certificate.weight_error + 1e-6)


@pytest.mark.parametrize("loss", [*SOFT, hg.Hinge(), hg.EpsilonInsensitive(0.1)], ids=zoo.name)
def test_the_dual_variables_balance(loss, rng):
    X = scipy.sparse.csr_matrix(rng.normal(size=(50, 200)) * (rng.uniform(size=(50, 200)) < 0.2))
    objective = hg.make_objective(X, zoo.targets(loss, 50, rng), loss, hg.L2(0.1), sample_weight=rng.uniform(0, 2, 50))
    u = minimise(objective, solver="dual-coordinate-descent")[1].dual
    assert u is not None
    assert abs(objective.c @ u) <= 1e-13 * (objective.c @ np.abs(u))
    low, high = loss.dual_interval(objective.y)
    assert np.all((u >= low) & (u <= high))


def test_newtons_method_continues_where_epochs_do_not_converge(monkeypatch, rng):
    monkeypatch.setattr(dual_coordinate, "PATIENCE", 1)
    X, y = rng.normal(size=(40, 600)), rng.choice([-1.0, 1.0], 40)
    objective = hg.make_objective(X + 1.0, y, hg.SquaredHinge(), hg.L2(1e-2))
    result = solve(objective, solver="dual-coordinate-descent", tol=1e-8)
    assert result.certificate.converged
    assert result.solution.iterations > 1


def test_wide_squared_hinges_are_solved_in_the_dual(rng):
    X, y = scipy.sparse.random(50, 700, 0.05, format="csr", random_state=0), rng.choice([-1.0, 1.0], 50)
    objective = hg.make_objective(X, y, hg.SquaredHinge(), hg.L2(0.1))
    assert choose(objective) == "dual-coordinate-descent"
    assert Need.KINKS.met_by(objective)
    assert not Need.KINKS.met_by(hg.make_objective(X, y, hg.Logistic(), hg.L2(0.1)))
    assert solve(objective).certificate.converged


@pytest.mark.mission("W7")
@pytest.mark.parametrize("loss", [hg.Absolute(), hg.Huber(0.5)], ids=repr)
@pytest.mark.parametrize("limit", [1, 3, 7, 30])
def test_iterations_are_epochs(loss, limit, rng):
    """As in LIBLINEAR: a limit of k allows k visits of every example, and the dual value rises with k."""
    X = scipy.sparse.random(200, 300, density=0.05, format="csr", random_state=np.random.RandomState(0))
    objective = hg.make_objective(X, rng.normal(size=200), loss, hg.L2(1e-5))
    cut = solve(objective, solver="dual-coordinate-descent", tol=1e-12, max_iter=limit, warn=False)
    more = solve(objective, solver="dual-coordinate-descent", tol=1e-12, max_iter=4 * limit, warn=False)
    assert cut.solution.iterations == limit
    assert cut.certificate.dual <= more.certificate.dual + 1e-12
