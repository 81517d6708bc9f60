"""Choosing parameters by cross-validation, with the work that candidates have in common done once."""

from __future__ import annotations

import html
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import LeaveOneOut, ParameterGrid, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from hinge._native import check_indices, num_threads
from hinge.config import shows_html, shows_progress
from hinge.models.base import check_weights
from hinge.select.choice import choose_candidate
from hinge.select.grids import complexity_of, path_grid
from hinge.select.precomputed import PrecomputedRegressor
from hinge.select.progress import Journal, Progress, fingerprint
from hinge.select.sharing import Fold, alike, run_shared, sharing_for

RULES = {"min": "best", "best": "best", "1se": "one-standard-error", "one-standard-error": "one-standard-error"}
SMALL_BYTES = 2**25  # every fold at work has its own copy of its rows
SHOWN = 10  # candidates in a notebook
FEWEST_ROWS = 30  # a rung of successive halving is trained on no fewer


@dataclass(frozen=True)
class TuneResult:
    """What :func:`tune` found.

    Attributes
    ----------
    candidates : list of dict
        The parameters tried.
    scores : array of shape (candidates, folds)
        Larger is better; NaN where successive halving gave up.
    best_index, simplest_index : int
        The candidate of the best mean score, and the simplest within one standard error of it.
    index : int
        The one chosen by the rule.
    mean, standard_error : arrays
        Over folds.
    model : estimator or None
        The learner with the chosen parameters, fitted on all rows.
    rows : array
        The share of the training rows every candidate was last tried on: 1 without halving.
    seconds : float
        How long the search took.
    """

    candidates: list[dict[str, Any]]
    scores: np.ndarray
    mean: np.ndarray
    standard_error: np.ndarray
    best_index: int
    simplest_index: int
    index: int
    model: Any
    rows: np.ndarray
    seconds: float

    @property
    def params(self) -> dict[str, Any]:
        """The chosen parameters."""
        return self.candidates[self.index]

    @property
    def best_(self) -> dict[str, Any]:
        """The parameters of the best mean score, whatever the rule."""
        return self.candidates[self.best_index]

    @property
    def simplest_(self) -> dict[str, Any]:
        """The simplest parameters within one standard error of the best."""
        return self.candidates[self.simplest_index]

    @property
    def score(self) -> float:
        """The mean score of the chosen parameters."""
        return float(self.mean[self.index])

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row per candidate, best first: parameters, mean score, standard error, rank."""
        order = np.argsort(np.where(np.isnan(self.mean), np.inf, -self.mean), kind="stable")
        return [
            {**self.candidates[k], "mean_score": float(self.mean[k]), "standard_error": float(self.standard_error[k]),
             "rank": rank, "rows": float(self.rows[k])}
            for rank, k in enumerate(order, start=1)
        ]  # fmt: skip

    def predict(self, X: Any) -> np.ndarray:
        """Predictions of the chosen model."""
        if self.model is None:
            raise AttributeError("tune(..., refit=False) keeps no model to predict with.")
        return self.model.predict(X)

    def __str__(self) -> str:
        return (
            f"{self.params}: score {self.mean[self.index]:.6g} ± {self.standard_error[self.index]:.2g} over "
            f"{self.scores.shape[1]} folds; best of {len(self.candidates)} is {self.mean[self.best_index]:.6g}"
        )

    def _repr_html_(self) -> str | None:
        if not shows_html():
            return None
        rows = self.table[:SHOWN]
        names = [name for name in rows[0] if name not in ("rank", "rows")]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        cells = "".join(f"<tr>{''.join(f'<td>{_cell(row[name])}</td>' for name in names)}</tr>" for row in rows)
        return f"<p>{html.escape(str(self))}</p><table><tr>{head}</tr>{cells}</table>"


def _cell(value: Any) -> str:
    """A parameter or a score in a table."""
    return f"{value:.6g}" if isinstance(value, float) else html.escape(repr(value))


def tune(
    learner: BaseEstimator,
    X: Any,
    y: Any,
    grid: Any = 30,
    *,
    cv: Any = 5,
    rule: str = "min",
    scoring: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    search: str = "grid",
    factor: int = 3,
    refit: bool = True,
    complexity: Callable[[dict[str, Any]], float] | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    state: Any = None,
    random_state: int = 0,
) -> TuneResult:
    """Choose a learner's parameters by cross-validation.

    Scores are those of fitting every candidate on every fold; the work is not: paths are warm-started, factorisations,
    kernel matrices, bins and long boosting runs are shared (see :mod:`hinge.select.sharing`), also behind the
    preparing steps of a pipeline.

    Parameters
    ----------
    learner : estimator
        Any learner; those of hinge share work.
    X, y : data
        The table and its targets.
    grid : dict, list of dicts, or int
        Candidates as for scikit-learn's ``ParameterGrid``; or how many strengths to try along the learner's own path
        (``alpha``, ``C`` or ``max_iter``).
    cv : int, splitter, iterable or "loo"
        Folds; "loo" leaves one out, exactly and without refitting for ridge and kernel ridge.
    rule : {"min", "1se"}
        The best mean score, or the simplest candidate within one standard error of it.
    scoring : str or callable, optional
        A scikit-learn scorer; the learner's own ``score`` if absent.
    sample_weight : array, optional
        Weights for fitting and for scores.
    groups : array, optional
        For splitters that keep groups together.
    search : {"grid", "halving"}
        "halving" tries all candidates on few rows and only the best 1/factor of them on ``factor`` times as many.
    factor : int
        See ``search``; 2 or more.
    refit : bool
        Fit the chosen candidate on all rows.
    complexity : function, optional
        From parameters to a number, smaller being simpler; by default what is known of penalties, C, depth, rounds …
    n_jobs : int, optional
        Folds at a time (threads). By default one, with the threads of the core inside it; on small tables, whose fits
        cannot use several threads, as many folds and settings at a time as there are threads.
    progress : bool, optional
        Show a bar; None: as :func:`hinge.set_config` has it.
    state : path, optional
        A file that keeps the scores found so far: an interrupted search with the same data goes on where it ended.
    random_state : int
        The seed of the rows drawn by halving.

    Returns
    -------
    TuneResult

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 10))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=80)
    >>> found = hg.tune(hg.Lasso(), X, y, {"alpha": [1e-3, 1e-1, 10.0]})
    >>> found.params
    {'alpha': 0.1}
    >>> int(np.argmax(np.abs(found.model.coef_)))
    0
    """
    began = time.perf_counter()
    check_indices(X)
    if rule not in RULES:
        raise ValueError(f"rule must be 'min' or '1se', got {rule!r}.")
    if search not in ("grid", "halving"):
        raise ValueError(f"search must be 'grid' or 'halving', got {search!r}.")
    if isinstance(grid, int | np.integer):
        grid = path_grid(learner, X, y, int(grid))
    candidates = [dict(c) for c in ParameterGrid(grid)]
    if not candidates:
        raise ValueError("grid is empty: give at least one value for every parameter.")
    weights = None if sample_weight is None else check_weights(sample_weight, np.empty((_num_samples(X), 1)))
    scorer = check_scoring(learner, scoring=scoring)
    task = _Task(learner, X, np.asarray(y), weights, candidates, scorer, scoring is None, factor, random_state)
    splits = _splits(cv, X, y, groups, learner)
    alone = isinstance(cv, (str, LeaveOneOut))
    shortcut = task.leave_one_out() if alone and search == "grid" else None
    rows = np.ones(len(candidates))
    if shortcut is not None:
        scores = shortcut
    else:
        mark = fingerprint(learner, X, y, weights, candidates, splits, scoring) if state is not None else ""
        journal = Journal(state, mark)
        with Progress(shows_progress(progress), len(splits) * len(candidates)) as bar:
            if search == "grid":
                scores = task.fill(range(len(candidates)), splits, 1.0, journal, bar, n_jobs)
            else:
                scores, rows = task.halve(splits, journal, bar, n_jobs)
    shares = np.array([len(test) for _, test in splits], dtype=float) if shortcut is None else None
    return _choose(task, scores, shares, rows, RULES[rule], complexity, refit, began)


def _splits(cv: Any, X: Any, y: Any, groups: Any, learner: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    if isinstance(cv, str):
        if cv != "loo":
            raise ValueError(f"cv must be a number of folds, a splitter, or 'loo'; got {cv!r}.")
        cv = LeaveOneOut()
    splitter = check_cv(cv, y, classifier=is_classifier(learner))
    return [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(X, y, groups)]


def _choose(
    task: _Task,
    scores: np.ndarray,
    shares: Any,
    rows: np.ndarray,
    rule: str,
    complexity: Any,
    refit: bool,
    began: float,
) -> TuneResult:
    tried = np.flatnonzero(rows == rows.max())
    if np.any(np.isnan(scores[tried])):
        raise ValueError("scoring gave NaN for a candidate: it cannot be compared with the others.")
    # Folds count alike, as in scikit-learn's GridSearchCV.
    sizes = [complexity_of(c, task.candidates) if complexity is None else complexity(c) for c in task.candidates]
    choice = choose_candidate(-scores[tried], np.array(sizes)[tried])
    mean, error = scores.mean(axis=1), np.full(len(scores), np.nan)
    error[tried] = choice.standard_error
    index = int(tried[choice.pick(rule)])
    model = None
    if refit:
        options = {} if task.weights is None else _routed(task.learner, task.weights)
        model = clone(task.learner).set_params(**task.candidates[index]).fit(task.X, task.y, **options)
    return TuneResult(
        task.candidates, scores, mean, error, int(tried[choice.best]), int(tried[choice.simplest]), index, model, rows,
        time.perf_counter() - began,
    )  # fmt: skip


def _routed(learner: Any, weights: np.ndarray) -> dict[str, Any]:
    """Weights under the name that the learner's ``fit`` takes them: those of a pipeline belong to its last step."""
    if isinstance(learner, Pipeline):
        return {f"{learner.steps[-1][0]}__sample_weight": weights}
    return {"sample_weight": weights}


