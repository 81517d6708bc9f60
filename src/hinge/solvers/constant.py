"""Kinked losses with an L1 penalty so strong that all weights are zero.

Problem     min_{w,b} Σ cᵢ ℓ(yᵢ, xᵢ'w + b) + Σ_j l1_j |w_j| + …, every l1_j > 0
Optimality  w = 0 with the best constant b, if slopes uᵢ ∈ ∂ℓ(yᵢ, b) with Σ cᵢ uᵢ = 0 have |X'(c∘u)|_j ≤ l1_j
Method      examples at the kink share what the others leave of the sum; two passes over X
"""

from __future__ import annotations

import numpy as np

from hinge.problem.certificates.linear import certificate, has_dual
from hinge.problem.numerics import weighted_sum
from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Solution, Status

AT_KINK = 1e-12  # of the size of the targets


def best_constant(objective: Objective, tol: float) -> Solution | None:
    """The constant, if the judge agrees that nothing is better; None otherwise."""
    parts = objective.penalty.coordinates(objective.d)
    if objective.loss.smooth or objective.outputs > 1 or objective.offset is not None or not has_dual(objective):
        return None
    if parts is None or not np.all(parts.l1 > 0):
        return None
    w, b = objective.zero()
    if objective.fit_intercept:
        b[0] = objective.loss.baseline(objective.y, objective.c)
    if not np.isfinite(b[0]):
        return None
    u = _slopes(objective, float(b[0]))
    if not certificate(objective, w, b, dual=u, tol=tol).converged:
        return None
    return Solution(w, b, Status.CONVERGED, 1, u)


def _slopes(objective: Objective, b: float) -> Array:
    """Slopes at the constant b that balance, as far as examples at the kink allow."""
    y, c = objective.y, objective.c
    u = objective.slopes_of_scores(np.full(objective.n, b))
    tied = np.abs(y - b) <= AT_KINK * max(abs(b), 1.0)
    if objective.fit_intercept and np.any(tied):
        lo, hi = (np.broadcast_to(edge, y.shape) for edge in objective.loss.dual_interval(y))
        rest = float(weighted_sum(c, np.where(tied, 0.0, u)))
        u[tied] = np.clip(-rest / float(c[tied].sum()), lo[tied], hi[tied])
    return u
