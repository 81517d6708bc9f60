"""Whether predicted probabilities are frequencies: reliability curves, calibration error, Brier score, and pictures.

A classifier is calibrated if, among examples to which it gives probability p, a fraction p is positive. The expected
calibration error is Σ_b (W_b/W) |frequency in bin b − mean probability in bin b|; the Brier score is the mean squared
difference between probability and outcome, which calibration alone does not make small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from hinge.problem.losses import normalise_weights

Array = NDArray[np.float64]


def _outcomes(y_true: Any, y_prob: Any, pos_label: Any, classes: Any = None) -> tuple[Array, Array]:
    """1 for the positive class (or a right prediction) and the probability said for it.

    With a matrix of probabilities the prediction is the most probable class, and its probability is the confidence.
    """
    p = np.asarray(y_prob, dtype=np.float64)
    y = column_or_1d(np.asarray(y_true))
    check_consistent_length(y, p)
    if not np.all((p >= 0) & (p <= 1)):
        raise ValueError("y_prob has values outside [0, 1].")
    labels = np.unique(y) if classes is None else np.asarray(classes)
    if p.ndim == 2:
        if p.shape[1] != len(labels):
            raise ValueError(f"y_prob has {p.shape[1]} columns but there are {len(labels)} classes; give classes.")
        best = np.argmax(p, axis=1)
        return (labels[best] == y).astype(np.float64), p[np.arange(len(p)), best]
    if len(labels) > 2:
        raise ValueError(f"Only binary classification is supported for one column of probabilities; classes {labels}.")
    positive = labels[-1] if pos_label is None else pos_label
    if pos_label is None and len(labels) == 1 and labels[0] in (0, -1):
        return np.zeros(len(y)), p
    return (y == positive).astype(np.float64), p


def _bins(p: Array, n_bins: int, strategy: str) -> NDArray[np.intp]:
    """The bin of every probability."""
    if int(n_bins) != n_bins or n_bins < 1:
        raise ValueError(f"n_bins must be a positive whole number, got {n_bins!r}.")
    if strategy == "uniform":
        edges = np.linspace(0.0, 1.0, n_bins + 1)
    elif strategy == "quantile":
        edges = np.percentile(p, np.linspace(0.0, 100.0, n_bins + 1))
    else:
        raise ValueError(f"strategy must be 'uniform' or 'quantile', got {strategy!r}.")
    return np.searchsorted(edges[1:-1], p)


def _curve(y: Array, p: Array, w: Array, place: NDArray[np.intp], n_bins: int) -> tuple[Array, Array, Array]:
    """Frequencies, mean probabilities and shares of the bins that hold something."""
    total = np.bincount(place, w, minlength=n_bins)
    used = total > 0
    frequency = np.bincount(place, w * y, minlength=n_bins)[used] / total[used]
    said = np.bincount(place, w * p, minlength=n_bins)[used] / total[used]
    return frequency, said, total[used] / total.sum()


def calibration_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    pos_label: Any = None,
    n_bins: int = 5,
    strategy: str = "uniform",
    sample_weight: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Frequencies of the positive class against mean predicted probabilities, bin by bin.

    Parameters
    ----------
    y_true : array of n labels, of two classes
    y_prob : array of n probabilities of the positive class
    pos_label : label, optional
        The positive class; the larger one by default.
    n_bins : int
    strategy : {"uniform", "quantile"}
        Bins of equal width, or of equally many examples.
    sample_weight : array of n weights, optional

    Returns
    -------
    prob_true, prob_pred : arrays, one entry per bin that is not empty

    Examples
    --------
    >>> import hinge as hg
    >>> true, said = hg.calibration_curve([0, 0, 1, 1], [0.1, 0.3, 0.3, 0.9], n_bins=2)
    >>> true.round(3), said.round(3)
    (array([0.333, 1.   ]), array([0.233, 0.9  ]))
    """
    y, p = _outcomes(y_true, y_prob, pos_label)
    w = normalise_weights(sample_weight, len(y))
    frequency, said, _ = _curve(y, p, w, _bins(p, n_bins, strategy), n_bins)
    return frequency, said


def expected_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    pos_label: Any = None,
    classes: Any = None,
    n_bins: int = 10,
    strategy: str = "uniform",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Σ_b (W_b/W) |frequency − mean probability| over bins b of the predicted probability.

    With a matrix of probabilities, of the most probable class (confidence against accuracy).

    Examples
    --------
    >>> import hinge as hg
    >>> round(hg.expected_calibration_error([0, 0, 1, 1], [0.0, 0.5, 0.5, 1.0]), 6)
    0.0
    """
    y, p = _outcomes(y_true, y_prob, pos_label, classes)
    w = normalise_weights(sample_weight, len(y))
    frequency, said, share = _curve(y, p, w, _bins(p, n_bins, strategy), n_bins)
    return float(share @ np.abs(frequency - said))


def brier_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    pos_label: Any = None,
    classes: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The mean of (p − 1[y is positive])²; with a matrix of probabilities, the mean of Σ_j (p_j − 1[y = j])².

    Examples
    --------
    >>> import hinge as hg
    >>> hg.brier_score([0, 1], [0.5, 1.0])
    0.125
    """
    return float(
        np.dot(normalise_weights(sample_weight, len(np.asarray(y_true))), _squares(y_true, y_prob, pos_label, classes))
    )