@dataclass
class _Task:
    """The data, the candidates and how to score them."""

    learner: Any
    X: Any
    y: np.ndarray
    weights: np.ndarray | None
    candidates: list[dict[str, Any]]
    scorer: Any
    own_score: bool  # whether the scorer is the learner's own ``score``
    factor: int
    seed: int

    def __post_init__(self) -> None:
        self.memory: dict[Any, Any] = {}
        self.lock = threading.Lock()
        self.stopped = False

    def fill(
        self, which: Iterable[int], splits: Any, share: float, journal: Journal, bar: Progress, n_jobs: int | None
    ) -> np.ndarray:
        """Scores of these candidates on all folds; the others are NaN."""
        which = list(which)
        scores = np.full((len(self.candidates), len(splits)), np.nan)

        def one(f: int, members: list[int]) -> None:
            known = journal.known(share, f)
            missing = [k for k in members if k not in known]
            for k in members:
                scores[k, f] = known.get(k, np.nan)
            bar.advance(len(members) - len(missing))
            found = {}
            train, test = splits[f]
            for k, score in self.score_fold(missing, train, test, share) if missing else ():
                scores[k, f] = found[k] = score
                bar.advance(1)
                if self.stopped:
                    return
            journal.write(share, f, found)

        parts = [which]
        if n_jobs is None and self.spreads():
            n_jobs = num_threads()
            parts = [[which[k] for k in group] for group in alike(self.learner, [self.candidates[k] for k in which])]
        # Fits on folds are not held to their tolerance: only the final fit warns. Filters belong to the process: set
        # here, before any thread starts.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.run_all(one, [(f, part) for f in range(len(splits)) for part in parts], n_jobs or 1)
        return scores

    def run_all(self, one: Callable[..., None], tasks: list[Any], n_jobs: int) -> None:
        """Several at a time. After an error or Ctrl-C those under way end with the fit they are at.

        They are waited for: a thread that is inside the core when the process ends would bring it down. No thread starts
        work before the pool knows them all: it would not wait for one that Ctrl-C kept it from noting.
        """
        if n_jobs == 1:
            for task in tasks:
                one(*task)
            return
        go = threading.Event()
        with ThreadPoolExecutor(joblib.effective_n_jobs(n_jobs), initializer=go.wait) as pool:
            try:
                futures = [pool.submit(one, *task) for task in tasks]
                go.set()
                for future in futures:
                    future.result()
            except BaseException:
                self.stopped = True
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            finally:
                go.set()

    def spreads(self) -> bool:
        """Whether fits are too small to use several threads each, so that several are better run at a time."""
        if isinstance(self.learner, Pipeline) or not sharing_for(self.learner).serial:
            return False
        return getattr(self.X, "nbytes", SMALL_BYTES + 1) <= SMALL_BYTES

    def score_fold(self, which: list[int], train: np.ndarray, test: np.ndarray, share: float) -> Any:
        """(candidate, score) on one fold, in the order they are found."""
        if share < 1.0:
            drawn = np.random.default_rng([self.seed, int(test[0])]).permutation(len(train))
            train = np.sort(train[drawn[: max(int(share * len(train)), min(FEWEST_ROWS, len(train)))]])
        X_test, y_test = _safe_indexing(self.X, test), self.y[test]
        options = {} if self.weights is None else {"sample_weight": self.weights[test]}
        for k, model, X_seen in self._models(which, train, test, X_test):
            yield k, float(self.scorer(model, X_seen, y_test, **options))

    def _models(self, which: list[int], train: np.ndarray, test: np.ndarray, X_test: Any) -> Any:
        y, weight = self.y[train], None if self.weights is None else self.weights[train]
        if not isinstance(self.learner, Pipeline) or len(self.learner.steps) < 2:
            full = self.X if hasattr(self.X, "shape") else None
            fold = Fold(_safe_indexing(self.X, train), y, weight, X_test, full, train, test, self.memory, self.lock)
            for position, model in run_shared(self.learner, [self.candidates[k] for k in which], fold):
                yield which[position], model, X_test
            return
        # A pipeline: prepare once for all candidates that prepare alike, then share in the last step.
        last = self.learner.steps[-1][0]
        groups: dict[str, list[int]] = {}
        for k in which:
            before = {n: v for n, v in sorted(self.candidates[k].items()) if not n.startswith(f"{last}__")}
            groups.setdefault(repr(before), []).append(k)
        for members in groups.values():
            before = {n: v for n, v in self.candidates[members[0]].items() if not n.startswith(f"{last}__")}
            pipeline = clone(self.learner).set_params(**before)
            prepare = pipeline[:-1]
            Z = prepare.fit_transform(_safe_indexing(self.X, train), y)
            Z_test = prepare.transform(X_test)
            values = [
                {n.removeprefix(f"{last}__"): v for n, v in self.candidates[k].items() if n.startswith(f"{last}__")}
                for k in members
            ]
            fold = Fold(Z, y, weight, Z_test)
            for position, model in run_shared(pipeline.steps[-1][1], values, fold):
                yield members[position], model, Z_test

    def halve(self, splits: Any, journal: Journal, bar: Progress, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Successive halving: all candidates on few rows, the best 1/factor of them on factor times as many, …"""
        if self.factor < 2:
            raise ValueError(f"factor must be at least 2, got {self.factor!r}.")
        n = min(len(train) for train, _ in splits)
        rungs = 1
        while self.factor**rungs < len(self.candidates) * 1.0001 and n / self.factor**rungs >= FEWEST_ROWS:
            rungs += 1
        left = np.arange(len(self.candidates))
        scores = np.full((len(self.candidates), len(splits)), np.nan)
        rows = np.zeros(len(self.candidates))
        for rung in range(rungs):
            share = float(self.factor) ** (rung + 1 - rungs)
            found = self.fill(left, splits, share, journal, bar, n_jobs)
            scores[left], rows[left] = found[left], share
            if rung + 1 < rungs:
                order = np.argsort(-found[left].mean(axis=1), kind="stable")
                left = np.sort(left[order[: max(-(-len(left) // self.factor), 1)]])
        return scores, rows

    def leave_one_out(self) -> np.ndarray | None:
        """Scores of left-out predictions from an exact shortcut; None where there is none."""
        if isinstance(self.learner, Pipeline):
            return None
        sharing = sharing_for(self.learner)
        if any(set(c) - set(sharing.varies) for c in self.candidates):
            return None
        if not sharing.suits(self.learner, self.candidates):
            return None
        fold = Fold(self.X, self.y, self.weights, self.X)
        predictions = sharing.leave_one_out(self.learner, self.candidates, fold)
        if predictions is None:
            return None
        if self.own_score:  # R² of one example does not exist: squared errors, example by example
            return -((self.y - predictions) ** 2)
        values = [[self.scorer(PrecomputedRegressor(p[[i]]), np.empty((1, 1)), self.y[[i]]) for i in range(len(p))]
                  for p in predictions]  # fmt: skip
        return np.array(values)


@dataclass(frozen=True)
class NestedResult:
    """Scores of a tuned learner on outer folds that its tuning did not see.

    Attributes
    ----------
    scores : array
        One per outer fold.
    params : list of dict
        What was chosen in each.
    """

    scores: np.ndarray
    params: list[dict[str, Any]]

    @property
    def mean(self) -> float:
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        return float(self.scores.std(ddof=1) / np.sqrt(len(self.scores)))

    def __str__(self) -> str:
        return f"{self.mean:.6g} ± {self.standard_error:.2g} over {len(self.scores)} outer folds"


def nested_cv(
    learner: BaseEstimator, X: Any, y: Any, grid: Any = 30, *, outer: Any = 5, scoring: Any = None,
    sample_weight: Any = None, groups: Any = None, **options: Any,
) -> NestedResult:  # fmt: skip
    """The score of *tuning and fitting* on new data: every outer fold is judged by a learner tuned on the others.

    The best score of :func:`tune` itself is too good, because the same folds chose and judged.

    Parameters
    ----------
    learner, X, y, grid, scoring, sample_weight
        As for :func:`tune`.
    outer : int, splitter or iterable
        The outer folds.
    groups : array, optional
        For outer splitters that keep groups together.
    **options
        Further arguments of :func:`tune`, such as ``cv`` for the inner folds and ``rule``.

    Returns
    -------
    NestedResult

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5))
    >>> result = hg.nested_cv(hg.Ridge(), X, X[:, 0], {"alpha": [1e-3, 1e3]}, outer=3)
    >>> bool(result.mean > 0.99), result.params[0]
    (True, {'alpha': 0.001})
    """
    check_indices(X)
    y = np.asarray(y)
    scorer = check_scoring(learner, scoring=scoring)
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    scores, params = [], []
    for train, test in _splits(outer, X, y, groups, learner):
        inner = None if weights is None else weights[train]
        found = tune(learner, _safe_indexing(X, train), y[train], grid, scoring=scoring, sample_weight=inner, **options)
        judged = {} if weights is None else {"sample_weight": weights[test]}
        scores.append(float(scorer(found.model, _safe_indexing(X, test), y[test], **judged)))
        params.append(found.params)
    return NestedResult(np.array(scores), params)
