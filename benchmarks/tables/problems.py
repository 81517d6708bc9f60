"""The columns of a table as other libraries take them, and the splits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables.sources import SOURCES, load
from hinge.learning.roles import Roles, copies
from hinge.tables.profile import TableProfile, profile

TEST, MAX_TEST = 0.25, 50_000


@dataclass(frozen=True)
class Problem:
    """A table with its columns as other libraries take them."""

    data: TableProfile
    table: Any  # pandas, categories as such
    labels: np.ndarray

    @property
    def classify(self) -> bool:
        return self.data.classes is not None

    def names(self, *kinds: str) -> list[str]:
        return [f"c{k}" for k, c in enumerate(self.data.columns) if c.kind in kinds]

    @property
    def flat(self) -> list[str]:
        """The columns that are no texts."""
        return self.names("number", "category", "boolean", "date")

    def split(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Training and test rows; where a table has many copied rows, all copies of a row are on one side."""
        n = len(self.labels)
        k = int(np.ceil(n / min(TEST * n, MAX_TEST)))
        fold = Roles(group=copies(self.data)).folds(self.data.y, k, self.classify, seed)
        return np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)


def make_problem(name: str, packed: Path | None = None) -> Problem:
    """The columns that ``hg.learn`` keeps of a table."""
    import pandas as pd

    source, table = SOURCES[name], load(name, packed)
    seen = profile(table, source.target, drop=[c for c in source.drop if c in table.frame.columns])
    columns = {}
    for k, column in enumerate(seen.columns):  # LightGBM refuses some characters in names
        values = seen.frame[column.name]
        if column.kind == "text":
            columns[f"c{k}"] = pd.Series(values.fill_null("").to_list(), dtype=object)
        elif column.kind in ("category", "boolean"):
            labels = [None if value is None else str(value) for value in values.to_list()]
            columns[f"c{k}"] = pd.Series(labels, dtype=object).astype("category")
        elif column.kind == "date":
            days = values.to_numpy().astype("datetime64[s]")
            columns[f"c{k}"] = pd.Series(np.where(np.isnat(days), np.nan, days.astype(np.float64) / 86_400))
        else:
            columns[f"c{k}"] = pd.Series(values.to_numpy().astype(np.float64))
    targets = seen.y if seen.classes is None else seen.classes[seen.y.astype(np.int64)]
    return Problem(seen, pd.DataFrame(columns), targets)
