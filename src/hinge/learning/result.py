"""The result of :func:`hinge.learn`."""

from __future__ import annotations

import html
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hinge.files import save, write_atomically
from hinge.learning.model_inputs import TableModel
from hinge.learning.request import Request
from hinge.learning.search import Search
from hinge.learning.trials import Trial
from hinge.report.document import document
from hinge.report.evidence import Evidence
from hinge.settings import shows_html
from hinge.tables.number_formats import format_number
from hinge.tables.profile import TableProfile

# Notes that need fits; they are shown after the choice.
LATE_NOTES = ("D15", "D17", "D20", "D21", "D22", "D23")


@dataclass
class Learned:
    """A model chosen and fitted by :func:`hinge.learn`, with its scores and measurements.

    Attributes
    ----------
    model : TableModel
        Fitted to all rows; takes raw tables.
    profile : TableProfile
        The columns, the target and the notes on the data.
    evidence : Evidence
        Everything the report shows: scores, importances, curves.
    search, chosen
        Every setting that was tried on the folds, and the chosen one.
    test : array of int
        Positions of the held-out rows that gave the score; empty if the score is cross-validated.
    request : Request
        What :func:`hinge.learn` was called with.
    """

    request: Request
    profile: TableProfile
    search: Search
    chosen: Trial
    model: TableModel
    evidence: Evidence
    test: np.ndarray

    @property
    def leaderboard(self) -> Any:
        """The best setting of every family as a polars DataFrame, from the simplest family to the richest."""
        import polars as pl

        return pl.DataFrame([asdict(row) for row in self.evidence.board])

    @property
    def score(self) -> float:
        """The held-out score."""
        return self.evidence.score

    @property
    def findings(self) -> list[tuple[str, str, str]]:
        """The findings of the diagnosis: (code, observation, remedy)."""
        return self.evidence.sentences

    def report(self, path: str | os.PathLike[str], usage: dict[str, str] | None = None) -> Path:
        """Write the report, one HTML page that needs no other file."""
        page = document(self.evidence, {} if usage is None else usage)
        write_atomically(Path(path), page.encode())
        return Path(path)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model, for :func:`hinge.load`, ``hinge predict`` and the other commands."""
        save(self.model.pipeline, path, card=self.model.card)
        return Path(path)

    def summary(self) -> list[str]:
        """The choice, the score, and the notes on them."""
        e = self.evidence
        others = [f"{name} {format_number(value, 4)}" for name, value in e.details.items() if name != e.metric][:4]
        return [
            e.reason,
            f"{e.scored.capitalize()}: {e.metric} {format_number(e.score, 4)} ± {format_number(e.error, 2)} (best constant "
            f"{format_number(e.trivial, 4)}, {100 * e.explained:.1f} % explained); {', '.join(others)}",
            *(f"  {n.code} {n.text}" for n in e.notes if n.code in LATE_NOTES),
        ]

    def __str__(self) -> str:
        return "\n".join(self.summary())

    def _repr_html_(self) -> str | None:
        if not shows_html():
            return None
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in self.summary())
        return f"<div>{lines}{self.leaderboard._repr_html_()}</div>"
