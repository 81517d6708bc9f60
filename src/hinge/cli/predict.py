"""``hinge predict``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hinge.cli.errors import USAGE, UserError
from hinge.cli.using import load_fitted, read_for
from hinge.cli.write import prediction_columns

WRITERS = {".csv": "write_csv", ".parquet": "write_parquet", ".jsonl": "write_ndjson", ".ndjson": "write_ndjson",
           ".arrow": "write_ipc", ".feather": "write_ipc"}  # fmt: skip


def run(
    model: Path, file: Path, out: Path | None, with_inputs: bool, as_json: bool
) -> tuple[dict[str, Any], list[str]] | None:  # fmt: skip
    """Predict; prints CSV without --out."""
    import polars as pl

    if out is not None and out.suffix not in WRITERS:
        raise UserError(f"--out {out}: expected a name that ends in {', '.join(WRITERS)}.", USAGE)
    fitted = load_fitted(model)
    frame, _, notes, table = read_for(fitted, file, with_target=False)
    prediction = fitted.predict(frame)
    columns = prediction_columns(prediction, fitted.task, fitted.card["classes"], fitted.target)
    result = pl.DataFrame(columns)
    if with_inputs:
        result = pl.concat([table.frame, result], how="horizontal")
    for note in notes:
        print(f"hinge: {file}: {note}", file=sys.stderr)
    if out is not None:
        getattr(result, WRITERS[out.suffix])(out)
        data = {"file": str(out), "rows": result.height, "notes": notes}
        return data, [f"{result.height} predictions in {out}"]
    if as_json:
        return {"rows": result.height, "notes": notes, "predictions": result.to_dicts()}, []
    sys.stdout.write(result.write_csv())
    return None
