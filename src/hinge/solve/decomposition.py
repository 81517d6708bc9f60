"""The dual of a support vector machine, by decomposition.

Problem     min_{f∈H, b}  ½‖f‖² + Σ_v U_v·max(0, s_v(t_v − f(x_v) − b))
Dual        max_α  Σ s_v t_v α_v − ½ Σ s_v s_w α_v α_w k(x_v, x_w),   0 ≤ α ≤ U,   Σ s_v α_v = 0
Optimality  α_v = 0 where s(t − f − b) < 0, α_v = U_v where it is > 0; f = Σ s_v α_v k(x_v, ·)

Classification is s = t = y. Regression has two variables per point, (s, t) = (+1, y − ε) and (−1, y + ε).
Method and references: native/solve/decomposition.hpp. Returned: α, the scores f(xᵢ), the bias, and the two
objectives, from which the certificate is made.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

from hinge._native import core
from hinge.problem.certificate import Certificate
from hinge.problem.kernels import Kernel, evaluate
from hinge.solve.base import Status

Array = NDArray[np.float64]

# Up to this many points kernel rows are kept in double precision: there is room, and it is as quick.
DOUBLE_POINTS = 2000
# Up to this many variables strictly inside their bounds the optimality conditions are solved exactly at the end.
POLISH_VARIABLES = 500
# How often the violation is tightened until the duality gap is small enough.
ROUNDS = 6


@dataclass(frozen=True)
class Dual:
    """The data of a dual problem: one entry per variable; variable v belongs to point v mod n."""

    sign: Array
    target: Array
    upper: Array

    @property
    def scale(self) -> float:
        """The size of targets: what violations are relative to."""
        return max(float(np.std(self.target)), float(np.max(np.abs(self.target), initial=0.0)) * 1e-3, 1e-12)


@dataclass(frozen=True)
class DualSolution:
    """α per variable, Σ s α per point, scores without the bias, and both objectives."""

    alpha: Array
    coefficients: Array
    scores: Array
    bias: float
    primal: float
    dual: float
    violation: float
    iterations: int
    steps: int
    seconds: float = 0.0

    @property
    def gap(self) -> float:
        return max(self.primal - self.dual, 0.0)

    @property
    def relative_gap(self) -> float:
        return self.gap / max(abs(self.primal), np.finfo(float).tiny) if self.gap > 0 else 0.0


@dataclass(frozen=True)
class SharedGram:
    """Kernel values that several problems share, and which of their rows and columns are the points of this one."""

    values: Array
    rows: NDArray[np.int64]

    def columns(self, points: NDArray[np.int64]) -> Array:
        return self.values[np.ix_(self.rows, self.rows[points])]


def classification(y: Array, upper: Array) -> Dual:
    """Variables for labels −1/+1."""
    return Dual(np.ascontiguousarray(y), np.ascontiguousarray(y), np.ascontiguousarray(upper))


def regression(y: Array, epsilon: float, upper: Array) -> Dual:
    """Variables for real targets: points above the tube, then points below it."""
    ones = np.ones(len(y))
    return Dual(
        np.concatenate([ones, -ones]),
        np.concatenate([y - epsilon, y + epsilon]),
        np.concatenate([upper, upper]),
    )


def solve_dual(
    kernel: Kernel,
    X: Any,
    dual: Dual,
    *,
    tol: float,
    cache_bytes: float,
    max_iter: int = -1,
    shrinking: bool = True,
    start: Array | None = None,
    gram: SharedGram | None = None,
    polish: bool = True,
) -> DualSolution:
    """Solve to a relative duality gap of ``tol``. The kernel must have numbers for all its parameters.

    With ``gram`` the kernel's values are taken from there, and X is not looked at. Without ``polish`` the answer is
    that of the tolerance, not of the exact optimality conditions.
    """
    began = time.perf_counter()
    run = _runner(kernel, X, dual, tol) if gram is None else _gram_runner(gram, dual)
    alpha = np.zeros(len(dual.sign)) if start is None else np.ascontiguousarray(start)
    limit, spent, steps = 2**31 - 1 if max_iter < 0 else max_iter, 0, 0
    crossing = tol * dual.scale
    for _ in range(ROUNDS):
        alpha, scores, bias, violation, _, batches, moved, _ = run(
            alpha, crossing, cache_bytes, limit - spent, shrinking
        )
        spent, steps = spent + batches, steps + moved
        solution = _judge(dual, alpha, scores, bias, violation, spent, steps)
        if solution.relative_gap <= tol or spent >= limit:
            break
        crossing *= 0.2
    if polish and POLISH_VARIABLES:
        solution = _polish(kernel, X, dual, solution, gram)
    return replace(solution, seconds=time.perf_counter() - began)


def make_certificate(solutions: list[DualSolution], tol: float) -> Certificate:
    """One certificate for one or several problems solved side by side: objectives add up."""
    primal, dual = sum(s.primal for s in solutions), sum(s.dual for s in solutions)
    gap = max(primal - dual, 0.0)
    relative = gap / max(abs(primal), np.finfo(float).tiny) if gap > 0 else 0.0
    status = Status.CONVERGED if relative <= tol else Status.MAX_ITER
    return Certificate(
        primal=primal,
        dual=dual,
        gap=gap,
        relative_gap=relative,
        residual=np.nan,
        kind="gap",
        tol=tol,
        weight_error=float(np.sqrt(2.0 * gap)),
        solver="decomposition",
        iterations=sum(s.iterations for s in solutions),
        seconds=sum(s.seconds for s in solutions),
        status=status.value,
    )


def _runner(kernel: Kernel, X: Any, dual: Dual, tol: float) -> Any:
    """The compiled solver with its source of kernel rows: a program, or this process's Python."""
    program, n = kernel.program(), evaluate.length(X)
    if program is None:
        return _row_runner(kernel, X, dual, n)
    if kernel.dense_only:
        X = evaluate.spread(X)
    if kernel.stationary and not scipy.sparse.issparse(X):
        X = X - X.mean(axis=0)  # distances stay as they are, and lose fewer digits
    points = evaluate.points(X, np.float32 if _single_suffices(kernel, X, dual, tol) else np.float64)

    def run(alpha: Array, crossing: float, cache: float, limit: int, shrinking: bool) -> Any:
        return core.decompose(
            program, points, dual.sign, dual.target, dual.upper, alpha, crossing, cache, limit, shrinking, None
        )

    return run


