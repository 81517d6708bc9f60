"""Separable penalties.

All of them are one function of one weight with different parameters:

    ω(w) = a|w| + (b/2)w²   for  lower ≤ w ≤ upper,   +∞ outside

(a, b ≥ 0, lower ≤ 0 ≤ upper), so its mathematics is implemented once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from hinge.problem.penalties.base import Array, Coordinates, Penalty, check_strength, columnwise


@dataclass(frozen=True)
class CoordinatePenalty(Penalty):
    """Σ_j ω_j(w_j). Subclasses define the four parameters of each feature."""

    def coordinates(self, d: int) -> Coordinates:
        raise NotImplementedError

    def _for(self, w: Array) -> Coordinates:
        return Coordinates(*(columnwise(part, w) for part in self.coordinates(w.shape[0])))

    def _where(self, chosen: np.ndarray) -> Coordinates:
        """The four parameters of the chosen weights, as flat arrays."""
        parts = self._for(chosen)
        if chosen.ndim == 1:
            return Coordinates(*(part[chosen] for part in parts))
        return Coordinates(*(np.broadcast_to(part, chosen.shape)[chosen] for part in parts))

    def value(self, w: Array) -> float:
        a, b, lower, upper = self._for(w)
        if _bends_freely(b, lower, upper):  # the most common case, and the fastest
            with np.errstate(over="ignore"):
                return float(np.sum(a * np.abs(w)) + 0.5 * np.sum(b * w * w))
        used = w != 0  # ω(0) = 0
        w = w[used]
        a, b, lower, upper = self._where(used)
        slack = 1e-9 * (1.0 + np.abs(w))
        if np.any(w < lower - slack) or np.any(w > upper + slack):
            return np.inf
        with np.errstate(over="ignore"):  # weights of features with tiny values may be huge
            return float(np.sum(a * np.abs(w)) + 0.5 * np.sum(np.where(b > 0, b * np.where(b > 0, w, 0.0) ** 2, 0.0)))

    def prox(self, v: Array, step: float) -> Array:
        a, b, lower, upper = self._for(v)
        shrunk = np.sign(v) * np.maximum(np.abs(v) - step * a, 0.0) / (1.0 + step * b)
        return np.clip(shrunk, lower, upper)

    def gradient(self, w: Array) -> Array:
        a, b, _, _ = self._for(w)
        return a * np.sign(w) + b * w

    def conjugate(self, g: Array) -> float:
        a, b, lower, upper = self._for(g)
        if _bends_freely(b, lower, upper):  # the most common case, and the fastest
            excess = np.abs(g)
            excess -= a
            np.maximum(excess, 0.0, out=excess)
            return float(np.sum(excess * excess / (2.0 * b)))
        beyond = np.abs(g) > a  # elsewhere the kink at zero absorbs the gradient
        g = g[beyond]
        a, b, lower, upper = self._where(beyond)
        excess = np.abs(g) - a
        reach = np.where(g > 0, upper, -lower)  # the bound of the weight in the direction of g
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.minimum(np.where(b > 0, excess / np.where(b > 0, b, 1.0), np.inf), reach)
            gain = excess * best - 0.5 * b * best**2
        # Without a bound the supremum is infinite, unless |g| exceeds a only by rounding.
        unlimited = np.where(excess <= 1e-12 * a, 0.0, np.inf)
        return float(np.sum(np.where(np.isposinf(best), unlimited, gain)))

    def conjugate_along(self, g: Array) -> Callable[[float], float]:
        a, b, lower, upper = self._for(g)
        if not np.any(a) and _bends_freely(b, lower, upper):
            value = self.conjugate(g)
            return lambda s: s**2 * value
        return super().conjugate_along(g)

    def dual_scale(self, g: Array) -> float:
        a, b, _, _ = self._for(g)
        if np.all(b > 0):
            return 1.0
        beyond = np.abs(g) > a
        g = g[beyond]
        a, b, lower, upper = self._where(beyond)
        bound = (b == 0) & np.isposinf(np.where(g > 0, upper, -lower))
        return float(np.min(np.where(bound, a / np.abs(g), 1.0), initial=1.0))

    def subdifferential_distance(self, w: Array, g: Array) -> Array:
        a, b, lower, upper = self._for(w)
        pull = -g - b * w  # must be in a·∂|w| plus the normal cone of [lower, upper]
        low = np.where(w > 0, a, -a)
        high = np.where(w < 0, -a, a)
        low = np.where(w <= lower, -np.inf, low)
        high = np.where(w >= upper, np.inf, high)
        return np.maximum(np.maximum(low - pull, pull - high), 0.0)

    def lambda_max(self, g: Array) -> float:
        a, _, lower, upper = self.with_strength(1.0)._for(g)
        moves = np.where(g < 0, upper > 0, lower < 0) & (g != 0)  # whether the weight may move in the direction of −g
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.max(np.where(moves, np.abs(g) / a, 0.0), initial=0.0))


def _bends_freely(b: Array, lower: Array, upper: Array) -> bool:
    """Whether every weight has a squared penalty and no bounds."""
    return bool(np.all(b > 0) and np.all(np.isinf(lower)) and np.all(np.isinf(upper)))


@lru_cache(maxsize=64)
def _same(value: float, d: int) -> Array:
    """One number for all d features, without d copies."""
    return np.broadcast_to(np.float64(value), (d,))


def _features(strength: float, weights: Any, d: int) -> Array:
    if weights is None:
        return _same(strength, d)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (d,):
        raise ValueError(f"weights of the penalty have shape {array.shape}; expected ({d},), one per feature.")
    if np.any(array < 0) or not np.all(np.isfinite(array)):
        raise ValueError("weights of the penalty must be finite and not negative.")
    return strength * array


def _limits(positive: bool, d: int) -> tuple[Array, Array]:
    return _same(0.0 if positive else -np.inf, d), _same(np.inf, d)


@dataclass(frozen=True)
class NoPenalty(CoordinatePenalty):
    """Ω = 0."""

    smooth = True

    def coordinates(self, d: int) -> Coordinates:
        return Coordinates(_same(0.0, d), _same(0.0, d), *_limits(False, d))

    def lambda_max(self, g: Array) -> float:
        return Penalty.lambda_max(self, g)

    def dual_scale(self, g: Array) -> float:
        """Only g = 0 has a finite conjugate; up to rounding there is no useful dual point."""
        return 0.0 if np.any(g != 0) else 1.0


@dataclass(frozen=True)
class L2(CoordinatePenalty):
    """Ω = (λ/2) Σ_j c_j w_j²: ridge, weight decay, a Gaussian prior.

    Parameters
    ----------
    lam : float
        The strength λ.
    weights : array of d numbers, optional
        The factors c_j; 1 if absent. Zero leaves a feature unpenalised.
    positive : bool
        Only w ≥ 0 is allowed.

    Examples
    --------
    >>> L2(2.0).value(np.array([1.0, -3.0]))
    10.0
    """

    lam: float = 1.0
    weights: Any = None
    positive: bool = False

    def __post_init__(self) -> None:
        check_strength(self.lam)

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return not self.positive

    def coordinates(self, d: int) -> Coordinates:
        return Coordinates(_same(0.0, d), _features(self.lam, self.weights, d), *_limits(self.positive, d))


@dataclass(frozen=True)
class L1(CoordinatePenalty):
    """Ω = λ Σ_j c_j |w_j|: the lasso. Optimal weights are exactly zero where the risk's gradient is below λc_j.

    Parameters
    ----------
    lam : float
        The strength λ ≥ 0.
    weights : array of d, optional
        The factors c_j ≥ 0; all 1 by default, and 0 leaves a weight unpenalised.
    positive : bool
        Only weights ≥ 0 are allowed.
    """

    lam: float = 1.0
    weights: Any = None
    positive: bool = False

    def __post_init__(self) -> None:
        check_strength(self.lam)

    def coordinates(self, d: int) -> Coordinates:
        return Coordinates(_features(self.lam, self.weights, d), _same(0.0, d), *_limits(self.positive, d))


@dataclass(frozen=True)
class Elastic(CoordinatePenalty):
    """Ω = λ Σ_j c_j (ρ|w_j| + (1−ρ)/2 · w_j²), with ρ = ``l1_ratio`` between 0 and 1.

    Parameters
    ----------
    lam : float
        The strength λ ≥ 0.
    l1_ratio : float
        The share ρ of the L1 penalty: 1 is the lasso, 0 is ridge.
    weights : array of d, optional
        The factors c_j ≥ 0; all 1 by default, and 0 leaves a weight unpenalised.
    positive : bool
        Only weights ≥ 0 are allowed.
    """

    lam: float = 1.0
    l1_ratio: float = 0.5
    weights: Any = None
    positive: bool = False

    def __post_init__(self) -> None:
        check_strength(self.lam)
        if not 0 <= self.l1_ratio <= 1:
            raise ValueError(f"l1_ratio must lie between 0 and 1, got {self.l1_ratio}.")

    def coordinates(self, d: int) -> Coordinates:
        l1 = _features(self.lam * self.l1_ratio, self.weights, d)
        l2 = _features(self.lam * (1.0 - self.l1_ratio), self.weights, d)
        return Coordinates(l1, l2, *_limits(self.positive, d))


@dataclass(frozen=True)
class Box(CoordinatePenalty):
    """Ω = 0 if lower ≤ w_j ≤ upper for every j, +∞ otherwise. Zero must be allowed.

    Parameters
    ----------
    lower, upper : float or array of d
        The bounds of all weights, or of each: lower ≤ 0 ≤ upper.
    """

    lower: Any = 0.0
    upper: Any = np.inf

    def __post_init__(self) -> None:
        if np.any(np.asarray(self.lower) > 0) or np.any(np.asarray(self.upper) < 0):
            raise ValueError("the box must contain zero: lower ≤ 0 ≤ upper.")

    def coordinates(self, d: int) -> Coordinates:
        lower = np.broadcast_to(np.asarray(self.lower, dtype=np.float64), (d,))
        upper = np.broadcast_to(np.asarray(self.upper, dtype=np.float64), (d,))
        return Coordinates(np.zeros(d), np.zeros(d), lower, upper)

    def lambda_max(self, g: Array) -> float:
        """A constraint has no strength: 0 if w = 0 is optimal, infinity if not."""
        return 0.0 if np.all(self.subdifferential_distance(np.zeros_like(g), g) == 0) else np.inf
