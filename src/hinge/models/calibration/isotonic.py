"""Isotonic regression: the best monotone function, by pooling adjacent violators."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from hinge._native import core
from hinge._parameters import Constraints, Estimator, between, one_of
from hinge.models.base import check_weights
from hinge.problem.numerics import Z95

Array = NDArray[np.float64]


def isotonic_regression(
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    y_min: float | None = None,
    y_max: float | None = None,
    increasing: bool = True,
) -> Array:
    """The monotone sequence f nearest to y: minimises Σ wᵢ (yᵢ − fᵢ)².

    Parameters
    ----------
    y : array of n numbers
        The values in the order in which f is to rise or fall.
    sample_weight : array of n weights > 0, optional
        How much each example counts; all the same by default.
    y_min, y_max : float, optional
        Bounds on f.
    increasing : bool
        Whether f rises or falls.

    Examples
    --------
    >>> import hinge as hg
    >>> hg.isotonic_regression([1.0, 3.0, 2.0, 4.0])
    array([1. , 2.5, 2.5, 4. ])
    """
    values = check_array(y, ensure_2d=False, input_name="y", dtype=[np.float64, np.float32])
    w = check_weights(np.ones(len(values)) if sample_weight is None else sample_weight, values[:, None])
    if w is None or np.any(w <= 0):
        raise ValueError("sample_weight must be greater than 0 here; leave out examples of weight zero.")
    sign = 1.0 if increasing else -1.0
    f = sign * core.isotonic(np.ascontiguousarray(sign * values, dtype=np.float64), np.ascontiguousarray(w))
    f = np.clip(f, y_min, y_max) if y_min is not None or y_max is not None else f
    return f.astype(values.dtype, copy=False)


class IsotonicRegression(RegressorMixin, TransformerMixin, Estimator):
    """The monotone function of one feature that minimises Σ sᵢ (yᵢ − f(xᵢ))²; between examples it is linear.

    Parameters
    ----------
    y_min, y_max : float, optional
        Bounds on the function.
    increasing : bool or "auto"
        Whether f rises; "auto" takes the sign of Spearman's correlation.
    out_of_bounds : {"nan", "clip", "raise"}
        What to say of inputs outside the training inputs.

    Attributes
    ----------
    X_min_, X_max_, X_thresholds_, y_thresholds_, increasing_ : as in scikit-learn

    Examples
    --------
    >>> import hinge as hg
    >>> hg.IsotonicRegression().fit([1, 2, 3, 4], [1.0, 3.0, 2.0, 4.0]).predict([2.5, 3.5])
    array([2.5 , 3.25])
    """

    # Metadata routing inspects signatures; transform takes no metadata.
    __metadata_request__predict = {"T": "__unused__"}  # noqa: RUF012
    __metadata_request__transform = {"T": "__unused__"}  # noqa: RUF012

    _parameter_constraints: ClassVar[Constraints] = {
        "y_min": [between(None, None), None],
        "y_max": [between(None, None), None],
        "increasing": ["boolean", one_of("auto")],
        "out_of_bounds": [one_of("nan", "clip", "raise")],
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.one_d_array": True, "input_tags.two_d_array": False}

    def __init__(
        self,
        *,
        y_min: float | None = None,
        y_max: float | None = None,
        increasing: Any = True,
        out_of_bounds: str = "nan",
    ) -> None:
        self.y_min = y_min
        self.y_max = y_max
        self.increasing = increasing
        self.out_of_bounds = out_of_bounds

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> IsotonicRegression:
        """Fit; X is one feature, of shape (n,) or (n, 1). A weight of 2 means the same as having the example twice."""
        x = _one_feature(X)
        y = check_array(y, ensure_2d=False, input_name="y", dtype=[np.float64, np.float32])
        check_consistent_length(x, y)
        weights = check_weights(sample_weight, x[:, None])
        dtype = x.dtype
        used = np.arange(len(x)) if weights is None else np.flatnonzero(weights)
        w = np.ones(len(used)) if weights is None else weights[used]
        x, y = x[used].astype(np.float64), y[used].astype(np.float64)
        self.increasing_ = _rises(x, y) if self.increasing == "auto" else bool(self.increasing)
        # Equal inputs are merged into their weighted mean.
        values, place = np.unique(x, return_inverse=True)
        total = np.bincount(place, w)
        mean = np.bincount(place, w * y) / total
        f = isotonic_regression(
            mean, sample_weight=total, y_min=self.y_min, y_max=self.y_max, increasing=self.increasing_
        )
        # Of a constant piece only the ends are kept.
        kept = np.ones(len(f), dtype=bool)
        kept[1:-1] = (f[1:-1] != f[:-2]) | (f[1:-1] != f[2:])
        self.X_min_, self.X_max_ = float(values[0]), float(values[-1])
        self.X_thresholds_, self.y_thresholds_ = values[kept].astype(dtype), f[kept].astype(dtype)
        return self

    def predict(self, T: Any) -> Array:
        """f at new inputs."""
        check_is_fitted(self, "X_thresholds_")
        x = _one_feature(T, reset=self)
        if self.out_of_bounds == "raise" and (np.any(x < self.X_min_) or np.any(x > self.X_max_)):
            raise ValueError("A value in x_new is outside the training inputs; see out_of_bounds.")
        f = _interpolate(x, self.X_thresholds_, self.y_thresholds_)
        if self.out_of_bounds == "nan":
            f = np.where((x < self.X_min_) | (x > self.X_max_), np.nan, f)
        return f.astype(self.X_thresholds_.dtype, copy=False)

    def transform(self, T: Any) -> Array:
        """The same as ``predict``."""
        return self.predict(T)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The name of the one output."""
        return np.asarray(["isotonicregression0"], dtype=object)


def _interpolate(x: Array, at: Array, values: Array) -> Array:
    """Linear interpolation, also between points so close that the slope overflows."""
    f = np.interp(x, at, values)
    steep = np.flatnonzero(~np.isfinite(f))
    if steep.size and np.all(np.isfinite(values)):
        right = np.clip(np.searchsorted(at, x[steep]), 1, len(at) - 1)
        share = np.clip((x[steep] - at[right - 1]) / (at[right] - at[right - 1]), 0.0, 1.0)
        f[steep] = (1.0 - share) * values[right - 1] + share * values[right]
    return f


def _one_feature(X: Any, reset: Any = None) -> Array:
    x = check_array(X, ensure_2d=False, input_name="X", dtype=[np.float64, np.float32])
    if x.ndim == 2 and x.shape[1] == 1:
        x = x[:, 0]
    if x.ndim != 1:
        raise ValueError(f"Isotonic regression input X should be a 1d array or 2d array with 1 feature, got {x.shape}.")
    return x


def _rises(x: Array, y: Array) -> bool:
    """The sign of Spearman's correlation; warns if the sign is uncertain."""
    if len(np.unique(x)) < 2 or len(np.unique(y)) < 2:
        return True
    rho = float(scipy.stats.spearmanr(x, y).statistic)
    if abs(rho) < 1.0 and len(x) > 3:
        half = Z95 / np.sqrt(len(x) - 3)
        if np.sign(np.arctanh(rho) - half) != np.sign(np.arctanh(rho) + half):
            warnings.warn("Whether y rises or falls with X is not certain: zero is in the interval.", stacklevel=3)
    return rho >= 0
