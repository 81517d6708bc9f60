"""The bias alone: b(z) = argmin_b Σ cᵢ ℓ(yᵢ, zᵢ + b), a convex problem in one dimension.

Needed wherever a fixed set of scores is completed by its best bias: constant predictions (z = 0), and dual points
whose slopes must sum to zero. Newton's steps inside a bracket that always holds the root of the derivative, so it
cannot diverge; for kinked losses it ends as bisection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from hinge.problem.losses.base import Array, Loss


def best_bias(loss: Loss, y: Array, z: Array, c: Array, start: float = 0.0) -> float:
    """A minimiser of Σ cᵢ ℓ(yᵢ, zᵢ + b) over b. ±1e3 beyond the data's scale is taken as infinity."""

    def slope(b: float) -> float:
        return float(c @ loss.gradient(y, z + b))

    span = 1.0 + float(np.max(np.abs(z), initial=0.0)) + _target_span(loss, y)
    low, high = _bracket(slope, start, span)
    if low == high:
        return low
    b = min(max(start, low), high)
    for _ in range(200):
        f = slope(b)
        if f == 0.0:
            return b
        low, high = (low, b) if f > 0 else (b, high)
        step = _newton_step(loss, y, z + b, c, f)
        proposal = b - step
        if not low < proposal < high:
            proposal = 0.5 * (low + high)
        if abs(proposal - b) <= 4e-16 * max(1.0, abs(b)) or high - low <= 4e-16 * max(1.0, abs(b)):
            return proposal
        b = proposal
    return b


def _target_span(loss: Loss, y: Array) -> float:
    return 1e3 if loss.target.is_classes else float(np.max(np.abs(y), initial=0.0))


def _newton_step(loss: Loss, y: Array, s: Array, c: Array, f: float) -> float:
    if not loss.twice:
        return np.inf
    h = float(c @ loss.hessian(y, s))
    return f / h if h > 0 else np.inf


def _bracket(slope, start: float, span: float) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Two points around the root of an increasing function; both at the edge of `span` if it has none there."""
    f = slope(start)
    if f == 0.0:
        return start, start
    direction = -1.0 if f > 0 else 1.0
    width, near = 1.0, start
    while True:
        far = start + direction * width
        if slope(far) * direction >= 0:
            return (far, near) if direction < 0 else (near, far)
        if width > span:
            return far, far
        near, width = far, 2.0 * width
