"""Every term of every bound: primal and dual values of the judge against formulas in NumPy, with weights and offsets.

A term that is dropped, or has the wrong sign, gives a false gap; each of these tests fails then.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize, minimize_scalar

import hinge as hg
from hinge.problem.certificates import chain, dual_points, fast, linear, newton, stationarity, sums
from hinge.problem.certificates.certificate import Certificate
from hinge.problem.certificates.kernel_expansion import centres_certificate, ridge_certificate, ridge_residual
from hinge.problem.certificates.least_squares import summed_up
from hinge.problem.certificates.multiclass import kernel_multiclass_certificate, linear_multiclass_certificate
from hinge.problem.losses.native import native_loss
from hinge.problem.penalties import Coordinates

N, D = 14, 3
pytestmark = pytest.mark.mission("O8")


def data(rng, n=N):
    """Inputs, weights with a sum other than one, and offsets."""
    return rng.normal(size=(n, D)), rng.random(n) + 0.5, rng.normal(size=n)


# --- What a certificate holds ---------------------------------------------------------------------------------------


def test_a_certificate_from_objective_and_gap():
    found = Certificate.of_gap(-4.0, 0.5, tol=0.125, convexity=4.0)
    assert (found.primal, found.dual, found.gap, found.relative_gap) == (-4.0, -4.5, 0.5, 0.125)
    assert found.weight_error == 0.5  # λ/2 ‖w − w*‖² ≤ gap
    assert found.converged
    assert np.isnan(found.residual)
    assert not Certificate.of_gap(-4.0, 0.501, tol=0.125).converged
    assert Certificate.of_gap(1.0, 0.5, tol=1.0).weight_error == np.inf
    assert "within 12 % of the optimum" in found.explain()
    assert "raise max_iter" in Certificate.of_gap(1.0, 0.5, tol=0.1).explain()
    defaults = (found.solver, found.iterations, found.seconds, found.status, found.note, found.exact)
    assert defaults == ("", 0, 0.0, "", "", True)
    noted = Certificate.of_gap(1.0, 0.5, tol=0.6, note="chords were compared")
    assert "of the optimum. About the loss: chords were compared. The tolerance of 0.6 is met." in noted.explain()


def conclusion(primal, best, smooth=True, constant=1.0, penalty=None):
    objective = SimpleNamespace(loss=SimpleNamespace(smooth=smooth), penalty=penalty or hg.L2(0.5), d=2)
    return linear.conclude(
        objective, primal, best, tol=1e-3, constant=lambda: constant, residual=lambda: 0.25, exact=False
    )


def test_the_conclusion_from_an_objective_and_a_bound():
    found = conclusion(-2.0, -2.5)
    assert (found.primal, found.dual, found.gap, found.relative_gap) == (-2.0, -2.5, 0.5, 0.25)
    assert (found.kind, found.exact, found.note) == ("gap", False, "")
    assert np.isnan(found.residual)
    assert found.weight_error == pytest.approx(np.sqrt(2 * 0.5 / 0.5))
    assert conclusion(2.0, 1.0, penalty=hg.L1(1.0)).weight_error == np.inf
    assert conclusion(2.0, 1.0, penalty=hg.L1Ball(1.0)).weight_error == np.inf
    assert conclusion(2.0, 1.0, penalty=hg.L2(2.0, weights=np.array([0.5, 1.0]))).weight_error == np.sqrt(2.0)
    # A bound below zero, or none at all: the residual is reported, and no distance of the weights.
    for best in (-np.inf, 0.0, -1.0):
        wide = conclusion(1.0, best)
        assert (wide.kind, wide.residual, wide.weight_error) == ("stationarity", 0.25, np.inf)
        assert wide.gap == 1.0 - best
    assert conclusion(1.0, 0.01).kind == "gap"
    # A bound above the objective is wrong by the difference at least.
    above = conclusion(1.0, 1.0 + 2**-50)
    assert (above.gap, above.dual, above.kind, above.converged) == (2**-50, 1.0 - 2**-50, "gap", True)
    far = conclusion(1.0, 3.5)
    assert (far.gap, far.dual, far.kind, far.residual) == (2.5, -1.5, "stationarity", 0.25)
    assert conclusion(1.0, 1.0, constant=np.nan).relative_gap == 0.0


def test_what_a_gap_is_relative_to():
    """|P|, or 10⁻¹² of the risk of a constant if that is more; rounding of kinked losses is no gap."""
    assert linear._relative(1e-3, -2.0, True, lambda: 1.0) == 5e-4
    assert linear._relative(1e-13, 0.0, True, lambda: 5.0) == pytest.approx(0.02)
    assert linear._relative(1e-15, 1e-13, True, lambda: 5.0) == pytest.approx(2e-4)
    assert linear._relative(4e-15, 1e-13, False, lambda: 5.0) == 0.0
    assert linear._relative(6e-15, 1e-13, False, lambda: 5.0) == pytest.approx(6e-15 / 5e-12)
    assert linear._relative(4e-15, 1e-13, True, lambda: 5.0) == pytest.approx(4e-15 / 5e-12)
    assert linear._relative(0.0, 0.0, True, lambda: 0.0) == 0.0


# --- Linear problems: objective, dual value, balance, scaling -------------------------------------------------------


def huber(rng, penalty, *, intercept=True, offset=True, n=N):
    X, weight, shift = data(rng, n)
    y = 2.0 * rng.normal(size=n)
    o = hg.make_objective(
        X, y, hg.Huber(0.8), penalty, sample_weight=weight, fit_intercept=intercept, offset=shift if offset else None
    )
    return X, y, weight / weight.sum(), shift if offset else np.zeros(n), o


def huber_value(r, k=0.8):
    return np.where(np.abs(r) <= k, 0.5 * r**2, k * np.abs(r) - 0.5 * k**2)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_dual_value_of_huber_and_elastic_net(intercept, rng):
    """−Σ c(yu + u²/2) + Σ c u offset − Σ max(|X'cu| − a, 0)²/2b with u in [−k, k]."""
    a, b = 0.05, 0.2
    X, y, c, shift, o = huber(rng, hg.Elastic(a + b, a / (a + b)), intercept=intercept)
    u = np.clip(rng.normal(size=N), -0.8, 0.8)
    if intercept:
        u[u > 0] *= min(1.0, -(c * u)[u < 0].sum() / (c * u)[u > 0].sum())
        u[u < 0] *= min(1.0, -(c * u)[u > 0].sum() / (c * u)[u < 0].sum())
    g = X.T @ (c * u)
    expected = -c @ (y * u + u**2 / 2) + c @ (u * shift) - np.sum(np.maximum(np.abs(g) - a, 0.0) ** 2) / (2 * b)
    assert dual_points.dual_value(o, u, np.zeros(1)) == pytest.approx(expected)
    w, bias = rng.normal(size=D), rng.normal(size=1)
    z, found = dual_points.scores_and_bound(o, w, bias, u)
    assert z == pytest.approx(X @ w + shift + (bias[0] if intercept else 0.0))
    assert found == pytest.approx(expected)
    judged = hg.certificate(o, w, bias, dual=u, tol=1e9)  # any gap will do: only the offer is tried
    primal = c @ huber_value(y - z) + a * np.abs(w).sum() + 0.5 * b * w @ w
    assert (judged.primal, judged.dual, judged.gap) == pytest.approx((primal, expected, primal - expected))
    assert judged.relative_gap == pytest.approx((primal - expected) / primal)


def test_a_dual_point_is_scaled_until_the_penalty_allows_it(rng):
    """With an L1 penalty alone: s = min(1, λ/max|X'cu|), and D(su) with nothing from the penalty."""
    for lam in (1e-3, 1e3):
        X, y, c, shift, o = huber(rng, hg.L1(lam), intercept=False)
        u = np.clip(rng.normal(size=N), -0.8, 0.8)
        s = min(1.0, lam / np.abs(X.T @ (c * u)).max())
        expected = -c @ (s * y * u + s**2 * u**2 / 2) + s * (c @ (u * shift))
        assert dual_points.dual_value(o, u, np.zeros(1)) == pytest.approx(expected)
    _, _, c, _, o = huber(rng, hg.NoPenalty(), intercept=False)
    assert dual_points.dual_value(o, np.full(N, 0.3), np.zeros(1)) == -np.inf


def test_a_remainder_of_the_balance_counts_at_the_bias(rng):
    """ℓ(z) ≥ uz − ℓ*(u) for all z = x'w + b: with Σ cᵢuᵢ = δ the bound is lower by −δb, whatever unit the targets have."""
    X, y, c, shift, o = huber(rng, hg.L2(0.3), intercept=True)
    u = np.clip(rng.normal(size=N), -0.8, 0.8)
    g, bias = X.T @ (c * u), np.array([-7.0])
    expected = -c @ (y * u + u**2 / 2) + c @ (u * shift) - g @ g / 0.6 - 7.0 * (c @ u)
    assert dual_points.bound(o, u, g.copy(), bias) == pytest.approx(expected)


def test_dual_points_that_do_not_balance_prove_nothing_with_a_bias(rng):
    _, _, c, _, o = huber(rng, hg.L2(0.3))
    u = np.clip(rng.normal(size=N), -0.8, 0.8)
    near = dual_points.balanced(o, u)
    assert abs(c @ near) <= 1e-13
    assert np.all(np.abs(near) <= 0.8)
    moved = near - u
    inside = np.abs(near) < 0.8
    assert np.ptp(moved[inside]) <= 1e-12  # one common shift, cut to the domain
    if np.any(~inside):
        common = moved[inside].mean()
        assert near == pytest.approx(np.clip(u + common, -0.8, 0.8))
    even = near - 0.0
    assert dual_points.balanced(o, even) is even
    # All labels alike: slopes of the hinge loss have one sign, and no shift inside the domain has the sum zero but zero.
    one = hg.make_objective(np.ones((3, 1)), np.ones(3), hg.Hinge(), hg.L2(1.0))
    repaired = dual_points.balanced(one, np.array([-0.5, -1.0, -0.2]))
    assert repaired is None or repaired == pytest.approx(np.zeros(3), abs=1e-12)
    # Several outputs are balanced one by one.
    Y = rng.normal(size=(N, 2))
    two = hg.make_objective(rng.normal(size=(N, D)), Y, hg.Huber(0.8), hg.L2(0.3), sample_weight=c)
    U = np.clip(rng.normal(size=(N, 2)), -0.8, 0.8)
    found = dual_points.balanced(two, U)
    for k in range(2):
        assert found[:, k] == pytest.approx(
            dual_points.balance(dual_points.replace_target(two, Y[:, k].copy()), U[:, k])
        )


@pytest.mark.parametrize("outputs", [1, 3])
def test_gradients_of_free_weights_are_zero_but_for_rounding(outputs, rng):
    """16ε√(Σ c x² Σ c u²) and no more is dropped, and only where the weight is free in that direction."""
    eps = np.finfo(float).eps
    X = rng.normal(size=(N, 4))
    o = hg.make_objective(
        X, np.zeros(N), hg.Squared(), hg.Box([-np.inf, 0.0, -1.0, -np.inf], [np.inf, np.inf, 1.0, 0.0])
    )
    squares = rng.random(outputs) + 0.5
    limit = 16 * eps * np.sqrt(np.mean(X**2, axis=0)[:, None] * squares)
    for sign in (1.0, -1.0):
        for size in (0.99, 1.01):
            g = sign * size * limit
            flat = g[:, 0].copy() if outputs == 1 else g.copy()
            expected = flat.copy()
            # x'u > 0 pushes the weight down: free if there is no lower bound.
            free = np.array([True, sign < 0, False, sign > 0])
            expected[free & (size < 1)] = 0.0
            dual_points.drop_rounding(o, flat, squares[0] if outputs == 1 else squares)
            assert np.array_equal(flat, expected)
    for penalty in (hg.L1(1e-9), hg.L2(1e-9), hg.L1Ball(1.0)):
        g = np.full(4, 1e-18)
        dual_points.drop_rounding(o.with_penalty(penalty), g, 1.0)
        assert np.all(g == 1e-18)


def test_the_trivial_bound(rng):
    """D(0) = Σ cᵢ min ℓ(yᵢ, ·), weighted; classes are counted by their weight."""
    one = SimpleNamespace(
        penalty=hg.L2(0.3), zero=lambda: (np.zeros(2), np.zeros(1)), outputs=1, n=3, loss=hg.Logistic(),
        conjugate_sum=lambda u: 0.7 + u.sum() + 10 * u.ndim,
    )  # fmt: skip
    assert dual_points.trivial_bound(one) == -10.7
    classes = SimpleNamespace(outputs="classes", conjugate=lambda y, u: 1.0 + y + u.sum(axis=1))
    problem = SimpleNamespace(
        penalty=hg.L2(0.3), zero=lambda: (np.zeros((2, 3)), np.zeros(3)), outputs=3, loss=classes,
        y=np.array([0.0, 2.0, 2.0, 1.0]), c=np.array([0.1, 0.2, 0.3, 0.4]),
    )  # fmt: skip
    assert dual_points.trivial_bound(problem) == pytest.approx(-(0.1 * 1 + 0.5 * 3 + 0.4 * 2))
    y, weight = rng.poisson(3.0, size=N) + 1.0, rng.random(N) + 0.5
    o = hg.make_objective(np.ones((N, 1)), y, hg.Poisson(), hg.L2(0.3), sample_weight=weight)
    lowest = [o.loss.value(np.array([t]), np.log(np.array([t])))[0] for t in y]  # at s = log y
    assert dual_points.trivial_bound(o) == pytest.approx(weight @ lowest / weight.sum(), abs=1e-14)
    cost = ((0.0, 1.0, 4.0), (2.0, 0.0, 1.0), (0.5, 3.0, 0.0))
    codes = np.arange(N) % 3
    for loss in (hg.MulticlassHinge(cost), hg.Softmax()):
        o = hg.make_objective(np.ones((N, 1)), codes.astype(float), loss, hg.L2(0.3), sample_weight=weight)
        expected = -np.sum(o.c * loss.conjugate(o.y, np.zeros((N, 3))))
        assert dual_points.trivial_bound(o) == pytest.approx(expected, abs=1e-15)
    Y = rng.normal(size=(N, 2))
    assert dual_points.trivial_bound(hg.make_objective(np.ones((N, 1)), Y, hg.Squared(), hg.L2(0.3))) == 0.0


@pytest.mark.parametrize("flag", range(4))
def test_a_dual_needs_convexity_and_conjugates_of_both_parts(flag):
    flags = [number != flag for number in range(4)]
    loss = SimpleNamespace(declared_convex=flags[0], has_conjugate=flags[1])
    penalty = SimpleNamespace(convex=flags[2], has_conjugate=flags[3])
    assert not dual_points.has_dual(SimpleNamespace(loss=loss, penalty=penalty))


def test_dual_points_that_prove_nothing(rng, monkeypatch):
    """Outside the domain of ℓ*, or with a sum that one of several outputs does not keep: −∞, never a number."""
    X, y, c, shift, o = huber(rng, hg.L2(0.3), intercept=False)
    assert dual_points.dual_value(o, np.where(np.arange(N) == 5, 0.9, 0.0), np.zeros(1)) == -np.inf
    codes = np.arange(N) % 3
    classes = hg.make_objective(X, codes.astype(float), hg.Softmax(), hg.L2(0.3), sample_weight=c)
    share = c @ np.eye(3)[codes]
    even = 0.5 * (np.tile(share, (N, 1)) - np.eye(3)[codes])
    assert abs(c @ even).max() < 1e-15
    assert np.isfinite(dual_points.dual_value(classes, even, np.zeros(even.shape[1])))
    for left in (np.array([0.0, 0.01, -0.01]), np.array([0.01, -0.02, 0.01])):
        assert dual_points.balanced(classes, even + left) is None
        assert dual_points.dual_value(classes, even + left, np.zeros(even.shape[1])) == -np.inf
    # Two outputs of which one balances: the other is repaired.
    two = hg.make_objective(X, np.column_stack([y, y]), hg.Huber(0.8), hg.L2(0.3), sample_weight=c)
    V = np.clip(rng.normal(size=(N, 2)), -0.8, 0.8)
    V[:, 0] = dual_points.balanced(two, V)[:, 0]
    assert np.abs(c @ dual_points.balanced(two, V)).max() <= 1e-13
    monkeypatch.setattr(dual_points, "balanced", lambda *_: None)
    z, nothing = dual_points.scores_and_bound(o, np.zeros(D), np.zeros(1), 0.0 * y)
    assert z == pytest.approx(shift)
    assert nothing == -np.inf


def test_least_squares_without_a_penalty_is_certified(rng):
    """X'cu is zero but for rounding at the solution, and the bound is the objective."""
    X, weight, _ = data(rng)
    y, root = rng.normal(size=N), np.sqrt(weight / weight.sum())
    o = hg.make_objective(X, y, hg.Squared(), hg.NoPenalty(), sample_weight=weight)
    A = np.column_stack([X, np.ones(N)]) * root[:, None]
    best = np.linalg.lstsq(A, y * root, rcond=None)[0]
    r = y - X @ best[:D] - best[D]
    assert dual_points.dual_value(o, -r, np.zeros(1)) == pytest.approx(0.5 * np.sum((root * r) ** 2))
    assert dual_points.dual_value(o, -r + 1e-6 * X[:, 0], np.zeros(1)) == -np.inf


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("offset", [True, False])
def test_the_dual_of_a_ridge_at_any_weights(intercept, offset, rng):
    """u = −(y − z) at the best bias: D(u) = −Σ c(yu + u²/2) + Σ c u offset − ‖X'cu‖²/2λ; Newton's step reaches the optimum."""
    X, weight, shift = data(rng)
    shift = shift if offset else np.zeros(N)
    y, lam, c = rng.normal(size=N), 0.4, weight / weight.sum()
    o = hg.make_objective(
        X, y, hg.Squared(), hg.L2(lam), sample_weight=weight, fit_intercept=intercept, offset=shift if offset else None
    )
    middle = c @ X if intercept else np.zeros(D)
    target = y - shift - (c @ (y - shift) if intercept else 0.0)
    A = (X - middle).T @ (c[:, None] * (X - middle)) + lam * np.eye(D)
    best = np.linalg.solve(A, (X - middle).T @ (c * target))
    optimum = 0.5 * c @ (target - (X - middle) @ best) ** 2 + 0.5 * lam * best @ best
    w, b = best + 0.1 * rng.normal(size=D), rng.normal(size=1)
    r = y - X @ w - shift - (b[0] if intercept else 0.0)
    primal = 0.5 * c @ r**2 + 0.5 * lam * w @ w
    u = -(r - c @ r) if intercept else -r
    g = X.T @ (c * u)
    dual = -c @ (y * u + u**2 / 2) + c @ (u * shift) - g @ g / (2 * lam)
    assert dual > 0  # and so above D(0)
    judged = hg.certificate(o, w, b, tol=(primal - dual) / primal * (1 + 1e-9))
    assert (judged.primal, judged.dual) == pytest.approx((primal, dual))
    tight = hg.certificate(o, w, b, tol=0.0)
    assert tight.dual == pytest.approx(optimum, rel=1e-12)
    assert tight.gap == pytest.approx(primal - optimum)
    assert np.linalg.norm(w - best) <= tight.weight_error * (1 + 1e-9)
    assert tight.exact
    # The sums of products give the same, where rounding leaves them enough.
    known = linear._from_moments(o, w, b, tol=1.0)
    assert (known.primal, known.dual) == pytest.approx((primal, dual))
    assert known.weight_error == pytest.approx(np.sqrt(2 * (primal - dual) / lam))
    assert linear._from_moments(o, w, b, tol=1e-12) is None


def test_moments_and_an_l1_penalty(rng):
    """s = min(1, λ/max|X'Cr|), D(su) = s r'Cy − s²r'Cr/2."""
    X, weight, _ = data(rng)
    y, lam, c = rng.normal(size=N), 0.01, weight / weight.sum()
    o = hg.make_objective(X, y, hg.Squared(), hg.L1(lam), sample_weight=weight)
    w, b = 0.1 * rng.normal(size=D), np.array([0.3])
    r = y - X @ w - b[0]
    primal = 0.5 * c @ r**2 + lam * np.abs(w).sum()
    r = r - c @ r
    s = min(1.0, lam / np.abs(X.T @ (c * r)).max())
    dual = s * (c @ (r * y)) - 0.5 * s**2 * (c @ r**2)
    known = linear._from_moments(o, w, b, tol=5.0)
    assert (known.primal, known.dual, known.gap) == pytest.approx((primal, dual, primal - dual))
    assert known.weight_error == np.inf


@pytest.mark.parametrize("intercept", [True, False])
def test_least_squares_from_sums_of_products(intercept, rng):
    X, weight, _ = data(rng)
    y, c = rng.normal(size=N) + 1.0, weight
    o = hg.make_objective(X, y, hg.Squared(), hg.L2(0.1), sample_weight=weight, fit_intercept=intercept)
    w, b = rng.normal(size=D), rng.normal(size=1)
    A = np.column_stack([X, np.ones(N), y])
    S = A.T @ (c[:, None] * A)
    found = summed_up(o, S, w, b)
    r = y - X @ w - (b[0] if intercept else 0.0)
    assert found.risk == pytest.approx(0.5 * c @ r**2)
    r = r - c @ r / c.sum() if intercept else r
    assert (found.errors, found.cross) == pytest.approx((c @ r**2, c @ (r * y)))
    assert found.gradient == pytest.approx(-X.T @ (c * r))
    v = np.concatenate([np.abs(w), np.abs(b) if intercept else [0.0], [1.0]])
    size = (v @ np.sqrt(np.diag(S))) ** 2 * np.finfo(float).eps
    assert found.rounding == pytest.approx(64 * size)
    many = SimpleNamespace(d=D, n=128 * 10**6, fit_intercept=intercept)
    assert summed_up(many, S, w, b).rounding == pytest.approx(1000 * size)


@pytest.mark.parametrize("penalty", [hg.L2(0.5), hg.L1(0.05), hg.Elastic(0.2, 0.3)], ids=repr)
@pytest.mark.parametrize("intercept", [True, False])
def test_the_bounds_of_a_path_are_those_of_its_points(penalty, intercept, rng):
    """Weighted least squares, in which the balanced gradients and their bound are known."""
    X, weight, _ = data(rng)
    y, c = X @ np.ones(D) + rng.normal(size=N), weight / weight.sum()
    unit = hg.make_objective(X, y, hg.Squared(), penalty, sample_weight=weight, fit_intercept=intercept)
    strengths, W, B = np.array([0.7, 0.2]), rng.normal(size=(2, D)), rng.normal(size=2)
    for tol in (1e9, 0.0):
        for lam, w, b, judged in zip(strengths, W, B, linear.path_certificates(unit, strengths, W, B, tol)):
            part = penalty.with_strength(lam)
            r = y - X @ w - (b if intercept else 0.0)
            primal = 0.5 * c @ r**2 + part.value(w)
            r = r - c @ r if intercept else r
            s = part.dual_scale(X.T @ (c * r))
            dual = s * (c @ (r * y)) - 0.5 * s**2 * (c @ r**2) - part.conjugate(s * X.T @ (c * r))
            assert judged.primal == pytest.approx(primal)
            if tol > 1:
                assert (judged.dual, judged.gap) == pytest.approx((dual, primal - dual))
                assert judged.tol == tol
            else:
                alone = hg.certificate(unit.with_penalty(part), w, np.array([b]), tol=0.0)
                assert judged.dual == pytest.approx(alone.dual)
                assert judged.dual >= dual - 1e-12


def centred_targets(rng, size=1.0):
    """Least squares whose targets are far from zero, and its optimum."""
    X, weight, _ = data(rng)
    y, lam, c = size * (10.0 + rng.normal(size=N)), 0.4, weight / weight.sum()
    X -= c @ X
    A, t = X - c @ X, y - c @ y
    best = np.linalg.solve(A.T @ (c[:, None] * A) + lam * np.eye(D), A.T @ (c * t))
    return X, y, weight, lam, 0.5 * c @ (t - A @ best) ** 2 + 0.5 * lam * best @ best, best


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_gradients_that_do_not_balance_are_no_bound(size, rng):
    """At the bias zero, −y is far above the optimum as a dual point that need not balance; in any units."""
    X, y, weight, lam, optimum, best = centred_targets(rng, size)
    c = weight / weight.sum()
    o = hg.make_objective(X, y, hg.Squared(), hg.L2(lam), sample_weight=weight)
    assert 0.5 * c @ y**2 - np.sum((X.T @ (c * y)) ** 2) / (2 * lam) > 1.1 * optimum
    w, b = o.zero()
    for judged in (
        hg.certificate(o, w, b), hg.certificate(o, w, b, tol=0.9), fast.quick_certificate(o, w, b),
        judged_sums(o, sums.Point(w, b, w, b))[0], hg.certificate(o, w, b, dual=-y), hg.certificate(o, w, b, exact=True),
    ):  # fmt: skip
        assert judged.dual <= optimum * (1 + 1e-9)
        assert judged.primal == pytest.approx(0.5 * c @ y**2)
    near = best * (1 + 1e-5)
    assert hg.certificate(o, near, np.array([c @ (y - X @ near)]), tol=1e-6).converged


def test_offers_of_several_outputs_and_offers_that_are_no_numbers(rng):
    X, weight, _ = data(rng)
    Y, c, lam = rng.normal(size=(N, 2)), weight / weight.sum(), 0.5
    o = hg.make_objective(X, Y, hg.Squared(), hg.L2(lam), sample_weight=weight)
    U = rng.normal(size=(N, 2))
    U -= c @ U
    U *= 0.1
    dual = -np.sum(c[:, None] * (Y * U + U**2 / 2)) - np.sum((X.T @ (c[:, None] * U)) ** 2) / (2 * lam)
    w, b = o.zero()
    assert hg.certificate(o, w, b, dual=U, tol=1e9).dual == pytest.approx(dual)
    one = hg.make_objective(X, Y[:, 0].copy(), hg.Absolute(), hg.L2(lam), sample_weight=weight)
    u = np.clip(rng.normal(size=N), -1.0, 1.0)
    plain = hg.certificate(one, *one.zero(), tol=0.0)
    u[3] = np.nan
    assert hg.certificate(one, *one.zero(), dual=u, tol=0.0).dual == plain.dual
    assert np.isfinite(plain.dual)
    assert plain.dual <= one.value(*one.zero())


def test_a_good_dual_point_is_kept(rng):
    """Where no candidate is better; a ball is no sum over weights, so that there is no Newton step."""
    X, weight, _ = data(rng, 30)
    o = hg.make_objective(X, np.resize([1.0, -1.0], 30) * 1.0, hg.Hinge(), hg.L1Ball(0.7), sample_weight=weight)
    found = hg.solve(o, tol=1e-9)
    u = found.solution.dual
    judged = hg.certificate(o, found.w, found.b, dual=u, tol=0.0)
    assert judged.dual >= dual_points.dual_value(o, o.loss.project_dual(o.y, u), found.b)
    assert judged.relative_gap <= 1e-6


def test_moments_are_those_of_squares_alone(rng, monkeypatch):
    """Another loss does not use them, and their rounding must be a hundredth of the tolerated gap."""
    *_, o = huber(rng, hg.L2(0.3))
    w, b = 0.1 * rng.normal(size=D), np.array([0.2])
    before = hg.certificate(o, w, b, tol=0.5)
    assert np.isfinite(o.moments).all()
    after = hg.certificate(o, w, b, tol=0.5)
    assert (after.primal, after.dual) == (before.primal, before.dual)
    X, y, weight, lam, optimum, best = centred_targets(rng)
    squares = hg.make_objective(X, y, hg.Squared(), hg.L2(lam), sample_weight=weight)
    bias = np.array([(weight / weight.sum()) @ (y - X @ best)])
    for share, known in ((0.99e-2, True), (1.01e-2, False)):
        rounding = share * 1e-3 * optimum
        monkeypatch.setattr(linear, "summed_up", lambda *parts, r=rounding: summed_up(*parts)._replace(rounding=r))
        found = linear._from_moments(squares, best, bias, 1e-3)
        assert (found is not None) == known
        assert not known or found.gap == pytest.approx(rounding)  # what rounding may hide is part of the gap


def test_weights_of_one_sign_limit_the_dual_on_one_side(rng):
    """Ω = λΣw with w ≥ 0: s = min(1, λ / max(−X'cu)), whichever way the bound is computed."""
    lam = 0.02
    X, y, c, shift, _ = huber(rng, hg.L1(lam, positive=True), intercept=False)
    u = -np.clip(y - shift, -0.8, 0.8)
    for sign in (1.0, -1.0):
        flipped = hg.make_objective(
            sign * X, y, hg.Huber(0.8), hg.L1(lam, positive=True), sample_weight=c, fit_intercept=False, offset=shift
        )
        s = min(1.0, lam / max(np.max(-sign * X.T @ (c * u)), 1e-300))
        expected = -c @ (s * y * u + s**2 * u**2 / 2) + s * (c @ (u * shift))
        assert dual_points.dual_value(flipped, u, np.zeros(1)) == pytest.approx(expected)
        zero = flipped.zero()
        assert judged_sums(flipped, sums.Point(*zero, *zero))[0].dual == pytest.approx(expected)
        along = [-t * (c @ (y * u)) - t**2 * (c @ u**2) / 2 + t * (c @ (u * shift)) for t in np.linspace(0.0, s, 2001)]
        at = s * np.argmax(along) / 2000
        bound = fast.ray_bound(flipped, u)
        assert bound <= max(along) + 1e-5 * abs(max(along))
        assert bound >= min(along[int(2000 * t / s)] for t in (0.75 * at, min(s, at / 0.75)))
        squares = hg.make_objective(
            sign * X, y, hg.Squared(), hg.L1(lam, positive=True), sample_weight=c, fit_intercept=False
        )
        s = min(1.0, lam / max(np.max(sign * X.T @ (c * y)), 1e-300))
        dual = (s - s**2 / 2) * (c @ y**2)
        assert linear._from_moments(squares, *zero, tol=5.0).dual == pytest.approx(dual)
        path = linear.path_certificates(squares, [lam], zero[0][None], zero[1], tol=5.0)
        assert path[0].dual == pytest.approx(dual)


# --- Newton's dual points -------------------------------------------------------------------------------------------


def test_weights_in_use():
    inf = np.inf
    coordinates = Coordinates(
        np.array([1.0, 1.0, 0.0, 0.0, 1.0, 0.0]), np.zeros(6), np.array([-inf, -inf, -inf, 0.0, -1.0, -inf]),
        np.array([inf, inf, inf, inf, 2.0, 3.0]),
    )  # fmt: skip
    assert newton.weights_in_use(coordinates, np.array([0.0, 1.0, 0.0, 0.0, -1.0, 3.0])).tolist() == [1, 2]
    assert newton.weights_in_use(coordinates, np.array([-1.0, 0.0, 0.0, 0.1, 1.0, 2.0])).tolist() == [0, 2, 3, 4, 5]


@pytest.mark.parametrize("intercept", [True, False])
def test_the_conditions_after_newtons_step_hold_exactly(intercept, rng):
    """X'(c∘u) + a sign(w) + b(w + Δ) = 0 on the weights in use and Σ cu = 0; u = ℓ' + ℓ''(XΔ + δ), entry by entry."""
    X, weight, shift = data(rng, 40)
    y, c = rng.choice([-1.0, 1.0], 40), weight / weight.sum()
    penalty = hg.Elastic(0.3, 0.1)
    o = hg.make_objective(
        X, y, hg.Logistic(), penalty, sample_weight=weight, fit_intercept=intercept, offset=0.1 * shift
    )
    for used in (np.arange(D), np.array([0, 2])):
        w = np.zeros(D)
        w[used] = 0.1 * rng.normal(size=len(used))
        z = o.scores(w, np.zeros(1))
        p = 1.0 / (1.0 + np.exp(-z))
        u, h = p - (y > 0), p * (1 - p)
        A = np.column_stack([X[:, used], np.ones(40)]) if intercept else X[:, used]
        a, l2 = 0.03, 0.27
        rhs = A.T @ (c * u)
        rhs[: len(used)] += a * np.sign(w[used]) + l2 * w[used]
        H = A.T @ ((c * h)[:, None] * A)
        H[range(len(used)), range(len(used))] += l2
        expected = u - h * (A @ np.linalg.solve(H, rhs))
        assert np.all((expected - (y < 0) >= -1) & (expected - (y < 0) <= 0))
        found = newton.newton_dual(o, penalty.coordinates(D), w, z, u, used)
        assert found == pytest.approx(expected)
    design = o.design
    assert newton.newton_flops(o, 2) == 40 * 4 + 8 / 3 + 16 * 4 + 2 * 4 * 40 * D
    assert design.shape == (40, D)


def rounds(X, c, u, w, l2, count, intercept=True):
    """Newton's dual of a loss with u in [−1, 1] and no second derivative: h = min(u + 1, 1 − u)², edges hold, by hand."""
    A = np.column_stack([X, np.ones(len(X))]) if intercept else X
    h, x, ridge = (
        np.minimum(u + 1, 1 - u) ** 2,
        np.append(w, [0.0] * intercept),
        np.append([l2] * len(w), [0.0] * intercept),
    )
    for _ in range(count):
        step = -np.linalg.lstsq(A.T @ ((c * h)[:, None] * A) + np.diag(ridge), A.T @ (c * u) + ridge * x, rcond=None)[0]
        x = x + step
        moved = u + h * (A @ step)
        outside = np.abs(moved) > 1
        if not outside.any():
            return moved
        u, h = np.clip(moved, -1, 1), np.where(outside, 0.0, h)
    return moved / np.abs(moved).max()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_dual_variables_that_run_out_of_their_domain_stay_at_its_edge(count, intercept, rng, monkeypatch):
    """The others make up for them in another round; what is outside after the last round is scaled back, all alike."""
    monkeypatch.setattr(newton, "NEWTON_ROUNDS", count)
    X, weight, _ = data(rng, 30)
    y, c, l2 = X @ np.array([1.0, -1.0, 0.5]) + 0.2 * rng.normal(size=30), weight / weight.sum(), 0.05
    penalty = hg.L2(l2)
    o = hg.make_objective(X, y, hg.Absolute(), penalty, sample_weight=weight, fit_intercept=intercept)
    ran_out = 0
    for size in (0.02, 0.3, 0.9):
        w, u = 3.0 * size * rng.normal(size=D), np.clip(2 * size * rng.normal(size=30), -0.99, 0.99)
        expected = rounds(X, c, u, w, l2, count, intercept)
        ran_out += not np.allclose(expected, rounds(X, c, u, w, l2, 50, intercept))
        before = w.copy()
        found = newton.newton_dual(o, penalty.coordinates(D), w, y, u, np.arange(D))
        assert found == pytest.approx(expected, abs=1e-9)
        assert np.array_equal(w, before)
        assert np.all(np.abs(found) <= 1 + 1e-15)
    assert ran_out or count > 1
    for broken in (u + np.where(np.arange(30) == 3, np.nan, 0.0), np.full(30, np.nan)):
        assert newton.newton_dual(o, penalty.coordinates(D), w, y, broken, np.arange(D)) is None


def test_candidates_are_dropped_where_they_cost_too_much(rng):
    X, _, _ = data(rng)
    o = hg.make_objective(X, rng.normal(size=N), hg.Squared(), hg.L2(0.3))
    w, z = rng.normal(size=D), rng.normal(size=N)
    enough = newton.newton_flops(o, D)
    for flops, count in ((enough, 2), (enough * 0.999, 1)):
        tried = newton.Candidates(o, flops)
        found = list(tried(w, z, None))
        assert len(found) == count
        assert tried.dropped == (count == 1)
        assert found[0] == pytest.approx(z - o.y - np.mean(z - o.y))
    kinked = hg.make_objective(X, rng.normal(size=N), hg.Absolute(), hg.L2(0.3))
    offer = np.clip(rng.normal(size=N), -1, 1)
    assert len(list(newton.Candidates(kinked, np.inf)(w, z, offer))) == 1  # the offer itself is tried already
    assert len(list(newton.Candidates(kinked, np.inf)(w, z, None))) == 2
    assert len(list(newton.Candidates(o.with_penalty(hg.L1Ball(1.0)), np.inf)(w, z, None))) == 1


# --- Best biases ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loss", [hg.Squared(), hg.SquaredMargin(), hg.Logistic(), hg.Poisson(), hg.Huber(0.5)], ids=repr
)
def test_the_best_change_of_the_bias(loss, rng):
    """Σ c ℓ'(y, z + b) = 0, weighted."""
    weight, z = rng.random(N) + 0.5, rng.normal(size=N)
    signs = np.resize([1.0, -1.0], N)
    y = {hg.Logistic: signs, hg.SquaredMargin: signs, hg.Poisson: rng.poisson(2.0, N) + 0.0}.get(
        type(loss), rng.normal(size=N)
    )
    o = hg.make_objective(np.ones((N, 1)), y, loss, hg.L2(0.3), sample_weight=weight)
    shift = dual_points.best_shift(o, z)
    assert weight @ loss.gradient(y, z + shift) == pytest.approx(0.0, abs=1e-12)
    if isinstance(loss, hg.Squared):
        assert shift == pytest.approx(weight @ (y - z) / weight.sum())


