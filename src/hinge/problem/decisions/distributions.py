"""Distributions of posteriors and predictions, as small immutable objects.

Parameters may be arrays: one object then holds one distribution per entry, and all methods are vectorised. ``nodes`` returns
points and weights with E g(Y) ≈ Σ weight·g(point), exact for discrete distributions; numerical Bayes actions use only these.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import scipy.special
import scipy.stats
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

# Points of the quadrature. The rule is spectrally accurate for smooth losses; with kinks its error is about 1/NODES².
NODES = 801
# Probability left out at either end of the quadrature.
TAIL = 1e-16


@dataclass(frozen=True, eq=False)
class Distribution:
    """Base class: mean, variance, median, mode, quantiles, intervals, density, samples, and Bayes actions."""

    discrete: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = np.asarray(getattr(self, field.name), dtype=np.float64)
            object.__setattr__(self, field.name, value)

    @property
    def _law(self) -> Any:
        """The equivalent distribution of SciPy."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of distributions: () for one."""
        return np.broadcast_shapes(*(getattr(self, field.name).shape for field in fields(self)))

    @property
    def mean(self) -> Array:
        return self._law.mean()

    @property
    def variance(self) -> Array:
        return self._law.var()

    @property
    def std(self) -> Array:
        return np.sqrt(self.variance)

    @property
    def median(self) -> Array:
        return self.quantile(0.5)

    @property
    def mode(self) -> Array:
        """The point of highest density: the Bayes action of the 0-1 loss."""
        raise NotImplementedError

    def quantile(self, level: ArrayLike) -> Array:
        """The smallest y with P(Y ≤ y) ≥ level."""
        return self._law.ppf(level)

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """The central interval that contains Y with this probability."""
        if not 0 < level < 1:
            raise ValueError(f"interval must lie strictly between 0 and 1, got {level!r}.")
        return self.quantile(0.5 - 0.5 * level), self.quantile(0.5 + 0.5 * level)

    def density(self, y: ArrayLike) -> Array:
        """The density at y; the probability of y for discrete distributions."""
        return self._law.pmf(y) if self.discrete else self._law.pdf(y)

    def cdf(self, y: ArrayLike) -> Array:
        """P(Y ≤ y)."""
        return self._law.cdf(y)

    def sample(self, size: int = 1, random_state: Any = None) -> Array:
        """Draws, an array of shape (size, *shape)."""
        rng = np.random.default_rng(random_state)
        return np.asarray(self._law.rvs(size=(size, *self.shape), random_state=rng), dtype=np.float64)

    def nodes(self) -> tuple[Array, Array]:
        """Points and weights of shape (*shape, m), the weights summing to one."""
        raise NotImplementedError

    def bayes_action(self, loss: Any) -> Any:
        """The action of least expected loss; see :func:`hinge.decisions.bayes_action`."""
        from hinge.problem.decisions.actions import bayes_action

        return bayes_action(self, loss)


class Continuous(Distribution):
    """Densities. ``nodes`` uses the trapezoidal rule after a change of variables y = ψ(v), which makes the tails light."""

    @staticmethod
    def _forward(v: Array) -> tuple[Array, Array]:
        """ψ(v) and ψ'(v)."""
        return np.sinh(v), np.cosh(v)

    @staticmethod
    def _backward(y: Array) -> Array:
        return np.arcsinh(y)

    def _standard(self) -> tuple[Array, Array]:
        """The location and the scale of the distribution; ψ is applied to (y − centre)/width."""
        return np.zeros(self.shape), np.ones(self.shape)

    def nodes(self) -> tuple[Array, Array]:
        centre, width = (np.asarray(part)[..., None] for part in self._standard())
        ends = [np.broadcast_to(end, self.shape)[..., None] for end in self._ends(centre[..., 0], width[..., 0])]
        v = ends[0] + (ends[1] - ends[0]) * np.linspace(0.0, 1.0, NODES)
        z, derivative = self._forward(v)
        y = centre + width * z
        weight = self._weight(v, y, derivative)
        return y, weight / weight.sum(axis=-1, keepdims=True)

    def _weight(self, v: Array, y: Array, derivative: Array) -> Array:
        """The density of v, up to a factor."""
        density = np.moveaxis(self.density(np.moveaxis(y, -1, 0)), 0, -1)
        return np.nan_to_num(density * derivative, posinf=0.0)

    def _ends(self, centre: Array, width: Array) -> tuple[Array, Array]:
        """The range of v that contains all but a negligible part of the probability."""
        low, high = (self._backward((q - centre) / width) for q in (self._law.ppf(TAIL), self._law.isf(TAIL)))
        return low, high


