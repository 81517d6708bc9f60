"""The multiclass support vector machine."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from hinge._native import Design, core
from hinge.models.base import check_fit, check_predict, code_labels, require_no_overflow
from hinge.models.callbacks import CallbackSupportMixin, Report, as_native, iterations, with_callbacks
from hinge.models.multiclass.base import HighestScore, one_score_for_two
from hinge.problem.certificates.certificate import Certificate
from hinge.problem.losses.multiclass import cost_matrix


class MulticlassSVM(CallbackSupportMixin, HighestScore):
    """Support vector machine for several classes as one problem (Crammer & Singer).

    Minimises  C Σ sᵢ max_j [ Δ(yᵢ, j) − f_{yᵢ}(xᵢ) + f_j(xᵢ) ] + ½ Σ_j (‖w_j‖² + b_j²/B²),
    f_j(x) = ⟨w_j, x − x̄⟩ + b_j; x̄ is the weighted mean of the inputs and B is ``intercept_scaling``. Dual coordinate
    ascent over examples begins; where it would creep and (classes − 1) · features is at most 4000, a proximal point
    method with Newton steps ends it. Without ``fit_intercept`` f_j(x) = ⟨w_j, x⟩. The loss bounds the cost Δ(y, ŷ) of the
    prediction from above.

    Parameters
    ----------
    C : float
        The weight of the loss.
    cost : array of shape (classes, classes), optional
        Δ[a, b]: the price of predicting b where a is right, labels in sorted order; 1 off the diagonal by default.
    kernel : callable or "precomputed", optional
        An inner product k(X, Z) → matrix in place of ⟨x, z⟩; X is then the matrix itself for "precomputed".
    fit_intercept : bool
        Whether there are biases b_j.
    intercept_scaling : float
        B. The biases are penalised, the less the larger this is; they are taken at the mean of the inputs, so shifting
        the inputs changes nothing.
    tol : float
        The relative duality gap to reach.
    max_iter : int
        The most passes over the data; a Newton step counts as one.
    random_state : int
        The seed of the order of visits.

    Attributes
    ----------
    classes_ : array
        The labels.
    coef_, intercept_ : arrays of shape (classes, features) and (classes,)
        Weights and biases (without ``kernel``); f_j(x) = ⟨coef_[j], x⟩ + intercept_[j].
    dual_coef_ : array of shape (examples, classes)
        C sᵢ (e_{yᵢ} − pᵢ): w_j = Σᵢ dual_coef_[i, j] (xᵢ − x̄).
    support_ : array
        Examples with a dual coefficient that is not zero.
    certificate_ : Certificate
        The objective and its true duality gap.
    n_iter_ : int
        Passes and Newton steps made.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[1.0, 0], [0, 1], [-1, -1]])
    >>> hg.MulticlassSVM(C=10.0).fit(X, ["a", "b", "c"]).predict([[2, 0.5]])
    array(['a'], dtype='<U1')
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        cost: Any = None,
        kernel: Any = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        random_state: int = 0,
    ) -> None:
        self.C = C
        self.cost = cost
        self.kernel = kernel
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel is None
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MulticlassSVM:
        """Learn from examples; a weight of 2 means the same as having the example twice."""
        begun = time.perf_counter()
        if not self.C > 0:
            raise ValueError(f"C={self.C!r} must be positive.")
        X, y, weights = check_fit(self, X, y, sample_weight)
        if weights is not None and np.any(weights == 0):
            kept = np.flatnonzero(weights > 0)
            X, y, weights = X[kept], y[kept], weights[kept]
            if self.kernel == "precomputed":
                X = X[:, kept]
        codes = code_labels(self, y).astype(np.int32)
        c = np.full(len(codes), float(self.C)) if weights is None else self.C * weights
        settings = (codes, c, cost_matrix(self.cost, len(self.classes_)), self.tol, self.max_iter, self.random_state)
        share = c / c.sum()
        with iterations(self, X, y, self.max_iter) as report:
            found = self._solve(X, share, settings, report)
        w, bias, self.dual_coef_, self.n_iter_, steps, done, primal, gap = found
        self.support_ = np.flatnonzero(np.any(self.dual_coef_ != 0, axis=1))
        require_no_overflow(self.dual_coef_, primal, gap)
        if w is not None:
            self.coef_, self.intercept_ = np.ascontiguousarray(w.T, dtype=X.dtype), np.asarray(bias, dtype=X.dtype)
        self.certificate_ = Certificate.of_gap(
            primal, gap, tol=self.tol, convexity=1.0, iterations=self.n_iter_, seconds=time.perf_counter() - begun,
            solver="dual coordinate ascent" + (f", then {steps} Newton steps" if steps else ""),
            status="" if done else self._why_it_ended(),
        )  # fmt: skip
        if not done and self.n_iter_ >= self.max_iter:  # a callback's wish to stop is no cause for alarm
            warnings.warn(self.certificate_.explain(), ConvergenceWarning, stacklevel=2)
        return self

    def _why_it_ended(self) -> str:
        if self.n_iter_ < self.max_iter:
            return "a callback stopped it."
        return "max_iter was reached; raise it or tol, or lower C (scaling the columns helps too)."

    def _solve(self, X: Any, share: np.ndarray, settings: tuple, report: Report | None) -> tuple:
        if self.kernel is not None:
            return core.multiclass_kernel_svm(self._gram(X, share), *settings, report=as_native(report))
        mean, constant = None, 0.0
        if self.fit_intercept:
            mean, constant = Design(X).rmatmul(share), float(self.intercept_scaling)
        if scipy.sparse.issparse(X):
            rows = scipy.sparse.csr_array(X, dtype=np.float64)
            where = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
            values = np.ascontiguousarray(rows.data)
        else:
            where, values = (None, None), np.ascontiguousarray(X, dtype=np.float64).ravel()
        return core.multiclass_svm(values, *where, *X.shape, mean, constant, *settings, report=as_native(report))

    def _gram(self, X: Any, share: np.ndarray) -> np.ndarray:
        """Inner products of the training inputs, about their mean if there are biases; keeps what prediction needs."""
        K = np.asarray(X if self.kernel == "precomputed" else self.kernel(X, X), dtype=np.float64)
        if K.shape != (X.shape[0], X.shape[0]):
            raise ValueError(f"kernel gives a matrix of shape {K.shape}; expected ({X.shape[0]}, {X.shape[0]}).")
        self._train = None if self.kernel == "precomputed" else X
        self._share, self._means = share, K @ share
        return np.ascontiguousarray(self._centred(K))

    def _centred(self, K: np.ndarray) -> np.ndarray:
        """⟨x − x̄, z − x̄⟩ + B² from k(x, z), for training inputs z."""
        if not self.fit_intercept:
            return K
        own = (K @ self._share)[:, None]
        return K - own - self._means[None, :] + self._means @ self._share + self.intercept_scaling**2

    def decision_function(self, X: Any) -> np.ndarray:
        """f_j(x), one column per class; for two classes the difference, positive for the second."""
        check_is_fitted(self)
        X = check_predict(self, X)
        if self.kernel is None:
            scores = Design(X).matmul(np.ascontiguousarray(self.coef_.T)) + self.intercept_
            scores = scores.astype(self.coef_.dtype, copy=False)
        else:
            K = X if self.kernel == "precomputed" else self.kernel(X, self._train)
            scores = self._centred(np.asarray(K, dtype=np.float64)) @ self.dual_coef_
        return one_score_for_two(scores)
