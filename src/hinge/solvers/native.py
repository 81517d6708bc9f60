"""Conversions between :class:`Objective` and the compiled solvers of linear problems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hinge._native import core
from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Solution, Status, Stop

# The order of native/solvers/problem.hpp: enum class Outcome.
OUTCOMES = (Status.CONVERGED, Status.MAX_ITER, Status.STALLED, Status.STOPPED, Status.UNBOUNDED)


def native_problem(objective: Objective) -> Any:
    """The objective in the form the core takes. The penalty must be a sum over single weights."""
    coordinates = objective.penalty.coordinates(objective.d)
    assert coordinates is not None
    parts = [np.ascontiguousarray(part, dtype=np.float64) for part in coordinates]
    return core.LinearProblem(
        objective.design.native,
        objective.y,
        objective.c,
        objective.offset,
        objective.native,
        objective.fit_intercept,
        *parts,
    )


def native_report(stop: Stop) -> Callable[[int, float, float], bool] | None:
    """A progress callback for the core; None without callback or history, so that iterations stay in compiled code."""
    if not stop.watched:
        return None
    return lambda iteration, objective, gap: stop.report(iteration, objective, gap if gap >= 0 else np.nan)


def run_native(
    function: Callable[..., Any], objective: Objective, w: Array, b: Array, stop: Stop, **options: Any
) -> Solution:
    """Call a compiled solver and wrap its result."""
    weights, bias, outcome, iterations, dual = function(
        native_problem(objective),
        np.ascontiguousarray(w, dtype=np.float64),
        float(b[0]),
        max_iter=stop.max_iter,
        report=native_report(stop),
        **options,
    )
    return Solution(weights, np.array([bias]), OUTCOMES[outcome], iterations, dual)
