"""Distributions of generalised linear models: exponential dispersion families with variance φ V(μ).

The unit deviance d(y, μ) = 2 ∫_μ^y (y − t)/V(t) dt is zero at μ = y, and half of it is the loss: minimising it over μ
maximises the likelihood for any dispersion φ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.optimize
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, xlog1py, xlogy

from hinge.problem.links import POSITIVE, REALS, UNIT, Interval
from hinge.problem.losses import likelihood
from hinge.problem.losses.base import Loss, Target
from hinge.problem.losses.regression import Squared
from hinge.problem.numerics import weighted_sum
from hinge.problem.tweedie_series import log_series

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Distribution:
    """Base class: V(μ), the unit deviance, the log-likelihood, and the estimate of φ."""

    name: ClassVar[str] = ""
    target: ClassVar[Target] = Target.REAL
    means: ClassVar[Interval] = REALS
    default_link: ClassVar[str] = "log"
    unit_dispersion: ClassVar[bool] = False  # φ = 1: the variance is a function of the mean

    def variance(self, mean: Array) -> Array:
        """V(μ)."""
        raise NotImplementedError

    def variance_derivative(self, mean: Array) -> Array:
        """V'(μ)."""
        raise NotImplementedError

    def half_deviance(self, y: Array, mean: Array) -> Array:
        """½ d(y, μ)."""
        raise NotImplementedError

    def log_likelihood(self, y: Array, mean: Array, dispersion: float) -> Array:
        """log p(y | μ, φ) of every example; NaN if the density has no closed form."""
        return np.full(np.shape(y), np.nan)

    def best_dispersion(self, y: Array, mean: Array, c: Array) -> float:
        """The φ of maximum likelihood, for weights c that sum to one."""
        return self.dispersion_of(float(weighted_sum(c, self.half_deviance(y, mean))))

    def dispersion_of(self, half_deviance: float) -> float:
        """The same from the mean of the half deviances: the mean deviance where that is it."""
        return 2.0 * half_deviance


@dataclass(frozen=True)
class Gaussian(Distribution):
    """Real targets, V = 1."""

    name: ClassVar[str] = "gaussian"
    default_link: ClassVar[str] = "identity"

    def variance(self, mean: Array) -> Array:
        return np.ones_like(mean)

    def variance_derivative(self, mean: Array) -> Array:
        return np.zeros_like(mean)

    def half_deviance(self, y: Array, mean: Array) -> Array:
        return 0.5 * (y - mean) ** 2

    def log_likelihood(self, y: Array, mean: Array, dispersion: float) -> Array:
        return -0.5 * ((y - mean) ** 2 / dispersion + math.log(2.0 * math.pi * dispersion))


@dataclass(frozen=True)
class Binomial(Distribution):
    """Events (0 or 1) or proportions of events, V = μ(1 − μ); a proportion of m trials is an example of weight m."""

    name: ClassVar[str] = "bernoulli"
    target: ClassVar[Target] = Target.UNIT
    means: ClassVar[Interval] = UNIT
    default_link: ClassVar[str] = "logit"
    unit_dispersion: ClassVar[bool] = True

    def variance(self, mean: Array) -> Array:
        return mean * (1.0 - mean)

    def variance_derivative(self, mean: Array) -> Array:
        return 1.0 - 2.0 * mean

    def half_deviance(self, y: Array, mean: Array) -> Array:
        saturated = xlogy(y, y) + xlog1py(1.0 - y, -y)
        return saturated - xlogy(y, mean) - xlog1py(1.0 - y, -mean)

    def log_likelihood(self, y: Array, mean: Array, dispersion: float) -> Array:
        return xlogy(y, mean) + xlog1py(1.0 - y, -mean)


@dataclass(frozen=True)
class PoissonCounts(Distribution):
    """Counts, V = μ."""

    name: ClassVar[str] = "poisson"
    target: ClassVar[Target] = Target.NONNEGATIVE
    means: ClassVar[Interval] = POSITIVE
    unit_dispersion: ClassVar[bool] = True

    def variance(self, mean: Array) -> Array:
        return mean

    def variance_derivative(self, mean: Array) -> Array:
        return np.ones_like(mean)

    def half_deviance(self, y: Array, mean: Array) -> Array:
        return xlogy(y, y / mean) - y + mean

    def log_likelihood(self, y: Array, mean: Array, dispersion: float) -> Array:
        return xlogy(y, mean) - mean - gammaln(y + 1.0)


