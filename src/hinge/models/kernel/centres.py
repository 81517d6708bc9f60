"""Kernel learning without the n × n matrix: an expansion over m centres, by preconditioned conjugate gradients.

Problem     min_{α, b}  Σ cᵢ ℓ(yᵢ, zᵢ) + (λ/2) α'K_mm α,    z = K_nm α + b,    ℓ twice differentiable
Variables   β = Tα with K_mm = T'T, so that the penalty is (λ/2)‖β‖² and the scores are Φβ + b, Φ = K_nm T⁻¹
Method      Newton; each step solves (Φ'DΦ + λ)δ = −g by conjugate gradients, D = diag(cᵢ ℓ''ᵢ), preconditioned by the
            same matrix with the m centres in place of the n examples. Squared loss needs one step.
            K_nm is used in blocks, cached in single precision as far as the cache allows and recomputed beyond.
Certificate With u = ℓ'(z) that sums to zero, weak duality gives the gap ‖λβ + Φ'(c∘u)‖² / 2λ exactly.
Reference   Rudi, Carratino & Rosasco (2017), FALKON; Marteau-Ferey, Bach & Rudi (2019) for other losses.

``CentreBlocks`` computes and multiplies the blocks; only this class would differ on another device.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

from hinge._native import Design, core
from hinge.models.base import require_no_overflow
from hinge.models.kernel.expansion import Expansion
from hinge.models.learner import Fit, Task
from hinge.problem.certificates.certificate import Certificate
from hinge.problem.certificates.kernel_expansion import centres_certificate
from hinge.problem.kernels import Kernel, Precomputed, evaluate
from hinge.problem.losses import Squared, normalise_weights
from hinge.problem.losses.native import native_loss
from hinge.problem.penalties import L2
from hinge.problem.root import best_bias
from hinge.problem.spaces import RKHS
from hinge.solvers.base import Record, Status

Array = NDArray[np.float64]

# Relative to the size of K_mm, added to its diagonal so that it can be factored: the rounding of single precision.
JITTER = 1e-7
NEWTON_STEPS = 50
CG_STEPS = 200
ROWS = 8192


class CentreBlocks:
    """K_nm between examples and centres, and products with it and its transpose, a block of rows at a time."""

    def __init__(self, kernel: Kernel, X: Any, centres: Any, cache_bytes: float) -> None:
        self.n, self.m = evaluate.length(X), evaluate.length(centres)
        program = kernel.program()
        self.program = program if program is not None else []
        kept = self.n if program is None else min(self.n, int(cache_bytes / (4 * self.m)))
        self.kept = np.empty((kept, self.m), dtype=np.float32)
        if program is not None:
            single_X, single_centres = _single(kernel, X, centres)
            self.centres = evaluate.points(single_centres)
        for begin in range(0, kept, ROWS):
            end = min(begin + ROWS, kept)
            if program is None:
                self.kept[begin:end] = kernel.block(X[begin:end], centres)
            else:
                self.kept[begin:end] = core.kernel_gram(program, evaluate.points(single_X[begin:end]), self.centres)
        self.rest = evaluate.points(single_X[kept:]) if kept < self.n else None
        self.design = Design(self.kept) if kept else None

    def times(self, v: Array) -> Array:
        """K_nm v."""
        parts = [] if self.design is None else [self.design.matmul(v)]
        if self.rest is not None:
            parts.append(core.kernel_scores(self.program, self.rest, self.centres, v[:, None])[:, 0])
        return np.concatenate(parts)

    def adjoint(self, u: Array) -> Array:
        """K_nm' u."""
        kept = len(self.kept)
        total = np.zeros(self.m) if self.design is None else self.design.rmatmul(u[:kept])
        if self.rest is not None:
            total += core.kernel_pull(self.program, self.rest, self.centres, np.ascontiguousarray(u[kept:, None]))[:, 0]
        return total

    def quadratic(self, h: Array, v: Array, shift: float) -> tuple[Array, float]:
        """K_nm'(h∘(K_nm v + shift)) and Σ h∘(K_nm v + shift)."""
        kept, total, size = len(self.kept), np.zeros(self.m), 0.0
        if kept:
            total, size = core.block_quadratic(self.kept, h[:kept], v, shift)
        if self.rest is not None:
            more, weight = core.kernel_quadratic(self.program, self.rest, self.centres, h[kept:].copy(), v, shift)
            total, size = total + more, size + weight
        return total, size


