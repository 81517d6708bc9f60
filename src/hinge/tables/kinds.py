"""What a column of a raw table holds, by its values in training."""

from __future__ import annotations

import re

import numpy as np

from hinge.tables.columns import Column, number, pattern_of

KINDS = ("number", "boolean", "category", "date", "text", "id", "constant", "drop")
DROPPED = ("id", "constant", "drop")

# Pairs of texts that mean false and true, in lower case.
PAIRS = ({"false", "true"}, {"f", "t"}, {"no", "yes"}, {"n", "y"}, {"off", "on"})
FEW = 20  # with fewer rows, values that are all different say nothing
MOSTLY_NUMBERS = 0.95
ID_NAME = re.compile(r"(^|[\W_])(id|uuid|guid|index|key|unnamed: 0)$", re.IGNORECASE)
CAMEL_ID = re.compile(r"[a-z]I[dD]$|^ID[a-z]")
LEADING_ZERO = re.compile(r"[+-]?0\d")


def infer_kind(column: Column) -> str:
    """One of number, boolean, category, date, text, id and constant.

    constant  no two rows differ
    boolean   true and false, or a pair of texts that says so
    date      times, or texts that all follow one pattern for times
    number    numbers, or texts of which at least 95 % read as numbers (not those with leading zeros: codes)
    id        whole numbers, all different, that count the rows or are named so; short texts that nearly all differ
    text      texts of several words that seldom repeat
    category  every other text, and one value with gaps
    """
    missing = column.missing()
    if missing.all():
        return "constant"
    if column.times is not None:
        return _constant_or(column.times[~missing], missing, "date")
    if column.numbers is not None:
        values = column.numbers[~missing]
        if column.truth:
            return _constant_or(values, missing, "boolean")
        if _is_counter(column.name, values):
            return "id"
        return _constant_or(values, missing, "number")
    return _kind_of_text(column, missing)


def _constant_or(values: np.ndarray, missing: np.ndarray, kind: str) -> str:
    if np.any(values != values[0]):
        return kind
    return "category" if missing.any() else "constant"


def _is_counter(name: str, values: np.ndarray) -> bool:
    if len(values) < FEW or np.any(values != np.floor(values)):
        return False
    return bool(np.all(np.diff(values) == 1)) or (named_as_id(name) and len(np.unique(values)) == len(values))


def named_as_id(name: str) -> bool:
    return bool(ID_NAME.search(name) or CAMEL_ID.search(name))


def _kind_of_text(column: Column, missing: np.ndarray) -> str:
    levels, present = column.levels, int(np.sum(~missing))
    if len(levels) == 1:
        return "category" if missing.any() else "constant"
    if column.categorical:
        return "category"
    if {level.lower() for level in levels} in PAIRS:
        return "boolean"
    counts = np.bincount(column.codes[~missing], minlength=len(levels))  # type: ignore[index]
    reads = np.array([not np.isnan(number(level)) for level in levels])
    if counts[reads].sum() >= MOSTLY_NUMBERS * present and (reads.all() or reads.sum() >= FEW):
        if any(LEADING_ZERO.match(level) for level in levels):
            return "category"
        return "id" if reads.all() and _is_counter(column.name, column.as_numbers()[~missing]) else "number"
    if pattern_of(levels) is not None:
        return "date"
    share = len(levels) / present
    words = float(np.average([len(level.split()) for level in levels], weights=counts))
    if words >= 3 and share >= 0.2 and present >= FEW:
        return "text"
    if present >= FEW and (share == 1.0 or (present >= 100 and share >= 0.9)):
        return "text" if words >= 2 else "id"
    return "category"
