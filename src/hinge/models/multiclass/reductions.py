"""One-vs-rest and all-pairs: many classes by way of two, over any binary learner."""

from __future__ import annotations

from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from sklearn.base import MetaEstimatorMixin, clone, is_regressor
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _check_partial_fit_first_call
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from hinge._parameters import Constraints, has, one_of, shared
from hinge.models.base import check_fit, check_predict, code_labels, codes_among, drop_absent
from hinge.models.multiclass.base import HighestScore, one_score_for_two

Problem = tuple[Any, np.ndarray, np.ndarray | None]  # inputs, labels 0 and 1, weights


def binary_scores(learner: Any, X: Any) -> np.ndarray:
    """h(x), positive for the second class: the decision function, or the probability less one half.

    The prediction of a regressor, which learned the labels 0 and 1, stands for the probability.
    """
    if hasattr(learner, "decision_function"):
        scores = np.asarray(learner.decision_function(X), dtype=np.float64)
        return scores if scores.ndim == 1 else scores[:, -1]
    if hasattr(learner, "predict_proba"):
        return np.asarray(learner.predict_proba(X), dtype=np.float64)[:, -1] - 0.5
    if is_regressor(learner):
        return np.asarray(learner.predict(X), dtype=np.float64) - 0.5
    return np.where(learner.predict(X) == learner.classes_[-1], 1.0, -1.0)


class Constant:
    """The learner of a problem with one class only."""

    def __init__(self, label: int) -> None:
        self.label = label
        self.classes_ = np.array([0, 1])

    def decision_function(self, X: Any) -> np.ndarray:
        return np.full(X.shape[0], 1.0 if self.label else -1.0)

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.tile([1.0 - self.label, float(self.label)], (X.shape[0], 1))


def fit_binary(template: Any, X: Any, y: np.ndarray, weights: np.ndarray | None) -> Any:
    """A clone of the template, fitted to labels 0 and 1."""
    if np.all(y == y[0]):
        return Constant(int(y[0]))
    learner = clone(template)
    return learner.fit(X, y) if weights is None else learner.fit(X, y, sample_weight=weights)


def fit_piece(learner: Any, X: Any, y: np.ndarray, weights: np.ndarray | None) -> Any:
    """The learner after one more piece of a stream, whose labels are 0 and 1."""
    if not len(y):
        return learner
    both = np.arange(2)
    if weights is None:
        return learner.partial_fit(X, y, classes=both)
    return learner.partial_fit(X, y, classes=both, sample_weight=weights)


def _learns_in_pieces(meta: Any) -> bool:
    return hasattr(meta.estimator, "partial_fit")


def _can_tell_probabilities(meta: Any) -> bool:
    if hasattr(meta, "estimators_"):
        return all(hasattr(learner, "predict_proba") for learner in meta.estimators_)
    return hasattr(meta.estimator, "predict_proba")


class Reduction(MetaEstimatorMixin, HighestScore):
    """Shared by the reductions: checking, and fitting one binary learner per column of a problem table."""

    estimator: Any
    n_jobs: int | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """X, codes and weights, without examples of weight zero (they must count for nothing)."""
        self._check_takes_weights(sample_weight)
        X, y, weights = drop_absent(*check_fit(self, X, y, sample_weight))
        return X, code_labels(self, y), weights

    def _check_piece(
        self, X: Any, y: Any, classes: Any, sample_weight: Any
    ) -> tuple[Any, np.ndarray, np.ndarray | None, bool]:
        """The same for a piece of a stream, and whether it is the first."""
        self._check_takes_weights(sample_weight)
        first = _check_partial_fit_first_call(self, classes)
        if first and len(self.classes_) < 2:
            raise ValueError(f"classes={classes!r} must list at least two labels.")
        X, y, weights = drop_absent(*check_fit(self, X, y, sample_weight, reset=first))
        return X, codes_among(self.classes_, y), weights, first

    @property
    def n_classes_(self) -> int:
        """How many classes there are."""
        return len(self.classes_)

    def _check_takes_weights(self, sample_weight: Any) -> None:
        if sample_weight is not None and not has_fit_parameter(self.estimator, "sample_weight"):
            raise TypeError(f"estimator={type(self.estimator).__name__} does not take sample_weight.")

    def _learn(self, problems: list[Problem]) -> None:
        self.estimators_ = Parallel(n_jobs=self.n_jobs, verbose=getattr(self, "verbose", 0), prefer="threads")(
            delayed(fit_binary)(self.estimator, *problem) for problem in problems
        )

    def _learn_piece(self, problems: list[Problem], first: bool) -> None:
        if first:
            self.estimators_ = [clone(self.estimator) for _ in problems]
        self.estimators_ = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(fit_piece)(learner, *problem) for learner, problem in zip(self.estimators_, problems)
        )

    def _binary_scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = check_predict(self, X)
        return np.column_stack([binary_scores(learner, X) for learner in self.estimators_])


