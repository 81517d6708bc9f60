"""Paths keep factors of Gram matrices that gain and lose columns: no penalty on the way may show it."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg
from hinge.select.path import solve_path
from hinge.solvers.base import Status


@pytest.mark.mission("O8")
@pytest.mark.parametrize("ratio", [1.0, 0.7])
@pytest.mark.parametrize(("n", "d"), [(100, 300), (200, 150), (300, 60)])
def test_every_penalty_of_a_path_reaches_the_gap(n, d, ratio):
    """Columns of very different sizes, one twice and one almost twice, so that supports change all the time."""
    rng = np.random.default_rng(n)
    size = np.geomspace(1e-3, 1e3, d)
    X = rng.normal(size=(n, d))
    X[:, 1], X[:, 5] = X[:, 0] + 1e-6 * X[:, 1], X[:, 4]
    y = X @ np.where(rng.random(d) < 0.2, rng.normal(size=d), 0.0) + rng.normal(size=n)
    X *= size
    alphas, weights, _ = hg.enet_path(X, y, l1_ratio=ratio, alphas=40, eps=1e-4, tol=1e-8)
    for alpha, w in zip(alphas, weights.T):
        o = hg.make_objective(X, y, hg.Squared(), hg.Elastic(alpha, ratio), fit_intercept=False)
        assert hg.certificate(o, w, np.zeros(1), tol=1e-8).converged


@pytest.mark.mission("O8")
def test_the_points_of_a_path_say_how_their_runs_ended(rng):
    X = rng.normal(size=(40, 30))
    labels = np.where(X @ rng.normal(size=30) + rng.normal(size=40) > 0, 1.0, -1.0)
    o = hg.make_objective(X, labels, hg.Logistic(), hg.L1(1.0))
    for limit in (None, 1):
        points = solve_path(o, [1.0, 0.1, 0.01], tol=1e-10, max_iter=limit)
        assert all(p.certificate.converged for p in points) == (limit is None)
        for p in points:
            assert p.solution.status is (Status.CONVERGED if p.certificate.converged else Status.MAX_ITER)
            assert p.certificate.status == p.solution.status.value
