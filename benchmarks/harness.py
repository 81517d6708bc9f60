"""The race itself: who enters, at which tolerance each is timed, and what is recorded.

A convex task is run to *equal objective*. Every contender climbs its ladder of tolerances, loosest first, once, and is
then timed at the loosest rung whose objective is within ``target`` (relative) of the best value anybody reached. A
contender that never gets there is reported with how far it got, and does not count as a peer to beat. A task without
a common objective is run at stated settings, and a contender counts if its first score is within the task's margin of
the best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.judges import OBJECTIVES
from benchmarks.libraries import HOME, Skip
from benchmarks.machine import Ceilings, Work
from benchmarks.measure import Spread, peak_extra_memory, repeats_for, seconds_of


@dataclass(frozen=True)
class Problem:
    """Data and parameters of one task; ``kind`` names what is solved, for the judges and the libraries."""

    kind: str
    X: Any
    y: Any
    params: Mapping[str, Any] = field(default_factory=dict)
    X_test: Any = None
    y_test: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.X.shape) if hasattr(self.X, "shape") else (len(self.X),)


@dataclass(frozen=True)
class Linear:
    """The answer of a linear model: what the judges of linear problems read."""

    coef: np.ndarray
    intercept: Any = 0.0


def linear_answer(model: Any) -> Linear:
    """Read ``coef_`` and ``intercept_``, flattened when there is one output."""
    coef = np.asarray(model.coef_, dtype=np.float64)
    intercept = np.asarray(getattr(model, "intercept_", 0.0), dtype=np.float64)
    if coef.ndim == 2 and coef.shape[0] == 1:
        coef = coef[0]
    return Linear(coef, intercept if coef.ndim == 2 else float(intercept.reshape(-1)[0]))


@dataclass(frozen=True)
class Contender:
    """One way one library fits one kind of problem.

    Parameters
    ----------
    library, label : the library, and which of its solvers or settings.
    fit : ``fit(prepared, tolerance) -> model``; the part that is timed.
    ladder : tolerances, loosest first; ``(None,)`` when the method has none.
    prepare : conversion to the library's own format, not timed.
    answer : ``answer(model)`` for the judge of this kind of problem.
    predict, probability : ``predict(model, X)``, timed, and the class probabilities, for scores.
    jit : the first fit of the process compiles; one untimed fit goes first.
    """

    library: str
    label: str
    fit: Callable[[Any, Any], Any]
    ladder: tuple[float | None, ...] = (None,)
    prepare: Callable[[Problem], Any] = lambda problem: problem
    answer: Callable[[Any], Any] = linear_answer
    predict: Callable[[Any, Any], Any] = lambda model, X: model.predict(X)
    probability: Callable[[Any, Any], Any] = lambda model, X: model.predict_proba(X)
    jit: bool = False

    @property
    def name(self) -> str:
        return f"{self.library} {self.label}".strip()


class Outcome:
    """A fitted contender as the scores see it."""

    def __init__(self, contender: Contender, model: Any, problem: Problem) -> None:
        self._contender, self._model, self._problem = contender, model, problem

    @cached_property
    def answer(self) -> Any:
        return self._contender.answer(self._model)

    @cached_property
    def prediction(self) -> Any:
        return self._contender.predict(self._model, self._problem.X_test)

    @cached_property
    def probability(self) -> Any:
        return self._contender.probability(self._model, self._problem.X_test)


@dataclass(frozen=True)
class Score:
    """A quality shown beside the time: ``function(problem, outcome)``."""

    name: str
    function: Callable[[Problem, Outcome], float]
    higher_is_better: bool = True


@dataclass(frozen=True)
class Task:
    """One row of a family's table.

    Parameters
    ----------
    name : short, for ``--task``.
    setting : what exactly is solved, for the reader of the report.
    build : makes the problem; called once.
    scores : qualities; the first decides who counts when the kind has no objective.
    margin : how far below the best first score (absolute) still counts as equal quality.
    work : least work of the task, for its physical floor.
    goal : times the best peer hinge means to be.
    growth : (series, size): rows of one series together show how cost grows.
    only : names of the libraries that take part; empty for all.
    """

    name: str
    setting: str
    build: Callable[[], Problem]
    scores: tuple[Score, ...] = ()
    margin: float = 0.0
    work: Callable[[Problem], Work] | None = None
    goal: float | None = None
    growth: tuple[str, int] | None = None
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settings:
    """How a run is made; recorded with its results."""

    repeats: int = 3
    target: float = 1e-6
    budget: float = 60.0
    libraries: tuple[str, ...] = ()


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


def settled(rungs: Sequence[Rung], target: float) -> bool:
    """Whether tightening once more changed the objective by less than a tenth of the target."""
    if len(rungs) < 2:
        return False
    last, before = rungs[-1].objective, rungs[-2].objective
    if last is None or before is None or not (math.isfinite(last) and math.isfinite(before)):
        return False
    return abs(before - last) <= 0.1 * target * max(abs(last), 1e-300)


class Climb:
    """One contender on its ladder."""

    LONG = 10.0  # a fit longer than this is not run again: its exploration is its timing

    def __init__(self, contender: Contender, problem: Problem, settings: Settings) -> None:
        self.contender, self.problem, self.settings = contender, problem, settings
        self.row = Row(contender.library, contender.label)
        self.objective = OBJECTIVES.get(problem.kind)
        self._prepared: Any = None
        self._ready = False

    @property
    def exhausted(self) -> bool:
        return bool(self.row.note) or len(self.row.rungs) == len(self.contender.ladder)

    def fit(self, tolerance: float | None) -> Any:
        return self.contender.fit(self._prepared, tolerance)

    def step(self) -> None:
        """Fit at the next tolerance; a failure is recorded and ends the climb."""
        tolerance = self.contender.ladder[len(self.row.rungs)]
        try:
            if not self._ready:
                self._prepared = self.contender.prepare(self.problem)
                if self.contender.jit:
                    self.fit(tolerance)
                self._ready = True
            memory, (seconds, model) = peak_extra_memory(lambda: seconds_of(lambda: self.fit(tolerance)))
            value = None
            if self.objective is not None:
                value = float(self.objective(self.problem, self.contender.answer(model)))
        except Exception as error:
            self.row.note = f"failed: {type(error).__name__}: {error}".splitlines()[0][:200]
            return
        for rung in self.row.rungs:
            rung.model = None
        self.row.rungs.append(Rung(tolerance, seconds, memory, value, model if seconds > self.LONG else None))
        if seconds > self.settings.budget and not self.exhausted:
            self.row.note = f"stopped: one fit took {seconds:.0f} s"

    def explore(self, best: float | None) -> float | None:
        """Climb until the best value known is reached, or further tightening changes nothing; return the new best."""
        while not self.exhausted:
            self.step()
            value = self.row.rungs[-1].objective if self.row.rungs else None
            if value is None or not math.isfinite(value):
                continue
            if best is not None and suboptimality(value, best) <= self.settings.target:
                return min(best, value)
            if settled(self.row.rungs, self.settings.target):
                return value if best is None else min(best, value)
        return min_objective([self.row], best)

    def catch_up(self, best: float) -> float:
        """Go on after the others have shown that more can be had."""
        while not self.exhausted and loosest(self.row.rungs, best, self.settings.target) is None:
            self.step()
        found = min_objective([self.row], best)
        return best if found is None else found

    def choose(self, best: float | None) -> Rung | None:
        """The rung to time: the loosest that reached the target, or else the one that got furthest."""
        rungs = self.row.rungs
        if not rungs:
            return None
        if best is None:
            return rungs[-1]
        rung = loosest(rungs, best, self.settings.target)
        self.row.reached = rung is not None
        if rung is None:
            finite = [r for r in rungs if r.objective is not None and math.isfinite(r.objective)]
            rung = min(finite, key=lambda r: r.objective, default=rungs[-1])
        return rung

    def release(self) -> None:
        """Let go of the library's copy of the data and of fitted models."""
        self._prepared = None
        for rung in self.row.rungs:
            rung.model = None


