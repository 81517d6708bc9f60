"""Many small duals over one kernel matrix: the pairs of classes of a support vector classifier.

Problem     those of hinge.problem.certificates.kernel_machine with one variable per point, each over some of the points
Method      native/solvers/decomposition_many.hpp, to a violation that is tightened for the problems whose duality gap
            is too wide. The gaps of all problems are computed together.
Returns     the solutions, and which of them meet the tolerance (hinge.solvers.decomposition solves the others)
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hinge._native import core
from hinge.problem.certificates.kernel_machine import NOTHING
from hinge.problem.certificates.machine_stack import Stack, evaluate_stack
from hinge.solvers.decomposition import FEWEST_STEPS, ROUNDING, DualSolution

Array = NDArray[np.float64]

# The number of times the violation is tightened.
ROUNDS = 6


@dataclass(frozen=True)
class Solutions:
    """The attributes of :class:`DualSolution`, with one row or entry per problem."""

    alpha: Array
    coefficients: Array
    scores: Array
    bias: Array
    rho: Array
    primal: Array
    dual: Array
    reference: Array
    iterations: NDArray[np.int64]
    solved: NDArray[np.bool_]
    seconds: float  # of all problems together

    def together(self) -> DualSolution:
        """The solved problems as one: their objectives are summed."""
        s, none = self.solved, np.zeros(0)
        return DualSolution(
            none, none, none, 0.0, 0.0, float(self.primal[s].sum()), float(self.dual[s].sum()),
            float(self.reference[s].sum()), int(self.iterations[s].sum()), self.seconds,
        )  # fmt: skip


def solve_duals(gram: Array, stack: Stack, tol: float) -> Solutions:
    """Solve each dual over its rows of ``gram`` to a relative duality gap of ``tol``."""
    began = time.perf_counter()
    dual, count = stack.dual, len(stack.rows)
    scale, mass = stack.scale, dual.start.sum(axis=1)
    square = np.max(np.abs(np.diagonal(gram))[stack.rows], axis=1, where=stack.used, initial=0.0)
    alpha, crossing = dual.start.copy(), tol * scale
    without = scale == 0
    if np.any(without):
        alike = np.where(dual.sign > 0, 1.0, -1.0) * (mass / stack.lengths)[:, None]
        spread = stack.spread(stack.scores(gram, alike))
        crossing = np.where(without, 0.01 * spread, crossing)
    bias, rho = np.zeros(count), np.zeros(count)
    spent = np.zeros(count, dtype=np.int64)
    solved = np.zeros(count, dtype=bool)
    scores, primal, lower = np.zeros(alpha.shape), np.zeros(count), np.zeros(count)
    reference, open_ = np.ones(count), np.arange(count)
    for _ in range(ROUNDS):
        some = stack if len(open_) == count else stack[open_]
        d = some.dual
        duals = core.ManyDuals(
            values=gram,
            rows=some.rows,
            length=some.lengths,
            sign=d.sign,
            target=d.target,
            upper=d.upper,
            groups=d.groups,
        )
        alpha[open_], bias[open_], rho[open_], crossed, steps = core.decompose_many(
            duals, alpha[open_], crossing[open_], FEWEST_STEPS
        )
        spent[open_] += steps
        scores[open_], primal[open_], lower[open_], reference[open_] = evaluate_stack(
            some, gram, alpha[open_], bias[open_], rho[open_]
        )
        total = alpha[open_].sum(axis=1)
        gap = np.maximum(primal[open_] - lower[open_], 0.0)
        solved[open_] = gap <= tol * np.maximum(reference[open_], np.finfo(float).tiny)
        # f = 0 is the optimum if there are no targets, or if rounding hides the difference: another method decides.
        extent = 0.5 * mass[open_] ** 2 * square[open_]
        left = (crossed > crossing[open_]) | (crossing[open_] <= ROUNDING * total * square[open_])
        vanishes = without[open_] & (-lower[open_] <= NOTHING * extent)
        solved[open_] &= ~vanishes
        smaller = 0.2 * crossing[open_]
        bound = 0.5 * tol * reference[open_] / np.maximum(total, np.finfo(float).tiny)
        crossing[open_] = np.where(without[open_], np.minimum(smaller, bound), smaller)
        open_ = open_[~solved[open_] & ~left & ~vanishes]
        if not len(open_):
            break
    return Solutions(
        alpha, dual.sign * alpha, scores, bias, rho, primal, lower, reference, spent, solved,
        time.perf_counter() - began,
    )  # fmt: skip
