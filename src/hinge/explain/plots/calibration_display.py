"""The reliability diagram."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.explain.calibration import Array, calibration_curve, calibration_report


class CalibrationDisplay:
    """A reliability diagram: frequency of the positive class against predicted probability.

    Make one with :meth:`from_predictions` or :meth:`from_estimator`. The names are scikit-learn's; below is a histogram of
    the probabilities, and the curve may have a bootstrap band.

    Parameters
    ----------
    prob_true, prob_pred : arrays
        The curve, as from :func:`hinge.metrics.calibration_curve`.
    y_prob : array
        The probabilities.
    estimator_name : str, optional
        A name for the legend.
    pos_label : label, optional
        The class that the probabilities are of.
    band : (array, array), optional
        Where ``prob_true`` may lie.

    Examples
    --------
    >>> import hinge as hg
    >>> display = hg.plots.CalibrationDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9], n_bins=2)
    >>> display.prob_pred.tolist()
    [0.25, 0.75]
    """

    def __init__(
        self,
        prob_true: Array,
        prob_pred: Array,
        y_prob: Array,
        *,
        estimator_name: str | None = None,
        pos_label: Any = None,
        band: tuple[Array, Array] | None = None,
    ) -> None:
        self.prob_true = prob_true
        self.prob_pred = prob_pred
        self.y_prob = y_prob
        self.estimator_name = estimator_name
        self.pos_label = pos_label
        self.band = band

    def plot(self, *, ax: Any = None, name: str | None = None, ref_line: bool = True, **kwargs: Any) -> Any:
        """Draw the curve; ``kwargs`` are passed to matplotlib's plot."""
        import matplotlib.pyplot as plt

        self.ax_ = plt.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        label = "perfectly calibrated"
        if ref_line and label not in self.ax_.get_legend_handles_labels()[1]:
            self.ax_.plot([0, 1], [0, 1], "k:", label=label)
        name = self.estimator_name if name is None else name
        self.line_: Any = self.ax_.plot(self.prob_pred, self.prob_true, "s-", **({"label": name} | kwargs))[0]
        if self.band is not None:
            self.ax_.fill_between(self.prob_pred, *self.band, alpha=0.2, color=self.line_.get_color())
        positive = "" if self.pos_label is None else f" (positive class: {self.pos_label})"
        self.ax_.set_xlabel(f"mean predicted probability{positive}")
        self.ax_.set_ylabel(f"fraction of positives{positive}")
        self.ax_.legend(loc="lower right")
        return self

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        n_bins: int = 5,
        strategy: str = "uniform",
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        ref_line: bool = True,
        n_bootstrap: int = 0,
        **kwargs: Any,
    ) -> CalibrationDisplay:
        """Draw from labels and probabilities; ``n_bootstrap`` > 0 adds a 95 % band."""
        true, predicted = calibration_curve(y_true, y_prob, pos_label=pos_label, n_bins=n_bins, strategy=strategy)
        band = None
        if n_bootstrap:
            band = calibration_report(
                y_true, y_prob, pos_label=pos_label, n_bins=n_bins, strategy=strategy, n_bootstrap=n_bootstrap
            ).prob_true_band
        display = cls(true, predicted, np.asarray(y_prob), estimator_name=name, pos_label=pos_label, band=band)
        return display.plot(ax=ax, ref_line=ref_line, **kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, pos_label: Any = None, name: str | None = None, **kwargs: Any
    ) -> CalibrationDisplay:
        """Draw for a fitted classifier of two classes with ``predict_proba``; further arguments as above."""
        classes = estimator.classes_
        if len(classes) != 2:
            raise ValueError(
                f"The reliability diagram is for two classes; {type(estimator).__name__} has {len(classes)}."
            )
        positive = classes[1] if pos_label is None else pos_label
        column = int(np.flatnonzero(classes == positive)[0])
        predicted = estimator.predict_proba(X)[:, column]
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, predicted, pos_label=positive, name=name, **kwargs)
