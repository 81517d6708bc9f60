"""Certificates of functions f = Σ_j α_j k(x_j, ·): kernel ridge regression, and smooth losses over some centres."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hinge.problem.certificates.certificate import Certificate
from hinge.problem.objective import Array


def ridge_certificate(
    fitted: Array, y: Array, c: Array, alpha: Any, weights: Array | None, *, tol: float, **how: Any
) -> Certificate:
    """P = Σ s(y − f)² + α‖f‖² and D = 2αc'y − αc'Kc − α²Σ c²/s, for any coefficients c; ``fitted`` is Kc.

    Where s = 0 the term is zero if c is, and infinite otherwise: such coefficients prove nothing.
    """
    s = _column(weights, y)
    square = float(np.sum(alpha * c * fitted))
    primal = float(np.sum(s * (y - fitted) ** 2)) + square
    used = np.broadcast_to(s > 0, c.shape)
    penalty = float(np.sum((alpha * c)[used] ** 2 / np.broadcast_to(s, c.shape)[used]))
    dual = 2.0 * float(np.sum(alpha * c * y)) - square - penalty if not np.any(c[~used]) else -np.inf
    gap = abs(primal - dual)  # a bound above the objective is wrong by the difference
    size = max(abs(primal), 1e-12 * float(np.sum(s * y**2)), np.finfo(float).tiny)
    return Certificate(
        primal=primal, dual=min(dual, primal - gap), gap=gap, relative_gap=gap / size, residual=np.nan, kind="gap", tol=tol,
        weight_error=float(np.sqrt(gap / np.min(alpha))), **how,
    )  # fmt: skip


def ridge_residual(
    K: Array, y: Array, c: Array, alpha: Any, weights: Array | None, *, tol: float, **how: Any
) -> Certificate:
    """‖K(S(Kc − y) + αc)‖ / ‖KSy‖: the gradient by c, if no dual is known (an indefinite K, or α = 0)."""
    s, fitted = _column(weights, y), K @ c
    primal = float(np.sum(s * (y - fitted) ** 2)) + float(np.sum(alpha * c * fitted))
    left, start = K @ (s * (fitted - y) + alpha * c), K @ (s * y)
    size = float(np.linalg.norm(start)) or float(np.linalg.norm(K)) * float(np.linalg.norm(s * y))
    residual = float(np.linalg.norm(left)) / max(size, np.finfo(float).tiny)
    return Certificate(
        primal=primal, dual=-np.inf, gap=np.inf, relative_gap=np.inf, residual=residual, kind="stationarity", tol=tol,
        **how,
    )  # fmt: skip


def centres_certificate(
    loss: Any, y: Array, c: Array, times: Callable[[Array], Array], pull: Callable[[Array], Array], beta: Array,
    bias: float, lam: float, *, tol: float, **how: Any,
) -> Certificate:  # fmt: skip
    """P = Σ cᵢ ℓ(yᵢ, zᵢ) + λ/2 ‖β‖² with z = Φβ + b, for a smooth loss and the maps Φ (``times``) and Φ' (``pull``).

    With uᵢ = ℓ'(yᵢ, zᵢ) Fenchel's inequality is an equality, so P − D(u) = ‖Φ'(c∘u) + λβ‖² / (2λ) + b Σ cᵢ uᵢ; the last
    sum is zero at the best bias up to rounding.
    """
    risk, cu = loss.gradient(y, times(beta) + bias, c)
    g = pull(cu) + lam * beta
    gap = float(g @ g) / (2.0 * lam) + abs(bias * float(cu.sum()))
    return Certificate.of_gap(risk + 0.5 * lam * float(beta @ beta), gap, tol=tol, convexity=lam, **how)


def _column(weights: Array | None, y: Array) -> Array:
    """One weight per example, shaped to multiply y."""
    return (np.ones(len(y)) if weights is None else weights).reshape((-1,) + (1,) * (y.ndim - 1))
