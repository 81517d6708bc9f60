"""Columns of raw tables in one of three forms, whatever library the table came from.

    numbers   float64, NaN where missing (also Booleans, marked as such)
    levels    integer codes into a sorted tuple of texts, −1 where missing
    times     datetime64[us], NaT where missing

pandas, polars, Arrow and NumPy tables with the same content give the same columns, so that every later stage is
written once.
"""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse

from hinge._native import check_indices
from hinge.tables.dates import read_dates
from hinge.tables.frames import as_frame
from hinge.tables.number_formats import Notation, plain_number

Array = np.ndarray
MISSING_TEXTS = (
    "", "NA", "N/A", "n/a", "n.a.", "NaN", "nan", "NAN", "NaT", "NULL", "Null", "null", "None", "?", "-", ".", "<NA>", "missing",
    "#N/A", "#VALUE!", "#REF!", "#DIV/0!", "#NAME?", "#NUM!", "#NULL!",
)  # fmt: skip
MICROSECONDS = 1_000_000
EXACT = 2**53  # larger integers lose digits as floats; a column with a share of at least CODES of them holds codes
CODES = 0.01


@dataclass(frozen=True, eq=False)
class Column:
    """One column; exactly one of ``numbers``, ``codes`` (with ``levels``) and ``times`` is set.

    Attributes
    ----------
    truth : bool
        The numbers stand for true and false.
    categorical : bool
        The type of the column in its table is categorical, or its integers are too long for floats.
    """

    name: str
    numbers: Array | None = None
    codes: Array | None = None
    levels: tuple[str, ...] = ()
    times: Array | None = None
    truth: bool = False
    categorical: bool = False

    @property
    def storage(self) -> str:
        """ "numbers", "texts" or "times"."""
        return "texts" if self.codes is not None else "numbers" if self.numbers is not None else "times"

    @property
    def values(self) -> Array:
        """The column as floats, NaN where missing: numbers, days since 1970, or codes of texts."""
        return self.as_numbers() if self.codes is None else np.where(self.codes < 0, np.nan, self.codes)

    def __len__(self) -> int:
        return len(next(a for a in (self.numbers, self.codes, self.times) if a is not None))

    def missing(self) -> Array:
        """True where a value is missing."""
        if self.numbers is not None:
            return np.isnan(self.numbers)
        return np.isnat(self.times) if self.times is not None else np.less(self.codes, 0)  # type: ignore[arg-type]

    def present(self) -> Array:
        """The non-missing values."""
        stored = next(a for a in (self.numbers, self.codes, self.times) if a is not None)
        return stored[~self.missing()]

    def varies(self) -> bool:
        """True if the values differ between rows."""
        present = self.present()
        return bool(len(present) and np.any(present != present[0]))

    def counts(self) -> Array:
        """The number of rows of each level."""
        return np.bincount(self.present(), minlength=len(self.levels))

    def head(self, n: int) -> Column:
        """The first n rows."""
        if n >= len(self):
            return self
        if self.codes is None:
            return replace(self, **{self.storage: getattr(self, self.storage)[:n]})
        return replace(self, codes=self.codes[:n]).compact()

    def take(self, rows: np.ndarray) -> Column:
        """Some rows."""
        if self.codes is None:
            return replace(self, **{self.storage: getattr(self, self.storage)[rows]})
        return replace(self, codes=self.codes[rows]).compact()

    def compact(self) -> Column:
        """The same column without unused levels."""
        used, codes = np.unique(self.present(), return_inverse=True)
        if len(used) == len(self.levels):
            return self
        every = np.full(len(self), -1, dtype=np.int64)
        every[~self.missing()] = codes
        return replace(self, codes=every, levels=tuple(self.levels[k] for k in used))

    def as_numbers(self, notation: Notation | None = None) -> Array:
        """Numbers; texts are read in a number format (NaN where they do not follow it), times are days since 1970."""
        if self.numbers is not None:
            return self.numbers
        if self.times is not None:
            days = self.times.astype(np.int64) / (86_400.0 * MICROSECONDS)
            return np.where(np.isnat(self.times), np.nan, days)
        read = plain_number if notation is None else notation.number
        return np.array([*map(read, self.levels), np.nan])[self.codes]

    def as_levels(self) -> tuple[Array, tuple[str, ...]]:
        """Codes and levels; numbers are written without trailing zeros."""
        if self.codes is not None:
            return self.codes, self.levels
        missing = self.missing()
        distinct, inverse = np.unique(self.present(), return_inverse=True)
        texts = [str(bool(v)) if self.truth else written(v) for v in distinct.tolist()]
        codes = np.full(len(missing), -1, dtype=np.int64)
        codes[~missing] = inverse
        return sort_levels(codes, texts)

    def as_times(self, pattern: str = "iso") -> Array:
        """Times; texts are read in a date format (NaT where they do not follow it), numbers are NaT."""
        if self.times is not None:
            return self.times
        if self.numbers is not None:
            return np.full(len(self.numbers), np.datetime64("NaT", "us"), dtype="datetime64[us]")
        return np.append(read_dates(self.levels, pattern), np.datetime64("NaT", "us"))[self.codes]


