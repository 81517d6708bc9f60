"""A task run on several draws of its data, for models whose quality depends on the draw more than on the library.

Trees choose splits greedily, so two correct libraries differ from draw to draw by more than any fixed margin worth
having. A contender counts as equal when its score, averaged over the draws, is behind the best one by no more than the
task's margin or the half width of the 95 % Student interval of their paired differences, whichever is more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.stats

from benchmarks.harness import Score, Settings, Task
from benchmarks.machine import Ceilings
from benchmarks.measure import Spread
from benchmarks.race import run_task
from benchmarks.results import Result, Row


def together(spreads: Sequence[Spread | None]) -> Spread | None:
    """All timings as one sample; none if any is missing."""
    if any(spread is None for spread in spreads):
        return None
    return Spread(tuple(time for spread in spreads if spread for time in spread.times))


def merged(rows: Sequence[Row]) -> Row:
    """One contender's rows on all draws as one."""
    first = rows[0]
    names = [name for name in first.scores if all(name in row.scores for row in rows)]
    return replace(
        first,
        fit=together([row.fit for row in rows]),
        predict=together([row.predict for row in rows]),
        memory=max((row.memory for row in rows if row.memory is not None), default=None),
        scores={name: float(np.mean([row.scores[name] for row in rows])) for name in names},
        reached=False,
        note=next((row.note for row in rows if row.note), ""),
    )


def mark_equal(merged_rows: Sequence[Row], draws: Sequence[Sequence[Row]], score: Score, margin: float) -> None:
    """Set ``reached`` on the merged rows; ``draws[i]`` are the single rows that row i was merged from."""
    sign = 1.0 if score.higher_is_better else -1.0
    scored = {i: sign * np.array([r.scores[score.name] for r in draws[i]])
              for i, row in enumerate(merged_rows) if score.name in row.scores}  # fmt: skip
    if not scored:
        return
    best = max(scored.values(), key=np.mean)
    for i, values in scored.items():
        behind = best - values
        k = len(behind)
        noise = scipy.stats.t.ppf(0.975, k - 1) * float(np.std(behind, ddof=1)) / math.sqrt(k) if k > 1 else 0.0
        merged_rows[i].reached = bool(behind.mean() <= max(margin, noise))


def run_draws(task: Task, entrants: Callable[..., Any], settings: Settings, ceilings: Ceilings | None) -> Result:
    """Run a task on ``task.draws`` draws of its data, each fit timed once a draw."""
    single = replace(settings, repeats=1)
    results = [
        run_task(replace(task, build=partial(task.build, draw=k), draws=1), entrants, single, ceilings)
        for k in range(task.draws)
    ]
    draws = list(zip(*(result.rows for result in results)))
    rows = [merged(group) for group in draws]
    mark_equal(rows, draws, task.scores[0], task.margin)
    return replace(results[0], task=task, rows=rows)
