"""One against the rest: one binary learner per class."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    _num_samples,
    check_is_fitted,
)

from hinge._parameters import Constraints, has, shared
from hinge.models.base import Multilabel, code_labels
from hinge.models.multiclass.reductions import Constant, Problem, Reduction, gives_probabilities, learns_in_pieces
from hinge.models.routing import Arguments


class OneVsRestClassifier(Multilabel, Reduction):
    """One binary learner per class, which separates it from all others; predicts  argmax_i h_i(x).

    With a 0/1 matrix y, dense or sparse, of several labels per row the labels with h_i(x) > 0 are predicted.

    Parameters
    ----------
    estimator : classifier
        The binary learner: any scikit-learn compatible classifier.
    n_jobs : int, optional
        How many learners to fit at once (threads).
    verbose : int
        How much joblib prints of them.

    Attributes
    ----------
    classes_ : array
        The labels.
    estimators_ : list
        The fitted learners; one for two classes, k for k > 2.
    multilabel_ : bool
        Whether there are several labels per row.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[0.0, 0], [0, 1], [5, 0], [5, 1], [0, 9], [1, 9]])
    >>> hg.OneVsRestClassifier(LogisticRegression()).fit(X, ["a", "a", "b", "b", "c", "c"]).predict([[4, 0]])
    array(['b'], dtype='<U1')
    """

    _parameter_constraints: ClassVar[Constraints] = {**shared("n_jobs", "verbose"), "estimator": [has("fit")]}

    def __init__(self, estimator: Any, *, n_jobs: int | None = None, verbose: int = 0) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> OneVsRestClassifier:
        """Fit one learner per class; ``fit_params`` go to the learners, with metadata routing enabled."""
        sparse = scipy.sparse.issparse(y)
        X, y, arguments = self._check_rows(X, y, self._for_learner("fit", sample_weight, fit_params))
        self.multilabel_ = y.ndim == 2
        self._sparse_labels = sparse and self.multilabel_
        if self.multilabel_:
            self.classes_ = np.arange(y.shape[1])
            problems = [(X, column, arguments) for column in y.T]
        else:
            problems = self._against_the_rest(X, self._codes(y), arguments)
        self._learn(problems)
        for label, learner in zip(self.classes_, self.estimators_):
            if isinstance(learner, Constant) and self.multilabel_:
                negation = "" if learner.label else "not "
                warnings.warn(f"Label {negation}{label} is present in all training examples.", stacklevel=2)
        return self

    def _check_targets(self, y: Any) -> np.ndarray:
        y = y if scipy.sparse.issparse(y) or y is None else np.asarray(y)
        if y is None or (not scipy.sparse.issparse(y) and (y.ndim < 2 or y.shape[1] == 1)):
            return super()._check_targets(y)
        if not type_of_target(y).startswith("multilabel"):
            raise ValueError(
                "Multioutput target data is not supported with label binarization: y must be a vector of labels or a "
                "0/1 matrix of several labels per row."
            )
        return np.asarray(y.toarray() if scipy.sparse.issparse(y) else y).astype(np.intp)

    def _codes(self, y: np.ndarray) -> np.ndarray:
        """Labels as 0 … k−1. A single class is allowed, and is then predicted for every row."""
        if y.dtype.kind != "f" and all(label == y[0] for label in y):
            self.classes_ = y[:1].copy()
            return np.zeros(len(y), dtype=np.intp)
        return code_labels(self, y)

    @available_if(learns_in_pieces)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, sample_weight: Any = None, **partial_fit_params: Any
    ) -> OneVsRestClassifier:
        """Update every learner with one more batch; ``classes`` lists all labels and is needed in the first call."""
        X, codes, arguments, first = self._check_piece(X, y, classes, sample_weight, partial_fit_params)
        self.multilabel_ = False
        self._learn_piece(self._against_the_rest(X, codes, arguments), first)
        return self

    def _against_the_rest(self, X: Any, codes: np.ndarray, arguments: Arguments) -> list[Problem]:
        k = len(self.classes_)
        return [(X, (codes == j).astype(np.intp), arguments) for j in ([1] if k <= 2 else range(k))]

    def decision_function(self, X: Any) -> np.ndarray:
        """h_i(x): one column per class; for two classes one score, positive for the second."""
        scores = self._binary_scores(X)
        return scores[:, 0] if scores.shape[1] == 1 and not self.multilabel_ else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class with the highest score; with several labels per row a 0/1 matrix of those that h_i is positive for."""
        check_is_fitted(self)
        if not self.multilabel_:
            return super().predict(X) if len(self.classes_) > 1 else np.repeat(self.classes_, _num_samples(X))
        labels = (self._binary_scores(X) > 0).astype(int)
        return scipy.sparse.csr_matrix(labels) if self._sparse_labels else labels

    @available_if(gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """The learners' probabilities, divided by their sum if a row has one label."""
        check_is_fitted(self)
        p = np.column_stack([np.asarray(learner.predict_proba(X))[:, 1] for learner in self.estimators_])
        if self.multilabel_:
            return p
        if p.shape[1] == 1:
            return np.column_stack([1.0 - p, p])
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])
