"""O: the parts that solvers share, each against its formula: searches along a line, preconditioners, tangents."""

from __future__ import annotations

import itertools
import warnings
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import hinge as hg
from hinge.problem.certificates.fast import GOLDEN, TRIALS, balanced_sides, lowest
from hinge.solvers import lbfgs, reweighted
from hinge.solvers.base import Status, Stop
from hinge.solvers.line_search import backtracking, wolfe
from hinge.solvers.run import solve


class Line:
    """A function of one variable in the place of an objective, which notes where it was evaluated."""

    def __init__(self, f, derivative):
        self.f, self.derivative, self.seen = f, derivative, []

    def value_gradient(self, x):
        self.seen.append(float(x[0]))
        return self.f(x[0]), np.array([self.derivative(x[0])])

    def search(self, method, *settings, p=1.0):
        """The step from 0 along p."""
        x, p = np.zeros(1), np.array([p])
        return method(self, x, self.f(0.0), np.array([self.derivative(0.0)]), p, *settings)


def parabola(centre):
    return Line(lambda t: 0.5 * (t - centre) ** 2, lambda t: t - centre)


# --- Searches along a line ------------------------------------------------------------------------------------------


@pytest.mark.mission("O1")
@pytest.mark.parametrize("start", [1.0, 0.5, 40.0])
def test_backtracking_halves_until_armijo_holds(start):
    """(t − 1)²/2 falls by c₁ t at least where t ≤ 2(1 − c₁), so the step is the first start/2^k up to there."""
    line = parabola(1.0)
    step = line.search(backtracking, start)
    expected = start
    while expected > 2 * (1 - 1e-4):
        expected /= 2
    assert step.length == expected
    assert line.seen == [start / 2**k for k in range(len(line.seen))]
    assert (step.value, step.gradient[0]) == (line.f(expected), expected - 1.0)


@pytest.mark.mission("O1")
def test_backtracking_gives_up_uphill():
    line = parabola(1.0)
    x, g = np.zeros(1), np.array([-1.0])
    step = backtracking(line, x, 0.5 - 1e-3, g, np.array([-1.0]), 1.0)
    assert (step.length, step.value, step.gradient) == (0.0, 0.5 - 1e-3, g)
    assert len(line.seen) == 60


@pytest.mark.mission("O7")
def test_wolfe_doubles_while_the_slope_is_steep():
    """√(1 + (t − 20)²) has the slope −0.999 at 0; |slope| ≤ 0.9 of that first holds at 2^k for 2^k = 32 of 1, 2, 4 …"""
    line = Line(lambda t: np.hypot(1.0, t - 20.0), lambda t: (t - 20.0) / np.hypot(1.0, t - 20.0))
    step = line.search(wolfe, 1.0, 0.9)
    assert line.seen[:6] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    # 32 is uphill again, and no lower than 16 minus what Armijo demands: the search zooms in between.
    assert all(16.0 < t < 32.0 for t in line.seen[6:])
    assert line.f(step.length) <= line.f(0.0) + 1e-4 * step.length * line.derivative(0.0)
    assert abs(line.derivative(step.length)) <= 0.9 * abs(line.derivative(0.0))
    assert step.value == line.f(step.length)
    assert step.gradient[0] == line.derivative(step.length)


@pytest.mark.mission("O7")
@pytest.mark.parametrize("curvature", [0.9, 0.5, 0.1])
@pytest.mark.parametrize("p", [0.01, 1.0, 30.0, 1e4])
def test_wolfe_of_a_parabola(p, curvature):
    """A parabola is its own cubic: after the steps that double, one interpolation ends at the minimum."""
    line = parabola(1.0)
    step = line.search(wolfe, 1.0, curvature, p=p)
    t = step.length * p
    assert line.f(t) <= line.f(0.0) - 1e-4 * t
    assert abs(t - 1.0) <= curvature
    doubled = p
    while doubled < 1.0 - curvature:
        doubled *= 2
    if abs(doubled - 1.0) <= curvature and doubled < 2 * (1 - 1e-4):
        assert t == pytest.approx(doubled)
    elif 0.05 * doubled <= 1.0 <= 0.95 * doubled:  # not so near an end that the middle is tried
        assert t == pytest.approx(1.0)


