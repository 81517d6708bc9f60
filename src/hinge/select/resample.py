"""Resampling: folds, fits on parts of the data and their losses on the other rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv

from hinge.models.meta import final_step, row_count, take_rows
from hinge.select.estimate import Estimate, mean_of
from hinge.select.measure import Measure

Array = np.ndarray


def fit_quietly(model: Any, X: Any, y: Any, **options: Any) -> Any:
    """A fitted clone; failed convergence is read from its certificate, not from a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(model).fit(X, y, **options)


def spread_order(y: Array, classify: bool, rng: np.random.Generator) -> Array:
    """A random order of the rows; for labels, every prefix has the classes in proportion."""
    order = rng.permutation(len(y))
    if not classify:
        return order
    labels = np.unique(np.asarray(y)[order], return_inverse=True)[1]
    place = np.empty(len(y))
    for label in range(labels.max() + 1):
        rows = np.flatnonzero(labels == label)
        place[rows] = (np.arange(len(rows)) + 0.5) / len(rows)
    return order[np.argsort(place, kind="stable")]


def deal(y: Array, k: int, rng: np.random.Generator, *, classify: bool) -> Array:
    """The fold of every row: k folds of nearly equal size, stratified by class for labels."""
    order = rng.permutation(len(y))
    if classify:
        order = order[np.argsort(np.asarray(y)[order], kind="stable")]
    fold = np.empty(len(y), dtype=np.int32)
    fold[order] = np.arange(len(y)) % k
    return fold


def make_folds(cv: Any, X: Any, y: Any, classify: bool, groups: Any, random_state: int) -> list[tuple[Array, Array]]:
    """The splits for a number of folds (shuffled, stratified), a splitter or a list of splits."""
    if isinstance(cv, int):
        if not 2 <= cv <= len(y):
            raise ValueError(f"cv must be between 2 and the number of rows, {len(y)}, got {cv}.")
        codes = np.unique(np.asarray(y), return_inverse=True)[1] if classify else np.asarray(y)
        fold = deal(codes, cv, np.random.default_rng(random_state), classify=classify)
        return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(cv)]
    splitter = check_cv(cv, y, classifier=classify)
    return [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(X, y, groups)]


def growing_fits(
    fit: Callable[[Array], Any], order: Array, sizes: Iterable[int], seconds: float = np.inf, least: int = 2
) -> Iterator[tuple[int, Array, Any, float]]:
    """Fits to growing prefixes of an order: (index, rows, fitted model, seconds of the fit).

    Ends when the next fit would probably exceed ``seconds``, but makes at least ``least`` fits.
    """
    began, last = time.perf_counter(), 0.0
    for index, size in enumerate(sizes):
        spent = time.perf_counter() - began
        if index >= least and spent + 2 * last > seconds:
            return
        rows = order[:size]
        start = time.perf_counter()
        model = fit(rows)
        last = time.perf_counter() - start
        yield index, rows, model, last


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The loss of every example under a model that was not fitted to it.

    Attributes
    ----------
    rows : array
        Which examples were held out (all of them, for folds).
    losses, fold : arrays
        The loss of each, and the number of the fold it was in.
    output : array
        What was predicted.
    train : array
        The training risk of every fold.
    """

    rows: Array
    losses: Array
    fold: Array
    output: Array
    train: Array

    @classmethod
    def join(
        cls, rows: list[Array], losses: list[Array], fold: list[Array], output: list[Array], train: list[float]
    ) -> HeldOut:
        """From one entry per fold."""
        a, b, c, d = (np.concatenate(parts) for parts in (rows, losses, fold, output))
        return cls(a, b, c, d, np.array(train))

    @property
    def risk(self) -> Estimate:
        return mean_of(self.losses, self.fold)

    @property
    def train_risk(self) -> Estimate:
        return mean_of(self.train)

    def minus(self, other: HeldOut) -> Estimate:
        """The difference from the risk of another model on the same folds; errors are paired."""
        return mean_of(self.losses - other.losses, self.fold)


@dataclass(frozen=True, eq=False)
class Resampler:
    """A model's data, measure and folds; every experiment on them is a method."""

    X: Any
    y: Any
    targets: Array
    measure: Measure
    folds: Sequence[tuple[Array, Array]]
    random_state: int

    def fit(self, model: Any, rows: Array) -> Any:
        return fit_quietly(model, take_rows(self.X, rows), take_rows(self.y, rows))

    def losses(self, model: Any, rows: Array) -> Array:
        return self.measure.losses(model, take_rows(self.X, rows), self.targets[rows])

    def held_out(self, model: Any) -> HeldOut:
        """Cross-validation."""
        rows, losses, fold, output, train = [], [], [], [], []
        for k, (learn, test) in enumerate(self.folds):
            fitted = self.fit(model, learn)
            predicted = self.measure.output(fitted, take_rows(self.X, test))
            rows.append(test)
            output.append(predicted)
            losses.append(self.measure.pointwise(self.targets[test], predicted))
            fold.append(np.full(len(test), k))
            train.append(float(np.mean(self.losses(fitted, learn))))
        return HeldOut.join(rows, losses, fold, output, train)

    def learning_curve(
        self, model: Any, fractions: Sequence[float], known: HeldOut | None = None
    ) -> tuple[Array, Array, Array]:
        """Sizes, training and held-out risks (sizes × folds) on growing parts of each fold's training rows.

        ``known`` holds the risks on all training rows, if they have been measured.
        """
        shortest = min(len(learn) for learn, _ in self.folds)
        sizes = np.unique([max(2, round(f * shortest)) for f in fractions])
        train, test = np.empty((len(sizes), len(self.folds))), np.empty((len(sizes), len(self.folds)))
        classify = self.measure.classes is not None
        for k, (learn, held) in enumerate(self.folds):
            rng = np.random.default_rng([self.random_state, k])
            order = learn[spread_order(self.targets[learn], classify, rng)]
            measured = known is not None and sizes[-1] == shortest
            if known is not None and measured:
                train[-1, k], test[-1, k] = known.train[k], known.losses[known.fold == k].mean()
            remaining = sizes[:-1] if measured else sizes
            for i, part, fitted, _ in growing_fits(lambda rows: self.fit(model, rows), order, remaining):
                train[i, k] = np.mean(self.losses(fitted, part))
                test[i, k] = np.mean(self.losses(fitted, held))
        return sizes, train, test


def resampler(model: Any, X: Any, y: Any, measure: Measure, cv: Any, groups: Any, random_state: int) -> Resampler:
    """The data of a model with folds."""
    if row_count(X) != len(y):
        raise ValueError(f"X has {row_count(X)} rows but y has {len(y)}.")
    folds = make_folds(cv, X, y, is_classifier(model), groups, random_state)
    return Resampler(X, y, measure.code(y), measure, folds, random_state)


def with_final_step(model: Any, other: Any) -> Any:
    """The pipeline with another last step; the other estimator alone if there is no pipeline."""
    last = final_step(model)
    if last is model:
        return other
    copy = clone(model)
    copy.steps[-1] = (copy.steps[-1][0], with_final_step(model.steps[-1][1], other))
    return copy


def set_final(model: Any, **parameters: Any) -> Any:
    """A copy with changed parameters of the last step."""
    return with_final_step(model, clone(final_step(model)).set_params(**parameters))
