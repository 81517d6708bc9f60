"""Encoders of one column: fitted to training rows, then applied to any rows.

Every encoder is a frozen record of data. ``labels`` are the suffixes of the names of its outputs, ``encode`` returns the
outputs of a column (a dense or a sparse block), ``describe`` summarises the encoding, given the number of gaps in
training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from hinge.tables.columns import Column
from hinge.tables.dates import date_format
from hinge.tables.kinds import number_format
from hinge.tables.number_formats import TRUE, Notation, truth_value

Block = Any  # a dense or sparse array with one row per row of the table


@dataclass(frozen=True, eq=False)
class Dropped:
    """No outputs."""

    kind: ClassVar[str] = "drop"
    reason: str

    @property
    def labels(self) -> list[str]:
        return []

    def encode(self, column: Column) -> Block:
        return np.empty((len(column), 0))

    def describe(self, gaps: int) -> str:
        return self.reason


class Marked:
    """An encoder of one output, and of a second one that marks gaps if training had any."""

    marked: bool

    @property
    def labels(self) -> list[str]:
        return ["", "=missing"] if self.marked else [""]

    def _outputs(self, values: np.ndarray, missing: np.ndarray) -> Block:
        return np.column_stack([values, missing]) if self.marked else values[:, None]


@dataclass(frozen=True, eq=False)
class Number(Marked):
    """(x − centre) / scale, with gaps filled, and a second output that marks gaps if training had any."""

    centre: float
    scale: float
    fill: float
    marked: bool
    junk: int = 0
    notation: Notation | None = None

    def encode(self, column: Column) -> Block:
        values = read_numbers(column, self.notation)
        missing = np.isnan(values)
        scaled = (np.where(missing, self.fill, values) - self.centre) / self.scale
        return self._outputs(scaled, missing)

    def describe(self, gaps: int) -> str:
        parts = []
        if (self.centre, self.scale) != (0.0, 1.0):
            parts.append(f"(x − {self.centre:.6g}) / {self.scale:.6g}" if self.centre else f"x / {self.scale:.6g}")
        if gaps and not np.isnan(self.fill):
            parts.append(f"gaps filled with {self.fill:.6g}" + (" and marked" if self.marked else ""))
        if self.junk:
            parts.append(f"{self.junk} values that are not numbers count as missing")
        if self.notation is not None:
            marks = [self.notation.before, f"1{self.notation.decimal}5", self.notation.after]
            parts.append(f"written as {' '.join(filter(None, marks))}")
        return ", ".join(parts) or "as it is"


@dataclass(frozen=True, eq=False)
class Levels:
    """One output per level (1 where the row has it), or one output with its code.

    Attributes
    ----------
    levels : tuple of str
        The levels with an output, or a code, of their own.
    pooled : int
        How many rarer levels share the last one, "other".
    missing_level : bool
        Gaps have a separate output.
    codes : bool
        Codes 0, 1, … with NaN for gaps and for other levels, instead of one output per level.
    """

    levels: tuple[str, ...]
    pooled: int
    missing_level: bool
    codes: bool

    @property
    def labels(self) -> list[str]:
        if self.codes:
            return [""]
        ends = [f"={level}" for level in self.levels]
        return ends + ["=(other)"] * (self.pooled > 0) + ["=(missing)"] * self.missing_level

    def encode(self, column: Column) -> Block:
        codes, texts = column.as_levels()
        place = {level: k for k, level in enumerate(self.levels)}
        other = len(self.levels) if self.pooled else -1
        missing = len(self.levels) + (self.pooled > 0) if self.missing_level and not self.codes else -1
        at = np.array([*(place.get(text, other) for text in texts), missing], dtype=np.int64)[codes]
        if self.codes:
            return np.where(at < 0, np.nan, at)[:, None]
        return one_hot(at, len(self.labels))

    def describe(self, gaps: int) -> str:
        what = (
            f"codes of {len(self.levels)} levels" if self.codes else f"one output for each of {len(self.levels)} levels"
        )
        rest = f", {self.pooled} rarer ones pooled" if self.pooled else ""
        unseen = "as other" if self.pooled else ("as missing" if self.codes else "as zeros")
        return f"{what}{rest}; levels not seen in training count {unseen}"


@dataclass(frozen=True, eq=False)
class Truth(Marked):
    """0 or 1; gaps take the more frequent value and are marked if training had any."""

    true: str
    fill: float
    marked: bool

    def encode(self, column: Column) -> Block:
        if column.truth:
            values = column.as_numbers()
        else:
            codes, texts = column.as_levels()
            values = np.array([*map(self.value, texts), np.nan])[codes]
        missing = np.isnan(values)
        return self._outputs(np.where(missing, self.fill, values), missing)

    def value(self, text: str) -> float:
        """0 or 1 for a text; NaN for a text that is neither, unless any other text than ``true`` counts as 0."""
        known = truth_value(text)
        return known if self.true in TRUE or not np.isnan(known) else float(text.lower() == self.true)

    def describe(self, gaps: int) -> str:
        filled = f", gaps filled with {self.fill:g}" + " and marked" * self.marked
        return f"1 if {self.true!r}, else 0{filled if gaps and not np.isnan(self.fill) else ''}"


@dataclass(frozen=True, eq=False)
class Dates:
    """Days since the first training row (scaled), and those cycles of year, week and day that vary in training."""

    pattern: str
    origin: float
    scale: float
    fill: float
    marked: bool
    parts: tuple[str, ...]

    @property
    def labels(self) -> list[str]:
        return [f".{part}" for part in self.parts] + ["=missing"] * self.marked

    def encode(self, column: Column) -> Block:
        times = column.as_times(self.pattern)
        missing = np.isnat(times)
        if len(column) and missing.all() and not column.missing().all():
            raise _changed(column, "dates")
        days = Column(column.name, times=times).as_numbers()
        if not np.isnan(self.fill):
            days = np.where(missing, self.fill, days)
        calendar = parts_of(days)
        calendar["days"] = (days - self.origin) / self.scale
        columns = [calendar[part] for part in self.parts]
        return np.column_stack(columns + [missing] * self.marked)

    def describe(self, gaps: int) -> str:
        how = "" if self.pattern == "iso" else f", read by {self.pattern}"
        return f"{', '.join(self.parts)}{how}"


def one_hot(at: np.ndarray, width: int) -> scipy.sparse.csr_array:
    """One-hot rows; a row whose index is −1 is zero."""
    known = at >= 0
    ends = np.concatenate([[0], np.cumsum(known)])
    return scipy.sparse.csr_array((np.ones(int(ends[-1])), at[known], ends), shape=(len(at), width))


def read_numbers(column: Column, notation: Notation | None = None) -> np.ndarray:
    """The numbers of a column; an error for infinities and for texts of which none is a number."""
    values = column.as_numbers(notation)
    if np.isinf(values).any():
        raise ValueError(
            f"Input X contains infinity in column {column.name!r}; replace it by a number or by NaN (missing)."
        )
    if column.codes is not None and len(values) and np.isnan(values).all() and not column.missing().all():
        raise _changed(column, "numbers")
    return values


def _changed(column: Column, what: str) -> ValueError:
    sample = column.as_levels()[1][0]
    return ValueError(
        f"Column {column.name!r} held {what} in training; none of its values reads so now (e.g. {sample!r})."
    )


def parts_of(days: np.ndarray) -> dict[str, np.ndarray]:
    """Calendar parts of days since 1970 (NaN where missing)."""
    present = ~np.isnan(days)
    date = np.floor(np.where(present, days, 0.0)).astype("datetime64[D]")
    months, years = date.astype("datetime64[M]"), date.astype("datetime64[Y]")
    weekday = (date.astype(np.int64) + 3) % 7  # 1970 began on a Thursday; Monday is 0
    hours = (np.where(present, days, 0.0) - date.astype(np.int64)) * 24.0
    in_year = (date - years).astype(np.int64) / 365.25
    raw = {
        "year": years.astype(np.int64) + 1970,
        "month": months.astype(np.int64) % 12 + 1,
        "day": (date - months).astype(np.int64) + 1,
        "weekday": weekday,
        "weekend": weekday >= 5,
        "hour": hours,
        "yearly_sin": np.sin(2 * np.pi * in_year),
        "yearly_cos": np.cos(2 * np.pi * in_year),
        "weekly_sin": np.sin(2 * np.pi * weekday / 7),
        "weekly_cos": np.cos(2 * np.pi * weekday / 7),
        "daily_sin": np.sin(2 * np.pi * hours / 24),
        "daily_cos": np.cos(2 * np.pi * hours / 24),
    }
    return {name: np.where(present, values, np.nan) for name, values in raw.items()}


CYCLES = ("yearly_sin", "yearly_cos", "weekly_sin", "weekly_cos", "weekend", "daily_sin", "daily_cos")
CALENDAR = ("year", "month", "day", "weekday", "hour")


def learn_number(column: Column, scale: bool, missing: str, decimal: str = ".") -> Number:
    """Median for gaps; mean and standard deviation for the scale. Mostly zero columns keep their zeros.

    ``decimal`` is the decimal mark of the table, for texts that leave it open.
    """
    notation = number_format(column, decimal)
    values = read_numbers(column, notation)
    present = values[~np.isnan(values)]
    gaps = len(present) < len(values)
    junk = int(len(values) - len(present) - column.missing().sum())
    fill = float("nan") if missing == "keep" else (float(np.median(present)) if len(present) else 0.0)
    centre, spread = spread_of(present) if scale and len(present) else (0.0, 1.0)
    if np.mean(present == 0.0) > 0.75:
        centre = 0.0
    return Number(centre, spread, fill, gaps and missing == "indicator", junk, notation)


# Smaller numbers have lost digits (they are nearly denormal), and dividing by them overflows.
SMALLEST_SPREAD = float(np.finfo(np.float64).tiny / np.finfo(np.float64).eps)


def spread_of(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation without overflow; 1 for the deviation of a constant."""
    size = float(np.max(np.abs(values), initial=0.0))
    if size == 0.0:
        return 0.0, 1.0
    unit = values / size
    mean = float(np.mean(unit))
    deviation = float(np.std(unit - mean))
    return mean * size, deviation * size if deviation > 1e-14 and deviation * size > SMALLEST_SPREAD else 1.0


