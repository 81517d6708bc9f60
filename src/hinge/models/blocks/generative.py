"""Naive Bayes, discriminants, Gaussian mixtures and standardisation over blocks: counts and moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from hinge._native import Design
from hinge.blocks.block import Block
from hinge.blocks.moments import equivalent_rows, grouped_moments
from hinge.blocks.passes import Passes
from hinge.blocks.survey import Labels, SamplePlan, check_features, check_target, survey, taken
from hinge.features.scaling import merge_moments as merge_columns
from hinge.features.scaling import moments as column_moments
from hinge.models.callbacks import iterations
from hinge.models.generative.mixture.components import Components, Moments
from hinge.models.generative.mixture.em import expectation_maximisation, maximise
from hinge.models.generative.naive_bayes.gaussian import merge_moments


def labels_of(block: Block) -> Labels:
    """The labels of a block and their weights."""
    y = check_target(block, classify=True)
    values, codes = np.unique(y, return_inverse=True)
    return Labels(values, np.bincount(codes, block.weight, minlength=len(values)))


# ------------------------------------------------------------------------------------------------------------ naive Bayes


@dataclass(frozen=True, eq=False)
class Counted:
    """The counts of a naive Bayes classifier, by the names of its attributes."""

    counts: dict[str, Any]

    def merge(self, other: Counted) -> Counted:
        """The counts of both sets of rows."""
        one, two = self.counts, other.counts
        if "theta_" in one:
            names = ("class_count_", "theta_", "_scatter")
            merged = merge_moments(tuple(one[n] for n in names), tuple(two[n] for n in names))
            return Counted(dict(zip(names, merged)))
        return Counted({name: _sum(one[name], two[name]) for name in one})


def _sum(one: Any, two: Any) -> Any:
    """The sum of two arrays, or of two lists of tables, of which one may have more columns than the other."""
    if not isinstance(one, list):
        return one + two
    return [_sum_of_tables(a, b) for a, b in zip(one, two, strict=True)]


def _sum_of_tables(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    wide, narrow = (one, two) if one.shape[1] >= two.shape[1] else (two, one)
    total = wide.copy()
    total[:, : narrow.shape[1]] += narrow
    return total


COUNTS = ("class_count_", "theta_", "_scatter", "feature_count_", "category_count_")


def count(block: Block, model: Any, labels: np.ndarray, n_features: int) -> Counted:
    """The counts of a block, by the estimator's own code."""
    X, model = block.X, clone(model)
    check_features(X, n_features, block)
    X = X if model.accepts_sparse or not scipy.sparse.issparse(X) else X.toarray()
    model.classes_, model.n_features_in_ = labels, n_features
    codes = np.searchsorted(labels, check_target(block, classify=True)).astype(np.int32)
    model._count(X, codes, block.weight, True)
    return Counted({name: vars(model)[name] for name in COUNTS if name in vars(model)})


def fit_naive_bayes(estimator: Any, passes: Passes) -> None:
    """One pass over the targets for the labels, then one over the rows for the counts."""
    labels = passes.total(labels_of, only_targets=True).values
    n_features = passes.source.n_features
    counted = passes.total(count, clone(estimator), labels, n_features)
    estimator.classes_, estimator.n_features_in_ = labels, n_features
    vars(estimator).update(counted.counts)
    if "category_count_" in counted.counts:
        estimator.n_categories_ = np.array([table.shape[1] for table in estimator.category_count_])
    estimator._estimate()


def fit_mixed(estimator: Any, passes: Passes) -> None:
    """One pass for the labels, then one in this thread for the counts; the first block decides the kinds of the columns."""
    labels = passes.total(labels_of, only_targets=True)
    kept = labels.values[labels.weights > 0]
    for name in ("classes_", "coder_"):
        vars(estimator).pop(name, None)
    for block in passes.each_block():
        y = check_target(block, classify=True)
        rows = np.isin(y, kept)
        X = block.X if block.frame is None else block.frame.to_native()
        if block.frame is None:
            check_features(X, passes.source.n_features, block)
        X, y, weight = taken((X, y, block.weight), np.flatnonzero(rows))
        if weight is None or np.any(weight > 0):  # a block without weight counts nothing
            estimator.partial_fit(X, y, kept, weight)


