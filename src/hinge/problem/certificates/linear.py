"""The judge: how close weights are to the optimum, computed by code no solver owns.

For the problem  P(w, b) = Σ cᵢ ℓ(yᵢ, zᵢ) + Ω(w)  every choice of slopes u gives a lower bound of the optimum,

    D(u) = −Σ cᵢ ℓ*(yᵢ, uᵢ) + Σ cᵢ uᵢ offsetᵢ − Ω*(−X'(c∘u)),      Σ cᵢ uᵢ = 0 if there is a bias,

so gap = P(w, b) − D(u) ≥ P(w, b) − P* ≥ 0 (weak duality). The judge makes slopes out of the weights alone, and,
where a solver offers its own, tries those too after forcing them to be feasible; a wrong offer can only make the gap
larger. At the optimum the gap closes (strong duality).

Slopes from weights. First u = ℓ'(z) at the best bias for w, so that they balance exactly, scaled towards zero until
Ω* is finite (the domains of the conjugates are convex and contain zero, so it stays inside). If the gap that gives is
too wide, the slopes after one Newton step of the weights in use, u + ℓ''·Δz: they satisfy the optimality conditions of
those weights exactly, with or without a penalty on them, and their error is of second order.

The Newton step costs a factorisation. It is taken only if its operations, counted from shapes, are within a tenth of
those of the fit (:mod:`hinge.problem.cost`), or with ``exact=True``; otherwise the wider bound is reported.

Where no dual is known (non-convex, or a loss without conjugate) the certificate is a stationarity residual: the
largest distance of −∇risk from ∂Ω, relative to the largest slope of the risk at w = 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from hinge.problem.certificates.least_squares import summed_up
from hinge.problem.cost import budget, factor_flops, gram_flops, pass_flops
from hinge.problem.losses import CustomLoss, Squared
from hinge.problem.numerics import weighted_sum
from hinge.problem.objective import Array, Objective
from hinge.problem.penalties import Coordinates
from hinge.problem.root import best_bias
from hinge.problem.semidefinite import solve_semidefinite

NEWTON_ROUNDS = 4
SHARE_OF_TOLERANCE = 1e-2  # what rounding may hide of the gap that was asked for
ROUNDING = 1e-15
LAST_PLACES = 16 * np.finfo(float).eps  # rounding of a sum of products, relative to the sizes of the factors
DECREASE_IN_ROUNDING = 1e-13  # of the objective: smaller decreases cannot be seen in its value
BALANCED = 1e-13  # slopes whose sum is below this share of their size balance but for rounding


@dataclass(frozen=True)
class Certificate:
    """What is known about a fit.

    Attributes
    ----------
    primal : float
        The objective at the returned weights.
    dual : float
        A lower bound of the optimum; −inf if none is known.
    gap : float
        primal − dual: the objective is at most this much above the optimum.
    relative_gap : float
        gap / |primal|.
    residual : float
        The stationarity residual, relative (nan where the gap says more).
    kind : {"gap", "stationarity"}
        Which of the two ``error`` is.
    tol : float
        What was asked for.
    weight_error : float
        A bound of ‖w − w*‖₂ from strong convexity; inf if the objective is not strongly convex.
    solver, iterations, seconds, status
        How the weights were found.
    note : str
        What is not established about a user's loss.
    exact : bool
        False if a tighter bound may exist that would cost more than a tenth of the fit; ``certificate(…, exact=True)``
        and ``estimator.certify(X, y)`` compute it.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    residual: float
    kind: str
    tol: float
    weight_error: float = np.inf
    solver: str = ""
    iterations: int = 0
    seconds: float = 0.0
    status: str = ""
    note: str = ""
    exact: bool = True

    @classmethod
    def of_gap(cls, primal: float, gap: float, *, tol: float, convexity: float = 0.0, **how: Any) -> Certificate:
        """From an objective and its duality gap; ``convexity`` is the modulus of strong convexity, if it has one."""
        return cls(
            primal=primal,
            dual=primal - gap,
            gap=gap,
            relative_gap=gap / max(abs(primal), np.finfo(float).tiny),
            residual=np.nan,
            kind="gap",
            tol=tol,
            weight_error=float(np.sqrt(2.0 * gap / convexity)) if convexity > 0 else np.inf,
            **how,
        )

    @property
    def error(self) -> float:
        """The number that is compared with ``tol``."""
        return self.relative_gap if self.kind == "gap" else self.residual

    @property
    def converged(self) -> bool:
        return bool(self.error <= self.tol)

    def explain(self) -> str:
        """One paragraph: what the numbers mean and, if the fit fell short, what to change."""
        if self.kind == "gap":
            meaning = (
                f"The objective is {self.primal:.6g}, and no weights can bring it below {self.dual:.6g}: "
                f"it is within {100 * self.relative_gap:.2g} % of the optimum."
            )
            if np.isfinite(self.weight_error):
                meaning += f" The weights are within {self.weight_error:.2g} of the optimal ones (Euclidean distance)."
        else:
            bound = (
                f"The lower bound these weights give, {self.dual:.6g}, is too low to judge by"
                if np.isfinite(self.dual)
                else "No lower bound is known for this problem"
            )
            meaning = (
                f"The objective is {self.primal:.6g}. {bound}; "
                f"the remaining slope is {self.residual:.2g} of the slope at zero weights."
            )
        if self.note:
            meaning += f" About the loss: {self.note}."
        if self.converged:
            end = f" {self.status}" if self.status.startswith("The objective has no minimiser") else ""
            return f"{meaning} The tolerance of {self.tol:.1g} is met.{end}"
        missed = "is not met" if self.exact else "is not proved at this cost"
        return f"{meaning} The tolerance of {self.tol:.1g} {missed}: {self.status or 'raise max_iter.'}"

    def __str__(self) -> str:
        measure = f"gap {self.gap:.1e}" if self.kind == "gap" else f"residual {self.residual:.1e}"
        how = f", {self.iterations} iterations, {self.solver}, {self.seconds:.2g} s" if self.solver else ""
        return f"objective {self.primal:.6g}, {measure}{how}"


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # a sum beyond all numbers gives no bound
def certificate(
    objective: Objective,
    w: Array,
    b: Array,
    *,
    dual: Array | None = None,
    tol: float = 1e-6,
    exact: bool = False,
    fit_flops: float = 0.0,
) -> Certificate:
    """Judge weights w and bias b.

    Parameters
    ----------
    objective : Objective
        What was minimised.
    w, b : arrays
        Weights and bias.
    dual : array, optional
        Slopes uᵢ that a solver believes to be good.
    tol : float
        The error that was asked for; no tighter bound is looked for once it is met.
    exact : bool
        Compute the tightest bound known, whatever it costs.
    fit_flops : float
        What finding the weights cost, in floating-point operations: the bound may cost a tenth of that (or about ten
        milliseconds).

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 2.0])
    >>> objective = hg.make_objective(X, y, hg.Squared(), hg.L2(1 / 3))
    >>> judged = hg.certificate(objective, np.array([2 / 3]), np.array([1 / 3]), exact=True)
    >>> judged.converged, judged.exact
    (True, True)
    """
    if objective.has_moments and dual is None and isinstance(objective.loss, Squared) and has_dual(objective):
        judged = _from_moments(objective, w, b, tol)
        if judged is not None:
            return judged
    best, kind = -np.inf, "stationarity"
    provable = has_dual(objective)
    offered = dual is not None and provable and bool(np.all(np.isfinite(dual)))
    tried = objective.loss.project_dual(objective.y, dual) if offered else None  # type: ignore[arg-type]
    if tried is not None and objective.outputs == 1:
        z, best = _scores_and_bound(objective, w, b, tried)
        risk = objective.risk_of_scores(z)
    elif not offered and objective.outputs == 1 and objective.loss.smooth and provable:
        risk, z, cu, g = objective.evaluate(w, b)
        if (
            not objective.fit_intercept or abs(cu.sum()) <= BALANCED * np.abs(cu).sum()
        ):  # the slopes will do as they are
            best = _bound(objective, objective.slopes_of_scores(z), g)
    else:
        z = objective.scores(w, b)
        risk = objective.risk_of_scores(z)
        best = -np.inf if tried is None else dual_value(objective, tried)
    primal = risk + objective.penalty.value(w)
    candidates = _Candidates(objective, np.inf if exact else budget(fit_flops))
    if provable and not primal - best <= tol * abs(primal):
        best = max(best, trivial_bound(objective))
        for u in candidates(w, z, tried):
            best = max(best, dual_value(objective, u))
            if primal - best <= tol * abs(primal):
                break
    gap = max(primal - best, 0.0)
    relative = _relative(gap, primal, objective)
    if np.isfinite(best) and relative < 1.0:
        kind = "gap"
    residual = np.nan if kind == "gap" else stationarity(objective, w, b, dual)
    return Certificate(
        primal=primal,
        dual=best,
        gap=gap,
        relative_gap=relative,
        residual=residual,
        kind=kind,
        tol=tol,
        weight_error=_weight_error(objective, gap) if kind == "gap" else np.inf,
        note="; ".join(objective.loss.facts.notes) if isinstance(objective.loss, CustomLoss) else "",
        exact=not candidates.dropped,
    )


