"""The multiclass support vector machine."""

from __future__ import annotations

import time
import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from hinge._native import Design
from hinge._parameters import Constraints, above, count, numbers, one_of, shared
from hinge.models.base import check_fit, check_predict, code_labels, in_precision, require_no_overflow
from hinge.models.callbacks import CallbackSupportMixin, as_native, iterations, with_callbacks
from hinge.models.kernel.expansion import NAMES
from hinge.models.multiclass.base import HighestScore, one_score_for_two
from hinge.problem.certificates.certificate import with_run
from hinge.problem.kernels import Kernel
from hinge.problem.losses.multiclass import cost_matrix
from hinge.solvers.multiclass_proximal import KernelSpace, LinearSpace, MulticlassProblem, solve_multiclass


class MulticlassSVM(CallbackSupportMixin, HighestScore):
    """Support vector machine for several classes as one problem (Crammer & Singer).

    Minimises  C Σ sᵢ max_j [ Δ(yᵢ, j) − f_{yᵢ}(xᵢ) + f_j(xᵢ) ] + ½ Σ_j ‖w_j‖²,  f_j(x) = ⟨w_j, x⟩ + b_j. The loss is an
    upper bound of the cost Δ(y, ŷ) of the prediction. The solver is dual coordinate ascent over examples; if its progress is
    slow and (classes − 1) · features is at most 4000, a proximal point method with Newton steps takes over. Proximal steps
    on the biases leave them unpenalised.

    Parameters
    ----------
    C : float
        The weight of the loss.
    cost : array of shape (classes, classes), optional
        Δ[a, b]: the price of predicting b where a is right, labels in sorted order; 1 off the diagonal by default.
    kernel : callable or "precomputed", optional
        An inner product k(X, Z) → matrix in place of ⟨x, z⟩; X is then the matrix itself for "precomputed".
    fit_intercept : bool
        Whether there are biases b_j. They are not penalised: shifting the inputs changes nothing but b.
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
        Weights and biases; f_j(x) = ⟨coef_[j], x⟩ + intercept_[j]. With ``kernel`` there is no ``coef_``, and the biases
        are those at x̄: f_j(x) = Σᵢ dual_coef_[i, j] ⟨xᵢ − x̄, x − x̄⟩ + intercept_[j].
    dual_coef_ : array of shape (examples, classes)
        C sᵢ (e_{yᵢ} − pᵢ): w_j = Σᵢ dual_coef_[i, j] (xᵢ − x̄), x̄ the weighted mean (zero without biases).
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

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("fit_intercept", "tol", "max_iter"),
        "C": [above(0)],
        "cost": [numbers(0), None],
        "kernel": [one_of(*NAMES), Kernel, callable, None],
        "random_state": [count(0)],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        cost: Any = None,
        kernel: Any = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        random_state: int = 0,
    ) -> None:
        self.C = C
        self.cost = cost
        self.kernel = kernel
        self.fit_intercept = fit_intercept
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
        """Fit to examples; a weight of 2 is equivalent to repeating the example."""
        begun = time.perf_counter()
        X, y, weights = check_fit(self, X, y, sample_weight)
        if weights is not None and np.any(weights == 0):
            positive = np.flatnonzero(weights > 0)
            X, y, weights = X[positive], y[positive], weights[positive]
            if self.kernel == "precomputed":
                X = X[:, positive]
        codes = code_labels(self, y).astype(np.int32)
        c = np.full(len(codes), float(self.C)) if weights is None else self.C * weights
        problem = MulticlassProblem(codes, c, cost_matrix(self.cost, len(self.classes_)))
        space = self._space(X, c / c.sum())
        with iterations(self, X, y, self.max_iter) as report:
            found = solve_multiclass(
                space, problem, biases=self.fit_intercept, tol=self.tol, max_iter=self.max_iter,
                random_state=self.random_state, report=as_native(report),
            )  # fmt: skip
        self.dual_coef_, self.n_iter_ = found.dual, found.passes
        self.support_ = np.flatnonzero(np.any(self.dual_coef_ != 0, axis=1))
        require_no_overflow(self.dual_coef_, found.certificate.primal, found.certificate.gap)
        self.intercept_ = in_precision(np.asarray(found.b), X.dtype)
        if found.W is not None:
            self.coef_ = in_precision(np.ascontiguousarray(found.W.T), X.dtype)
        self.certificate_ = with_run(
            found.certificate, iterations=self.n_iter_, seconds=time.perf_counter() - begun,
            solver="dual coordinate ascent" + (f", then {found.steps} Newton steps" if found.steps else ""),
            status="" if found.certificate.converged else self._why_it_ended(),
        )  # fmt: skip
        if not found.certificate.converged and not found.stopped:  # no warning if a callback stopped the fit
            warnings.warn(self.certificate_.explain(), ConvergenceWarning, stacklevel=2)
        return self

    def _why_it_ended(self) -> str:
        if self.n_iter_ < self.max_iter:
            return "it was stopped by a callback, or no further progress is possible; raise tol or scale the columns."
        return "max_iter was reached; raise it or tol, or lower C (scaling the columns helps too)."

    def _space(self, X: Any, share: np.ndarray) -> LinearSpace | KernelSpace:
        centre = share if self.fit_intercept else None
        if self.kernel is None:
            return LinearSpace(X, centre, len(self.classes_))
        return KernelSpace(self._gram(X, share), centre, len(self.classes_))

    def _gram(self, X: Any, share: np.ndarray) -> np.ndarray:
        """Inner products of the training inputs, centred if there are biases; stores what prediction needs."""
        K = np.asarray(X if self.kernel == "precomputed" else self.kernel(X, X), dtype=np.float64)
        if K.shape != (X.shape[0], X.shape[0]):
            raise ValueError(f"kernel gives a matrix of shape {K.shape}; expected ({X.shape[0]}, {X.shape[0]}).")
        self._train = None if self.kernel == "precomputed" else X
        self._share, self._means = share, K @ share
        return np.ascontiguousarray(self._centred(K))

    def _centred(self, K: np.ndarray) -> np.ndarray:
        """⟨x − x̄, z − x̄⟩ from k(x, z), for training inputs z."""
        if not self.fit_intercept:
            return K
        row_means = (K @ self._share)[:, None]
        return K - row_means - self._means[None, :] + self._means @ self._share

    def decision_function(self, X: Any) -> np.ndarray:
        """f_j(x), one column per class; for two classes the difference, positive for the second."""
        check_is_fitted(self)
        X = check_predict(self, X)
        if self.kernel is None:
            scores = Design(X).matmul(np.ascontiguousarray(self.coef_.T)) + self.intercept_
            scores = in_precision(scores, self.coef_.dtype)
        else:
            K = X if self.kernel == "precomputed" else self.kernel(X, self._train)
            scores = self._centred(np.asarray(K, dtype=np.float64)) @ self.dual_coef_ + self.intercept_
        return one_score_for_two(scores)
