"""Standardisation."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from hinge._native import check_indices
from hinge._parameters import Constraints, Estimator
from hinge._validation import check_sample_weight, validate_data
from hinge.features.precision import KeepsPrecision

Moments = tuple[np.ndarray, np.ndarray, np.ndarray]


class StandardScaler(OneToOneFeatureMixin, KeepsPrecision, Estimator):
    """z = (x − mean) / deviation, feature by feature; mean and deviation are those of the training rows.

    Missing values (NaN) are left out of both and stay missing. Sparse matrices stay sparse: they need
    ``with_mean=False``. Variances come from a second pass around the mean, so that large means cost no digits.

    Parameters
    ----------
    copy : bool
        Accepted for compatibility; inputs are never changed.
    with_mean : bool
        Subtract the mean.
    with_std : bool
        Divide by the standard deviation.

    Attributes
    ----------
    mean_, var_, scale_, n_samples_seen_ : as in scikit-learn

    Examples
    --------
    >>> import hinge as hg
    >>> hg.StandardScaler().fit_transform([[1.0], [3.0]]).tolist()
    [[-1.0], [1.0]]
    """

    n_samples_seen_: Any
    mean_: Any
    var_: Any
    scale_: Any

    _parameter_constraints: ClassVar[Constraints] = {
        "copy": ["boolean"],
        "with_mean": ["boolean"],
        "with_std": ["boolean"],
    }

    def __init__(self, *, copy: bool = True, with_mean: bool = True, with_std: bool = True) -> None:
        self.copy = copy
        self.with_mean = with_mean
        self.with_std = with_std

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = not self.with_mean
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> StandardScaler:
        """Means and deviations; a weight of 2 means the same as having the row twice."""
        if hasattr(self, "n_samples_seen_"):
            del self.n_samples_seen_
        return self.partial_fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> StandardScaler:
        """Update means and deviations with further rows."""
        first = not hasattr(self, "n_samples_seen_")
        X = self._check(X, reset=first)
        weights = np.ones(X.shape[0])
        if sample_weight is not None:
            weights = check_sample_weight(sample_weight, X)
            if not np.any(weights > 0):
                raise ValueError("sample_weight is zero for every example: there is nothing to learn from.")
        found = moments(X, weights)
        complete = (
            sample_weight is None and np.all(found[2] == X.shape[0]) and (first or np.ndim(self.n_samples_seen_) == 0)
        )
        if not first:
            found = merge_moments(self._so_far(*found[:2]), found)
        self._adopt(found, bool(complete))
        return self

    def _adopt(self, found: Moments, complete: bool) -> None:
        """Means and deviations from moments; ``complete``: no weights and no missing values."""
        mean, variance, total = found
        self.n_samples_seen_ = int(total[0]) if complete else total
        self.mean_ = mean if self.with_mean or self.with_std else None
        self.var_, self.scale_ = None, None
        if self.with_std:
            self.var_ = variance
            deviation = np.sqrt(variance)
            # The variance of a constant feature is rounding error, which must not be amplified. The bound is the error of
            # the two-pass variance in double precision (Chan, Golub & LeVeque 1983), as in scikit-learn.
            error = total * np.finfo(np.float64).eps
            constant = ~(variance > error * variance + (error * mean) ** 2)
            self.scale_ = np.where(constant, 1.0, deviation)

    def _so_far(self, mean: np.ndarray, variance: np.ndarray) -> Moments:
        """The moments of the rows so far; the arguments replace those that are not stored."""
        rows = np.broadcast_to(np.asarray(self.n_samples_seen_, dtype=np.float64), mean.shape)
        return mean if self.mean_ is None else self.mean_, variance if self.var_ is None else self.var_, rows

    def transform(self, X: Any, copy: bool | None = None) -> Any:
        """Scaled rows."""
        check_is_fitted(self)
        X = self._check(X, reset=False)
        if scipy.sparse.issparse(X):
            return self._scaled_columns(X, 1.0 / self.scale_ if self.with_std else None)
        wide = _wide(X.dtype)
        Z = X - self.mean_.astype(wide) if self.with_mean else X.copy()
        return (Z / self.scale_.astype(wide) if self.with_std else Z).astype(X.dtype, copy=False)

    def inverse_transform(self, X: Any, copy: bool | None = None) -> Any:
        """Rows in their original units."""
        check_is_fitted(self)
        X = self._check(X, reset=False)
        if scipy.sparse.issparse(X):
            return self._scaled_columns(X, self.scale_)
        wide = _wide(X.dtype)
        Z = X * self.scale_.astype(wide) if self.with_std else X.copy()
        return (Z + self.mean_.astype(wide) if self.with_mean else Z).astype(X.dtype, copy=False)

    def _scaled_columns(self, X: Any, factors: np.ndarray | None) -> Any:
        Z = X.copy()
        if factors is not None:
            at = Z.indices if Z.format == "csr" else np.repeat(np.arange(Z.shape[1]), np.diff(Z.indptr))
            Z.data *= factors.astype(Z.dtype)[at]
        return Z

    def _check(self, X: Any, reset: bool) -> Any:
        if scipy.sparse.issparse(X) and self.with_mean:
            raise ValueError("A sparse matrix cannot be centred and stay sparse: use StandardScaler(with_mean=False).")
        check_indices(X)
        floats = [np.float64, np.float32, np.float16]
        return validate_data(
            self, X, accept_sparse=("csr", "csc"), dtype=floats, ensure_all_finite="allow-nan", reset=reset
        )


def _wide(dtype: Any) -> Any:
    """The type to compute in: half precision has too few digits for means of large numbers."""
    return np.float32 if dtype == np.float16 else dtype


def merge_moments(one: Moments, two: Moments) -> Moments:
    """Means, variances and weights of columns of two sets of rows together (Chan, Golub & LeVeque 1983)."""
    (old_mean, old_variance, before), (mean, variance, total) = one, two
    both = before + total
    share = np.divide(total, both, out=np.zeros_like(both), where=both > 0)
    with np.errstate(invalid="ignore"):
        step = mean - old_mean
        new_mean, new_variance = old_mean + share * step, old_variance + share * (variance - old_variance)
        new_variance = new_variance + share * (1.0 - share) * step**2
    # Where one side has no value yet, take the moments of the other.
    new_mean = np.where(before == 0, mean, np.where(total == 0, old_mean, new_mean))
    new_variance = np.where(before == 0, variance, np.where(total == 0, old_variance, new_variance))
    return new_mean, new_variance, both


def moments(X: Any, weights: np.ndarray) -> Moments:
    """Weighted means and variances of the non-missing values of columns, and the total weight of each."""
    if scipy.sparse.issparse(X):
        return _sparse_moments(X.tocsc(), weights)
    mean, variance, total = np.empty(X.shape[1]), np.empty(X.shape[1]), np.empty(X.shape[1])
    for j in range(X.shape[1]):
        x = X[:, j].astype(np.float64)
        known = ~np.isnan(x)
        x, w = (x, weights) if known.all() else (x[known], weights[known])
        mean[j], variance[j], total[j] = _moments(x, w)
    return mean, variance, total


def _moments(x: np.ndarray, w: np.ndarray, zeros: float = 0.0) -> tuple[float, float, float]:
    """The moments of values x with weights w plus zeros of a total weight; centred, to avoid cancellation."""
    total = float(w.sum()) + zeros
    if total <= 0:
        return np.nan, np.nan, 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        mean = w @ x / total
        left = x - mean
        shift = (w @ left - zeros * mean) / total
        variance = (w @ left**2 + zeros * mean**2) / total - shift**2
    if not (np.isfinite(mean) and np.isfinite(variance)):
        raise ValueError("X has values so large that their squares overflow; divide its columns first.")
    return float(mean + shift), max(float(variance), 0.0), total


def _sparse_moments(X: Any, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    total_weight = float(weights.sum())
    found = []
    for j in range(X.shape[1]):
        part = slice(X.indptr[j], X.indptr[j + 1])
        x, w, rows = X.data[part].astype(np.float64), weights[X.indices[part]], X.indices[part]
        if len(rows) > 1 and not X.has_canonical_format:
            unique, inverse = np.unique(rows, return_inverse=True)
            x, w = np.bincount(inverse, x), weights[unique]
        known = ~np.isnan(x)
        zeros = max(total_weight - float(w.sum()), 0.0)
        found.append(_moments(x[known], w[known], zeros))
    mean, variance, total = (np.array(part) for part in zip(*found, strict=True))
    return mean, variance, total