def _from_moments(objective: Objective, w: Array, b: Array, tol: float) -> Certificate | None:
    """The certificate of least squares from its sums of products; None where their rounding hides too much."""
    known = summed_up(objective, objective.moments, w, b)
    primal, g = known.risk + objective.penalty.value(w), known.slope
    if not known.rounding <= SHARE_OF_TOLERANCE * tol * primal:
        return None
    _drop_rounding(objective, g, known.errors)
    s = objective.penalty.dual_scale(-g)
    dual = s * known.cross - 0.5 * s**2 * known.errors - objective.penalty.conjugate(-s * g) if s > 0 else -np.inf
    gap = max(primal - dual, known.rounding)
    if not gap <= tol * primal:
        return None
    return Certificate.of_gap(primal, gap, tol=tol, convexity=convexity(objective))


def has_dual(objective: Objective) -> bool:
    loss, penalty = objective.loss, objective.penalty
    return loss.declared_convex and loss.has_conjugate and penalty.convex and penalty.has_conjugate


def trivial_bound(objective: Objective) -> float:
    """D(0) = Σ cᵢ min ℓ(yᵢ, ·) + min Ω: the best bound where every example can be fitted exactly."""
    shape = (objective.n,) if objective.outputs == 1 else (objective.n, objective.outputs)
    return -objective.conjugate_sum(np.zeros(shape)) - objective.penalty.conjugate(objective.zero()[0])


