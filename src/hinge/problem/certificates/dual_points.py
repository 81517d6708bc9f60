"""Dual points: lower bounds of the optimum of a linear problem from dual variables.

For the problem  P(w, b) = Σ cᵢ ℓ(yᵢ, zᵢ) + Ω(w)  all dual variables u give a lower bound of the optimum,

    D(u) = −Σ cᵢ ℓ*(yᵢ, uᵢ) + Σ cᵢ uᵢ offsetᵢ − Ω*(−X'(c∘u)),      Σ cᵢ uᵢ = 0 if there is a bias.

This module makes u feasible and computes D(u). Rounding leaves Σ cᵢ uᵢ = δ, which makes D(u) wrong by δ·b* at the best
bias b*, however large that is. The bias b of the weights in use is near b*, so D(u) + δ·b is wrong by δ·(b* − b) only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.linalg

from hinge._native import Design, core
from hinge.problem.losses import Softmax
from hinge.problem.numerics import weighted_sum
from hinge.problem.objective import Array, Objective
from hinge.problem.penalties import Coordinates
from hinge.problem.root import best_bias

LAST_PLACES = 16 * np.finfo(float).eps  # rounding of a sum of products, relative to the sizes of the factors
DECREASE_IN_ROUNDING = 1e-13  # relative to the objective: smaller decreases are lost in its rounding
BALANCED = 1e-13  # dual variables whose sum is below this share of their size balance up to rounding


def has_dual(objective: Objective) -> bool:
    loss, penalty = objective.loss, objective.penalty
    return loss.declared_convex and loss.has_conjugate and penalty.convex and penalty.has_conjugate


def trivial_bound(objective: Objective) -> float:
    """D(0) = Σ cᵢ min ℓ(yᵢ, ·) + min Ω: the best bound if every example can be fitted exactly."""
    none = objective.penalty.conjugate(objective.zero()[0])
    if objective.outputs > 1 and objective.loss.outputs == "classes":  # examples of a class have the same ℓ*(y, 0)
        labels, which = np.unique(objective.y, return_inverse=True)
        values = objective.loss.conjugate(labels, np.zeros((len(labels), objective.outputs)))
        return -float(np.sum(weighted_sum(np.bincount(which, weights=objective.c), values))) - none
    shape = (objective.n,) if objective.outputs == 1 else (objective.n, objective.outputs)
    return -objective.conjugate_sum(np.zeros(shape)) - none


def dual_value(objective: Objective, u: Array, b: Array) -> float:
    """D(u) near the bias b, after scaling u until the penalty's conjugate is finite; −∞ if u cannot be made feasible.

    u must lie in the domain of the loss's conjugate.
    """
    feasible = balanced(objective, u)
    if feasible is None:
        return -np.inf
    return bound(objective, feasible, objective.design.rmatmul(objective.weighted(feasible)), b)


def scores_and_bound(objective: Objective, w: Array, b: Array, u: Array) -> tuple[Array, float]:
    """The scores of one output and D(u), in one pass over the examples."""
    feasible = balanced(objective, u)
    if feasible is None:
        return objective.scores(w, b), -np.inf
    z, g = objective.scores_and_adjoint(w, b, feasible)
    return z, bound(objective, feasible, g, b)


def bound(objective: Objective, u: Array, g: Array, b: Array) -> float:
    """D(u) for dual variables u that balance up to rounding, g = X'(c∘u), and a bias b near the best one."""
    drop_rounding(objective, g, weighted_sum(objective.c, u**2))
    scale = objective.penalty.dual_scale(-g)
    if scale == 0.0:
        return -np.inf
    if scale < 1.0:
        u, g = scale * u, scale * g
    value = -objective.conjugate_sum(u)
    if objective.offset is not None:
        value += float(np.sum(objective.weighted(u) * objective.offset))
    if objective.fit_intercept:
        value += float(np.sum(weighted_sum(objective.c, u) * b))
    value -= objective.penalty.conjugate(-g)
    return value if np.isfinite(value) else -np.inf  # sums that overflowed give no bound


def drop_rounding(objective: Objective, g: Array, squares: Array | float) -> None:
    """Sets g to zero where it must be zero and differs from it by rounding only.

    A weight that may grow without limit or penalty needs a gradient of exactly zero; otherwise the bound is too high by
    |g_j w*_j|. The rounding error of g_j = Σ cᵢ xᵢⱼ uᵢ is a few units in the last place of √(Σ cᵢ xᵢⱼ² · Σ cᵢ uᵢ²); no
    more than that is dropped. ``squares``: Σ cᵢ uᵢ², one for each output.
    """
    coordinates = objective.penalty.coordinates(objective.d)
    if coordinates is None:
        return
    free = _free(coordinates, g)
    if np.any(free):
        sums = objective.square_sums if g.ndim == 1 else objective.square_sums[:, None]
        g[free & (np.abs(g) <= LAST_PLACES * np.sqrt(sums * squares))] = 0.0


