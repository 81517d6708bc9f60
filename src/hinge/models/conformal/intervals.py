"""Conformal prediction intervals; see base.py for the theory."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.model_selection import KFold
from sklearn.utils.validation import _num_samples, column_or_1d

from hinge._parameters import Constraints, has, one_of
from hinge._validation import numeric_targets
from hinge.models.conformal.base import Conformal, upper_quantile
from hinge.models.leave_one_out import LeaveOneOut, leave_one_out
from hinge.models.linear.least_squares import Ridge
from hinge.models.meta import take_rows
from hinge.models.trees.boosting import HistGradientBoostingRegressor

Array = np.ndarray
METHODS = ("split", "cv+", "jackknife+", "normalized", "quantile")


class ConformalRegressor(RegressorMixin, Conformal):
    """Prediction intervals around any regressor, valid for any distribution of exchangeable rows.

    The interval at x is {y : s(x, y) ≤ q}, where q is the ⌈(1 − α)(m + 1)⌉-th smallest score of m rows that the model was
    not fitted to.

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

    _parameter_constraints: ClassVar[Constraints] = {
        "method": [one_of(*METHODS)],
        "scale_estimator": [has("fit", "predict"), None],
    }

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
        return HistGradientBoostingRegressor(loss="quantile", quantile=0.5) if self.method == "quantile" else Ridge()

    def fit(self, X: Any, y: Any) -> ConformalRegressor:
        """Fit the estimator and calibrate."""
        X = self._open(X)
        n = int(_num_samples(X))
        y = numeric_targets(column_or_1d(y, warn=True))
        if len(y) != n:
            raise ValueError(f"X has {n} rows but y has {len(y)}.")
        self.estimators_: list[Any] = []
        self.left_out_: LeaveOneOut | None = None
        if self.method in ("cv+", "jackknife+"):
            self._fit_plus(X, y)
            return self
        learn, calibration = self._set_aside(n)
        held, y_held = take_rows(X, calibration), y[calibration]
        if self.method == "quantile":
            alpha = self._level(self.coverage)
            base = self._base()
            self.estimators_ = [
                self._fit(clone(base).set_params(quantile=level), X, y, learn) for level in (alpha / 2, 1 - alpha / 2)
            ]
            self.estimator_ = self._fit(clone(base).set_params(quantile=0.5), X, y, learn)
            low, high = (m.predict(held) for m in self.estimators_)
            self.scores_ = np.maximum(low - y_held, y_held - high).astype(np.float64)
            return self
        self.estimator_ = self._fit(self._base(), X, y, learn)
        self.scores_ = np.abs(y_held - self.estimator_.predict(held)).astype(np.float64)
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
        """A model of log |error|, fitted to out-of-fold errors."""
        errors = np.empty(len(y))
        for learn, test in self._folds(X, y, False):
            errors[test] = np.abs(y[test] - self._fit(self._base(), X, y, learn).predict(take_rows(X, test)))
        self.least_ = 1e-3 * max(float(np.median(errors)), float(np.finfo(np.float64).tiny))
        model = self.scale_estimator
        if model is None:
            model = HistGradientBoostingRegressor(max_iter=50, max_leaf_nodes=8, early_stopping=False, random_state=0)
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
        finite = ~np.isnan(self.scores_)
        centres, radius = centres[:, finite], self.scores_[finite]
        m = len(radius)
        rank = int(np.ceil((1.0 - alpha) * (m + 1) - 1e-9))
        if rank > m:
            return np.column_stack([np.full(len(centres), -np.inf), np.full(len(centres), np.inf)])
        low = -np.partition(radius - centres, rank - 1, axis=1)[:, rank - 1]
        high = np.partition(centres + radius, rank - 1, axis=1)[:, rank - 1]
        return np.column_stack([low, high])