def _relative(gap: float, primal: float, objective: Objective) -> float:
    """gap / |primal|; an objective of (almost) zero is compared with the risk of predicting a constant."""
    if gap == 0.0:
        return 0.0
    scale = constant_risk(objective)
    if not objective.loss.smooth and gap <= ROUNDING * scale:  # kinks lie in scores, which are rounded
        return 0.0
    floor = 1e-12 * scale
    return gap / max(abs(primal), floor, np.finfo(float).tiny)


def constant_risk(objective: Objective) -> float:
    """The risk at w = 0, b = 0: a scale for the objective. If that is zero, the risk of constant scores ±1."""
    shift = 0.0 if objective.offset is None else objective.offset
    z = np.zeros(objective.n) if objective.outputs == 1 else np.zeros((objective.n, objective.outputs))
    at_zero = abs(objective.risk_of_scores(z + shift))
    return at_zero or sum(abs(objective.risk_of_scores(z + shift + t)) for t in (-1.0, 1.0))


class _Candidates:
    """Slopes worth trying besides those that were tried, the cheapest first, within a number of operations."""

    def __init__(self, objective: Objective, flops: float) -> None:
        self._objective, self._flops = objective, flops
        self.dropped = False  # whether a candidate was too expensive

    def __call__(self, w: Array, z: Array, tried: Array | None) -> Iterator[Array]:
        objective = self._objective
        if objective.loss.smooth or tried is None:
            if objective.fit_intercept:
                z = z + (best_shift(objective, z) if z.ndim == 1 else best_shifts(objective, z))
            u = objective.slopes_of_scores(z)
            yield u
        else:
            u = tried
        coordinates = objective.penalty.coordinates(objective.d)
        if z.ndim > 1 or coordinates is None:
            return
        used = _weights_in_use(coordinates, w)
        if newton_flops(objective, len(used)) > self._flops:
            self.dropped = True
            return
        moved = newton_slopes(objective, coordinates, w, z, u, used, self._flops)
        if moved is not None:
            yield moved


