"""Penalised and constrained problems are the same path, differently labelled.

    Tikhonov   min R(w, b) + λ Ω(w)                 Ivanov   min R(w, b)  subject to  Ω(w) ≤ r

For convex R and Ω every Tikhonov solution w_λ solves the Ivanov problem with r = Ω(w_λ), and the multiplier of the
constraint at an Ivanov solution is the λ that gives it back. Here Ω is ‖w‖₁ (with λ‖w‖₁) or ‖w‖₂ (with (λ/2)‖w‖₂²):

    r(λ) = ‖w_λ‖₁,  λ(w) = max_j |∂R/∂w_j|          r(λ) = ‖w_λ‖₂,  λ(w) = ‖∇R‖₂ / ‖w‖₂
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hinge.problem.objective import Array, Objective
from hinge.problem.penalties import L1, L2, L1Ball, L2Ball
from hinge.solvers.run import solve

NORMS = {"l1": (L1, L1Ball, 1), "l2": (L2, L2Ball, 2)}


@dataclass(frozen=True)
class PathPoint:
    """One point of the path, found both ways."""

    strength: float  # λ
    radius: float  # r = ‖w_λ‖
    penalised: Array  # weights of the Tikhonov problem with λ
    constrained: Array  # weights of the Ivanov problem with r
    multiplier: float  # λ read off the Ivanov solution

    @property
    def difference(self) -> float:
        """The largest difference between the two solutions."""
        return float(np.max(np.abs(self.penalised - self.constrained), initial=0.0))


def multiplier(objective: Objective, w: Array, b: Array, norm: str) -> float:
    """The λ for which w is the penalised solution, from the stationarity of the risk on the sphere through w."""
    _, g, _ = objective.risk_gradient(w, b)
    if norm == "l1":
        return float(np.max(np.abs(g), initial=0.0))
    return float(np.linalg.norm(g) / np.linalg.norm(w))


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
        In the order of ``strengths``: λ, r, both solutions, and the λ that the constrained one implies.
    """
    if norm not in NORMS:
        raise ValueError(f"norm must be 'l1' or 'l2', got {norm!r}.")
    penalty, ball, order = NORMS[norm]
    points = []
    for lam in strengths:
        free = solve(objective.with_penalty(penalty(float(lam))), tol=tol)
        radius = float(np.linalg.norm(free.w.ravel(), order))
        bound = solve(objective.with_penalty(ball(radius)), tol=tol)
        implied = multiplier(objective, bound.w, bound.b, norm) if radius > 0 else float("nan")
        points.append(PathPoint(float(lam), radius, free.w, bound.w, implied))
    return points
