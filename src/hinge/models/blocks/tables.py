"""The encoders of a raw table over blocks, from a uniform sample of its rows: from all rows if they are few enough."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.blocks.block import Block
from hinge.blocks.passes import Passes
from hinge.blocks.survey import Sample, taken
from hinge.models.blocks.fit import adopt_names

SAMPLE = 200_000  # rows
SAMPLE_SHARE = 0.25  # share of the memory limit for these rows, at WORD bytes per value
WORD, LEAST = 32, 1000


def sampled_rows(block: Block, most: int) -> Sample | None:
    """The statistic: at most ``most`` rows of positive weight, with their targets."""
    live = np.arange(block.rows) if block.weight is None else np.flatnonzero(block.weight > 0)
    if not len(live):
        return None
    count = min(most, len(live))
    rows = np.sort(np.random.default_rng(block.rows).choice(live, count, replace=False))
    X = block.X if block.frame is None else block.frame.to_native()
    return Sample(taken((X, block.y, None, None), rows), count, len(live), most)


def fit_table(estimator: Any, passes: Passes) -> None:
    """Learn the encoder of every column, in one pass."""
    source = passes.source
    allowed = SAMPLE_SHARE * source.memory_allowed / (WORD * source.n_features)
    found: Sample | None = passes.total(sampled_rows, int(np.clip(allowed, LEAST, SAMPLE)), keep=False)
    if found is None:
        raise ValueError("All rows have the weight zero; check the column named by weight=.")
    adopt_names(estimator, source)
    X, y, _, _ = found.data
    estimator.learn_table(X, y, {})
