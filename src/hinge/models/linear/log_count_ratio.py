"""Logistic models of terms weighted by their naive Bayes log-count ratios."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted


class LogCountRatioClassifier(ClassifierMixin, BaseEstimator):
    """f_c(x) = ⟨w_c, r_c ∘ x⟩ + b_c, one logistic model per class against the others (Wang & Manning 2012, NBSVM).

    r_cj = log((1 + Σ_{yᵢ=c} xᵢⱼ) / (1 + n_c)) − log((1 + Σ_{yᵢ≠c} xᵢⱼ) / (1 + n − n_c)); 1 for columns with negative values.
    w_c minimises Σᵢ log(1 + e^(−yᵢ f_c(xᵢ))) + ‖w_c‖² / (2C). With more than two classes the probabilities are the sigmoids of
    f_c, divided by their sum.

    Parameters
    ----------
    C : float
        The strength of the data against the penalty.

    Attributes
    ----------
    classes_ : array
    coef_ : array, models × columns
        r_c ∘ w_c.
    intercept_ : array
    """

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogCountRatioClassifier:
        """Weight the columns and fit a logistic model for every class (one for two classes)."""
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        least = X.min(axis=0)
        signed = np.asarray(least.toarray() if scipy.sparse.issparse(least) else least).ravel() < 0
        models = range(len(self.classes_)) if len(self.classes_) > 2 else [1]
        weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        fits = [self._one(X, codes == c, signed, weight) for c in models]
        self.coef_ = np.array([w for w, _ in fits])
        self.intercept_ = np.array([b for _, b in fits])
        self.n_features_in_ = X.shape[1]
        return self

    def _one(self, X: Any, own: np.ndarray, signed: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, float]:
        from hinge.models.learner import Learner
        from hinge.problem.losses import Logistic
        from hinge.problem.penalties import L2

        inside, outside = (np.log((1 + X.T @ (weight * part)) / (1 + weight @ part)) for part in (own, ~own))
        ratio = np.where(signed, 1.0, inside - outside)
        weighed = X @ scipy.sparse.diags_array(ratio) if scipy.sparse.issparse(X) else X * ratio
        model = Learner(loss=Logistic(), penalty=L2(1 / (self.C * len(own))), tol=1e-5).fit(weighed, own, weight)
        return ratio * model.coef_, float(np.ravel(model.intercept_)[0])

    def decision_function(self, X: Any) -> np.ndarray:
        """f_c of every class; f of the second class if there are two."""
        check_is_fitted(self)
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of every class."""
        p = expit(self.decision_function(X))
        if len(self.classes_) == 2:
            return np.column_stack([1 - p, p])
        p = np.maximum(p, np.finfo(np.float64).tiny)
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class."""
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
