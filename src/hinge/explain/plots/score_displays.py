"""Plots of a classifier's performance: ROC curve, precision and recall, confusion matrix."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.metrics import auc, average_precision_score, confusion_matrix, precision_recall_curve, roc_curve

from hinge.explain.plots.axes import axes_or_new

Array = np.ndarray


def positive_scores(estimator: Any, X: Any, pos_label: Any = None) -> tuple[Array, Any]:
    """Scores for the positive class (probabilities if available), and the positive class."""
    classes = list(estimator.classes_)
    if len(classes) != 2:
        raise ValueError(f"{type(estimator).__name__} has {len(classes)} classes; this picture is for two.")
    label = classes[1] if pos_label is None else pos_label
    if label not in classes:
        raise ValueError(f"pos_label={pos_label!r} is not one of the classes {classes}.")
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(X))[:, classes.index(label)], label
    scores = np.asarray(estimator.decision_function(X))
    return (scores if label == classes[1] else -scores), label


class _ScoreDisplay:
    ax_: Any
    figure_: Any
    line_: Any
    from_predictions: Any  # of the subclasses, with the same keywords

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, pos_label: Any = None, sample_weight: Any = None, ax: Any = None,
        name: str | None = None,
    ) -> Self:  # fmt: skip
        """Score and draw."""
        scores, label = positive_scores(estimator, X, pos_label)
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, scores, pos_label=label, sample_weight=sample_weight, ax=ax, name=name)

    def _line(self, ax: Any, x: Array, y: Array, xlabel: str, ylabel: str, label: str, **options: Any) -> None:
        self.ax_ = ax = axes_or_new(ax)
        self.figure_ = ax.figure
        (self.line_,) = ax.plot(x, y, label=label, **options)
        ax.set(xlabel=xlabel, ylabel=ylabel, xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
        ax.legend()


class RocCurveDisplay(_ScoreDisplay):
    """True positive rate against false positive rate over all thresholds.

    Parameters
    ----------
    fpr, tpr : arrays
        The rates at every threshold, from (0, 0) to (1, 1).
    roc_auc : float
        The area under the curve.
    name : str
        A name for the legend.

    Attributes
    ----------
    ax_, figure_, line_ : what was drawn

    Examples
    --------
    >>> import hinge as hg
    >>> heart = hg.load_dataset("heart")
    >>> model = hg.LogisticRegression().fit(heart.X[:200], heart.y[:200])
    >>> display = hg.plots.RocCurveDisplay.from_estimator(model, heart.X[200:], heart.y[200:])
    >>> bool(display.roc_auc > 0.8)
    True
    """

    def __init__(self, *, fpr: Array, tpr: Array, roc_auc: float, name: str = "") -> None:
        self.fpr, self.tpr, self.roc_auc, self.name = fpr, tpr, roc_auc, name

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_score: Any, *, pos_label: Any = None, sample_weight: Any = None, ax: Any = None,
        name: str = "",
    ) -> RocCurveDisplay:  # fmt: skip
        """Draw given scores."""
        fpr, tpr, _ = roc_curve(y_true, y_score, pos_label=pos_label, sample_weight=sample_weight)
        return cls(fpr=fpr, tpr=tpr, roc_auc=float(auc(fpr, tpr)), name=name).plot(ax)

    def plot(self, ax: Any = None) -> RocCurveDisplay:
        """Draw, with the diagonal of guessing."""
        title = f"{self.name} (AUC = {self.roc_auc:.2f})".strip()
        self._line(ax, self.fpr, self.tpr, "False positive rate", "True positive rate", title)
        self.ax_.plot([0, 1], [0, 1], ":", color="grey")
        return self


class PrecisionRecallDisplay(_ScoreDisplay):
    """Precision against recall over all thresholds.

    Parameters
    ----------
    precision, recall : arrays
        Both at every threshold.
    average_precision : float
        The precision, averaged over the steps of the recall.
    name : str
        A name for the legend.

    Attributes
    ----------
    ax_, figure_, line_ : what was drawn
    """

    def __init__(self, *, precision: Array, recall: Array, average_precision: float, name: str = "") -> None:
        self.precision, self.recall, self.average_precision, self.name = precision, recall, average_precision, name

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_score: Any, *, pos_label: Any = None, sample_weight: Any = None, ax: Any = None,
        name: str = "",
    ) -> PrecisionRecallDisplay:  # fmt: skip
        """Draw given scores."""
        positive = np.unique(np.asarray(y_true))[-1] if pos_label is None else pos_label
        precision, recall, _ = precision_recall_curve(y_true, y_score, pos_label=positive, sample_weight=sample_weight)
        hit = (np.asarray(y_true) == positive).astype(int)
        mean = float(average_precision_score(hit, y_score, sample_weight=sample_weight))
        return cls(precision=precision, recall=recall, average_precision=mean, name=name).plot(ax)

    def plot(self, ax: Any = None) -> PrecisionRecallDisplay:
        """Draw."""
        title = f"{self.name} (AP = {self.average_precision:.2f})".strip()
        self._line(ax, self.recall, self.precision, "Recall", "Precision", title, drawstyle="steps-post")
        return self


class ConfusionMatrixDisplay:
    """The number of examples of class i (rows) predicted as class j (columns).

    Parameters
    ----------
    confusion_matrix : array
        Counts or shares, true classes down and predicted ones across.
    display_labels : sequence, optional
        The names of the classes; their numbers by default.

    Attributes
    ----------
    ax_, figure_, im_ : what was drawn
    text_ : array of texts
    """

    def __init__(self, confusion_matrix: Array, *, display_labels: Any = None) -> None:
        self.confusion_matrix = np.asarray(confusion_matrix)
        self.display_labels = display_labels

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, normalize: str | None = None, sample_weight: Any = None, ax: Any = None
    ) -> ConfusionMatrixDisplay:
        """Predict and draw; ``normalize`` is "true", "pred" or "all"."""
        return cls.from_predictions(
            y, estimator.predict(X), labels=estimator.classes_, normalize=normalize, sample_weight=sample_weight, ax=ax
        )

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any, *, labels: Any = None, normalize: str | None = None, sample_weight: Any = None,
        ax: Any = None,
    ) -> ConfusionMatrixDisplay:  # fmt: skip
        """Draw given predictions."""
        labels = np.unique(np.concatenate([np.asarray(y_true), np.asarray(y_pred)])) if labels is None else labels
        table = confusion_matrix(y_true, y_pred, labels=labels, normalize=normalize, sample_weight=sample_weight)
        return cls(table, display_labels=labels).plot(ax)

    def plot(self, ax: Any = None) -> ConfusionMatrixDisplay:
        """Draw."""
        self.ax_ = ax = axes_or_new(ax)
        self.figure_ = ax.figure
        table = self.confusion_matrix
        self.im_ = ax.imshow(table, cmap="viridis")
        middle = 0.5 * (table.max() + table.min())
        self.text_ = np.empty(table.shape, dtype=object)
        for (i, j), value in np.ndenumerate(table):
            shown = format(value, ".2g") if table.dtype.kind == "f" else str(value)
            colour = "black" if value > middle else "white"
            self.text_[i, j] = ax.text(j, i, shown, ha="center", va="center", color=colour)
        names = range(len(table)) if self.display_labels is None else self.display_labels
        ax.set_xticks(range(len(table)), [str(n) for n in names])
        ax.set_yticks(range(len(table)), [str(n) for n in names])
        ax.set(xlabel="Predicted label", ylabel="True label")
        return self
