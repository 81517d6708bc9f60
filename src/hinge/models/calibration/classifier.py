"""Calibrated probabilities: a classifier's scores mapped to frequencies on examples that were not used to fit it.

Sigmoid      P = 1/(1 + exp(−(a s + b))), by maximum likelihood with Platt's targets
Isotonic     P = the monotone function of s of least squared error
Temperature  P = softmax(s/T), one T > 0 of maximum likelihood for all classes; the ranking of classes is unchanged

With several classes the first two calibrate each class against the rest, and divide the results by their sum.
Reference: Platt (1999); Zadrozny & Elkan (2002); Guo et al. (2017).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.optimize
import sklearn.frozen
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter

from hinge._parameters import Constraints, Estimator, Folds, has, one_of, shared
from hinge.models.base import check_weights, code_labels, take_input_tags
from hinge.models.calibration.isotonic import IsotonicRegression
from hinge.models.calibration.platt import fit_sigmoid, sigmoid
from hinge.models.linear.svm import LinearSVC
from hinge.models.meta import check_passed_on, fit_part
from hinge.models.routing import Arguments, folds_of, route, router, routing_enabled

Array = NDArray[np.float64]

METHODS = ("sigmoid", "isotonic", "temperature")
# The bounds of 1/T, for scores scaled to at most 1.
SHARPNESS = (1e-6, 1e6)


@dataclass(frozen=True)
class SigmoidMap:
    """P = 1/(1 + exp(−(slope·s + offset)))."""

    slope: float
    offset: float

    def predict(self, scores: Array) -> Array:
        return sigmoid(scores, self.slope, self.offset)


class TemperatureMap(Estimator):
    """P = softmax(β·logits) with the inverse temperature β = 1/T of maximum likelihood."""

    def fit(self, logits: Array, codes: NDArray[np.intp], weight: Array) -> TemperatureMap:
        self.beta_ = fit_sharpness(logits, codes, weight)
        return self

    def predict(self, logits: Array) -> Array:
        return softmax(self.beta_ * logits)


@dataclass(frozen=True)
class CalibratedPair:
    """A fitted classifier, and one map per class (or one for two classes, or one temperature) for its scores."""

    estimator: Any
    columns: NDArray[np.intp]  # positions of the classifier's classes among all classes
    classes: int
    method: str
    calibrators: tuple[Any, ...]

    def predict_proba(self, X: Any) -> Array:
        """Calibrated probabilities of all classes; zero for classes the classifier does not have."""
        scores = scores_of(self.estimator, X, self.method)
        if self.method == "temperature":
            p = self.calibrators[0].predict(scores)
        elif scores.shape[1] == 1:
            second = np.asarray(self.calibrators[0].predict(scores[:, 0]), dtype=np.float64)
            p = np.column_stack([1.0 - second, second])
        else:
            p = np.column_stack([m.predict(s) for m, s in zip(self.calibrators, scores.T)])
            total = p.sum(axis=1, keepdims=True)
            p = np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])
        out = np.zeros((len(p), self.classes))
        out[:, self.columns] = p
        return out


def softmax(z: Array) -> Array:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def scores_of(estimator: Any, X: Any, method: str) -> Array:
    """The scores to calibrate: decision values or else probabilities; one column for two classes.

    For a temperature they are logits, one column per class: the logarithms of probabilities.
    """
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
        if scores.ndim == 1:
            return np.column_stack([np.zeros(len(scores)), scores]) if method == "temperature" else scores[:, None]
        return scores
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(f"{type(estimator).__name__} has neither decision_function nor predict_proba to calibrate.")
    p = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    if method == "temperature":
        return np.log(np.clip(p, np.finfo(np.float64).tiny, None))
    return p[:, 1:] if p.shape[1] == 2 else p


def fit_maps(scores: Array, codes: NDArray[np.intp], weight: Array | None, method: str) -> tuple[Any, ...]:
    """The maps for scores of examples whose classes are numbered as the columns.

    A score is NaN if the classifier's training data lacked the class; its map is fitted without it.
    """
    used = np.arange(len(codes)) if weight is None else np.flatnonzero(weight)
    scores, codes = scores[used], codes[used]
    w = np.ones(len(codes)) if weight is None else weight[used]
    if method == "temperature":
        known = ~np.isnan(scores).any(axis=1)
        return (TemperatureMap().fit(scores[known], codes[known], w[known]),)
    columns = [1] if scores.shape[1] == 1 else range(scores.shape[1])
    return tuple(_fit_map(s, codes == j, w, method) for s, j in zip(scores.T, columns))


def _fit_map(scores: Array, positive: NDArray[np.bool_], weight: Array, method: str) -> Any:
    known = ~np.isnan(scores)
    s, positive, w = scores[known], positive[known], weight[known]
    if method == "sigmoid":
        return SigmoidMap(*fit_sigmoid(s, positive, w))
    return IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(s, positive.astype(np.float64), w)


def fit_sharpness(logits: Array, codes: NDArray[np.intp], weight: Array) -> float:
    """1/T > 0 of maximum likelihood. The loss is convex in 1/T, so its derivative has one root."""
    logits = logits - logits.max(axis=1, keepdims=True)
    scale = max(float(np.abs(logits).max(initial=0.0)), 1e-300)
    z = logits / scale
    right = z[np.arange(len(codes)), codes]

    def slope(log_beta: float) -> float:
        return float(weight @ (np.sum(softmax(np.exp(log_beta) * z) * z, axis=1) - right))

    low, high = np.log(SHARPNESS)
    if slope(low) >= 0:
        best = low
    elif slope(high) <= 0:
        best = high
    else:
        best = scipy.optimize.brentq(slope, low, high, xtol=1e-12)
    return float(np.exp(best)) / scale


class CalibratedClassifierCV(ClassifierMixin, MetaEstimatorMixin, Estimator):
    """Any classifier with calibrated probabilities, fitted by cross-validation.

    Parameters
    ----------
    estimator : classifier, optional
        A linear support vector machine by default. A fitted one may be wrapped in scikit-learn's ``FrozenEstimator``
        (or given with ``cv="prefit"``); all examples then go to the calibration.
    method : {"sigmoid", "isotonic", "temperature"}
        The kind of map. Isotonic needs about a thousand examples; temperature does not change predictions.
    cv : int, splitter or "prefit", optional
        Five stratified folds by default.
    n_jobs : int, optional
        How many folds at once (threads).
    ensemble : bool or "auto"
        True: one classifier and map per fold, probabilities averaged. False: one map from out-of-fold scores, one
        classifier fitted to everything. "auto" is True unless the classifier is frozen.

    Attributes
    ----------
    classes_, calibrated_classifiers_ : as in scikit-learn

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> y = (X[:, 0] + np.tile([1.5, -1.5, 0.2], 20) > 0).astype(int)
    >>> model = hg.CalibratedClassifierCV(hg.LinearSVC(), cv=3).fit(X, y)
    >>> bool(0.2 < model.predict_proba([[0.0]])[0, 1] < 0.8)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("n_jobs"),
        "cv": [Folds(), one_of("prefit")],
        "estimator": [has("fit", "predict_proba"), has("fit", "decision_function"), None],
        "method": [one_of(*METHODS)],
        "ensemble": ["boolean", one_of("auto")],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str = "sigmoid",
        cv: Any = None,
        n_jobs: int | None = None,
        ensemble: Any = "auto",
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.n_jobs = n_jobs
        self.ensemble = ensemble

    def _base(self) -> Any:
        return LinearSVC() if self.estimator is None else self.estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        take_input_tags(tags, self._base())
        inner = get_tags(self._base()).classifier_tags
        tags.classifier_tags.multi_class = inner.multi_class if inner else True
        return tags

    def get_metadata_routing(self) -> Any:
        """Routes to the classifier and the splitter the arguments of ``fit`` that they request."""
        return router(self, estimator=(self._base(), {"fit": "fit"}), splitter=(self.cv, {"fit": "split"}))

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> CalibratedClassifierCV:
        """Fit classifiers and their maps; a weight of 2 means the same as having the example twice.

        ``fit_params`` go to the ``fit`` of the classifiers (with metadata routing enabled, those they request);
        parameters with an entry per example are restricted to the examples of a fold.
        """
        base = self._base()
        X, y = check_passed_on(self, X, y)
        codes = code_labels(self, y)
        weight = check_weights(sample_weight, np.empty((_num_samples(X), 0)))
        if isinstance(base, sklearn.frozen.FrozenEstimator) or self.cv == "prefit":
            check_is_fitted(base)
            self.calibrated_classifiers_ = [self._calibrate(base, X, codes, weight)]
            return self
        inner, split = self._for_parts(base, sample_weight, weight, fit_params)
        folds = self._folds(X, y, codes, weight, split)
        fitted = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(fit_part)(base, X, y, train, arguments=inner) for train, _ in folds
        )
        if self.ensemble in (True, "auto"):
            self.calibrated_classifiers_ = [
                self._calibrate(model, _safe_indexing(X, test), codes[test], None if weight is None else weight[test])
                for model, (_, test) in zip(fitted, folds)
            ]
        else:
            self.calibrated_classifiers_ = [self._calibrate_together(base, fitted, folds, X, y, codes, weight, inner)]
        return self

    def _for_parts(
        self, base: Any, sample_weight: Any, weight: Array | None, arguments: Arguments
    ) -> tuple[Arguments, Arguments]:
        """The arguments of the classifier's ``fit`` and of ``split``."""
        if routing_enabled():
            routed = route(self, "fit", arguments, sample_weight=sample_weight)
            return dict(routed.estimator.fit), dict(routed.splitter.split)
        if weight is None:
            return arguments, {}
        if not has_fit_parameter(base, "sample_weight"):
            warnings.warn(f"{type(base).__name__} takes no sample_weight: only the maps are weighted.", stacklevel=3)
            return arguments, {}
        return arguments | {"sample_weight": weight}, {}

    def _folds(self, X: Any, y: Any, codes: Any, weight: Array | None, arguments: Arguments) -> list[tuple[Any, Any]]:
        splitter = check_cv(self.cv, y, classifier=True)
        wanted = getattr(splitter, "n_splits", None)
        counts = np.bincount(codes if weight is None else codes[weight > 0], minlength=len(self.classes_))
        if isinstance(wanted, int) and counts.min() < wanted and (self.cv is None or isinstance(self.cv, int)):
            raise ValueError(
                f"cv={wanted} needs at least {wanted} examples of every class; {self.classes_[counts.argmin()]!r} has "
                f"{counts.min()} samples. Ask for fewer folds."
            )
        folds = list(folds_of(splitter, X, y, arguments, classify=True))
        many = wanted is None or counts.min() < wanted
        one_class = any(np.all(codes[test] == codes[test[0]]) for _, test in folds)
        if self.ensemble in (True, "auto") and many and one_class:
            name = type(splitter).__name__
            raise ValueError(
                (f"Requesting {wanted}-fold cross-validation does" if wanted else f"{name} cross-validation does")
                + " not leave two classes in every held-out part, which a map is fitted to; use fewer folds, stratified"
                " ones, or ensemble=False."
            )
        return folds

    def _calibrate(self, model: Any, X: Any, codes: NDArray[np.intp], weight: Array | None) -> CalibratedPair:
        """The map for a fitted classifier, from examples that were not used to fit it."""
        columns = np.searchsorted(self.classes_, model.classes_)
        known = np.flatnonzero(np.isin(codes, columns))
        X, codes = _safe_indexing(X, known), np.searchsorted(columns, codes[known])
        weight = None if weight is None else weight[known]
        maps = fit_maps(scores_of(model, X, self.method), codes, weight, self.method)
        return CalibratedPair(model, columns, len(self.classes_), self.method, maps)

    def _calibrate_together(
        self, base: Any, fitted: Any, folds: Any, X: Any, y: Any, codes: Any, weight: Array | None, inner: Any
    ) -> CalibratedPair:
        """One map from the out-of-fold scores of all classifiers, applied to one classifier fitted to all examples."""
        scores = None
        for model, (_, test) in zip(fitted, folds):
            part = scores_of(model, _safe_indexing(X, test), self.method)
            if len(model.classes_) < min(3, len(self.classes_)):
                raise ValueError("A fold has one or two classes only; use ensemble=True, or stratified folds.")
            columns = np.searchsorted(self.classes_, model.classes_) if part.shape[1] > 1 else np.array([0])
            width = max(len(self.classes_), 1) if part.shape[1] > 1 else 1
            scores = np.full((len(codes), width), np.nan) if scores is None else scores
            scores[np.ix_(test, columns)] = part
        assert scores is not None
        known = np.flatnonzero(~np.isnan(scores).all(axis=1))
        maps = fit_maps(scores[known], codes[known], None if weight is None else weight[known], self.method)
        model = fit_part(base, X, y, arguments=inner)
        return CalibratedPair(model, np.arange(len(self.classes_)), len(self.classes_), self.method, maps)

    def predict_proba(self, X: Any) -> Array:
        """Calibrated probabilities of the classes, averaged over the folds."""
        check_is_fitted(self)
        pairs = self.calibrated_classifiers_
        return np.mean([pair.predict_proba(X) for pair in pairs], axis=0)

    def predict(self, X: Any) -> Any:
        """The class of highest calibrated probability."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]
