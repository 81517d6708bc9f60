"""Proximal Newton with working sets; coordinate descent for the squared loss.

Problem     min_{w,b} Σ cᵢ ℓ(yᵢ, xᵢ'w + b) + Σ_j ω_j(w_j),   ℓ twice differentiable
Dual        max_u −Σ cᵢ ℓ*(yᵢ, uᵢ) − Σ_j ω_j*(−x_j'(c∘u)),   Σ cᵢ uᵢ = 0
Optimality  −x_j'(c∘ℓ'(z)) ∈ ∂ω_j(w_j) for every j
Reference   Massias, Gramfort & Salmon (2018), algorithm 4; Lee, Sun & Saunders (2014); native/solvers/proximal_newton.hpp
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from hinge._native import core
from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Need, Solution, Solver, Stop
from hinge.solvers.native import native_problem, run_native


class ProximalNewton(Solver):
    """Quadratic models on a growing working set: the fastest solver for sparse solutions."""

    name: ClassVar[str] = "proximal-newton"
    shifts: ClassVar[bool] = True
    passes: ClassVar[float] = 10.0
    needs: ClassVar[tuple[Need, ...]] = (Need.SECOND, Need.CONVEX, Need.COORDINATES, Need.ONE_OUTPUT)
    default_max_iter: ClassVar[int] = 200

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        constant = objective.loss.constant_curvature
        return run_native(core.proximal_newton, objective, w, b, stop, constant_curvature=constant, tol=0.5 * stop.tol)


def penalty_path(
    objective: Objective, strengths: Array, *, tol: float = 1e-6, max_iter: int = 200
) -> tuple[Array, Array, np.ndarray]:
    """Weights (one row per strength), biases and iterations for the objective's penalty times each strength.

    Strengths should decrease: every solution is the start of the next, and the working set, its columns and their Gram
    matrix are kept.
    """
    w, b = objective.start()
    return core.penalty_path(
        native_problem(objective),
        w,
        float(b[0]),
        objective.loss.constant_curvature,
        np.ascontiguousarray(strengths, dtype=np.float64),
        tol,
        max_iter,
    )
