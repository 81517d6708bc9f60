"""Least-squares classification with the strength of the ridge chosen by exact leave-one-out or by folds."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metadata_routing import get_routing_for_object

from hinge._parameters import Constraints, Estimator, above, numbers, shared
from hinge.models.linear.certify import CertifiedAs
from hinge.models.linear.ridge_classifier import LeastSquaresClassifier, RidgeClassifier
from hinge.models.routing import folds_of, route, router
from hinge.select.ridge import RidgeCV, scorer_or


class RidgeClassifierCV(CertifiedAs, LeastSquaresClassifier):
    """:class:`RidgeClassifier`, Σ sᵢ (yᵢ − ⟨w, xᵢ⟩ − b)² + α‖w‖² with y = ±1, with α chosen as in :class:`RidgeCV`.

    Parameters
    ----------
    alphas, fit_intercept, cv, store_cv_results, rule
        As in :class:`RidgeCV`.
    scoring : str or callable, optional
        A scikit-learn scorer of classes. If absent, the negative mean squared error of the scores for leave-one-out,
        and accuracy for folds.
    class_weight : dict or "balanced", optional
        Factors on the weights of the classes.

    Attributes
    ----------
    alpha_, best_score_, classes_, coef_, intercept_, cv_results_ : as in scikit-learn
    errors_ : array with one number per α
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[-2.0], [-1.0], [1.0], [3.0]])
    >>> float(hg.RidgeClassifierCV(alphas=[0.1, 1.0]).fit(X, [0, 0, 1, 1]).alpha_)
    1.0
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("cv", "class_weight", "rule"),
        "alphas": [numbers(0, flat=True), above(0)],
        "scoring": [str, callable, None],
        "store_cv_results": ["boolean"],
    }

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        class_weight: Any = None,
        store_cv_results: bool = False,
        rule: str = "best",
    ) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.class_weight = class_weight
        self.store_cv_results = store_cv_results
        self.rule = rule

    def get_metadata_routing(self) -> Any:
        """The splitter and the scorer receive the arguments of ``fit`` that they have requested."""
        return router(self, scorer=(self._class_scorer(), {"fit": "score"}), splitter=(self.cv, {"fit": "split"}))

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> RidgeClassifierCV:
        """Choose α and fit with it to all data; ``params`` are passed to splitter and scorer if routing is enabled."""
        routed = route(self, "fit", params, sample_weight=sample_weight)
        X, codes, targets, weights = self._check_targets(X, y, sample_weight)
        split = routed.splitter.split
        folds = None if self.cv is None else list(folds_of(self.cv, X, codes, split, classify=True))
        scored = {name: value for name, value in routed.scorer.score.items() if name != "sample_weight"}
        model = RidgeCV(
            self.alphas, fit_intercept=self.fit_intercept, scoring=self._scorer(), cv=folds,
            store_cv_results=self.store_cv_results, rule=self.rule,
        ).fit(X, targets if targets.ndim == 2 else targets[:, None], weights, **scored)  # fmt: skip
        self.coef_, self.intercept_ = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
        self.alpha_, self.best_score_, self.errors_ = model.alpha_, model.best_score_, model.errors_
        self.certificate_ = model.certificate_
        if self.store_cv_results:
            self.cv_results_ = model.cv_results_
        return self

    def _chosen(self) -> RidgeClassifier:
        return RidgeClassifier(self.alpha_, fit_intercept=self.fit_intercept, class_weight=self.class_weight)

    def _class_scorer(self) -> Any:
        """The scorer of classes; accuracy if none is given."""
        return scorer_or(self, "accuracy")

    def _scorer(self) -> Any:
        """The scorer of classes, applied to the numbers that code the classes."""
        if self.scoring is None and self.cv is None:
            return None
        return _NumberScorer(self._class_scorer(), self.classes_, self._multilabel)


class _NumberScorer:
    """Decodes numbers into classes and scores these."""

    def __init__(self, scorer: Any, classes: np.ndarray, multilabel: bool) -> None:
        self.scorer, self.classes, self.multilabel = scorer, classes, multilabel

    def get_metadata_routing(self) -> Any:
        """The requests of the scorer of classes."""
        return get_routing_for_object(self.scorer)

    def __call__(self, model: Any, X: Any, targets: np.ndarray, **options: Any) -> float:
        decoded = _Decoded(self.classes, model.predict(X), self.multilabel)
        return float(self.scorer(decoded, X, decoded.labels(targets), **options))


class _Decoded(ClassifierMixin, Estimator):
    """A classifier with given scores, so that scorers of classes can be applied to them."""

    def __init__(self, classes: np.ndarray, scores: np.ndarray, multilabel: bool) -> None:
        self.classes, self.scores, self.multilabel = classes, scores, multilabel
        self.classes_ = classes

    def labels(self, scores: np.ndarray) -> np.ndarray:
        if self.multilabel:
            return (scores > 0).astype(int)
        if scores.ndim == 2 and scores.shape[1] > 1:
            return self.classes[np.argmax(scores, axis=1)]
        return self.classes[(np.ravel(scores) > 0).astype(int)]

    def decision_function(self, X: Any) -> np.ndarray:
        return self.scores

    def predict(self, X: Any) -> np.ndarray:
        return self.labels(self.scores)
