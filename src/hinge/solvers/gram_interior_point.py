"""The dual of a support vector machine by an interior point method, for problems on which decomposition is slow.

Problem     min_α  ½β'Kβ − Σ q_v α_v,   β_p = Σ_{v of point p} s_v α_v,   0 ≤ α ≤ U,   Aα = c
Optimality  s_v(Kβ)_p − q_v + (A'λ)_v = z_v − y_v,   α_v z_v = 0,   (U_v − α_v) y_v = 0,   z, y ≥ 0
Method      Newton on these equations with both products equal to μ, μ → 0 (Mehrotra's predictor-corrector; Nocedal &
            Wright, algorithm 16.4). With D = z/α + y/(U − α) and E_p = Σ_{v of p} 1/D_v they reduce to K + diag(1/E),
            one Cholesky factor of order n per iteration.
Cost        some 20 iterations of n³/3 operations whatever the conditioning. Decomposition needs a number of steps that
            grows with the condition number, and does not finish for a machine that must make almost no errors on
            overlapping classes (C of 10⁵ and more, or a ν to that effect).
Returns     feasible multipliers; those next to a bound are set to it.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import threadpoolctl
from numpy.typing import NDArray

from hinge.problem.certificates.kernel_machine import Dual

Array = NDArray[np.float64]

ITERATIONS = 100
# Steps go this share of the distance to the nearest bound.
BACK_OFF = 0.995
# The method stops at steps shorter than this: the precision is exhausted.
STALLED = 1e-3
# A distance to a bound is small below this share of the bound's multiplier.
CLOSE = 1e-3


def interior_multipliers(K: Array, dual: Dual, tol: float) -> Array:
    """Multipliers whose gap is about ``tol`` of the objective; the result does not depend on the number of threads."""
    with threadpoolctl.threadpool_limits(1, "blas"):
        return _follow_path(K, dual, tol)


def _follow_path(K: Array, dual: Dual, tol: float) -> Array:
    used = np.flatnonzero(dual.upper > 0)
    system = _System(K, dual, used)
    alpha, lower, upper, level = system.start()
    for _ in range(ITERATIONS):
        gradient, scores = system.gradient(alpha, level)
        mu = float(alpha @ lower + (system.upper - alpha) @ upper) / (2 * len(alpha))
        residual = gradient - lower + upper
        away = system.constraints @ alpha - system.sums
        size = abs(0.5 * float(system.beta(alpha) @ scores)) + abs(float(system.linear @ alpha)) + system.tiny
        if 2 * mu * len(alpha) <= tol * size and np.max(np.abs(away)) <= 1e-10 * float(alpha.sum()):
            break
        if not system.factor(lower / alpha + upper / (system.upper - alpha)):
            break  # K is not positive definite in this precision
        room = system.upper - alpha
        # predictor: the full Newton step to the solution
        d_alpha, _ = system.solve(-residual - lower + upper, -away)
        d_lower, d_upper = -lower - lower / alpha * d_alpha, -upper + upper / room * d_alpha
        step = _length(alpha, d_alpha, room, lower, d_lower, upper, d_upper)
        ahead = float(
            (alpha + step * d_alpha) @ (lower + step * d_lower) + (room - step * d_alpha) @ (upper + step * d_upper)
        ) / (2 * len(alpha))
        goal = mu * (ahead / mu) ** 3
        # corrector: the step to products equal to `goal`, with the second-order terms of the predictor
        fix_lower = goal / alpha - lower - d_alpha * d_lower / alpha
        fix_upper = goal / room - upper + d_alpha * d_upper / room
        d_alpha, d_level = system.solve(-residual + fix_lower - fix_upper, -away)
        d_lower, d_upper = fix_lower - lower / alpha * d_alpha, fix_upper + upper / room * d_alpha
        step = BACK_OFF * _length(alpha, d_alpha, room, lower, d_lower, upper, d_upper)
        if step < STALLED:
            break
        alpha, level = alpha + step * d_alpha, level + step * d_level
        lower, upper = lower + step * d_lower, upper + step * d_upper
    found = np.zeros(len(dual.upper))
    least = CLOSE * float(np.mean(np.abs(system.gradient(alpha, np.zeros(len(level)))[0])))
    found[used] = _on_bounds(alpha, system.upper, lower, upper, least)
    return _repaired(found, dual)


class _System:
    """The problem restricted to variables that can move, and its Newton equations."""

    def __init__(self, K: Array, dual: Dual, used: NDArray[np.int64]) -> None:
        self.K, self.n = K, len(K)
        self.sign, self.upper = dual.sign[used], dual.upper[used]
        self.point, self.linear = used % self.n, (dual.sign * dual.target)[used]
        rows = [dual.sign, np.ones(len(dual.sign))][: dual.groups]
        self.constraints = np.array([row[used] for row in rows])
        self.sums = np.array([float(row @ dual.start) for row in rows])
        self.tiny = np.finfo(float).tiny
        self._begin = dual.start[used]

    def start(self) -> tuple[Array, Array, Array, Array]:
        """A start well inside the bounds; it need not satisfy the sums."""
        alpha = np.clip(self._begin, 0.1 * self.upper, 0.9 * self.upper)
        if not np.any(self._begin):
            alpha = 0.1 * self.upper
        gradient = self.gradient(alpha, np.zeros(len(self.sums)))[0]
        level = np.linalg.lstsq(self.constraints.T, -gradient, rcond=None)[0]
        gradient = gradient + self.constraints.T @ level
        base = float(np.mean(np.abs(gradient))) + self.tiny
        return alpha, np.maximum(gradient, 0.0) + base, np.maximum(-gradient, 0.0) + base, level

    def beta(self, alpha: Array) -> Array:
        return np.asarray(np.bincount(self.point, self.sign * alpha, self.n), dtype=np.float64)

    def gradient(self, alpha: Array, level: Array) -> tuple[Array, Array]:
        """The derivative of the Lagrangian without the bounds, and scores."""
        scores = self.K @ self.beta(alpha)
        return self.sign * scores[self.point] - self.linear + self.constraints.T @ level, scores

    def factor(self, D: Array) -> bool:
        self.D = D
        self.E = np.bincount(self.point, 1.0 / D, self.n)
        order = np.lexsort((D, self.point))
        self.main = order[np.flatnonzero(np.diff(self.point[order], prepend=-1))]  # of least D at each point
        present = self.E > 0
        self.ridge = np.divide(1.0, self.E, out=np.zeros(self.n), where=present)
        M = self.K.copy(order="F")
        M[np.diag_indices(self.n)] += self.ridge
        if not np.all(present):  # points without variables: β stays zero
            M[~present], M[:, ~present] = 0.0, 0.0
            M[~present, ~present] = 1.0
        try:
            self._factor = scipy.linalg.cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return False
        return True

    def solve(self, right: Array, sums: Array) -> tuple[Array, Array]:
        """Δα and Δλ with  QΔα + DΔα + A'Δλ = right,  AΔα = sums."""
        columns = np.column_stack([right, *self.constraints])
        weighted = self.sign[:, None] * columns / self.D[:, None]
        pooled = np.stack([np.bincount(self.point, w, self.n) for w in weighted.T], axis=1)
        beta = scipy.linalg.cho_solve(self._factor, self.ridge[:, None] * pooled, check_finite=False)
        scores = self.K @ beta
        each = (columns - self.sign[:, None] * scores[self.point]) / self.D[:, None]
        # A variable inside its bounds has a small D: its step is computed as the remainder of β, not as a quotient.
        each[self.main] = 0.0
        others = np.stack([self.beta(column) for column in each.T], axis=1)
        each[self.main] = self.sign[self.main, None] * (beta - others)[self.point[self.main]]
        level = np.linalg.solve(self.constraints @ each[:, 1:], self.constraints @ each[:, 0] - sums)
        return each[:, 0] - each[:, 1:] @ level, level


