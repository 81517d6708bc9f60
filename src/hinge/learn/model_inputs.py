"""A model file and a table that must fit together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hinge.errors import MODEL, UserError
from hinge.learn.refit import checksum
from hinge.learn.scores import predict_for
from hinge.tables.conversion import to_numbers, to_texts, to_times
from hinge.tables.frames import closest_name
from hinge.tables.number_formats import Notation
from hinge.tables.reading import Table, read_table

BATCH = 200_000


@dataclass
class Fitted:
    """A model that ``hinge fit`` made, with its card."""

    path: Path
    model: Any
    card: dict[str, Any]

    @property
    def task(self) -> str:
        return self.card["task"]

    @property
    def target(self) -> str:
        return self.card["target"]

    @property
    def classes(self) -> Any:
        return np.asarray(self.card["classes"]) if self.card["classes"] else None

    @property
    def columns(self) -> list[str]:
        return [c["name"] for c in self.card["columns"]]

    @property
    def text_columns(self) -> set[str]:
        """Columns that are read as text even if a file holds numbers there."""
        return {c["name"] for c in self.card["columns"] if c["kind"] in ("boolean", "category", "text")}

    def predict(self, frame: Any) -> np.ndarray:
        """Probabilities or means, some rows at a time."""
        parts = [
            predict_for(self.model, frame[start : start + BATCH], self.task, self.classes)
            for start in range(0, frame.height, BATCH)
        ]
        return np.concatenate(parts)


def load_any(path: Path) -> tuple[Any, dict[str, Any]]:
    """Any model file, whole and unaltered, or a UserError."""
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


def load_fitted(path: Path) -> Fitted:
    """A model of ``hinge fit``."""
    model, card = load_any(path)
    if not {"target", "task", "columns", "classes"} <= set(card):
        raise UserError(
            f"{path} was not made by hinge fit (it has no record of its columns); use hg.load in Python.", MODEL
        )
    return Fitted(path, model, card)


def conform(table: Table, fitted: Fitted, *, first: bool = True) -> tuple[Any, dict[str, int]]:
    """The columns the model needs, in the types it was trained on, and how many values of which did not fit.

    A column none of whose values fits is an error in the first part of a table.
    """
    import polars as pl

    frame = table.frame
    missing = [name for name in fitted.columns if name not in frame.columns]
    if missing:
        raise UserError(
            f"{table.path} lacks {_listed(missing)} that {fitted.path} needs.{_renamed(missing, table, fitted)}"
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


def remarks(unfit: dict[str, int], fitted: Fitted) -> list[str]:
    """What is said about values that did not fit."""
    kinds = {c["name"]: c["kind"] for c in fitted.card["columns"]}
    return [f"{name}: {lost} values are not a {kinds[name]}; taken as missing" for name, lost in unfit.items()]


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(n) for n in names[:6])
    return f"the column{'s' if len(names) > 1 else ''} {shown}{', …' if len(names) > 6 else ''}"


def _renamed(missing: list[str], table: Table, fitted: Fitted) -> str:
    spare = [c for c in table.frame.columns if c not in fitted.columns]
    for name in missing:
        if near := closest_name(name, spare):
            return f" Was {name!r} renamed to {near!r}?"
    return f" The file has {', '.join(table.frame.columns[:8])}{', …' if table.frame.width > 8 else ''}."


def read_for(fitted: Fitted, file: Path, *, with_target: bool) -> tuple[Any, np.ndarray | None, list[str], Table]:
    """The rows of a file for a model: inputs, targets (class numbers or numbers; rows without one are left out)."""
    table = read_table(file, fitted.text_columns)
    notes: list[str] = []
    if with_target:
        if fitted.target not in table.frame.columns:
            raise UserError(f"{file} lacks the target {fitted.target!r}, which is needed to score predictions.")
        notes += _keep_rows_with_target(table, fitted)
    frame, unfit = conform(table, fitted)
    notes += remarks(unfit, fitted)
    if with_target and fitted.card["data_sha256"] and checksum(file) == fitted.card["data_sha256"]:
        notes.append(f"{fitted.path} was fitted to these very rows, so its score on them flatters it")
    return frame, targets(table, fitted) if with_target else None, notes, table


def _keep_rows_with_target(table: Table, fitted: Fitted) -> list[str]:
    """Leave out rows whose target is missing or cannot be read, with the remarks that calls for."""
    import polars as pl

    name, series = fitted.target, table.frame[fitted.target]
    there, read = len(series) - series.null_count(), series
    notation = Notation(**fitted.card["target_notation"]) if fitted.card.get("target_notation") else None
    if fitted.classes is None:
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


def targets(table: Table, fitted: Fitted) -> np.ndarray:
    """The target column in the terms of the model."""
    from hinge.tables.target import class_numbers, labels_of, numbers_of

    series = table.frame[fitted.target]
    numbers = numbers_of(series)
    if fitted.classes is None:
        return numbers.to_numpy().astype(np.float64)
    labels = labels_of(series, numbers)
    places = class_numbers(labels, fitted.classes)
    unknown = np.flatnonzero(np.isnan(places))
    if len(unknown):
        label = labels[int(unknown[0])]
        raise UserError(
            f"{table.path}: the target {fitted.target!r} has {label!r}, a class that {fitted.path} does not know."
        )
    return places
