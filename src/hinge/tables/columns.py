"""Columns of raw tables in one of three forms, whatever library the table came from.

    numbers   float64, NaN where missing (truth values too, marked as such)
    levels    whole codes into a sorted tuple of texts, −1 where missing
    times     datetime64[us], NaT where missing

pandas, polars, Arrow and NumPy tables with the same content give the same columns, so that everything behind this
module is written once.
"""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse

from hinge.tables.frames import as_frame

MISSING_TEXTS = ("", "#N/A", "?", "N/A", "NA", "NULL", "NaN", "<NA>", "n/a", "nan", "null")
MICROSECONDS = 1_000_000
PATTERNS = (
    "iso",
    "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y",
    "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%Y/%m/%d %H:%M", "%d.%m.%Y %H:%M",
    "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%Y/%m/%d %H:%M:%S", "%d.%m.%Y %H:%M:%S",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Column:
    """One column; exactly one of ``numbers``, ``codes`` (with ``levels``) and ``times`` is there.

    Attributes
    ----------
    truth : bool
        The numbers stand for true and false.
    categorical : bool
        The table itself says that these are categories.
    """

    name: str
    numbers: np.ndarray | None = None
    codes: np.ndarray | None = None
    levels: tuple[str, ...] = ()
    times: np.ndarray | None = None
    truth: bool = False
    categorical: bool = False

    def __len__(self) -> int:
        return len(next(a for a in (self.numbers, self.codes, self.times) if a is not None))

    def missing(self) -> np.ndarray:
        if self.numbers is not None:
            return np.isnan(self.numbers)
        return np.isnat(self.times) if self.times is not None else np.less(self.codes, 0)  # type: ignore[arg-type]

    def as_numbers(self) -> np.ndarray:
        """Numbers; texts are read as numbers (NaN where they are none), times are days since 1970."""
        if self.numbers is not None:
            return self.numbers
        if self.times is not None:
            days = self.times.astype(np.int64) / (86_400.0 * MICROSECONDS)
            return np.where(np.isnat(self.times), np.nan, days)
        return self._through([number(level) for level in self.levels], np.float64, np.nan)

    def as_levels(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """Codes and levels; numbers are written without needless decimals."""
        if self.codes is not None:
            return self.codes, self.levels
        missing = self.missing()
        values: Any = self.numbers if self.numbers is not None else self.times
        distinct, inverse = np.unique(values[~missing], return_inverse=True)
        texts = [written(v) for v in distinct.tolist()]
        codes = np.full(len(missing), -1, dtype=np.int64)
        codes[~missing] = inverse
        return sort_levels(codes, [str(bool(v)) for v in distinct] if self.truth else texts)

    def as_times(self, pattern: str = "iso") -> np.ndarray:
        """Times; texts are read by a pattern (NaT where they do not follow it)."""
        if self.times is not None:
            return self.times
        if self.numbers is not None:
            return np.full(len(self.numbers), np.datetime64("NaT"), dtype="datetime64[us]")
        return self._through([time(level, pattern) for level in self.levels], "datetime64[us]", np.datetime64("NaT"))

    def _through(self, values: list[Any], dtype: Any, missing: Any) -> np.ndarray:
        table = np.array([*values, missing], dtype=dtype)
        return table[self.codes]


def number(text: str) -> float:
    """A text as a number; NaN if it is none. Infinities and underscores are not numbers of a table."""
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def time(text: str, pattern: str) -> Any:
    """A text as a time by the clock on the wall (offsets from UTC are dropped); NaT if it does not follow the pattern."""
    try:
        if pattern == "iso":
            moment = datetime.datetime.fromisoformat(text)
        else:
            moment = datetime.datetime.strptime(text, pattern)
    except ValueError:
        return np.datetime64("NaT")
    return np.datetime64(moment.replace(tzinfo=None), "us")


def pattern_of(levels: Iterable[str]) -> str | None:
    """The first pattern that every text follows."""
    levels = list(levels)
    if not levels or max(map(len, levels)) > 40 or not all(any(c.isdigit() for c in level) for level in levels):
        return None
    for pattern in PATTERNS:
        if all(not np.isnat(time(level, pattern)) for level in levels):
            return pattern
    return None


def written(value: Any) -> str:
    """A value as text: 3 and 3.0 are the same category."""
    if isinstance(value, str):
        return value
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)):
        as_float = float(value)
        if as_float.is_integer() and abs(as_float) < 1e15:
            return str(int(as_float))
        return repr(as_float)
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return str(value)


def sort_levels(codes: np.ndarray, levels: Iterable[str], missing: Iterable[str] = ()) -> Any:
    """Codes and levels with the levels trimmed, in composed Unicode, distinct and sorted; texts for "missing" are −1."""
    clean = [unicodedata.normalize("NFC", level.strip()) for level in levels]
    absent = set(missing)
    distinct = sorted(set(clean) - absent)
    place = {level: k for k, level in enumerate(distinct)}
    table = np.array([*(place.get(level, -1) for level in clean), -1], dtype=np.int64)
    return table[codes], tuple(distinct)


