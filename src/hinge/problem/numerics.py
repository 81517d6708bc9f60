"""Sums over examples, and the largest eigenvalue of a matrix made of them.

``c @ v`` of long vectors is given to NumPy's BLAS, which wakes its threads for it; when the sum is done they go on
waiting for work, at full speed, for some tens of milliseconds, and native code that starts meanwhile gets half of the
machine. A sum over examples takes no time worth sharing out.
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


# The least and the largest number of steps.
LANCZOS = (6, 100)


# Two-sided 95 % of the normal distribution.
Z95 = 1.959963984540054


def weighted_sum(c: np.ndarray, v: np.ndarray) -> Any:
    """Σ cᵢ vᵢ: a number, or one for each column of v."""
    return np.einsum("i,i...->...", c, v)


def largest_eigenvalue(apply: Callable[[np.ndarray], np.ndarray], size: int, *, accuracy: float = 1e-3) -> float:
    """λ_max of a symmetric positive semi-definite matrix of which only products v ↦ Av are known, from above.

    Lanczos with full orthogonalisation (Golub & Van Loan, section 10.1) from a random start. Every step looks in a new
    direction, so that a start near another eigenvector delays it by a few steps where power iteration stands still. The
    answer is the largest Ritz value plus the length of its residual, within ``accuracy`` of each other.
    """
    rng = np.random.default_rng(0)
    basis = np.zeros((0, size))
    diagonal: list[float] = []
    beside: list[float] = []
    v = rng.standard_normal(size)
    value = rest = 0.0
    for k in range(min(size, LANCZOS[1])):
        v = v / np.linalg.norm(v)
        basis = np.vstack([basis, v])
        product = apply(v)
        diagonal.append(float(v @ product))
        values, vectors = scipy.linalg.eigh_tridiagonal(diagonal, beside)
        value, scale = float(values[-1]), float(np.max(np.abs(values)))
        v = product - basis.T @ (basis @ product)
        v -= basis.T @ (basis @ v)
        length = float(np.linalg.norm(v))
        rest = length * abs(float(vectors[-1, -1]))
        if not np.isfinite(value) or (k + 1 >= min(size, LANCZOS[0]) and rest <= accuracy * value):
            break
        if length <= 1e-12 * scale or length == 0.0:  # the directions so far have no more to say: look elsewhere
            v, length = rng.standard_normal(size), 0.0
            v -= basis.T @ (basis @ v)
        beside.append(length)
    return value + (rest if len(diagonal) < size else 0.0)
