"""L-BFGS: a quasi-Newton method with the memory of the last few steps.

Problem     min_x J(x), x = (w, b), J differentiable
Direction   p = −H ∇J, where H is the inverse Hessian that m pairs (s, y) = (x₊ − x, ∇J₊ − ∇J) imply (two loops)
Step        strong Wolfe line search, so that s'y > 0
Optimality  ∇J = 0
Returns     the last iterate
Reference   Nocedal & Wright (2006), algorithms 7.4 and 7.5
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hinge.problem.objective import Array, Objective
from hinge.solve.base import Need, Solution, Solver, Status, Stop
from hinge.solve.line_search import wolfe
from hinge.solve.loop import Run
from hinge.solve.stopping import Rule

Pair = tuple[Array, Array, float]


@dataclass(frozen=True)
class LBFGS(Solver):
    """Limited-memory BFGS for differentiable losses and penalties, with one or several outputs.

    Parameters
    ----------
    memory : int
        How many pairs of steps and gradient changes to keep.
    rules : Rule or tuple of rules
        When to stop before the tolerance of the certificate is met.
    """

    memory: int = 10
    rules: tuple[Rule, ...] | Rule = ()

    name: ClassVar[str] = "lbfgs"
    needs: ClassVar[tuple[Need, ...]] = (Need.GRADIENT, Need.SMOOTH_PENALTY)
    default_max_iter: ClassVar[int] = 2000

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        run = Run(objective, stop, self.rules)
        x = run.flat.pack(w, b)
        value, g = run.flat.value_gradient(x)
        pairs: deque[Pair] = deque(maxlen=self.memory)
        status = run.over(0, x, value, float(np.linalg.norm(g)))
        k = 0
        while status is None and k < stop.max_iter:
            p = -two_loops(g, pairs)
            if g @ p >= 0:  # rounding has spoilt the memory
                pairs.clear()
                p = -g
            start = 1.0 if pairs else min(1.0, 1.0 / max(float(np.abs(g).sum()), 1e-300))
            step = wolfe(run.flat, x, value, g, p, start)
            if step.length == 0.0:
                if not pairs:
                    status = Status.STALLED
                pairs.clear()
                continue
            k += 1
            s, y = step.length * p, step.gradient - g
            if s @ y > 1e-10 * np.sqrt((s @ s) * (y @ y)):
                pairs.append((s, y, 1.0 / float(s @ y)))
            x, value, g = x + s, step.value, step.gradient
            status = run.over(k, x, value, float(np.linalg.norm(g)))
        return run.solution(x, status, k)


def two_loops(g: Array, pairs: deque[Pair]) -> Array:
    """H g, without ever forming H."""
    q, factors = g.copy(), []
    for s, y, rho in reversed(pairs):
        a = rho * float(s @ q)
        factors.append(a)
        q -= a * y
    if pairs:
        s, y, rho = pairs[-1]
        q *= 1.0 / (rho * float(y @ y))
    for (s, y, rho), a in zip(pairs, reversed(factors)):
        q += (a - rho * float(y @ q)) * s
    return q
