"""Generalised linear models over blocks, with categories: a level counts wherever it first appears."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from hinge.blocks.block import Block
from hinge.blocks.parts import join
from hinge.blocks.passes import Passes
from hinge.blocks.survey import Survey, survey, taken
from hinge.models.blocks.linear import OverBlocks, StandIn
from hinge.models.glm.inputs import Coding, category_column, predict_table
from hinge.problem.objective import Objective
from hinge.tables.frames import as_frame, chosen_columns


@dataclass(frozen=True, eq=False)
class LevelRows:
    """One row, with its target, for every level of every category."""

    X: Any
    y: np.ndarray
    chosen: tuple[int, ...]

    def merge(self, other: LevelRows) -> LevelRows:
        """The rows of both, without those whose levels others have."""
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


def survey_levels(block: Block, n_features: int, categorical: Any, with_offset: bool) -> tuple[Survey, LevelRows]:
    """The survey of a block and a row of every level in it."""
    X = table_of(block)
    found = survey(block, n_features, False, True, with_offset)
    chosen = tuple(chosen_columns(X, block.frame, _positions(categorical, block)))
    assert block.y is not None
    return found, level_rows(X, np.asarray(block.y, dtype=np.float64), chosen)


def _positions(categorical: Any, block: Block) -> Any:
    """Names of categories as positions, where the block is an array with names."""
    values = np.asarray(categorical)
    if block.frame is None and block.names is not None and values.dtype.kind in "OU" and values.ndim == 1:
        return [block.names.index(name) for name in values.tolist()]
    return categorical


@dataclass(frozen=True, eq=False)
class Encode:
    """From a block to numbers and codes of categories."""

    model: Any
    coding: Coding

    def __call__(self, block: Block) -> Any:
        return predict_table(self.model, table_of(block), self.coding)


class GLMOverBlocks(OverBlocks):
    """Minimises over all blocks, whose categories are coded as the estimator coded those of the stand-in."""

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


def fit_glm(estimator: Any, passes: Passes) -> None:
    """Fit by maximum (penalised) likelihood."""
    if estimator.inference:
        raise ValueError("inference=True needs all rows in memory; over blocks fit with inference=False.")
    source, categorical = passes.source, estimator.categorical_features
    with_offset = source.roles.offset is not None or source.roles.features is None
    levels: LevelRows | None = None
    if categorical is None:
        found = passes.total(survey, source.n_features, False, False, with_offset)
    else:
        found, levels = passes.total(survey_levels, source.n_features, categorical, with_offset)
    stand_in = StandIn(found)
    if levels is not None and levels.chosen:
        stand_in.add(levels.X, levels.y)
        if source.names is not None and as_frame(stand_in.X) is None:
            names = list(source.names)
            categorical = [names.index(c) if isinstance(c, str) else c for c in np.ravel(categorical).tolist()]
    given = estimator.categorical_features
    estimator._given, estimator.categorical_features = GLMOverBlocks(estimator, passes, stand_in), categorical
    try:
        offset = {} if stand_in.offset is None else {"offset": stand_in.offset}
        estimator.fit(stand_in.X, stand_in.y, stand_in.weight, **offset)
    finally:
        del estimator._given
        estimator.categorical_features = given
