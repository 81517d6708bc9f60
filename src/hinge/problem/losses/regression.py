"""Losses for real targets: functions of the residual r = y − s."""

from __future__ import annotations

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
    weighted_quantile,
    where_finite,
    xlogx,
)
from hinge.problem.numerics import weighted_sum


@dataclass(frozen=True)
class Squared(Loss):
    """ℓ = ½ (s − y)². The Bayes predictor is the mean of y given x. Also the Gaussian likelihood.

    >>> Squared().value(np.array([1.0]), np.array([3.0]))
    array([2.])
    """

    piecewise_quadratic: ClassVar[bool] = True
    constant_curvature: ClassVar[bool] = True

    @property
    def curvature(self) -> float:
        return 1.0

    def value(self, y: Array, s: Array) -> Array:
        return 0.5 * (s - y) ** 2

    def gradient(self, y: Array, s: Array) -> Array:
        return s - y

    def hessian(self, y: Array, s: Array) -> Array:
        return np.ones_like(s)

    def conjugate(self, y: Array, u: Array) -> Array:
        return 0.5 * u**2 + u * y

    def baseline(self, y: ArrayLike, weight: ArrayLike | None = None) -> float:
        y = np.asarray(y, dtype=np.float64)
        return float(weighted_sum(normalise_weights(weight, len(y)), y))


@dataclass(frozen=True)
class _KinkAtTarget(Loss):
    """Two lines that meet at s = y, with the gradients of ``dual_interval``."""

    piecewise_linear: ClassVar[bool] = True
    piecewise_quadratic: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    twice_differentiable: ClassVar[bool] = False

    def hessian(self, y: Array, s: Array) -> Array:
        return np.zeros_like(s)

    def subgradients(self, y: Array, s: Array) -> tuple[Array, Array]:
        low, high = self.dual_interval(y)
        return np.where(s > y, high, low), np.where(s < y, low, high)

    def prox(self, y: Array, v: Array, step: float) -> Array:
        return prox_of_kink(v, y, *self.dual_interval(y), step)


@dataclass(frozen=True)
class Absolute(_KinkAtTarget):
    """ℓ = |s − y|. The Bayes predictor is the median."""

    def value(self, y: Array, s: Array) -> Array:
        return np.abs(s - y)

    def gradient(self, y: Array, s: Array) -> Array:
        return np.sign(s - y)

    def conjugate(self, y: Array, u: Array) -> Array:
        return where_finite(np.abs(u) <= EDGE, u * y)

    def dual_interval(self, y: Array) -> tuple[float, float]:
        return -1.0, 1.0

    def baseline(self, y: ArrayLike, weight: ArrayLike | None = None) -> float:
        y = np.asarray(y, dtype=np.float64)
        return weighted_quantile(y, normalise_weights(weight, len(y)), 0.5)


@dataclass(frozen=True)
class RelativeError(_KinkAtTarget):
    """ℓ = |s − y| / |y|: the error as a fraction of the target, which must not be zero."""

    target: ClassVar[Target] = Target.NONZERO

    def value(self, y: Array, s: Array) -> Array:
        return np.abs(s - y) / np.abs(y)

    def gradient(self, y: Array, s: Array) -> Array:
        return np.sign(s - y) / np.abs(y)

    def conjugate(self, y: Array, u: Array) -> Array:
        return where_finite(np.abs(u * y) <= EDGE, u * y)

    def dual_interval(self, y: Array) -> tuple[Array, Array]:
        return -1.0 / np.abs(y), 1.0 / np.abs(y)

    def baseline(self, y: ArrayLike, weight: ArrayLike | None = None) -> float:
        y = np.asarray(y, dtype=np.float64)
        c = normalise_weights(weight, len(y)) / np.abs(y)
        return weighted_quantile(y, c / c.sum(), 0.5)


@dataclass(frozen=True)
class Huber(Loss):
    """ℓ = r²/2 if |r| ≤ δ, else δ(|r| − δ/2): quadratic near zero, linear in the tails.

    Parameters
    ----------
    delta : float
        δ > 0, in units of y: residuals beyond it count as outliers.
    """

    piecewise_quadratic: ClassVar[bool] = True
    softness: ClassVar[float] = 1.0

    delta: float = 1.35

    def __post_init__(self) -> None:
        if not self.delta > 0:
            raise ValueError(f"delta must be greater than zero, got {self.delta}.")

    @property
    def curvature(self) -> float:
        return 1.0

    def value(self, y: Array, s: Array) -> Array:
        r = np.abs(s - y)
        return np.where(r <= self.delta, 0.5 * r**2, self.delta * (r - 0.5 * self.delta))

    def gradient(self, y: Array, s: Array) -> Array:
        return np.clip(s - y, -self.delta, self.delta)

    def hessian(self, y: Array, s: Array) -> Array:
        return (np.abs(s - y) <= self.delta).astype(np.float64)

    def conjugate(self, y: Array, u: Array) -> Array:
        return where_finite(np.abs(u) <= self.delta * EDGE, 0.5 * u**2 + u * y)

    def dual_interval(self, y: Array) -> tuple[float, float]:
        return -self.delta, self.delta


@dataclass(frozen=True)
class _Insensitive(Loss):
    """A loss of the part of the error beyond ε."""

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise ValueError(f"epsilon must be zero or more, got {self.epsilon}.")