def newton_flops(objective: Objective, used: int) -> float:
    """Operations of one round of :func:`newton_slopes`; most problems need no other."""
    design = objective.design
    return gram_flops(design, used) + factor_flops(used) + 2 * pass_flops(design)


def best_shift(objective: Objective, z: Array) -> float:
    def derivatives(b: float) -> tuple[float, float]:
        return objective.native.derivative_sums(objective.y, z + b, objective.c)

    return best_bias(derivatives, objective.loss.score_span(objective.y) + float(np.max(np.abs(z), initial=0.0)))


def balance(objective: Objective, u: Array) -> Array:
    """Slopes near u with Σ cᵢ uᵢ = 0: one common shift, cut to the domain."""
    if u.ndim == 2:
        repair = getattr(objective.loss, "balance_dual", None)
        if repair is not None:
            return repair(objective.y, objective.c, u)
        if objective.loss.outputs == "classes":
            return u
        parts = [replace_target(objective, np.ascontiguousarray(y)) for y in objective.y.T]
        return np.stack([balance(part, column) for part, column in zip(parts, u.T)], axis=1)
    c, (lo, hi) = objective.c, objective.loss.dual_interval(objective.y)

    def total(shift: float) -> tuple[float, float]:
        moved = u + shift
        return float(weighted_sum(c, np.clip(moved, lo, hi))), float(weighted_sum(c, (moved > lo) & (moved < hi)))

    return np.clip(u + best_bias(total, span=1e12), lo, hi)


def replace_target(objective: Objective, y: Array) -> Objective:
    """The problem of one of several outputs."""
    return replace(objective, y=y, outputs=1)


def best_shifts(objective: Objective, z: Array) -> Array:
    """The best change of the biases of several outputs: Newton on k × k systems until the slopes balance."""
    loss, y, c, k = objective.loss, objective.y, objective.c, z.shape[1]
    shift, value = np.zeros(k), objective.risk_of_scores(z)
    for _ in range(30):
        u = loss.gradient(y, z + shift)
        g = weighted_sum(c, u)
        if np.max(np.abs(g)) <= BALANCED * np.max(weighted_sum(c, np.abs(u)), initial=0.0):
            break
        if loss.outputs == "classes":
            p = loss.inverse_link(z + shift)
            h = np.diag(c @ p) - (p * c[:, None]).T @ p
        else:
            h = np.diag(c @ loss.hessian(y, z + shift))
        step, scale = scipy.linalg.lstsq(h, g)[0], 1.0
        # Near the optimum rounding hides the decrease, and Newton's step is right as it is.
        if float(g @ step) > DECREASE_IN_ROUNDING * abs(value):
            while objective.risk_of_scores(z + shift - scale * step) > value and scale > 1e-6:
                scale *= 0.5
        shift = shift - scale * step
        value = objective.risk_of_scores(z + shift)
    return shift


def dual_value(objective: Objective, u: Array) -> float:
    """D(u), after scaling u until the penalty's conjugate is finite; −∞ if u cannot be made feasible.

    u must lie in the domain of the loss's conjugate.
    """
    balanced = _balanced(objective, u)
    if balanced is None:
        return -np.inf
    return _bound(objective, balanced, objective.design.rmatmul(objective.weighted(balanced)))


def _scores_and_bound(objective: Objective, w: Array, b: Array, u: Array) -> tuple[Array, float]:
    """The scores of one output and D(u), together: one look at the examples."""
    balanced = _balanced(objective, u)
    if balanced is None:
        return objective.scores(w, b), -np.inf
    z, g = objective.scores_and_adjoint(w, b, balanced)
    return z, _bound(objective, balanced, g)


def _balanced(objective: Objective, u: Array) -> Array | None:
    """u itself, or slopes near it, with Σ cᵢ uᵢ = 0 if there is a bias: without that D(u) would not be a bound.

    The slopes of a kinked loss at its best bias need not balance. None if nothing near does.
    """
    if not objective.fit_intercept:
        return u
    total, size = weighted_sum(objective.c, u), weighted_sum(objective.c, np.abs(u))
    if np.any(np.abs(total) > BALANCED * size):
        u = balance(objective, u)
        total, size = weighted_sum(objective.c, u), weighted_sum(objective.c, np.abs(u))
    return None if np.any(np.abs(total) > 1e-11 * np.max(size, initial=0.0)) else u


