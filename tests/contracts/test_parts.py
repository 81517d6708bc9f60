"""Small parts of problems and solvers, each against its definition where no larger test would show a difference."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import hinge as hg
import zoo
from hinge._native import Design
from hinge.problem.certificates.dual_points import best_shifts
from hinge.problem.certificates.kernel_expansion import ridge_certificate, ridge_residual
from hinge.problem.certificates.linear import path_certificates
from hinge.problem.certificates.sums import Point, certificate_from_sums, dual_sums
from hinge.problem.cost import gram_flops
from hinge.problem.decisions import Empirical, Gamma, InverseGamma
from hinge.problem.kernels.custom import Function
from hinge.problem.losses.probe import _between
from hinge.solvers.multiclass_proximal import LinearSpace
from hinge.solvers.ridge_path import RidgePath
from hinge.solvers.row_space import uniform_ridge
from hinge.solvers.run import SOLVERS, admissible, solve
from hinge.solvers.subgradient import optimality_distance

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


@pytest.mark.mission("K3", "O8")
@pytest.mark.parametrize("outputs", [(), (2,)])
def test_the_two_values_of_kernel_ridge_at_any_coefficients(outputs, rng):
    """P = Σ s(y − Kc)² + αc'Kc and D = max over c of 2αc'y − αc'Kc − α²Σc²/s: D never above the optimum, P never below."""
    n, alpha = 12, 0.7
    A = rng.normal(size=(n, 4))
    K, y, s = A @ A.T, rng.normal(size=(n, *outputs)), rng.random(n) + 0.5
    S = s.reshape((n,) + (1,) * len(outputs))
    best = np.linalg.solve(K + alpha * np.diag(1 / s), y)
    optimum = np.sum(S * (y - K @ best) ** 2) + alpha * np.sum(best * (K @ best))
    for size in (0.0, 0.1, 1.0):
        c = best + size * rng.normal(size=y.shape)
        judged = ridge_certificate(K @ c, y, c, alpha, s, tol=1e-6)
        assert judged.primal == pytest.approx(np.sum(S * (y - K @ c) ** 2) + alpha * np.sum(c * (K @ c)))
        dual = 2 * alpha * np.sum(c * y) - alpha * np.sum(c * (K @ c)) - alpha**2 * np.sum(c**2 / S)
        assert judged.dual == pytest.approx(dual)
        assert judged.gap == pytest.approx(judged.primal - judged.dual, abs=1e-12)
        assert judged.dual <= optimum * (1 + 1e-12)
        assert optimum <= judged.primal * (1 + 1e-12)
        if size == 0:
            assert judged.dual == pytest.approx(optimum)
        # ‖f − f*‖² ≤ gap/α in the norm of the kernel, by strong convexity.
        assert np.sqrt(np.sum((c - best) * (K @ (c - best)))) <= judged.weight_error * (1 + 1e-9)
        gradient = K @ (S * (K @ c - y) + alpha * c)
        residual = ridge_residual(K, y, c, alpha, s, tol=1e-6)
        assert residual.primal == pytest.approx(judged.primal)
        assert residual.residual == pytest.approx(np.linalg.norm(gradient) / np.linalg.norm(K @ (S * y)), abs=1e-12)


@pytest.mark.mission("O8")
def test_sums_beyond_all_numbers_prove_nothing(rng):
    """An infinite conjugate, by rounding at the edge of its domain, is no lower bound."""
    o = hg.make_objective(rng.normal(size=(12, 2)), rng.normal(size=12), hg.Huber(0.8), hg.L2(0.3))
    found = solve(o, tol=1e-8)
    point = Point(found.w, found.b, 0.0 * found.w, 0.0 * found.b)
    judged = certificate_from_sums(o, point, lambda p: dual_sums(o, p)._replace(conjugate=np.inf), tol=1e-6)
    assert judged.dual == -np.inf
    assert not judged.converged or judged.kind == "stationarity"


# --- What is established about a user's loss ------------------------------------------------------------------------


