"""The profile of a table: the kind of every column, columns to leave out and why, and the task of the target."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hinge.errors import UserError, argument
from hinge.settings import shows_html
from hinge.tables.conversion import to_column
from hinge.tables.converted import Converted, convert_column
from hinge.tables.csv import MAX_WIDTH
from hinge.tables.frames import closest_name
from hinge.tables.kinds import HALF, LOOK
from hinge.tables.leaks import SUSPICIOUS, find_leak, summands
from hinge.tables.notes import Note
from hinge.tables.number_formats import Notation, decimal_mark, format_range
from hinge.tables.reading import as_table, import_polars
from hinge.tables.target import clean_target, read_target

# The tail is heavy if the farthest target is this many times as far from the median as the 1 % or the 99 % quantile.
HEAVY = 10.0


@dataclass(frozen=True)
class ColumnInfo:
    """A column that models are fitted to.

    Attributes
    ----------
    name : str
    kind : {"number", "boolean", "category", "date", "text"}
    missing : float
        The share of missing values.
    distinct : int
        The number of different values in the first rows.
    low, high : float, optional
        The range of a number.
    examples : tuple of str
        Frequent values of a category or text; the range of a date.
    notation : Notation, optional
        The format of numbers or truth values that are written as text.
    date_format : str, optional
        The format of dates that are written as text.
    """

    name: str
    kind: str
    missing: float
    distinct: int
    low: float | None = None
    high: float | None = None
    examples: tuple[str, ...] = ()
    notation: Notation | None = None
    date_format: str | None = None

    @property
    def example(self) -> str:
        """The range of a number or date, or the most frequent value."""
        if self.low is not None and self.high is not None:
            return format_range(self.low, self.high)
        return " … ".join(self.examples) if self.kind == "date" else next(iter(self.examples), "")


@dataclass(repr=False)
class TableProfile:
    """A table prepared for learning: columns in canonical types, the target, and notes.

    Attributes
    ----------
    columns : list of ColumnInfo
        The columns to learn from: name, kind, missing, distinct, example.
    notes : list of Note
        Remarks on the data, with the codes of docs/remarks.md.
    task : {"binary", "multiclass", "real", "count"}
        What kind of target it is.
    target : str
        The name of the target.
    y : array
        Targets, or class numbers.
    classes : array of str, optional
        The names of the classes, sorted.
    left_out : dict
        The reason for each column that was left out.
    kinds : dict
        The inferred kind of every column but the target, including those left out.
    frame : polars.DataFrame
        The columns to learn from, as Float64, String or Datetime.
    rows : array of int
        The number of each row in the file, from 1 below the header.
    notation : Notation, optional
        The number format of the target, if it is written as text.
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
    kinds: dict[str, str] = field(default_factory=dict)

    def _cells(self) -> list[tuple[str, ...]]:
        """Rows of the printed table, the header first."""
        used = [(c.name, c.kind, f"{c.missing:.1%}", str(c.distinct), c.example) for c in self.columns]
        unused = [(name, self.kinds.get(name, ""), "", "", f"left out: {why}") for name, why in self.left_out.items()]
        return [("column", "kind", "missing", "distinct", "example"), *used, *unused]

    def _title(self) -> str:
        classes = "" if self.classes is None else f", {len(self.classes)} classes"
        return f"{len(self.y)} rows, target {self.target} ({self.task}{classes})"

    def __repr__(self) -> str:
        cells = self._cells()
        widths = [max(len(row[j]) for row in cells) for j in range(4)]
        lines = ["  ".join([*(row[j].ljust(widths[j]) for j in range(4)), row[4]]) for row in cells]
        return "\n".join([self._title(), *lines, *map(str, self.notes)])

    def _repr_html_(self) -> str | None:
        if not shows_html():
            return None
        head, *rows = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self._cells()]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        notes = "".join(f"<li>{html.escape(str(note))}</li>" for note in self.notes)
        return (
            f"<p>{html.escape(self._title())}</p><table><thead><tr>{head.replace('td>', 'th>')}</tr></thead>"
            f"<tbody>{body}</tbody></table><ul>{notes}</ul>"
        )


