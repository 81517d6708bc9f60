"""Distributions over finitely or countably many values, and samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.special
import scipy.stats
from numpy.typing import ArrayLike

from hinge.problem.decisions.distributions import Array, Beta, Distribution


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
    """Counts with mean r(1 − p)/p: a Poisson distribution whose rate has a Gamma distribution."""

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
        """The marginal distribution of each θ_j."""
        return Beta(self.alpha, self.alpha.sum() - self.alpha)

    def quantile(self, level: ArrayLike) -> Array:
        """Quantiles of the marginal distribution of each θ_j."""
        return self.marginals().quantile(level)

    def density(self, y: ArrayLike) -> Array:
        return np.asarray(scipy.stats.dirichlet(self.alpha).pdf(np.asarray(y, dtype=np.float64).T))

    def sample(self, size: int = 1, random_state: Any = None) -> Array:
        return np.random.default_rng(random_state).dirichlet(self.alpha, size)


@dataclass(frozen=True, eq=False)
class Empirical(Distribution):
    """Draws from a distribution (along the last axis), with optional weights."""

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
        """The most frequent value, the smallest if there are several."""
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
