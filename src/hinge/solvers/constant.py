"""Losses with kinks whose optimum is a constant: all weights are zero.

Problem     min_{w,b} Σ cᵢ ℓ(yᵢ, xᵢ'w + b) + Ω(w)
Optimality  w = 0 with the best constant b, if Σ cᵢ ℓ(yᵢ, b) + Ω(0) is D(0) = Σ cᵢ min ℓ(yᵢ, ·) + min Ω (no pass over X);
            or, for Ω = Σ_j l1_j |w_j| + …, if gradients uᵢ ∈ ∂ℓ(yᵢ, b) with Σ cᵢ uᵢ = 0 have |X'(c∘u)|_j ≤ l1_j (two passes)
Method      uᵢ = (1 − θ) lowᵢ + θ highᵢ with ∂ℓ(yᵢ, b) = [lowᵢ, highᵢ] and the θ that balances them
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hinge.problem.certificates.dual_points import has_dual, trivial_bound
from hinge.problem.certificates.linear import certificate
from hinge.problem.numerics import weighted_sum
from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Solution, Status

AT_KINK = 1e-12  # scores this close to a kink, relative to their size, are at it


def best_constant(objective: Objective, tol: float) -> Solution | None:
    """The constant, if its certificate meets the tolerance; None otherwise."""
    parts = objective.penalty.coordinates(objective.d)
    if parts is None or not np.all(parts.l1 > 0):
        return None
    found = _constant(objective)
    if found is None:
        return None
    u = _gradients(objective, float(found.b[0]))
    proved = certificate(objective, found.w, found.b, dual=u, tol=tol).converged
    return replace(found, dual=u) if proved else None


def no_worse_than_constant(objective: Objective, solution: Solution) -> Solution:
    """The solution, or the constant where that attains D(0) exactly and the solution only approaches it."""
    constant = None if solution.status is Status.STOPPED else _constant(objective)
    if constant is None:
        return solution
    least = trivial_bound(objective)
    risk = objective.risk_of_scores(np.full(objective.n, float(constant.b[0])))
    if risk + objective.penalty.value(constant.w) > least or objective.value(solution.w, solution.b) <= least:
        return solution
    return Solution(constant.w, constant.b, Status.CONVERGED, solution.iterations, np.zeros_like(objective.y))


def _constant(objective: Objective) -> Solution | None:
    """Zero weights and the best constant; None if the loss is smooth or there is no such constant."""
    if objective.loss.smooth or objective.outputs > 1 or objective.offset is not None or not has_dual(objective):
        return None
    w, b = objective.zero()
    if objective.fit_intercept:
        b[0] = objective.loss.baseline(objective.y, objective.c)
    return Solution(w, b, Status.CONVERGED, 1) if np.isfinite(b[0]) else None


def _gradients(objective: Objective, b: float) -> Array:
    """Subgradients of the losses at the constant b; with a bias they balance, as far as examples at a kink allow."""
    y, c, near = objective.y, objective.c, AT_KINK * max(abs(b), 1.0)
    u = objective.gradient_of_scores(np.full(objective.n, b))
    if not objective.fit_intercept:
        return u
    low = objective.loss.subgradients(y, np.full(objective.n, b - near))[0]
    high = objective.loss.subgradients(y, np.full(objective.n, b + near))[1]
    room = float(weighted_sum(c, high - low))
    if not room > 0:
        return u
    return low + np.clip(-float(weighted_sum(c, low)) / room, 0.0, 1.0) * (high - low)
