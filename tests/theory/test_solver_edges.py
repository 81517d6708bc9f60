"""Inner steps of solvers against the problem that each of them solves: subspaces, least squares, one-line searches."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog

import hinge as hg
from hinge.problem.certificates.kernel_machine import (
    classification,
    feasible,
    nu_classification,
    nu_regression,
    one_class,
    regression,
)
from hinge.solvers import admm, gram_interior_point, line_search
from hinge.solvers.base import Stop
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


@pytest.mark.mission("O4")
@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("steps", [1, 2, 9, 11, 27])
def test_the_iterates_of_admm(steps, offset, rng):
    """Relaxed by 1.6, in the units of κ = mean Σ c x²; after 10, 20, 30, 45 … steps ρ follows the ratio of the residuals."""
    n, d, lam = 12, 3, 0.05
    X, y, weight = 2.0 * rng.normal(size=(n, d)), rng.normal(size=n), rng.random(n) + 0.5
    shift, c = rng.normal(size=n) * offset, weight / weight.sum()
    o = hg.make_objective(X, y, hg.Absolute(), hg.L1(lam), sample_weight=weight, offset=shift if offset else None)
    kappa, rho, adapt = np.mean(c @ X**2), 0.5, 10
    A = np.vstack([np.sqrt(c)[:, None] * np.column_stack([X, np.ones(n)]), np.sqrt(kappa) * np.eye(d, d + 1)])
    w, b = rng.normal(size=d), rng.normal(size=1)
    start = w.copy(), b.copy()
    z = X @ w + b + shift
    u, v, q = np.sign(z - y), w, np.zeros(d)
    for k in range(1, steps + 1):
        target = np.append(np.sqrt(c) * (z - u / rho - shift), np.sqrt(kappa) * (v + q / rho))
        *w, b = np.linalg.lstsq(A, target, rcond=None)[0]
        fitted, moved = 1.6 * (X @ w + b + shift) - 0.6 * z, 1.6 * np.array(w) - 0.6 * v
        before = z, v
        t = fitted + u / rho - y
        z = y + np.sign(t) * np.maximum(np.abs(t) - 1 / rho, 0.0)
        t = moved - q / rho
        v = np.sign(t) * np.maximum(np.abs(t) - lam / (rho * kappa), 0.0)
        u, q = u + rho * (fitted - z), q + rho * (v - moved)
        if k >= adapt:
            adapt = k + max(10, k // 2)

            def length(z, v):
                return np.sqrt(c @ z**2 + kappa * v @ v)

            ratio = (
                length(fitted - z, moved - v)
                / length(z, v)
                / (rho * length(z - before[0], v - before[1]) / length(u, q))
            )
            rho *= np.clip(np.sqrt(ratio), 0.1, 10.0)
    found = admm.ADMM(rho=0.5).run(o, *start, Stop(tol=0.0, max_iter=steps))
    assert found.iterations == steps
    assert found.w == pytest.approx(v, abs=1e-9)
    assert found.dual == pytest.approx(u, abs=1e-9)


# --- The interior point method of kernel machines -------------------------------------------------------------------


def machine(name, rng, n=10):
    y, upper, labels = rng.normal(size=n), rng.random(n) + 0.2, np.resize([1.0, -1.0], n)
    return {
        "classification": lambda: classification(labels, upper), "regression": lambda: regression(y, 0.1, upper),
        "nu classification": lambda: nu_classification(labels, 0.4, upper),
        "nu regression": lambda: nu_regression(y, 0.4, upper), "one class": lambda: one_class(0.4, upper),
    }[name]()  # fmt: skip


MACHINES = ("classification", "regression", "nu classification", "nu regression", "one class")


@pytest.mark.mission("K4")
@pytest.mark.parametrize("name", MACHINES)
def test_newtons_equations_of_the_interior_point_method(name, rng):
    """QΔα + DΔα + A'Δλ = r and AΔα = s for any D > 0, with variables of weight zero left out."""
    dual = machine(name, rng)
    dual.upper[2] = 0.0
    used = np.flatnonzero(dual.upper > 0)
    B = rng.normal(size=(10, 4))
    K = B @ B.T + 0.1 * np.eye(10)
    system = gram_interior_point._System(K, dual, used)
    P = (np.arange(10)[:, None] == used % 10) * dual.sign[used]  # β = Pα
    A = np.array([dual.sign, np.ones(len(dual.sign))][: dual.groups])
    alpha, level = rng.random(len(used)), rng.normal(size=len(A))
    assert system.beta(alpha) == pytest.approx(P @ alpha)
    assert system.sums == pytest.approx(A @ dual.start)
    gradient, scores = system.gradient(alpha, level)
    linear = (dual.sign * dual.target)[used]
    assert scores == pytest.approx(K @ P @ alpha)
    assert gradient == pytest.approx(P.T @ K @ P @ alpha - linear + A[:, used].T @ level)
    D, right, sums = rng.random(len(used)) + 0.1, rng.normal(size=len(used)), rng.normal(size=len(A))
    assert system.factor(D)
    step, change = system.solve(right, sums)
    assert P.T @ K @ P @ step + D * step + A[:, used].T @ change == pytest.approx(right)
    assert A[:, used] @ step == pytest.approx(sums)
    assert not gram_interior_point._System(-10.0 * np.eye(10), dual, used).factor(D)
    first, lower, upper, base = system.start()
    most = dual.upper[used]
    begin = dual.start[used]
    assert first == pytest.approx(np.clip(begin, 0.1 * most, 0.9 * most) if np.any(begin) else 0.1 * most)
    left = system.gradient(first, base)[0]
    assert lower - upper == pytest.approx(left)  # dual feasible from the start
    assert np.minimum(lower, upper) == pytest.approx(np.full(len(used), np.mean(np.abs(left))))


