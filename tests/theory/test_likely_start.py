"""Where machines without targets start: anywhere feasible, near the optimum if the points are many."""

from __future__ import annotations

import numpy as np
import pytest

from hinge.problem.certificates.kernel_machine import (
    KnownScores,
    classification,
    evaluate_machine,
    expansion_scores,
    feasible,
    nu_classification,
    one_class,
)
from hinge.problem.kernels import RBF
from hinge.solvers import decomposition
from hinge.solvers.decomposition import solve_dual
from hinge.solvers.decomposition_start import MANY_POINTS, likely_start

N = MANY_POINTS


def points(rng):
    labels = np.where(rng.random(N) < 0.4, -1.0, 1.0)
    return rng.normal(size=(N, 3)) + 0.5 * labels[:, None], labels


@pytest.mark.mission("K4")
@pytest.mark.parametrize("name", ["one class", "nu classification"])
def test_the_start_is_feasible_and_near_the_optimum(name, rng, monkeypatch):
    X, labels = points(rng)
    upper = rng.random(N) + 0.5
    upper[::7] = 0.0  # examples without weight
    dual = one_class(0.3, upper) if name == "one class" else nu_classification(labels, 0.4, upper)
    kernel = RBF(gamma=0.3)
    start = likely_start(kernel, X, dual, single=False)
    assert feasible(dual, start)
    found = solve_dual(kernel, X, dual, tol=1e-5, cache_bytes=1e8)
    near, far = (np.count_nonzero(np.abs(found.alpha - a) > 1e-6) for a in (start, dual.start))
    assert near < 0.5 * far
    # The optimum does not depend on the start.
    monkeypatch.setattr(decomposition, "likely_start", lambda kernel, X, dual, single: dual.start)
    other = solve_dual(kernel, X, dual, tol=1e-5, cache_bytes=1e8)
    size = found.reference + abs(found.primal)
    assert found.relative_gap <= 1e-5
    assert abs(found.primal - other.primal) <= found.gap + other.gap + 1e-12 * size


def test_machines_with_targets_or_few_points_keep_their_start(rng):
    X, labels = points(rng)
    kernel = RBF(gamma=0.3)
    with_targets = classification(labels, np.ones(N))
    assert likely_start(kernel, X, with_targets, single=False) is with_targets.start
    few = one_class(0.3, np.ones(N - 1))
    assert likely_start(kernel, X[1:], few, single=False) is few.start


@pytest.mark.mission("O8")
def test_known_scores_save_kernel_values_and_nothing_else(rng):
    """The same objectives whether scores are made anew, or by adding those of a short or a long change to known ones."""
    X, _ = points(rng)
    kernel, dual = RBF(gamma=0.3), one_class(0.3, np.ones(N))
    beta = dual.start
    known = KnownScores(beta, expansion_scores(kernel, X, beta))
    for moved in (10, 500):
        alpha = beta.copy()
        alpha[:moved], alpha[-moved:] = 0.0, 1.0
        expected = evaluate_machine(kernel, X, dual, alpha, 0.1, 0.0)
        found = evaluate_machine(kernel, X, dual, alpha, 0.1, 0.0, known=known)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-10)
        assert (found.primal, found.dual) == pytest.approx((expected.primal, expected.dual), rel=1e-10)
    wrong = KnownScores(beta, known.scores + 1.0)  # used for short changes, not for long ones
    alpha[:] = 0.0
    alpha[::2] = 0.6
    far = evaluate_machine(kernel, X, dual, alpha, 0.1, 0.0, known=wrong)
    np.testing.assert_allclose(far.scores, expansion_scores(kernel, X, alpha), rtol=1e-10)
