"""Claimed gaps of support vector machines against gaps in extended precision, where kernel values have few digits."""

from __future__ import annotations

import numpy as np
import pytest

from hinge.problem.certificates.kernel_machine import (
    CHECKED_POINTS,
    Dual,
    classification,
    evaluate_at_scores,
    evaluate_machine,
    expansion_scores,
    nu_classification,
    nu_regression,
    one_class,
    regression,
    single_error,
)
from hinge.problem.kernels import RBF, LinearKernel
from hinge.solvers.decomposition import solve_dual

N = 3 * CHECKED_POINTS
SCALES = ("plain", "sizes", "far", "outlier")


def inputs(scale, rng):
    X = rng.normal(size=(N, 4))
    if scale == "sizes":
        X *= np.geomspace(1e-4, 1e4, 4)
    if scale == "far":
        X += 1e5
    if scale == "outlier":
        X[0] *= 100.0
    return X


def machines(X, cost, rng):
    score = X[:, 0] / np.std(X[:, 0]) + 0.3 * rng.normal(size=N)
    labels, upper = np.where(score > np.median(score), 1.0, -1.0), cost * (0.5 + rng.random(N))
    yield classification(labels, upper)
    yield regression(score, 0.1, upper)
    yield nu_classification(labels, 0.3, upper)
    yield nu_regression(score, 0.3, upper)
    yield one_class(0.3, upper)


def exact_gap(X, gamma, dual: Dual, alpha, bias, rho):
    """The gap and its scale, from the formulas of the problem and its dual in extended precision."""
    X, sign, target = (np.asarray(a, dtype=np.longdouble) for a in (X, dual.sign, dual.target))
    K = np.exp(-np.longdouble(gamma) * sum((x[:, None] - x[None]) ** 2 for x in X.T))
    beta = (sign * alpha).reshape(-1, N).sum(axis=0)
    f = K @ beta
    slack = np.maximum(sign * (target - np.tile(f, len(sign) // N) - bias) + rho, 0.0)
    earned = (dual.start.sum() * rho if dual.nu else 0.0) - (sign @ dual.start) * bias
    cost = 0.5 * beta @ f + dual.upper @ slack
    return float(cost - earned - ((sign * alpha) @ target - 0.5 * beta @ f)), float(cost + max(-earned, 0.0))


@pytest.mark.mission("O8")
@pytest.mark.parametrize("cost", [0.1, 1e3])
@pytest.mark.parametrize("scale", SCALES)
def test_no_claimed_gap_is_below_the_true_one(scale, cost, rng):
    """Near the optimum, where the gap is smaller than the rounding of scores in single precision; and away from it."""
    X = inputs(scale, rng)
    kernel = RBF(gamma="scale").resolve(X)
    for dual in machines(X, cost, rng):
        for tol in (1e-1, 1e-9):
            found = solve_dual(kernel, X, dual, tol=tol, cache_bytes=1e8, polish=False)
            point = found.alpha, found.bias, found.rho
            true, size = exact_gap(X, kernel.rate, dual, *point)
            # Scores have the rounding of sums of β, which the objectives multiply by β again.
            rounding = 1e-12 * size + 2.3e-16 * float(np.linalg.norm(found.alpha) * found.alpha.sum())
            for single in (False, True):
                claimed = evaluate_machine(kernel, X, dual, *point, single=single)
                assert claimed.gap >= true - rounding
                assert single or claimed.gap <= true + 1e-6 * size + rounding


@pytest.mark.mission("O8")
@pytest.mark.parametrize("seed", range(6))
def test_no_claimed_gap_is_below_the_true_one_where_targets_are_far_from_zero(seed):
    """The bias is large then, and multiplies what the sum of multipliers has left of rounding."""
    rng = np.random.default_rng(seed)
    X = inputs("plain", rng)
    kernel = RBF(gamma="scale").resolve(X)
    y, upper = X[:, 0] + 0.3 * rng.normal(size=N) + 1e6, 1e3 * (0.5 + rng.random(N))
    for dual in (regression(y, 0.1, upper), nu_regression(y, 0.3, upper)):
        found = solve_dual(kernel, X, dual, tol=1e-9, cache_bytes=1e8, polish=False)
        point = found.alpha, found.bias, found.rho
        true, size = exact_gap(X, kernel.rate, dual, *point)
        claimed = evaluate_machine(kernel, X, dual, *point)
        assert true - 1e-11 * size <= claimed.gap <= true + 1e-6 * size


def test_an_error_of_the_scores_moves_the_objectives_apart(rng):
    """By no less than scores that are off by it, in either direction, move them."""
    X = inputs("plain", rng)
    kernel = RBF(gamma="scale").resolve(X)
    for dual in machines(X, 1.0, rng):
        found = solve_dual(kernel, X, dual, tol=1e-2, cache_bytes=1e8, polish=False)
        point = found.bias, found.rho
        allowed = evaluate_at_scores(dual, found.alpha, found.scores, *point, 0.01)
        for _ in range(20):
            off = 0.01 * rng.choice([-1.0, 1.0], size=N)
            moved = evaluate_at_scores(dual, found.alpha, found.scores + off, *point)
            assert allowed.primal >= moved.primal
            assert allowed.dual <= moved.dual
        worst = evaluate_at_scores(dual, found.alpha, found.scores - 0.01 * np.sign(found.scores), *point)
        assert allowed.gap > worst.gap


def test_the_error_of_scores_in_single_precision(rng):
    X, beta = inputs("plain", rng), rng.normal(size=N)
    kernel = RBF(gamma="scale").resolve(X)
    scores = expansion_scores(kernel, X, beta)
    rough = expansion_scores(kernel, X, beta, single=True)
    error = single_error(kernel, X, beta, rough)
    assert 0 < error < 1e-4
    assert np.max(np.abs(scores - rough)) <= error
    spoiled = rough.copy()
    spoiled[-1] += 0.5  # the last point is one of those that are compared
    assert single_error(kernel, X, beta, spoiled) == pytest.approx(1.0, rel=1e-3)
    assert single_error(kernel, X, np.zeros(N), np.zeros(N)) == 0.0
    assert single_error(LinearKernel(), X, beta, expansion_scores(LinearKernel(), X, beta)) < 1e-10
