"""Sums over examples, and the largest eigenvalue of a matrix of such sums.

For long vectors ``c @ v`` calls NumPy's BLAS, which wakes its threads. After the sum they spin for tens of milliseconds,
and native code that starts in that time gets half of the machine. A sum over examples is too short to need threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

OVERFLOWED = (
    "The computation overflowed: X, y, sample_weight or a parameter has values too large, or too different in size, for "
    "floating point. "
    "Rescale them; StandardScaler does it for X."
)


# The minimum and maximum number of Lanczos steps.
LANCZOS = (6, 100)


# Two-sided 95 % of the normal distribution.
Z95 = 1.959963984540054


def weighted_sum(c: np.ndarray, v: np.ndarray) -> Any:
    """Σ cᵢ vᵢ: a number, or one for each column of v."""
    return np.einsum("i,i...->...", c, v)


def largest_eigenvalue(apply: Callable[[np.ndarray], np.ndarray], size: int, *, accuracy: float = 1e-3) -> float:
    """An upper bound of λ_max of a symmetric positive semidefinite matrix given by its products v ↦ Av.

    Lanczos with full orthogonalisation (Golub & Van Loan, section 10.1) from a random start. Every step adds a new
    direction, so a start near another eigenvector costs a few steps, where power iteration would stagnate. The result is
    the largest Ritz value plus the norm of its residual, which is at most ``accuracy`` of the value.
    """
    rng = np.random.default_rng(0)
    basis = np.zeros((0, size))
    diagonal: list[float] = []
    off_diagonal: list[float] = []
    v = rng.standard_normal(size)
    value = residual = 0.0
    for k in range(min(size, LANCZOS[1])):
        v = v / np.linalg.norm(v)
        basis = np.vstack([basis, v])
        product = apply(v)
        diagonal.append(float(v @ product))
        values, vectors = scipy.linalg.eigh_tridiagonal(diagonal, off_diagonal)
        value, scale = float(values[-1]), float(np.max(np.abs(values)))
        v = product - basis.T @ (basis @ product)
        v -= basis.T @ (basis @ v)
        length = float(np.linalg.norm(v))
        residual = length * abs(float(vectors[-1, -1]))
        if not np.isfinite(value) or (k + 1 >= min(size, LANCZOS[0]) and residual <= accuracy * value):
            break
        if length <= 1e-12 * scale or length == 0.0:  # the Krylov space is exhausted: restart with a new direction
            v, length = rng.standard_normal(size), 0.0
            v -= basis.T @ (basis @ v)
        off_diagonal.append(length)
    return value + (residual if len(diagonal) < size else 0.0)
