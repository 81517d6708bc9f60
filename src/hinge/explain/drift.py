"""Tests whether two samples come from one distribution.

There are two tests. A classifier is trained to distinguish the rows of the two samples and evaluated on held-out rows:
without drift its area under the ROC curve is ½, and the U statistic gives the p-value of any other value. And each
column is tested, by Kolmogorov–Smirnov for numbers and χ² for categories, with Holm's correction for the number of
columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats

from hinge.models.trees.boosting import HistGradientBoostingClassifier
from hinge.tables.columns import aligned
from hinge.tables.kinds import typed_columns

Array = np.ndarray
MAX_ROWS = 4000
FEW = 10


@dataclass(frozen=True)
class ColumnDrift:
    """The difference in one column: the statistic (KS distance, or Cramér's V), and the corrected p-value."""

    name: str
    test: str
    statistic: float
    p: float


@dataclass(frozen=True)
class Drift:
    """The difference between two samples.

    Attributes
    ----------
    auc : float
        How well a classifier tells them apart on rows it has not seen: ½ is not at all, 1 is always.
    p : float
        The probability of an AUC this far above ½ if there were no drift.
    columns : tuple of ColumnDrift
        All columns, the most different first.
    target : ColumnDrift or None
        The same for the targets.
    """

    auc: float
    p: float
    columns: tuple[ColumnDrift, ...]
    target: ColumnDrift | None

    @property
    def found(self) -> bool:
        """Whether drift is both significant (p < 0.001) and large enough to matter (AUC ≥ 0.6)."""
        return self.p < 1e-3 and self.auc >= 0.6

    @property
    def drifted(self) -> tuple[str, ...]:
        """The columns that differ significantly (corrected p < 0.01)."""
        return tuple(c.name for c in self.columns if c.p < 0.01)


def measure_drift(X: Any, X_test: Any, y: Any = None, y_test: Any = None, *, random_state: int = 0) -> Drift:
    """Compare training data with test data, or older with newer data.

    Parameters
    ----------
    X, X_test : tables with the same columns
        The older rows and the newer ones.
    y, y_test : arrays of targets, optional
        Their targets, to compare as well.
    random_state : int
        Seed of the classifier that guesses which table a row is from, and of its folds.

    Examples
    --------
    >>> import hinge as hg
    >>> rng = np.random.default_rng(0)
    >>> drift = hg.measure_drift(rng.normal(size=(500, 3)), rng.normal(size=(500, 3)) + [0.0, 0.0, 1.0])
    >>> drift.found, drift.drifted
    (True, ('x2',))
    """
    columns_of_both = zip(typed_columns(X), typed_columns(X_test))
    pairs = [(a.name, "texts" in (a.storage, b.storage), aligned(a, b)) for a, b in columns_of_both]
    if not pairs:
        raise ValueError("the tables have no columns that can be compared: a sparse matrix may be too large.")
    columns = holm([compare_column(name, one, two, category) for name, category, (one, two) in pairs])
    rng = np.random.default_rng(random_state)
    n, m = len(pairs[0][2][0]), len(pairs[0][2][1])
    rows, test_rows = rng.permutation(n)[:MAX_ROWS], rng.permutation(m)[:MAX_ROWS]
    table = np.column_stack([np.concatenate([one[rows], two[test_rows]]) for _, _, (one, two) in pairs])
    side = np.repeat([0, 1], [len(rows), len(test_rows)])
    auc, p = two_sample_test(table, side, random_state)
    target = None
    if y is not None and y_test is not None:
        target = compare_target(np.asarray(y), np.asarray(y_test))
    return Drift(auc, p, tuple(sorted(columns, key=lambda c: (c.p, -c.statistic))), target)


def two_sample_test(
    table: Array, side: Array, random_state: int = 0, folds: int = 3, repeats: int = 3
) -> tuple[float, float]:
    """The cross-validated AUC of boosted trees that predict the sample of a row, and its p-value under no difference.

    Without a difference the AUC of one fold has mean ½ and the variance σ² = (n₀ + n₁ + 1)/(12 n₀n₁) of the U statistic, for
    any classifier. The AUCs of K folds are dependent, because each fold's rows train the other folds' classifiers. With the
    correlation n_test/n of Nadeau & Bengio (2003), here 1/K, their mean has the variance σ²(1 + (K − 1)/K)/K. The mean over
    several divisions into folds is less random; its variance is at most that of one division.
    """
    rng = np.random.default_rng(random_state)
    fold = np.empty(len(side), dtype=int)
    aucs, variances = [], []
    for _ in range(repeats):
        for s in (0, 1):
            rows = np.flatnonzero(side == s)
            fold[rows] = rng.permutation(len(rows)) % folds
        for k in range(folds):
            learn, test = fold != k, fold == k
            n1, n0 = int(np.sum(side[test] == 1)), int(np.sum(side[test] == 0))
            if not n0 or not n1:
                continue
            guesser = HistGradientBoostingClassifier(
                max_iter=30, max_leaf_nodes=8, early_stopping=False, random_state=0
            )
            score = guesser.fit(table[learn], side[learn]).predict_proba(table[test])[:, 1]
            ranks = scipy.stats.rankdata(score)
            aucs.append((ranks[side[test] == 1].sum() - n1 * (n1 + 1) / 2) / (n0 * n1))
            variances.append((n0 + n1 + 1) / (12.0 * n0 * n1))
    if not aucs:
        return 0.5, 1.0
    used = len(aucs) / repeats  # folds with rows of both samples
    mean, error = float(np.mean(aucs)), float(np.sqrt(np.mean(variances) * (1.0 + (used - 1.0) / folds) / used))
    return mean, float(scipy.stats.norm.sf((mean - 0.5) / error))


def compare_column(name: str, one: Array, two: Array, category: bool) -> ColumnDrift:
    """One column: KS, or χ² for categories and numbers with few values; a missing value is a category."""
    missing = np.isnan(one), np.isnan(two)
    present = np.concatenate([one[~missing[0]], two[~missing[1]]])
    if category or np.any(missing[0]) or np.any(missing[1]) or len(np.unique(present)) <= FEW:
        if not category and len(np.unique(present)) > FEW:  # numbers with missing values: quantile bins, and missing
            cuts = np.unique(np.quantile(present, np.linspace(0, 1, FEW + 1)[1:-1]))
            one, two = np.searchsorted(cuts, one).astype(float), np.searchsorted(cuts, two).astype(float)
            one, two = np.where(missing[0], -1.0, one), np.where(missing[1], -1.0, two)
        return _chi2(name, one, two)
    result = scipy.stats.ks_2samp(one, two, method="asymp")
    return ColumnDrift(name, "KS", float(result.statistic), float(result.pvalue))


def _chi2(name: str, one: Array, two: Array) -> ColumnDrift:
    """χ² of the counts of every value; NaN is one value."""
    codes = np.unique(np.concatenate([one, two]), return_inverse=True)[1]
    k = codes.max() + 1
    counts = np.stack([np.bincount(codes[: len(one)], minlength=k), np.bincount(codes[len(one) :], minlength=k)])
    total = counts.sum(axis=0)
    rare = total < 10  # rare values are pooled, because χ² is unreliable for them
    if np.any(rare):
        counts = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
    counts = counts[:, counts.sum(axis=0) > 0]
    if counts.shape[1] < 2:
        return ColumnDrift(name, "chi2", 0.0, 1.0)
    statistic, p, _, _ = scipy.stats.chi2_contingency(counts, correction=False)
    return ColumnDrift(name, "chi2", float(np.sqrt(statistic / counts.sum())), float(p))


def compare_target(y: Array, y_test: Array) -> ColumnDrift:
    if y.dtype.kind in "fiub" and len(np.unique(y)) > FEW:
        return compare_column("target", y.astype(np.float64), y_test.astype(np.float64), category=False)
    codes = np.unique(np.concatenate([y.astype(str), y_test.astype(str)]), return_inverse=True)[1].astype(np.float64)
    return compare_column("target", codes[: len(y)], codes[len(y) :], category=True)


def holm(columns: list[ColumnDrift]) -> list[ColumnDrift]:
    """p-values corrected for their number (Holm 1979), which bounds the probability of any false alarm by the level."""
    order = np.argsort([c.p for c in columns], kind="stable")
    corrected, running = np.empty(len(columns)), 0.0
    for rank, j in enumerate(order):
        running = max(running, (len(columns) - rank) * columns[j].p)
        corrected[j] = min(running, 1.0)
    return [ColumnDrift(c.name, c.test, c.statistic, float(p)) for c, p in zip(columns, corrected)]
