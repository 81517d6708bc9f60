"""A trial: one setting of a family on the folds, with its losses and its costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hinge.learning.candidates import Family, Setting
from hinge.learning.roles import Roles
from hinge.select.estimate import Estimate

GROWTH = {
    "kernel": 2.0,
    "forest": 1.1,
    "extra": 1.1,
}  # the time of a fit grows as rows^p; p by family, 1 for the others


@dataclass
class Trial:
    """A setting of a family on the folds."""

    family: Family
    setting: Setting
    state: str  # "done", "running", "dropped", "rough", "no time", "failed"
    loss: np.ndarray | None = None  # out of fold, one per row of the search
    predictions: np.ndarray | None = None
    score: Estimate | None = None
    explained: float = 0.0
    train_rows: int = 0
    fit_seconds: float = 0.0  # of one fold
    prepare_seconds: float = 0.0  # of one fold's training rows, estimated
    predict_micros: float = 0.0
    size: int = 0
    certificate: Any = None
    rounds: int | None = None  # rounds of boosting that did best over all folds
    why: str = ""
    members: list[tuple[Trial, float]] = field(default_factory=list)  # of an ensemble, with their weights

    @property
    def name(self) -> str:
        return f"{self.family.name} {self.setting.name}"

    @property
    def encode(self) -> str:
        return self.setting.encode or self.family.encode

    def cost(self, rows: int) -> float:
        """Seconds that a fit to so many rows will take, extrapolated from the folds."""
        if self.members:
            return sum(trial.cost(rows) for trial, _ in self.members)
        more = rows / max(self.train_rows, 1)
        return self.fit_seconds * more ** GROWTH.get(self.family.name, 1.0) + self.prepare_seconds * more


@dataclass
class Fold:
    """One split of the rows, with the table prepared once per encoding."""

    train: np.ndarray
    test: np.ndarray
    prepared: dict[str, tuple[Any, Any, Any, float]] = field(default_factory=dict)


def split(y: np.ndarray, task: str, k: int, seed: int, roles: Roles | None = None) -> list[Fold]:
    """k folds: stratified for classes, by groups, or by intervals of time."""
    fold = (roles or Roles()).folds(y, k, task in ("binary", "multiclass"), seed)
    found = [Fold(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(k)]
    return [part for part in found if len(part.test) and len(part.train)]
