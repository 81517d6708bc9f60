"""What is recorded of a race, and the arithmetic of comparing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.harness import Task
from benchmarks.libraries import HOME, Skip
from benchmarks.measure import Spread


@dataclass
class Rung:
    """One untimed-for-the-record fit of the exploration."""

    tolerance: float | None
    seconds: float
    memory: int
    objective: float | None
    model: Any = None


@dataclass
class Row:
    """What is recorded of one contender."""

    library: str
    label: str
    tolerance: float | None = None
    fit: Spread | None = None
    predict: Spread | None = None
    memory: int | None = None
    objective: float | None = None
    suboptimality: float | None = None
    scores: dict[str, float] = field(default_factory=dict)
    reached: bool = False
    note: str = ""
    rungs: list[Rung] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.library} {self.label}".strip()

    def as_dict(self) -> dict[str, Any]:
        fields = ("library", "label", "tolerance", "memory", "objective", "suboptimality", "scores", "reached", "note")
        record = {name: getattr(self, name) for name in fields}
        record["fit"] = self.fit.as_dict() if self.fit else None
        record["predict"] = self.predict.as_dict() if self.predict else None
        record["explored"] = [
            {"tolerance": r.tolerance, "seconds": r.seconds, "memory": r.memory, "objective": r.objective}
            for r in self.rungs
        ]
        return record


@dataclass
class Result:
    """All rows of one task."""

    task: Task
    shape: tuple[int, ...]
    rows: list[Row]
    skipped: list[Skip]
    best_objective: float | None
    floor: float | None
    floor_note: str

    @property
    def best_peer(self) -> Row | None:
        return fastest(row for row in self.rows if row.library != HOME)

    @property
    def home(self) -> Row | None:
        return fastest(row for row in self.rows if row.library == HOME)

    @property
    def ratio(self) -> float | None:
        """How many times quicker hinge is than the best peer that reached the same quality."""
        return ratio(self.best_peer, self.home, "fit")

    @property
    def predict_ratio(self) -> float | None:
        quickest = fastest((row for row in self.rows if row.library != HOME), "predict")
        return ratio(quickest, self.home, "predict")

    def as_dict(self) -> dict[str, Any]:
        return {
            "task": self.task.name,
            "setting": self.task.setting,
            "shape": list(self.shape),
            "best_objective": self.best_objective,
            "floor_seconds": self.floor,
            "floor_note": self.floor_note,
            "goal": self.task.goal,
            "growth": list(self.task.growth) if self.task.growth else None,
            "best_peer": self.best_peer.name if self.best_peer else None,
            "ratio": self.ratio,
            "predict_ratio": self.predict_ratio,
            "rows": [row.as_dict() for row in self.rows],
            "skipped": [{"name": skip.name, "reason": skip.reason} for skip in self.skipped],
        }


def fastest(rows: Iterable[Row], what: str = "fit") -> Row | None:
    """The quickest row among those that reached the common quality."""
    timed = [row for row in rows if row.reached and getattr(row, what) is not None]
    return min(timed, key=lambda row: getattr(row, what).median, default=None)


def ratio(peer: Row | None, home: Row | None, what: str) -> float | None:
    """Time of the peer over ours; above one is ahead."""
    if peer is None or home is None:
        return None
    theirs, ours = getattr(peer, what), getattr(home, what)
    if theirs is None or ours is None:
        return None
    return theirs.median / max(ours.median, 1e-9)


def suboptimality(objective: float, best: float) -> float:
    """Relative distance to the best value seen."""
    return (objective - best) / max(abs(best), 1e-300)


def loosest(rungs: Sequence[Rung], best: float, target: float) -> Rung | None:
    """The first rung within the target of the best value."""
    return next((r for r in rungs if r.objective is not None and suboptimality(r.objective, best) <= target), None)