@dataclass(frozen=True)
class NegativeBinomialCounts(Distribution):
    """Counts, V = μ + αμ²: Poisson counts whose means vary by a gamma distribution of shape θ = 1/α."""

    alpha: float = 1.0

    name: ClassVar[str] = "negative-binomial"
    target: ClassVar[Target] = Target.NONNEGATIVE
    means: ClassVar[Interval] = POSITIVE
    unit_dispersion: ClassVar[bool] = True

    def __post_init__(self) -> None:
        likelihood.NegativeBinomial(self.alpha)  # checks alpha

    def variance(self, mean: Array) -> Array:
        return mean + self.alpha * mean**2

    def variance_derivative(self, mean: Array) -> Array:
        return 1.0 + 2.0 * self.alpha * mean

    def half_deviance(self, y: Array, mean: Array) -> Array:
        shape = y + 1.0 / self.alpha
        return xlogy(y, y / mean) - shape * (np.log1p(self.alpha * y) - np.log1p(self.alpha * mean))

    def log_likelihood(self, y: Array, mean: Array, dispersion: float) -> Array:
        theta = 1.0 / self.alpha
        combinations = gammaln(y + theta) - gammaln(theta) - gammaln(y + 1.0)
        return combinations + xlogy(y, self.alpha * mean) - (y + theta) * np.log1p(self.alpha * mean)


@dataclass(frozen=True)
class GammaAmounts(Distribution):
    """Positive targets, V = μ²."""

    name: ClassVar[str] = "gamma"
    target: ClassVar[Target] = Target.POSITIVE
    means: ClassVar[Interval] = POSITIVE

    def variance(self, mean: Array) -> Array:
        return mean**2

    def variance_derivative(self, mean: Array) -> Array:
        return 2.0 * mean

    def half_deviance(self, y: Array, mean: Array) -> Array:
        return y / mean - 1.0 - np.log(y / mean)

    def log_likelihood(self, y: Array, mean: Array, dispersion: float) -> Array:
        shape = 1.0 / dispersion
        return shape * np.log(shape * y / mean) - shape * y / mean - np.log(y) - gammaln(shape)

    def dispersion_of(self, half_deviance: float) -> float:
        """1/k with log k − ψ(k) = ½ mean deviance, the likelihood equation of the shape k."""
        half = half_deviance
        if half <= 1e-12:
            return max(2.0 * half, 1e-300)
        low, high = 1e-3 / (1.0 + half), 10.0 + 1.0 / half
        return 1.0 / float(scipy.optimize.brentq(lambda k: np.log(k) - digamma(k) - half, low, high, rtol=1e-12))