def learn_levels(column: Column, codes: bool, max_categories: int, min_frequency: int) -> Levels:
    """The most frequent levels, in sorted order; the others are pooled."""
    training_codes, texts = column.as_levels()
    counts = np.bincount(training_codes[training_codes >= 0], minlength=len(texts))
    order = np.lexsort((np.arange(len(texts)), -counts))
    kept = order[:max_categories]
    kept = np.sort(kept[counts[kept] >= min(min_frequency, counts.max(initial=0))])
    pooled = int(np.sum(counts > 0)) - len(kept)
    return Levels(tuple(texts[k] for k in kept), pooled, bool(np.any(training_codes < 0)), codes)


def learn_truth(column: Column, missing: str) -> Truth:
    """The word for true, and the more frequent value for gaps."""
    levels = [level.lower() for level in column.as_levels()[1]]
    true = next((level for level in levels if level in TRUE), levels[-1])
    encoder = Truth(true, float("nan"), False)
    values = encoder.encode(column)[:, 0]
    if missing == "keep":
        return encoder
    gaps = np.isnan(values)
    fill = float(np.mean(values[~gaps]) > 0.5) if not gaps.all() else 0.0
    return Truth(true, fill, bool(gaps.any()) and missing == "indicator")


def learn_dates(column: Column, scale: bool, missing: str, raw: bool) -> Dates:
    """``raw`` calendar numbers for trees, sine and cosine waves for other models; constant parts are left out."""
    pattern = "iso" if column.codes is None else date_format(column.levels, column.counts()) or "iso"
    times = column.as_times(pattern)
    gaps = np.isnat(times)
    days = Column(column.name, times=times).as_numbers()
    present = days[~gaps]
    if not len(present):
        raise ValueError(f"Column {column.name!r} has the kind 'date', but none of its values can be read as a date.")
    origin, spread = (float(present.min()), spread_of(present - present.min())[1]) if scale else (0.0, 1.0)
    calendar = parts_of(present)
    varying = [part for part in (CALENDAR if raw else CYCLES) if np.ptp(calendar[part]) > 1e-9]
    fill = float("nan") if missing == "keep" else float(np.median(present))
    return Dates(pattern, origin, spread, fill, bool(gaps.any()) and missing == "indicator", ("days", *varying))
