"""Precomputed predictions as estimators, so that any scorer of scikit-learn can be applied to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if


class PrecomputedRegressor(RegressorMixin, BaseEstimator):
    """Returns the given predictions."""

    def __init__(self, predictions: Any) -> None:
        self.predictions = predictions

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> np.ndarray:
        p = self.predictions
        return p[:, 0] if p.ndim == 2 and p.shape[1] == 1 else p


class PrecomputedClassifier(ClassifierMixin, BaseEstimator):
    """Returns the given labels, and the given scores or probabilities."""

    def __init__(self, classes: Any, labels: Any, scores: Any = None, probabilities: Any = None) -> None:
        self.classes = classes
        self.labels = labels
        self.scores = scores
        self.probabilities = probabilities

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> np.ndarray:
        return self.classes

    def predict(self, X: Any) -> np.ndarray:
        return self.labels

    @available_if(lambda self: self.scores is not None)
    def decision_function(self, X: Any) -> np.ndarray:
        return self.scores

    @available_if(lambda self: self.probabilities is not None)
    def predict_proba(self, X: Any) -> np.ndarray:
        return self.probabilities
