"""Boosting that starts from the predictions of another estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from hinge.models.trees.boosting_loss import BoostedLoss
from hinge.problem.losses import Exponential
from hinge.problem.losses.likelihood import LogLink

TINY = float(np.finfo(np.float32).eps)  # probabilities are at least this far from 0 and 1


def fitted_start(init: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> Any:
    """A clone of ``init``, fitted to the training rows."""
    if weight is None:
        return clone(init).fit(X, y)
    if not has_fit_parameter(init, "sample_weight"):
        raise ValueError(
            f"The initial estimator {type(init).__name__} does not support sample weights, but sample_weight was given."
        )
    return clone(init).fit(X, y, sample_weight=weight)


def start_scores(init: Any, X: np.ndarray, loss: BoostedLoss, model: Any) -> np.ndarray:
    """The predictions of ``init`` as scores (n × outputs): log-odds of classes, logarithms of means under a log link."""
    definition = loss.definition
    if not definition.target.is_classes:
        mean = np.asarray(init.predict(X), dtype=np.float64).reshape(len(X), 1)
        return np.log(np.maximum(mean, TINY)) if isinstance(definition, LogLink) else mean
    if not hasattr(init, "predict_proba"):
        label = np.asarray(init.predict(X))[:, None] == model.classes_
        p = np.clip(label.astype(np.float64), TINY, 1.0 - TINY)
    else:
        p = np.clip(np.asarray(init.predict_proba(X), dtype=np.float64), TINY, 1.0 - TINY)
    if loss.outputs > 1:
        s = np.log(p)
        return s - s.mean(axis=1, keepdims=True)
    return (np.log(p[:, 1:]) - np.log1p(-p[:, 1:])) * (0.5 if isinstance(definition, Exponential) else 1.0)
