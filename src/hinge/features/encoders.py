"""Encoders of one column: fitted to training rows, then applied to any rows.

Every encoder is a frozen record of data. ``labels`` are the suffixes of the names of its outputs, ``encode`` returns the
outputs of a column (a dense or a sparse block), ``describe`` summarises the encoding, given the number of gaps in
training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from hinge.features.terms import TermIndex, Terms
from hinge.tables.columns import Column
from hinge.tables.dates import date_format
from hinge.tables.kinds import number_format
from hinge.tables.number_formats import TRUE, Notation, truth_value

Block = Any  # an array, or a sparse array, with one row per row of the table


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


@dataclass(frozen=True, eq=False)
class Number:
    """(x − centre) / scale, with gaps filled, and a second output that marks gaps if training had any."""

    centre: float
    scale: float
    fill: float
    marked: bool
    junk: int = 0
    notation: Notation | None = None

    @property
    def labels(self) -> list[str]:
        return ["", "=missing"] if self.marked else [""]

    def encode(self, column: Column) -> Block:
        values = read_numbers(column, self.notation)
        missing = np.isnan(values)
        scaled = (np.where(missing, self.fill, values) - self.centre) / self.scale
        return np.column_stack([scaled, missing]) if self.marked else scaled[:, None]

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
class LevelMeans:
    """Codes of levels, and beside them the mean target of every level, drawn towards the mean of all rows.

    m_l = (Σ_{rows of l} t + a t̄) / (n_l + a): rare and unknown levels have about the mean t̄ of all rows.
    """

    codes: Levels
    levels: tuple[str, ...]
    means: np.ndarray  # levels × targets
    overall: np.ndarray
    names: tuple[str, ...]

    @property
    def labels(self) -> list[str]:
        return [*self.codes.labels, *(f".mean{name}" for name in self.names)]

    def encode(self, column: Column) -> Block:
        return np.column_stack([self.codes.encode(column), self.encode_means(column)])

    def encode_means(self, column: Column) -> np.ndarray:
        """The means of the level of every row."""
        codes, texts = column.as_levels()
        place = {level: k for k, level in enumerate(self.levels)}
        table = np.vstack([self.means, self.overall])
        return table[np.array([*(place.get(text, -1) for text in texts), -1], dtype=np.int64)[codes]]

    def describe(self, gaps: int) -> str:
        return f"{self.codes.describe(gaps)}; the mean target of each of {len(self.levels)} levels"


@dataclass(frozen=True, eq=False)
class Truth:
    """0 or 1; gaps take the more frequent value and are marked if training had any."""

    true: str
    fill: float
    marked: bool

    @property
    def labels(self) -> list[str]:
        return ["", "=missing"] if self.marked else [""]

    def encode(self, column: Column) -> Block:
        if column.truth:
            values = column.as_numbers()
        else:
            codes, texts = column.as_levels()
            values = np.array([*map(self.value, texts), np.nan])[codes]
        missing = np.isnan(values)
        filled = np.where(missing, self.fill, values)
        return np.column_stack([filled, missing]) if self.marked else filled[:, None]

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


@dataclass(frozen=True, eq=False)
class Words:
    """Terms of free text, runs of words or of characters: presence, counts or tf-idf with rows of length 1."""

    terms: tuple[str, ...]
    weight: str
    idf: np.ndarray
    analyzer: str = "word"
    sublinear: bool = False

    @property
    def labels(self) -> list[str]:
        mark = ":" if self.analyzer == "word" else "~"
        return [f"{mark}{term}" for term in self.terms]

    @cached_property
    def index(self) -> TermIndex:
        return TermIndex(self.terms, self.analyzer)

    def encode(self, column: Column, counted: CountedTexts | None = None) -> Block:
        codes, texts = column.as_levels()
        if counted is None:
            return self.weigh(self.index.count((*texts, "")))[codes]
        rows, places = counted.rows(texts), counted.places(self.terms)
        return self.weigh(counted.terms.counts[np.append(rows, -1)[codes]][:, places])

    def weigh(self, counts: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """Counts as they are, as 0 and 1, or times idf with rows of length 1."""
        if self.weight == "presence":
            counts.data = np.ones_like(counts.data)
        elif self.weight == "tfidf":
            frequency = 1.0 + np.log(counts.data) if self.sublinear else counts.data
            counts.data = frequency * self.idf[counts.indices]
            unit_rows(counts)
        return counts

    def describe(self, gaps: int) -> str:
        how = {"presence": "presence", "counts": "counts", "tfidf": "tf-idf"}[self.weight]
        units = "words" if self.analyzer == "word" else "runs of characters"
        longest = max((len(term.split(" ")) for term in self.terms), default=1) if self.analyzer == "word" else 1
        runs = f" and runs of up to {longest}" if longest > 1 else ""
        return f"{how} of {len(self.terms)} {units}{runs}"


@dataclass(frozen=True, eq=False)
class Several:
    """The outputs of several encoders of one column, side by side."""

    parts: tuple[Words, ...]

    @property
    def labels(self) -> list[str]:
        return [label for part in self.parts for label in part.labels]

    def encode(self, column: Column, counted: Sequence[CountedTexts | None] = ()) -> Block:
        given = counted or [None] * len(self.parts)
        blocks = [part.encode(column, own) for part, own in zip(self.parts, given, strict=True)]
        return scipy.sparse.csr_array(scipy.sparse.hstack(blocks, format="csr"))

    def describe(self, gaps: int) -> str:
        return "; ".join(part.describe(gaps) for part in self.parts)


class CountedTexts:
    """The terms of a column of texts, counted once for all folds and encodings: those in ``least`` rows or more.

    The last row of the counts is that of a text without terms, for gaps.
    """

    def __init__(self, column: Column, analyzer: str, ngrams: tuple[int, int], least: int) -> None:
        codes, texts = column.as_levels()
        repeats = np.bincount(codes[codes >= 0], minlength=len(texts) + 1)
        self.terms = Terms((*texts, ""), analyzer, ngrams, least, repeats)
        self._row = {text: k for k, text in enumerate(texts)}
        self._place: dict[str, int] = {}

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([self._row[text] for text in texts], dtype=np.int64)

    def names(self, columns: np.ndarray) -> list[str]:
        names = self.terms.names(columns)
        self._place.update(zip(names, columns.tolist()))
        return names

    def places(self, terms: Sequence[str]) -> np.ndarray:
        return np.array([self._place[term] for term in terms], dtype=np.int64)


def unit_rows(matrix: scipy.sparse.csr_array) -> None:
    """Divide every row by its Euclidean length, in place."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    lengths = np.sqrt(np.bincount(rows, matrix.data**2, minlength=matrix.shape[0]))
    matrix.data /= np.where(lengths > 0, lengths, 1.0)[rows]


