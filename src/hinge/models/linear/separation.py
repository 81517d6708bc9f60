"""Can two classes be separated by a hyperplane? If so, along which direction?

Without a penalty the logistic loss has a minimiser if and only if no direction (w, b) ≠ 0 has yᵢ(⟨w, xᵢ⟩ + b) ≥ 0 for
all i with at least one of them > 0 (Albert & Anderson 1984). All strict: the classes are separable. Some equal to
zero: quasi-separable. Both are found by one linear program,

    max Σ mᵢ   subject to   mᵢ = yᵢ(⟨w, xᵢ⟩ + b),   0 ≤ mᵢ ≤ 1,

which is 0 exactly if there is no such direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse

# How many entries of the constraint matrix the linear program is tried with.
LIMIT = 20_000_000


@dataclass(frozen=True)
class Separation:
    """A direction along which no example is on the wrong side, and at least one is on the right side.

    Attributes
    ----------
    direction, bias : array and float
        All margins yᵢ(⟨direction, xᵢ⟩ + bias) are ≥ 0.
    complete : bool
        Whether all margins are > 0 (separable) or some are 0 (quasi-separable).
    """

    direction: np.ndarray
    bias: float
    complete: bool

    def __str__(self) -> str:
        lead = np.argsort(-np.abs(self.direction), kind="stable")[:3]
        terms = ", ".join(f"{self.direction[j]:+.3g}·x{j}" for j in lead if self.direction[j] != 0)
        word = "completely" if self.complete else "partly (quasi-separation)"
        return f"the classes are separated {word} along the direction {terms or 'of the bias'}"


def check_direction(X: Any, signs: np.ndarray, w: np.ndarray, b: float) -> Separation | None:
    """The direction (w, b) as a :class:`Separation`, if it is one."""
    scores = X @ w
    size = np.max(np.abs(scores), initial=0.0) + abs(b)
    margins = signs * (scores + b)
    slack = 1e-9 * max(size, 1e-300)
    if np.any(margins < -slack) or not np.any(margins > 1e-6 * size):
        return None
    return Separation(np.asarray(w), float(b), bool(np.all(margins > slack)))


def separating_direction(X: Any, signs: np.ndarray, *, fit_intercept: bool = True) -> Separation | None:
    """A separating or quasi-separating direction for labels −1/+1, or None if there is none.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    signs : array of −1 and +1
    fit_intercept : bool
        Whether the hyperplane may miss the origin.
    """
    n, d = X.shape
    scale = _column_scale(X)
    if scipy.sparse.issparse(X):
        rows = scipy.sparse.diags_array(signs) @ scipy.sparse.csr_array(X) @ scipy.sparse.diags_array(1.0 / scale)
        rows = scipy.sparse.hstack([rows, signs[:, None]]).tocsr() if fit_intercept else rows
    else:
        rows = signs[:, None] * (np.asarray(X, dtype=np.float64) / scale)
        rows = np.column_stack([rows, signs]) if fit_intercept else rows
    cost = -np.asarray(rows.sum(axis=0)).ravel()
    stacked = scipy.sparse.vstack([rows, -rows]).tocsr() if scipy.sparse.issparse(rows) else np.vstack([rows, -rows])
    program = scipy.optimize.linprog(
        cost, A_ub=stacked, b_ub=np.append(np.ones(n), np.zeros(n)), bounds=(None, None), method="highs"
    )
    if program.status != 0 or program.x is None:
        return None
    w = program.x[:d] / scale
    return check_direction(X, signs, w, float(program.x[d]) if fit_intercept else 0.0)


def _column_scale(X: Any) -> np.ndarray:
    largest = np.asarray(abs(X).max(axis=0).todense()).ravel() if scipy.sparse.issparse(X) else np.abs(X).max(axis=0)
    return np.where(largest > 0, largest, 1.0).astype(np.float64)
