"""Tables that are read block by block, and methods that process them."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np

# Methods with a result for every row, and score, which averages over rows: they process a source block by block.
BY_ROWS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "score_samples", "score")
# Lazy tables of other libraries, which are not in memory: they are fitted as sources.
LAZY = {"polars": ("LazyFrame",), "pyarrow": ("FileSystemDataset", "UnionDataset", "InMemoryDataset")}


def is_source(X: Any) -> bool:
    """True for ``hg.scan(…)``, Dask collections, lazy frames and datasets: tables that are read block by block."""
    cls = type(X)
    if cls is np.ndarray:
        return False
    if getattr(cls, "is_source", False):
        return True
    library = cls.__module__.partition(".")[0]
    return library == "dask" or cls.__name__ in LAZY.get(library, ())


def by_blocks(name: str, method: Any) -> Any:
    """A method that processes a source block by block."""
    if hasattr(method, "fn"):  # a method that exists for some settings only
        method.fn = by_blocks(name, method.fn)
        return method

    @functools.wraps(method)
    def array_or_blocks(self: Any, *args: Any, **options: Any) -> Any:
        if args and is_source(args[0]):
            module = importlib.import_module("hinge.models.blocks.predict")
            if name == "score":
                return module.score_source(self, *args, **options)
            return module.predict_source(self, name, *args, **options)
        return method(self, *args, **options)

    return array_or_blocks