def min_objective(rows: Iterable[Row], best: float | None = None) -> float | None:
    """Least finite objective of the rungs of some rows, and of ``best``."""
    values = [r.objective for row in rows for r in row.rungs if r.objective is not None and math.isfinite(r.objective)]
    if best is not None:
        values.append(best)
    return min(values, default=None)


def explore(climbs: list[Climb]) -> float | None:
    """Find the best objective and, for everybody, a rung that reaches it if there is one."""
    best: float | None = None
    for climb in climbs:
        best = climb.explore(best)
    while best is not None:
        before = best
        for climb in climbs:
            best = climb.catch_up(best)
        if best == before:
            break
    return best


def time_fits(climbs: list[Climb], chosen: list[Rung], repeats: int) -> list[Any]:
    """Repeat the chosen fits in turns, so that a busy moment of the machine is shared; return the last models."""
    times: list[list[float]] = [[] for _ in climbs]
    models: list[Any] = [rung.model for rung in chosen]
    counts = [0 if rung.model is not None else repeats_for(rung.seconds, repeats, Climb.LONG) for rung in chosen]
    for turn in range(max(counts, default=0)):
        for i, (climb, rung) in enumerate(zip(climbs, chosen)):
            if turn < counts[i]:
                models[i] = None
                seconds, models[i] = seconds_of(lambda climb=climb, rung=rung: climb.fit(rung.tolerance))
                times[i].append(seconds)
    for climb, rung, seconds in zip(climbs, chosen, times):
        climb.row.fit = Spread(tuple(seconds) if seconds else (rung.seconds,))
        climb.row.tolerance, climb.row.memory, climb.row.objective = rung.tolerance, rung.memory, rung.objective
    return models