@pytest.mark.mission("L9")
def test_a_difference_quotient_lies_between_the_slopes():
    """In any order of the three slopes; the second difference of the slopes and the noise are allowed on both sides."""
    none = np.zeros(1)
    for slopes in ((1.0, 2.0, 3.0), (3.0, 2.0, 1.0), (1.0, 1.0, 1.0)):
        low, high = min(slopes), max(slopes)
        arrays = [np.array([slope]) for slope in slopes]
        for quotient, right in (
            (low - 0.1, False),
            (low, True),
            (2.0 * low / 2, True),
            (high, True),
            (high + 0.1, False),
        ):
            assert bool(_between(np.array([quotient]), arrays, none)[0]) == right
            assert bool(_between(np.array([quotient]), arrays, none + 0.2)[0])
    bent = [np.array([slope]) for slope in (1.0, 3.0, 1.5)]  # the middle is the largest: |1 − 6 + 1.5| is allowed
    assert bool(_between(np.array([6.4]), bent, none)[0])
    assert not bool(_between(np.array([6.6]), bent, none)[0])
    assert not bool(_between(np.array([-2.6]), bent, none)[0])


@pytest.mark.mission("L1")
def test_the_risk_of_labels_is_that_of_scores_of_size_one():
    """A classifier without scores: its labels are ±1 to a loss of margins."""

    class Labels:
        classes_ = np.array(["no", "yes"])

        def predict(self, X):
            return np.where(np.asarray(X)[:, 0] > 0, "yes", "no")

    X, y = np.array([[1.0], [-1.0], [2.0]]), np.array(["yes", "yes", "no"])
    assert hg.empirical_risk(Labels(), X, y, hg.Logistic()) == pytest.approx(
        (np.log1p(np.exp(-1)) + 2 * np.log1p(np.e)) / 3
    )
    assert hg.empirical_risk(Labels(), X, y, hg.SquaredMargin()) == pytest.approx(8 / 3)


@pytest.mark.mission("L7")
@pytest.mark.parametrize("best", [0, 1, 3])
def test_actions_of_losses_that_are_not_convex_are_refined_beside_the_best_outcome(best):
    """As for functions: 1 − exp(−(y − s)²) has a valley at every outcome, and the best one is half way to its neighbour."""

    class Bumps:
        target = hg.Squared.target
        convex = False
        smooth = True

        def value(self, y, s):
            return 1.0 - np.exp(-((y - s) ** 2))

        def gradient(self, y, s):
            return 2.0 * (s - y) * np.exp(-((y - s) ** 2))

    outcomes, weight = 10.0 * np.arange(5.0), np.full(5, 0.1)
    outcomes[best + 1] = outcomes[best] + 0.8
    weight[best], weight[best + 1] = 0.36, 0.34
    found = Empirical(outcomes, weight / weight.sum()).bayes_action(Bumps())
    grid = outcomes[best] + np.linspace(0.0, 0.8, 8001)
    risks = [float(weight @ Bumps().value(outcomes, s)) for s in grid]
    assert found == pytest.approx(grid[np.argmin(risks)], abs=2e-4)
    assert outcomes[best] + 0.1 < found < outcomes[best + 1] - 0.1


# --- Certificates of paths, costs and clocks ------------------------------------------------------------------------


@pytest.mark.mission("O8", "P2")
@pytest.mark.parametrize("loss", [hg.Squared(), hg.Logistic()], ids=zoo.name)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", [hg.L1(1.0), hg.Elastic(1.0, 0.4), hg.L1(1.0, positive=True)], ids=zoo.name)
def test_the_bounds_of_a_path_are_below_every_optimum(loss, penalty, intercept, rng):
    """Of weights that are a little wrong: the lower bound stays below the optimum, and the gap above what is missed."""
    X = rng.normal(size=(40, 4))
    o = hg.make_objective(X, zoo.targets(loss, 40, rng), loss, penalty, fit_intercept=intercept)
    strengths = np.array([0.1, 0.03, 0.01])
    best = [solve(o.with_penalty(penalty.with_strength(lam)), tol=1e-12) for lam in strengths]
    for wrong in (0.0, 1e-3, 0.1):
        W = np.array([penalty.prox(found.w + wrong * rng.normal(size=4), 1e-15) for found in best])
        B = np.array([found.b[0] for found in best])
        for lam, found, w, judged in zip(strengths, best, W, path_certificates(o, strengths, W, B, tol=0.5)):
            optimum = found.certificate.primal
            value = o.with_penalty(penalty.with_strength(lam)).value(w, found.b)
            assert judged.primal == pytest.approx(value)
            assert judged.dual <= optimum * (1 + 1e-9)
            assert judged.gap >= value - optimum - 1e-9 * optimum
            if wrong == 0:
                assert judged.dual == pytest.approx(optimum, rel=1e-4)


