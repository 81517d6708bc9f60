"""From a file to a table: CSV, TSV, Parquet, Arrow, JSON lines and LIBSVM text, plain or gzipped."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from hinge.cli.errors import UserError

BLOCK = 1 << 22
MAX_LINE = 1 << 24  # longer lines are not lines of a table
MAX_WIDTH = 20_000  # columns
NULLS = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?", "-", "#N/A", "<NA>", "missing"]
SEPARATORS = ",\t;|"
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
    """

    frame: Any
    path: Path
    notes: list[str] = field(default_factory=list)
    target: str | None = None


def read_table(path: str | Path, columns: list[str] | None = None) -> Table:
    """Read a file; its kind is told by its name, after an optional ``.gz``.

    Parameters
    ----------
    path : path, or the name of a data set that comes with the package
    columns : list of str, optional
        Read these only, where the format allows it.
    """
    path = Path(path)
    if not path.exists():
        return _embedded(path)
    if path.is_dir():
        raise UserError(f"{path} is a folder; give a file.")
    if path.stat().st_size == 0:
        raise UserError(f"{path} is empty.")
    suffixes = [s.lower() for s in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] == ".gz"
    kind = KINDS.get((suffixes[-2] if len(suffixes) > 1 else "") if packed else (suffixes[-1] if suffixes else ""))
    if kind is None:
        known = ", ".join(sorted(KINDS))
        raise UserError(f"{path}: the kind of file cannot be told from its name; expected one of {known} (or .gz).")
    if kind in ("parquet", "arrow"):
        table = _read_columnar(path, kind, packed, columns)
    else:
        source, notes = _checked_text(path, packed)
        reader = {"text": _read_csv, "jsonl": _read_jsonl, "json": _read_json, "svm": _read_svm}[kind]
        table = reader(path, source)
        table.notes[:0] = notes
    if table.frame.height == 0:
        raise UserError(f"{path} has a header but no rows." if kind == "text" else f"{path} has no rows.")
    return table


def _embedded(path: Path) -> Table:
    from hinge.datasets import NAMES, raw_table

    if str(path) not in NAMES:
        names = " or ".join(NAMES)
        raise UserError(f"{path} does not exist (nor is it an embedded data set: {names}).")
    content, target = raw_table(str(path))
    table = _read_csv(path, io.BytesIO(content))
    table.target = target
    return table


def _checked_text(path: Path, packed: bool) -> tuple[Any, list[str]]:
    """The file itself if it is plain, its content if it is packed or not UTF-8, after a look at every line."""
    longest = line = 0
    first_bad = None
    decoder = _Utf8()
    content = io.BytesIO() if packed else None
    try:
        with _open(path, packed) as file:
            while block := file.read(BLOCK):
                if b"\0" in block[: 1 << 16] and content is not None and not content.tell():
                    raise UserError(f"{path} is not text (it holds zero bytes).")
                if b"\0" in block:
                    place = line + block[: block.index(b"\0")].count(b"\n") + 1
                    raise UserError(f"{path}, line {place}: a zero byte; the file is not text, or is damaged.")
                at = block.find(b"\n")
                longest += len(block) if at < 0 else at
                if longest > MAX_LINE:
                    raise UserError(
                        f"{path}, line {line + 1} is longer than {MAX_LINE >> 20} MB: not a table, or its line ends "
                        "are missing."
                    )
                if at >= 0:
                    longest = len(block) - block.rfind(b"\n") - 1
                if first_bad is None and not decoder.accepts(block):
                    first_bad = line + 1
                line += block.count(b"\n")
                if content is not None:
                    content.write(block)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise UserError(f"{path} is not a whole gzip file: {error}.") from None
    if first_bad is None and decoder.pending:
        first_bad = line + 1
    if first_bad is None:
        return (path if content is None else io.BytesIO(content.getvalue())), []
    raw = path.read_bytes() if content is None else content.getvalue()
    text = raw[:BLOCK].decode("cp1252", errors="replace")
    odd = sum(not (c.isprintable() or c in "\r\n\t") for c in text)
    if odd > 0.02 * len(text) or sum(ord(c) > 127 for c in text) > 0.3 * len(text):
        raise UserError(f"{path} is not text; if it is Parquet or Arrow, give it that ending.")
    recoded = raw.decode("cp1252", errors="replace").encode()
    return io.BytesIO(recoded), [f"the file is not UTF-8 (near line {first_bad}); it was read as Windows-1252"]


class _Utf8:
    """Whether a stream of blocks is UTF-8."""

    def __init__(self) -> None:
        self.pending = b""

    def accepts(self, block: bytes) -> bool:
        block = self.pending + block
        self.pending = b""
        try:
            block.decode()
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data" and len(block) - error.start < 4:
                self.pending = block[error.start :]
                return True
            return False
        return True


def _open(path: Path, packed: bool) -> IO[bytes]:
    return gzip.open(path, "rb") if packed else path.open("rb")  # type: ignore[return-value]


def _head(source: Any, size: int = 1 << 16) -> str:
    if isinstance(source, Path):
        with source.open("rb") as file:
            raw = file.read(size)
    else:
        raw = source.getvalue()[:size]
    return raw.decode("utf-8", errors="ignore").removeprefix("\ufeff")