def _bound(objective: Objective, u: Array, g: Array) -> float:
    """D(u) for balanced slopes and g = X'(c∘u)."""
    _drop_rounding(objective, g, weighted_sum(objective.c, u**2))
    scale = objective.penalty.dual_scale(-g)
    if scale == 0.0:
        return -np.inf
    if scale < 1.0:
        u, g = scale * u, scale * g
    value = -objective.conjugate_sum(u)
    if objective.offset is not None:
        value += float(np.sum(objective.weighted(u) * objective.offset))
    value -= objective.penalty.conjugate(-g)
    return value if np.isfinite(value) else -np.inf  # sums that overflowed prove nothing


def _drop_rounding(objective: Objective, g: Array, squares: Array | float) -> None:
    """Sets g to zero where it should be and is but for rounding.

    A weight that may grow without limit or penalty needs a gradient of exactly zero: the bound is too high by |g_j w*_j|
    otherwise. Rounding of g_j = Σ cᵢ xᵢⱼ uᵢ is a few units in the last place of √(Σ cᵢ xᵢⱼ² · Σ cᵢ uᵢ²); no more than
    that is dropped. ``squares``: Σ cᵢ uᵢ², one for each output.
    """
    coordinates = objective.penalty.coordinates(objective.d)
    if coordinates is None:
        return
    free = _free(coordinates, g)
    if np.any(free):
        sums = objective.square_sums if g.ndim == 1 else objective.square_sums[:, None]
        g[free & (np.abs(g) <= LAST_PLACES * np.sqrt(sums * squares))] = 0.0


def _free(coordinates: Coordinates, g: Array) -> np.ndarray:
    """Which weights can move down the slope g without limit and without a penalty."""
    l1, l2, lower, upper = (part if g.ndim == 1 else part[:, None] for part in coordinates)
    return (l1 == 0) & (l2 == 0) & np.where(g < 0, np.isposinf(upper), np.isneginf(lower))


def _weights_in_use(coordinates: Coordinates, w: Array) -> np.ndarray:
    """Which weights are neither zero under an L1 penalty nor at a bound."""
    inside = (w > coordinates.lower) & (w < coordinates.upper)
    return np.flatnonzero(inside & ((w != 0) | (coordinates.l1 == 0)))


def newton_slopes(
    objective: Objective,
    coordinates: Coordinates,
    w: Array,
    z: Array,
    u: Array,
    used: np.ndarray,
    flops: float = np.inf,
) -> Array | None:
    """u + ℓ''·Δz, where Δz is the change of scores in one Newton step of the bias and the weights in use.

    With H the Hessian and r the gradient of the objective restricted to them, X'(c∘(u + ℓ''·Δz)) + Ω'(w + Δ) = r + H Δ
    = 0: the optimality conditions hold exactly. None if the sums overflow.
    """
    loss, y = objective.loss, objective.y
    lo, hi = loss.dual_interval(y)
    # Without a second derivative the slopes that have room on both sides are the ones that may move.
    h = loss.hessian(y, z) if loss.twice else np.minimum(u - lo, hi - u) ** 2
    w = w.copy()
    for _ in range(NEWTON_ROUNDS):
        found = _newton_step(objective, coordinates, w, u, h, used, flops)
        if found is None:
            return None
        step, bias = found
        w += step
        moved = u + h * (objective.design.matmul(step) + bias)
        outside = (moved < lo) | (moved > hi)
        if not np.any(outside):
            return moved
        # Slopes that ran out of their domain stay at its edge, and the others make up for it in another round.
        u, h = np.clip(moved, lo, hi), np.where(outside, 0.0, h)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(moved > hi, hi / moved, np.where(moved < lo, lo / moved, 1.0))
    return moved * max(float(np.min(room)), 0.0)


