"""The stationarity residual: the certificate where no dual is known (non-convex, or a loss without conjugate).

It is the largest distance of −∇risk from ∂Ω, relative to the largest gradient of the risk at w = 0. The coordinates of both are
divided by the root mean squares of their columns, √Σ cᵢxᵢⱼ², and that of the bias by 1: otherwise a column of large numbers would
hide the gradients of the others, and of the bias.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from hinge.problem.certificates.certificate import Certificate
from hinge.problem.objective import Array, Objective


def stationarity(objective: Objective, w: Array, b: Array, u: Array | None = None) -> float:
    """The largest distance of −∇risk from ∂Ω(w), relative to the largest gradient of the risk at zero weights.

    A loss with kinks has many subgradients where scores lie at them. ``u`` may hold the ones to use: their distance
    from being subgradients, Σ cᵢ(ℓ(zᵢ) + ℓ*(uᵢ) − uᵢzᵢ) relative to the risk of a constant, is then included.
    """
    sizes = column_sizes(objective)
    scale = gradient_scale(objective, sizes)
    _, g, gb = objective.risk_gradient(w, b)
    residual = _distance(objective, w, g, gb, sizes) / scale
    if u is None or objective.loss.smooth or not (objective.loss.convex and objective.loss.has_conjugate):
        return residual
    u = objective.loss.project_dual(objective.y, u)
    z, cu = objective.scores(w, b), objective.weighted(u)
    wrong = objective.risk_of_scores(z) + objective.conjugate_sum(u) - float(np.sum(cu * z))
    g, gb = objective.design.rmatmul(cu), np.atleast_1d(cu.sum(axis=0))
    chosen = _distance(objective, w, g, gb, sizes) / scale
    return min(residual, max(chosen, abs(wrong) / max(constant_risk(objective), np.finfo(float).tiny)))


def column_sizes(objective: Objective) -> Array:
    """√Σ cᵢxᵢⱼ² of every column; 1 for columns of zeros."""
    sizes = np.sqrt(objective.square_sums)
    return np.where((sizes > 0.0) & np.isfinite(sizes), sizes, 1.0)


def _distance(objective: Objective, w: Array, g: Array, gb: Array, sizes: Array) -> float:
    distances = objective.penalty.subdifferential_distance(w, g)
    distance = float(np.max(_per_size(distances, objective.penalty.sizes_of_distances(sizes)), initial=0.0))
    return max(distance, float(np.max(np.abs(gb)))) if objective.fit_intercept else distance


def _per_size(values: Array, sizes: Array) -> Array:
    return values / (sizes if values.ndim == 1 else sizes[:, None])


def gradient_scale(objective: Objective, sizes: Array | None = None) -> float:
    """The largest gradient of the risk at zero weights and the best constant: the unit of the stationarity residual.

    ``sizes``: those of the columns, if they are known.
    """
    w0, b0 = objective.zero()
    if objective.fit_intercept and objective.outputs == 1:
        start = objective.best_constant()
        b0 = np.array([start if np.isfinite(start) else 0.0])
    _, g0, gb0 = objective.risk_gradient(w0, b0)
    g0 = _per_size(g0, column_sizes(objective) if sizes is None else sizes)
    scale = max(float(np.max(np.abs(g0), initial=0.0)), float(np.max(np.abs(gb0))), np.finfo(float).tiny)
    # Where zero scores are outside the domain of the loss (an inverse link, for example): a derivative of 1 per example.
    return scale if np.isfinite(scale) else 1.0


def constant_risk(objective: Objective) -> float:
    """The risk at w = 0, b = 0: a scale for the objective. If it is zero, the risk of constant scores ±1."""
    shift = 0.0 if objective.offset is None else objective.offset
    z = np.zeros(objective.n) if objective.outputs == 1 else np.zeros((objective.n, objective.outputs))
    at_zero = abs(objective.risk_of_scores(z + shift))
    return at_zero or sum(abs(objective.risk_of_scores(z + shift + t)) for t in (-1.0, 1.0))


def certificate_of_gradients(
    primal: float, gradients: Iterable[Any], at_zero: Iterable[Any], *, tol: float, **how: Any
) -> Certificate:
    """The certificate of a non-convex problem, from the gradients at the weights and at zero weights."""
    largest, unit = (max(float(np.max(np.abs(g), initial=0.0)) for g in arrays) for arrays in (gradients, at_zero))
    residual = largest / max(unit, np.finfo(float).tiny)
    return Certificate(primal, -np.inf, np.inf, np.inf, residual, "stationarity", tol, **how)


def without_gap(found: Certificate, objective: Objective, w: Array, b: Array, tol: float) -> Certificate:
    """The certificate of weights that solve another problem than the one posed: a residual, no bound."""
    # Without features only the bias remains, and the gradient at the start is zero: the gap is used as the residual.
    residual = stationarity(objective, w, b) if np.any(w) else found.relative_gap
    return replace(
        found, dual=-np.inf, gap=np.inf, relative_gap=np.inf, residual=residual, kind="stationarity", tol=tol,
        weight_error=np.inf,
    )  # fmt: skip
