"""Conformal prediction: intervals and sets that contain the target with a given probability.

A score s(x, y) measures how poorly y fits x; calibration rows give its distribution, and a prediction is every y whose
score is not among the largest α of them. If rows are exchangeable (no drift), the prediction contains the target with
probability ≥ 1 − α, for any model and any number of rows:

    split           P ≥ 1 − α       one fit on some rows, scores on the others
    CV+, jackknife+ P ≥ 1 − 2α      no rows are set aside; in practice close to 1 − α

References: Vovk et al. (2005); Lei et al. (2018); Romano, Patterson & Candès (2019), CQR; Romano, Sesia & Candès (2020),
APS; Barber et al. (2021), jackknife+ and CV+.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from hinge._native import check_indices
from hinge._parameters import Constraints, Estimator, between, has, shared
from hinge._validation import validate_data
from hinge.models.base import take_input_tags
from hinge.models.meta import take_rows

Array = np.ndarray


class Conformal(MetaEstimatorMixin, Estimator):
    """Base of the intervals and sets: calibration rows, folds, levels."""

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("cv", "random_state"),
        "estimator": [has("fit", "predict"), None],
        "coverage": [between(0, 1, "neither")],
        "calibration_size": [between(0, 1, "neither")],
    }

    estimator: Any
    method: str
    coverage: float
    calibration_size: float
    cv: Any
    random_state: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        take_input_tags(tags, self._base())
        tags.target_tags.required = True
        return tags

    def _base(self) -> Any:
        raise NotImplementedError

    def _open(self, X: Any) -> Any:
        """Record the columns; X as a table."""
        X = as_table(X)
        check_indices(X)
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
        """Training rows and calibration rows; with labels, every class is among the training rows."""
        order = check_random_state(self.random_state).permutation(n)
        held = min(max(1, round(self.calibration_size * n)), n - 2)
        learn, calibration = order[held:], order[:held]
        if codes is not None:
            lacking = np.setdiff1d(codes[calibration], codes[learn])
            move = np.isin(codes[calibration], lacking)
            learn, calibration = np.concatenate([learn, calibration[move]]), calibration[~move]
        if not len(calibration):
            raise ValueError("too few examples of each class are left to calibrate with; use method='cv+'.")
        return np.sort(learn), np.sort(calibration)

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
        """The estimator's predictions, without an interval or a set."""
        X = self._table(X)
        return self.estimator_.predict(X)

    @property
    def guaranteed_coverage_(self) -> float:
        """The coverage proved for exchangeable rows: ``coverage``, or 1 − 2α for CV+ and jackknife+."""
        check_is_fitted(self)
        alpha = self._level(self.coverage)
        return 1.0 - (2.0 * alpha if self.method in ("cv+", "jackknife+") else alpha)


def as_table(X: Any) -> Any:
    """Data frames and sparse matrices unchanged, anything else as an array; a single row is not a table."""
    if hasattr(X, "columns") or hasattr(X, "tocsr"):
        return X
    X = np.asarray(X)
    if X.ndim == 1 and X.dtype.kind not in "OUS":  # text may be one-dimensional
        raise ValueError(
            "Expected 2D array, got 1D array instead. Reshape your data with X.reshape(1, -1) for one row."
        )
    return X


def upper_quantile(scores: Array, alpha: float) -> float:
    """The ⌈(1 − α)(m + 1)⌉-th smallest of m scores: a new one is at most this with probability ≥ 1 − α."""
    scores = scores[~np.isnan(scores)]
    rank = int(np.ceil((1.0 - alpha) * (len(scores) + 1) - 1e-9))
    return float(np.partition(scores, rank - 1)[rank - 1]) if rank <= len(scores) else np.inf
