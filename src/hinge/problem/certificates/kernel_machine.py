"""Support vector machines as problems: the objective, its dual, and the certificate of the gap between them.

Problem     min_{f∈H, b, ρ}  ½‖f‖² + Σ_v U_v·max(0, s_v(t_v − f(x_v) − b) + ρ) + B·b − N·ρ
Dual        max_α  Σ s_v t_v α_v − ½‖Σ s_v α_v k(x_v, ·)‖²,   0 ≤ α ≤ U,   Σ s_v α_v = B,   Σ α_v = N
            without ρ (the C forms) there is no N, and B = 0

One or two variables v per point:

    classification   s = t = y,                                  U = C·weight
    regression       (s, t) = (+1, y − ε) and (−1, y + ε),       U = C·weight
    ν-classification s = y, t = 0,                               U = weight,    N = ν·Σ weight
    ν-regression     (s, t) = (+1, y) and (−1, y), ρ = −ε,       U = C·weight,  N = C·ν·Σ weight
    one class        s = 1, t = 0, without ρ (−b is the offset), U = weight,    B = ν·Σ weight

The certificate is computed from α, b and ρ: the scores from α alone, a block of examples at a time, and both objectives
from the scores. No intermediate result of a solver is used, and infeasible multipliers give no bound.

If the kernel is not known to be positive semidefinite, ‖f‖² may be negative: the problem has no lower bound, its dual
gives none either, and the certificate is the residual of the optimality conditions of the dual (``violation``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from hinge._native import core
from hinge.problem.certificates.certificate import Certificate
from hinge.problem.kernels import Kernel, Precomputed, evaluate
from hinge.problem.numerics import weighted_sum

Array = NDArray[np.float64]

# Rows of a kernel matrix computed in Python at a time.
BLOCK_ROWS = 512
# Rounding allowed in the sums of multipliers, relative to their size.
BALANCE = 1e-9
# Up to this many multiplications kernel values are computed in double precision, which is as fast.
DOUBLE_WORK = 2e8
# An objective below this share of its scale is zero.
NOTHING = 1e-10
# From this many points of an expansion on, the values among them are computed once for both triangles.
MANY_POINTS = 1000
# The number of points from which the size of scores is estimated.
FEW_POINTS = 200
# Scores in single precision are compared with double precision at so many points. Their error is estimated as this many
# times the largest difference. The worst case is no use: 1 % of the objective at 20,000 × 50.
CHECKED_POINTS = 64
ERROR_MARGIN = 2.0


@dataclass(frozen=True)
class Dual:
    """The data of a dual problem: one entry per variable; variable v belongs to point v mod n."""

    sign: Array
    target: Array
    upper: Array
    start: Array  # feasible multipliers, which define the sums
    nu: bool = False  # whether Σ α is fixed too

    @property
    def groups(self) -> int:
        """The number of sums that are fixed: one, or one for each sign."""
        return 2 if self.nu else 1

    @property
    def scale(self) -> float:
        """The size of targets, the unit of violations. Zero if there are no targets."""
        return max(float(np.std(self.target)), float(np.max(np.abs(self.target), initial=0.0)) * 1e-3)


def classification(y: Array, upper: Array) -> Dual:
    """Labels −1/+1; several problems are stacked in rows."""
    return Dual(np.ascontiguousarray(y), np.ascontiguousarray(y), np.ascontiguousarray(upper), np.zeros(np.shape(y)))


def regression(y: Array, epsilon: float, upper: Array) -> Dual:
    """Real targets: points above the tube, then points below it."""
    ones = np.ones(len(y))
    return Dual(
        np.concatenate([ones, -ones]),
        np.concatenate([y - epsilon, y + epsilon]),
        np.concatenate([upper, upper]),
        np.zeros(2 * len(y)),
    )


def nu_classification(y: Array, nu: float, upper: Array) -> Dual:
    """Labels −1/+1, the fraction ν of margin errors in place of their cost; several problems are stacked in rows."""
    half = 0.5 * nu * upper.sum(axis=-1)
    start = fill(np.where(y < 0, upper, 0.0), half) + fill(np.where(y > 0, upper, 0.0), half)
    return Dual(np.ascontiguousarray(y), np.zeros(np.shape(y)), np.ascontiguousarray(upper), start, nu=True)


def nu_regression(y: Array, nu: float, upper: Array) -> Dual:
    """Real targets, the fraction ν of points outside the tube in place of its width."""
    ones, half = np.ones(len(y)), fill(upper, 0.5 * nu * float(upper.sum()))
    return Dual(
        np.concatenate([ones, -ones]),
        np.concatenate([y, y]),
        np.concatenate([upper, upper]),
        np.concatenate([half, half]),
        nu=True,
    )


def one_class(nu: float, upper: Array) -> Dual:
    """No targets: the smallest region that excludes the fraction ν."""
    n = len(upper)
    return Dual(np.ones(n), np.zeros(n), np.ascontiguousarray(upper), fill(upper, nu * float(upper.sum())))


def fill(upper: Array, total: Any) -> Array:
    """0 ≤ α ≤ U with sum ``total``, along the last axis: the first entries are at their bounds."""
    most = upper.sum(axis=-1)
    if np.any(total > most * (1 + 1e-12)):
        raise ValueError(f"No multipliers up to {np.min(most):g} in total can have the sum {np.max(total):g}.")
    before = np.concatenate([np.zeros((*upper.shape[:-1], 1)), np.cumsum(upper, axis=-1)[..., :-1]], axis=-1)
    return np.clip(np.asarray(total)[..., None] - before, 0.0, upper)


class Gap:
    """Properties derived from both objectives and the scale of their difference."""

    primal: float
    dual: float
    reference: float

    @property
    def gap(self) -> float:
        return max(self.primal - self.dual, 0.0)

    @property
    def relative_gap(self) -> float:
        return self.gap / max(self.reference, np.finfo(float).tiny) if self.gap > 0 else 0.0


def machines_certificate(
    machines: Sequence[Gap], tol: float, *, strength: float = 1.0, residual: float | None = None, **how: Any
) -> Certificate:
    """One certificate for one or several machines solved side by side: their objectives are summed.

    ``residual`` replaces the gap if the kernel is not known to be positive semidefinite. The reported objective is
    ``strength`` times that of the machines.
    """
    primal, dual = strength * sum(part.primal for part in machines), strength * sum(part.dual for part in machines)
    gap = max(primal - dual, 0.0)
    size = strength * sum(part.reference for part in machines)
    return Certificate(
        primal=primal,
        dual=dual,
        gap=gap,
        relative_gap=gap / max(size, np.finfo(float).tiny) if gap > 0 else 0.0,
        residual=np.nan if residual is None else residual,
        kind="gap" if residual is None else "stationarity",
        tol=tol,
        weight_error=float(np.sqrt(2.0 * gap / strength)) if residual is None else np.inf,
        **how,
    )


@dataclass(frozen=True)
class Evaluation(Gap):
    """Scores without the bias, and both objectives; ``reference`` is the scale of the relative gap."""

    scores: Array
    primal: float
    dual: float
    reference: float


@dataclass(frozen=True)
class KnownScores:
    """Scores that were computed here, and their coefficients."""

    coefficients: Array
    scores: Array


def evaluate_machine(
    kernel: Kernel, X: Any, dual: Dual, alpha: Array, bias: float, rho: float, *, single: bool = False,
    known: KnownScores | None = None,
) -> Evaluation:  # fmt: skip
    """Both objectives of α, b and ρ, from scores computed here: the known ones plus those of the change, if it is short."""
    coefficients = point_coefficients(dual, alpha, evaluate.length(X))
    scores = 0.0 if known is None else known.scores
    change = coefficients if known is None else coefficients - known.coefficients
    if 2 * np.count_nonzero(change) > np.count_nonzero(coefficients):
        scores, change = 0.0, coefficients
    scores = scores + expansion_scores(kernel, X, change, single=single)
    error = single_error(kernel, X, coefficients, scores) if single else 0.0
    return evaluate_at_scores(dual, alpha, scores, bias, rho, error)


def single_error(kernel: Kernel, X: Any, coefficients: Array, scores: Array) -> float:
    """An estimate of the largest error of scores in single precision, from some points spread over all of them."""
    program, support = kernel.program(), np.flatnonzero(coefficients)
    if program is None or not len(support):
        return 0.0
    some, X = np.unique(np.linspace(0, len(scores) - 1, CHECKED_POINTS).astype(int)), centred(kernel, X)
    both = evaluate.both(program, X[some], X[support], np.float64)
    exact = core.kernel_scores(program, *both, np.ascontiguousarray(coefficients[support, None]))[:, 0]
    return ERROR_MARGIN * float(np.max(np.abs(exact - scores[some])))


def evaluate_at_scores(
    dual: Dual, alpha: Array, scores: Array, bias: float, rho: float, error: float = 0.0
) -> Evaluation:
    """Both objectives, given the scores. If these may be off by ``error``, so are the objectives, away from each other.

    The gap is relative to the objective without the terms B·b − N·ρ. For machines without targets this is, times 1/ρ²,
    the objective of the C form that finds the same function: C = 1/ρ.
    """
    n = len(scores)
    square = float(weighted_sum(point_coefficients(dual, alpha, n), scores))
    signed, total = float(weighted_sum(dual.sign, dual.start)), float(dual.start.sum())
    shifted = dual.target - bias  # far from zero, targets and bias have few digits in common with the scores
    slack = np.maximum(dual.sign * (shifted - np.tile(scores, len(alpha) // n)) + rho + error, 0.0)
    used = dual.upper > 0
    rounding = 0.5 * error * float(np.sum(np.abs(point_coefficients(dual, alpha, n)))) if error > 0 else 0.0
    cost = 0.5 * square + rounding + float(weighted_sum(dual.upper[used], slack[used]))
    linear = (total * rho if dual.nu else 0.0) - signed * bias
    lower = -np.inf
    if feasible(dual, alpha):
        earned = float(weighted_sum(dual.sign * alpha, shifted)) + signed * bias
        lower = earned - 0.5 * square - rounding - unbalanced(dual, alpha, bias, rho)
    return Evaluation(scores, cost - linear, lower, cost + max(-linear, 0.0))


def violation(dual: Dual, alpha: Array, scores: Array) -> float:
    """The violation of the dual's optimality conditions, in units of ``residual_scale``.

    With e = t − f(x):  max e over {v : s_v α_v may rise} − min e over {v : s_v α_v may fall}, in each group of signs
    whose sum is fixed; zero if it is negative.
    """
    e = dual.target - np.tile(scores, len(alpha) // len(scores))
    positive = dual.sign > 0
    rise, fall = np.where(positive, alpha < dual.upper, alpha > 0), np.where(positive, alpha > 0, alpha < dual.upper)
    groups = [positive, ~positive] if dual.nu else [np.ones(len(alpha), dtype=bool)]
    worst = max(
        np.max(e[g & rise], initial=-np.inf) - np.min(e[g & fall], initial=np.inf) if np.any(g) else -np.inf
        for g in groups
    )
    return max(float(worst), 0.0) / residual_scale(dual, scores)


def residual_scale(dual: Dual, scores: Array) -> float:
    """The size of targets; without targets, of the scores."""
    return dual.scale or float(np.max(np.abs(scores), initial=0.0)) or 1.0


def largest_square(kernel: Kernel, X: Any) -> float:
    """The largest k(x, x) of a few points."""
    diagonal = np.diagonal(X)[:FEW_POINTS] if isinstance(kernel, Precomputed) else kernel.diagonal(X[:FEW_POINTS])
    return float(np.max(np.abs(diagonal), initial=0.0))


def start_spread(kernel: Kernel, X: Any, dual: Dual) -> float:
    """The variation of scores at the start, from a few points; 0 if there are targets, which give a better scale."""
    if dual.scale > 0:
        return 0.0
    n = evaluate.length(X)
    some = np.unique(np.linspace(0, n - 1, FEW_POINTS).astype(int))
    part = X[np.ix_(some, some)] if isinstance(kernel, Precomputed) else X[some]
    coefficients = np.where(dual.sign[some] > 0, 1.0, -1.0) * float(dual.start.sum()) / len(some)
    return float(np.std(expansion_scores(kernel, part, coefficients)))


def feasible(dual: Dual, alpha: Array) -> bool:
    """Whether multipliers satisfy their bounds and, up to rounding, their sums."""
    if not (np.all(alpha >= 0) and np.all(alpha <= dual.upper)):
        return False
    most = BALANCE * max(float(alpha.sum()), np.finfo(float).tiny)
    balanced = abs(float(weighted_sum(dual.sign, alpha - dual.start))) <= most
    return balanced and (not dual.nu or abs(float(np.sum(alpha - dual.start))) <= most)


def unbalanced(dual: Dual, alpha: Array, bias: float, rho: float) -> float:
    """What the sums of multipliers miss their values by, at the bias and ρ in use; added exactly, since these may be large."""
    both = np.concatenate([alpha, -dual.start])
    of_rho = abs(rho * math.fsum(both)) if dual.nu else 0.0
    return abs(bias * math.fsum(np.tile(dual.sign, 2) * both)) + of_rho


def point_coefficients(dual: Dual, alpha: Array, n: int) -> Array:
    """Σ s α over the variables of each point."""
    return (dual.sign * alpha).reshape(-1, n).sum(axis=0)


def expansion_scores(kernel: Kernel, X: Any, coefficients: Array, *, single: bool = False) -> Array:
    """Σⱼ βⱼ k(xⱼ, xᵢ) for every i, in blocks: only some rows of the kernel matrix are in memory."""
    n, support = evaluate.length(X), np.flatnonzero(coefficients)
    if not len(support):
        return np.zeros(n)
    if isinstance(kernel, Precomputed):
        return np.asarray(X[:, support], dtype=np.float64) @ coefficients[support]
    program = kernel.program()
    if program is not None:
        X, precision = centred(kernel, X), np.float32 if single else np.float64
        if len(support) < MANY_POINTS:
            both = evaluate.both(program, X, X[support], precision)
            return core.kernel_scores(program, *both, np.ascontiguousarray(coefficients[support, None]))[:, 0]
        # Among the points of the expansion every kernel value is used for two scores.
        others, scores = np.flatnonzero(coefficients == 0), np.empty(n)
        rest, own = evaluate.both(program, X[others], X[support], precision)
        scores[support] = core.kernel_self_scores(program, own, coefficients[support])
        scores[others] = core.kernel_scores(program, rest, own, np.ascontiguousarray(coefficients[support, None]))[:, 0]
        return scores
    points, weights = X[support], coefficients[support]
    return np.concatenate([kernel.block(X[i : i + BLOCK_ROWS], points) @ weights for i in range(0, n, BLOCK_ROWS)])


def centred(kernel: Kernel, X: Any) -> Any:
    """Inputs shifted to mean zero if only distances matter: these do not change, and lose fewer digits.

    The differences are in double precision: rounding them would move the inputs.
    """
    if not kernel.stationary or scipy.sparse.issparse(X):
        return X
    return np.subtract(X, X.mean(axis=0, dtype=np.float64), dtype=np.float64)


def single_suffices(kernel: Kernel, X: Any, dual: Dual, tol: float) -> bool:
    """Whether kernel values in single precision (6e-8) allow the tolerance to be met.

    The kernel must be bounded by its value at distance zero, the rounding of distances small compared with its width,
    and the accumulated rounding errors of a score, about 6e-8·U·√n, small compared with the allowed violation (without
    targets scores are of the size of the multipliers).
    """
    if not kernel.stationary or X.shape[0] ** 2 * float(X.shape[1]) <= DOUBLE_WORK:
        return False
    n, largest = X.shape[0], float(np.max(dual.upper))
    if largest * np.sqrt(n) * 6e-8 > 0.1 * tol * (dual.scale if dual.scale > 0 else largest):
        return False
    if X.dtype == np.float32:
        return True
    if scipy.sparse.issparse(X):
        square = float(np.max(X.multiply(X).sum(axis=1)))
    else:
        square = float(np.max(np.einsum("ij,ij->i", X, X)))
    # k at half the largest distance from the centre measures the kernel's width there.
    probe = np.zeros((2, X.shape[1]))
    probe[1, 0] = np.sqrt(square)
    value = kernel(probe)
    return bool(value[0, 1] > np.exp(-16.0) * value[0, 0])
