"""Roots, systems, eigenvalues, counts of operations and penalties against formulas, at their edges."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import hinge as hg
from hinge.problem import cost, numerics, root, semidefinite

# --- Roots of increasing functions ----------------------------------------------------------------------------------


class Counted:
    """An increasing function with its derivative, and where it was evaluated."""

    def __init__(self, f, h):
        self.f, self.h, self.seen = f, h, []

    def __call__(self, b):
        self.seen.append(b)
        return self.f(b), self.h(b)


@pytest.mark.mission("O1")
@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (0.0, (0.0, 0.0)), (0.3, (0.0, 1.0)), (1.0, (0.0, 1.0)), (5.0, (4.0, 8.0)), (-5.0, (-8.0, -4.0)), (-1.0, (-1.0, 0.0)),
        (8.0, (4.0, 8.0)), (1e9, (16.0, 16.0)), (-1e9, (-16.0, -16.0)), (12.0, (8.0, 16.0)),
    ],
)  # fmt: skip
def test_brackets_double_up_to_the_span(at, expected):
    """1, 2, 4, 8 and, since 8 ≤ 10, 16: the first one beyond the root, or beyond the span."""
    assert root._bracket(lambda b: b - at, 10.0) == expected


@pytest.mark.mission("O1")
@pytest.mark.parametrize("at", [0.0, 0.3, -0.3, 5.0, -7.25, 600.0, 5000.0, 1e6, -1e-9])
def test_roots_of_lines_steps_and_exponentials(at):
    line = Counted(lambda b: 3.0 * (b - at), lambda b: 3.0)
    assert root.best_bias(line, 1e12) == pytest.approx(at, rel=1e-15)
    doublings = int(np.ceil(np.log2(max(abs(at), 1.0)))) + 2
    assert len(line.seen) <= doublings + 3  # Newton's step is exact
    step = Counted(lambda b: -1.0 if b < at else 1.0, lambda b: 0.0)
    found = root.best_bias(step, 1e12)  # bisection
    assert abs(found - at) <= 1e-15 * abs(at) + 1e-50
    assert len(step.seen) <= doublings + 210
    if at > 0:  # Newton's steps of length one are given up for halves of the bracket
        bend = Counted(lambda b: np.expm1(min(b - at, 700.0)), lambda b: np.exp(min(b - at, 700.0)))
        assert root.best_bias(bend, 1e12) == pytest.approx(at, rel=1e-12)
        assert len(bend.seen) <= doublings + 40
    assert root.best_bias(Counted(lambda b: -1.0, lambda b: 0.0), 10.0) == 16.0
    assert root.best_bias(Counted(lambda b: 1.0, lambda b: 0.0), 10.0) == -16.0


# --- Systems and eigenvalues ----------------------------------------------------------------------------------------


@pytest.mark.mission("O8")
def test_semidefinite_systems(rng):
    """Badly scaled, singular, with columns of zeros; and within a number of operations."""
    B, size = rng.normal(size=(9, 5)), 10.0 ** np.arange(-2.0, 3.0)
    A, rhs = (B * size).T @ (B * size), rng.normal(size=5)
    x = semidefinite.solve_semidefinite(A, rhs)
    y = np.linalg.solve(B.T @ B, rhs / size) / size
    assert x == pytest.approx(y, rel=1e-8)
    low = rng.normal(size=(2, 5))
    low[:, 3] = 0.0
    singular = low.T @ low
    inside = singular @ rng.normal(size=5)
    found = semidefinite.solve_semidefinite(singular, inside)
    assert singular @ found == pytest.approx(inside, abs=1e-11)
    assert np.all(np.isfinite(found))
    # A right-hand side outside the range has no solution: least squares of least norm, if that is affordable. Both are
    # measured in units that make the diagonal one.
    outside = np.array([1.0, 2.0, 3.0, 1.0, -1.0])
    for groups, diagonal in ((1, np.diag(singular)), (5, np.full(5, np.mean(np.diag(singular))))):
        unit = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        expected = (np.linalg.pinv(singular / np.outer(unit, unit)) @ (outside / unit)) / unit
        found = semidefinite.solve_semidefinite(singular, outside, 12.0 * 125, groups)
        assert found == pytest.approx(expected)
    ridged = semidefinite.solve_semidefinite(singular, outside, 12.0 * 125 - 1)
    assert np.abs(ridged).max() > 1e6  # what the ridge gives
    wrong = np.diag([1.0, -1.0])  # no Cholesky factor at all
    assert np.array_equal(semidefinite.solve_semidefinite(wrong, np.ones(2), 0.0), np.zeros(2))
    assert semidefinite.solve_semidefinite(wrong, np.ones(2)) == pytest.approx([1.0, -1.0])
    assert semidefinite.solve_semidefinite(np.array([[4.0]]), np.array([2.0])) == pytest.approx([0.5])


@pytest.mark.mission("O1")
def test_the_largest_eigenvalue_is_bounded_from_above(rng):
    calls = []

    def bound(A, **how):
        calls.clear()
        return numerics.largest_eigenvalue(lambda v: (calls.append(1), A @ v)[1], len(A), **how)

    for n in (1, 2, 5, 6, 7, 60):
        B = rng.normal(size=(n, n))
        A = B @ B.T
        top = np.linalg.eigvalsh(A)[-1]
        assert top * (1 - 1e-12) <= bound(A) <= top * (1 + 1.1e-3)
        assert min(n, 6) <= len(calls) <= n
        assert bound(A, accuracy=1e-10) == pytest.approx(top, rel=1e-9)
    assert bound(np.diag([1.0] * 7 + [2.0])) == pytest.approx(2.0, rel=1e-9)  # two steps exhaust the Krylov space
    assert bound(np.eye(8)) == pytest.approx(1.0)
    assert bound(np.zeros((3, 3))) == 0.0
    assert bound(np.diag([0.0, 3.0, 0.0])) == pytest.approx(3.0)
    values = np.linspace(0.0, 1.0, 400)  # no gap at the top
    assert 1.0 <= bound(np.diag(values)) <= 1.0 + 1.1e-3
    assert len(calls) <= 100
    assert numerics.weighted_sum(np.array([1.0, 2.0]), np.array([[1.0, 0.0], [3.0, 4.0]])) == pytest.approx([7.0, 8.0])


@pytest.mark.mission("O1")
@pytest.mark.parametrize("intercept", [True, False])
def test_the_curvature_of_the_risk_is_bounded(intercept, rng):
    """(sup ℓ'')·λ_max([X 1]'C[X 1]), weighted."""
    X, weight = rng.normal(size=(20, 3)) + 1.0, rng.random(20) + 0.5
    o = hg.make_objective(X, np.resize([1.0, -1.0], 20), hg.Logistic(), sample_weight=weight, fit_intercept=intercept)
    A = np.column_stack([X, np.ones(20)]) if intercept else X
    top = np.linalg.eigvalsh(A.T @ ((weight / weight.sum())[:, None] * A))[-1] / 4
    assert top * (1 - 1e-12) <= o.curvature_bound() <= top * (1 + 1.1e-3)
    assert o.weight_sum == pytest.approx(weight.sum())
    assert hg.make_objective(X, np.ones(20), hg.Poisson()).curvature_bound() == np.inf


@pytest.mark.mission("O8")
def test_counts_of_operations(rng):
    X = rng.normal(size=(20, 6)) * (np.arange(6) < 3)
    dense, sparse = (hg.make_objective(M, np.ones(20), hg.Squared()).design for M in (X, sp.csr_array(X)))
    assert (cost.entries(dense), cost.entries(sparse)) == (120.0, 60.0)
    assert (cost.pass_flops(dense), cost.pass_flops(sparse, 3)) == (480.0, 720.0)
    assert cost.factor_flops(6) == 216 / 3 + 16 * 36
    assert cost.budget(0.0) == 3e7
    assert cost.budget(3e8) == 3e7
    assert cost.budget(3.01e8) == pytest.approx(3.01e7)


# --- Penalties ------------------------------------------------------------------------------------------------------

GRID = np.linspace(-4.0, 4.0, 80_001)


@pytest.mark.mission("R5", "O8")
@pytest.mark.parametrize(
    "penalty",
    [
        hg.L2(0.7), hg.L1(0.4), hg.Elastic(0.9, 0.3), hg.L2(0.7, positive=True), hg.Elastic(0.9, 0.3, positive=True),
        hg.L1(0.4, positive=True), hg.Box(-0.5, 2.0), hg.Box(-3.0, 0.0), hg.Box(0.0, 1.0),
    ],
    ids=repr,
)  # fmt: skip
def test_penalties_of_one_weight_against_all_weights_on_a_grid(penalty):
    """Conjugate, prox, distance from the subdifferential and the largest scale, by brute force."""
    values = np.array([penalty.value(np.array([t])) for t in GRID[::20]])
    grid = GRID[::20][np.isfinite(values)]
    values = values[np.isfinite(values)]
    for g in (-1.3, -0.4, -0.2, 0.0, 0.3, 0.4, 0.41, 1.5):
        gains = g * grid - values
        expected = gains.max()
        at = np.abs(grid[gains >= expected - 1e-12]).min()
        bounded = at < 3.99  # the supremum is not where the grid ends
        scale = penalty.dual_scale(np.array([g]))
        if bounded:
            assert penalty.conjugate(np.array([g])) == pytest.approx(expected, abs=1e-5)
            assert scale == 1.0
        else:
            assert penalty.conjugate(np.array([g])) == np.inf
            assert scale == pytest.approx(0.4 / abs(g))
        for step in (0.5, 2.0):
            best = grid[np.argmin(0.5 * (grid - g) ** 2 + step * values)]
            assert penalty.prox(np.array([g]), step)[0] == pytest.approx(best, abs=2.1e-3)
    h = 1e-6
    for w in (-0.5, 0.0, 0.3, 1.0, 2.0):
        if not np.isfinite(penalty.value(np.array([w]))):
            continue
        right = (penalty.value(np.array([w + h])) - penalty.value(np.array([w]))) / h
        left = (penalty.value(np.array([w])) - penalty.value(np.array([w - h]))) / h
        left, right = (left if np.isfinite(left) else -np.inf), (right if np.isfinite(right) else np.inf)
        for g in (-1.0, -0.4, 0.0, 0.2, 1.1):
            distance = penalty.subdifferential_distance(np.array([w]), np.array([g]))[0]
            assert distance == pytest.approx(max(left + g, -g - right, 0.0), abs=1e-5)


@pytest.mark.mission("R5")
def test_the_strength_from_which_all_weights_are_zero():
    g = np.array([0.5, -0.8, 0.2])
    weights = np.array([1.0, 4.0, 0.5])
    assert hg.L1(1.0, weights=weights).lambda_max(g) == pytest.approx(0.5)
    assert hg.L1(1.0, positive=True).lambda_max(g) == pytest.approx(0.8)  # only the second may move
    assert hg.L1(1.0, positive=True).lambda_max(np.array([0.5, 0.0, 0.2])) == 0.0
    assert hg.Elastic(1.0, 0.25).lambda_max(g) == pytest.approx(0.8 / 0.25)
    assert hg.L2(1.0).lambda_max(g) == np.inf
    assert hg.L2(1.0).lambda_max(0.0 * g) == 0.0
    assert hg.MaxNorm(1.0).lambda_max(g) == pytest.approx(1.5)
    assert hg.Box(0.0, 1.0).lambda_max(np.abs(g)) == 0.0
    assert hg.Box(0.0, 1.0).lambda_max(g) == np.inf
    assert hg.NoPenalty().lambda_max(g) == np.inf
    assert hg.GroupNorm(1.0, groups=[0, 0, 1], weights=[2.0, 0.1]).lambda_max(g) == pytest.approx(2.0)


@pytest.mark.mission("R5", "O8")
def test_balls_and_norms_by_their_formulas(rng):
    g, w = rng.normal(size=5), rng.normal(size=5)
    w[2] = 0.0
    assert hg.L1Ball(0.7).conjugate(g) == pytest.approx(0.7 * np.abs(g).max())
    assert hg.L2Ball(0.7).conjugate(g) == pytest.approx(0.7 * np.linalg.norm(g))
    for share in (1.0, 0.4):  # on the sphere, and inside, where the slack counts
        radius = np.abs(w).sum() / share
        for sign in (1.0, -1.0):
            t = max(-sign * (g @ w), 0.0) / np.abs(w).sum()
            expected = np.where(w != 0, np.abs(sign * g + t * np.sign(w)), np.maximum(np.abs(g) - t, 0.0)) + t * (
                1 - share
            )
            assert hg.L1Ball(radius).subdifferential_distance(w, sign * g) == pytest.approx(expected)
        radius = np.linalg.norm(w) / share
        for sign in (1.0, -1.0):
            unit = w / np.linalg.norm(w)
            t = max(-sign * (g @ unit), 0.0)
            expected = np.abs(sign * g + t * unit) + t * (1 - share)
            assert hg.L2Ball(radius).subdifferential_distance(w, sign * g) == pytest.approx(expected)
    assert hg.L1Ball(0.0).prox(w, 1.0) == pytest.approx(np.zeros(5))
    assert hg.L2Ball(0.5).prox(w, 1.0) == pytest.approx(0.5 * w / np.linalg.norm(w))
    total = np.abs(g).sum()
    for lam, scale in ((total * 1.01, 1.0), (total * 0.5, 0.5)):
        assert hg.MaxNorm(lam).dual_scale(g) == pytest.approx(scale)
        assert hg.MaxNorm(lam).conjugate(g) == (0.0 if scale == 1.0 else np.inf)
    groups, factors = np.array([1, 0, 1, 0, 0]), np.array([0.5, 2.0])
    penalty = hg.GroupNorm(0.3, groups=groups, weights=factors)
    norms = np.array([np.linalg.norm(g[groups == k]) for k in (0, 1)])
    assert penalty.dual_scale(g) == pytest.approx(min(1.0, *(0.3 * factors / norms)))
    for share, value in ((0.99, 0.0), (1.01, np.inf)):
        assert penalty.conjugate(share * g * np.min(0.3 * factors / norms)) == value
    w = np.where(groups == 0, w, 0.0)
    unit = w[groups == 0] / np.linalg.norm(w)
    expected = [np.linalg.norm(g[groups == 0] + 0.15 * unit), max(norms[1] - 0.6, 0.0)]
    assert penalty.subdifferential_distance(w, g) == pytest.approx(expected)
    rows = hg.GroupNorm(0.3).rows(5)
    assert rows[0] == pytest.approx(np.full(5, 0.3))
    assert rows[1] == pytest.approx(np.zeros(5))
    assert penalty.rows(5) is None


@pytest.mark.mission("R5")
@pytest.mark.parametrize("q", [0.2, 0.5, 0.9])
def test_nonconvex_penalties_of_one_weight_against_a_grid(q):
    penalty = hg.Lq(0.4, q)
    for v in (-2.0, -0.3, 0.0, 0.1, 0.6, 0.9, 1.5):
        for step in (0.5, 2.0):
            value = 0.5 * (GRID - v) ** 2 + step * 0.4 * np.abs(GRID) ** q
            found = penalty.prox(np.array([v]), step)[0]
            assert 0.5 * (found - v) ** 2 + step * 0.4 * abs(found) ** q <= value.min() + 1e-9
            assert found == 0.0 or found == pytest.approx(GRID[np.argmin(value)], abs=2e-3)
    w, g = np.array([0.5, 0.0, -2.0]), np.array([0.3, 9.0, -0.1])
    expected = np.abs(g + 0.4 * q * np.sign(w) * np.where(w != 0, np.abs(w), 1.0) ** (q - 1)) * (w != 0)
    assert penalty.subdifferential_distance(w, g) == pytest.approx(expected)
    assert hg.Lq(0.0, q).prox(w, 1.0) == pytest.approx(w)
    # L0: |v| > √(2λη) is kept.
    edge = np.sqrt(2 * 0.4 * 0.5)
    assert hg.L0(0.4).prox(np.array([edge * 1.01, -edge * 0.99, -edge * 1.01]), 0.5).tolist() == [
        edge * 1.01,
        0,
        -edge * 1.01,
    ]
    assert hg.L0(0.4).subdifferential_distance(w, g) == pytest.approx([0.3, 0.0, 0.1])
