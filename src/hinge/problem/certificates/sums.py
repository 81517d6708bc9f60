"""Certificates of problems whose examples do not fit in memory together, from sums over blocks of examples.

For weights w, a step Δ and z = Xw + b + offset, all blocks of examples give the sums of

    P        ℓ(yᵢ, zᵢ + Δzᵢ)                      the objective of the certified weights w + Δ
    u        ℓ'(zᵢ) + ℓ''(zᵢ)·Δzᵢ                 dual variables, clipped to the domain of the conjugate
    g        X'(c∘u⁺) and X'(c∘u⁻),               and from them D(u) as in :mod:`hinge.problem.certificates.dual_points`

If Δ is a Newton step, the u satisfy the optimality conditions of its quadratic model exactly (see
:mod:`hinge.problem.certificates.newton`), and one pass computes the gap. If they do not balance, or if their scale does
not suit the penalty, the heavier of their two signs is shrunk and all of them are scaled, which needs one more pass
for Σ cᵢ ℓ*(yᵢ, s uᵢ). Two passes suffice for any weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from hinge.problem.certificates.certificate import Certificate
from hinge.problem.certificates.dual_points import BALANCED, drop_rounding, has_dual
from hinge.problem.certificates.linear import conclude
from hinge.problem.certificates.stationarity import stationarity
from hinge.problem.numerics import weighted_sum
from hinge.problem.objective import Array, Objective


@dataclass(frozen=True)
class Point:
    """Weights, the step to the certified weights, and factors of the dual variables.

    Attributes
    ----------
    w, b, step, bias_step : arrays
    scale : float
        Of all dual variables.
    up, down : float
        Of the positive and of the negative ones.
    """

    w: Array
    b: Array
    step: Array
    bias_step: Array
    scale: float = 1.0
    up: float = 1.0
    down: float = 1.0

    @property
    def weights(self) -> tuple[Array, Array]:
        """The certified weights and bias."""
        return self.w + self.step, self.b + self.bias_step


class DualSums(NamedTuple):
    """The sums that the certificate needs of some examples; sums over blocks add up to those over all examples."""

    risk: float
    constant_risk: float  # at z = offset
    conjugate: float  # Σ cᵢ ℓ*(yᵢ, uᵢ), with all factors
    lean: float  # Σ cᵢ uᵢ offsetᵢ, likewise
    rise: Array  # Σ cᵢ uᵢ⁺ of every output, without the factors
    fall: Array  # Σ cᵢ uᵢ⁻
    gradient_up: Array  # X'(c∘u⁺)
    gradient_down: Array
    squares: Array  # Σ cᵢ uᵢ²
    square_sums: Array  # Σ cᵢ xᵢⱼ²


def dual_sums(objective: Objective, point: Point) -> DualSums:
    """The sums of a block of examples, whose weights c need not sum to one."""
    design, loss, y, c = objective.design, objective.loss, objective.y, objective.c
    z = objective.scores(point.w, point.b)
    shift = point.bias_step if objective.outputs > 1 else point.bias_step[0]
    dz = design.matmul(point.step) + (shift if objective.fit_intercept else 0.0)
    u = loss.project_dual(y, linearised(objective, z, dz))
    plus = np.maximum(u, 0.0)
    minus = u - plus
    scaled = (
        point.scale * (point.up * plus + point.down * minus)
        if (point.up, point.down) != (1.0, 1.0)
        else point.scale * u
    )
    at_zero = np.zeros_like(z) if objective.offset is None else np.zeros_like(z) + objective.offset
    lean = 0.0 if objective.offset is None else float(np.sum(objective.weighted(scaled) * objective.offset))
    return DualSums(
        objective.risk_of_scores(z + dz), objective.risk_of_scores(at_zero), objective.conjugate_sum(scaled), lean,
        np.atleast_1d(weighted_sum(c, plus)), np.atleast_1d(weighted_sum(c, minus)),
        design.rmatmul(objective.weighted(plus)), design.rmatmul(objective.weighted(minus)),
        np.atleast_1d(weighted_sum(c, u**2)), design.square_sums(c),
    )  # fmt: skip


def linearised(objective: Objective, z: Array, dz: Array) -> Array:
    """ℓ'(z) + ℓ''(z)·dz."""
    loss, y = objective.loss, objective.y
    u = objective.gradient_of_scores(z)
    if loss.outputs == "classes":
        p = loss.inverse_link(z)
        pdz = p * dz
        return u + pdz - p * pdz.sum(axis=1, keepdims=True)
    return u + loss.hessian(y, z) * dz if loss.twice_differentiable else u


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # sums that overflow give no bound
def certificate_from_sums(
    objective: Any, point: Point, total: Callable[[Point], DualSums], *, tol: float, first: DualSums | None = None
) -> Certificate:
    """Certify the weights of a point.

    Parameters
    ----------
    objective : object
        What was minimised: ``loss``, ``penalty``, ``d``, ``fit_intercept``, ``outputs``, and for problems without a dual
        ``risk_gradient``, ``zero`` and ``best_constant``.
    point : Point
    total : function
        :func:`dual_sums` over all examples; called once or twice.
    tol : float
        The error that was asked for.
    first : DualSums, optional
        Those at the point, if they are known.
    """
    sums = total(point) if first is None else first
    w, b = point.weights
    primal = sums.risk + objective.penalty.value(w)
    best = -np.inf
    if has_dual(objective):
        best = _bound(objective, point, sums, total)
        best -= ROUNDING * (abs(primal) + abs(best))  # a gap of zero would claim exact weights
    return conclude(
        objective, primal, best, tol=tol, constant=lambda: abs(sums.constant_risk),
        residual=lambda: stationarity(objective, w, b), exact=True,
    )  # fmt: skip


class _Shapes(NamedTuple):
    """The attributes of an objective that :func:`drop_rounding` uses."""

    penalty: Any
    d: int
    square_sums: Array


def _bound(objective: Any, point: Point, sums: DualSums, total: Callable[[Point], DualSums]) -> float:
    """D(u) after balancing and scaling; −∞ if u cannot be made feasible."""
    up = down = 1.0
    if objective.fit_intercept and np.any(np.abs(sums.rise + sums.fall) > BALANCED * (sums.rise - sums.fall)):
        if objective.outputs > 1:
            return -np.inf
        rise, fall = float(sums.rise[0]), -float(sums.fall[0])
        if min(rise, fall) <= 0:
            return -np.inf
        up, down = min(1.0, fall / rise), min(1.0, rise / fall)
    g = up * sums.gradient_up + down * sums.gradient_down
    squares = sums.squares if objective.outputs > 1 else sums.squares[0]
    drop_rounding(_Shapes(objective.penalty, objective.d, sums.square_sums), g, squares)  # type: ignore[arg-type]
    scale = objective.penalty.dual_scale(-g)
    if scale == 0.0:
        return -np.inf
    feasible = (point.up, point.down) == (up, down) and scale * SAFE <= point.scale <= scale
    if not feasible:
        point = replace(point, scale=scale, up=up, down=down)
        sums = total(point)
    value = -sums.conjugate + sums.lean - objective.penalty.conjugate(-point.scale * g)
    return value if np.isfinite(value) else -np.inf


ROUNDING = 4 * np.finfo(float).eps
SAFE = 1.0 - 1e-9  # a scale that is too short by this factor does not justify another pass
