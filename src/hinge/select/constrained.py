"""The equivalence of penalised and constrained problems along the path.

    Tikhonov   min R(w, b) + λ Ω(w)                 Ivanov   min R(w, b)  subject to  Ω(w) ≤ r

For convex R and Ω every Tikhonov solution w_λ solves the Ivanov problem with r = Ω(w_λ), and the multiplier of the
constraint at an Ivanov solution is the corresponding λ. Here Ω is ‖w‖₁ (with λ‖w‖₁) or ‖w‖₂ (with (λ/2)‖w‖₂²):

    r(λ) = ‖w_λ‖₁,  λ(w) = max_j |∂R/∂w_j|          r(λ) = ‖w_λ‖₂,  λ(w) = ‖∇R‖₂ / ‖w‖₂

if R is differentiable. If it has kinks, one w may belong to an interval of λ: see :func:`multipliers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.optimize

from hinge.problem.objective import Array, Objective
from hinge.problem.penalties import L1, L2, L1Ball, L2Ball
from hinge.solvers.run import solve

NORMS = {"l1": (L1, L1Ball, 1), "l2": (L2, L2Ball, 2)}


@dataclass(frozen=True)
class PathPoint:
    """One point of the path, as penalised and as constrained solution."""

    strength: float  # λ
    radius: float  # r = ‖w_λ‖
    penalised: Array  # weights of the Tikhonov problem with λ
    constrained: Array  # weights of the Ivanov problem with r
    multipliers: tuple[float, float]  # the interval of λ with the same solution; a single point for smooth losses

    @property
    def multiplier(self) -> float:
        """The λ of the Ivanov solution; if there are several, the one nearest to ``strength``."""
        return float(np.clip(self.strength, *self.multipliers))

    @property
    def difference(self) -> float:
        """The largest difference between the two solutions."""
        return float(np.max(np.abs(self.penalised - self.constrained), initial=0.0))


def multipliers(objective: Objective, w: Array, b: Array, norm: str, *, kink: float = 1e-6) -> tuple[float, float]:
    """The smallest and the largest λ for which w is the penalised solution, from −∂R ∋ λ∂Ω(w).

    For a differentiable risk both are equal. If examples are at a kink of the loss (their scores within ``kink`` of it,
    relative to the largest score), their subgradients may be chosen, and an interval of λ has the solution w; its ends
    solve two linear programs over the subgradients.
    """
    o = objective
    if o.loss.smooth or o.outputs > 1:
        _, g, _ = o.risk_gradient(w, b)
        multiplier_bound = np.max(np.abs(g), initial=0.0) if norm == "l1" else np.linalg.norm(g) / np.linalg.norm(w)
        return float(multiplier_bound), float(multiplier_bound)
    z = o.scores(w, b)
    reach = kink * max(float(np.max(np.abs(z))), float(np.max(np.abs(o.y))))
    low, high = o.loss.subgradients(o.y, z - reach)[0], o.loss.subgradients(o.y, z + reach)[1]
    chosen = np.flatnonzero((high > low) & (o.c > 0))
    fixed = o.c * np.where(high > low, 0.0, low)
    rows = o.design.source[chosen]
    rows = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows, dtype=np.float64)
    # Unknowns: the subgradients u of the chosen examples, and λ. Rows of A: X'(c∘u) + λ·∂Ω, for every feature.
    g, A = o.design.rmatmul(fixed), (o.c[chosen, None] * rows).T
    slack = kink * np.sqrt(o.square_sums + np.finfo(float).tiny)
    used = np.abs(w) > kink * np.max(np.abs(w)) if norm == "l1" else np.ones(o.d, dtype=bool)
    pull = np.sign(w) if norm == "l1" else w
    upper = [np.column_stack([A[used], pull[used]]), np.column_stack([-A[used], -pull[used]])]
    bounds = [-g[used] + slack[used], g[used] + slack[used]]
    idle = np.flatnonzero(~used)
    upper += [np.column_stack([A[idle], -np.ones(len(idle))]), np.column_stack([-A[idle], -np.ones(len(idle))])]
    bounds += [-g[idle] + slack[idle], g[idle] + slack[idle]]
    equal = {}
    if o.fit_intercept:
        equal = {"A_eq": np.append(o.c[chosen], 0.0)[None, :], "b_eq": np.array([-fixed.sum()])}
    limits = [*zip(low[chosen], high[chosen]), (0.0, None)]
    ends = []
    for sign in (1.0, -1.0):
        program = scipy.optimize.linprog(
            np.append(np.zeros(len(chosen)), sign), A_ub=np.vstack(upper), b_ub=np.concatenate(bounds), bounds=limits,
            method="highs", **equal,
        )  # fmt: skip
        ends.append(float(program.x[-1]) if program.status == 0 else np.nan)
    return ends[0], ends[1]


def constrained_path(
    objective: Objective, strengths: Sequence[float], *, norm: str = "l1", tol: float = 1e-8
) -> list[PathPoint]:
    """Solve the penalised problem for every λ and the constrained one for the radius it implies.

    Parameters
    ----------
    objective : Objective
        Data and loss; its penalty is not used.
    strengths : sequence of floats
        The λ of the penalised problems.
    norm : {"l1", "l2"}
        The lasso, λ‖w‖₁ and ‖w‖₁ ≤ r, or ridge, (λ/2)‖w‖₂² and ‖w‖₂ ≤ r.
    tol : float
        The tolerance of both.

    Returns
    -------
    list of PathPoint
        In the order of ``strengths``: λ, r, both solutions, and the λ that the constrained one implies (an interval for losses with
        kinks).
    """
    if norm not in NORMS:
        raise ValueError(f"norm must be 'l1' or 'l2', got {norm!r}.")
    penalty, ball, order = NORMS[norm]
    points = []
    for lam in strengths:
        free = solve(objective.with_penalty(penalty(float(lam))), tol=tol)
        radius = float(np.linalg.norm(free.w.ravel(), order))
        bound = solve(objective.with_penalty(ball(radius)), tol=tol)
        implied = multipliers(objective, bound.w, bound.b, norm) if radius > 0 else (float("nan"), float("nan"))
        points.append(PathPoint(float(lam), radius, free.w, bound.w, implied))
    return points
