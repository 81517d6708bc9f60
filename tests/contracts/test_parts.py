"""Small parts of problems and solvers, each against its definition where no larger test would show a difference."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import hinge as hg
import zoo
from hinge.problem.certificates.dual_points import best_shifts
from hinge.problem.certificates.sums import Point, certificate_from_sums, dual_sums
from hinge.problem.decisions import Empirical, Gamma, InverseGamma
from hinge.problem.kernels.custom import Function
from hinge.solvers.multiclass_proximal import LinearSpace
from hinge.solvers.run import SOLVERS, admissible, solve

# --- Penalties ------------------------------------------------------------------------------------------------------


@pytest.mark.mission("R1")
@pytest.mark.parametrize("penalty", zoo.penalties(3), ids=zoo.name)
def test_smooth_penalties_are_those_with_a_derivative_everywhere(penalty):
    """One-sided slopes along every axis agree at zero and elsewhere, and no step leads out of the domain."""
    agree, h = True, 1e-7
    for w in (np.zeros(3), np.array([0.1, -0.05, 0.0]), np.array([0.5, 0.5, 0.5])):
        if not np.isfinite(penalty.value(w)):
            agree = False
            continue
        for e in np.eye(3):
            right = (penalty.value(w + h * e) - penalty.value(w)) / h
            left = (penalty.value(w) - penalty.value(w - h * e)) / h
            agree &= bool(np.isfinite(right) and np.isfinite(left) and abs(right - left) < 1e-3)
    assert penalty.smooth == agree


@pytest.mark.mission("R1")
@pytest.mark.parametrize("ball", [hg.L1Ball, hg.L2Ball])
def test_a_constraint_is_not_needed_or_has_no_strength(ball):
    g = np.array([0.0, -1.0])
    assert ball(0.0).lambda_max(g) == 0.0
    assert ball(0.5).lambda_max(g) == np.inf
    assert ball(0.5).lambda_max(0.0 * g) == 0.0
    assert np.array_equal(ball(0.0).subdifferential_distance(np.zeros(2), g), np.zeros(2))


@pytest.mark.mission("R1", "O8")
def test_the_distance_from_the_subdifferential_of_the_largest_weight():
    """λp∘sign(w) with p on the largest weights; at w = 0 the ball Σ|v| ≤ λ; zeros among the weights change nothing."""
    penalty = hg.MaxNorm(1.0)
    g = np.array([-0.6, 0.4, 0.3])
    assert penalty.subdifferential_distance(np.array([2.0, -2.0, 0.0]), g) == pytest.approx([0.0, 0.0, 0.3])
    assert penalty.subdifferential_distance(np.array([2.0, 0.0, 1.0]), g) == pytest.approx([0.4, 0.4, 0.3])
    assert penalty.subdifferential_distance(np.zeros(3), 0.5 * g) == pytest.approx(np.zeros(3))
    assert penalty.subdifferential_distance(np.zeros(3), g) == pytest.approx([0.1, 0.1, 0.1])


# --- Losses ---------------------------------------------------------------------------------------------------------


@pytest.mark.mission("L1")
@pytest.mark.parametrize(
    ("loss", "best"),
    [
        (hg.Logistic(), lambda up, down: np.log(up / down)), (hg.Exponential(), lambda up, down: 0.5 * np.log(up / down)),
        (hg.SquaredHinge(), lambda up, down: up - down), (hg.SquaredMargin(), lambda up, down: up - down),
    ],
)  # fmt: skip
def test_the_best_constant_of_two_classes_is_known_exactly(loss, best):
    y, weight = np.array([1.0, -1.0, 1.0]), np.array([3.0, 2.0, 4.0])
    assert loss.baseline(y, weight) == pytest.approx(best(7 / 9, 2 / 9), rel=4e-16)


# --- Decisions ------------------------------------------------------------------------------------------------------


@pytest.mark.mission("L7")
def test_rates_are_one_unless_given():
    assert Gamma(2.0).mean == pytest.approx(2.0)
    assert Gamma(3.0).mode == pytest.approx(2.0)
    assert InverseGamma(3.0).mean == pytest.approx(0.5)
    assert InverseGamma(3.0).mode == pytest.approx(0.25)


@pytest.mark.mission("L7")
def test_the_best_action_is_refined_between_the_neighbours_of_the_best_outcome():
    """With min((a − y)², 1) the best outcomes are 5 and 6, and 5.5 between them is better; nothing else is near."""

    def loss(a, y):
        return np.minimum((a - y) ** 2, 1.0)

    for shift in (0.0, -40.0):  # the best outcome is among the last, and among the first
        outcomes = np.array([-10.0, 5.0 + shift, 6.0 + shift, 12.0])
        law = Empirical(
            np.sort(outcomes), np.array([0.1, 0.4, 0.4, 0.1]) if not shift else np.array([0.4, 0.4, 0.1, 0.1])
        )
        assert law.bayes_action(loss) == pytest.approx(5.5 + shift, abs=1e-6)


# --- Certificates ---------------------------------------------------------------------------------------------------


@pytest.mark.mission("O8")
@pytest.mark.parametrize("offset", [True, False])
def test_sums_of_dual_variables(offset, rng):
    """Risk, conjugate and lean are those of s(up·u⁺ + down·u⁻); the sides themselves come without the factors."""
    n, d = 12, 2
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    weight, shift = rng.random(n) + 0.5, rng.normal(size=n) if offset else None
    o = hg.make_objective(X, y, hg.Huber(0.8), hg.L2(0.3), sample_weight=weight, offset=shift)
    c, base = weight / weight.sum(), np.zeros(n) if shift is None else shift
    w, b, step, bias_step = rng.normal(size=d), rng.normal(size=1), 0.1 * rng.normal(size=d), 0.1 * rng.normal(size=1)
    z, dz = X @ w + b[0] + base, X @ step + bias_step[0]
    u = np.clip(o.loss.gradient(y, z) + o.loss.hessian(y, z) * dz, -0.8, 0.8)
    plus, minus = np.maximum(u, 0), np.minimum(u, 0)
    for scale, up, down in ((1.0, 1.0, 1.0), (0.7, 1.0, 1.0), (1.0, 0.5, 1.0), (0.9, 1.0, 0.25)):
        found = dual_sums(o, Point(w, b, step, bias_step, scale, up, down))
        scaled = scale * (up * plus + down * minus)
        assert found.risk == pytest.approx(c @ o.loss.value(y, z + dz))
        assert found.constant_risk == pytest.approx(c @ o.loss.value(y, base))
        assert found.conjugate == pytest.approx(c @ o.loss.conjugate(y, scaled))
        assert found.lean == pytest.approx(c @ (scaled * base))
        assert (found.rise[0], found.fall[0]) == pytest.approx((c @ plus, c @ minus))
        assert found.gradient_up == pytest.approx(X.T @ (c * plus))
        assert found.gradient_down == pytest.approx(X.T @ (c * minus))
        assert found.squares[0] == pytest.approx(c @ u**2)
        assert found.square_sums == pytest.approx(c @ X**2)


@pytest.mark.mission("O8")
def test_sums_prove_no_bound_where_the_dual_variables_cannot_balance():
    """All residuals of one sign: no factor makes Σ c u zero, so there is no bound."""
    o = hg.make_objective(np.ones((4, 1)), np.full(4, 3.0), hg.Squared(), hg.L2(0.1))
    w, b = o.zero()
    judged = certificate_from_sums(o, Point(w, b, 0.0 * w, 0.0 * b), lambda p: dual_sums(o, p), tol=1e-6)
    assert judged.dual == -np.inf
    assert judged.kind == "stationarity"


@pytest.mark.mission("O8")
@pytest.mark.parametrize("far", [0.0, 3.0])
def test_the_best_biases_of_several_outputs_balance_the_gradients(far, rng):
    """Σ cᵢ(pᵢ − e_yᵢ) = 0 to rounding."""
    n, k = 30, 4
    y = np.arange(n) % k
    o = hg.make_objective(rng.normal(size=(n, 2)), y.astype(float), hg.Softmax(), hg.L2(0.1))
    z = rng.normal(size=(n, k)) + far * np.arange(k)
    moved = z + best_shifts(o, z)
    p = np.exp(moved - moved.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    assert np.max(np.abs(np.sum(p - np.eye(k)[y], axis=0) / n)) <= 1e-13


# --- Kernels --------------------------------------------------------------------------------------------------------


@pytest.mark.mission("K1")
def test_which_kernels_are_declared_positive_semidefinite():
    """Without the declaration a machine with more rows than can be checked has no gap: none may lose it."""
    k = hg.kernels
    declared = [
        k.RBF(1.0), k.Laplacian(1.0), k.Matern(1.5), k.RationalQuadratic(1.0), k.ChiSquared(1.0), k.LinearKernel(),
        k.Polynomial(3, 1.0, 1.0), k.RBF(1.0) * k.LinearKernel(), k.RBF(1.0) + k.Matern(0.5),
    ]  # fmt: skip
    assert all(kernel.psd for kernel in declared)
    assert not any(kernel.psd for kernel in (k.Sigmoid(1.0, -1.0), k.Polynomial(3, 1.0, -1.0), Function(np.dot)))
    assert Function(np.dot, psd=True).psd


# --- Solvers --------------------------------------------------------------------------------------------------------


@pytest.mark.mission("O1")
@pytest.mark.parametrize("name", sorted({*SOLVERS} - {"block-coordinate-descent", "fisher-scoring", "one-by-one"}))
def test_callbacks_are_called_once_per_iteration_in_order(name, rng):
    """Records are numbered 1, 2, 3 …; the seconds since the start are those of the clock."""
    tried = [
        (hg.Logistic(), hg.L2(0.1)), (hg.Squared(), hg.L1(0.05)), (hg.Hinge(), hg.L2(0.1)), (hg.Squared(), hg.L2(0.1)),
        (hg.Softmax(), hg.L2(0.1)), (hg.Squared(), hg.L1Ball(0.5)), (hg.Absolute(), hg.L1(0.05)),
        (hg.Absolute(), hg.Lq(0.05, 0.5)), (hg.Squared(), hg.GroupNorm(0.05)),
    ]  # fmt: skip
    ran, first = 0, 0 if name == "closed-form" else 1  # which looks at zero weights before anything is solved
    for loss, penalty in tried:
        o = hg.make_objective(rng.normal(size=(25, 3)), zoo.targets(loss, 25, rng), loss, penalty)
        if name not in admissible(o):
            continue
        seen = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = solve(o, solver=name, tol=1e-4, max_iter=6, callback=seen.append)
        numbers = [record.iteration for record in seen]
        assert numbers == sorted(set(numbers)), f"{loss!r}: {numbers}"
        assert all(first <= number <= max(result.solution.iterations, 1) for number in numbers), f"{loss!r}: {numbers}"
        assert all(0.0 <= record.seconds < 600.0 for record in seen)
        ran += 1
    assert ran


@pytest.mark.mission("O4")
@pytest.mark.parametrize("penalty", [hg.L1(0.05), hg.L2(0.2)], ids=zoo.name)
def test_admm_with_an_offset(penalty, rng):
    """Offsets are part of the scores: with Squared they are taken from the targets."""
    X, y, offset = rng.normal(size=(30, 3)), rng.normal(size=30), 2.0 * rng.normal(size=30)
    with_offset = solve(
        hg.make_objective(X, y, hg.Squared(), penalty, offset=offset), solver="admm", tol=1e-9, max_iter=3000
    )
    moved = solve(hg.make_objective(X, y - offset, hg.Squared(), penalty), tol=1e-12)
    assert with_offset.w == pytest.approx(moved.w, abs=1e-4)
    assert with_offset.b == pytest.approx(moved.b, abs=1e-4)


@pytest.mark.mission("M4")
def test_the_spread_of_the_inputs(rng):
    """Σ c‖x − x̄‖² / Σ c, the unit of the proximal steps of the biases."""
    X, share = rng.normal(size=(20, 3)) + 5.0, rng.dirichlet(np.ones(20))
    centred = X - share @ X
    assert LinearSpace(X, share, 3).spread == pytest.approx(share @ np.sum(centred**2, axis=1))
    assert LinearSpace(X, None, 3).spread == 1.0


@pytest.mark.mission("K3")
@pytest.mark.parametrize("outputs", [(), (2,)])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_certificate_of_kernel_ridge(outputs, weighted, rng):
    """P − D from the definition, for one and two targets, with and without weights."""
    X, y = rng.normal(size=(15, 2)), rng.normal(size=(15, *outputs))
    weight = rng.random(15) + 0.5 if weighted else None
    model = hg.KernelRidge(alpha=0.7, kernel="rbf", gamma=0.5).fit(X, y, sample_weight=weight)
    s = np.ones(15) if weight is None else weight
    K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=-1))
    A = np.linalg.solve(K + 0.7 * np.diag(1 / s), y.reshape(15, -1))
    optimum = np.sum(s[:, None] * (y.reshape(15, -1) - K @ A) ** 2) + 0.7 * np.sum(A * (K @ A))
    assert model.certificate_.primal == pytest.approx(optimum, rel=1e-9)
    assert 0.0 <= model.certificate_.gap <= 1e-9 * optimum


@pytest.mark.mission("K4")
@pytest.mark.parametrize(
    "make", [lambda: hg.SVC(C=1.0, gamma=0.5, tol=1e-3), lambda: hg.NuSVC(nu=0.5, gamma=0.5, tol=1e-3)]
)
def test_machines_are_polished_to_exact_margins(make, rng):
    """At any tolerance the multipliers inside their bounds satisfy yf = 1 to rounding, not to the tolerance."""
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=60) > 0, 1, -1)
    model = make().fit(X, y)
    size = np.abs(model.dual_coef_).ravel()
    free = model.support_[size < size.max() * (1 - 1e-9)]
    assert len(free) > 2
    assert y[free] * model.decision_function(X[free]) == pytest.approx(np.ones(len(free)), abs=1e-11)
    assert model.certificate_.relative_gap <= 1e-12