def written(value: Any) -> str:
    """A value as text: 3 and 3.0 are the same category."""
    if isinstance(value, str):
        return value
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)):
        as_float = _float(value)
        if as_float.is_integer() and abs(as_float) < 1e15:
            return str(int(as_float))
        return str(value) if isinstance(value, numbers.Integral) else repr(as_float)
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return str(value)


def sort_levels(codes: Array, levels: Iterable[str], missing: Iterable[str] = ()) -> tuple[Array, tuple[str, ...]]:
    """Codes and levels with the levels trimmed, in composed Unicode, distinct and sorted; texts for "missing" are −1."""
    clean = [level.strip() if level.isascii() else unicodedata.normalize("NFC", level.strip()) for level in levels]
    distinct = sorted(set(clean) - set(missing))
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
            if sum(isinstance(v, numbers.Integral) and abs(int(v)) > EXACT for v in present) < CODES * len(present):
                return Column(name, numbers=_floats(items))
            categorical = True
        elif all(isinstance(v, (datetime.date, np.datetime64)) for v in present):
            return Column(name, times=np.array([_naive(v) for v in items], dtype="datetime64[us]"))
        elif all(isinstance(v, datetime.time) for v in present):
            return Column(name, numbers=_floats([None if v is None else _hours(v) for v in items]))
    place: dict[Any, int] = {}
    texts = (None if v is None else written(v) for v in items)
    codes = np.fromiter((-1 if t is None else place.setdefault(t, len(place)) for t in texts), dtype=np.int64)
    codes, levels = sort_levels(codes, place, missing)
    return Column(name, codes=codes, levels=levels, categorical=categorical)


