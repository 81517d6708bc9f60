"""Line searches: the length of a step along a direction p from x.

    backtracking   the first of 1, ½, ¼ … (times a start) with J(x + ηp) ≤ J(x) + c₁ η ∇J·p           (Armijo)
    exact          the η with dJ(x + ηp)/dη = 0; every trial costs one pass over scores, not over X
    wolfe          Armijo and |∇J(x + ηp)·p| ≤ c₂ |∇J(x)·p|                           (strong Wolfe conditions)

Reference: Nocedal & Wright (2006), algorithms 3.1, 3.5 and 3.6.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hinge.problem.objective import Array
from hinge.problem.root import best_bias
from hinge.solvers.packing import Flat

DECREASE = 1e-4  # c₁
ROUNDING = 1e-15  # changes of J below this fraction of it are lost in rounding


class Step(NamedTuple):
    """A step length and what was evaluated there; length 0 if none was found."""

    length: float
    value: float
    gradient: Array


def backtracking(flat: Flat, x: Array, value: float, g: Array, p: Array, start: float) -> Step:
    derivative, length = float(g @ p), start
    for _ in range(60):
        trial, gradient = flat.value_gradient(x + length * p)
        if trial <= value + DECREASE * length * derivative + ROUNDING * abs(value):
            return Step(length, trial, gradient)
        length *= 0.5
    return Step(0.0, value, g)


def exact(flat: Flat, x: Array, p: Array) -> float:
    """The minimiser of J along p, by bracketing and bisection of the derivative."""
    objective = flat.objective
    w, b = flat.unpack(x)
    pw, pb = flat.unpack(p)
    z = objective.scores(w, b)
    dz = objective.design.matmul(pw) + (pb if objective.outputs > 1 else pb[0])

    def derivative(t: float) -> tuple[float, float]:
        u = objective.weighted(objective.gradient_of_scores(z + t * dz))
        return float(np.sum(u * dz) + np.sum(objective.penalty.gradient(w + t * pw) * pw)), 0.0

    return max(best_bias(derivative, 1e8), 0.0)


def wolfe(flat: Flat, x: Array, value: float, g: Array, p: Array, start: float = 1.0, curvature: float = 0.9) -> Step:
    """A step that satisfies the strong Wolfe conditions, by bracketing and zooming with cubic interpolation."""
    derivative = float(g @ p)
    noise = ROUNDING * max(abs(value), 1e-300)
    low = (0.0, value, derivative, g)
    length, high = start, None
    for trial in range(60):
        f, gradient = flat.value_gradient(x + length * p)
        d = float(gradient @ p) if np.isfinite(f) else np.inf
        if f > value + DECREASE * length * derivative + noise or (trial and f > low[1] + noise):
            high = (length, f, d)
        elif abs(d) <= -curvature * derivative:
            return Step(length, f, gradient)
        elif d >= 0:
            high, low = low[:3], (length, f, d, gradient)
        else:
            low = (length, f, d, gradient)
            if high is None:
                length *= 2.0
                continue
        length = _between(low[:3], high)
        if abs(high[0] - low[0]) * np.max(np.abs(p)) <= 1e-16 * np.max(np.abs(x), initial=1e-300):
            break
    return Step(low[0], low[1], low[3])


def _between(low: tuple[float, float, float], high: tuple[float, float, float]) -> float:
    """The minimiser of the cubic through both ends, kept away from them; the midpoint if it is not usable."""
    (a, fa, da), (b, fb, db) = low, high
    middle, width = 0.5 * (a + b), abs(b - a)
    if not (np.isfinite(fb) and np.isfinite(db)):
        return a + 0.1 * (b - a)
    if width == 0.0:  # both lengths are rounded to zero
        return a
    m = da + db - 3.0 * (fa - fb) / (a - b)
    root = m * m - da * db
    if root < 0:
        return middle
    r = np.copysign(np.sqrt(root), b - a)
    divisor = db - da + 2.0 * r
    best = b - (b - a) * (db + r - m) / divisor if divisor != 0 else middle
    inside = min(a, b) + 0.05 * width <= best <= max(a, b) - 0.05 * width
    return float(best) if inside else middle