def time_predict(climb: Climb, model: Any, task: Task, repeats: int) -> None:
    """Prediction time and scores of a fitted contender."""
    problem, row = climb.problem, climb.row
    if problem.X_test is not None:
        try:
            first, _ = seconds_of(lambda: climb.contender.predict(model, problem.X_test))
            count = repeats_for(first, repeats)
            row.predict = Spread(
                tuple(seconds_of(lambda: climb.contender.predict(model, problem.X_test))[0] for _ in range(count))
            )
        except Exception as error:
            row.note = row.note or f"predict failed: {type(error).__name__}: {error}".splitlines()[0][:200]
    outcome = Outcome(climb.contender, model, problem)
    for score in task.scores:
        try:
            row.scores[score.name] = float(score.function(problem, outcome))
        except Exception as error:
            row.note = row.note or f"{score.name} failed: {type(error).__name__}: {error}".splitlines()[0][:200]


def mark_equal_quality(rows: Iterable[Row], score: Score, margin: float) -> None:
    """Without a common objective, a row counts if its score is within the margin of the best one."""
    sign = 1.0 if score.higher_is_better else -1.0
    scored = [(row, sign * row.scores[score.name]) for row in rows if score.name in row.scores]
    best = max((value for _, value in scored), default=0.0)
    for row, value in scored:
        row.reached = value >= best - margin


def run_task(task: Task, entrants: Callable[..., Any], settings: Settings, ceilings: Ceilings | None) -> Result:
    """Run one task.

    ``entrants(problem, libraries)`` gives the contenders and the skipped libraries
    (:func:`benchmarks.libraries.enter`).
    """
    problem = task.build()
    contenders, skipped = entrants(problem, settings.libraries or task.only)
    climbs = [Climb(contender, problem, settings) for contender in contenders]
    best = explore(climbs)
    raced = [(climb, rung) for climb in climbs if (rung := climb.choose(best)) is not None]
    models = time_fits([climb for climb, _ in raced], [rung for _, rung in raced], settings.repeats)
    for i, (climb, rung) in enumerate(raced):
        if rung.objective is not None and best is not None:
            climb.row.suboptimality = suboptimality(rung.objective, best)
        time_predict(climb, models[i], task, settings.repeats)
        models[i] = None
        climb.release()
    if best is None:
        if task.scores:
            mark_equal_quality((climb.row for climb in climbs), task.scores[0], task.margin)
        else:
            for climb, _ in raced:
                climb.row.reached = True
    work = task.work(problem) if task.work else None
    floor = work.seconds(ceilings) if work and ceilings else None
    rows = [climb.row for climb in climbs]
    return Result(task, problem.shape, rows, skipped, best, floor, work.note if work else "")
