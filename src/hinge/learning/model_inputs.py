"""Models of raw tables: which columns they take, and how new values are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from hinge.errors import MODEL, UserError
from hinge.learning.intervals import interval, label_sets
from hinge.learning.request import checksum
from hinge.learning.scores import measure_for
from hinge.problem.numerics import OVERFLOWED
from hinge.select.measure import Measure
from hinge.tables.conversion import to_numbers, to_texts, to_times
from hinge.tables.frames import closest_name
from hinge.tables.number_formats import Notation
from hinge.tables.reading import Table, as_table, read_table

BATCH = 200_000
LARGEST = float(np.finfo(np.float64).max)


class TableModel(BaseEstimator):
    """A pipeline that takes raw tables: it picks its columns, reads their values as in training, ignores other columns.

    Made by :func:`hinge.learn`. ``fit`` fits the chosen setting again, to another table of the same columns.

    Parameters
    ----------
    pipeline : fitted Pipeline
        The preparation and the model.
    card : dict
        The target, the task and the columns; saved with the model.
    path : Path, optional
        The file it came from, for messages.

    Examples
    --------
    >>> import polars as pl
    >>> import hinge as hg
    >>> frame = pl.DataFrame({"x": range(40), "y": [3 * k for k in range(40)]})
    >>> model = hg.learn(frame, "y", task="real", keep=["x"], models="linear", seconds=5).model
    >>> model.predict(pl.DataFrame({"z": ["?"], "x": [50]})).round(-1)
    array([150.])
    """

    def __init__(self, pipeline: Any, card: dict[str, Any], path: Path | None = None) -> None:
        self.pipeline = pipeline
        self.card = card
        self.path = path

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self.labels is None else "classifier"
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        try:
            check_is_fitted(self.pipeline.steps[-1][1])
        except NotFittedError:
            return False
        return True

    @property
    def name(self) -> str:
        """The name of the model in messages."""
        return "the model" if self.path is None else str(self.path)

    @property
    def task(self) -> str:
        return self.card["task"]

    @property
    def target(self) -> str:
        return self.card["target"]

    @property
    def labels(self) -> np.ndarray | None:
        """The classes as texts, sorted; None for numbers."""
        return np.asarray(self.card["classes"]) if self.card["classes"] else None

    @property
    def columns(self) -> list[str]:
        return [c["name"] for c in self.card["columns"]]

    @property
    def measure(self) -> Measure:
        return measure_for(self.task, self.labels, metric=self.card.get("metric_name"))

    def __getattr__(self, name: str) -> Any:
        # Only classifiers have these, by scikit-learn's conventions.
        if name in ("predict_proba", "classes_") and self.__dict__.get("card", {}).get("classes"):
            return self.labels if name == "classes_" else self._probabilities
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def outputs(self, frame: Any) -> np.ndarray:
        """Probabilities or means for columns in the types of training, computed in chunks of rows."""
        starts = range(0, frame.height, BATCH)
        try:
            found = np.concatenate([self.measure.output(self.pipeline, frame[s : s + BATCH]) for s in starts])
        except ValueError as error:
            if str(error) != OVERFLOWED:
                raise
            raise UserError(
                "the table has numbers so large that predictions overflow; correct those near 1e308."
            ) from None
        # The exponential overflows for values far outside the training range: use the largest finite number.
        return np.clip(found, -LARGEST, LARGEST)

    def conform(self, X: Any) -> Any:
        """The columns of a table in the types of training; values that cannot be converted become missing."""
        return conform(as_table(X), self)[0]

    def with_exposure(self, outputs: np.ndarray, table: Table) -> np.ndarray:
        """Multiply rates by the exposure and add the offset to means, where the table has those columns."""
        frame = table.frame
        for role in ("exposure", "offset"):
            name = self.card.get(role)
            if name in frame.columns:
                values = to_numbers(frame[name]).to_numpy().astype(np.float64)
                if role == "offset" and self.task == "real":
                    outputs = outputs + values
                else:
                    outputs = outputs * (values if role == "exposure" else np.exp(values))
        return outputs

    def predict(self, X: Any) -> np.ndarray:
        """The predicted target of every row: labels or means."""
        table = as_table(X)
        outputs = self.with_exposure(self.outputs(conform(table, self)[0]), table)
        return outputs if self.labels is None else self.labels[np.argmax(outputs, axis=1)]

    def predict_interval(self, X: Any, level: float = 0.9) -> np.ndarray:
        """Intervals that hold the target of new rows with probability ``level``, rows × 2 (conformal prediction)."""
        if self.labels is not None:
            raise TypeError("the target has classes: predict_set gives sets of them.")
        table = as_table(X)
        return interval(self.with_exposure(self.outputs(conform(table, self)[0]), table), self.card, level)

    def predict_set(self, X: Any, level: float = 0.9) -> list[list[str]]:
        """Sets of classes that hold the class of new rows with probability ``level`` (conformal prediction)."""
        if self.labels is None:
            raise TypeError("the target has no classes: predict_interval gives intervals.")
        inside = label_sets(self.outputs(self.conform(X)), self.card, level)
        return [self.labels[row].tolist() for row in inside]

    def _probabilities(self, X: Any) -> np.ndarray:
        """The probability of every class."""
        return self.outputs(self.conform(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Accuracy for classes, R² for numbers; y is the target column of X by default."""
        from sklearn.metrics import accuracy_score, r2_score

        y = np.asarray(as_table(X).frame[self.target] if y is None else y)
        if self.labels is None:
            return float(r2_score(y.astype(np.float64), self.predict(X)))
        return float(accuracy_score(y.astype(str), self.predict(X)))

    def fit(self, X: Any, y: Any) -> TableModel:
        """Fit the chosen setting to other rows."""
        labels = np.asarray(y) if self.labels is None else np.asarray(y).astype(str)
        self.pipeline = clone(self.pipeline).fit(self.conform(X), labels)
        return self

    @property
    def text_columns(self) -> set[str]:
        """Columns that are read as text even if a file has numbers in them."""
        return {c["name"] for c in self.card["columns"] if c["kind"] in ("boolean", "category", "text")}


