"""A column of a table in the type that models are fitted to, with notes on unreadable values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.tables.columns import Column, too_long
from hinge.tables.conversion import to_column, to_numbers, to_texts, to_times
from hinge.tables.dates import date_format
from hinge.tables.kinds import DROPPED, HALF, LOOK, infer_kind, number_format, value_kind
from hinge.tables.notes import Note, counted, some_values
from hinge.tables.number_formats import Notation, is_truth, plain_number

LARGE = 500_000  # from this many rows on, numbers are stored as float32 if that is exact


@dataclass(frozen=True, eq=False)
class Converted:
    """A column as a series of Float64, String or Datetime, with its kind and the formats it was read in."""

    series: Any
    kind: str
    notation: Notation | None = None
    date_format: str | None = None


def convert_column(
    series: Any, typed: bool, decimal: str, notes: list[Note], kinds: dict[str, str], keep: Sequence[str]
) -> Converted:
    """A column of the table; adds the inferred kind to ``kinds``."""
    column = to_column(series.head(LOOK), typed)
    if not column.varies():
        column = to_column(series, typed)
    name, kind = series.name, infer_kind(column)
    kinds[name] = kind
    stored = value_kind(column) if kind in DROPPED else kind  # the kind that applies if the user keeps the column
    kind = stored if name in keep else kind
    if stored == "number":
        notation = number_format(column, decimal)
        numbers = to_numbers(series, notation)
        _note_format(series, numbers, notation, notes)
        return Converted(_narrow(numbers), kind, notation)
    if stored == "date":
        pattern = None if column.codes is None else date_format(column.levels, column.counts())
        times = to_times(series, pattern or "iso")
        _note_unread(series, times, "dates", notes)
        return Converted(times, kind, date_format=pattern)
    if stored == "boolean" and len(column.levels) > 2:
        notation = Notation(truth=True)
        truth = to_texts(series, notation)
        _note_format(series, truth, notation, notes)
        return Converted(truth, kind, notation)
    if series.dtype.is_integer() and too_long(series):
        notes.append(Note("D18", name, f"{name}: integers of more than 15 digits, like codes; read as categories"))
    elif kind == "category":
        _note_mixture(column, notes)
    return Converted(series if _is_clean(series) else to_texts(series), kind)


def _is_clean(series: Any) -> bool:
    """True if a large categorical series needs no conversion: its levels are trimmed texts."""
    import polars as pl

    if series.dtype != pl.Categorical or len(series) < LARGE:
        return False
    levels = series.unique()
    return to_texts(levels).eq_missing(levels.cast(pl.String)).all()


def _note_format(series: Any, read: Any, notation: Notation | None, notes: list[Note]) -> None:
    """Notes on the format of a column, on infinite numbers and on values that were not read."""
    name = series.name
    if notation is not None:
        example = series.filter(read.is_not_null())[0]
        notes.append(Note("D18", name, f"{name}: {notation.describe(str(example).strip())}"))
    infinite = int(series.is_infinite().sum()) if series.dtype.is_float() else 0
    if infinite:
        notes.append(Note("D07", name, f"{name}: {counted(infinite, 'value')} infinite; treated as missing"))
    else:
        _note_unread(series, read, "true or false" if notation and notation.truth else "numbers", notes)


def _note_unread(series: Any, read: Any, expected: str, notes: list[Note]) -> None:
    import polars as pl

    if series.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return
    unread = to_texts(series.filter(read.is_null())).drop_nulls()
    if len(unread):
        text = (
            f"{series.name}: {counted(len(unread), 'value')} not {expected} ({some_values(unread)}); treated as missing"
        )
        notes.append(Note("D07", series.name, text))


def _note_mixture(column: Column, notes: list[Note]) -> None:
    """A note on a category most of whose values are numbers."""
    if column.codes is None or column.categorical or is_truth(column.levels):
        return
    words = [level for level in column.levels if np.isnan(plain_number(level))]
    counts = column.counts()
    share = 1 - counts[[np.isnan(plain_number(level)) for level in column.levels]].sum() / max(counts.sum(), 1)
    if share >= HALF and words:
        shown = ", ".join(map(repr, words[:3]))
        text = f"{column.name}: {share:.0%} of its values are numbers, the others words ({shown}); read as categories"
        notes.append(Note("D16", column.name, text))


def _narrow(numbers: Any) -> Any:
    """The same numbers, as float32 if the table is large and that is exact."""
    import polars as pl

    if len(numbers) < LARGE:
        return numbers
    narrow = numbers.cast(pl.Float32)
    return narrow if bool(narrow.cast(pl.Float64).eq_missing(numbers).all()) else numbers
