"""Polars series in the types that models are trained on: texts, numbers and times. Missing and unreadable values are null."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np

from hinge.tables.columns import MISSING_TEXTS, Column, read_series
from hinge.tables.dates import read_dates
from hinge.tables.number_formats import Notation


def to_texts(series: Any, notation: Notation | None = None) -> Any:
    """Trimmed texts; integers stored as floats are written without decimals.

    With a notation of truth values, "true" and "false".
    """
    import polars as pl

    if series.dtype == pl.Duration:
        series = to_numbers(series)
    if series.dtype.is_float():
        present = series.drop_nulls()
        if len(present) and bool(((present == present.round()) & (present.abs() < 2.0**63)).all()):
            series = series.cast(pl.Int64)
    texts = series.cast(pl.String).str.strip_chars().replace(list(MISSING_TEXTS), None)
    if notation is None or not notation.truth:
        return texts
    words = {0.0: "false", 1.0: "true"}
    return _map_levels(texts, lambda levels: [words.get(notation.number(level)) for level in levels], pl.String)


def to_numbers(series: Any, notation: Notation | None = None) -> Any:
    """Finite Float64: texts in a number format, durations in seconds, times of day in hours."""
    import polars as pl

    texts = series.dtype in (pl.String, pl.Categorical, pl.Enum)
    if series.dtype == pl.Duration:
        numbers = series.dt.total_microseconds() / 1e6
    elif series.dtype == pl.Time:
        numbers = series.cast(pl.Int64) / 3.6e12
    elif texts and notation is not None:
        numbers = _map_levels(to_texts(series), lambda levels: list(map(notation.number, levels)), pl.Float64)
    else:
        numbers = (series.cast(pl.String).str.strip_chars() if texts else series).cast(pl.Float64, strict=False)
    values = numbers.to_numpy()
    if not np.isfinite(values).all():
        numbers = pl.Series(np.where(np.isfinite(values), values, np.nan), nan_to_null=True)
    return numbers.alias(series.name)


def to_times(series: Any, pattern: str) -> Any:
    """Datetime in microseconds, without time zones; texts in a date format."""
    import polars as pl

    if series.dtype in (pl.Date, pl.Datetime):
        local = series.dt.replace_time_zone(None) if series.dtype == pl.Datetime else series
        return local.cast(pl.Datetime("us"))
    texts = to_texts(series)
    if series.dtype not in (pl.String, pl.Categorical, pl.Enum):
        texts = texts.clear(len(texts))  # numbers are not times
    return _map_levels(texts, lambda levels: read_dates(levels, pattern), pl.Datetime("us"))


def _map_levels(texts: Any, read: Callable[[list[str]], Any], dtype: Any) -> Any:
    """A series of the values that ``read`` gives for the distinct texts."""
    import polars as pl

    levels = texts.drop_nulls().unique()
    values = pl.Series(read(levels.to_list()), dtype=dtype)
    return texts.replace_strict(levels, values, default=None, return_dtype=dtype)


def to_column(series: Any, typed: bool = True) -> Column:
    """A series as a column; unless it is typed, a categorical series holds texts of unknown kind."""
    import polars as pl

    if not typed and series.dtype == pl.Categorical:
        series = series.cast(pl.String)
    return read_series(nw.from_native(series, series_only=True))


def from_column(column: Column) -> Any:
    """A column as a polars series."""
    import polars as pl

    if column.codes is not None:
        codes = pl.Series(column.codes)
        texts = pl.Series(column.levels, dtype=pl.String).gather(codes.set(codes < 0, None))
        return (texts.cast(pl.Categorical) if column.categorical else texts).alias(column.name)
    if column.times is not None:
        return pl.Series(column.name, column.times)
    numbers = pl.Series(column.name, column.as_numbers(), nan_to_null=True)
    return numbers.cast(pl.Boolean) if column.truth else numbers
