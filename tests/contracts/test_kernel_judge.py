"""The judge of support vector machines against the formulas of the problem and its dual."""

from __future__ import annotations

import numpy as np
import pytest

from hinge.problem.certificates.kernel_machine import (
    Dual,
    Gap,
    Stack,
    classification,
    evaluate_at_scores,
    evaluate_machine,
    evaluate_stack,
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
    start_spread,
    violation,
)
from hinge.problem.kernels import RBF, Polynomial, Precomputed

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
