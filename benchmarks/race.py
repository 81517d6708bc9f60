"""The race itself: who enters, at which tolerance each is timed, and what is recorded.

A convex task is run to *equal objective*. Every contender climbs its ladder of tolerances, loosest first, once, and is
then timed at the loosest rung whose objective is within ``target`` (relative) of the best value anybody reached. A
contender that never gets there is reported with how far it got, and does not count as a peer to beat. A task without
a common objective is run at stated settings, and a contender counts if its first score is within the task's margin of
the best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.harness import Contender, Outcome, Problem, Score, Settings, Task
from benchmarks.judges import OBJECTIVES
from benchmarks.machine import Ceilings
from benchmarks.measure import Spread, peak_extra_memory, repeats_for, seconds_of
from benchmarks.results import Result, Row, Rung, loosest, suboptimality


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
    if task.target is not None:
        settings = replace(settings, target=task.target)
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
