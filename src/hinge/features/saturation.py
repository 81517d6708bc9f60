"""Saturating transforms, under which the hundredth unit adds less than the first."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from hinge._native import check_indices
from hinge._parameters import Constraints, Estimator, at_least, one_of
from hinge._validation import validate_data
from hinge.features.precision import KeepsPrecision

SHAPES: dict[str, tuple[Any, Any]] = {
    "log1p": (np.log1p, np.expm1),
    "sqrt": (np.sqrt, np.square),
    "ratio": (lambda u: u / (1.0 + u), lambda v: v / (1.0 - v)),
    "tanh": (np.tanh, np.arctanh),
}


class Saturate(OneToOneFeatureMixin, KeepsPrecision, Estimator):
    """z = sign(x) · g(|x| / s), feature by feature, with a concave g, g(0) = 0.

    log1p: log(1 + u);  sqrt: √u;  ratio: u/(1 + u), half way at u = 1;  tanh: tanh u. Zeros stay zeros, so sparse
    matrices stay sparse.

    Parameters
    ----------
    shape : {"log1p", "sqrt", "ratio", "tanh"}
        The function g.
    scale : float or "median"
        s > 0: where saturation sets in; "median" is the median of the absolute values that are not zero, learned
        feature by feature.

    Attributes
    ----------
    scale_ : array
        s, per feature.

    Examples
    --------
    >>> import hinge as hg
    >>> hg.Saturate("ratio", scale=10.0).fit_transform([[0.0], [10.0], [-30.0]]).ravel().tolist()
    [0.0, 0.5, -0.75]
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "shape": [one_of(*SHAPES)],
        "scale": [one_of("median"), at_least(1e-290)],  # dividing by less overflows
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.sparse": True}

    def __init__(self, shape: str = "log1p", *, scale: Any = 1.0) -> None:
        self.shape = shape
        self.scale = scale

    def fit(self, X: Any, y: Any = None) -> Saturate:
        """Learn the scales that are not given."""
        X = self._check(X, reset=True)
        if isinstance(self.scale, str):
            self.scale_ = np.array([_median_size(X, j) for j in range(X.shape[1])])
        else:
            self.scale_ = np.full(X.shape[1], float(self.scale))
        return self

    def _check_loaded(self) -> None:
        """Check a loaded model: there is one scale per feature."""
        if hasattr(self, "scale_") and np.shape(self.scale_) != (getattr(self, "n_features_in_", None),):
            raise ValueError("it holds scales whose number differs from that of the features.")

    def transform(self, X: Any) -> Any:
        """The saturated values."""
        return self._apply(X, lambda x, s: np.sign(x) * SHAPES[self._shape()][0](np.abs(x) / s))

    def inverse_transform(self, X: Any) -> Any:
        """The inverse transform."""
        return self._apply(X, lambda z, s: np.sign(z) * s * SHAPES[self._shape()][1](np.abs(z)))

    def _shape(self) -> str:
        return self.shape

    def _apply(self, X: Any, function: Any) -> Any:
        check_is_fitted(self)
        X = self._check(X, reset=False)
        scale = self.scale_.astype(X.dtype)
        if not scipy.sparse.issparse(X):
            return function(X, scale)
        Z = X.copy()
        Z.sum_duplicates()
        at = Z.indices if Z.format == "csr" else np.repeat(np.arange(Z.shape[1]), np.diff(Z.indptr))
        Z.data = function(Z.data, scale[at])
        return Z

    def _check(self, X: Any, reset: bool) -> Any:
        check_indices(X)
        return validate_data(self, X, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32], reset=reset)


class Log1p(Saturate):
    """z = sign(x) · log(1 + |x| / s), feature by feature; see :class:`Saturate`.

    Parameters
    ----------
    scale : float or "median"
        s > 0; "median" is the median of the absolute values that are not zero.

    Examples
    --------
    >>> import hinge as hg
    >>> hg.Log1p().fit_transform([[0.0], [1.0]]).ravel().round(3).tolist()
    [0.0, 0.693]
    """

    def __init__(self, *, scale: Any = 1.0) -> None:
        self.scale = scale

    def _shape(self) -> str:
        return "log1p"


def _median_size(X: Any, j: int) -> float:
    column = np.asarray(X[:, [j]].toarray() if scipy.sparse.issparse(X) else X[:, j]).ravel()
    sizes = np.abs(column[column != 0])
    return float(np.median(sizes)) if len(sizes) else 1.0