def smooth_idf(frequency: np.ndarray, n: int) -> np.ndarray:
    """ln((1 + n) / (1 + df)) + 1, as in scikit-learn."""
    return np.log((1.0 + n) / (1.0 + frequency)) + 1.0


def one_hot(at: np.ndarray, width: int) -> scipy.sparse.csr_array:
    """Rows with a one at a place, and none where the place is −1."""
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


# Numbers below have lost digits (their last one is denormal), and dividing by them overflows.
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
    codes_seen, texts = column.as_levels()
    counts = np.bincount(codes_seen[codes_seen >= 0], minlength=len(texts))
    order = np.lexsort((np.arange(len(texts)), -counts))
    kept = order[:max_categories]
    kept = np.sort(kept[counts[kept] >= min(min_frequency, counts.max(initial=0))])
    pooled = int(np.sum(counts > 0)) - len(kept)
    return Levels(tuple(texts[k] for k in kept), pooled, bool(np.any(codes_seen < 0)), codes)


def mean_targets(y: np.ndarray, most: int = 10) -> tuple[np.ndarray, tuple[str, ...]]:
    """The targets whose means are taken, and their names: numbers as they are, one 0/1 column per class (one for two)."""
    if np.issubdtype(y.dtype, np.floating):
        return y[:, None].astype(np.float64), ("",)
    classes, codes = np.unique(y, return_inverse=True)
    shown = range(1, 2) if len(classes) == 2 else range(min(len(classes), most))
    return np.column_stack([codes == c for c in shown]).astype(np.float64), tuple(f" {classes[c]}" for c in shown)


