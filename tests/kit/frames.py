"""Data frames of other libraries, which may be missing: polars has no wheels for free-threaded Pythons."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest


def in_library(frame: pd.DataFrame, library: str) -> Any:
    """The table in "pandas", "polars" or "arrow"; the test is skipped where that library is missing."""
    if library == "polars":
        return pytest.importorskip("polars").from_pandas(frame)
    if library == "arrow":
        return pytest.importorskip("pyarrow").Table.from_pandas(frame)
    return frame
