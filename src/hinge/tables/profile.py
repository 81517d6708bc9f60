"""What a table holds: the kind of every column, which ones to leave out and why, and the task its target sets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hinge.errors import UserError
from hinge.tables.leaks import SUSPICIOUS, gives_away, summands
from hinge.tables.notes import Note
from hinge.tables.number_formats import MOSTLY, Notation, decimal_mark, notation_of, parse_dates
from hinge.tables.reading import Table
from hinge.tables.target import HALF, clean_target, read_target

LOOK = 50_000  # rows that are looked at to judge a column
LARGE = 500_000  # rows from which numbers are stored in four bytes where nothing is lost
MANY_NUMBERS, FEW_WORDS = 20, 5  # a column of so many numbers and so few words is one of numbers
WHOLE = 2**53  # whole numbers beyond it lose digits as floats
ID_NAME = re.compile(
    r"(^|[_\W])(id|uuid|guid|key|index|idx|rownames?|row_?(id|number|num)|serial)([_\W]|$)|^ID[a-z]|[a-z]Id$|^[Uu]nnamed"
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
    notation : Notation, optional
        How the values are written, if in some way of its own.
    """

    name: str
    kind: str
    missing: float
    distinct: int
    low: float | None = None
    high: float | None = None
    examples: tuple[str, ...] = ()
    notation: Notation | None = None


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
    notation : Notation, optional
        How the target is written, if in some way of its own.
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
    notation: Notation | None = None


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
            raise UserError(f"{table.path} has no column {name!r}. {_nearest(name, frame.columns)}{_one(frame)}")
    if target in drop:
        raise UserError(f"--drop {target} would remove the target.")
    if frame.width < 2:
        raise UserError(f"{table.path} has no column besides the target {target!r}.")
    import polars as pl

    mark = decimal_mark([frame[c] for c in frame.columns if frame[c].dtype == pl.String])
    notes = [Note("D12", "", f"{table.path.name}: {text}") for text in table.notes]
    rows = table.numbers()
    y_all, notation = clean_target(frame[target], task, mark, notes)
    there = y_all.is_not_null() & (y_all.is_not_nan() if y_all.dtype.is_float() else True)
    if not there.all():
        lost = int((~there).sum())
        if lost == frame.height:
            raise UserError(f"{table.path}: every value of the target {target!r} is missing.")
        notes.append(Note("D06", target, f"{lost} of {frame.height} rows have no {target} and were left out"))
        frame, y_all, rows = frame.filter(there), y_all.filter(there), rows[there.to_numpy()]
    task, y, classes = read_target(y_all, task, notes, rows)
    keep_set = set(keep)
    result = Profile(None, y, classes, target, task, [], notes, dict.fromkeys(drop, "asked for"), rows, notation)
    table.frame = None  # columns go over one by one; none is held twice for long
    written: dict[str, Notation] = {}
    series = [
        _canonical(frame.drop_in_place(c), notes, mark, written) for c in frame.columns if c != target and c not in drop
    ]
    series = _judge(series, y, result, keep_set)
    if not series:
        why = "; ".join(f"{name}: {why}" for name, why in list(result.left_out.items())[:4])
        raise UserError(f"{table.path}: no column is left to learn from ({why}); use --keep to force one.")
    result.frame = pl.DataFrame([s for s, _ in series])
    result.columns = [_info(s, kind, written.get(s.name)) for s, kind in series]
    _rows(result)
    return result


def _columns_are(names: list[str]) -> str:
    shown = ", ".join(names[:12])
    return f"The columns are {shown}{', …' if len(names) > 12 else ''}."


def _one(frame: Any) -> str:
    alone = frame.width == 1 and any(c in frame.columns[0] for c in " :'")
    return " That is one column: the separator must be a comma, a semicolon, a tab or a bar." if alone else ""


def _nearest(name: str, names: list[str]) -> str:
    import difflib

    folded = {n.casefold(): n for n in names}
    near = difflib.get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.6)
    return f"Did you mean {folded[near[0]]!r}?" if near else _columns_are(names)


