"""Generalised linear models over blocks, with categories whose levels may first appear in any block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from hinge.blocks.block import Block
from hinge.blocks.parts import join
from hinge.blocks.passes import Passes
from hinge.blocks.problem import BlockProblem, View
from hinge.blocks.survey import SamplePlan, Survey, survey, taken
from hinge.models.blocks.linear import OverBlocks, StandIn, fit_given
from hinge.models.glm.inference import FitRows, FitSums, best_null_bias, fit_sums, log_likelihood
from hinge.models.glm.inputs import Coding, category_column, predict_table
from hinge.problem.losses import Loss
from hinge.problem.objective import Objective
from hinge.tables.frames import as_frame, chosen_columns


@dataclass(frozen=True, eq=False)
class LevelRows:
    """One row, with its target, for every level of every category."""

    X: Any
    y: np.ndarray
    chosen: tuple[int, ...]

    def merge(self, other: LevelRows) -> LevelRows:
        """The rows of both, without rows whose levels are in earlier ones."""
        return level_rows(join([self.X, other.X]), np.concatenate([self.y, other.y]), self.chosen)


def level_rows(X: Any, y: np.ndarray, chosen: tuple[int, ...]) -> LevelRows:
    """The first row of every level of the chosen columns."""
    frame, kept = as_frame(X), np.zeros(len(y), dtype=bool)
    for j in chosen:
        codes, _ = category_column(X, frame, j)
        kept[np.unique(codes, return_index=True)[1]] = True
    rows = np.flatnonzero(kept)
    X, y = taken((X, y), rows)
    return LevelRows(X, y, chosen)


def table_of(block: Block) -> Any:
    """The features of a block, as a table if some are not numbers."""
    return block.X if block.frame is None else block.frame.to_native()


def survey_levels(
    block: Block, n_features: int, categorical: Any, with_offset: bool, plan: SamplePlan
) -> tuple[Survey, LevelRows]:
    """The survey of a block and a row of every level in it."""
    X = table_of(block)
    found = survey(block, n_features, False, True, with_offset, plan)
    chosen = tuple(chosen_columns(X, block.frame, _positions(categorical, block)))
    assert block.y is not None
    return found, level_rows(X, np.asarray(block.y, dtype=np.float64), chosen)


def _positions(categorical: Any, block: Block) -> Any:
    """Names of categorical columns as positions, if the block is an array with names."""
    values = np.asarray(categorical)
    if block.frame is None and block.names is not None and values.dtype.kind in "OU" and values.ndim == 1:
        return [block.names.index(name) for name in values.tolist()]
    return categorical


@dataclass(frozen=True, eq=False)
class Encode:
    """Encode a block as numbers and codes of categories."""

    model: Any
    coding: Coding

    def __call__(self, block: Block) -> Any:
        return predict_table(self.model, table_of(block), self.coding)


class GLMOverBlocks(OverBlocks):
    """Minimises over all blocks, with categories coded as in the fit to the stand-in."""

    def encoder(self, objective: Objective) -> Any:
        """None without categories."""
        coding = self.estimator._coding
        if not coding.columns:
            return None
        model = clone(self.estimator)
        model.n_features_in_ = self.estimator.n_features_in_
        if hasattr(self.estimator, "feature_names_in_"):
            model.feature_names_in_ = self.estimator.feature_names_in_
        return Encode(model, coding)

    def fit_rows(self, objective: Objective, distribution: Any, link: Any, w: np.ndarray, b: np.ndarray) -> FitRows:
        """All rows, for inference."""
        return BlockRows(self.problem(objective), objective, distribution, link, w, b)


def block_fit_sums(block: Block, view: View, loss: Loss, *at: Any) -> FitSums:
    """The statistic of inference."""
    return fit_sums(view.objective(block, loss), *at)


def block_log_likelihood(block: Block, view: View, loss: Loss, *at: Any) -> float:
    """The log-likelihood of a block."""
    return log_likelihood(view.objective(block, loss), *at)


def mean_target(block: Block, view: View) -> float:
    """Σ c y."""
    y, c = view.targets(block)
    return float(c @ y)


def null_point(block: Block, view: View, loss: Loss, b: float) -> np.ndarray:
    """The risk of one constant beside the offset, and its derivatives."""
    o = view.objective(block, loss)
    z = np.full(o.n, b) if o.offset is None else o.offset + b
    return np.array([o.risk_of_scores(z), o.c @ loss.gradient(o.y, z), o.c @ loss.hessian(o.y, z)])


NULL_STEPS = 30


class BlockRows(FitRows):
    """The rows of all blocks, for inference; every quantity takes a pass."""

    def __init__(self, problem: BlockProblem, objective: Objective, *at: Any) -> None:
        super().__init__(objective, *at)
        self.problem = problem

    def _total(self, statistic: Any, *parameters: Any) -> Any:
        return self.problem.passes.total(statistic, self.problem.view, self.problem.loss, *parameters)

    def sums(self) -> FitSums:
        """One pass."""
        return self._total(block_fit_sums, *self.at)

    def log_likelihood(self, sums: FitSums) -> float:
        """One pass; nan for Tweedie models with 1 < p < 2, whose φ would take dozens of passes."""
        distribution, phi = self.at[0], 1.0
        if not distribution.unit_dispersion:
            if getattr(distribution, "compound", False):
                return float("nan")
            phi = distribution.dispersion_of(sums.half_deviance / self.problem.view.weight_sum)
        return self._total(block_log_likelihood, *self.at, phi)

    def null_risk(self) -> float:
        """The risk of the best constant: in one pass from the mean target if there is no offset, else by Newton's method."""
        view, loss = self.problem.view, self.problem.loss
        if not view.fit_intercept:
            return float(self._total(null_point, 0.0)[0])
        if not view.with_offset:
            mean = self.problem.passes.total(mean_target, view, only_targets=True)
            best = float(np.clip(loss.baseline(np.array([mean]), np.ones(1)), -745.0, 1e300))
            return float(self._total(null_point, best)[0])
        b = best_null_bias(self.objective)  # start at the best bias of the stand-in
        risk, derivative, curvature = self._total(null_point, b)
        for _ in range(NULL_STEPS):
            if not derivative**2 > 1e-12 * curvature * abs(risk):
                break
            b -= derivative / curvature
            risk, derivative, curvature = self._total(null_point, b)
        return float(risk)


def fit_glm(estimator: Any, passes: Passes) -> None:
    """Fit by maximum (penalised) likelihood."""
    source, categorical = passes.source, estimator.categorical_features
    with_offset = source.roles.offset is not None or source.roles.features is None
    levels: LevelRows | None = None
    plan = SamplePlan.of(source)
    if categorical is None:
        found = passes.total(survey, source.n_features, False, False, with_offset, plan)
    else:
        found, levels = passes.total(survey_levels, source.n_features, categorical, with_offset, plan)
    stand_in = StandIn(found)
    if levels is not None and levels.chosen:
        stand_in.add(levels.X, levels.y)
        if source.names is not None and as_frame(stand_in.X) is None:
            names = list(source.names)
            categorical = [names.index(c) if isinstance(c, str) else c for c in np.ravel(categorical).tolist()]
    given = estimator.categorical_features
    estimator.categorical_features = categorical
    try:
        fit_given(estimator, GLMOverBlocks(estimator, passes, stand_in))
    finally:
        estimator.categorical_features = given
