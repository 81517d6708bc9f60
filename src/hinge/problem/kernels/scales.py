"""Parameters of kernels: checks, and widths estimated from the inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.special

from hinge.problem.kernels import evaluate
from hinge.problem.kernels.base import Array, Kernel
from hinge.problem.losses.base import normalise_weights, weighted_quantile

# The maximum number of rows whose distances are computed for the median.
MEDIAN_ROWS = 1000


def resolve_gamma(gamma: Any, X: Any, weight: Array | None = None) -> float:
    """γ as a number: "scale" is 1/(d·var X), "auto" is 1/d (as in scikit-learn)."""
    if not isinstance(gamma, str):
        return float(gamma)
    X = evaluate.matrix(X)
    d = X.shape[1]
    if gamma == "auto":
        return 1.0 / d
    c = normalise_weights(weight, X.shape[0])
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.sum(c @ X, dtype=np.float64) / d
        variance = float(c @ row_squares(X) / d - mean**2)
    if not np.isfinite(variance):
        raise ValueError("X has values so large that their squares overflow; rescale its columns.")
    return 1.0 / (d * variance) if variance > 0 else 1.0


def resolve_length(length: Any, X: Any, weight: Array | None = None) -> Any:
    """σ as a number: "median" is the median distance between at most a thousand examples, evenly spaced in the data."""
    if isinstance(length, tuple):
        if len(length) != X.shape[1]:
            raise ValueError(f"length_scale has {len(length)} entries; X has {X.shape[1]} features.")
        return length
    if not isinstance(length, str):
        return float(length)
    X = evaluate.matrix(X)
    used = np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight)
    used = used[:: max(1, len(used) // MEDIAN_ROWS)]
    c = np.ones(len(used)) if weight is None else weight[used]
    X = evaluate.spread(X[used]).astype(np.float64)
    square = row_squares(X)[:, None] + row_squares(X)[None, :] - 2.0 * X @ X.T
    pairs = np.triu_indices(len(X), 1)
    distances = np.sqrt(np.maximum(square[pairs], 0.0))
    distinct = distances > 0
    if not np.any(distinct):
        return 1.0
    return weighted_quantile(distances[distinct], np.outer(c, c)[pairs][distinct], 0.5)


def row_squares(X: Any) -> Array:
    if scipy.sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def check_positive(value: Any, name: str, zero: bool = False) -> None:
    if not (np.isreal(value) and np.isfinite(value) and (value >= 0 if zero else value > 0)):
        raise ValueError(f"{name} must be a number {'≥' if zero else '>'} 0, got {value!r}.")


def check_scale(value: Any, name: str, words: tuple[str, ...]) -> None:
    if isinstance(value, str):
        if value not in words:
            raise ValueError(f"{name} must be a number > 0 or one of {words}, got {value!r}.")
    else:
        check_positive(value, name)


def check_lengths(kernel: Any) -> None:
    """Checks that ``length_scale`` is a number, a name, or one number per feature, which is stored as a tuple."""
    value = kernel.length_scale
    if np.ndim(value) == 1:
        lengths = tuple(float(length) for length in value)
        for length in lengths:
            check_positive(length, "length_scale")
        object.__setattr__(kernel, "length_scale", lengths)
    else:
        check_scale(value, "length_scale", ("median",))


def number(value: Any, kernel: Kernel) -> float:
    if isinstance(value, str):
        raise ValueError(f"{value!r} in {kernel!r} depends on the data; call kernel.resolve(X) first.")
    return float(value)
