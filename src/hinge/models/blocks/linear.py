"""Linear models over blocks.

``fit`` of the estimator runs on a stand-in: a sample of rows, reweighted so that every class and all rows together have their true
weight. The code for arrays thus translates parameters, codes classes and sets attributes. When it calls its solver, the problem is
minimised over all blocks instead, from the optimum of the sample.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from hinge.blocks.newton import minimise_over_blocks
from hinge.blocks.parts import join
from hinge.blocks.passes import Passes
from hinge.blocks.problem import BlockProblem, View
from hinge.blocks.survey import SamplePlan, Survey, survey
from hinge.models.callbacks import iterations
from hinge.models.linear.space import linear_fit
from hinge.problem.losses import as_loss
from hinge.problem.objective import Objective, make_objective
from hinge.problem.penalties import as_penalty
from hinge.problem.spaces import Linear
from hinge.solvers.base import Status
from hinge.solvers.run import Result, minimise


class StandIn:
    """A sample of rows, reweighted to represent all rows."""

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

    def add(self, X: Any, y: np.ndarray) -> None:
        """Add rows of weight zero, which only contribute their levels of categories."""
        self.X, self.y = join([self.X, X]), np.concatenate([self.y, y])
        self.weight = np.concatenate([self.weight, np.zeros(len(y))])
        if self.offset is not None:
            self.offset = np.concatenate([self.offset, np.zeros(len(y))])

    def view(self, objective: Objective, encode: Any = None) -> View:
        """The mapping from blocks to examples of the problem that the estimator made of the stand-in."""
        labels = values = factors = None
        if self.survey.labels is not None:
            labels = self.survey.labels.values
            rows = self._heaviest_rows()
            values = np.ascontiguousarray(objective.y[rows])
            with np.errstate(divide="ignore", invalid="ignore"):
                factors = objective.c[rows] * objective.weight_sum / self.weight[rows]
            factors = None if np.allclose(factors, 1.0, rtol=1e-9) else np.where(np.isfinite(factors), factors, 1.0)
        return View(
            objective.weight_sum, objective.fit_intercept, objective.outputs, labels, values, factors,
            objective.offset is not None, encode,
        )  # fmt: skip

    def _heaviest_rows(self) -> np.ndarray:
        """A row of every label, the one with the largest weight."""
        assert self.survey.labels is not None
        codes = np.searchsorted(self.survey.labels.values, self.y)
        order = np.lexsort((self.weight, codes))
        return order[np.searchsorted(codes, np.arange(len(self.survey.labels.values)), side="right", sorter=order) - 1]


class OverBlocks:
    """In place of a solver: minimises over all blocks the problem that an estimator made of the stand-in."""

    def __init__(self, estimator: Any, passes: Passes, stand_in: StandIn) -> None:
        self.estimator, self.passes, self.stand_in = estimator, passes, stand_in

    def encoder(self, objective: Objective) -> Any:
        """The encoder of features as numbers; None if they are numbers."""
        return None

    def problem(self, objective: Objective) -> BlockProblem:
        """The problem over all blocks."""
        view = self.stand_in.view(objective, self.encoder(objective))
        return BlockProblem(self.passes, view, objective.loss, objective.penalty, objective.d)

    def start(self, objective: Objective, tol: float) -> tuple[np.ndarray, np.ndarray]:
        """Initial weights: the minimiser over the stand-in."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            near = minimise(objective, tol=max(tol, 1e-9))[1]
        return near.w, near.b

    def certified(self, objective: Objective, tol: float) -> Result:
        """The minimiser and its certificate."""
        problem = self.problem(objective)
        with iterations(self.estimator, None, None) as report:
            result = minimise_over_blocks(
                problem, self.start(objective, tol), tol=tol, max_iter=getattr(self.estimator, "max_iter", None),
                callback=report,
            )  # fmt: skip
        if not result.certificate.converged and result.solution.status is not Status.STOPPED:
            warnings.warn(result.certificate.explain(), ConvergenceWarning, stacklevel=8)
        return result


def find_stand_in(estimator: Any, passes: Passes) -> StandIn:
    """The sample; takes a pass."""
    source = passes.source
    with_offset = source.roles.offset is not None or source.roles.features is None
    classify = is_classifier(estimator)
    return StandIn(passes.total(survey, source.n_features, classify, False, with_offset, SamplePlan.of(source)))


def fit_linear(estimator: Any, passes: Passes) -> None:
    """Fit an estimator that calls ``_solve`` for every problem it minimises."""
    fit_given(estimator, OverBlocks(estimator, passes, find_stand_in(estimator, passes)))


def fit_given(estimator: Any, over_blocks: OverBlocks) -> None:
    """Call ``fit`` with the stand-in, and minimise its problems over all blocks."""
    stand_in = over_blocks.stand_in
    others = {} if stand_in.offset is None else {"offset": stand_in.offset}
    estimator._given = over_blocks
    try:
        estimator.fit(stand_in.X, stand_in.y, stand_in.weight, **others)
    finally:
        del estimator._given


def fit_support_machine(estimator: Any, passes: Passes) -> None:
    """Fit a linear model that also has attributes with one entry per example, which are left out."""
    if getattr(estimator, "multi_class", "ovr") != "ovr":
        raise ValueError('multi_class="crammer_singer" needs all rows in memory; over blocks use multi_class="ovr".')
    fit_linear(estimator, passes)
    for name in PER_EXAMPLE:
        vars(estimator).pop(name, None)


# Attributes with one entry per example, which a fit to the stand-in cannot compute.
PER_EXAMPLE = ("margins_", "slacks_", "dual_coef_", "support_", "n_support_", "outliers_")


def fit_learner(estimator: Any, passes: Passes) -> None:
    """``Learner`` over ``Linear``, with any loss and penalty that have sums."""
    space, loss = Linear() if estimator.space is None else estimator.space, estimator.score_loss()
    if not isinstance(space, Linear):
        raise TypeError(f"Over blocks a Learner takes the space hg.Linear(), not {space!r}.")
    classify = loss.target.is_classes
    source = passes.source
    stand_in = StandIn(passes.total(survey, source.n_features, classify, False, False, SamplePlan.of(source)))
    targets, classes = estimator._code(loss, stand_in.y)
    objective = make_objective(
        stand_in.X, targets, as_loss(loss, targets), as_penalty(estimator.penalty), sample_weight=stand_in.weight,
        fit_intercept=space.fit_intercept, classes=classes,
    )  # fmt: skip
    result = OverBlocks(estimator, passes, stand_in).certified(objective, estimator.tol)
    fit = linear_fit(result, stand_in.X, history=estimator.history)
    estimator.function_, estimator.certificate_ = fit.function, fit.certificate
    vars(estimator).update(fit.attributes)