@pytest.mark.mission("K4")
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("steps", [1, 3])
def test_the_iterates_of_the_interior_point_method(name, steps, rng, monkeypatch):
    """Mehrotra's predictor and corrector from the whole system of α, λ, z and y, solved densely."""
    dual = machine(name, rng)
    B, m = rng.normal(size=(10, 3)), len(dual.sign)
    K = B @ B.T + 0.05 * np.eye(10)
    P = (np.arange(10)[:, None] == np.arange(m) % 10) * dual.sign
    Q, U, A = P.T @ K @ P, dual.upper, np.array([dual.sign, np.ones(m)][: dual.groups])
    alpha, z, y, level = gram_interior_point._System(K, dual, np.arange(m)).start()

    def direction(first, second):
        """Of (α, λ), z and y, where α∘z + … and (U − α)∘y + … are to change by these."""
        D = z / alpha + y / (U - alpha)
        gradient = Q @ alpha - dual.sign * dual.target + A.T @ level - z + y
        right = np.concatenate([-gradient + first / alpha - second / (U - alpha), A @ (dual.start - alpha)])
        x = np.linalg.solve(np.block([[Q + np.diag(D), A.T], [A, np.zeros((len(A), len(A)))]]), right)
        return x[:m], x[m:], (first - z * x[:m]) / alpha, (second + y * x[:m]) / (U - alpha)

    for _ in range(steps):
        room = U - alpha
        mu = (alpha @ z + room @ y) / (2 * m)
        da, _, dz, dy = direction(-alpha * z, -room * y)
        t = min(1.0, *(v / -d for v, d in zip([*alpha, *room, *z, *y], [*da, *-da, *dz, *dy]) if d < 0))
        ahead = ((alpha + t * da) @ (z + t * dz) + (room - t * da) @ (y + t * dy)) / (2 * m)
        goal = ahead**3 / mu**2
        da, dl, dz, dy = direction(goal - alpha * z - da * dz, goal - room * y + da * dy)
        t = 0.995 * min(1.0, *(v / -d for v, d in zip([*alpha, *room, *z, *y], [*da, *-da, *dz, *dy]) if d < 0))
        alpha, level, z, y = alpha + t * da, level + t * dl, z + t * dz, y + t * dy
    seen = []
    monkeypatch.setattr(gram_interior_point, "ITERATIONS", steps)
    monkeypatch.setattr(gram_interior_point, "_on_bounds", lambda *parts: seen.append(parts) or parts[0])
    gram_interior_point.interior_multipliers(K, dual, 1e-10)
    for found, expected in zip(seen[0], (alpha, U, z, y)):
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.mission("K4", "O8")
@pytest.mark.parametrize("name", MACHINES)
def test_the_interior_point_method_ends_at_the_optimum(name, rng, monkeypatch):
    """Feasible, and no feasible point is better: by concavity D* − D(α) is at most max ⟨∇D(α), α' − α⟩ over all of them."""
    dual = machine(name, rng)
    B = rng.normal(size=(10, 3))
    K = B @ B.T + 0.05 * np.eye(10)
    factors, factor = [], gram_interior_point._System.factor
    monkeypatch.setattr(gram_interior_point._System, "factor", lambda self, D: factors.append(D) or factor(self, D))
    alpha = gram_interior_point.interior_multipliers(K, dual, 1e-10)
    assert len(factors) <= 16  # predictor and corrector: about ten
    assert feasible(dual, alpha)
    scores = K @ (dual.sign * alpha).reshape(-1, 10).sum(axis=0)
    gradient = dual.sign * (dual.target - np.tile(scores, len(alpha) // 10))
    A = np.array([dual.sign, np.ones(len(alpha))][: dual.groups])
    best = linprog(-gradient, A_eq=A, b_eq=A @ dual.start, bounds=list(zip(np.zeros(len(alpha)), dual.upper)))
    size = 0.5 * np.sum((dual.sign * alpha).reshape(-1, 10).sum(axis=0) * scores) + abs(
        (dual.sign * dual.target) @ alpha
    )
    assert gradient @ (best.x - alpha) <= 1e-6 * size


@pytest.mark.mission("K4")
def test_steps_and_bounds_of_the_interior_point_method():
    one = np.ones(2)
    length = gram_interior_point._length
    assert length(one, 0 * one, one, one, 0 * one, one, 0 * one) == 1.0
    assert length(one, np.array([-4.0, 1.0]), one, one, 0 * one, one, 0 * one) == 0.25  # α falls
    assert length(one, np.array([5.0, 1.0]), one, one, 0 * one, one, 0 * one) == 0.2  # α rises: its room falls
    assert length(one, 0 * one, one, one, np.array([-8.0, 0.0]), one, 0 * one) == 0.125
    assert length(one, 0 * one, one, one, 0 * one, one, np.array([0.0, -10.0])) == 0.1
    assert length(one, -0.5 * one, one, one, 0 * one, one, 0 * one) == 1.0
    # On a bound only if the bound's price is large beside the distance, in units of their means.
    upper = np.full(4, 2.0)
    alpha = np.array([1e-6, 2.0 - 1e-6, 1.0, 1e-6])
    prices = np.array([1.0, 0.0, 0.0, 1e-6]), np.array([0.0, 1.0, 0.0, 0.0])
    assert gram_interior_point._on_bounds(alpha, upper, *prices).tolist() == [0.0, 2.0, 1.0, 1e-6]
    # Prices that are all rounding put nothing on a bound, however they compare with each other.
    rounding = [1e-14 * price for price in prices]
    assert gram_interior_point._on_bounds(alpha, upper, *rounding, 1e-4).tolist() == alpha.tolist()


@pytest.mark.mission("K4")
def test_sums_are_corrected_within_bounds():
    """Those inside their bounds first, the one with most room first; then those at a bound."""
    upper = np.array([1.0, 1.0, 1.0, 1.0])
    shift = gram_interior_point._shift
    for total, expected in (
        (0.3, [0.5, 0.2 + 0.3, 0.0, 1.0]), (0.9, [0.5 + 0.1, 1.0, 0.0, 1.0]), (1.5, [1.0, 1.0, 0.2, 1.0]),
        (-0.2, [0.3, 0.2, 0.0, 1.0]), (-0.6, [0.0, 0.1, 0.0, 1.0]), (-1.0, [0.0, 0.0, 0.0, 0.7]), (0.0, [0.5, 0.2, 0.0, 1.0]),
    ):  # fmt: skip
        alpha = np.array([0.5, 0.2, 0.0, 1.0])
        assert shift(alpha, upper, np.arange(4), total) == pytest.approx(total)
        assert alpha == pytest.approx(expected)
    alpha = np.array([0.5, 0.2])
    assert shift(alpha, upper[:2], np.arange(2), 9.0) == pytest.approx(1.3)  # no more than there is room for
    part = np.array([0.5, 0.2, 0.3, 0.4])
    shift(part, upper, np.array([1, 3]), 0.1)
    assert part == pytest.approx([0.5, 0.3, 0.3, 0.4])


@pytest.mark.mission("K4")
@pytest.mark.parametrize("name", MACHINES)
def test_multipliers_are_repaired(name, rng):
    for _ in range(5):
        dual = machine(name, rng)
        wild = dual.upper * (1.6 * rng.random(len(dual.upper)) - 0.3)
        found = gram_interior_point._repaired(wild, dual)
        assert feasible(dual, found)
        near = np.clip(wild, 0.0, dual.upper)
        least = np.abs([dual.sign @ (dual.start - near), *([np.sum(dual.start - near)] if dual.nu else [])]).max()
        assert (
            least * (1 - 1e-9)
            <= np.abs(found - near).sum()
            <= 2 * least + 1e-12 + np.abs(near - dual.start).sum() * dual.nu
        )
        assert gram_interior_point._repaired(found, dual) == pytest.approx(found, abs=1e-12)


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
