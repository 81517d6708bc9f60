"""Inner steps of solvers against the problem that each of them solves: subspaces, least squares, one-line searches."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import hinge as hg
from hinge.solvers import admm, line_search
from hinge.solvers.constant import _gradients, best_constant, no_worse_than_constant
from hinge.solvers.lsqr import lsqr
from hinge.solvers.packing import Flat
from hinge.solvers.stopping import State, Watches

# --- LSQR -----------------------------------------------------------------------------------------------------------


@pytest.mark.mission("O3")
@pytest.mark.parametrize(("n", "d"), [(12, 5), (5, 12)])
def test_lsqr_minimises_over_krylov_spaces(n, d, rng):
    """After k steps W is the least-squares solution over span{A'b, (A'A)A'b, …}, column by column."""
    A, B = rng.normal(size=(n, d)), rng.normal(size=(n, 2))
    for k in (1, 2, 3):
        W, met, count = lsqr(lambda V: A @ V, lambda U: A.T @ U, B, tol=0.0, max_iter=k)
        assert (met, count) == (False, k)
        for j in range(2):
            basis = [A.T @ B[:, j]]
            for _ in range(k - 1):
                basis.append(A.T @ (A @ basis[-1]))
            V = np.linalg.qr(np.array(basis).T)[0]
            assert W[:, j] == pytest.approx(V @ np.linalg.lstsq(A @ V, B[:, j], rcond=None)[0], abs=1e-9)


@pytest.mark.mission("O3")
def test_lsqr_stops_by_the_normal_equations_or_by_the_residual(rng):
    A, b = rng.normal(size=(30, 6)), rng.normal(size=30)
    for tol in (1e-2, 1e-5, 1e-8):
        W, met, count = lsqr(lambda V: A @ V, lambda U: A.T @ U, b[:, None], tol=tol, max_iter=50)
        r = b - A @ W[:, 0]
        assert met
        assert np.linalg.norm(A.T @ r) <= tol * np.linalg.norm(A) * np.linalg.norm(r) * (1 + 1e-9)
        fewer = lsqr(lambda V: A @ V, lambda U: A.T @ U, b[:, None], tol=tol, max_iter=count - 1)
        assert not fewer[1]
    square = rng.normal(size=(6, 6)) + 4 * np.eye(6)  # b is fitted exactly
    W, met, count = lsqr(lambda V: square @ V, lambda U: square.T @ U, b[:6, None], tol=1e-3, max_iter=50)
    assert met
    assert np.linalg.norm(b[:6] - square @ W[:, 0]) <= 1e-3 * np.linalg.norm(b[:6]) or count == 6
    # Columns without anything to fit are done at once, and stay zero while others go on.
    B = np.column_stack([np.zeros(30), b, np.linalg.qr(A, mode="complete")[0][:, -1]])
    W, met, count = lsqr(lambda V: A @ V, lambda U: A.T @ U, B, tol=1e-10, max_iter=50)
    assert met
    assert W[:, 0] == pytest.approx(np.zeros(6))
    assert W[:, 1] == pytest.approx(np.linalg.lstsq(A, b, rcond=None)[0])
    assert W[:, 2] == pytest.approx(np.zeros(6), abs=1e-12)
    assert lsqr(lambda V: A @ V, lambda U: A.T @ U, np.zeros((30, 1)), tol=1e-10, max_iter=50)[1:] == (True, 0)


# --- ADMM -----------------------------------------------------------------------------------------------------------


@pytest.mark.mission("O4")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("n", "d"), [(9, 3), (4, 7)])
@pytest.mark.parametrize("outputs", [(), (2,)])
def test_the_least_squares_step_of_admm(n, d, intercept, outputs, rng):
    """(w, b) = argmin Σ c(x'w + b − t)² + κ‖w − a‖², for tall and wide tables."""
    X, weight, kappa = rng.normal(size=(n, d)) + 1.0, rng.random(n) + 0.5, 0.3
    o = hg.make_objective(X, rng.normal(size=(n, *outputs)), hg.Absolute(), hg.L1(0.1), sample_weight=weight, fit_intercept=intercept)  # fmt: skip
    t, a = rng.normal(size=(n, *outputs)), rng.normal(size=(d, *outputs))
    w, b = admm._least_squares(o, kappa)(t, a)
    c = weight / weight.sum()
    A = np.column_stack([X, np.ones(n)]) if intercept else X
    ridge = np.zeros((d, A.shape[1]))
    ridge[:, :d] = np.sqrt(kappa) * np.eye(d)
    stacked = np.vstack([np.sqrt(c)[:, None] * A, ridge])
    root = np.sqrt(c) if not outputs else np.sqrt(c)[:, None]
    expected = np.linalg.lstsq(stacked, np.concatenate([root * t, np.sqrt(kappa) * a]), rcond=None)[0]
    assert w == pytest.approx(expected[:d])
    assert b == pytest.approx(expected[d] if intercept else np.zeros(o.outputs))
    v = rng.normal(size=(d, *outputs))
    square = np.sum(root**2 * t**2) + kappa * np.sum(v**2)
    assert admm._length(o, kappa, t, v) == pytest.approx(np.sqrt(square))


