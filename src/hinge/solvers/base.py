"""The interface of solvers: what they require, how they are stopped, and what they return."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from hinge.problem.certificates.certificate import Certificate
from hinge.problem.certificates.linear import certificate
from hinge.problem.cost import factor_flops, gram_flops, pass_flops
from hinge.problem.losses import Hinge, Loss, Softmax, Squared
from hinge.problem.objective import Array, Objective
from hinge.problem.penalties.base import Coordinates


class Status(enum.Enum):
    """How a run ended; the value is a sentence a user can act on."""

    CONVERGED = "The tolerance was met."
    MAX_ITER = "The iteration limit was reached; raise max_iter, loosen tol, or scale the features to similar size."
    STALLED = "No further progress is possible in floating point; loosen tol or scale the features to similar size."
    SHORT = (
        "The solver's own rule was met, but the certificate is wider; loosen tol or scale the features to similar size."
    )
    STOPPED = "A callback requested the stop."
    RULE = "The stopping rule that was given was met; drop it to go on to the tolerance."
    UNBOUNDED = "The objective has no minimiser (for example separable classes without a penalty); add a penalty."
    UNPROVED = (
        "The solver's own rule was met; the proof costs more than a tenth of the fit: see certificate(…, exact=True)."
    )
    BUDGET = "This method stops after its budget of steps, not at a tolerance; use another solver for a tight gap."


class Need(enum.Enum):
    """A requirement of a solver on the objective; the value is a description."""

    GRADIENT = "a differentiable loss"
    SECOND = "a loss with a second derivative"
    FISHER = "a likelihood with a Fisher information (hg.GLM makes them)"
    CONVEX = "a convex loss and penalty"
    CONVEX_LOSS = "a convex loss"
    SPARSE_PENALTY = "an Lq or L0 penalty"
    SEPARABLE = "a penalty that is a sum over outputs (L1, L2, Elastic, Box, NoPenalty, Lq, L0)"
    SEVERAL_OUTPUTS = "several outputs"
    SINGLE_SCORES = "a loss of one score at a time"
    LOSS_PROX = "a loss of one score at a time, or one with a prox over classes (MulticlassHinge)"
    SMOOTH_PENALTY = "a differentiable penalty (NoPenalty or L2)"
    COORDINATES = "a penalty that is a sum over single weights (L1, L2, Elastic, Box, NoPenalty)"
    SQUARED = "the Squared loss"
    SOFTMAX = "the Softmax loss"
    HINGE = "the Hinge loss"
    RIDGE = "an L2 penalty or none"
    ROW_NORMS = "a penalty on the norm of every feature's weights, above zero (GroupNorm without groups)"
    UNBOUNDED = "a penalty without bounds on the weights (L1, L2, Elastic, NoPenalty)"
    ONE_OUTPUT = "one score per example"
    NO_OFFSET = "no offset"
    BOUNDED_CURVATURE = "a loss whose second derivative is bounded"
    STRONGLY_CONVEX = "an L2 part in the penalty for every weight"
    ROWS = "rows that can be read one at a time (a row-major array or a CSR matrix)"
    PIECEWISE_LINEAR = "a piecewise linear loss (Hinge, Absolute, Quantile, EpsilonInsensitive …)"
    KINKS = "a piecewise linear loss, or one with kinks that parabolas round off (SquaredHinge, Huber …)"
    CONJUGATE = "a loss and a penalty with known conjugates"
    SUBGRADIENT = "a penalty with a subgradient (L1, L2, Elastic, NoPenalty, without positive=True)"
    PROJECTION = "a penalty that splits into a projection and a smooth part (L1, L2, Elastic, Box, L1Ball, L2Ball)"
    QUADRATIC = "a loss of straight lines and parabolas (Squared, Huber, Absolute, Quantile, Hinge, SquaredHinge, …)"

    def met_by(self, objective: Objective) -> bool:
        return _MET[self](objective)


def _in_coordinates(rule: Callable[[Coordinates], Any]) -> Callable[[Objective], bool]:
    """A need that holds if the penalty is a sum over single weights and the rule holds for its coordinates."""

    def met(objective: Objective) -> bool:
        coordinates = objective.penalty.coordinates(objective.d)
        return coordinates is not None and bool(rule(coordinates))

    return met


def _unbounded(parts: Coordinates) -> Any:
    return np.isinf(parts.lower).all() and np.isinf(parts.upper).all()


def _has_row_norms(objective: Objective) -> bool:
    rows = objective.penalty.rows(objective.d)
    return rows is not None and bool(np.all(rows.l1 > 0))


_MET: dict[Need, Callable[[Objective], bool]] = {
    Need.GRADIENT: lambda o: o.loss.smooth,
    Need.SECOND: lambda o: o.loss.twice_differentiable and o.loss.smooth,
    Need.FISHER: lambda o: bool(getattr(o.loss, "fisher", False)),
    Need.CONVEX: lambda o: o.loss.convex and o.penalty.convex,
    Need.SMOOTH_PENALTY: lambda o: o.penalty.smooth,
    Need.CONVEX_LOSS: lambda o: o.loss.convex,
    Need.SPARSE_PENALTY: lambda o: o.penalty.concave,
    Need.SEPARABLE: lambda o: o.penalty.concave or o.penalty.coordinates(o.d) is not None,
    Need.SEVERAL_OUTPUTS: lambda o: o.outputs > 1,
    Need.SINGLE_SCORES: lambda o: o.loss.outputs == "one",
    Need.LOSS_PROX: lambda o: o.loss.outputs == "one" or type(o.loss).prox is not Loss.prox,
    Need.COORDINATES: _in_coordinates(lambda parts: True),
    Need.SQUARED: lambda o: isinstance(o.loss, Squared),
    Need.SOFTMAX: lambda o: isinstance(o.loss, Softmax),
    Need.HINGE: lambda o: isinstance(o.loss, Hinge),
    Need.RIDGE: _in_coordinates(lambda parts: _unbounded(parts) and not np.any(parts.l1)),
    Need.ROW_NORMS: _has_row_norms,
    Need.UNBOUNDED: _in_coordinates(_unbounded),
    Need.ONE_OUTPUT: lambda o: o.outputs == 1,
    Need.NO_OFFSET: lambda o: o.offset is None,
    Need.BOUNDED_CURVATURE: lambda o: bool(np.isfinite(o.loss.curvature)),
    Need.STRONGLY_CONVEX: _in_coordinates(lambda parts: np.all(parts.l2 > 0)),
    Need.ROWS: lambda o: o.design.native.has_rows,
    Need.PIECEWISE_LINEAR: lambda o: o.loss.piecewise_linear,
    Need.KINKS: lambda o: o.loss.piecewise_linear or o.loss.softness > 0,
    Need.CONJUGATE: lambda o: o.loss.has_conjugate and o.penalty.has_conjugate,
    Need.SUBGRADIENT: _in_coordinates(_unbounded),
    Need.PROJECTION: lambda o: o.penalty.ball is not None or o.penalty.coordinates(o.d) is not None,
    Need.QUADRATIC: lambda o: o.loss.piecewise_quadratic,
}


@dataclass(frozen=True)
class Record:
    """One line of a history. Callbacks also receive the iterate, where the solver has it; histories drop it.

    Attributes
    ----------
    iteration : int
        Counted as the solver counts.
    seconds : float
        Since the solver began.
    objective : float
        The value of what is minimised.
    gap : float
        The relative gap or residual; NaN where it was not computed.
    w, b : arrays or None
        Weights and bias, for callbacks.
    """

    iteration: int
    seconds: float
    objective: float
    gap: float  # relative gap or residual; nan where it was not computed
    w: Array | None = field(default=None, repr=False, compare=False)
    b: Array | None = field(default=None, repr=False, compare=False)


@dataclass
class Stop:
    """The stopping criteria of a run, and the callback that receives its progress."""

    tol: float = 1e-6
    max_iter: int = 1000
    callback: Callable[[Record], bool] | None = None
    keep_history: bool = False
    random_state: int = 0
    proved: bool = True  # False if no certificate follows: an estimate of the error then suffices
    records: list[Record] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)

    def report(
        self, iteration: int, objective: float, gap: float = np.nan, w: Array | None = None, b: Array | None = None
    ) -> bool:
        """Record an iteration; True if a limit or a callback stops the solver."""
        record = Record(iteration, time.perf_counter() - self.began, objective, gap)
        if self.keep_history:
            self.records.append(record)
        return self.callback is not None and bool(self.callback(replace(record, w=w, b=b)))

    @property
    def watched(self) -> bool:
        """Whether a callback or a history needs single iterations."""
        return self.keep_history or self.callback is not None

    def certify(self, objective: Objective, w: Array, b: Array, dual: Array | None = None) -> Certificate:
        """Compute the certificate. Solvers may use it to decide when to stop; it is computed again at the end."""
        return certificate(objective, w, b, dual=dual, tol=self.tol, exact=True)


@dataclass(frozen=True)
class Solution:
    """The result of a solver: weights, bias, dual variables if it has them, and the status.

    Attributes
    ----------
    w, b : arrays
        The weights, and the bias with one entry per output.
    status : Status
        How the run ended.
    iterations : int
        How many there were.
    dual : array or None
        Dual variables, from solvers that have them.
    history : tuple of Record
        One record per iteration, if a history was kept.
    """

    w: Array
    b: Array
    status: Status
    iterations: int
    dual: Array | None = None
    history: tuple[Record, ...] = ()


class Solver:
    """Base class: a name, a list of needs, and ``run``.

    Solvers with options are frozen dataclasses, so that a configured one can be passed wherever a name can:
    ``solver="gradient-descent"`` or ``solver=hg.solvers.GradientDescent(step=0.1)``.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]] = ()
    default_max_iter: ClassVar[int] = 1000
    iterative: ClassVar[bool] = True  # whether the start matters
    passes: ClassVar[float] = 1.0  # passes over X and X' per iteration
    shifts: ClassVar[bool] = False  # whether dense columns far from zero are shifted first (hinge.solvers.shifted)
    factors: ClassVar[bool] = False  # whether an iteration forms and factors a Gram matrix, of rows or of columns

    def missing(self, objective: Objective) -> list[Need]:
        """The needs that this objective does not meet."""
        return [need for need in self.needs if not need.met_by(objective)]

    def flops(self, objective: Objective, iterations: int) -> float:
        """An estimate of the floating-point operations of this many iterations, from shapes alone."""
        cost = self.passes * pass_flops(objective.design, objective.outputs)
        if self.factors:
            order = min(objective.n, objective.d)
            cost += gram_flops(objective.design, objective.d) * order / max(objective.d, 1) + factor_flops(order)
        return max(iterations, 1) * cost

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        """Minimise from the start (w, b), which may be overwritten."""
        raise NotImplementedError
