"""Stochastic gradient descent with minibatches.

Problem     min_{w,b} Σ cᵢ ℓ(yᵢ, zᵢ) + Ω(w)
Step t      x ← prox_{η_t Ω}(x − η_t ĝ),  ĝ = (1/m) Σ_{i in batch} n cᵢ ℓ'(zᵢ) (xᵢ, 1):  E ĝ = ∇R, Var ĝ = Var₁/m
Momentum    x₊ = prox_{η_t Ω}(x − η_t ĝ + μ(x − x₋))
Optimality  0 ∈ ∂J, approached but not met: the noise of ĝ does not vanish
Returns     the last iterate or the average of all of them, after a number of epochs
Reference   Robbins & Monro (1951); Polyak & Juditsky (1992) for averaging; native/solvers/sgd.hpp
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from hinge._native import Design, core
from hinge.problem.losses import CustomLoss
from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Solution, Solver, Status, Stop
from hinge.solvers.loop import Run
from hinge.solvers.native import native_problem
from hinge.solvers.schedules import InverseSqrt, InverseTime, Schedule
from hinge.solvers.stopping import Rule

# A last epoch whose loss is this many times that of the start shows that the steps were too long.
DIVERGED = 1e12


@dataclass(frozen=True)
class SGD(Solver):
    """Minibatch stochastic gradient descent, for every loss with a (sub)gradient and every penalty with a prox.

    Parameters
    ----------
    batch_size : int
        Examples per update.
    schedule : Schedule, optional
        ``Fixed``, ``InverseTime``, ``InverseSqrt`` or ``ReduceOnPlateau``; by default 1/t if the penalty has an L2
        part and 1/√t if not, beginning with a step that suits the size of the examples.
    average : bool
        Return the average of all iterates rather than the last one.
    momentum : float
        Between 0 (none) and 1.
    shuffle : bool
        Go through the examples in a new order in every epoch.
    bias_rate : float
        The bias moves by this many times the step of the weights.
    rules : Rule or tuple of rules
        Looked at after every epoch; ``HeldOutLoss`` is early stopping.

    Notes
    -----
    ``max_iter`` counts epochs (20 by default). Matrices stored by columns are copied to rows first.
    """

    batch_size: int = 1
    schedule: Schedule | None = None
    average: bool = False
    momentum: float = 0.0
    shuffle: bool = True
    bias_rate: float = 1.0
    rules: tuple[Rule, ...] | Rule = ()

    name: ClassVar[str] = "sgd"
    default_max_iter: ClassVar[int] = 20

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ValueError(f"batch_size must be 1 or more, got {self.batch_size}.")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must lie in [0, 1), got {self.momentum}.")

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        schedule = self.schedule or default_schedule(objective)
        run = Run(objective, stop, self.rules, first=5)
        plateau = schedule.begin()
        ridge = uniform_ridge(objective)
        fast = ridge is not None and self.momentum == 0 and objective.outputs == 1
        epochs = _native_epochs if fast and not isinstance(objective.loss, CustomLoss) else _epochs
        epoch = epochs(self, objective, schedule, w, b, stop.random_state)
        x, status, k, loss, start = run.flat.pack(w, b), None, 0, 0.0, (w.copy(), b.copy())
        while status is None and k < stop.max_iter:
            w, b, loss = epoch(k, plateau.scale)
            k += 1
            if not np.isfinite(loss):
                raise _diverged(k)
            plateau.see(loss)
            x = run.flat.pack(w, b)
            status = run.over(k, x, loss + objective.penalty.value(w))
        if loss > DIVERGED and loss > DIVERGED * objective.risk(*start):
            raise _diverged(k)
        solution = run.solution(x, status, k)
        return solution if status else Solution(solution.w, solution.b, Status.BUDGET, k)


def _diverged(epoch: int) -> FloatingPointError:
    return FloatingPointError(
        f"Stochastic gradient descent diverged in epoch {epoch}: the step is too long. Give a schedule with a smaller "
        "step, or scale the features to similar size."
    )


def minibatch_gradient(objective: Objective, w: Array, b: Array, rows: np.ndarray) -> tuple[Array, Array]:
    """The gradient of the risk in w and b, estimated from some rows; unbiased if the rows are random.

    Parameters
    ----------
    objective : Objective
        The risk.
    w, b : arrays
        Where the gradient is taken.
    rows : array of int
        The rows it is estimated from.
    """
    return _row_gradient(objective, objective.design.source, w, b, rows)[1:]


def _row_gradient(objective: Objective, X: Any, w: Array, b: Array, rows: np.ndarray) -> tuple[float, Array, Array]:
    """The mean loss of some rows, weighted, and its gradient."""
    o = objective
    batch = Design(X[rows])
    z = batch.matmul(w)
    if o.fit_intercept:
        z = z + (b if o.outputs > 1 else b[0])
    if o.offset is not None:
        z = z + o.offset[rows]
    y, factor = o.y[rows], o.c[rows] * (o.n / len(rows))
    u = o.loss.gradient(y, z)
    u = factor * u if u.ndim == 1 else factor[:, None] * u
    gb = np.atleast_1d(u.sum(axis=0)) if o.fit_intercept else np.zeros(o.outputs)
    return float(np.sum(factor @ o.loss.value(y, z))), batch.rmatmul(u), gb


def default_schedule(objective: Objective) -> Schedule:
    """A first step of 1/(curvature · mean ‖x‖²), falling like 1/t with an L2 part and like 1/√t without."""
    size = float(np.sum(objective.design.square_sums(objective.c))) + 1.0
    bend = objective.loss.curvature
    first = 1.0 / (size * (bend if np.isfinite(bend) and bend > 0 else 1.0))
    coordinates = objective.penalty.coordinates(objective.d)
    strength = 0.0 if coordinates is None else float(np.min(coordinates.l2, initial=np.inf))
    if strength > 0 and np.isfinite(strength):
        return InverseTime(first, decay=first * strength)
    return InverseSqrt(first, decay=10.0 / objective.n)


def uniform_ridge(objective: Objective) -> float | None:
    """The common factor of the L2 part; None if the penalty is not a sum over weights or the factors differ."""
    coordinates = objective.penalty.coordinates(objective.d)
    if coordinates is None or np.ptp(coordinates.l2) > 0:
        return None
    return float(coordinates.l2[0])


Epoch = Callable[[int, float], tuple[Array, Array, float]]


def rows_of(X: Any) -> Any:
    """X stored by rows."""
    if hasattr(X, "tocsr"):
        return X.tocsr()
    return X if X.strides[1] == X.itemsize else np.ascontiguousarray(X)


def _native_epochs(sgd: SGD, objective: Objective, schedule: Schedule, w: Array, b: Array, seed: int) -> Epoch:
    X = rows_of(objective.design.source)
    by_rows = objective if X is objective.design.source else replace(objective, design=Design(X))
    problem, ridge = native_problem(by_rows), uniform_ridge(objective)
    weights, mean = np.ascontiguousarray(w, dtype=np.float64).copy(), np.zeros(objective.d)
    bias, mean_bias, steps = float(b[0]), 0.0, 0

    def epoch(k: int, scale: float) -> tuple[Array, Array, float]:
        nonlocal bias, mean_bias, steps
        options = core.SgdOptions(
            l2=ridge, batch=sgd.batch_size, eta0=schedule.step * scale, decay=schedule.decay, power=schedule.power,
            bias_rate=sgd.bias_rate, average=int(sgd.average), shuffle=sgd.shuffle, seed=seed, epoch=k,
        )  # fmt: skip
        bias, mean_bias, steps, loss = core.sgd_epoch(problem, options, weights, mean, bias, mean_bias, steps)
        return (mean, np.array([mean_bias]), loss) if sgd.average else (weights, np.array([bias]), loss)

    return epoch


def _epochs(sgd: SGD, objective: Objective, schedule: Schedule, w: Array, b: Array, seed: int) -> Epoch:
    """The same in NumPy, for several outputs, momentum, penalties of any kind, and losses written in Python."""
    o, X, t = objective, rows_of(objective.design.source), 0
    before, mean = (w, b), (np.zeros_like(w), np.zeros_like(b))

    def epoch(k: int, scale: float) -> tuple[Array, Array, float]:
        nonlocal w, b, t, before, mean
        order = np.random.default_rng([seed, k]).permutation(o.n) if sgd.shuffle else np.arange(o.n)
        total = 0.0
        for first in range(0, o.n, sgd.batch_size):
            rows = order[first : first + sgd.batch_size]
            loss, gw, gb = _row_gradient(o, X, w, b, rows)
            step = schedule.at(t) * scale
            pushed = w - step * gw + sgd.momentum * (w - before[0])
            shifted = b - step * sgd.bias_rate * gb + sgd.momentum * (b - before[1])
            before = (w, b)
            w, b, t = o.penalty.prox(pushed, step), shifted, t + 1
            mean = (mean[0] + (w - mean[0]) / t, mean[1] + (b - mean[1]) / t)
            total += loss * len(rows)
        return (*(mean if sgd.average else (w, b)), total / o.n)

    return epoch
