"""Distributions of examples with a known best predictor, for which the parts of a risk can be computed exactly.

A generator draws inputs from a known distribution and targets from a known conditional distribution, so that the Bayes
predictor f*(x) = argmin_a E[ℓ(y, a) | x] and its risk are exact: E[y | x] and E Var(y | x) for squared error.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats

from hinge.problem.decisions import Bernoulli, Distribution, Normal, bayes_action, posterior_risk
from hinge.problem.losses import Loss, ZeroOne

Array = np.ndarray


class Generator(ABC):
    """Examples (x, y) with a known distribution. The loss is squared; for labels 0 and 1, the Brier loss of P(y = 1)."""

    labels = False

    @abstractmethod
    def inputs(self, n: int, rng: np.random.Generator) -> Array:
        """n inputs."""

    @abstractmethod
    def mean(self, X: Array) -> Array:
        """E[y | x]: the Bayes predictor."""

    @abstractmethod
    def variance(self, X: Array) -> Array:
        """Var(y | x): its risk at x."""

    @abstractmethod
    def targets(self, X: Array, rng: np.random.Generator) -> Array:
        """One target for each input."""

    def sample(self, n: int, random_state: int = 0) -> tuple[Array, Array]:
        """n examples."""
        rng = np.random.default_rng(random_state)
        X = self.inputs(n, rng)
        return X, self.targets(X, rng)

    def mean_of(self, model: Any, X: Array) -> Array:
        """A fitted model's estimate of E[y | x]."""
        if not self.labels:
            return np.asarray(model.predict(X), dtype=np.float64)
        if not hasattr(model, "predict_proba"):
            raise ValueError(f"{type(model).__name__} has no predict_proba: it does not say what E[y | x] is.")
        return np.asarray(model.predict_proba(X), dtype=np.float64)[:, 1]

    @abstractmethod
    def quadrature(self, points: int) -> Array:
        """Equally weighted inputs that represent the distribution of x.

        All risks of a decomposition are means over the same points, so its identity holds up to rounding.
        """

    def law(self, X: Array) -> Distribution:
        """The distribution of y at each input; by default normal with ``mean`` and ``variance``."""
        return Bernoulli(self.mean(X)) if self.labels else Normal(self.mean(X), np.sqrt(self.variance(X)))

    def bayes(self, X: Array, loss: Loss | None = None) -> Array:
        """The Bayes predictor f*(x) = argmin_a E[ℓ(y, a) | x]: the mean for squared error (and for None), the median for
        the absolute one, a quantile for the quantile loss, the mode for 0-1.
        """
        return self.mean(X) if loss is None else np.asarray(bayes_action(self.law(X), loss), dtype=np.float64)

    def output_of(self, model: Any, X: Array, loss: Loss | None = None) -> Array:
        """A fitted model's prediction in the form of the loss: E[y | x], a score, or a label 0 or 1."""
        if loss is None or not self.labels:
            return self.mean_of(model, X)
        if isinstance(loss, ZeroOne):
            return (np.asarray(model.predict(X)) == 1).astype(np.float64)
        if not hasattr(model, "decision_function"):
            raise ValueError(f"{type(model).__name__} has no decision_function, whose scores {loss!r} compares.")
        return np.asarray(model.decision_function(X), dtype=np.float64)

    def risk(self, prediction: Array, X: Array, loss: Loss | None = None) -> float:
        """E ℓ(y, f(x)) over the inputs X and the distribution of y: exact in y, a mean in x.

        Without a loss, ℓ is (y − f)² for numbers and the log loss for labels, of which f is the probability of 1.
        """
        if isinstance(loss, ZeroOne):
            p = self.mean(X)
            return float(np.mean(np.where(prediction > 0.5, 1.0 - p, p)))
        if loss is not None:
            return float(np.mean(posterior_risk(self.law(X), loss, prediction)))
        if not self.labels:
            return float(np.mean((prediction - self.mean(X)) ** 2 + self.variance(X)))
        p, q = self.mean(X), np.clip(prediction, 1e-15, 1.0 - 1e-15)
        return float(-np.mean(p * np.log(q) + (1.0 - p) * np.log1p(-q)))


def gaussian_quadrature(points: int, d: int) -> Array:
    """About ``points`` points distributed as N(0, I): a Sobol' sequence through the quantile function."""
    sequence = scipy.stats.qmc.Sobol(d, seed=12345).random_base2(max(1, math.ceil(math.log2(points))))
    return scipy.stats.norm.ppf(np.clip(sequence, 1e-12, 1.0 - 1e-12))