def _newton_step(
    objective: Objective, coordinates: Coordinates, w: Array, u: Array, h: Array, used: np.ndarray, flops: float
) -> tuple[Array, float] | None:
    """The step of the weights in use (others zero) and of the bias; None where the sums overflow."""
    c = objective.c
    rhs = -(objective.design.rmatmul(c * u) + coordinates.l1 * np.sign(w) + coordinates.l2 * w)[used]
    gram = _gram(objective, c * h, used) + np.diag(coordinates.l2[used])
    if objective.fit_intercept:
        edge = objective.design.rmatmul(c * h)[used]
        gram = np.block([[gram, edge[:, None]], [edge[None, :], np.array([[weighted_sum(c, h)]])]])
        rhs = np.append(rhs, -weighted_sum(c, u))
    if not (np.all(np.isfinite(gram)) and np.all(np.isfinite(rhs))):
        return None
    solved = solve_semidefinite(gram, rhs, flops) if len(rhs) else rhs
    step = np.zeros(objective.d)
    step[used] = solved[: len(used)]
    return step, float(solved[-1]) if objective.fit_intercept else 0.0


def _gram(objective: Objective, h: Array, used: np.ndarray) -> Array:
    if len(used) == objective.d:
        return objective.design.gram(h)
    columns = objective.design.columns(used)
    return (columns * h[:, None]).T @ columns


def stationarity(objective: Objective, w: Array, b: Array, u: Array | None = None) -> float:
    """max distance of −∇risk from ∂Ω(w), relative to the largest slope of the risk at zero weights.

    A loss with kinks has many subgradients where scores lie at them. ``u`` may hold the ones to take: how far they are from
    being subgradients, Σ cᵢ(ℓ(zᵢ) + ℓ*(uᵢ) − uᵢzᵢ) relative to the risk of a constant, then counts as well.
    """
    _, g, gb = objective.risk_gradient(w, b)
    residual = _distance(objective, w, g, gb) / slope_scale(objective)
    if u is None or objective.loss.smooth or not (objective.loss.convex and objective.loss.has_conjugate):
        return residual
    u = objective.loss.project_dual(objective.y, u)
    z, cu = objective.scores(w, b), objective.weighted(u)
    wrong = objective.risk_of_scores(z) + objective.conjugate_sum(u) - float(np.sum(cu * z))
    g, gb = objective.design.rmatmul(cu), np.atleast_1d(cu.sum(axis=0))
    chosen = _distance(objective, w, g, gb) / slope_scale(objective)
    return min(residual, max(chosen, abs(wrong) / max(constant_risk(objective), np.finfo(float).tiny)))


def _distance(objective: Objective, w: Array, g: Array, gb: Array) -> float:
    distance = float(np.max(objective.penalty.subdifferential_distance(w, g), initial=0.0))
    return max(distance, float(np.max(np.abs(gb)))) if objective.fit_intercept else distance


def slope_scale(objective: Objective) -> float:
    """The largest gradient of the risk at zero weights and the best constant: the unit of the stationarity residual."""
    w0, b0 = objective.zero()
    if objective.fit_intercept and objective.outputs == 1:
        start = objective.loss.baseline(objective.y, objective.c)
        b0 = np.array([start if np.isfinite(start) else 0.0])
    _, g0, gb0 = objective.risk_gradient(w0, b0)
    scale = max(float(np.max(np.abs(g0), initial=0.0)), float(np.max(np.abs(gb0))), np.finfo(float).tiny)
    if not np.isfinite(scale):  # zero scores are outside the domain of the loss (an inverse link, say)
        scale = float(np.sqrt(np.max(objective.square_sums, initial=1.0)))
    return scale


def convexity(objective: Objective) -> float:
    """A modulus of strong convexity of the penalty."""
    coordinates = objective.penalty.coordinates(objective.d)
    return 0.0 if coordinates is None else float(np.min(coordinates.l2, initial=np.inf))


def _weight_error(objective: Objective, gap: float) -> float:
    strength = convexity(objective)
    return float(np.sqrt(2.0 * gap / strength)) if strength > 0 else np.inf


def with_run(judged: Certificate, *, solver: str, iterations: int, seconds: float, status: str) -> Certificate:
    """The certificate with a note of how the weights were found."""
    return replace(judged, solver=solver, iterations=iterations, seconds=seconds, status=status)
