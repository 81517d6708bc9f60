"""Is a matrix a Gram matrix? Symmetric, and positive semidefinite."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.problem.kernels.base import as_kernel


def check_psd(K: Any, X: Any = None, *, tol: float = 1e-8) -> NDArray[np.float64]:
    """The Gram matrix, if it is one; otherwise an error that says what is wrong.

    Parameters
    ----------
    K : array of shape (n, n), or a kernel
        With a kernel, its matrix on X is checked.
    X : inputs, for a kernel
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
