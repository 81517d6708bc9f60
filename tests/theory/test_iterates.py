"""O: the iterates of first-order methods, step by step against a few lines of NumPy.

A method that reaches the optimum may still not be the method of its name: a lost factor in a step, an average with
other weights or a momentum that skips the bias only make it slower. Here every iterate is compared.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import hinge as hg
from hinge.solvers import stochastic, subgradient
from hinge.solvers.run import solve
from hinge.solvers.schedules import Schedule

N, D = 24, 3


class Data:
    """Weighted examples with a bias column at the end, and the risk's gradient written out."""

    def __init__(self, rng, loss, penalty=None, *, weighted=True, fit_intercept=True, d=D):
        self.X = rng.normal(size=(N, d)) + 0.3
        z = self.X @ np.arange(1.0, d + 1) + rng.normal(size=N)
        self.y = np.where(z > 0.5, 1.0, -1.0)
        weight = rng.integers(1, 4, size=N).astype(float) if weighted else np.ones(N)
        self.c = weight / weight.sum()
        self.A = np.hstack([self.X, np.full((N, 1), float(fit_intercept))])
        self.loss, self.d = loss, d
        self.o = hg.make_objective(self.X, self.y, loss, penalty, sample_weight=weight, fit_intercept=fit_intercept)
        self.x0 = 0.3 * rng.normal(size=d + 1) * np.append(np.ones(d), float(fit_intercept))

    @property
    def start(self):
        return self.x0[:-1].copy(), self.x0[-1:].copy()

    def gradient(self, x, rows=slice(None)):
        """∇ of (n/m) Σ_{i in rows} cᵢ ℓ(yᵢ, aᵢ'x): the gradient of the risk if the rows are all rows."""
        A, y, c = self.A[rows], self.y[rows], self.c[rows]
        return (N / len(y)) * A.T @ (c * derivative(self.loss, y, A @ x))

    def ridge(self, x, lam):
        """∇ of (λ/2)‖w‖²; the bias is not penalised."""
        return lam * np.append(x[:-1], 0.0)


def derivative(loss, y, z):
    """ℓ'(z), written here again."""
    if isinstance(loss, hg.Hinge):
        return np.where(y * z < 1, -y, 0.0)
    return -y / (1 + np.exp(y * z)) if isinstance(loss, hg.Logistic) else z - y


def soft(v, threshold):
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)


def iterates(data, solver, steps, random_state=0, **options):
    """(w, b) after every iteration, from the start of the data."""
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solve(
            data.o, solver=solver, tol=0.0, max_iter=steps, start=data.start, random_state=random_state,
            callback=lambda r: seen.append(np.append(r.w, r.b)), **options,
        )  # fmt: skip
    assert len(seen) == steps
    return np.array(seen)