@pytest.mark.mission("O7")
def test_wolfe_shortens_steps_to_where_the_function_overflows():
    """−log(1 − t) − 2t is infinite from 1 on: a tenth of the way, and again, until it is finite."""
    line = Line(
        lambda t: -np.log1p(-t) - 2.0 * t if t < 1 else np.inf, lambda t: 1.0 / (1.0 - t) - 2.0 if t < 1 else np.nan
    )
    step = line.search(wolfe, 64.0, 0.9)
    assert line.seen == pytest.approx([64.0, 6.4, 0.64])
    assert step.length == line.seen[-1]  # the slope there is 0.78, that at 0 is −1


@pytest.mark.mission("O7")
def test_wolfe_returns_no_step_uphill():
    line = Line(lambda t: t, lambda t: 1.0)
    step = wolfe(line, np.ones(1), 0.0, np.array([-1.0]), np.array([1.0]))
    assert step.length == 0.0
    assert step.value == 0.0
    assert step.gradient[0] == -1.0


@pytest.mark.mission("O8")
@pytest.mark.parametrize("at", [-3.0, -2.2, 0.0, 0.7, 1.9, 5.0])
def test_golden_sections_bracket_the_lowest_point(at):
    """Each trial leaves 0.618 of the bracket, and the answer is inside it; right of it, the right end."""
    seen = []

    def f(t):
        seen.append(t)
        return abs(t - at)

    left, right = -3.0, 2.0
    found = lowest(f, left, right)
    assert len(seen) == 3 + TRIALS
    assert all(left <= t <= right for t in seen)
    # The last trial is the best end of a bracket of (right − left)·GOLDEN^TRIALS.
    assert abs(found - min(at, right)) <= (right - left) * GOLDEN**TRIALS
    assert f(found) == min(map(f, seen[: 3 + TRIALS]))


@pytest.mark.mission("O8")
def test_the_heavier_side_is_shrunk_until_the_two_balance(rng):
    c, u = rng.random(20), rng.normal(size=20) + 0.7
    for sign in (1.0, -1.0):
        found = balanced_sides(c, sign * u)
        up, down = np.sum((c * u)[u > 0]), -np.sum((c * u)[u < 0])
        shrink = np.where(u > 0, min(1.0, down / up), min(1.0, up / down))
        assert found == pytest.approx(sign * u * shrink)
    even = np.array([1.0, -1.0])
    assert balanced_sides(np.ones(2), even) is even


# --- The first guess of L-BFGS --------------------------------------------------------------------------------------


@pytest.mark.mission("O7")
@pytest.mark.parametrize(("loss", "curvature"), [(hg.Logistic(), 0.25), (hg.Squared(), 1.0), (hg.Softmax(), 1 / 3)])
def test_the_first_guess_is_the_hessian_at_zero_scores(loss, curvature, rng):
    """κX'CX + Λ + 10⁻³ κ tr(κX'CX)/d I for the weights of every output, κ for the biases."""
    n, d = 60, 4
    X, weight = rng.normal(size=(n, d)), rng.random(n) + 0.5
    y = rng.integers(0, 3, n).astype(float) if isinstance(loss, hg.Softmax) else rng.choice([-1.0, 1.0], n)
    o = hg.make_objective(X, y, loss, hg.L2(0.3), sample_weight=weight)
    gram = curvature * X.T @ (X * (weight / weight.sum())[:, None])
    H = gram + (0.3 + 1e-3 * curvature * np.trace(gram) / d) * np.eye(d)
    guess = lbfgs.HessianGuess(o)
    g = rng.normal(size=(d + 1) * o.outputs)
    expected = np.linalg.solve(H, g[: d * o.outputs].reshape(d, -1)).ravel()
    assert guess.solve(g) == pytest.approx(np.append(expected, g[d * o.outputs :] / curvature))
    # With pairs the guess is scaled by s'y / y'H₀y, and H is that of the dense update from there.
    full = np.column_stack([guess.solve(e) for e in np.eye(len(g))])
    pairs, A = deque(), np.diag(rng.random(len(g)) + 1.0)
    for _ in range(2):
        s = rng.normal(size=len(g))
        pairs.append((s, A @ s, 1.0 / (s @ A @ s)))
    s, z, rho = pairs[-1]
    dense = full / (rho * (z @ full @ z))
    for s, z, rho in pairs:
        V = np.eye(len(g)) - rho * np.outer(z, s)
        dense = V.T @ dense @ V + rho * np.outer(s, s)
    assert lbfgs.two_loops(g, pairs, guess) == pytest.approx(dense @ g)


