"""Robust and quantile regression, and linear support vector regression."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from hinge._parameters import Constraints, above, at_least, between, count, one_of, shared
from hinge.models.base import require_no_overflow
from hinge.models.linear.base import LinearRegressor, check_strength, elastic_penalty
from hinge.models.linear.certify import Certifiable
from hinge.problem.certificates.certificate import with_run
from hinge.problem.certificates.linear import certificate
from hinge.problem.losses import Absolute, EpsilonInsensitive, Huber, Loss, Quantile, Squared, SquaredEpsilonInsensitive
from hinge.problem.numerics import weighted_sum
from hinge.problem.objective import Array, Objective, make_objective
from hinge.problem.penalties import Penalty
from hinge.solvers.base import Solution, Status
from hinge.solvers.closed_form import Centred
from hinge.solvers.run import Result

NO_ERRORS = 1e-12  # of the spread of the targets: residuals that are zero but for rounding
WIDEST = 60  # steps in log σ until a bracket is found
STEPS = 100  # of the search inside it
ROUNDS = 20  # in which Huber's weights and scale are fitted in turns


class _RealLoss(Certifiable, LinearRegressor):
    """Minimises Σ sᵢ ℓ(yᵢ, f(xᵢ)) / Σ sᵢ + Ω(w) for the loss and penalty a subclass names."""

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

    The fit estimates the median of y given x, and one wild target cannot drag it far.

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

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("l1_ratio"),
        "alpha": [at_least(0)],
    }

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

    ℓ(r) = max(|r| − ε, 0), or its square. Errors up to ε are free. The bias is not penalised.

    Parameters
    ----------
    epsilon : float
        ε ≥ 0.
    tol : float
        The relative duality gap to reach.
    C : float
        The weight of the data against the penalty, above zero.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
    fit_intercept : bool
        Whether there is a bias b.
    intercept_scaling, dual, verbose
        Accepted for compatibility: the bias is not penalised, so it needs no scaling, and the solver is chosen.
    random_state : int, optional
        The seed of stochastic solvers.
    max_iter : int, optional
        A limit on iterations; each solver has its own default. Those of dual coordinate descent are epochs.
    l1_ratio : float
        The share ρ of the L1 penalty.
    solver : str
        "auto" or the name of a solver.

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


class HuberRegressor(Certifiable, LinearRegressor):
    """Huber's regression with its scale: minimises Σ sᵢ [σ + σ·H_ε((yᵢ − ⟨w, xᵢ⟩ − b)/σ)] + α[ρ‖w‖₁ + (1−ρ)‖w‖²].

    H_ε(z) = z² for |z| ≤ ε and 2ε|z| − ε² beyond: targets further than εσ from the fit count linearly. The problem is
    convex in (w, b, σ) together. For a given σ it is a Huber regression with δ = εσ; the best σ is where the
    derivative of what is left, an increasing function, is zero.

    Parameters
    ----------
    epsilon : float
        ε ≥ 1: from how many scales on a target is an outlier.
    max_iter : int, optional
        A limit on iterations, those for all scales that are tried together; ``n_iter_`` is how many there were.
    alpha : float
        The strength α ≥ 0.
    warm_start : bool
        Begin at the weights of the last fit.
    fit_intercept : bool
        Whether there is a bias b; it is not penalised.
    tol : float
        The relative duality gap to reach for the weights, and the relative accuracy of the scale.
    l1_ratio : float
        The share ρ of the L1 penalty.
    scale : float, optional
        A known scale σ. Estimated if absent.
    solver : str
        "auto" or the name of a solver.

    Attributes
    ----------
    coef_, intercept_, n_iter_ : as in scikit-learn
    solver_ : str
        The solver that ran, by its name here.
    scale_ : float
        σ.
    outliers_ : array of bool
        Which targets are further than εσ from the fit.
    certificate_ : Certificate
        Of the weights, given the scale.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(20.0)[:, None]
    >>> y = 2.0 * X[:, 0] + np.tile([0.1, -0.1], 10)
    >>> y[7] = 500.0
    >>> model = hg.HuberRegressor().fit(X, y)
    >>> bool(abs(model.coef_[0] - 2.0) < 0.02), np.flatnonzero(model.outliers_)
    (True, array([7]))
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("l1_ratio"),
        "epsilon": [between(1, 1e150)],
        "max_iter": [count(0), None],
        "alpha": [at_least(0)],
        "scale": [above(0), None],
    }

    def __init__(
        self,
        *,
        epsilon: float = 1.35,
        max_iter: int | None = None,
        alpha: float = 0.0001,
        warm_start: bool = False,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        l1_ratio: float = 0.0,
        scale: float | None = None,
        solver: Any = "auto",
    ) -> None:
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.alpha = alpha
        self.warm_start = warm_start
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.l1_ratio = l1_ratio
        self.scale = scale
        self.solver = solver

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HuberRegressor:
        """Fit; a weight of 2 means the same as having the example twice."""
        X, y, weights = self._check(X, y, sample_weight)
        objective = make_objective(X, y, Squared(), None, sample_weight=weights, fit_intercept=self.fit_intercept)
        search = _ScaleSearch(self, objective)
        self.scale_, result = search.at(self.scale) if self.scale is not None else search.best()
        self._adopt(result, X.dtype)
        self.n_iter_ = search.iterations
        residuals = np.abs(y - objective.scores(result.w, result.b))
        self.outliers_ = residuals > self.epsilon * self.scale_
        return self

    def _prepare_to_certify(self) -> None:
        self.scale = self.scale_

    def _at_scale(self, objective: Objective, scale: float) -> Objective:
        """The problem in (w, b) divided by 2Σs/σ: mean Huber loss + (ασ/Σs)(ρ/2·‖w‖₁ + (1−ρ)/2·‖w‖²)."""
        strength, ratio = self.alpha * scale / objective.weight_sum, self.l1_ratio
        # The L1 part carries ½ and the L2 part 1, so the share of L1 in the elastic net is (ρ/2)/(ρ/2 + 1 − ρ).
        total = 0.5 * ratio + (1.0 - ratio)
        return _with(objective, Huber(self.epsilon * scale), elastic_penalty(strength * total, 0.5 * ratio / total))


