"""Can two classes be separated by a hyperplane? If so, along which direction?

Without a penalty the logistic loss has a minimiser if and only if no direction (w, b) ≠ 0 has yᵢ(⟨w, xᵢ⟩ + b) ≥ 0 for
all i with at least one of them > 0 (Albert & Anderson 1984). All strict: the classes are separable. Some equal to
zero: quasi-separable. With mᵢ = yᵢ(⟨w, xᵢ⟩ + b), two linear programs answer,

    max t      subject to   mᵢ ≥ t,  |w_j| ≤ 1      which is above 0 exactly if the classes are separable,
    max Σ mᵢ   subject to   0 ≤ mᵢ ≤ 1              which is above 0 exactly if they are at least quasi-separable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse

from hinge._native import check_indices

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
    check_indices(X)
    X = X.tocsr() if scipy.sparse.issparse(X) else X
    d = X.shape[1]
    scale = _column_scale(X)
    if scipy.sparse.issparse(X):
        rows = scipy.sparse.diags_array(signs) @ scipy.sparse.csr_array(X) @ scipy.sparse.diags_array(1.0 / scale)
        rows = scipy.sparse.hstack([rows, signs[:, None]]).tocsr() if fit_intercept else rows
    else:
        rows = signs[:, None] * (np.asarray(X, dtype=np.float64) / scale)
        rows = np.column_stack([rows, signs]) if fit_intercept else rows
    found = _strict(rows)
    if found is None:
        found = _weak(rows)
    if found is None:
        return None
    return check_direction(X, signs, found[:d] / scale, float(found[d]) if fit_intercept else 0.0)


def _strict(rows: Any) -> np.ndarray | None:
    """The direction in the unit box with the largest smallest margin, if that is positive."""
    n, d = rows.shape
    column = np.ones((n, 1))
    sparse = scipy.sparse.issparse(rows)
    A = scipy.sparse.hstack([-rows, column]).tocsr() if sparse else np.hstack([-rows, column])
    # Scaling a direction changes nothing, so the bias may share the box of the weights.
    bounds = [(-1.0, 1.0)] * d + [(None, 1.0)]
    program = scipy.optimize.linprog(
        np.append(np.zeros(d), -1.0), A_ub=A, b_ub=np.zeros(n), bounds=bounds, method="highs"
    )
    return program.x[:d] if program.status == 0 and program.x[d] > 1e-9 else None


def _weak(rows: Any) -> np.ndarray | None:
    """A direction with margins in [0, 1] and the largest sum."""
    n = rows.shape[0]
    stacked = scipy.sparse.vstack([rows, -rows]).tocsr() if scipy.sparse.issparse(rows) else np.vstack([rows, -rows])
    program = scipy.optimize.linprog(
        -np.asarray(rows.sum(axis=0)).ravel(), A_ub=stacked, b_ub=np.append(np.ones(n), np.zeros(n)),
        bounds=(None, None), method="highs",
    )  # fmt: skip
    return program.x if program.status == 0 else None


def _column_scale(X: Any) -> np.ndarray:
    if scipy.sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()  # adding up repeated entries happens in place
        X.sum_duplicates()
    largest = np.asarray(abs(X).max(axis=0).todense()).ravel() if scipy.sparse.issparse(X) else np.abs(X).max(axis=0)
    return np.where(largest > 0, largest, 1.0).astype(np.float64)