def _single(kernel: Kernel, X: Any, centres: Any) -> tuple[Any, Any]:
    if kernel.dense_only:
        X, centres = evaluate.spread(X), evaluate.spread(centres)
    if kernel.stationary and not scipy.sparse.issparse(X):
        middle = centres.mean(axis=0)
        X, centres = X - middle, centres - middle
    return X.astype(np.float32), centres.astype(np.float32)


def fit_centres(kernel: Kernel, space: RKHS, task: Task) -> Fit:
    """Minimise a task over expansions of ``space.centres`` examples."""
    _refuse(kernel, space, task)
    began = time.perf_counter()
    weights = normalise_weights(task.sample_weight, len(task.y))
    usable = np.flatnonzero(weights > 0)
    m = min(int(space.centres or 0), len(usable))
    chosen = np.sort(np.random.default_rng(task.random_state).choice(usable, size=m, replace=False))
    centres = task.X[chosen]
    blocks = CentreBlocks(kernel, task.X, centres, 1e6 * space.cache_size)
    K = kernel(evaluate.spread(centres).astype(np.float64) if not scipy.sparse.issparse(centres) else centres)
    size = float(np.trace(K)) / m or 1.0
    # Centres that coincide make K singular: a jitter of the size of rounding makes it regular.
    T, info = scipy.linalg.lapack.dpotrf(K.astype(np.float64) + JITTER * size * np.eye(m), lower=0, clean=1)
    if info:
        raise ValueError(
            f"{kernel!r} is not positive semidefinite on the centres: an expansion over them has no norm. Use a positive "
            "semidefinite kernel, or centres=None, which leaves negative eigenvalues out."
        )
    problem = _Newton(blocks, T, task, weights, weights[chosen], chosen, space.fit_intercept)
    beta, bias, certificate, iterations = problem.run(began)
    alpha = scipy.linalg.solve_triangular(T, beta)
    attributes = {"dual_coef_": alpha, "support_": chosen, "intercept_": bias, "n_iter_": max(iterations, 1)}
    return Fit(Expansion(kernel, centres, alpha, bias), certificate, attributes)


def _refuse(kernel: Kernel, space: RKHS, task: Task) -> None:
    if not (isinstance(space.centres, int | np.integer) and space.centres > 0):
        raise ValueError(f"centres must be a positive whole number, got {space.centres!r}.")
    if isinstance(kernel, Precomputed):
        raise ValueError("centres needs the inputs themselves, not a precomputed kernel matrix.")
    if not (task.loss.twice_differentiable and task.loss.declared_convex) or task.classes is not None:
        raise ValueError(
            f"centres needs a convex loss with two derivatives and one score per example, not {task.loss!r}; "
            "hg.Squared(), hg.Logistic() or hg.Huber() would do. (A loss of your own declares convex = True.)"
        )
    if not (isinstance(task.penalty, L2) and task.penalty.lam > 0):
        raise ValueError(f"centres needs the penalty hg.L2(λ) with λ > 0, not {task.penalty!r}.")


