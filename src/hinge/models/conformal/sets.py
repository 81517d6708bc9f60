"""Conformal prediction sets; see base.py for the theory."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.validation import _num_samples, column_or_1d

from hinge._parameters import Constraints, one_of
from hinge.models.base import code_labels
from hinge.models.conformal.base import Conformal, upper_quantile
from hinge.models.linear.logistic import LogisticRegression
from hinge.models.meta import take_rows

Array = np.ndarray
METHODS = ("split", "cv+")
SCORES = ("aps", "lac")


def _fraction(p: Array) -> Array:
    """A number in [0, 1) for every row, nearly uniform but determined by the row: low-order digits of p."""
    digits = (p @ np.sqrt(np.arange(2.0, 2.0 + p.shape[1]))) * 1e7
    return (digits - np.floor(digits))[:, None]


class ConformalClassifier(ClassifierMixin, Conformal):
    """Prediction sets around any classifier with probabilities, valid for any distribution of exchangeable rows.

    The set at x is {y : s(x, y) ≤ q}. "aps": s is the total probability of y and of all more probable classes, so that sets
    are small where the classifier is confident and large where it is not. "lac": s = 1 − p(y | x), which gives the smallest
    sets on average.

    Parameters
    ----------
    estimator : classifier, optional
        With ``predict_proba``; ``LogisticRegression()`` by default.
    method : {"split", "cv+"}
        Set rows aside, or use every row for both purposes with folds.
    conformity : {"aps", "lac"}
        Which s.
    coverage : float
        1 − α, how often the true class is to be in the set.
    calibration_size : float
        The share of rows set aside by "split".
    cv : int or splitter
        Folds of "cv+".
    allow_empty : bool
        An empty set means that no class suits. False puts the most likely class in instead: never
        empty, and the coverage is above the nominal one where the classifier is right more often than that.
    random_state : int
        Which rows are set aside.

    Attributes
    ----------
    classes_ : array
    estimator_ : fitted classifier
        Gives ``predict`` and ``predict_proba``.
    scores_ : array
        The scores of calibration rows.
    guaranteed_coverage_ : float
        What is proved: ``coverage``, or 1 − 2α for "cv+".

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = np.where(X[:, 0] + rng.normal(size=400) > 0, "yes", "no")
    >>> model = hg.ConformalClassifier(coverage=0.9).fit(X[:200], y[:200])
    >>> inside = model.predict_set(X[200:])
    >>> truth = y[200:, None] == model.classes_
    >>> bool(0.83 < np.mean(inside[truth]) < 0.97)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "method": [one_of(*METHODS)],
        "conformity": [one_of(*SCORES)],
        "allow_empty": ["boolean"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str = "split",
        conformity: str = "aps",
        coverage: float = 0.9,
        calibration_size: float = 0.25,
        cv: Any = 5,
        allow_empty: bool = True,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.conformity = conformity
        self.coverage = coverage
        self.calibration_size = calibration_size
        self.cv = cv
        self.allow_empty = allow_empty
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base()).classifier_tags
        tags.classifier_tags.multi_class = inner is None or inner.multi_class
        return tags

    def _base(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any) -> ConformalClassifier:
        """Fit the estimator and calibrate."""
        X = self._open(X)
        n = int(_num_samples(X))
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        if len(y) != n:
            raise ValueError(f"X has {n} rows but y has {len(y)}.")
        codes = code_labels(self, y)
        self.estimators_: list[Any] = []
        self.fold_ = np.zeros(n, dtype=np.int64)
        if self.method == "split":
            learn, calibration = self._set_aside(n, codes)
            self.estimator_ = self._fit(self._base(), X, y, learn)
            self.scores_ = self._true_scores(self.estimator_, take_rows(X, calibration), codes[calibration])
            return self
        self.estimator_ = self._fit(self._base(), X, y, np.arange(n))
        self.scores_ = np.empty(n)
        for k, (learn, test) in enumerate(self._folds(X, codes, True)):
            self.estimators_.append(self._fit(self._base(), X, y, learn))
            self.scores_[test] = self._true_scores(self.estimators_[-1], take_rows(X, test), codes[test])
            self.fold_[test] = k
        return self

    def _all(self, model: Any, X: Any) -> Array:
        """s(x, y) for every class y, n × k."""
        p = np.zeros((_num_samples(X), len(self.classes_)))
        p[:, np.searchsorted(self.classes_, model.classes_)] = model.predict_proba(X)
        if self.conformity == "lac":
            return 1.0 - p
        order = np.argsort(-p, axis=1, kind="stable")
        sorted_p = np.take_along_axis(p, order, axis=1)
        scores = np.empty_like(p)
        # All folds use the u of the first model, because independent draws would average out.
        u = _fraction(p if model is self.estimator_ else self.estimator_.predict_proba(X))
        np.put_along_axis(scores, order, np.cumsum(sorted_p, axis=1) - (1.0 - u) * sorted_p, axis=1)
        return scores

    def _true_scores(self, model: Any, X: Any, codes: Array) -> Array:
        return self._all(model, X)[np.arange(len(codes)), codes]

    def predict_proba(self, X: Any) -> Array:
        """The estimator's probabilities."""
        X = self._table(X)
        return self.estimator_.predict_proba(X)

    def predict_set(self, X: Any, coverage: float | None = None) -> Array:
        """Which classes are in the set of every input.

        Parameters
        ----------
        X : inputs
        coverage : float, optional
            Another level than the one of the constructor; no new fit is needed.

        Returns
        -------
        array of bool, n × k, in the order of ``classes_``
        """
        X = self._table(X)
        alpha = self._level(self.coverage if coverage is None else coverage)
        if self.method == "split":
            inside = self._all(self.estimator_, X) <= upper_quantile(self.scores_, alpha)
        else:
            larger = np.ones((_num_samples(X), len(self.classes_)))
            for k, model in enumerate(self.estimators_):
                fold_scores = np.sort(self.scores_[self.fold_ == k])
                larger += len(fold_scores) - np.searchsorted(fold_scores, self._all(model, X), side="left")
            inside = larger > alpha * (len(self.scores_) + 1) - 1e-9
        if not self.allow_empty:
            best = self.estimator_.predict_proba(X).argmax(axis=1)
            empty = ~inside.any(axis=1)
            inside[empty, best[empty]] = True
        return inside
