"""Distributions as small immutable objects: what a posterior or a prediction is.

Parameters may be arrays: one object then holds one distribution per entry, and everything is vectorised. ``nodes``
gives points and weights with E g(Y) ≈ Σ weight·g(point), exact for discrete distributions, which is all that a
numerical Bayes action needs.
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
        """The distribution as SciPy has it."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """How many distributions there are: () for one."""
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
        """The central interval that holds Y with this probability."""
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
        """The action of least expected loss; see :func:`hinge.bayes_action`."""
        from hinge.problem.decisions.actions import bayes_action

        return bayes_action(self, loss)


class Continuous(Distribution):
    """Densities. A change of variables y = ψ(v) makes the tails light, then the trapezoidal rule does the rest."""

    @staticmethod
    def _forward(v: Array) -> tuple[Array, Array]:
        """ψ(v) and ψ'(v)."""
        return np.sinh(v), np.cosh(v)

    @staticmethod
    def _backward(y: Array) -> Array:
        return np.arcsinh(y)

    def _standard(self) -> tuple[Array, Array]:
        """Where the distribution is and how wide; ψ works on (y − centre)/width."""
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
        """The range of v that holds all but a negligible part."""
        low, high = (self._backward((q - centre) / width) for q in (self._law.ppf(TAIL), self._law.isf(TAIL)))
        return low, high


@dataclass(frozen=True, eq=False)
class Normal(Continuous):
    """Mean ``loc``, standard deviation ``scale``."""

    loc: Any = 0.0
    scale: Any = 1.0

    @property
    def _law(self) -> Any:
        return scipy.stats.norm(self.loc, self.scale)

    @property
    def mode(self) -> Array:
        return np.broadcast_to(self.loc, self.shape)

    def quantile(self, level: ArrayLike) -> Array:
        return self.loc + self.scale * scipy.stats.norm.ppf(level)  # a scale of zero is allowed: a certain value

    def _standard(self) -> tuple[Array, Array]:
        return np.broadcast_to(self.loc, self.shape), np.broadcast_to(self.scale, self.shape)


@dataclass(frozen=True, eq=False)
class StudentT(Continuous):
    """loc + scale·T with T of Student's law; the mean exists for df > 1, the variance for df > 2."""

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
        """From P(θ ≤ x) ≈ xᵃ/(a·B(a, b)) for small x: SciPy's quantiles give up out there."""
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
    """1/θ is Gamma(concentration, rate): the conjugate law of a variance."""

    concentration: Any
    rate: Any = 1.0

    @property
    def _law(self) -> Any:
        return scipy.stats.invgamma(self.concentration, scale=self.rate)

    @property
    def mode(self) -> Array:
        return self.rate / (self.concentration + 1.0)


@dataclass(frozen=True, eq=False)
class Bernoulli(Distribution):
    """1 with probability p, else 0."""

    p: Any

    discrete: ClassVar[bool] = True

    @property
    def _law(self) -> Any:
        return scipy.stats.bernoulli(self.p)

    @property
    def mode(self) -> Array:
        return (self.p > 0.5).astype(np.float64)

    def nodes(self) -> tuple[Array, Array]:
        weight = np.stack([1.0 - self.p, self.p], axis=-1)
        return np.broadcast_to(np.array([0.0, 1.0]), weight.shape), weight


@dataclass(frozen=True, eq=False)
class NegativeBinomial(Distribution):
    """Counts with mean r(1 − p)/p: what a Poisson count is when its rate has a Gamma law."""

    r: Any
    p: Any

    discrete: ClassVar[bool] = True

    @property
    def _law(self) -> Any:
        return scipy.stats.nbinom(self.r, self.p)

    @property
    def mode(self) -> Array:
        return np.floor(np.maximum(self.r - 1.0, 0.0) * (1.0 - self.p) / self.p)

    def nodes(self) -> tuple[Array, Array]:
        y = np.arange(float(np.max(self._law.isf(1e-15))) + 1.0)
        weight = np.moveaxis(self.density(y.reshape((-1,) + (1,) * len(self.shape))), 0, -1)
        return np.broadcast_to(y, weight.shape), weight / weight.sum(axis=-1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Categorical(Distribution):
    """Class j with probability p_j; the last axis of p runs over the classes 0 … k−1."""

    p: Any

    discrete: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, ...]:
        return self.p.shape[:-1]

    @property
    def mode(self) -> Array:
        return np.argmax(self.p, axis=-1).astype(np.float64)

    @property
    def mean(self) -> Array:
        raise TypeError("Classes have no mean; ask for the mode, or for the action of a loss over classes.")

    def quantile(self, level: ArrayLike) -> Array:
        raise TypeError("Classes have no order, hence no quantiles.")

    def density(self, y: ArrayLike) -> Array:
        return np.take(self.p, np.asarray(y, dtype=np.intp), axis=-1)

    def sample(self, size: int = 1, random_state: Any = None) -> Array:
        rng = np.random.default_rng(random_state)
        u = rng.random((size, *self.shape, 1))
        return np.sum(u > np.cumsum(self.p, axis=-1)[..., :-1], axis=-1).astype(np.float64)

    def nodes(self) -> tuple[Array, Array]:
        return np.broadcast_to(np.arange(float(self.p.shape[-1])), self.p.shape), self.p


