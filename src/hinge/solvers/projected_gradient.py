"""Projected gradient, batch and stochastic.

Problem     min R(w, b) + Ω(w), R differentiable, over a set that is easy to project on
Lasso       w = w⁺ − w⁻ with w⁺, w⁻ ≥ 0:  λ‖w‖₁ = λ·1'(w⁺ + w⁻) is linear there, the projection cuts at zero
Balls       ‖w‖₁ ≤ r or ‖w‖₂ ≤ r: the projection is the prox of the ball's indicator
Step        x ← Π(x − η ∇), η = 1/L (enlarged and halved by backtracking), or η₀/√t on minibatches
Optimality  x = Π(x − ∇)
Returns     the last iterate, or the average of all of them in the stochastic form
Reference   Bertsekas (1999), section 2.3; Duchi et al. (2008) for the L1 ball
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Need, Solution, Solver, Status, Stop
from hinge.solvers.loop import Run
from hinge.solvers.stochastic import default_schedule, minibatch_gradient


@dataclass(frozen=True)
class ProjectedGradient(Solver):
    """Projected gradient for the lasso family (through w = w⁺ − w⁻), boxes, and L1 and L2 balls.

    Parameters
    ----------
    batch_size : int, optional
        Projected *stochastic* gradient with batches of this size, averaged; the whole data if absent. ``max_iter``
        counts epochs then.
    step : float, optional
        A fixed step; 1/L, adapted by backtracking, if absent (η₀ of η₀/√t in the stochastic form).
    """

    batch_size: int | None = None
    step: float | None = None

    name: ClassVar[str] = "projected-gradient"
    needs: ClassVar[tuple[Need, ...]] = (Need.GRADIENT, Need.PROJECTION)
    default_max_iter: ClassVar[int] = 20_000

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        split = _Split(objective)
        run = Run(objective, stop)
        x = split.start(w, b)
        w, b = split.weights(x)
        status = run.over(0, run.flat.pack(w, b), objective.value(w, b))
        if status is not None:
            return run.solution(run.flat.pack(w, b), status, 0)
        return self._stochastic(split, run, x, stop) if self.batch_size else self._batch(split, run, x, stop)

    def _batch(self, split: _Split, run: Run, x: Array, stop: Stop) -> Solution:
        bound = split.objective.curvature_bound()
        length = self.step or (1.0 / (2.0 * bound) if np.isfinite(bound) and bound > 0 else 1.0)
        value, g = split.value_gradient(x)
        status, k = None, 0
        while status is None and k < stop.max_iter:
            k += 1
            length *= 1.0 if self.step else 1.1
            for _ in range(60):
                after = split.project(x - length * g)
                move = after - x
                next_value, next_g = split.value_gradient(after)
                model = value + float(g @ move) + float(move @ move) / (2.0 * length)
                bend, noise = float(move @ move) / length, 1e-14 * abs(value)
                # Where rounding hides changes of the value, the gradient decides whether the step is short enough.
                visible = bend > 1e3 * noise or float((next_g - g) @ move) <= bend
                if self.step or (next_value <= model + noise and visible):
                    break
                length *= 0.5
            stalled = np.array_equal(after, x)
            x, value, g = after, next_value, next_g
            status = run.over(k, run.flat.pack(*split.weights(x)), value)
            if status is None and stalled:
                status = Status.STALLED
        return run.solution(run.flat.pack(*split.weights(x)), status, k)

    def _stochastic(self, split: _Split, run: Run, x: Array, stop: Stop) -> Solution:
        o, rng = split.objective, np.random.default_rng(stop.random_state)
        first = self.step or default_schedule(o).step
        mean, t, k, status = x.copy(), 0, 0, None
        while status is None and k < stop.max_iter:
            k += 1
            for rows in np.array_split(rng.permutation(o.n), max(o.n // (self.batch_size or 1), 1)):
                t += 1
                g = split.gradient(x, *minibatch_gradient(o, *split.weights(x), rows))
                x = split.project(x - first / np.sqrt(t) * g)
                mean += (2.0 / (t + 1)) * (x - mean)  # iterate t counts t times
            w, b = split.weights(mean)
            status = run.over(k, run.flat.pack(w, b), o.value(w, b))
        solution = run.solution(run.flat.pack(*split.weights(mean)), status, k)
        return solution if status else replace(solution, status=Status.BUDGET)


class _Split:
    """The variables (w⁺, w⁻, b), or (w, b) for balls, with their projection and the smooth part of the objective."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        shape = objective.zero()[0].shape
        self._shape, self._size = shape, int(np.prod(shape))
        coordinates = objective.penalty.coordinates(objective.d)
        self._ball = coordinates is None
        if coordinates is not None:
            self._l1, self._l2, self._lower, self._upper = (self._spread(part) for part in coordinates)

    def _spread(self, part: Array) -> Array:
        """One number per feature, repeated for every variable."""
        return np.broadcast_to(part if len(self._shape) == 1 else part[:, None], self._shape).ravel()

    def start(self, w: Array, b: Array) -> Array:
        flat = w.ravel()
        parts = [flat] if self._ball else [np.maximum(flat, 0.0), np.maximum(-flat, 0.0)]
        return self.project(np.concatenate([*parts, b]))

    def weights(self, x: Array) -> tuple[Array, Array]:
        m = self._size
        w = x[:m] if self._ball else x[:m] - x[m : 2 * m]
        return w.reshape(self._shape), x[m if self._ball else 2 * m :]

    def project(self, x: Array) -> Array:
        m, x = self._size, x.copy()
        if self._ball:
            x[:m] = self.objective.penalty.prox(x[:m].reshape(self._shape), 1.0).ravel()
        else:
            x[:m] = np.clip(x[:m], 0.0, self._upper)
            x[m : 2 * m] = np.clip(x[m : 2 * m], 0.0, -self._lower)
        return x

    def value_gradient(self, x: Array) -> tuple[float, Array]:
        w, b = self.weights(x)
        risk, gw, gb = self.objective.risk_gradient(w, b)
        if self._ball:
            return risk, np.concatenate([gw.ravel(), gb])
        m, flat = self._size, w.ravel()
        value = risk + float(self._l1 @ (x[:m] + x[m : 2 * m])) + 0.5 * float(self._l2 @ flat**2)
        return value, self._join(gw, gb, flat)

    def gradient(self, x: Array, gw: Array, gb: Array) -> Array:
        """The gradient in these variables, from that of the risk in w and b."""
        return np.concatenate([gw.ravel(), gb]) if self._ball else self._join(gw, gb, self.weights(x)[0].ravel())

    def _join(self, gw: Array, gb: Array, w: Array) -> Array:
        smooth = gw.ravel() + self._l2 * w
        return np.concatenate([smooth + self._l1, self._l1 - smooth, gb])