def _with(objective: Objective, loss: Loss, penalty: Penalty) -> Objective:
    """The same data under another loss and penalty."""
    return Objective(
        objective.design, objective.y, objective.c, loss, penalty, objective.fit_intercept, objective.outputs,
        objective.offset, objective.weight_sum,
    )  # fmt: skip


def scale_of(squares: Array, c: Array, epsilon: float) -> float:
    """The best scale for residuals given by their squares: the root of h(t) = Σ cᵢ min(t rᵢ², ε²) = 1, t = 1/σ².

    h is concave, increasing and piecewise linear, so Newton's method from t = 0 never overshoots and ends exactly.
    Zero if there is no root: so many residuals are zero that every smaller scale is better.
    """
    t = 0.0
    for _ in range(200):
        inside = t * squares <= epsilon**2
        mass = float(weighted_sum(c, np.where(inside, squares, 0.0)))
        left = 1.0 - float(weighted_sum(c, np.where(inside, t * squares, epsilon**2)))
        if mass <= 0.0:
            return 0.0
        if left <= 1e-15:
            break
        t += left / mass
    return 1.0 / float(np.sqrt(t))


class _IterationsSpent(Exception):
    """The limit on iterations was reached during the search for the scale."""


class _ScaleSearch:
    """The best scale: the root of φ'(σ) = 1 − Σ cᵢ min(rᵢ²/σ², ε²), with the weights refitted at every σ."""

    def __init__(self, model: HuberRegressor, objective: Objective) -> None:
        self.model, self.objective = model, objective
        self.start: Any = model._warm_start(objective)
        self.iterations = 0

    def at(self, scale: Any) -> tuple[float, Result]:
        scale = check_strength("scale", scale, zero=False)
        left = self.left()
        result = self.model._solve(self.model._at_scale(self.objective, scale), self.start, max_iter=left)
        self.iterations += max(result.solution.iterations, 0 if left == 0 else 1)
        return scale, result

    def left(self) -> int | None:
        """How many iterations are left; None if there is no limit."""
        return None if self.model.max_iter is None else max(self.model.max_iter - self.iterations, 0)

    def trial(self, scale: float) -> Solution:
        """The weights at a scale that need not be the last: without a certificate."""
        at_scale, left = self.model._at_scale(self.objective, scale), self.left()
        fit = self.model._solve_unjudged(at_scale, self.start, tol=self.model.tol, max_iter=left)
        self.start = (fit.w, fit.b)
        self.iterations += max(fit.iterations, 0 if left == 0 else 1)
        if self.left() == 0:
            raise _IterationsSpent
        return fit

    def residuals(self, fit: Solution) -> Array:
        return self.objective.y - self.objective.scores(fit.w, fit.b)

    def derivative(self, log_scale: float) -> float:
        scale = float(np.exp(log_scale))
        r = self.residuals(self.trial(scale)) / scale
        return 1.0 - float(weighted_sum(self.objective.c, np.minimum(r**2, self.model.epsilon**2)))

    def best(self) -> tuple[float, Result]:
        y, c = self.objective.y, self.objective.c
        with np.errstate(over="ignore"):
            spread = float(np.sqrt(weighted_sum(c, (y - weighted_sum(c, y)) ** 2)))
        require_no_overflow(spread)
        floor = 1e-10 * max(spread, np.max(np.abs(self.objective.y), initial=0.0), 1e-300)
        perfect = self.perfect(floor)
        if perfect is not None:
            return floor, perfect
        try:
            return self.search(spread, floor)
        except _IterationsSpent:  # the best scale for the last weights, which the certificate judges at that scale
            squares = (y - self.objective.scores(*self.start)) ** 2
            return self.at(max(scale_of(squares, c, self.model.epsilon), floor))

    def search(self, spread: float, floor: float) -> tuple[float, Result]:
        """The best scale above ``floor``, and the weights there."""
        c = self.objective.c
        # Start from the residuals of least squares.
        squares = self.residuals(self.trial(10.0 * spread + floor)) ** 2
        guess = np.log(max(float(np.sqrt(weighted_sum(c, squares))), floor))
        # The weights hardly depend on the scale: in turns, each given the other, a few rounds are enough. The best scale
        # for the weights at scale σ is g(σ), 0 ≤ d log g / d log σ < 1; secants of log g(σ) − log σ find its root.
        best = scale_of(squares, c, self.model.epsilon)
        here, change, step, secant = np.log(max(best, 0.5 * floor)), np.nan, 0.0, -1.0
        for _ in range(ROUNDS):
            if not here > np.log(floor):
                break
            squares = self.residuals(self.trial(float(np.exp(here)))) ** 2
            best = scale_of(squares, c, self.model.epsilon)
            if not best > floor:
                break
            last, change = change, float(np.log(best) - here)
            if abs(change) <= 1e-4 * self.model.tol:
                return self.at(np.exp(here))
            if np.isfinite(last):
                secant = float(np.clip((change - last) / step, -1.0, -0.1))
            step = -change / secant
            here += step
        # Otherwise bracket the root, the weights refitted at every trial.
        low, high = guess - 1.0, guess + 0.1
        at_high = self.derivative(high)
        for _ in range(WIDEST):
            if at_high >= 0:
                break
            low, high = high, high + 1.0
            at_high = self.derivative(high)
        at_low = self.derivative(low)
        while at_low > 0:
            if low < np.log(floor):  # a perfect fit: every scale down to zero is better than the last
                return self.at(np.exp(low))
            low, high, at_high = low - 1.5, low, at_low
            at_low = self.derivative(low)
        return self.at(np.exp(self.root(low, high, at_low, at_high)))

    def root(self, low: float, high: float, at_low: float, at_high: float) -> float:
        """A root of ``derivative`` in a bracket, by regula falsi (Illinois); ends, even where fits are not finished."""
        middle = low
        for _ in range(STEPS):
            if high - low <= 1e-4 * self.model.tol:
                break
            middle = high - at_high * (high - low) / (at_high - at_low) if at_high > at_low else np.nan
            if not low < middle < high:
                middle = 0.5 * (low + high)
            now = self.derivative(middle)
            if now == 0.0:
                break
            if now < 0:
                low, at_low, at_high = middle, now, 0.5 * at_high
            else:
                high, at_high, at_low = middle, now, 0.5 * at_low
        return middle

    def perfect(self, floor: float) -> Result | None:
        """The shortest weights without errors, if no scale above zero is better.

        min_σ Σ sᵢ(σ + σH(rᵢ/σ)) is a gauge of the residuals, so r = 0 is optimal where the multipliers v of the shortest
        weights, X'v = 2αw and Σ vᵢ = 0, lie in its polar: |vᵢ| ≤ 2εsᵢ and Σ vᵢ²/(4sᵢ) ≤ Σ sᵢ.
        """
        model, objective = self.model, self.objective
        n, d = objective.design.shape
        if d < n - int(objective.fit_intercept) or model.l1_ratio > 0:
            return None
        problem = Centred(objective.design, objective.y, objective.c, objective.fit_intercept)
        solved = problem.solve_dual(np.zeros(d))
        if solved is None:
            return None
        W, A = solved
        w, b = W[:, 0], problem.bias(W)
        if np.max(np.abs(problem.residual(W))) > NO_ERRORS * np.max(np.abs(objective.y)):
            return None
        v = A[:, 0] / np.sqrt(objective.c) * (2.0 * model.alpha / objective.weight_sum)  # vᵢ/sᵢ
        if np.max(np.abs(v)) > 2.0 * model.epsilon or weighted_sum(objective.c, v**2) > 4.0:
            return None
        self.iterations += 1
        at_floor = model._at_scale(objective, floor)
        judged = certificate(at_floor, w, b, dual=-0.5 * floor * v, tol=model.tol)
        judged = with_run(judged, solver="closed-form", iterations=1, seconds=0.0, status=Status.CONVERGED.value)
        return Result(Solution(w, b, Status.CONVERGED, 1), judged)
