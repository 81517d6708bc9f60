"""What a benchmark is made of: problems, contenders, scores, tasks.

Families write tasks, libraries write contenders, :mod:`benchmarks.race` brings them together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.machine import Work


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
    target : relative distance to the best objective that counts as equal, when not the run's.
    only : names of the libraries that take part; empty for all.
    draws : how many draws of the data (``build(draw=k)``) quality is judged on; see :mod:`benchmarks.draws`.
    """

    name: str
    setting: str
    build: Callable[..., Problem]
    scores: tuple[Score, ...] = ()
    margin: float = 0.0
    work: Callable[[Problem], Work] | None = None
    goal: float | None = None
    growth: tuple[str, int] | None = None
    target: float | None = None
    only: tuple[str, ...] = ()
    draws: int = 1


@dataclass(frozen=True)
class Settings:
    """How a run is made; recorded with its results."""

    repeats: int = 3
    target: float = 1e-6
    budget: float = 60.0
    libraries: tuple[str, ...] = ()
