"""Tables from files (CSV, TSV, Parquet, Arrow, JSON lines and LIBSVM text, plain or gzipped) and from data frames."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hinge.errors import UserError
from hinge.tables.columns import read_columns
from hinge.tables.conversion import from_column
from hinge.tables.csv import MAX_WIDTH, csv_parts, free_name, read_csv
from hinge.tables.decoding import TextFile
from hinge.tables.frames import polars_errors

KINDS = {
    ".csv": "text", ".tsv": "text", ".txt": "text", ".tab": "text", ".data": "text", ".dat": "text",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".svm": "svm", ".libsvm": "svm", ".svmlight": "svm",
}  # fmt: skip


# The years 1 to 9999, without the first and last days, which a time zone could shift out of that range.
FIRST_SECOND, LAST_SECOND = -62_135_500_000, 253_402_200_000


@dataclass
class Table:
    """A table as polars reads it.

    Attributes
    ----------
    frame : polars.DataFrame
    path : Path
    notes : list of str
        Irregularities of the file.
    target : str, optional
        The target, where the format names one.
    rows : array of int, optional
        The numbers of the rows in the file, from 1 below the header, if some rows were left out.
    typed : bool
        The types of columns are the author's, not inferred from text: a categorical column is a category.
    """

    frame: Any
    path: Path
    notes: list[str] = field(default_factory=list)
    target: str | None = None
    rows: np.ndarray | None = None
    typed: bool = True

    def numbers(self) -> np.ndarray:
        """The number of every row in the file."""
        return np.arange(1, self.frame.height + 1) if self.rows is None else self.rows


def as_table(data: Any) -> Table:
    """A table from a path, a Table, a pandas, polars or Arrow frame, a dict of columns or an array."""
    if isinstance(data, Table):
        return data
    if isinstance(data, str | Path):
        return read_table(data)
    pl = import_polars()
    path = Path("the table")
    if isinstance(data, pl.LazyFrame):
        data = data.collect()
    try:
        frame = (
            data.clone()
            if isinstance(data, pl.DataFrame)
            else pl.DataFrame([from_column(c) for c in read_columns(data)])
        )
    except (TypeError, IndexError, AttributeError):
        raise TypeError(
            "table must be a path or a data frame (pandas, polars, Arrow, a dict of columns or a two-dimensional array), "
            f"got {type(data).__name__}."
        ) from None
    except pl.exceptions.ShapeError as error:
        raise UserError(f"the columns of the table must have one length: {error}.") from None
    if frame.height == 0:
        raise UserError("the table has no rows.")
    return Table(_flat(frame, path), path)


def import_polars() -> Any:
    """The module polars, which comes with ``hinge-learn[cli]``."""
    try:
        import polars
    except ImportError:
        raise ImportError(
            "hg.profile and hinge fit need polars; install it with pip install 'hinge-learn[cli]'."
        ) from None
    return polars


def read_table(path: str | Path, as_text: Collection[str] = ()) -> Table:
    """Read a file, or a data set of the package; columns in ``as_text`` of text files are not read as numbers."""
    import_polars()
    path = Path(path)
    if not path.exists() or (path.is_dir() and str(path) in _embedded_names()):
        return _embedded(path)
    kind, gzipped = _kind(path)
    if kind in ("parquet", "arrow"):
        table = _read_columnar(path, kind, gzipped)
    else:
        text = TextFile(path, gzipped)
        if kind == "text":
            frame, rows = read_csv(text, as_text)
            table = Table(frame, path, rows=rows, typed=False)
        else:
            table = {"jsonl": _read_jsonl, "json": _read_json, "svm": _read_svm}[kind](path, text.source())
        table.notes[:0] = text.notes
    if table.frame.height == 0:
        raise UserError(f"{path} has a header but no rows." if kind == "text" else f"{path} has no rows.")
    return table


def read_parts(path: str | Path, as_text: Collection[str], rows: int) -> Iterator[Table]:
    """The table in parts: one piece of a text file, or a number of rows, at a time.

    JSON, LIBSVM text and gzipped Parquet are read at once.

    Parameters
    ----------
    as_text : collection of str
        Columns of a text file that are not read as numbers.
    rows : int
    """
    path = Path(path)
    kind, gzipped = _kind(path) if path.exists() else ("", False)
    if kind == "text":
        text, empty = TextFile(path, gzipped), True
        for frame in csv_parts(text, as_text):
            empty = empty and frame.height == 0
            yield Table(frame, path, text.notes, typed=False)
        if empty:
            raise UserError(f"{path} has a header but no rows.")
        return
    if kind in ("parquet", "arrow") and not gzipped:
        yield from _parts_of_columnar(path, kind, rows)
        return
    table = read_table(path)
    for start in range(0, table.frame.height, rows):
        yield Table(table.frame[start : start + rows], path, table.notes)


def _kind(path: Path) -> tuple[str, bool]:
    """The format of a file, by its name before an optional ``.gz``, and whether it is gzipped."""
    if path.is_dir():
        raise UserError(f"{path} is a folder; give a file.")
    if path.stat().st_size == 0:
        raise UserError(f"{path} is empty.")
    suffixes = [s.lower() for s in path.suffixes]
    gzipped = bool(suffixes) and suffixes[-1] == ".gz"
    kind = KINDS.get((suffixes[-2] if len(suffixes) > 1 else "") if gzipped else (suffixes[-1] if suffixes else ""))
    if kind is None and suffixes and suffixes[-1] in (".xls", ".xlsx", ".xlsm", ".ods"):
        raise UserError(f"{path} is a workbook; save its sheet as CSV.")
    if kind is None:
        known = ", ".join(sorted(KINDS))
        raise UserError(f"{path}: the ending of the name is unknown; expected one of {known} (or .gz).")
    return kind, gzipped


def _embedded_names() -> tuple[str, ...]:
    from hinge.datasets import NAMES

    return tuple(NAMES)


def _embedded(path: Path) -> Table:
    from hinge.datasets import raw_table

    if str(path) not in _embedded_names():
        names = " or ".join(_embedded_names())
        raise UserError(f"{path} does not exist (nor is it an embedded data set: {names}).")
    content, target = raw_table(str(path))
    text = TextFile(path, content=content)
    return Table(read_csv(text)[0], path, text.notes, target, typed=False)


def _read_columnar(path: Path, kind: str, gzipped: bool) -> Table:
    import polars as pl

    source: Any = path
    with _errors_of(path, kind):
        if gzipped:
            with gzip.open(path) as file:
                source = io.BytesIO(file.read())
        frame = (pl.read_parquet if kind == "parquet" else pl.read_ipc)(source)
    return Table(_flat(frame, path), path)


def _parts_of_columnar(path: Path, kind: str, rows: int) -> Iterator[Table]:
    import polars as pl

    with _errors_of(path, kind):
        lazy = (pl.scan_parquet if kind == "parquet" else pl.scan_ipc)(path)
        height = lazy.select(pl.len()).collect().item()
    if not height:
        raise UserError(f"{path} has no rows.")
    for start in range(0, height, rows):
        with _errors_of(path, kind):
            frame = lazy.slice(start, rows).collect()
        yield Table(_flat(frame, path), path)


@contextmanager
def _errors_of(path: Path, kind: str) -> Iterator[None]:
    """Turns errors of decompression and parsing into a UserError."""
    damaged: tuple[type[BaseException], ...] = (*polars_errors(), OSError)
    try:
        yield
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise UserError(f"{path} is not a complete gzip file: {error}.") from None
    except damaged as error:
        raise UserError(f"{path} is not a {kind} file, or is damaged: {str(error).splitlines()[0]}.") from None


def _flat(frame: Any, path: Path) -> Any:
    """The frame without columns that hold lists or records; a UserError if no column is left."""
    import polars as pl

    nested = [c for c, t in frame.schema.items() if t.is_nested() or t in (pl.Object, pl.Binary)]
    frame = frame.drop(nested)
    if frame.width == 0:
        raise UserError(f"{path}: all columns hold lists or records; flatten them first.")
    frame = frame.with_columns(
        _within_calendar(frame[c]) for c, t in frame.schema.items() if t in (pl.Date, pl.Datetime)
    )
    taken = set(frame.columns)
    return frame.rename({
        name: free_name(f"unnamed_{k}", taken) for k, name in enumerate(frame.columns, 1) if not name.strip()
    })  # fmt: skip


def _within_calendar(times: Any) -> Any:
    """Set times outside the years 1 to 9999 to missing: Python has no dates for them, and polars aborts the process."""
    units = {"ns": 10**9, "us": 10**6, "ms": 10**3}
    seconds = times.to_physical().cast(float)
    seconds = seconds / units[times.dtype.time_unit] if hasattr(times.dtype, "time_unit") else seconds * 86_400
    return times.set(~seconds.is_between(FIRST_SECOND, LAST_SECOND), None)


def _read_jsonl(path: Path, source: Any) -> Table:
    import polars as pl

    try:
        frame = pl.read_ndjson(source, infer_schema_length=10_000)
    except polars_errors():
        frame = _jsonl_by_lines(path, source)
    return Table(_flat(frame, path), path)


def _jsonl_by_lines(path: Path, source: Any) -> Any:
    """A slower parser, which reports the invalid line and reads columns of mixed types as text."""
    import json

    rows = []
    for number, line in _lines(source):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}, line {number} is not JSON: {error}.") from None
        if not isinstance(row, dict):
            raise UserError(f"{path}, line {number} is not a JSON object {{…}}.")
        rows.append(row)
    return _from_records(rows)


def _lines(source: Any) -> Iterator[tuple[int, bytes]]:
    """The lines of a path or of bytes, numbered from 1."""
    with source.open("rb") if isinstance(source, Path) else io.BytesIO(source.getvalue()) as stream:
        yield from enumerate(stream, 1)


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
    except (ValueError, RecursionError) as error:
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
    for number, line in _lines(source):
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
