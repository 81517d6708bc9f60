"""From a file to a table: CSV, TSV, Parquet, Arrow, JSON lines and LIBSVM text, plain or gzipped."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hinge.errors import UserError
from hinge.tables.csv import MAX_WIDTH, parts_of_separated, read_separated
from hinge.tables.decoding import Text

KINDS = {
    ".csv": "text", ".tsv": "text", ".txt": "text", ".tab": "text", ".data": "text", ".dat": "text",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".svm": "svm", ".libsvm": "svm", ".svmlight": "svm",
}  # fmt: skip


@dataclass
class Table:
    """A table as it was read.

    Attributes
    ----------
    frame : polars.DataFrame
    path : Path
    notes : list of str
        What was odd about the file.
    target : str, optional
        The target, where the format names one.
    rows : array of int, optional
        The numbers of the rows in the file, from 1 below the header, if not all of them are here.
    """

    frame: Any
    path: Path
    notes: list[str] = field(default_factory=list)
    target: str | None = None
    rows: np.ndarray | None = None

    def numbers(self) -> np.ndarray:
        """The number of every row in the file."""
        return np.arange(1, self.frame.height + 1) if self.rows is None else self.rows


def as_table(table: Any) -> Table:
    """A table from a path or a data frame (pandas, polars, Arrow)."""
    if isinstance(table, Table):
        return table
    if isinstance(table, str | Path):
        return read_table(table)
    import narwhals.stable.v1 as nw

    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError:
        raise TypeError(
            f"table must be a path or a data frame (pandas, polars, Arrow), got {type(table).__name__}."
        ) from None
    return Table(frame.to_polars().clone(), Path("the table"))  # columns are taken out of it one by one


def read_table(path: str | Path) -> Table:
    """Read a file, or a data set that comes with the package."""
    path = Path(path)
    if not path.exists() or (path.is_dir() and str(path) in _embedded_names()):
        return _embedded(path)
    kind, packed = _kind(path)
    if kind in ("parquet", "arrow"):
        table = _read_columnar(path, kind, packed)
    else:
        text = Text(path, packed)
        if kind == "text":
            frame, rows = read_separated(text)
            table = Table(frame, path, rows=rows)
        else:
            table = {"jsonl": _read_jsonl, "json": _read_json, "svm": _read_svm}[kind](path, text.whole())
        table.notes[:0] = text.notes
    if table.frame.height == 0:
        raise UserError(f"{path} has a header but no rows." if kind == "text" else f"{path} has no rows.")
    return table


def read_parts(path: str | Path, as_text: set[str], rows: int) -> Iterator[Table]:
    """The table in parts: one piece of a text file, or so many rows, at a time.

    JSON, LIBSVM text and packed Parquet are read whole.

    Parameters
    ----------
    as_text : set of str
        Columns of a text file that are to be read as text, whatever they look like.
    rows : int
    """
    path = Path(path)
    kind, packed = _kind(path) if path.exists() else ("", False)
    if kind == "text":
        text, empty = Text(path, packed), True
        for frame in parts_of_separated(text, as_text):
            empty = empty and frame.height == 0
            yield Table(frame, path, text.notes)
        if empty:
            raise UserError(f"{path} has a header but no rows.")
        return
    if kind in ("parquet", "arrow") and not packed:
        yield from _parts_of_columnar(path, kind, rows)
        return
    table = read_table(path)
    for start in range(0, table.frame.height, rows):
        yield Table(table.frame[start : start + rows], path, table.notes)


def _kind(path: Path) -> tuple[str, bool]:
    """What kind of file this is, by its name after an optional ``.gz``, and whether it is packed."""
    if path.is_dir():
        raise UserError(f"{path} is a folder; give a file.")
    if path.stat().st_size == 0:
        raise UserError(f"{path} is empty.")
    suffixes = [s.lower() for s in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] == ".gz"
    kind = KINDS.get((suffixes[-2] if len(suffixes) > 1 else "") if packed else (suffixes[-1] if suffixes else ""))
    if kind is None and suffixes and suffixes[-1] in (".xls", ".xlsx", ".xlsm", ".ods"):
        raise UserError(f"{path} is a workbook; save its sheet as CSV.")
    if kind is None:
        known = ", ".join(sorted(KINDS))
        raise UserError(f"{path}: the kind of file cannot be told from its name; expected one of {known} (or .gz).")
    return kind, packed


def _embedded_names() -> tuple[str, ...]:
    from hinge.datasets import NAMES

    return tuple(NAMES)


def _embedded(path: Path) -> Table:
    from hinge.datasets import raw_table

    if str(path) not in _embedded_names():
        names = " or ".join(_embedded_names())
        raise UserError(f"{path} does not exist (nor is it an embedded data set: {names}).")
    content, target = raw_table(str(path))
    text = Text(path, content=content)
    return Table(read_separated(text)[0], path, text.notes, target)


def _read_columnar(path: Path, kind: str, packed: bool) -> Table:
    import polars as pl

    source: Any = path
    with _said_of(path, kind):
        if packed:
            with gzip.open(path) as file:
                source = io.BytesIO(file.read())
        frame = (pl.read_parquet if kind == "parquet" else pl.read_ipc)(source)
    return Table(_flat(frame, path), path)


def _parts_of_columnar(path: Path, kind: str, rows: int) -> Iterator[Table]:
    import polars as pl

    with _said_of(path, kind):
        whole = (pl.scan_parquet if kind == "parquet" else pl.scan_ipc)(path)
        height = whole.select(pl.len()).collect().item()
    if not height:
        raise UserError(f"{path} has no rows.")
    for start in range(0, height, rows):
        with _said_of(path, kind):
            frame = whole.slice(start, rows).collect()
        yield Table(_flat(frame, path), path)


@contextmanager
def _said_of(path: Path, kind: str) -> Iterator[None]:
    """What is wrong with a file of columns, as a UserError."""
    import polars as pl

    try:
        yield
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise UserError(f"{path} is not a whole gzip file: {error}.") from None
    except (pl.exceptions.PolarsError, OSError) as error:
        raise UserError(f"{path} is not a {kind} file, or is damaged: {str(error).splitlines()[0]}.") from None


def _flat(frame: Any, path: Path) -> Any:
    """Without columns that hold lists or records; a UserError if nothing is left."""
    import polars as pl

    nested = [c for c, t in frame.schema.items() if t.is_nested() or t in (pl.Object, pl.Binary)]
    frame = frame.drop(nested)
    if frame.width == 0:
        raise UserError(f"{path}: all columns hold lists or records; flatten them first.")
    return frame.rename({name: f"unnamed_{k}" for k, name in enumerate(frame.columns, 1) if not name.strip()})


def _read_jsonl(path: Path, source: Any) -> Table:
    import polars as pl

    try:
        frame = pl.read_ndjson(source, infer_schema_length=10_000)
    except pl.exceptions.PolarsError:
        frame = _slow_jsonl(path, source)
    return Table(_flat(frame, path), path)


def _slow_jsonl(path: Path, source: Any) -> Any:
    """Line by line: finds the line at fault, and takes columns of mixed kinds as text."""
    import json

    rows = []
    stream = source.open("rb") if isinstance(source, Path) else io.BytesIO(source.getvalue())
    with stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise UserError(f"{path}, line {number} is not JSON: {error}.") from None
            if not isinstance(row, dict):
                raise UserError(f"{path}, line {number} is not a JSON object {{…}}.")
            rows.append(row)
    return _from_records(rows)


def _from_records(rows: list[dict[str, Any]]) -> Any:
    import polars as pl

    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        kinds = {type(v) for v in values if v is not None}
        if kinds <= {int, float, bool}:
            columns[name] = pl.Series(name, [None if v is None else float(v) for v in values])
        elif not kinds & {list, dict}:
            columns[name] = pl.Series(name, [None if v is None else str(v) for v in values])
    return pl.DataFrame(columns)


def _read_json(path: Path, source: Any) -> Table:
    import json

    raw = source.read_bytes() if isinstance(source, Path) else source.getvalue()
    try:
        rows = json.loads(raw)
    except ValueError as error:
        try:
            return _read_jsonl(path, source)
        except UserError:
            raise UserError(f"{path} is not JSON: {error}.") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{path} must hold a list of objects, [{{…}}, …], or one object per line.")
    return Table(_flat(_from_records(rows), path), path)


def _read_svm(path: Path, source: Any) -> Table:
    """``label index:value …`` per line; the label becomes the column ``target``."""
    import polars as pl

    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    labels = []
    stream = source.open("rb") if isinstance(source, Path) else io.BytesIO(source.getvalue())
    with stream:
        for number, line in enumerate(stream, 1):
            cells = line.split(b"#", 1)[0].split()
            if not cells:
                continue
            try:
                labels.append(float(cells[0]))
                for cell in cells[1:]:
                    index, value = cell.split(b":")
                    if index == b"qid":
                        continue
                    columns.append(int(index))
                    values.append(float(value))
                    rows.append(len(labels) - 1)
            except ValueError:
                raise UserError(f"{path}, line {number} is not LIBSVM text (label index:value …).") from None
    if not labels:
        raise UserError(f"{path} has no rows.")
    width = max(columns, default=0)
    if min(columns, default=1) < 0 or width > MAX_WIDTH or len(labels) * width > 4e8:
        raise UserError(f"{path} has {width} columns; tables this wide are for the Python interface (sparse matrices).")
    dense = np.zeros((len(labels), width + 1))
    dense[rows, columns] = values
    first = 0 if dense[:, 0].any() else 1
    data = {"target": np.asarray(labels)} | {f"x{j}": dense[:, j] for j in range(first, width + 1)}
    return Table(pl.DataFrame(data), path, target="target")
