"""The first pass over a source: numbers of rows, weights of classes, and a representative sample of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from hinge._native import check_indices, surely_finite
from hinge.blocks.block import Block
from hinge.blocks.parts import join
from hinge.blocks.source import Source
from hinge.errors import UserError
from hinge.tables.frames import as_frame

# A sample has at most this many rows, and takes up at most this share of the memory of a fit or this many bytes of float64,
# unless that would be fewer rows than columns. Newton's method over blocks starts from the optimum of the sample: the larger
# the sample, the fewer passes it takes.
SAMPLE_ROWS, SAMPLE_SHARE, LEAST_BYTES, MOST_BYTES = 40_000, 1 / 16, 2 << 20, 8 << 20
UNORDERED = "y has labels that cannot be put in order; make them all text or all numbers."


@dataclass(frozen=True, eq=False)
class Sample:
    """A uniform sample of at most ``most`` of ``population`` rows; merging two samples is deterministic."""

    data: tuple[Any, ...]  # X (an array, a sparse matrix or a frame), y, weight, offset; None if absent
    rows: int
    population: int
    most: int

    def merge(self, other: Sample) -> Sample:
        """A sample of the rows of both."""
        population = self.population + other.population
        if self.rows + other.rows <= self.most:
            return Sample(_joined(self.data, other.data), self.rows + other.rows, population, self.most)
        first = min(self.rows, max(self.most - other.rows, round(self.most * self.population / population)))
        second = min(other.rows, self.most - first)
        random = np.random.default_rng(population)
        parts = [
            taken(s.data, np.sort(random.choice(s.rows, count, replace=False)))
            for s, count in ((self, first), (other, second))
        ]
        return Sample(_joined(*parts), first + second, population, self.most)


class SamplePlan(NamedTuple):
    """The rows of a sample: at most ``most``, and ``share`` of the rows of each block where the number of all rows is known."""

    most: int
    share: float = 1.0

    @classmethod
    def of(cls, source: Source) -> SamplePlan:
        """The plan for a source."""
        size = int(np.clip(source.memory_allowed * SAMPLE_SHARE, LEAST_BYTES, MOST_BYTES))
        n_features, rows = source.n_features, source.row_count
        most = int(np.clip(size // (8 * n_features), min(2 * n_features + 100, SAMPLE_ROWS), SAMPLE_ROWS))
        return cls(most, min(1.0, most / rows) if rows else 1.0)

    def of_block(self, rows: int) -> int:
        """The number of rows to draw from a block."""
        return min(self.most, math.ceil(self.share * rows))


def taken(data: tuple[Any, ...], rows: Any) -> tuple[Any, ...]:
    """Some rows of every part."""
    return tuple(None if part is None else _take(part, rows) for part in data)


def _take(part: Any, rows: Any) -> Any:
    if isinstance(part, np.ndarray) or scipy.sparse.issparse(part):
        return part[rows]
    frame = as_frame(part)
    return frame[rows].to_native()


def _joined(one: tuple[Any, ...], two: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(None if a is None else join([a, b]) for a, b in zip(one, two))


def _sorted_labels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels in order, and the index of the label of each entry."""
    try:
        if y.dtype == object:
            set(y.flat)  # raises for unhashable entries such as lists, which cannot be labels
        return np.unique(y, return_inverse=True)
    except (OverflowError, TypeError):
        raise ValueError(UNORDERED) from None


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of a target, in order, and the weight of each."""

    values: np.ndarray
    weights: np.ndarray

    def merge(self, other: Labels) -> Labels:
        """The labels of both."""
        values, codes = _sorted_labels(np.concatenate([self.values, other.values]))
        return Labels(values, np.bincount(codes, np.concatenate([self.weights, other.weights])))


class Survey(NamedTuple):
    """The result of the first pass."""

    rows: int
    weight_sum: float
    sample: Sample
    labels: Labels | None
    float32: int  # blocks whose numbers are float32
    blocks: int


def survey(
    block: Block, n_features: int, classify: bool, as_frames: bool, with_offset: bool, plan: SamplePlan
) -> Survey:
    """The statistic of the first pass. Raises for missing values in X or y, and for a wrong number of columns.

    ``as_frames`` keeps tables as data frames, for models that take categories.
    """
    y = None if block.y is None else check_target(block, classify)
    X = block.frame.to_native() if as_frames and block.frame is not None else block.X
    if isinstance(X, np.ndarray) or scipy.sparse.issparse(X):
        check_features(X, n_features, block)
    weight = np.ones(block.rows) if block.weight is None else block.weight
    labels = None
    if classify and y is not None:
        values, codes = np.unique(y, return_inverse=True)
        labels = Labels(values, np.bincount(codes, weight, minlength=len(values)))
    live = np.flatnonzero(weight > 0)
    count = plan.of_block(len(live))
    rows = np.sort(np.random.default_rng(block.rows).choice(live, count, replace=False)) if count else live
    if labels is not None and count < block.rows:  # every label of the block has a row
        rows = np.union1d(rows, np.unique(codes, return_index=True)[1])
    data = taken((X, y, weight, block.offset if with_offset else None), rows)
    small = int(getattr(X, "dtype", None) == np.float32)
    return Survey(block.rows, float(weight.sum()), Sample(data, len(rows), block.rows, plan.most), labels, small, 1)


def check_target(block: Block, classify: bool) -> np.ndarray:
    """The target of a block: numbers without missing values, or labels."""
    if block.y is None:
        raise UserError(f"{block.where} has no target.")
    y = block.y
    if not classify:
        try:
            y = np.asarray(y, dtype=np.float64)
        except (OverflowError, TypeError, ValueError):
            raise ValueError(
                f"y must hold numbers: {block.where} holds something else. Targets of a regression are numbers; for labels "
                "use a classifier."
            ) from None
    elif y.dtype == object:
        if any(label is None or label != label for label in y):
            raise ValueError(f"y has missing values in {block.where}; drop those rows, or replace the values.")
        if all(isinstance(label, str) for label in y):
            y = y.astype(str)
        else:
            _sorted_labels(y)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"y has missing or infinite values in {block.where}; drop those rows, or replace the values.")
    return y


def check_features(X: Any, n_features: int, block: Block, *, missing: bool = False) -> None:
    """Raise for a wrong number of columns and, unless ``missing`` is True, for values that are not finite, naming the column."""
    if X.shape[1] != n_features:
        raise UserError(f"{block.where} has {X.shape[1]} columns; the first block has {n_features}.")
    check_indices(X)
    if missing or surely_finite(X):
        return
    bad = ~np.isfinite(X.toarray() if scipy.sparse.issparse(X) else X)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        name = block.names[column] if block.names else column
        raise ValueError(
            f"Input X contains NaN or infinity: row {row} of {block.where}, column {name!r}. Impute missing values, drop such "
            "rows with hg.scan(…, filter=…), or use a model that takes them."
        )
