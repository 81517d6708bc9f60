"""What a solver is, what it needs, and what it returns."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
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
    RULE = "The stopping rule that was given was met; drop it to go on to the tolerance."
    UNBOUNDED = "The objective has no minimiser (for example separable classes without a penalty); add a penalty."
    BUDGET = "This method stops after its budget of steps, not at a tolerance; use another solver for a tight gap."


class Need(enum.Enum):
    """What a solver may require of an objective; the value says it in words."""

    GRADIENT = "a differentiable loss"
    SECOND = "a loss with a second derivative"
    FISHER = "a likelihood with a Fisher information (hg.GLM makes them)"
    CONVEX = "a convex loss and penalty"
    SMOOTH_PENALTY = "a differentiable penalty (NoPenalty or L2)"
    COORDINATES = "a penalty that is a sum over single weights (L1, L2, Elastic, Box, NoPenalty)"
    SQUARED = "the Squared loss"
    SOFTMAX = "the Softmax loss"
    HINGE = "the Hinge loss"
    RIDGE = "an L2 penalty or none"
    UNBOUNDED = "a penalty without bounds on the weights (L1, L2, Elastic, NoPenalty)"
    ONE_OUTPUT = "one score per example"
    NO_OFFSET = "no offset"
    BOUNDED_CURVATURE = "a loss whose second derivative is bounded"
    STRONGLY_CONVEX = "an L2 part in the penalty for every weight"
    ROWS = "rows that can be read one at a time (a row-major array or a CSR matrix)"
    PIECEWISE_LINEAR = "a piecewise linear loss (Hinge, Absolute, Quantile, EpsilonInsensitive …)"
    CONJUGATE = "a loss and a penalty with known conjugates"
    SUBGRADIENT = "a penalty with a subgradient (L1, L2, Elastic, NoPenalty, without positive=True)"
    PROJECTION = "a penalty that splits into a projection and a smooth part (L1, L2, Elastic, Box, L1Ball, L2Ball)"
    QUADRATIC = "a loss of straight lines and parabolas (Squared, Huber, Absolute, Quantile, Hinge, SquaredHinge, …)"

    def met_by(self, objective: Objective) -> bool:
        loss, penalty = objective.loss, objective.penalty
        coordinates = penalty.coordinates(objective.d)

        def unbounded() -> bool:
            if coordinates is None:
                return False
            return bool(np.all(np.isinf(coordinates.lower)) and np.all(np.isinf(coordinates.upper)))

        return {
            Need.GRADIENT: lambda: loss.smooth,
            Need.SECOND: lambda: loss.twice and loss.smooth,
            Need.FISHER: lambda: bool(getattr(loss, "fisher", False)),
            Need.CONVEX: lambda: loss.convex and penalty.convex,
            Need.SMOOTH_PENALTY: lambda: penalty.smooth,
            Need.COORDINATES: lambda: coordinates is not None,
            Need.SQUARED: lambda: type(loss).__name__ == "Squared",
            Need.SOFTMAX: lambda: type(loss).__name__ == "Softmax",
            Need.HINGE: lambda: type(loss).__name__ == "Hinge",
            Need.RIDGE: lambda: unbounded() and not np.any(coordinates.l1),  # type: ignore[union-attr]
            Need.UNBOUNDED: unbounded,
            Need.ONE_OUTPUT: lambda: objective.outputs == 1,
            Need.NO_OFFSET: lambda: objective.offset is None,
            Need.BOUNDED_CURVATURE: lambda: bool(np.isfinite(loss.curvature)),
            Need.STRONGLY_CONVEX: lambda: coordinates is not None and bool(np.all(coordinates.l2 > 0)),
            Need.ROWS: lambda: objective.design.native.has_rows,
            Need.PIECEWISE_LINEAR: lambda: type(loss).__name__ in PIECEWISE_LINEAR,
            Need.CONJUGATE: lambda: loss.has_conjugate and penalty.has_conjugate,
            Need.SUBGRADIENT: unbounded,
            Need.PROJECTION: lambda: coordinates is not None or type(penalty).__name__ in BALLS,
            Need.QUADRATIC: lambda: type(loss).__name__ in QUADRATIC_LOSSES,
        }[self]()


PIECEWISE_LINEAR = ("Hinge", "PerceptronLoss", "Absolute", "Quantile", "EpsilonInsensitive", "RelativeError")
# Losses that a quadratic program can express with slack variables (solve/quadratic_program.py).
QUADRATIC_LOSSES = (
    "Squared", "SquaredMargin", "Huber", "Absolute", "Quantile", "RelativeError", "EpsilonInsensitive",
    "SquaredEpsilonInsensitive", "Hinge", "SquaredHinge",
)  # fmt: skip
BALLS = ("L1Ball", "L2Ball")


@dataclass(frozen=True)
class Record:
    """One line of a history. Callbacks also see the iterate, where the solver has it at hand; histories drop it."""

    iteration: int
    seconds: float
    objective: float
    gap: float  # relative gap or residual; nan where it was not computed
    w: Array | None = field(default=None, repr=False, compare=False)
    b: Array | None = field(default=None, repr=False, compare=False)


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

    def report(
        self, iteration: int, objective: float, gap: float = np.nan, w: Array | None = None, b: Array | None = None
    ) -> bool:
        """Take note of an iteration; True if somebody wants the solver to stop."""
        record = Record(iteration, time.perf_counter() - self.began, objective, gap)
        if self.keep_history:
            self.records.append(record)
        return self.callback is not None and bool(self.callback(replace(record, w=w, b=b)))

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
    """Base class: a name, a list of needs, and ``run``.

    Solvers with options are frozen dataclasses, so that a configured one can be passed wherever a name can:
    ``solver="gradient-descent"`` or ``solver=hg.GradientDescent(step=0.1)``.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]] = ()
    default_max_iter: ClassVar[int] = 1000
    iterative: ClassVar[bool] = True  # whether it matters where it starts

    def missing(self, objective: Objective) -> list[Need]:
        """The needs that this objective does not meet."""
        return [need for need in self.needs if not need.met_by(objective)]

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        """Minimise from the start (w, b), which it may overwrite."""
        raise NotImplementedError