@dataclass(frozen=True)
class Tweedie(Distribution):
    """V = μ^p. 1 < p < 2: amounts with many zeros; p = 3 is the inverse Gaussian; p < 0: real targets, positive mean."""

    power: float = 1.5

    def __post_init__(self) -> None:
        if not math.isfinite(self.power) or 0 < self.power < 1 or self.power in (0, 1, 2):
            raise ValueError(
                f"power must not lie between 0 and 1 (no such distribution exists), got {self.power!r}; 0, 1 and 2 are "
                "the Gaussian, the Poisson and the gamma distribution."
            )

    @property
    def name(self) -> str:  # type: ignore[override]
        return "inverse-gaussian" if self.power == 3 else "tweedie"

    @property
    def target(self) -> Target:  # type: ignore[override]
        if self.power < 0:
            return Target.REAL
        return Target.NONNEGATIVE if self.power < 2 else Target.POSITIVE

    means: ClassVar[Interval] = POSITIVE

    def variance(self, mean: Array) -> Array:
        return mean**self.power

    def variance_derivative(self, mean: Array) -> Array:
        return self.power * mean ** (self.power - 1.0)

    def half_deviance(self, y: Array, mean: Array) -> Array:
        a, b = 1.0 - self.power, 2.0 - self.power
        saturated = np.maximum(y, 0.0) ** b / (a * b)
        return saturated - y * mean**a / a + mean**b / b

    @property
    def compound(self) -> bool:
        """Whether this is a sum of a Poisson number of gamma amounts: 1 < p < 2."""
        return 1.0 < self.power < 2.0

    def log_likelihood(self, y: Array, mean: Array, dispersion: float) -> Array:
        """log p(y | μ, φ). For 1 < p < 2 the atom at zero is exp(−μ^{2−p}/((2−p)φ)), and for y > 0 the density is

            W(ρ, z)/y · exp((yμ^{1−p}/(1−p) − μ^{2−p}/(2−p))/φ),   ρ = (2−p)/(p−1),
            z = (y/(p−1))^ρ / ((2−p) φ^{1+ρ}),

        with the series W of :mod:`hinge.problem.tweedie_series`. nan for p > 2 other than 3, and for p < 0.
        """
        if self.compound:
            a, b, rho = self.power - 1.0, 2.0 - self.power, (2.0 - self.power) / (self.power - 1.0)
            mean = np.broadcast_to(mean, np.shape(y))
            exponent = (-y * mean**-a / a - mean**b / b) / dispersion
            at = y > 0
            log_z = rho * np.log(y[at] / a) - math.log(b) - (1.0 + rho) * math.log(dispersion)
            exponent[at] += log_series(rho, log_z) - np.log(y[at])
            return exponent
        if self.power != 3:
            return super().log_likelihood(y, mean, dispersion)
        return -self.half_deviance(y, mean) / dispersion - 0.5 * np.log(2.0 * math.pi * dispersion * y**3)

    def best_dispersion(self, y: Array, mean: Array, c: Array) -> float:
        """For 1 < p < 2, by a search over log φ around the estimate from the variance."""
        start = float(weighted_sum(c, (y - mean) ** 2 / self.variance(mean)))
        if not self.compound or not start > 0 or not np.any(y > 0):
            return super().best_dispersion(y, mean, c)

        def loss(log_phi: float) -> float:
            return -float(weighted_sum(c, self.log_likelihood(y, mean, math.exp(log_phi))))

        found = scipy.optimize.minimize_scalar(
            loss, bounds=(math.log(start) - 4.0, math.log(start) + 4.0), method="bounded", options={"xatol": 1e-7}
        )
        return math.exp(float(found.x))


DISTRIBUTIONS: dict[str, Any] = {
    "gaussian": Gaussian(),
    "normal": Gaussian(),
    "bernoulli": Binomial(),
    "binomial": Binomial(),
    "poisson": PoissonCounts(),
    "gamma": GammaAmounts(),
    "inverse-gaussian": Tweedie(3.0),
    "tweedie": Tweedie(1.5),
    "negative-binomial": NegativeBinomialCounts(1.0),
}


def tweedie(power: float) -> Distribution:
    """The member of the Tweedie family with variance μ^power."""
    named: dict[float, Distribution] = {0.0: Gaussian(), 1.0: PoissonCounts(), 2.0: GammaAmounts()}
    return named.get(float(power)) or Tweedie(float(power))


def as_distribution(distribution: Any) -> Distribution:
    """The distribution with this name or this likelihood loss, or the distribution itself."""
    if isinstance(distribution, Distribution):
        return distribution
    if isinstance(distribution, str) and distribution.replace("_", "-") in DISTRIBUTIONS:
        return DISTRIBUTIONS[distribution.replace("_", "-")]
    if isinstance(distribution, likelihood.Tweedie):
        return Tweedie(distribution.power)
    if isinstance(distribution, likelihood.NegativeBinomial):
        return NegativeBinomialCounts(distribution.alpha)
    for kind, member in _LOSSES:
        if isinstance(distribution, kind):
            return member
    raise ValueError(
        f"distribution={distribution!r} is unknown; choose one of {', '.join(DISTRIBUTIONS)}, or a "
        "likelihood such as hg.Tweedie(1.5) or hg.NegativeBinomial(0.5). For classes use LogisticRegression."
    )


_LOSSES: tuple[tuple[type[Loss], Distribution], ...] = (
    (Squared, Gaussian()),
    (likelihood.Bernoulli, Binomial()),
    (likelihood.Poisson, PoissonCounts()),
    (likelihood.Gamma, GammaAmounts()),
)
