"""Parquet, Arrow and CSV files, folders and datasets, read through ``pyarrow.dataset``.

Columns and filters are passed to the reader. Files are opened by plain reads, never mapped into memory.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hinge.blocks.block import Piece, Roles, require_columns
from hinge.blocks.parts import Part
from hinge.errors import UserError

FORMATS = {
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc",
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".txt": "csv",
}  # fmt: skip
READ_ROWS = 1 << 16  # rows per batch of the reader


def import_pyarrow() -> Any:
    """The module pyarrow.dataset, which comes with ``hinge-learn[dask]`` or by itself."""
    try:
        import pyarrow.dataset
    except ImportError:
        raise ImportError("hg.scan of files needs pyarrow; install it with pip install pyarrow.") from None
    return pyarrow.dataset


@contextmanager
def _naming(where: str) -> Iterator[None]:
    """Add the name of the file to errors of the reader."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(
            f"{where} cannot be read; it may be truncated, damaged or of another format: {error}"
        ) from error


@dataclass(frozen=True)
class Signature:
    """The state of a file when it was scanned."""

    path: str
    size: int
    changed: int

    @classmethod
    def of(cls, path: str) -> Signature | None:
        """None for files that are not on this machine's file system."""
        try:
            found = os.stat(path)
        except OSError:
            return None
        return cls(path, found.st_size, found.st_mtime_ns)

    def require_unchanged(self) -> None:
        """Raise if the file has changed since it was scanned."""
        now = Signature.of(self.path)
        if now is None:
            raise UserError(f"{self.path} was removed after it was scanned.")
        if now != self:
            raise UserError(
                f"{self.path} changed after it was scanned: a fit reads its data several times, and every time they must be "
                "the same. Write new data to another file, and scan again."
            )


@dataclass
class FilePart(Part):
    """A file, or some row groups of a Parquet file."""

    fragment: Any
    schema: Any
    filter: Any
    signature: Signature | None
    size: int  # bytes in storage, all columns
    column_bytes: dict[str, int] | None = None

    def pieces(self, roles: Roles, *, only_targets: bool) -> Iterator[Piece]:
        columns = list(roles.columns(only_targets=only_targets))
        self._require_unchanged()
        with _naming(self.where):
            batches = self.fragment.to_batches(
                schema=self.schema, columns=columns, filter=self.filter, batch_size=READ_ROWS, **_reading(self.fragment)
            )
        while True:
            with _naming(self.where):
                batch = next(batches, None)
            if batch is None:
                break
            if batch.num_rows:
                yield Piece(_table(batch))
        self._require_unchanged()

    def _require_unchanged(self) -> None:
        if self.signature is not None:
            self.signature.require_unchanged()

    def stored_bytes(self, roles: Roles, *, only_targets: bool) -> int:
        if self.column_bytes is None:
            return self.size
        return sum(self.column_bytes.get(name, 0) for name in roles.columns(only_targets=only_targets))


def _table(batch: Any) -> Any:
    import pyarrow

    return pyarrow.Table.from_batches([batch])


def _reading(fragment: Any) -> dict[str, Any]:
    """A scanner without read-ahead of its own, to save memory: blocks are prefetched elsewhere."""
    options: dict[str, Any] = {"batch_readahead": 0, "fragment_readahead": 1, "use_threads": True}
    if hasattr(fragment, "row_groups"):
        options["fragment_scan_options"] = import_pyarrow().ParquetFragmentScanOptions(pre_buffer=False)
    return options


def expand(what: str | Path) -> list[str]:
    """The files that a path, a pattern or a folder stands for, in the order of their names."""
    text = os.fspath(what)
    if os.path.isdir(text):
        found = sorted(
            str(path)
            for path in Path(text).rglob("*")
            if path.is_file() and not any(p.startswith(("_", ".")) for p in path.relative_to(text).parts)
        )
        if not found:
            raise UserError(f"the folder {text} holds no files.")
        return found
    found = sorted(glob.glob(text)) if glob.has_magic(text) and not os.path.exists(text) else [text]
    if not found:
        raise UserError(f"no file matches {text!r}.")
    for path in found:
        if not os.path.exists(path):
            raise UserError(f"{path} does not exist.")
    return found


def open_files(what: str | Path | Sequence[str | Path]) -> Any:
    """A ``pyarrow.dataset`` of the files."""
    dataset = import_pyarrow()
    root = os.fspath(what) if isinstance(what, str | Path) and os.path.isdir(what) else None
    paths = expand(what) if isinstance(what, str | Path) else [path for each in what for path in expand(each)]
    kinds = {path: _format(path) for path in paths}
    if len(set(kinds.values())) > 1:
        raise UserError(
            f"the files are of different formats: {', '.join(sorted(set(kinds.values())))}. Scan one at a time."
        )
    kind = kinds[paths[0]]
    form = _csv_format(paths[0]) if kind == "csv" else kind
    with _naming(paths[0]):
        if root is not None:
            return dataset.dataset(paths, format=form, partitioning="hive", partition_base_dir=root)
        return dataset.dataset(paths, format=form)


def _format(path: str) -> str:
    suffixes = [s.lower() for s in Path(path).suffixes]
    known = suffixes[-2:-1] if suffixes[-1:] in ([".gz"], [".bz2"], [".zst"]) else suffixes[-1:]
    kind = FORMATS.get(known[0]) if known else None
    if kind is None:
        raise UserError(
            f"{path}: hg.scan reads {', '.join(sorted(FORMATS))}, not this kind of file; read it into a data frame instead."
        )
    return kind


