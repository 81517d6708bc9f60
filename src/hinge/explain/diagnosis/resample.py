"""Fits on parts of the data, judged on the rest: the measurements a diagnosis is made of."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from hinge.explain.diagnosis.estimate import Estimate, mean_of
from hinge.explain.diagnosis.measure import Measure
from hinge.models.meta import final_step, row_count, take_rows

Array = np.ndarray


def fit_quietly(model: Any, X: Any, y: Any, **options: Any) -> Any:
    """A fitted copy; a fit that falls short is found by its certificate, not by a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(model).fit(X, y, **options)


def spread_order(y: Array, classify: bool, rng: np.random.Generator) -> Array:
    """A random order of the rows; of labels, one whose every beginning has the classes in proportion."""
    order = rng.permutation(len(y))
    if not classify:
        return order
    labels = np.unique(np.asarray(y)[order], return_inverse=True)[1]
    place = np.empty(len(y))
    for label in range(labels.max() + 1):
        rows = np.flatnonzero(labels == label)
        place[rows] = (np.arange(len(rows)) + 0.5) / len(rows)
    return order[np.argsort(place, kind="stable")]


def make_folds(cv: Any, X: Any, y: Any, classify: bool, groups: Any, random_state: int) -> list[tuple[Array, Array]]:
    """The splits of a number of folds (shuffled, classes in proportion), a splitter or a list of splits."""
    if isinstance(cv, int):
        if classify:
            cv = max(2, min(cv, int(np.unique(np.asarray(y), return_counts=True)[1].min())))
        kind = StratifiedKFold if classify else KFold
        splitter: Any = kind(cv, shuffle=True, random_state=random_state)
    else:
        splitter = check_cv(cv, y, classifier=classify)
    return [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(X, y, groups)]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Every example judged by a model that did not see it.

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
        """How much higher the risk is than that of another model on the same folds; errors are paired."""
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
            said = self.measure.output(fitted, take_rows(self.X, test))
            rows.append(test)
            output.append(said)
            losses.append(self.measure.pointwise(self.targets[test], said))
            fold.append(np.full(len(test), k))
            train.append(float(np.mean(self.losses(fitted, learn))))
        return HeldOut.join(rows, losses, fold, output, train)

    def learning_curve(
        self, model: Any, fractions: Sequence[float], known: HeldOut | None = None
    ) -> tuple[Array, Array, Array]:
        """Sizes, training and held-out risks (sizes × folds) on growing parts of every fold's training rows.

        ``known`` holds the risks on all of them, if they have been measured.
        """
        shortest = min(len(learn) for learn, _ in self.folds)
        sizes = np.unique([max(2, round(f * shortest)) for f in fractions])
        train, test = np.empty((len(sizes), len(self.folds))), np.empty((len(sizes), len(self.folds)))
        classify = self.measure.classes is not None
        for k, (learn, rest) in enumerate(self.folds):
            rng = np.random.default_rng([self.random_state, k])
            order = learn[spread_order(self.targets[learn], classify, rng)]
            for i, size in enumerate(sizes):
                if known is not None and size == shortest:
                    train[i, k], test[i, k] = known.train[k], known.losses[known.fold == k].mean()
                    continue
                part = order[:size]
                fitted = self.fit(model, part)
                train[i, k] = np.mean(self.losses(fitted, part))
                test[i, k] = np.mean(self.losses(fitted, rest))
        return sizes, train, test


def resampler(model: Any, X: Any, y: Any, measure: Measure, cv: Any, groups: Any, random_state: int) -> Resampler:
    """The data of a model with folds."""
    if row_count(X) != len(y):
        raise ValueError(f"X has {row_count(X)} rows but y has {len(y)}.")
    folds = make_folds(cv, X, y, is_classifier(model), groups, random_state)
    return Resampler(X, y, measure.code(y), measure, folds, random_state)


def with_final_step(model: Any, other: Any) -> Any:
    """The pipeline with another estimator at its end; just the other one if there is no pipeline."""
    last = final_step(model)
    if last is model:
        return other
    copy = clone(model)
    copy.steps[-1] = (copy.steps[-1][0], with_final_step(model.steps[-1][1], other))
    return copy


def set_final(model: Any, **parameters: Any) -> Any:
    """A copy with parameters of the last step changed."""
    return with_final_step(model, clone(final_step(model)).set_params(**parameters))
