"""Negative log-likelihoods as losses of the score: half the unit deviance, zero at the saturated fit.

The link is part of the loss: the score s is the linear predictor, and ``inverse_link(s)`` is the mean. The Gaussian
likelihood is :class:`Squared`; :class:`Logistic` is :class:`Bernoulli` for labels −1/+1. For every link the best constant
predicts the mean of the targets: the Bayes predictor of all of these is E[y|x]. Other pairs of distribution and link are in
:mod:`hinge.problem.losses.linked`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from hinge.problem.losses.base import (
    EDGE,
    Array,
    Loss,
    Target,
    conjugate_by_bisection,
    normalise_weights,
    where_finite,
    xlogx,
)
from hinge.problem.numerics import weighted_sum


@dataclass(frozen=True)
class Bernoulli(Loss):
    """ℓ = log(1 + e^s) − y s + y log y + (1 − y) log(1 − y): events, or shares y of them, with probability 1/(1 + e^{−s})."""

    target: ClassVar[Target] = Target.UNIT

    @property
    def curvature(self) -> float:
        return 0.25

    def value(self, y: Array, s: Array) -> Array:
        return np.logaddexp(0.0, s) - y * s + _entropy(y)

    def gradient(self, y: Array, s: Array) -> Array:
        return expit(s) - y

    def hessian(self, y: Array, s: Array) -> Array:
        return expit(s) * expit(-s)

    def conjugate(self, y: Array, u: Array) -> Array:
        p = u + y
        inside = (p >= -1e-12) & (p <= EDGE)
        return where_finite(inside, _entropy(np.clip(p, 0.0, 1.0)) - _entropy(y))

    def dual_interval(self, y: Array) -> tuple[Array, Array]:
        return -y, 1.0 - y

    def falling(self, y: Array) -> Array:
        return np.where(y == 1, 1.0, np.where(y == 0, -1.0, 0.0))

    def inverse_link(self, s: Array) -> Array:
        return expit(s)

    def baseline(self, y: ArrayLike, weight: ArrayLike | None = None) -> float:
        """The logit of the mean."""
        y = np.asarray(y, dtype=np.float64)
        return float(logit(np.clip(weighted_sum(normalise_weights(weight, len(y)), y), 0.0, 1.0)))


@dataclass(frozen=True)
class LogLink(Loss):
    """Base of the likelihoods of nonnegative targets with mean e^s."""

    target: ClassVar[Target] = Target.NONNEGATIVE

    def falling(self, y: Array) -> Array | None:
        """At a target of zero the loss decreases towards a mean of zero, a score of −∞."""
        return np.where(y == 0, -1.0, 0.0)

    def inverse_link(self, s: Array) -> Array:
        return np.exp(s)

    def baseline(self, y: ArrayLike, weight: ArrayLike | None = None) -> float:
        """The logarithm of the mean: the maximum-likelihood constant of all of these."""
        y = np.asarray(y, dtype=np.float64)
        mean = weighted_sum(normalise_weights(weight, len(y)), y)
        return float(np.log(mean)) if mean > 0 else -np.inf


@dataclass(frozen=True)
class Poisson(LogLink):
    """ℓ = e^s − y s + y log y − y: counts with mean e^s."""

    def value(self, y: Array, s: Array) -> Array:
        return np.exp(s) - y * s + xlogx(y) - y

    def gradient(self, y: Array, s: Array) -> Array:
        return np.exp(s) - y

    def hessian(self, y: Array, s: Array) -> Array:
        return np.exp(s)

    def conjugate(self, y: Array, u: Array) -> Array:
        v = u + y
        return where_finite(u >= -y * EDGE, xlogx(np.maximum(v, 0.0)) - np.maximum(v, 0.0) - xlogx(y) + y)

    def dual_interval(self, y: Array) -> tuple[Array, float]:
        return -y, np.inf


@dataclass(frozen=True)
class Gamma(LogLink):
    """ℓ = s + y e^{−s} − log y − 1: positive targets whose standard deviation grows with the mean e^s."""

    target: ClassVar[Target] = Target.POSITIVE

    def falling(self, y: Array) -> None:
        return None

    def value(self, y: Array, s: Array) -> Array:
        return s + y * np.exp(-s) - np.log(y) - 1.0

    def gradient(self, y: Array, s: Array) -> Array:
        return 1.0 - y * np.exp(-s)

    def hessian(self, y: Array, s: Array) -> Array:
        return y * np.exp(-s)

    def conjugate(self, y: Array, u: Array) -> Array:
        v = np.maximum(1.0 - u, 0.0)
        return where_finite(u <= EDGE, xlogx(v) - v * np.log(y) - v + np.log(y) + 1.0)

    def dual_interval(self, y: Array) -> tuple[float, float]:
        return -np.inf, 1.0


@dataclass(frozen=True)
class Tweedie(LogLink):
    """ℓ = y^{2−p}/((1−p)(2−p)) − y e^{(1−p)s}/(1−p) + e^{(2−p)s}/(2−p), 1 < p < 2: amounts with many zeros.

    Parameters
    ----------
    power : float
        p, strictly between 1 (Poisson) and 2 (gamma).
    """

    power: float = 1.5

    def __post_init__(self) -> None:
        if not 1 < self.power < 2:
            raise ValueError(
                f"power must lie strictly between 1 and 2, got {self.power}. "
                "Use Squared() for 0, Poisson() for 1 and Gamma() for 2."
            )

    def value(self, y: Array, s: Array) -> Array:
        a, b = 1.0 - self.power, 2.0 - self.power
        return np.exp(b * s) / b - y * np.exp(a * s) / a + np.asarray(y) ** b / (a * b)

    def gradient(self, y: Array, s: Array) -> Array:
        return np.exp((2.0 - self.power) * s) - y * np.exp((1.0 - self.power) * s)

    def hessian(self, y: Array, s: Array) -> Array:
        a, b = 1.0 - self.power, 2.0 - self.power
        return b * np.exp(b * s) - a * y * np.exp(a * s)

    def conjugate(self, y: Array, u: Array) -> Array:
        """There is no closed form."""
        return np.where((y == 0) & (u < 0), np.inf, conjugate_by_bisection(self, y, u, bound=700.0, steps=120))

    def dual_interval(self, y: Array) -> tuple[Array, float]:
        return np.where(y > 0, -np.inf, 0.0), np.inf


@dataclass(frozen=True)
class NegativeBinomial(LogLink):
    """ℓ = y log y − y s − (y + 1/α) log((1 + αy)/(1 + αe^s)): counts with variance μ + αμ².

    Parameters
    ----------
    alpha : float
        The overdispersion α > 0: the variance is μ + αμ².
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        if not self.alpha > 0:
            raise ValueError(f"alpha must be greater than zero, got {self.alpha}. Use Poisson() for zero.")

    def value(self, y: Array, s: Array) -> Array:
        a = self.alpha
        ratio = np.log1p(a * y) - np.logaddexp(0.0, s + np.log(a))
        return xlogx(y) - y * s - (y + 1.0 / a) * ratio

    def gradient(self, y: Array, s: Array) -> Array:
        mu = np.exp(s)
        return (mu - y) / (1.0 + self.alpha * mu)

    def hessian(self, y: Array, s: Array) -> Array:
        mu = np.exp(s)
        return mu * (1.0 + self.alpha * y) / (1.0 + self.alpha * mu) ** 2

    def conjugate(self, y: Array, u: Array) -> Array:
        v, q = u + y, 1.0 - self.alpha * u
        inside = (u >= -y * EDGE) & (self.alpha * u <= EDGE)
        v, q = np.maximum(v, 0.0), np.maximum(q, 0.0)
        return where_finite(inside, xlogx(v) - xlogx(y) + xlogx(q) / self.alpha)

    def dual_interval(self, y: Array) -> tuple[Array, float]:
        return -y, 1.0 / self.alpha

    @property
    def curvature(self) -> float:
        return np.inf