def _csv_format(path: str) -> Any:
    """Columns separated as in the first line; empty fields are missing."""
    import pyarrow.csv

    dataset = import_pyarrow()
    header = ""
    if not path.endswith((".gz", ".bz2", ".zst")):
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            header = file.readline()
    separator = max([",", ";", "\t", "|"], key=header.count)
    return dataset.CsvFileFormat(
        parse_options=pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True),
    )


def file_parts(
    data: Any, filter: Any, resolve: Callable[[list[str]], Roles], block_rows: int | None
) -> tuple[Roles, list[Part]]:
    """The roles of the columns and the parts of a dataset; ``resolve`` turns the names of its columns into roles.

    Every file is opened once, so that damaged files and missing columns are reported before any work is done.
    """
    fragments = list(data.get_fragments())
    if not fragments:
        raise UserError("the dataset has no files.")
    keep = as_expression(filter)
    schemas = []
    for fragment in fragments:
        with _naming(_name(fragment)):
            schemas.append(fragment.physical_schema)
    try:
        hive = [name for name in data.schema.names if name not in schemas[0].names]
    except UnicodeDecodeError:
        raise UserError(
            f"{_name(fragments[0])}: the names of its columns are not UTF-8. Save the file as UTF-8."
        ) from None
    roles = resolve([*schemas[0].names, *hive])
    wanted = [name for name in roles.columns(only_targets=False) if name not in hive]
    for fragment, schema in zip(fragments, schemas):
        require_columns(schema.names, wanted, _name(fragment))
    schema = _unified(fragments, schemas, [data.schema.field(name) for name in hive])
    parts: list[Part] = []
    for fragment in fragments:
        parts.extend(_parts_of(fragment, schema, keep, block_rows, len(wanted)))
    return roles, parts


def _name(fragment: Any) -> str:
    return str(getattr(fragment, "path", None) or "the dataset")


def _unified(fragments: list[Any], schemas: list[Any], partition_fields: list[Any]) -> Any:
    """One type per column: the widest of all files; float for columns of a CSV file that start with integers."""
    import pyarrow
    import pyarrow.dataset

    try:
        schema = pyarrow.unify_schemas(schemas, promote_options="permissive")
    except pyarrow.ArrowException as error:
        raise UserError(f"the files hold different types in one column: {error}") from error
    fields = list(schema)
    if any(isinstance(getattr(fragment, "format", None), pyarrow.dataset.CsvFileFormat) for fragment in fragments):
        wide = pyarrow.float64()
        loose = (pyarrow.types.is_integer, pyarrow.types.is_null)
        fields = [f.with_type(wide) if any(test(f.type) for test in loose) else f for f in fields]
    return pyarrow.schema([*fields, *partition_fields])


def _parts_of(fragment: Any, schema: Any, keep: Any, block_rows: int | None, width: int) -> list[Part]:
    path = _name(fragment)
    signature = Signature.of(path)
    size = 0 if signature is None else signature.size
    if not hasattr(fragment, "row_groups"):
        return [FilePart(path, fragment, schema, keep, signature, size)]
    with _naming(path):
        groups = [(g.id, g.num_rows, g.total_byte_size) for g in fragment.row_groups]
        columns = _column_bytes(fragment)
    enough = block_rows or default_rows(width)
    parts: list[Part] = []
    chosen: list[int] = []
    rows = 0
    for place, (number, count, _) in enumerate(groups):
        chosen.append(number)
        rows += count
        if rows >= enough or place == len(groups) - 1:
            name = path if len(chosen) == len(groups) else f"{path}, row groups {chosen[0]}–{chosen[-1]}"
            stored = {c: sum(sizes[g] for g in chosen) for c, sizes in columns.items()}
            part = fragment if len(chosen) == len(groups) else fragment.subset(row_group_ids=chosen)
            parts.append(FilePart(name, part, schema, keep, signature, sum(stored.values()), stored))
            chosen, rows = [], 0
    return parts


def _column_bytes(fragment: Any) -> dict[str, list[int]]:
    """Bytes in storage of every column, row group by row group."""
    footer = fragment.metadata
    found: dict[str, list[int]] = {}
    for g in range(footer.num_row_groups):
        group = footer.row_group(g)
        for j in range(group.num_columns):
            column = group.column(j)
            name = column.path_in_schema.split(".")[0]
            found.setdefault(name, [0] * footer.num_row_groups)[g] += column.total_compressed_size
    return found


def as_expression(filter: Any) -> Any:
    """A filter of pyarrow: an expression, or a list of (column, operator, value), all of which must hold."""
    if filter is None:
        return None
    dataset = import_pyarrow()
    if isinstance(filter, dataset.Expression):
        return filter
    import pyarrow.parquet

    try:
        return pyarrow.parquet.filters_to_expression([filter] if isinstance(filter, tuple) else filter)
    except (TypeError, ValueError) as error:
        raise TypeError(
            "filter must be an expression of pyarrow.dataset, such as ds.field('year') > 2000, or a list of "
            f"(column, operator, value); got {filter!r}."
        ) from error


BLOCK_BYTES = 32 << 20


def default_rows(width: int, memory: int | None = None) -> int:
    """The rows of a block of about 32 MB of float64: large enough for several threads, small enough for several blocks.

    If ``memory`` is given, a block is at most a 16th of it.
    """
    size = BLOCK_BYTES if memory is None else min(BLOCK_BYTES, memory // 16)
    return int(np.clip(size // (8 * max(width, 1)), 1 << 10, 1 << 20))
