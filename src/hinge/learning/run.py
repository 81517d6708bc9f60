"""From a table to a model, its scores, and predictions for rows that it was not fitted to."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np

from hinge.errors import UserError, argument
from hinge.learning.candidates import families, named
from hinge.learning.ensemble import add_ensemble
from hinge.learning.examine import Split, examine
from hinge.learning.intervals import calibration
from hinge.learning.model_inputs import TableModel
from hinge.learning.monitor import Monitor
from hinge.learning.outside import outside_score
from hinge.learning.refit import MOST_COPIES, Refit
from hinge.learning.request import Request
from hinge.learning.result import Learned
from hinge.learning.roles import Roles, apply_roles, read_roles, role_columns
from hinge.learning.scores import metric_name, positive_class
from hinge.learning.search import MAX_SEARCH_ROWS, MIN_SEARCH_ROWS, Search
from hinge.learning.trials import Trial
from hinge.onnx.models import obstacle
from hinge.report.evidence import Evidence
from hinge.settings import shows_progress
from hinge.tables.profile import TableProfile, profile
from hinge.tables.reading import as_table
from hinge.tables.target import check_task

LEAST_ROWS = 20
REPORT_SHARES = (0.12, 0.3)  # the smallest and the largest share of the time that is reserved for the report
REPORT_FITS, REPORT_SECONDS = 6, 3.0  # estimated cost of the report: fits, of REPORT_ROWS rows at most, plus seconds
REPORT_ROWS = 30_000
MOST_AFTER_SEARCH = 0.5  # the largest share of the time that is reserved for what follows the search
COPIES_SHARE = 0.1  # the share of the time that is reserved for further copies of boosted members
HALVING_WORK = 40_000  # rows × columns × outputs, per second of the budget, that all settings are tried on
FEWEST_ROWS, HALVING_SHARE = 2000, 0.4  # the fewest rows of the first round, and its share of the time
HELD_OUT, MAX_HELD_OUT = 0.2, 50_000
SMALL = 1000  # with fewer rows than this none is held out: the model is scored by cross-validation


def learn(
    table: Any,
    target: str | None = None,
    *,
    task: str = "auto",
    seconds: float = 60.0,
    models: str | Iterable[str] | None = None,
    drop: Iterable[str] = (),
    keep: Iterable[str] = (),
    rows: int | None = None,
    random_state: int = 0,
    progress: bool | None = None,
    simple: bool = False,
    weight: str | None = None,
    exposure: str | None = None,
    offset: str | None = None,
    group: str | None = None,
    time_column: str | None = None,
    test: Any = None,
    metric: str | None = None,
    positive: Any = None,
) -> Learned:
    """Learn to predict a column of a table: try families of models, choose one, score it on held-out rows.

    Columns are typed and prepared, every family is cross-validated on the same folds, the best models are averaged with weights
    that are chosen out of fold, and the choice is fitted to all rows and diagnosed. ``hinge fit`` is this function.

    Parameters
    ----------
    table : path or data frame
        CSV, TSV, Parquet, Arrow, JSON lines or LIBSVM text, also gzipped; pandas, polars or Arrow in memory.
    target : str, optional
        The column to predict; may be left out where the file names one.
    task : {"auto", "binary", "multiclass", "real", "count"}
        What the target is.
    seconds : float
        Time for everything, about.
    models : str or list of str, optional
        Families to try: linear, sparse, ratio, tree, additive, boosting, forest, extra, kernel, network. All
        that suit the table by default.
    drop : list of str
        Columns to leave out.
    keep : list of str
        Columns to use whatever the profile makes of them.
    rows : int, optional
        Use this many rows, drawn at random.
    random_state : int
        The seed of everything random.
    simple : bool
        Choose one model, the simplest within one standard error of the best. By default a weighted mean of several (an ensemble),
        unless a single one is better by more than one standard error, or a linear or additive model or a tree is within one
        standard error and a fifth of a per cent of the best.
    weight : str, optional
        The column of the weights of rows, in fits and in scores.
    exposure : str, optional
        For counts: the column of exposures (years insured, hours watched). The model predicts the count per unit, times the
        exposure where a table has it.
    offset : str, optional
        A column that is added to the prediction: of the logarithm of the mean for counts, of the mean for real numbers.
    group : str, optional
        A column of groups (patients, shops): no group is on both sides of a split.
    time_column : str, optional
        A column of times: rows are held out, and folds are made, by time; the score is that of the last fifth.
    test : path or data frame, optional
        Another table with the target: the model is scored on it as well, and columns that differ from training are named.
    metric : str, optional
        What models are chosen and scored by: "log_loss", "brier", "accuracy", "balanced_accuracy" for classes, "auc" for two,
        "rmse", "mae" for numbers, "poisson_deviance" for counts. The first that suits the target by default. Every one is
        reported as a loss: the error rate for accuracy, 1 − AUC for the area.
    positive : optional
        Which of two classes precision, recall, lift and thresholds are of; the last in their order by default.
    progress : bool, optional
        Print what was read, and the comparison of models while they are tried. Needs the package rich.
        None: as :func:`hinge.set_config` has it.

    Returns
    -------
    Learned
        ``.model`` predicts raw tables; ``.leaderboard``, ``.findings``, ``.report(path)`` and ``.save(path)``.

    Examples
    --------
    >>> import hinge as hg
    >>> found = hg.learn("heart", models="linear", seconds=5)
    >>> found.leaderboard["name"].to_list()
    ['baseline', 'linear']
    >>> found.score < found.evidence.trivial
    True
    """
    listed = models if models is None or isinstance(models, str) else ",".join(models)
    if not seconds > 0:
        raise ValueError(f"seconds must be positive, got {seconds}.")
    request = Request(
        table, target, task, seconds, listed, random_state, tuple(drop), tuple(keep), rows, simple=simple, weight=weight,
        exposure=exposure, offset=offset, group=group, time_column=time_column, test=test,
        metric=metric, positive=None if positive is None else str(positive),
    )  # fmt: skip
    return run(request, _monitor() if shows_progress(progress) else None)


def _monitor() -> Monitor:
    try:
        from rich.console import Console
    except ImportError:
        raise ImportError("progress=True needs the package rich: pip install 'hinge-learn[cli]'.") from None
    from hinge.learning.console import ConsoleMonitor

    return ConsoleMonitor(Console(highlight=False, soft_wrap=True))


def run(request: Request, monitor: Monitor | None = None) -> Learned:
    """Read, profile, search, choose, refit, measure."""
    monitor = monitor or Monitor()
    named(request.models)  # check the arguments before reading the table
    check_task(request.task)
    metric_name(request.metric)
    table = as_table(request.source)
    if request.rows is not None and request.rows < table.frame.height:
        drawn = np.sort(np.random.default_rng(request.seed).permutation(table.frame.height)[: request.rows])
        table.frame, table.rows = table.frame[drawn], table.numbers()[drawn]
        table.notes.append(f"{request.rows} rows drawn at random")
    given, numbers = read_roles(request, table.frame), table.numbers()
    used = role_columns(request)
    task = "count" if request.exposure is not None and request.task == "auto" else request.task
    data = profile(table, request.target, task, drop=(*request.drop, *used), keep=request.keep)
    del table
    kept = np.searchsorted(numbers, data.rows)
    roles = apply_roles(request, data, {role: values[kept] for role, values in given.items()})
    if len(data.y) < LEAST_ROWS:
        raise UserError(
            f"{request.path}: {len(data.y)} rows with a target are too few to learn from; {LEAST_ROWS} are the least."
        )
    request.metric = None if request.metric is None else metric_name(request.metric, data.task)
    if request.metric == "auc" and roles.factor is not None:
        raise UserError(
            f"{argument('metric', 'auc')}: ranks have no weights; leave out {argument('weight')} or choose another."
        )
    positive_class(request.positive, data.classes)
    monitor.table(request, data)
    train, test = hold_out(data.y, data.task, request.seed, roles)
    sample = _sample(data.y, train, data.task, request)
    search, sample, left = _search(request, data, roles, train, sample, monitor)
    chosen = search.choose()
    monitor.choice(search.results, search.task, chosen)
    refit = Refit(data.frame, data.y, search, chosen, sampled=len(sample) < len(train), weight=roles.factor)
    refit.afford([len(train), len(data.y)] if len(test) else [len(data.y)], 0.8 * left)
    trained, train, final = last_fits(refit, train, test, left)
    left = max(request.began + request.seconds - time.perf_counter(), REPORT_SHARES[0] * request.seconds)
    evidence = examine(request, data, refit, Split(train, test, sample), trained, final, left, roles)
    evidence.seconds = time.perf_counter() - request.began
    model = TableModel(final, make_card(request, data, evidence, final))
    if request.test is not None:
        model.card["test"], note = outside_score(model, data, request.test, request.seed)
        evidence.notes.append(note)
        model.card["notes"].append([note.code, note.column, note.text])
    return Learned(request, data, search, chosen, model, evidence, test)


def _search(
    request: Request, data: TableProfile, roles: Roles, train: np.ndarray, sample: np.ndarray, monitor: Monitor
) -> tuple[Search, np.ndarray, float]:
    """Run the search; returns it, its rows, and the seconds left for the final fits."""

    def over(rows: np.ndarray) -> Search:
        search = Search.over(
            data.frame[rows], data.y[rows], data.classes, data.task, kinds, request.seed, request.seconds, roles[rows]
        )
        search.simple, search.metric = request.simple, request.metric
        search.afterwards = lambda best: after_search(
            best, len(train), len(data.y), request.seconds, 1 if request.simple else 2
        )
        return search

    kinds = {column.name: column.kind for column in data.columns}
    deadline = request.began + request.seconds
    seconds = max(deadline - time.perf_counter(), MOST_AFTER_SEARCH * request.seconds)
    few = few_rows(data, sample, request)
    search = over(few)
    tried = families(request.models, data.task, len(train), bool(search.texts))
    with monitor.search(search.task, seconds) as show:
        if len(few) == len(sample):
            search.run(tried, seconds, show)
        else:
            search.afterwards = lambda best: 0.0
            search.run(tried, HALVING_SHARE * seconds, show)
            whole = over(sample)
            whole.run_best(search, max(deadline - time.perf_counter(), HALVING_SHARE * seconds), show)
            if sum(r.state == "done" for r in whole.results) > 1:
                search, few = whole, sample
    for_report = report_seconds(search.best(), len(train), request.seconds)
    left = max(deadline - time.perf_counter() - for_report, REPORT_SHARES[0] * request.seconds)
    search.leave_out_slow(len(data.y), left)
    if not request.simple:
        add_ensemble(search, len(train), len(data.y), left)
    return search, few, left


def few_rows(data: TableProfile, sample: np.ndarray, request: Request) -> np.ndarray:
    """The rows that all families and settings are tried on: all of the sample, or few of them if that is too much work.

    Then the best settings alone are tried on the sample (successive halving, Jamieson & Talwalkar 2016, in two rounds).
    """
    outputs = len(data.classes) if data.task == "multiclass" and data.classes is not None else 1
    most = int(max(HALVING_WORK * request.seconds / (len(data.columns) * outputs), FEWEST_ROWS))
    if 2 * most > len(sample) or any(column.kind == "text" for column in data.columns):
        return sample
    order = np.random.default_rng(request.seed + 4).permutation(sample)
    few = order[:most]
    if data.classes is not None:  # ten rows of every class at least, where there are so many
        few = np.union1d(few, np.concatenate([order[data.y[order] == c][:10] for c in np.unique(data.y[sample])]))
    return np.sort(few)


def report_seconds(best: Trial | None, train: int, seconds: float) -> float:
    """The seconds to reserve for the report."""
    needs = REPORT_SECONDS + (0.0 if best is None else REPORT_FITS * best.cost(min(train, REPORT_ROWS)))
    least, most = REPORT_SHARES
    return float(np.clip(needs, least * seconds, most * seconds))


def after_search(best: Trial | None, train: int, rows: int, seconds: float, members: int = 1) -> float:
    """The seconds to reserve for the final fits (of models like the best so far) and for the report."""
    one = 0.0 if best is None else best.cost(train) + best.cost(rows)
    fits = members * one
    if members > 1:  # copies of boosted members, where they are cheap
        fits += min(MOST_COPIES * members * one, COPIES_SHARE * seconds)
    return min(fits + report_seconds(best, train, seconds), MOST_AFTER_SEARCH * seconds)


def last_fits(
    refit: Refit, train: np.ndarray, test: np.ndarray, seconds: float
) -> tuple[Any, np.ndarray, Any]:  # fmt: skip
    """The model that is scored on held-out rows (None if there are none) with its rows, and the one fitted to all rows.

    If time is short the first is fitted to fewer rows, and its score is then that of a slightly worse model.
    """
    every = np.arange(len(refit.y))
    if not len(test):
        return None, train, refit.fit(every, seconds)
    began, share = time.perf_counter(), 0.5 * seconds
    cost = refit.chosen.cost(len(train))
    if cost > share:
        enough = int(np.clip(len(train) * share / cost, min(2 * len(refit.search.y), len(train)), len(train)))
        train = np.sort(np.random.default_rng(refit.search.seed + 3).permutation(train)[:enough])
    trained = refit.fit(train, share)
    return trained, train, refit.fit(every, max(seconds - (time.perf_counter() - began), 0.8 * share))


def hold_out(y: np.ndarray, task: str, seed: int, roles: Roles | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Training rows, and rows held out until the end (none if there are few rows): the last ones where rows have an order."""
    n = len(y)
    if n < SMALL:
        return np.arange(n), np.arange(0)
    k = int(np.ceil(n / min(HELD_OUT * n, MAX_HELD_OUT)))
    roles = roles or Roles()
    held = k - 1 if roles.order is not None else 0
    fold = roles.folds(y, k, task in ("binary", "multiclass"), seed + 1)
    return np.flatnonzero(fold != held), np.flatnonzero(fold == held)


