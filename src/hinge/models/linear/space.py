"""The space of linear functions for the learner: minimises over w and b."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge._native import Design
from hinge.models.base import keep_float32
from hinge.models.learner import Fit, Task, minimise
from hinge.problem.objective import make_objective
from hinge.problem.spaces import Linear
from hinge.solvers.run import Result, solve


@dataclass(frozen=True)
class LinearFunction:
    """f(x) = ⟨w, x⟩ + b, with one column of w per output."""

    w: np.ndarray
    b: np.ndarray

    def scores(self, X: Any) -> np.ndarray:
        z = Design(X).matmul(self.w)
        return z + (self.b[0] if self.w.ndim == 1 else self.b)


@minimise.register
def _(space: Linear, task: Task) -> Fit:
    objective = make_objective(
        task.X, task.y, task.loss, task.penalty,
        sample_weight=task.sample_weight, fit_intercept=space.fit_intercept, classes=task.classes,
    )  # fmt: skip
    result = solve(
        objective, solver=task.solver, tol=task.tol, max_iter=task.max_iter,
        random_state=task.random_state, history=task.history, callback=task.callback,
    )  # fmt: skip
    return linear_fit(result, task.X, history=task.history)


def linear_fit(result: Result, X: Any, *, history: bool) -> Fit:
    """The function and the fitted attributes of a solution, in the precision of X."""
    attributes: dict[str, Any] = {
        "coef_": keep_float32(result.w.T, X),
        "intercept_": keep_float32(result.b, X) if result.w.ndim == 2 else float(result.b[0]),
        "n_iter_": max(result.solution.iterations, 1),
    }
    if history:
        attributes["history_"] = result.solution.history
    return Fit(LinearFunction(result.w, result.b), result.certificate, attributes)
