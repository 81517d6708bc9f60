"""Certificates of linear problems: how close weights are to the optimum, computed by code no solver owns.

For the problem  P(w, b) = Σ cᵢ ℓ(yᵢ, zᵢ) + Ω(w)  all dual variables u give a lower bound of the optimum,

    D(u) = −Σ cᵢ ℓ*(yᵢ, uᵢ) + Σ cᵢ uᵢ offsetᵢ − Ω*(−X'(c∘u)),      Σ cᵢ uᵢ = 0 if there is a bias,

so gap = P(w, b) − D(u) ≥ P(w, b) − P* ≥ 0 (weak duality). The dual variables are computed from the weights alone. Where
a solver offers its own, those are tried too after making them feasible; a wrong offer can only make the gap larger.
At the optimum the gap closes (strong duality).

Dual variables from weights (:mod:`hinge.problem.certificates.newton`). First u = ℓ'(z) at the best bias for w, so that
they balance exactly, scaled towards zero until Ω* is finite (the domains of the conjugates are convex and contain zero,
so u stays inside). If that gap is too wide, the gradients after one Newton step of the weights in use, u + ℓ''·Δz: they
satisfy the optimality conditions of those weights exactly, with or without a penalty on them, and their error is of
second order.

The Newton step costs a factorisation. It is taken only if its operations, counted from shapes, are within a tenth of
those of the fit (:mod:`hinge.problem.cost`), or with ``exact=True``; otherwise the wider bound is reported.

Where no dual is known (non-convex, or a loss without conjugate) the certificate is a stationarity residual: the
largest distance of −∇risk from ∂Ω, relative to the largest gradient of the risk at w = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hinge.problem.certificates.certificate import Certificate
from hinge.problem.certificates.dual_points import (
    BALANCED,
    best_shift,
    bound,
    drop_rounding,
    dual_value,
    has_dual,
    scores_and_bound,
    trivial_bound,
)
from hinge.problem.certificates.least_squares import summed_up
from hinge.problem.certificates.newton import Candidates
from hinge.problem.certificates.stationarity import constant_risk, stationarity
from hinge.problem.cost import budget
from hinge.problem.losses import CustomLoss, Squared
from hinge.problem.objective import Array, Objective

SHARE_OF_TOLERANCE = 1e-2  # the share of the tolerated gap that rounding may hide
ROUNDING = 1e-15


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # sums that overflow give no bound
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
    """Certify weights w and bias b.

    Parameters
    ----------
    objective : Objective
        What was minimised.
    w, b : arrays
        Weights and bias.
    dual : array, optional
        Dual variables uᵢ that a solver offers.
    tol : float
        The tolerated error; no tighter bound is computed once it is met.
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
    >>> certified = hg.certificate(objective, np.array([2 / 3]), np.array([1 / 3]), exact=True)
    >>> certified.converged, certified.exact
    (True, True)
    """
    if objective.has_moments and dual is None and isinstance(objective.loss, Squared) and has_dual(objective):
        certified = _from_moments(objective, w, b, tol)
        if certified is not None:
            return certified
    best = -np.inf
    provable = has_dual(objective)
    offered = dual is not None and provable and bool(np.all(np.isfinite(dual)))
    tried = objective.loss.project_dual(objective.y, dual) if offered else None  # type: ignore[arg-type]
    if tried is not None and objective.outputs == 1:
        z, best = scores_and_bound(objective, w, b, tried)
        risk = objective.risk_of_scores(z)
    elif not offered and objective.outputs == 1 and objective.loss.smooth and provable:
        risk, z, cu, g = objective.evaluate(w, b)
        if not objective.fit_intercept or abs(cu.sum()) <= BALANCED * np.abs(cu).sum():  # the gradients are feasible
            best = bound(objective, objective.gradient_of_scores(z), g, b)
    else:
        z = objective.scores(w, b)
        risk = objective.risk_of_scores(z)
        best = -np.inf if tried is None else dual_value(objective, tried, b)
    primal = risk + objective.penalty.value(w)
    candidates = Candidates(objective, np.inf if exact else budget(fit_flops))
    if provable and not primal - best <= tol * abs(primal):
        best = max(best, trivial_bound(objective))
        for u in candidates(w, z, tried):
            best = max(best, dual_value(objective, u, b))
            if primal - best <= tol * abs(primal):
                break
    return conclude(
        objective, primal, best, tol=tol, constant=lambda: constant_risk(objective),
        residual=lambda: stationarity(objective, w, b, dual), exact=not candidates.dropped,
    )  # fmt: skip


def conclude(
    objective: Any,
    primal: float,
    best: float,
    *,
    tol: float,
    constant: Callable[[], float],
    residual: Callable[[], float],
    exact: bool,
) -> Certificate:
    """The certificate of an objective value and its best lower bound.

    A bound above the objective is wrong by the difference at least, which is therefore taken as the gap.
    ``constant()`` is the risk of constant scores and ``residual()`` the stationarity residual, each computed only if
    needed.
    """
    gap = abs(primal - best)
    relative = _relative(gap, primal, objective.loss.smooth, constant)
    kind = "gap" if np.isfinite(best) and relative < 1.0 else "stationarity"
    return Certificate(
        primal=primal,
        dual=min(best, primal - gap),
        gap=gap,
        relative_gap=relative,
        residual=np.nan if kind == "gap" else residual(),
        kind=kind,
        tol=tol,
        weight_error=_weight_error(objective, gap) if kind == "gap" else np.inf,
        note="; ".join(objective.loss.facts.notes) if isinstance(objective.loss, CustomLoss) else "",
        exact=exact,
    )


def _from_moments(objective: Objective, w: Array, b: Array, tol: float) -> Certificate | None:
    """The certificate of least squares from its sums of products; None if their rounding hides too much."""
    known = summed_up(objective, objective.moments, w, b)
    primal, g = known.risk + objective.penalty.value(w), known.gradient
    if not known.rounding <= SHARE_OF_TOLERANCE * tol * primal:
        return None
    drop_rounding(objective, g, known.errors)
    s = objective.penalty.dual_scale(-g)
    dual = s * known.cross - 0.5 * s**2 * known.errors - objective.penalty.conjugate(-s * g) if s > 0 else -np.inf
    gap = max(primal - dual, known.rounding)
    if not gap <= tol * primal:
        return None
    return Certificate.of_gap(primal, gap, tol=tol, convexity=convexity(objective))


def _relative(gap: float, primal: float, smooth: bool, constant: Callable[[], float]) -> float:
    """gap / |primal|; an objective of (almost) zero is compared with the risk of predicting a constant."""
    if gap == 0.0:
        return 0.0
    scale = constant()
    if not smooth and gap <= ROUNDING * scale:  # kinks are positions of scores, which are rounded
        return 0.0
    floor = 1e-12 * scale
    return gap / max(abs(primal), floor, np.finfo(float).tiny)


def convexity(objective: Objective) -> float:
    """A modulus of strong convexity of the penalty."""
    coordinates = objective.penalty.coordinates(objective.d)
    return 0.0 if coordinates is None else float(np.min(coordinates.l2, initial=np.inf))


def _weight_error(objective: Objective, gap: float) -> float:
    strength = convexity(objective)
    return float(np.sqrt(2.0 * gap / strength)) if strength > 0 else np.inf


def path_certificates(
    unit: Objective, strengths: Sequence[float] | np.ndarray, W: Array, B: Array, tol: float
) -> list[Certificate]:
    """The certificates of all points of a path, with two passes over X for all of them together.

    The dual points are those of :func:`certificate`: gradients at the best bias, scaled into the domain. A point whose
    gap is too wide is certified alone. ``unit`` is the problem with strength one; ``W`` has a row and ``B`` an entry
    for each of the ``strengths``.
    """
    Z = unit.design.matmul(np.ascontiguousarray(W.T)) + (B if unit.fit_intercept else 0.0)
    U = np.empty_like(Z)
    for k in range(len(B)):
        z = Z[:, k] + (best_shift(unit, Z[:, k]) if unit.fit_intercept else 0.0)
        U[:, k] = unit.gradient_of_scores(np.ascontiguousarray(z))
    G = unit.design.rmatmul(unit.c[:, None] * U)
    certified = []
    for k, lam in enumerate(strengths):
        penalty = unit.penalty.with_strength(float(lam))
        primal = unit.risk_of_scores(np.ascontiguousarray(Z[:, k])) + penalty.value(W[k])
        scale = penalty.dual_scale(-G[:, k])
        dual = -unit.conjugate_sum(scale * U[:, k]) - penalty.conjugate(-scale * G[:, k])
        gap = abs(primal - dual)
        if gap <= tol * abs(primal):
            certified.append(Certificate.of_gap(primal, gap, tol=tol))
        else:
            certified.append(certificate(unit.with_penalty(penalty), W[k], B[k : k + 1], tol=tol))
    return certified