@pytest.mark.mission("O8")
def test_how_many_operations_a_gram_matrix_takes(rng):
    """n d² if X is dense, or if some columns are made dense; (entries per row)² a row if it is sparse."""
    X = rng.normal(size=(20, 6)) * (np.arange(6) < 3)
    dense = hg.make_objective(X, np.ones(20), hg.Squared(), hg.L2(1.0)).design
    sparse = hg.make_objective(sp.csr_array(X), np.ones(20), hg.Squared(), hg.L2(1.0)).design
    assert gram_flops(dense, 6) == 20 * 36
    assert gram_flops(dense, 4) == 20 * 16
    assert gram_flops(sparse, 4) == 20 * 16
    assert gram_flops(sparse, 6) == 60**2 / 20


@pytest.mark.mission("O1")
def test_seconds_are_those_of_the_clock(rng):
    o = hg.make_objective(rng.normal(size=(30, 3)), rng.normal(size=30), hg.Squared(), hg.L1(0.1))
    began = time.perf_counter()
    found = solve(o)
    assert 0.0 < found.certificate.seconds <= time.perf_counter() - began


@pytest.mark.mission("O1")
@pytest.mark.parametrize(
    ("penalty", "strength"),
    [
        (hg.L2(0.3), 0.3), (hg.NoPenalty(), 0.0), (hg.L1(0.3), 0.0), (hg.Elastic(0.3, 0.5), 0.0), (hg.L1Ball(1.0), 0.0),
        (hg.L2(0.3, positive=True), 0.0), (hg.L2(0.3, weights=np.array([1.0, 2.0])), 0.0),
        (hg.L2(0.3, weights=np.array([2.0, 2.0])), 0.6), (hg.Box(-1.0, 1.0), 0.0),
    ],
    ids=zoo.name,
)  # fmt: skip
def test_only_a_ridge_alike_for_all_weights_keeps_them_in_the_row_space(penalty, strength):
    o = hg.make_objective(np.eye(2), np.ones(2), hg.Squared(), penalty)
    assert uniform_ridge(o) == pytest.approx(strength)


@pytest.mark.mission("O2")
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_an_optimum_on_a_kink_is_one_from_either_side(side):
    """mean |y − b| with y = 0, 0, ±1: 0 is optimal, and a rounding error left or right of it hides no subgradient."""
    y = np.array([0.0, 0.0, side])
    o = hg.make_objective(np.zeros((3, 1)), y, hg.Absolute(), hg.L2(1.0))
    for b in (0.0, 1e-12, -1e-12):
        assert optimality_distance(o, np.zeros(1), np.array([b])) == pytest.approx(0.0, abs=1e-12)
    assert optimality_distance(o, np.zeros(1), np.array([0.5 * side])) == pytest.approx(1 / 3)
    assert optimality_distance(o, np.zeros(1), np.array([-0.5 * side])) == pytest.approx(1.0)


@pytest.mark.mission("K2")
@pytest.mark.parametrize("text", ["abcz", "zabc", "zzz", "Aabc"])
def test_one_letter_outside_the_alphabet_is_refused(text):
    kernel = hg.kernels.Mismatch(2, 1, alphabet="abc")
    assert np.all(np.isfinite(kernel(["abca", "bbcc"])))
    with pytest.raises(ValueError, match="not in alphabet"):
        kernel(["abca", text])


@pytest.mark.mission("S2")
@pytest.mark.parametrize(("n", "d"), [(12, 3), (6, 9)], ids=["primal", "dual"])
@pytest.mark.parametrize("intercept", [True, False])
def test_leverages_of_weighted_ridge(n, d, intercept, rng):
    """hᵢ = 1/Σs + x̃ᵢ'(X̃'SX̃ + αI)⁻¹x̃ᵢ, and the residual of an example that is left out is that of a fit without it."""
    X, y, s = rng.normal(size=(n, d)), rng.normal(size=(n, 1)), rng.uniform(0.3, 0.9, size=n)
    path, alphas = RidgePath(Design(X), y, s, intercept), np.array([0.2, 3.0])
    mean = s @ X / s.sum() if intercept else np.zeros(d)
    for k, alpha in enumerate(alphas):
        A = np.linalg.inv((X - mean).T @ (s[:, None] * (X - mean)) + alpha * np.eye(d))
        h = np.einsum("ij,jk,ik->i", X - mean, A, X - mean) + (1 / s.sum() if intercept else 0.0)
        assert path.leverages(alphas)[:, k] == pytest.approx(h)
        for i in range(n):
            left = np.arange(n) != i
            W, b = RidgePath(Design(X[left]), y[left], s[left], intercept).coef(alpha)
            assert path.leave_one_out(alphas)[i, 0, k] == pytest.approx((y[i] - X[i] @ W - b)[0])
