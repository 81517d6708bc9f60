"""Losses for two classes y ∈ {−1, +1}: functions of the margin m = y·s."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hinge.problem.losses.base import (
    EDGE,
    Array,
    Kink,
    Loss,
    Pieces,
    Target,
    normalise_weights,
    prox_of_kink,
    where_finite,
    xlogx,
)


@dataclass(frozen=True)
class MarginLoss(Loss):
    """A loss of the margin. With p = −y·u the dual variables are p ≥ 0 (the loss decreases in the margin)."""

    target: ClassVar[Target] = Target.SIGN
    bounds_error: ClassVar[bool] = True
    most: ClassVar[float] = math.inf  # the largest p

    def dual_interval(self, y: Array) -> tuple[Array, Array]:
        return np.where(y > 0, -self.most, 0.0), np.where(y > 0, 0.0, self.most)

    def baseline(self, y: ArrayLike, weight: ArrayLike | None = None) -> float:
        y = np.asarray(y, dtype=np.float64)
        c = normalise_weights(weight, len(y))
        up, down = float(c[y > 0].sum()), float(c[y <= 0].sum())
        best = self.best_score(up, down) if up > 0 and down > 0 else None
        return super().baseline(y, weight) if best is None else best

    def best_score(self, up: float, down: float) -> float | None:
        """argmin_s up·ℓ(1, s) + down·ℓ(−1, s) for two positive weights; None if it has no closed form."""
        return None


@dataclass(frozen=True)
class ZeroOne(Loss):
    """ℓ = 1[m ≤ 0]: counts mistakes, including scores of zero. Neither convex nor continuous: for evaluation only."""

    target: ClassVar[Target] = Target.SIGN
    smooth: ClassVar[bool] = False
    convex: ClassVar[bool] = False
    twice_differentiable: ClassVar[bool] = False
    has_conjugate: ClassVar[bool] = False
    bounds_error: ClassVar[bool] = True

    def value(self, y: Array, s: Array) -> Array:
        return (y * s <= 0).astype(np.float64)

    def gradient(self, y: Array, s: Array) -> Array:
        raise TypeError("The 0-1 loss has no useful gradient; minimise a surrogate such as Hinge() or Logistic().")


@dataclass(frozen=True)
class _OneKink(MarginLoss):
    """ℓ = max(0, k − m): two lines that meet at the margin k."""

    piecewise_linear: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    twice_differentiable: ClassVar[bool] = False
    most: ClassVar[float] = 1.0
    kink: ClassVar[float]  # k

    def kinks(self, y: Array) -> list[Kink]:
        return [Kink(self.kink * y, *self.dual_interval(y))]

    def value(self, y: Array, s: Array) -> Array:
        return np.maximum(self.kink - y * s, 0.0)

    def hessian(self, y: Array, s: Array) -> Array:
        return np.zeros_like(s)

    def conjugate(self, y: Array, u: Array) -> Array:
        p = -y * u
        return where_finite((p >= 0) & (p <= EDGE), -self.kink * p)

    def subgradients(self, y: Array, s: Array) -> tuple[Array, Array]:
        left, right = np.where(y * s <= self.kink, -y, 0.0), np.where(y * s < self.kink, -y, 0.0)
        return np.minimum(left, right), np.maximum(left, right)

    def prox(self, y: Array, v: Array, step: float) -> Array:
        return prox_of_kink(v, self.kink * y, *self.dual_interval(y), step)


@dataclass(frozen=True)
class PerceptronLoss(_OneKink):
    """ℓ = max(0, −m). Zero whenever the sign is right, so it does not bound the 0-1 loss."""

    bounds_error: ClassVar[bool] = False
    kink: ClassVar[float] = 0.0

    def gradient(self, y: Array, s: Array) -> Array:
        return np.where(y * s <= 0, -y, 0.0)  # a score of zero is a mistake; otherwise w = 0 would never change

    def baseline(self, y: ArrayLike, weight: ArrayLike | None = None) -> float:
        """Zero, at which every example has loss zero."""
        return 0.0


@dataclass(frozen=True)
class Hinge(_OneKink):
    """ℓ = max(0, 1 − m): the loss of the support vector machine."""

    piecewise_quadratic: ClassVar[bool] = True
    kink: ClassVar[float] = 1.0

    def pieces(self, y: Array) -> Pieces:
        return Pieces(np.array([-y, 0.0 * y]), np.array([np.ones_like(y), np.zeros_like(y)]), 0.0)

    def gradient(self, y: Array, s: Array) -> Array:
        return np.where(y * s < 1, -y, 0.0)


@dataclass(frozen=True)
class _SquaredDistance(MarginLoss):
    """ℓ = (1 − m)² for margins between −1 and 1, where the best constant lies."""

    @property
    def curvature(self) -> float:
        return 2.0

    def best_score(self, up: float, down: float) -> float:
        return (up - down) / (up + down)


@dataclass(frozen=True)
class SquaredHinge(_SquaredDistance):
    """ℓ = max(0, 1 − m)²."""

    piecewise_quadratic: ClassVar[bool] = True
    softness: ClassVar[float] = 0.5

    def kinks(self, y: Array) -> list[Kink]:
        return [Kink(1.0 / y, *self.dual_interval(y))]

    def pieces(self, y: Array) -> Pieces:
        return Hinge().pieces(y)._replace(square=2.0)

    def value(self, y: Array, s: Array) -> Array:
        return np.maximum(1.0 - y * s, 0.0) ** 2

    def gradient(self, y: Array, s: Array) -> Array:
        return -2.0 * y * np.maximum(1.0 - y * s, 0.0)

    def hessian(self, y: Array, s: Array) -> Array:
        return np.where(y * s < 1, 2.0, 0.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        p = -y * u
        return where_finite(p >= 0, -p + 0.25 * p**2)


@dataclass(frozen=True)
class ModifiedHuber(_SquaredDistance):
    """ℓ = max(0, 1 − m)² for m ≥ −1 and −4m below: the squared hinge with a linear tail (Zhang 2004).

    The minimiser of the expected loss is 2p − 1, so (1 + s)/2, clipped to [0, 1], estimates the probability p.
    """

    most: ClassVar[float] = 4.0
    softness: ClassVar[float] = 0.5

    def kinks(self, y: Array) -> list[Kink]:
        return [Kink(1.0 / y, *self.dual_interval(y))]

    def value(self, y: Array, s: Array) -> Array:
        m = y * s
        return np.where(m >= -1.0, np.maximum(1.0 - m, 0.0) ** 2, -4.0 * m)

    def gradient(self, y: Array, s: Array) -> Array:
        return -2.0 * y * np.clip(1.0 - y * s, 0.0, 2.0)

    def hessian(self, y: Array, s: Array) -> Array:
        return np.where(np.abs(s) < 1, 2.0, 0.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        p = -y * u
        return where_finite((p >= 0) & (p <= 4.0 * EDGE), -p + 0.25 * p**2)

    def inverse_link(self, s: Array) -> Array:
        return 0.5 * (np.clip(s, -1.0, 1.0) + 1.0)


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """ℓ = log(1 + e^{−m}), the Bernoulli likelihood; ``Logistic(1 / log(2))`` is 1 at margin 0.

    Parameters
    ----------
    scale : float
        A factor on the whole loss. With 1 it bounds the 0-1 loss only after division by log 2.
    """

    scale: float = 1.0

    @property
    def bounds_error(self) -> bool:  # type: ignore[override]
        return self.scale >= 1.0 / math.log(2.0)

    @property
    def curvature(self) -> float:
        return 0.25 * self.scale

    def value(self, y: Array, s: Array) -> Array:
        return self.scale * np.logaddexp(0.0, -y * s)

    def gradient(self, y: Array, s: Array) -> Array:
        return -self.scale * y * _sigmoid(-y * s)

    def hessian(self, y: Array, s: Array) -> Array:
        return self.scale * _sigmoid(s) * _sigmoid(-s)

    def conjugate(self, y: Array, u: Array) -> Array:
        p = -y * u / self.scale
        inside = (p >= 0) & (p <= EDGE)
        p = np.clip(p, 0.0, 1.0)
        return where_finite(inside, self.scale * (xlogx(p) + xlogx(1.0 - p)))

    def dual_interval(self, y: Array) -> tuple[Array, Array]:
        return np.where(y > 0, -self.scale, 0.0), np.where(y > 0, 0.0, self.scale)

    def best_score(self, up: float, down: float) -> float:
        return math.log(up) - math.log(down)

    def falling(self, y: Array) -> Array:
        return y

    def inverse_link(self, s: Array) -> Array:
        """The probability of the class +1."""
        return _sigmoid(s)


@dataclass(frozen=True)
class Exponential(MarginLoss):
    """ℓ = e^{−m}: the loss AdaBoost minimises."""

    def value(self, y: Array, s: Array) -> Array:
        return np.exp(-y * s)

    def gradient(self, y: Array, s: Array) -> Array:
        return -y * np.exp(-y * s)

    def hessian(self, y: Array, s: Array) -> Array:
        return np.exp(-y * s)

    def conjugate(self, y: Array, u: Array) -> Array:
        p = -y * u
        return where_finite(p >= 0, xlogx(np.maximum(p, 0.0)) - p)

    def best_score(self, up: float, down: float) -> float:
        return 0.5 * (math.log(up) - math.log(down))

    def falling(self, y: Array) -> Array:
        return y

    def inverse_link(self, s: Array) -> Array:
        """The probability of the class +1: the exponential loss estimates half the log-odds."""
        return _sigmoid(2.0 * s)


@dataclass(frozen=True)
class SquaredMargin(_SquaredDistance):
    """ℓ = (1 − m)² = (y − s)²: least squares on the labels. Also penalises margins above one."""

    piecewise_quadratic: ClassVar[bool] = True
    constant_curvature: ClassVar[bool] = True

    def value(self, y: Array, s: Array) -> Array:
        return (1.0 - y * s) ** 2

    def gradient(self, y: Array, s: Array) -> Array:
        return -2.0 * y * (1.0 - y * s)

    def hessian(self, y: Array, s: Array) -> Array:
        return np.full_like(s, 2.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        return y * u + 0.25 * u**2

    def dual_interval(self, y: Array) -> tuple[float, float]:  # type: ignore[override]
        return -np.inf, np.inf


def _sigmoid(t: Array) -> Array:
    e = np.exp(-np.abs(t))
    return np.where(t >= 0, 1.0, e) / (1.0 + e)
