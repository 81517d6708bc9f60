"""L-BFGS: a quasi-Newton method that stores the last few steps.

Problem     min_x J(x), x = (w, b), J differentiable
Direction   p = −H ∇J, where H is the inverse Hessian implied by m pairs (s, y) = (x₊ − x, ∇J₊ − ∇J) (two loops)
            around an initial H₀: a multiple of the identity, or of the factored Hessian at zero weights
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
import scipy.linalg

from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Need, Solution, Solver, Status, Stop
from hinge.solvers.line_search import wolfe
from hinge.solvers.loop import Run
from hinge.solvers.stopping import Rule

Pair = tuple[Array, Array, float]


@dataclass(frozen=True)
class LBFGS(Solver):
    """Limited-memory BFGS for differentiable losses and penalties, with one or several outputs.

    Parameters
    ----------
    memory : int
        How many pairs of steps and gradient changes to keep.
    precondition : bool
        Start from the Hessian of a sample of rows at zero weights (d × d, shared by all outputs) instead of the
        identity: fewer iterations where features differ in scale or are correlated. Used up to 3000 features.
    rules : Rule or tuple of rules
        When to stop before the tolerance of the certificate is met.
    """

    memory: int = 10
    precondition: bool = True
    rules: tuple[Rule, ...] | Rule = ()

    name: ClassVar[str] = "lbfgs"
    shifts: ClassVar[bool] = True
    needs: ClassVar[tuple[Need, ...]] = (Need.GRADIENT, Need.SMOOTH_PENALTY)
    default_max_iter: ClassVar[int] = 2000

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        run = Run(objective, stop, self.rules)
        x = run.flat.pack(w, b)
        value, g = run.flat.value_gradient(x)
        pairs: deque[Pair] = deque(maxlen=self.memory)
        guess = HessianGuess(objective) if self.precondition and _can_factor(objective) else None
        status = run.over(0, x, value, float(np.linalg.norm(g)))
        k = 0
        while status is None and k < stop.max_iter:
            p = -two_loops(g, pairs, guess)
            if g @ p >= 0:  # rounding has corrupted the pairs
                pairs.clear()
                p = -g
            start = 1.0 if pairs or guess is not None else min(1.0, 1.0 / max(float(np.abs(g).sum()), 1e-300))
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
            status = run.over(k, x, value, float(np.linalg.norm(g)), promising=_promising(objective, g, value, stop))
        return run.solution(x, status, k)


class HessianGuess:
    """H₀⁻¹ = κ (X'CX over a sample of rows) + L2, for every output alike; κ is the loss's curvature at zero scores."""

    def __init__(self, objective: Objective) -> None:
        o = self._objective = objective
        self._curvature = (1.0 / o.outputs) if o.loss.outputs == "classes" else min(o.loss.curvature, 1.0)
        wanted = min(1.0, max(ROWS_PER_FEATURE * o.d, 2000) / o.n)
        chosen = np.random.default_rng(0).random(o.n) < wanted
        gram = o.design.gram(np.where(chosen, o.c / wanted, 0.0)) * self._curvature
        coordinates = o.penalty.coordinates(o.d)
        ridge = np.zeros(o.d) if coordinates is None else coordinates.l2
        gram[np.diag_indices(o.d)] += ridge + 1e-3 * self._curvature * np.trace(gram) / o.d
        self._factor = scipy.linalg.cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, g: Array) -> Array:
        """H₀ g."""
        size = self._objective.d * self._objective.outputs
        w = scipy.linalg.cho_solve(self._factor, g[:size].reshape(self._objective.d, -1), check_finite=False)
        return np.concatenate([w.ravel(), g[size:] / self._curvature])


# Rows per feature in the sampled Hessian: a preconditioner need not be accurate.
ROWS_PER_FEATURE = 10


def _can_factor(objective: Objective) -> bool:
    dense = not objective.design.sparse and 20 <= objective.d <= 3000
    return (
        dense and bool(np.isfinite(objective.loss.curvature)) and objective.penalty.coordinates(objective.d) is not None
    )


def _promising(objective: Objective, g: Array, value: float, stop: Stop) -> bool:
    """Whether the certified gap may be small: with a ridge it contains |∇J|² / 2λ, which is already known."""
    coordinates = objective.penalty.coordinates(objective.d)
    if coordinates is None or not np.all(coordinates.l2 > 0):
        return True
    gradient = g[: objective.d * objective.outputs].reshape(objective.d, -1)
    return float(np.sum(gradient**2 / (2.0 * coordinates.l2[:, None]))) <= 2.0 * stop.tol * abs(value)


def two_loops(g: Array, pairs: deque[Pair], guess: HessianGuess | None = None) -> Array:
    """H g, without ever forming H."""
    q, factors = g.copy(), []
    for s, y, rho in reversed(pairs):
        a = rho * float(s @ q)
        factors.append(a)
        q -= a * y
    if guess is not None:
        q = guess.solve(q)
    if pairs:
        s, y, rho = pairs[-1]
        q *= 1.0 / (rho * float(y @ (y if guess is None else guess.solve(y))))
    for (s, y, rho), a in zip(pairs, reversed(factors)):
        q += (a - rho * float(y @ q)) * s
    return q
