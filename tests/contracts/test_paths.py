"""Paths keep factors of Gram matrices that gain and lose columns: no penalty on the way may show it."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg


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
