"""Decision thresholds of binary classifiers: given, or chosen by cross-validation."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import StratifiedShuffleSplit, check_cv
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted

from hinge._parameters import Constraints, Estimator, Folds, between, count, fraction, has, numbers, one_of, shared
from hinge.models.base import check_weights, take_input_tags, unique_codes
from hinge.models.meta import check_passed_on, fit_part, label_columns, positive_class, take_rows
from hinge.models.routing import Arguments, folds_of, route, router, routing_enabled, take_arguments

Array = NDArray[np.float64]


def _inner_has(method: str) -> Any:
    """Whether the classifier, fitted or as given, has a method."""
    return available_if(lambda self: hasattr(self._inner(), method))


def labels_at(classes: np.ndarray, scores: Array, threshold: float, positive: int) -> np.ndarray:
    """The positive class where the score reaches the threshold, else the other."""
    return classes[np.where(scores >= threshold, positive, 1 - positive)]


def _plain(labels: np.ndarray) -> np.ndarray:
    """Labels that are text as strings of Python's own: NumPy loses a Ctrl-C that comes while it compares two of its own."""
    return labels.astype(object) if labels.dtype.kind == "U" else labels


class ThresholdClassifier(ClassifierMixin, MetaEstimatorMixin, Estimator):
    """A binary classifier that predicts the positive class if its score reaches a threshold."""

    estimator: Any
    estimator_: Any
    response_method: str

    __metadata_request__fit: ClassVar[dict[str, str]] = {"sample_weight": UNUSED}  # the classifier's requests decide

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

    def _check(self, X: Any, y: Any, weight: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """X, the labels, and the two classes in order; rows of weight zero do not count."""
        if label_columns(y) > 1:
            raise ValueError(
                f"Only binary classification is supported by {type(self).__name__}. The type of the target is "
                f"{type_of_target(y)}: y has {label_columns(y)} columns."
            )
        X, y = check_passed_on(self, X, y)
        check_consistent_length(y, weight)
        classes, _ = unique_codes(y if weight is None else y[np.asarray(weight) > 0])
        if len(classes) != 2:
            number = f"{len(classes)} classes" if len(classes) > 1 else f"only one class, {classes.tolist()[0]!r}"
            raise ValueError(
                f"Only binary classification is supported by {type(self).__name__}. The type of the target is "
                f"{'multiclass' if len(classes) > 1 else 'constant'}: y has {number}."
            )
        return X, y, classes

    def _inner(self) -> Any:
        """The classifier: fitted by ``fit``, or as given."""
        return getattr(self, "estimator_", self.estimator)

    def _fit_arguments(self, X: Any, sample_weight: Any, arguments: Arguments) -> tuple[Array | None, Any]:
        """The weights of the examples without routing, and what routing gives to each part."""
        routed = route(self, "fit", arguments, sample_weight=sample_weight)
        if routing_enabled():
            return None, routed
        return check_weights(sample_weight, np.empty((_num_samples(X), 0))), routed

    def _response(self) -> str:
        """The method that gives scores."""
        if self.response_method != "auto":
            return self.response_method
        return "predict_proba" if hasattr(self._inner(), "predict_proba") else "decision_function"

    def _scores(self, model: Any, X: Any, positive: int) -> Array:
        """Scores of the positive class."""
        scores = np.asarray(getattr(model, self._response())(X), dtype=np.float64)
        if scores.ndim == 2:
            return scores[:, positive]
        return scores if positive == 1 else -scores

    @property
    def classes_(self) -> np.ndarray:
        """The two labels of the fitted classifier."""
        try:
            check_is_fitted(self)
        except NotFittedError as error:
            raise AttributeError("The underlying estimator is not fitted yet.") from error
        return np.asarray(self._inner().classes_)

    @_inner_has("predict_proba")
    def predict_proba(self, X: Any) -> Array:
        """The classifier's probabilities; the threshold does not change them."""
        check_is_fitted(self)
        return self._inner().predict_proba(X)

    @_inner_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Array:
        """The logarithms of the classifier's probabilities."""
        check_is_fitted(self)
        return self._inner().predict_log_proba(X)

    @_inner_has("decision_function")
    def decision_function(self, X: Any) -> Array:
        """The classifier's scores."""
        check_is_fitted(self)
        return self._inner().decision_function(X)


class FixedThresholdClassifier(ThresholdClassifier):
    """A binary classifier with a given threshold: predicts the positive class if its score ≥ threshold.

    If a false negative costs c₁ and a false positive c₀, the threshold on a probability with the smallest expected cost is
    c₀/(c₀ + c₁) (``hg.decisions.cost_threshold``).

    Parameters
    ----------
    estimator : classifier
        Any binary classifier with probabilities or scores. One that is fitted already need not be fitted again.
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

    def get_metadata_routing(self) -> Any:
        """The classifier gets the arguments of ``fit`` that it has requested."""
        return router(self, estimator=(self.estimator, {"fit": "fit"}))

    def __sklearn_is_fitted__(self) -> bool:
        try:
            check_is_fitted(self._inner())
        except NotFittedError:
            return False
        return True

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> FixedThresholdClassifier:
        """Fit the classifier; a weight of 2 means the same as having the example twice.

        With metadata routing enabled the classifier gets those of ``fit_params`` that it has requested.
        """
        weight, routed = self._fit_arguments(X, sample_weight, fit_params)
        X, y, classes = self._check(X, y, routed.estimator.fit.get("sample_weight", weight))
        positive_class(classes, self.pos_label)
        self.estimator_ = fit_part(self.estimator, X, y, None, weight, routed.estimator.fit)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The positive class if the score reaches the threshold."""
        check_is_fitted(self)
        positive = positive_class(self.classes_, self.pos_label)
        threshold = self.threshold
        if isinstance(threshold, str):
            threshold = 0.5 if self._response() == "predict_proba" else 0.0
        return labels_at(self.classes_, self._scores(self._inner(), X, positive), threshold, positive)


class TunedThresholdClassifierCV(ThresholdClassifier):
    """A binary classifier whose threshold maximises a measure on held-out examples.

    On every fold the measure is computed at thresholds t between the smallest and largest held-out score; the curves are
    interpolated at common thresholds and averaged, and the threshold with the best average is used.

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

    def get_metadata_routing(self) -> Any:
        """Classifier, splitter and measure get the arguments of ``fit`` that they have requested."""
        return router(
            self,
            estimator=(self.estimator, {"fit": "fit"}),
            splitter=(self.cv, {"fit": "split"}),
            scorer=(check_scoring(self.estimator, scoring=self.scoring), {"fit": "score"}),
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> TunedThresholdClassifierCV:
        """Choose the threshold and fit; a weight of 2 means the same as having the example twice.

        With metadata routing enabled the classifier, the splitter and the measure get what they have requested of
        ``fit_params`` and the weights.
        """
        weight, routed = self._fit_arguments(X, sample_weight, fit_params)
        X, y, classes = self._check(X, y, routed.estimator.fit.get("sample_weight", weight))
        scorer = check_scoring(self.estimator, scoring=self.scoring)
        if not hasattr(scorer, "_score_func"):
            raise ValueError("scoring must be a measure of labels: a name, or sklearn.metrics.make_scorer(function).")
        self._pos_label = scorer._kwargs.get("pos_label")
        positive = positive_class(classes, self._pos_label)
        measured = dict(routed.scorer.score) if weight is None else {"sample_weight": weight}
        folds = self._folds(X, y, routed.splitter.split)
        if folds is None:
            check_is_fitted(self.estimator, msg="`estimator` must be fitted. cv='prefit' does not fit it.")
            self.estimator_ = self.estimator
            curves = [self._curve(scorer, self.estimator, X, y, measured, positive)]
        else:
            fit = routed.estimator.fit
            fitted = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(fit_part)(self.estimator, X, y, learn, weight, fit) for learn, _ in folds
            )
            curves = [
                self._curve(scorer, model, take_rows(X, test), y[test], take_arguments(X, measured, test), positive)
                for model, (_, test) in zip(fitted, folds)
            ]
            self.estimator_ = fit_part(self.estimator, X, y, None, weight, fit) if self.refit else fitted[0]
        self._choose(curves)
        return self

    def _folds(self, X: Any, y: np.ndarray, arguments: Arguments) -> list[tuple[np.ndarray, np.ndarray]] | None:
        """The splits; None for a classifier that is fitted already."""
        if isinstance(self.cv, str):
            if self.refit:
                raise ValueError("When cv='prefit', refit cannot be True; set refit=False.")
            return None
        if isinstance(self.cv, Real) and not isinstance(self.cv, Integral):
            splitter: Any = StratifiedShuffleSplit(n_splits=1, test_size=self.cv, random_state=self.random_state)
        else:
            splitter = check_cv(self.cv, y, classifier=True)
        folds = list(folds_of(splitter, X, y, arguments, classify=True))
        if not self.refit and len(folds) > 1:
            raise ValueError("When cv has several folds, refit cannot be False; set refit=True, or a float as cv.")
        return folds

    def _curve(
        self, scorer: Any, model: Any, X: Any, y: np.ndarray, arguments: Arguments, positive: int
    ) -> tuple[Array, Array]:
        """Thresholds and the measure at each, on held-out examples; ``arguments`` are those of the measure."""
        classes, scores = np.asarray(model.classes_), self._scores(model, X, positive)
        weight = arguments.get("sample_weight")
        if weight is not None:
            kept = np.flatnonzero(np.asarray(weight) > 0)
            scores, y, arguments = scores[kept], y[kept], take_arguments(X, arguments, kept)
        options = scorer._kwargs | arguments
        if isinstance(self.thresholds, Integral):
            low, high = scores.min(), scores.max()
            thresholds = np.linspace(low, high, int(self.thresholds))
            if low == high:  # one threshold predicts all positive, the next number none
                thresholds = np.array([low, np.nextafter(low, np.inf)])
        else:
            thresholds = np.sort(np.asarray(self.thresholds, dtype=np.float64))
        y, classes = _plain(y), _plain(classes)
        values = [scorer._score_func(y, labels_at(classes, scores, t, positive), **options) for t in thresholds]
        return thresholds, scorer._sign * np.asarray(values, dtype=np.float64)

    def _choose(self, curves: list[tuple[Array, Array]]) -> None:
        """The threshold with the highest mean of the curves; the first in case of ties."""
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
        """The positive class if the score reaches ``best_threshold_``."""
        check_is_fitted(self)
        positive = positive_class(self.classes_, self._pos_label)
        return labels_at(self.classes_, self._scores(self.estimator_, X, positive), self.best_threshold_, positive)
