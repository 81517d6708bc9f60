"""The multiclass perceptron, with stacked or given joint features."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hinge._native import Design, core
from hinge._parameters import Constraints, count, shared
from hinge.models.base import check_fit, check_predict, code_labels, drop_absent, require_no_overflow
from hinge.models.callbacks import CallbackSupportMixin, Report, iterations, with_callbacks
from hinge.models.multiclass.base import HighestScore, one_score_for_two
from hinge.solvers.stochastic import rows_of


def stacked(x: np.ndarray, y: int, classes: int) -> np.ndarray:
    """ψ(x, y): x in the block of class y, zeros elsewhere."""
    psi = np.zeros(len(x) * classes)
    psi[y * len(x) : (y + 1) * len(x)] = x
    return psi


class MulticlassPerceptron(CallbackSupportMixin, HighestScore):
    """Multiclass perceptron. Visits the examples in turn; if ŷ = argmax_y w·ψ(x, y) is wrong,

        w ← w + s(ψ(x, y) − ψ(x, ŷ)).

    With the stacked ψ there is one vector per class, w_y ← w_y + sx and w_ŷ ← w_ŷ − sx; any other joint feature map
    ψ(x, y) can be given. The weight s of an example (``sample_weight``; 1 by default) scales its steps and its visits in
    the average: weight zero is equivalent to leaving the example out, weight two to one step of double length.

    Parameters
    ----------
    max_iter : int
        Passes over the data; stops earlier after a pass without mistakes.
    joint : callable, optional
        ψ(x, y, classes) → vector, y a class number; None for one vector per class (compiled, and sparse).
    average : bool
        Return the mean of all the weights passed through and not the last.
    fit_intercept : bool
        Whether x gets a constant feature 1.
    shuffle : bool
        Visit in a new random order in every pass.
    random_state : int
        The seed of that order.

    Attributes
    ----------
    classes_ : array
        The labels.
    coef_ : array of shape (classes, features), or of the length of ψ where ``joint`` is given
    intercept_ : array of shape (classes,)
        Zero without ``fit_intercept``, and where ``joint`` is given.
    n_iter_ : int
        Passes made.
    mistakes_ : array
        Mistakes in each pass.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[1.0, 0], [0, 1], [-1, -1]])
    >>> hg.MulticlassPerceptron().fit(X, ["a", "b", "c"]).predict([[2, 0.5]])
    array(['a'], dtype='<U1')
    """

    weight_semantics = "step"

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("max_iter", "fit_intercept", "shuffle"),
        "joint": [callable, None],
        "average": ["boolean"],
        "random_state": [count(0)],
    }

    def __init__(
        self,
        max_iter: int = 100,
        *,
        joint: Any = None,
        average: bool = False,
        fit_intercept: bool = True,
        shuffle: bool = True,
        random_state: int = 0,
    ) -> None:
        self.max_iter = max_iter
        self.joint = joint
        self.average = average
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.joint is None
        return tags

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MulticlassPerceptron:
        """Fit to examples."""
        X, y, weights = check_fit(self, X, y, sample_weight)
        X, codes, weights = drop_absent(X, code_labels(self, y).astype(np.int32), weights)
        with iterations(self, X, y, self.max_iter) as report:
            if self.joint is None:
                return self._fit_classes(X, codes, weights, report)
            return self._fit_joint(np.asarray(X, dtype=np.float64), codes, weights, report)

    def _fit_classes(
        self, X: Any, codes: np.ndarray, weights: np.ndarray | None, report: Report | None
    ) -> MulticlassPerceptron:
        """One vector per class, stored by feature, with the bias as the last feature."""
        d, k, design = X.shape[1], len(self.classes_), Design(rows_of(X))
        w, late, age, mistakes = np.zeros((d + 1, k)), np.zeros((d + 1, k)), 0.0, []
        for epoch in range(self.max_iter):
            visits = core.Visits(shuffle=self.shuffle, seed=self.random_state, epoch=epoch)
            wrong, age = core.multiclass_perceptron_epoch(
                design.native, codes, weights, w, late, age, self.fit_intercept, visits
            )
            mistakes.append(wrong)
            if (report is not None and report(None)) or wrong == 0:
                break
        if self.average:
            w -= late / age
        self.coef_ = np.ascontiguousarray(w[:d].T, dtype=X.dtype)
        self.intercept_ = w[d].astype(X.dtype)
        require_no_overflow(np.sum(self.coef_**2))
        self.mistakes_, self.n_iter_ = np.array(mistakes, dtype=np.float64), len(mistakes)
        return self

    def _fit_joint(
        self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, report: Report | None
    ) -> MulticlassPerceptron:
        k, order, rng = len(self.classes_), np.arange(len(X)), np.random.default_rng(self.random_state)
        s = np.ones(len(X)) if weights is None else weights
        w = np.zeros(len(self.joint(X[0], 0, k)))
        total, age, mistakes = np.zeros_like(w), 0.0, []
        for _ in range(self.max_iter):
            if self.shuffle:
                rng.shuffle(order)
            wrong = 0
            for i in order:
                psi = np.stack([self.joint(X[i], j, k) for j in range(k)])
                guess = int(np.argmax(psi @ w))
                if guess != codes[i]:
                    wrong += 1
                    w = w + s[i] * (psi[codes[i]] - psi[guess])
                total, age = total + s[i] * w, age + s[i]
            mistakes.append(wrong)
            if (report is not None and report(None)) or wrong == 0:
                break
        self.coef_ = total / age if self.average else w
        self.intercept_ = np.zeros(k)
        self.mistakes_, self.n_iter_ = np.array(mistakes, dtype=np.float64), len(mistakes)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """w·ψ(x, y) for every class; for two classes the difference, positive for the second."""
        check_is_fitted(self)
        X = check_predict(self, X)
        k = len(self.classes_)
        if self.joint is None:
            scores = Design(X).matmul(np.ascontiguousarray(self.coef_.T)) + self.intercept_
        else:
            scores = np.array([[self.joint(x, j, k) @ self.coef_ for j in range(k)] for x in X])
        return one_score_for_two(scores.astype(self.coef_.dtype, copy=False))
