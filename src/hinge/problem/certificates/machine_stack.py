"""The certificates of many small kernel machines that are solved side by side, as one-vs-one machines are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge._native import core
from hinge.problem.certificates.kernel_machine import BALANCE, Array, Dual


@dataclass(frozen=True)
class Stack:
    """Duals of one variable per point, side by side: row p of every table is problem p.

    Rows are padded to one length with variables fixed at zero.
    """

    rows: NDArray[np.int64]  # (problems, points): indices of points
    lengths: NDArray[np.int64]
    dual: Dual  # tables of that shape

    def __getitem__(self, which: NDArray[Any]) -> Stack:
        d = self.dual
        dual = Dual(d.sign[which], d.target[which], d.upper[which], d.start[which], d.nu)
        return Stack(self.rows[which], self.lengths[which], dual)

    @property
    def used(self) -> NDArray[np.bool_]:
        """Which entries are not padding."""
        return np.arange(self.rows.shape[1]) < self.lengths[:, None]

    @property
    def scale(self) -> Array:
        """:attr:`Dual.scale` of every problem."""
        target = np.where(self.used, self.dual.target, 0.0)
        return np.maximum(self.spread(target), 1e-3 * np.max(np.abs(target), axis=1, initial=0.0))

    def spread(self, values: Array) -> Array:
        """The standard deviation of values, for every problem."""
        mean = np.sum(values, axis=1, where=self.used) / self.lengths
        return np.sqrt(np.sum((values - mean[:, None]) ** 2, axis=1, where=self.used) / self.lengths)

    def scores(self, gram: Array, coefficients: Array) -> Array:
        """K β of every problem."""
        return core.scores_of_many(gram, self.rows, self.lengths, np.ascontiguousarray(coefficients))


def evaluate_stack(
    stack: Stack, gram: Array, alpha: Array, bias: Array, rho: Array
) -> tuple[Array, Array, Array, Array]:
    """Scores, both objectives and the scale of the gap, as :func:`evaluate_machine` has them, for every problem."""
    dual = stack.dual
    coefficients = dual.sign * alpha
    scores = stack.scores(gram, coefficients)
    square = _sums(coefficients, scores)
    signed, total = _sums(dual.sign, dual.start), np.sum(dual.start, axis=1)
    shifted = dual.target - bias[:, None]
    slack = np.maximum(dual.sign * (shifted - scores) + rho[:, None], 0.0)
    cost = 0.5 * square + _sums(dual.upper, slack)
    linear = (total * rho if dual.nu else 0.0) - signed * bias
    most = BALANCE * np.maximum(alpha.sum(axis=1), np.finfo(float).tiny)
    kept = np.all((alpha >= 0) & (alpha <= dual.upper), axis=1)
    moved = alpha - dual.start
    rest = _sums(dual.sign, moved)
    kept &= np.abs(rest) <= most
    left = np.abs(bias * rest)
    if dual.nu:
        rest = np.sum(moved, axis=1)
        kept &= np.abs(rest) <= most
        left += np.abs(rho * rest)
    lower = np.where(kept, _sums(coefficients, shifted) + signed * bias - 0.5 * square - left, -np.inf)
    return scores, cost - linear, lower, cost + np.maximum(-linear, 0.0)


def _sums(a: Array, b: Array) -> Array:
    """Σ a b of every problem."""
    return np.einsum("ij,ij->i", a, b)
