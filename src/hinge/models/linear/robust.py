"""Quantile regression, least absolute deviations, and linear support vector regression."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from hinge._parameters import Constraints, above, at_least, between, count, one_of, shared
from hinge.models.linear.base import LinearRegressor, elastic_penalty
from hinge.models.linear.certify import Certifiable
from hinge.problem.losses import Absolute, EpsilonInsensitive, Loss, Quantile, SquaredEpsilonInsensitive
from hinge.problem.penalties import Penalty
from hinge.solvers.run import Result


class _RealLoss(Certifiable, LinearRegressor):
    """Minimises Σ sᵢ ℓ(yᵢ, f(xᵢ)) / Σ sᵢ + Ω(w) for the loss and penalty of a subclass."""

    def score_loss(self) -> Loss:
        """The loss that is minimised."""
        raise NotImplementedError

    def _penalty(self, total: float) -> Penalty:
        """The penalty; ``total`` is Σ sᵢ."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit; a weight of 2 means the same as having the example twice."""
        X, y, weights = self._check(X, y, sample_weight)
        total = float(len(y)) if weights is None else float(weights.sum())
        self._minimise(X, y, self.score_loss(), self._penalty(total), weights)
        return self


class QuantileRegressor(_RealLoss):
    """Quantile regression: minimises Σ ρ_τ(yᵢ − ⟨w, xᵢ⟩ − b)/n + α‖w‖₁, ρ_τ(r) = τr for r ≥ 0 and (τ−1)r for r < 0.

    The fit estimates the τ-quantile of y given x: about a share τ of the targets lies below it. With sample weights
    1/n becomes sᵢ/Σs.

    Parameters
    ----------
    quantile : float
        τ, strictly between 0 and 1.
    alpha : float
        The strength α ≥ 0.
    fit_intercept : bool
        Whether there is a bias b; it is not penalised.
    solver : str
        "auto" or the name of a solver, ours or scikit-learn's; ``solver_`` shows which one ran.
    solver_options : dict, optional
        Accepted for compatibility.
    l1_ratio : float
        The penalty is α(ρ‖w‖₁ + (1−ρ)/2·‖w‖²); 1, the default, is the lasso.
    tol : float
        The relative duality gap to reach.
    max_iter : int, optional
        A limit on iterations; each solver has its own default.

    Attributes
    ----------
    coef_, intercept_, n_iter_ : as in scikit-learn
    solver_ : str
        The solver that ran, by its name here.
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X, y = np.zeros((5, 1)), np.array([1.0, 2.0, 3.0, 4.0, 100.0])
    >>> round(float(hg.QuantileRegressor(alpha=0.1).fit(X, y).intercept_), 4)
    3.0
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("l1_ratio"),
        "quantile": [between(0, 1, "neither")],
        "alpha": [at_least(0)],
        "solver_options": [dict, None],
    }

    def __init__(
        self,
        *,
        quantile: float = 0.5,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        solver: Any = "auto",
        solver_options: dict[str, Any] | None = None,
        l1_ratio: float = 1.0,
        tol: float = 1e-6,
        max_iter: int | None = None,
    ) -> None:
        self.quantile = quantile
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.solver_options = solver_options
        self.l1_ratio = l1_ratio
        self.tol = tol
        self.max_iter = max_iter

    def score_loss(self) -> Loss:
        """The loss that is minimised."""
        return Quantile(self.quantile)

    def _penalty(self, total: float) -> Penalty:
        return elastic_penalty(float(self.alpha), self.l1_ratio)


class LeastAbsoluteDeviations(_RealLoss):
    """Least absolute deviations: minimises Σ sᵢ |yᵢ − ⟨w, xᵢ⟩ − b| / Σ sᵢ + α(ρ‖w‖₁ + (1−ρ)/2·‖w‖²).

    The fit estimates the median of y given x, and a single outlier has little effect on it.

    Parameters
    ----------
    alpha : float
        The strength α ≥ 0. The default does no more than choose among equally good fits.
    l1_ratio : float
        The share ρ of the L1 penalty.
    fit_intercept, solver, tol, max_iter
        As in :class:`QuantileRegressor`.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(5.0)[:, None]
    >>> model = hg.LeastAbsoluteDeviations().fit(X, [0.0, 1.0, 2.0, 3.0, 400.0])
    >>> round(float(model.coef_[0]), 4)
    1.0
    """

    _parameter_constraints: ClassVar[Constraints] = {**shared("l1_ratio"), "alpha": [at_least(0)]}

    def __init__(
        self,
        alpha: float = 1e-6,
        *,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter

    def score_loss(self) -> Loss:
        """The loss that is minimised."""
        return Absolute()

    def _penalty(self, total: float) -> Penalty:
        return elastic_penalty(float(self.alpha), self.l1_ratio)


class LinearSVR(_RealLoss):
    """Linear support vector regression: minimises C Σ sᵢ ℓ(yᵢ − ⟨w, xᵢ⟩ − b) + ρ‖w‖₁ + (1−ρ)/2·‖w‖².

    ℓ(r) = max(|r| − ε, 0), or its square. Errors up to ε cost nothing. The bias is not penalised.

    Parameters
    ----------
    epsilon : float
        ε ≥ 0.
    tol, C, random_state, max_iter, solver
        As for :class:`LinearSVC`.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
        Errors beyond ε cost their size, or its square.
    fit_intercept : bool
        Whether there is a bias b.
    intercept_scaling, dual, verbose
        Accepted for compatibility: the bias is not penalised, so it needs no scaling, and the solver is chosen.
    l1_ratio : float
        The share ρ of the L1 penalty.

    Attributes
    ----------
    coef_, intercept_, n_iter_ : as in scikit-learn
    solver_ : str
        The solver that ran, by its name here.
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.linspace(-1, 1, 9)[:, None]
    >>> round(float(hg.LinearSVR(epsilon=0.5, C=10).fit(X, 2 * X[:, 0]).coef_[0]), 3)
    1.5
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("l1_ratio"),
        "epsilon": [at_least(0)],
        "max_iter": [count(0), None],
        "C": [above(0)],
        "loss": [one_of("epsilon_insensitive", "squared_epsilon_insensitive")],
        "intercept_scaling": [above(0)],
        "dual": ["boolean", one_of("auto")],
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-6,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: Any = "auto",
        verbose: int = 0,
        random_state: int | None = None,
        max_iter: int | None = None,
        l1_ratio: float = 0.0,
        solver: Any = "auto",
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.l1_ratio = l1_ratio
        self.solver = solver

    def score_loss(self) -> Loss:
        """The loss that is minimised."""
        losses = {
            "epsilon_insensitive": EpsilonInsensitive,
            "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
        }
        if self.epsilon == 0:
            return Absolute() if self.loss == "epsilon_insensitive" else SquaredEpsilonInsensitive(0.0)
        return losses[self.loss](self.epsilon)

    def _penalty(self, total: float) -> Penalty:
        return elastic_penalty(1.0 / (self.C * total), self.l1_ratio)

    def _adopt(self, result: Result, dtype: Any) -> None:
        super()._adopt(result, dtype)
        self.intercept_ = np.atleast_1d(self.intercept_)