def profile(
    table: Any,
    target: str | None = None,
    task: str = "auto",
    *,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
) -> TableProfile:
    """Infer the kinds of the columns of a table and the task of its target, and check both for problems.

    Constant columns, identifiers, copies of other columns and columns that give the target away are left out, with a
    note each. The kinds are those that :class:`hinge.TablePrep` infers.

    Parameters
    ----------
    table : path, pandas, polars or Arrow frame, dict of columns, or array
        Files may be CSV, TSV, Parquet, Arrow, JSON lines or LIBSVM text, plain or gzipped.
    target : str, optional
        The column to predict; optional for formats that name one.
    task : {"auto", "binary", "multiclass", "real", "count"}
        What the target is: two classes, several, numbers or counts; "auto" infers it.
    drop : sequence of str
        Columns to leave out.
    keep : sequence of str
        Columns to use even if a check would leave them out.

    Returns
    -------
    TableProfile

    Examples
    --------
    >>> import hinge as hg
    >>> table = {"age": [31, 54, None, 45] * 10, "joined": ["1.2.2020", "15.3.2021"] * 20, "fee": ["9,50 €", "12 €"] * 20}
    >>> profile = hg.profile(table | {"left": ["no", "no", "yes", "yes", "no"] * 8}, target="left")
    >>> profile.task, [(c.name, c.kind) for c in profile.columns]
    ('binary', [('age', 'number'), ('joined', 'date'), ('fee', 'number')])
    """
    pl = import_polars()
    table = as_table(table)
    frame, target = table.frame, target or table.target
    _check_names(table, target, drop, keep)
    decimal = decimal_mark([to_column(s.head(LOOK)).levels for s in frame.iter_columns() if s.dtype == pl.String])
    notes = [Note("D12", "", f"{table.path.name}: {text}") for text in table.notes]
    rows = table.numbers()
    targets, notation = clean_target(frame[target], task, decimal, notes)
    known = targets.is_not_null() & (targets.is_not_nan() if targets.dtype.is_float() else True)
    if not known.all():
        unknown = int((~known).sum())
        if unknown == frame.height:
            raise UserError(f"{table.path}: every value of the target {target!r} is missing.")
        notes.append(Note("D06", target, f"{unknown} of {frame.height} rows have no {target} and were left out"))
        frame, targets, rows = frame.filter(known), targets.filter(known), rows[known.to_numpy()]
    task, y, classes = read_target(targets, task, notes, rows)
    left_out = dict.fromkeys(drop, "dropped by request")
    result = TableProfile(None, y, classes, target, task, [], notes, left_out, rows, notation)
    series = frame.drop(target, *drop).get_columns()[::-1]
    table.frame = frame = None  # from here on each column is released once it is converted
    used = _select(
        [
            convert_column(series.pop(), table.typed, decimal, result.notes, result.kinds, keep)
            for _ in range(len(series))
        ],
        result,
        keep,
    )
    if not used:
        reasons = "; ".join(f"{name}: {why}" for name, why in list(left_out.items())[:4])
        raise UserError(
            f"{table.path}: no column is left to learn from ({reasons}); use {argument('keep')} to force one."
        )
    result.frame = pl.DataFrame([c.series for c in used])
    result.columns = [_info(c) for c in used]
    _note_columns(result)
    _note_rows(result)
    return result


def _check_names(table: Any, target: str | None, drop: Sequence[str], keep: Sequence[str]) -> None:
    names = table.frame.columns
    if len(names) > MAX_WIDTH:
        raise UserError(f"{table.path} has {len(names)} columns; {MAX_WIDTH} are the most.")
    if target is None:
        raise UserError(f"{table.path}: name the column to predict: {argument('target', 'NAME')}. {_listed(names)}")
    for name in (target, *drop, *keep):
        if name not in names:
            near = closest_name(name, names)
            suggestion = f"Did you mean {near!r}?" if near else _listed(names)
            raise UserError(f"{table.path} has no column {name!r}. {suggestion}{_separator_hint(names)}")
    if target in drop:
        raise UserError(f"{argument('drop', target)} would remove the target.")
    if len(names) < 2:
        raise UserError(f"{table.path} has no column besides the target {target!r}.")


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:12])
    return f"The columns are {shown}{', …' if len(names) > 12 else ''}."


def _separator_hint(names: list[str]) -> str:
    alone = len(names) == 1 and any(c in names[0] for c in " :'")
    return " That is one column: the separator must be a comma, a semicolon, a tab or a bar." if alone else ""


def _select(columns: list[Converted], result: TableProfile, keep: Sequence[str]) -> list[Converted]:
    """Leave out columns that cannot or must not be used, with a note each."""
    used: list[Converted] = []
    earlier: dict[Any, Any] = {}
    for column in columns:
        code, reason = _fault(column, result, earlier)
        if code and column.series.name not in keep:
            _leave_out(column.series.name, code, reason, result)
        else:
            used.append(column)
    complete = [c.series for c in used if c.kind == "number" and c.series.null_count() == 0]
    parts = set(summands(complete, result.y, result.task)) - set(keep)
    for name in sorted(parts):
        reason = f"together with other columns it adds up to {result.target}; left out as leaked"
        _leave_out(name, "D04", reason, result)
    return [c for c in used if c.series.name not in parts]


