"""How good predictions are: one loss per row, its mean, and how far to trust the mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.tables.number_formats import format_number

METRIC = {"binary": "log loss", "multiclass": "log loss", "real": "RMSE", "count": "Poisson deviance"}
LEAST_PROBABILITY = 1e-7
LEAST_MEAN = 1e-3  # of the mean count: a prediction of zero would make a deviance infinite


@dataclass(frozen=True)
class Score:
    """A mean loss in the unit of its metric, with its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{format_number(self.value, 4)} ± {format_number(self.error, 2)}"


def predict_for(model: Any, X: Any, task: str, classes: np.ndarray | None) -> np.ndarray:
    """Probabilities in the order of ``classes`` for classes, means otherwise."""
    if classes is None:
        return np.asarray(model.predict(X), dtype=np.float64)
    p = np.asarray(model.predict_proba(X), dtype=np.float64)
    known = np.asarray(model.classes_)
    if len(known) == len(classes):
        return p
    whole = np.zeros((len(p), len(classes)))  # some fold did not see every class
    whole[:, np.searchsorted(classes, known)] = p
    return whole


def losses(y: np.ndarray, prediction: np.ndarray, task: str, mean: float = 1.0) -> np.ndarray:
    """The loss of every row; y holds class numbers or targets. ``mean`` is the mean count of the training rows."""
    if task in ("binary", "multiclass"):
        p = prediction[np.arange(len(y)), y.astype(np.int64)]
        return -np.log(np.maximum(p, LEAST_PROBABILITY))
    if task == "count":
        mu = np.maximum(prediction, LEAST_MEAN * mean)
        safe = np.where(y > 0, y, 1.0)
        return 2 * (np.where(y > 0, y * np.log(safe / mu), 0.0) - y + mu)
    return (y - prediction) ** 2


def score(loss: np.ndarray, task: str) -> Score:
    """The mean, and its standard error; for real targets the root of both (by the delta method)."""
    mean = float(np.mean(loss))
    error = float(np.std(loss, ddof=1) / np.sqrt(len(loss))) if len(loss) > 1 else 0.0
    if task != "real":
        return Score(mean, error)
    root = float(np.sqrt(mean))
    return Score(root, error / (2 * root) if root > 0 else 0.0)


def explained(loss: np.ndarray, trivial: np.ndarray) -> float:
    """The share of the trivial loss that is gone: R² for real targets, D² otherwise."""
    return float(1 - np.mean(loss) / np.mean(trivial)) if np.mean(trivial) > 0 else 0.0


def details(y: np.ndarray, prediction: np.ndarray, task: str) -> dict[str, float]:
    """The figures people ask for besides the loss."""
    from sklearn import metrics

    if task in ("binary", "multiclass"):
        guess = np.argmax(prediction, axis=1)
        found = {
            "accuracy": float(np.mean(guess == y)),
            "balanced accuracy": float(np.mean([np.mean(guess[y == c] == c) for c in np.unique(y)])),
        }
        if task == "binary" and len(np.unique(y)) == 2:
            found["ROC AUC"] = float(metrics.roc_auc_score(y, prediction[:, 1]))
            found["average precision"] = float(metrics.average_precision_score(y, prediction[:, 1]))
            found["Brier score"] = float(np.mean((prediction[:, 1] - y) ** 2))
        return found
    errors = np.abs(y - prediction)
    spread = float(np.sum((y - y.mean()) ** 2))
    return {
        "RMSE": float(np.sqrt(np.mean(errors**2))),
        "mean absolute error": float(np.mean(errors)),
        "median absolute error": float(np.median(errors)),
        "R²": float(1 - np.sum(errors**2) / spread) if spread > 0 else 0.0,
    }