@dataclass(frozen=True)
class Softmax(Loss):
    """ℓ = −log p_y with p = softmax(s): the categorical likelihood over k classes, s of shape (n, k).

    The conjugate is finite for u = p − e_y with p in the simplex: ℓ* = Σ_j p_j log p_j.
    """

    target: ClassVar[Target] = Target.CLASSES
    outputs: ClassVar[str] = "classes"

    def falling(self, y: Array) -> Array:
        """The loss decreases as the score of the true class increases, without a limit."""
        return np.ones(len(y))

    @property
    def curvature(self) -> float:
        return 0.5  # the largest eigenvalue of diag(p) − pp'

    def value(self, y: Array, s: Array) -> Array:
        shifted = s - s.max(axis=1, keepdims=True)
        return np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(y)), _codes(y)]

    def gradient(self, y: Array, s: Array) -> Array:
        p = self.inverse_link(s)
        p[np.arange(len(y)), _codes(y)] -= 1.0
        return p

    def hessian(self, y: Array, s: Array) -> Array:
        """The diagonal of the k × k second derivative, p(1 − p)."""
        p = self.inverse_link(s)
        return p * (1.0 - p)

    def conjugate(self, y: Array, u: Array) -> Array:
        p = u + _one_hot(y, u.shape[1])
        inside = np.all(p >= -1e-12, axis=1) & (np.abs(p.sum(axis=1) - 1.0) <= 1e-9)
        return where_finite(inside, xlogx(np.maximum(p, 0.0)).sum(axis=1))

    def project_dual(self, y: Array, u: Array) -> Array:
        one_hot = _one_hot(y, u.shape[1])
        p = np.maximum(u + one_hot, 0.0)
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), one_hot) - one_hot

    def inverse_link(self, s: Array) -> Array:
        """The probabilities of the k classes."""
        e = np.exp(s - s.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)


def _entropy(p: Array) -> Array:
    """p log p + (1 − p) log(1 − p)."""
    return xlogx(np.asarray(p)) + xlogx(1.0 - np.asarray(p))


def _codes(y: Array) -> np.ndarray:
    return np.asarray(y).astype(np.intp)


def _one_hot(y: Array, k: int) -> Array:
    return np.eye(k)[_codes(y)]
