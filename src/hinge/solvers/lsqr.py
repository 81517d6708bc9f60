"""Least squares by Golub–Kahan bidiagonalisation, for large sparse problems.

Problem     min_W ‖AW − B‖², the solution of least norm; A is only multiplied by vectors
Method      LSQR: A'A is never formed, so the condition of A enters once; every column of B has its own recurrence
Stop        ‖A'r‖ ≤ ε ‖A‖_F ‖r‖, or ‖r‖ ≤ ε ‖b‖
Reference   Paige & Saunders (1982), LSQR: an algorithm for sparse linear equations and sparse least squares, §4
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hinge.problem.objective import Array


def lsqr(
    forward: Callable[[Array], Array], backward: Callable[[Array], Array], B: Array, *, tol: float, max_iter: int
) -> tuple[Array, bool, int]:
    """W, whether every column met the tolerance, and the number of iterations. ``forward`` is V ↦ AV, ``backward`` U ↦ A'U."""
    U, beta = _normalised(B)
    V, alpha = _normalised(backward(U))
    W, P = np.zeros_like(V), V.copy()
    phi, rho, size = beta.copy(), alpha.copy(), alpha**2
    start, done = beta.copy(), (alpha == 0) | (beta == 0)
    iteration = 0
    while not done.all() and iteration < max_iter:
        iteration += 1
        U, beta = _normalised(forward(V) - alpha * U)
        size += beta**2
        V, alpha = _normalised(backward(U) - beta * V)
        r = np.hypot(rho, beta)
        with np.errstate(divide="ignore", invalid="ignore"):
            c, s = np.where(r > 0, rho / r, 1.0), np.where(r > 0, beta / r, 0.0)
            step = np.where(done | (r == 0), 0.0, c * phi / r)
            W += step * P
            P = V - np.where(r > 0, s * alpha / r, 0.0) * P
        rho, phi = -c * alpha, s * phi
        # ‖r‖ = φ and ‖A'r‖ = φ α |c|.
        error, slope = np.abs(phi), np.abs(phi * alpha * c)
        done = done | (slope <= tol * np.sqrt(size) * error) | (error <= tol * start)
        size += alpha**2
    return W, bool(done.all()), iteration


def _normalised(V: Array) -> tuple[Array, Array]:
    """Columns normalised to length one (or zero), and their lengths."""
    size = np.sqrt(np.einsum("ij,ij->j", V, V))
    return V / np.where(size > 0, size, 1.0), size
