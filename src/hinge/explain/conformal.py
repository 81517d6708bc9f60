"""Conformal prediction: intervals and sets that hold the truth as often as they say.

A score s(x, y) says how badly y suits x; calibration rows give its distribution, and a prediction is every y whose score
is not among the largest α of them. If rows are exchangeable (no drift), the truth is inside with probability ≥ 1 − α,
whatever the model and however few the rows:

    split           P ≥ 1 − α       one fit on some rows, scores on the others
    CV+, jackknife+ P ≥ 1 − 2α      no rows are set aside; in practice close to 1 − α

References: Vovk et al. (2005); Lei et al. (2018); Romano, Patterson & Candès (2019), CQR; Romano, Sesia & Candès (2020),
APS; Barber et al. (2021), jackknife+ and CV+.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import assert_all_finite, check_random_state, get_tags
from sklearn.utils.validation import _num_samples, check_array, check_is_fitted, column_or_1d, validate_data

from hinge.explain.leave_one_out import LeaveOneOut, leave_one_out
from hinge.explain.measure import take_rows
from hinge.models.base import code_labels
from hinge.models.boosting import GradientBoostingRegressor
from hinge.models.linear.least_squares import Ridge
from hinge.models.linear.logistic import LogisticRegression

Array = np.ndarray
REGRESSION_METHODS = ("split", "cv+", "jackknife+", "normalized", "quantile")
CLASSIFICATION_METHODS = ("split", "cv+")
SCORES = ("aps", "lac")


class _Conformal(MetaEstimatorMixin, BaseEstimator):
    """What intervals and sets share: rows set aside, folds, levels."""

    estimator: Any
    method: str
    coverage: float
    calibration_size: float
    cv: Any
    random_state: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.target_tags.required = True
        return tags

    def _base(self) -> Any:
        raise NotImplementedError

    def _open(self, X: Any, methods: tuple[str, ...]) -> Any:
        """Check the settings and take note of the columns; X as a table."""
        if self.method not in methods:
            raise ValueError(f"method must be one of {', '.join(map(repr, methods))}, got {self.method!r}.")
        self._level(self.coverage)
        if not 0 < self.calibration_size < 1:
            raise ValueError(f"calibration_size must lie between 0 and 1, got {self.calibration_size!r}.")
        X = as_table(X)
        validate_data(self, X, skip_check_array=True)
        if (n := _num_samples(X)) < 4:
            raise ValueError(f"{type(self).__name__} needs at least 4 examples to calibrate with; got n_samples = {n}.")
        return X

    def _table(self, X: Any) -> Any:
        check_is_fitted(self)
        X = as_table(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        return X

    @staticmethod
    def _level(coverage: float) -> float:
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must lie strictly between 0 and 1, got {coverage!r}.")
        return 1.0 - float(coverage)

    def _set_aside(self, n: int, codes: Array | None = None) -> tuple[Array, Array]:
        """Rows to learn from and rows to calibrate with; of labels, every class is among the first."""
        order = check_random_state(self.random_state).permutation(n)
        held = min(max(1, round(self.calibration_size * n)), n - 2)
        learn, rest = order[held:], order[:held]
        if codes is not None:
            lacking = np.setdiff1d(codes[rest], codes[learn])
            move = np.isin(codes[rest], lacking)
            learn, rest = np.concatenate([learn, rest[move]]), rest[~move]
        if not len(rest):
            raise ValueError("too few examples of each class are left to calibrate with; use method='cv+'.")
        return np.sort(learn), np.sort(rest)

    def _folds(self, X: Any, y: Array, classify: bool) -> list[tuple[Array, Array]]:
        if isinstance(self.cv, int):
            fewest = int(np.bincount(y).min()) if classify else len(y)
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            kind = StratifiedKFold if classify and fewest >= 2 else KFold
            splitter: Any = kind(
                max(2, min(self.cv, fewest if fewest >= 2 else len(y))), shuffle=True, random_state=seed
            )
        else:
            splitter = check_cv(self.cv, y, classifier=classify)
        return [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(np.zeros(len(y)), y)]

    def _fit(self, model: Any, X: Any, y: Array, rows: Array) -> Any:
        return clone(model).fit(take_rows(X, rows), y[rows])

    def predict(self, X: Any) -> Array:
        """What the estimator predicts, without an interval or a set."""
        X = self._table(X)
        return self.estimator_.predict(X)

    @property
    def guaranteed_coverage_(self) -> float:
        """What is proved, if rows are exchangeable: ``coverage``, or 1 − 2α for CV+ and jackknife+."""
        check_is_fitted(self)
        alpha = self._level(self.coverage)
        return 1.0 - (2.0 * alpha if self.method in ("cv+", "jackknife+") else alpha)


def as_table(X: Any) -> Any:
    """Data frames and sparse matrices as they are, anything else as an array; one row alone is not a table."""
    if hasattr(X, "columns") or hasattr(X, "tocsr"):
        return X
    X = np.asarray(X)
    if X.ndim == 1 and X.dtype.kind not in "OUS":  # texts may come in one dimension
        raise ValueError(
            "Expected 2D array, got 1D array instead. Reshape your data with X.reshape(1, -1) for one row."
        )
    return X


def upper_quantile(scores: Array, alpha: float) -> float:
    """The ⌈(1 − α)(m + 1)⌉-th smallest of m scores: a new one is at most this with probability ≥ 1 − α."""
    scores = scores[~np.isnan(scores)]
    rank = int(np.ceil((1.0 - alpha) * (len(scores) + 1) - 1e-9))
    return float(np.partition(scores, rank - 1)[rank - 1]) if rank <= len(scores) else np.inf


class ConformalRegressor(RegressorMixin, _Conformal):
    """Prediction intervals around any regressor, valid for any distribution of exchangeable rows.

    The interval at x is {y : s(x, y) ≤ q}, with q the ⌈(1 − α)(m + 1)⌉-th smallest of m scores of rows the model was not
    fitted to.

    Parameters
    ----------
    estimator : regressor, optional
        Any regressor; ``Ridge()`` by default, boosted trees for ``method="quantile"``.
    method : {"split", "cv+", "jackknife+", "normalized", "quantile"}
        "split": s = |y − f(x)|, one width everywhere. "cv+" and "jackknife+" use every row for both purposes (jackknife+
        from one fit where exact leave-one-out exists: least squares, ridge, kernel ridge). "normalized":
        s = |y − f(x)|/σ(x) with a second model for the size of errors. "quantile": two quantile models,
        s = max(lo(x) − y, y − hi(x)); widths follow the data.
    coverage : float
        1 − α, how often the truth is to be inside.
    calibration_size : float
        The share of rows set aside for calibration by "split", "normalized" and "quantile".
    cv : int or splitter
        Folds of "cv+", and of the errors "normalized" learns from.
    scale_estimator : regressor, optional
        Learns log |error| for "normalized"; small boosted trees by default.
    random_state : int
        Which rows are set aside.

    Attributes
    ----------
    estimator_ : fitted regressor
        Gives ``predict``.
    scores_ : array
        The scores of calibration rows.
    guaranteed_coverage_ : float
        What is proved: ``coverage``, or 1 − 2α for "cv+" and "jackknife+" (in practice they come close to ``coverage``).

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = X[:, 0] + rng.normal(size=400)
    >>> model = hg.ConformalRegressor(hg.Ridge(), coverage=0.9).fit(X[:200], y[:200])
    >>> low, high = model.predict_interval(X[200:]).T
    >>> bool(0.83 < np.mean((low <= y[200:]) & (y[200:] <= high)) < 0.97)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str = "split",
        coverage: float = 0.9,
        calibration_size: float = 0.25,
        cv: Any = 5,
        scale_estimator: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.coverage = coverage
        self.calibration_size = calibration_size
        self.cv = cv
        self.scale_estimator = scale_estimator
        self.random_state = random_state

    def _base(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        return GradientBoostingRegressor(loss="quantile", quantile=0.5) if self.method == "quantile" else Ridge()

    def fit(self, X: Any, y: Any) -> ConformalRegressor:
        """Fit the estimator and calibrate."""
        X = self._open(X, REGRESSION_METHODS)
        n = int(_num_samples(X))
        y = check_array(column_or_1d(y, warn=True), ensure_2d=False, dtype=np.float64, input_name="y")
        if len(y) != n:
            raise ValueError(f"X has {n} rows but y has {len(y)}.")
        self.estimators_: list[Any] = []
        self.left_out_: LeaveOneOut | None = None
        if self.method in ("cv+", "jackknife+"):
            self._fit_plus(X, y)
            return self
        learn, rest = self._set_aside(n)
        held, truth = take_rows(X, rest), y[rest]
        if self.method == "quantile":
            alpha = self._level(self.coverage)
            base = self._base()
            self.estimators_ = [
                self._fit(clone(base).set_params(quantile=level), X, y, learn) for level in (alpha / 2, 1 - alpha / 2)
            ]
            self.estimator_ = self._fit(clone(base).set_params(quantile=0.5), X, y, learn)
            low, high = (m.predict(held) for m in self.estimators_)
            self.scores_ = np.maximum(low - truth, truth - high).astype(np.float64)
            return self
        self.estimator_ = self._fit(self._base(), X, y, learn)
        self.scores_ = np.abs(truth - self.estimator_.predict(held)).astype(np.float64)
        if self.method == "normalized":
            self.estimators_ = [self._fit_scale(take_rows(X, learn), y[learn])]
            self.scores_ = self.scores_ / self._scale(held)
        return self

    def _fit_plus(self, X: Any, y: Array) -> None:
        self.estimator_ = self._fit(self._base(), X, y, np.arange(len(y)))
        self.fold_ = np.zeros(len(y), dtype=np.int64)
        if self.method == "jackknife+":
            self.left_out_ = leave_one_out(self.estimator_, X, y)
        if self.left_out_ is not None:
            self.scores_ = np.abs(self.left_out_.residuals)
            return
        folds = self._folds(X, y, False) if self.method == "cv+" else list(KFold(len(y)).split(y))
        self.scores_ = np.full(len(y), np.nan)
        for k, (learn, test) in enumerate(folds):
            self.estimators_.append(self._fit(self._base(), X, y, learn))
            self.scores_[test] = np.abs(y[test] - self.estimators_[-1].predict(take_rows(X, test)))
            self.fold_[test] = k

    def _fit_scale(self, X: Any, y: Array) -> Any:
        """A model of log |error|, learned from errors on folds."""
        errors = np.empty(len(y))
        for learn, test in self._folds(X, y, False):
            errors[test] = np.abs(y[test] - self._fit(self._base(), X, y, learn).predict(take_rows(X, test)))
        self.least_ = 1e-3 * max(float(np.median(errors)), float(np.finfo(np.float64).tiny))
        model = self.scale_estimator
        if model is None:
            model = GradientBoostingRegressor(max_iter=50, max_leaf_nodes=8, early_stopping=False, random_state=0)
        return clone(model).fit(X, np.log(errors + self.least_))

    def _scale(self, X: Any) -> Array:
        log_scale = np.asarray(self.estimators_[0].predict(X), dtype=np.float64)
        return np.exp(np.clip(log_scale, -700.0, 700.0)) + self.least_

    def predict_interval(self, X: Any, coverage: float | None = None) -> Array:
        """The interval at every input.

        Parameters
        ----------
        X : inputs
        coverage : float, optional
            Another level than the one of the constructor; no new fit is needed.

        Returns
        -------
        array of shape (n, 2)
            Low and high ends; infinite if there are too few calibration rows for the level.
        """
        X = self._table(X)
        alpha = self._level(self.coverage if coverage is None else coverage)
        if self.method in ("cv+", "jackknife+"):
            return self._plus_interval(X, alpha)
        q = upper_quantile(self.scores_, alpha)
        if self.method == "quantile":
            low, high = (np.asarray(m.predict(X), dtype=np.float64) for m in self.estimators_)
            low, high = low - q, high + q
            middle = 0.5 * (low + high)
            return np.column_stack([np.minimum(low, middle), np.maximum(high, middle)])
        centre = np.asarray(self.estimator_.predict(X), dtype=np.float64)
        half = q * (self._scale(X) if self.method == "normalized" else 1.0)
        return np.column_stack([centre - half, centre + half])

    def _plus_interval(self, X: Any, alpha: float) -> Array:
        """Low end: the ⌊α(n + 1)⌋-th smallest of f₋ᵢ(x) − Rᵢ; high end: the ⌈(1 − α)(n + 1)⌉-th of f₋ᵢ(x) + Rᵢ."""
        if self.left_out_ is not None:
            centres = self.left_out_.predictions(self.estimator_, X)
        else:
            each = np.column_stack([np.asarray(m.predict(X), dtype=np.float64) for m in self.estimators_])
            centres = each[:, self.fold_]
        known = ~np.isnan(self.scores_)
        centres, radius = centres[:, known], self.scores_[known]
        m = len(radius)
        rank = int(np.ceil((1.0 - alpha) * (m + 1) - 1e-9))
        if rank > m:
            return np.column_stack([np.full(len(centres), -np.inf), np.full(len(centres), np.inf)])
        low = -np.partition(radius - centres, rank - 1, axis=1)[:, rank - 1]
        high = np.partition(centres + radius, rank - 1, axis=1)[:, rank - 1]
        return np.column_stack([low, high])


def _fraction(p: Array) -> Array:
    """A number in [0, 1) for every row, evenly spread and fixed by the row: digits of p far behind the point."""
    digits = (p @ np.sqrt(np.arange(2.0, 2.0 + p.shape[1]))) * 1e7
    return (digits - np.floor(digits))[:, None]


class ConformalClassifier(ClassifierMixin, _Conformal):
    """Prediction sets around any classifier with probabilities, valid for any distribution of exchangeable rows.

    The set at x is {y : s(x, y) ≤ q}. "aps": s = the probability of y and of all classes more likely than y, so that sets
    are small where the classifier is sure and large where it is not. "lac": s = 1 − p(y | x), the smallest sets on
    average.

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
        An empty set is how the method says that no class suits. False puts the most likely class in instead: never
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
        if self.conformity not in SCORES:
            raise ValueError(f"conformity must be one of {', '.join(map(repr, SCORES))}, got {self.conformity!r}.")
        X = self._open(X, CLASSIFICATION_METHODS)
        n = int(_num_samples(X))
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        if len(y) != n:
            raise ValueError(f"X has {n} rows but y has {len(y)}.")
        codes = code_labels(self, y)
        self.estimators_: list[Any] = []
        self.fold_ = np.zeros(n, dtype=np.int64)
        if self.method == "split":
            learn, rest = self._set_aside(n, codes)
            self.estimator_ = self._fit(self._base(), X, y, learn)
            self.scores_ = self._own(self.estimator_, take_rows(X, rest), codes[rest])
            return self
        self.estimator_ = self._fit(self._base(), X, y, np.arange(n))
        self.scores_ = np.empty(n)
        for k, (learn, test) in enumerate(self._folds(X, codes, True)):
            self.estimators_.append(self._fit(self._base(), X, y, learn))
            self.scores_[test] = self._own(self.estimators_[-1], take_rows(X, test), codes[test])
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
        # u is that of the one model fitted first, or the chances of several folds would average out.
        u = _fraction(p if model is self.estimator_ else self.estimator_.predict_proba(X))
        np.put_along_axis(scores, order, np.cumsum(sorted_p, axis=1) - (1.0 - u) * sorted_p, axis=1)
        return scores

    def _own(self, model: Any, X: Any, codes: Array) -> Array:
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
                mine = np.sort(self.scores_[self.fold_ == k])
                larger += len(mine) - np.searchsorted(mine, self._all(model, X), side="left")
            inside = larger > alpha * (len(self.scores_) + 1) - 1e-9
        if not self.allow_empty:
            best = self.estimator_.predict_proba(X).argmax(axis=1)
            empty = ~inside.any(axis=1)
            inside[empty, best[empty]] = True
        return inside
