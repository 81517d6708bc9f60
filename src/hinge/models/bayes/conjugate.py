"""Conjugate models: the posterior belongs to the same family as the prior, so that updating is arithmetic.

Every model is immutable. ``update(data)`` returns the model given the data; a prior adds pseudo-observations to the
counts, so updating in pieces, in any order, is the same as updating at once. ``posterior`` is the distribution of the
parameter, ``predictive`` the distribution of the next observation (with the parameter integrated out).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hinge.problem.decisions import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Distribution,
    Gamma,
    InverseGamma,
    NegativeBinomial,
    Normal,
    StudentT,
)
from hinge.problem.numerics import weighted_sum

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ConjugateModel:
    """Base of the conjugate models. ``prior`` is the model before the first update."""

    prior: Any = field(default=None, init=False, repr=False)

    @property
    def posterior(self) -> Distribution:
        """The distribution of the parameter given the data so far."""
        raise NotImplementedError

    @property
    def predictive(self) -> Distribution:
        """The distribution of the next observation."""
        raise NotImplementedError

    def update(self, data: ArrayLike, weight: ArrayLike | None = None) -> Any:
        """The model given more data; a weight of 2 is equivalent to repeating an observation."""
        values = np.atleast_1d(np.asarray(data, dtype=np.float64)).ravel()
        if not np.all(np.isfinite(values)):
            raise ValueError("data contains NaN or infinity.")
        w = (
            np.ones(len(values))
            if weight is None
            else np.broadcast_to(np.asarray(weight, dtype=np.float64), values.shape)
        )
        if not np.all(np.isfinite(w)) or np.any(w < 0):
            raise ValueError("weight must be finite and not negative.")
        after = self._learn(values, w) if len(values) else replace(self)
        object.__setattr__(after, "prior", self if self.prior is None else self.prior)
        return after

    def _learn(self, values: Array, weight: Array) -> Any:
        raise NotImplementedError

    def sample_y(self, n: int, n_samples: int = 1, random_state: Any = None) -> Array:
        """Data sets of n observations, an array of (n, draws): a parameter first, then observations given the parameter.

        Before the first update the parameter is drawn from the prior.
        """
        rng = np.random.default_rng(random_state)
        return np.asarray(self._draw(rng, (n, n_samples)), dtype=np.float64)

    def _draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Any:
        """Observations of the given shape; the parameter is the same along a column."""
        raise NotImplementedError

    def bayes_action(self, loss: Any) -> Any:
        """The estimate of the parameter with the smallest posterior risk: mean, median, mode, or the action of any loss."""
        return self.posterior.bayes_action(loss)

    def plot(self, ax: Any = None) -> Any:
        """Draw the prior and posterior densities of the parameter."""
        import matplotlib.pyplot as plt

        ax = plt.subplots()[1] if ax is None else ax
        laws = [("posterior", self._marginal())] if self.prior is None else [
            ("prior", self.prior._marginal()), ("posterior", self._marginal()),
        ]  # fmt: skip
        low = min(float(np.min(law.quantile(0.005))) for _, law in laws)
        high = max(float(np.max(law.quantile(0.995))) for _, law in laws)
        x = np.linspace(low, high, 401)
        for name, law in laws:
            values = law.density(x[:, None] if law.shape else x)
            lines = ax.plot(x, values, "--" if name == "prior" else "-")
            for j, line in enumerate(lines):
                line.set_label(name if len(lines) == 1 else f"{name}, θ{j}")
                line.set_color(f"C{j}")
        ax.set_xlabel("parameter")
        ax.set_ylabel("density")
        ax.legend()
        return ax

    def _marginal(self) -> Distribution:
        """The distribution that ``plot`` draws."""
        return self.posterior


def _positive(**values: Any) -> None:
    for name, value in values.items():
        if not (np.all(np.isfinite(value)) and np.all(np.asarray(value) > 0)):
            raise ValueError(f"{name} must be greater than 0, got {value!r}.")


@dataclass(frozen=True, eq=False)
class BetaBernoulli(ConjugateModel):
    """A coin: θ ~ Beta(α, β), y | θ ~ Bernoulli(θ); posterior Beta(α + heads, β + tails).

    Parameters
    ----------
    alpha, beta : float
        The heads and tails one pretends to have seen, greater than 0.

    Examples
    --------
    >>> import hinge as hg
    >>> coin = hg.conjugate.BetaBernoulli(2, 2).update([1, 1, 0])
    >>> float(coin.posterior.mean)  # (2 + 2) / (2 + 2 + 3)
    0.5714285714285714
    >>> float(coin.bayes_action(hg.ZeroOne()))  # the mode, (4 − 1) / (7 − 2)
    0.6
    """

    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        _positive(alpha=self.alpha, beta=self.beta)

    @property
    def posterior(self) -> Beta:
        return Beta(self.alpha, self.beta)

    @property
    def predictive(self) -> Bernoulli:
        return Bernoulli(self.alpha / (self.alpha + self.beta))

    def _draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Any:
        return rng.random(shape) < rng.beta(self.alpha, self.beta, shape[1])

    def _learn(self, values: Array, weight: Array) -> BetaBernoulli:
        if not np.all((values == 0) | (values == 1)):
            raise ValueError("data must hold 0 and 1 only.")
        heads = float(weighted_sum(weight, values))
        return BetaBernoulli(self.alpha + heads, self.beta + float(weight.sum()) - heads)


@dataclass(frozen=True, eq=False)
class DirichletCategorical(ConjugateModel):
    """A die: θ ~ Dirichlet(α), y | θ ~ Categorical(θ); posterior Dirichlet(α + counts).

    Parameters
    ----------
    alpha : array of k numbers
        How often one pretends to have seen each class, greater than 0.

    Examples
    --------
    >>> import hinge as hg
    >>> hg.conjugate.DirichletCategorical([1, 1, 1]).update([0, 2, 2]).predictive.p
    array([0.33333333, 0.16666667, 0.5       ])
    """

    alpha: Any = (1.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", np.asarray(self.alpha, dtype=np.float64))
        _positive(alpha=self.alpha)
        if self.alpha.ndim != 1 or len(self.alpha) < 2:
            raise ValueError(f"alpha must hold one number per class, for two classes at least; got {self.alpha!r}.")

    @property
    def posterior(self) -> Dirichlet:
        return Dirichlet(self.alpha)

    @property
    def predictive(self) -> Categorical:
        return Categorical(self.alpha / self.alpha.sum())

    def _draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Any:
        below = np.cumsum(rng.dirichlet(self.alpha, shape[1]), axis=1)[:, :-1]
        return np.sum(rng.random(shape)[:, :, None] > below, axis=2)

    def _learn(self, values: Array, weight: Array) -> DirichletCategorical:
        k = len(self.alpha)
        codes = values.astype(np.intp)
        if not (np.all(codes == values) and codes.min() >= 0 and codes.max() < k):
            raise ValueError(f"data must hold classes 0 … {k - 1}.")
        return DirichletCategorical(self.alpha + np.bincount(codes, weight, minlength=k))

    def _marginal(self) -> Beta:
        return self.posterior.marginals()


@dataclass(frozen=True, eq=False)
class GammaPoisson(ConjugateModel):
    """Counts: λ ~ Gamma(shape, rate), y | λ ~ Poisson(λ); posterior Gamma(shape + Σy, rate + n).

    Parameters
    ----------
    shape : float
        The events one pretends to have counted, greater than 0.
    rate : float
        In how many observations.

    Examples
    --------
    >>> import hinge as hg
    >>> float(hg.conjugate.GammaPoisson(1, 1).update([3, 5]).predictive.mean)
    3.0
    """

    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        _positive(shape=self.shape, rate=self.rate)

    @property
    def posterior(self) -> Gamma:
        return Gamma(self.shape, self.rate)

    @property
    def predictive(self) -> NegativeBinomial:
        return NegativeBinomial(self.shape, self.rate / (self.rate + 1.0))

    def _draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Any:
        return rng.poisson(rng.gamma(self.shape, 1.0 / self.rate, shape[1]), shape)

    def _learn(self, values: Array, weight: Array) -> GammaPoisson:
        if not np.all((values >= 0) & (values == np.floor(values))):
            raise ValueError("data must hold counts: whole numbers of zero or more.")
        return GammaPoisson(self.shape + float(weighted_sum(weight, values)), self.rate + float(weight.sum()))


@dataclass(frozen=True, eq=False)
class NormalNormal(ConjugateModel):
    """A mean with known noise: μ ~ N(mean, variance), y | μ ~ N(μ, noise); precisions are added.

    Parameters
    ----------
    mean, variance : float
        The prior of μ.
    noise : float
        The known variance of an observation.

    Examples
    --------
    >>> import hinge as hg
    >>> model = hg.conjugate.NormalNormal(0.0, 1.0, noise=1.0).update([2.0])
    >>> float(model.mean), float(model.variance)
    (1.0, 0.5)
    """

    mean: float = 0.0
    variance: float = 1.0
    noise: float = 1.0

    def __post_init__(self) -> None:
        _positive(variance=self.variance, noise=self.noise)

    @property
    def posterior(self) -> Normal:
        return Normal(self.mean, np.sqrt(self.variance))

    @property
    def predictive(self) -> Normal:
        return Normal(self.mean, np.sqrt(self.variance + self.noise))

    def _draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Any:
        centre = rng.normal(self.mean, np.sqrt(self.variance), shape[1])
        return rng.normal(centre, np.sqrt(self.noise), shape)

    def _learn(self, values: Array, weight: Array) -> NormalNormal:
        precision = 1.0 / self.variance + float(weight.sum()) / self.noise
        mean = (self.mean / self.variance + float(weighted_sum(weight, values)) / self.noise) / precision
        return NormalNormal(mean, 1.0 / precision, self.noise)


@dataclass(frozen=True, eq=False)
class NormalInverseGamma(ConjugateModel):
    """A mean and a variance: σ² ~ InverseGamma(shape, rate), μ | σ² ~ N(mean, σ²/count), y ~ N(μ, σ²).

    Parameters
    ----------
    mean : float
        The prior guess of μ.
    count : float
        How many observations it is worth, greater than 0.
    shape, rate : float
        Of σ²: 2·shape observations with Σ(y − μ)² = 2·rate, as it were.

    Examples
    --------
    >>> import hinge as hg
    >>> model = hg.conjugate.NormalInverseGamma(0.0, 1.0, 1.0, 1.0).update([1.0, 3.0])
    >>> float(model.mean), float(model.count), float(model.predictive.df)
    (1.3333333333333333, 3.0, 4.0)
    """

    mean: float = 0.0
    count: float = 1.0
    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        _positive(count=self.count, shape=self.shape, rate=self.rate)

    @property
    def posterior(self) -> StudentT:
        """The distribution of μ with σ² integrated out."""
        return StudentT(2.0 * self.shape, self.mean, np.sqrt(self.rate / (self.shape * self.count)))

    @property
    def posterior_variance(self) -> InverseGamma:
        """The distribution of σ²."""
        return InverseGamma(self.shape, self.rate)

    @property
    def predictive(self) -> StudentT:
        spread = self.rate * (self.count + 1.0) / (self.shape * self.count)
        return StudentT(2.0 * self.shape, self.mean, np.sqrt(spread))

    def _draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Any:
        variance = self.rate / rng.gamma(self.shape, size=shape[1])
        return rng.normal(rng.normal(self.mean, np.sqrt(variance / self.count)), np.sqrt(variance), shape)

    def _learn(self, values: Array, weight: Array) -> NormalInverseGamma:
        n = float(weight.sum())
        if n == 0:
            return replace(self)
        centre = float(weighted_sum(weight, values)) / n
        scatter = float(weighted_sum(weight, (values - centre) ** 2))
        count = self.count + n
        return NormalInverseGamma(
            (self.count * self.mean + n * centre) / count,
            count,
            self.shape + 0.5 * n,
            self.rate + 0.5 * scatter + 0.5 * self.count * n / count * (centre - self.mean) ** 2,
        )
