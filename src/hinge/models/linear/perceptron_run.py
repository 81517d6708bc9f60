"""One binary perceptron in training: epochs, stopping, the mistake bound and the votes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse

from hinge._native import Design, core
from hinge.problem.losses import PerceptronLoss
from hinge.problem.objective import make_objective
from hinge.problem.penalties import Penalty
from hinge.solvers.native import native_problem

SUSPECTS = 1000  # the last misclassified examples, kept to test whether they still are


@dataclass(frozen=True)
class MistakeBound:
    """Novikoff's theorem on the training data, for a separating direction u (with its bias counted as a feature).

    Attributes
    ----------
    radius : float
        R = max ‖xᵢ‖.
    margin : float
        γ = min yᵢ⟨u, xᵢ⟩/‖u‖, above zero.
    bound : float
        (R/γ)²: no perceptron makes more mistakes on these data, in any order, however often it goes through them.
        With weights it is (R/γ)²(s_max/s_min)², since γ Σ s ≤ ⟨w, u⟩/‖u‖ ≤ ‖w‖ ≤ R √(Σ s²) over the mistakes.
    mistakes : int
        How many were made.
    """

    radius: float
    margin: float
    bound: float
    mistakes: int


@dataclass
class Walk:
    """The weights of one binary perceptron during training.

    Attributes
    ----------
    w, b : the weights and the bias now
    late, late_b : what every step came too late for: the step times the age it was made at
    age : the weights of all visits so far, added up
    counts : mistakes of every epoch
    applied : the part of an L1 penalty applied to each weight so far, and the sum of the steps (native/solvers/sgd.hpp)
    """

    w: np.ndarray
    b: float
    late: np.ndarray
    applied: np.ndarray
    late_b: float = 0.0
    age: float = 0.0
    counts: list[int] = field(default_factory=list)

    def weights(self, averaged: bool) -> tuple[np.ndarray, float]:
        if not averaged or self.age == 0:
            return self.w, self.b
        return self.w - self.late / self.age, self.b - self.late_b / self.age


class Run:
    """The training of one binary perceptron on some examples."""

    def __init__(self, model: Any, X: Any, y: np.ndarray, weights: np.ndarray | None, walk: Walk, seed: int) -> None:
        self.model, self.X, self.y, self.s, self.walk, self.seed = model, X, y, weights, walk, seed
        self.design = Design(X)
        self.last: np.ndarray = np.empty(0, dtype=np.int64)
        self.rows: list[np.ndarray] = []
        self.times: list[np.ndarray] = []

    def epoch(self) -> float:
        """Process the examples once; returns the weighted share of mistakes."""
        model, walk = self.model, self.walk
        visits = core.Visits(shuffle=model.shuffle, seed=self.seed, epoch=len(walk.counts))
        walk.b, walk.late_b, walk.age, rows, times = core.perceptron_epoch(
            self.design.native, self.y, self.s, walk.w, walk.late, walk.b, walk.late_b, walk.age,
            intercept=model.fit_intercept, rate=float(model.eta0), visits=visits,
        )  # fmt: skip
        walk.counts.append(len(rows))
        self.last = rows[-SUSPECTS:]
        if model.average == "voted":
            self.rows.append(rows)
            self.times.append(times)
        return self.share(rows)

    def share(self, rows: np.ndarray) -> float:
        """The weight of some examples divided by that of all."""
        return len(rows) / len(self.y) if self.s is None else float(self.s[rows].sum() / self.s.sum())

    def misclassified(self) -> np.ndarray:
        """The examples that the current weights misclassify."""
        w, b = self.walk.weights(self.model.average is True)
        return np.flatnonzero(self.y * (self.design.matmul(w) + b) <= 0)

    def finished(self) -> bool:
        """Whether further epochs would have no effect."""
        return self.walk.counts[-1] == 0

    def train(self, held: Run | None) -> None:
        model, best, idle = self.model, np.inf, 0
        for _ in range(model.max_iter):
            wrong = self.epoch()
            if self.finished():
                return
            if held is not None:
                wrong = held.share(held.misclassified())
            if model.tol is not None:
                idle = 0 if wrong < best - model.tol else idle + 1
                best = min(best, wrong)
                if idle >= model.n_iter_no_change:
                    return

    def bound(self) -> MistakeBound | None:
        ones, walk = 1.0 if self.model.fit_intercept else 0.0, self.walk
        # Examples misclassified lately probably still are, and then the others need not be checked.
        if len(self.last) and np.min(self.y[self.last] * (self.X[self.last] @ walk.w + walk.b)) <= 0:
            return None
        margins = self.y * (self.design.matmul(walk.w) + walk.b)
        size = float(np.sqrt(walk.w @ walk.w + ones * walk.b**2))
        if size == 0 or margins.min() <= 0:
            return None
        squares = self.X.multiply(self.X).sum(axis=1) if scipy.sparse.issparse(self.X) else (self.X**2).sum(axis=1)
        radius = float(np.sqrt(np.max(np.asarray(squares, dtype=np.float64)) + ones))
        margin = float(margins.min()) / size
        spread = 1.0 if self.s is None else float(self.s.max() / self.s.min())
        return MistakeBound(radius, margin, (radius / margin * spread) ** 2, int(sum(walk.counts)))

    def voters(self) -> tuple[Any, np.ndarray, np.ndarray]:
        """The examples of the mistakes in order, their steps ηsy, and the number of visits each state survived."""
        rows, times = np.concatenate(self.rows), np.concatenate(self.times)
        votes = np.diff(np.append(times, self.walk.age))
        steps = self.y[rows] if self.s is None else self.s[rows] * self.y[rows]
        return self.X[rows], self.model.eta0 * steps, votes


class ShrinkingRun(Run):
    """The same with a penalty, which shrinks the weights at every visit."""

    def __init__(
        self, model: Any, X: Any, y: np.ndarray, weights: np.ndarray | None, walk: Walk, seed: int,
        penalty: Penalty,
    ) -> None:  # fmt: skip
        super().__init__(model, X, y, weights, walk, seed)
        # Σ cᵢ ℓᵢ with cᵢ = sᵢ/n: a step is n·cᵢ = sᵢ times as long as one without weights.
        steps = np.ones(len(y)) if weights is None else weights
        objective = make_objective(self.design, y, PerceptronLoss(), penalty, fit_intercept=model.fit_intercept)
        self.objective = replace(objective, c=steps / len(y))
        coordinates = penalty.coordinates(X.shape[1])
        assert coordinates is not None
        self.l2 = float(coordinates.l2[0])

    def epoch(self) -> float:
        """Process the examples once; returns their mean loss, each evaluated before its step."""
        model, walk = self.model, self.walk
        averaged = model.average is True
        mean, mean_b = walk.weights(averaged)
        mean = mean.copy()
        options = core.SgdOptions(
            l2=self.l2, eta0=float(model.eta0), decay=0.0, power=0.0, bias_rate=1.0, average=int(averaged),
            shuffle=bool(model.shuffle), seed=self.seed, epoch=len(walk.counts),
        )  # fmt: skip
        walk.b, mean_b, steps, loss = core.sgd_epoch(
            native_problem(self.objective), options, walk.w, mean, walk.b, mean_b, int(walk.age), walk.applied
        )
        walk.age = float(steps)
        if averaged:
            walk.late, walk.late_b = walk.age * (walk.w - mean), walk.age * (walk.b - mean_b)
        walk.counts.append(len(self.misclassified()))
        return loss

    def finished(self) -> bool:
        return False
