"""Coordinate descent for the lasso family, as the textbook writes it.

Problem     min_{w,b} ½ Σ cᵢ (yᵢ − xᵢ'w − b)² + Σ_j λ₁|w_j| + (λ₂/2) w_j²
Step        w_j ← soft(c_j, λ₁) / (a_j + λ₂),   a_j = Σ cᵢ xᵢⱼ²,   c_j = Σ cᵢ xᵢⱼ rᵢ + a_j w_j,   r = y − Xw − b
            soft(c, λ) = c + λ if c < −λ;  0 if −λ ≤ c ≤ λ;  c − λ if c > λ
            for j = 1 … d in turn (cyclic) or drawn at random (stochastic); b ← b + Σ cᵢ rᵢ once a round
Dual        u = −r
Optimality  |Σ cᵢ xᵢⱼ rᵢ| ≤ λ₁ where w_j = 0;  Σ cᵢ xᵢⱼ rᵢ = λ₁ sign(w_j) + λ₂ w_j elsewhere
Returns     the last iterate. The fast form with working sets is solvers/proximal_newton
Reference   Friedman, Hastie & Tibshirani (2010), section 2; Shalev-Shwartz & Tewari (2011) for the random order
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hinge.problem.numerics import weighted_sum
from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Need, Solution, Solver, Stop
from hinge.solvers.loop import Run


def soft_threshold(c: Array | float, lam: Array | float) -> Array | float:
    """c moved towards zero by λ, and zero if it is nearer than that."""
    return np.sign(c) * np.maximum(np.abs(c) - lam, 0.0)


@dataclass(frozen=True)
class CoordinateDescent(Solver):
    """Cyclic or stochastic coordinate descent for the squared loss, in NumPy; written for readers.

    Parameters
    ----------
    order : {"cyclic", "stochastic"}
        Coordinates in turn, or d of them drawn at random in every round.
    """

    order: str = "cyclic"

    name: ClassVar[str] = "coordinate-descent"
    shifts: ClassVar[bool] = True
    needs: ClassVar[tuple[Need, ...]] = (Need.SQUARED, Need.COORDINATES, Need.ONE_OUTPUT)
    default_max_iter: ClassVar[int] = 5000

    def __post_init__(self) -> None:
        if self.order not in ("cyclic", "stochastic"):
            raise ValueError(f"order must be 'cyclic' or 'stochastic', got {self.order!r}.")

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        o, run = objective, Run(objective, stop)
        rng = np.random.default_rng(stop.random_state)
        coordinates = o.penalty.coordinates(o.d)
        assert coordinates is not None
        l1, l2, lower, upper = coordinates
        columns = o.design.columns(np.arange(o.d)).T.copy()  # row j is feature j
        a = o.design.square_sums(o.c)
        r = o.y - o.scores(w, b)
        status = run.over(0, run.flat.pack(w, b), o.value(w, b))
        k = 0
        while status is None and k < stop.max_iter:
            k += 1
            for j in range(o.d) if self.order == "cyclic" else rng.integers(o.d, size=o.d):
                if a[j] + l2[j] == 0:
                    continue
                x, before = columns[j], w[j]
                c = float(weighted_sum(o.c * x, r)) + a[j] * before
                w[j] = np.clip(soft_threshold(c, l1[j]) / (a[j] + l2[j]), lower[j], upper[j])
                r -= (w[j] - before) * x
            if o.fit_intercept:
                shift = float(weighted_sum(o.c, r))
                b, r = b + shift, r - shift
            value = 0.5 * float(weighted_sum(o.c, r**2)) + o.penalty.value(w)
            status = run.over(k, run.flat.pack(w, b), value, dual=-r)
        return run.solution(run.flat.pack(w, b), status, k, -r)
