"""Newton's method over blocks.

Problem     min_{w,b} Σ cᵢ ℓ(yᵢ, xᵢ'w + b) + Ω(w)
Direction   the minimiser of risk + g'Δ + ½Δ'HΔ + Ω(w + Δ): a linear system if Ω is a ridge or zero; otherwise a small
            least-squares problem with that penalty, which the solvers for data in memory minimise
Step        1, or the best of a list of shorter ones, found in one pass
Optimality  the certificate, from the pass that evaluates the last step (:mod:`hinge.problem.certificates.sums`)
References  Nocedal & Wright (2006), section 3.3; Lee, Sun & Saunders (2014) for the penalties

A pass gives value, gradient and Hessian together, so an iteration costs one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg

from hinge.blocks.kinks import MERGEABLE, minimise_kinked
from hinge.blocks.problem import BlockProblem, SecondOrder
from hinge.problem.certificates.certificate import Certificate, with_run
from hinge.problem.certificates.sums import Point, certificate_from_sums
from hinge.problem.losses import Squared
from hinge.problem.objective import Array, make_objective
from hinge.problem.penalties import Penalty
from hinge.problem.semidefinite import solve_semidefinite
from hinge.solvers.base import Record, Solution, Status
from hinge.solvers.run import Result, solve

NAME = "newton-over-blocks"
MOST_WEIGHTS = 4000  # the largest number of weights whose Hessian is stored and factored
DEFAULT_MAX_ITER = 100
LENGTHS: Array = np.array([0.5**k for k in range(1, 12)])
SUFFICIENT = 1e-4  # a step must achieve this share of the predicted decrease
SHARE = 0.5  # the certificate is computed when the error expected after the step is below this share of the tolerance


class Step(NamedTuple):
    """A step, the decrease that the quadratic model predicts for it, and g + HΔ."""

    step: Array
    bias_step: Array
    decrease: float
    gradient: Array


def minimise_over_blocks(
    problem: BlockProblem,
    start: tuple[Array, Array],
    *,
    tol: float,
    max_iter: int | None = None,
    callback: Callable[[Record], bool] | None = None,
) -> Result:
    """Minimise a problem over blocks and certify the result."""
    _require_feasible(problem)
    if not problem.loss.smooth:
        return minimise_kinked(problem, start, tol=tol, max_iter=max_iter, callback=callback)
    run = _Run(problem, tol, callback)
    return run.from_start(*start, max_iter or DEFAULT_MAX_ITER)


def _require_feasible(problem: BlockProblem) -> None:
    weights = (problem.d + 1) * problem.outputs
    if weights > MOST_WEIGHTS:
        raise ValueError(
            f"Over blocks this model holds the second derivatives of all pairs of weights, for {MOST_WEIGHTS} weights at most; "
            f"here there are {weights}. SGDClassifier and SGDRegressor take any number of them, and fewer columns can be "
            "chosen with hg.scan(…, columns=…)."
        )
    loss = problem.loss
    if not loss.smooth and not (isinstance(loss, MERGEABLE) and problem.outputs == 1):
        raise ValueError(
            f"{loss!r} cannot be minimised over blocks; smooth losses and "
            f"{', '.join(kind.__name__ for kind in MERGEABLE)} can."
        )
    if loss.smooth and not (loss.twice_differentiable or loss.outputs == "classes"):
        raise ValueError(f"{loss!r} cannot be minimised over blocks without a second derivative.")


class _Run:
    """One run: the current weights, the derivatives there, and the envelope of a kinked loss."""

    def __init__(self, problem: BlockProblem, tol: float, callback: Callable[[Record], bool] | None) -> None:
        self.problem, self.tol, self.callback = problem, tol, callback
        self.began = time.perf_counter()

    def from_start(self, w: Array, b: Array, max_iter: int) -> Result:
        problem, status = self.problem, Status.MAX_ITER
        certified: tuple[Point, Certificate] | None = None
        before: tuple[Point, float, float] | None = None  # the last point, its value and the predicted decrease
        iterations = 0
        while iterations < max_iter:
            iterations += 1
            known = problem.second_order(w, b)
            value = known.risk + problem.penalty.value(w)
            if before is not None:
                last, old, predicted = before
                if not value <= old - SUFFICIENT * predicted + 1e-14 * abs(old):
                    w, b = self._shorter(last, old)
                    if w is last.w:
                        status = Status.STALLED
                        break
                    before = None
                    continue
            found = newton_step(known, problem.penalty, w, b, problem.fit_intercept, problem.outputs)
            point = Point(w, b, found.step, found.bias_step, _scale(problem.penalty, found.gradient))
            gap = np.nan
            if self._promising(found.decrease, value):
                certificate = certificate_from_sums(problem, point, problem.dual_sums, tol=self.tol)
                gap = certificate.error
                if certified is None or _better(certificate, certified[1]):
                    certified = point, certificate
                if certificate.converged:
                    status = Status.CONVERGED
                    break
                if certified[1] is not certificate:
                    status = Status.STALLED
                    break
            if self.callback is not None and self.callback(
                Record(iterations, time.perf_counter() - self.began, value, gap, w, b)
            ):
                status = Status.STOPPED
                break
            before = point, value, found.decrease
            w, b = point.weights
        if certified is None:
            w0, b0 = problem.zero()
            point = Point(w, b, w0, b0)
            certified = point, certificate_from_sums(problem, point, problem.dual_sums, tol=self.tol)
        return self._result(*certified, status, iterations)

    def _promising(self, decrease: float, value: float) -> bool:
        """Whether the certificate of the point after the step is likely to meet the tolerance.

        Near the minimiser a step squares the relative error; where it does not, the certificate has cost a pass.
        """
        if self.problem.loss.declared_convex and self.problem.loss.has_conjugate:
            return decrease <= np.sqrt(SHARE * self.tol) * abs(value)
        return decrease <= max(1e-4 * self.tol**2, 1e-20) * abs(value)

    def _shorter(self, point: Point, value: float) -> tuple[Array, Array]:
        """The best of shorter steps; the point itself if none is better."""
        values = self.problem.values_along(point, LENGTHS)
        best = int(np.nanargmin(np.where(np.isfinite(values), values, np.inf)))
        if not values[best] < value:
            return point.w, point.b
        return point.w + LENGTHS[best] * point.step, point.b + LENGTHS[best] * point.bias_step

    def _result(self, point: Point, certificate: Certificate, status: Status, iterations: int) -> Result:
        status = Status.CONVERGED if certificate.converged else status
        certificate = with_run(
            certificate,
            solver=NAME,
            iterations=iterations,
            seconds=time.perf_counter() - self.began,
            status=status.value,
        )
        return Result(Solution(*self._centred(*point.weights), status, iterations), certificate)

    def _centred(self, w: Array, b: Array) -> tuple[Array, Array]:
        """Of all equivalent weights of classes, those whose unpenalised weights and biases have mean zero over the classes."""
        problem = self.problem
        parts = problem.penalty.coordinates(problem.d)
        if problem.loss.outputs != "classes" or parts is None:
            return w, b
        free = (parts.l2 == 0) & (parts.l1 == 0) & np.isinf(parts.lower) & np.isinf(parts.upper)
        return np.where(free[:, None], w - w.mean(axis=1, keepdims=True), w), b - b.mean()


def _better(new: Certificate, old: Certificate) -> bool:
    """Whether a certificate is worth another step: with a lower objective, or the same one and a smaller error."""
    return new.converged or new.primal < old.primal or (new.primal == old.primal and new.error < old.error)


def _scale(penalty: Penalty, gradient: Array) -> float:
    """A scale of the dual variables just below the largest feasible one, which the certificate accepts."""
    scale = penalty.dual_scale(-gradient)
    return scale * (1.0 - 1e-10) if 0.0 < scale < 1.0 else 1.0


def newton_step(known: SecondOrder, penalty: Penalty, w: Array, b: Array, fit_intercept: bool, outputs: int) -> Step:
    """The minimiser of the quadratic model of the risk plus the penalty."""
    d, ones = len(w), int(fit_intercept)
    parts = penalty.coordinates(d)
    free = parts is not None and not np.any(parts.l1) and np.isinf(parts.lower).all() and np.isinf(parts.upper).all()
    g, H = known.gradient, known.hessian
    if parts is not None and free:
        ridge = np.tile(np.append(parts.l2, np.zeros(ones)), outputs)
        packed = pack(w, b, ones)
        A = H + np.diag(ridge)
        delta = -solve_semidefinite(A, g + ridge * packed, groups=outputs)
        decrease = -float((g + ridge * packed) @ delta + 0.5 * delta @ A @ delta)
    else:
        delta = _penalised_step(H, g, penalty, w, b, ones, outputs) - pack(w, b, ones)
        step = unpack(delta, d, ones, outputs)[0]
        decrease = -float(g @ delta + 0.5 * delta @ H @ delta) + penalty.value(w) - penalty.value(w + step)
    step, bias_step = unpack(delta, d, ones, outputs)
    after = unpack(g + H @ delta, d, ones, outputs)[0]
    return Step(step, bias_step, decrease, after)


def pack(w: Array, b: Array, ones: int) -> Array:
    """Weights and biases as one vector, output by output."""
    if w.ndim == 1:
        return np.append(w, b[:ones])
    return (np.vstack([w, b]) if ones else w).T.ravel()


def unpack(x: Array, d: int, ones: int, outputs: int) -> tuple[Array, Array]:
    """The inverse of :func:`pack`; biases are zero where there are none."""
    table = x.reshape(outputs, d + ones)
    w = np.ascontiguousarray(table[:, :d].T)
    b = table[:, d].copy() if ones else np.zeros(outputs)
    return (w[:, 0].copy() if outputs == 1 else w), b


def _penalised_step(H: Array, g: Array, penalty: Penalty, w: Array, b: Array, ones: int, outputs: int) -> Array:
    """argmin_v g'(v − v₀) + ½(v − v₀)'H(v − v₀) + Ω(v): least squares over the rows of a factor of H, without biases."""
    d = len(w)
    now = pack(w, b, ones)
    weights = np.concatenate([np.arange(d) + j * (d + ones) for j in range(outputs)])
    biases = np.setdiff1d(np.arange(len(now)), weights)
    A, r = H[np.ix_(weights, weights)], g[weights]
    if ones:
        inverse = scipy.linalg.pinvh(H[np.ix_(biases, biases)])
        across = H[np.ix_(weights, biases)] @ inverse
        A, r = A - across @ H[np.ix_(biases, weights)], r - across @ g[biases]
    scale = np.sqrt(np.where(np.diag(A) > 0, np.diag(A), 1.0))
    values, vectors = scipy.linalg.eigh(A / np.outer(scale, scale))
    kept = values > len(values) * np.finfo(float).eps * max(values[-1], 0.0)
    root = np.sqrt(values[kept])
    factor = (root[:, None] * vectors[:, kept].T) * scale
    target = ((vectors[:, kept] / root).T / scale) @ (A @ now[weights] - r)
    m = np.sqrt(len(target))
    inner = _for_packed(penalty, outputs)
    objective = make_objective(np.ascontiguousarray(m * factor), m * target, Squared(), inner, fit_intercept=False)
    found = solve(objective, tol=1e-13, warn=False, start=(now[weights], np.zeros(1))).w
    new = now.copy()
    new[weights] = found
    if ones:
        new[biases] = now[biases] - inverse @ (g[biases] + H[np.ix_(biases, weights)] @ (found - now[weights]))
    return new


def _for_packed(penalty: Penalty, outputs: int) -> Penalty:
    """The penalty of weights packed into one vector."""
    if outputs == 1:
        return penalty
    if penalty.coordinates(1) is None or getattr(penalty, "weights", None) is not None:
        raise ValueError(f"{penalty!r} cannot be minimised over blocks with several outputs; L1, L2 and Elastic can.")
    return penalty
