"""Poisson, gamma, Tweedie and negative binomial regression, under scikit-learn's names where it has them."""

from __future__ import annotations

from typing import Any, ClassVar

from hinge._parameters import Constraints, between
from hinge.models.glm.base import GeneralisedLinearModel
from hinge.problem.distributions import Distribution, GammaAmounts, PoissonCounts, tweedie
from hinge.problem.links import Link, LogLink, as_link


class _LogRegressor(GeneralisedLinearModel):
    """A distribution of nonnegative targets with the log link; scikit-learn's parameters and hinge's."""

    def __init__(
        self,
        *,
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


class PoissonRegressor(_LogRegressor):
    """Poisson regression: counts with mean μ = e^{⟨w, x⟩ + b}.

    Minimises  Σ sᵢ (μᵢ − yᵢ log μᵢ + const) / Σ sᵢ + α(ρ‖w‖₁ + (1−ρ)/2·‖w‖²),  where the loss is half the unit deviance.
    Without a penalty that is maximum likelihood.

    Parameters
    ----------
    alpha : float
        The strength α ≥ 0 of the penalty; 0 for maximum likelihood.
    fit_intercept : bool
        Whether there is a bias b; it is not penalised.
    solver : str
        "auto" or the name of a solver, ours or scikit-learn's; ``solver_`` shows which one ran.
    max_iter : int, optional
        A limit on iterations.
    tol : float
        The relative duality gap to reach.
    warm_start : bool
        Begin at the weights of the last fit.
    verbose : int
        Accepted for compatibility; see ``set_callbacks`` for progress bars.
    l1_ratio : float
        The share ρ of the L1 penalty: 0 is ridge, 1 is the lasso.
    categorical_features : "from_dtype", None, or a mask, indices or names
        Which columns are categories. By default those of a data frame that say so, or hold text. A category of k
        levels gets k weights (k − 1 without a penalty: its first level is the reference); its columns of zeros and
        ones are never written out.
    inference : bool
        Compute ``inference_``: standard errors, tests, measures of fit. It costs about one more iteration.
    dispersion : None, "pearson" or float
        The dispersion φ that standard errors use: by default 1 for distributions that have none (Poisson, binomial,
        negative binomial), else Pearson's estimate.

    Attributes
    ----------
    coef_, intercept_, n_iter_ : as in scikit-learn
    solver_ : str
        The solver that ran, by its name here.
    coef_names_ : list of str
        What each entry of ``coef_`` belongs to: columns, and ``category=level``.
    certificate_ : Certificate
    inference_ : GLMInference
        If ``inference=True``.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([1.0, 3.0, 4.0, 8.0])
    >>> model = hg.PoissonRegressor(alpha=0.0).fit(X, y)
    >>> model.predict([[0.0], [1.0]]).round(2)
    array([2., 6.])
    >>> hg.PoissonRegressor(alpha=0.0).fit(X, y, exposure=[1, 1, 2, 2]).predict([[1.0]]).round(2)
    array([3.])
    """

    def _pair(self) -> tuple[Distribution, Link]:
        return PoissonCounts(), LogLink()


class GammaRegressor(_LogRegressor):
    """Gamma regression: positive targets with mean μ = e^{⟨w, x⟩ + b} and standard deviation in proportion to it.

    Minimises  Σ sᵢ (yᵢ/μᵢ + log μᵢ + const) / Σ sᵢ + α(ρ‖w‖₁ + (1−ρ)/2·‖w‖²). Attributes are
    those of :class:`PoissonRegressor`.

    Parameters
    ----------
    alpha, fit_intercept, solver, max_iter, tol, warm_start, verbose, l1_ratio, categorical_features, inference,
    dispersion
        As in :class:`PoissonRegressor`.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([1.0, 3.0, 4.0, 8.0])
    >>> hg.GammaRegressor(alpha=0.0).fit(X, y).predict([[0.0], [1.0]]).round(2)
    array([2., 6.])
    """

    def _pair(self) -> tuple[Distribution, Link]:
        return GammaAmounts(), LogLink()


class TweedieRegressor(GeneralisedLinearModel):
    """Tweedie regression: targets with variance φ μ^p.

    Minimises  Σ sᵢ ½ d_p(yᵢ, μᵢ) / Σ sᵢ + α(ρ‖w‖₁ + (1−ρ)/2·‖w‖²),  d_p the unit deviance of the power p: 0 is the
    Gaussian, 1 Poisson, 1 < p < 2 a sum of gamma amounts over a Poisson number of events (many exact zeros), 2 gamma, 3
    the inverse Gaussian.

    Parameters
    ----------
    power : float
        p. No distribution exists for 0 < p < 1.
    alpha, fit_intercept, solver, max_iter, tol, warm_start, verbose, l1_ratio, categorical_features, inference, dispersion
        As in :class:`PoissonRegressor`.
    link : {"auto", "identity", "log"} or any link of :class:`GLM`
        "auto" is the identity for p ≤ 0 and the logarithm otherwise. For 1 ≤ p ≤ 2 with the log link the objective is
        convex and the certificate a duality gap; for most other pairs it is a stationarity residual.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0.0, 4.0, 4.0, 8.0])
    >>> hg.TweedieRegressor(power=1.5, alpha=0.0).fit(X, y).predict([[0.0], [1.0]]).round(2)
    array([2., 6.])
    """

    _parameter_constraints: ClassVar[Constraints] = {"power": [between(None, None, "neither")], "link": [str, Link]}

    def __init__(
        self,
        *,
        power: float = 0.0,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        link: Any = "auto",
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
        self.power = power
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.link = link
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
        automatic = "identity" if self.power <= 0 else "log"
        return tweedie(self.power), as_link(automatic if self.link == "auto" else self.link)
