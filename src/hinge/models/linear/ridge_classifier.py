"""Classification by least squares."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from hinge._parameters import Constraints, at_least, numbers, shared
from hinge.models.base import Multilabel, check_fit, signs
from hinge.models.class_weights import class_factors
from hinge.models.linear.base import LinearClassifier, times
from hinge.models.linear.certify import Certifiable
from hinge.models.linear.least_squares import Ridge


def class_targets(codes: np.ndarray, classes: int) -> np.ndarray:
    """+1 for the class and −1 for the others: a vector for two classes, a column per class for more."""
    return signs(codes) if classes == 2 else np.where(codes[:, None] == np.arange(classes), 1.0, -1.0)


class LeastSquaresClassifier(Multilabel, LinearClassifier):
    """Base class of classifiers by least squares: one label per row, or several as a 0/1 matrix."""

    _multilabel = False
    classes_: Any

    def _check_targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray, Any]:
        """X, codes of the classes (the 0/1 matrix of several labels), the targets to fit, and weights."""
        labels = np.asarray(y)
        self._multilabel = labels.ndim == 2 and type_of_target(labels).startswith("multilabel")
        if not self._multilabel:
            X, codes, weights = self._check(X, y, sample_weight)
            return X, codes, class_targets(codes, len(self.classes_)), weights
        X, y, weights = check_fit(self, X, y, sample_weight, multi_output=True)
        self.classes_ = np.arange(y.shape[1])
        if self.class_weight is not None:
            weights = times(weights, class_factors(self.class_weight, y, weights))
        codes = (y > 0).astype(np.intp)
        return X, codes, signs(codes), weights

    def predict(self, X: Any) -> np.ndarray:
        """The label with the highest score; the 0/1 matrix of those with a score above zero if there are several."""
        check_is_fitted(self)
        return (self._scores(X) > 0).astype(int) if self._multilabel else super().predict(X)


class RidgeClassifier(Certifiable, LeastSquaresClassifier):
    """Ridge regression on classes: minimises Σ sᵢ (yᵢ − ⟨w, xᵢ⟩ − b)² + α‖w‖² with y = ±1, one column per class if k > 2.

    The predicted class has the largest score. The fit is fast and in closed form; :class:`LogisticRegression` provides
    probabilities.

    Parameters
    ----------
    alpha : float
        The strength α ≥ 0.
    fit_intercept, copy_X, max_iter, tol, solver, positive, random_state
        As in :class:`Ridge`.
    class_weight : dict or "balanced", optional
        Factors on the weights of the classes.

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_, solver_ : as in scikit-learn
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[-2.0], [-1.0], [1.0], [3.0]])
    >>> hg.RidgeClassifier().fit(X, ["no", "no", "yes", "yes"]).predict([[-3.0], [2.0]])
    array(['no', 'yes'], dtype='<U3')
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("class_weight", "positive"),
        "alpha": [at_least(0), numbers(0)],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-6,
        class_weight: Any = None,
        solver: Any = "auto",
        positive: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.solver = solver
        self.positive = positive
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeClassifier:
        """Fit; a weight of 2 means the same as having the example twice."""
        X, _, targets, weights = self._check_targets(X, y, sample_weight)
        model = Ridge(
            self.alpha, fit_intercept=self.fit_intercept, max_iter=self.max_iter, tol=self.tol, solver=self.solver,
            positive=self.positive, random_state=self.random_state,
        )  # fmt: skip
        model._given = self._given
        model.fit(X, targets, weights)
        self.coef_, self.intercept_ = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
        self.n_iter_, self.solver_, self.certificate_ = model.n_iter_, model.solver_, model.certificate_
        return self
