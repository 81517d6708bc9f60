"""What a solver is, what it needs, and what it returns."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from hinge.problem.certificate import Certificate, certificate
from hinge.problem.objective import Array, Objective


class Status(enum.Enum):
    """How a run ended; the value is a sentence a user can act on."""

    CONVERGED = "The tolerance was met."
    MAX_ITER = "The iteration limit was reached; raise max_iter, loosen tol, or scale the features to similar size."
    STALLED = "No further progress is possible in floating point; loosen tol or scale the features to similar size."
    STOPPED = "A callback asked to stop."
    UNBOUNDED = "The objective has no minimiser (for example separable classes without a penalty); add a penalty."
    BUDGET = "This method stops after its budget of steps, not at a tolerance; use another solver for a tight gap."


class Need(enum.Enum):
    """What a solver may require of an objective; the value says it in words."""

    GRADIENT = "a differentiable loss"
    SECOND = "a loss with a second derivative"
    CONVEX = "a convex loss and penalty"
    SMOOTH_PENALTY = "a differentiable penalty (NoPenalty or L2)"
    COORDINATES = "a penalty that is a sum over single weights (L1, L2, ElasticNet, Box, NoPenalty)"
    SQUARED = "the Squared loss"
    RIDGE = "an L2 penalty or none"
    ONE_OUTPUT = "one score per example"
    BOUNDED_CURVATURE = "a loss whose second derivative is bounded"
    STRONGLY_CONVEX = "an L2 part in the penalty for every weight"
    NATIVE_DUAL = "a loss with a coordinate-wise dual step"
    PIECEWISE_LINEAR = "a piecewise linear loss (Hinge, Absolute, Quantile, EpsilonInsensitive …)"
    CONJUGATE = "a loss and a penalty with known conjugates"

    def met_by(self, objective: Objective) -> bool:
        loss, penalty = objective.loss, objective.penalty
        coordinates = penalty.coordinates(objective.d)
        return {
            Need.GRADIENT: lambda: loss.smooth,
            Need.SECOND: lambda: loss.twice and loss.smooth,
            Need.CONVEX: lambda: loss.convex and penalty.convex,
            Need.SMOOTH_PENALTY: lambda: penalty.smooth,
            Need.COORDINATES: lambda: coordinates is not None,
            Need.SQUARED: lambda: type(loss).__name__ == "Squared",
            Need.RIDGE: lambda: (
                coordinates is not None
                and not np.any(coordinates.l1)
                and bool(np.all(np.isinf(coordinates.lower)) and np.all(np.isinf(coordinates.upper)))
            ),
            Need.ONE_OUTPUT: lambda: objective.outputs == 1,
            Need.BOUNDED_CURVATURE: lambda: bool(np.isfinite(loss.curvature)),
            Need.STRONGLY_CONVEX: lambda: coordinates is not None and bool(np.all(coordinates.l2 > 0)),
            Need.NATIVE_DUAL: lambda: type(loss).__name__ in DUAL_LOSSES,
            Need.PIECEWISE_LINEAR: lambda: type(loss).__name__ in PIECEWISE_LINEAR,
            Need.CONJUGATE: lambda: loss.has_conjugate and penalty.has_conjugate,
        }[self]()


# Losses whose one-variable dual problem has a closed form or a quick inner Newton (native/solve/dual_coordinate).
DUAL_LOSSES = ("Hinge", "SquaredHinge", "Logistic", "Squared", "Absolute", "EpsilonInsensitive", "Quantile", "Huber")

PIECEWISE_LINEAR = ("Hinge", "PerceptronLoss", "Absolute", "Quantile", "EpsilonInsensitive", "RelativeError")


@dataclass(frozen=True)
class Record:
    """One line of a history."""

    iteration: int
    seconds: float
    objective: float
    gap: float  # relative gap or residual; nan where it was not computed


@dataclass
class Stop:
    """When a solver should end, and whom it tells about its progress."""

    tol: float = 1e-6
    max_iter: int = 1000
    callback: Callable[[Record], bool] | None = None
    keep_history: bool = False
    random_state: int = 0
    records: list[Record] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)

    def report(self, iteration: int, objective: float, gap: float = np.nan) -> bool:
        """Take note of an iteration; True if somebody wants the solver to stop."""
        record = Record(iteration, time.perf_counter() - self.began, objective, gap)
        if self.keep_history:
            self.records.append(record)
        return self.callback is not None and bool(self.callback(record))

    @property
    def watched(self) -> bool:
        """Whether anybody looks at single iterations."""
        return self.keep_history or self.callback is not None

    def judge(self, objective: Objective, w: Array, b: Array, dual: Array | None = None) -> Certificate:
        """Ask the judge. Solvers may use this to decide when to stop; the answer is computed again at the end."""
        return certificate(objective, w, b, dual=dual, tol=self.tol)


@dataclass(frozen=True)
class Solution:
    """What a solver returns: weights, bias, slopes for the judge where it has them, and how it ended."""

    w: Array
    b: Array
    status: Status
    iterations: int
    dual: Array | None = None
    history: tuple[Record, ...] = ()


class Solver:
    """Base class: a name, a list of needs, and ``run``."""

    name: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]] = ()

    def missing(self, objective: Objective) -> list[Need]:
        """The needs that this objective does not meet."""
        return [need for need in self.needs if not need.met_by(objective)]

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        """Minimise from the start (w, b), which it may overwrite."""
        raise NotImplementedError
