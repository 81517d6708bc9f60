"""Certificates of linear models of label sequences: the conditional random field and the structured SVM."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge._native import core
from hinge.problem.certificates.certificate import Certificate
from hinge.problem.objective import Array


def crf_certificate(
    training: tuple[Any, ...], w: Array, l1: float, l2: float, *, tol: float, **how: Any
) -> Certificate:
    """The certificate of a conditional random field with weights w; ``training`` is what ``core.crf_loss`` takes before w.

    Problem  J(w) = L(w) + l1‖w‖₁ + l2/2 ‖w‖²,   L(w) = Σ cᵢ [log Z(xᵢ) − score(xᵢ, yᵢ)],   Σ cᵢ = 1
    Dual     the model p at w has the entropy H = L − w'∇L; p itself, mixed with the observed labels if l2 = 0, gives
             D = H − Σ_j soft(∇_j L, l1)² / (2 l2)   if l2 > 0,      D = min(1, l1 / max_j |∇_j L|) H   if l2 = 0

    With l1 = 0 the gap J − D is ‖∇J‖² / (2 l2), which is computed without cancellation.
    """
    loss, g = core.crf_loss(*training, np.ascontiguousarray(w))
    primal = loss + l1 * float(np.abs(w).sum()) + 0.5 * l2 * float(w @ w)
    entropy = max(loss - float(w @ g), 0.0)
    if l2 == 0:
        gap = primal - min(1.0, l1 / max(float(np.max(np.abs(g), initial=0.0)), np.finfo(float).tiny)) * entropy
    elif l1 == 0:
        gap = float(np.sum((g + l2 * w) ** 2)) / (2.0 * l2)
    else:
        gap = primal - entropy + float(np.sum(np.maximum(np.abs(g) - l1, 0.0) ** 2)) / (2.0 * l2)
    return Certificate.of_gap(primal, max(gap, 0.0), tol=tol, convexity=l2, **how)


def structured_svm_certificate(primal: float, gap: float, l2: float, *, tol: float, **how: Any) -> Certificate:
    """The certificate of a structured SVM from the last pass of ``core.chain_svm`` over all sequences at fixed w.

    Problem  J(w) = Σ cᵢ max_y [Δ(yᵢ, y) − score(yᵢ) + score(y)] + l2/2 ‖w‖²
    Dual     masses pᵢ on labellings with w = Σ cᵢ/l2 [φ(yᵢ) − Σ_v pᵢ(v) φ(v)]; then, with h(v) = Δ(yᵢ, v) + score(v),
             J − D = Σ cᵢ [max_v h(v) − Σ_v pᵢ(v) h(v)]
    """
    return Certificate.of_gap(primal, gap, tol=tol, convexity=l2, **how)