def from_values(name: str, values: Iterable[Any], missing: Iterable[str], categorical: bool = False) -> Column:
    """A column of Python objects: numbers, truth values or times if all are; texts otherwise."""
    items = [None if _absent(v) else v for v in values]
    present = [v for v in items if v is not None]
    if not categorical and present:
        if all(isinstance(v, (bool, np.bool_)) for v in present):
            return Column(name, numbers=_floats(items), truth=True)
        if all(isinstance(v, (numbers.Real, decimal.Decimal)) for v in present):
            return Column(name, numbers=_floats(items))
        if all(isinstance(v, (datetime.date, np.datetime64)) for v in present):
            return Column(name, times=np.array([_naive(v) for v in items], dtype="datetime64[us]"))
    texts = [v if v is None or type(v) is str else written(v) for v in items]
    return from_texts(name, texts, missing, categorical)


def from_texts(name: str, texts: Iterable[Any], missing: Iterable[str], categorical: bool = False) -> Column:
    """A column of texts; whatever is not a text is missing."""
    place: dict[Any, int] = {}
    codes = np.fromiter((place.setdefault(text, len(place)) for text in texts), dtype=np.int64)
    absent = "\0 missing"
    levels = [key if isinstance(key, str) else absent for key in place]
    codes, distinct = sort_levels(codes, levels, {absent, *missing})
    return Column(name, codes=codes, levels=distinct, categorical=categorical)


def _absent(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"  # pandas.NA has no truth value


def _floats(items: list[Any]) -> np.ndarray:
    return np.array([math.nan if v is None else float(v) for v in items], dtype=np.float64)


def _naive(value: Any) -> Any:
    if value is None:
        return np.datetime64("NaT")
    return value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value


def read_columns(X: Any, missing: Iterable[str] = MISSING_TEXTS) -> Iterator[Column]:
    """The columns of a table, one after the other, so that no more than one is held twice."""
    frame = as_frame(X)
    if frame is not None:
        for j, name in enumerate(frame.columns):
            yield _from_series(str(name), frame[:, j], missing)
    elif scipy.sparse.issparse(X):
        columns = X.tocsc()
        for j in range(X.shape[1]):
            yield Column(f"x{j}", numbers=np.asarray(columns[:, [j]].toarray(), dtype=np.float64).ravel())
    else:
        for j in range(X.shape[1]):
            yield _from_array(f"x{j}", X[:, j], missing)


def _from_array(name: str, values: np.ndarray, missing: Iterable[str]) -> Column:
    kind = values.dtype.kind
    if kind in "iuf":
        return Column(name, numbers=values.astype(np.float64))
    if kind == "b":
        return Column(name, numbers=values.astype(np.float64), truth=True)
    if kind == "M":
        return Column(name, times=values.astype("datetime64[us]"))
    if kind == "m":
        return Column(name, numbers=_seconds(values))
    return from_values(name, values.tolist(), missing)


def _from_series(name: str, series: Any, missing: Iterable[str]) -> Column:
    dtype = series.dtype
    if dtype == nw.Boolean:
        return Column(name, numbers=series.cast(nw.Float64).to_numpy().astype(np.float64), truth=True)
    if dtype.is_numeric():
        return Column(name, numbers=np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64))
    if dtype in (nw.Datetime, nw.Date):
        series = series.dt.replace_time_zone(None) if getattr(dtype, "time_zone", None) else series
        return Column(name, times=series.cast(nw.Datetime("us")).to_numpy().astype("datetime64[us]"))
    if dtype == nw.Duration:
        return Column(name, numbers=_seconds(series.to_numpy()))
    categorical = dtype in (nw.Categorical, nw.Enum)
    if dtype == nw.String or (categorical and series.implementation.is_polars()):
        return _from_text_series(name, series, missing, categorical)
    return from_values(name, series.to_list(), missing, categorical)


def _from_text_series(name: str, series: Any, missing: Iterable[str], categorical: bool) -> Column:
    """As :func:`from_texts`, without a Python object for every row."""
    if series.implementation.is_pandas_like():
        codes, levels = series.to_native().factorize()
        levels = list(levels)
    else:
        levels = series.cast(nw.String).unique().drop_nulls().to_list()
        numbered = series.cast(nw.String).replace_strict(levels, range(len(levels)), return_dtype=nw.Int64)
        codes = numbered.fill_null(-1).to_numpy()
    codes, distinct = sort_levels(np.asarray(codes, dtype=np.int64), levels, missing)
    return Column(name, codes=codes, levels=distinct, categorical=categorical)


def _seconds(values: np.ndarray) -> np.ndarray:
    microseconds = values.astype("timedelta64[us]")
    return np.where(np.isnat(microseconds), np.nan, microseconds.astype(np.int64) / MICROSECONDS)


def rename(column: Column, name: str) -> Column:
    return column if column.name == name else replace(column, name=name)
