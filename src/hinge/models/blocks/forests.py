"""Decision trees and forests over blocks.

Trees are grown on the codes of all rows, which are kept in memory: two bytes per value, and a few numbers per row. The
result equals that for the table in memory with the same bins. Random thresholds are drawn between the smallest values of the bins,
so that the trees are those of the table in memory if every distinct value has its own bin.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from hinge._native import core
from hinge.blocks.block import Block
from hinge.blocks.passes import Passes
from hinge.models.blocks.trees import (
    SAMPLE,
    Coded,
    Found,
    Layout,
    Reader,
    TargetFacts,
    code,
    find_layout,
    live_rows,
    read_features,
    target_facts,
)
from hinge.models.trees.inputs import Prepared, check_sums

ROW_BYTES = 64  # memory of a row besides its codes


class TargetCodes:
    """Labels as 0 … k−1, or numbers as they are."""

    def __init__(self, labels: np.ndarray | None) -> None:
        self.labels = labels

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """The codes of some targets."""
        return (y if self.labels is None else np.searchsorted(self.labels, y)).astype(np.float64)


class Rows(NamedTuple):
    """Coded blocks in order, with the keys of their rows."""

    parts: list[tuple[Coded, np.ndarray]]
    found: Found

    def merge(self, other: Rows) -> Rows:
        """Those of both sets of blocks."""
        return Rows(self.parts + other.parts, self.found.merge(other.found))


def coded_rows(block: Block, reader: Reader, facts: TargetFacts, layout: Layout) -> Rows:
    """The statistic: codes, and keys that depend on the contents of the rows alone."""
    coded, found = code(block, reader, facts, layout)
    if coded is None:
        return Rows([], found)
    X = np.ascontiguousarray(reader.table(block)[live_rows(block)])
    return Rows([(coded, core.content_keys(X, coded.y))], found)


class CodedTable(Prepared):
    """The codes of all rows, and their native form."""

    def __init__(self, layout: Layout, codes: np.ndarray, random: bool) -> None:
        self.X = np.broadcast_to(np.float64(0), codes.T.shape)  # only the shape of the table is used
        if random:
            # Random thresholds may lie anywhere between bins of single values, which bins of all rows can guarantee.
            self.native = core.tree_cells_of_codes(layout.native, codes, codes.shape[1] <= SAMPLE)
        else:
            self.native = core.tree_bins_of_codes(layout.native, codes)
        self.missing = layout.missing.astype(bool)


def _refuse(estimator: Any, facts: TargetFacts, passes: Passes) -> None:
    name, source = type(estimator).__name__, passes.source
    options = vars(estimator)
    for option in ("oob_score", "keep_leaves", "warm_start"):
        if options.get(option):
            raise ValueError(f"{name}({option}=True) needs all rows in memory; over blocks use {option}=False.")
    needed = facts.rows * (2 * source.n_features + ROW_BYTES)
    if needed > source.memory_allowed:
        raise ValueError(
            f"{name} keeps the codes of all rows in memory, about {needed / 1e6:,.0f} MB; {source.memory_allowed / 1e6:,.0f} "
            "MB are allowed. Allow more with hg.scan(…, memory=…), or use HistGradientBoosting*, which keeps them in files."
        )


def fit_trees(estimator: Any, passes: Passes) -> None:
    """Targets, bins and codes in three passes; then the trees are grown as in memory."""
    forest = hasattr(estimator, "_grow")
    class_weight = estimator._class_weight() if forest else getattr(estimator, "class_weight", None)
    facts = target_facts(passes, is_classifier(estimator), class_weight)
    _refuse(estimator, facts, passes)
    labels = None if facts.labels is None else facts.labels.values
    estimator._code(np.array([facts.mean]) if labels is None else labels)
    reader = Reader(estimator, read_features(estimator, passes), TargetCodes(labels))
    if forest:
        estimator._draw_seed()
    layout = find_layout(passes, reader, facts, estimator.max_bins if forest else 255, estimator._seed if forest else 0)
    rows: Rows = passes.total(coded_rows, reader, facts, layout, keep=False)
    keys = np.concatenate([key for _, key in rows.parts])
    y = np.concatenate([coded.y for coded, _ in rows.parts])
    weight = np.concatenate([coded.weight for coded, _ in rows.parts]) if facts.weights.given else None
    codes = np.concatenate([coded.codes for coded, _ in rows.parts], axis=1)
    random = estimator._random_thresholds if forest else estimator.splitter == "random"
    table = CodedTable(rows.found.complete(layout), codes, random)
    del rows, codes
    if forest:
        estimator._check(y)
        check_sums(weight, y)
        estimator._grow(table.X, y, weight, None, table, core.order_by_key(keys))
    else:
        estimator.fit_prepared(table, y, weight)