@pytest.mark.parametrize("target", ["classes", "numbers"])
def test_the_best_changes_of_several_biases(target, rng):
    """Weighted, from scores as far away as they like, with an example of weight zero."""
    k, weight = 3, rng.random(N) + 0.5
    weight[0] = 0.0
    y = (np.arange(N) % k).astype(float) if target == "classes" else rng.normal(size=(N, k))
    loss = hg.Softmax() if target == "classes" else hg.LogCosh()
    o = hg.make_objective(np.ones((N, 1)), y, loss, hg.L2(0.3), sample_weight=weight)
    for far in (0.0, 1.0, 4.0) if target == "classes" else (0.0, 0.7):
        z = rng.normal(size=(N, k)) + far * np.arange(k)
        value, cu, curvature = dual_points._at_scores(o, z)
        assert value == pytest.approx(np.sum(weight / weight.sum() * loss.value(y, z).reshape(N, -1).sum(axis=1)))
        assert cu == pytest.approx((weight / weight.sum())[:, None] * loss.gradient(y, z))
        H, h = curvature(), 1e-5
        for j, e in enumerate(np.eye(k)):
            slope = (dual_points._at_scores(o, z + h * e)[1] - dual_points._at_scores(o, z - h * e)[1]).sum(axis=0) / (
                2 * h
            )
            assert H[:, j] == pytest.approx(slope, abs=1e-8)
        moved = z + dual_points.best_shifts(o, z)
        assert weight @ loss.gradient(y, moved) == pytest.approx(np.zeros(k), abs=1e-11)