def _absent(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        pandas = sys.modules.get("pandas")
        return pandas is not None and value is pandas.NA  # pandas.NA cannot be compared: bool(NA == x) raises


def _floats(items: list[Any]) -> Array:
    return np.array([math.nan if v is None else _float(v) for v in items], dtype=np.float64)


def _float(value: Any) -> float:
    """A number as a float; one that overflows is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _naive(value: Any) -> Any:
    if value is None:
        return np.datetime64("NaT", "us")
    return value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value


def _hours(value: datetime.time) -> float:
    return value.hour + (value.minute + (value.second + value.microsecond / 1e6) / 60) / 60


def read_columns(X: Any, missing: Iterable[str] = MISSING_TEXTS) -> Iterator[Column]:
    """Yield the columns of a table one by one, so that at most one is in memory twice.

    Parameters
    ----------
    X : data frame, array, sparse matrix or dict of columns
    missing : collection of str
        Texts that mean "missing".
    """
    frame = as_frame(X)
    if frame is not None:
        for j, name in enumerate(frame.columns):
            yield read_series(frame[:, j], missing, str(name))
    elif isinstance(X, dict):
        for name, values in X.items():
            series = nw.from_native(values, series_only=True, pass_through=True)
            read = read_series if isinstance(series, nw.Series) else _from_array
            yield replace(read(series, missing), name=str(name))
    elif scipy.sparse.issparse(X):
        check_indices(X)
        columns = X.tocsc()
        for j in range(X.shape[1]):
            yield Column(f"x{j}", numbers=np.asarray(columns[:, [j]].toarray(), dtype=np.float64).ravel())
    else:
        X = np.asarray(X)
        for j in range(X.shape[1]):
            yield _from_array(X[:, j], missing, f"x{j}")


def _from_array(values: Any, missing: Iterable[str], name: str = "") -> Column:
    kind = values.dtype.kind if isinstance(values, np.ndarray) else "O"
    if kind in "iu" and values.size and np.mean((values > EXACT) | (values < -EXACT)) >= CODES:
        return from_values(name, values.tolist(), missing)
    if kind in "iufb":
        return Column(name, numbers=values.astype(np.float64), truth=kind == "b")
    if kind == "M":
        return Column(name, times=values.astype("datetime64[us]"))
    if kind == "m":
        return Column(name, numbers=_seconds(values))
    return from_values(name, values.tolist() if isinstance(values, np.ndarray) else values, missing)


def read_series(series: Any, missing: Iterable[str] = MISSING_TEXTS, name: str | None = None) -> Column:
    """A narwhals series as a column."""
    dtype, name = series.dtype, str(series.name) if name is None else name
    if dtype == nw.Boolean:
        return Column(name, numbers=series.cast(nw.Float64).to_numpy().astype(np.float64), truth=True)
    if dtype.is_integer() and too_long(series):
        return from_values(name, series.to_list(), missing)
    if dtype.is_numeric():
        return Column(name, numbers=np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64))
    if dtype in (nw.Datetime, nw.Date):
        series = series.dt.replace_time_zone(None) if getattr(dtype, "time_zone", None) else series
        return Column(name, times=series.cast(nw.Datetime("us")).to_numpy().astype("datetime64[us]"))
    if dtype == nw.Duration:
        return Column(name, numbers=_seconds(series.to_numpy()))
    categorical = dtype in (nw.Categorical, nw.Enum)
    if dtype == nw.String or (categorical and series.implementation.is_polars()):
        codes, texts = _factorize(series)
        codes, levels = sort_levels(np.asarray(codes, dtype=np.int64), texts, missing)
        return Column(name, codes=codes, levels=levels, categorical=categorical)
    return from_values(name, series.to_list(), missing, categorical)


def too_long(series: Any) -> bool:
    """True if a series of integers (of narwhals or polars) holds codes that are too long for floats."""
    low, high = series.min(), series.max()
    if low is None or low != low or max(-int(low), int(high)) <= EXACT:
        return False
    long = series > EXACT
    return (long if low >= 0 else long | (series < -EXACT)).mean() >= CODES  # unsigned types cannot represent -EXACT


def _factorize(series: Any) -> tuple[Any, list[str]]:
    """Codes and levels of texts, without a Python object for every row."""
    if series.implementation.is_pandas_like():
        codes, levels = series.to_native().factorize()
        return codes, list(levels)
    levels = series.cast(nw.String).unique().drop_nulls().to_list()
    codes = series.cast(nw.String).replace_strict(levels, list(range(len(levels))), return_dtype=nw.Int64)
    return codes.fill_null(-1).to_numpy(), levels


def _seconds(values: Array) -> Array:
    microseconds = values.astype("timedelta64[us]")
    return np.where(np.isnat(microseconds), np.nan, microseconds.astype(np.int64) / MICROSECONDS)


def aligned(one: Column, two: Column) -> tuple[Array, Array]:
    """The values of the same column in two tables, with the same code for the same text."""
    if one.codes is None and two.codes is None:
        return one.values, two.values
    columns = [one.as_levels(), two.as_levels()]
    place = {level: float(k) for k, level in enumerate(sorted({*columns[0][1], *columns[1][1]}))}
    a, b = (np.array([*(place[level] for level in levels), np.nan])[codes] for codes, levels in columns)
    return a, b


def row_keys(*parts: Array) -> Array:
    """One integer per row, equal for two rows if and only if all parts of them are equal."""
    table = np.column_stack([np.asarray(p, dtype=np.float64) for p in parts]) + 0.0  # −0 becomes 0
    table[np.isnan(table)] = np.inf  # missing values are equal to each other
    rows = np.ascontiguousarray(table).view(np.dtype((np.void, table.dtype.itemsize * table.shape[1]))).ravel()
    return np.unique(rows, return_inverse=True)[1]
