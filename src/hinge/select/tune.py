"""Selection of hyperparameters by cross-validation; work that candidates share is done once."""

from __future__ import annotations

import html
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import LeaveOneOut, ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples

from hinge._native import check_indices
from hinge.models.base import check_weights
from hinge.select.choice import choose_candidate
from hinge.select.grids import complexity_of, path_grid
from hinge.select.progress import Journal, Progress, fingerprint
from hinge.select.search import Search, folds_of
from hinge.settings import shows_html, shows_progress

RULES = {"min": "best", "best": "best", "1se": "one-standard-error", "one-standard-error": "one-standard-error"}
SHOWN = 10  # candidates in a notebook


@dataclass(frozen=True)
class TuneResult:
    """The result of :func:`tune`.

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
        """The parameters with the best mean score, regardless of ``rule``."""
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

    Scores equal those of fitting every candidate on every fold, at a lower cost: paths are warm-started, and factorisations,
    kernel matrices, bins and long boosting runs are shared (see :mod:`hinge.select.sharing`), also after the preparing
    steps of a pipeline.

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
    task = Search(learner, X, np.asarray(y), weights, candidates, scorer, scoring is None, factor, random_state)
    splits = folds_of(cv, X, y, groups, learner)
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
    return _choose(task, scores, rows, RULES[rule], complexity, refit, began)


def _choose(
    task: Search,
    scores: np.ndarray,
    rows: np.ndarray,
    rule: str,
    complexity: Any,
    refit: bool,
    began: float,
) -> TuneResult:
    tried = np.flatnonzero(rows == rows.max())
    if np.any(np.isnan(scores[tried])):
        raise ValueError("scoring gave NaN for a candidate: it cannot be compared with the others.")
    # All folds have equal weight, as in scikit-learn's GridSearchCV.
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
    """Weights as the keyword argument of the learner's ``fit``; in a pipeline they belong to the last step."""
    if isinstance(learner, Pipeline):
        return {f"{learner.steps[-1][0]}__sample_weight": weights}
    return {"sample_weight": weights}