def offered(monkeypatch, data, solver, steps, random_state=0):
    """Every point that a method which keeps the best one has compared, and the dual variables at the end."""
    seen = []
    keep = subgradient._Best.offer

    def offer(self, x, value):
        seen.append(np.append(x, np.zeros(data.d + 1 - len(x))))
        keep(self, x, value)

    monkeypatch.setattr(subgradient._Best, "offer", offer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = solve(data.o, solver=solver, tol=0.0, max_iter=steps, start=data.start, random_state=random_state)
    return np.array(seen), result


# --- O1: gradient descent ------------------------------------------------------------------------------------------


@pytest.mark.mission("O1")
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("step", [0.2, lambda k: 0.5 / k], ids=["fixed", "sequence"])
def test_gradient_descent(step, fit_intercept, rng):
    data = Data(rng, hg.Logistic(), hg.L2(0.3), fit_intercept=fit_intercept)
    x, expected = data.x0, []
    for k in range(1, 8):
        eta = step(k) if callable(step) else step
        x = x - eta * (data.gradient(x) + data.ridge(x, 0.3))
        expected.append(x)
    assert iterates(data, hg.solvers.GradientDescent(step=step), 7) == pytest.approx(np.array(expected))


@pytest.mark.mission("O1")
def test_gradient_descent_by_default_steps_by_one_over_the_curvature(rng):
    """L = ¼ λ_max(A'CA) + λ for the logistic loss, estimated from above."""
    data = Data(rng, hg.Logistic(), hg.L2(0.3))
    first = iterates(data, hg.solvers.GradientDescent(), 1)[0]
    g = data.gradient(data.x0) + data.ridge(data.x0, 0.3)
    lipschitz = 0.25 * np.linalg.eigvalsh(data.A.T @ (data.c[:, None] * data.A)).max() + 0.3
    eta = np.mean((data.x0 - first) / g)
    assert first == pytest.approx(data.x0 - eta * g)
    assert 0.9 / lipschitz <= eta <= 1.0001 / lipschitz


@pytest.mark.mission("O1")
@pytest.mark.parametrize("step", ["backtracking", "exact"])
def test_line_searches_stay_on_the_gradient_and_descend_enough(step, rng):
    data = Data(rng, hg.Logistic(), hg.L2(0.3))
    before = data.x0
    for x in iterates(data, hg.solvers.GradientDescent(step=step), 6):
        g = data.gradient(before) + data.ridge(before, 0.3)
        eta = (before - x) @ g / (g @ g)
        assert x == pytest.approx(before - eta * g)
        fall = data.o.value(before[:-1], before[-1:]) - data.o.value(x[:-1], x[-1:])
        assert fall >= 1e-4 * eta * (g @ g) > 0
        if step == "exact":  # the new gradient is orthogonal to the old one
            after = data.gradient(x) + data.ridge(x, 0.3)
            assert abs(after @ g) <= 1e-3 * (g @ g)
        before = x


# --- O2: stochastic gradients --------------------------------------------------------------------------------------

SCHEDULES = [hg.solvers.Fixed(0.2), hg.solvers.InverseTime(0.3, 0.5), hg.solvers.InverseSqrt(0.3, 0.5)]


def eta(schedule: Schedule, t: int) -> float:
    """η₀, η₀/(1 + decay·t), η₀/√(1 + decay·t)."""
    if isinstance(schedule, hg.solvers.Fixed):
        return schedule.step
    slowed = 1 + schedule.decay * t
    return schedule.step / (slowed if isinstance(schedule, hg.solvers.InverseTime) else np.sqrt(slowed))


@pytest.mark.mission("O2")
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("momentum", [0.0, 0.6])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("penalty", [hg.L2(0.3), hg.L1(0.1)], ids=repr)
def test_sgd(schedule, momentum, average, penalty, rng):
    """x₊ = prox(x − η_t ĝ + μ(x − x₋)) over batches in order, bias and all; the average is the mean of all iterates."""
    data = Data(rng, hg.Logistic(), penalty)
    batch, rate = 5, 0.7
    x = before = data.x0
    path, expected, t = [], [], 0
    for _ in range(3):
        for first in range(0, N, batch):
            step = eta(schedule, t)
            g = data.gradient(x, slice(first, first + batch)) * np.append(np.ones(D), rate)
            x, before = x - step * g + momentum * (x - before), x
            w = x[:-1] / (1 + step * 0.3) if isinstance(penalty, hg.L2) else soft(x[:-1], step * 0.1)
            x, t = np.append(w, x[-1]), t + 1
            path.append(x)
        expected.append(np.mean(path, axis=0) if average else x)
    solver = hg.solvers.SGD(batch, schedule, average, momentum, shuffle=False, bias_rate=rate)
    assert iterates(data, solver, 3) == pytest.approx(np.array(expected))


@pytest.mark.mission("O2")
def test_sgd_visits_every_example_once_an_epoch_in_a_new_order(rng, monkeypatch):
    data = Data(rng, hg.Logistic(), hg.L2(0.3))
    visited = []
    gradient = stochastic._row_gradient

    def spy(objective, X, w, b, rows):
        visited.append(rows)
        return gradient(objective, X, w, b, rows)

    monkeypatch.setattr(stochastic, "_row_gradient", spy)
    iterates(data, hg.solvers.SGD(5, momentum=0.5), 3)
    orders = np.concatenate(visited).reshape(3, N)
    assert all(sorted(order) == list(range(N)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    assert [len(rows) for rows in visited] == 3 * [5, 5, 5, 5, 4]


@pytest.mark.mission("O2")
@pytest.mark.parametrize("patience", [1, 2, 3])
def test_a_plateau_is_as_many_epochs_without_a_fall_as_its_patience(patience):
    plateau = hg.solvers.ReduceOnPlateau(1.0, factor=0.5, patience=patience, min_change=0.1).begin()
    scales = []
    for loss in [1.0, *7 * [0.95]]:  # a fall of less than a tenth is none
        plateau.see(loss)
        scales.append(plateau.scale)
    assert scales == [0.5 ** (k // patience) for k in range(8)]
    plateau.see(0.5)
    assert plateau.scale == scales[-1]


@pytest.mark.mission("O2")
def test_the_step_follows_the_plateau(rng):
    """A patience of one, and a loss that must fall to a tenth: the step halves after every epoch but the first."""
    data = Data(rng, hg.Logistic(), hg.L2(0.3))
    schedule = hg.solvers.ReduceOnPlateau(0.2, factor=0.5, patience=1, min_change=9.0)
    x, expected = data.x0, []
    for k in range(5):
        step = 0.2 * 0.5 ** max(k - 1, 0)
        x = x - step * data.gradient(x)
        x = np.append(x[:-1] / (1 + step * 0.3), x[-1])
        expected.append(x)
    seen = iterates(data, hg.solvers.SGD(N, schedule, shuffle=False), 5)
    assert seen == pytest.approx(np.array(expected))


@pytest.mark.mission("O1", "L8")
@pytest.mark.parametrize("patience", [1, 2, 4])
def test_early_stopping_waits_exactly_as_long_as_its_patience(patience, rng):
    """Held-out labels are the opposite of what is learned: the first look is the best, and the others only wait."""
    data = Data(rng, hg.Logistic(), hg.L2(0.3), weighted=False)
    x = np.zeros(D + 1)
    rule = hg.solvers.HeldOutLoss(data.X, np.sign(data.A @ data.gradient(x)), patience=patience)
    result = solve(data.o, solver=hg.solvers.GradientDescent(step=1e-3, rules=rule), tol=0.0, start=(x[:-1], x[-1:]))
    assert result.solution.iterations == patience  # the look at the start is not an iteration
    assert np.append(result.w, result.b) == pytest.approx(x)


# --- O3: subgradients ----------------------------------------------------------------------------------------------


@pytest.mark.mission("O3")
@pytest.mark.parametrize("lam", [0.5, None], ids=["strongly convex", "step"])
def test_subgradient_descent(lam, rng, monkeypatch):
    """η = 1/(λ(k+1)) with an L2 part (iterates of equal weight in the average), else η₀/√k (weights η)."""
    data = Data(rng, hg.Hinge(), hg.L2(lam) if lam else hg.L1(0.2))
    solver = hg.solvers.Subgradient(step=None if lam else 0.3)
    x, path, slopes, weights, expected = data.x0, [], [], [], []
    for k in range(1, 21):
        u = derivative(data.loss, data.y, data.A @ x)
        g = data.A.T @ (data.c * u) + (data.ridge(x, lam) if lam else 0.2 * np.append(np.sign(x[:-1]), 0.0))
        step = 1 / (lam * (k + 1)) if lam else 0.3 / np.sqrt(k)
        x = x - step * g
        path.append(x)
        slopes.append(u)
        weights.append(1.0 if lam else step)
        expected.append(x)
        if k == 20:  # a certificate is computed: the average is compared too
            expected.append(np.average(path, axis=0, weights=weights))
    seen, result = offered(monkeypatch, data, solver, 20)
    assert seen == pytest.approx(np.array(expected))
    assert result.solution.dual == pytest.approx(np.average(slopes, axis=0, weights=weights))


@pytest.mark.mission("O3")
@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("project", [True, False])
def test_pegasos(batch, fit_intercept, project, rng, monkeypatch):
    """w ← (1 − η_t λ) w − η_t ĝ, η_t = 1/(λt), into the ball √(2J(0)/λ); iterate t counts t times in the average."""
    lam = 0.02
    data = Data(rng, hg.Hinge(), hg.L2(lam), fit_intercept=fit_intercept)
    data.x0 = np.zeros(D + 1)
    order, x, t = np.random.default_rng(5), data.x0, 0
    path, expected, met = [], [], np.zeros(N)
    radius = np.sqrt(2 * 1.0 / lam)
    shrunk = 0
    for _ in range(3):
        for rows in np.array_split(order.permutation(N), N // batch):
            t += 1
            u = derivative(data.loss, data.y[rows], data.A[rows] @ x)
            g = data.gradient(x, rows)
            w = (1 - 1 / t) * x[:-1] - g[:-1] / (lam * t)
            if project and np.linalg.norm(w) > radius:
                w, shrunk = w * radius / np.linalg.norm(w), shrunk + 1
            x = np.append(w, x[-1] - g[-1] / np.sqrt(t))
            path.append(x)
            met[rows] += t * u * N / len(rows)
        weights = np.arange(1.0, t + 1)
        expected += [x, np.average(path, axis=0, weights=weights)]
    seen, result = offered(monkeypatch, data, hg.solvers.Pegasos(batch, project), 3, random_state=5)
    assert seen == pytest.approx(np.array(expected))
    assert result.solution.dual == pytest.approx(met / weights.sum())
    assert bool(shrunk) == project  # the ball was met


# --- O4: projections -----------------------------------------------------------------------------------------------


@pytest.mark.mission("O4")
@pytest.mark.parametrize("batch", [None, 5])
@pytest.mark.parametrize("penalty", [hg.L1(0.1), hg.Elastic(0.2, 0.5), hg.L2Ball(0.6)], ids=repr)
def test_projected_gradient(batch, penalty, rng):
    """Splits w = w⁺ − w⁻ ≥ 0 or projects on the ball; η₀ for whole data, η₀/√t and weights t for batches."""
    data = Data(rng, hg.Logistic(), penalty)
    ball = isinstance(penalty, hg.L2Ball)
    l1, l2 = (0.1, 0.0) if isinstance(penalty, hg.L1) else (0.1, 0.1)

    def project(plus, minus, b):
        if ball:
            return plus * min(1.0, 0.6 / max(np.linalg.norm(plus), 1e-300)), minus, b
        return np.maximum(plus, 0.0), np.maximum(minus, 0.0), b

    w = data.x0[:-1]
    plus, minus, b = project(w, 0 * w, data.x0[-1]) if ball else project(w, -w, data.x0[-1])
    order, t, path, expected = np.random.default_rng(5), 0, [], []
    for _ in range(4):
        for rows in [slice(None)] if batch is None else np.array_split(order.permutation(N), N // batch):
            t += 1
            step = 0.4 if batch is None else 0.4 / np.sqrt(t)
            w = plus - minus
            g = data.gradient(np.append(w, b), rows)
            if ball:
                plus, minus, b = project(plus - step * g[:-1], minus, b - step * g[-1])
            else:
                slope = g[:-1] + l2 * w
                plus, minus, b = project(plus - step * (slope + l1), minus - step * (l1 - slope), b - step * g[-1])
            path.append(np.append(plus - minus, b))
        expected.append(path[-1] if batch is None else np.average(path, axis=0, weights=np.arange(1.0, t + 1)))
    seen = iterates(data, hg.solvers.ProjectedGradient(batch, step=0.4), 4, random_state=5)
    assert seen == pytest.approx(np.array(expected))


# --- O5, O7: proximal gradient, coordinate descent, ADMM, L-BFGS ----------------------------------------------------


@pytest.mark.parametrize("accelerated", [False, True])
def test_proximal_gradient(accelerated, rng):
    """ISTA; FISTA with t₊ = (1 + √(1 + 4t²))/2, forgotten where the momentum points uphill."""
    data = Data(rng, hg.Logistic(), hg.L1(0.05))
    step, t = 1.5, 1.0
    x = before = data.x0
    expected, restarts = [], 0
    for _ in range(40):
        after_t = (1 + np.sqrt(1 + 4 * t**2)) / 2 if accelerated else 1.0
        v = x + (t - 1) / after_t * (x - before)
        moved = v - step * data.gradient(v)
        after = np.append(soft(moved[:-1], step * 0.05), moved[-1])
        if (v - after) @ (after - x) > 0:
            after_t, restarts = 1.0, restarts + 1
        before, x, t = x, after, after_t
        expected.append(x)
    assert iterates(data, hg.solvers.ProximalGradient(accelerated, step), 40) == pytest.approx(np.array(expected))
    if not accelerated:
        assert restarts == 0


@pytest.mark.parametrize("loss", [hg.Squared(), hg.Logistic()], ids=lambda loss: type(loss).__name__)
def test_proximal_gradient_takes_as_many_steps_in_any_unit(loss, rng):
    """The bias is measured in units of the largest column, so that x ↦ 1000 x changes no iterate but by that factor."""
    X = rng.normal(size=(100, 3)) + 1.0
    y = X @ [1.0, -1.0, 0.5] + rng.normal(size=100) + 2.0
    y = np.sign(y) if isinstance(loss, hg.Logistic) else y
    runs = []
    for scale in (1.0, 1e-4, 1e4):
        o = hg.make_objective(scale * X, y, loss, hg.L1Ball(0.5 / scale))
        runs.append(hg.solve(o, solver=hg.solvers.ProximalGradient(), tol=1e-9))
        assert runs[-1].certificate.converged
        assert scale * runs[-1].w == pytest.approx(runs[0].w, rel=1e-4, abs=1e-6)
        assert runs[-1].b == pytest.approx(runs[0].b, rel=1e-4)
    counts = [run.certificate.iterations for run in runs]
    assert max(counts) <= 1.2 * min(counts) + 5


@pytest.mark.mission("O5")
@pytest.mark.parametrize("order", ["cyclic", "stochastic"])
def test_coordinate_descent(order, rng):
    data = Data(rng, hg.Squared(), hg.Elastic(0.2, 0.5))
    w, b, draw, expected = data.x0[:-1].copy(), data.x0[-1], np.random.default_rng(5), []
    a = data.c @ data.X**2
    for _ in range(5):
        for j in range(D) if order == "cyclic" else draw.integers(D, size=D):
            r = data.y - data.X @ w - b + data.X[:, j] * w[j]
            w[j] = soft((data.c * data.X[:, j]) @ r, 0.1) / (a[j] + 0.1)
        b = b + data.c @ (data.y - data.X @ w - b)
        expected.append(np.append(w, b))
    assert iterates(data, hg.solvers.CoordinateDescent(order), 5, random_state=5) == pytest.approx(np.array(expected))


def test_admm(rng):
    """Boyd et al., over-relaxed by 1.6; the weight ρ is balanced for the first time after ten iterations."""
    lam, rho = 0.3, 0.7
    data = Data(rng, hg.Hinge(), hg.GroupNorm(lam, groups=[0, 0, 1], weights=[1.0, 1.0]), fit_intercept=False)
    X, y, c = data.X, data.y, data.c
    kappa = np.mean(c @ X**2)
    v, z = data.x0[:-1], X @ data.x0[:-1]
    u, q, expected = derivative(data.loss, y, z), np.zeros(D), []
    for k in range(1, 14):
        w = np.linalg.solve(
            X.T @ (c[:, None] * X) + kappa * np.eye(D), X.T @ (c * (z - u / rho)) + kappa * (v + q / rho)
        )
        fitted, moved, z0, v0 = 1.6 * X @ w - 0.6 * z, 1.6 * w - 0.6 * v, z, v
        m = y * (fitted + u / rho)
        z = y * np.where(m > 1, m, np.minimum(m + 1 / rho, 1.0))
        v = moved - q / rho
        for group in ([0, 1], [2]):
            v[group] *= max(0.0, 1 - lam / (rho * kappa) / np.linalg.norm(v[group]))
        u, q = u + rho * (fitted - z), q + rho * (v - moved)
        expected.append(np.append(v, 0.0))
        if k == 10:
            primal = np.sqrt(c @ (fitted - z) ** 2 + kappa * np.sum((moved - v) ** 2))
            dual = rho * np.sqrt(c @ (z - z0) ** 2 + kappa * np.sum((v - v0) ** 2))
            primal /= np.sqrt(c @ z**2 + kappa * v @ v)
            dual /= np.sqrt(c @ u**2 + kappa * q @ q)
            rho *= np.clip(np.sqrt(primal / dual), 0.1, 10.0)
    assert iterates(data, hg.solvers.ADMM(rho=0.7), 13) == pytest.approx(np.array(expected))


@pytest.mark.mission("O7")
def test_lbfgs_steps_are_those_of_the_dense_update(rng):
    """Every step lies on −H∇J with H of BFGS from γI, γ = s'y/y'y; the first on −∇J; all obey Wolfe's conditions."""
    data = Data(rng, hg.Logistic(), hg.L2(0.1))

    def gradient(x):
        return data.gradient(x) + data.ridge(x, 0.1)

    before, pairs = data.x0, []
    for x in iterates(data, hg.solvers.LBFGS(precondition=False), 4):
        g, after = gradient(before), gradient(x)
        H = np.eye(D + 1)
        if pairs:
            s, y = pairs[-1]
            H *= (s @ y) / (y @ y)
        for s, y in pairs:
            V = np.eye(D + 1) - np.outer(y, s) / (s @ y)
            H = V.T @ H @ V + np.outer(s, s) / (s @ y)
        p = -H @ g
        length = (x - before) @ p / (p @ p)
        assert x == pytest.approx(before + length * p, abs=1e-10)
        fall = data.o.value(x[:-1], x[-1:]) - data.o.value(before[:-1], before[-1:])
        assert fall <= 1e-4 * length * (g @ p) < 0
        assert abs(after @ p) <= 0.9 * abs(g @ p) + 1e-12
        pairs.append((x - before, after - g))
        before = x