# ------------------------------------------------------------------------------------------------------------ discriminants


def fit_discriminant(estimator: Any, passes: Passes) -> None:
    """Fit the estimator to a few rows that have the moments of every class."""
    if estimator.shrinkage == "auto" or estimator.covariance_estimator is not None:
        raise ValueError(
            'shrinkage="auto" and covariance_estimator need all rows in memory; over blocks choose a number for shrinkage.'
        )
    labels = passes.total(labels_of, only_targets=True).values
    rows, codes, weights = equivalent_rows(passes.total(grouped_moments, passes.source.n_features, labels))
    estimator.fit(rows, labels[codes], weights)


# ----------------------------------------------------------------------------------------------------------------- mixtures


def component_moments(block: Block, components: Components) -> Moments:
    """The statistic of EM; the sums are centred at the current means."""
    X = block.X.toarray() if scipy.sparse.issparse(block.X) else block.X
    return components.moments(Design(X), block.weight)


def fit_mixture(estimator: Any, passes: Passes) -> None:
    """EM on a sample of rows first, and then over all blocks, one pass per step."""
    if isinstance(estimator.n_components, str):
        raise ValueError("n_components must be a number over blocks; choose it on a sample of rows.")
    n_features, k = passes.source.n_features, int(estimator.n_components)
    found = passes.total(survey, n_features, False, False, False, SamplePlan.of(passes.source))
    if found.rows < k:
        raise ValueError(f"Expected n_samples >= n_components but got n_components = {k}, n_samples = {found.rows}.")
    spread = passes.total(grouped_moments, n_features, None)
    prior = estimator._prior_of(np.diag(spread.scatter[0]) / spread.count[0], k)
    X, _, weights, _ = found.sample.data
    design = Design(np.ascontiguousarray(X.toarray() if scipy.sparse.issparse(X) else X))
    random, best = check_random_state(estimator.random_state), None
    with iterations(estimator, None, None, estimator.max_iter) as report:
        for _ in range(estimator.n_init):
            start = estimator._start(design, weights, k, prior, random)
            near = expectation_maximisation(
                design, weights, start, prior, tol=estimator.tol, max_iter=estimator.max_iter
            )
            run = maximise(
                lambda components: passes.total(component_moments, components), found.weight_sum, found.rows,
                near.components, prior, tol=estimator.tol, max_iter=estimator.max_iter, report=report,
            )  # fmt: skip
            best = run if best is None or run.bound > best.bound else best
    estimator.n_features_in_ = n_features
    estimator._adopt(best, prior)


# ---------------------------------------------------------------------------------------------------------- standardisation


@dataclass(frozen=True, eq=False)
class Columns:
    """Means, variances and weights of the non-missing values of columns."""

    found: tuple[np.ndarray, np.ndarray, np.ndarray]
    rows: int

    def merge(self, other: Columns) -> Columns:
        """The moments of both sets of rows."""
        return Columns(merge_columns(self.found, other.found), self.rows + other.rows)


def columns(block: Block, n_features: int) -> Columns:
    """The statistic of standardisation."""
    X = block.X
    check_features(X, n_features, block, missing=True)
    weight = np.ones(block.rows) if block.weight is None else block.weight
    return Columns(column_moments(X, weight), block.rows)


def fit_scaler(estimator: Any, passes: Passes) -> None:
    """Means and deviations, in one pass."""
    total = passes.total(columns, passes.source.n_features)
    complete = passes.source.roles.weight is None and bool(np.all(total.found[2] == total.rows))
    estimator._adopt(total.found, complete)
