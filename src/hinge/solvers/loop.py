"""The end of an iteration of every iterative method: report it, check the stopping rules, compute the certificate."""

from __future__ import annotations

import numpy as np

from hinge.problem.numerics import OVERFLOWED
from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Solution, Status, Stop
from hinge.solvers.packing import Flat
from hinge.solvers.stopping import Rule, State, Watches


class Run:
    """One run of an iterative method on an objective.

    The certificate is computed at iteration ``first`` and then at growing intervals, so that it never dominates.
    """

    def __init__(
        self,
        objective: Objective,
        stop: Stop,
        rules: tuple[Rule, ...] | Rule = (),
        first: int = 0,
        every: int = 5,
        bias_unit: float = 1.0,
    ) -> None:
        self.flat = Flat(objective, bias_unit)
        self._objective, self._stop = objective, stop
        self._watches = Watches(rules, objective)
        self._next, self._every = first, every

    def due(self, k: int) -> bool:
        """Whether the certificate is computed after iteration k."""
        return k >= self._next

    def over(
        self,
        k: int,
        x: Array,
        value: float,
        gradient_norm: float = np.nan,
        dual: Array | None = None,
        promising: bool = True,
    ) -> Status | None:
        """Whether the run is over after iteration k (0: before the first) at x, and why.

        The certificate is skipped if the method knows that the gap is still too wide (``promising=False``).
        """
        if not np.isfinite(np.sum(x)) and not np.all(np.isfinite(x)):  # every comparison with NaN would be false
            raise ValueError(OVERFLOWED)
        w, b = self.flat.unpack(x)
        gap, converged = np.nan, False
        if self.due(k) and promising:
            self._next = k + max(self._every, k // 4)
            certified = self._stop.certify(self._objective, w, b, dual)
            gap, converged = certified.error, certified.converged
        if k > 0 and self._stop.report(k, value, gap, w, b):
            return Status.STOPPED
        if converged:
            return Status.CONVERGED
        return Status.RULE if self._watches(State(value, gradient_norm, x, w, b)) else None

    def solution(self, x: Array, status: Status | None, iterations: int, dual: Array | None = None) -> Solution:
        """The solution at x; None means that the iterations ran out."""
        w, b = self.flat.unpack(x)
        w, b = self._watches.final(w, b) if status in (Status.RULE, None) else (w, b)
        return Solution(w.copy(), b.copy(), status or Status.MAX_ITER, iterations, dual)