def _separator(head: str) -> str:
    """The separator that cuts the first lines into the same number of fields, the more the better."""
    lines = [line for line in head.splitlines() if line.strip()][:20]
    if len(lines) > 2:
        lines = lines[:-1]  # the last may have been cut

    def quality(separator: str) -> tuple[float, int]:
        counts = [len(row) for row in csv.reader(lines, delimiter=separator)]
        if not counts or counts[0] < 2:
            return (0.0, 0)
        return (sum(c == counts[0] for c in counts) / len(counts), counts[0])

    best = max(SEPARATORS, key=quality)
    return best if quality(best)[1] else ","


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_csv(path: Path, source: Any) -> Table:
    import polars as pl

    head = _head(source)
    if not head.strip():
        raise UserError(f"{path} is empty.")
    separator = "\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else _separator(head)
    first = next((row for row in csv.reader(head.splitlines()[:50], delimiter=separator) if row), [])
    notes = []
    if len(first) > MAX_WIDTH:
        raise UserError(
            f"{path}, line 1 has {len(first)} fields; tables of more than {MAX_WIDTH} columns are not read."
        )
    header = not all(_is_number(name) for name in first)
    if not header:
        notes.append("the first line is all numbers, so the columns were named column_1, column_2, …")
    doubled = sorted({name for name in first if first.count(name) > 1}) if header else []
    for name in doubled:
        notes.append(f"the column name {name!r} occurs {first.count(name)} times; later ones got a number")
    options: dict[str, Any] = {
        "separator": separator, "null_values": NULLS, "has_header": header, "raise_if_empty": False,
        "infer_schema_length": 10_000,
    }  # fmt: skip
    try:
        frame = pl.read_csv(source, **options)
    except pl.exceptions.PolarsError:
        # Some column changes its kind after the lines that were looked at: read text, and decide by column later.
        _rewind(source)
        try:
            frame = pl.read_csv(source, **(options | {"infer_schema_length": 0, "infer_schema": False}))
        except pl.exceptions.PolarsError as error:
            raise UserError(_csv_fault(path, source, separator, str(error))) from None
    if not header:
        frame.columns = [f"column_{k}" for k in range(1, frame.width + 1)]
    renames = {c: _unique_name(c, frame.columns) for c in frame.columns if "_duplicated_" in c and doubled}
    frame = frame.rename({c: c.strip() for c in frame.columns if c != c.strip() and c.strip() not in frame.columns})
    return Table(_without_blank_rows(frame.rename(renames), notes), path, notes)


def _unique_name(name: str, taken: list[str]) -> str:
    stem, _, number = name.rpartition("_duplicated_")
    k = int(number) + 2 if number.isdigit() else 2
    while f"{stem}.{k}" in taken:
        k += 1
    return f"{stem}.{k}"


def _without_blank_rows(frame: Any, notes: list[str]) -> Any:
    import polars as pl

    if frame.width < 2:
        return frame
    blank = frame.select(pl.all_horizontal(pl.all().is_null()).alias("blank")).to_series()
    if blank.any():
        notes.append(f"{int(blank.sum())} rows without any value were left out")
        frame = frame.filter(~blank)
    return frame


def _rewind(source: Any) -> None:
    if not isinstance(source, Path):
        source.seek(0)


def _csv_fault(path: Path, source: Any, separator: str, error: str) -> str:
    """The line at which a CSV file stops making sense."""
    csv.field_size_limit(MAX_LINE)
    stream = source.open("rb") if isinstance(source, Path) else io.BytesIO(source.getvalue())
    with io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="") as file:
        rows = csv.reader(file, delimiter=separator)
        try:
            width = len(next(rows, []))
            for row in rows:
                if len(row) > width:
                    return (
                        f"{path}, line {rows.line_num} has {len(row)} fields, the header has {width}; quote values that "
                        f"hold the separator {separator!r}."
                    )
        except csv.Error as fault:
            return f"{path}, line {rows.line_num}: {fault}."
    return f"{path} cannot be read as a table: {error.splitlines()[0]}."


def _read_columnar(path: Path, kind: str, packed: bool, columns: list[str] | None) -> Table:
    import polars as pl

    source: Any = path
    try:
        if packed:
            with gzip.open(path) as file:
                source = io.BytesIO(file.read())
        read = pl.read_parquet if kind == "parquet" else pl.read_ipc
        if columns is not None:
            there = pl.read_parquet_schema(source) if kind == "parquet" else pl.read_ipc_schema(source)
            columns = [c for c in columns if c in there]
            _rewind(source)
        frame = read(source, columns=columns)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise UserError(f"{path} is not a whole gzip file: {error}.") from None
    except (pl.exceptions.PolarsError, OSError) as error:
        raise UserError(f"{path} is not a {kind} file, or is damaged: {str(error).splitlines()[0]}.") from None
    return Table(_flat(frame, path), path)


def _flat(frame: Any, path: Path) -> Any:
    """Without columns that hold lists or records; a UserError if nothing is left."""
    import polars as pl

    nested = [c for c, t in frame.schema.items() if t.is_nested() or t in (pl.Object, pl.Binary)]
    frame = frame.drop(nested)
    if frame.width == 0:
        raise UserError(f"{path}: all columns hold lists or records; flatten them first.")
    return frame


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