def _gram_runner(gram: SharedGram, dual: Dual) -> Any:
    def run(alpha: Array, crossing: float, cache: float, limit: int, shrinking: bool) -> Any:
        return core.decompose_gram(
            gram.values, gram.rows, dual.sign, dual.target, dual.upper, alpha, crossing, cache, limit, shrinking, None
        )

    return run


def _row_runner(kernel: Kernel, X: Any, dual: Dual, n: int) -> Any:
    from hinge.problem.kernels.base import Precomputed

    if isinstance(kernel, Precomputed):
        K = np.asarray(X, dtype=np.float64)

        def rows(which: NDArray[np.int64]) -> Array:
            return np.ascontiguousarray(K[which])
    else:

        def rows(which: NDArray[np.int64]) -> Array:
            return np.ascontiguousarray(kernel.block(X[which], X), dtype=np.float64)

    def run(alpha: Array, crossing: float, cache: float, limit: int, shrinking: bool) -> Any:
        return core.decompose_rows(
            rows, n, dual.sign, dual.target, dual.upper, alpha, crossing, cache, limit, shrinking, None
        )

    return run


def _single_suffices(kernel: Kernel, X: Any, dual: Dual, tol: float) -> bool:
    """Whether kernel values in single precision (6e-8) leave the tolerance within reach.

    The kernel must be bounded by its value at distance zero, the rounding of distances small against its width, and
    the sum of rounding errors in a score, about 6e-8·U·√n, small against the violation that is allowed.
    """
    n = X.shape[0]
    if n <= DOUBLE_POINTS or not kernel.stationary:
        return False
    if float(np.max(dual.upper)) * np.sqrt(n) * 6e-8 > 0.1 * tol * dual.scale:
        return False
    if X.dtype == np.float32:
        return True
    if scipy.sparse.issparse(X):
        square = float(np.max(X.multiply(X).sum(axis=1)))
    else:
        square = float(np.max(np.einsum("ij,ij->i", X, X)))
    # k at half the largest distance from the centre says how wide the kernel is there.
    probe = np.zeros((2, X.shape[1]))
    probe[1, 0] = np.sqrt(square)
    value = kernel(probe)
    return bool(value[0, 1] > np.exp(-16.0) * value[0, 0])


def _judge(
    dual: Dual, alpha: Array, scores: Array, bias: float, violation: float, iterations: int, steps: int
) -> DualSolution:
    """Both objectives of α, at the bias given."""
    n = len(scores)
    signed = dual.sign * alpha
    coefficients = signed.reshape(-1, n).sum(axis=0)
    square = float(coefficients @ scores)
    copies = np.tile(scores, len(alpha) // n)
    slack = np.maximum(dual.sign * (dual.target - copies - bias), 0.0)
    used = dual.upper > 0
    primal = 0.5 * square + float(dual.upper[used] @ slack[used])
    lower = float(signed @ dual.target) - 0.5 * square
    return DualSolution(alpha, coefficients, scores, bias, primal, lower, violation, iterations, steps)


def _polish(kernel: Kernel, X: Any, dual: Dual, solution: DualSolution, gram: SharedGram | None = None) -> DualSolution:
    """Solve the optimality conditions exactly, given which variables are inside their bounds.

    With β = sα of those variables F:  K_FF Δβ + Δb = t − f − b,  ΣΔβ = 0. Kept only if all of them stay inside and
    both objectives come no further apart.
    """
    alpha, n = solution.alpha, len(solution.scores)
    free = np.flatnonzero((alpha > 0) & (alpha < dual.upper))
    if not 0 < len(free) <= POLISH_VARIABLES:
        return solution
    points = free % n
    if gram is not None:
        columns = gram.columns(points)
    elif isinstance(kernel, _precomputed()):
        columns = np.asarray(X, dtype=np.float64)[:, points]
    else:
        columns = np.asarray(kernel.block(X, X[points]), dtype=np.float64)
    system = np.ones((len(free) + 1, len(free) + 1))
    system[:-1, :-1] = columns[points]
    system[-1, -1] = 0.0
    scores = solution.scores
    if n <= DOUBLE_POINTS:
        support = np.flatnonzero(solution.coefficients)
        if gram is None and not isinstance(kernel, _precomputed()):
            scores = np.asarray(kernel.block(X, X[support]), dtype=np.float64) @ solution.coefficients[support]
    missing = dual.target[free] - scores[points] - solution.bias
    change = scipy.linalg.lstsq(system, np.append(missing, -float(dual.sign @ alpha)), lapack_driver="gelsy")[0]
    moved = alpha.copy()
    moved[free] += dual.sign[free] * change[:-1]
    if np.any(moved[free] < 0) or np.any(moved[free] > dual.upper[free]):
        return solution
    better = _judge(
        dual, moved, scores + columns @ change[:-1], solution.bias + float(change[-1]), solution.violation,
        solution.iterations, solution.steps,
    )  # fmt: skip
    return better if better.gap <= solution.gap else solution


def _precomputed() -> type[Kernel]:
    from hinge.problem.kernels.base import Precomputed

    return Precomputed