@dataclass(frozen=True, eq=False)
class Normal(Continuous):
    """Mean ``loc``, standard deviation ``scale``; a scale of zero is a point mass, which SciPy does not know."""

    loc: Any = 0.0
    scale: Any = 1.0

    @property
    def _law(self) -> Any:
        return scipy.stats.norm(self.loc, self.scale)

    @property
    def mean(self) -> Array:
        return np.broadcast_to(self.loc, self.shape)

    mode = mean

    @property
    def std(self) -> Array:
        return np.broadcast_to(self.scale, self.shape)

    @property
    def variance(self) -> Array:
        return self.std**2

    def quantile(self, level: ArrayLike) -> Array:
        return self.loc + self.scale * scipy.stats.norm.ppf(level)

    def cdf(self, y: ArrayLike) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.scale > 0, self._law.cdf(y), np.asarray(y) >= self.loc)

    def _weight(self, v: Array, y: Array, derivative: Array) -> Array:
        return np.exp(-0.5 * self._forward(v)[0] ** 2) * derivative

    def _ends(self, centre: Array, width: Array) -> tuple[Array, Array]:
        reach = self._backward(scipy.stats.norm.isf(TAIL))
        return -reach, reach

    def _standard(self) -> tuple[Array, Array]:
        return np.broadcast_to(self.loc, self.shape), np.broadcast_to(self.scale, self.shape)


@dataclass(frozen=True, eq=False)
class StudentT(Continuous):
    """loc + scale·T with T of Student's t distribution; the mean exists for df > 1, the variance for df > 2."""

    df: Any
    loc: Any = 0.0
    scale: Any = 1.0

    @property
    def _law(self) -> Any:
        return scipy.stats.t(self.df, self.loc, self.scale)

    @property
    def mode(self) -> Array:
        return np.broadcast_to(self.loc, self.shape)

    def _standard(self) -> tuple[Array, Array]:
        return np.broadcast_to(self.loc, self.shape), np.broadcast_to(self.scale, self.shape)


@dataclass(frozen=True, eq=False)
class Beta(Continuous):
    """Density ∝ θ^{a−1}(1 − θ)^{b−1} on (0, 1)."""

    a: Any
    b: Any

    @property
    def _law(self) -> Any:
        return scipy.stats.beta(self.a, self.b)

    @property
    def mode(self) -> Array:
        """(a−1)/(a+b−2) inside (0, 1); an end where the density grows towards it; the middle if it is flat."""
        up, down = np.maximum(self.a - 1.0, 0.0), np.maximum(self.b - 1.0, 0.0)
        total = up + down
        ends = np.where(self.a == self.b, 0.5, (self.a > self.b).astype(np.float64))
        return np.where(total > 0, up / np.where(total > 0, total, 1.0), ends)

    @staticmethod
    def _forward(v: Array) -> tuple[Array, Array]:
        p = scipy.special.expit(v)
        return p, p * scipy.special.expit(-v)

    def _weight(self, v: Array, y: Array, derivative: Array) -> Array:
        """θᵃ(1 − θ)ᵇ from the log-odds v: for small b much of the probability is so close to 1 that θ rounds to it."""
        a, b = self.a[..., None], self.b[..., None]
        log_weight = a * scipy.special.log_expit(v) + b * scipy.special.log_expit(-v)
        return np.exp(log_weight - log_weight.max(axis=-1, keepdims=True))

    def _ends(self, centre: Array, width: Array) -> tuple[Array, Array]:
        """A tail quantile from P(θ ≤ x) ≈ xᵃ/(a·B(a, b)) for small x, where SciPy's quantiles fail."""
        log_beta = scipy.special.betaln(self.a, self.b)
        low = (np.log(TAIL * self.a) + log_beta) / self.a
        return low, -(np.log(TAIL * self.b) + log_beta) / self.b


class Positive(Continuous):
    """Densities on (0, ∞)."""

    @staticmethod
    def _forward(v: Array) -> tuple[Array, Array]:
        y = np.exp(v)
        return y, y

    @staticmethod
    def _backward(y: Array) -> Array:
        return np.log(np.maximum(y, 1e-300))


@dataclass(frozen=True, eq=False)
class Gamma(Positive):
    """Density ∝ θ^{shape−1} e^{−rate·θ}: mean shape/rate."""

    concentration: Any
    rate: Any = 1.0

    @property
    def _law(self) -> Any:
        return scipy.stats.gamma(self.concentration, scale=1.0 / self.rate)

    @property
    def mode(self) -> Array:
        return np.maximum(self.concentration - 1.0, 0.0) / self.rate


@dataclass(frozen=True, eq=False)
class InverseGamma(Positive):
    """1/θ is Gamma(concentration, rate): the conjugate prior of a variance."""

    concentration: Any
    rate: Any = 1.0

    @property
    def _law(self) -> Any:
        return scipy.stats.invgamma(self.concentration, scale=self.rate)

    @property
    def mode(self) -> Array:
        return self.rate / (self.concentration + 1.0)
