"""Fast certificates, in two passes over X, for fits that took only a few: see :mod:`hinge.problem.certificates.linear`.

The gradients u = ℓ'(z) at the given weights rarely balance, Σ cᵢ uᵢ ≠ 0, and their penalty Ω*(−X'(c∘u)) is large
where the weights are far from optimal. So

- the side (positive or negative dual variables) with the larger sum is shrunk by one factor until the two balance, and
- the bound is taken at the best point of the ray s·u, 0 < s ≤ 1, along which X'(c∘u) need not be computed again:
  D(s·u) = −Σ cᵢ ℓ*(yᵢ, s uᵢ) + s Σ cᵢ uᵢ offsetᵢ − Ω*(−s X'(c∘u)), a concave function of one number.

Both stay inside the domain of ℓ*, which is convex and contains zero, so the bound is valid. Near the optimum it is only
less tight than the one that the full certificate finds with a Newton step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hinge.problem.certificates.certificate import Certificate
from hinge.problem.certificates.dual_points import has_dual
from hinge.problem.certificates.linear import certificate, convexity
from hinge.problem.objective import Array, Objective

SAMPLED = 4096  # examples from which s is chosen; the bound itself uses all of them
SHORTEST = 1e-9  # the smallest s tried, relative to the largest feasible one
TRIALS = 10
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # a sum beyond all numbers gives no bound
def quick_certificate(
    objective: Objective, w: Array, b: Array, *, tol: float = 1e-6, fit_flops: float = 0.0
) -> Certificate:
    """Certify weights w and bias b of one output; where the ray gives no bound, as :func:`certificate` does."""
    if objective.outputs > 1 or not has_dual(objective):
        return certificate(objective, w, b, tol=tol, fit_flops=fit_flops)
    z = objective.scores(w, b)
    primal = objective.risk_of_scores(z) + objective.penalty.value(w)
    u = objective.gradient_of_scores(z)
    if objective.fit_intercept:
        u = balanced_sides(objective.c, u)
    dual = ray_bound(objective, u)
    if not 0.0 < dual <= primal:  # a bound ≤ 0 is of no use, one above primal is rounding
        return certificate(objective, w, b, tol=tol, fit_flops=fit_flops)
    gap = primal - dual
    return Certificate.of_gap(primal, gap, tol=tol, convexity=convexity(objective), exact=gap <= tol * abs(primal))


def balanced_sides(c: Array, u: Array) -> Array:
    """u with the heavier of its two signs shrunk until Σ cᵢ uᵢ = 0."""
    cu = c * u
    total, size = float(cu.sum()), float(np.abs(cu, out=cu).sum())
    up, down = (size + total) / 2, (size - total) / 2
    if total == 0:
        return u
    light = u <= 0 if total > 0 else u >= 0
    shrunk = np.multiply(u, min(up, down) / max(up, down), out=cu)
    np.copyto(shrunk, u, where=light)
    return shrunk


def ray_bound(objective: Objective, u: Array) -> float:
    """max D(s·u) over 0 < s ≤ 1, with s found from some of the examples; −∞ if only s = 0 is feasible."""
    cu = objective.c * u
    g = objective.design.rmatmul(cu)
    longest = objective.penalty.dual_scale(-g)
    if longest == 0.0:
        return -np.inf
    lean = 0.0 if objective.offset is None else float(cu @ objective.offset)
    some = slice(None, None, max(1, objective.n // SAMPLED))
    y, c, part = (np.ascontiguousarray(a[some]) for a in (objective.y, objective.c, cu))
    share = float(objective.c.sum() / c.sum())
    penalty_along = objective.penalty.conjugate_along(-g)

    def loss(log_s: float) -> float:
        s = np.exp(log_s)
        return share * float(objective.native.conjugate(y, s * part, c)) - s * lean + penalty_along(s)

    s = np.exp(lowest(loss, np.log(SHORTEST * longest), np.log(longest)))
    return s * lean - objective.conjugate_sum(s * u) - penalty_along(s)


def lowest(f: Callable[[float], float], left: float, right: float) -> float:
    """The minimiser of a unimodal function between ``left`` and ``right``, by golden-section search."""
    inner, outer = left + (1 - GOLDEN) * (right - left), left + GOLDEN * (right - left)
    at_inner, at_outer, at_right = f(inner), f(outer), f(right)
    best, least = (right, at_right) if at_right <= at_outer else (outer, at_outer)
    for _ in range(TRIALS):
        if at_inner < at_outer:
            right, outer, at_outer = outer, inner, at_inner
            inner = left + (1 - GOLDEN) * (right - left)
            at_inner = f(inner)
            now, value = inner, at_inner
        else:
            left, inner, at_inner = inner, outer, at_outer
            outer = left + GOLDEN * (right - left)
            at_outer = f(outer)
            now, value = outer, at_outer
        if value < least:
            best, least = now, value
    return best
