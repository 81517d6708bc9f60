"""Many small duals over one matrix of kernel values: the pairs of classes of a support vector classifier.

Problem     those of hinge.problem.certificates.kernel_machine with one variable per point, each over some of the points
Method      native/solvers/decomposition.hpp, one problem after the other in compiled code, to a violation that is
            tightened for those whose duality gap is too wide. The judge weighs all of them side by side.
Returned    the solutions; None for a problem that needs more than that (hinge.solvers.decomposition then solves it)
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from hinge._native import core
from hinge.problem.certificates.kernel_machine import NOTHING, Dual, Stack, weigh_stack
from hinge.solvers.decomposition import FEWEST_STEPS, ROUNDING, DualSolution

Array = NDArray[np.float64]

# How often the violation is tightened.
ROUNDS = 6


def solve_duals(gram: Array, rows: list[NDArray[np.intp]], duals: list[Dual], tol: float) -> list[DualSolution | None]:
    """Solve each dual over its rows of ``gram`` to a relative duality gap of ``tol``."""
    began = time.perf_counter()
    stack, count = Stack.of(rows, duals), len(duals)
    lengths = np.array([len(part) for part in rows])
    scale = np.array([dual.scale for dual in duals])
    square = np.array([float(np.max(np.abs(np.diagonal(gram)[part]))) for part in rows])
    alpha, crossing = stack.start.copy(), tol * scale
    without = scale == 0
    if np.any(without):
        alike = np.where(stack.sign > 0, 1.0, -1.0) * (stack.start.sum(axis=1) / lengths)[:, None]
        spread = stack.scores(gram, alike * (np.arange(stack.rows.shape[1]) < lengths[:, None]))
        crossing = np.where(without, 0.01 * np.array([np.std(s[:m]) for s, m in zip(spread, lengths)]), crossing)
    bias, rho = np.zeros(count), np.zeros(count)
    spent = np.zeros(count, dtype=np.int64)
    solved = np.zeros(count, dtype=bool)
    scores, primal, lower = np.zeros(alpha.shape), np.zeros(count), np.zeros(count)
    reference, open_ = np.ones(count), np.arange(count)
    for _ in range(ROUNDS):
        some = _Some(stack, lengths, open_)
        found, bias[open_], rho[open_], crossed, batches, _ = core.decompose_many(
            gram, some.rows, some.starts, some.flat(stack.sign), some.flat(stack.target), some.flat(stack.upper),
            some.flat(alpha), crossing[open_], FEWEST_STEPS, 2 if stack.nu else 1,
        )  # fmt: skip
        alpha[open_] = some.padded(found)
        spent[open_] += batches
        scores[open_], primal[open_], lower[open_], reference[open_] = weigh_stack(
            some.stack, gram, alpha[open_], bias[open_], rho[open_]
        )
        total = alpha[open_].sum(axis=1)
        gap = np.maximum(primal[open_] - lower[open_], 0.0)
        solved[open_] = gap <= tol * np.maximum(reference[open_], np.finfo(float).tiny)
        # f = 0 is the optimum where there are no targets, or rounding hides the rest: another method decides.
        extent = 0.5 * stack.start[open_].sum(axis=1) ** 2 * square[open_]
        left = (crossed > crossing[open_]) | (crossing[open_] <= ROUNDING * total * square[open_])
        vanishes = without[open_] & (-lower[open_] <= NOTHING * extent)
        solved[open_] &= ~vanishes
        smaller = 0.2 * crossing[open_]
        bound = 0.5 * tol * reference[open_] / np.maximum(total, np.finfo(float).tiny)
        crossing[open_] = np.where(without[open_], np.minimum(smaller, bound), smaller)
        open_ = open_[~solved[open_] & ~left & ~vanishes]
        if not len(open_):
            break
    each = (time.perf_counter() - began) / count
    coefficients = stack.sign * alpha
    return [
        DualSolution(
            alpha[p, :m], coefficients[p, :m], scores[p, :m], float(bias[p]), float(rho[p]), float(primal[p]),
            float(lower[p]), float(reference[p]), int(spent[p]), each,
        )
        if solved[p]
        else None
        for p, m in enumerate(lengths)
    ]  # fmt: skip


class _Some:
    """Some problems of a stack, one after the other as compiled code takes them."""

    def __init__(self, stack: Stack, lengths: NDArray[np.int64], which: NDArray[np.intp]) -> None:
        self.which = which
        self.used = np.arange(stack.rows.shape[1]) < lengths[which][:, None]
        self.starts = np.concatenate([[0], np.cumsum(lengths[which])]).astype(np.int64)
        self.stack = Stack(
            stack.rows[which], stack.sign[which], stack.target[which], stack.upper[which], stack.start[which], stack.nu
        )
        self.rows = np.ascontiguousarray(self.stack.rows[self.used], dtype=np.int64)

    def flat(self, values: Array) -> Array:
        return np.ascontiguousarray(values[self.which][self.used])

    def padded(self, values: Array) -> Array:
        out = np.zeros(self.used.shape)
        out[self.used] = values
        return out
