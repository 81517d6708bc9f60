"""Prediction intervals and sets, by split conformal prediction on the held-out rows.

With the scores sᵢ = |yᵢ − f(xᵢ)| of n rows that the model was not fitted to, or 1 − p(yᵢ | xᵢ) for classes, the ⌈(n + 1) level⌉-th
smallest is a q such that a new row of the same kind has s ≤ q with probability at least ``level``: f(x) ± q holds the target, or
the set {c : p(c | x) ≥ 1 − q} the class. (Vovk et al. 2005; the model of the file is fitted to all rows and is no worse.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.errors import USAGE, UserError
from hinge.report.evidence import Evidence

KEPT = 2000  # scores that are stored in the file


def calibration(evidence: Evidence) -> dict[str, Any]:
    """The conformity scores of the held-out rows, sorted; at most KEPT of them, at evenly spaced ranks."""
    y, p = evidence.y, evidence.prediction
    scores = np.sort(1 - p[np.arange(len(y)), y.astype(np.int64)] if evidence.classes else np.abs(y - p))
    ranks = np.unique(np.ceil(np.linspace(1, len(scores), min(len(scores), KEPT))).astype(int))
    return {"rows": len(scores), "ranks": ranks.tolist(), "scores": scores[ranks - 1].tolist()}


def threshold(card: dict[str, Any], level: float) -> float:
    """The quantile q of a level; infinite if there are too few rows for it."""
    if not 0 < level < 1:
        raise UserError(f"the level of an interval must be between 0 and 1, got {level:g}.", USAGE)
    kept = card.get("conformal")
    if not kept:
        raise UserError("the model has no scores of rows kept apart; fit it again with this version of hinge.")
    rank = int(np.ceil((kept["rows"] + 1) * level))
    place = int(np.searchsorted(kept["ranks"], rank))
    return float(kept["scores"][place]) if rank <= kept["rows"] else float("inf")


def interval(outputs: np.ndarray, card: dict[str, Any], level: float) -> np.ndarray:
    """The interval of every row; lower ends of counts are clipped at zero."""
    q = threshold(card, level)
    low = outputs - q
    return np.column_stack([np.maximum(low, 0.0) if card["task"] == "count" else low, outputs + q])


def label_sets(outputs: np.ndarray, card: dict[str, Any], level: float) -> np.ndarray:
    """Boolean rows × classes: membership in the prediction set, which always contains the likeliest class."""
    inside = outputs >= 1 - threshold(card, level) - 1e-12
    inside[np.arange(len(outputs)), np.argmax(outputs, axis=1)] = True
    return inside
