"""Are predicted probabilities to be believed? Of the days with a 70 % forecast, did it rain on 70 %?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.stats

from hinge.explain.estimate import Estimate, mean_of
from hinge.explain.measure import brier, log_loss, mistake

Array = np.ndarray


@dataclass(frozen=True)
class Reliability:
    """Predicted probabilities against observed frequencies.

    With two classes the probability of the second is judged; with more, that of the predicted class.

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
    count: Array
    ece: float
    brier: Estimate
    log_loss: Estimate
    error_rate: Estimate
    p: float
    overconfident: bool

    @property
    def off(self) -> bool:
        """Miscalibration that is both certain (p < 0.01) and large enough to matter (ECE ≥ 0.03)."""
        return self.p < 0.01 and self.ece >= 0.03


def reliability(codes: Array, probabilities: Array, bins: int = 10) -> Reliability:
    """Measure the calibration of probabilities (n × k) of labels coded 0 … k−1."""
    if probabilities.shape[1] == 2:
        p, hit = probabilities[:, 1], (codes == 1).astype(np.float64)
    else:
        p, hit = probabilities.max(axis=1), (codes == probabilities.argmax(axis=1)).astype(np.float64)
    edges = np.unique(np.quantile(p, np.linspace(0, 1, bins + 1)[1:-1]))
    where = np.searchsorted(edges, p, side="left")
    count = np.bincount(where, minlength=len(edges) + 1)
    full = count > 0
    predicted, observed = (np.bincount(where, v, minlength=len(count))[full] / count[full] for v in (p, hit))
    ece = float(np.sum(count[full] * np.abs(observed - predicted)) / len(p))
    # Σ (y − p)² against what it should be, Σ p(1 − p).
    promise = float(np.sum((1.0 - 2.0 * p) ** 2 * p * (1.0 - p)))
    excess = float(np.sum((hit - p) * (1.0 - 2.0 * p)))
    z = excess / np.sqrt(promise) if promise > 0 else (0.0 if excess == 0 else np.inf)
    return Reliability(
        predicted, observed, count[full], ece, mean_of(brier(codes, probabilities)),
        mean_of(log_loss(codes, probabilities)), mean_of(mistake(codes, probabilities)),
        float(2.0 * scipy.stats.norm.sf(abs(z))), bool(z > 0),
    )  # fmt: skip
