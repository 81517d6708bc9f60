"""What was asked for, and the chosen setting fitted to any rows."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hinge.cli.search import Result, Search, fit_model, preparation

MAX_HASHED = 2 << 30


@dataclass
class Request:
    """What was asked for."""

    file: Path
    target: str | None
    task: str = "auto"
    seconds: float = 60.0
    models: str | None = None
    seed: int = 0
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    rows: int | None = None
    command: str = ""


@dataclass
class Fitting:
    """The chosen setting, ready to be fitted to any rows."""

    frame: Any
    y: np.ndarray
    search: Search
    chosen: Result
    sampled: bool

    def fit(self, rows: np.ndarray) -> Any:
        """A pipeline fitted to these rows of the table."""
        from sklearn.pipeline import Pipeline

        whole = len(rows) == self.frame.height
        prep = preparation(self.chosen.family.encode, self.search.kinds)
        X = prep.fit_transform(self.frame if whole else self.frame[rows])
        labels = self.search.labels(self.y if whole else self.y[rows])
        model = fit_model(self.chosen.setting, self.search, prep, X, labels, **self._rounds(len(rows)))
        return Pipeline([("prep", prep), ("model", model)])

    def _rounds(self, rows: int) -> dict[str, Any]:
        """The rounds that early stopping asked for during the search, so that no row need be set aside again.

        More rows than the search had bear more rounds; then rows are set aside again.
        """
        rounds = self.chosen.rounds
        if rounds is None or (self.sampled and rows > 2 * len(self.search.y)):
            return {}
        return {"early_stopping": False, "max_iter": max(round(1.1 * rounds), 1)}


def versions() -> dict[str, str]:
    import scipy
    import sklearn

    import hinge

    return {
        "hinge": hinge.__version__, "Python": platform.python_version(), "NumPy": np.__version__,
        "SciPy": scipy.__version__, "scikit-learn": sklearn.__version__, "system": f"{platform.system()} {platform.machine()}",
    }  # fmt: skip


def checksum(path: Path) -> str:
    """SHA-256 of the data file; "" for very large files and embedded sets."""
    if not path.is_file() or path.stat().st_size > MAX_HASHED:
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
