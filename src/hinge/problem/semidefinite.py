"""Linear systems with a positive semidefinite matrix."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from hinge.problem.objective import Array

REFINEMENTS = 4
RIDGE_OF_FACTOR = 1e-11  # relative to the diagonal, so that singular matrices can be factored
SINGULAR_VALUES = 12.0  # operations of a singular value decomposition, divided by the order cubed


def solve_semidefinite(A: Array, rhs: Array, flops: float = np.inf, groups: int = 1) -> Array:
    """A solution of Ax = rhs for a positive semidefinite A whose range contains rhs.

    The unknowns are measured in units that make the diagonal of A one, so that columns of any size are solved alike. Factors A
    plus a tiny ridge; iterative refinement removes the error of the ridge unless A is too close to singular. In that case a
    singular value decomposition gives the solution of minimum norm in these units, if it costs at most ``flops`` operations.
    Of ``groups`` of equally many unknowns, corresponding ones have one unit.
    """
    scale = diagonal_scale(A, groups)
    A, rhs = A / (scale[:, None] * scale), rhs / scale
    ridged = A.copy()
    ridged.flat[:: len(A) + 1] += RIDGE_OF_FACTOR
    factor, info = scipy.linalg.lapack.dpotrf(ridged, lower=1, overwrite_a=1)
    affordable = SINGULAR_VALUES * len(A) ** 3 <= flops
    if info == 0:
        x, left, size = np.zeros_like(rhs), rhs, float(np.max(np.abs(rhs)))
        for _ in range(REFINEMENTS):
            x = x + scipy.linalg.lapack.dpotrs(factor, left, lower=1)[0]
            left = rhs - A @ x
            if np.max(np.abs(left)) <= 1e-15 * size:
                break
        if np.max(np.abs(left)) <= 1e-12 * size or not affordable:
            return x / scale
    return scipy.linalg.lstsq(A, rhs)[0] / scale if affordable else np.zeros_like(rhs)


def diagonal_scale(A: Array, groups: int = 1) -> Array:
    """The roots of the diagonal, by which rows and columns are divided to make it one; 1 in place of zeros.

    With several groups, the roots of its means over the groups.
    """
    diagonal = np.tile(np.diag(A).reshape(groups, -1).mean(axis=0), groups)
    return np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
