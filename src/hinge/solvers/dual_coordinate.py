"""Dual coordinate descent for losses of straight lines and half parabolas with an L2 penalty.

Problem     min_{w,b} Σ cᵢ ℓ(yᵢ, zᵢ) + ½ Σ_j λ_j w_j²,   ℓ(z) = Σ_k max {u (z − a_k) − κ/2 u² : lo_k ≤ u ≤ hi_k}
Dual        max_u −Σ cᵢ (aᵢ uᵢ + κ/2 uᵢ²) − ½ Σ_j (x_j'(c∘u))²/λ_j,   lo ≤ u ≤ hi, Σ cᵢ uᵢ = 0
Returns     w, b and the dual variables u
Reference   Hsieh et al. (2008), algorithms 1 and 3, with momentum; native/solvers/dual_coordinate.hpp
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from hinge._native import core
from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Need, Solution, Solver, Status, Stop
from hinge.solvers.interior_point import kinks
from hinge.solvers.native import run_native
from hinge.solvers.newton_cg import NewtonCG

PATIENCE = 12  # evaluations of the gap, some epochs apart, after which Newton's method takes over a differentiable loss


class DualCoordinateDescent(Solver):
    """One example at a time, cheap on sparse rows; slow to a tight gap where the penalty is weak.

    An iteration is an epoch: every dual variable that may have to move is visited once.

    A loss with κ > 0 is differentiable: if its gap is still too wide after some epochs, :class:`NewtonCG` continues
    from the current weights.
    """

    name: ClassVar[str] = "dual-coordinate-descent"
    needs: ClassVar[tuple[Need, ...]] = (
        Need.KINKS, Need.RIDGE, Need.STRONGLY_CONVEX, Need.ONE_OUTPUT, Need.ROWS,
    )  # fmt: skip
    default_max_iter: ClassVar[int] = 16_000
    iterative: ClassVar[bool] = False  # it starts at u = 0

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        soft, most = objective.loss.softness, stop.max_iter
        found = run_native(
            core.dual_coordinate, objective, w, b, stop,
            kinks=kinks(objective), soft=soft, seed=stop.random_state, tol=0.9 * stop.tol,
            max_checks=PATIENCE if soft > 0 else most,
        )  # fmt: skip
        if found.status is not Status.MAX_ITER or found.iterations >= most:
            return found
        rest = NewtonCG().run(objective, found.w, found.b, replace(stop, max_iter=most - found.iterations))
        return replace(rest, iterations=rest.iterations + found.iterations)
