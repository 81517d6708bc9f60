"""Dual points from weights: the gradients of the loss, and those after one Newton step of the weights in use.

First u = ℓ'(z) at the best bias for w, so that they balance exactly. Then u + ℓ''·Δz after one Newton step: these satisfy
the optimality conditions of the weights in use exactly, with or without a penalty on them, and their error is of second
order. The step costs a factorisation and is taken only within a budget of operations (:mod:`hinge.problem.cost`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hinge.problem.certificates.dual_points import best_shift, best_shifts
from hinge.problem.cost import factor_flops, gram_flops, pass_flops
from hinge.problem.numerics import weighted_sum
from hinge.problem.objective import Array, Objective
from hinge.problem.penalties import Coordinates
from hinge.problem.semidefinite import solve_semidefinite

NEWTON_ROUNDS = 4


class Candidates:
    """Further dual variables to try, the cheapest first, within a budget of operations."""

    def __init__(self, objective: Objective, flops: float) -> None:
        self._objective, self._flops = objective, flops
        self.dropped = False  # whether a candidate was too expensive

    def __call__(self, w: Array, z: Array, tried: Array | None) -> Iterator[Array]:
        objective = self._objective
        if objective.loss.smooth or tried is None:
            if objective.fit_intercept:
                try:
                    z = z + (best_shift(objective, z) if z.ndim == 1 else best_shifts(objective, z))
                except ValueError:  # the derivative overflows before a balance is found: there is no dual point nearby
                    return
            u = objective.gradient_of_scores(z)
            yield u
        else:
            u = tried
        coordinates = objective.penalty.coordinates(objective.d)
        if z.ndim > 1 or coordinates is None:
            return
        used = weights_in_use(coordinates, w)
        if newton_flops(objective, len(used)) > self._flops:
            self.dropped = True
            return
        moved = newton_dual(objective, coordinates, w, z, u, used, self._flops)
        if moved is not None:
            yield moved


def newton_flops(objective: Objective, used: int) -> float:
    """Operations of one round of :func:`newton_dual`; most problems need only one."""
    design = objective.design
    return gram_flops(design, used) + factor_flops(used) + 2 * pass_flops(design)


def weights_in_use(coordinates: Coordinates, w: Array) -> np.ndarray:
    """Which weights are neither zero under an L1 penalty nor at a bound."""
    inside = (w > coordinates.lower) & (w < coordinates.upper)
    return np.flatnonzero(inside & ((w != 0) | (coordinates.l1 == 0)))


def newton_dual(
    objective: Objective,
    coordinates: Coordinates,
    w: Array,
    z: Array,
    u: Array,
    used: np.ndarray,
    flops: float = np.inf,
) -> Array | None:
    """u + ℓ''·Δz, where Δz is the change of scores in one Newton step of the bias and the weights in use.

    With H the Hessian and r the gradient of the objective restricted to them, X'(c∘(u + ℓ''·Δz)) + Ω'(w + Δ) = r + H Δ
    = 0: the optimality conditions hold exactly. None if the sums overflow.
    """
    loss, y = objective.loss, objective.y
    lo, hi = loss.dual_interval(y)
    # Without a second derivative the dual variables strictly inside their domain are the ones that may move.
    h = loss.hessian(y, z) if loss.twice_differentiable else np.minimum(u - lo, hi - u) ** 2
    w = w.copy()
    for _ in range(NEWTON_ROUNDS):
        found = _newton_step(objective, coordinates, w, u, h, used, flops)
        if found is None:
            return None
        step, bias = found
        w += step
        moved = u + h * (objective.design.matmul(step) + bias)
        outside = (moved < lo) | (moved > hi)
        if not np.any(outside):
            return moved
        # Dual variables that left their domain stay at its boundary, and the others compensate in another round.
        u, h = np.clip(moved, lo, hi), np.where(outside, 0.0, h)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(moved > hi, hi / moved, np.where(moved < lo, lo / moved, 1.0))
    return moved * max(float(np.min(room)), 0.0)


def _newton_step(
    objective: Objective, coordinates: Coordinates, w: Array, u: Array, h: Array, used: np.ndarray, flops: float
) -> tuple[Array, float] | None:
    """The step of the weights in use (others zero) and of the bias; None where the sums overflow."""
    c = objective.c
    rhs = -(objective.design.rmatmul(c * u) + coordinates.l1 * np.sign(w) + coordinates.l2 * w)[used]
    gram = _gram(objective, c * h, used) + np.diag(coordinates.l2[used])
    if objective.fit_intercept:
        edge = objective.design.rmatmul(c * h)[used]
        gram = np.block([[gram, edge[:, None]], [edge[None, :], np.array([[weighted_sum(c, h)]])]])
        rhs = np.append(rhs, -weighted_sum(c, u))
    if not (np.all(np.isfinite(gram)) and np.all(np.isfinite(rhs))):
        return None
    solved = solve_semidefinite(gram, rhs, flops) if len(rhs) else rhs
    step = np.zeros(objective.d)
    step[used] = solved[: len(used)]
    return step, float(solved[-1]) if objective.fit_intercept else 0.0


def _gram(objective: Objective, h: Array, used: np.ndarray) -> Array:
    if len(used) == objective.d:
        return objective.design.gram(h)
    columns = objective.design.columns(used)
    return (columns * h[:, None]).T @ columns
