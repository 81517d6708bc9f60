"""The interior point method on many rows looks at most of them only now and then: the result must not show it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import hinge as hg
from hinge.solvers.run import solve

N = 24_000  # enough rows for bands
LOSSES = [hg.Hinge(), hg.Absolute(), hg.Quantile(0.8), hg.EpsilonInsensitive(0.3)]
PENALTIES = [hg.L2(1e-3), hg.L2(1e-7), hg.L1(3e-3), hg.Elastic(1e-2, 0.5), hg.NoPenalty()]


def data(loss, seed=0, d=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, d)) * np.geomspace(0.3, 3.0, d)
    score = X @ rng.normal(size=d) + 0.4 + rng.standard_t(3, size=N)
    return X, np.where(score > 0, 1.0, -1.0) if isinstance(loss, hg.Hinge) else score


@pytest.mark.mission("O8")
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_many_rows_reach_the_gap(loss, penalty):
    X, y = data(loss)
    weight = np.random.default_rng(1).integers(0, 3, size=N).astype(float)
    offset = 0.2 * np.cos(np.arange(N))
    o = hg.make_objective(X, y, loss, penalty, sample_weight=weight, offset=offset)
    found = solve(o, solver="interior-point", tol=1e-8)
    assert found.certificate.converged
    assert found.certificate.kind == "gap"


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_bands_and_all_rows_at_once_agree(loss, sparse):
    """Columns one after the other are not read by rows, so that all of them take part in every step."""
    X, y = data(loss, seed=2)
    X = np.where(np.abs(X) > 0.2, X, 0.0)
    rows, columns = (scipy.sparse.csr_array(X), scipy.sparse.csc_array(X)) if sparse else (X, np.asfortranarray(X))
    narrow, whole = (
        solve(hg.make_objective(A, y, loss, hg.L2(1e-2)), solver="interior-point", tol=1e-9) for A in (rows, columns)
    )
    np.testing.assert_allclose(narrow.w, whole.w, atol=2e-4)
    assert narrow.certificate.primal == pytest.approx(whole.certificate.primal, rel=2e-9)


def arrangements():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 4))
    y = X @ np.ones(4) + rng.normal(size=N)
    order = np.argsort(y)
    rows = np.arange(N)
    yield "sorted by target", X[order], y[order]
    yield "targets in steps", X, np.round(y)
    yield "constant targets", X, np.ones(N)
    yield "a period of the sample", X * np.where(rows % 16 == 0, 100.0, 1.0)[:, None], y
    yield "outliers", X, np.where(rows % 1000 == 0, 1e6, y)
    yield "two values only", np.sign(X), np.sign(y)
    yield "a rare column", np.column_stack([X, rows == 17]), y


@pytest.mark.parametrize(("X", "y"), [pytest.param(X, y, id=name) for name, X, y in arrangements()])
@pytest.mark.parametrize("loss", [hg.Absolute(), hg.Hinge()], ids=repr)
def test_awkward_arrangements(loss, X, y):
    target = np.where(y > 0, 1.0, -1.0) if isinstance(loss, hg.Hinge) else y
    found = solve(hg.make_objective(X, target, loss, hg.L2(1e-4)), solver="interior-point", tol=1e-6)
    assert found.certificate.converged


def test_separable_classes_leave_the_band_empty_of_errors():
    X, _ = data(hg.Hinge(), seed=4)
    X, y = np.where(X > 0, X + 0.1, X - 0.1), np.sign(X[:, 0])
    found = solve(hg.make_objective(X, y, hg.Hinge(), hg.L2(1e-5)), solver="interior-point", tol=1e-6)
    assert found.certificate.converged
    assert np.mean((X @ found.w + found.b[0]) * y > 0) == 1.0
