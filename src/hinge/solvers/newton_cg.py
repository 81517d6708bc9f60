"""Newton's method with conjugate gradients, for many features.

Problem     min_{w,b} Σ cᵢ ℓ(yᵢ, xᵢ'w + b) + ½ Σ_j λ_j w_j²,   ℓ twice differentiable
Direction   conjugate gradients on H p = −∇J; a product with H is one pass over X
Optimality  ∇J = 0
Reference   Nocedal & Wright (2006), algorithm 7.1; native/solvers/newton_cg.hpp
"""

from __future__ import annotations

from typing import ClassVar

from hinge._native import core
from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Need, Solution, Solver, Stop
from hinge.solvers.native import run_native


class NewtonCG(Solver):
    """Newton's method without a d × d matrix."""

    name: ClassVar[str] = "newton-cg"
    shifts: ClassVar[bool] = True
    passes: ClassVar[float] = 10.0
    needs: ClassVar[tuple[Need, ...]] = (Need.SECOND, Need.CONVEX, Need.RIDGE, Need.ONE_OUTPUT)
    default_max_iter: ClassVar[int] = 200

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        constant = objective.loss.constant_curvature and Need.STRONGLY_CONVEX.met_by(objective)
        return run_native(
            core.newton_cg, objective, w, b, stop, constant_curvature=constant, proved=stop.proved, tol=0.5 * stop.tol
        )
