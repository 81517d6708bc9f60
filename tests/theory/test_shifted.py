"""Columns far from zero: Newton's method on shifted columns (hinge.solvers.shifted)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import hinge as hg
from hinge.problem.objective import make_objective
from hinge.solvers.run import solve

LOSSES = [hg.Huber(0.5), hg.Logistic(), hg.SquaredHinge(), hg.LogCosh(), hg.Poisson()]


def _data(rng, loss):
    """Columns of deviations 1e-3 … 1e3, and the row to add to them: a million deviations away in some columns."""
    X = rng.normal(size=(200, 8)) * np.logspace(-3, 3, 8)
    score = (X / np.logspace(-3, 3, 8)) @ rng.normal(size=8)
    score /= np.std(score)
    target = {"Poisson": np.exp(0.5 * score), "Logistic": np.sign(score), "SquaredHinge": np.sign(score)}
    return X, target.get(type(loss).__name__, score), np.where(np.arange(8) % 2, 10.0, 1e5 * np.logspace(-3, 3, 8))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_a_constant_added_to_columns_moves_only_the_bias(rng, loss):
    X, y, row = _data(rng, loss)
    plain, moved = (solve(make_objective(A, y, loss, hg.L2(1e-3)), solver="newton", tol=1e-8) for A in (X, X + row))
    assert moved.certificate.converged
    assert_allclose(moved.certificate.primal, plain.certificate.primal, rtol=1e-6)
    assert_allclose(moved.w, plain.w, rtol=1e-3, atol=1e-4 * np.abs(plain.w).max())
    assert_allclose(X @ moved.w + moved.b + row @ moved.w, X @ plain.w + plain.b, atol=1e-3)


@pytest.mark.mission("O7")
@pytest.mark.parametrize(
    ("solver", "penalty"),
    [
        ("coordinate-descent", hg.L1(0.01)),
        ("proximal-gradient", hg.L1(0.01)),
        ("proximal-newton", hg.L1(0.01)),
        ("block-coordinate-descent", hg.GroupNorm(0.01)),
        ("proximal-gradient", hg.L2Ball(1.0)),
        ("lbfgs", hg.L2(0.01)),
        ("newton-cg", hg.L2(0.01)),
    ],
)
def test_every_solver_that_shifts_reaches_the_optimum_of_centred_columns(rng, solver, penalty):
    X = rng.normal(size=(300, 5))
    y = X @ rng.normal(size=(5, 2) if solver.startswith("block") else 5) + 0.3
    near, far = (
        solve(make_objective(A, y, hg.Squared(), penalty), solver=solver, tol=1e-8, warn=A is X) for A in (X, X + 1e6)
    )
    assert near.certificate.converged
    slack = 2.0 * np.sqrt(2e-8 * near.certificate.primal)  # the risk is strongly convex with modulus near 1
    assert_allclose(far.w, near.w, atol=2.0 * slack)
    assert_allclose(far.b + 1e6 * far.w.sum(axis=0), near.b, atol=2.0 * slack)


@pytest.mark.parametrize(
    "path", [hg.LassoCV(), hg.ElasticNetCV(), hg.MultiTaskLassoCV()], ids=lambda m: type(m).__name__
)
def test_paths_over_columns_far_from_zero(rng, path):
    X = rng.normal(size=(200, 5))
    y = X @ rng.normal(size=5) + 0.3 * rng.normal(size=200)
    y = np.column_stack([y, -y]) if "Task" in type(path).__name__ else y
    near, far = (clone(path).fit(A, y) for A in (X, X + 1e7))
    assert far.certificate_.converged
    assert_allclose(far.coef_, near.coef_, atol=1e-4)
    assert_allclose(far.mse_path_, near.mse_path_, rtol=1e-3)


def test_starts_and_callbacks_are_in_the_coordinates_of_the_data(rng):
    X, y, row = _data(rng, hg.Logistic())
    objective = make_objective(X + row, y, hg.Logistic(), hg.L2(1e-3))
    records = []
    first = solve(objective, solver="newton", callback=lambda record: bool(records.append(record)))
    again = solve(objective, solver="newton", start=(first.w, first.b))
    assert again.solution.iterations <= 2
    for record in records:
        if record.w is not None and record.b is not None:
            assert_allclose(objective.value(record.w, record.b), record.objective, rtol=1e-6)


def test_huber_regression_is_solved_for_badly_scaled_columns(rng):
    X = rng.normal(size=(300, 20))
    y = X @ rng.normal(size=20) + 0.3 * rng.normal(size=300)
    model = hg.HuberRegressor().fit(X * np.logspace(-4, 4, 20) + 10.0, y)
    assert model.certificate_.converged


def test_constant_columns_are_left_alone(rng):
    from hinge._native import Design
    from hinge.solvers.shifted import shift_of

    X = np.column_stack([rng.normal(size=50), np.full(50, 0.1)])
    assert shift_of(Design(X)) is None