def _canonical(series: Any, notes: list[Note], mark: str, written: dict[str, Notation]) -> tuple[Any, str]:
    """A column as Float64, String or Datetime, with its kind; ``written`` takes note of odd ways to write it."""
    import polars as pl

    dtype, name = series.dtype, series.name
    if dtype == pl.Boolean:
        return series.cast(pl.String), "category"
    if dtype.is_integer() and len(series) > series.null_count() and max(-int(series.min()), int(series.max())) > WHOLE:
        notes.append(
            Note("D18", name, f"{name}: whole numbers of more than 15 digits, like codes; taken as categories")
        )
        return series.cast(pl.String), "category"
    if dtype.is_numeric() or isinstance(dtype, pl.Decimal):
        return _number(series.cast(pl.Float64), notes), "number"
    if dtype == pl.Duration:
        return (series.dt.total_microseconds() / 1e6).rename(name), "number"
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
    words = look.filter(numbers.is_null())
    if share >= MOSTLY or (
        share >= HALF and numbers.n_unique() > MANY_NUMBERS and words.n_unique() <= FEW_WORDS and not _codes(look)
    ):
        return _number(_without_words(text, text.cast(pl.Float64, strict=False), notes), notes), "number"
    dates = parse_dates(look.head(2000))
    if dates is not None and dates.null_count() <= (1 - MOSTLY) * len(dates):
        return parse_dates(text), "date"
    notation = notation_of(look, mark)
    if notation is not None:
        written[name] = notation
        read = notation.read(text)
        notes.append(Note("D18", name, f"{name}: {notation.says(text.filter(read.is_not_null())[0])}"))
        read = _without_words(text, read, notes)
        return (read, "category") if notation.truth else (_number(read, notes), "number")
    if float(look.head(2000).str.split(" ").list.len().mean()) > TEXT_WORDS and look.n_unique() > 0.5 * len(look):
        return text, "text"
    if share >= HALF:
        said = f"{name}: {100 * share:.0f} % of its values are numbers, the others words ({_some(words)}); taken as categories"
        notes.append(Note("D16", name, said))
    return text, "category"


def _number(numbers: Any, notes: list[Note]) -> Any:
    """Finite numbers; what is not one is missing."""
    infinite = int(numbers.is_infinite().sum())
    if infinite:
        name = numbers.name
        notes.append(Note("D07", name, f"{name}: {counted(infinite, 'value')} infinite; taken as missing"))
        numbers = numbers.set(numbers.is_infinite().fill_null(False), None)
    return _narrow(numbers.fill_nan(None))


def _without_words(text: Any, read: Any, notes: list[Note]) -> Any:
    """What was read of a text, after a remark on what could not be."""
    odd = text.filter(read.is_null() & text.is_not_null())
    if len(odd):
        said = f"{text.name}: {counted(len(odd), 'value')} not {'true or false' if read.dtype == text.dtype else 'numbers'}"
        notes.append(Note("D07", text.name, f"{said} ({_some(odd)}); taken as missing"))
    return read


def counted(n: int, what: str) -> str:
    """1 value is, 2 values are."""
    return f"{n} {what} is" if n == 1 else f"{n} {what}s are"


def _some(texts: Any) -> str:
    return ", ".join(repr(v) for v in texts.unique(maintain_order=True).head(3).to_list())


def _codes(look: Any) -> bool:
    """Whether numbers among words are codes of one width, such as 017: these are no quantities."""
    digits = look.filter(look.str.contains(r"^\d+$"))
    return len(digits) > 0 and bool(digits.str.starts_with("0").any()) and digits.str.len_chars().n_unique() == 1


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
        and words <= TEXT_WORDS and parse_dates(levels) is None and notation_of(levels) is None
    )  # fmt: skip


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


def _info(s: Any, kind: str, notation: Notation | None) -> ColumnInfo:
    missing = s.null_count() / len(s)
    head = s.head(LOOK)
    distinct = head.n_unique() - int(head.null_count() > 0)
    if kind == "number":
        return ColumnInfo(s.name, kind, missing, distinct, float(s.min()), float(s.max()), notation=notation)
    if kind == "date":
        return ColumnInfo(s.name, kind, missing, distinct, examples=(str(s.min()), str(s.max())))
    common = head.drop_nulls().value_counts(sort=True).head(4)
    examples = tuple(str(v)[:40] for v in common[s.name].to_list())
    return ColumnInfo(s.name, kind, missing, distinct, examples=examples, notation=notation)


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
