"""Dual coordinate descent for piecewise linear losses with an L2 penalty.

Problem     min_{w,b} Σ cᵢ ℓ(yᵢ, zᵢ) + ½ Σ_j λ_j w_j²,   ℓ(z) = Σ_k max {u (z − a_k) : lo_k ≤ u ≤ hi_k}
Dual        max_u −Σ cᵢ aᵢ uᵢ − ½ Σ_j (x_j'(c∘u))²/λ_j,   lo ≤ u ≤ hi, Σ cᵢ uᵢ = 0
Returns     w, b and the dual variables u
Reference   Hsieh et al. (2008), algorithms 1 and 3, with momentum; native/solvers/dual_coordinate.hpp
"""

from __future__ import annotations

from typing import ClassVar

from hinge._native import core
from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Need, Solution, Solver, Stop
from hinge.solvers.interior_point import kinks
from hinge.solvers.native import run_native


class DualCoordinateDescent(Solver):
    """One example at a time, cheap on sparse rows; slow to a tight gap where the penalty is weak."""

    name: ClassVar[str] = "dual-coordinate-descent"
    needs: ClassVar[tuple[Need, ...]] = (
        Need.PIECEWISE_LINEAR, Need.RIDGE, Need.STRONGLY_CONVEX, Need.ONE_OUTPUT, Need.ROWS,
    )  # fmt: skip
    default_max_iter: ClassVar[int] = 1000

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        return run_native(
            core.dual_coordinate, objective, w, b, stop,
            kinks=kinks(objective), seed=stop.random_state, tol=0.9 * stop.tol,
        )  # fmt: skip
