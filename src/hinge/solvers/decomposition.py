"""The dual of a support vector machine, by decomposition.

The problems and their duals are in hinge.problem.certificates.kernel_machine; with s, t, U, B and N as there:

Optimality  with g_v = s_v(t_v − f(x_v) − b) + ρ:  α_v = 0 where g_v < 0, α_v = U_v where g_v > 0;
            f = Σ s_v α_v k(x_v, ·)
Method      native/solvers/decomposition.hpp, run to a violation that is tightened until the duality gap is small enough;
            then, if few multipliers are strictly inside their bounds, the linear system that they satisfy. If pairs of
            variables take longer than an interior point method would, that method runs, followed by pairs again.
Returns     α, the bias, ρ, scores and both objectives.
Indefinite  If the kernel is not known to be positive semidefinite (hinge.problem.kernels.check), the gap and the
            interior point method are not valid. Pairs then converge to a stationary point of the dual (Chen, Fan & Lin
            2006, theorem 3, with a tiny curvature in place of a negative one), and its residual is returned.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from hinge._native import Design, core
from hinge.problem.certificates.certificate import Certificate, with_run
from hinge.problem.certificates.kernel_machine import (
    NOTHING,
    Dual,
    Evaluation,
    Gap,
    KnownScores,
    centred,
    evaluate_at_scores,
    evaluate_machine,
    expansion_scores,
    largest_square,
    machines_certificate,
    point_coefficients,
    residual_scale,
    single_suffices,
    start_spread,
    violation,
)
from hinge.problem.kernels import Definiteness, Kernel, Precomputed, definiteness, evaluate, full_gram
from hinge.problem.numerics import weighted_sum
from hinge.solvers.base import Record, Status
from hinge.solvers.decomposition_start import likely_start
from hinge.solvers.gram_interior_point import interior_multipliers

Array = NDArray[np.float64]
Callback = Callable[[Record], bool]

# Up to this many variables strictly inside their bounds the optimality conditions are solved exactly at the end.
POLISH_VARIABLES = 500
# Rounding errors that scores accumulate, as a fraction of the sum of the multipliers; and those of kernel values in
# single precision.
ROUNDING = 1e-14
SINGLE_ROUNDING = 6e-8
# Limits on the pair steps: for any problem, and none.
FEWEST_STEPS = 20_000
ENDLESS = 2**62
# The interior point method is run to this fraction of the tolerance: a few more iterations leave little to the pairs.
INTERIOR = 1e-3


@dataclass(frozen=True)
class DualSolution(Gap):
    """α per variable, Σ s α per point, scores without the bias, and both objectives."""

    alpha: Array
    coefficients: Array
    scores: Array
    bias: float
    rho: float
    primal: float
    dual: float
    reference: float  # the scale of the relative gap
    iterations: int
    seconds: float = 0.0
    stopped: bool = False
    eigenvalues: Definiteness = Definiteness.PROVEN  # of the kernel matrix
    residual: float = np.nan  # of the optimality conditions, if the gap is not valid

    @property
    def provable(self) -> bool:
        """Whether the gap is a valid bound."""
        return self.eigenvalues is Definiteness.PROVEN

    @property
    def error(self) -> float:
        """The number that is compared with the tolerance."""
        return self.relative_gap if self.provable else self.residual


@dataclass(frozen=True)
class _Point:
    """An iterate: multipliers, bias and ρ."""

    alpha: Array
    bias: float
    rho: float


def solve_dual(
    kernel: Kernel,
    X: Any,
    dual: Dual,
    *,
    tol: float,
    cache_bytes: float,
    max_iter: int = -1,
    shrinking: bool = True,
    callback: Callback | None = None,
    gram: Array | None = None,
    polish: bool = True,
) -> DualSolution:
    """Solve to a relative duality gap of ``tol``. The kernel must have numbers for all its parameters.

    With ``gram``, the kernel's values at all pairs of points, X is not used. Without ``polish`` the solution has the
    accuracy of the tolerance, and does not satisfy the optimality conditions exactly.
    """
    began = time.perf_counter()
    single = gram is None and single_suffices(kernel, X, dual, tol)
    run = _runner(kernel, X, single) if gram is None else partial(core.decompose_matrix, gram)
    square, extent = _sizes(kernel, X, dual, gram)
    limit, spent = 2**31 - 1 if max_iter < 0 else max_iter, 0
    point = _Point(dual.start, 0.0, 0.0)
    crossing = tol * dual.scale if dual.scale > 0 else 0.01 * start_spread(kernel, X, dual)
    patience = _patience(dual, cache_bytes, len(gram) if gram is not None else evaluate.length(X))
    inside = False  # whether the interior point method has replaced the pairs
    eigenvalues = definiteness(kernel, X, gram)
    if eigenvalues is not Definiteness.PROVEN:
        return _stationary(kernel, X, dual, run, tol, cache_bytes, limit, shrinking, callback, gram, eigenvalues, began)
    known = None
    if gram is None:
        alpha, known = _judged_start(kernel, X, dual, single)
        point = replace(point, alpha=alpha)
    given = None if known is None else known.scores  # scores of the point for the solver, which otherwise computes them
    while True:
        report = _report(callback, began, spent)
        settings = _settings(dual, cache_bytes, limit - spent, patience, shrinking)
        alpha, scores, bias, rho, crossed, stopped, batches, steps = run(settings, point.alpha, given, crossing, report)
        point, spent, given = _Point(alpha, bias, rho), spent + batches, scores if single else None
        found = evaluate_at_scores(dual, alpha, scores, bias, rho)
        ended = stopped or spent >= limit
        if gram is None and (ended or found.relative_gap <= tol):
            found = evaluate_machine(kernel, X, dual, alpha, bias, rho, single=single, known=known)
            given = found.scores
            known = KnownScores(point_coefficients(dual, alpha, len(given)), given)
        if ended or found.relative_gap <= tol or _vanishes(dual, found, extent):
            break
        least = max(_score_rounding(alpha, single) * square, ROUNDING * float(np.max(np.abs(dual.target), initial=0.0)))
        if crossed > crossing and steps >= patience:
            if inside:
                break  # the rest is below the precision of the kernel values
            K = gram if gram is not None else full_gram(kernel, X)
            point, given, inside = replace(point, alpha=interior_multipliers(K, dual, INTERIOR * tol)), None, True
            patience *= 10
            continue
        if crossed > crossing or crossing <= least:  # scores are not known to more digits
            if not single:
                break
            single, run, known, given = False, _runner(kernel, X, False), None, None
            continue
        crossing *= 0.2
        if dual.scale == 0:  # the gap is at most about Σα times the violation
            crossing = min(crossing, 0.5 * tol * found.reference / max(float(alpha.sum()), np.finfo(float).tiny))
        crossing = max(crossing, least)
    if not (np.isfinite(found.primal) and np.all(np.isfinite(found.scores))):
        raise ValueError("Kernel values, C or targets are so large that the objective overflows; rescale them.")
    if _vanishes(dual, found, extent):
        zero = np.zeros(len(found.scores))
        function = zero, zero, 0.0, 0.0, 0.0, found.dual, extent
    else:
        if polish:
            point, found = _polish(kernel, X, dual, point, found, gram)
        coefficients = point_coefficients(dual, point.alpha, len(found.scores))
        function = coefficients, found.scores, point.bias, point.rho, found.primal, found.dual, found.reference
    return DualSolution(point.alpha, *function, spent, time.perf_counter() - began, bool(stopped))


def _judged_start(kernel: Kernel, X: Any, dual: Dual, single: bool) -> tuple[Array, KnownScores | None]:
    """The multipliers to start from, with their scores, to which the judge later adds those of the change."""
    alpha = likely_start(kernel, X, dual, single=single)
    if alpha is dual.start:
        return alpha, None
    coefficients = point_coefficients(dual, alpha, evaluate.length(X))
    return alpha, KnownScores(coefficients, expansion_scores(kernel, X, coefficients, single=single))


def _sizes(kernel: Kernel, X: Any, dual: Dual, gram: Array | None) -> tuple[float, float]:
    """The largest k(x, x), and ½‖f‖² at the start if all images coincided; a ValueError where numbers overflow."""
    square = float(np.max(np.abs(np.diagonal(gram)))) if gram is not None else largest_square(kernel, X)
    if not np.isfinite(square):
        raise ValueError("Kernel values are too large: k(x, x) overflows. Scale the inputs down.")
    with np.errstate(over="ignore"):
        scale = dual.scale
    if not np.isfinite(scale):
        raise ValueError("y has values so large that their squares overflow; rescale it.")
    mass = float(dual.start.sum())
    extent = 0.5 * mass * mass * square
    if not np.isfinite(extent):
        raise ValueError("C or sample_weight has values so large that the objective overflows; rescale them.")
    return square, extent


def _stationary(
    kernel: Kernel, X: Any, dual: Dual, run: Any, tol: float, cache_bytes: float, limit: int, shrinking: bool,
    callback: Callback | None, gram: Array | None, eigenvalues: Definiteness, began: float,
) -> DualSolution:  # fmt: skip
    """A stationary point of the dual of a kernel that may be indefinite."""
    alpha, scores, spent = dual.start, None, 0
    crossing = tol * dual.scale if dual.scale > 0 else 0.01 * start_spread(kernel, X, dual)
    while True:
        settings = _settings(dual, cache_bytes, limit - spent, ENDLESS, shrinking)
        alpha, scores, bias, rho, crossed, stopped, batches, _ = run(
            settings, alpha, scores, crossing, _report(callback, began, spent)
        )
        spent += batches
        if gram is None:
            scores = evaluate_machine(kernel, X, dual, alpha, bias, rho).scores
        residual = violation(dual, alpha, scores)
        if stopped or spent >= limit or residual <= tol or crossed > crossing:
            break
        smaller = min(0.2 * crossing, 0.5 * tol * residual_scale(dual, scores))
        if smaller <= ROUNDING * float(np.max(np.abs(scores), initial=0.0)):
            break
        crossing = smaller
    found = evaluate_at_scores(dual, alpha, scores, bias, rho)
    return DualSolution(
        alpha, point_coefficients(dual, alpha, len(scores)), scores, bias, rho, found.primal, -np.inf,
        found.reference, spent, time.perf_counter() - began, bool(stopped), eigenvalues, residual,
    )  # fmt: skip


def _patience(dual: Dual, cache_bytes: float, n: int) -> int:
    """The number of steps that take about as long as the interior point method, if its matrices fit in the cache."""
    return max(FEWEST_STEPS, n**3 // 2000) if 16.0 * n * n <= cache_bytes else ENDLESS


def _vanishes(dual: Dual, found: Evaluation, extent: float) -> bool:
    """Without targets: whether f = 0, of value zero, is the optimum to within rounding. The dual value proves it."""
    return dual.scale == 0 and -found.dual <= NOTHING * extent


def _score_rounding(alpha: Array, single: bool) -> float:
    """The rounding error of a score, in units of k(x, x)."""
    return SINGLE_ROUNDING * float(np.linalg.norm(alpha)) if single else ROUNDING * float(alpha.sum())


def make_certificate(solutions: list[DualSolution], tol: float, strength: float = 1.0) -> Certificate:
    """The certificate of one or several problems solved side by side, with the record of their runs."""
    residual = None if all(s.provable for s in solutions) else max(s.error for s in solutions)
    certified = machines_certificate(solutions, tol, strength=strength, residual=residual)
    status = Status.CONVERGED if certified.converged else Status.MAX_ITER
    if any(s.stopped for s in solutions) and not certified.converged:
        status = Status.STOPPED
    return with_run(
        certified,
        solver="decomposition",
        iterations=sum(s.iterations for s in solutions),
        seconds=sum(s.seconds for s in solutions),
        status=status.value,
    )


def _report(callback: Callback | None, began: float, spent: int) -> Any:
    """The function that the compiled solver calls after each batch."""
    if callback is None:
        return None

    def report(batch: int, violation: float, gap: float) -> bool:
        return bool(callback(Record(spent + batch, time.perf_counter() - began, np.nan, np.nan)))

    return report


def _settings(dual: Dual, cache_bytes: float, max_iter: int, max_steps: int, shrinking: bool) -> Any:
    """The dual and the limits of one run, for the compiled solver."""
    return core.Dual(
        sign=dual.sign, target=dual.target, upper=dual.upper, groups=dual.groups, cache_bytes=cache_bytes,
        max_iter=max_iter, max_steps=max_steps, shrinking=shrinking,
    )  # fmt: skip


def _runner(kernel: Kernel, X: Any, single: bool) -> Any:
    """The compiled solver with its source of kernel rows: a matrix, a kernel program, or a Python function."""
    if isinstance(kernel, Precomputed):
        return partial(core.decompose_matrix, np.ascontiguousarray(X, dtype=np.float64))
    program = kernel.program()
    if program is None:
        return partial(core.decompose_rows, partial(_rows, kernel, X), evaluate.length(X))
    if kernel.dense_only:
        X = evaluate.spread(X)
    points = evaluate.points(centred(kernel, X), np.float32 if single else np.float64)
    return partial(core.decompose, program, points)


def _rows(kernel: Kernel, X: Any, which: NDArray[np.int64]) -> Array:
    """These rows of the kernel matrix."""
    return np.ascontiguousarray(kernel.block(X[which], X), dtype=np.float64)


def _polish(
    kernel: Kernel, X: Any, dual: Dual, point: _Point, found: Evaluation, gram: Array | None
) -> tuple[_Point, Evaluation]:
    """Solve the optimality conditions exactly, given which variables are inside their bounds.

    With β = sα of those variables F:  K_FF Δβ + Δb − sΔρ = t − f − b + sρ, with the sums fixed. The solution is used
    only if all of them stay inside and the gap does not grow.
    """
    alpha, n = point.alpha, len(found.scores)
    free = np.flatnonzero((alpha > 0) & (alpha < dual.upper))
    if not 0 < len(free) <= POLISH_VARIABLES:
        return point, found
    points = free % n
    if gram is not None:
        columns = gram[:, points]
    elif isinstance(kernel, Precomputed):
        columns = np.asarray(X, dtype=np.float64)[:, points]
    else:
        columns = np.asarray(kernel.block(X, X[points]), dtype=np.float64)
    m = len(free)
    levels = np.column_stack([np.ones(m), -dual.sign[free]])[:, : dual.groups]  # derivatives by b and ρ
    system = np.block([[columns[points], levels], [levels.T, np.zeros((dual.groups, dual.groups))]])
    missing = dual.target[free] - found.scores[points] - point.bias + dual.sign[free] * point.rho
    if not (np.all(np.isfinite(system)) and np.all(np.isfinite(missing))):
        return point, found
    excess = [weighted_sum(dual.sign, alpha - dual.start), -np.sum(alpha - dual.start)][: dual.groups]
    change = scipy.linalg.lstsq(system, np.concatenate([missing, -np.array(excess)]), lapack_driver="gelsy")[0]
    moved = alpha.copy()
    moved[free] += dual.sign[free] * change[:m]
    if np.any(moved[free] < 0) or np.any(moved[free] > dual.upper[free]):
        return point, found
    rho = point.rho + (float(change[m + 1]) if dual.nu else 0.0)
    better = _Point(moved, point.bias + float(change[m]), rho)
    scores = found.scores + Design(columns).matmul(change[:m])
    evaluated = evaluate_at_scores(dual, moved, scores, better.bias, better.rho)
    return (better, evaluated) if evaluated.gap <= found.gap else (point, found)
