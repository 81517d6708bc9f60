"""CSV without cells that a spreadsheet would run as formulas.

Spreadsheets take a cell that begins with =, +, -, @, a tab or a carriage return for a formula, which may read other
files or call programs. Text that begins so gets an apostrophe in front, which spreadsheets hide; numbers stay.
"""

from __future__ import annotations

from typing import Any

FORMULA = r"^[=+\-@\t\r]"
NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"


def harmless(frame: Any) -> Any:
    """A polars frame with its texts and column names escaped, so that no spreadsheet treats them as formulas."""
    import polars as pl

    def quoted(cell: Any) -> Any:
        runs = cell.str.contains(FORMULA) & ~cell.str.contains(NUMBER)
        return pl.when(runs).then(pl.concat_str(pl.lit("'"), cell)).otherwise(cell)

    kinds = frame.schema
    texts = [n for n, kind in kinds.items() if isinstance(kind, (pl.String, pl.Categorical, pl.Enum))]
    names = pl.DataFrame({"name": frame.columns}).select(quoted(pl.col("name")).alias("name"))["name"].to_list()
    return frame.with_columns(quoted(pl.col(name).cast(pl.String)).alias(name) for name in texts).rename(
        dict(zip(frame.columns, names))
    )
