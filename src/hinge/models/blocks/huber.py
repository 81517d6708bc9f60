"""Huber's regression over blocks, with its scale.

F(w, b, σ) = Σ cᵢ [σ + σ·H_ε(rᵢ/σ)] + (α/Σs)‖w‖²,     r = y − Xw − b

is jointly convex, so Newton's method updates (w, b, σ) together: a pass gives value, gradient and Hessian. An inlier adds
(2/σ)(dr − (r/σ)dσ)² to the Hessian, as if r/σ were a further column. The weights are then certified at the scale found.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hinge.blocks.block import Block
from hinge.blocks.passes import Passes
from hinge.blocks.problem import SecondOrder, View
from hinge.models.blocks.linear import PER_EXAMPLE, OverBlocks, StandIn, find_stand_in, fit_given, fit_linear
from hinge.problem.losses import Squared
from hinge.problem.objective import Objective, make_objective
from hinge.problem.semidefinite import solve_semidefinite

STEPS = 50
SHORTEST = 2.0**-20


def joint_second_order(block: Block, view: View, point: np.ndarray, epsilon: float) -> SecondOrder:
    """The statistic: value, gradient and Hessian of Σ cᵢ [σ + σ·H_ε(rᵢ/σ)] in (w, b, σ), or (w, σ) without a bias."""
    o, scale = view.objective(block, Squared()), float(point[-1])
    ones = int(o.fit_intercept)
    w, b = point[: o.d], point[o.d : o.d + 1] if ones else np.zeros(1)
    z = (o.y - o.scores(w, b)) / scale
    near = np.abs(z) <= epsilon
    value = scale * (o.c @ (1.0 + np.where(near, z**2, 2.0 * epsilon * np.abs(z) - epsilon**2)))
    score_derivative = -2.0 * o.c * np.clip(z, -epsilon, epsilon)  # derivative of F with respect to the score of a row
    by_scale = o.c @ (1.0 - np.minimum(z**2, epsilon**2))
    gradient = np.concatenate(
        [o.design.rmatmul(score_derivative), np.full(ones, score_derivative.sum()), np.full(1, by_scale)]
    )
    curvature = np.where(near, 2.0 / scale * o.c, 0.0)
    bent = curvature * z
    edges = [[o.design.rmatmul(curvature), curvature.sum()]] * ones + [[o.design.rmatmul(bent), bent.sum()]]
    size = o.d + ones + 1
    hessian = np.zeros((size, size))
    hessian[: o.d, : o.d] = o.design.gram(curvature)
    for k, (edge, corner) in enumerate(edges):
        hessian[o.d + k, : o.d] = hessian[: o.d, o.d + k] = edge
        if ones:
            hessian[o.d, o.d + k] = hessian[o.d + k, o.d] = corner
    hessian[-1, -1] = bent @ z
    return SecondOrder(float(value), gradient, hessian)


class AtScale(OverBlocks):
    """Minimises over all blocks from given weights."""

    def __init__(self, estimator: Any, passes: Passes, stand_in: StandIn, known: tuple[np.ndarray, np.ndarray]) -> None:
        super().__init__(estimator, passes, stand_in)
        self.known = known

    def start(self, objective: Objective, tol: float) -> tuple[np.ndarray, np.ndarray]:
        """The weights found together with the scale."""
        return self.known


def fit_huber(estimator: Any, passes: Passes) -> None:
    """Fit at a given scale, or jointly with the scale."""
    if estimator.scale is not None:
        fit_linear(estimator, passes)
    else:
        if estimator.l1_ratio > 0:
            raise ValueError(
                "HuberRegressor(l1_ratio=…) over blocks needs scale=: take scale_ of a fit to a sample of rows, or of one with "
                "l1_ratio=0."
            )
        stand_in = find_stand_in(estimator, passes)
        w, b, scale = _with_scale(estimator, passes, stand_in)
        at_scale = clone(estimator).set_params(scale=scale)
        fit_given(at_scale, AtScale(estimator, passes, stand_in, (w, b)))
        parameters = estimator.get_params(deep=False)
        vars(estimator).update({name: value for name, value in vars(at_scale).items() if name not in parameters})
    for name in PER_EXAMPLE:
        vars(estimator).pop(name, None)


def _with_scale(estimator: Any, passes: Passes, stand_in: StandIn) -> tuple[np.ndarray, np.ndarray, float]:
    """The minimiser (w, b, σ), started at that of the sample."""
    near = clone(estimator).fit(stand_in.X, stand_in.y, stand_in.weight)
    d, ones = near.coef_.size, int(estimator.fit_intercept)
    objective = make_objective(
        stand_in.X, stand_in.y, Squared(), None, sample_weight=stand_in.weight, fit_intercept=estimator.fit_intercept
    )
    view, strength = stand_in.view(objective), estimator.alpha / objective.weight_sum
    point = np.concatenate([near.coef_, np.atleast_1d(near.intercept_)[:ones], [near.scale_]])
    known = _penalised(passes.total(joint_second_order, view, point, estimator.epsilon), point, d, strength)
    for _ in range(STEPS):
        step = -solve_semidefinite(known.hessian, known.gradient)
        decrease = -float(known.gradient @ step)
        if not decrease > 1e-4 * estimator.tol**2 * abs(known.risk):
            break
        length = 1.0 if point[-1] + step[-1] > 0 else -0.5 * point[-1] / step[-1]  # σ stays above zero
        while length > SHORTEST:
            trial = point + length * step
            found = _penalised(passes.total(joint_second_order, view, trial, estimator.epsilon), trial, d, strength)
            if found.risk <= known.risk - 1e-4 * length * decrease + 1e-14 * abs(known.risk):
                break
            length *= 0.5
        else:
            break
        point, known = trial, found
    else:
        warnings.warn(
            f"The scale of HuberRegressor over blocks is not exact after {STEPS} steps of Newton's method; scale the features, "
            "or set scale=.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return point[:d], point[d : d + 1] if ones else np.zeros(1), float(point[-1])


def _penalised(known: SecondOrder, point: np.ndarray, d: int, strength: float) -> SecondOrder:
    """With the penalty ‖w‖²."""
    gradient, hessian = known.gradient.copy(), known.hessian.copy()
    gradient[:d] += 2.0 * strength * point[:d]
    hessian[np.arange(d), np.arange(d)] += 2.0 * strength
    return SecondOrder(known.risk + strength * float(point[:d] @ point[:d]), gradient, hessian)
