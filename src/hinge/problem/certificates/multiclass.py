"""Certificates of the multiclass support vector machine (Crammer & Singer), linear or with a kernel.

Problem  P(f, b) = Σ cᵢ max_j [Δ(yᵢ, j) + s_ij − s_iy] + ½ Σ_j ‖f_j‖²,   s_ij = f_j(xᵢ) + b_j; b is not penalised
Dual     with dᵢ = cᵢ (e_y − pᵢ), pᵢ in the simplex, and Σ dᵢ = 0 if there are biases,
         D(p) = Σ cᵢ pᵢ'Δ(yᵢ, ·) − ½ Σ_j ‖Σᵢ d_ij k(xᵢ, ·)‖²

Offered dual coefficients are projected onto the simplices and balanced by mixing in the shares of the classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hinge._native import Design
from hinge.problem.certificates.certificate import Certificate
from hinge.problem.losses.multiclass import MulticlassHinge
from hinge.problem.objective import Array


def linear_multiclass_certificate(
    X: Any, W: Array, b: Array | None, y: Array, c: Array, cost: Array, dual: Array, *, tol: float, **how: Any
) -> Certificate:
    """The certificate of weights W (features × classes) and biases b (None: there are none), given d as ``dual``."""
    design = Design(X)
    scores = design.matmul(np.ascontiguousarray(W, dtype=np.float64))

    def square(d: Array) -> float:
        V = design.rmatmul(d)
        return float(np.sum(V * V))

    return _certificate(scores, float(np.sum(np.square(W, dtype=np.float64))), b, y, c, cost, dual, square, tol, how)


def kernel_multiclass_certificate(
    K: Array, b: Array | None, y: Array, c: Array, cost: Array, dual: Array, *, tol: float, **how: Any
) -> Certificate:
    """The certificate of f_j = Σᵢ d_ij k(xᵢ, ·), d given as ``dual``, and biases b (None: there are none)."""
    scores = K @ dual
    square = float(np.sum(dual * scores))
    return _certificate(scores, square, b, y, c, cost, dual, lambda d: float(np.sum(d * (K @ d))), tol, how)


def _certificate(
    scores: Array, square: float, b: Array | None, y: Array, c: Array, cost: Array, dual: Array,
    square_of: Callable[[Array], float], tol: float, how: dict[str, Any],
) -> Certificate:  # fmt: skip
    loss = MulticlassHinge(tuple(map(tuple, cost.tolist())))
    primal = float(c @ loss.value(y, scores if b is None else scores + b)) + 0.5 * square
    u = loss.project_dual(y, -dual / c[:, None])
    if b is not None:
        u = loss.balance_dual(y, c / c.sum(), u)
    lower = -float(c @ loss.conjugate(y, u)) - 0.5 * square_of(np.ascontiguousarray(-u * c[:, None]))
    gap = abs(primal - lower)  # a bound above the objective is wrong by the difference
    return Certificate.of_gap(primal, gap, tol=tol, convexity=1.0, **how)
