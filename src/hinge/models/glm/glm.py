"""The generalised linear model: any distribution × any link."""

from __future__ import annotations

from typing import Any, ClassVar

from hinge._parameters import Constraints
from hinge.models.glm.base import GeneralisedLinearModel
from hinge.problem.distributions import Distribution, as_distribution
from hinge.problem.links import Link, as_link
from hinge.problem.losses import Loss


class GLM(GeneralisedLinearModel):
    """A generalised linear model: y has a distribution with mean μ = g⁻¹(⟨w, x⟩ + b + offset), fitted by maximum likelihood.

    Minimises  Σ sᵢ ½ d(yᵢ, μᵢ) / Σ sᵢ + α(ρ‖w‖₁ + (1−ρ)/2·‖w‖²),  d the unit deviance of the distribution. If the loss is
    convex in the score and its conjugate is known (as for every distribution with its default link), the certificate is a
    duality gap; otherwise it is a stationarity residual, and the solver is Fisher scoring.

    Parameters
    ----------
    distribution : str or likelihood
        "gaussian", "bernoulli" (or "binomial": y is a share, and the weight the number of trials), "poisson", "gamma",
        "inverse-gaussian", "tweedie", "negative-binomial", or a likelihood with its parameter such as
        ``hg.Tweedie(1.3)`` or ``hg.NegativeBinomial(0.5)``. For classes see :class:`LogisticRegression`, the GLM of
        the categorical distribution with the softmax link.
    link : str, float or None
        g: "identity", "log", "logit", "probit", "cloglog", "loglog", "cauchit", "inverse", "inverse-squared", "sqrt", or
        a number p for g(μ) = μ^p (0 is the logarithm). None is the usual one: the identity for the Gaussian, the logit
        for the Bernoulli, the logarithm for the others.
    alpha : float
        The strength α ≥ 0 of the penalty; 0, the default, is maximum likelihood.
    l1_ratio : float
        The share ρ of the L1 penalty: 0 is ridge, 1 is the lasso.
    inference : bool
        Compute ``inference_``: standard errors, tests, measures of fit.
    fit_intercept, solver, max_iter, tol, warm_start, categorical_features, dispersion
        As in :class:`PoissonRegressor`.

    Attributes
    ----------
    coef_, intercept_, n_iter_, coef_names_ : as in :class:`PoissonRegressor`
    certificate_ : Certificate
    inference_ : GLMInference
        If ``inference=True``; ``summary()`` prints it.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> model = hg.GLM("poisson").fit(x, [1, 2, 2, 5, 9, 14])
    >>> model.coef_.round(4), model.inference_.standard_error.round(4)
    (array([0.5403]), array([0.5263, 0.1291]))
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "distribution": [str, Distribution, Loss],
        "link": [str, Link, None],
    }

    def __init__(
        self,
        distribution: Any = "gaussian",
        link: Any = None,
        *,
        alpha: float = 0.0,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        solver: Any = "auto",
        max_iter: int | None = 100,
        tol: float = 1e-9,
        warm_start: bool = False,
        categorical_features: Any = "from_dtype",
        inference: bool = True,
        dispersion: float | str | None = None,
    ) -> None:
        self.distribution = distribution
        self.link = link
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.categorical_features = categorical_features
        self.inference = inference
        self.dispersion = dispersion

    def _pair(self) -> tuple[Distribution, Link]:
        distribution = as_distribution(self.distribution)
        return distribution, as_link(distribution.default_link if self.link is None else self.link)
