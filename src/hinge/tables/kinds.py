"""The kind of a column, inferred from its values: the one set of rules behind TablePrep, ``hg.profile`` and explain."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import scipy.sparse

from hinge.tables.columns import CODES, EXACT, Column, read_columns
from hinge.tables.dates import date_format
from hinge.tables.number_formats import MOSTLY, Notation, is_truth, notation_of, plain_number

KINDS = ("number", "boolean", "category", "date", "text", "id", "constant", "drop")
DROPPED = ("id", "constant", "drop")

LOOK = 50_000  # first rows that decide the kind
FEW = 20  # with fewer rows, distinct values are no evidence of an id
MANY = 50  # from this many rows on, distinct integers that fill a range are ids, in any order
DENSE = 1.5  # integers fill a range if it is at most this many times as wide as the number of rows
LONG = 1000  # from this many rows on, integers that rise or fall in irregular steps are a sample of ids
# Texts are numbers if more than MANY_NUMBERS of them are, and the others are at most FEW_WORDS words in at most HALF of the rows.
MANY_NUMBERS, FEW_WORDS, HALF = 20, 5, 0.5
ID_NAME = re.compile(
    r"(^|[\W_])(id|uuid|guid|key|index|idx|rownames?|row_?(id|number|num)|serial|unnamed: 0)$", re.IGNORECASE
)
CAMEL_ID = re.compile(r"[a-z]I[dD]$|^ID[a-z]")
LEADING_ZERO = r"^0\d+$"  # a code rather than a quantity, such as a postal code
# A sparse matrix with more entries than this, zeros included, is not expanded into columns.
MAX_CELLS = 20_000_000


def infer_kind(column: Column) -> str:
    """One of number, boolean, category, date, text, id and constant.

    constant  all rows hold one value, or none does
    boolean   true and false, or words for them
    date      times, or texts of which at least 95 % follow one date format
    number    numbers, or texts of which at least 95 % read as numbers, as 1.234,50 € or 12 % do (not digits with
              leading zeros: codes); half suffices if the other texts are at most five words for "missing"
    id        integers, all different, that fill a range, rise in irregular steps over a long table or have an id's name;
              short texts that nearly all differ
    text      texts of several words that seldom repeat
    category  every other text, integers too long for floats, and one value with gaps
    """
    column = inspected(column)
    if not column.varies():
        some_missing = bool(column.missing().any())
        return "category" if some_missing and len(column.present()) else "constant"
    kind = value_kind(column)
    return "id" if _is_id(column, kind) else kind


def value_kind(column: Column) -> str:
    """The kind of a column that must be used: number, boolean, category, date or text, never id or constant."""
    column = inspected(column)
    if column.codes is None:
        return "date" if column.times is not None else "boolean" if column.truth else "number"
    levels, counts = column.levels, column.counts()
    if column.categorical:
        return "category"
    if is_truth(levels):
        return "boolean"
    if counts[[is_code(level) for level in levels]].sum() >= CODES * counts.sum():
        return "category"
    if _plain_numbers(column):
        return "number"
    if date_format(levels, counts) is not None:
        return "date"
    if notation_of(levels, counts) is not None:
        return "number"
    present = int(counts.sum())
    return "text" if _words(column) >= 3 and len(levels) >= 0.2 * present and present >= FEW else "category"


def is_code(text: str) -> bool:
    """True for digits that are not a quantity: with a leading zero, or too many of them for a float."""
    return text.isdecimal() and ((text[0] == "0" and len(text) > 1) or (len(text) > 15 and int(text) > EXACT))


def inspected(column: Column) -> Column:
    """The rows that decide the kind: the first LOOK if two of them differ."""
    head = column.head(LOOK)
    return head if head.varies() else column


def number_format(column: Column, hint: str = ".") -> Notation | None:
    """The number format of a column of texts; None if they are plain numbers."""
    column = inspected(column)
    if column.codes is None or _plain_numbers(column):
        return None
    return notation_of(column.levels, column.counts(), hint)


def _plain_numbers(column: Column) -> bool:
    """True if all texts but a few words are numbers in plain notation."""
    counts = column.counts()
    reads = np.array([not np.isnan(plain_number(level)) for level in column.levels], dtype=bool)
    share, distinct, words = counts[reads].sum() / max(counts.sum(), 1), int(reads.sum()), int((~reads).sum())
    return bool(share >= MOSTLY or (share >= HALF and distinct > MANY_NUMBERS and words <= FEW_WORDS))


def _is_id(column: Column, kind: str) -> bool:
    values = column.present()
    distinct = len(column.levels) if column.codes is not None else len(np.unique(values))
    n, share = len(values), distinct / len(values)
    if n < FEW or kind not in ("number", "category"):
        return False
    if kind == "category":
        return _words(column) < 3 and (share == 1.0 or (n >= 100 and share >= 0.9))
    if column.codes is not None:
        values = column.as_numbers()[~column.missing()]
    if np.any(values != np.floor(values)):  # also true for NaN, which stands for a word among numbers
        return False
    steps = np.diff(values)
    fills, monotone = np.ptp(values) < DENSE * n, np.all(steps > 0) or np.all(steps < 0)
    sampled = n >= LONG and monotone and np.ptp(steps) > 0
    running = share == 1.0 and ((fills and (n >= MANY or monotone)) or sampled)
    return bool(running or (share > 0.999 and named_as_id(column.name)))


def named_as_id(name: str) -> bool:
    """True if a column has the name of an identifier: id, user_id, RowID, index, …"""
    return bool(ID_NAME.search(name) or CAMEL_ID.search(name))


def _words(column: Column) -> float:
    """The mean number of words per row."""
    codes, levels = column.as_levels()
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    return float(np.average([len(level.split()) for level in levels], weights=counts))


def typed_columns(X: Any) -> list[Column]:
    """The columns of a table, with texts converted to the numbers or dates they represent; none for a large sparse table."""
    if scipy.sparse.issparse(X) and X.shape[0] * X.shape[1] > MAX_CELLS:
        return []
    columns = []
    for column in read_columns(X):
        kind = "" if column.codes is None else value_kind(column)
        if kind == "number":
            column = Column(column.name, numbers=column.as_numbers(number_format(column)))
        elif kind == "date":
            pattern = date_format(column.levels, column.counts()) or "iso"
            column = Column(column.name, times=column.as_times(pattern))
        columns.append(column)
    return columns
