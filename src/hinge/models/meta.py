"""What code for any estimator needs: the last step of a pipeline, rows of any table."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing


def final_step(model: Any) -> Any:
    """The estimator at the end of a pipeline; the model itself if it is not one."""
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    return model


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Rows of an array, a sparse matrix or a data frame."""
    return _safe_indexing(X.tocsr() if hasattr(X, "tocsr") else X, rows)


def row_count(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def require_classifier(owner: Any, estimator: Any) -> None:
    """Refuse a regressor as the learner of a classifier that counts or weighs labels."""
    if is_classifier(owner) and is_regressor(estimator):
        raise ValueError(
            f"estimator={type(estimator).__name__} is a regressor; {type(owner).__name__} needs a classifier."
        )


def set_seeds(estimator: Any, seed: int) -> None:
    """Set ``random_state`` to the seed, and that of every estimator inside to another that follows from it."""
    names = sorted(estimator.get_params(deep=True))
    inner = [name for name in names if name.endswith("__random_state")]
    seeds = np.random.default_rng(seed).integers(2**31 - 1, size=len(inner)).tolist()
    own = {"random_state": seed} if "random_state" in names else {}
    estimator.set_params(**own, **dict(zip(inner, seeds)))
