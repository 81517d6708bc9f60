"""Newton's method.

Problem     min_{w,b} Σ cᵢ ℓ(yᵢ, xᵢ'w + b) + ½ Σ_j λ_j w_j²,   ℓ twice differentiable
Direction   −H⁻¹∇J, with H from all rows, or from a sample of them plus L-BFGS corrections when n ≫ d
Optimality  ∇J = 0
Reference   Nocedal & Wright (2006), algorithms 3.2 and 7.4; native/solvers/newton.hpp
"""

from __future__ import annotations

from typing import ClassVar

from hinge._native import core
from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Need, Solution, Solver, Stop
from hinge.solvers.native import run_native


class Newton(Solver):
    """Newton's method with a factored Hessian: a few iterations, for up to a few thousand features."""

    name: ClassVar[str] = "newton"
    shifts: ClassVar[bool] = True
    factors: ClassVar[bool] = True
    needs: ClassVar[tuple[Need, ...]] = (Need.SECOND, Need.CONVEX, Need.RIDGE, Need.ONE_OUTPUT)
    default_max_iter: ClassVar[int] = 100

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        approximate = not objective.loss.convex
        return run_native(
            core.newton, objective, w, b, stop, approximate=approximate, proved=stop.proved,
            tol=_decrease(objective, stop),
        )  # fmt: skip


def _decrease(objective: Objective, stop: Stop) -> float:
    """The predicted decrease at which to stop: half the gap, or about the squared residual if there is no gap."""
    has_gap = objective.loss.convex and objective.loss.has_conjugate
    return 0.5 * stop.tol if has_gap else max(1e-4 * stop.tol**2, 1e-27)


class FisherScoring(Newton):
    """Newton's method with the Fisher information in place of the Hessian, for likelihoods that are not convex.

    The information X' diag(c μ'²/V) X is positive semidefinite, so every direction is a descent direction. Its
    difference from the Hessian is approximated from the last steps (L-BFGS around the information). The method
    converges to a stationary point, certified by the stationarity residual.
    """

    name: ClassVar[str] = "fisher-scoring"
    needs: ClassVar[tuple[Need, ...]] = (Need.FISHER, Need.RIDGE, Need.ONE_OUTPUT)