class OneVsRestClassifier(Reduction):
    """One binary learner per class, which tells it from all others; predicts  argmax_i h_i(x).

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

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[0.0, 0], [0, 1], [5, 0], [5, 1], [0, 9], [1, 9]])
    >>> hg.OneVsRestClassifier(LogisticRegression()).fit(X, ["a", "a", "b", "b", "c", "c"]).predict([[4, 0]])
    array(['b'], dtype='<U1')
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("n_jobs", "verbose"),
        "estimator": [has("fit")],
    }

    def __init__(self, estimator: Any, *, n_jobs: int | None = None, verbose: int = 0) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OneVsRestClassifier:
        """Fit one learner per class."""
        X, codes, weights = self._check(X, y, sample_weight)
        self._learn(self._against_the_rest(X, codes, weights))
        return self

    @available_if(_learns_in_pieces)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, sample_weight: Any = None) -> OneVsRestClassifier:
        """Show every learner one more piece of data; ``classes`` lists all labels and is needed in the first call."""
        X, codes, weights, first = self._check_piece(X, y, classes, sample_weight)
        self._learn_piece(self._against_the_rest(X, codes, weights), first)
        return self

    def _against_the_rest(self, X: Any, codes: np.ndarray, weights: np.ndarray | None) -> list[Problem]:
        k = len(self.classes_)
        return [(X, (codes == j).astype(np.intp), weights) for j in ([1] if k == 2 else range(k))]

    def decision_function(self, X: Any) -> np.ndarray:
        """h_i(x): one column per class; for two classes one score, positive for the second."""
        scores = self._binary_scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    @available_if(_can_tell_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """The learners' probabilities, divided by their sum."""
        check_is_fitted(self)
        X = check_predict(self, X)
        p = np.column_stack([np.asarray(learner.predict_proba(X))[:, 1] for learner in self.estimators_])
        if len(self.classes_) == 2:
            return np.column_stack([1.0 - p, p])
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])


class OneVsOneClassifier(Reduction):
    """One binary learner per pair of classes; predicts  argmax_i Σ_j (1[i<j] h_ij(x) − 1[j<i] h_ji(x)).

    Parameters
    ----------
    estimator : classifier
        The binary learner.
    vote : {"majority", "score", "probability"}
        Whether h_ij is the learner's sign (ties broken by the scores) or its score; with "probability" the learners'
        probabilities are coupled, which gives ``predict_proba``. Scores of different pairs are not on one scale: a
        pair that is told apart easily has long ones, and where the classes lie in a row the sum of scores seldom
        goes to one in the middle.
    n_jobs : int, optional
        How many learners to fit at once (threads).

    Attributes
    ----------
    classes_ : array
        The labels.
    pairs_ : list of (i, j), i < j
        The classes each learner tells apart; its score is positive for i.
    estimators_ : list
        The fitted learners, in the order of ``pairs_``.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[0.0, 0], [0, 1], [5, 0], [5, 1], [0, 9], [1, 9]])
    >>> hg.OneVsOneClassifier(LogisticRegression()).fit(X, ["a", "a", "b", "b", "c", "c"]).predict([[4, 0]])
    array(['b'], dtype='<U1')
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("n_jobs"),
        "estimator": [has("fit")],
        "vote": [one_of("majority", "score", "probability")],
    }

    def __init__(self, estimator: Any, *, vote: str = "majority", n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.vote = vote
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OneVsOneClassifier:
        """Fit one learner per pair of classes."""
        X, codes, weights = self._check(X, y, sample_weight)
        self._learn(self._in_pairs(X, codes, weights))
        return self

    @available_if(_learns_in_pieces)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, sample_weight: Any = None) -> OneVsOneClassifier:
        """Show every learner what one more piece of data has of its two classes.

        ``classes`` lists all labels and is needed in the first call. A learner that has met neither of its classes yet
        cannot vote: predict when every class has been seen.
        """
        X, codes, weights, first = self._check_piece(X, y, classes, sample_weight)
        self._learn_piece(self._in_pairs(X, codes, weights), first)
        return self

    def _in_pairs(self, X: Any, codes: np.ndarray, weights: np.ndarray | None) -> list[Problem]:
        self.pairs_ = list(combinations(range(len(self.classes_)), 2))
        problems = []
        for i, j in self.pairs_:
            rows = np.flatnonzero((codes == i) | (codes == j))
            part = None if weights is None else weights[rows]
            problems.append((_safe_indexing(X, rows), (codes[rows] == i).astype(np.intp), part))
        return problems

    def decision_function(self, X: Any) -> np.ndarray:
        """The sums of the votes (or the coupled probabilities), one column per class; for two classes one score."""
        if self.vote == "probability":
            return one_score_for_two(self.predict_proba(X))
        h = self._binary_scores(X)
        if len(self.classes_) == 2:
            return -h[:, 0]
        votes = h
        if self.vote == "majority":
            # Scores squeezed below one vote decide between classes with equal votes.
            votes = np.sign(h) + h / (2.0 * len(self.pairs_) * (1.0 + np.abs(h)))
        out = np.zeros((len(h), len(self.classes_)))
        for column, (i, j) in enumerate(self.pairs_):
            out[:, i] += votes[:, column]
            out[:, j] -= votes[:, column]
        return out

    @available_if(lambda meta: meta.vote == "probability" and _can_tell_probabilities(meta))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Pairwise coupling: p minimises Σ_{i<j} (r_ji p_i − r_ij p_j)² on the simplex's plane (Wu, Lin & Weng 2004).

        r_ij is the learner's probability of i against j.
        """
        check_is_fitted(self)
        X = check_predict(self, X)
        k = len(self.classes_)
        n = X.shape[0]
        Q = np.zeros((n, k + 1, k + 1))
        Q[:, :k, k] = Q[:, k, :k] = 1.0
        for learner, (i, j) in zip(self.estimators_, self.pairs_):
            r = np.clip(np.asarray(learner.predict_proba(X))[:, 1], 1e-7, 1 - 1e-7)  # of i against j
            Q[:, i, i] += (1 - r) ** 2
            Q[:, j, j] += r**2
            Q[:, i, j] -= r * (1 - r)
            Q[:, j, i] -= r * (1 - r)
        rhs = np.zeros((n, k + 1, 1))
        rhs[:, k] = 1.0
        p = np.maximum(np.linalg.solve(Q, rhs)[:, :k, 0], 0.0)
        return p / p.sum(axis=1, keepdims=True)
