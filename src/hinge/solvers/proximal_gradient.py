"""Proximal gradient: ISTA, and FISTA with backtracking and restarts. Works for every penalty that has a prox.

Problem     min_{w,b} R(w, b) + Ω(w), R differentiable, Ω with a proximal operator (bias unpenalised)
Step        x₊ = prox_{Ω/L}(v − ∇R(v)/L), where L is enlarged until R(x₊) ≤ R(v) + ∇R(v)'(x₊−v) + (L/2)‖x₊−v‖²
            v = x for ISTA; v = x + (t₋ − 1)/t · (x − x₋) for FISTA, with t restarted when momentum points uphill
Bias        measured in units of the largest column, so that one L suits columns of any size; in its own with a fixed step
Dual        u = ℓ'(z): the certificate makes a dual point of it
Optimality  x = prox_{Ω/L}(x − ∇R(x)/L), equivalently −∇R(x) ∈ ∂Ω(x)
Returns     the last iterate; for non-convex penalties a stationary point below the start
Reference   Beck & Teboulle (2009), sections 3–4; O'Donoghue & Candès (2015), section 3.2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Need, Solution, Solver, Status, Stop
from hinge.solvers.loop import Run
from hinge.solvers.packing import Flat
from hinge.solvers.stopping import Rule

GROW, SHRINK = 2.0, 0.95  # factors of L: when it is too small, and after each step
ROUNDING = 1e-14
VISIBLE = 1e3  # changes of R can be compared if they exceed its rounding by this factor


@dataclass(frozen=True)
class ProximalGradient(Solver):
    """ISTA and FISTA.

    Parameters
    ----------
    accelerated : bool
        FISTA (Nesterov's momentum, restarted when it points uphill) rather than ISTA. Non-convex problems are
        always solved by ISTA, which never goes uphill.
    step : float, optional
        A fixed step; found by backtracking if absent.
    rules : Rule or tuple of rules
        When to stop before the tolerance of the certificate is met.
    """

    accelerated: bool = True
    step: float | None = None
    rules: tuple[Rule, ...] | Rule = ()

    name: ClassVar[str] = "proximal-gradient"
    shifts: ClassVar[bool] = True
    needs: ClassVar[tuple[Need, ...]] = (Need.GRADIENT,)
    default_max_iter: ClassVar[int] = 20_000

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        convex = objective.loss.convex and objective.penalty.convex
        # A stationary point such as w = 0 under L0 may be a poor one: take steps before computing a certificate.
        unit = 1.0 if self.step or not objective.fit_intercept else _largest_column(objective)
        run = Run(objective, stop, self.rules, first=0 if convex else 1, bias_unit=unit)
        flat = run.flat
        x = flat.pack(w, b)
        if not np.isfinite(objective.penalty.value(w)):  # the start violates a constraint
            x = flat.prox(x, 1.0)
        model = _Model(flat, self.step)
        status = run.over(0, x, flat.value(x))
        before, t, k = x, 1.0, 0
        while status is None and k < stop.max_iter:
            k += 1
            t_next = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t)) if self.accelerated and convex else 1.0
            v = x + (t - 1.0) / t_next * (x - before)
            v, after, value = model.advance(v, x)
            if (v - after) @ (after - x) > 0:  # the momentum points uphill: restart it
                t_next = 1.0
            before, x, t = x, after, t_next
            status = run.over(k, x, value + objective.penalty.value(flat.unpack(x)[0]))
            if status is Status.CONVERGED and not convex and model.moved(x, before) > stop.tol:
                status = None
            if status is None and np.array_equal(x, before) and np.array_equal(v, x):
                status = Status.STALLED
        return run.solution(x, status, k)


def _largest_column(objective: Objective) -> float:
    """The root of the largest mean square of a column; 1 if that is zero or overflows."""
    size = float(np.sqrt(np.max(objective.square_sums, initial=0.0)))
    return size if 0.0 < size < 1e150 else 1.0


class _Model:
    """The quadratic upper model of the risk around v, and its step length 1/L."""

    def __init__(self, flat: Flat, step: float | None) -> None:
        self._flat, self._fixed = flat, step is not None
        # The largest gradient and risk so far: rounding errors are relative to them, also where sums cancel.
        self._slope = self._value = 0.0
        bound = flat.objective.curvature_bound(flat.bias_unit)
        self.L = 1.0 / step if step else (bound if np.isfinite(bound) and bound > 0 else 1.0)

    def advance(self, v: Array, x: Array) -> tuple[Array, Array, float]:
        """v, the next point from it, and the risk there; x takes the place of v where the risk at v overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            value, g = self._flat.risk_gradient(v)
        if not (np.isfinite(value) and np.all(np.isfinite(g))):
            v = x
            value, g = self._flat.risk_gradient(v)
        self._slope = max(self._slope, float(np.linalg.norm(g)))
        self._value = max(self._value, abs(value)) if np.isfinite(value) else self._value
        if not self._fixed:
            self.L *= SHRINK
        while True:
            x = self._flat.prox(v - g / self.L, 1.0 / self.L)
            with np.errstate(over="ignore", invalid="ignore"):
                risk = self._flat.objective.risk(*self._flat.unpack(x))
            if self._fixed:
                return v, x, risk
            move = x - v
            bend = self.L * float(move @ move)
            noise = ROUNDING * self._value
            model = value + float(g @ move) + 0.5 * bend
            if risk <= model + noise and (bend > VISIBLE * noise or self._gradient_agrees(x, g, move, bend)):
                return v, x, risk
            if not np.isfinite(self.L):
                raise ValueError(
                    "The risk is not finite anywhere along the gradient: rescale X and y if they have very large values, "
                    "or check the loss."
                )
            self.L *= GROW

    def _gradient_agrees(self, x: Array, g: Array, move: Array, bend: float) -> bool:
        """(∇R(x) − ∇R(v))'(x − v) ≤ L‖x − v‖²: the same test where rounding hides changes of R itself.

        Without it L would fall below the curvature near the optimum, and the iterates would oscillate around it at a
        distance of the square root of the rounding error.
        """
        _, after = self._flat.risk_gradient(x)
        rounding = 1e-13 * self._slope * float(np.linalg.norm(move))
        return float((after - g) @ move) <= bend * (1.0 + 1e-6) + rounding

    def moved(self, x: Array, before: Array) -> float:
        """The size of the last step, relative to that of x."""
        return float(np.max(np.abs(x - before)) / max(float(np.max(np.abs(x))), 1e-300))