class _Newton:
    """Newton's method in β and b; see the module docstring."""

    def __init__(
        self, blocks: CentreBlocks, T: Array, task: Task, c: Array, c_centres: Array, chosen: Any, bias: bool
    ) -> None:
        self.blocks, self.T, self.task, self.c, self.with_bias = blocks, T, task, c, bias
        self.lam = float(task.penalty.lam)  # type: ignore[attr-defined]
        self.loss, self.y = native_loss(task.loss), task.y
        self.chosen, self.c_centres = chosen, c_centres
        self.iterations = 0
        self.stopped = False

    def _adjoint(self, u: Array) -> Array:
        """Φ'u."""
        return scipy.linalg.solve_triangular(self.T, self.blocks.adjoint(u), trans="T")

    def _features_times(self, beta: Array) -> Array:
        return self.blocks.times(scipy.linalg.solve_triangular(self.T, beta))

    def _shift(self, z: Array) -> float:
        """The best bias for scores z."""
        if not self.with_bias:
            return 0.0
        span = self.task.loss.score_span(self.y) + float(np.max(np.abs(z), initial=0.0))
        return best_bias(lambda b: self.loss.derivative_sums(self.y, z + b, self.c), span)

    def run(self, began: float) -> tuple[Array, float, Certificate, int]:
        beta, z = np.zeros(self.blocks.m), np.zeros(self.blocks.n)
        limit = NEWTON_STEPS if self.task.max_iter is None else self.task.max_iter
        accuracy = 1e-2
        while True:
            b = self._shift(z)
            risk, cu = self.loss.gradient(self.y, z + b, self.c)
            g = self._adjoint(cu) + self.lam * beta
            primal = risk + 0.5 * self.lam * float(beta @ beta)
            gap = float(g @ g) / (2.0 * self.lam)
            require_no_overflow(primal, gap)
            if gap <= self.task.tol * abs(primal) or self.iterations >= limit:
                break
            # A quadratic is solved in one step, to the accuracy that the gap requires.
            if isinstance(self.task.loss, Squared):
                accuracy = 0.3 * np.sqrt(self.task.tol * abs(primal) / gap)
            step = self._direction(z + b, g, accuracy)
            beta, z, moved = self._search(beta, z, step, primal)
            self.iterations += 1
            self.stopped = self.stopped or (
                self.task.callback is not None
                and self.task.callback(Record(self.iterations, time.perf_counter() - began, primal, gap))
            )
            accuracy = min(accuracy, 0.1 * np.sqrt(gap / max(abs(primal), 1e-300)))
            if not moved:
                break
            if self.stopped:
                limit = self.iterations  # the gap has not been computed yet
        short = Status.STOPPED if self.stopped else Status.MAX_ITER
        status = Status.CONVERGED if gap <= self.task.tol * abs(primal) else short
        certificate = centres_certificate(
            self.loss, self.y, self.c, self._features_times, self._adjoint, beta, b, self.lam, tol=self.task.tol,
            solver="preconditioned conjugate gradients", iterations=self.iterations,
            seconds=time.perf_counter() - began, status=status.value,
        )  # fmt: skip
        return beta, b, certificate, self.iterations

    def _search(self, beta: Array, z: Array, step: Array, primal: float) -> tuple[Array, Array, bool]:
        """Backtracking from the full step until the objective falls."""
        dz, scale = self._features_times(step), 1.0
        while scale > 1e-6:
            trial, scores = beta + scale * step, z + scale * dz
            value = float(self.loss.value(self.y, scores + self._shift(scores), self.c))
            if value + 0.5 * self.lam * float(trial @ trial) < primal:
                return trial, scores, True
            scale *= 0.5
        return beta, z, False

    def _direction(self, z: Array, g: Array, accuracy: float) -> Array:
        """δ with (Φ'DΦ + λ)δ ≈ −g, with the bias as an additional column."""
        D = self.c * self.task.loss.hessian(self.y, z)
        solve = self._preconditioner(D)

        def apply(x: Array) -> Array:
            pulled, total = self.blocks.quadratic(
                D, scipy.linalg.solve_triangular(self.T, x[:-1]), float(x[-1]) if self.with_bias else 0.0
            )
            out = scipy.linalg.solve_triangular(self.T, pulled, trans="T") + self.lam * x[:-1]
            return np.append(out, total if self.with_bias else 0.0)

        return conjugate_gradients(apply, solve, np.append(-g, 0.0), accuracy, CG_STEPS)[:-1]

    def _preconditioner(self, D: Array) -> Callable[[Array], Array]:
        """The inverse of the matrix of the centres alone, scaled to all examples."""
        at = D[self.chosen]
        share = float(D.sum()) / max(float(at.sum()), 1e-300)
        rows = np.vstack([self.T, np.full(self.blocks.m, float(self.with_bias))])  # features of the centres: columns
        P = (rows * (share * at)) @ rows.T
        P[np.diag_indices(self.blocks.m)] += self.lam
        P[-1, -1] += 0.0 if self.with_bias else 1.0
        P[-1, -1] *= 1.0 + 1e-10
        factor = scipy.linalg.cho_factor(P, overwrite_a=True)
        return lambda x: scipy.linalg.cho_solve(factor, x)


def conjugate_gradients(
    apply: Callable[[Array], Array], solve: Callable[[Array], Array], b: Array, accuracy: float, most: int
) -> Array:
    """x with Ax ≈ b: preconditioned conjugate gradients until ‖b − Ax‖ ≤ accuracy·‖b‖."""
    x, r = np.zeros_like(b), b.copy()
    z = solve(r)
    p, rz = z.copy(), float(r @ z)
    goal = accuracy * float(np.linalg.norm(b))
    for _ in range(most):
        if np.linalg.norm(r) <= goal or rz <= 0:
            break
        Ap = apply(p)
        step = rz / float(p @ Ap)
        x += step * p
        r -= step * Ap
        z = solve(r)
        rz, before = float(r @ z), rz
        p = z + (rz / before) * p
    return x
