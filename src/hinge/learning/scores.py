"""Scores of models on a table: one loss per task, and the metrics reported beside it."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.stats import rankdata

from hinge.errors import USAGE, UserError, argument
from hinge.select.measure import Measure, absolute, brier, log_loss, mistake, poisson_deviance, squared

# The metrics of each task that models may be chosen by; the first is the default. Each is a mean loss: lower is better.
METRICS = {
    "binary": ("log_loss", "brier", "accuracy", "balanced_accuracy", "auc"),
    "multiclass": ("log_loss", "brier", "accuracy", "balanced_accuracy"),
    "real": ("rmse", "mae"),
    "count": ("poisson_deviance", "rmse", "mae"),
}
TITLES = {
    "log_loss": "log loss", "brier": "Brier score", "accuracy": "error rate", "balanced_accuracy": "balanced error rate",
    "auc": "1 − ROC AUC", "rmse": "RMSE", "mae": "mean absolute error", "poisson_deviance": "Poisson deviance",
}  # fmt: skip
ALSO = {
    "roc_auc": "auc",
    "logloss": "log_loss",
    "r2": "rmse",
    "mse": "rmse",
    "error": "accuracy",
    "deviance": "poisson_deviance",
}


def metric_name(metric: str | None, task: str | None = None) -> str | None:
    """The name of a metric as in :data:`METRICS`, the default of the task for None; raises a UserError for unknown names."""
    known = sorted({name for names in METRICS.values() for name in names}) if task is None else METRICS[task]
    if metric is None:
        return None if task is None else METRICS[task][0]
    name = metric.strip().lower().replace("-", "_").replace(" ", "_")
    name = ALSO.get(name, name)
    if name not in known:
        suits = "" if task is None else f" for a {task} target"
        raise UserError(f"{argument('metric', metric)}: not known{suits}; choose from {', '.join(known)}.", USAGE)
    return name


def positive_class(label: str | None, classes: np.ndarray | None) -> int:
    """The index of the positive one of two classes: the named one, or by default the last."""
    if label is None:
        return 1
    if classes is None or len(classes) != 2:
        raise UserError(f"{argument('positive', label)}: the target must have two classes.", USAGE)
    names = [str(c) for c in classes]
    if str(label) not in names:
        raise UserError(
            f"{argument('positive', label)}: no such class; the target has {names[0]!r} and {names[1]!r}.", USAGE
        )
    return names.index(str(label))


def balanced_mistake(y: np.ndarray, s: np.ndarray) -> np.ndarray:
    """0–1 losses weighted so that their mean is the balanced error rate, the mean over classes of the error rates."""
    counts = np.bincount(y)
    return mistake(y, s) * len(y) / (np.count_nonzero(counts) * counts[y])


def misranked(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Losses whose mean is 1 − ROC AUC: the share of the rows of the other class that a row is ranked wrongly against.

    With m rows of class 1 and n − m of class 0, row i gets n/(2m) or n/(2(n − m)) times its share; ties count a half. Where one
    class is absent every loss is a half.
    """
    score, positive = p[:, 1], y == 1
    n, m = len(y), int(np.sum(positive))
    if m in (0, n):
        return np.full(n, 0.5)
    everywhere = rankdata(score)
    within = np.empty(n)
    within[positive], within[~positive] = rankdata(score[positive]), rankdata(score[~positive])
    below = everywhere - within  # rows of the other class that are ranked lower
    share = np.where(positive, 1 - below / (n - m), below / m)
    return share * n / (2 * np.where(positive, m, n - m))


def measure_for(task: str, classes: np.ndarray | None, mean: float = 1.0, metric: str | None = None) -> Measure:
    """The measure of a task, or the named one; ``mean`` is the mean count of the training rows."""
    name = metric or METRICS[task][0]
    title = TITLES[name]
    if task in ("binary", "multiclass"):
        loss = {
            "log_loss": log_loss, "brier": brier, "accuracy": mistake, "balanced_accuracy": balanced_mistake, "auc": misranked,
        }[name]  # fmt: skip
        return Measure(title, classes, True, loss, name == "brier")
    if name == "poisson_deviance":
        return Measure(title, None, False, partial(poisson_deviance, mean=mean), False)
    if name == "mae":
        return Measure(title, None, False, absolute, False)
    return Measure(title, None, False, squared, True, root=True)


def best_constant(y: np.ndarray, classes: np.ndarray | None, metric: str | None = None) -> np.ndarray:
    """The prediction that ignores the inputs: shares of classes, or the mean (the median for the mean absolute error)."""
    if classes is None:
        return np.asarray(np.median(y) if metric == "mae" else np.mean(y))
    return np.bincount(y.astype(np.int64), minlength=len(classes)) / len(y)


def constant_losses(measure: Measure, y: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """The losses of a constant prediction."""
    return measure.pointwise(y, np.broadcast_to(constant, (len(y), *constant.shape)))


def explained(loss: np.ndarray, trivial: np.ndarray) -> float:
    """The share of the constant's loss that the model removes: R² for real targets, D² otherwise."""
    return float(1 - np.mean(loss) / np.mean(trivial)) if np.mean(trivial) > 0 else 0.0


def details(y: np.ndarray, prediction: np.ndarray, task: str, positive: int = 1) -> dict[str, float]:
    """The metrics reported beside the loss; ``positive`` is the class that average precision is computed for."""
    from sklearn import metrics

    if task in ("binary", "multiclass"):
        guess = np.argmax(prediction, axis=1)
        found = {
            "accuracy": float(np.mean(guess == y)),
            "balanced accuracy": float(np.mean([np.mean(guess[y == c] == c) for c in np.unique(y)])),
        }
        if task == "binary" and len(np.unique(y)) == 2:
            found["ROC AUC"] = float(metrics.roc_auc_score(y, prediction[:, 1]))
            hit = (y == positive).astype(np.int64)
            found["average precision"] = float(metrics.average_precision_score(hit, prediction[:, positive]))
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