def _length(alpha: Array, d_alpha: Array, room: Array, z: Array, dz: Array, y: Array, dy: Array) -> float:
    """The longest step up to 1 that keeps everything positive."""
    longest = 1.0
    for value, change in ((alpha, d_alpha), (room, -d_alpha), (z, dz), (y, dy)):
        falls = change < 0
        if np.any(falls):
            longest = min(longest, float(np.min(value[falls] / -change[falls])))
    return longest


def _on_bounds(
    alpha: Array, upper: Array, lower_multiplier: Array, upper_multiplier: Array, least: float = 0.0
) -> Array:
    """Puts α on a bound if its distance is small beside the bound's multiplier, both in units of their means.

    ``least`` is the smallest unit of multipliers: if no bound is active, all of them are rounding errors.
    """
    room = upper - alpha
    mean = max(float(np.mean(lower_multiplier + upper_multiplier)), least, np.finfo(float).tiny)
    low = alpha / float(np.mean(alpha)) < CLOSE * lower_multiplier / mean
    high = room / float(np.mean(room)) < CLOSE * upper_multiplier / mean
    return np.where(low & (alpha < 0.5 * upper), 0.0, np.where(high & (alpha > 0.5 * upper), upper, alpha))


def _repaired(alpha: Array, dual: Dual) -> Array:
    """Corrects the sums by moving multipliers within their bounds, those with most room first."""
    alpha = np.clip(alpha, 0.0, dual.upper)
    if dual.groups == 2:
        for sign in (1.0, -1.0):
            side = np.flatnonzero(dual.sign == sign)
            _shift(alpha, dual.upper, side, float(dual.start[side].sum() - alpha[side].sum()))
        return alpha
    missing = float(dual.sign @ (dual.start - alpha))
    for sign in (1.0, -1.0):  # s α rises with α where s = 1 and falls with it where s = −1
        side = np.flatnonzero(dual.sign == sign)
        missing -= sign * _shift(alpha, dual.upper, side, sign * missing)
    return alpha


def _shift(alpha: Array, upper: Array, side: NDArray[np.int64], total: float) -> float:
    """Adds ``total`` to the sum of these multipliers as far as bounds allow; returns the amount added."""
    room = upper[side] - alpha[side] if total > 0 else alpha[side]
    inside = (alpha[side] > 0) & (alpha[side] < upper[side])
    order = np.lexsort((-room, ~inside))  # variables inside their bounds first
    before = np.concatenate([[0.0], np.cumsum(room[order])[:-1]])
    moves = np.clip(abs(total) - before, 0.0, room[order])
    alpha[side[order]] = np.clip(alpha[side[order]] + np.sign(total) * moves, 0.0, upper[side[order]])
    return float(np.sign(total) * moves.sum())
