"""Newton's method.

Problem     min_{w,b} Σ cᵢ ℓ(yᵢ, xᵢ'w + b) + ½ Σ_j λ_j w_j²,   ℓ twice differentiable
Direction   −H⁻¹∇J, with H from all rows, or from a sample of them plus L-BFGS corrections when n ≫ d
Optimality  ∇J = 0
Reference   Nocedal & Wright (2006), algorithms 3.2 and 7.4; native/solve/newton.hpp
"""

from __future__ import annotations

from typing import ClassVar

from hinge._native import core
from hinge.problem.objective import Array, Objective
from hinge.solve.base import Need, Solution, Solver, Stop
from hinge.solve.native import run_native


class Newton(Solver):
    """Newton's method with a factored Hessian: a handful of iterations, for up to a few thousand features."""

    name: ClassVar[str] = "newton"
    needs: ClassVar[tuple[Need, ...]] = (Need.SECOND, Need.CONVEX, Need.RIDGE, Need.ONE_OUTPUT)
    default_max_iter: ClassVar[int] = 100

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        return run_native(core.newton, objective, w, b, stop, tol=0.5 * stop.tol)
