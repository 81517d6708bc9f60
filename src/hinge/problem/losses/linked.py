"""Likelihoods for any pair of distribution and link.

    ℓ(y, s) = ½ d(y, μ),   μ = g⁻¹(s),   ℓ' = −(y − μ) μ'/V(μ)
    ℓ'' = μ'²/V + (y − μ)(V' μ'²/V² − μ''/V),   with expectation μ'²/V, the Fisher information of one example

Pairs with a compiled loss use that one (:func:`likelihood_loss`); the others are composed here. If ℓ is convex in s,
``hessian`` is ℓ''. Otherwise it is the Fisher information, which is never negative; Newton's method is then Fisher
scoring, and the certificate of a fit is a stationarity residual. Scores whose mean is outside the distribution's domain
have the loss +∞.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlog1py, xlogy

from hinge.problem.distributions import (
    Binomial,
    Distribution,
    GammaAmounts,
    Gaussian,
    NegativeBinomialCounts,
    PoissonCounts,
    Tweedie,
)
from hinge.problem.links import Link, LogitLink, LogLink, PowerLink, ProbabilityLink
from hinge.problem.losses import likelihood
from hinge.problem.losses.base import Array, Loss, Target, conjugate_by_bisection, normalise_weights
from hinge.problem.losses.regression import Squared
from hinge.problem.numerics import weighted_sum


@dataclass(frozen=True)
class Linked(Loss):
    """Half the unit deviance of a distribution, as a function of the score under a link."""

    distribution: Distribution
    link: Link

    fisher = True  # `hessian` is the Fisher information where it is not the second derivative

    @property
    def target(self) -> Target:  # type: ignore[override]
        return self.distribution.target

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """Whether the loss is known to be convex; see the cases below."""
        d, g = self.distribution, self.link
        if isinstance(g, PowerLink):
            if isinstance(d, Binomial):
                return 0.0 < g.power <= 1.0  # −log μ and −log(1 − μ), of s^{1/q}
            return (power := _variance_power(d)) is not None and _convex_in_power(power, g.power)
        return isinstance(g, LogLink) and (
            isinstance(d, Binomial | NegativeBinomialCounts) or 1.0 <= (_variance_power(d) or 0.0) <= 2.0
        )

    @property
    def has_conjugate(self) -> bool:  # type: ignore[override]
        return False

    def params(self) -> tuple[float, ...]:
        return ()

    def inside(self, s: Array) -> np.ndarray:
        """Whether the mean of each score is in the distribution's domain."""
        low, high = self.link.scores
        ok = (s > low) & (s < high)
        low, high = self.distribution.means
        if self.link.means[0] < low or self.link.means[1] > high:
            mean = self.link.inverse(np.where(ok, s, self._safe()))
            ok &= (mean > low) & (mean < high)
        return ok

    def _safe(self) -> float:
        """A score inside the domain."""
        mean = 0.5 if self.distribution.means[1] == 1.0 or self.link.means[1] == 1.0 else 1.0
        return float(self.link.link(mean))

    def _means(self, s: Array) -> tuple[np.ndarray, Array, Array]:
        """Whether s is inside, s with safe values elsewhere, and the means, moved off the ends of their interval by rounding."""
        s = np.asarray(s, dtype=np.float64)
        ok = self.inside(s)
        s = np.where(ok, s, self._safe())
        low, high = self.distribution.means
        top = 1.0 - 1e-16 if high == 1.0 else 1e300
        return ok, s, np.clip(self.link.inverse(s), 1e-300 if low == 0.0 else -np.inf, top)

    def value(self, y: Array, s: Array) -> Array:
        ok, _, mean = self._means(s)
        return np.where(ok, self.distribution.half_deviance(y, mean), np.inf)

    def gradient(self, y: Array, s: Array) -> Array:
        ok, s, mean = self._means(s)
        return np.where(ok, (mean - y) * self.link.derivative(s) / self.distribution.variance(mean), np.nan)

    def information(self, s: Array) -> Array:
        """μ'²/V(μ): the expectation of ℓ'' over y."""
        _, s, mean = self._means(s)
        return self.link.derivative(s) ** 2 / self.distribution.variance(mean)

    def second_derivative(self, y: Array, s: Array) -> Array:
        """ℓ'', which may be negative."""
        _, s, mean = self._means(s)
        derivative, v = self.link.derivative(s), self.distribution.variance(mean)
        change = self.distribution.variance_derivative(mean) * derivative**2 / v**2 - self.link.second_derivative(s) / v
        return derivative**2 / v + (y - mean) * change

    def hessian(self, y: Array, s: Array) -> Array:
        return np.maximum(self.second_derivative(y, s), 0.0) if self.convex else self.information(s)

    def falling(self, y: Array) -> Array | None:
        """With the log link the loss of a nonpositive target decreases towards −∞; other links reach all means."""
        return np.where(y <= 0, -1.0, 0.0) if self.link.name == "log" and np.any(y <= 0) else None

    def inverse_link(self, s: Array) -> Array:
        return self.link.inverse(s)

    def baseline(self, y: ArrayLike, weight: ArrayLike | None = None) -> float:
        """The link of the mean, because ℓ' is μ − y times a factor that does not depend on y."""
        y = np.asarray(y, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(self.link.link(weighted_sum(normalise_weights(weight, len(y)), y)))

    def score_span(self, y: Array) -> float:
        return 1e3 if self.target is Target.UNIT else super().score_span(y)

    def __repr__(self) -> str:
        return f"Linked({self.distribution.name}, {self.link.name})"


def _variance_power(distribution: Distribution) -> float | None:
    """p if V = μ^p; None for other variances."""
    if isinstance(distribution, Tweedie):
        return distribution.power
    powers = {Gaussian: 0.0, PoissonCounts: 1.0, GammaAmounts: 2.0}
    return powers.get(type(distribution))


def _convex_in_power(p: float, q: float) -> bool:
    """Whether −y μ^{1−p}/(1−p) + μ^{2−p}/(2−p) is convex in s > 0 for all targets y, when μ = s^{1/q}.

    s^e is convex for e ≤ 0 and e ≥ 1 and concave between; at p = 1 and p = 2 one of the powers is a logarithm.
    """
    e, f = (1.0 - p) / q, (2.0 - p) / q
    if p < 1.0:  # targets of either sign, so the first term must be linear
        return e == 1.0
    if p == 1.0:
        return 0.0 < q <= 1.0
    if p == 2.0:
        return -1.0 <= q < 0.0
    outside = e <= 0.0 or e >= 1.0
    return outside and ((f <= 0.0 or f >= 1.0) if p < 2.0 else 0.0 <= f <= 1.0)


@dataclass(frozen=True, repr=False)
class LinkedProbability(Linked):
    """Bernoulli targets under a distribution function F: ℓ = −y log F(s) − (1 − y) log G(s) + y log y + (1−y) log(1−y)."""

    link: ProbabilityLink

    @property
    def convex(self) -> bool:  # type: ignore[override]
        return self.link.log_concave

    @property
    def has_conjugate(self) -> bool:  # type: ignore[override]
        return self.convex

    def value(self, y: Array, s: Array) -> Array:
        f, g = self.link.log_both(s)
        return xlogy(y, y) + xlog1py(1.0 - y, -y) - y * f - (1.0 - y) * g

    def gradient(self, y: Array, s: Array) -> Array:
        f, g = self.link.derivatives(s)
        return (1.0 - y) * g - y * f

    def falling(self, y: Array) -> Array:
        return np.where(y == 1, 1.0, np.where(y == 0, -1.0, 0.0))

    def information(self, s: Array) -> Array:
        f, g = self.link.derivatives(s)
        return f * g  # F'²/(F G), as F' = −G'

    def second_derivative(self, y: Array, s: Array) -> Array:
        f, g = self.link.second_derivatives(s)
        return y * f + (1.0 - y) * g

    def conjugate(self, y: Array, u: Array) -> Array:
        """There is no closed form."""
        low, high = self.dual_interval(y)
        return np.where((u < low) | (u > high), np.inf, conjugate_by_bisection(self, y, u, bound=600.0, steps=80))

    def dual_interval(self, y: Array) -> tuple[Array, Array]:
        """The limits of ℓ': that of −(1−y) log G at −∞ is zero, that of −y log F is −y times the limit of F'/F."""
        y = np.asarray(y, dtype=np.float64)
        with np.errstate(all="ignore"):
            f, g = self.link.derivatives(np.array([-1e3]))[0][0], self.link.derivatives(np.array([1e3]))[1][0]
            low = np.where(y > 0, -y * (f if f <= 1.0 + 1e-9 else np.inf), 0.0)
            return low, np.where(y < 1, (1.0 - y) * (g if g <= 1.0 + 1e-9 else np.inf), 0.0)


def likelihood_loss(distribution: Distribution, link: Link) -> Loss:
    """The loss of a distribution and a link; a compiled one if it exists."""
    if isinstance(distribution, Binomial) and isinstance(link, LogitLink):
        return likelihood.Bernoulli()
    if isinstance(distribution, Gaussian) and isinstance(link, PowerLink) and link.power == 1.0:
        return Squared()
    if isinstance(link, LogLink):
        native = _with_log_link(distribution)
        if native is not None:
            return native
    if isinstance(distribution, Binomial) and isinstance(link, ProbabilityLink):
        return LinkedProbability(distribution, link)
    return Linked(distribution, link)


def _with_log_link(distribution: Distribution) -> Any:
    if isinstance(distribution, PoissonCounts):
        return likelihood.Poisson()
    if isinstance(distribution, GammaAmounts):
        return likelihood.Gamma()
    if isinstance(distribution, NegativeBinomialCounts):
        return likelihood.NegativeBinomial(distribution.alpha)
    if isinstance(distribution, Tweedie) and 1.0 < distribution.power < 2.0:
        return likelihood.Tweedie(distribution.power)
    return None
