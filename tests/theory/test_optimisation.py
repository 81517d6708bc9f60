"""O: what the theory of optimisation proves about the solvers, checked on problems with known answers."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import hinge as hg
from hinge.solvers.base import Status
from hinge.solvers.coordinate_descent import soft_threshold
from hinge.solvers.line_search import _between
from hinge.solvers.run import solve

clarabel = pytest.importorskip("clarabel", reason="the QP reference needs the [qp] extra")


def quiet(objective, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solve(objective, **options)


def classes(rng, n=80, d=3, noise=1.0):
    X = rng.normal(size=(n, d))
    return X, np.where(X @ np.arange(1.0, d + 1) + noise * rng.normal(size=n) > 0.3, 1.0, -1.0)


def lasso(rng, lam=0.1, n=100, d=8):
    X = rng.normal(size=(n, d)) + 0.5
    y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=n) + 1.0
    return hg.make_objective(X, y, hg.Squared(), hg.L1(lam))


# --- O1: gradient descent ------------------------------------------------------------------------------------------


@pytest.mark.mission("O1")
@pytest.mark.parametrize("fraction", [1.0, 0.3])
def test_gradient_descent_obeys_its_bound_at_every_step(fraction, rng):
    """A quadratic whose curvature is known exactly: f(x_k) − f* ≤ ‖x₀ − x*‖² / (2ηk)."""
    Q, _ = np.linalg.qr(rng.normal(size=(40, 6)))
    X = np.sqrt(40) * Q * np.sqrt(np.logspace(-4, 0, 6))  # X'X/n = diag(1e-4 … 1), so L = 1
    y = rng.normal(size=40) * 3
    o = hg.make_objective(X, y, hg.Squared(), fit_intercept=False)
    best = np.linalg.lstsq(X, y)[0]
    lowest = o.value(best, np.zeros(1))
    eta, seen = fraction, []
    quiet(
        o,
        solver=hg.solvers.GradientDescent(step=eta),
        tol=0.0,
        max_iter=300,
        callback=lambda r: seen.append(r.objective),
    )
    assert len(seen) == 300
    for k, value in enumerate(seen, start=1):
        assert value - lowest <= best @ best / (2 * eta * k) + 1e-12
    assert all(b <= a + 1e-15 for a, b in itertools.pairwise(seen))


@pytest.mark.mission("O1")
def test_steps_longer_than_two_over_l_diverge(rng):
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    o = hg.make_objective(X, y, hg.Squared(), fit_intercept=False)
    bound = np.linalg.eigvalsh(X.T @ X / 30).max()
    assert bound * (1 - 1e-12) <= o.curvature_bound() <= bound * 1.002
    with pytest.raises(FloatingPointError, match="smaller step"):
        solve(o, solver=hg.solvers.GradientDescent(step=3.0 / bound), tol=0.0, max_iter=100_000)


@pytest.mark.mission("O1")
@pytest.mark.parametrize("d", [1, 2, 3, 40])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", ["random", "alike", "trap", "zero"])
def test_the_curvature_bound_is_one(kind, fit_intercept, d, rng):
    """L ≥ λ_max, and nearly equal: with equal eigenvalues, none, and where a random start is an eigenvector of another.

    The trap: power iteration from that start sees λ = ½ for ever, and steps of 1/L are twice as long as they may be.
    """
    n = 80
    X = rng.normal(size=(n, d))
    if kind == "alike":
        X = np.sqrt(n) * np.linalg.qr(X)[0]
    if kind == "trap":
        Q = np.linalg.qr(np.column_stack([np.random.default_rng(0).standard_normal(d), rng.normal(size=(d, d - 1))]))[0]
        X = np.sqrt(n) * np.linalg.qr(X)[0] @ (np.sqrt(np.append(0.5, np.linspace(0.6, 1.0, d - 1)))[:, None] * Q.T)
    if kind == "zero":
        X = np.zeros((n, d))
    o = hg.make_objective(X, rng.normal(size=n), hg.Squared(), fit_intercept=fit_intercept)
    A = np.hstack([X, np.ones((n, int(fit_intercept)))])
    largest = np.linalg.eigvalsh(A.T @ A / n).max()
    assert largest * (1 - 1e-10) <= o.curvature_bound() <= largest * 1.002


@pytest.mark.mission("O1")
@pytest.mark.parametrize("step", [None, 0.3, lambda k: 1.0 / np.sqrt(k), "backtracking", "exact"])
@pytest.mark.parametrize("loss", [hg.Logistic(), hg.Poisson()], ids=repr)
def test_every_step_rule_finds_the_optimum(step, loss, rng):
    X, y = classes(rng)
    y = y if isinstance(loss, hg.Logistic) else np.maximum(y, 0.0)
    o = hg.make_objective(X, y, loss, hg.L2(0.5))
    result = solve(o, solver=hg.solvers.GradientDescent(step=step), tol=1e-6)
    assert np.allclose(result.w, solve(o, tol=1e-10).w, atol=2e-3)


@pytest.mark.mission("O1")
def test_exact_line_search_on_a_quadratic_is_the_closed_form(rng):
    """η = g'g / g'Hg."""
    X, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    o = hg.make_objective(X, y, hg.Squared(), fit_intercept=False)
    g = -X.T @ y / 30
    eta = g @ g / (g @ (X.T @ X / 30) @ g)
    result = quiet(o, solver=hg.solvers.GradientDescent(step="exact"), max_iter=1, tol=0.0)
    assert result.w == pytest.approx(-eta * g)


@pytest.mark.mission("O1", "L8")
def test_stopping_rules(rng):
    X, y = classes(rng, n=60, d=5, noise=3.0)
    o = hg.make_objective(X[:30], y[:30], hg.Logistic(), hg.L2(1e-4))

    def run(rule, tol=0.0):
        return solve(o, solver=hg.solvers.GradientDescent(rules=rule), tol=tol)

    by_gradient = run(hg.solvers.GradientNorm(1e-3))
    assert by_gradient.certificate.status == Status.RULE.value
    _, g, gb = o.risk_gradient(by_gradient.w, by_gradient.b)
    assert np.linalg.norm(np.append(g + 1e-4 * by_gradient.w, gb)) <= 1e-3
    assert (
        run(hg.solvers.ObjectiveChange(1e-4)).solution.iterations
        < run(hg.solvers.ObjectiveChange(1e-6)).solution.iterations
    )
    assert (
        run(hg.solvers.ParameterChange(1e-3)).solution.iterations
        < run(hg.solvers.ParameterChange(1e-4)).solution.iterations
    )

    held = []
    rule = hg.solvers.HeldOutLoss(X[30:], y[30:], patience=3)
    early = solve(
        o,
        solver=hg.solvers.GradientDescent(step=1.0, rules=rule),
        tol=0.0,
        callback=lambda r: held.append(hg.risk(o.loss, y[30:], X[30:] @ r.w + r.b[0])),
    )
    assert early.solution.iterations < 10_000
    assert hg.risk(o.loss, y[30:], X[30:] @ early.w + early.b[0]) == pytest.approx(min(held))  # the best is returned
    assert all(h > min(held) for h in held[-3:])


# --- O2: stochastic gradients --------------------------------------------------------------------------------------


@pytest.mark.mission("O2")
@pytest.mark.parametrize("weighted", [False, True])
def test_minibatch_gradients_are_unbiased_with_variance_over_n(weighted, rng):
    X, y = classes(rng, n=50)
    weight = rng.integers(1, 4, size=50).astype(float) if weighted else None
    o = hg.make_objective(X, y, hg.Logistic(), sample_weight=weight)
    w, b = rng.normal(size=3), np.array([0.2])
    _, gw, gb = o.risk_gradient(w, b)
    exact = np.append(gw, gb)
    single = np.array([np.concatenate(hg.solvers.minibatch_gradient(o, w, b, np.array([i]))) for i in range(50)])
    assert single.mean(axis=0) == pytest.approx(exact)  # the mean over all single examples is the gradient
    sigma = single.var(axis=0)
    for size in (4, 16):
        draws = np.array(
            [np.concatenate(hg.solvers.minibatch_gradient(o, w, b, rng.integers(50, size=size))) for _ in range(2000)]
        )
        spread = np.sqrt(sigma / size / 2000)
        assert np.all(np.abs(draws.mean(axis=0) - exact) <= 5 * spread)
        assert draws.var(axis=0) == pytest.approx(sigma / size, rel=0.2)


@pytest.mark.mission("O2")
@pytest.mark.parametrize(
    "solver",
    [
        hg.solvers.SGD(schedule=hg.solvers.InverseTime(0.5, decay=0.05)),
        hg.solvers.SGD(schedule=hg.solvers.InverseSqrt(0.5, decay=0.1), average=True),
        hg.solvers.SGD(batch_size=16, schedule=hg.solvers.Fixed(0.3)),
        hg.solvers.SGD(batch_size=10, schedule=hg.solvers.Fixed(0.05), momentum=0.9),
        hg.solvers.SGD(batch_size=5, schedule=hg.solvers.ReduceOnPlateau(0.5)),
        hg.solvers.SGD(),
    ],
    ids=repr,
)
def test_sgd_is_near_the_optimum(solver, rng):
    X, y = classes(rng, n=400)
    o = hg.make_objective(X, y, hg.Logistic(), hg.L2(0.1))
    best = solve(o, tol=1e-9).certificate.primal
    optimum = solve(o, tol=1e-9)
    result = quiet(o, solver=solver, max_iter=60)
    # Under a fixed step η the iterates hover: E[J − J*] ≈ (η/4) tr(Σ)/m, Σ the covariance of the gradients of single
    # examples, η/(1 − μ) with momentum. Ten times that is allowed, and a hundredth of J* otherwise.
    hover = 0.0
    if isinstance(solver.schedule, hg.solvers.Fixed):
        single = [
            np.concatenate(hg.solvers.minibatch_gradient(o, optimum.w, optimum.b, np.array([i]))) for i in range(400)
        ]
        hover = 10 * solver.schedule.step / (1 - solver.momentum) / 4 * np.var(single, axis=0).sum() / solver.batch_size
    assert o.value(result.w, result.b) <= best * 1.01 + hover
    assert result.certificate.gap >= result.certificate.primal - best - 1e-12


@pytest.mark.mission("O2")
def test_averaging_beats_the_last_iterate_under_a_fixed_step(rng):
    """A fixed step hovers around the optimum; the average of the iterates settles."""
    X, y = classes(rng, n=300)
    o = hg.make_objective(X, y, hg.Logistic(), hg.L2(0.1))
    best = solve(o, tol=1e-9).certificate.primal
    excess = {}
    for average in (False, True):
        runs = [
            quiet(
                o, solver=hg.solvers.SGD(schedule=hg.solvers.Fixed(0.5), average=average), max_iter=30, random_state=s
            )
            for s in range(5)
        ]
        excess[average] = np.mean([r.certificate.primal - best for r in runs])
    assert excess[True] < 0.2 * excess[False]


@pytest.mark.mission("O2")
def test_a_whole_batch_is_gradient_descent(rng):
    X, y = classes(rng)
    o = hg.make_objective(X, y, hg.Logistic())
    one = quiet(o, solver=hg.solvers.SGD(batch_size=80, schedule=hg.solvers.Fixed(0.5)), max_iter=7, tol=0.0)
    other = quiet(o, solver=hg.solvers.GradientDescent(step=0.5), max_iter=7, tol=0.0)
    assert one.w == pytest.approx(other.w)
    assert one.b == pytest.approx(other.b)


@pytest.mark.mission("O2")
def test_plateaus_shorten_the_step():
    plateau = hg.solvers.ReduceOnPlateau(1.0, factor=0.1, patience=2).begin()
    for loss in (3.0, 2.0, 1.0, 1.0, 1.0):
        plateau.see(loss)
    assert plateau.scale == pytest.approx(0.1)
    schedule = hg.solvers.InverseSqrt(2.0, decay=3.0)
    assert [schedule.at(t) for t in (0, 1, 5)] == pytest.approx([2.0, 1.0, 0.5])


PENALTIES = [
    hg.NoPenalty(),
    hg.L2(0.1),
    hg.L1(0.05),
    hg.Elastic(0.1, 0.5),
    hg.Box(-0.2, 0.3),
    hg.L1(0.05, positive=True),
    hg.Elastic(0.3, 0.9, weights=np.ones(5)),
]


@pytest.mark.mission("O2")
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("average", [False, True])
def test_lazy_native_epochs_equal_the_definition(penalty, average, rng):
    """Dense and sparse, single examples and batches: the compiled epochs do exactly the proximal steps."""
    from hinge.solvers import stochastic

    X, y = classes(rng, n=90, d=5)
    thin = X * (rng.random(X.shape) < 0.3)
    for data in (X, X.astype(np.float32), thin, sp.csr_matrix(thin), sp.csc_array(thin), np.asfortranarray(X)):
        for batch in (1, 7):
            weight = rng.integers(0, 3, size=90)
            o = hg.make_objective(data, y, hg.Logistic(), penalty, sample_weight=weight, offset=0.1 * y)
            solver = hg.solvers.SGD(
                batch_size=batch, schedule=hg.solvers.InverseSqrt(0.5, 0.1), average=average, shuffle=False
            )
            native = stochastic._native_epochs(solver, o, solver.schedule, *o.zero(), 0)
            plain = stochastic._epochs(solver, o, solver.schedule, *o.zero(), 0)
            for k in range(3):
                (w1, b1, l1), (w2, b2, l2) = native(k, 1.0), plain(k, 1.0)
            assert w1 == pytest.approx(w2, abs=1e-6 if data.dtype == np.float32 else 1e-11)
            assert (b1, l1) == (pytest.approx(b2, abs=1e-6), pytest.approx(l2, rel=1e-6))


@pytest.mark.mission("O2", "L8")
def test_sgd_stops_early_on_held_out_loss(rng):
    X, y = classes(rng, n=60, d=20, noise=8.0)
    o = hg.make_objective(X[:30], y[:30], hg.Logistic())
    rule = hg.solvers.HeldOutLoss(X[30:], y[30:], patience=2)
    result = solve(o, solver=hg.solvers.SGD(schedule=hg.solvers.Fixed(0.1), rules=rule), max_iter=500)
    assert result.solution.status is Status.RULE
    assert result.solution.iterations < 500


def test_too_long_steps_are_reported(rng):
    X, y = 100 * rng.normal(size=(50, 3)), rng.normal(size=50)
    with pytest.raises(FloatingPointError, match="smaller step"):
        solve(hg.make_objective(X, y, hg.Squared()), solver=hg.solvers.SGD(schedule=hg.solvers.Fixed(10.0)))


# --- O3: subgradients ----------------------------------------------------------------------------------------------


@pytest.mark.mission("O3", "O6")
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_pegasos_reaches_the_optimum_of_the_quadratic_program(fit_intercept, rng):
    X, y = classes(rng)
    o = hg.make_objective(X, y, hg.Hinge(), hg.L2(0.1), fit_intercept=fit_intercept)
    best = solve(o, solver="quadratic-program", tol=1e-8)
    for solver, close in (("pegasos", 0.02), ("subgradient", 0.01), (hg.solvers.Pegasos(batch_size=8), 0.02)):
        result = quiet(o, solver=solver, tol=1e-3, max_iter=400 if solver == "subgradient" else 50)
        assert o.value(result.w, result.b) <= best.certificate.primal * (1 + close)
        assert o.value(result.w, result.b) >= best.certificate.primal * (1 - 1e-8)


@pytest.mark.mission("O3")
def test_first_pegasos_step_by_hand():
    """With J = (λ/2)‖w‖² + hinge and η₁ = 1/λ the first step from w = 0 is yx/λ, whatever shrinks: (1 − ηλ)·0."""
    X, y = np.array([[3.0, 4.0]]), np.array([1.0])
    o = hg.make_objective(X, y, hg.Hinge(), hg.L2(0.5), fit_intercept=False)
    seen = []
    quiet(o, solver=hg.solvers.Pegasos(project=False), max_iter=1, tol=0.0, callback=lambda r: seen.append(r.w.copy()))
    # J(yx/λ) = ½λ·‖x/λ‖² is worse than J(0) = 1, so the best point is still the start.
    assert seen[0] == pytest.approx([0.0, 0.0])
    projected = quiet(o, solver=hg.solvers.Pegasos(project=True), max_iter=1, tol=0.0)
    assert np.linalg.norm(projected.w) <= np.sqrt(2 * 1.0 / 0.5) + 1e-12


@pytest.mark.mission("O3")
@pytest.mark.parametrize("loss", [hg.Hinge(), hg.Absolute(), hg.Squared()], ids=repr)
@pytest.mark.parametrize("penalty", [hg.L1(0.05), hg.L2(0.1), hg.Box(-0.1, 0.2)], ids=repr)
def test_zero_lies_in_the_subdifferential_exactly_at_the_optimum(loss, penalty, rng):
    X, y = classes(rng, n=40)
    y = y if isinstance(loss, hg.Hinge) else X @ [1.0, 0.0, 2.0] + rng.normal(size=40)
    o = hg.make_objective(X, y, loss, penalty)
    best = solve(o, solver="quadratic-program", tol=1e-7)
    w = np.where(np.abs(best.w) < 1e-7, 0.0, best.w)
    assert hg.solvers.optimality_distance(o, w, best.b, kink=1e-6) <= 1e-5
    worst = 0.0
    for _ in range(5):
        # J(x) − J* ≤ ⟨g, x − x*⟩ for every subgradient g, so that none is shorter than the fall over the way to x*.
        v, c = rng.uniform(-0.1, 0.2, size=3), best.b + rng.normal(size=1)
        fall = o.value(v, c) - o.value(w, best.b)
        slope = fall / np.linalg.norm(np.append(v - w, c - best.b))
        assert hg.solvers.optimality_distance(o, v, c, kink=1e-6) >= slope - 1e-5
        worst = max(worst, slope)
    assert worst > 1e-3


# --- O4, O5, O6: the lasso, five ways ------------------------------------------------------------------------------


@pytest.mark.mission("O4", "O5", "O6", "O7")
def test_projected_proximal_coordinate_and_quadratic_program_agree_on_the_lasso(rng):
    o = lasso(rng)
    answers = {
        name: solve(o, solver=name, tol=1e-10).w
        for name in ("projected-gradient", "proximal-gradient", "coordinate-descent", "quadratic-program")
    }
    answers["ista"] = solve(o, solver=hg.solvers.ProximalGradient(accelerated=False), tol=1e-10).w
    answers["stochastic coordinates"] = solve(o, solver=hg.solvers.CoordinateDescent("stochastic"), tol=1e-10).w
    reference = answers["quadratic-program"]
    assert np.count_nonzero(np.abs(reference) > 1e-6) < o.d
    for name, w in answers.items():
        assert np.allclose(w, reference, atol=2e-5), name


@pytest.mark.mission("O4")
def test_projected_stochastic_gradient_on_the_split(rng):
    o = lasso(rng)
    best = solve(o, tol=1e-9).certificate.primal
    result = quiet(o, solver=hg.solvers.ProjectedGradient(batch_size=10), max_iter=200)
    assert o.value(result.w, result.b) <= 1.02 * best


@pytest.mark.mission("O4")
@pytest.mark.parametrize("ball", [hg.L1Ball(1.5), hg.L2Ball(1.0)], ids=repr)
@pytest.mark.parametrize("loss", [hg.Squared(), hg.Hinge()], ids=repr)
def test_balls_against_the_quadratic_program(ball, loss, rng):
    X, y = classes(rng)
    o = hg.make_objective(X, y, loss, ball)
    reference = solve(o, solver="quadratic-program", tol=1e-7)
    names = ("projected-gradient", "proximal-gradient") if loss.smooth else ("admm",)
    for name in names:
        result = solve(o, solver=name, tol=1e-6)
        assert ball.value(result.w) == 0.0  # inside
        assert result.certificate.primal == pytest.approx(reference.certificate.primal, rel=2e-6)


@pytest.mark.mission("O5")
def test_the_soft_threshold_update_minimises_along_a_coordinate(rng):
    X, y, lam = rng.normal(size=(30, 4)), rng.normal(size=30), 0.2
    w = rng.normal(size=4)
    a = (X**2).mean(axis=0)
    for j in range(4):
        rest = y - X @ w + X[:, j] * w[j]
        c = X[:, j] @ rest / 30
        best = soft_threshold(c, lam) / a[j]
        grid = np.linspace(best - 2, best + 2, 4001)
        values = 0.5 * ((rest[:, None] - X[:, [j]] * grid) ** 2).mean(axis=0) + lam * np.abs(grid)
        assert abs(grid[values.argmin()] - best) <= 1e-3
        expected = (c + lam) / a[j] if c < -lam else ((c - lam) / a[j] if c > lam else 0.0)
        assert best == pytest.approx(expected)


# --- O6, O8: the SVM as a quadratic program ------------------------------------------------------------------------


@pytest.mark.mission("O6", "O8")
def test_svm_primal_and_dual_programs_and_the_six_relations(rng):
    X, y = classes(rng)
    lam = 0.05
    o = hg.make_objective(X, y, hg.Hinge(), hg.L2(lam))
    primal = solve(o, solver="quadratic-program", tol=1e-7)
    dual = solve(o, solver=hg.solvers.QuadraticProgram(form="dual"), tol=1e-7)
    assert dual.w == pytest.approx(primal.w, abs=1e-5)
    assert dual.b == pytest.approx(primal.b, abs=1e-5)
    assert primal.certificate.gap <= 1e-7  # strong duality
    top = o.c / lam
    alpha = -y * dual.solution.dual * top
    assert X.T @ (alpha * y) == pytest.approx(dual.w)  # w = Σ αᵢ yᵢ xᵢ
    assert alpha @ y == pytest.approx(0.0, abs=1e-7)
    assert np.all(alpha >= 0)
    assert np.all(alpha <= top * (1 + 1e-9))
    value = lam * (alpha.sum() - 0.5 * np.sum((X.T @ (alpha * y)) ** 2))
    assert value == pytest.approx(primal.certificate.primal, rel=1e-6)
    m = y * (X @ dual.w + dual.b[0])
    free = (alpha > 1e-5 * top) & (alpha < top * (1 - 1e-5))
    assert np.any(free)
    assert m[free] == pytest.approx(np.ones(free.sum()), abs=1e-4)
    assert np.all(m[alpha <= 1e-5 * top] >= 1 - 1e-4)
    assert np.all(m[alpha >= top * (1 - 1e-5)] <= 1 + 1e-4)
    assert np.all(alpha[m > 1 + 1e-4] <= 1e-4 * top[m > 1 + 1e-4])
    assert np.all(alpha[m < 1 - 1e-4] >= top[m < 1 - 1e-4] * (1 - 1e-4))


@pytest.mark.mission("O6")
def test_hard_margin(rng):
    X = np.array([[1.0, 0.0], [3.0, 1.0], [-1.0, 0.0], [-2.0, -1.0]])
    y = np.array([1.0, 1.0, -1.0, -1.0])
    found = hg.solvers.hard_margin(X, y)
    assert found.w == pytest.approx([1.0, 0.0], abs=1e-6)
    assert found.margin == pytest.approx(1.0, abs=1e-6)
    assert X.T @ (found.alpha * y) == pytest.approx(found.w, abs=1e-6)
    assert found.alpha.sum() - 0.5 * found.w @ found.w == pytest.approx(0.5 * found.w @ found.w, abs=1e-6)
    with pytest.raises(ValueError, match="soft margin"):
        hg.solvers.hard_margin(np.vstack([X, [[0.0, 0.0], [0.0, 0.0]]]), np.append(y, [1.0, -1.0]))


@pytest.mark.mission("O8")
@pytest.mark.parametrize(
    ("loss", "penalty", "solver"),
    [
        (hg.Squared(), hg.L1(0.1), "proximal-gradient"),
        (hg.Squared(), hg.L1(0.1), "coordinate-descent"),
        (hg.Logistic(), hg.L2(0.1), "gradient-descent"),
        (hg.Logistic(), hg.L2(0.1), "lbfgs"),
        (hg.Logistic(), hg.GroupNorm(0.05, groups=[0, 0, 1]), "proximal-gradient"),
        (hg.Huber(0.5), hg.MaxNorm(0.1), "proximal-gradient"),
        (hg.Hinge(), hg.L2(0.1), "subgradient"),
        (hg.Hinge(), hg.L2Ball(1.0), "admm"),
    ],
    ids=lambda v: v if isinstance(v, str) else repr(v),
)
def test_weak_duality_at_every_iterate_and_strong_duality_at_the_end(loss, penalty, solver, rng):
    X, y = classes(rng)
    o = hg.make_objective(X, y, loss, penalty)
    iterates = []
    tol = 1e-2 if solver == "subgradient" else 1e-6
    result = quiet(o, solver=solver, tol=tol, callback=lambda r: iterates.append((r.w.copy(), r.b.copy())))
    best = result.certificate
    assert best.converged
    assert best.primal - best.dual <= tol * abs(best.primal)
    assert len(iterates) >= 2
    for w, b in iterates[:: max(len(iterates) // 50, 1)]:
        judged = hg.certificate(o, w, b)
        assert judged.dual <= best.primal + 1e-12  # a lower bound of the optimum,
        assert judged.primal >= best.dual - 1e-12  # and of every other objective
        assert judged.gap >= judged.primal - best.primal - 1e-12


# --- O7: quasi-Newton ----------------------------------------------------------------------------------------------


@pytest.mark.mission("O7")
def test_lbfgs_needs_few_steps_where_gradient_descent_needs_many(rng):
    X, y = classes(rng, n=200, d=6)
    o = hg.make_objective(X * np.logspace(0, 1.5, 6), y, hg.Logistic(), hg.L2(1e-3))
    quasi, plain = solve(o, solver="lbfgs", tol=1e-7), quiet(o, solver="gradient-descent", tol=1e-7, max_iter=5000)
    assert np.allclose(quasi.w, solve(o, tol=1e-10).w, atol=1e-3)
    assert quasi.solution.iterations * 10 < plain.solution.iterations


@pytest.mark.mission("O7")
def test_lbfgs_two_loops_are_the_dense_update(rng):
    """The two loops give H g for the H that BFGS builds from the same pairs."""
    from collections import deque

    from hinge.solvers.lbfgs import two_loops

    A = rng.normal(size=(5, 5))
    A = A @ A.T + np.eye(5)
    pairs = deque()
    for _ in range(3):
        s = rng.normal(size=5)
        pairs.append((s, A @ s, 1.0 / (s @ A @ s)))
    s, y, rho = pairs[-1]
    H = np.eye(5) / (rho * (y @ y))
    for s, y, rho in pairs:
        V = np.eye(5) - rho * np.outer(y, s)
        H = V.T @ H @ V + rho * np.outer(s, s)
    g = rng.normal(size=5)
    assert two_loops(g, pairs) == pytest.approx(H @ g)


@pytest.mark.mission("O1", "O7")
def test_line_searches_step_to_the_minimum_of_the_cubic(rng):
    """Values and slopes at both ends fix a cubic; its minimiser is next, or the middle where that is outside or near an end."""
    inside = 0
    for _ in range(200):
        c = rng.normal(size=4)
        f, slope = np.poly1d(c), np.poly1d(c).deriv()
        a, b = 3 * rng.random(2)
        minima = [x for x in slope.roots if abs(x.imag) < 1e-12 and slope.deriv()(x.real) > 0]
        low, high = min(a, b), max(a, b)
        near = [x.real for x in minima if low + 0.05 * (high - low) < x.real < high - 0.05 * (high - low)]
        expected = near[0] if near else 0.5 * (a + b)
        found = _between((a, f(a), slope(a)), (b, f(b), slope(b)))
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-8)
        inside += bool(near)
    assert inside > 5
    assert _between((1.0, 0.0, -1.0), (3.0, np.inf, np.inf)) == pytest.approx(
        1.2
    )  # a tenth of the way to where it overflows


@pytest.mark.mission("O6", "O8")
@pytest.mark.parametrize("form", ["primal", "dual"])
def test_examples_without_weight_have_no_dual_variable(form, rng):
    X, y = classes(rng, n=40)
    weight = np.where(np.arange(40) % 4 == 0, 0.0, 1.0)
    o = hg.make_objective(X, y, hg.Hinge(), hg.L2(0.2), sample_weight=weight)
    result = solve(o, solver=hg.solvers.QuadraticProgram(form=form), tol=1e-6)
    if result.solution.dual is not None:
        assert np.all(result.solution.dual[weight == 0] == 0)
        u = result.solution.dual
        assert -(X.T @ (o.c * u)) / 0.2 == pytest.approx(result.w, abs=1e-4)  # w = Σ cᵢ αᵢ yᵢ xᵢ / λ
    kept = hg.make_objective(X[weight > 0], y[weight > 0], hg.Hinge(), hg.L2(0.2))
    assert result.w == pytest.approx(solve(kept, solver=hg.solvers.QuadraticProgram(form=form), tol=1e-6).w, abs=1e-5)


# --- O10: rates, seen on iterates ----------------------------------------------------------------------------------


def excess(o, solver, steps, best):
    """The lowest objective up to every iteration, above the optimum."""
    history = quiet(o, solver=solver, history=True, tol=1e-15, max_iter=steps).solution.history
    return np.minimum.accumulate([record.objective for record in history]) - best


def steps_to(errors, levels):
    """How many iterations it takes to come below every level."""
    return np.array([1 + int(np.argmax(errors <= level)) for level in levels], dtype=float)


def degenerate(rng, d=100):
    """Least squares whose curvatures go down to zero without a gap: convex and smooth, in effect not strongly convex."""
    scales = 1.0 / np.arange(1, d + 1)
    X = np.linalg.qr(rng.normal(size=(2 * d, d)))[0] * scales * np.sqrt(2 * d)
    return hg.make_objective(X, X @ scales**0.6, hg.Squared(), fit_intercept=False)


@pytest.mark.mission("O10")
def test_gradient_descent_needs_one_over_epsilon_steps(rng):
    """J(x_k) − J* ≤ ‖x₀ − x*‖²/(2ηk) at every k, and a problem without strong convexity shows a power of k, not a line."""
    o = degenerate(rng)
    errors = excess(o, hg.solvers.GradientDescent(step=1.0), 4000, 0.0)
    w = np.linalg.lstsq(o.design.source, o.y, rcond=None)[0]
    k = np.arange(1, len(errors) + 1)
    assert np.all(errors <= (w @ w) / (2 * k) * (1 + 1e-9))
    levels = errors[9] * 0.5 ** np.arange(1, 7)
    needed = steps_to(errors, levels)
    exponent = np.polyfit(np.log(1 / levels), np.log(needed), 1)[0]
    assert 0.4 < exponent <= 1.05  # O(ε⁻¹) at worst; a linear rate would have exponent 0


@pytest.mark.mission("O10")
def test_strong_convexity_makes_the_rate_linear(rng):
    """With modulus μ the error falls by 1 − ημ a step: twice the digits in about twice the steps."""
    X, y = rng.normal(size=(100, 5)), rng.normal(size=100)
    o = hg.make_objective(X, y, hg.Squared(), hg.L2(0.1), fit_intercept=False)
    best = solve(o, tol=1e-13).certificate.primal
    eigenvalues = np.linalg.eigvalsh(X.T @ X / 100) + 0.1
    errors = excess(o, hg.solvers.GradientDescent(step=1.0 / eigenvalues[-1]), 400, best)
    errors = errors[errors > 1e-12 * errors[0]]
    assert np.all(errors[1:] <= errors[:-1] * (1 - eigenvalues[0] / eigenvalues[-1]) ** 2 + 1e-15)
    few, many = steps_to(errors, errors[0] * np.array([1e-4, 1e-8]))
    assert many <= 2.0 * few + 2


@pytest.mark.mission("O10")
def test_subgradient_steps_need_one_over_epsilon_squared(rng):
    """min_t J(x_t) − J* ≤ (R² + Σ η_t² G²) / (2 Σ η_t) for steps η₀/√t, which is O(k^{-1/2} log k)."""
    X = rng.normal(size=(60, 4))
    o = hg.make_objective(X, X @ [1.0, -2.0, 0.5, 0.0] + rng.standard_t(2, size=60), hg.Absolute(), fit_intercept=False)
    reference = solve(o, tol=1e-10)
    errors = excess(o, hg.solvers.Subgradient(step=0.5), 4000, reference.certificate.primal)
    eta = 0.5 / np.sqrt(np.arange(1, len(errors) + 1))
    largest = np.mean(np.linalg.norm(X, axis=1))  # no subgradient of the mean absolute error is longer
    bound = (reference.w @ reference.w + np.cumsum(eta**2) * largest**2) / (2 * np.cumsum(eta))
    assert np.all(errors <= bound + 1e-12)
    needed = steps_to(errors, levels := errors[0] * np.array([0.1, 0.03, 0.01]))
    assert np.all(needed <= 4.0 * np.square(errors[0] / levels) * (1 + reference.w @ reference.w))