def _free(coordinates: Coordinates, g: Array) -> np.ndarray:
    """Which weights can move against the gradient g without limit and without a penalty."""
    l1, l2, lower, upper = (part if g.ndim == 1 else part[:, None] for part in coordinates)
    return (l1 == 0) & (l2 == 0) & np.where(g < 0, np.isposinf(upper), np.isneginf(lower))


def balanced(objective: Objective, u: Array) -> Array | None:
    """u itself, or dual variables near it, with Σ cᵢ uᵢ = 0 if there is a bias: D(u) is a bound only then.

    The gradients of a loss with kinks at its best bias need not balance. None if no nearby dual variables do.
    """
    if not objective.fit_intercept:
        return u
    total, size = weighted_sum(objective.c, u), weighted_sum(objective.c, np.abs(u))
    if np.any(np.abs(total) > BALANCED * size):
        u = balance(objective, u)
        total, size = weighted_sum(objective.c, u), weighted_sum(objective.c, np.abs(u))
    return None if np.any(np.abs(total) > 1e-11 * np.max(size, initial=0.0)) else u


def balance(objective: Objective, u: Array) -> Array:
    """Dual variables near u with Σ cᵢ uᵢ = 0: one common shift, clipped to the domain."""
    if u.ndim == 2:
        repair = getattr(objective.loss, "balance_dual", None)
        if repair is not None:
            return repair(objective.y, objective.c, u)
        if objective.loss.outputs == "classes":
            return u
        parts = [replace_target(objective, np.ascontiguousarray(y)) for y in objective.y.T]
        return np.stack([balance(part, column) for part, column in zip(parts, u.T)], axis=1)
    u = np.ascontiguousarray(u, dtype=np.float64)
    lo, hi = (
        np.ascontiguousarray(np.broadcast_to(end, u.shape), dtype=np.float64)
        for end in objective.loss.dual_interval(objective.y)
    )

    def total(shift: float) -> tuple[float, float]:
        return core.clipped_sums(u, shift, lo, hi, objective.c)

    return np.clip(u + best_bias(total, span=1e12), lo, hi)


def replace_target(objective: Objective, y: Array) -> Objective:
    """The problem of one of several outputs, with target y."""
    return replace(objective, y=y, outputs=1)


def best_shift(objective: Objective, z: Array) -> float:
    def derivatives(b: float) -> tuple[float, float]:
        return objective.native.derivative_sums(objective.y, z + b, objective.c)

    if objective.loss.constant_curvature:  # Newton's step is exact; a second one removes its rounding
        shift = 0.0
        for _ in range(2):
            slope, bend = derivatives(shift)
            shift -= slope / bend
        return shift
    return best_bias(derivatives, objective.loss.score_span(objective.y) + float(np.max(np.abs(z), initial=0.0)))


def best_shifts(objective: Objective, z: Array) -> Array:
    """The best change of the biases of several outputs: Newton on k × k systems until the gradients balance."""
    shift, before = np.zeros(z.shape[1]), np.inf
    value, cu, curvature = _at_scores(objective, z)
    for _ in range(30):
        g = cu.sum(axis=0)
        size = float(np.max(np.abs(g)))
        if size <= BALANCED * np.max(np.abs(cu).sum(axis=0), initial=0.0):
            break
        step, scale = scipy.linalg.lstsq(curvature(), g)[0], 1.0
        # Near the optimum rounding hides the decrease; Newton's step is then accepted as long as the gradient falls.
        visible = float(g @ step) > DECREASE_IN_ROUNDING * abs(value)
        if not visible and size > 0.5 * before:
            break
        before = np.inf if visible else size
        trial = _at_scores(objective, z + (shift - step))
        if visible:
            while trial[0] > value and scale > 1e-6:
                scale *= 0.5
                trial = _at_scores(objective, z + (shift - scale * step))
        shift = shift - scale * step
        value, cu, curvature = trial
    return shift


def _at_scores(objective: Objective, z: Array) -> tuple[float, Array, Callable[[], Array]]:
    """The risk at the scores of several outputs, c∘ℓ', and a function that computes the Hessian in the biases."""
    loss, y, c = objective.loss, objective.y, objective.c
    if isinstance(loss, Softmax):
        value, cu = core.softmax_gradient(y, np.ascontiguousarray(z), c)

        def of_classes() -> Array:
            cp = cu.copy()
            cp[np.arange(len(y)), y.astype(np.intp)] += c
            with np.errstate(divide="ignore"):
                inverse = np.where(c > 0, 1.0 / c, 0.0)
            return np.diag(cp.sum(axis=0)) - Design(cp).gram(inverse)

        return value, cu, of_classes
    if loss.outputs == "classes":

        def of_links() -> Array:
            p = loss.inverse_link(z)
            return np.diag(weighted_sum(c, p)) - Design(np.ascontiguousarray(p)).gram(c)

        return objective.risk_of_scores(z), objective.weighted(loss.gradient(y, z)), of_links
    cu = objective.weighted(loss.gradient(y, z))
    return objective.risk_of_scores(z), cu, lambda: np.diag(weighted_sum(c, loss.hessian(y, z)))
