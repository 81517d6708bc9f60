"""Helpers of Bayesian regressors: the output of predict, the bias of prior predictions, inverses of precisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from hinge.problem.decisions import in_units_of_target

Array = NDArray[np.float64]


def predicted(law: Any, return_std: bool, interval: float | None, action: Any, dtype: Any) -> Any:
    """The output of ``predict`` for a predictive distribution: a point, and the requested deviation or interval."""
    point = law.mode if action is None else law.bayes_action(action)  # equals the mean, if that exists
    if action is not None:
        point = in_units_of_target(action, point)
    parts: list[Any] = [np.asarray(point).astype(dtype, copy=False)]
    if return_std:
        parts.append(law.std.astype(dtype, copy=False))
    if interval is not None:
        parts.append(tuple(end.astype(dtype, copy=False) for end in law.interval(interval)))
    return parts[0] if len(parts) == 1 else tuple(parts)


def held_bias(model: Any, intercept: float | None) -> float:
    """The fixed bias of prior predictions: under its flat prior there would be no predictive distribution."""
    if not model.fit_intercept:
        return 0.0
    if intercept is None:
        raise ValueError(
            "The prior of the bias is flat, so there is no prior predictive distribution: give intercept, at which it is "
            "held, or set fit_intercept=False."
        )
    return float(intercept)


def precision_of(root: Array) -> Array:
    """Σ₀⁻¹ from its root."""
    inverse = scipy.linalg.solve_triangular(root, np.eye(len(root)), lower=True)
    return inverse.T @ inverse


def log_determinant(root: Array) -> float:
    """log |Σ₀| from its root."""
    return 2.0 * float(np.log(np.abs(np.diag(root))).sum())


def inverse_precision(A: Array) -> Array:
    """The inverse of a symmetric positive definite matrix, which is scaled to a unit diagonal first."""
    scale = 1.0 / np.sqrt(np.diag(A))
    factor, info = scipy.linalg.lapack.dpotrf(A * scale[:, None] * scale[None, :], lower=1, clean=1)
    if info or not np.all(np.isfinite(scale)):
        raise ValueError(
            "The posterior precision is singular to working precision: features are huge, or the prior is nearly flat "
            "on features that are combinations of others. Scale the features, or make prior_covariance smaller."
        )
    lower = scipy.linalg.lapack.dpotri(factor, lower=1)[0]
    inverse = lower + np.tril(lower, -1).T
    return inverse * scale[:, None] * scale[None, :]