def load_any(path: Path) -> tuple[Any, dict[str, Any]]:
    """Read any model file, or raise a UserError if it is incomplete or altered."""
    from hinge.files import load_with_card

    if not path.exists():
        raise UserError(f"{path} does not exist.", MODEL)
    if path.is_dir():
        inside = path / "model.hinge"
        hint = f"; did you mean {inside}?" if inside.exists() else "."
        raise UserError(f"{path} is a folder{hint}", MODEL)
    try:
        return load_with_card(path)
    except ValueError as error:
        raise UserError(str(error), MODEL) from None


def load_fitted(path: Path) -> TableModel:
    """A model of ``hinge fit``."""
    model, card = load_any(path)
    if not {"target", "task", "columns", "classes"} <= set(card):
        raise UserError(
            f"{path} was not made by hinge fit (it has no record of its columns); use hg.load in Python.", MODEL
        )
    return TableModel(model, card, path)


def conform(table: Table, fitted: TableModel, *, first: bool = True) -> tuple[Any, dict[str, int]]:
    """The columns that the model needs, in the types of training, and per column the number of values that do not convert.

    In the first part of a table, a column without a single convertible value is an error.
    """
    import polars as pl

    frame = table.frame
    missing = [name for name in fitted.columns if name not in frame.columns]
    if missing:
        raise UserError(
            f"{table.path} lacks {_listed(missing)} that {fitted.name} needs.{_renamed(missing, table, fitted)}"
        )
    unfit: dict[str, int] = {}
    columns = []
    for info in fitted.card["columns"]:
        series, kind = frame[info["name"]], info["kind"]
        if series.dtype in (pl.String, pl.Categorical):
            series = to_texts(series)
        notation = Notation(**info["notation"]) if info.get("notation") else None
        if kind == "number":
            read = to_numbers(series, notation)
        elif kind == "date":
            read = to_times(series, info.get("date_format") or "iso")
        else:
            read = to_texts(series, notation)
        lost = read.null_count() - series.null_count()
        if lost > 0:
            if first and lost == len(series) - series.null_count():
                shown = series.drop_nulls().head(1).to_list()
                raise UserError(
                    f"{table.path}: column {info['name']!r} should hold a {kind}, but no value is one (such as "
                    f"{str(shown[0])[:40]!r})."
                )
            unfit[info["name"]] = lost
        columns.append(read)
    return pl.DataFrame(columns), unfit


