"""Training: epochs of minibatches until the loss stops decreasing, or L-BFGS on all data.

minimise  Σ sᵢ ℓ(yᵢ, f(xᵢ)) / Σ sᵢ + (l2/2) Σ_l ‖W_l‖²
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from hinge.errors import callers_level
from hinge.models.base import drop_absent
from hinge.models.neural.display import Progress
from hinge.models.neural.engine import Arrays, Engine, criterion, examples, pack, unpack
from hinge.models.neural.learning_rate import SGD_ONLY, LearningRate
from hinge.problem.losses import Loss
from hinge.solvers.shifted import CONSTANT, distances_from_zero

SMALLEST_RATE = 1e-6
WORSE = 2.0  # a warning is issued of losses so many times that of a constant
FAR = 300.0  # a warning is issued of columns whose means are so many deviations from zero


@dataclass
class Data:
    """Examples, coded targets and weights (with mean one), in the form the core reads."""

    X: Any
    y: np.ndarray
    weight: np.ndarray

    @property
    def n(self) -> int:
        return len(self.weight)

    def native(self, loss: Loss, outputs: int, dtype: Any) -> tuple[Any, Any]:
        return examples(self.X, dtype), criterion(loss, self.y, self.weight, outputs, dtype)


def make_data(X: Any, y: np.ndarray, weight: np.ndarray | None) -> tuple[Data, float]:
    """Training data, and the mean of the weights before they were scaled to mean one."""
    X, y, weight = drop_absent(X, y, weight)
    if weight is None:
        return Data(X, y, np.ones(X.shape[0])), 1.0
    mean = float(weight.mean())
    return Data(X, y, np.ascontiguousarray(weight / mean, dtype=np.float64)), mean


def warn_if_far(X: Any) -> None:
    """Warn of columns so far from zero that the first layer hardly sees how they vary."""
    if scipy.sparse.issparse(X):
        return
    _, distances = distances_from_zero(X)
    for j in np.flatnonzero((distances > FAR) & (distances < CONSTANT)):
        column = X[:, j].astype(np.float64)  # the estimate is from a few rows
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            distance = float(np.abs(column.mean()) / column.std())
        if FAR < distance < CONSTANT:
            warnings.warn(
                f"The mean of column {j} is {distance:.3g} times its deviation: networks learn little from such columns. "
                "Standardise them (sklearn.preprocessing.StandardScaler).",
                UserWarning,
                stacklevel=callers_level(),
            )
            return


def warn_if_worse_than_constant(loss: Loss, data: Data, reached: float) -> None:
    """Warn if training ended by itself, at a loss far above that of the best constant."""
    y = np.asarray(data.y, dtype=np.float64)
    best = loss.baseline(y, data.weight)
    constant = float(np.average(loss.value(y, np.full_like(y, best)), weights=data.weight))
    if np.isfinite(constant) and 0.0 < WORSE * constant < reached:
        warnings.warn(
            f"Training ended at a loss of {reached:.3g}; the best constant has {constant:.3g}. Steps and tol are made for "
            "columns and targets of about size one: standardise X and y (sklearn.compose.TransformedTargetRegressor), or lower "
            "tol and learning_rate_init.",
            ConvergenceWarning,
            stacklevel=callers_level(),
        )


@dataclass
class Plan:
    """The stopping rule and the schedule of the learning rate."""

    learning_rate: str | Callable[[float], float]
    rate: float
    power_t: float
    batch: int
    max_iter: int
    tol: float
    n_iter_no_change: int
    shuffle: bool
    verbose: bool = False
    validate: Callable[[], tuple[float, float]] | None = None  # score and loss on held-out examples
    report: Callable[[Any], bool] | None = None  # called after every epoch; True to stop


@dataclass
class History:
    """Losses and scores by epoch."""

    loss: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)
    validation_score: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    best: float = np.inf  # the loss, or the negative validation score: lower is better
    waited: int = 0

    def note(self, value: float, tol: float) -> bool:
        """Whether this is the best value so far; counts epochs that did not improve by tol."""
        self.waited = self.waited + 1 if value > self.best - tol else 0
        better = value < self.best
        self.best = min(value, self.best)
        return better


def objective(engine: Engine, loss: float) -> float:
    return loss + 0.5 * engine.rule.l2 * engine.squared_norm()


def check_finite(value: float) -> None:
    if not np.isfinite(value):
        raise ValueError(
            "Training diverged: the loss is no longer finite. Scale the inputs, or make learning_rate_init smaller, "
            "or set clip_norm."
        )


def run_epoch(engine: Engine, x: Any, loss: Any, n: int, plan: Plan, schedule: LearningRate, history: History) -> float:
    """Runs one epoch and records it. Returns the objective, each batch at the weights before its step."""
    rates = schedule.epoch(engine.epochs, engine.epochs * n)
    value = objective(engine, engine.epoch(x, loss, plan.batch, rates, shuffle=plan.shuffle))
    check_finite(value)
    history.loss.append(value)
    history.learning_rate.append(float(rates[-1]))
    return value


def make_schedule(engine: Engine, plan: Plan, n: int) -> LearningRate:
    name = plan.learning_rate
    if engine.rule.solver != "sgd" and name in SGD_ONLY:
        name = "constant"
    steps = -(-n // plan.batch)
    return LearningRate(name, plan.rate, power_t=plan.power_t, epochs=engine.epochs + plan.max_iter, steps=steps)


def train(engine: Engine, data: Data, loss: Loss, plan: Plan, history: History) -> int:
    """Runs epochs until nothing improves or ``max_iter`` is reached; returns the number of epochs.

    With validation, the weights of the best epoch are restored at the end.
    """
    x, bound = data.native(loss, engine.biases[-1].size, engine.dtype)
    schedule = make_schedule(engine, plan, data.n)
    progress = Progress(plan.max_iter) if plan.verbose else None
    best: tuple[Arrays, Arrays] | None = None
    done = 0
    try:
        for done in range(1, plan.max_iter + 1):
            value = run_epoch(engine, x, bound, data.n, plan, schedule, history)
            if plan.validate is not None:
                score, held_out = plan.validate()
                history.validation_score.append(score)
                history.validation_loss.append(held_out)
                value = -score
            if history.note(value, plan.tol) and plan.validate is not None:
                best = engine.copy_weights()
            if progress:
                progress.show(done, history)
            if plan.report is not None and plan.report(history):
                break
            patience = max(plan.n_iter_no_change // 2, 1)
            if schedule.name == "plateau" and history.waited > 0 and history.waited % patience == 0:
                schedule.reduce(2.0)
            if history.waited > plan.n_iter_no_change:
                if schedule.name != "adaptive" or schedule.rate <= SMALLEST_RATE:
                    break
                schedule.reduce(5.0)
                history.waited = 0
        else:
            if plan.learning_rate not in ("step", "cosine", "one_cycle") and not callable(plan.learning_rate):
                warnings.warn(
                    f"Stochastic optimizer: maximum iterations ({plan.max_iter}) reached and the loss is still "
                    "falling. Raise max_iter, or tol to stop earlier.",
                    ConvergenceWarning,
                    stacklevel=4,
                )
    finally:
        if progress:
            progress.close()
    if best is not None:
        engine.restore(*best)
    return done


def train_lbfgs(engine: Engine, data: Data, loss: Loss, plan: Plan, *, max_fun: int) -> tuple[int, float, list[float]]:
    """L-BFGS with the exact gradient of the full objective; the engine must be in float64.

    Returns iterations, final objective and the objective after each iteration.
    """
    x, bound = data.native(loss, engine.biases[-1].size, engine.dtype)
    curve: list[float] = []
    progress = Progress(plan.max_iter) if plan.verbose else None

    def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
        engine.restore(*unpack(flat, engine.weights))
        value, gradient = engine.net().gradient(x, bound)
        matrices, _ = unpack(gradient, engine.weights)
        for G, W in zip(matrices, engine.weights):
            G += engine.rule.l2 * W
        return objective(engine, value), gradient

    def after_iteration(intermediate_result: Any) -> None:
        curve.append(float(intermediate_result.fun))
        if progress:
            progress.show(len(curve), History(loss=curve))
        if plan.report is not None and plan.report(intermediate_result):
            raise StopIteration

    result = scipy.optimize.minimize(
        value_and_gradient, pack(engine.weights, engine.biases), jac=True, method="L-BFGS-B",
        callback=after_iteration, options={"maxiter": plan.max_iter, "maxfun": max_fun, "gtol": plan.tol, "ftol": 1e-15},
    )  # fmt: skip
    if progress:
        progress.close()
    check_finite(float(result.fun))
    engine.restore(*unpack(result.x, engine.weights))
    if result.nit >= plan.max_iter or result.nfev >= max_fun:
        warnings.warn(
            f"lbfgs stopped after {result.nit} iterations without reaching tol={plan.tol}. Raise max_iter or max_fun, or "
            "scale the inputs.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return max(int(result.nit), 1), float(result.fun), curve
