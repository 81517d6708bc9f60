"""How models are scored on a table: one measure per task, and the figures shown beside it."""

from __future__ import annotations

from functools import partial

import numpy as np

from hinge.select.measure import Measure, log_loss, poisson_deviance, squared

METRIC = {"binary": "log loss", "multiclass": "log loss", "real": "RMSE", "count": "Poisson deviance"}


def measure_for(task: str, classes: np.ndarray | None, mean: float = 1.0) -> Measure:
    """The measure of a task; ``mean`` is the mean count of the training rows."""
    if task in ("binary", "multiclass"):
        return Measure(METRIC[task], classes, True, log_loss, False)
    if task == "count":
        return Measure(METRIC[task], None, False, partial(poisson_deviance, mean=mean), False)
    return Measure(METRIC[task], None, False, squared, True, root=True)


def best_constant(y: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    """The prediction that ignores the inputs: shares of classes, or the mean."""
    if classes is None:
        return np.asarray(np.mean(y))
    return np.bincount(y.astype(np.int64), minlength=len(classes)) / len(y)


def constant_losses(measure: Measure, y: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """The losses of a constant prediction."""
    return measure.pointwise(y, np.broadcast_to(constant, (len(y), *constant.shape)))


def explained(loss: np.ndarray, trivial: np.ndarray) -> float:
    """The share of the trivial loss that is gone: R² for real targets, D² otherwise."""
    return float(1 - np.mean(loss) / np.mean(trivial)) if np.mean(trivial) > 0 else 0.0


def details(y: np.ndarray, prediction: np.ndarray, task: str) -> dict[str, float]:
    """The figures shown beside the loss."""
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
