"""The best bias for given scores: argmin_b Σ cᵢ ℓ(yᵢ, zᵢ + b), a convex problem in one dimension.

It is needed for constant predictions (z = 0) and for dual points whose gradients must sum to zero. Newton's method runs
inside a bracket that always contains the root of the derivative, so it cannot diverge; for losses with kinks it reduces
to bisection.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hinge.problem.numerics import OVERFLOWED

# Halving an interval 200 times leaves 1e-60 of it, so even a root at zero is found to any useful accuracy.
MOST_TRIALS = 200


def best_bias(derivatives: Callable[[float], tuple[float, float]], span: float) -> float:
    """The root of an increasing function, given (value, derivative) at b; ±span if there is no root inside."""
    low, high = _bracket(lambda b: derivatives(b)[0], span)
    b = 0.0 if low <= 0.0 <= high else 0.5 * (low + high)  # the root is often near zero
    before = np.inf
    for _ in range(MOST_TRIALS):
        if not low < high:
            break
        f, h = derivatives(b)
        _require_number(f, b)
        if f == 0.0:
            return b
        low, high = (low, b) if f > 0 else (b, high)
        proposal = b - f / h if h > 0 else np.inf
        # Far from the root of eᵇ − a every Newton step has length one: steps that do not shrink by half are replaced.
        if not low < proposal < high or abs(proposal - b) > 0.5 * before:
            proposal = 0.5 * (low + high)
        if abs(proposal - b) <= 4e-16 * abs(b) or not low < proposal < high:
            return proposal
        before, b = abs(proposal - b), proposal
    return b


def _require_number(f: float, b: float) -> None:
    """Raises an error for NaN, with which every comparison is false and a search would never end."""
    if np.isnan(f):
        raise ValueError(f"The derivative of the loss is not a number at the bias {b:.3g}. {OVERFLOWED}")


def _bracket(derivative: Callable[[float], float], span: float) -> tuple[float, float]:
    """Two points around the root of an increasing function; both ±span if there is no root inside."""
    f = derivative(0.0)
    _require_number(f, 0.0)
    if f == 0.0:
        return 0.0, 0.0
    direction = -1.0 if f > 0 else 1.0
    width, near = 1.0, 0.0
    while True:
        far = direction * width
        f = derivative(far)
        _require_number(f, far)
        if f * direction >= 0:
            return (far, near) if direction < 0 else (near, far)
        if width > span:
            return far, far
        near, width = far, 2.0 * width
