"""A primal-dual interior point method for piecewise linear losses.

Problem     min_{w,b} Σ cᵢ ℓ(yᵢ, zᵢ) + Σ_j l1_j |w_j| + ½ l2_j w_j² on [lower, upper],   ℓ(z) = Σ_k max {u (z − a_k) : lo_k ≤ u ≤ hi_k}
Optimality  l2∘w + l1∘∂|w| + X'(c∘u) ∋ 0, Σ cᵢ uᵢ = 0, and u at an end of its interval unless z is at the kink
Returns     w, b and dual variables u strictly inside their intervals: a dual point
Reference   Mehrotra (1992); Nocedal & Wright (2006), algorithm 16.4; native/solvers/interior_point.hpp
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from hinge._native import core
from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Need, Solution, Solver, Stop
from hinge.solvers.native import run_native


def kinks(objective: Objective) -> list[tuple[Array, Array, Array]]:
    """The kinks (a, lo, hi) of the objective's loss, example by example, as the core takes them."""
    return [
        (np.ascontiguousarray(k.at), np.ascontiguousarray(k.low), np.ascontiguousarray(k.high))
        for k in objective.loss.kinks(objective.y)
    ]


class InteriorPoint(Solver):
    """Some twenty Newton steps on the optimality conditions, whatever the conditioning; n d² operations each."""

    name: ClassVar[str] = "interior-point"
    factors: ClassVar[bool] = True
    needs: ClassVar[tuple[Need, ...]] = (Need.PIECEWISE_LINEAR, Need.COORDINATES, Need.ONE_OUTPUT)
    default_max_iter: ClassVar[int] = 100

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        return run_native(core.interior_point, objective, w, b, stop, kinks=kinks(objective), tol=0.3 * stop.tol)
