"""The judge of support vector machines against the formulas of the problem and its dual."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from hinge.problem.certificates import kernel_machine
from hinge.problem.certificates.kernel_machine import (
    Dual,
    Gap,
    centred,
    classification,
    evaluate_at_scores,
    evaluate_machine,
    expansion_scores,
    feasible,
    fill,
    largest_square,
    machines_certificate,
    nu_classification,
    nu_regression,
    one_class,
    point_coefficients,
    regression,
    residual_scale,
    single_suffices,
    start_spread,
    violation,
)
from hinge.problem.certificates.machine_stack import Stack, evaluate_stack
from hinge.problem.kernels import RBF, LinearKernel, Polynomial, Precomputed
from hinge.problem.kernels.custom import Function

N = 8


def machine(name, rng):
    """The dual and, as the problem has them: signs, targets, bounds, B and N."""
    y, upper, labels = rng.normal(size=N), rng.random(N) + 0.2, np.repeat([1.0, -1.0], N // 2)
    both = np.concatenate([np.ones(N), -np.ones(N)])
    return {
        "classification": lambda: (classification(labels, upper), labels, labels, upper, 0.0, None),
        "regression": lambda: (
            regression(y, 0.2, upper), both, np.concatenate([y - 0.2, y + 0.2]), np.tile(upper, 2), 0.0, None,
        ),
        "nu classification": lambda: (
            nu_classification(labels, 0.4, upper), labels, np.zeros(N), upper, 0.0, 0.4 * upper.sum(),
        ),
        "nu regression": lambda: (nu_regression(y, 0.4, upper), both, np.tile(y, 2), np.tile(upper, 2), 0.0, 0.4 * upper.sum()),
        "one class": lambda: (one_class(0.4, upper), np.ones(N), np.zeros(N), upper, 0.4 * upper.sum(), None),
    }[name]()  # fmt: skip


MACHINES = ("classification", "regression", "nu classification", "nu regression", "one class")


@pytest.mark.parametrize("name", MACHINES)
def test_objectives(name, rng):
    dual, sign, target, upper, B, total = machine(name, rng)
    for found, expected in ((dual.sign, sign), (dual.target, target), (dual.upper, upper)):
        np.testing.assert_allclose(found, expected)
    assert dual.groups == (1 if total is None else 2)
    assert dual.sign @ dual.start == pytest.approx(B)
    assert total is None or dual.start.sum() == pytest.approx(total)
    assert np.all((dual.start >= 0) & (dual.start <= upper))
    assert feasible(dual, dual.start)
    X, kernel = rng.normal(size=(N, 2)), RBF(gamma=0.7)
    K = np.exp(-0.7 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    # Feasible multipliers other than the start: mass moves between two variables of one sign.
    alpha = dual.start + (0.5 * np.minimum(upper, 0.3) if name in ("classification", "regression") else 0.0)
    if name in ("classification", "regression"):
        first, second = np.flatnonzero(sign > 0), np.flatnonzero(sign < 0)
        alpha[second] *= alpha[first].sum() / alpha[second].sum()
        alpha *= 0.9
    bias, rho = 0.3, 0.0 if total is None else 0.2
    beta = (sign * alpha).reshape(-1, N).sum(axis=0)
    np.testing.assert_allclose(point_coefficients(dual, alpha, N), beta)
    f = K @ beta
    slack = np.maximum(sign * (target - np.tile(f, len(sign) // N) - bias) + rho, 0)
    cost = 0.5 * beta @ K @ beta + upper @ slack
    earned = (0.0 if total is None else total * rho) - B * bias
    found = evaluate_machine(kernel, X, dual, alpha, bias, rho)
    np.testing.assert_allclose(found.scores, f)
    assert found.primal == pytest.approx(cost - earned)
    assert found.dual == pytest.approx((sign * alpha) @ target - 0.5 * beta @ K @ beta)
    assert found.reference == pytest.approx(cost + max(-earned, 0))
    assert found.gap == pytest.approx(found.primal - found.dual)
    assert found.relative_gap == pytest.approx(found.gap / found.reference)
    assert found.gap >= 0
    np.testing.assert_allclose(expansion_scores(kernel, X, beta, single=True), f, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(expansion_scores(Precomputed(), K, beta), f)
    np.testing.assert_array_equal(expansion_scores(kernel, X, np.zeros(N)), np.zeros(N))
    for wrong in (-1e-6, 1e-6):  # outside the bounds, or off the sum, nothing is proved
        moved = alpha.copy()
        moved[0] = moved[0] + wrong * 100 if 0 < moved[0] < upper[0] else (-1e-9 if wrong < 0 else upper[0] + 1e-9)
        assert not feasible(dual, moved)
        assert evaluate_at_scores(dual, moved, f, bias, rho).dual == -np.inf
    if total is not None:
        scaled = 0.9 * dual.start
        assert not feasible(dual, scaled)


def side_by_side(rows, duals):
    """Tables of duals, filled up with variables held at zero."""

    def table(parts):
        most = max(len(part) for part in parts)
        return np.stack([np.pad(part, (0, most - len(part))) for part in parts])

    columns = [table([getattr(dual, name) for dual in duals]) for name in ("sign", "target", "upper", "start")]
    return Stack(table(rows), np.array([len(row) for row in rows]), Dual(*columns, duals[0].nu))


@pytest.mark.parametrize("name", ["classification", "nu classification", "one class"])
def test_machines_side_by_side_are_judged_as_alone(name, rng):
    X, kernel = rng.normal(size=(20, 2)), RBF(gamma=0.5)
    K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    rows, duals, alphas = [], [], []
    for size in (8, 5, 8):
        dual, *_ = machine(name, rng)
        part = rng.choice(20, N, replace=False)
        keep = np.sort(rng.choice(N, size, replace=False)) if size < N else np.arange(N)
        labels = dual.sign[keep] if name != "one class" else None
        upper = dual.upper[keep]
        if name == "classification":
            dual = classification(labels, upper)
        elif name == "nu classification":
            labels[0], labels[-1] = 1.0, -1.0
            dual = nu_classification(
                labels, 0.2 * min(upper[labels > 0].sum(), upper[labels < 0].sum()) / upper.sum(), upper
            )
        else:
            dual = one_class(0.4, upper)
        rows.append(part[keep])
        duals.append(dual)
        alphas.append(dual.start.copy())
    stack = side_by_side(rows, duals)
    alpha = np.zeros_like(stack.dual.upper)
    for line, part in zip(alpha, alphas):
        line[: len(part)] = part
    alpha[1, 0] += 10.0  # the second is not feasible
    alphas[1][0] += 10.0
    bias, rho = rng.normal(size=3), np.abs(rng.normal(size=3)) * (name == "nu classification")
    scores, primal, lower, reference = evaluate_stack(stack, K, alpha, bias, rho)
    for i in range(3):
        alone = evaluate_machine(kernel, X[rows[i]], duals[i], alphas[i], bias[i], rho[i])
        np.testing.assert_allclose(scores[i, : len(rows[i])], alone.scores)
        assert (primal[i], reference[i]) == pytest.approx((alone.primal, alone.reference))
        assert lower[i] == (-np.inf if i == 1 else pytest.approx(alone.dual))


@pytest.mark.parametrize("name", MACHINES)
def test_violations_of_the_optimality_conditions(name, rng):
    """With e = t − f: the largest e that may rise less the smallest that may fall, in each group whose sum is kept."""
    dual, sign, target, upper, _, total = machine(name, rng)
    for _ in range(20):
        alpha = np.where(rng.random(len(sign)) < 0.3, 0.0, np.where(rng.random(len(sign)) < 0.4, upper, 0.5 * upper))
        scores = rng.normal(size=N)
        e = target - np.tile(scores, len(sign) // N)
        groups = [sign != 0] if total is None else [sign > 0, sign < 0]
        worst = 0.0
        for g in groups:
            up = [e[v] for v in np.flatnonzero(g) if (alpha[v] < upper[v] if sign[v] > 0 else alpha[v] > 0)]
            down = [e[v] for v in np.flatnonzero(g) if (alpha[v] > 0 if sign[v] > 0 else alpha[v] < upper[v])]
            if up and down:
                worst = max(worst, max(up) - min(down))
        size = max(np.std(target), 1e-3 * np.abs(target).max()) or np.abs(scores).max()
        assert residual_scale(dual, scores) == pytest.approx(size)
        assert violation(dual, alpha, scores) == pytest.approx(worst / size)


def test_certificates_of_several_machines_add_up():
    class Part(Gap):
        def __init__(self, primal, dual, reference):
            self.primal, self.dual, self.reference = primal, dual, reference

    parts = [Part(3.0, 2.5, 4.0), Part(1.0, 0.75, 2.0)]
    found = machines_certificate(parts, 1e-3, strength=0.5)
    assert (found.primal, found.dual, found.gap) == (2.0, 1.625, 0.375)
    assert found.relative_gap == pytest.approx(0.375 / 3.0)
    assert found.weight_error == pytest.approx(np.sqrt(2 * 0.375 / 0.5))
    assert found.kind == "gap"
    closed = machines_certificate([Part(1.0, 2.0, 0.0)], 1e-3)
    assert (closed.gap, closed.relative_gap, closed.weight_error) == (0.0, 0.0, 0.0)
    assert (Part(1.0, 2.0, 0.0).gap, Part(1.0, 2.0, 0.0).relative_gap) == (0.0, 0.0)
    stationary = machines_certificate(parts, 1e-3, residual=0.25)
    assert (stationary.kind, stationary.residual, stationary.weight_error) == ("stationarity", 0.25, np.inf)


def test_multipliers_are_filled_in_order():
    upper = np.array([1.0, 2.0, 0.5])
    np.testing.assert_allclose(fill(upper, 2.2), [1.0, 1.2, 0.0])
    np.testing.assert_allclose(fill(upper, 3.5), upper)
    np.testing.assert_allclose(fill(upper, 0.0), 0.0)
    with pytest.raises(ValueError, match="in total"):
        fill(upper, 3.6)


def test_sizes_of_scores(rng):
    X, kernel = rng.normal(size=(30, 2)), Polynomial(2, 1.0, 1.0)
    K = kernel(X, X)
    assert largest_square(kernel, X) == pytest.approx(np.diagonal(K).max())
    assert largest_square(Precomputed(), K) == pytest.approx(np.diagonal(K).max())
    labels, upper = np.where(rng.random(30) < 0.5, -1.0, 1.0), np.ones(30)
    assert start_spread(kernel, X, classification(labels, upper)) == 0.0
    alone = one_class(0.3, upper)
    expected = np.std(K.sum(axis=0) * alone.start.sum() / 30)
    assert start_spread(kernel, X, alone) == pytest.approx(expected)
    assert start_spread(Precomputed(), K, alone) == pytest.approx(expected)
    pairs = nu_classification(labels, 0.2, upper)
    assert start_spread(kernel, X, pairs) == pytest.approx(np.std(K @ labels * pairs.start.sum() / 30))


@pytest.mark.mission("O8")
@pytest.mark.parametrize("name", ["regression", "nu regression"])
def test_objectives_where_the_two_sides_of_the_tube_differ(name, rng):
    """Multipliers above and below are different ones of the same sum, so that f is not zero."""
    dual, sign, target, upper, _, total = machine(name, rng)
    sides = rng.random((2, N)) * upper[:N]
    mass = 0.5 * sides.sum(axis=1).min() if total is None else 0.5 * total
    alpha = np.concatenate([mass * side / side.sum() for side in sides])
    if total is not None:
        alpha = np.concatenate([fill(upper[:N], mass), fill(upper[:N][::-1], mass)[::-1]])
    assert np.all(alpha <= upper)
    X = rng.normal(size=(N, 2))
    K = np.exp(-0.7 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    beta = alpha[:N] - alpha[N:]
    assert np.abs(beta).max() > 0.01
    f, bias, rho = K @ beta, -0.4, 0.0 if total is None else 0.2
    slack = np.maximum(sign * (target - np.tile(f, 2) - bias) + rho, 0)
    cost = 0.5 * beta @ K @ beta + upper @ slack
    found = evaluate_machine(RBF(gamma=0.7), X, dual, alpha, bias, rho)
    np.testing.assert_allclose(found.scores, f)
    assert found.primal == pytest.approx(cost - (0.0 if total is None else total * rho))
    assert found.dual == pytest.approx(alpha @ (sign * target) - 0.5 * beta @ K @ beta)
    assert found.dual <= found.primal


@pytest.mark.mission("O8")
@pytest.mark.parametrize("name", MACHINES)
def test_one_multiplier_out_of_bounds_proves_nothing(name, rng):
    """However well the sums are kept: mass is moved between two variables of one sign, beyond a bound of one of them."""
    dual, sign, _, upper, _, total = machine(name, rng)
    for s in (1.0, -1.0):
        group = np.flatnonzero(sign == s)
        if len(group) < 2:
            continue
        i, j = group[:2]
        for alpha_i in (-0.01, upper[i] + 0.01):
            alpha = dual.start.copy()
            alpha[j] += alpha[i] - alpha_i
            alpha[i] = alpha_i
            assert not feasible(dual, alpha)
            assert evaluate_at_scores(dual, alpha, np.zeros(N), 0.0, 0.0).dual == -np.inf
            if len(sign) == N:
                stack = side_by_side([np.arange(N)], [dual])
                zero = np.zeros(1)
                assert evaluate_stack(stack, np.eye(N), alpha[None], zero, zero)[2][0] == -np.inf
    if total is not None:  # the sum of all is 10⁻⁹ of itself off at most
        both = [np.flatnonzero(sign == s)[0] for s in (1.0, -1.0)]
        alpha = 0.5 * dual.start
        for part, size in ((0.4, True), (3.0, False)):
            moved = alpha.copy()
            moved[both] += 0.5 * part * 1e-9 * alpha.sum()
            near = Dual(dual.sign, dual.target, dual.upper, alpha, nu=True)
            assert feasible(near, moved) == size
            if len(sign) == N:
                lower = evaluate_stack(
                    side_by_side([np.arange(N)], [near]), np.eye(N), moved[None], np.zeros(1), np.zeros(1)
                )[2]
                assert np.isfinite(lower[0]) == size


@pytest.mark.mission("K4")
def test_the_start_of_nu_classification_has_half_of_the_sum_on_each_side(rng):
    labels = np.array([-1.0, 1.0, -1.0, -1.0, 1.0, 1.0])
    upper = rng.random((2, 6)) + 0.5
    dual = nu_classification(np.tile(labels, (2, 1)), 0.3, upper)
    for row, most in zip(dual.start, upper):
        for s in (1.0, -1.0):
            assert row[labels == s].sum() == pytest.approx(0.15 * most.sum())
        assert np.all((row >= 0) & (row <= most))
    with pytest.raises(ValueError, match="in total"):  # one of two rows has too little
        fill(np.array([[1.0, 1.0], [0.1, 0.1]]), np.array([1.5, 1.5]))
    np.testing.assert_allclose(fill(np.array([[1.0, 1.0], [2.0, 0.1]]), np.array([1.5, 0.5])), [[1.0, 0.5], [0.5, 0.0]])


@pytest.mark.mission("K4")
def test_scales_of_targets_and_scores(rng):
    same = regression(np.full(N, 5.0), 0.0, np.ones(N))
    assert same.scale == pytest.approx(5e-3)  # no spread: a thousandth of the size
    assert one_class(0.3, np.ones(N)).scale == 0.0
    assert residual_scale(one_class(0.3, np.ones(N)), np.zeros(N)) == 1.0
    few = one_class(0.3, np.ones(N))
    assert residual_scale(few, np.array([0.1, -0.3])) == pytest.approx(0.3)
    targets = [rng.normal(size=5), np.full(3, -2.0)]
    duals = [Dual(np.ones(len(t)), t, np.ones(len(t)), np.zeros(len(t))) for t in targets]
    stack = side_by_side([np.arange(5), np.arange(3)], duals)
    np.testing.assert_array_equal(stack.used, [[True] * 5, [True] * 3 + [False] * 2])
    np.testing.assert_allclose(stack.scale, [np.std(targets[0]), 2e-3])
    np.testing.assert_allclose(stack.scale, [dual.scale for dual in duals])
    values = np.stack([rng.normal(size=5), rng.normal(size=5)])
    np.testing.assert_allclose(stack.spread(values), [np.std(values[0]), np.std(values[1, :3])])
    small = nu_regression(0.1 * rng.normal(size=N), 0.4, np.ones(N))
    assert start_spread(LinearKernel(), rng.normal(size=(N, 2)), small) == 0.0
    assert largest_square(LinearKernel(), np.array([[0.1], [0.2]])) == pytest.approx(0.04)


def test_a_group_without_variables_violates_nothing(rng):
    alone = Dual(np.ones(3), np.zeros(3), np.ones(3), np.full(3, 0.5), nu=True)
    assert violation(alone, np.full(3, 0.5), np.array([1.0, 2.0, 4.0])) == pytest.approx(3.0 / 4.0)
    assert violation(alone, np.array([0.0, 0.0, 1.0]), np.array([1.0, 2.0, 0.5])) == 0.0


def test_small_gaps_of_machines_are_gaps():
    class Part(Gap):
        primal, dual, reference = 3.0, 2.5, 4.0

    assert (Part().gap, Part().relative_gap) == (0.5, 0.125)


def test_scores_in_blocks_and_by_both_sides_of_the_diagonal(rng, monkeypatch):
    """The same from functions in Python, a few rows at a time, and where the values among the points serve twice."""
    monkeypatch.setattr(kernel_machine, "BLOCK_ROWS", 3)
    X, beta = rng.normal(size=(10, 2)), rng.normal(size=10)
    beta[[1, 4, 5]] = 0.0
    K = (1.0 + X @ X.T) ** 2
    np.testing.assert_allclose(expansion_scores(Function(lambda A, B: (1.0 + A @ B.T) ** 2), X, beta), K @ beta)
    for points in (7, 8):
        monkeypatch.setattr(kernel_machine, "MANY_POINTS", points)
        for sign in (1.0, -1.0):  # memory that is used again must not hold the same answer
            np.testing.assert_allclose(expansion_scores(Polynomial(2, 1.0, 1.0), X, sign * beta), sign * K @ beta)
    far = 1e6 + X  # distances keep their digits, since the mean is taken off first
    near = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2)) @ beta
    np.testing.assert_allclose(expansion_scores(RBF(gamma=0.5), far, beta), near, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(centred(RBF(gamma=0.5), far).mean(axis=0), 0.0, atol=1e-9)
    assert centred(LinearKernel(), X) is X
    sparse = scipy.sparse.csr_array(X)
    assert centred(RBF(gamma=0.5), sparse) is sparse


def test_when_single_precision_suffices(rng, monkeypatch):
    """Much work, a bounded kernel that is wide beside the data, and a tolerance above 6e-8·U√n of the targets' size."""
    n, labels = 16, np.tile([1.0, -1.0], 8)
    X = np.zeros((n, 2))
    X[:, 1] = np.linspace(0.0, 3.0, n)  # the largest norm is 3
    machine_of = classification(labels, np.full(n, 2.0))
    monkeypatch.setattr(kernel_machine, "DOUBLE_WORK", n * n * 2 - 1.0)

    def suffices(kernel=None, X=X, dual=machine_of, tol=1e-3):
        return single_suffices(kernel or RBF(gamma=1.0), X, dual, tol)

    assert suffices()
    assert not suffices(kernel=LinearKernel())
    edge = 2.0 * np.sqrt(n) * 6e-8 / 0.1  # the scale of labels is 1
    assert suffices(tol=edge * 1.01)
    assert not suffices(tol=edge * 0.99)
    uneven = classification(labels, np.linspace(0.1, 2.0, n))
    assert not suffices(dual=uneven, tol=edge * 0.99)
    alone = one_class(0.5, np.full(n, 2.0))  # no targets: relative to the multipliers
    assert suffices(dual=alone, tol=edge / 2.0 * 1.01)
    assert not suffices(dual=alone, tol=edge / 2.0 * 0.99)
    # k(0, 3) = exp(−9γ) is compared with exp(−16).
    for gamma, wide in ((15.5 / 9, True), (16.5 / 9, False)):
        assert suffices(kernel=RBF(gamma=gamma)) == wide
        assert suffices(kernel=RBF(gamma=gamma), X=scipy.sparse.csr_array(X)) == wide
        assert suffices(kernel=RBF(gamma=gamma), X=X.astype(np.float32))
        assert suffices(kernel=3.0 * RBF(gamma=gamma)) == wide
    monkeypatch.setattr(kernel_machine, "DOUBLE_WORK", n * n * 2.0)
    assert not suffices()
