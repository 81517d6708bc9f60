"""Block coordinate descent for several targets: the optimum of other solvers, and optimality conditions row by row."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

import hinge as hg
from hinge.models.linear.multitask import row_penalty
from hinge.problem.certificates.linear import certificate
from hinge.select.path import path_weights, strength_grid
from hinge.solvers import block_descent
from hinge.solvers.run import choose, solve

N, D, K = 60, 25, 4
PENALTIES = [
    hg.GroupNorm(0.1),
    hg.GroupNorm(0.05, weights=np.linspace(0.5, 2.0, D)),
    row_penalty(0.1, 0.4),
]


def problem(rng, penalty, *, sparse=False, far=0.0, **options):
    X = rng.normal(size=(N, D)) * (rng.uniform(size=(N, D)) < 0.5) * np.logspace(-1, 1, D) + far
    Y = X[:, :5] @ rng.normal(size=(5, K)) + rng.normal(size=(N, K)) + 3.0
    return hg.make_objective(scipy.sparse.csr_matrix(X) if sparse else X, Y, hg.Squared(), penalty, **options)


@pytest.mark.mission("O7")
@pytest.mark.parametrize("few", [0, 1000], ids=["working sets", "all features"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("fit_intercept", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_the_optimum_of_proximal_gradient(monkeypatch, rng, penalty, fit_intercept, sparse, few):
    monkeypatch.setattr(block_descent, "FEW", few)
    objective = problem(rng, penalty, sparse=sparse, sample_weight=rng.uniform(0.1, 2, N), fit_intercept=fit_intercept)
    assert choose(objective) == "block-coordinate-descent"
    found = solve(objective, tol=1e-10)
    known = solve(objective, solver="proximal-gradient", tol=1e-9)
    assert found.certificate.converged
    assert found.certificate.primal == pytest.approx(known.certificate.primal, rel=2e-9)
    _, g, gb = objective.risk_gradient(found.w, found.b)
    distance = penalty.subdifferential_distance(found.w, g)
    assert np.max(distance) <= 1e-4 * np.max(np.abs(g), initial=1.0)
    assert np.max(np.abs(gb)) <= 1e-10


@pytest.mark.parametrize("few", [0, 1000], ids=["working sets", "all features"])
@pytest.mark.parametrize("ratio", [0.3, 1.0])
def test_every_point_of_a_path_is_proved(monkeypatch, rng, ratio, few):
    """Weights of a path carry no certificate; the judge finds the tolerance met at each of them."""
    monkeypatch.setattr(block_descent, "FEW", few)
    objective = problem(rng, row_penalty(1.0, ratio))
    strengths = strength_grid(objective, 1e-3, 12)
    W, B = path_weights(objective, strengths, tol=1e-7)
    assert W.shape == (D, K, 12)
    assert not np.any(W[..., 0])
    for i, strength in enumerate(strengths):
        at = objective.with_penalty(objective.penalty.with_strength(float(strength)))
        assert certificate(at, W[..., i].copy(), B[:, i].copy(), tol=1e-7, exact=True).relative_gap <= 1.1e-7


def test_columns_far_from_zero_do_not_cancel(rng):
    """With a mean of a million deviations the products of plain columns keep four digits; centred ones keep all."""
    objective = problem(rng, hg.GroupNorm(0.1), far=1e6)
    result = solve(objective, tol=1e-8)
    assert result.solution.status.name == "CONVERGED"
    assert result.certificate.relative_gap <= 1e-6


def test_a_limit_counts_rounds_and_a_callback_sees_each(rng):
    objective = problem(rng, hg.GroupNorm(1e-3))
    seen = []
    full = solve(objective, tol=1e-12, callback=lambda record: seen.append(record.objective) and False, warn=False)
    assert len(seen) == full.solution.iterations
    assert np.all(np.diff(seen) <= 1e-12 * seen[0])
    with pytest.warns(ConvergenceWarning):
        cut = solve(objective, tol=1e-12, max_iter=2)
    assert cut.solution.iterations == 2


def test_a_column_of_zeros_gets_no_weight(rng):
    X = np.column_stack([np.zeros(N), rng.normal(size=(N, 3)), np.full(N, 2.0)])
    result = solve(hg.make_objective(X, rng.normal(size=(N, K)) + X[:, 1:2], hg.Squared(), hg.GroupNorm(0.01)))
    assert result.certificate.converged
    assert not np.any(result.w[0])
    assert np.max(np.abs(result.w[4])) <= 1e-12
