"""One-vs-rest and all-pairs: many classes by way of two, over any binary learner."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _check_partial_fit_first_call, type_of_target
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
)

from hinge._native import check_indices
from hinge._parameters import Constraints, has, one_of, shared
from hinge.models.base import check_weights, code_labels, codes_among, take_input_tags
from hinge.models.meta import take_rows
from hinge.models.multiclass.base import HighestScore, one_score_for_two
from hinge.models.routing import Arguments, route, router, routing_enabled, take_arguments

Problem = tuple[Any, np.ndarray, Arguments]  # inputs, labels 0 and 1, further arguments of fit, weights among them


def binary_scores(learner: Any, X: Any) -> np.ndarray:
    """h(x), positive for the second class: the decision function, or what is predicted of 0 and 1 less one half."""
    if hasattr(learner, "decision_function"):
        scores = np.asarray(learner.decision_function(X), dtype=np.float64)
        return scores if scores.ndim == 1 else scores[:, -1]
    if hasattr(learner, "predict_proba"):
        return np.asarray(learner.predict_proba(X), dtype=np.float64)[:, -1] - 0.5
    return np.asarray(learner.predict(X), dtype=np.float64) - 0.5


class Constant:
    """The learner of a problem with one class only."""

    def __init__(self, label: int) -> None:
        self.label = label
        self.classes_ = np.array([0, 1])

    def decision_function(self, X: Any) -> np.ndarray:
        return np.full(_num_samples(X), 1.0 if self.label else -1.0)

    def predict(self, X: Any) -> np.ndarray:
        return np.full(_num_samples(X), self.label)

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.tile([1.0 - self.label, float(self.label)], (_num_samples(X), 1))


def fit_binary(template: Any, X: Any, y: np.ndarray, arguments: Arguments) -> Any:
    """A clone of the template, fitted to labels 0 and 1."""
    if np.all(y == y[0]):
        return Constant(int(y[0]))
    return clone(template).fit(X, y, **arguments)


def fit_piece(learner: Any, X: Any, y: np.ndarray, arguments: Arguments) -> Any:
    """The learner after one more piece of a stream, whose labels are 0 and 1."""
    return learner.partial_fit(X, y, classes=np.arange(2), **arguments) if len(y) else learner


def _learns_in_pieces(meta: Any) -> bool:
    return meta.estimator.partial_fit is not None  # its AttributeError becomes the cause of ours


def _can_tell_probabilities(meta: Any) -> bool:
    learners = getattr(meta, "estimators_", [meta.estimator])
    return all(learner.predict_proba is not None for learner in learners)


class Reduction(MetaEstimatorMixin, HighestScore):
    """Shared by the reductions: checking, and fitting one binary learner per column of a problem table.

    X is handed on as it is: the learner, which may be a pipeline over text or missing values, checks it.
    """

    estimator: Any
    n_jobs: int | None
    __metadata_request__fit: ClassVar = {"sample_weight": UNUSED}  # the learner's
    __metadata_request__partial_fit: ClassVar = {"sample_weight": UNUSED}

    def get_metadata_routing(self) -> Any:
        """The learner gets what it has requested of the arguments of ``fit`` and ``partial_fit``."""
        return router(self, estimator=(self.estimator, {"fit": "fit", "partial_fit": "partial_fit"}))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        take_input_tags(tags, self.estimator)
        tags.input_tags.pairwise = get_tags(self.estimator).input_tags.pairwise
        return tags

    def _check(self, X: Any, y: Any, sample_weight: Any, arguments: Arguments) -> tuple[Any, np.ndarray, Arguments]:
        """X, codes and arguments for the learner, without examples of weight zero (they must count for nothing)."""
        X, y, arguments = self._check_rows(X, y, self._for_learner("fit", sample_weight, arguments))
        return X, code_labels(self, y), arguments

    def _check_piece(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, arguments: Arguments
    ) -> tuple[Any, np.ndarray, Arguments, bool]:
        """The same for a piece of a stream, and whether it is the first."""
        arguments = self._for_learner("partial_fit", sample_weight, arguments)
        first = _check_partial_fit_first_call(self, classes)
        if first and len(self.classes_) < 2:
            raise ValueError(f"classes={classes!r} must list at least two labels.")
        X, y, arguments = self._check_rows(X, y, arguments)
        return X, codes_among(self.classes_, y), arguments, first

    def _for_learner(self, method: str, sample_weight: Any, arguments: Arguments) -> Arguments:
        """The arguments of a method that the learner gets."""
        routed = route(self, method, arguments, sample_weight=sample_weight)
        if routing_enabled():
            return dict(routed.estimator[method])
        if sample_weight is None:
            return {}
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise TypeError(f"estimator={type(self.estimator).__name__} does not take sample_weight.")
        return {"sample_weight": sample_weight}

    def _check_rows(self, X: Any, y: Any, arguments: Arguments) -> tuple[Any, np.ndarray, Arguments]:
        texts = isinstance(X, list) and bool(X) and isinstance(X[0], str)
        X = X if texts or hasattr(X, "shape") else np.asarray(X)
        check_indices(X)
        y = self._check_targets(y)
        check_consistent_length(X, y)
        if not _num_samples(X):
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        weights = check_weights(arguments.pop("sample_weight", None), np.empty((_num_samples(X), 0)))
        if weights is None:
            return X, y, arguments
        arguments = arguments | {"sample_weight": weights}
        if np.all(weights > 0):
            return X, y, arguments
        kept = np.flatnonzero(weights)
        return self._take(X, kept), y[kept], take_arguments(X, arguments, kept)

    def _check_targets(self, y: Any) -> np.ndarray:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        return y

    def _take(self, X: Any, rows: np.ndarray) -> Any:
        """Rows of X, and the same columns where X holds kernel values of pairs of rows."""
        part = take_rows(X, rows)
        return part[:, rows] if get_tags(self.estimator).input_tags.pairwise else part

    @property
    def n_classes_(self) -> int:
        """How many classes there are."""
        return len(self.classes_)

    def _learn(self, problems: list[Problem]) -> None:
        self.estimators_ = Parallel(n_jobs=self.n_jobs, verbose=getattr(self, "verbose", 0), prefer="threads")(
            delayed(fit_binary)(self.estimator, *problem) for problem in problems
        )
        self._adopt_features()

    def _learn_piece(self, problems: list[Problem], first: bool) -> None:
        if first:
            self.estimators_ = [clone(self.estimator) for _ in problems]
        self.estimators_ = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(fit_piece)(learner, *problem) for learner, problem in zip(self.estimators_, problems)
        )
        self._adopt_features()

    def _adopt_features(self) -> None:
        """The number and the names of the features, from the first learner that has them."""
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            values = [getattr(learner, name) for learner in self.estimators_ if hasattr(learner, name)]
            if values:
                setattr(self, name, values[0])

    def _binary_scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return np.column_stack([binary_scores(learner, X) for learner in self.estimators_])


class OneVsRestClassifier(Reduction):
    """One binary learner per class, which tells it from all others; predicts  argmax_i h_i(x).

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

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("n_jobs", "verbose"),
        "estimator": [has("fit")],
    }

    def __init__(self, estimator: Any, *, n_jobs: int | None = None, verbose: int = 0) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

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
        """Labels as 0 … k−1. One class alone is allowed: it is predicted of everything."""
        if y.dtype.kind != "f" and all(label == y[0] for label in y):
            self.classes_ = y[:1].copy()
            return np.zeros(len(y), dtype=np.intp)
        return code_labels(self, y)

    @available_if(_learns_in_pieces)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, sample_weight: Any = None, **partial_fit_params: Any
    ) -> OneVsRestClassifier:
        """Show every learner one more piece of data; ``classes`` lists all labels and is needed in the first call."""
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

    @available_if(_can_tell_probabilities)
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


