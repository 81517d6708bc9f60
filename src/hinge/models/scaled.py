"""A regressor on the standardised target, so that step sizes and strengths do not depend on the unit of y."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted


class ScaledTarget(RegressorMixin, BaseEstimator):
    """f(x) = mean + scale · g(x), with g fitted to (y − mean) / scale.

    Parameters
    ----------
    regressor : regressor

    Attributes
    ----------
    regressor_ : the fitted g
    mean_, scale_ : float
        Mean and standard deviation of y (1 if it is constant).
    """

    def __init__(self, regressor: Any) -> None:
        self.regressor = regressor

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ScaledTarget:
        """Standardise y and fit the regressor to it."""
        y = np.asarray(y, dtype=np.float64)
        self.mean_ = float(np.average(y, weights=sample_weight))
        self.scale_ = float(np.sqrt(np.average((y - self.mean_) ** 2, weights=sample_weight))) or 1.0
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.regressor_ = clone(self.regressor).fit(X, self.standardised(y), **weight)
        return self

    def standardised(self, y: np.ndarray) -> np.ndarray:
        """y in the units of the regressor."""
        return (y - self.mean_) / self.scale_

    def predict(self, X: Any) -> np.ndarray:
        """Predictions in the units of y."""
        check_is_fitted(self)
        return self.mean_ + self.scale_ * np.asarray(self.regressor_.predict(X), dtype=np.float64)
