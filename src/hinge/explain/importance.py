"""Permutation importance: the decrease of a model's score when one column is shuffled."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from hinge._native import check_indices
from hinge.explain.plots.axes import axes_or_new
from hinge.models.meta import final_step, row_count, take_rows
from hinge.models.trees.arrays import Trees
from hinge.select.estimate import mean_of
from hinge.select.measure import Measure
from hinge.tables.frames import column_values, with_column

Array = np.ndarray

STACKED = 20_000  # rows per call when many shuffled columns are predicted together


@dataclass(frozen=True, eq=False)
class Importances:
    """The decrease of the score when a column is shuffled.

    Attributes
    ----------
    importances : array of columns × repeats
        The fall of the score in each repetition.
    importances_mean, importances_std : arrays, one entry per column
    names : tuple of str
        The names of the columns.
    baseline : float
        The score with nothing shuffled.
    standard_error : array or None
        Of every mean, over the rows: known where importances are rises of a mean loss.
    """

    importances: Array
    names: tuple[str, ...]
    baseline: float
    standard_error: Array | None = None

    @property
    def importances_mean(self) -> Array:
        return self.importances.mean(axis=1)

    @property
    def importances_std(self) -> Array:
        return self.importances.std(axis=1)

    def plot(self, *, most: int = 20, ax: Any = None) -> Any:
        """Draw box plots of the most important columns, the most important on top; returns the axes."""
        ax = axes_or_new(ax)
        order = np.argsort(self.importances_mean, kind="stable")[-most:]
        ax.boxplot(self.importances[order].T, orientation="horizontal", tick_labels=[self.names[j] for j in order])
        ax.axvline(0.0, color="grey", linewidth=0.8)
        ax.set_xlabel("fall of the score")
        return ax


def permutation_importance(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    scoring: Any = None,
    n_repeats: int = 5,
    n_jobs: int | None = None,
    random_state: Any = 0,
    sample_weight: Any = None,
    max_samples: float = 1.0,
    measure: Measure | None = None,
    seconds: float = np.inf,
) -> Importances:
    """Shuffle one column at a time and score again, preferably on rows the model was not fitted to.

    Columns without influence (a weight of zero, no split in any tree) are not tried: their importance is zero. For linear
    models a shuffled column changes the scores by (x' − x)w, so nothing else is recomputed.

    Parameters
    ----------
    estimator : fitted estimator
        Any classifier or regressor that has been fitted.
    X, y : data
        The rows to score on.
    scoring : str or callable, optional
        A scikit-learn scorer; the estimator's ``score`` by default.
    n_repeats : int
        How often every column is shuffled.
    n_jobs : int, optional
        Columns at a time (threads).
    random_state : int, RandomState or None
        Seed of the shuffles.
    sample_weight : array, optional
        How much each row counts in the score; all the same by default.
    max_samples : float
        The share of rows to use, or their number.
    measure : Measure, optional
        Instead of a scorer: importances are the rises of the mean loss, with standard errors over the rows.
    seconds : float
        With ``measure``: where all columns would take longer, they are shuffled once, and fewer rows are used.

    Examples
    --------
    >>> import hinge as hg
    >>> X, y = hg.generators.LinearGaussian([3.0, 1.0, 0.0]).sample(300)
    >>> found = hg.permutation_importance(hg.LinearRegression().fit(X, y), X, y)
    >>> found.importances_mean.argsort()
    array([2, 1, 0])
    """
    check_indices(X)
    if n_repeats < 1:
        raise ValueError(f"n_repeats must be at least 1, got {n_repeats}.")
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    n = row_count(X)
    size = n if max_samples == 1.0 and isinstance(max_samples, float) else _count(max_samples, n)
    if size < n:
        rows = np.random.default_rng(seed).permutation(n)[:size]
        X, y = take_rows(X, rows), take_rows(y, rows)
        sample_weight = None if sample_weight is None else take_rows(sample_weight, rows)
        n = size
    names = tuple(map(str, getattr(X, "columns", [f"x{j}" for j in range(X.shape[1])])))
    idle = idle_columns(estimator, X.shape[1])
    if measure is not None:
        return _loss_importance(estimator, X, measure.code(y), measure, names, idle, n_repeats, seed, seconds)
    weigh = {} if sample_weight is None else {"sample_weight": sample_weight}
    scorer = check_scoring(estimator, scoring=scoring)
    baseline = float(scorer(estimator, X, y, **weigh))
    quick = LinearScores.of(estimator, X, y, sample_weight) if scoring is None else None

    def one(j: int) -> Array:
        if idle[j]:
            return np.zeros(n_repeats)
        falls = np.empty(n_repeats)
        for r, order in enumerate(_orders(seed, j, n_repeats, n)):
            score = (
                quick.shuffled(j, order) if quick is not None else scorer(estimator, shuffled(X, j, order), y, **weigh)
            )
            falls[r] = baseline - score
        return falls

    found = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one)(j) for j in range(X.shape[1]))
    return Importances(np.array(found), names, baseline)


def _orders(seed: int, j: int, repeats: int, n: int) -> Iterator[Array]:
    """The permutations of the rows for column j."""
    return (np.random.default_rng([seed, j, r]).permutation(n) for r in range(repeats))


def _loss_importance(
    estimator: Any, X: Any, targets: Array, measure: Measure, names: tuple[str, ...], idle: Array, repeats: int,
    seed: int, seconds: float,
) -> Importances:  # fmt: skip
    began = time.perf_counter()
    base = measure.losses(estimator, X, targets)
    cost = (time.perf_counter() - began) * np.sum(~idle) * repeats
    if cost > seconds:  # one repeat and fewer rows, so that every column is tried
        repeats = 1
        few = np.arange(max(min(300, len(targets)), int(len(targets) * min(1.0, 3 * seconds / cost))))
        X, targets, base = take_rows(X, few), targets[few], base[few]
    n, found, error = len(targets), np.zeros((len(names), repeats)), np.zeros(len(names))
    for j in np.flatnonzero(~idle):
        orders = _orders(seed, int(j), repeats, n)
        rises = np.array([measure.losses(estimator, shuffled(X, int(j), o), targets) - base for o in orders])
        found[j] = rises.mean(axis=1)
        error[j] = mean_of(rises.mean(axis=0)).standard_error
    return Importances(found, names, float(base.mean()), error)


def importance_of_stacked_copies(
    estimator: Any, frame: Any, targets: Array, *, measure: Measure, random_state: int = 0
) -> Importances:
    """As :func:`permutation_importance`, with each column shuffled once and many shuffled copies predicted together.

    For Polars tables of many columns, where one call of predict per column takes too long however few the rows.
    """
    import polars as pl

    rng, n = np.random.default_rng(random_state), frame.height
    base = measure.losses(estimator, frame, targets)
    rises: list[Array] = []
    together = max(STACKED // n, 1)
    for start in range(0, frame.width, together):
        part = frame.columns[start : start + together]
        source = np.tile(np.arange(n), (len(part), 1))
        table = {name: frame[name].gather(source.ravel()) for name in frame.columns}
        for k, name in enumerate(part):
            mixed = source.copy()
            mixed[k] = rng.permutation(n)
            table[name] = frame[name].gather(mixed.ravel())
        losses = measure.losses(estimator, pl.DataFrame(table), np.tile(targets, len(part)))
        rises += list(losses.reshape(len(part), n) - base)
    means = np.array([[rise.mean()] for rise in rises])
    errors = np.array([mean_of(rise).standard_error for rise in rises])
    return Importances(means, tuple(frame.columns), float(base.mean()), errors)


def _count(max_samples: float, n: int) -> int:
    size = int(max_samples) if isinstance(max_samples, int) else int(max_samples * n)
    if not 1 <= size <= n:
        raise ValueError(f"max_samples must be a share in (0, 1] or a number of rows up to {n}, got {max_samples!r}.")
    return size


def shuffled(X: Any, j: int, order: Array) -> Any:
    """A copy of X with column j permuted."""
    return with_column(X, j, column_values(X, j)[order])


def idle_columns(estimator: Any, d: int) -> Array:
    """Columns on which no prediction depends; none for models that are neither linear nor trees."""
    idle = np.zeros(d, dtype=bool)
    if estimator is not final_step(estimator):
        return idle
    coef = getattr(estimator, "coef_", None)
    if isinstance(coef, np.ndarray) and coef.shape[-1] == d and not hasattr(estimator, "kernel"):
        return np.all(np.atleast_2d(coef) == 0, axis=0)
    trees = getattr(estimator, "trees_", None)
    if isinstance(trees, Trees):
        idle[:] = True
        used = np.unique(trees.feature)
        idle[used[used >= 0]] = False
    return idle


@dataclass(frozen=True, eq=False)
class LinearScores:
    """The scores of a linear model, and their values when a column is shuffled."""

    estimator: Any
    X: Array
    y: Any
    weight: Any
    scores: Array

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, weight: Any) -> LinearScores | None:
        """None if the model is not linear in dense columns, or if ``predict`` is not determined by its scores."""
        from hinge.models.linear.base import LinearClassifier, LinearRegressor

        if not isinstance(X, np.ndarray) or X.dtype.kind != "f" or np.ndim(y) != 1:
            return None
        if isinstance(estimator, LinearRegressor):
            scores = np.asarray(estimator.predict(X), dtype=np.float64)
            linear = X @ estimator.coef_ + estimator.intercept_
        elif isinstance(estimator, LinearClassifier) and len(estimator.classes_) == 2:
            scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
            linear = X @ estimator.coef_[0] + estimator.intercept_[0]
        else:
            return None
        return cls(estimator, X, y, weight, scores) if np.allclose(scores, linear, rtol=1e-6, atol=1e-8) else None

    def shuffled(self, j: int, order: Array) -> float:
        """R² or accuracy with column j permuted."""
        from sklearn.metrics import accuracy_score, r2_score

        weight = np.ravel(self.estimator.coef_)[j]
        moved = self.scores + (self.X[order, j] - self.X[:, j]) * float(weight)
        if hasattr(self.estimator, "classes_"):
            labels = self.estimator.classes_[(moved > 0).astype(int)]
            return float(accuracy_score(self.y, labels, sample_weight=self.weight))
        return float(r2_score(self.y, moved, sample_weight=self.weight))