class OneVsOneClassifier(Reduction):
    """One binary learner per pair of classes; predicts  argmax_i Σ_j (1[j<i] h_ji(x) − 1[i<j] h_ij(x)).

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
        The classes each learner tells apart; its score is positive for j.
    estimators_ : list
        The fitted learners, in the order of ``pairs_``.
    pairwise_indices_ : list of arrays, or None
        The rows that each learner was fitted to, if X holds a precomputed kernel.

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> OneVsOneClassifier:
        """Fit one learner per pair of classes; ``fit_params`` go to the learners, with metadata routing enabled."""
        X, codes, arguments = self._check(X, y, sample_weight, fit_params)
        self._learn(self._in_pairs(X, codes, arguments))
        return self

    @available_if(_learns_in_pieces)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, sample_weight: Any = None, **partial_fit_params: Any
    ) -> OneVsOneClassifier:
        """Show every learner what one more piece of data has of its two classes.

        ``classes`` lists all labels and is needed in the first call. A learner that has met neither of its classes yet
        cannot vote: predict when every class has been seen.
        """
        X, codes, arguments, first = self._check_piece(X, y, classes, sample_weight, partial_fit_params)
        self._learn_piece(self._in_pairs(X, codes, arguments), first)
        return self

    def _in_pairs(self, X: Any, codes: np.ndarray, arguments: Arguments) -> list[Problem]:
        self.pairs_ = list(combinations(range(len(self.classes_)), 2))
        problems, rows_of_pairs = [], []
        for i, j in self.pairs_:
            rows = np.flatnonzero((codes == i) | (codes == j))
            part = take_arguments(X, arguments, rows)
            problems.append((self._take(X, rows), (codes[rows] == j).astype(np.intp), part))
            rows_of_pairs.append(rows)
        self.pairwise_indices_ = rows_of_pairs if get_tags(self.estimator).input_tags.pairwise else None
        return problems

    def _adopt_features(self) -> None:
        super()._adopt_features()
        if self.pairwise_indices_ is not None:  # a column for every example of any pair
            self.n_features_in_ = len(np.unique(np.concatenate(self.pairwise_indices_)))

    def _inputs(self, X: Any) -> list[Any]:
        """X for every learner: all of it, or the columns of its own examples if X holds kernel values."""
        if self.pairwise_indices_ is None:
            return [X] * len(self.estimators_)
        return [X[:, rows] for rows in self.pairwise_indices_]

    def _binary_scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return np.column_stack([binary_scores(learner, Z) for learner, Z in zip(self.estimators_, self._inputs(X))])

    def decision_function(self, X: Any) -> np.ndarray:
        """The sums of the votes (or the coupled probabilities), one column per class; for two classes one score."""
        if self.vote == "probability":
            return one_score_for_two(self.predict_proba(X))
        h = self._binary_scores(X)
        if len(self.classes_) == 2:
            return h[:, 0]
        sums = np.zeros((len(h), len(self.classes_)))
        votes = np.zeros_like(sums)
        # A pair's score is squeezed into (−1, 1) first: no pair decides alone because its scores are long.
        squeezed = h / (1.0 + np.abs(h)) if self.vote == "majority" else h
        for column, (i, j) in enumerate(self.pairs_):
            sums[:, j] += squeezed[:, column]
            sums[:, i] -= squeezed[:, column]
            votes[:, j] += h[:, column] > 0
            votes[:, i] += h[:, column] <= 0
        # Sums of scores squeezed below half a vote decide between classes with equal votes.
        return votes + sums / (3.0 * (1.0 + np.abs(sums))) if self.vote == "majority" else sums

    @available_if(lambda meta: meta.vote == "probability" and _can_tell_probabilities(meta))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Pairwise coupling: p minimises Σ_{i<j} (r_ji p_i − r_ij p_j)² on the simplex's plane (Wu, Lin & Weng 2004).

        r_ij is the learner's probability of i against j.
        """
        check_is_fitted(self)
        k = len(self.classes_)
        n = _num_samples(X)
        Q = np.zeros((n, k + 1, k + 1))
        Q[:, :k, k] = Q[:, k, :k] = 1.0
        for learner, Z, (i, j) in zip(self.estimators_, self._inputs(X), self.pairs_):
            r = np.clip(np.asarray(learner.predict_proba(Z))[:, 0], 1e-7, 1 - 1e-7)  # of i against j
            Q[:, i, i] += (1 - r) ** 2
            Q[:, j, j] += r**2
            Q[:, i, j] -= r * (1 - r)
            Q[:, j, i] -= r * (1 - r)
        rhs = np.zeros((n, k + 1, 1))
        rhs[:, k] = 1.0
        p = np.maximum(np.linalg.solve(Q, rhs)[:, :k, 0], 0.0)
        return p / p.sum(axis=1, keepdims=True)