@pytest.mark.mission("O4")
@pytest.mark.parametrize("outputs", [(), (2,)])
def test_the_best_bias_of_given_weights(outputs, rng):
    X, weight, y = rng.normal(size=(15, 2)), rng.random(15) + 0.5, rng.normal(size=(15, *outputs)) + 5.0
    o = hg.make_objective(X, y, hg.Huber(0.5), hg.L1(0.1), sample_weight=weight)
    v, start = rng.normal(size=(2, *outputs)), rng.normal(size=o.outputs)
    b = admm._bias(o, v, start)
    assert weight @ np.clip(y - X @ v - (b if outputs else b[0]), -0.5, 0.5) == pytest.approx(0.0, abs=1e-12)
    alone = hg.make_objective(X, y, hg.Huber(0.5), hg.L1(0.1), fit_intercept=False)
    assert admm._bias(alone, v, start) == pytest.approx(np.zeros(o.outputs))


# --- Lines ----------------------------------------------------------------------------------------------------------


@pytest.mark.mission("O1")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("outputs", [(), (2,)])
def test_the_exact_step_of_a_quadratic(intercept, outputs, rng):
    """η = −∇J·p / p'Hp; uphill there is none."""
    X, weight, lam = rng.normal(size=(12, 3)), rng.random(12) + 0.5, 0.7
    o = hg.make_objective(
        X, rng.normal(size=(12, *outputs)), hg.Squared(), hg.L2(lam), sample_weight=weight, fit_intercept=intercept
    )
    flat, c = Flat(o), weight / weight.sum()
    x = rng.normal(size=(3 + intercept) * o.outputs)
    value, g = flat.value_gradient(x)
    p = -g * (rng.random(len(x)) + 0.1)
    pw, pb = flat.unpack(p)
    dz = X @ pw + (pb if outputs else pb[0])
    bend = np.sum(c.reshape((-1,) + (1,) * len(outputs)) * dz**2) + lam * np.sum(pw**2)
    assert line_search.exact(flat, x, p) == pytest.approx(-(g @ p) / bend)
    assert line_search.exact(flat, x, -p) == 0.0
    # And the vector itself: weights first, then biases; value, gradient and prox are those of the objective.
    w, b = flat.unpack(x)
    assert value == pytest.approx(o.value(w, b))
    assert flat.value(x) == pytest.approx(value)
    numeric = [(flat.value(x + 1e-6 * e) - flat.value(x - 1e-6 * e)) / 2e-6 for e in np.eye(len(x))]
    assert g == pytest.approx(numeric, abs=1e-6)
    assert flat.prox(x, 0.5) == pytest.approx(flat.pack(w / (1 + 0.5 * lam), b))
    if not outputs:
        assert flat.curvature_bound() == pytest.approx(o.curvature_bound() + lam)


@pytest.mark.mission("O7")
def test_the_cubic_through_two_ends(rng):
    """Its minimiser where that is inside by a twentieth; the middle otherwise; a tenth where the far end is infinite."""
    for _ in range(20):
        low, high = np.sort(rng.normal(size=2))
        at = low + (high - low) * rng.uniform(0.06, 0.94)
        k = rng.uniform(0.05, 1.0)

        def f(t, at=at, k=k):
            return (t - at) ** 2 + 0.1 * k * (t - at) ** 3

        def slope(t, at=at, k=k):
            return 2 * (t - at) + 0.3 * k * (t - at) ** 2

        ends = [(t, f(t), slope(t)) for t in (low, high)]
        assert line_search._between(*ends) == pytest.approx(at)
        assert line_search._between(*ends[::-1]) == pytest.approx(at)
    near = [(t, (t - 0.03) ** 2, 2 * (t - 0.03)) for t in (0.0, 1.0)]
    assert line_search._between(*near) == 0.5
    far = [(t, (t - 0.97) ** 2, 2 * (t - 0.97)) for t in (0.0, 1.0)]
    assert line_search._between(*far) == 0.5
    assert line_search._between((1.0, 0.0, -1.0), (3.0, np.inf, np.inf)) == pytest.approx(1.2)
    assert line_search._between((1.0, 0.0, -1.0), (3.0, 1.0, np.nan)) == pytest.approx(1.2)
    assert line_search._between((0.0, 0.0, -1.0), (1.0, -1.0, -1.0)) == 0.5  # a line has no minimiser


