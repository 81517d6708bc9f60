"""``hinge predict``: predicts the table in parts, so that a file may be larger than memory."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hinge.cli.exits import check_place
from hinge.errors import USAGE, UserError
from hinge.learning.model_inputs import BATCH, TableModel, conform, load_fitted, remarks
from hinge.learning.write import interval_columns, prediction_columns
from hinge.tables.reading import read_parts
from hinge.tables.spreadsheet import harmless

WRITERS = {".csv": "write_csv", ".parquet": "sink_parquet", ".jsonl": "write_ndjson", ".ndjson": "write_ndjson",
           ".arrow": "sink_ipc", ".feather": "sink_ipc"}  # fmt: skip


@dataclass
class Predictions:
    """The predictions for a file, part by part, and remarks on its values."""

    fitted: TableModel
    file: Path
    with_inputs: bool
    level: float | None = None
    rows: int = 0
    file_notes: list[str] = field(default_factory=list)
    unfit: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[Any]:
        import polars as pl

        card = self.fitted.card
        for k, table in enumerate(read_parts(self.file, self.fitted.text_columns, BATCH)):
            frame, unfit = conform(table, self.fitted, first=k == 0)
            self.unfit.update(unfit)
            self.file_notes = table.notes
            self.rows += frame.height
            if frame.height:
                prediction = self.fitted.with_exposure(self.fitted.outputs(frame), table)
                columns = prediction_columns(prediction, card["task"], card["classes"], card["target"])
                if self.level is not None:
                    columns |= interval_columns(prediction, card, self.level)
                result = pl.DataFrame(columns)
                seconds = pl.col(pl.Duration).dt.total_microseconds() / 1e6  # CSV has no type for durations
                inputs = table.frame.with_columns(seconds) if self.with_inputs else None
                yield result if inputs is None else pl.concat([inputs, result], how="horizontal")

    @property
    def notes(self) -> list[str]:
        return [*self.file_notes, *remarks(self.unfit, self.fitted)]


def run(
    model: Path, file: Path, out: Path | None, with_inputs: bool, as_json: bool, level: float | None = None
) -> tuple[dict[str, Any], list[str]] | None:  # fmt: skip
    """Predict the rows of a file; prints CSV without --out."""
    out = None if out == Path("-") else out
    if out is not None and out.suffix not in WRITERS:
        raise UserError(f"--out {out}: expected a name that ends in {', '.join(WRITERS)}.", USAGE)
    if out is not None:
        check_place(out)
    predictions = Predictions(load_fitted(model), file, with_inputs, level)
    rows: list[dict[str, Any]] = []
    if out is not None:
        _write(predictions, out)
    elif as_json:
        rows = [row for part in predictions for row in _for_json(part).to_dicts()]
    else:
        for k, part in enumerate(predictions):
            sys.stdout.write(harmless(part).write_csv(include_header=k == 0))
    for note in predictions.notes:
        print(f"hinge: {file}: {note}", file=sys.stderr)
    if out is not None:
        data = {"file": str(out), "rows": predictions.rows, "notes": predictions.notes}
        return data, [f"{predictions.rows} predictions in {out}"]
    return ({"rows": predictions.rows, "notes": predictions.notes, "predictions": rows}, []) if as_json else None


def _for_json(part: Any) -> Any:
    """Replace NaN and infinity in input columns by null: JSON cannot represent them."""
    import polars as pl

    finite = [pl.when(pl.col(n).is_finite()).then(pl.col(n)).alias(n) for n, t in part.schema.items() if t.is_float()]
    return part.with_columns(finite)


def _write(predictions: Predictions, out: Path) -> None:
    """Write the parts to a temporary file that is renamed when complete."""
    unfinished = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        if out.suffix == ".csv":
            with unfinished.open("wb") as file:
                for k, part in enumerate(predictions):
                    harmless(part).write_csv(file, include_header=k == 0)
        elif WRITERS[out.suffix] == "write_ndjson":
            with unfinished.open("wb") as file:
                for part in predictions:
                    part.write_ndjson(file)
        else:
            _sink(predictions, unfinished, WRITERS[out.suffix])
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)


def _sink(predictions: Predictions, file: Path, how: str) -> None:
    """Write Parquet or Arrow, one row group per part. With input columns, whose types may widen from part to part, all parts
    are concatenated first."""
    import polars as pl
    from polars.io.plugins import register_io_source

    if predictions.with_inputs:
        frames = pl.concat(list(predictions), how="vertical_relaxed").lazy()
        getattr(frames, how)(file)
        return
    parts = iter(predictions)
    first = next(parts)
    faults: list[BaseException] = []

    def source(*_: Any) -> Iterator[Any]:
        yield first
        try:
            yield from parts
        except BaseException as fault:  # polars would wrap the exception
            faults.append(fault)
            raise

    try:
        getattr(register_io_source(source, schema=first.schema), how)(file)
    except BaseException:
        if faults:
            raise faults[0] from None
        raise
