"""Hinge losses with a margin for every wrong prediction: over classes, and over sequences of labels.

ℓ(y, s) = max_{y'} [ Δ(y, y') − s_y + s_{y'} ] ≥ Δ(y, ŷ),   ŷ = argmax s:  the target margin of y' is its cost Δ(y, y').
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hinge.problem.losses.base import Array, Loss, Target, where_finite


def cost_matrix(cost: Any, k: int) -> Array:
    """Δ as a k × k array: 0 on the diagonal, nonnegative elsewhere; the default is 1 off the diagonal."""
    if cost is None:
        return 1.0 - np.eye(k)
    matrix = np.ascontiguousarray(cost, dtype=np.float64)
    if matrix.shape != (k, k):
        raise ValueError(f"cost has shape {matrix.shape}; expected ({k}, {k}), one row and column per class.")
    if not np.all(np.isfinite(matrix)) or np.any(matrix < 0) or np.any(np.diag(matrix) != 0):
        raise ValueError("cost must be finite, not negative, and zero on the diagonal.")
    return matrix


def _one_hot(y: Array, k: int) -> Array:
    return np.eye(k)[np.asarray(y).astype(np.intp)]


def _nearest_in_simplex(v: Array) -> Array:
    """The projection of every row onto the simplex: subtract a threshold and clip at zero."""
    ordered = -np.sort(-v, axis=1)
    ranks = np.arange(1, v.shape[1] + 1)
    means = (np.cumsum(ordered, axis=1) - 1.0) / ranks
    last = np.maximum(np.sum(ordered > means, axis=1), 1) - 1
    return np.maximum(v - means[np.arange(len(v)), last][:, None], 0.0)


@dataclass(frozen=True)
class MulticlassHinge(Loss):
    """ℓ = max_j [ Δ(y, j) − s_y + s_j ], s of shape (n, k): the loss of the Crammer–Singer machine.

    The conjugate is finite for u = p − e_y with p in the simplex: ℓ* = −Σ_j p_j Δ(y, j).

    Parameters
    ----------
    cost : nested tuples, optional
        Δ; 1 off the diagonal by default.
    """

    target: ClassVar[Target] = Target.CLASSES
    outputs: ClassVar[str] = "classes"
    smooth: ClassVar[bool] = False
    twice_differentiable: ClassVar[bool] = False

    cost: tuple[tuple[float, ...], ...] | None = None

    def augmented(self, y: Array, s: Array) -> Array:
        """Δ(y, j) − s_y + s_j for every class j."""
        codes = np.asarray(y).astype(np.intp)
        return cost_matrix(self.cost, s.shape[1])[codes] + s - s[np.arange(len(codes)), codes][:, None]

    def value(self, y: Array, s: Array) -> Array:
        return self.augmented(y, s).max(axis=1)

    def gradient(self, y: Array, s: Array) -> Array:
        rows, codes = np.arange(len(y)), np.asarray(y).astype(np.intp)
        u = np.zeros_like(s)
        u[rows, self.augmented(y, s).argmax(axis=1)] += 1.0
        u[rows, codes] -= 1.0
        return u

    def conjugate(self, y: Array, u: Array) -> Array:
        rows, codes = np.arange(len(y)), np.asarray(y).astype(np.intp)
        p = u.copy()
        p[rows, codes] += 1.0
        inside = np.all(p >= -1e-12, axis=1) & (np.abs(p.sum(axis=1) - 1.0) <= 1e-9)
        return where_finite(inside, -(p * cost_matrix(self.cost, u.shape[1])[codes]).sum(axis=1))

    def prox(self, y: Array, v: Array, step: float) -> Array:
        """v − step·(p − e_y), p the point of the simplex nearest to e_y + (v + Δ(y, ·))/step (Moreau)."""
        one_hot = _one_hot(y, v.shape[1])
        costs = cost_matrix(self.cost, v.shape[1])[np.asarray(y).astype(np.intp)]
        return v - step * (_nearest_in_simplex(one_hot + (v + costs) / step) - one_hot)

    def project_dual(self, y: Array, u: Array) -> Array:
        one_hot = _one_hot(y, u.shape[1])
        return _nearest_in_simplex(u + one_hot) - one_hot

    def balance_dual(self, y: Array, c: Array, u: Array) -> Array:
        """Dual variables with Σ cᵢ uᵢ = 0, mixed with the class frequencies π: p ← (1 − t) p + t (π − r(1 − t)/t), r = Σ cᵢ uᵢ."""
        own = _one_hot(y, u.shape[1])
        shares, left = c @ own, c @ u
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = float(np.max(np.where(left > 0, left / shares, 0.0)))
        if not np.isfinite(ratio) or ratio == 0.0:
            return u
        t = ratio / (1.0 + ratio)
        return (1.0 - t) * u + (t * shares - (1.0 - t) * left) - t * own


@dataclass(frozen=True)
class StructuredLoss(Loss):
    """A loss of one sequence of labels y_1 … y_T, given scores of labels (T, k) and of label pairs (k, k).

    This is the definition, in NumPy; training uses the compiled versions in ``native/sequence``.
    """

    target: ClassVar[Target] = Target.CLASSES
    outputs: ClassVar[str] = "sequence"

    @staticmethod
    def score(y: Array, unary: Array, pair: Array) -> float:
        """Σ_t unary[t, y_t] + Σ_t pair[y_{t−1}, y_t]."""
        codes = np.asarray(y).astype(np.intp)
        return float(unary[np.arange(len(codes)), codes].sum() + pair[codes[:-1], codes[1:]].sum())


@dataclass(frozen=True)
class StructuredHinge(StructuredLoss):
    """ℓ = max_{y'} [ Δ(y, y') − score(y) + score(y') ] with Δ(y, y') = Σ_t cost[y_t, y'_t]: the structured SVM.

    Parameters
    ----------
    cost : square table of numbers, optional
        cost[y, y'] ≥ 0 for labels in sorted order; by default 1 for every wrong label.
    """

    smooth: ClassVar[bool] = False
    twice_differentiable: ClassVar[bool] = False
    cost: tuple[tuple[float, ...], ...] | None = None

    def sequence_value(self, y: Array, unary: Array, pair: Array) -> float:
        """The loss of one sequence, by loss-augmented Viterbi."""
        best = unary + cost_matrix(self.cost, unary.shape[1])[np.asarray(y).astype(np.intp)]
        total = best[0]
        for row in best[1:]:
            total = (total[:, None] + pair).max(axis=0) + row
        return float(total.max() - self.score(y, unary, pair))


@dataclass(frozen=True)
class StructuredLogistic(StructuredLoss):
    """ℓ = log Z − score(y): the negative log-likelihood of a conditional random field."""

    def sequence_value(self, y: Array, unary: Array, pair: Array) -> float:
        """The loss of one sequence, by the forward recursion."""
        total = unary[0]
        for row in unary[1:]:
            total = np.logaddexp.reduce(total[:, None] + pair, axis=0) + row
        return float(np.logaddexp.reduce(total) - self.score(y, unary, pair))


@dataclass(frozen=True)
class StructuredPerceptronLoss(StructuredLoss):
    """ℓ = max_{y'} score(y') − score(y): zero if the best labelling is right. Minimised by the perceptron."""

    smooth: ClassVar[bool] = False
    twice_differentiable: ClassVar[bool] = False

    def sequence_value(self, y: Array, unary: Array, pair: Array) -> float:
        """The loss of one sequence, by Viterbi."""
        total = unary[0]
        for row in unary[1:]:
            total = (total[:, None] + pair).max(axis=0) + row
        return float(total.max() - self.score(y, unary, pair))