# --- Constants and rules for stopping -------------------------------------------------------------------------------


@pytest.mark.mission("O2")
def test_subgradients_at_a_constant_are_balanced_by_those_at_the_kink():
    """low + θ(high − low) with θ = −Σ c low / Σ c (high − low): the median of 0, 1, 2 with weights 1, 2, 1."""
    y, weight = np.array([0.0, 1.0, 1.0, 2.0, 5.0]), np.array([1.0, 1.0, 1.0, 1.5, 0.2])
    o = hg.make_objective(np.ones((5, 1)), y, hg.Absolute(), hg.L1(9.0), sample_weight=weight)
    u = _gradients(o, 1.0)
    assert u == pytest.approx([1.0, 0.35, 0.35, -1.0, -1.0])
    assert weight @ u == pytest.approx(0.0, abs=1e-15)
    assert _gradients(o, 0.5) == pytest.approx([1.0, -1.0, -1.0, -1.0, -1.0])  # no example is at a kink
    alone = hg.make_objective(np.ones((5, 1)), y, hg.Absolute(), hg.L1(9.0), fit_intercept=False)
    assert np.all(np.abs(_gradients(alone, 0.0)) <= 1)
    found = best_constant(o, 1e-9)
    assert (found.w[0], found.b[0], found.iterations) == (0.0, 1.0, 1)
    assert best_constant(o.with_penalty(hg.L1(1e-3)), 1e-9) is not None  # a constant feature helps nothing
    slope = hg.make_objective(np.arange(5.0)[:, None], y, hg.Absolute(), hg.L1(1e-3), sample_weight=weight)
    assert best_constant(slope, 1e-9) is None
    assert best_constant(o.with_penalty(hg.L2(9.0)), 1e-9) is None
    offset = hg.make_objective(np.ones((5, 1)), y, hg.Absolute(), hg.L1(9.0), offset=y)
    assert best_constant(offset, 1e-9) is None


@pytest.mark.mission("O2")
def test_a_constant_that_attains_the_least_objective_replaces_what_approaches_it():
    same = hg.make_objective(np.ones((3, 1)), np.full(3, 2.0), hg.Absolute(), hg.L2(1.0))
    near = SimpleNamespace(status=None, w=np.array([1e-9]), b=np.array([2.0]), iterations=7)
    found = no_worse_than_constant(same, near)
    assert (found.w[0], found.b[0], found.iterations) == (0.0, 2.0, 7)
    there = SimpleNamespace(status=None, w=np.zeros(1), b=np.array([2.0]), iterations=7)
    assert no_worse_than_constant(same, there) is there
    mixed = hg.make_objective(np.ones((3, 1)), np.array([1.0, 2.0, 4.0]), hg.Absolute(), hg.L2(1.0))
    assert no_worse_than_constant(mixed, near) is near


def state(objective=1.0, norm=1.0, x=(0.0, 0.0)):
    x = np.array(x)
    return State(objective, norm, x, x[:1], x[1:])


@pytest.mark.mission("O1")
def test_rules_compare_with_one_where_sizes_are_small():
    o = hg.make_objective(np.ones((2, 1)), np.array([0.0, 1.0]), hg.Squared())
    for before, now, stops in (
        (5.0, 5.5, True),
        (5.0, 5.6, False),
        (0.0, 0.1, True),
        (0.0, 0.11, False),
        (-9.0, -10.0, True),
    ):
        watch = Watches(hg.solvers.ObjectiveChange(0.1), o)
        assert not watch(state(before))
        assert watch(state(now)) == stops
    for before, now, stops in (
        ((0.0, 0.0), (0.06, 0.08), True), ((0.0, 0.0), (0.06, 0.081), False), ((30.0, 40.0), (33.0, 44.0), True),
        ((30.0, 40.0), (34.0, 45.0), False),
    ):  # fmt: skip
        watch = Watches(hg.solvers.ParameterChange(0.1), o)
        assert not watch(state(x=before))
        assert watch(state(x=now)) == stops
    watch = Watches((hg.solvers.GradientNorm(0.1), hg.solvers.ObjectiveChange(1e-9)), o)
    assert not watch(state(2.0, 0.11))
    assert watch(state(1.0, 0.1))
    w, b = np.ones(1), np.ones(1)
    assert watch.final(w, b) == (w, b)
