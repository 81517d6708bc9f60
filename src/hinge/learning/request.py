"""The arguments of a run (table, target, limits) and the environment it ran in."""

from __future__ import annotations

import hashlib
import platform
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

MAX_HASHED = 2 << 30  # bytes


@dataclass
class Request:
    """The arguments of :func:`hinge.learn`."""

    source: Any  # a path or a data frame
    target: str | None
    task: str = "auto"
    seconds: float = 60.0
    models: str | None = None
    seed: int = 0
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    rows: int | None = None
    command: str = ""
    began: float = field(default_factory=time.perf_counter)
    simple: bool = False
    weight: str | None = None
    exposure: str | None = None
    offset: str | None = None
    group: str | None = None
    time_column: str | None = None
    test: Any = None
    metric: str | None = None
    positive: str | None = None

    @property
    def path(self) -> Path:
        """The file, or a name for a data frame."""
        return Path(self.source) if isinstance(self.source, str | Path) else Path("the table")


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
