"""ADMM: the alternating direction method of multipliers, for losses with kinks under any penalty with a prox.

Problem     min Σ cᵢ ℓ(yᵢ, zᵢ) + Ω(v)   subject to   z = Xw + b + offset,  v = w
Iteration   (w, b) ← least squares against z − u/ρ and v + q/ρ (one factorisation for all iterations)
            zᵢ ← prox of ℓ(yᵢ, ·) with step 1/ρ,   v ← prox of Ω with step 1/(ρκ)
            u, q ← multipliers + ρ·residuals
Dual        the multipliers of z are dual variables u inside the domain of ℓ* by construction
Optimality  both residuals zero
Returns     v with its best bias, and the dual variables u
Reference   Boyd et al. (2011), section 3 with over-relaxation (3.4.3) and residual balancing (3.4.1)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.linalg

from hinge.problem.numerics import weighted_sum
from hinge.problem.objective import Array, Objective
from hinge.problem.root import best_bias
from hinge.solvers.base import Need, Solution, Solver, Stop
from hinge.solvers.closed_form import Centred
from hinge.solvers.loop import Run

RELAX = 1.6


@dataclass(frozen=True)
class ADMM(Solver):
    """The fallback for losses with kinks and penalties that are not a sum over weights.

    Parameters
    ----------
    rho : float
        The first weight of the quadratic terms; it adapts while the method runs.
    """

    rho: float = 1.0

    name: ClassVar[str] = "admm"
    needs: ClassVar[tuple[Need, ...]] = (Need.CONVEX, Need.LOSS_PROX)
    default_max_iter: ClassVar[int] = 20_000

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        run = Run(objective, stop, every=10)
        o, rho = objective, self.rho
        kappa = max(float(np.mean(o.design.square_sums(o.c))), 1e-12)
        least_squares = _least_squares(o, kappa)
        z = o.scores(w, b)
        u = o.loss.project_dual(o.y, o.gradient_of_scores(z))
        u = np.where(np.isfinite(u), u, 0.0)  # an exponential may overflow; zero is in every domain
        v, q = w.copy(), np.zeros_like(w)
        status = run.over(0, run.flat.pack(w, b), o.value(w, b), dual=u)
        k, adapt = 0, 10
        x = run.flat.pack(w, b)
        while status is None and k < stop.max_iter:
            k += 1
            target = z - u / rho if o.offset is None else z - u / rho - _like(o.offset, z)
            w, b = least_squares(target, v + q / rho)
            fitted = RELAX * o.scores(w, b) + (1.0 - RELAX) * z
            moved = RELAX * w + (1.0 - RELAX) * v
            z_before, v_before = z, v
            z = o.loss.prox(o.y, fitted + u / rho, 1.0 / rho)
            v = o.penalty.prox(moved - q / rho, 1.0 / (rho * kappa))
            u = u + rho * (fitted - z)
            q = q + rho * (v - moved)
            x = run.flat.pack(v, _bias(o, v, b) if run.due(k) else b)
            status = run.over(k, x, o.value(*run.flat.unpack(x)) if stop.watched else np.nan, dual=u)
            if k >= adapt:  # at growing intervals, so that ρ settles and the method converges
                adapt = k + max(10, k // 2)
                primal = _length(o, kappa, fitted - z, moved - v) / (_length(o, kappa, z, v) + 1e-300)
                dual = rho * _length(o, kappa, z - z_before, v - v_before) / (_length(o, kappa, u, q) + 1e-300)
                rho *= float(np.clip(np.sqrt(max(primal, 1e-100) / max(dual, 1e-100)), 0.1, 10.0))
        if status is None:
            x = run.flat.pack(v, _bias(o, v, b))
        return run.solution(x, status, k, u)


def _bias(o: Objective, v: Array, b: Array) -> Array:
    """The best bias for the weights v."""
    if not o.fit_intercept:
        return np.zeros(o.outputs)
    if o.loss.outputs == "classes":
        return b
    z = o.scores(v, b)
    span = o.loss.score_span(o.y) + float(np.max(np.abs(z)))
    columns = [(o.y, z)] if z.ndim == 1 else [(np.ascontiguousarray(y), s) for y, s in zip(o.y.T, z.T)]
    return b + [best_bias(_derivatives(o, y, s), span) for y, s in columns]


def _derivatives(o: Objective, y: Array, s: Array) -> Callable[[float], tuple[float, float]]:
    return lambda t: o.native.derivative_sums(y, s + t, o.c)


def _like(numbers: Array, z: Array) -> Array:
    """One number per example, shaped to be added to scores of one or several outputs."""
    return numbers if z.ndim == numbers.ndim else numbers[:, None]


def _length(o: Objective, kappa: float, z: Array, v: Array) -> float:
    """The norm of (z, v) that the method uses."""
    return float(np.sqrt(np.sum(weighted_sum(o.c, z**2)) + kappa * np.sum(v**2)))


def _least_squares(o: Objective, kappa: float) -> Callable[[Array, Array], tuple[Array, Array]]:
    """(w, b) ← argmin Σ cᵢ (xᵢ'w + b − tᵢ)² + κ‖w − a‖², by one Cholesky factorisation of order min(n, d)."""
    X, c = o.design, o.c
    centre = X.rmatmul(c) if o.fit_intercept else np.zeros(o.d)  # Σc = 1
    inverse = _inverse_of_rows(o, kappa) if o.d > o.n else _inverse_of_columns(o, centre, kappa)

    def solve(t: Array, a: Array) -> tuple[Array, Array]:
        mean = weighted_sum(c, t) if o.fit_intercept else 0.0
        w = inverse(X.rmatmul(o.weighted(t - mean)) + kappa * a)
        return w, np.atleast_1d(mean - centre @ w) if o.fit_intercept else np.zeros(o.outputs)

    return solve


def _inverse_of_columns(o: Objective, centre: Array, kappa: float) -> Callable[[Array], Array]:
    """r ↦ (X̃'CX̃ + κI)⁻¹ r, by a factor of order d."""
    gram = o.design.gram(o.c) - np.outer(centre, centre) + kappa * np.eye(o.d)
    factor = scipy.linalg.cho_factor(gram, overwrite_a=True, check_finite=False)
    return lambda r: scipy.linalg.cho_solve(factor, r, check_finite=False)


def _inverse_of_rows(o: Objective, kappa: float) -> Callable[[Array], Array]:
    """The same by a factor of order n: κ(X̃'CX̃ + κI)⁻¹ = I − X̃'C^½ (C^½X̃X̃'C^½ + κI)⁻¹ C^½X̃."""
    problem, root = Centred(o.design, o.y, o.c, o.fit_intercept), np.sqrt(o.c)
    K = problem.dual_gram(np.ones(o.d))
    K.flat[:: o.n + 1] += kappa
    factor = scipy.linalg.cho_factor(K, overwrite_a=True, check_finite=False)
    mean = problem.x_mean

    def inverse(r: Array) -> Array:
        scale = root if r.ndim == 1 else root[:, None]
        a = scale * scipy.linalg.cho_solve(factor, scale * (problem.design.matmul(r) - mean @ r), check_finite=False)
        return (r - problem.design.rmatmul(a)) / kappa  # the mean of X does not contribute: a sums to zero, as X̃'C1 = 0

    return inverse
