"""The target: what task it sets, and its values as numbers or numbers of classes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from hinge.errors import USAGE, UserError
from hinge.tables.notes import Note
from hinge.tables.number_formats import MOSTLY, Notation, notation_of, parse_dates

TASKS = ("binary", "multiclass", "real", "count")
MANY_CLASSES, MANY_DATES = 200, 20
MAX_COUNT = 100_000
FEW_VALUES = 10  # whole numbers with no more different values than this may be codes of classes
HALF = 0.5


def check_task(task: str) -> None:
    """A UserError unless this is a task."""
    if task not in ("auto", *TASKS):
        raise UserError(f"--task {task} is not known; expected auto, {', '.join(TASKS)}.", USAGE)


def clean_target(series: Any, task: str, mark: str, notes: list[Note]) -> tuple[Any, Notation | None]:
    """The target without words among its numbers, and how it was written, if in some way of its own.

    ``mark`` is the decimal mark of the table where a column does not tell.
    """
    import polars as pl

    if series.dtype != pl.String:
        return series, None
    name, text = series.name, series.str.strip_chars()
    numbers = text.cast(pl.Float64, strict=False)
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
        notation = notation_of(text, mark)
        if notation is None or (task in ("binary", "multiclass") and not notation.truth):
            return text, None
        read = notation.read(text)
        example = text.filter(read.is_not_null())[0]
        notes.append(Note("D18", name, f"{name}: {notation.says(example)}"))
    odd = text.filter(read.is_null() & text.is_not_null())
    if len(odd):
        notes.append(Note("D07", name, f"{name}: {len(odd)} values are not numbers ({_sample(odd)}); taken as missing"))
    return read, notation


def read_target(
    series: Any, task: str, notes: list[Note], rows: np.ndarray
) -> tuple[str, np.ndarray, np.ndarray | None]:  # fmt: skip
    """The task, the targets (numbers of classes for classes), and the names of the classes; rows has their numbers."""
    name = series.name
    check_task(task)
    numbers = numbers_of(series)
    if task == "auto":
        task = _infer_task(series, numbers)
        few = 0 if task not in ("real", "count") else numbers.n_unique()
        if 0 < few <= FEW_VALUES and bool((numbers == numbers.round()).all()):
            what = "numbers" if task == "real" else "counts"
            said = f"{name}: {few} different whole numbers, taken as {what}; if they are classes, --task multiclass"
            notes.append(Note("D19", name, said))
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
    if classes > MANY_DATES and (series.dtype.is_temporal() or parse_dates(labels) is not None):
        raise UserError(
            f"the target {name!r} holds dates ({_sample(series)}); give it as a number, such as the days since some day."
        )
    if classes > MANY_CLASSES or classes > HALF * len(labels) + 2:
        raise UserError(
            f"the target {name!r} has {classes} different values in {len(labels)} rows ({_sample(series)}): too many "
            f"for classes. {_perhaps_numbers(labels)}"
        )
    counts = found["count"].to_list()
    if classes == 2 and counts[1] < 2:
        raise UserError(
            f"the target {name!r} is {found[name][1]!r} in one row only, which cannot be both learned from and scored; "
            "two rows of each class are the least."
        )
    folded = labels.str.to_lowercase()
    if folded.n_unique() < classes:
        pairs = labels.unique().filter(labels.unique().str.to_lowercase().is_duplicated()).sort().head(4).to_list()
        said = f"{name}: some classes differ in capitals only ({', '.join(map(repr, pairs))}); they were kept apart"
        notes.append(Note("D18", name, said))
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
    values = series.drop_nulls().unique(maintain_order=True).head(4).to_list()
    return ", ".join(repr(str(v)[:30]) for v in values[:3]) + (", …" if len(values) > 3 else "")


def _perhaps_numbers(labels: Any) -> str:
    """What to do about a target with too many values for classes."""
    import polars as pl

    numbers = labels.cast(pl.Float64, strict=False)
    if numbers.null_count() <= HALF * len(labels):
        return f"If it is a number, empty the cells that hold words ({_sample(labels.filter(numbers.is_null()))})."
    return f"Is it the right column? If so, merge classes: {MANY_CLASSES} are the most, with two rows each on average."
