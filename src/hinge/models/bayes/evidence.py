"""Evidence maximisation with scikit-learn's interface: one strength for all weights, or one for each.

Model       y ~ N(Xw + b, 1/α), w_j ~ N(0, 1/λ_j), α ~ Gamma(α₁, α₂), λ_j ~ Gamma(λ₁, λ₂), flat prior on b
Iteration   with γ_j = 1 − λ_j Σ_jj:   λ ← (Σγ + 2λ₁)/(‖w‖² + 2λ₂),   α ← (n − Σγ + 2α₁)/(‖y − Xw‖² + 2α₂)
Cost        one pass for the Gram matrix, one eigendecomposition; then an iteration is O(d) with one λ for all
Reference   MacKay (1992); Tipping (2001), appendix A
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hinge._native import Design
from hinge._parameters import Constraints, Estimator, at_least, shared
from hinge.models.base import check_predict, keep_float32, require_no_overflow
from hinge.models.bayes.predictive import Array, predicted
from hinge.models.callbacks import CallbackSupportMixin
from hinge.problem.decisions import Normal
from hinge.solvers.closed_form import Centred

EPS = np.finfo(np.float64).eps


def precision(freedom: float, squares: float, what: str, remedy: str) -> float:
    """The next α or λ; an error where it would be infinite: the prior then leaves the evidence without a maximum."""
    if squares == 0.0:
        raise ValueError(f"{what}, so the evidence has no maximum: set {remedy} > 0.")
    return freedom / squares


class EvidenceRegressor(CallbackSupportMixin, RegressorMixin, Estimator):
    """Base class of both estimators: the centred problem, and predictions with their variance."""

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("max_iter", "tol", "fit_intercept", "copy_X", "verbose"),
        "alpha_1": [at_least(0)],
        "alpha_2": [at_least(0)],
        "lambda_1": [at_least(0)],
        "lambda_2": [at_least(0)],
        "compute_score": ["boolean"],
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.sparse": True}

    coef_: Array
    intercept_: float
    sigma_: Array
    alpha_: float
    X_offset_: Array
    X_scale_: Array
    scores_: Any

    def _centred(self, X: Any, y: Any, weights: Array | None) -> tuple[Centred, float]:
        s = np.ones(X.shape[0]) if weights is None else weights
        total = float(s.sum())
        problem = Centred(Design(X), np.asarray(y, dtype=np.float64), s / total, self.fit_intercept)
        return problem, total

    def _adopt(self, X: Any, problem: Centred, w: Array, total: float) -> None:
        self.coef_ = keep_float32(w, X)
        self.sigma_ = keep_float32(self.sigma_, X)
        self.X_offset_ = keep_float32(problem.centre, X)
        self.X_scale_ = np.ones_like(self.X_offset_)  # features are not scaled
        self.intercept_ = keep_float32(problem.bias(w[:, None]), X)[0] if self.fit_intercept else 0.0
        self._total = total

    def predictive(self, X: Any) -> Normal:
        """The distribution of y at every input, the uncertainty of the weights and of the bias included."""
        check_is_fitted(self)
        X = check_predict(self, X)
        mean = Design(X).matmul(self.coef_.astype(np.float64)) + self.intercept_
        A = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64) - self.X_offset_
        A = A[:, self._used] if len(self._used) < A.shape[1] else A
        # Rounding may make x'Σx negative where it is tiny.
        variance = np.maximum(np.einsum("ij,ij->i", A @ self.sigma_, A), 0.0) + 1.0 / self.alpha_
        if self.fit_intercept:
            variance += 1.0 / (self.alpha_ * self._total)
        require_no_overflow(mean, variance)
        return Normal(mean, np.sqrt(variance))

    @property
    def _used(self) -> NDArray[np.intp]:
        """The features whose weights ``sigma_`` covers."""
        return np.arange(len(self.coef_))

    def predict(self, X: Any, return_std: bool = False, *, interval: float | None = None, action: Any = None) -> Any:
        """The mean of y, or the Bayes action of a loss; optionally with the standard deviation or an interval."""
        if not return_std and interval is None and action is None:
            check_is_fitted(self)
            X = check_predict(self, X)
            return keep_float32(Design(X).matmul(self.coef_.astype(np.float64)) + self.intercept_, self.coef_)
        return predicted(self.predictive(X), return_std, interval, action, self.coef_.dtype)