@dataclass(frozen=True)
class EpsilonInsensitive(_Insensitive):
    """ℓ = max(|r| − ε, 0): errors up to ε are free.

    Parameters
    ----------
    epsilon : float
        ε ≥ 0, in units of y: the error that is free.
    """

    piecewise_linear: ClassVar[bool] = True
    piecewise_quadratic: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    twice_differentiable: ClassVar[bool] = False

    def kinks(self, y: Array) -> list[Kink]:
        zero, one = np.zeros_like(y), np.ones_like(y)
        return [Kink(y + self.epsilon, zero, one), Kink(y - self.epsilon, -one, zero)]

    def pieces(self, y: Array) -> Pieces:
        zero, one = np.zeros_like(y), np.ones_like(y)
        return Pieces(np.array([one, -one, zero]), np.array([-y - self.epsilon, y - self.epsilon, zero]), 0.0)

    def value(self, y: Array, s: Array) -> Array:
        return np.maximum(np.abs(s - y) - self.epsilon, 0.0)

    def gradient(self, y: Array, s: Array) -> Array:
        r = s - y
        return np.where(r > self.epsilon, 1.0, np.where(r < -self.epsilon, -1.0, 0.0))

    def hessian(self, y: Array, s: Array) -> Array:
        return np.zeros_like(s)

    def conjugate(self, y: Array, u: Array) -> Array:
        return where_finite(np.abs(u) <= EDGE, u * y + self.epsilon * np.abs(u))

    def dual_interval(self, y: Array) -> tuple[float, float]:
        return -1.0, 1.0

    def subgradients(self, y: Array, s: Array) -> tuple[Array, Array]:
        r = s - y
        low = np.where(r <= -self.epsilon, -1.0, np.where(r <= self.epsilon, 0.0, 1.0))
        high = np.where(r >= self.epsilon, 1.0, np.where(r >= -self.epsilon, 0.0, -1.0))
        return low, high

    def prox(self, y: Array, v: Array, step: float) -> Array:
        r = v - y
        return v - np.sign(r) * np.clip(np.abs(r) - self.epsilon, 0.0, step)


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(_Insensitive):
    """ℓ = max(|r| − ε, 0)².

    Parameters
    ----------
    epsilon : float
        ε ≥ 0, in units of y: the error that is free.
    """

    piecewise_quadratic: ClassVar[bool] = True
    softness: ClassVar[float] = 0.5

    @property
    def curvature(self) -> float:
        return 2.0

    def kinks(self, y: Array) -> list[Kink]:
        zero, infinite = np.zeros_like(y), np.full_like(y, np.inf)
        return [Kink(y + self.epsilon, zero, infinite), Kink(y - self.epsilon, -infinite, zero)]

    def pieces(self, y: Array) -> Pieces:
        return EpsilonInsensitive(self.epsilon).pieces(y)._replace(square=2.0)

    def value(self, y: Array, s: Array) -> Array:
        return np.maximum(np.abs(s - y) - self.epsilon, 0.0) ** 2

    def gradient(self, y: Array, s: Array) -> Array:
        r = s - y
        return 2.0 * (np.maximum(r - self.epsilon, 0.0) - np.maximum(-r - self.epsilon, 0.0))

    def hessian(self, y: Array, s: Array) -> Array:
        return np.where(np.abs(s - y) > self.epsilon, 2.0, 0.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        return u * y + self.epsilon * np.abs(u) + 0.25 * u**2


@dataclass(frozen=True)
class Quantile(_KinkAtTarget):
    """ℓ = τ r if r ≥ 0, else (τ − 1) r, with r = y − s. The Bayes predictor is the τ-quantile of y given x.

    Parameters
    ----------
    quantile : float
        τ, strictly between 0 and 1; ½ is the median.
    """

    quantile: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.quantile < 1:
            raise ValueError(f"quantile must lie strictly between 0 and 1, got {self.quantile}.")

    def value(self, y: Array, s: Array) -> Array:
        r = y - s
        return np.where(r >= 0, self.quantile * r, (self.quantile - 1.0) * r)

    def gradient(self, y: Array, s: Array) -> Array:
        return np.where(s > y, 1.0 - self.quantile, np.where(s < y, -self.quantile, 0.0))

    def conjugate(self, y: Array, u: Array) -> Array:
        return where_finite((u >= -self.quantile * EDGE) & (u <= (1.0 - self.quantile) * EDGE), u * y)

    def dual_interval(self, y: Array) -> tuple[float, float]:
        return -self.quantile, 1.0 - self.quantile

    def baseline(self, y: ArrayLike, weight: ArrayLike | None = None) -> float:
        y = np.asarray(y, dtype=np.float64)
        return weighted_quantile(y, normalise_weights(weight, len(y)), self.quantile)


@dataclass(frozen=True)
class LogCosh(Loss):
    """ℓ = log cosh(s − y): like ½r² near zero, like |r| − log 2 far away, smooth everywhere."""

    @property
    def curvature(self) -> float:
        return 1.0

    def value(self, y: Array, s: Array) -> Array:
        r = np.abs(s - y)
        return r + np.log1p(np.exp(-2.0 * r)) - np.log(2.0)

    def gradient(self, y: Array, s: Array) -> Array:
        return np.tanh(s - y)

    def hessian(self, y: Array, s: Array) -> Array:
        e = np.exp(-2.0 * np.abs(s - y))
        return 4.0 * e / (1.0 + e) ** 2

    def conjugate(self, y: Array, u: Array) -> Array:
        inside = np.abs(u) <= EDGE
        v = np.clip(u, -1.0, 1.0)
        return where_finite(inside, v * y + 0.5 * (xlogx(1.0 + v) + xlogx(1.0 - v)))

    def dual_interval(self, y: Array) -> tuple[float, float]:
        return -1.0, 1.0