def _sample(y: np.ndarray, train: np.ndarray, task: str, request: Request) -> np.ndarray:
    """The rows of the search: all training rows, or as many as the time allows."""
    limit = int(np.clip(1000 * request.seconds, MIN_SEARCH_ROWS, MAX_SEARCH_ROWS))
    if len(train) <= limit:
        return train
    drawn = np.random.default_rng(request.seed + 2).permutation(train)[:limit]
    if task in ("binary", "multiclass") and len(np.unique(y[drawn])) < len(np.unique(y[train])):
        # Add up to ten rows of every class that is missing from the sample.
        missing = np.setdiff1d(np.unique(y[train]), np.unique(y[drawn]))
        drawn = np.concatenate([drawn, *(train[y[train] == c][:10] for c in missing)])
    return np.sort(drawn)


def make_card(request: Request, data: TableProfile, evidence: Evidence, final: Any) -> dict[str, Any]:
    """The metadata saved with the model: its inputs, its target, its scores."""

    def clean(value: Any) -> Any:
        return None if isinstance(value, float) and not np.isfinite(value) else value

    return {
        "target": data.target,
        "task": data.task,
        "classes": evidence.classes,
        "exposure": request.exposure,
        "offset": request.offset,
        "target_notation": None if data.notation is None else asdict(data.notation),
        "columns": evidence.columns,
        "left_out": data.left_out,
        "notes": [[n.code, n.column, n.text] for n in evidence.notes],
        "metric": evidence.metric,
        "metric_name": request.metric,
        "positive": evidence.positive,
        "rows": evidence.rows,
        "data": request.path.name,
        "data_sha256": evidence.checksum,
        "chosen": evidence.chosen,
        "no_onnx": obstacle(final),
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
        "advice": [list(sentence) for sentence in evidence.sentences],
        "facts": evidence.facts,
        "conformal": calibration(evidence),
        "importances": [asdict(e) for e in evidence.importances],
        "words": [asdict(e) for e in evidence.words],
        "seed": request.seed,
        "command": request.command,
        "versions": evidence.versions,
    }