def _squares(y_true: Any, y_prob: Any, pos_label: Any, classes: Any) -> Array:
    p = np.asarray(y_prob, dtype=np.float64)
    y, said = _outcomes(y_true, p, pos_label, classes)
    if p.ndim == 1:
        return (said - y) ** 2
    labels = np.unique(np.asarray(y_true)) if classes is None else np.asarray(classes)
    return np.sum((p - (np.asarray(y_true)[:, None] == labels)) ** 2, axis=1)


@dataclass(frozen=True)
class CalibrationReport:
    """Calibration error and Brier score with bootstrap bands, and the reliability curve with its own.

    Attributes
    ----------
    ece, brier : float
    ece_band, brier_band : (float, float)
        Central bootstrap intervals.
    prob_true, prob_pred, share : arrays
        The curve: frequency, mean probability and share of the examples of each bin that is not empty.
    prob_true_band : (array, array)
        Bootstrap intervals of the frequencies.
    """

    ece: float
    ece_band: tuple[float, float]
    brier: float
    brier_band: tuple[float, float]
    prob_true: Array
    prob_pred: Array
    share: Array
    prob_true_band: tuple[Array, Array]

    def __str__(self) -> str:
        return (
            f"ECE {self.ece:.4f} [{self.ece_band[0]:.4f}, {self.ece_band[1]:.4f}], "
            f"Brier {self.brier:.4f} [{self.brier_band[0]:.4f}, {self.brier_band[1]:.4f}]"
        )


def calibration_report(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    pos_label: Any = None,
    classes: Any = None,
    n_bins: int = 10,
    strategy: str = "uniform",
    n_bootstrap: int = 200,
    level: float = 0.95,
    random_state: Any = 0,
) -> CalibrationReport:
    """Measure calibration, with bands from resampling the examples (the bins stay).

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> p = np.linspace(0, 1, 1000)
    >>> y = (np.random.default_rng(0).random(1000) < p).astype(int)
    >>> report = hg.calibration_report(y, p)
    >>> bool(report.ece < 0.06 and report.brier_band[0] < 1 / 6 < report.brier_band[1])
    True
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level!r}.")
    y, p = _outcomes(y_true, y_prob, pos_label, classes)
    squares = _squares(y_true, y_prob, pos_label, classes)
    n = len(y)
    place = _bins(p, n_bins, strategy)
    frequency, said, share = _curve(y, p, np.ones(n), place, n_bins)
    filled = np.flatnonzero(np.bincount(place, minlength=n_bins))
    rng = np.random.default_rng(random_state)
    errors, briers, curves = [], [], np.full((n_bootstrap, len(filled)), np.nan)
    for b in range(n_bootstrap):
        w = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
        f, s, h = _curve(y, p, w, place, n_bins)
        there = np.flatnonzero(np.bincount(place, w, minlength=n_bins))
        curves[b, np.searchsorted(filled, there)] = f
        errors.append(float(h @ np.abs(f - s)))
        briers.append(float(w @ squares) / n)
    ends = [0.5 - 0.5 * level, 0.5 + 0.5 * level]
    ece_low, ece_high = np.quantile(errors, ends)
    brier_low, brier_high = np.quantile(briers, ends)
    low, high = np.nanquantile(curves, ends, axis=0)
    return CalibrationReport(
        float(share @ np.abs(frequency - said)), (float(ece_low), float(ece_high)), float(squares.mean()),
        (float(brier_low), float(brier_high)), frequency, said, share, (low, high),
    )  # fmt: skip


class CalibrationDisplay:
    """A reliability diagram: frequency of the positive class against predicted probability.

    Make one with :meth:`from_predictions` or :meth:`from_estimator`. The names are scikit-learn's; there is a
    histogram of the probabilities below, and a bootstrap band around the curve, if asked for.

    Parameters
    ----------
    prob_true, prob_pred : arrays
        The curve, as from :func:`calibration_curve`.
    y_prob : array
        The probabilities.
    estimator_name : str, optional
    pos_label : label, optional
    band : (array, array), optional
        Where ``prob_true`` may lie.

    Examples
    --------
    >>> import hinge as hg
    >>> display = hg.CalibrationDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9], n_bins=2)
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
        """Draw the curve; ``kwargs`` go to matplotlib's plot."""
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
        true, said = calibration_curve(y_true, y_prob, pos_label=pos_label, n_bins=n_bins, strategy=strategy)
        band = None
        if n_bootstrap:
            band = calibration_report(
                y_true, y_prob, pos_label=pos_label, n_bins=n_bins, strategy=strategy, n_bootstrap=n_bootstrap
            ).prob_true_band
        display = cls(true, said, np.asarray(y_prob), estimator_name=name, pos_label=pos_label, band=band)
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
        said = estimator.predict_proba(X)[:, column]
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, said, pos_label=positive, name=name, **kwargs)
