"""Losses with kinks under non-convex penalties, by a sequence of convex problems.

Problem     min_{w,b} Σ cᵢ ℓ(yᵢ, zᵢ) + λ Σ_j |w_j|^q,   0 < q < 1;   or λ·(number of weights that are not zero)
Lq          |w|^q is concave in |w|, so its tangent at the last w is an upper bound: minimise Σ cᵢ ℓ + Σ_j ω_j |w_j|
            with ω_j = λ q (|w_j| + ε)^{q−1} repeatedly, while ε falls to zero (the objective never rises)
L0          start with all features; drop the least and refit the others, as long as the objective falls
Optimality  −X'(c∘u) = λ q |w|^{q−1} sign(w) where w ≠ 0 (zero for L0), with uᵢ ∈ ∂ℓ(zᵢ): any gradient will do at w = 0
Returns     a stationary point, and the subgradients u that prove it
Reference   Candès, Wakin & Boyd (2008), section 2; Hunter & Li (2005)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hinge.problem.objective import Array, Objective
from hinge.problem.penalties import L1, Lq
from hinge.solvers.base import Need, Solution, Solver, Status, Stop

SMALLEST = 1e-6  # the last ε before zero, relative to the largest weight
TINY = 1e-7


@dataclass(frozen=True)
class Reweighted(Solver):
    """Reweighted L1 problems for Lq, backward elimination for L0, with any convex loss of single scores."""

    name: ClassVar[str] = "reweighted"
    needs: ClassVar[tuple[Need, ...]] = (Need.CONVEX_LOSS, Need.SPARSE_PENALTY, Need.SINGLE_SCORES, Need.ONE_OUTPUT)
    default_max_iter: ClassVar[int] = 200

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        return (self._tangents if isinstance(objective.penalty, Lq) else self._eliminate)(objective, stop)

    def _tangents(self, o: Objective, stop: Stop) -> Solution:
        penalty = o.penalty
        assert isinstance(penalty, Lq)
        found = _convex(o, np.full(o.d, penalty.lam), np.ones(o.d, dtype=bool), stop)
        # A weight whose contribution to the scores is this small, compared with the first fit, is converging to zero.
        scale = np.sqrt(o.square_sums)
        least = TINY * float(np.max(np.abs(found.w) * scale, initial=0.0))
        blur, status, k = 0.1, Status.MAX_ITER, 0
        while k < stop.max_iter:
            k += 1
            blur = 0.3 * blur if blur > SMALLEST else 0.0
            used = np.abs(found.w) * scale > least
            size = float(np.max(np.abs(found.w), initial=0.0))
            derivative = (
                penalty.lam * penalty.q * (np.abs(found.w) + blur * size + np.finfo(float).tiny) ** (penalty.q - 1)
            )
            before, found = found.w, _convex(o, derivative, used, stop)
            if stop.report(k, o.value(found.w, found.b), w=found.w, b=found.b):
                status = Status.STOPPED
                break
            if blur == 0.0 and np.max(np.abs(found.w - before)) <= 1e-2 * stop.tol * size:
                status = Status.CONVERGED
                break
        return replace(found, status=status, iterations=k)

    def _eliminate(self, o: Objective, stop: Stop) -> Solution:
        none = np.zeros(o.d)
        found = _convex(o, none, o.square_sums > 0, stop)
        status, k = Status.MAX_ITER, 0
        while k < stop.max_iter:
            k += 1
            value = o.value(found.w, found.b)
            if stop.report(k, value, w=found.w, b=found.b):
                status = Status.STOPPED
                break
            left = np.flatnonzero(found.w)
            fewer = np.zeros(o.d, dtype=bool)
            fewer[left] = True
            if len(left):
                fewer[left[np.argmin((np.abs(found.w) * np.sqrt(o.square_sums))[left])]] = False
            trial = _convex(o, none, fewer, stop)
            if not len(left) or o.value(trial.w, trial.b) > value:
                status = Status.CONVERGED
                break
            found = trial
        return replace(found, status=status, iterations=k)


def _convex(o: Objective, strengths: Array, allowed: np.ndarray, stop: Stop) -> Solution:
    """The solution under Σ_j strengths_j |w_j| in the allowed weights; the others are zero."""
    from hinge.solvers.run import solve  # which imports this module

    inner = o.with_penalty(L1(1.0, weights=np.where(allowed, strengths, _wall(o))))
    found = solve(inner, tol=min(0.1 * stop.tol, 1e-8), random_state=stop.random_state, warn=False).solution
    return replace(found, w=np.where(allowed, found.w, 0.0))


def _wall(o: Objective) -> Array:
    """Strengths at which every weight is zero: above the largest gradient of the loss, and that at w = 0."""
    low, high = o.loss.dual_interval(o.y)
    steepest = np.maximum(np.abs(low), np.abs(high)) * np.ones(o.n)
    if not np.all(np.isfinite(steepest)):
        steepest = np.abs(o.gradient_of_scores(o.scores(*o.start()))) * 10.0
    return 2.0 * np.sqrt(o.square_sums * float(o.c @ steepest**2)) + np.finfo(float).tiny