# --- Fast bounds along a ray ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("penalty", [hg.L2(0.1), hg.Elastic(0.2, 0.5)], ids=repr)
def test_the_bound_of_a_ray(offset, penalty, rng):
    """max over s of −s c'(yu) − s²c'u²/2 + s c'(u·offset) − Ω*(−sX'cu), which has one maximum; s by golden sections."""
    X, y, c, shift, o = huber(rng, penalty, intercept=False, offset=offset)
    u = -np.clip(y - shift, -0.8, 0.8)
    g = X.T @ (c * u)

    def value(s):
        return -s * (c @ (y * u)) - 0.5 * s**2 * (c @ u**2) + s * (c @ (u * shift)) - penalty.conjugate(-s * g)

    found = fast.ray_bound(o, u)
    s = minimize_scalar(lambda t: -value(t), bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9}).x
    assert found <= max(value(s), value(1.0)) * (1 + 1e-9)
    assert found >= min(value(0.75 * s), value(min(1.0, s / 0.75)))  # within the last bracket: 20.7·0.618¹⁰ = 0.17


def test_a_ray_is_chosen_by_some_of_many_examples(rng):
    """Every second of 8192 and more, their weight made up for; the bound itself takes all of them."""
    n = 2 * fast.SAMPLED + 1
    y, weight = rng.normal(size=n) + 0.5, rng.random(n)
    weight[1::2] *= 3.0  # those that are not looked at weigh more
    o = hg.make_objective(np.ones((n, 1)), y, hg.Squared(), hg.L2(0.05), sample_weight=weight, fit_intercept=False)
    c, u = weight / weight.sum(), -y
    g = c @ u
    top = (c @ y**2) / (c @ u**2 + g**2 / 0.05)
    found = fast.ray_bound(o, u)
    best = top * (c @ y**2) / 2
    assert best * (1 - 0.17**2) <= found <= best * (1 + 1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_quick_certificate(intercept, rng):
    large = hg.make_objective(
        np.ones((4, 1)), 1e3 * np.array([3.0, 1.0, 2.0, 2.5]), hg.Squared(), hg.L2(1.0), fit_intercept=False
    )
    primal, u = 0.5 * np.mean(large.y**2), -large.y  # D(su) = (s − s²/2)·mean y² − s²(mean y)²/2
    top = 2 * primal / (2 * primal + np.mean(large.y) ** 2)
    found = fast.quick_certificate(large, *large.zero(), tol=0.8)
    assert found.dual == pytest.approx(top * primal, rel=0.05)
    assert found.exact
    assert fast.ray_bound(large.with_penalty(hg.NoPenalty()), u) == -np.inf
    # Of two examples that are looked at both, s is found exactly at the right end.
    even = hg.make_objective(
        np.array([[1.0], [1.0]]), np.array([1.0, -1.0]), hg.Squared(), hg.L2(1.0), fit_intercept=False
    )
    assert fast.ray_bound(even, -even.y) == pytest.approx(0.5, rel=1e-15)
    X, y, c, shift, o = huber(rng, hg.L2(0.3), intercept=intercept)
    w, b = 0.1 * rng.normal(size=D), np.array([0.2])
    z = X @ w + shift + (b[0] if intercept else 0.0)
    primal = c @ huber_value(y - z) + 0.15 * w @ w
    judged = fast.quick_certificate(o, w, b, tol=1e-6)
    u = -np.clip(y - z, -0.8, 0.8)
    if intercept:
        up, down = np.sum((c * u)[u > 0]), -np.sum((c * u)[u < 0])
        u = u * np.where(u > 0, down / max(up, down), up / max(up, down))
    assert judged.primal == pytest.approx(primal)
    bound = fast.ray_bound(o, u)
    assert 0 < bound < primal
    assert (judged.dual, judged.gap) == pytest.approx((bound, primal - bound))
    assert judged.weight_error == pytest.approx(np.sqrt(2 * (primal - bound) / 0.3))
    assert not judged.exact
    assert fast.quick_certificate(o, w, b, tol=2.0).exact
    two = hg.make_objective(X, np.column_stack([y, y]), hg.Huber(0.8), hg.L2(0.3))
    assert fast.quick_certificate(two, *two.zero()).primal == pytest.approx(two.value(*two.zero()))


# --- Sums over blocks -----------------------------------------------------------------------------------------------


def judged_sums(o, point, tol=1e-6):
    calls = []

    def total(p):
        calls.append(p)
        return sums.dual_sums(o, p)

    return sums.certificate_from_sums(o, point, total, tol=tol), calls


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("lam", [0.3, 0.01])
def test_the_bound_from_sums_at_weights_that_do_not_balance(intercept, lam, rng):
    """The heavier sign is shrunk, then all are scaled by s = min(1, λ/max|X'cu|): D(su) with the offset's term."""
    X, y, c, shift, o = huber(rng, hg.L1(lam), intercept=intercept)
    w, b = 0.1 * rng.normal(size=D), np.array([0.2])
    step, bias_step = 0.05 * rng.normal(size=D), np.array([0.1])
    for sign in (1.0, -1.0):
        y = o.y + sign * 1.0
        moved = hg.make_objective(
            X, y, hg.Huber(0.8), hg.L1(lam), sample_weight=c, fit_intercept=intercept, offset=shift
        )
        z, dz = X @ w + shift + b[0] * intercept, X @ step + bias_step[0] * intercept
        r = y - z
        u = np.clip(-np.clip(r, -0.8, 0.8) + (np.abs(r) < 0.8) * dz, -0.8, 0.8)
        if intercept:
            up, down = np.sum((c * u)[u > 0]), -np.sum((c * u)[u < 0])
            u = u * np.where(u > 0, down / max(up, down), up / max(up, down))
        s = min(1.0, lam / np.abs(X.T @ (c * u)).max())
        dual = -c @ (s * y * u + s**2 * u**2 / 2) + s * (c @ (u * shift))
        judged, calls = judged_sums(moved, sums.Point(w, b, step, bias_step))
        primal = c @ huber_value(y - z - dz) + lam * np.abs(w + step).sum()
        assert (judged.primal, judged.dual) == pytest.approx((primal, dual))
        assert len(calls) == (2 if intercept or s < 1 else 1)
        assert calls[-1].scale == pytest.approx(s)
        # A point that has its factors already is not summed twice.
        again, calls = judged_sums(moved, calls[-1])
        assert len(calls) == 1
        assert again.dual == pytest.approx(dual)


def test_two_outputs_that_do_not_balance_have_no_bound_from_sums(rng):
    X, weight, _ = data(rng)
    Y = rng.normal(size=(N, 2))
    o = hg.make_objective(X, Y, hg.Squared(), hg.L2(0.3), sample_weight=weight)
    c = weight / weight.sum()
    w, b = 0.1 * rng.normal(size=(D, 2)), np.zeros(2)
    still = 0.0 * w
    assert judged_sums(o, sums.Point(w, b, still, b))[0].dual == -np.inf
    R = Y - X @ w
    bias = c @ R
    judged, calls = judged_sums(o, sums.Point(w, bias, still, 0.0 * b))
    R = R - bias
    G = X.T @ (c[:, None] * R)
    dual = np.sum(c[:, None] * (Y * R - R**2 / 2)) - np.sum(G**2) / 0.6
    assert judged.dual == pytest.approx(dual)
    assert len(calls) == 1
    # One output that balances is not enough.
    half = np.array([bias[0], bias[1] + 1.0])
    assert judged_sums(o, sums.Point(w, half, still, 0.0 * b))[0].dual == -np.inf
    # Without a penalty the gradients must vanish but for rounding: at the solution they do, elsewhere nothing is proved.
    free = o.with_penalty(hg.NoPenalty())
    A = np.column_stack([X, np.ones(N)]) * np.sqrt(c)[:, None]
    best = np.linalg.lstsq(A, Y * np.sqrt(c)[:, None], rcond=None)[0]
    exact = judged_sums(free, sums.Point(best[:D], best[D], still, 0.0 * b))[0]
    assert exact.dual == pytest.approx(0.5 * np.sum((A @ best - Y * np.sqrt(c)[:, None]) ** 2), rel=1e-9)
    assert judged_sums(free, sums.Point(w, bias, still, 0.0 * b))[0].dual == -np.inf
    # A step from elsewhere to the same weights gives the same, for a loss that is its own quadratic model.
    back = np.array([-0.3, 0.5])
    other = judged_sums(o, sums.Point(w - 0.2, bias - back, still + 0.2, back))[0]
    assert (other.primal, other.dual) == pytest.approx((judged.primal, judged.dual))


def test_no_bound_from_sums_without_convexity_and_no_gap_of_zero(rng):
    X, weight, _ = data(rng)
    o = hg.make_objective(X, rng.normal(size=N), hg.Squared(), hg.L0(0.1), sample_weight=weight)
    w, b = rng.normal(size=D), np.zeros(1)
    judged, calls = judged_sums(o, sums.Point(w, b, 0.5 * w, b + 1.0))
    assert (judged.dual, judged.gap, judged.kind, len(calls)) == (-np.inf, np.inf, "stationarity", 1)
    assert judged.residual == pytest.approx(stationarity.stationarity(o, 1.5 * w, b + 1.0))
    assert judged.exact
    # D = P but for rounding: the gap is 4ε(|P| + |D|), since zero would promise exact weights.
    even = hg.make_objective(np.zeros((2, 1)), np.array([1e3, -1e3]), hg.Squared(), hg.L2(0.3))
    judged, _ = judged_sums(even, sums.Point(*even.zero(), *even.zero()))
    assert judged.primal == 5e5
    assert judged.gap == pytest.approx(4 * np.finfo(float).eps * 1e6, rel=0.1)


def test_the_linear_model_of_the_gradients_of_classes(rng):
    """u + (diag(p) − pp')dz, row by row; a loss without a second derivative keeps its gradients."""
    y, z, dz = (np.arange(N) % 3).astype(float), rng.normal(size=(N, 3)), rng.normal(size=(N, 3))
    o = hg.make_objective(np.ones((N, 1)), y, hg.Softmax(), hg.L2(0.3))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    expected = [q - np.eye(3)[int(t)] + (np.diag(q) - np.outer(q, q)) @ s for q, t, s in zip(p, y, dz)]
    assert sums.linearised(o, z, dz) == pytest.approx(np.array(expected))
    kinked, s = hg.make_objective(np.ones((N, 1)), y, hg.Absolute(), hg.L2(0.3)), z[:, 0].copy()
    assert sums.linearised(kinked, s, dz[:, 0].copy()) == pytest.approx(np.sign(s - y))


# --- Stationarity ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_the_stationarity_residual(intercept, rng):
    """Distances of −g from a·∂|w| + bw and of the bias's gradient from zero, relative to those at zero weights.

    Both by the root mean square of the column.
    """
    X, y, c, shift, o = huber(rng, hg.Elastic(0.5, 0.4), intercept=intercept)
    sizes = np.sqrt(c @ X**2)
    w, b = np.array([0.3, 0.0, -0.2]), np.array([3.0])
    r = y - X @ w - shift - b[0] * intercept
    cu = -c * np.clip(r, -0.8, 0.8)
    g = X.T @ cu
    left = np.where(w != 0, np.abs(g + 0.2 * np.sign(w) + 0.3 * w), np.maximum(np.abs(g) - 0.2, 0.0)) / sizes
    worst = max(left.max(), abs(cu.sum())) if intercept else left.max()
    constant = o.loss.baseline(y, c) if intercept else 0.0
    cu0 = -c * np.clip(y - shift - constant, -0.8, 0.8)
    unit = max(np.abs(X.T @ cu0 / sizes).max(), abs(cu0.sum()) if intercept else 0.0)
    assert stationarity.gradient_scale(o) == pytest.approx(unit)
    assert stationarity.stationarity(o, w, b) == pytest.approx(worst / unit)
    assert stationarity.constant_risk(o) == pytest.approx(c @ huber_value(y - shift))


def test_the_risk_of_a_constant_that_fits():
    """If zero scores have no loss, the scale is the risk of the scores −1 and 1 together."""
    o = hg.make_objective(np.ones((3, 1)), np.zeros(3), hg.Squared(), hg.L2(0.3))
    assert stationarity.constant_risk(o) == pytest.approx(0.5 + 0.5)
    shift = np.array([1.0, 2.0, 4.0])
    fits = hg.make_objective(np.ones((3, 1)), shift, hg.Squared(), hg.L2(0.3), offset=shift)
    assert stationarity.constant_risk(fits) == pytest.approx(1.0)
    two = hg.make_objective(np.ones((3, 1)), np.ones((3, 2)), hg.Squared(), hg.L2(0.3))
    assert stationarity.constant_risk(two) == pytest.approx(1.0)
    asymmetric = hg.make_objective(np.ones((3, 1)), np.zeros(3), hg.Quantile(0.9), hg.L2(0.3))
    assert stationarity.constant_risk(asymmetric) == pytest.approx(0.9 + 0.1)


def test_subgradients_that_are_offered_count_with_what_they_miss(rng):
    """max(distance of X'cu + ∂Ω / unit, Σ c(ℓ + ℓ* − uz) / constant risk), or the gradients' own residual if smaller."""
    X, weight, shift = data(rng)
    y, c = rng.normal(size=N), weight / weight.sum()
    o = hg.make_objective(X, y, hg.Absolute(), hg.L1(0.3), sample_weight=weight, offset=shift)
    w, b = np.zeros(D), np.array([0.1])
    plain = stationarity.stationarity(o, w, b)
    z, unit, constant = shift + 0.1, stationarity.gradient_scale(o), c @ np.abs(y - shift)
    seen = []
    for size in (1.0, 0.97, 0.5):
        u = size * np.sign(z - y)
        wrong = c @ (np.abs(y - z) + u * y - u * z)
        g, gb = X.T @ (c * u), c @ u
        chosen = max((np.maximum(np.abs(g) - 0.3, 0.0) / np.sqrt(c @ X**2)).max(), abs(gb)) / unit
        expected = min(plain, max(chosen, wrong / constant))
        seen.append(expected)
        assert stationarity.stationarity(o, w, b, u) == pytest.approx(expected)
        assert stationarity.stationarity(o, w, b, 100 * u) == pytest.approx(plain)  # cut to the domain: sign(z − y)

    class Dented(hg.Absolute):
        convex = False

    class Plain(hg.Absolute):
        has_conjugate = False

    even = dual_points.balanced(o, np.clip(z - y, -1.0, 1.0))
    for loss in (Dented(), Plain()):  # no subgradients, or no way to see how far u is from one
        other = hg.make_objective(X, y, loss, hg.L1(0.3), sample_weight=weight, offset=shift)
        assert stationarity.stationarity(other, w, b, even) == pytest.approx(plain)
    smooth = hg.make_objective(X, y, hg.Squared(), hg.L1(0.3))
    assert stationarity.stationarity(smooth, w, b, 0.0 * y) == stationarity.stationarity(smooth, w, b)


def test_the_certificate_of_gradients():
    found = stationarity.certificate_of_gradients(
        3.0, [np.array([0.1, -0.5]), np.array([0.2])], [np.array([1.0]), np.array([-2.0, 0.0])], tol=0.3
    )
    assert (found.primal, found.residual, found.kind, found.tol) == (3.0, 0.25, "stationarity", 0.3)
    assert (found.dual, found.gap, found.relative_gap, found.weight_error) == (-np.inf, np.inf, np.inf, np.inf)
    assert found.converged


def test_weights_of_another_problem_have_a_residual_and_no_gap(rng):
    *_, o = huber(rng, hg.L2(0.3))
    found, w = Certificate.of_gap(1.0, 0.25, tol=0.1, convexity=1.0), rng.normal(size=D)
    moved = stationarity.without_gap(found, o, w, np.zeros(1), 0.2)
    assert (moved.primal, moved.dual, moved.gap, moved.relative_gap) == (1.0, -np.inf, np.inf, np.inf)
    assert (moved.kind, moved.tol, moved.weight_error) == ("stationarity", 0.2, np.inf)
    assert moved.residual == stationarity.stationarity(o, w, np.zeros(1))
    assert stationarity.without_gap(found, o, 0.0 * w, np.zeros(1), 0.2).residual == 0.25
    w[0] = 0.0
    assert stationarity.without_gap(found, o, w, np.zeros(1), 0.2).residual == stationarity.stationarity(
        o, w, np.zeros(1)
    )


def test_the_unit_of_the_residual(rng):
    """Of several outputs the largest gradient; zero scores if no constant is best; 1 where those have no loss."""
    X, weight, _ = data(rng)
    Y, c = rng.normal(size=(N, 2)) + np.array([0.1, 3.0]), weight / weight.sum()
    two = hg.make_objective(X, Y, hg.Squared(), hg.L2(0.5), sample_weight=weight)
    sizes = np.sqrt(c @ X**2)[:, None]
    unit = max(np.abs(X.T @ (c[:, None] * Y) / sizes).max(), np.abs(c @ Y).max())
    assert stationarity.gradient_scale(two) == pytest.approx(unit)
    w, b = 0.1 * rng.normal(size=(D, 2)), np.array([5.0, 2.9])
    R = Y - X @ w - b
    worst = max(np.abs((X.T @ (c[:, None] * R) - 0.5 * w) / sizes).max(), np.abs(c @ R).max())
    assert stationarity.stationarity(two, w, b) == pytest.approx(worst / unit)
    endless = SimpleNamespace(
        fit_intercept=True, outputs=1, zero=lambda: (np.zeros(2), np.zeros(1)), best_constant=lambda: np.inf,
        square_sums=np.array([0.25, 4.0]), risk_gradient=lambda w, b: (1.0, np.array([0.5, -2.0]) + b, np.zeros(1)),
    )  # fmt: skip
    assert stationarity.gradient_scale(endless) == 1.0
    assert stationarity.gradient_scale(endless, np.array([0.1, 4.0])) == 5.0
    zero = np.zeros(2), np.zeros(1)
    outside = SimpleNamespace(
        fit_intercept=False, outputs=1, square_sums=np.array([4.0, 9.0]), zero=lambda: zero,
        risk_gradient=lambda w, b: (np.inf, np.array([np.inf, 1.0]), np.zeros(1)),
    )  # fmt: skip
    assert stationarity.gradient_scale(outside) == 1.0


def test_columns_of_zeros_have_the_size_one(rng):
    X = np.column_stack([rng.normal(size=N), np.zeros(N)])
    o = hg.make_objective(X, rng.normal(size=N), hg.Squared(), hg.L1(0.3))
    assert stationarity.column_sizes(o) == pytest.approx([np.sqrt(np.mean(X[:, 0] ** 2)), 1.0])


@pytest.mark.mission("O8")
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("penalty", [hg.L1Ball, hg.L2Ball, hg.Lq], ids=lambda penalty: penalty.__name__)
def test_the_residual_does_not_depend_on_the_unit_of_a_column(scale, penalty, rng):
    """A wrong bias or a wrong weight of one column is as far from stationary, whatever the size of the others.

    With X of 1e6 the gradient of the bias was divided by that of the weights, and weights whose objective was 4 % above the
    optimum passed for converged.
    """
    X, y = rng.normal(size=(N, D)), rng.normal(size=N) + 2.0
    found = []
    for size in (1.0, scale):
        units = np.array([size, size, 1.0])
        # No penalty acts: the radius is large, or λ is zero.
        o = hg.make_objective(
            X * units, y, hg.Huber(1.0), penalty(1e9 / scale) if penalty is not hg.Lq else hg.Lq(1e-300)
        )
        w, b = np.array([0.1, -0.2, 0.3]) / units, np.array([0.5])
        found.append(stationarity.stationarity(o, w, b))
    assert found[1] == pytest.approx(found[0], rel=1e-6)
    assert found[0] > 0.1


@pytest.mark.parametrize("groups", [[0, 0, 1], [7, 7, 5], [2, 0, 1]])
def test_groups_are_measured_by_their_largest_column(groups, rng):
    X, y = rng.normal(size=(N, D)) * np.array([1.0, 5.0, 0.2]), rng.normal(size=N)
    o = hg.make_objective(X, y, hg.Squared(), hg.GroupNorm(0.01, groups=groups), fit_intercept=False)
    w, sizes = np.array([0.3, -0.1, 0.2]), np.sqrt(np.mean(X**2, axis=0))
    g = X.T @ (X @ w - y) / N
    left = []
    for label in set(groups):
        p = [j for j in range(D) if groups[j] == label]
        left.append(np.linalg.norm(g[p] + 0.01 * np.sqrt(len(p)) * w[p] / np.linalg.norm(w[p])) / sizes[p].max())
    unit = np.abs(X.T @ y / N / sizes).max()
    assert stationarity.stationarity(o, w, np.zeros(1)) == pytest.approx(max(left) / unit)


# --- Kernels and several classes ------------------------------------------------------------------------------------


def test_kernel_ridge_with_a_penalty_for_every_target(rng):
    A, y, s = rng.normal(size=(N, 4)), rng.normal(size=(N, 2)), rng.random(N) + 0.5
    K, c, alpha = A @ A.T, rng.normal(size=(N, 2)), np.array([0.4, 0.9])
    s[3], c[3] = 0.0, 0.0
    found = ridge_certificate(K @ c, y, c, alpha, s, tol=0.5)
    primal = dual = 0.0
    for k in range(2):
        f = K @ c[:, k]
        primal += s @ (y[:, k] - f) ** 2 + alpha[k] * (c[:, k] @ f)
        square = np.sum(c[s > 0, k] ** 2 / s[s > 0])
        dual += 2 * alpha[k] * (c[:, k] @ y[:, k]) - alpha[k] * (c[:, k] @ f) - alpha[k] ** 2 * square
    assert (found.primal, found.dual, found.gap) == pytest.approx((primal, dual, primal - dual))
    assert found.relative_gap == pytest.approx((primal - dual) / primal)
    assert found.weight_error == pytest.approx(np.sqrt((primal - dual) / 0.4))
    # A perfect fit of y: the gap is relative to 10⁻¹² Σ s y².
    exact = ridge_certificate(y, y, 1e-16 * y, 1.0, None, tol=0.5)
    floor = 1e-12 * np.sum(y**2)
    assert exact.primal < floor
    assert exact.relative_gap == pytest.approx(exact.gap / floor)
    residual = ridge_residual(K, y, c, alpha, s, tol=0.5)
    left = K @ (s[:, None] * (K @ c - y) + alpha * c)
    assert residual.primal == pytest.approx(primal)
    assert residual.residual == pytest.approx(np.linalg.norm(left) / np.linalg.norm(K @ (s[:, None] * y)))
    assert (residual.dual, residual.gap, residual.relative_gap) == (-np.inf, np.inf, np.inf)
    # Ky = 0: relative to ‖K‖‖sy‖.
    K, y, c = np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([2.0, -2.0]), np.array([1.0, 0.0])
    assert ridge_residual(K, y, c, 0.5, None, tol=0.5).residual == pytest.approx(2.5 * np.sqrt(2) / (2 * np.sqrt(8)))


@pytest.mark.mission("K3")
def test_coefficients_of_examples_without_weight_prove_nothing(rng):
    """c must be zero where s is: α²c²/s is infinite otherwise, however well c'y looks."""
    A, y = rng.normal(size=(N, 4)), rng.normal(size=N)
    K, s = A @ A.T, np.ones(N)
    s[:2], y[:2] = 0.0, 1e3
    c = np.zeros(N)
    c[2:] = np.linalg.solve(K[2:, 2:] + 0.7 * np.eye(N - 2), y[2:])
    optimum = ridge_certificate(K @ c, y, c, 0.7, s, tol=1e-6)
    assert optimum.converged
    model = hg.KernelRidge(alpha=0.7, kernel="precomputed").fit(K, y, sample_weight=s)
    assert model.certificate_.primal == pytest.approx(optimum.primal)
    assert model.certificate_.converged
    c[0] = 0.1
    assert ridge_certificate(K @ c, y, c, 0.7, s, tol=1e-6).dual <= optimum.primal


def test_the_gap_over_centres(rng):
    """P − D(u) with D(u) = −Σ cℓ*(u) − ‖Φ'cu‖²/2λ, in which u need not balance: bΣcu is what the bias may still gain."""
    F, weight, _ = data(rng)
    y, c, lam = np.resize([1.0, -1.0], N), weight / weight.sum(), 0.3
    beta, loss = rng.normal(size=D), hg.Logistic()
    for bias in (0.0, 0.7, -0.7):
        found = centres_certificate(
            native_loss(loss), y, c, lambda v: F @ v, lambda v: F.T @ v, beta, bias, lam, tol=0.5
        )
        z = F @ beta + bias
        u = -y / (1 + np.exp(y * z))
        primal = c @ np.log1p(np.exp(-y * z)) + 0.5 * lam * beta @ beta
        g = F.T @ (c * u)
        fenchel = primal + c @ loss.conjugate(y, u) + g @ g / (2 * lam)  # P − D(u) = ‖g + λβ‖²/2λ + bΣcu
        gap = np.sum((g + lam * beta) ** 2) / (2 * lam)
        assert fenchel == pytest.approx(gap + bias * (c @ u))
        assert found.primal == pytest.approx(primal)
        assert found.gap == pytest.approx(gap + abs(bias * (c @ u)))
        assert found.weight_error == pytest.approx(np.sqrt(2 * found.gap / lam))


@pytest.mark.mission("M4")
@pytest.mark.parametrize("bias", [True, False])
def test_every_term_of_the_multiclass_machine(bias, rng):
    """P and D from their definitions for p in the simplex, weighted, with costs; any other offer stays below the optimum."""
    k, y, c = 3, np.arange(N) % 3, 0.02 * (rng.random(N) + 0.2)
    X = rng.normal(size=(N, D)) + np.eye(3)[y]
    cost = np.array([[0.0, 1.0, 2.0], [1.5, 0.0, 0.5], [1.0, 3.0, 0.0]])
    own = np.eye(k)[y]
    W, b = 0.3 * rng.normal(size=(D, k)), 0.2 * rng.normal(size=k) if bias else None
    p = rng.dirichlet(np.ones(k), size=N)
    unbalanced = c[:, None] * (own - p)
    if bias:  # Σ c(e_y − p) = 0: half of every p is the shares of the classes
        left = c @ (p - own)
        t = np.max(left / (c @ own)) / (1 + np.max(left / (c @ own)))
        p = (1 - t) * p + t * (c @ own) / c.sum() - (1 - t) * left / c.sum()
        assert np.all(p >= 0)
    d = c[:, None] * (own - p)
    s = X @ W + (0.0 if b is None else b)
    margins = cost[y] + s - s[np.arange(N), y][:, None]
    primal = c @ margins.max(axis=1) + 0.5 * np.sum(W**2)
    dual = np.sum(c[:, None] * p * cost[y]) - 0.5 * np.sum((X.T @ d) ** 2)
    found = linear_multiclass_certificate(X, W, b, y.astype(float), c, cost, d, tol=1e-6)
    assert (found.primal, found.dual, found.gap) == pytest.approx((primal, dual, primal - dual))
    assert found.weight_error == pytest.approx(np.sqrt(2 * (primal - dual)))
    # What does not balance is mixed with the shares of the classes until it does.
    mixed = linear_multiclass_certificate(X, W, b, y.astype(float), c, cost, unbalanced, tol=1e-6)
    assert mixed.dual == pytest.approx(dual)
    sparse = linear_multiclass_certificate(sp.csr_array(X), W, b, y.astype(float), c, cost, d, tol=1e-6)
    assert sparse.dual == pytest.approx(dual)
    K = X @ X.T
    s = K @ d + (0.0 if b is None else b)
    margins = cost[y] + s - s[np.arange(N), y][:, None]
    of_kernel = kernel_multiclass_certificate(K, b, y.astype(float), c, cost, d, tol=1e-6)
    assert of_kernel.primal == pytest.approx(c @ margins.max(axis=1) + 0.5 * np.sum(d * (K @ d)))
    assert of_kernel.dual == pytest.approx(dual)
    for _ in range(20):  # weak duality for offers that are in no simplex and do not balance
        offer = rng.normal(size=(N, k))
        V, a = 0.3 * rng.normal(size=(D, k)), rng.normal(size=k) if bias else None
        other = linear_multiclass_certificate(X, V, a, y.astype(float), c, cost, offer, tol=1e-6)
        assert other.dual <= min(primal, other.primal) + 1e-12


# --- Label sequences ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.3), (0.05, 0.3), (1.0, 0.3), (0.05, 0.0), (50.0, 0.0)])
def test_every_term_of_the_conditional_random_field(l1, l2, rng, monkeypatch):
    """Sequences of one label are a softmax, whose dual is written out: the entropy of p less Ω* of Σ c(E_p φ − φ)."""
    k, m, c = 3, 4, rng.dirichlet(np.ones(N))
    features, y = rng.normal(size=(N, k, m)), np.arange(N) % k

    def loss(w):
        z = features @ w
        log_z = np.logaddexp.reduce(z, axis=1)
        p = np.exp(z - log_z[:, None])
        expected = np.einsum("ik,ikm->im", p, features) - features[np.arange(N), y]
        return float(c @ (log_z - z[np.arange(N), y])), c @ expected, p

    monkeypatch.setattr(chain, "core", SimpleNamespace(crf_loss=lambda w: loss(w)[:2]))
    for size in (0.0, 0.3, 3.0):
        w = size * rng.normal(size=m)
        value, g, p = loss(w)
        primal = value + l1 * np.abs(w).sum() + 0.5 * l2 * w @ w
        entropy = -c @ np.sum(p * np.log(p), axis=1)
        if l2 > 0:
            dual = entropy - np.sum(np.maximum(np.abs(g) - l1, 0.0) ** 2) / (2 * l2)
        else:
            dual = min(1.0, l1 / np.abs(g).max()) * entropy
        found = chain.crf_certificate((), w, l1, l2, tol=1e-3)
        assert (found.primal, found.dual, found.gap) == pytest.approx((primal, dual, primal - dual))
        assert found.weight_error == (pytest.approx(np.sqrt(2 * (primal - dual) / l2)) if l2 else np.inf)
    if l1 < l2:
        best = minimize(lambda w: loss(w)[0] + l1 * np.abs(w).sum() + 0.5 * l2 * w @ w, np.zeros(m), method="Powell")
        assert found.dual <= best.fun + 1e-9


def test_the_structured_machine_is_judged_by_its_gap():
    found = chain.structured_svm_certificate(2.0, 0.5, 4.0, tol=0.3)
    assert (found.primal, found.dual, found.gap, found.weight_error) == (2.0, 1.5, 0.5, 0.5)
