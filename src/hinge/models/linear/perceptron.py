"""Rosenblatt's perceptron: mistakes, and the bound on their number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from hinge._native import Design, core
from hinge.models.base import check_predict, signs
from hinge.models.linear.base import LinearClassifier

AVERAGES = (False, True, "voted")


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
    mistakes : int
        How many were made.
    """

    radius: float
    margin: float
    bound: float
    mistakes: int


class Perceptron(LinearClassifier):
    """Rosenblatt's perceptron: after every mistake, yᵢ(⟨w, xᵢ⟩ + b) ≤ 0, w ← w + ηyᵢxᵢ and b ← b + ηyᵢ.

    Goes through the examples until an epoch has no mistake or ``max_iter`` is reached. If the classes are separable it
    ends, after at most (R/γ)² mistakes, and ``bound_`` shows that number. Several classes are taken one against the
    others.

    Parameters
    ----------
    fit_intercept : bool
        Whether there is a bias; without one the hyperplane goes through the origin.
    max_iter : int
        The largest number of epochs.
    tol : float or None
        Stop early when the share of mistakes in an epoch has not fallen by this much for ``n_iter_no_change`` epochs;
        None to go on to ``max_iter``.
    shuffle : bool
        Go through the examples in a new order in every epoch.
    eta0 : float
        The rate η: it scales the weights and changes no prediction.
    random_state : int
        The seed of the orders.
    n_iter_no_change : int
        See ``tol``.
    warm_start : bool
        Begin at the weights of the last fit.
    average : {False, True, "voted"}
        Predict with the last weights, their average over all visits, or a vote of all of them, each with as many votes
        as examples it survived (two classes only).
    penalty, alpha, l1_ratio, verbose, n_jobs, early_stopping, validation_fraction
        Accepted for compatibility at their defaults; the perceptron has neither penalty nor class weights
        (:class:`SGDClassifier` with ``loss="perceptron"`` has).

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_, t_ : as in scikit-learn
    mistakes_ : array of int
        How many mistakes each binary problem made.
    mistakes_per_epoch_ : list of arrays
        The same, epoch by epoch.
    bound_ : MistakeBound or None
        For two classes: R, γ and (R/γ)² with the weights found as the separating direction; None if they do not
        separate the training data.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[2.0, 1.0], [1.0, 2.0], [-1.0, -2.0], [-2.0, -1.0]])
    >>> model = hg.Perceptron(fit_intercept=False).fit(X, [1, 1, -1, -1])
    >>> int(model.mistakes_[0]), bool(model.mistakes_[0] <= model.bound_.bound)
    (1, True)
    """

    def __init__(
        self,
        *,
        penalty: Any = None,
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        eta0: float = 1.0,
        n_jobs: int | None = None,
        random_state: int | None = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        average: Any = False,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.eta0 = eta0
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.average = average

    def fit(self, X: Any, y: Any) -> Perceptron:
        """Learn until no example is mistaken, or ``max_iter`` epochs have passed."""
        X, codes, _ = self._check(X, y, None)
        self._check_options()
        k = len(self.classes_)
        targets = [signs(codes)] if k == 2 else [np.where(codes == j, 1.0, -1.0) for j in range(k)]
        rows = rows_of(X)
        runs = [_Run(self, rows, y, self._start(j, X.shape[1])) for j, y in enumerate(targets)]
        for run in runs:
            run.train()
        self.coef_ = np.array([run.weights(self.average is True)[0] for run in runs], dtype=X.dtype)
        self.intercept_ = np.array([run.weights(self.average is True)[1] for run in runs], dtype=X.dtype)
        self.mistakes_per_epoch_ = [np.array(run.counts) for run in runs]
        self.mistakes_ = np.array([counts.sum() for counts in self.mistakes_per_epoch_])
        self.n_iter_ = max(len(counts) for counts in self.mistakes_per_epoch_)
        self.t_ = float(self.n_iter_ * X.shape[0] + 1)
        self.bound_ = runs[0].bound() if k == 2 else None
        self.voters_: Any = runs[0].voters() if self.average == "voted" else None
        return self

    def _check_options(self) -> None:
        if self.average not in AVERAGES:
            raise ValueError(f"average must be one of {AVERAGES}, got {self.average!r}.")
        if self.average == "voted" and len(self.classes_) > 2:
            raise ValueError(f"average='voted' is for two classes; y has {len(self.classes_)}. Use average=True.")
        if self.penalty is not None or self.early_stopping:
            raise ValueError(
                "The perceptron has no penalty and no early_stopping; "
                "use SGDClassifier(loss='perceptron', ...) for those."
            )
        if not self.eta0 > 0:
            raise ValueError(f"eta0 must be greater than zero, got {self.eta0!r}.")

    def _start(self, j: int, d: int) -> tuple[np.ndarray, float]:
        if self.warm_start and hasattr(self, "coef_") and self.coef_.shape[1] == d and len(self.coef_) > j:
            return self.coef_[j].astype(np.float64), float(self.intercept_[j])
        return np.zeros(d), 0.0

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores; for the voted perceptron, the votes for ``classes_[1]`` minus those against, per visit."""
        if getattr(self, "voters_", None) is None:
            return super().decision_function(X)
        examples, steps, votes = self.voters_
        X = check_predict(self, X)
        products = np.asarray((X @ examples.T).todense() if scipy.sparse.issparse(X) else X @ examples.T)
        if self.fit_intercept:
            products = products + 1.0
        signs_of_all = np.sign(np.cumsum(products * steps, axis=1))
        return (signs_of_all @ (votes / votes.sum())).astype(self.coef_.dtype)


def rows_of(X: Any) -> Any:
    """X stored by rows."""
    if hasattr(X, "tocsr"):
        return X.tocsr()
    return X if X.strides[1] == X.itemsize else np.ascontiguousarray(X)


class _Run:
    """One binary perceptron in training."""

    def __init__(self, model: Perceptron, X: Any, y: np.ndarray, start: tuple[np.ndarray, float]) -> None:
        self.model, self.X, self.y = model, X, y
        self.design = Design(X)
        self.w, self.b = np.ascontiguousarray(start[0]).copy(), start[1]
        self.late, self.late_b, self.visits = np.zeros_like(self.w), 0.0, 0
        self.counts: list[int] = []
        self.rows: list[np.ndarray] = []
        self.times: list[np.ndarray] = []

    def train(self) -> None:
        model, n = self.model, len(self.y)
        best, idle = np.inf, 0
        for epoch in range(model.max_iter):
            self.b, self.late_b, self.visits, rows, times = core.perceptron_epoch(
                self.design.native, self.y, self.w, self.late, self.b, self.late_b, self.visits, model.fit_intercept,
                float(model.eta0), model.shuffle, model.random_state or 0, epoch,
            )  # fmt: skip
            self.counts.append(len(rows))
            if model.average == "voted":
                self.rows.append(rows)
                self.times.append(times)
            if len(rows) == 0:
                return
            if model.tol is not None:
                idle = 0 if len(rows) < best - model.tol * n else idle + 1
                best = min(best, len(rows))
                if idle >= model.n_iter_no_change:
                    return

    def weights(self, averaged: bool) -> tuple[np.ndarray, float]:
        if not averaged or self.visits == 0:
            return self.w, self.b
        return self.w - self.late / self.visits, self.b - self.late_b / self.visits

    def bound(self) -> MistakeBound | None:
        ones = 1.0 if self.model.fit_intercept else 0.0
        margins = self.y * (self.design.matmul(self.w) + self.b)
        size = float(np.sqrt(self.w @ self.w + ones * self.b**2))
        if size == 0 or margins.min() <= 0:
            return None
        squares = self.X.multiply(self.X).sum(axis=1) if scipy.sparse.issparse(self.X) else (self.X**2).sum(axis=1)
        radius = float(np.sqrt(np.max(np.asarray(squares, dtype=np.float64)) + ones))
        margin = float(margins.min()) / size
        return MistakeBound(radius, margin, (radius / margin) ** 2, int(sum(self.counts)))

    def voters(self) -> tuple[Any, np.ndarray, np.ndarray]:
        """The examples of the mistakes in order, their steps ηy, and how many visits each state survived."""
        rows, times = np.concatenate(self.rows), np.concatenate(self.times)
        votes = np.diff(np.append(times, self.visits)).astype(np.float64)
        return self.X[rows], self.model.eta0 * self.y[rows], votes
