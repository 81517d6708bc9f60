"""Plots of a fit: residuals, and weights with their intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.explain.plots.axes import axes_or_new
from hinge.models.meta import final_step, take_rows
from hinge.select.resample import fit_quietly

Array = np.ndarray
KINDS = ("actual_vs_predicted", "residual_vs_predicted")


class PredictionErrorDisplay:
    """Targets or residuals against predictions.

    Parameters
    ----------
    y_true, y_pred : arrays
        The targets and what was predicted for them.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    scatter_ : the points
    line_ : where perfect predictions lie

    Examples
    --------
    >>> import hinge as hg
    >>> X, y = hg.generators.LinearGaussian([1.0]).sample(50)
    >>> display = hg.plots.PredictionErrorDisplay.from_estimator(hg.Ridge().fit(X, y), X, y)
    >>> display.scatter_.get_offsets().shape
    (50, 2)
    """

    def __init__(self, *, y_true: Any, y_pred: Any) -> None:
        self.y_true, self.y_pred = np.asarray(y_true, dtype=np.float64), np.asarray(y_pred, dtype=np.float64)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, kind: str = "residual_vs_predicted", subsample: int = 1000,
        random_state: int = 0, ax: Any = None,
    ) -> PredictionErrorDisplay:  # fmt: skip
        """Predict and draw at most ``subsample`` points."""
        return cls.from_predictions(
            y, estimator.predict(X), kind=kind, subsample=subsample, random_state=random_state, ax=ax
        )

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any, *, kind: str = "residual_vs_predicted", subsample: int = 1000,
        random_state: int = 0, ax: Any = None,
    ) -> PredictionErrorDisplay:  # fmt: skip
        """Draw given predictions."""
        some = np.sort(np.random.default_rng(random_state).permutation(len(y_true))[:subsample])
        return cls(y_true=np.asarray(y_true)[some], y_pred=np.asarray(y_pred)[some]).plot(ax, kind=kind)

    def plot(self, ax: Any = None, *, kind: str = "residual_vs_predicted") -> PredictionErrorDisplay:
        """Draw."""
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}.")
        self.ax_ = ax = axes_or_new(ax)
        self.figure_ = ax.figure
        residual = kind == KINDS[1]
        self.scatter_ = ax.scatter(self.y_pred, self.y_true - self.y_pred if residual else self.y_true, s=12, alpha=0.6)
        low, high = float(self.y_pred.min()), float(self.y_pred.max())
        (self.line_,) = ax.plot([low, high], [0.0, 0.0] if residual else [low, high], "--", color="black", linewidth=1)
        ax.set(xlabel="Predicted values", ylabel="Residuals (actual − predicted)" if residual else "Actual values")
        return self


class CoefficientDisplay:
    """The weights of a linear model with intervals.

    The intervals are exact t intervals for least squares (``inference_``), otherwise percentiles of the weights over
    bootstrap samples, which measure the variability of the data but not the bias of a penalty.

    Parameters
    ----------
    names : sequence of str
        The name of each weight.
    coef, low, high : arrays
        The weights and the ends of their intervals.
    level : float
        The coverage of the intervals, such as 0.95.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    errorbar_ : what was drawn

    Examples
    --------
    >>> import hinge as hg
    >>> X, y = hg.generators.LinearGaussian([1.0, 0.0]).sample(50)
    >>> display = hg.plots.CoefficientDisplay.from_estimator(hg.LinearRegression().fit(X, y), X, y)
    >>> display.names
    ('x0', 'x1')
    """

    def __init__(self, *, names: Any, coef: Array, low: Array, high: Array, level: float) -> None:
        self.names, self.coef, self.low, self.high, self.level = tuple(names), coef, low, high, level

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, level: float = 0.95, repeats: int = 100,
        random_state: int = 0, ax: Any = None,
    ) -> CoefficientDisplay:  # fmt: skip
        """Compute intervals and draw. X and y, the training data, are needed unless the model has ``inference_``."""
        if not 0 < level < 1:
            raise ValueError(f"level must lie strictly between 0 and 1, got {level!r}.")
        last = final_step(estimator)
        coef = np.ravel(last.coef_).astype(np.float64)
        names = tuple(getattr(last, "feature_names_in_", [f"x{j}" for j in range(len(coef))]))
        inference = getattr(last, "inference_", None)
        if inference is not None:
            low, high = inference.interval(level)[-len(coef) :].T
        elif X is None or y is None:
            raise ValueError(f"{type(last).__name__} has no inference_: X and y are needed to find intervals.")
        else:
            copies = _bootstrap_weights(estimator, X, y, repeats, random_state)
            low, high = np.quantile(copies, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        return cls(names=names, coef=coef, low=low, high=high, level=level).plot(ax)

    def plot(self, ax: Any = None, *, most: int = 30) -> CoefficientDisplay:
        """Draw, largest weight on top; at most ``most`` of them."""
        self.ax_ = ax = axes_or_new(ax)
        self.figure_ = ax.figure
        order = np.argsort(np.abs(self.coef), kind="stable")[-most:]
        place = np.arange(len(order))
        middle = 0.5 * (self.low + self.high)[order]
        half = 0.5 * (self.high - self.low)[order]
        self.errorbar_ = ax.errorbar(middle, place, xerr=half, fmt="none", capsize=3, color="grey")
        (self.points_,) = ax.plot(self.coef[order], place, "o")
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.set_yticks(place, [self.names[j] for j in order])
        ax.set_xlabel(f"weight, with {100 * self.level:g} % intervals")
        return self


def _bootstrap_weights(estimator: Any, X: Any, y: Any, repeats: int, random_state: int) -> Array:
    rng = np.random.default_rng(random_state)
    n, found = len(y), []
    labels = np.asarray(y) if hasattr(final_step(estimator), "classes_") else None
    for _ in range(repeats):
        rows = rng.integers(0, n, size=n)
        if labels is not None and len(np.unique(labels[rows])) < len(np.unique(labels)):
            continue
        found.append(np.ravel(final_step(fit_quietly(estimator, take_rows(X, rows), take_rows(y, rows))).coef_))
    return np.array(found)
