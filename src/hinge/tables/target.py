"""The target: its task, and its values as numbers or class numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from hinge.errors import USAGE, UserError, argument
from hinge.tables.conversion import to_column, to_numbers, to_texts
from hinge.tables.dates import date_format
from hinge.tables.frames import polars_errors
from hinge.tables.kinds import HALF
from hinge.tables.notes import Note, counted, some_values
from hinge.tables.number_formats import MOSTLY, Notation, is_truth, notation_of

LARGEST = 1e150  # squares of smaller targets, and sums of them, are finite
TASKS = ("binary", "multiclass", "real", "count")
MANY_CLASSES, MANY_DATES = 200, 20
MAX_COUNT = 100_000
SMALL_COUNT, LARGE_COUNT, MANY_ZEROS = 20, 1000, 0.02  # integers are counts if small, or if not large and often zero
FEW_VALUES = 10  # integers with at most so many different values may be codes of classes
CLASS_NAME = re.compile(r"(^|_)(class|label|species|category|type)s?($|_)", re.IGNORECASE)


def check_task(task: str) -> None:
    """Raise a UserError unless this is a task."""
    if task not in ("auto", *TASKS):
        raise UserError(f"{argument('task', task)} is not known; expected auto, {', '.join(TASKS)}.", USAGE)


def clean_target(series: Any, task: str, decimal: str, notes: list[Note]) -> tuple[Any, Notation | None]:
    """The target with texts read as numbers or truth values where most are, and their format.

    ``decimal`` is the decimal mark of the table, for texts that leave it open.
    """
    import polars as pl

    if series.dtype == pl.Duration:
        return to_numbers(series), None
    if series.dtype != pl.String:
        return series, None
    name, text = series.name, to_texts(series)
    numbers = to_numbers(text)
    present = len(text) - text.null_count()
    share = (len(text) - numbers.null_count()) / max(present, 1)
    if share == 1.0 or present == 0:
        return text, None
    if (
        task in ("real", "count", "auto")
        and share >= MOSTLY
        and (task != "auto" or numbers.n_unique() > 3 * FEW_VALUES)
    ):
        read, notation = numbers, None
    else:
        column = to_column(text)
        truth = is_truth(column.levels) and len(column.levels) > 2
        notation = Notation(truth=True) if truth else notation_of(column.levels, column.counts(), decimal)
        if notation is None or (task in ("binary", "multiclass") and not truth):
            return text, None
        read = to_texts(text, notation) if truth else to_numbers(text, notation)
        if read.null_count() == len(read):  # numbers beyond the largest
            return text, None
        example = text.filter(read.is_not_null())[0]
        notes.append(Note("D18", name, f"{name}: {notation.describe(example)}"))
    unread = text.filter(read.is_null() & text.is_not_null())
    if len(unread):
        reason = f"{name}: {counted(len(unread), 'value')} not numbers ({some_values(unread)}); treated as missing"
        notes.append(Note("D07", name, reason))
    return read, notation


def read_target(
    series: Any, task: str, notes: list[Note], rows: np.ndarray
) -> tuple[str, np.ndarray, np.ndarray | None]:  # fmt: skip
    """The task, the targets (class numbers for classes), and the names of the classes.

    ``rows`` are the numbers of the rows in the file, for messages.
    """
    name = series.name
    check_task(task)
    numbers = numbers_of(series)
    if task == "auto":
        task = _infer_task(series, numbers)
        if task in ("real", "count") and bool((numbers == numbers.round()).all()):
            few, kind = numbers.n_unique(), "numbers" if task == "real" else "counts"
            if 0 < few <= FEW_VALUES:
                text = f"{few} different integers, read as {kind}; if they are classes, use {argument('task', 'multiclass')}"
                notes.append(Note("D19", name, f"{name}: {text}"))
            elif numbers.min() >= 0 and numbers.max() <= MAX_COUNT:
                other = argument("task", "count" if task == "real" else "real")
                text = f"whole numbers, read as {kind}; if they are not, use {other}"
                notes.append(Note("D19", name, f"{name}: {text}"))
    if task in ("real", "count"):
        return task, _read_numbers(series, numbers, task, rows), None
    labels = labels_of(series, numbers)
    names = _read_classes(series, labels, task, notes)
    return "binary" if len(names) == 2 else "multiclass", class_numbers(labels, names), names


def _read_numbers(series: Any, numbers: Any, task: str, rows: np.ndarray) -> np.ndarray:
    name = series.name
    if numbers is None:
        raise UserError(f"the target {name!r} holds text ({some_values(series)}), so it cannot be a {task} number.")
    y = numbers.to_numpy().astype(np.float64)
    if not np.all(np.isfinite(y)):
        bad = int(np.flatnonzero(~np.isfinite(y))[0])
        raise UserError(f"the target {name!r} is not a finite number in row {rows[bad]}; correct or remove the row.")
    if not len(y):
        raise UserError(f"the target {name!r} has no number in any row; correct the column.")
    if np.max(np.abs(y)) > LARGEST:
        largest = int(np.argmax(np.abs(y)))
        raise UserError(
            f"the target {name!r} is {y[largest]:g} in row {rows[largest]}: squares of errors of this size overflow; divide "
            "the column by a constant."
        )
    if task == "count" and (y.min() < 0 or np.any(y != np.round(y))):
        raise UserError(
            f"the target {name!r} has negative or fractional values, so it is not a count; use {argument('task', 'real')}."
        )
    if y.min() == y.max():
        raise UserError(f"the target {name!r} is {y[0]:g} in every row; there is nothing to learn.")
    return y


def _read_classes(series: Any, labels: Any, task: str, notes: list[Note]) -> np.ndarray:
    """The names of the classes, sorted; a UserError if the labels cannot be classes."""
    name, found = series.name, labels.value_counts(sort=True)
    classes, counts = found.height, found["count"].to_list()
    if classes < 2:
        raise UserError(f"the target {name!r} is {labels[0]!r} in every row; there is nothing to learn.")
    if task == "binary" and classes != 2:
        raise UserError(
            f"the target {name!r} has {classes} values ({some_values(series)}), not two; use {argument('task', 'multiclass')}."
        )
    if classes > MANY_DATES and (series.dtype.is_temporal() or date_format(found[name].to_list(), counts) is not None):
        raise UserError(
            f"the target {name!r} holds dates ({some_values(series)}); replace them by numbers, such as days since a "
            "fixed day."
        )
    if classes > MANY_CLASSES or classes > HALF * len(labels) + 2:
        raise UserError(
            f"the target {name!r} has {classes} different values in {len(labels)} rows ({some_values(series)}): too many "
            f"for classes. {_remedy(labels)}"
        )
    if classes == 2 and counts[1] < 2:
        raise UserError(
            f"the target {name!r} is {found[name][1]!r} in one row only, which cannot be used for both fitting and "
            "scoring; each class needs at least two rows."
        )
    distinct = labels.unique()
    if distinct.str.to_lowercase().n_unique() < classes:
        pairs = distinct.filter(distinct.str.to_lowercase().is_duplicated()).sort().head(4).to_list()
        shown = ", ".join(map(repr, pairs))
        notes.append(Note("D18", name, f"{name}: some classes differ in capitals only ({shown}); they remain separate"))
    rare = [str(v) for v, c in zip(found[name].to_list(), counts) if c < 10]
    if rare:
        notes.append(Note("D09", name, f"classes of {name} with fewer than ten rows: {', '.join(rare[:8])}"))
    return np.sort(found[name].to_numpy().astype(str))


def class_numbers(labels: Any, classes: np.ndarray) -> np.ndarray:
    """The positions of labels among the classes, as floats; NaN for other labels."""
    import polars as pl

    positions = labels.replace_strict(
        classes.tolist(), np.arange(len(classes), dtype=float), default=None, return_dtype=pl.Float64
    )
    return positions.to_numpy().copy()


def numbers_of(series: Any) -> Any:
    """The series as numbers, or None if it holds words."""
    import polars as pl

    if series.dtype == pl.Boolean or not (series.dtype.is_numeric() or series.dtype == pl.String):
        return None
    texts = series.dtype == pl.String
    numbers = (series.str.strip_chars() if texts else series).cast(pl.Float64, strict=False)
    return numbers if numbers.null_count() == series.null_count() else None


def labels_of(series: Any, numbers: Any) -> Any:
    """Labels as text: 1 and 1.0 are the same label."""
    import polars as pl

    if numbers is not None and bool((numbers == numbers.round()).all()) and float(numbers.abs().max()) < 2**53:
        return numbers.cast(pl.Int64).cast(pl.String).rename(series.name)
    try:
        return series.cast(pl.String).str.strip_chars()
    except polars_errors():
        raise UserError(
            f"the target {series.name!r} has the type {series.dtype}, which is neither numbers nor classes."
        ) from None


def _infer_task(series: Any, numbers: Any) -> str:
    if numbers is None:
        return "binary" if series.n_unique() == 2 else "multiclass"
    y = numbers.to_numpy()
    y = y[np.isfinite(y)]
    if not len(y):
        return "real"  # later refused, with an error that names the first row that is not finite
    values, counts = np.unique(y, return_counts=True)
    if len(values) == 2:
        return "binary"
    if np.any(values != np.round(values)):
        return "real"
    repeated = len(values) <= HALF * len(y)  # classes need two rows on average; otherwise integers are quantities
    # Codes of classes are consecutive and about equally frequent; the frequencies of counts decrease.
    consecutive = 0 < len(values) <= 30 and values.max() - values.min() == len(values) - 1 and values.min() in (0, 1)
    if repeated and consecutive and counts.max() <= 6 * counts.min():
        return "multiclass"
    if repeated and CLASS_NAME.search(series.name) and len(values) <= 50:
        return "multiclass"
    small = values.min() in (0, 1) and values.max() <= SMALL_COUNT
    zeros = values.min() == 0 and counts[0] >= MANY_ZEROS * len(y) and np.quantile(y, 0.99) <= LARGE_COUNT
    return "count" if repeated and (small or zeros) else "real"


def _remedy(labels: Any) -> str:
    """The remedy for a target with too many values for classes."""
    words = labels.filter(to_numbers(labels).is_null())
    if not len(words):
        return f"Its values are numbers: use {argument('task', 'real')}."
    if len(words) <= HALF * len(labels):
        return f"If it is a number, empty the cells that hold words ({some_values(words)})."
    return f"Is it the right column? If so, merge classes: {MANY_CLASSES} are the most, with two rows each on average."
