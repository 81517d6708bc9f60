"""Least squares over blocks, with any penalty: one pass for the moments of (X, y), which determine the solution.

The estimator is fitted to a few rows with the same moments. If the rounding error of the moments may exceed the tolerance (nearly
perfect fits), the weights are refined and certified in two more passes over the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.blocks.moments import Moments, equivalent_rows, joint_moments
from hinge.blocks.newton import minimise_over_blocks
from hinge.blocks.passes import Passes
from hinge.blocks.problem import BlockProblem, View
from hinge.problem.certificates.least_squares import LEAST_CHAIN
from hinge.problem.certificates.linear import SHARE_OF_TOLERANCE
from hinge.problem.objective import Objective
from hinge.solvers.run import Result


class FromMoments:
    """In place of a solver: solves the problem of the equivalent rows, and reads the data again if rounding requires it."""

    def __init__(self, estimator: Any, passes: Passes, found: Moments) -> None:
        self.estimator, self.passes, self.found = estimator, passes, found

    def certified(self, objective: Objective, tol: float) -> Result:
        """The minimiser and its certificate."""
        self.estimator._given = None
        try:
            result = self.estimator._solve(objective, tol=tol)
        finally:
            self.estimator._given = self
        if objective.outputs > 1 or self.found.mean.shape[1] > objective.d + 1:
            return result
        size = float(np.append(np.abs(result.w), 1.0) @ self._deviations())
        rounding = LEAST_CHAIN * np.finfo(float).eps * size**2
        if rounding <= SHARE_OF_TOLERANCE * tol * abs(result.certificate.primal):
            return result
        view = View(objective.weight_sum, objective.fit_intercept)
        problem = BlockProblem(self.passes, view, objective.loss, objective.penalty, objective.d)
        return minimise_over_blocks(problem, (result.w, result.b), tol=tol)

    def _deviations(self) -> np.ndarray:
        return np.sqrt(np.maximum(np.diag(self.found.scatter[0]) / self.found.count[0], 0.0))


def fit_least_squares(estimator: Any, passes: Passes) -> None:
    """Fit an estimator with the squared loss."""
    source = passes.source
    found = passes.total(joint_moments, source.n_features)
    rows, _, weights = equivalent_rows(found)
    d = source.n_features
    y = rows[:, d] if rows.shape[1] == d + 1 else rows[:, d:]
    estimator._given = FromMoments(estimator, passes, found)
    try:
        estimator.fit(np.ascontiguousarray(rows[:, :d]), y, weights)
    finally:
        del estimator._given