def remarks(unfit: dict[str, int], fitted: TableModel) -> list[str]:
    """Notes on values that could not be read."""
    kinds = {c["name"]: c["kind"] for c in fitted.card["columns"]}
    return [f"{name}: {lost} values are not a {kinds[name]}; taken as missing" for name, lost in unfit.items()]


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(n) for n in names[:6])
    return f"the column{'s' if len(names) > 1 else ''} {shown}{', …' if len(names) > 6 else ''}"


def _renamed(missing: list[str], table: Table, fitted: TableModel) -> str:
    spare = [c for c in table.frame.columns if c not in fitted.columns]
    for name in missing:
        if near := closest_name(name, spare):
            return f" Was {name!r} renamed to {near!r}?"
    return f" The file has {', '.join(table.frame.columns[:8])}{', …' if table.frame.width > 8 else ''}."


def read_for(fitted: TableModel, file: Path, *, with_target: bool) -> tuple[Any, np.ndarray | None, list[str], Table]:
    """The rows of a file for a model: inputs, targets (class numbers or numbers; rows without one are left out)."""
    table = read_table(file, fitted.text_columns)
    notes: list[str] = []
    if with_target:
        if fitted.target not in table.frame.columns:
            raise UserError(f"{file} lacks the target {fitted.target!r}, which is needed to score predictions.")
        notes += keep_rows_with_target(table, fitted)
    frame, unfit = conform(table, fitted)
    notes += remarks(unfit, fitted)
    if with_target and fitted.card["data_sha256"] and checksum(file) == fitted.card["data_sha256"]:
        notes.append(f"{fitted.name} was fitted to these rows, so its score on them is too good")
    return frame, targets(table, fitted) if with_target else None, notes, table


def keep_rows_with_target(table: Table, fitted: TableModel) -> list[str]:
    """Leave out rows whose target is missing or cannot be read, with a remark for each reason."""
    import polars as pl

    name, series = fitted.target, table.frame[fitted.target]
    there, read = len(series) - series.null_count(), series
    notation = Notation(**fitted.card["target_notation"]) if fitted.card.get("target_notation") else None
    if fitted.labels is None:
        read = to_numbers(series, notation)
    elif notation is not None and series.dtype == pl.String:
        read = to_texts(series, notation)
    found = len(read) - read.null_count()
    if not found:
        what = (
            "is missing in every row"
            if not there
            else f"holds text ({str(series.drop_nulls()[0])[:40]!r}), not numbers"
        )
        raise UserError(f"{table.path}: the target {name!r} {what}.")
    table.rows = table.numbers()[read.is_not_null().to_numpy()]
    table.frame = table.frame.with_columns(read.alias(name)).filter(read.is_not_null())
    return [f"{name}: {there - found} values cannot be read; these rows were left out"] if found < there else []


def targets(table: Table, fitted: TableModel) -> np.ndarray:
    """The target column as the model represents it."""
    from hinge.tables.target import class_numbers, labels_of, numbers_of

    series = table.frame[fitted.target]
    numbers = numbers_of(series)
    if fitted.labels is None:
        return numbers.to_numpy().astype(np.float64)
    labels = labels_of(series, numbers)
    places = class_numbers(labels, fitted.labels)
    unknown = np.flatnonzero(np.isnan(places))
    if len(unknown):
        label = labels[int(unknown[0])]
        raise UserError(
            f"{table.path}: the target {fitted.target!r} has {label!r}, a class that {fitted.name} does not know."
        )
    return places.astype(np.int64)
