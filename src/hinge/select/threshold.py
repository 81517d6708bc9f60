"""Decision thresholds of binary classifiers: given, or chosen by cross-validation."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import StratifiedShuffleSplit, check_cv
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted

from hinge._parameters import Constraints, Estimator, Folds, between, count, fraction, has, numbers, one_of, shared
from hinge.models.base import check_weights, code_labels, take_input_tags
from hinge.models.meta import check_passed_on, fit_part, take_rows

Array = NDArray[np.float64]


def _inner_has(method: str) -> Any:
    """Whether the classifier, fitted or as given, has a method."""
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), method))


def _plain(labels: np.ndarray) -> np.ndarray:
    """Labels that are text as strings of Python's own: NumPy loses a Ctrl-C that comes while it compares two of its own."""
    return labels.astype(object) if labels.dtype.kind == "U" else labels


class ThresholdClassifier(ClassifierMixin, MetaEstimatorMixin, Estimator):
    """A binary classifier that predicts the positive class where its score reaches a threshold."""

    estimator: Any
    estimator_: Any
    response_method: str

    _parameter_constraints: ClassVar[Constraints] = {
        "estimator": [has("fit", "predict_proba"), has("fit", "decision_function")],
        "response_method": [one_of("auto", "predict_proba", "decision_function")],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        if hasattr(self.estimator, "fit"):
            take_input_tags(tags, self.estimator)
        return tags

    def _check(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        X, y = check_passed_on(self, X, y)
        code_labels(self, y)
        if len(self.classes_) != 2:
            raise ValueError(
                f"Only binary classification is supported by {type(self).__name__}. The type of the target is "
                f"multiclass: y has {len(self.classes_)} classes."
            )
        return X, y

    def _response(self) -> str:
        """The method that gives scores."""
        if self.response_method != "auto":
            return self.response_method
        inner = getattr(self, "estimator_", self.estimator)
        return "predict_proba" if hasattr(inner, "predict_proba") else "decision_function"

    def _positive(self, pos_label: Any) -> int:
        """The number of the positive class: the second, unless another is named."""
        if pos_label is None:
            return 1
        found = np.flatnonzero(self.classes_ == pos_label)
        if not len(found):
            raise ValueError(f"pos_label={pos_label!r} is not a label of y, which has {self.classes_.tolist()}.")
        return int(found[0])

    def _scores(self, model: Any, X: Any, positive: int) -> Array:
        """Scores of the positive class."""
        scores = np.asarray(getattr(model, self._response())(X), dtype=np.float64)
        if scores.ndim == 2:
            return scores[:, positive]
        return scores if positive == 1 else -scores

    def _labels(self, scores: Array, threshold: float, positive: int) -> np.ndarray:
        return self.classes_[np.where(scores >= threshold, positive, 1 - positive)]

    @_inner_has("predict_proba")
    def predict_proba(self, X: Any) -> Array:
        """The classifier's probabilities; the threshold does not change them."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    @_inner_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Array:
        """The logarithms of the classifier's probabilities."""
        check_is_fitted(self)
        return self.estimator_.predict_log_proba(X)

    @_inner_has("decision_function")
    def decision_function(self, X: Any) -> Array:
        """The classifier's scores."""
        check_is_fitted(self)
        return self.estimator_.decision_function(X)


class FixedThresholdClassifier(ThresholdClassifier):
    """A binary classifier with a threshold of one's own: the positive class where its score ≥ threshold.

    Where a false negative costs c₁ and a false positive c₀, the threshold of least expected cost on a probability is
    c₀/(c₀ + c₁) (``hg.cost_threshold``).

    Parameters
    ----------
    estimator : classifier
        Any binary classifier with probabilities or scores.
    threshold : float or "auto"
        "auto" is 0.5 for probabilities and 0 for scores.
    pos_label : label, optional
        The positive class; the second label by default.
    response_method : {"auto", "predict_proba", "decision_function"}
        What is compared with the threshold; probabilities by default, if there are any.

    Attributes
    ----------
    estimator_ : fitted classifier
    classes_ : array of two labels

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> hg.FixedThresholdClassifier(hg.LogisticRegression(), threshold=0.9).fit(X, y).predict([[1.6], [9.0]])
    array([0, 1])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "threshold": [between(None, None), one_of("auto")],
        "pos_label": [Real, str, "boolean", None],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        threshold: Any = "auto",
        pos_label: Any = None,
        response_method: str = "auto",
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.pos_label = pos_label
        self.response_method = response_method

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FixedThresholdClassifier:
        """Fit the classifier; a weight of 2 means the same as having the example twice."""
        X, y = self._check(X, y)
        self._positive(self.pos_label)
        self.estimator_ = fit_part(
            self.estimator, X, y, None, check_weights(sample_weight, np.empty((_num_samples(X), 0)))
        )
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The positive class where the score reaches the threshold."""
        check_is_fitted(self)
        positive = self._positive(self.pos_label)
        threshold = self.threshold
        if isinstance(threshold, str):
            threshold = 0.5 if self._response() == "predict_proba" else 0.0
        return self._labels(self._scores(self.estimator_, X, positive), threshold, positive)


class TunedThresholdClassifierCV(ThresholdClassifier):
    """A binary classifier whose threshold maximises a measure on held-out examples.

    On every fold the measure is computed at thresholds t between the least and the largest held-out score; the curves are
    interpolated at common thresholds and averaged, and the best of those is taken.

    Parameters
    ----------
    estimator : classifier
        Any binary classifier with probabilities or scores.
    scoring : str or scorer
        The measure of predicted labels (scikit-learn's names, or ``make_scorer``); balanced accuracy by default.
    response_method : {"auto", "predict_proba", "decision_function"}
        What is compared with the threshold; probabilities by default, if there are any.
    thresholds : int or array of numbers
        How many thresholds to try, or which.
    cv : int, float, splitter, iterable or "prefit", optional
        The folds, five stratified ones by default; a float holds out one such share of the examples. "prefit": the
        classifier is fitted already, and X is held out (needs ``refit=False``).
    refit : bool
        Whether to fit the classifier to all examples in the end; without, there must be a single split.
    n_jobs : int, optional
        How many folds at once (threads).
    random_state : int, RandomState or None
        The seed of the split that a float ``cv`` stands for.
    store_cv_results : bool
        Keep thresholds and scores in ``cv_results_``.

    Attributes
    ----------
    estimator_ : fitted classifier
    best_threshold_, best_score_ : float
    cv_results_ : dict with "thresholds" and "scores"
        Only with ``store_cv_results``.
    classes_ : array of two labels

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.linspace(-3, 3, 100)[:, None]
    >>> y = (X[:, 0] > 2).astype(int)
    >>> model = hg.TunedThresholdClassifierCV(hg.LogisticRegression(C=0.1)).fit(X, y)
    >>> bool(model.best_threshold_ < 0.5)
    True
    """

    decides_by_sign: ClassVar[bool] = False  # zero of decision_function is not where predict changes

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("n_jobs", "random_state"),
        "scoring": [one_of(*sorted(get_scorer_names())), callable],
        "thresholds": [count(), numbers(flat=True)],
        "cv": [Folds(), one_of("prefit"), fraction()],
        "refit": ["boolean"],
        "store_cv_results": ["boolean"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        scoring: Any = "balanced_accuracy",
        response_method: str = "auto",
        thresholds: Any = 100,
        cv: Any = None,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        store_cv_results: bool = False,
    ) -> None:
        self.estimator = estimator
        self.scoring = scoring
        self.response_method = response_method
        self.thresholds = thresholds
        self.cv = cv
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.store_cv_results = store_cv_results

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TunedThresholdClassifierCV:
        """Choose the threshold and fit; a weight of 2 means the same as having the example twice."""
        X, y = self._check(X, y)
        weight = check_weights(sample_weight, np.empty((_num_samples(X), 0)))
        scorer = check_scoring(self.estimator, scoring=self.scoring)
        if not hasattr(scorer, "_score_func"):
            raise ValueError("scoring must be a measure of labels: a name, or sklearn.metrics.make_scorer(function).")
        self._pos_label = scorer._kwargs.get("pos_label")
        positive = self._positive(self._pos_label)
        folds = self._folds(X, y)
        if folds is None:
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            curves = [self._curve(scorer, self.estimator, X, y, weight, positive)]
        else:
            fitted = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(fit_part)(self.estimator, X, y, learn, weight) for learn, _ in folds
            )
            curves = [
                self._curve(
                    scorer, model, take_rows(X, test), y[test], None if weight is None else weight[test], positive
                )
                for model, (_, test) in zip(fitted, folds)
            ]
            self.estimator_ = fit_part(self.estimator, X, y, None, weight) if self.refit else fitted[0]
        self._choose(curves)
        return self

    def _folds(self, X: Any, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]] | None:
        """The splits; None for a classifier that is fitted already."""
        if isinstance(self.cv, str):
            if self.refit:
                raise ValueError("When cv='prefit', refit cannot be True; set refit=False.")
            return None
        if isinstance(self.cv, Real) and not isinstance(self.cv, Integral):
            splitter: Any = StratifiedShuffleSplit(n_splits=1, test_size=self.cv, random_state=self.random_state)
        else:
            splitter = check_cv(self.cv, y, classifier=True)
        folds = [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(X, y)]
        if not self.refit and len(folds) > 1:
            raise ValueError("When cv has several folds, refit cannot be False; set refit=True, or a float as cv.")
        return folds

    def _curve(
        self, scorer: Any, model: Any, X: Any, y: np.ndarray, weight: Array | None, positive: int
    ) -> tuple[Array, Array]:
        """Thresholds and the measure at each, on held-out examples."""
        scores = self._scores(model, X, positive)
        options = dict(scorer._kwargs)
        if weight is not None:
            there = weight > 0
            scores, y, options["sample_weight"] = scores[there], y[there], weight[there]
        if isinstance(self.thresholds, Integral):
            low, high = scores.min(), scores.max()
            thresholds = np.linspace(low, high, int(self.thresholds))
            if low == high:  # one threshold calls all of them positive, the next number none
                thresholds = np.array([low, np.nextafter(low, np.inf)])
        else:
            thresholds = np.sort(np.asarray(self.thresholds, dtype=np.float64))
        y, labels = _plain(y), _plain(self.classes_)[[1 - positive, positive]]
        values = [scorer._score_func(y, labels[(scores >= t).astype(np.intp)], **options) for t in thresholds]
        return thresholds, scorer._sign * np.asarray(values, dtype=np.float64)

    def _choose(self, curves: list[tuple[Array, Array]]) -> None:
        """The threshold with the highest mean of the curves; the first of several."""
        if isinstance(self.thresholds, Integral):
            low, high = min(t[0] for t, _ in curves), max(t[-1] for t, _ in curves)
            if all(np.isclose(thresholds[0], thresholds[-1]) for thresholds, _ in curves):
                raise ValueError(
                    "The provided estimator makes constant predictions. Therefore, it is impossible to optimize the "
                    "decision threshold. X may have no information about y, or columns of a very small or large scale."
                )
            common = np.linspace(low, high, int(self.thresholds))
        else:
            common = np.asarray(self.thresholds, dtype=np.float64)
        means = np.mean([np.interp(common, thresholds, values) for thresholds, values in curves], axis=0)
        best = int(np.argmax(means))
        self.best_threshold_, self.best_score_ = float(common[best]), float(means[best])
        self.__dict__.pop("cv_results_", None)
        if self.store_cv_results:
            self.cv_results_ = {"thresholds": common, "scores": means}

    def predict(self, X: Any) -> np.ndarray:
        """The positive class where the score reaches ``best_threshold_``."""
        check_is_fitted(self)
        positive = self._positive(self._pos_label)
        return self._labels(self._scores(self.estimator_, X, positive), self.best_threshold_, positive)
