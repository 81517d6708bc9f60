"""What a table holds: the kind of every column, which ones to leave out and why, and the task its target sets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hinge.cli.errors import USAGE, UserError
from hinge.cli.leaks import SUSPICIOUS, gives_away, summands
from hinge.cli.reading import Table
from hinge.explain.page.notes import Note

TASKS = ("binary", "multiclass", "real", "count")
LOOK = 50_000  # rows that are looked at to judge a column
LARGE = 500_000  # rows from which numbers are stored in four bytes where nothing is lost
MOSTLY, HALF = 0.95, 0.5
MANY_CLASSES = 200
MAX_COUNT = 100_000
ID_NAME = re.compile(
    r"(^|[_\W])(id|uuid|guid|key|index|idx|rownames?|row_?(id|number|num)|serial)([_\W]|$)|^ID[a-z]|[a-z]Id$|^Unnamed|^$"
)
TEXT_WORDS = 4  # more words than this on average, and it is text rather than a category


@dataclass(frozen=True)
class ColumnInfo:
    """A column that is learned from.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "date", "text"}
    missing : float
        The share of missing values.
    distinct : int
        Different values among the rows looked at.
    low, high : float, optional
        The range of a number.
    examples : tuple of str
        Frequent values of a category.
    """

    name: str
    kind: str
    missing: float
    distinct: int
    low: float | None = None
    high: float | None = None
    examples: tuple[str, ...] = ()


@dataclass
class Profile:
    """A table ready for learning: the columns kept, in canonical types, the target, and remarks.

    Attributes
    ----------
    y : array
        Targets, or numbers of classes.
    classes : array of str, optional
        The names of the classes, sorted.
    rows : array of int
        The number that each row has in the file, from 1 below the header.
    """

    frame: Any
    y: np.ndarray
    classes: np.ndarray | None
    target: str
    task: str
    columns: list[ColumnInfo]
    notes: list[Note] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    rows: np.ndarray = field(default_factory=lambda: np.arange(0))


def profile(
    table: Table, target: str | None, task: str = "auto", *, drop: tuple[str, ...] = (), keep: tuple[str, ...] = ()
) -> Profile:
    """Look at a table and decide what to learn from."""
    frame = table.frame
    target = target or table.target
    if target is None:
        raise UserError(f"{table.path}: say which column to predict, --target NAME. {_columns_are(frame.columns)}")
    for name in (target, *drop, *keep):
        if name not in frame.columns:
            raise UserError(f"{table.path} has no column {name!r}. {_nearest(name, frame.columns)}")
    if target in drop:
        raise UserError(f"--drop {target} would remove the target.")
    if frame.width < 2:
        raise UserError(f"{table.path} has no column besides the target {target!r}.")
    notes = [Note("D12", "", f"{table.path.name}: {text}") for text in table.notes]
    rows = table.numbers()
    y_all = frame[target]
    there = y_all.is_not_null() & (y_all.is_not_nan() if y_all.dtype.is_float() else True)
    if not there.all():
        lost = int((~there).sum())
        if lost == frame.height:
            raise UserError(f"{table.path}: every value of the target {target!r} is missing.")
        notes.append(Note("D06", target, f"{lost} of {frame.height} rows have no {target} and were left out"))
        frame, y_all, rows = frame.filter(there), y_all.filter(there), rows[there.to_numpy()]
    task, y, classes = read_target(y_all, task, notes, rows)
    keep_set = set(keep)
    result = Profile(None, y, classes, target, task, [], notes, dict.fromkeys(drop, "asked for"), rows)
    table.frame = None  # columns go over one by one; none is held twice for long
    series = [_canonical(frame.drop_in_place(c), notes) for c in frame.columns if c != target and c not in drop]
    series = _judge(series, y, result, keep_set)
    if not series:
        raise UserError(
            f"{table.path}: no column is left to learn from (see the remarks above); use --keep to force one."
        )
    import polars as pl

    result.frame = pl.DataFrame([s for s, _ in series])
    result.columns = [_info(s, kind) for s, kind in series]
    _rows(result)
    return result


def _columns_are(names: list[str]) -> str:
    shown = ", ".join(names[:12])
    return f"The columns are {shown}{', …' if len(names) > 12 else ''}."


def _nearest(name: str, names: list[str]) -> str:
    import difflib

    folded = {n.casefold(): n for n in names}
    near = difflib.get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.6)
    return f"Did you mean {folded[near[0]]!r}?" if near else _columns_are(names)


# --- the target ---


def check_task(task: str) -> None:
    """A UserError unless this is a task."""
    if task not in ("auto", *TASKS):
        raise UserError(f"--task {task} is not known; expected auto, {', '.join(TASKS)}.", USAGE)


def read_target(
    series: Any, task: str, notes: list[Note], rows: np.ndarray
) -> tuple[str, np.ndarray, np.ndarray | None]:  # fmt: skip
    """The task, the targets (numbers of classes for classes), and the names of the classes; rows has their numbers."""
    name = series.name
    check_task(task)
    numbers = numbers_of(series)
    if task == "auto":
        task = _infer_task(series, numbers)
    if task in ("real", "count"):
        if numbers is None:
            raise UserError(f"the target {name!r} holds text ({_sample(series)}), so it cannot be a {task} number.")
        y = numbers.to_numpy().astype(np.float64)
        if not np.all(np.isfinite(y)):
            bad = int(np.flatnonzero(~np.isfinite(y))[0])
            raise UserError(
                f"the target {name!r} is not a finite number in row {rows[bad]}; mend it or remove the row."
            )
        if task == "count" and (y.min() < 0 or np.any(y != np.round(y))):
            raise UserError(
                f"the target {name!r} has negative or fractional values, so it is not a count; --task real."
            )
        if y.min() == y.max():
            raise UserError(f"the target {name!r} is {y[0]:g} in every row; there is nothing to learn.")
        return task, y, None
    labels = labels_of(series, numbers)
    found = labels.value_counts(sort=True)
    classes = found.height
    if classes < 2:
        raise UserError(f"the target {name!r} is {labels[0]!r} in every row; there is nothing to learn.")
    if task == "binary" and classes != 2:
        raise UserError(
            f"the target {name!r} has {classes} values ({_sample(series)}), not two; use --task multiclass."
        )
    if classes > max(MANY_CLASSES, 2) or classes > 0.5 * len(labels) + 2:
        raise UserError(
            f"the target {name!r} has {classes} different values in {len(labels)} rows ({_sample(series)}): too many "
            "for classes. Is it the right column?"
        )
    counts = found["count"].to_list()
    rare = [str(v) for v, c in zip(found[name].to_list(), counts) if c < 10]
    if rare:
        notes.append(Note("D09", name, f"classes of {name} with fewer than ten rows: {', '.join(rare[:8])}"))
    names = np.sort(found[name].to_numpy().astype(str))
    return "binary" if classes == 2 else "multiclass", class_numbers(labels, names), names


def class_numbers(labels: Any, classes: np.ndarray) -> np.ndarray:
    """The places of labels among the classes, as floats; NaN for a label that is not among them."""
    import polars as pl

    places = labels.replace_strict(
        classes.tolist(), np.arange(len(classes), dtype=float), default=None, return_dtype=pl.Float64
    )
    return places.to_numpy().copy()


def numbers_of(series: Any) -> Any:
    """The series as numbers, or None if it holds words."""
    import polars as pl

    if series.dtype == pl.Boolean:
        return None
    if series.dtype.is_numeric():
        return series.cast(pl.Float64)
    if series.dtype == pl.String:
        numbers = series.str.strip_chars().cast(pl.Float64, strict=False)
        return numbers if numbers.null_count() == series.null_count() else None
    return None


def labels_of(series: Any, numbers: Any) -> Any:
    """Labels as text: 1 and 1.0 are the same label."""
    import polars as pl

    if numbers is not None and bool((numbers == numbers.round()).all()) and float(numbers.abs().max()) < 2**53:
        return numbers.cast(pl.Int64).cast(pl.String).rename(series.name)
    if series.dtype == pl.Categorical or isinstance(series.dtype, pl.Enum):
        series = series.cast(pl.String)
    return series.str.strip_chars() if series.dtype == pl.String else series.cast(pl.String)


def _infer_task(series: Any, numbers: Any) -> str:
    if numbers is None:
        return "binary" if series.n_unique() == 2 else "multiclass"
    y = numbers.to_numpy()
    y = y[np.isfinite(y)]
    values, counts = np.unique(y, return_counts=True)
    if len(values) == 2:
        return "binary"
    if np.any(values != np.round(values)):
        return "real"
    whole = values.min() >= 0 and values.max() <= MAX_COUNT
    # Codes of classes are consecutive and about equally frequent; counts fall off.
    consecutive = len(values) <= 30 and values.max() - values.min() == len(values) - 1 and values.min() in (0, 1)
    if consecutive and counts.max() <= 6 * counts.min():
        return "multiclass"
    if re.search(r"(^|_)(class|label|species|category|type)s?($|_)", series.name, re.IGNORECASE) and len(values) <= 50:
        return "multiclass"
    return "count" if whole and values.min() <= 0.2 * y.mean() else "real"


def _sample(series: Any) -> str:
    values = series.drop_nulls().unique(maintain_order=True).head(3).to_list()
    return ", ".join(repr(str(v)[:30]) for v in values) + ", …"


# --- the columns ---


def _canonical(series: Any, notes: list[Note]) -> tuple[Any, str]:
    """A column as Float64, String or Datetime, with its kind."""
    import polars as pl

    dtype = series.dtype
    if dtype == pl.Boolean:
        return series.cast(pl.String), "category"
    if dtype.is_numeric() or isinstance(dtype, pl.Decimal):
        return _narrow(series.cast(pl.Float64).fill_nan(None)), "number"
    if dtype == pl.Duration:
        return (series.dt.total_microseconds() / 1e6).rename(series.name), "number"
    if dtype in (pl.Date, pl.Datetime):
        return series.cast(pl.Datetime("us")), "date"
    if dtype == pl.Time:
        return series.cast(pl.Int64).cast(pl.Float64) / 3.6e12, "number"
    few = dtype == pl.Categorical or isinstance(dtype, pl.Enum)
    if few and len(series) >= LARGE and _plain_levels(series):
        return series.cast(pl.Categorical), "category"
    text = series.cast(pl.String).str.strip_chars()
    look = text.head(LOOK).drop_nulls()
    if len(look) == 0:
        return text, "category"
    numbers = look.cast(pl.Float64, strict=False)
    share = 1 - numbers.null_count() / len(look)
    if share >= MOSTLY:
        whole = text.cast(pl.Float64, strict=False)
        odd = text.filter(whole.is_null() & text.is_not_null())
        if len(odd):
            seen = ", ".join(repr(v) for v in odd.unique(maintain_order=True).head(3).to_list())
            notes.append(
                Note("D07", series.name, f"{series.name}: {len(odd)} values are not numbers ({seen}); taken as missing")
            )
        return _narrow(whole.fill_nan(None)), "number"
    dates = parse_dates(look.head(2000))
    if dates is not None and dates.null_count() <= (1 - MOSTLY) * len(dates):
        return parse_dates(text), "date"
    words = float(look.head(2000).str.split(" ").list.len().mean())
    if words > TEXT_WORDS and look.n_unique() > 0.5 * len(look):
        return text, "text"
    if share >= HALF:
        seen = ", ".join(repr(v) for v in look.filter(numbers.is_null()).unique(maintain_order=True).head(3).to_list())
        said = f"{series.name}: {100 * share:.0f} % of its values are numbers, the others words ({seen}); taken as categories"
        notes.append(Note("D16", series.name, said))
    return text, "category"


def _narrow(numbers: Any) -> Any:
    """The same numbers, in four bytes each if the table is large and nothing is lost."""
    import polars as pl

    if len(numbers) < LARGE:
        return numbers
    narrow = numbers.cast(pl.Float32)
    return narrow if bool(narrow.cast(pl.Float64).eq_missing(numbers).all()) else numbers


def _plain_levels(series: Any) -> bool:
    """Whether categories can stay as they are: trimmed words, neither numbers nor dates nor text."""
    import polars as pl

    levels = series.unique().cast(pl.String).drop_nulls()
    trimmed = levels.str.strip_chars()
    numbers = trimmed.cast(pl.Float64, strict=False)
    words = float(trimmed.str.split(" ").list.len().mean() or 0)
    return (
        len(levels) > 0 and bool((levels == trimmed).all()) and numbers.null_count() == len(levels)
        and words <= TEXT_WORDS and parse_dates(levels) is None
    )  # fmt: skip


def parse_dates(text: Any) -> Any:
    """ISO dates and times, or day/month/year and month/day/year; None if these are not dates."""

    if not text.drop_nulls().head(50).str.contains(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}").all():
        return None
    best = None
    for pattern in ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S%.f",
                    "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y",
                    "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d.%m.%Y %H:%M"):  # fmt: skip
        read = text.str.to_datetime(pattern, strict=False, time_unit="us")
        if best is None or read.null_count() < best.null_count():
            best = read
        if best.null_count() == text.null_count():
            break
    return best if best is not None and best.null_count() < len(text) else None


def _judge(series: list[tuple[Any, str]], y: np.ndarray, result: Profile, keep: set[str]) -> list[tuple[Any, str]]:
    """Leave out what cannot or must not be learned from, with a remark each."""
    kept: list[tuple[Any, str]] = []
    look = min(len(y), LOOK)
    codes = y[:look]
    seen: dict[Any, Any] = {}
    for s, kind in series:
        code, why = _fault(s, kind, codes, look, result, seen)
        if code and s.name not in keep:
            result.notes.append(Note(code, s.name, f"{s.name}: {why}"))
            result.left_out[s.name] = why
            continue
        kept.append((s, kind))
    for name in summands([s for s, kind in kept if kind == "number" and s.null_count() == 0], y, result.task):
        if name not in keep:
            why = f"together with other columns it adds up to {result.target}; left out as leaked"
            result.notes.append(Note("D04", name, f"{name}: {why}"))
            result.left_out[name] = why
            kept = [(s, kind) for s, kind in kept if s.name != name]
    return kept


def _fault(
    s: Any, kind: str, codes: np.ndarray, look: int, result: Profile, seen: dict[Any, Any]
) -> tuple[str, str]:  # fmt: skip
    distinct = s.n_unique() - int(s.null_count() > 0)
    if distinct <= 1 and (distinct == 0 or s.null_count() == 0):
        return "D01", "the same value in every row" if distinct else "no values at all"
    n = len(s)
    head = s.head(look)
    present = head.drop_nulls()
    unique = present.n_unique() / max(len(present), 1)
    if n >= 30 and unique > 0.98 and kind in ("number", "category"):
        if kind == "category" and result.task:
            return "D02", f"{distinct} different values in {n} rows, like an identifier; left out"
        x = present.to_numpy()
        whole = bool(np.all(x == np.round(x)))
        steps = np.diff(x[:5000])
        counter = whole and len(steps) > 0 and (np.all(steps > 0) or np.all(steps < 0)) and unique == 1.0
        if whole and unique > 0.999 and (counter or ID_NAME.search(s.name)):
            return "D02", f"{distinct} different whole numbers in {n} rows, like an identifier; left out"
    key = (kind, distinct, s.null_count(), head.hash(seed=7).sum() if len(head) else 0)
    if key in seen and bool(head.eq_missing(seen[key]).all()):
        return "D03", f"the same as {seen[key].name}; left out"
    seen[key] = head
    same, strength = gives_away(head, kind, codes, result.task)
    if same:
        return "D04", f"it gives {result.target} away ({same}); left out as leaked"
    if strength > SUSPICIOUS:
        text = f"{head.name} alone predicts {result.target} almost perfectly ({strength:.3f}); is it known beforehand?"
        result.notes.append(Note("D05", head.name, text))
    return "", ""


def _info(s: Any, kind: str) -> ColumnInfo:
    missing = s.null_count() / len(s)
    head = s.head(LOOK)
    distinct = head.n_unique() - int(head.null_count() > 0)
    if kind == "number":
        return ColumnInfo(s.name, kind, missing, distinct, float(s.min()), float(s.max()))
    if kind == "date":
        return ColumnInfo(s.name, kind, missing, distinct, examples=(str(s.min()), str(s.max())))
    common = head.drop_nulls().value_counts(sort=True).head(4)
    return ColumnInfo(s.name, kind, missing, distinct, examples=tuple(str(v)[:40] for v in common[s.name].to_list()))


def _rows(result: Profile) -> None:
    """Remarks on what was kept."""
    import polars as pl

    n = result.frame.height
    for c in result.columns:
        if c.missing > 0.5:
            result.notes.append(Note("D10", c.name, f"{c.name}: {100 * c.missing:.0f} % of its values are missing"))
        if c.kind == "category" and c.distinct > 100:
            result.notes.append(Note("D13", c.name, f"{c.name}: {c.distinct} different categories"))
        if c.kind == "number" and c.distinct > 20:
            q = result.frame[c.name].head(LOOK)
            low, high = float(q.quantile(0.05)), float(q.quantile(0.95))
            width = high - low
            if width > 0 and max(c.high - high, low - c.low) > 100 * width:  # type: ignore[operator]
                text = f"{c.name}: ranges to {c.low:.4g} … {c.high:.4g}, though 90 % lie within {low:.4g} … {high:.4g}"
                result.notes.append(Note("D14", c.name, text))
    if n < 200:
        result.notes.append(Note("D11", "", f"only {n} rows"))
    if n <= 1_000_000:
        whole = result.frame.with_columns(pl.Series("\0target", result.y))
        copies = n - whole.n_unique()
        if copies > max(5, 0.01 * n):
            result.notes.append(Note("D08", "", f"{copies} of {n} rows are copies of other rows"))
