"""From a table to a model, its scores, and predictions for rows that it was not fitted to."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from hinge.errors import UserError
from hinge.learn.candidates import families, named
from hinge.learn.evidence import Evidence
from hinge.learn.examine import examine
from hinge.learn.refit import Fitting, Request
from hinge.learn.search import MAX_SEARCH_ROWS, MIN_SEARCH_ROWS, Result, Search, places
from hinge.tables.profile import TableProfile, profile
from hinge.tables.reading import read_table
from hinge.tables.target import check_task

REPORT_SHARES = (0.12, 0.3)  # of the time: the least and the most that are kept for the report
REPORT_FITS, REPORT_SECONDS = 6, 3.0  # what it takes: fits (to so many rows at most), and seconds besides
REPORT_ROWS = 30_000
MOST_AFTER_SEARCH = 0.5  # of the time
HELD_OUT, MAX_HELD_OUT = 0.2, 50_000
SMALL = 1000  # below this many rows every row is needed for learning: cross-validation scores the model


@dataclass
class Outcome:
    """What came of it."""

    request: Request
    profile: TableProfile
    search: Search
    chosen: Result
    pipeline: Any  # fitted to all rows
    evidence: Evidence
    card: dict[str, Any]
    test: np.ndarray  # positions of the held-out rows
    extra: dict[str, Any] = field(default_factory=dict)


class Monitor:
    """Watches a run; this one ignores everything. ``hinge fit`` draws what it is given."""

    def table(self, request: Request, profile: TableProfile) -> None:
        """The table was read."""

    @contextlib.contextmanager
    def search(self, task: str, seconds: float) -> Iterator[Callable[[list[Result]], None]]:
        """Around the search: gives the function that is called with the results so far."""
        yield lambda results: None

    def choice(self, results: list[Result], task: str, chosen: Result) -> None:
        """A model was chosen."""


def run(request: Request, monitor: Monitor | None = None) -> Outcome:
    """Read, profile, search, choose, refit, measure."""
    monitor = monitor or Monitor()
    began = request.began
    named(request.models)  # mistakes of the command line are said before the table is read
    check_task(request.task)
    table = read_table(request.file)
    if request.rows is not None and request.rows < table.frame.height:
        drawn = np.sort(np.random.default_rng(request.seed).permutation(table.frame.height)[: request.rows])
        table.frame, table.rows = table.frame[drawn], table.numbers()[drawn]
        table.notes.append(f"{request.rows} rows drawn at random, as asked for")
    seen = profile(table, request.target, request.task, drop=request.drop, keep=request.keep)
    del table
    classes, y = seen.classes, seen.y
    if len(y) < 20:
        raise UserError(f"{request.file}: {len(y)} rows with a target are too few to learn from; 20 are the least.")
    monitor.table(request, seen)
    train, test = hold_out(y, seen.task, request.seed)
    kinds = {c.name: c.kind for c in seen.columns}
    sample = _sample(y, train, seen.task, request)
    search = Search.over(seen.frame[sample], y[sample], classes, seen.task, kinds, request.seed, request.seconds)
    search.afterwards = lambda best: after_search(best, len(train), len(y), request.seconds)
    tried = families(request.models, seen.task, len(train))
    deadline = began + request.seconds
    seconds = max(deadline - time.perf_counter(), MOST_AFTER_SEARCH * request.seconds)
    with monitor.search(search.task, seconds) as show:
        search.run(tried, seconds, show)
    for_report = report_seconds(search.best(), len(train), request.seconds)
    for_fits = max(deadline - time.perf_counter() - for_report, REPORT_SHARES[0] * request.seconds)
    search.leave_out_slow(len(y), for_fits)
    chosen = search.choose()
    monitor.choice(search.results, search.task, chosen)
    whole = Fitting(seen.frame, y, search, chosen, sampled=len(sample) < len(train))
    trained, train, final = last_fits(whole, train, test, for_fits)
    left = max(deadline - time.perf_counter(), REPORT_SHARES[0] * request.seconds)
    evidence = examine(request, seen, search, chosen, whole, trained, final, train, test, sample, left)
    evidence.seconds = time.perf_counter() - began
    card = make_card(request, seen, evidence, classes)
    return Outcome(request, seen, search, chosen, final, evidence, card, test)


def report_seconds(best: Result | None, train: int, seconds: float) -> float:
    """The time to keep for the report."""
    needs = REPORT_SECONDS + (0.0 if best is None else REPORT_FITS * best.cost(min(train, REPORT_ROWS)))
    least, most = REPORT_SHARES
    return float(np.clip(needs, least * seconds, most * seconds))


def after_search(best: Result | None, train: int, rows: int, seconds: float) -> float:
    """The time to keep for the last fits, of the best model so far, and for the report."""
    fits = 0.0 if best is None else best.cost(train) + best.cost(rows)
    return min(fits + report_seconds(best, train, seconds), MOST_AFTER_SEARCH * seconds)


def last_fits(
    whole: Fitting, train: np.ndarray, test: np.ndarray, seconds: float
) -> tuple[Any, np.ndarray, Any]:  # fmt: skip
    """The model that is scored on held-out rows (None if there are none) with its rows, and the one fitted to all rows.

    If time is short the first makes do with fewer rows: its score is then that of a slightly worse model.
    """
    every = np.arange(len(whole.y))
    if not len(test):
        return None, train, whole.fit(every, seconds)
    began, share = time.perf_counter(), 0.5 * seconds
    cost = whole.chosen.cost(len(train))
    if cost > share:
        enough = int(np.clip(len(train) * share / cost, min(2 * len(whole.search.y), len(train)), len(train)))
        train = np.sort(np.random.default_rng(whole.search.seed + 3).permutation(train)[:enough])
    trained = whole.fit(train, share)
    return trained, train, whole.fit(every, max(seconds - (time.perf_counter() - began), 0.8 * share))


def hold_out(y: np.ndarray, task: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training rows, and rows nobody sees until the end (none if there are few rows)."""
    n = len(y)
    if n < SMALL:
        return np.arange(n), np.arange(0)
    place = places(y, task, int(np.ceil(n / min(HELD_OUT * n, MAX_HELD_OUT))), seed + 1)
    return np.flatnonzero(place != 0), np.flatnonzero(place == 0)


