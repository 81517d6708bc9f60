"""Checks whether a matrix is a Gram matrix: symmetric and positive semidefinite.

A kernel with a negative eigenvalue is no inner product: ½‖f‖² = ½β'Kβ has no lower bound, so no fit with it has a
duality gap. ``definiteness`` decides which kernels have one:

    declared     ``kernel.psd``: kernels of the library, and what the algebra makes of them
    checked      a Cholesky factorisation of K + δI, on all points if there are at most CHECK_ROWS, else on as many of
                 them, evenly spread: failure proves a negative eigenvalue, success on all points proves that there is
                 none below −δ, success on some of them proves nothing
"""

from __future__ import annotations

import warnings
from enum import Enum
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from hinge.errors import callers_level
from hinge.problem.kernels import evaluate
from hinge.problem.kernels.base import Kernel
from hinge.problem.kernels.custom import Precomputed, as_kernel

Array = NDArray[np.float64]

# Number of points in a check: their factorisation takes about ten milliseconds.
CHECK_ROWS = 600
# Eigenvalues above −this times the trace may be rounding errors of the kernel values.
ROUNDING = 1e-9
SINGLE_ROUNDING = 1e-6
# Entries on both sides of the diagonal may differ by this fraction of the largest.
ASYMMETRY = 1e-5


class Definiteness(Enum):
    """What is known about the eigenvalues of a Gram matrix."""

    PROVEN = "none is negative"
    UNKNOWN = "not known"
    INDEFINITE = "some are negative"


def definiteness(kernel: Kernel, X: Any, gram: Array | None = None) -> Definiteness:
    """Whether the Gram matrix of the points is positive semidefinite, at a small part of the cost of a fit.

    ``gram`` is the matrix, if it has been computed; X is not used then. An asymmetric matrix raises an error.
    """
    if kernel.psd:
        return Definiteness.PROVEN
    if gram is None and isinstance(kernel, Precomputed):
        gram = X
    n = evaluate.length(X) if gram is None else len(gram)
    some = np.arange(n) if n <= CHECK_ROWS else np.linspace(0, n - 1, CHECK_ROWS).astype(np.intp)
    single = getattr(X if gram is None else gram, "dtype", None) == np.float32
    K = _values(kernel, X[some]) if gram is None else np.asarray(gram[np.ix_(some, some)], dtype=np.float64)
    if not np.all(np.isfinite(K)):
        return Definiteness.UNKNOWN
    _refuse_asymmetric(kernel, K, some)
    if not _is_definite(evaluate.symmetrise(K), SINGLE_ROUNDING if single else ROUNDING):
        return Definiteness.INDEFINITE
    return Definiteness.PROVEN if n == len(some) else Definiteness.UNKNOWN


def _values(kernel: Kernel, X: Any) -> Array:
    """The kernel values without symmetrisation."""
    points = X if kernel.takes == "objects" or X.dtype == np.float64 else X.astype(np.float64)
    return np.asarray(kernel.block(points, points), dtype=np.float64)


def _refuse_asymmetric(kernel: Kernel, K: Array, rows: NDArray[np.intp]) -> None:
    difference = np.abs(K - K.T)
    if np.max(difference, initial=0.0) > ASYMMETRY * np.max(np.abs(K), initial=0.0):
        i, j = np.unravel_index(int(np.argmax(difference)), K.shape)
        remedy = "(X + X.T) / 2 would be" if isinstance(kernel, Precomputed) else "lambda A, B: k(A, B) + k(B, A).T is"
        raise ValueError(
            f"{_name(kernel)} is not symmetric: k(x_{rows[i]}, x_{rows[j]}) is {K[i, j]:.6g}, but "
            f"k(x_{rows[j]}, x_{rows[i]}) is {K[j, i]:.6g}. {remedy}."
        )


def _name(kernel: Kernel) -> str:
    return "The kernel matrix X" if isinstance(kernel, Precomputed) else repr(kernel)


def _is_definite(K: Array, tolerance: float) -> bool:
    """Whether K + δI has a Cholesky factor, δ = tolerance·trace."""
    shift = tolerance * float(np.abs(np.diagonal(K)).sum())
    if not shift > 0:
        return not np.any(K)
    shifted = np.array(K, order="F")
    shifted[np.diag_indices_from(shifted)] += shift
    return scipy.linalg.lapack.dpotrf(shifted, lower=1, clean=0, overwrite_a=1)[1] == 0


def warn_indefinite(kernel: Kernel, consequence: str) -> None:
    """The warning about indefinite kernels; ``consequence`` is the effect on the estimator."""
    warnings.warn(
        f"{_name(kernel)} is not positive semidefinite on these examples, so ½‖f‖² has no lower bound. {consequence} Use a "
        "positive semidefinite kernel, such as hg.kernels.RBF or hg.kernels.Polynomial with coef0 ≥ 0, for a fit with a proof.",
        UserWarning,
        stacklevel=callers_level(),
    )


def refuse_indefinite(kernel: Kernel, X: Any) -> None:
    """Raises an error for an indefinite kernel, which cannot be a covariance."""
    if definiteness(kernel, X) is Definiteness.INDEFINITE:
        raise ValueError(
            f"{_name(kernel)} is not positive semidefinite on these examples, so it is the covariance of no Gaussian "
            "process. Use a positive semidefinite kernel, such as hg.kernels.RBF or hg.kernels.Polynomial with coef0 ≥ 0."
        )


def check_psd(K: Any, X: Any = None, *, tol: float = 1e-8) -> NDArray[np.float64]:
    """Returns K if it is a Gram matrix; otherwise raises an error that explains why not.

    Parameters
    ----------
    K : array of shape (n, n), or a kernel
        With a kernel, its matrix on X is checked.
    X : inputs, for a kernel
        Inputs at which the kernel is evaluated.
    tol : float
        Eigenvalues down to −tol times the largest are taken for rounding errors.
    """
    name = "The matrix"
    if X is not None:
        kernel = as_kernel(K)
        name, K = f"The Gram matrix of {kernel!r}", kernel(X)
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"{name} must be square, got shape {K.shape}.")
    if not np.all(np.isfinite(K)):
        raise ValueError(f"{name} has entries that are not finite.")
    size = max(float(np.max(np.abs(K), initial=0.0)), np.finfo(float).tiny)
    difference = np.abs(K - K.T)
    if np.max(difference, initial=0.0) > tol * size:
        i, j = np.unravel_index(int(np.argmax(difference)), K.shape)
        raise ValueError(f"{name} is not symmetric: entry ({i}, {j}) is {K[i, j]:.6g} but ({j}, {i}) is {K[j, i]:.6g}.")
    if not len(K):
        return K
    values = np.linalg.eigvalsh(0.5 * (K + K.T))
    if values[0] < -tol * max(values[-1], size):
        raise ValueError(
            f"{name} is not positive semidefinite: its smallest eigenvalue is {values[0]:.6g} "
            f"(the largest is {values[-1]:.6g}), so it is no table of inner products. "
            f"Adding {-values[0]:.3g} to the diagonal would make it one."
        )
    return K
