"""Grid search and successive halving: scores of candidates on folds, several folds in parallel."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import LeaveOneOut, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from hinge._native import num_threads
from hinge.select.precomputed import PrecomputedRegressor
from hinge.select.progress import Journal, Progress
from hinge.select.sharing import alike, run_shared, sharing_for
from hinge.select.sharing_base import Fold

SMALL_BYTES = 2**25  # larger tables are not run in parallel, since every running fold copies its rows
FEWEST_ROWS = 30  # the least training rows of a rung of successive halving


def folds_of(cv: Any, X: Any, y: Any, groups: Any, learner: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """The (train, test) rows of every fold, for a number of folds, a splitter or "loo"."""
    if isinstance(cv, str):
        if cv != "loo":
            raise ValueError(f"cv must be a number of folds, a splitter, or 'loo'; got {cv!r}.")
        cv = LeaveOneOut()
    splitter = check_cv(cv, y, classifier=is_classifier(learner))
    return [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(X, y, groups)]


@dataclass
class Search:
    """The data, the candidates and the scorer."""

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
        # Only the final fit warns if it misses its tolerance. Warning filters are global to the process, so they are set
        # here, before any thread starts.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.run_all(one, [(f, part) for f in range(len(splits)) for part in parts], n_jobs or 1)
        return scores

    def run_all(self, one: Callable[..., None], tasks: list[Any], n_jobs: int) -> None:
        """Run several folds in parallel. After an error or Ctrl-C the running folds stop at the end of their current fit.

        The pool waits for them, since a thread inside the core would crash a process that exits. No thread starts work before
        all are registered with the pool, since it would not wait for one whose registration Ctrl-C interrupted.
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
        """Whether fits are too small to use several threads each, so that folds should run in parallel."""
        if isinstance(self.learner, Pipeline) or not sharing_for(self.learner).serial:
            return False
        return getattr(self.X, "nbytes", SMALL_BYTES + 1) <= SMALL_BYTES

    def score_fold(self, which: list[int], train: np.ndarray, test: np.ndarray, share: float) -> Any:
        """Yield (candidate, score) on one fold, in the order of the fits."""
        if share < 1.0:
            drawn = np.random.default_rng([self.seed, int(test[0])]).permutation(len(train))
            train = np.sort(train[drawn[: max(int(share * len(train)), min(FEWEST_ROWS, len(train)))]])
        X_test, y_test = _safe_indexing(self.X, test), self.y[test]
        options = {} if self.weights is None else {"sample_weight": self.weights[test]}
        for k, model, X_scored in self._models(which, train, test, X_test):
            yield k, float(self.scorer(model, X_scored, y_test, **options))

    def _models(self, which: list[int], train: np.ndarray, test: np.ndarray, X_test: Any) -> Any:
        y, weight = self.y[train], None if self.weights is None else self.weights[train]
        if not isinstance(self.learner, Pipeline) or len(self.learner.steps) < 2:
            full = self.X if hasattr(self.X, "shape") else None
            fold = Fold(_safe_indexing(self.X, train), y, weight, X_test, full, train, test, self.memory, self.lock)
            for position, model in run_shared(self.learner, [self.candidates[k] for k in which], fold):
                yield which[position], model, X_test
            return
        # A pipeline: fit the preparing steps once per setting of them, and share the work of the last step.
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
        """Scores of leave-one-out predictions from an exact shortcut; None if there is none."""
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
        if self.own_score:  # R² is undefined for one example: use the squared error of each
            return -((self.y - predictions) ** 2)
        values = [[self.scorer(PrecomputedRegressor(p[[i]]), np.empty((1, 1)), self.y[[i]]) for i in range(len(p))]
                  for p in predictions]  # fmt: skip
        return np.array(values)