def learn_means(column: Column, codes: Levels, y: np.ndarray, smoothing: float = 10.0) -> LevelMeans:
    """The mean target of every level."""
    targets, names = mean_targets(y)
    at, texts = column.as_levels()
    known = at >= 0
    counts = np.bincount(at[known], minlength=len(texts))
    sums = np.column_stack([np.bincount(at[known], t[known], minlength=len(texts)) for t in targets.T])
    overall = targets.mean(axis=0)
    means = (sums + smoothing * overall) / (counts + smoothing)[:, None]
    return LevelMeans(codes, tuple(texts), means, overall, names)


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
    """``raw`` calendar numbers for trees, waves for everything else; parts that do not vary are left out."""
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


@dataclass(frozen=True)
class TextPlan:
    """Which terms of a text get an output: runs of words or characters, in so many rows, the best ones.

    ``by_target`` takes those that depend most on the target; by default the most frequent ones.
    """

    weight: str = "tfidf"
    analyzer: str = "word"
    ngrams: tuple[int, int] = (1, 1)
    most: int = 1000
    least: int = 1
    sublinear: bool = False
    by_target: bool = False

    def learn(self, column: Column, y: np.ndarray | None = None, counted: CountedTexts | None = None) -> Words:
        """The terms in sorted order, with their weights."""
        codes, texts = column.as_levels()
        rows = codes[codes >= 0]
        repeats = np.bincount(rows, minlength=len(texts))
        if counted is None:
            terms = Terms(texts, self.analyzer, self.ngrams, self.least, repeats)
            counts, names = terms.counts, terms.names
        else:
            counts, names = counted.terms.counts[counted.rows(texts)], counted.names
        frequency = np.bincount(counts.indices, np.repeat(repeats, np.diff(counts.indptr)), counts.shape[1])
        allowed = np.flatnonzero(frequency >= max(self.least, 1))
        if self.by_target and y is not None and len(allowed) > self.most:
            worth = dependence(counts[rows][:, allowed], y[codes >= 0])
        else:
            worth = frequency[allowed]
        if len(allowed) > self.most:
            cut = np.partition(worth, -self.most)[-self.most]
            allowed, worth = allowed[worth >= cut], worth[worth >= cut]
        named = sorted(zip(names(allowed), -worth, frequency[allowed]), key=lambda term: (term[1], term[0]))
        kept = sorted((term, frequency) for term, _, frequency in named[: self.most])
        idf = smooth_idf(np.array([frequency for _, frequency in kept], dtype=np.float64), len(rows))
        return Words(tuple(term for term, _ in kept), self.weight, idf, self.analyzer, self.sublinear)


def dependence(counts: scipy.sparse.csr_array, y: np.ndarray) -> np.ndarray:
    """How much the target depends on the presence of every term: n · r² with numbers, the χ² statistic with labels.

    With labels the sum over classes of (observed − expected)² / expected of the presences; targets of floating-point type are
    numbers.
    """
    present = scipy.sparse.csr_array((np.ones(counts.nnz), counts.indices, counts.indptr), shape=counts.shape)
    n, total = len(y), np.asarray(present.sum(axis=0), dtype=np.float64)
    share = total / n
    if np.issubdtype(y.dtype, np.floating):
        centred = y - y.mean()
        covariance = present.T @ centred / n
        variance = share * (1 - share) * max(float(np.mean(centred**2)), np.finfo(float).tiny)
        return np.where(total < n, n * covariance**2 / np.maximum(variance, np.finfo(float).tiny), 0.0)
    classes, codes = np.unique(y, return_inverse=True)
    members = scipy.sparse.csr_array((np.ones(n), (codes, np.arange(n))), shape=(len(classes), n))
    observed = (members @ present).toarray()
    expected = np.outer(np.bincount(codes) / n, total)
    return np.sum((observed - expected) ** 2 / np.maximum(expected, np.finfo(float).tiny), axis=0)
