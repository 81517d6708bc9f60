"""Linear models over blocks.

``fit`` of the estimator runs on a sample of rows that stands in for all of them: its weights are such that the weight of
every class and of all rows together is right, so parameters are translated, classes are coded and attributes are set by the
code for arrays. Where that code calls its solver, the problem is minimised over all blocks, from the sample's optimum.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from hinge.blocks.newton import minimise_over_blocks
from hinge.blocks.passes import Passes
from hinge.blocks.problem import BlockProblem, View
from hinge.blocks.survey import Survey, survey
from hinge.models.callbacks import iterations
from hinge.problem.objective import Objective
from hinge.solvers.base import Status
from hinge.solvers.run import Result, minimise


class StandIn:
    """A sample of rows with weights that make it stand for all of them."""

    def __init__(self, found: Survey) -> None:
        self.survey = found
        X, y, weight, self.offset = found.sample.data
        self.X = X.astype(np.float64) if getattr(X, "dtype", None) == np.float32 and found.float32 < found.blocks else X
        self.y = y
        if found.labels is None:
            weight = weight * (found.weight_sum / weight.sum())
        else:
            codes = np.searchsorted(found.labels.values, y)
            have = np.bincount(codes, weight, minlength=len(found.labels.values))
            with np.errstate(divide="ignore", invalid="ignore"):
                weight = weight * np.where(have > 0, found.labels.weights / have, 0.0)[codes]
        self.weight = weight

    def view(self, objective: Objective) -> View:
        """How blocks become examples of the problem that the estimator made of the stand-in."""
        labels = values = factors = None
        if self.survey.labels is not None:
            labels = self.survey.labels.values
            rows = np.searchsorted(np.searchsorted(labels, self.y), np.arange(len(labels)), sorter=self._order())
            rows = self._order()[rows]
            values = np.ascontiguousarray(objective.y[rows])
            with np.errstate(divide="ignore", invalid="ignore"):
                factors = objective.c[rows] * objective.weight_sum / self.weight[rows]
            factors = None if np.allclose(factors, 1.0, rtol=1e-9) else np.where(np.isfinite(factors), factors, 1.0)
        return View(
            objective.weight_sum, objective.fit_intercept, objective.outputs, labels, values, factors,
            objective.offset is not None,
        )  # fmt: skip

    def _order(self) -> np.ndarray:
        assert self.survey.labels is not None
        return np.argsort(np.searchsorted(self.survey.labels.values, self.y), kind="stable")


class OverBlocks:
    """In place of a solver: minimises over all blocks the problem that an estimator made of the stand-in."""

    def __init__(self, estimator: Any, passes: Passes, stand_in: StandIn) -> None:
        self.estimator, self.passes, self.stand_in = estimator, passes, stand_in

    def judged(self, objective: Objective, tol: float) -> Result:
        """The minimiser and its certificate."""
        problem = BlockProblem(
            self.passes, self.stand_in.view(objective), objective.loss, objective.penalty, objective.d
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            near = minimise(objective, tol=max(tol, 1e-9))[1]
        with iterations(self.estimator, None, None) as report:
            result = minimise_over_blocks(
                problem, (near.w, near.b), tol=tol, max_iter=getattr(self.estimator, "max_iter", None), callback=report
            )
        if not result.certificate.converged and result.solution.status is not Status.STOPPED:
            warnings.warn(result.certificate.explain(), ConvergenceWarning, stacklevel=8)
        return result


def fit_linear(estimator: Any, passes: Passes) -> None:
    """Fit an estimator that calls ``_solve`` for every problem it minimises."""
    source = passes.source
    with_offset = source.roles.offset is not None or source.roles.features is None
    found = passes.total(survey, source.n_features, is_classifier(estimator), False, with_offset)
    stand_in = StandIn(found)
    others = {} if stand_in.offset is None else {"offset": stand_in.offset}
    estimator._given = OverBlocks(estimator, passes, stand_in)
    try:
        estimator.fit(stand_in.X, stand_in.y, stand_in.weight, **others)
    finally:
        del estimator._given


# Attributes with an entry for every example, which the stand-in cannot give.
PER_EXAMPLE = ("support_", "dual_coef_", "alphas_", "margins_", "slacks_", "outliers_")
