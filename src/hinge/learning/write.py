"""The files of ``hinge fit``: the model, the report, and predictions for held-out rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hinge.errors import UserError
from hinge.files import write_atomically
from hinge.learning.intervals import interval, label_sets
from hinge.learning.result import LATE_NOTES, Learned
from hinge.tables.number_formats import format_number
from hinge.tables.spreadsheet import harmless


def default_folder(file: Path) -> Path:
    """A folder in the current directory, named after a file."""
    stem = file.name
    while Path(stem).suffix:
        stem = Path(stem).stem
    return Path(f"{stem}_hinge")


def prediction_columns(prediction: np.ndarray, task: str, classes: list[str], target: str) -> dict[str, Any]:
    """The predictions, as columns of a table."""
    if task not in ("binary", "multiclass"):
        return {f"predicted {target}": prediction}
    guess = np.asarray(classes)[np.argmax(prediction, axis=1)]
    columns: dict[str, Any] = {f"predicted {target}": guess}
    return columns | {f"probability {name}": prediction[:, k] for k, name in enumerate(classes)}


def interval_columns(prediction: np.ndarray, card: dict[str, Any], level: float) -> dict[str, Any]:
    """The prediction intervals or sets, as columns of a table."""
    target, share = card["target"], f"{100 * level:g} %"
    if card["classes"]:
        inside = label_sets(prediction, card, level)
        names = np.asarray(card["classes"])
        return {f"{share} set of {target}": ["|".join(names[row]) for row in inside]}
    ends = interval(prediction, card, level)
    return {f"{share} low {target}": ends[:, 0], f"{share} high {target}": ends[:, 1]}


def write(outcome: Learned, folder: Path) -> dict[str, Path]:
    """Write the three files, each atomically."""
    import polars as pl

    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = {name: folder / name for name in ("model.hinge", "report.html", "predictions.csv")}
        outcome.save(files["model.hinge"])
        e = outcome.evidence
        rows = outcome.profile.rows[outcome.test] if len(outcome.test) else outcome.profile.rows
        truth = np.asarray(e.classes)[e.y.astype(np.int64)] if e.classes else e.y
        columns = {"row": rows, e.target: truth} | prediction_columns(e.prediction, e.task, e.classes, e.target)
        write_atomically(files["predictions.csv"], harmless(pl.DataFrame(columns)).write_csv().encode())
        outcome.report(files["report.html"], usage(files))
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror or error}).") from None
    return files


def usage(files: dict[str, Path]) -> dict[str, str]:
    """Commands that use the written files."""
    model = files["model.hinge"]
    return {
        "predict": f"hinge predict {model} new.csv --out predicted.csv",
        "explain": f"hinge explain {model} new.csv --row 1",
        "python": f'hg.load("{model}").predict(frame)',
    }


def summary(outcome: Learned, files: dict[str, Path]) -> tuple[dict[str, Any], list[str]]:
    """The summary of a run, as data for ``--json`` and as lines of text."""
    e = outcome.evidence
    card = outcome.model.card
    data = card | {"files": {name: str(path) for name, path in files.items()}, "seconds": e.seconds}
    extra = ", ".join(
        f"{name} {format_number(value, 4)}" for name, value in list(e.details.items())[:4] if name != e.metric
    )
    commands = usage(files)
    late = [f"  {n.code} {n.text}" for n in e.notes if n.code in LATE_NOTES]
    return data, [
        e.reason,
        f"{e.scored.capitalize()}: {e.metric} {format_number(e.score, 4)} ± {format_number(e.error, 2)} (best constant {format_number(e.trivial, 4)}, "
        f"{100 * e.explained:.1f} % explained); {extra}",
        *late,
        "",
        f"  model        {files['model.hinge']}",
        f"  report       {files['report.html']}",
        f"  predictions  {files['predictions.csv']}",
        "",
        f"  {commands['predict']}",
        f"  {commands['explain']}",
        f"  hinge verify {files['model.hinge']}",
        *([f"  (no ONNX: {card['no_onnx']})"] if card["no_onnx"] else []),
    ]
