"""Problems of the data that need no model: leaks, copies, constants, ids, imbalance, doubtful labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.select.measure import Measure
from hinge.select.resample import HeldOut
from hinge.tables.columns import Column, aligned, row_keys
from hinge.tables.kinds import infer_kind, typed_columns

Array = np.ndarray
BINS = 64
# A single column that explains more than this fraction of the target may contain the target.
LEAK = 0.9
# Columns with a correlation above this in absolute value are copies up to scale.
COPY = 0.9999
MAX_COMPARED = 2000


@dataclass(frozen=True)
class DataProblems:
    """The results of the checks; empty tuples and zeros if there is no problem.

    Attributes
    ----------
    leaks : tuple of (name, share)
        Columns that alone explain that share of the target, on rows their table was not made from.
    constant : tuple of names
    copies : tuple of (name, name)
        Pairs of columns that are the same but for scale.
    ids : tuple of names
        Columns with another value in every row.
    duplicates : float
        The share of rows whose inputs an earlier row has already.
    duplicates_across_folds : float
        The share of held-out rows with an identical row, target included, among the rows their model was fitted on.
    duplicates_in_test : float or None
        The share of test rows with an identical row in the training data.
    conflict : float
        The least training risk of any predictor: identical inputs with different targets set it.
    missing : float
        The share of missing cells.
    smallest_class : float or None
        The share of the rarest class.
    smallest_class_count : int or None
    doubtful : tuple of row numbers
        Labels a model that has not seen them finds very unlikely, or targets far from what it expects; worst first, at
        most 50.
    doubtful_count : int
        How many there are.
    doubtful_expected : float or None
        How many there would be if the probabilities of the model were right.
    scale_ratio : float
        The largest standard deviation of a numeric column divided by the smallest.
    """

    leaks: tuple[tuple[str, float], ...]
    constant: tuple[str, ...]
    copies: tuple[tuple[str, str], ...]
    ids: tuple[str, ...]
    duplicates: float
    duplicates_across_folds: float
    duplicates_in_test: float | None
    conflict: float
    missing: float
    smallest_class: float | None
    smallest_class_count: int | None
    doubtful: tuple[int, ...]
    doubtful_count: int
    doubtful_expected: float | None
    scale_ratio: float


def check_data(
    X: Any,
    targets: Array,
    measure: Measure,
    folds: Sequence[tuple[Array, Array]],
    held: HeldOut | None = None,
    X_test: Any = None,
    X_all: Any = None,
) -> DataProblems:
    """Run every check. ``targets`` are coded by the measure; test rows are searched in ``X_all`` (X if absent)."""
    columns = typed_columns(X)
    small = large = None
    if measure.classes is not None:
        counts = np.bincount(targets, minlength=len(measure.classes))
        small, large = float(counts.min() / counts.sum()), int(counts.min())
    rows, expected = doubtful_rows(targets, measure, held) if held is not None else (np.zeros(0, dtype=int), None)
    doubtful = tuple(int(r) for r in rows[:50])
    if not columns:
        return DataProblems((), (), (), (), 0.0, 0.0, None, 0.0, 0.0, small, large, doubtful, len(rows), expected, 1.0)
    table = np.column_stack([c.values for c in columns])
    inputs = row_keys(table)
    both = row_keys(table, targets)
    return DataProblems(
        leaks=leak_suspects(columns, targets, measure) if len(columns) > 1 else (),
        constant=tuple(c.name for c in columns if _is_constant(c.values)),
        copies=near_copies(columns),
        ids=tuple(c.name for c in columns if infer_kind(c) == "id"),
        duplicates=1.0 - len(np.unique(inputs)) / len(inputs),
        duplicates_across_folds=across(both, folds),
        duplicates_in_test=None
        if X_test is None
        else overlap(columns if X_all is None else typed_columns(X_all), X_test),
        conflict=conflict_risk(inputs, targets, measure),
        missing=float(np.mean(np.isnan(table))),
        smallest_class=small,
        smallest_class_count=large,
        doubtful=doubtful,
        doubtful_count=len(rows),
        doubtful_expected=expected,
        scale_ratio=scale_ratio(columns),
    )


def _present(values: Array) -> Array:
    return values[~np.isnan(values)]


def _is_constant(values: Array) -> bool:
    present = _present(values)
    return len(present) == 0 or (len(present) == len(values) and bool(np.all(present == present[0])))


def near_copies(columns: list[Column]) -> tuple[tuple[str, str], ...]:
    """Pairs (later, earlier) of columns that are the same up to shift and scale."""
    compared = [c for c in columns[:MAX_COMPARED] if not _is_constant(c.values) and len(c.values) > 2]
    if len(compared) < 2:
        return ()
    A = np.column_stack([c.values for c in compared])
    A = np.where(np.isnan(A), np.nanmean(A, axis=0), A)
    A = A - A.mean(axis=0)
    size = np.sqrt(np.sum(A**2, axis=0))
    A = A / np.where(size > 0, size, 1.0)
    close = np.abs(np.triu(A.T @ A, k=1)) > COPY
    first: dict[int, int] = {}
    for i, j in zip(*np.nonzero(close)):
        first.setdefault(int(j), int(i))
    return tuple((compared[j].name, compared[i].name) for j, i in sorted(first.items()))


def scale_ratio(columns: list[Column]) -> float:
    deviations = [np.std(_present(c.values)) for c in columns if c.codes is None and len(_present(c.values)) > 1]
    positive = [d for d in deviations if d > 0]
    return float(max(positive) / min(positive)) if positive else 1.0


def leak_suspects(columns: list[Column], targets: Array, measure: Measure) -> tuple[tuple[str, float], ...]:
    """Columns that explain almost all of the target by themselves, strongest first.

    A column is divided into bins (its categories, or quantiles); the mean targets of the bins on one half of the rows
    predict the other half, and the fraction of variance explained is compared with ``LEAK``.
    """
    found = [(c.name, column_skill(c.values, targets, measure)) for c in columns if infer_kind(c) != "id"]
    return tuple(sorted(((n, s) for n, s in found if s >= LEAK), key=lambda pair: -pair[1]))


def column_skill(values: Array, targets: Array, measure: Measure, random_state: int = 0) -> float:
    """The fraction of the target's variance that one column explains on held-out rows."""
    Y = targets[:, None].astype(np.float64) if measure.classes is None else np.eye(len(measure.classes))[targets]
    if measure.classes is None:  # ranks limit the influence of extreme targets
        Y = np.argsort(np.argsort(Y, axis=0, kind="stable"), axis=0, kind="stable").astype(np.float64)
    codes = _bins(values)
    half = np.random.default_rng(random_state).permutation(len(Y)) % 2
    error = total = 0.0
    for side in (0, 1):
        learn, test = half != side, half == side
        counts = np.bincount(codes[learn], minlength=codes.max() + 1)[:, None]
        sums = np.column_stack([np.bincount(codes[learn], y, minlength=codes.max() + 1) for y in Y[learn].T])
        overall = Y[learn].mean(axis=0)
        table = np.where(counts > 0, sums / np.maximum(counts, 1), overall)
        error += float(np.sum((Y[test] - table[codes[test]]) ** 2))
        total += float(np.sum((Y[test] - overall) ** 2))
    return 1.0 - error / total if total > 0 else 0.0


