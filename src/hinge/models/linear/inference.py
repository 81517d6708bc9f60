"""Inference for least squares: standard errors, tests, intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.stats

from hinge.models.inference import Sampled

Array = np.ndarray


@dataclass(frozen=True)
class Inference(Sampled):
    """The sampling distribution of least-squares weights under y = Xθ + ε, ε ~ N(0, σ²I).

    With A = [1 X] (the column of ones only if there is a bias), θ̂ ~ N(θ, σ²(A'SA)⁺) and
    (m − r) σ̂²/σ² ~ χ²(m − r), where m = Σ sᵢ is the number of examples and r the rank of A.

    Attributes
    ----------
    names : tuple of str
        "intercept" first if there is a bias, then the features.
    estimate, standard_error, t, p : arrays
        One entry per name. ``p`` is two-sided, for the hypothesis that the true weight is zero.
    covariance : array
        σ̂² (A'SA)⁺.
    sigma2 : float
        σ̂² = RSS / (m − r), unbiased.
    dof : float
        m − r.
    rank : int
        The rank r of A.
    """

    names: tuple[str, ...]
    estimate: Array
    covariance: Array
    sigma2: float
    dof: float
    rank: int

    @property
    def t(self) -> Array:
        """Student's statistic: estimate / standard error."""
        return self._ratio()

    def _reference(self) -> Any:
        return scipy.stats.t(self.dof)

    def _covariance(self) -> Array:
        return self.covariance

    def __str__(self) -> str:
        low, high = self.interval().T
        width = max(len(name) for name in self.names)
        head = f"{'':{width}}  {'estimate':>11} {'std. error':>11} {'t':>9} {'p':>9} {'95 % from':>11} {'to':>11}"
        rows = [
            f"{name:{width}}  {e:11.5g} {s:11.4g} {t:9.3f} {p:9.3g} {l:11.5g} {h:11.5g}"
            for name, e, s, t, p, l, h in zip(self.names, self.estimate, self.standard_error, self.t, self.p, low, high)
        ]
        foot = f"σ̂ = {np.sqrt(self.sigma2):.5g} on {self.dof:g} degrees of freedom"
        return "\n".join([head, *rows, foot])


def infer(
    gram: Array, x_mean: Array, estimate: Array, bias: float, rss: float, total: float, names: tuple[str, ...], *,
    fit_intercept: bool,
) -> Inference:  # fmt: skip
    """Inference from the centred Gram matrix X̃'SX̃ (not divided by anything), the means and the residual sum."""
    inverse, rank = scipy.linalg.pinvh(gram, return_rank=True) if len(gram) else (gram, 0)
    dof = total - rank - int(fit_intercept)
    sigma2 = rss / dof if dof > 0 else np.nan
    if fit_intercept:
        # b = ȳ − μ'w, and ȳ is uncorrelated with w.
        edge = -inverse @ x_mean
        corner = 1.0 / total - edge @ x_mean
        inverse = np.block([[np.array([[corner]]), edge[None, :]], [edge[:, None], inverse]])
        estimate, names = np.append(bias, estimate), ("intercept", *names)
    return Inference(names, estimate, sigma2 * inverse, sigma2, dof, rank + int(fit_intercept))


@dataclass(frozen=True)
class Moments:
    """Bias, covariance and mean squared error ‖bias‖² + tr(covariance) of an estimator of θ.

    Attributes
    ----------
    bias : array of shape (d,)
        E θ̂ − θ.
    covariance : array of shape (d, d)
        Cov θ̂.
    """

    bias: Array
    covariance: Array

    @property
    def mse(self) -> float:
        return float(self.bias @ self.bias + np.trace(self.covariance))


def ridge_moments(X: Array, theta: Array, *, sigma: float = 1.0, alpha: float = 0.0) -> Moments:
    """Closed-form moments of the ridge estimate (X'X + αI)⁻¹X'y when y = Xθ + ε with Var ε = σ²I, X fixed.

    bias = −α(αI + X'X)⁻¹θ and Cov = σ²[(αI + X'X)⁻¹ − α(αI + X'X)⁻²]; with α = 0 this is least squares: unbiased,
    σ²(X'X)⁻¹. More regularisation means less variance and more bias.

    Parameters
    ----------
    X : array of shape (n, d)
        The inputs, held fixed; a column of ones makes a bias (that is penalised).
    theta : array of shape (d,)
        The true weights θ.
    sigma : float
        The standard deviation σ of the noise.
    alpha : float
        The strength α ≥ 0 of ridge; 0 is least squares.

    Examples
    --------
    Two points x = ±1 with a constant feature, σ = 1, θ = (3, 0), α = 1: (4σ² + α²‖θ‖²)/(2 + α)² = 13/9.

    >>> ridge_moments(np.array([[1.0, 1.0], [1.0, -1.0]]), np.array([3.0, 0.0]), alpha=1.0).mse
    1.4444444444444444
    """
    X, theta = np.asarray(X, dtype=np.float64), np.asarray(theta, dtype=np.float64)
    gram = X.T @ X
    inverse = scipy.linalg.inv(gram + alpha * np.eye(len(gram)))
    return Moments(-alpha * inverse @ theta, sigma**2 * (inverse - alpha * inverse @ inverse))


@dataclass(frozen=True)
class NoiseVariance:
    """Three estimates of σ² in y = Xθ + b + ε, ε ~ N(0, σ²I).

    Attributes
    ----------
    maximum_likelihood : float
        RSS/n of least squares: too small by the factor (n − r)/n on average.
    unbiased : float
        RSS/(n − r), r the number of fitted parameters (the rank of [1 X]); nan if there are as many as examples.
    maximum_posterior : float
        (RSS + α‖θ‖²)/(n + d) of ridge: the mode under the prior θ ~ N(0, (σ²/α) I) that is tied to σ². The bias has a flat
        prior. With α = 0 it is RSS/n (the prior says nothing).
    """

    maximum_likelihood: float
    unbiased: float
    maximum_posterior: float


def noise_variance(X: Array, y: Array, *, alpha: float = 0.0, fit_intercept: bool = True) -> NoiseVariance:
    """The estimates of σ² side by side.

    The log-posterior under the tied prior is −(n + d)/2·log σ² − (RSS(θ) + α‖θ‖²)/(2σ²) + const: its maximum in θ is ridge,
    whatever σ², and its maximum in σ² then follows.

    Parameters
    ----------
    X, y : arrays of shape (n, d) and (n,)
        Inputs and targets.
    alpha : float
        α ≥ 0, the ratio of σ² to the variance of the prior.
    fit_intercept : bool
        Whether there is a bias b.

    Examples
    --------
    >>> X, y = np.array([[-1.0], [0.0], [1.0]]), np.array([-1.0, 1.0, 0.0])
    >>> noise_variance(X, y, alpha=2.0)
    NoiseVariance(maximum_likelihood=0.5, unbiased=1.5, maximum_posterior=0.4375)
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if not (np.isfinite(alpha) and alpha >= 0):
        raise ValueError(f"alpha must be a finite number, zero or more, got {alpha!r}.")
    if fit_intercept:
        X, y = X - X.mean(axis=0), y - y.mean()
    n, d = X.shape
    free, _, rank, _ = np.linalg.lstsq(X, y, rcond=None)
    rss = float(np.sum((y - X @ free) ** 2))
    dof = n - int(rank) - int(fit_intercept)
    if alpha == 0:
        return NoiseVariance(rss / n, rss / dof if dof > 0 else np.nan, rss / n)
    theta = np.linalg.solve(X.T @ X + alpha * np.eye(d), X.T @ y)
    penalised = float(np.sum((y - X @ theta) ** 2) + alpha * theta @ theta)
    return NoiseVariance(rss / n, rss / dof if dof > 0 else np.nan, penalised / (n + d))
