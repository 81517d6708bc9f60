"""Links between the mean μ of a distribution and the score s of a linear predictor, s = g(μ).

Every link is smooth and monotone on an open interval of scores. Links to probabilities define the logarithms of both
F(s) = μ and G(s) = 1 − μ and their derivatives, so that likelihoods are accurate in both tails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_ndtr, logit, ndtr, ndtri

Array = NDArray[np.float64]
Interval = tuple[float, float]
REALS: Interval = (-math.inf, math.inf)
POSITIVE: Interval = (0.0, math.inf)
UNIT: Interval = (0.0, 1.0)


@dataclass(frozen=True)
class Link:
    """Base class: g, its inverse, and two derivatives of the inverse."""

    name: ClassVar[str] = ""
    scores: ClassVar[Interval] = REALS  # the domain of the inverse (an open interval)
    means: ClassVar[Interval] = REALS  # the range of the inverse

    def link(self, mean: Any) -> Any:
        """s = g(μ)."""
        raise NotImplementedError

    def inverse(self, s: Array) -> Array:
        """μ = g⁻¹(s)."""
        raise NotImplementedError

    def derivative(self, s: Array) -> Array:
        """dμ/ds."""
        raise NotImplementedError

    def second_derivative(self, s: Array) -> Array:
        """d²μ/ds²."""
        raise NotImplementedError


@dataclass(frozen=True)
class PowerLink(Link):
    """s = μ^p: the identity for p = 1, the inverse for −1, the square root for ½. For p = 0 there is ``LogLink``.

    Parameters
    ----------
    power : float
        The exponent p ≠ 0. Unless p = 1, scores and means are positive.
    """

    power: float = 1.0

    def __post_init__(self) -> None:
        if self.power == 0 or not math.isfinite(self.power):
            raise ValueError(f"power must be finite and not zero, got {self.power!r}; use link='log' for zero.")

    @property
    def name(self) -> str:  # type: ignore[override]
        return {1.0: "identity", -1.0: "inverse", -2.0: "inverse-squared", 0.5: "sqrt"}.get(
            float(self.power), f"power {self.power:g}"
        )

    @property
    def scores(self) -> Interval:  # type: ignore[override]
        return REALS if self.power == 1 else POSITIVE

    @property
    def means(self) -> Interval:  # type: ignore[override]
        return self.scores

    def link(self, mean: Any) -> Any:
        return mean if self.power == 1 else np.power(mean, self.power)

    def inverse(self, s: Array) -> Array:
        return s if self.power == 1 else np.power(s, 1.0 / self.power)

    def derivative(self, s: Array) -> Array:
        return np.ones_like(s) if self.power == 1 else np.power(s, 1.0 / self.power - 1.0) / self.power

    def second_derivative(self, s: Array) -> Array:
        if self.power == 1:
            return np.zeros_like(s)
        q = 1.0 / self.power
        return q * (q - 1.0) * np.power(s, q - 2.0)


@dataclass(frozen=True)
class LogLink(Link):
    """s = log μ."""

    name: ClassVar[str] = "log"
    means: ClassVar[Interval] = POSITIVE

    def link(self, mean: Any) -> Any:
        return np.log(mean)

    def inverse(self, s: Array) -> Array:
        return np.exp(s)

    def derivative(self, s: Array) -> Array:
        return np.exp(s)

    def second_derivative(self, s: Array) -> Array:
        return np.exp(s)


@dataclass(frozen=True)
class ProbabilityLink(Link):
    """A link whose inverse is a distribution function F; G = 1 − F."""

    means: ClassVar[Interval] = UNIT
    log_concave: ClassVar[bool] = True  # of F and of G

    def log_both(self, s: Array) -> tuple[Array, Array]:
        """log F(s) and log G(s)."""
        raise NotImplementedError

    def derivatives(self, s: Array) -> tuple[Array, Array]:
        """F'/F and −G'/G, both ≥ 0."""
        raise NotImplementedError

    def second_derivatives(self, s: Array) -> tuple[Array, Array]:
        """−(log F)'' and −(log G)'', both ≥ 0 if the link is log-concave."""
        raise NotImplementedError

    def derivative(self, s: Array) -> Array:
        return self.inverse(s) * self.derivatives(s)[0]

    def second_derivative(self, s: Array) -> Array:
        rate = self.derivatives(s)[0]
        return self.inverse(s) * (rate**2 - self.second_derivatives(s)[0])


@dataclass(frozen=True)
class LogitLink(ProbabilityLink):
    """s = log μ/(1 − μ): the log-odds."""

    name: ClassVar[str] = "logit"

    def link(self, mean: Any) -> Any:
        return logit(mean)

    def inverse(self, s: Array) -> Array:
        return expit(s)

    def log_both(self, s: Array) -> tuple[Array, Array]:
        return log_expit(s), log_expit(-s)

    def derivatives(self, s: Array) -> tuple[Array, Array]:
        return expit(-s), expit(s)

    def second_derivatives(self, s: Array) -> tuple[Array, Array]:
        h = expit(s) * expit(-s)
        return h, h


@dataclass(frozen=True)
class ProbitLink(ProbabilityLink):
    """s = Φ⁻¹(μ)."""

    name: ClassVar[str] = "probit"

    def link(self, mean: Any) -> Any:
        return ndtri(mean)

    def inverse(self, s: Array) -> Array:
        return ndtr(s)

    def log_both(self, s: Array) -> tuple[Array, Array]:
        return log_ndtr(s), log_ndtr(-s)

    def derivatives(self, s: Array) -> tuple[Array, Array]:
        log_density = -0.5 * s * s - 0.5 * math.log(2.0 * math.pi)
        return np.exp(log_density - log_ndtr(s)), np.exp(log_density - log_ndtr(-s))

    def second_derivatives(self, s: Array) -> tuple[Array, Array]:
        f, g = self.derivatives(s)
        return np.maximum(f * (f + s), 0.0), np.maximum(g * (g - s), 0.0)


@dataclass(frozen=True)
class CLogLogLink(ProbabilityLink):
    """s = log(−log(1 − μ)): the probability of at least one event of a Poisson process with rate e^s."""

    name: ClassVar[str] = "cloglog"

    def link(self, mean: Any) -> Any:
        return np.log(-np.log1p(-mean))

    def inverse(self, s: Array) -> Array:
        return -np.expm1(-np.exp(s))

    def log_both(self, s: Array) -> tuple[Array, Array]:
        t = np.exp(s)
        return np.where(s < -30.0, s - 0.5 * t, np.log(-np.expm1(-np.maximum(t, 1e-300)))), -t

    def derivatives(self, s: Array) -> tuple[Array, Array]:
        t = np.exp(s)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return np.where(t < 1e-8, 1.0 - 0.5 * t, np.where(t > 700.0, 0.0, t / np.expm1(t))), t

    def second_derivatives(self, s: Array) -> tuple[Array, Array]:
        t = np.exp(s)
        rate = self.derivatives(s)[0]
        return np.where(t < 1e-4, 0.5 * t, np.maximum(rate * (t + rate - 1.0), 0.0)), t


@dataclass(frozen=True)
class LogLogLink(ProbabilityLink):
    """s = −log(−log μ): the mirror image of the complementary log-log link."""

    name: ClassVar[str] = "loglog"

    def link(self, mean: Any) -> Any:
        return -np.log(-np.log(mean))

    def inverse(self, s: Array) -> Array:
        return np.exp(-np.exp(-s))

    def log_both(self, s: Array) -> tuple[Array, Array]:
        return CLogLogLink().log_both(-s)[::-1]

    def derivatives(self, s: Array) -> tuple[Array, Array]:
        return CLogLogLink().derivatives(-s)[::-1]

    def second_derivatives(self, s: Array) -> tuple[Array, Array]:
        return CLogLogLink().second_derivatives(-s)[::-1]


@dataclass(frozen=True)
class CauchitLink(ProbabilityLink):
    """s = tan(π(μ − ½)): heavy tails, so that single outliers have little influence. Not log-concave."""

    name: ClassVar[str] = "cauchit"
    log_concave: ClassVar[bool] = False

    def link(self, mean: Any) -> Any:
        return np.tan(np.pi * (np.asarray(mean) - 0.5))

    def inverse(self, s: Array) -> Array:
        return np.arctan2(1.0, -s) / np.pi

    def log_both(self, s: Array) -> tuple[Array, Array]:
        return np.log(self.inverse(s)), np.log(self.inverse(-s))

    def derivatives(self, s: Array) -> tuple[Array, Array]:
        density = 1.0 / (np.pi * (1.0 + s * s))
        return density / self.inverse(s), density / self.inverse(-s)

    def second_derivatives(self, s: Array) -> tuple[Array, Array]:
        f, g = self.derivatives(s)
        shrink = 2.0 * s / (1.0 + s * s)
        return f * (f + shrink), g * (g - shrink)


LINKS: dict[str, Link] = {
    "identity": PowerLink(1.0),
    "log": LogLink(),
    "logit": LogitLink(),
    "probit": ProbitLink(),
    "cloglog": CLogLogLink(),
    "loglog": LogLogLink(),
    "cauchit": CauchitLink(),
    "inverse": PowerLink(-1.0),
    "inverse-squared": PowerLink(-2.0),
    "sqrt": PowerLink(0.5),
}


def as_link(link: Any) -> Link:
    """The link with this name or this exponent, or the link itself."""
    if isinstance(link, Link):
        return link
    if isinstance(link, int | float) and not isinstance(link, bool):
        return LogLink() if link == 0 else PowerLink(float(link))
    if isinstance(link, str) and link.replace("_", "-") in LINKS:
        return LINKS[link.replace("_", "-")]
    raise ValueError(f"link={link!r} is unknown; choose one of {', '.join(LINKS)}, or a number for a power.")
