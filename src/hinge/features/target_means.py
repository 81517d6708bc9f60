"""The mean target of every level of a column, for learners that take codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hinge.features.encoders import Block, Levels
from hinge.tables.columns import Column

FOLDS = 5  # target means of training rows are cross-fitted on this many folds


@dataclass(frozen=True, eq=False)
class LevelMeans:
    """Codes of levels and the mean target of every level, shrunk towards the overall mean.

    m_l = (Σ_{rows of l} t + a t̄) / (n_l + a): rare and unknown levels have about the mean t̄ of all rows.
    """

    codes: Levels
    levels: tuple[str, ...]
    means: np.ndarray  # levels × targets
    overall: np.ndarray
    names: tuple[str, ...]

    @property
    def labels(self) -> list[str]:
        return [*self.codes.labels, *(f".mean{name}" for name in self.names)]

    def encode(self, column: Column) -> Block:
        return np.column_stack([self.codes.encode(column), self.encode_means(column)])

    def encode_means(self, column: Column) -> np.ndarray:
        """The means of the level of every row."""
        codes, texts = column.as_levels()
        place = {level: k for k, level in enumerate(self.levels)}
        table = np.vstack([self.means, self.overall])
        return table[np.array([*(place.get(text, -1) for text in texts), -1], dtype=np.int64)[codes]]

    def describe(self, gaps: int) -> str:
        return f"{self.codes.describe(gaps)}; the mean target of each of {len(self.levels)} levels"


def mean_targets(y: np.ndarray, most: int = 10) -> tuple[np.ndarray, tuple[str, ...]]:
    """The targets to average, and their names: numbers unchanged, one 0/1 column per class (a single one for two classes)."""
    if np.issubdtype(y.dtype, np.floating):
        return y[:, None].astype(np.float64), ("",)
    classes, codes = np.unique(y, return_inverse=True)
    shown = range(1, 2) if len(classes) == 2 else range(min(len(classes), most))
    return np.column_stack([codes == c for c in shown]).astype(np.float64), tuple(f" {classes[c]}" for c in shown)


def learn_means(column: Column, codes: Levels, y: np.ndarray, smoothing: float = 10.0) -> LevelMeans:
    """The mean target of every level."""
    targets, names = mean_targets(y)
    at, texts = column.as_levels()
    known = at >= 0
    counts = np.bincount(at[known], minlength=len(texts))
    sums = np.column_stack([np.bincount(at[known], t[known], minlength=len(texts)) for t in targets.T])
    overall = targets.mean(axis=0)
    means = (sums + smoothing * overall) / (counts + smoothing)[:, None]
    return LevelMeans(codes, tuple(texts), means, overall, names)


def means_of_other_rows(column: Column, encoder: LevelMeans, y: np.ndarray) -> np.ndarray:
    """For every training row the mean target of its level in the other folds."""
    targets, _ = mean_targets(y)
    fold = np.random.default_rng(0).permutation(len(y)) % FOLDS
    found = np.empty(targets.shape)
    for k in range(FOLDS):
        own = fold == k
        if own.any() and not own.all():
            others = learn_means(column.take(np.flatnonzero(~own)), encoder.codes, y[~own])
            wanted = {name: j for j, name in enumerate(others.names)}
            means = others.encode_means(column.take(np.flatnonzero(own)))
            # A class that is missing from the other folds has share zero.
            found[own] = np.column_stack([
                means[:, wanted[name]] if name in wanted else np.zeros(int(own.sum())) for name in encoder.names
            ])  # fmt: skip
        else:
            found[own] = encoder.encode_means(column.take(np.flatnonzero(own)))
    return found
