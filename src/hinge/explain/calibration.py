"""Calibration of predicted probabilities: reliability curves, calibration error, Brier score.

A classifier is calibrated if a fraction p of the examples with predicted probability p is positive. The expected
calibration error is Σ_b (W_b/W) |frequency in bin b − mean probability in bin b|; the Brier score is the mean squared
difference between probability and outcome, which calibration alone does not make small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from hinge.problem.losses import normalise_weights
from hinge.select.estimate import Estimate, mean_of
from hinge.select.measure import brier, log_loss, mistake

Array = NDArray[np.float64]


def _outcomes(y_true: Any, y_prob: Any, pos_label: Any, classes: Any = None) -> tuple[Array, Array]:
    """1 for the positive class (or a right prediction) and the probability predicted for it.

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
    """Frequencies, mean probabilities and weights of the nonempty bins."""
    total = np.bincount(place, w, minlength=n_bins)
    used = total > 0
    frequency = np.bincount(place, w * y, minlength=n_bins)[used] / total[used]
    predicted = np.bincount(place, w * p, minlength=n_bins)[used] / total[used]
    return frequency, predicted, total[used] / total.sum()


def calibration_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    pos_label: Any = None,
    n_bins: int = 5,
    strategy: str = "uniform",
    sample_weight: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Frequencies of the positive class against mean predicted probabilities, by bin.

    Parameters
    ----------
    y_true : array of n labels, of two classes
        What was observed.
    y_prob : array of n probabilities of the positive class
        What was predicted, between 0 and 1.
    pos_label : label, optional
        The positive class; the larger one by default.
    n_bins, strategy, sample_weight
        As for :func:`hinge.metrics.expected_calibration_error`.

    Returns
    -------
    prob_true, prob_pred : arrays, one entry per bin that is not empty

    Examples
    --------
    >>> import hinge as hg
    >>> true, predicted = hg.metrics.calibration_curve([0, 0, 1, 1], [0.1, 0.3, 0.3, 0.9], n_bins=2)
    >>> true.round(3), predicted.round(3)
    (array([0.333, 1.   ]), array([0.233, 0.9  ]))
    """
    y, p = _outcomes(y_true, y_prob, pos_label)
    w = normalise_weights(sample_weight, len(y))
    frequency, predicted, _ = _curve(y, p, w, _bins(p, n_bins, strategy), n_bins)
    return frequency, predicted


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

    With a matrix of probabilities it uses the most probable class (confidence against accuracy).

    Parameters
    ----------
    y_true : array of n labels
        What was observed.
    y_prob : array of n probabilities, or n × k
        Predicted probabilities of the positive class, or of each of k classes.
    pos_label : label, optional
        The positive class of two; the larger one by default.
    classes : sequence of k labels, optional
        What the columns of a matrix of probabilities belong to; the sorted labels of ``y_true`` by default.
    n_bins : int
        How many bins [0, 1] is cut into.
    strategy : {"uniform", "quantile"}
        Bins of equal width, or of equally many examples.
    sample_weight : array of n weights, optional
        How much each example counts; all the same by default.

    Examples
    --------
    >>> import hinge as hg
    >>> round(hg.metrics.expected_calibration_error([0, 0, 1, 1], [0.0, 0.5, 0.5, 1.0]), 6)
    0.0
    """
    y, p = _outcomes(y_true, y_prob, pos_label, classes)
    w = normalise_weights(sample_weight, len(y))
    frequency, predicted, share = _curve(y, p, w, _bins(p, n_bins, strategy), n_bins)
    return float(share @ np.abs(frequency - predicted))


