"""Measures: the loss of every prediction, for any estimator.

A measure turns the predictions of an estimator into an array (``output``) and compares it with the targets (``losses``).
Risks, curves, bias and variance, and importances are all means of these numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from hinge.models.meta import final_step
from hinge.problem.losses import Loss
from hinge.select.estimate import Estimate, mean_of

Array = np.ndarray
# A lower bound of probabilities in logarithms, and of mean counts as a fraction of the mean.
LEAST_PROBABILITY = 1e-7
LEAST_MEAN = 1e-3


@dataclass(frozen=True, eq=False)
class Measure:
    """A loss of predictions, with the coding of targets it needs.

    Attributes
    ----------
    name : str
        For sentences: "squared error".
    classes : array or None
        The labels, for classifiers; targets are coded 0 … k−1 by ``code``.
    probabilities : bool
        Whether the output is n × k probabilities (else predictions, or codes of predicted labels).
    pointwise : function of (targets, output)
        One loss per example.
    squared : bool
        Whether the loss is a squared distance, so that it splits into bias² + variance + noise.
    root : bool
        Whether the root of the mean is reported (RMSE).
    """

    name: str
    classes: Array | None
    probabilities: bool
    pointwise: Callable[[Array, Array], Array]
    squared: bool
    root: bool = False

    def code(self, y: Any) -> Array:
        """Targets in the form of the measure: codes of labels, or numbers."""
        y = np.asarray(y)
        if self.classes is None:
            return y.astype(np.float64)
        codes = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        if np.any(self.classes[codes] != y):
            raise ValueError("y holds labels that were not seen in the training data.")
        return codes

    def output(self, model: Any, X: Any) -> Array:
        """The predictions for X, with the columns of probabilities in the order of ``classes``."""
        if self.classes is None:
            predicted = np.asarray(model.predict(X), dtype=np.float64)
            return predicted[:, 0] if predicted.ndim == 2 and predicted.shape[1] == 1 else predicted
        if not self.probabilities:
            return self.code(model.predict(X))
        p = np.asarray(model.predict_proba(X), dtype=np.float64)
        fold_classes = np.asarray(model.classes_)
        if len(fold_classes) == len(self.classes):
            return p
        full = np.zeros((len(p), len(self.classes)))  # a fold may lack a class
        full[:, np.searchsorted(self.classes, fold_classes)] = p
        return full

    def losses(self, model: Any, X: Any, targets: Array) -> Array:
        """The loss of every example; ``targets`` are coded."""
        return self.pointwise(targets, self.output(model, X))

    def estimate(self, losses: Array, fold: Array | None = None) -> Estimate:
        """The mean loss (or its root, if that is reported) with its standard error."""
        mean = mean_of(losses, fold)
        return mean.root() if self.root else mean


def squared(y: Array, s: Array) -> Array:
    return (y - s) ** 2


def absolute(y: Array, s: Array) -> Array:
    return np.abs(y - s)


def brier(y: Array, p: Array) -> Array:
    """½ Σ_c (p_c − [y = c])²; for two classes this is (p₁ − y)²."""
    distance = p.copy()
    distance[np.arange(len(y)), y] -= 1.0
    return 0.5 * np.sum(distance**2, axis=1)


def log_loss(y: Array, p: Array) -> Array:
    return -np.log(np.maximum(p[np.arange(len(y)), y], LEAST_PROBABILITY))


def poisson_deviance(y: Array, mu: Array, mean: float = 1.0) -> Array:
    """2 (y log(y/μ) − y + μ), with μ at least a small fraction of ``mean``: a prediction of zero would cost infinity."""
    mu = np.maximum(mu, LEAST_MEAN * mean)
    return 2 * (np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0) / mu), 0.0) - y + mu)


def mistake(y: Array, s: Array) -> Array:
    return (np.argmax(s, axis=1) != y).astype(np.float64) if s.ndim == 2 else (s != y).astype(np.float64)


Pointwise = Callable[[Array, Array], Array]
REGRESSION: dict[str, tuple[Pointwise, bool]] = {"squared error": (squared, True), "absolute error": (absolute, False)}
PROBABILITY: dict[str, tuple[Pointwise, bool]] = {"Brier score": (brier, True), "log loss": (log_loss, False)}


def make_measure(model: Any, y: Any, wanted: Any = None) -> Measure:
    """The default measure of an estimator, or the requested one.

    The default is the squared error for regressors (for quantile regressors their own loss), the Brier score for
    classifiers with probabilities and the error rate for other classifiers.
    """
    if not is_classifier(model):
        loss = wanted if isinstance(wanted, Loss) else _quantile(model) if wanted is None else None
        if loss is not None:
            name = f"{type(loss).__name__.lower()} loss"
            return Measure(name, None, False, loss.value, False)
        name = wanted or "squared error"
        if name not in REGRESSION:
            raise ValueError(
                f"measure must be a loss or one of {', '.join(REGRESSION)} for a regressor, got {wanted!r}."
            )
        pointwise, is_squared = REGRESSION[name]
        return Measure(name, None, False, pointwise, is_squared)
    classes = np.unique(np.asarray(y))
    sure = hasattr(model, "predict_proba")
    name = wanted or ("Brier score" if sure else "error rate")
    if name == "error rate":
        return Measure(name, classes, sure, mistake, False)
    if name not in PROBABILITY:
        raise ValueError(
            f"measure must be one of {', '.join(PROBABILITY)}, error rate for a classifier, got {wanted!r}."
        )
    if not sure:
        raise ValueError(f"measure={name!r} needs probabilities, and {type(model).__name__} has no predict_proba.")
    pointwise, is_squared = PROBABILITY[name]
    return Measure(name, classes, True, pointwise, is_squared)


def _quantile(model: Any) -> Loss | None:
    from hinge.problem.losses import Quantile

    last = final_step(model)
    level, named = getattr(last, "quantile", None), getattr(last, "loss", None)
    if named == "quantile" and level is None:
        level = getattr(last, "alpha", None)  # scikit-learn's name of the level in gradient boosting
    # A level without a choice of losses means quantile regression.
    return Quantile(float(level)) if level is not None and (named == "quantile" or not hasattr(last, "loss")) else None


def own_loss(model: Any) -> Loss | None:
    """The loss of numbers that a regressor minimises, if its settings name one; otherwise None."""
    from hinge.problem.losses import Absolute, Target, as_loss

    last, loss = final_step(model), _quantile(model)
    named = getattr(last, "loss", None)
    if loss is None and "absolute_error" in (named, getattr(last, "criterion", None)):
        loss = Absolute()
    if loss is None and named is not None and not isinstance(named, str) and hasattr(named, "gradient"):
        loss = as_loss(named)
    if loss is None and hasattr(last, "score_loss") and not hasattr(last, "loss"):
        loss = last.score_loss()
    return loss if loss is not None and loss.target is Target.REAL else None
