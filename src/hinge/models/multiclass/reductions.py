"""Reductions of multiclass problems to binary ones: the base class of one-vs-rest, one-vs-one and output codes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.multiclass import _check_partial_fit_first_call
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
)

from hinge._native import check_indices
from hinge.models.base import check_weights, code_labels, codes_among, take_input_tags
from hinge.models.meta import take_rows
from hinge.models.multiclass.base import HighestScore
from hinge.models.routing import Arguments, route, router, routing_enabled, take_arguments

Problem = tuple[Any, np.ndarray, Arguments]  # inputs, labels 0 and 1, further arguments of fit such as weights


def binary_scores(learner: Any, X: Any) -> np.ndarray:
    """h(x), positive for the second class: the decision function, or the predicted 0 or 1 minus one half."""
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
    """Update the learner with one more batch, whose labels are 0 and 1."""
    return learner.partial_fit(X, y, classes=np.arange(2), **arguments) if len(y) else learner


def learns_in_pieces(meta: Any) -> bool:
    return meta.estimator.partial_fit is not None  # the AttributeError becomes the cause of that of this estimator


def gives_probabilities(meta: Any) -> bool:
    learners = getattr(meta, "estimators_", [meta.estimator])
    return all(learner.predict_proba is not None for learner in learners)


class Reduction(MetaEstimatorMixin, HighestScore):
    """Base class of the reductions: checks, and fits of one binary learner per column of a problem table.

    X is passed on unchecked: the learner, which may be a pipeline over text or missing values, checks it.
    """

    estimator: Any
    n_jobs: int | None
    __metadata_request__fit: ClassVar = {"sample_weight": UNUSED}  # only the learner requests it
    __metadata_request__partial_fit: ClassVar = {"sample_weight": UNUSED}

    def get_metadata_routing(self) -> Any:
        """Route to the learner the arguments of ``fit`` and ``partial_fit`` that it has requested."""
        return router(self, estimator=(self.estimator, {"fit": "fit", "partial_fit": "partial_fit"}))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        take_input_tags(tags, self.estimator)
        tags.input_tags.pairwise = get_tags(self.estimator).input_tags.pairwise
        return tags

    def _check(self, X: Any, y: Any, sample_weight: Any, arguments: Arguments) -> tuple[Any, np.ndarray, Arguments]:
        """X, codes and arguments for the learner, without examples of weight zero, which must have no effect."""
        X, y, arguments = self._check_rows(X, y, self._for_learner("fit", sample_weight, arguments))
        return X, code_labels(self, y), arguments

    def _check_piece(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, arguments: Arguments
    ) -> tuple[Any, np.ndarray, Arguments, bool]:
        """The same for a batch of a stream, and whether it is the first."""
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
        """Rows of X, and the same columns if X holds kernel values of pairs of rows."""
        part = take_rows(X, rows)
        return part[:, rows] if get_tags(self.estimator).input_tags.pairwise else part

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
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