class _Noisy(Generator):
    """y = f*(x) + ε with ε ~ N(0, σ²), independent of x."""

    noise: float

    def variance(self, X: Array) -> Array:
        return np.full(len(X), self.noise**2)

    def targets(self, X: Array, rng: np.random.Generator) -> Array:
        return self.mean(X) + self.noise * rng.normal(size=len(X))


class _OnALine(_Noisy):
    """x is uniform on [−1, 1]."""

    def inputs(self, n: int, rng: np.random.Generator) -> Array:
        return rng.uniform(-1.0, 1.0, size=(n, 1))

    def quadrature(self, points: int) -> Array:
        return (-1.0 + (2.0 * np.arange(points) + 1.0) / points)[:, None]


class _GaussianInputs(Generator):
    """x ~ N(0, I), with a column for each of the weights θ."""

    coef: Sequence[float]

    def inputs(self, n: int, rng: np.random.Generator) -> Array:
        return rng.normal(size=(n, len(self.coef)))

    def quadrature(self, points: int) -> Array:
        return gaussian_quadrature(points, len(self.coef))


@dataclass(frozen=True)
class LinearGaussian(_GaussianInputs, _Noisy):
    """y = ⟨θ, x⟩ + b + ε with x ~ N(0, I) and ε ~ N(0, noise²).

    Parameters
    ----------
    coef : sequence of d numbers θ
        The true weights; their number is the number of columns.
    intercept : float
        The bias b.
    noise : float
        The standard deviation σ of ε.

    Examples
    --------
    >>> import hinge as hg
    >>> X, y = hg.generators.LinearGaussian([1.0, -2.0]).sample(100)
    >>> X.shape
    (100, 2)
    """

    coef: Sequence[float]
    intercept: float = 0.0
    noise: float = 1.0

    def mean(self, X: Array) -> Array:
        return X @ np.asarray(self.coef, dtype=np.float64) + self.intercept


@dataclass(frozen=True)
class PolynomialCurve(_OnALine):
    """y = Σ cⱼ xʲ + ε with x uniform on [−1, 1].

    Parameters
    ----------
    coefficients : sequence of numbers c₀, c₁, …
        From the constant on: (0, 1, 0, −2) is x − 2x³.
    noise : float
        The standard deviation of ε.
    """

    coefficients: Sequence[float] = (0.0, 1.0, 0.0, -2.0)
    noise: float = 0.3

    def mean(self, X: Array) -> Array:
        return np.polynomial.polynomial.polyval(X[:, 0], np.asarray(self.coefficients, dtype=np.float64))


@dataclass(frozen=True)
class StepCurve(_OnALine):
    """y jumps from 0 to ``height`` at ``edge``; x is uniform on [−1, 1]. No polynomial is right.

    Parameters
    ----------
    edge : float
        Where y jumps, between −1 and 1.
    height : float
        How far.
    noise : float
        The standard deviation of ε.
    """

    edge: float = 0.2
    height: float = 1.0
    noise: float = 0.3

    def mean(self, X: Array) -> Array:
        return np.where(X[:, 0] > self.edge, self.height, 0.0)


@dataclass(frozen=True)
class SineCurve(_OnALine):
    """y = sin(frequency · π x) + ε with x uniform on [−1, 1].

    Parameters
    ----------
    frequency : float
        How many half waves there are from 0 to 1.
    noise : float
        The standard deviation of ε.
    """

    frequency: float = 1.0
    noise: float = 0.3

    def mean(self, X: Array) -> Array:
        return np.sin(self.frequency * np.pi * X[:, 0])


@dataclass(frozen=True)
class LogisticLabels(_GaussianInputs):
    """y ∈ {0, 1} with P(y = 1 | x) = 1/(1 + exp(−⟨θ, x⟩ − b − q‖x‖²)), x ~ N(0, I).

    Parameters
    ----------
    coef : sequence of d numbers θ
        The true weights; their number is the number of columns.
    intercept : float
        b.
    curvature : float
        q; if it is not 0, no linear score is right.
    """

    coef: Sequence[float]
    intercept: float = 0.0
    curvature: float = 0.0
    labels = True

    def mean(self, X: Array) -> Array:
        score = X @ np.asarray(self.coef, dtype=np.float64) + self.intercept + self.curvature * np.sum(X**2, axis=1)
        return 1.0 / (1.0 + np.exp(-score))

    def variance(self, X: Array) -> Array:
        p = self.mean(X)
        return p * (1.0 - p)

    def targets(self, X: Array, rng: np.random.Generator) -> Array:
        return (rng.random(len(X)) < self.mean(X)).astype(int)
