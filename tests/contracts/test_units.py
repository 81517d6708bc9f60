"""Fits do not depend on the units of the columns: without a penalty x ↦ x·s changes w into w/s and nothing else."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import hinge as hg
from hinge.problem.semidefinite import solve_semidefinite

UNITS = np.array([1e-4, 1.0, 1e4, 1e-2, 1.0, 1e2])  # a table with a rate and a revenue
N = 400

MODELS = {
    "logistic": (hg.LogisticRegression(C=np.inf), "classes"),
    "multinomial": (hg.LogisticRegression(C=np.inf), "three"),
    "poisson": (hg.PoissonRegressor(alpha=0.0), "counts"),
    "gamma": (hg.GammaRegressor(alpha=0.0), "positive"),
    "huber": (hg.Learner(loss=hg.Huber(1.0)), "real"),
    "quantile": (hg.QuantileRegressor(alpha=0.0), "real"),
    "squared": (hg.LinearRegression(), "real"),
    "hinge": (hg.Learner(loss=hg.Hinge()), "classes"),
}


def table(rng, kind):
    X = rng.normal(size=(N, len(UNITS)))
    z = X @ rng.normal(size=len(UNITS)) / 2
    y = {
        "classes": z + rng.logistic(size=N) > 0,
        "three": np.digitize(z + rng.normal(size=N), [-0.5, 0.5]),
        "counts": rng.poisson(np.exp(z / 2)),
        "positive": np.exp(z / 3) * rng.gamma(2.0, size=N),
        "real": z + rng.normal(size=N),
    }[kind]
    return X, y


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.fit(X, y)


@pytest.mark.mission("O7")
# Over blocks a kinked loss needs an L2 penalty.
@pytest.mark.parametrize(
    ("name", "blocks"),
    [(name, blocks) for name in MODELS for blocks in (False, True) if not (blocks and name == "hinge")],
)
def test_units_of_columns_do_not_matter(name, blocks, rng):
    """A ridge that keeps a Hessian from being singular is a share of its diagonal; one of the trace would hide small columns."""
    model, kind = MODELS[name]
    X, y = table(rng, kind)
    runs = []
    for units in (np.ones(len(UNITS)), UNITS):
        data = (hg.scan(X * units, target=y, block_rows=150), None) if blocks else (X * units, y)
        fit = fitted(model, *data)
        assert fit.certificate_.converged
        if name == "multinomial":  # of all equivalent weights those of mean zero over the classes
            assert np.abs(fit.coef_.mean(axis=0) * units).max() <= 1e-12
            assert abs(fit.intercept_.mean()) <= 1e-12
        runs.append((fit.certificate_.primal, np.atleast_2d(fit.coef_) * units, fit.certificate_.iterations))
    (value, w, steps), (value_in_units, w_in_units, steps_in_units) = runs
    assert value_in_units == pytest.approx(value, rel=1e-5)
    if name not in ("quantile", "hinge"):  # whose minimisers are not unique to this accuracy
        assert w_in_units == pytest.approx(w, rel=1e-2, abs=1e-3)
        assert abs(steps_in_units - steps) <= 1


FAR = MODELS | {
    "lasso": (hg.Lasso(0.05), "real"),
    "ridge": (hg.Ridge(1.0), "real"),
    "ridge, cross-validated": (hg.RidgeCV(), "real"),
    "evidence": (hg.BayesianRidge(), "real"),
    "relevance": (hg.ARDRegression(), "real"),
}


@pytest.mark.mission("W1", "W2", "W3")
@pytest.mark.parametrize("name", FAR)
def test_columns_far_from_zero(name, rng):
    """Times in seconds: means of 10⁷ deviations. X'X has no digits of the deviations left; the rows less their mean have."""
    model, kind = FAR[name]
    X, y = table(rng, kind)
    near = fitted(model, X, y)
    w, scores = np.atleast_2d(near.coef_).copy(), near.predict(X)
    far = fitted(model, X + 1e7, y)
    if name not in ("quantile", "hinge"):
        assert np.atleast_2d(far.coef_) == pytest.approx(w, rel=1e-2, abs=1e-3)
    if kind == "real":
        assert np.mean((far.predict(X + 1e7) - scores) ** 2) <= 1e-4 * np.var(y)
    elif kind in ("counts", "positive"):
        assert far.predict(X + 1e7) == pytest.approx(scores, rel=1e-3)
    else:
        assert np.mean(far.predict(X + 1e7) == scores) >= 0.99


@pytest.mark.parametrize("order", [3, 8])
def test_semidefinite_systems_in_any_unit(order, rng):
    """Regular and singular: the residual is small in the units of the diagonal."""
    F = rng.normal(size=(order, 2 * order))
    units = 10.0 ** rng.uniform(-5, 5, size=order)
    for rank in (2 * order, order - 1):
        A = (F[:, :rank] @ F[:, :rank].T) * units[:, None] * units
        rhs = A @ (rng.normal(size=order) / units)
        x = solve_semidefinite(A, rhs)
        assert (A @ x) / units == pytest.approx(rhs / units, rel=1e-8, abs=1e-8 * np.max(np.abs(rhs / units)))
