"""Subgradient descent, batch and stochastic (Pegasos).

Problem     min_{w,b} J = Σ cᵢ ℓ(yᵢ, zᵢ) + Ω(w), convex, perhaps with kinks (hinge, L1)
Step        x ← x − η_t g,  g ∈ ∂J(x);  η_t = 1/(λ(t+1)) if Ω ⊇ (λ/2)‖w‖², else η₀/√t
Pegasos     g from one example (or a batch):  w ← (1 − η_t λ) w + η_t yᵢ xᵢ 1[mᵢ < 1],  η_t = 1/(λt)
Dual        the average of the subgradients u_t lies in the domain of ℓ* (it is convex): a dual point. With
            η = 1/(λt) the iterate is w = −X'(c∘ū)/λ, so primal and dual belong together and the gap closes
Optimality  0 ∈ ∂J(x): see ``optimality_distance``
Returns     the best of the iterates and of their average, with the averaged subgradients
Reference   Shor (1985); Shalev-Shwartz, Singer, Srebro & Cotter (2011), figure 1
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.optimize

from hinge.problem.certificates.linear import convexity
from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Need, Solution, Solver, Status, Stop
from hinge.solvers.loop import Run
from hinge.solvers.stopping import Rule


@dataclass(frozen=True)
class Subgradient(Solver):
    """Batch subgradient descent that keeps the best iterate and the average.

    Parameters
    ----------
    step : float, optional
        η₀ of the steps η₀/√t; by default 1/(λ(t+1)) where the penalty has an L2 part for every weight, else one over
        the length of the first subgradient.
    rules : Rule or tuple of rules
        When to stop before the tolerance of the certificate is met.
    """

    step: float | None = None
    rules: tuple[Rule, ...] | Rule = ()

    name: ClassVar[str] = "subgradient"
    needs: ClassVar[tuple[Need, ...]] = (Need.CONVEX, Need.SUBGRADIENT)
    default_max_iter: ClassVar[int] = 2000

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        run = Run(objective, stop, self.rules, every=20)
        flat = run.flat
        x = flat.pack(w, b)
        strength = convexity(objective) if self.step is None else 0.0
        best, mean = _Best(x, flat.value(x)), x.copy()
        averaged, total, k, first = None, 0.0, 0, 0.0
        status = run.over(0, x, best.value)
        while status is None and k < stop.max_iter:
            k += 1
            u = objective.gradient_of_scores(objective.scores(*flat.unpack(x)))
            _, g = flat.value_gradient(x)
            first = first or float(np.linalg.norm(g)) or 1.0
            eta = 1.0 / (strength * (k + 1)) if strength > 0 else (self.step or 1.0 / first) / np.sqrt(k)
            weight = eta * (k + 1) if strength > 0 else eta  # of this step in the averages
            total += weight
            averaged = u if averaged is None else averaged + (weight / total) * (u - averaged)
            x = x - eta * g
            mean = mean + (weight / total) * (x - mean)
            best.offer(x, flat.value(x))
            if run.due(k):
                best.offer(mean, flat.value(mean))
            status = run.over(k, best.x, best.value, float(np.linalg.norm(g)), dual=averaged)
        return run.solution(best.x, status, k, averaged)


@dataclass(frozen=True)
class Pegasos(Solver):
    """Stochastic subgradient descent with steps 1/(λt) for (λ/2)‖w‖² and any convex loss, in particular the hinge.

    Parameters
    ----------
    batch_size : int
        Examples per step.
    project : bool
        Pull the weights back into the ball ‖w‖ ≤ √(2J(0)/λ) that is known to hold the optimum.

    Notes
    -----
    ``max_iter`` counts epochs. The bias is not penalised, which the analysis of Pegasos does not cover: without strong
    convexity to justify 1/(λt) it moves with the step 1/√t.
    """

    batch_size: int = 1
    project: bool = True

    name: ClassVar[str] = "pegasos"
    needs: ClassVar[tuple[Need, ...]] = (Need.CONVEX, Need.SUBGRADIENT, Need.STRONGLY_CONVEX, Need.ONE_OUTPUT)
    default_max_iter: ClassVar[int] = 200

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        o, X = objective, objective.design.source
        run = Run(objective, stop)
        rng = np.random.default_rng(stop.random_state)
        penalty = o.penalty
        strength = convexity(o)
        x = run.flat.pack(w, b)
        best = _Best(x, run.flat.value(x))
        radius = np.sqrt(2.0 * max(best.value, 0.0) / strength) if not np.any(w) else np.inf
        mean, met, averaged, t, k = x.copy(), np.zeros(o.n), None, 0, 0
        status = run.over(0, x, best.value)
        X = X.tocsr() if hasattr(X, "tocsr") else X
        while status is None and k < stop.max_iter:
            k += 1
            for rows in np.array_split(rng.permutation(o.n), max(o.n // self.batch_size, 1)):
                t += 1
                w, b = run.flat.unpack(x)
                z = np.asarray(X[rows] @ w).ravel() + (b[0] if o.fit_intercept else 0.0)
                z = z if o.offset is None else z + o.offset[rows]
                u = o.loss.gradient(o.y[rows], z)
                cu = o.c[rows] * u * (o.n / len(rows))
                eta = 1.0 / (strength * t)
                gw = np.asarray(X[rows].T @ cu).ravel() + penalty.gradient(w)
                w, b = w - eta * gw, b - np.sum(cu) / np.sqrt(t) if o.fit_intercept else b
                if self.project and np.isfinite(radius):
                    w = w * min(1.0, radius / max(float(np.linalg.norm(w)), 1e-300))
                x = run.flat.pack(w, b)
                mean += (2.0 / (t + 1)) * (x - mean)  # iterate t counts t times
                met[rows] += t * u * (o.n / len(rows))
            best.offer(x, run.flat.value(x))
            best.offer(mean, run.flat.value(mean))
            averaged = met * (2.0 / (t * (t + 1)))
            status = run.over(k, best.x, best.value, dual=averaged)
        solution = run.solution(best.x, status, k, averaged)
        return solution if status else replace(solution, status=Status.BUDGET)


def optimality_distance(objective: Objective, w: Array, b: Array, *, kink: float = 1e-9) -> float:
    """The distance of 0 from ∂J(w, b): zero exactly at the optimum of a convex objective.

    At kinks (examples whose score is within ``kink`` of one, weights at zero under an L1 penalty, weights at a bound)
    the subgradient is not unique; the best one is found by least squares with bounds.

    Parameters
    ----------
    objective : Objective
        J.
    w, b : arrays
        Where the subdifferential is taken.
    kink : float
        How near a kink is taken to be on it, in units of the score or weight.
    """
    o = objective
    coordinates = o.penalty.coordinates(o.d)
    if coordinates is None or o.outputs > 1:
        raise ValueError("the optimality test is for one output and penalties that are sums over single weights.")
    z = o.scores(w, b)
    lo, hi = o.loss.subgradients(o.y, z)
    near_lo, near_hi = o.loss.subgradients(o.y, z - kink), o.loss.subgradients(o.y, z + kink)
    if not o.loss.smooth:
        lo, hi = np.minimum(lo, near_lo[0]), np.maximum(hi, near_hi[1])
    l1, l2, lower, upper = coordinates
    slope_lo = np.where(w > 0, l1, -l1) + l2 * w
    slope_hi = np.where(w < 0, -l1, l1) + l2 * w
    slope_lo, slope_hi = np.where(w <= lower, -np.inf, slope_lo), np.where(w >= upper, np.inf, slope_hi)
    choose_u, choose_w = np.flatnonzero(hi > lo), np.flatnonzero(slope_hi > slope_lo)
    fixed = o.design.rmatmul(o.c * np.where(hi > lo, 0.0, lo)) + np.where(slope_hi > slope_lo, 0.0, slope_lo)
    rows = o.design.source[choose_u]
    rows = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows, dtype=np.float64)
    A = np.hstack([(o.c[choose_u, None] * rows).T, np.eye(o.d)[:, choose_w]])
    if o.fit_intercept:
        A = np.vstack([A, np.concatenate([o.c[choose_u], np.zeros(len(choose_w))])])
        fixed = np.append(fixed, o.c @ np.where(hi > lo, 0.0, lo))
    if A.shape[1] == 0:
        return float(np.linalg.norm(fixed))
    bounds = (np.append(lo[choose_u], slope_lo[choose_w]), np.append(hi[choose_u], slope_hi[choose_w]))
    solved = scipy.optimize.lsq_linear(A, -fixed, bounds=bounds, tol=1e-14, method="bvls" if A.size < 10**5 else "trf")
    return float(np.linalg.norm(A @ solved.x + fixed))


class _Best:
    """The iterate with the lowest objective."""

    def __init__(self, x: Array, value: float) -> None:
        self.x, self.value = x.copy(), value

    def offer(self, x: Array, value: float) -> None:
        if value < self.value:
            self.x, self.value = x.copy(), value
