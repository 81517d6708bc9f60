"""Huber's regression, with weights and scale fitted jointly."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from hinge._parameters import Constraints, above, at_least, between, count, shared
from hinge.models.base import require_no_overflow
from hinge.models.linear.base import LinearRegressor, check_strength, elastic_penalty
from hinge.models.linear.certify import Certifiable
from hinge.problem.certificates.certificate import with_run
from hinge.problem.certificates.linear import certificate
from hinge.problem.losses import Huber, Loss, Squared
from hinge.problem.numerics import weighted_sum
from hinge.problem.objective import Array, Objective, make_objective
from hinge.problem.penalties import Penalty
from hinge.solvers.base import Solution, Status
from hinge.solvers.closed_form import Centred
from hinge.solvers.run import Result

NO_ERRORS = 1e-12  # relative to the spread of the targets: smaller residuals are zero up to rounding
WIDEST = 60  # steps in log σ to find a bracket
STEPS = 100  # steps of the search in the bracket
ROUNDS = 20  # rounds that alternate between weights and scale


class HuberRegressor(Certifiable, LinearRegressor):
    """Huber's regression with its scale: minimises Σ sᵢ [σ + σ·H_ε((yᵢ − ⟨w, xᵢ⟩ − b)/σ)] + α[ρ‖w‖₁ + (1−ρ)‖w‖²].

    H_ε(z) = z² for |z| ≤ ε and 2ε|z| − ε² beyond: targets further than εσ from the fit count linearly. The problem is
    convex in (w, b, σ) jointly. For a given σ it is a Huber regression with δ = εσ; the best σ is the root of the
    derivative of the minimum over (w, b), an increasing function.

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
        # The L1 part has the factor ½ and the L2 part 1, so the share of L1 in the elastic net is (ρ/2)/(ρ/2 + 1 − ρ).
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
    Zero if there is no root: enough residuals are zero that every smaller scale is better.
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
    """The search for the scale reached the limit on iterations."""


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
        """The number of iterations left; None if there is no limit."""
        return None if self.model.max_iter is None else max(self.model.max_iter - self.iterations, 0)

    def trial(self, scale: float) -> Solution:
        """The weights at a scale that may not be the last, without a certificate."""
        at_scale, left = self.model._at_scale(self.objective, scale), self.left()
        fit = self.model._solve_uncertified(at_scale, self.start, tol=self.model.tol, max_iter=left)
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
        except _IterationsSpent:  # the best scale for the last weights, which are certified at that scale
            squares = (y - self.objective.scores(*self.start)) ** 2
            return self.at(max(scale_of(squares, c, self.model.epsilon), floor))

    def search(self, spread: float, floor: float) -> tuple[float, Result]:
        """The best scale above ``floor``, and the weights there."""
        c = self.objective.c
        # Start from the residuals of least squares.
        squares = self.residuals(self.trial(10.0 * spread + floor)) ** 2
        guess = np.log(max(float(np.sqrt(weighted_sum(c, squares))), floor))
        # The weights hardly depend on the scale, so a few alternating rounds are enough. The best scale for the weights
        # at scale σ is g(σ), 0 ≤ d log g / d log σ < 1; secants of log g(σ) − log σ find its fixed point.
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
        # Otherwise bracket the root, with the weights refitted at every trial.
        low, high = guess - 1.0, guess + 0.1
        at_high = self.derivative(high)
        for _ in range(WIDEST):
            if at_high >= 0:
                break
            low, high = high, high + 1.0
            at_high = self.derivative(high)
        at_low = self.derivative(low)
        while at_low > 0:
            if low < np.log(floor):  # a perfect fit: every smaller scale is better
                return self.at(np.exp(low))
            low, high, at_high = low - 1.5, low, at_low
            at_low = self.derivative(low)
        return self.at(np.exp(self.root(low, high, at_low, at_high)))

    def root(self, low: float, high: float, at_low: float, at_high: float) -> float:
        """A root of ``derivative`` in a bracket, by regula falsi (Illinois); ends even if fits have not converged."""
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
        """The interpolating weights of least norm, if no scale above zero is better.

        min_σ Σ sᵢ(σ + σH(rᵢ/σ)) is a gauge of the residuals, so r = 0 is optimal if the multipliers v of the weights of
        least norm, X'v = 2αw and Σ vᵢ = 0, lie in its polar: |vᵢ| ≤ 2εsᵢ and Σ vᵢ²/(4sᵢ) ≤ Σ sᵢ.
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
        certified = certificate(at_floor, w, b, dual=-0.5 * floor * v, tol=model.tol)
        certified = with_run(certified, solver="closed-form", iterations=1, seconds=0.0, status=Status.CONVERGED.value)
        return Result(Solution(w, b, Status.CONVERGED, 1), certified)