@dataclass(frozen=True, eq=False)
class Dirichlet(Distribution):
    """Probabilities of k classes, density ∝ Π θ_j^{α_j − 1} on the simplex."""

    alpha: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def mean(self) -> Array:
        return self.alpha / self.alpha.sum()

    @property
    def variance(self) -> Array:
        return self.mean * (1.0 - self.mean) / (self.alpha.sum() + 1.0)

    @property
    def mode(self) -> Array:
        """(α_j − 1)/(Σα − k), where every α_j ≥ 1; otherwise the density is infinite on the border."""
        excess = self.alpha - 1.0
        if np.any(excess < 0) or excess.sum() <= 0:
            raise ValueError(
                "The Dirichlet density has no single highest point here: it needs α ≥ 1, not all of them 1."
            )
        return excess / excess.sum()

    def marginals(self) -> Beta:
        """The law of each θ_j alone."""
        return Beta(self.alpha, self.alpha.sum() - self.alpha)

    def quantile(self, level: ArrayLike) -> Array:
        """Of each θ_j alone."""
        return self.marginals().quantile(level)

    def density(self, y: ArrayLike) -> Array:
        return np.asarray(scipy.stats.dirichlet(self.alpha).pdf(np.asarray(y, dtype=np.float64).T))

    def sample(self, size: int = 1, random_state: Any = None) -> Array:
        return np.random.default_rng(random_state).dirichlet(self.alpha, size)


@dataclass(frozen=True, eq=False)
class Empirical(Distribution):
    """Draws from a distribution (the last axis runs over them), with weights if they are not equally likely."""

    values: Any
    weight: Any = 1.0

    discrete: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape[:-1]

    def nodes(self) -> tuple[Array, Array]:
        weight = np.broadcast_to(self.weight, self.values.shape)
        return self.values, weight / weight.sum(axis=-1, keepdims=True)

    @property
    def mean(self) -> Array:
        return np.sum(np.multiply(*self.nodes()), axis=-1)

    @property
    def variance(self) -> Array:
        values, weight = self.nodes()
        return np.sum(weight * (values - self.mean[..., None]) ** 2, axis=-1)

    @property
    def mode(self) -> Array:
        """The value that occurs most, the smallest if there are several."""
        flat = [np.unique(row, return_inverse=True) for row in self.values.reshape(-1, self.values.shape[-1])]
        weight = self.nodes()[1].reshape(-1, self.values.shape[-1])
        best = [value[np.argmax(np.bincount(code, w))] for (value, code), w in zip(flat, weight)]
        return np.array(best).reshape(self.shape)

    def quantile(self, level: ArrayLike) -> Array:
        values, weight = self.nodes()
        order = np.argsort(values, axis=-1, kind="stable")
        below = np.cumsum(np.take_along_axis(weight, order, axis=-1), axis=-1)
        place = np.minimum(np.sum(below < np.asarray(level) - 1e-12, axis=-1, keepdims=True), values.shape[-1] - 1)
        return np.take_along_axis(values, np.take_along_axis(order, place, axis=-1), axis=-1)[..., 0]

    def density(self, y: ArrayLike) -> Array:
        values, weight = self.nodes()
        return np.sum(weight * (values == np.asarray(y)[..., None]), axis=-1)

    def cdf(self, y: ArrayLike) -> Array:
        values, weight = self.nodes()
        return np.sum(weight * (values <= np.asarray(y)[..., None]), axis=-1)

    def sample(self, size: int = 1, random_state: Any = None) -> Array:
        rng = np.random.default_rng(random_state)
        values, weight = self.nodes()
        u = rng.random((size, *self.shape, 1))
        drawn = np.minimum(np.sum(u > np.cumsum(weight, axis=-1), axis=-1, keepdims=True), values.shape[-1] - 1)
        return np.take_along_axis(np.broadcast_to(values, (size, *values.shape)), drawn, axis=-1)[..., 0]
