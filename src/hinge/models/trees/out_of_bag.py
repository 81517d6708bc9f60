"""Out-of-bag scores: rows are scored by the members of an ensemble that were not fitted to them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


def out_of_bag_score(
    scoring: Any, y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None, *, classes: bool
) -> float:
    """The value of a callable ``oob_score``; otherwise the accuracy or R², NaN if too few rows are out of bag."""
    if callable(scoring):
        return float(scoring(y, predicted))
    if classes:
        right = (predicted == y).reshape(len(y), -1).all(axis=1)  # all labels of the row
        return float(np.average(right, weights=weight)) if len(y) else float("nan")
    from sklearn.metrics import r2_score

    return float(r2_score(y, predicted, sample_weight=weight)) if len(y) > 1 else float("nan")


def forget_out_of_bag(model: Any) -> None:
    """Remove the attributes of an earlier fit with ``oob_score``, which belong to other members."""
    for name in ("oob_score_", "oob_decision_function_", "oob_prediction_"):
        vars(model).pop(name, None)


def warn_of_few(covered: np.ndarray, members: str) -> None:
    """Warn, as scikit-learn does, if some rows were in every bag."""
    if not np.all(covered):
        warnings.warn(
            f"Some inputs do not have OOB scores. This probably means too few {members} were used to compute any "
            "reliable oob estimates.",
            UserWarning,
            stacklevel=4,
        )
