"""Columns far from zero: the same problem with a constant row subtracted from X.

Problem     min_{W,b} Σ cᵢ ℓ(yᵢ, W'xᵢ + b) + Ω(W) where |mean| ≫ deviation in some columns of X
Reduction   for any row μ, W'x + b = W'(x − μ) + (b + W'μ): the unpenalised bias absorbs the shift. The Hessian of the
            bias and such columns is singular up to rounding before the shift and regular after it, and the steps of
            first-order methods are no longer limited by the size of the mean.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace

import numpy as np

from hinge._native import Design
from hinge.problem.objective import Array, Objective

SAMPLE, LEAST, ENTRIES = 64, 8, 1 << 14  # rows from which means and deviations are estimated: fewer of wide matrices
FAR = 1e3  # a column is shifted if its mean is at least this many deviations from zero
CONSTANT = 1e12  # ... and is constant up to rounding from this many on


@dataclass(frozen=True, eq=False)
class Shift:
    """A row μ and the matrix X − 1μ'."""

    row: Array
    design: Design

    def reduced(self, objective: Objective) -> Objective:
        """The objective of the shifted rows."""
        return replace(objective, design=self.design)

    def forward(self, w: Array, b: Array) -> tuple[Array, Array]:
        """Weights and bias for the shifted rows."""
        return w, np.atleast_1d(b) + self.row @ w

    def back(self, w: Array, b: Array) -> tuple[Array, Array]:
        """Weights and bias for the original rows."""
        return w, b - self.row @ w


_KNOWN: weakref.WeakKeyDictionary[Design, Shift | None] = weakref.WeakKeyDictionary()


def shift_of(design: Design) -> Shift | None:
    """The shift of the columns that are far from zero; None if there are none, and for sparse matrices."""
    if not isinstance(design.source, np.ndarray):
        return None
    if design not in _KNOWN:
        _KNOWN[design] = _find(design.source)
    return _KNOWN[design]


def _find(X: np.ndarray) -> Shift | None:
    mean, deviations = distances_from_zero(X)
    far = (deviations > FAR) & (deviations < CONSTANT)
    if not far.any():
        return None
    row = np.where(far, mean, 0.0)
    return Shift(row, Design(X - row))


def distances_from_zero(X: np.ndarray) -> tuple[Array, Array]:
    """Means of columns, and how many deviations they are from zero; estimated from a few rows."""
    rows = int(np.clip(ENTRIES // max(X.shape[1], 1), LEAST, SAMPLE))
    sample = X[:: max(1, len(X) // rows)].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # of columns that overflow nothing is known
        mean = sample.mean(axis=0)
        return mean, np.abs(mean) / np.sqrt(np.mean((sample - mean) ** 2, axis=0))
