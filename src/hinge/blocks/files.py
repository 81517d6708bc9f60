"""Parquet, Arrow and CSV files, folders and datasets as parts of a source. Columns and filters are passed to the reader."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hinge.blocks.block import Roles, require_columns
from hinge.blocks.fragments import FilePart, Signature, import_pyarrow, name_of, naming
from hinge.blocks.memory import default_rows
from hinge.blocks.parquet import parquet_parts, row_words, warn_of_pages
from hinge.blocks.parts import Part
from hinge.errors import UserError

FORMATS = {
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc",
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".txt": "csv",
}  # fmt: skip


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
    with naming(paths[0]):
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
    data: Any, filter: Any, resolve: Callable[[list[str]], Roles], block_rows: int | None, memory: int | None
) -> tuple[Roles, list[Part], int]:
    """The roles of the columns, the parts of a dataset, and the rows of a block.

    ``resolve`` turns the names of the columns into roles. Every file is opened once, so that damaged files and missing
    columns are reported before any work is done.
    """
    fragments = list(data.get_fragments())
    if not fragments:
        raise UserError("the dataset has no files.")
    keep = as_expression(filter)
    schemas = []
    for fragment in fragments:
        with naming(name_of(fragment)):
            schemas.append(fragment.physical_schema)
    try:
        hive = [name for name in data.schema.names if name not in schemas[0].names]
    except UnicodeDecodeError:
        raise UserError(
            f"{name_of(fragments[0])}: the names of its columns are not UTF-8. Save the file as UTF-8."
        ) from None
    roles = resolve([*schemas[0].names, *hive])
    wanted = [name for name in roles.columns(only_targets=False) if name not in hive]
    for fragment, schema in zip(fragments, schemas):
        require_columns(schema.names, wanted, name_of(fragment))
    schema = _unified(fragments, schemas, [data.schema.field(name) for name in hive])
    grouped = [fragment for fragment in fragments if hasattr(fragment, "row_groups")]
    rows = block_rows or default_rows(len(wanted), None)  # rows of a part: the same with every limit
    cut = block_rows or default_rows(len(roles.features or ()), memory)
    if memory is not None and grouped:
        for fragment in grouped:
            warn_of_pages(fragment, wanted, memory)
        if block_rows is None:
            cut = min(cut, default_rows(max(row_words(fragment, wanted) for fragment in grouped), memory))
    parts: list[Part] = []
    for fragment in fragments:
        if hasattr(fragment, "row_groups"):
            parts.extend(parquet_parts(fragment, schema, keep, rows, cut))
        else:
            signature = Signature.of(name_of(fragment))
            size = 0 if signature is None else signature.size
            parts.append(FilePart(name_of(fragment), fragment, schema, keep, signature, size))
    return roles, parts, cut


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
