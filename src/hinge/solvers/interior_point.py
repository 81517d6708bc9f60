"""A primal-dual interior point method for piecewise linear losses.

Problem     min_{w,b} Σ cᵢ ℓ(yᵢ, zᵢ) + Σ_j l1_j |w_j| + ½ l2_j w_j² on [lower, upper],   ℓ(z) = Σ_k max {u (z − a_k) : lo_k ≤ u ≤ hi_k}
Optimality  l2∘w + l1∘∂|w| + X'(c∘u) ∋ 0, Σ cᵢ uᵢ = 0, and u at an end of its interval unless z is at the kink
Wide        with more columns than rows, all of them penalised, the Newton equations are reduced to the rows. With very
            many columns under an L1 penalty at most n + 1 have weights: the problem is solved for some columns, and
            those with |X'(c∘u)|_j > l1_j join until the gap over all columns is small (column generation)
Returns     w, b and dual variables u strictly inside their intervals: a dual point
Reference   Mehrotra (1992); Nocedal & Wright (2006), algorithm 16.4; native/solvers/interior_point.hpp
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from hinge._native import Design, core
from hinge.problem.certificates.linear import certificate
from hinge.problem.objective import Array, Objective
from hinge.problem.penalties import L1, Elastic
from hinge.solvers.base import Need, Solution, Solver, Status, Stop
from hinge.solvers.native import run_native

WIDE = 50  # columns per row from which on column generation is used
ROUNDS = 50
TIGHTER = 1e-2  # the tolerance of a last round


def kinks(objective: Objective) -> list[tuple[Array, Array, Array]]:
    """The kinks (a, lo, hi) of the objective's loss for every example, in the form the core takes."""
    return [
        (np.ascontiguousarray(k.at), np.ascontiguousarray(k.low), np.ascontiguousarray(k.high))
        for k in objective.loss.kinks(objective.y)
    ]


class InteriorPoint(Solver):
    """About twenty Newton steps of n d min(n, d) operations on the optimality conditions, whatever the conditioning."""

    name: ClassVar[str] = "interior-point"
    shifts: ClassVar[bool] = True
    factors: ClassVar[bool] = True
    needs: ClassVar[tuple[Need, ...]] = (Need.PIECEWISE_LINEAR, Need.COORDINATES, Need.ONE_OUTPUT)
    default_max_iter: ClassVar[int] = 100

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        parts = objective.penalty.coordinates(objective.d)
        narrow = objective.d <= WIDE * objective.n
        if narrow or not isinstance(objective.penalty, L1 | Elastic) or parts is None or not np.all(parts.l1 > 0):
            return self._run(objective, w, b, stop)
        return self._generate(objective, w, b, stop, parts.l1)

    def _run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        return run_native(core.interior_point, objective, w, b, stop, kinks=kinks(objective), tol=0.3 * stop.tol)

    def _generate(self, objective: Objective, w: Array, b: Array, stop: Stop, l1: Array) -> Solution:
        """Column generation: few columns have weights, and an iteration over all columns costs n² d operations.

        The limit on iterations applies to every round; the longest one is reported.
        """
        inside = np.zeros(objective.d, dtype=bool)
        u, longest = objective.gradient_of_scores(objective.scores(w, b)), 0
        for _ in range(ROUNDS):
            excess = np.where(inside, 0.0, np.abs(objective.design.rmatmul(objective.c * u)) - l1)
            fresh = np.argsort(-excess)[: objective.n]
            inside[fresh[excess[fresh] > 0] if inside.any() else fresh] = True
            which = np.flatnonzero(inside)
            # If no column is missing, the gradients of the columns inside exceed l1 by too much: tighten the tolerance.
            last = not np.any(excess > 0)
            rule = replace(stop, tol=TIGHTER * stop.tol) if last else stop
            part = self._run(_restricted(objective, which), w[which], b, rule)
            w, longest = np.zeros(objective.d), max(longest, part.iterations)
            w[which] = part.w
            found = Solution(w, part.b, part.status, longest, part.dual)
            if part.dual is None or part.status in (Status.STOPPED, Status.MAX_ITER):
                break
            if last or certificate(objective, w, part.b, dual=part.dual, tol=stop.tol).converged:
                break
            u = part.dual
        return found


def _restricted(objective: Objective, which: np.ndarray) -> Objective:
    """The problem restricted to some of the columns."""
    penalty = objective.penalty
    assert isinstance(penalty, L1 | Elastic)
    if penalty.weights is not None:
        penalty = replace(penalty, weights=np.asarray(penalty.weights)[which])
    return replace(objective, design=Design(np.ascontiguousarray(objective.design.columns(which))), penalty=penalty)