def _sample(y: np.ndarray, train: np.ndarray, task: str, request: Request) -> np.ndarray:
    """The rows of the search: all training rows, or as many as the time allows."""
    limit = int(np.clip(1000 * request.seconds, MIN_SEARCH_ROWS, MAX_SEARCH_ROWS))
    if len(train) <= limit:
        return train
    drawn = np.random.default_rng(request.seed + 2).permutation(train)[:limit]
    if task in ("binary", "multiclass") and len(np.unique(y[drawn])) < len(np.unique(y[train])):
        # A class that the draw missed is kept with what there is of it, up to ten rows.
        missing = np.setdiff1d(np.unique(y[train]), np.unique(y[drawn]))
        drawn = np.concatenate([drawn, *(train[y[train] == c][:10] for c in missing)])
    return np.sort(drawn)


def make_card(request: Request, seen: TableProfile, evidence: Evidence, classes: Any) -> dict[str, Any]:
    """What travels with the model: its inputs, its target, its scores."""

    def clean(value: Any) -> Any:
        return None if isinstance(value, float) and not np.isfinite(value) else value

    return {
        "target": seen.target,
        "task": seen.task,
        "classes": evidence.classes,
        "target_notation": None if seen.notation is None else asdict(seen.notation),
        "columns": evidence.columns,
        "left_out": seen.left_out,
        "notes": [[n.code, n.column, n.text] for n in evidence.notes],
        "metric": evidence.metric,
        "rows": evidence.rows,
        "data": request.file.name,
        "data_sha256": evidence.checksum,
        "chosen": evidence.chosen,
        "formula": evidence.formula,
        "objective": evidence.objective,
        "reason": evidence.reason,
        "board": [{k: clean(v) for k, v in asdict(row).items()} for row in evidence.board],
        "score": evidence.score,
        "score_error": evidence.error,
        "trivial": evidence.trivial,
        "explained": evidence.explained,
        "details": {k: clean(v) for k, v in evidence.details.items()},
        "held_out": evidence.held_out,
        "scored": evidence.scored,
        "advice": [list(said) for said in evidence.sentences],
        "facts": evidence.facts,
        "importances": [asdict(e) for e in evidence.importances],
        "seed": request.seed,
        "command": request.command,
        "versions": evidence.versions,
    }
