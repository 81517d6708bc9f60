"""A progress bar for long searches, and a file from which an interrupted search continues."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import joblib

from hinge.files import write_atomically


class Progress:
    """A progress bar on stderr, or none."""

    WIDTH = 30

    def __init__(self, shown: bool, total: int) -> None:
        self.shown, self.total, self.done, self.drawn = shown, total, 0, -1
        self.lock = threading.Lock()

    def __enter__(self) -> Progress:
        self._draw()
        return self

    def __exit__(self, *error: Any) -> None:
        if self.shown:
            print(file=sys.stderr)

    def advance(self, count: int) -> None:
        with self.lock:
            self.done += count
            self._draw()

    def _draw(self) -> None:
        if not self.shown:
            return
        filled = int(self.WIDTH * min(self.done / max(self.total, 1), 1.0))
        if filled != self.drawn:
            self.drawn = filled
            bar = "█" * filled + "·" * (self.WIDTH - filled)
            print(f"\rtune {bar} {self.done}/{self.total}", end="", file=sys.stderr, flush=True)


class Journal:
    """The scores so far in a JSON file, by fraction of the rows, fold and candidate.

    A file of another search (other data, candidates, folds or learner) raises an error and is not overwritten.
    """

    def __init__(self, path: Any, mark: str) -> None:
        self.path = None if path is None else Path(path)
        self.mark = mark
        self.scores: dict[str, dict[str, float]] = {}
        self.lock = threading.Lock()
        if self.path is not None and self.path.exists():
            try:
                content = json.loads(self.path.read_text(encoding="utf-8"))
                stored = content["search"]
                self.scores = {
                    str(part): {str(int(k)): float(score) for k, score in found.items()}
                    for part, found in content["scores"].items()
                }
            except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
                raise ValueError(f"{self.path} is not a file of hinge.tune; give state another name.") from None
            if stored != mark:
                raise ValueError(
                    f"{self.path} belongs to another search (other data, candidates, folds or learner); delete it or "
                    "give state another name."
                )

    def known(self, share: float, fold: int) -> dict[int, float]:
        return {int(k): score for k, score in self.scores.get(f"{share:.6g}/{fold}", {}).items()}

    def write(self, share: float, fold: int, found: dict[int, float]) -> None:
        """Add scores; the file is replaced atomically, so it is never incomplete."""
        if self.path is None or not found:
            return
        with self.lock:
            self.scores.setdefault(f"{share:.6g}/{fold}", {}).update({str(k): score for k, score in found.items()})
            write_atomically(self.path, json.dumps({"search": self.mark, "scores": self.scores}).encode())


def fingerprint(*parts: Any) -> str:
    """A hash that identifies a search: the same only for the same content."""
    return joblib.hash(tuple(repr(p) if hasattr(p, "get_params") else p for p in parts))
