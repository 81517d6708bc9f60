"""Gradient descent.

Problem     min_x J(x), x = (w, b), J differentiable
Step        x ← x − η_k ∇J(x)
Optimality  ∇J = 0
Rate        with ∇J L-Lipschitz, J convex and η ≤ 1/L:  J(x_k) − J* ≤ ‖x₀ − x*‖² / (2ηk)
Returns     the last iterate, or the best one on held-out data
Reference   Nesterov (2004), theorem 2.1.14
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Need, Solution, Solver, Status, Stop
from hinge.solvers.line_search import Step, backtracking, exact
from hinge.solvers.loop import Run
from hinge.solvers.packing import Flat
from hinge.solvers.stopping import Rule


@dataclass(frozen=True)
class GradientDescent(Solver):
    """Gradient descent with every textbook choice of the step.

    Parameters
    ----------
    step : float, callable, "backtracking", "exact" or None
        A fixed η; a function k ↦ η_k of the iteration 1, 2, …; a line search; by default 1/L if the gradient's
        Lipschitz constant L is known, and backtracking if not.
    rules : Rule or tuple of rules
        When to stop before the tolerance of the certificate is met: ``GradientNorm``, ``ObjectiveChange``,
        ``ParameterChange``, ``HeldOutLoss``.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 2.0])
    >>> solver = hg.solvers.GradientDescent(step=0.5, rules=hg.solvers.GradientNorm(1e-8))
    >>> model = hg.Learner(loss=hg.Squared(), solver=solver).fit(X, y)
    >>> bool(abs(model.coef_[0] - 1) < 1e-6)
    True
    """

    step: float | Callable[[int], float] | str | None = None
    rules: tuple[Rule, ...] | Rule = ()

    name: ClassVar[str] = "gradient-descent"
    needs: ClassVar[tuple[Need, ...]] = (Need.GRADIENT, Need.SMOOTH_PENALTY)
    default_max_iter: ClassVar[int] = 10_000

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        run = Run(objective, stop, self.rules)
        flat = run.flat
        x = flat.pack(w, b)
        move = self._mover(flat)
        value, g = flat.value_gradient(x)
        status = run.over(0, x, value, float(np.linalg.norm(g)))
        k = 0
        while status is None and k < stop.max_iter:
            k += 1
            step = move(k, x, value, g)
            if step.length == 0.0:
                status = Status.STALLED
                break
            x = x - step.length * g
            value, g = step.value, step.gradient
            if not np.isfinite(value):
                raise FloatingPointError(
                    f"Gradient descent diverged at iteration {k}: the step is too long. "
                    "Give a smaller step, or step='backtracking'."
                )
            status = run.over(k, x, value, float(np.linalg.norm(g)))
        return run.solution(x, status, k)

    def _mover(self, flat: Flat) -> Callable[[int, Array, float, Array], Step]:
        step = self.step
        if step is None:
            bound = flat.curvature_bound()
            step = 1.0 / bound if np.isfinite(bound) and bound > 0 else "backtracking"
        if isinstance(step, str):
            if step not in ("backtracking", "exact"):
                raise ValueError(f"step={step!r} is unknown; give a number, a function, 'backtracking' or 'exact'.")
            return _Backtracking(flat) if step == "backtracking" else lambda k, x, value, g: _exact(flat, x, g)
        length = step if callable(step) else lambda k: step
        return lambda k, x, value, g: _fixed(flat, x, g, float(length(k)))


def _fixed(flat: Flat, x: Array, g: Array, length: float) -> Step:
    if not length > 0:
        raise ValueError(f"the step must be greater than zero, got {length}.")
    return Step(length, *flat.value_gradient(x - length * g))


def _exact(flat: Flat, x: Array, g: Array) -> Step:
    length = exact(flat, x, -g)
    return Step(length, *flat.value_gradient(x - length * g))


class _Backtracking:
    """Starts every search at twice the last step."""

    def __init__(self, flat: Flat) -> None:
        self._flat, self._start = flat, 1.0

    def __call__(self, k: int, x: Array, value: float, g: Array) -> Step:
        step = backtracking(self._flat, x, value, g, -g, self._start)
        self._start = 2.0 * step.length if step.length > 0 else 1.0
        return step
