"""A weighted mean of the predictions of several models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils.validation import check_is_fitted


class Blend(BaseEstimator):
    """f(x) = Σ_m α_m f_m(x), with α ≥ 0 and Σ α_m = 1: a mean of numbers or of class probabilities.

    Parameters
    ----------
    members : list of estimators
        All regressors, or all classifiers with ``predict_proba``.
    weights : list of float
        One α for each.

    Attributes
    ----------
    members_ : list of fitted estimators
    classes_ : array
        The classes, for classifiers.
    """

    def __init__(self, members: Sequence[Any], weights: Sequence[float]) -> None:
        self.members = members
        self.weights = weights

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier" if is_classifier(self.members[0]) else "regressor"
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags

    @classmethod
    def of(cls, fitted: Sequence[Any], weights: Sequence[float]) -> Blend:
        """The blend of fitted models."""
        blend = cls([clone(model) for model in fitted], [float(weight) for weight in weights])
        return blend._adopt(list(fitted))

    def _adopt(self, fitted: list[Any]) -> Blend:
        self.members_ = fitted
        if is_classifier(self.members[0]):
            self.classes_ = np.unique(np.concatenate([np.asarray(model.classes_) for model in fitted]))
        return self

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Blend:
        """Fit every member to the same rows."""
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self._adopt([clone(model).fit(X, y, **weight) for model in self.members])

    def __getattr__(self, name: str) -> Any:
        if name == "predict_proba" and is_classifier(self.__dict__.get("members", [None])[0]):
            return self._probabilities
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _probabilities(self, X: Any) -> np.ndarray:
        """The probability of every class."""
        check_is_fitted(self, "members_")
        total: Any = 0.0
        for model, weight in zip(self.members_, self.weights, strict=True):
            p = np.asarray(model.predict_proba(X), dtype=np.float64)
            full = np.zeros((len(p), len(self.classes_)))
            full[:, np.searchsorted(self.classes_, model.classes_)] = p
            total = total + weight * full
        return total

    def predict(self, X: Any) -> np.ndarray:
        """The mean, or the most probable class."""
        check_is_fitted(self, "members_")
        if hasattr(self, "classes_"):
            return self.classes_[np.argmax(self._probabilities(X), axis=1)]
        parts = [np.asarray(model.predict(X), dtype=np.float64).ravel() for model in self.members_]
        return np.asarray(self.weights) @ np.array(parts)
