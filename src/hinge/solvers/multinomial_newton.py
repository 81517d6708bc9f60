"""Newton's method for several classes.

Problem     min_{W,b} Σ cᵢ [−log softmax(W'xᵢ + b)_{yᵢ}] + ½ Σ_j λ_j ‖w_j‖²,   W of d × k
Hessian     block (a, b) of the classes: X'diag(c p_a(δ_ab − p_b))X, plus Λ on the diagonal
Direction   the solution of HΔ = −∇J of least norm, in units that make the diagonal of H one (H is singular, as adding a
            constant to all biases changes nothing)
Optimality  Σ cᵢ (e_{yᵢ} − pᵢ) xᵢ' = (ΛW)' and Σ cᵢ (e_{yᵢ} − pᵢ) = 0
Reference   Böhning (1992); Nocedal & Wright (2006), algorithm 3.2
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.linalg

from hinge._native import core
from hinge.problem.objective import Array, Objective
from hinge.problem.semidefinite import diagonal_scale
from hinge.solvers.base import Need, Solution, Solver, Status, Stop
from hinge.solvers.native import OUTCOMES, native_report


class MultinomialNewton(Solver):
    """Newton's method over all classes: a few iterations, for up to a few hundred weights."""

    name: ClassVar[str] = "multinomial-newton"
    shifts: ClassVar[bool] = True
    needs: ClassVar[tuple[Need, ...]] = (Need.SOFTMAX, Need.RIDGE)
    default_max_iter: ClassVar[int] = 100

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        coordinates = objective.penalty.coordinates(objective.d)
        assert coordinates is not None
        l2, value, status = coordinates.l2[:, None], objective.value(w, b), Status.MAX_ITER
        scale = max(abs(value), 1e-300)
        iteration = 0
        while iteration < stop.max_iter:
            iteration += 1
            _, gw, gb = objective.risk_gradient(w, b)
            step_w, step_b = self._direction(objective, w, b, gw + l2 * w, gb, coordinates.l2)
            derivative = float(np.sum((gw + l2 * w) * step_w) + gb @ step_b)
            length, trial = 1.0, objective.value(w + step_w, b + step_b)
            while not trial <= value + 1e-4 * length * derivative and length > 1e-10:
                length *= 0.5
                trial = objective.value(w + length * step_w, b + length * step_b)
            if not trial <= value:
                status = Status.STALLED
                break
            w, b, value = w + length * step_w, b + length * step_b, trial
            if stop.report(iteration, value, -0.5 * derivative / scale):
                status = Status.STOPPED
                break
            # Newton's decrement is the gap to second order; its square root shows when the quadratic phase has ended.
            if -0.5 * derivative <= min(stop.tol, 1e-12) * max(abs(value), 1e-300):
                status = Status.CONVERGED
                break
        # Of all equivalent solutions, return the one whose unpenalised weights and biases have mean zero over the
        # classes.
        free = coordinates.l2 == 0
        w[free] -= w[free].mean(axis=1, keepdims=True)
        return Solution(w, b - b.mean(), status, iteration)

    @staticmethod
    def _direction(o: Objective, w: Array, b: Array, gw: Array, gb: Array, l2: Array) -> tuple[Array, Array]:
        d, k, bias = o.d, o.outputs, int(o.fit_intercept)
        p = o.loss.inverse_link(o.scores(w, b))
        m = d + bias
        H = np.empty((k * m, k * m))
        for a in range(k):
            for c in range(a, k):
                h = o.c * p[:, a] * ((1.0 - p[:, a]) if a == c else p[:, c])
                block = np.empty((m, m))
                block[:d, :d] = o.design.gram(h)
                if bias:
                    block[:d, d] = block[d, :d] = o.design.rmatmul(h)
                    block[d, d] = h.sum()
                if a == c:
                    block[np.arange(d), np.arange(d)] += l2
                else:
                    block = -block
                H[a * m : (a + 1) * m, c * m : (c + 1) * m] = block
                H[c * m : (c + 1) * m, a * m : (a + 1) * m] = block.T
        g = np.concatenate([np.append(gw[:, a], gb[a] if bias else []) for a in range(k)])
        scale = diagonal_scale(H, k)
        step = -(scipy.linalg.pinvh(H / (scale[:, None] * scale), rtol=1e-13) @ (g / scale)) / scale
        blocks = step.reshape(k, m)
        return blocks[:, :d].T.copy(), blocks[:, d].copy() if bias else np.zeros(k)


class MultinomialNewtonCG(Solver):
    """The same method with preconditioned conjugate gradients: a few passes over X per step, for any number of weights.

    See native/solvers/multinomial.hpp.
    """

    name: ClassVar[str] = "multinomial-newton-cg"
    shifts: ClassVar[bool] = True
    passes: ClassVar[float] = 10.0
    needs: ClassVar[tuple[Need, ...]] = (Need.SOFTMAX, Need.RIDGE, Need.NO_OFFSET)
    default_max_iter: ClassVar[int] = 100

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        coordinates = objective.penalty.coordinates(objective.d)
        assert coordinates is not None
        weights, bias, outcome, iterations = core.multinomial_newton_cg(
            objective.design.native,
            objective.y,
            objective.c,
            objective.fit_intercept,
            np.ascontiguousarray(coordinates.l2),
            np.ascontiguousarray(w, dtype=np.float64),
            np.ascontiguousarray(b, dtype=np.float64),
            tol=0.5 * stop.tol,
            max_iter=stop.max_iter,
            proved=stop.proved,
            report=native_report(stop),
        )
        return Solution(weights, bias, OUTCOMES[outcome], iterations)
