"""Linear systems with a positive semidefinite matrix."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from hinge.problem.objective import Array

REFINEMENTS = 4
RIDGE_OF_FACTOR = 1e-11  # relative to the diagonal, so that singular matrices can be factored
SINGULAR_VALUES = 12.0  # operations of a singular value decomposition, divided by the order cubed


def solve_semidefinite(A: Array, rhs: Array, flops: float = np.inf) -> Array:
    """A solution of Ax = rhs for a positive semidefinite A whose range contains rhs.

    Factors A plus a tiny ridge; iterative refinement removes the error of the ridge unless A is too close to singular. In
    that case a singular value decomposition gives the minimum-norm solution, if it costs at most ``flops`` operations.
    """
    diagonal = np.diag(A)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    ridged = A / (scale[:, None] * scale)
    ridged.flat[:: len(A) + 1] += RIDGE_OF_FACTOR
    factor, info = scipy.linalg.lapack.dpotrf(ridged, lower=1, overwrite_a=1)
    affordable = SINGULAR_VALUES * len(A) ** 3 <= flops
    if info == 0:
        x, left, size = np.zeros_like(rhs), rhs, float(np.max(np.abs(rhs)))
        for _ in range(REFINEMENTS):
            x = x + scipy.linalg.lapack.dpotrs(factor, left / scale, lower=1)[0] / scale
            left = rhs - A @ x
            if np.max(np.abs(left)) <= 1e-15 * size:
                break
        if np.max(np.abs(left)) <= 1e-12 * size or not affordable:
            return x
    return scipy.linalg.lstsq(A, rhs)[0] if affordable else np.zeros_like(rhs)