def _bins(values: Array) -> Array:
    levels = np.unique(_present(values))
    most = int(np.clip(len(values) // 20, 4, BINS))  # wider bins for few rows, so that their means are reliable
    if len(levels) > most:
        levels = np.unique(np.quantile(_present(values), np.linspace(0, 1, most + 1)[1:-1]))
        codes = np.searchsorted(levels, values, side="left")
    else:
        codes = np.searchsorted(levels, values)
    return np.where(np.isnan(values), len(levels) + 1, codes)


def across(keys: Array, folds: Sequence[tuple[Array, Array]]) -> float:
    shares = [np.mean(np.isin(keys[test], keys[learn])) for learn, test in folds]
    return float(np.mean(shares)) if shares else 0.0


def overlap(columns: list[Column], X_test: Any) -> float:
    """The fraction of test rows that are also training rows."""
    pairs = [aligned(one, two) for one, two in zip(columns, typed_columns(X_test))]
    n = len(columns[0].values)
    keys = row_keys(*(np.concatenate(pair) for pair in pairs))
    return float(np.mean(np.isin(keys[n:], keys[:n])))


def conflict_risk(inputs: Array, targets: Array, measure: Measure) -> float:
    """The mean squared distance of targets from the mean target of identical inputs (Brier for labels)."""
    count = np.bincount(inputs)[:, None]
    Y = targets[:, None].astype(np.float64) if measure.classes is None else np.eye(len(measure.classes))[targets]
    mean = np.column_stack([np.bincount(inputs, y) for y in Y.T]) / count
    square = np.sum((Y - mean[inputs]) ** 2, axis=1)
    return float(np.mean(square)) * (1.0 if measure.classes is None else 0.5)


def doubtful_rows(targets: Array, measure: Measure, held: HeldOut) -> tuple[Array, float | None]:
    """Rows whose target a model fitted without them finds improbable, worst first, and how many to expect."""
    y = targets[held.rows]
    if measure.classes is None:
        residual = y - held.output
        centre = np.median(residual)
        spread = 1.4826 * np.median(np.abs(residual - centre))
        distance = np.abs(residual - centre) / spread if spread > 0 else np.zeros(len(y))
        suspects = np.flatnonzero(distance > 8.0)
        return held.rows[suspects[np.argsort(-distance[suspects], kind="stable")]], None
    if not measure.probabilities:
        return np.zeros(0, dtype=int), None
    p = held.output
    p_target, guess = p[np.arange(len(y)), y], p.argmax(axis=1)
    # At least as confident in another class as the model is on average when that class is right.
    usual = np.array([p[y == c, c].mean() if np.any(y == c) else 1.0 for c in range(len(measure.classes))])
    sure = p.max(axis=1) >= usual[guess]
    suspects = np.flatnonzero((guess != y) & sure & (p_target < 0.1))
    expected = float(np.sum(np.where((p < 0.1) & sure[:, None], p, 0.0)))
    return held.rows[suspects[np.argsort(p_target[suspects], kind="stable")]], expected