@pytest.mark.mission("O7")
def test_a_sample_of_the_rows_makes_the_first_guess_of_tall_tables(rng):
    """max(10 d, 2000) rows in the mean, drawn by seed 0, each weighing more by as much as there are fewer."""
    n, d = 6000, 3
    X = rng.normal(size=(n, d))
    o = hg.make_objective(X, rng.normal(size=n), hg.Squared(), hg.NoPenalty())
    chosen = np.random.default_rng(0).random(n) < 1 / 3
    gram = 3.0 * X[chosen].T @ X[chosen] / n
    H = gram + 1e-3 * np.trace(gram) / d * np.eye(d)
    assert lbfgs.HessianGuess(o).solve(np.append(np.ones(d), 0.0))[:d] == pytest.approx(np.linalg.solve(H, np.ones(d)))


@pytest.mark.mission("O7")
def test_a_gap_is_worth_computing_once_the_gradient_is_small(rng):
    """With a ridge the gap contains Σ gⱼ²/2λⱼ; it is computed where that is at most 2 tol |J|."""
    o = hg.make_objective(rng.normal(size=(9, 2)), rng.normal(size=9), hg.Squared(), hg.L2(0.5))
    stop = Stop(tol=1e-2, max_iter=1)
    g = np.array([0.3, 0.4, 7.0])  # the bias does not count: Σ g²/2λ = 0.25
    assert lbfgs._promising(o, g, 0.25 / (2 * 1e-2) * (1 + 1e-9), stop)
    assert not lbfgs._promising(o, g, -0.25 / (2 * 1e-2) * (1 - 1e-9), stop)
    free = hg.make_objective(rng.normal(size=(9, 2)), rng.normal(size=9), hg.Squared(), hg.NoPenalty())
    assert lbfgs._promising(free, g, 1e-9, stop)


# --- Newton's method for several classes ----------------------------------------------------------------------------


@pytest.mark.mission("O3")
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_multinomial_newton_steps(fit_intercept, rng):
    """Objectives after each step are those of x − H⁺∇J with the Hessian of all classes, formed entry by entry."""
    n, d, k, lam = 40, 2, 3, 0.2
    X, y = rng.normal(size=(n, d)), np.arange(n) % k
    weight = rng.random(n) + 0.5
    c = weight / weight.sum()
    o = hg.make_objective(
        X, y.astype(float), hg.Softmax(), hg.L2(lam), sample_weight=weight, fit_intercept=fit_intercept
    )
    A = np.hstack([X, np.ones((n, 1))]) if fit_intercept else X
    m = A.shape[1]
    ridge = lam * np.diag(np.append(np.ones(d), [0.0] * (m - d)))
    V, values = np.zeros((m, k)), []
    for _ in range(4):
        z = A @ V
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        g = A.T @ (c[:, None] * (p - np.eye(k)[y])) + ridge @ V
        H = np.zeros((m, k, m, k))
        for i in range(n):
            H += c[i] * np.einsum("p,q,ab->paqb", A[i], A[i], np.diag(p[i]) - np.outer(p[i], p[i]))
        H = H.reshape(m * k, m * k) + np.kron(ridge, np.eye(k))
        V = V - (np.linalg.pinv(H, rcond=1e-12) @ g.ravel()).reshape(m, k)
        z = A @ V
        values.append(c @ (np.logaddexp.reduce(z, axis=1) - z[np.arange(n), y]) + 0.5 * lam * np.sum(V[:d] ** 2))
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solve(
            o, solver="multinomial-newton", tol=0.0, max_iter=4, start=o.zero(),
            callback=lambda record: seen.append(record.objective),
        )  # fmt: skip
    assert seen == pytest.approx(values, rel=1e-10)


