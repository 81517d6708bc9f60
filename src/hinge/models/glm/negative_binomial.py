"""Negative binomial regression with a given or fitted shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.optimize
from scipy.special import digamma

from hinge._parameters import Constraints, between
from hinge.models.glm.base import GeneralisedLinearModel
from hinge.problem.distributions import Distribution, NegativeBinomialCounts, PoissonCounts
from hinge.problem.links import Link, LogLink
from hinge.problem.losses import Loss
from hinge.problem.losses.linked import likelihood_loss
from hinge.problem.numerics import weighted_sum
from hinge.problem.objective import Objective
from hinge.solvers.run import Result

# The search range of log θ; a shape beyond it cannot be distinguished from a Poisson distribution.
LOG_RANGE = (-16.0, 12.0)
ROUNDS = 60


class NegativeBinomialRegressor(GeneralisedLinearModel):
    """Negative binomial regression: counts with mean μ = e^{⟨w, x⟩ + b} and variance μ + μ²/θ.

    Minimises  −Σ sᵢ log p(yᵢ | μᵢ, θ) / Σ sᵢ + α(ρ‖w‖₁ + (1−ρ)/2·‖w‖²)  over w, b and, unless it is given, the shape θ
    (profile likelihood: the weights are fitted for each θ in turn). For a given θ the problem is convex and the certificate
    is its duality gap. If the counts vary no more than Poisson counts, θ is infinite and the fit is the Poisson fit.
    Standard errors of the weights treat θ as known; θ and the weights are orthogonal in the Fisher information.

    Parameters
    ----------
    theta : float, optional
        The shape θ > 0; fitted if absent.
    alpha, fit_intercept, solver, max_iter, tol, warm_start, verbose, l1_ratio, categorical_features, inference, dispersion
        As in :class:`PoissonRegressor`.

    Attributes
    ----------
    theta_ : float
        The shape that was given or fitted.
    coef_, intercept_, n_iter_, coef_names_, certificate_, inference_
        As in :class:`PoissonRegressor`.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> rng = np.random.default_rng(0)
    >>> y = rng.poisson(3.0 * rng.gamma(2.0, 0.5, size=5000)).astype(float)
    >>> model = hg.NegativeBinomialRegressor(alpha=0.0).fit(np.zeros((5000, 1)), y)
    >>> bool(abs(model.theta_ - 2.0) < 0.2)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {"theta": [between(0, np.inf, "right"), None]}

    def __init__(
        self,
        *,
        theta: float | None = None,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        solver: Any = "auto",
        max_iter: int | None = 100,
        tol: float = 1e-6,
        warm_start: bool = False,
        verbose: int = 0,
        l1_ratio: float = 0.0,
        categorical_features: Any = "from_dtype",
        inference: bool = False,
        dispersion: float | str | None = None,
    ) -> None:
        self.theta = theta
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose
        self.l1_ratio = l1_ratio
        self.categorical_features = categorical_features
        self.inference = inference
        self.dispersion = dispersion

    def _pair(self) -> tuple[Distribution, Link]:
        if self.theta is None:
            return PoissonCounts(), LogLink()  # the initial model of the search, with the same targets and link
        return _counts(float(self.theta)), LogLink()

    def _fitted_pair(self) -> tuple[Distribution, Link]:
        return _counts(self.theta_), LogLink()

    def _extra_parameters(self) -> int:
        return int(self.theta is None)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None, exposure: Any = None) -> Any:
        """Fit by maximum (penalised) likelihood; see :meth:`PoissonRegressor.fit`."""
        objective = self._objective(X, y, sample_weight, offset, exposure)
        if self.theta is None:
            objective, result = self._profile(objective)
        else:
            self.theta_ = float(self.theta)
            result = self._solve(objective, self._start(objective))
        self._adopt(result, objective.design.source.dtype)
        self._conclude(objective, result)
        return self

    def _prepare_to_certify(self) -> None:
        self.theta = self.theta_

    def _profile(self, objective: Objective) -> tuple[Objective, Result]:
        """Alternates between weights and θ until θ converges; they are nearly independent, so a few rounds are enough."""
        result = self._solve(objective, self._start(objective))
        search = ShapeSearch(objective)
        self.theta_ = np.inf
        for _ in range(ROUNDS):
            before, self.theta_ = self.theta_, search.best(result)
            objective = replace(objective, loss=_loss(self.theta_))
            result = self._solve(objective, (result.w, result.b))
            if self.theta_ == before or abs(self.theta_ - before) <= 1e-9 * self.theta_:
                break
        return objective, result


def _counts(theta: float) -> Distribution:
    return NegativeBinomialCounts(1.0 / theta) if np.isfinite(theta) else PoissonCounts()


def _loss(theta: float) -> Loss:
    return likelihood_loss(_counts(theta), LogLink())


class ShapeSearch:
    """The maximum-likelihood θ for given means: the root of the derivative of the likelihood.

    dL/dθ = Σ c [ψ(y + θ) − ψ(θ) + log θ + 1 − log(θ + μ) − (y + θ)/(θ + μ)], with ψ computed once per distinct count.
    """

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._counts, at = np.unique(objective.y, return_inverse=True)
        self._shares = np.bincount(at, weights=objective.c)

    def best(self, result: Result) -> float:
        """θ; infinity if the likelihood still increases at the end of the range, towards the Poisson model."""
        y, c = self._objective.y, self._objective.c
        with np.errstate(over="ignore"):
            mean = np.exp(np.clip(self._objective.scores(result.w, result.b), -700.0, 700.0))

        def derivative(log_theta: float) -> float:
            theta = np.exp(log_theta)
            counts = self._shares @ (digamma(self._counts + theta) - digamma(theta))
            return float(counts + weighted_sum(c, (mean - y) / (theta + mean) - np.log1p(mean / theta)))

        low, high = LOG_RANGE
        if derivative(high) >= 0:
            return np.inf
        if derivative(low) <= 0:
            return float(np.exp(low))
        return float(np.exp(scipy.optimize.brentq(derivative, low, high, xtol=1e-11, rtol=1e-13)))