def brier_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    pos_label: Any = None,
    classes: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The mean of (p − 1[y is positive])²; with a matrix of probabilities, the mean of Σ_j (p_j − 1[y = j])².

    Parameters
    ----------
    y_true, y_prob, pos_label, classes, sample_weight
        As for :func:`hinge.metrics.expected_calibration_error`.

    Examples
    --------
    >>> import hinge as hg
    >>> hg.metrics.brier_score([0, 1], [0.5, 1.0])
    0.125
    """
    return float(
        np.dot(normalise_weights(sample_weight, len(np.asarray(y_true))), _squares(y_true, y_prob, pos_label, classes))
    )


def _squares(y_true: Any, y_prob: Any, pos_label: Any, classes: Any) -> Array:
    p = np.asarray(y_prob, dtype=np.float64)
    y, predicted = _outcomes(y_true, p, pos_label, classes)
    if p.ndim == 1:
        return (predicted - y) ** 2
    labels = np.unique(np.asarray(y_true)) if classes is None else np.asarray(classes)
    return np.sum((p - (np.asarray(y_true)[:, None] == labels)) ** 2, axis=1)


@dataclass(frozen=True)
class CalibrationReport:
    """Calibration error, Brier score and reliability curve, each with bootstrap bands.

    Attributes
    ----------
    ece, brier : float
        The expected calibration error and the Brier score of the examples.
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
    """Measure calibration, with bands from resampling the examples (the bins are fixed).

    Parameters
    ----------
    y_true, y_prob, pos_label, classes, n_bins, strategy
        As for :func:`hinge.metrics.expected_calibration_error`.
    n_bootstrap : int
        How many times the examples are drawn anew, with replacement.
    level : float
        The coverage of the bands, strictly between 0 and 1.
    random_state : int or Generator
        Seed of the draws.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> p = np.linspace(0, 1, 1000)
    >>> y = (np.random.default_rng(0).random(1000) < p).astype(int)
    >>> report = hg.metrics.calibration_report(y, p)
    >>> bool(report.ece < 0.06 and report.brier_band[0] < 1 / 6 < report.brier_band[1])
    True
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level!r}.")
    y, p = _outcomes(y_true, y_prob, pos_label, classes)
    squares = _squares(y_true, y_prob, pos_label, classes)
    n = len(y)
    place = _bins(p, n_bins, strategy)
    frequency, predicted, share = _curve(y, p, np.ones(n), place, n_bins)
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
    drawn = ~np.isnan(curves).all(axis=0)  # a bin of few rows may be in no resample: its interval is unknown
    low, high = np.full((2, len(filled)), np.nan)
    low[drawn], high[drawn] = np.nanquantile(curves[:, drawn], ends, axis=0)
    return CalibrationReport(
        float(share @ np.abs(frequency - predicted)), (float(ece_low), float(ece_high)), float(squares.mean()),
        (float(brier_low), float(brier_high)), frequency, predicted, share, (low, high),
    )  # fmt: skip


@dataclass(frozen=True)
class Reliability:
    """Predicted probabilities against observed frequencies.

    With two classes it evaluates the probability of the second; with more, that of the predicted class.

    Attributes
    ----------
    predicted, observed, count : arrays, one entry per bin that is not empty
    ece : float
        The expected calibration error, Σ (count/n) |observed − predicted|.
    brier, log_loss, error_rate : Estimate
    p : float
        Spiegelhalter's test: the probability of a Brier score this far from the one the probabilities promise, if they
        were right.
    overconfident : bool
        Whether probabilities are more extreme than the frequencies bear out.
    """

    predicted: Array
    observed: Array
    count: NDArray[np.intp]
    ece: float
    brier: Estimate
    log_loss: Estimate
    error_rate: Estimate
    p: float
    overconfident: bool

    @property
    def off(self) -> bool:
        """Whether miscalibration is both significant (p < 0.01) and large enough to matter (ECE ≥ 0.03)."""
        return self.p < 0.01 and self.ece >= 0.03


def reliability(codes: Array, probabilities: Array, bins: int = 10) -> Reliability:
    """Measure the calibration of probabilities (n × k) of labels coded 0 … k−1."""
    if probabilities.shape[1] == 2:
        p, hit = probabilities[:, 1], (codes == 1).astype(np.float64)
    else:
        p, hit = probabilities.max(axis=1), (codes == probabilities.argmax(axis=1)).astype(np.float64)
    place = _bins(p, bins, "quantile")
    observed, predicted, share = _curve(hit, p, np.ones(len(p)), place, bins)
    count = np.bincount(place, minlength=bins)
    ece = float(share @ np.abs(observed - predicted))
    # Σ (y − p)² against its expectation, Σ p(1 − p).
    promise = float(np.sum((1.0 - 2.0 * p) ** 2 * p * (1.0 - p)))
    excess = float(np.sum((hit - p) * (1.0 - 2.0 * p)))
    z = excess / np.sqrt(promise) if promise > 0 else (0.0 if excess == 0 else np.inf)
    return Reliability(
        predicted, observed, count[count > 0], ece, mean_of(brier(codes, probabilities)),
        mean_of(log_loss(codes, probabilities)), mean_of(mistake(codes, probabilities)),
        float(2.0 * scipy.stats.norm.sf(abs(z))), bool(z > 0),
    )  # fmt: skip