@pytest.mark.mission("O3")
def test_free_weights_have_mean_zero_over_the_classes(rng):
    """Adding a constant to the weights of a feature in all classes changes no probability; a penalty fixes it, or we do."""
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 3
    o = hg.make_objective(X, y.astype(float), hg.Softmax(), hg.L2(0.1, weights=np.array([0.0, 1.0, 0.0])))
    start = rng.normal(size=(3, 3)), rng.normal(size=3)
    found = solve(o, solver="multinomial-newton", tol=1e-6, start=start)
    assert found.w.sum(axis=1) == pytest.approx(np.zeros(3), abs=1e-9)
    assert found.b.sum() == pytest.approx(0.0, abs=1e-12)
    other = solve(o, solver="multinomial-newton", tol=1e-6)
    assert found.w == pytest.approx(other.w, abs=1e-5)


# --- Penalties that are not convex ----------------------------------------------------------------------------------


@pytest.fixture
def convex_problems(monkeypatch):
    """The strengths and the allowed weights of every convex problem that a reweighted method solves."""
    seen, solve_one = [], reweighted._convex

    def convex(o, strengths, allowed, stop):
        found = solve_one(o, strengths, allowed, stop)
        seen.append(SimpleNamespace(strengths=strengths, allowed=allowed.copy(), w=found.w, b=found.b))
        return found

    monkeypatch.setattr(reweighted, "_convex", convex)
    return seen


@pytest.mark.mission("O9")
@pytest.mark.parametrize("q", [0.3, 0.7])
def test_reweighted_problems_are_tangents(q, convex_problems, rng):
    """ω = λq(|w| + ε max|w|)^{q−1} at the last w, with ε = 0.03, 0.009 … and zero from 10⁻⁶ on; the first is plain L1."""
    X, lam = rng.normal(size=(30, 4)), 0.05
    y = X @ np.array([2.0, 0.0, -1.0, 0.0]) + 0.1 * rng.normal(size=30)
    o = hg.make_objective(X, y, hg.Absolute(), hg.Lq(lam, q))
    result = solve(o, solver="reweighted", tol=1e-6, warn=False)
    assert convex_problems[0].strengths == pytest.approx(np.full(4, lam))
    assert np.all(convex_problems[0].allowed)
    blur, size = 0.1, np.sqrt(o.square_sums)
    least = 1e-7 * np.max(np.abs(convex_problems[0].w) * size)
    for before, now in itertools.pairwise(convex_problems):
        blur = 0.3 * blur if blur > 1e-6 else 0.0
        w = np.abs(before.w)
        used = w * size > least
        assert np.array_equal(now.allowed, used)
        assert now.strengths[used] == pytest.approx(lam * q * (w[used] + blur * w.max()) ** (q - 1))
    assert len(convex_problems) == 1 + result.solution.iterations
    assert blur == 0.0
    assert np.max(np.abs(convex_problems[-1].w - convex_problems[-2].w)) <= 1e-8 * np.abs(result.w).max()
    assert result.solution.status is Status.CONVERGED


@pytest.mark.mission("O9")
def test_elimination_drops_the_weight_that_moves_the_scores_least(convex_problems, rng):
    """|w_j|·√(Σ c x_j²) decides, not |w_j|; the last trial is refused, and the one before it is returned."""
    X = rng.normal(size=(40, 3)) * np.array([1.0, 100.0, 0.01])
    y = X @ np.array([1.0, 0.002, 30.0]) + 0.3 * rng.normal(size=40)
    o = hg.make_objective(X, y, hg.Absolute(), hg.L0(0.05))
    result = solve(o, solver="reweighted", tol=1e-6, warn=False)
    assert np.all(convex_problems[0].allowed)
    scale = np.sqrt(o.square_sums)
    for before, now in itertools.pairwise(convex_problems):
        left = np.flatnonzero(before.w)
        dropped = left[np.argmin(np.abs(before.w[left]) * scale[left])]
        assert np.array_equal(np.flatnonzero(now.allowed), np.setdiff1d(left, [dropped]))
    values = [o.value(problem.w, problem.b) for problem in convex_problems]
    assert np.all(np.diff(values[:-1]) <= 0)
    assert values[-1] > values[-2]
    assert result.w == pytest.approx(convex_problems[-2].w)
    assert result.solution.status is Status.CONVERGED