def _leave_out(name: str, code: str, reason: str, result: TableProfile) -> None:
    result.notes.append(Note(code, name, f"{name}: {reason}"))
    result.left_out[name] = reason


def _fault(column: Converted, result: TableProfile, earlier: dict[Any, Any]) -> tuple[str, str]:
    """The code and the text of the reason for leaving a column out; empty if there is none."""
    series, kind, n = column.series, column.kind, len(column.series)
    distinct = series.n_unique() - int(series.null_count() > 0)
    if kind == "constant":
        return "D01", "the same value in every row" if distinct else "no values at all"
    if kind == "id":
        what = "whole numbers" if series.dtype.is_numeric() else "values"
        return "D02", f"{distinct} different {what} in {n} rows, like an identifier; left out"
    head = series.head(LOOK)
    key = (kind, distinct, series.null_count(), head.hash(seed=7).sum())
    if key in earlier and bool(head.eq_missing(earlier[key]).all()):
        return "D03", f"the same as {earlier[key].name}; left out"
    earlier[key] = head
    relation, strength = find_leak(head, kind, result.y[:LOOK], result.task)
    if relation:
        return "D04", f"it determines {result.target} ({relation}); left out as leaked"
    if strength > SUSPICIOUS:
        text = f"{head.name} alone predicts {result.target} almost perfectly ({strength:.3f}); is it known beforehand?"
        result.notes.append(Note("D05", head.name, text))
    return "", ""


def _info(column: Converted) -> ColumnInfo:
    series, kind = column.series, column.kind
    missing, head = series.null_count() / len(series), series.head(LOOK)
    distinct = head.n_unique() - int(head.null_count() > 0)
    low = high = None
    if kind == "number":
        low, high = (None if v is None else float(v) for v in (series.min(), series.max()))
        examples: tuple[str, ...] = ()
    elif kind == "date":
        examples = (str(series.min()), str(series.max()))
    else:
        common = head.drop_nulls().value_counts(sort=True).head(4)
        examples = tuple(str(v)[:40] for v in common[series.name].to_list())
    return ColumnInfo(
        series.name, kind, missing, distinct, low, high, examples, column.notation, column.date_format
    )  # fmt: skip


def _note_columns(result: TableProfile) -> None:
    """Notes on columns that are used."""
    for c in result.columns:
        if c.missing > HALF:
            result.notes.append(Note("D10", c.name, f"{c.name}: {c.missing:.0%} of its values are missing"))
        if c.kind == "category" and c.distinct > 100:
            result.notes.append(Note("D13", c.name, f"{c.name}: {c.distinct} different categories"))
        if c.kind == "number" and c.distinct > 20 and c.low is not None and c.high is not None:
            values = result.frame[c.name].head(LOOK)
            low, high = float(values.quantile(0.05)), float(values.quantile(0.95))
            if high > low and max(c.high - high, low - c.low) > 100 * (high - low):
                text = f"{c.name}: ranges over {c.low:.4g} … {c.high:.4g}, but 90 % lie within {low:.4g} … {high:.4g}"
                result.notes.append(Note("D14", c.name, text))


def _note_rows(result: TableProfile) -> None:
    """Notes on few rows, on copies of rows and on a heavy tail of the target."""
    import polars as pl

    n = result.frame.height
    if result.classes is None and len(np.unique(result.y[:LOOK])) > 20:
        low, middle, high = np.quantile(result.y, [0.01, 0.5, 0.99])
        largest = float(np.max(np.abs(result.y - middle)))
        if largest > HEAVY * max(high - middle, middle - low):
            text = f"{result.target}: its largest value lies {largest / max(high - middle, middle - low):.0f} times as far from the "
            text += "median as 99 % of the others; few rows dominate squared errors"
            result.notes.append(Note("D14", result.target, text))
    if n < 200:
        result.notes.append(Note("D11", "", f"only {n} rows"))
    if n <= 1_000_000:
        copies = n - result.frame.with_columns(pl.Series("\0target", result.y)).n_unique()
        if copies > max(5, 0.01 * n):
            result.notes.append(Note("D08", "", f"{copies} of {n} rows are copies of other rows"))
