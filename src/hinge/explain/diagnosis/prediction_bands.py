"""The error of single predictions: conformal intervals and sets from the held-out predictions of a diagnosis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hinge.models.conformal.base import upper_quantile
from hinge.select.measure import Measure
from hinge.select.resample import HeldOut

Array = np.ndarray


@dataclass(frozen=True)
class Reach:
    """A prediction interval or set with its coverage.

    Attributes
    ----------
    coverage : float
        How often the truth is inside (about; exactly, with :class:`ConformalRegressor` or :class:`ConformalClassifier`).
    half_width : float or None
        The interval is the prediction ± this, for regressors.
    set_size : float or None
        How many classes a set holds on average, for classifiers with probabilities.
    """

    coverage: float
    half_width: float | None
    set_size: float | None

    def __str__(self) -> str:
        if self.half_width is not None:
            return (
                f"{100 * self.coverage:g} % of targets lie within ±{self.half_width:.4g} of what is predicted for them."
            )
        return (
            f"A set of classes that holds the right one for {100 * self.coverage:g} % of rows has {self.set_size:.2f} "
            "members on average."
        )


def measure_reach(targets: Array, measure: Measure, held: HeldOut, coverage: float = 0.9) -> Reach | None:
    """From held-out scores |y − f(x)| or 1 − p(y | x). None without probabilities."""
    y = targets[held.rows]
    if measure.classes is None:
        return Reach(coverage, upper_quantile(np.abs(y - held.output), 1.0 - coverage), None)
    if not measure.probabilities:
        return None
    scores = 1.0 - held.output
    threshold = upper_quantile(scores[np.arange(len(y)), y], 1.0 - coverage)
    return Reach(coverage, None, float(np.mean(np.sum(scores <= threshold, axis=1))))
