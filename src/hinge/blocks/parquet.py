"""Row groups of Parquet files as parts of a source, decoded a few rows at a time.

A row group is read column by column through a small buffer, and decoded as far as the next block needs. The reader then holds a
page of every column besides the block, however large the row groups are. Pages cannot be divided: a file whose pages do not fit
into the limit is named in a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hinge.blocks.fragments import READ_ROWS, FilePart, Signature, name_of, naming
from hinge.blocks.parts import Part

BUFFER = 1 << 16  # bytes read at once from a column of a row group
HEADER = 64  # more bytes than the first two fields of the header of a page take


class PageWarning(UserWarning):
    """Issued for a Parquet file whose pages are larger than the memory allowed."""


@dataclass
class ParquetPart(FilePart):
    """Some row groups of a Parquet file."""

    batch_rows: int = READ_ROWS
    stored_rows: int = 0

    @property
    def row_count(self) -> int | None:
        return self.stored_rows if self.filter is None else None

    def batches(self, columns: list[str]) -> Iterator[Any]:
        import pyarrow
        import pyarrow.parquet

        kept = self.fragment if self.filter is None else self.fragment.subset(self.filter, schema=self.schema)
        groups = [group.id for group in kept.row_groups]
        if not groups:
            return
        options = self.fragment.format.read_options
        file = pyarrow.parquet.ParquetFile(
            self.fragment.open(), metadata=self.fragment.metadata, pre_buffer=False, buffer_size=BUFFER,
            read_dictionary=list(options.dictionary_columns), coerce_int96_timestamp_unit=options.coerce_int96_timestamp_unit,
        )  # fmt: skip
        with file:
            wanted = [*columns, *_mentioned(self.filter, [name for name in self.schema.names if name not in columns])]
            stored = [name for name in wanted if name in file.schema_arrow.names]
            if len(stored) == 0:  # the rows are counted by any column
                stored = file.schema_arrow.names[:1]
            for batch in file.iter_batches(self.batch_rows, row_groups=groups, columns=stored, use_threads=False):
                table = self._completed(pyarrow.Table.from_batches([batch]), wanted)
                yield (table if self.filter is None else table.filter(self.filter)).select(columns)
                del batch, table
        pyarrow.default_memory_pool().release_unused()

    def _completed(self, table: Any, wanted: list[str]) -> Any:
        """The columns in the types of the schema, with those that the path of the file gives."""
        import pyarrow
        import pyarrow.dataset

        keys: dict[str, Any] = pyarrow.dataset.get_partition_keys(self.fragment.partition_expression)
        columns = []
        for name in wanted:
            kind = self.schema.field(name).type
            if name in table.column_names:
                column = table[name]
                columns.append(column if column.type == kind else column.cast(kind))
            else:
                value = pyarrow.scalar(keys.get(name)).cast(kind)
                columns.append(pyarrow.repeat(value, table.num_rows))
        return pyarrow.table(columns, names=wanted)


def _mentioned(filter: Any, names: list[str]) -> list[str]:
    """The columns that a filter may refer to: those whose names are in its text."""
    text = "" if filter is None else str(filter)
    return [name for name in names if name in text]


def parquet_parts(fragment: Any, schema: Any, keep: Any, part_rows: int, block_rows: int) -> list[Part]:
    """The parts of a file: as many whole row groups as have ``part_rows`` rows."""
    path = name_of(fragment)
    signature = Signature.of(path)
    with naming(path):
        groups = [(g.id, g.num_rows) for g in fragment.row_groups]
        columns = _column_bytes(fragment)
    parts: list[Part] = []
    chosen: list[int] = []
    rows = 0
    for place, (number, count) in enumerate(groups):
        chosen.append(number)
        rows += count
        if rows >= part_rows or place == len(groups) - 1:
            name = path if len(chosen) == len(groups) else f"{path}, row groups {chosen[0]}–{chosen[-1]}"
            stored = {c: sum(sizes[g] for g in chosen) for c, sizes in columns.items()}
            part = fragment if len(chosen) == len(groups) else fragment.subset(row_group_ids=chosen)
            size = sum(stored.values())
            parts.append(
                ParquetPart(name, part, schema, keep, signature, size, stored, min(block_rows, READ_ROWS), rows)
            )
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


def row_words(fragment: Any, names: list[str]) -> int:
    """The size of a decoded row in words of 8 bytes: one per number, and the mean length of texts as they are stored."""
    footer = fragment.metadata
    words = 0
    for _, column in _chunks(footer, names):
        values = max(column.num_values, 1)
        words += 1 + (column.total_uncompressed_size // (8 * values) if column.physical_type == "BYTE_ARRAY" else 0)
    return words


def warn_of_pages(fragment: Any, names: list[str], memory: int) -> None:
    """Warn if a page of every column of the largest row group takes more than the memory allowed."""
    path, footer = name_of(fragment), fragment.metadata
    if (
        footer.num_row_groups == 0
        or sum(column.total_uncompressed_size for _, column in _chunks(footer, names)) <= memory
    ):
        return
    with naming(path), fragment.open() as file:
        pages = [(sum(_page_bytes(file, column)), name) for name, column in _chunks(footer, names)]
    held = sum(size for size, _ in pages)
    if held > memory:
        size, name = max(pages)
        warnings.warn(
            f"{path} is read with about {held / 1e6:.0f} MB, more than the {memory / 1e6:.0f} MB allowed: its row groups of "
            f"{_largest(footer).num_rows:,} rows have pages of up to {size / 1e6:.1f} MB (column {name!r}), and one page of every "
            "column is decoded at a time. Write the file with smaller pages and row groups, for example by "
            "pyarrow.parquet.write_table(…, row_group_size=10_000, data_page_size=65_536).",
            PageWarning,
            stacklevel=6,
        )


def _largest(footer: Any) -> Any:
    groups = [footer.row_group(g) for g in range(footer.num_row_groups)]
    return max(groups, key=lambda group: group.total_byte_size)


def _chunks(footer: Any, names: list[str]) -> Iterator[tuple[str, Any]]:
    """The named columns of the largest row group."""
    if footer.num_row_groups == 0:
        return
    group, chosen = _largest(footer), set(names)
    for j in range(group.num_columns):
        column = group.column(j)
        name = column.path_in_schema.split(".")[0]
        if name in chosen:
            yield name, column


def _page_bytes(file: Any, column: Any) -> list[int]:
    """The decoded sizes of the dictionary, if there is one, and of the first page of data."""
    places = [column.data_page_offset]
    if column.dictionary_page_offset is not None:
        places.append(column.dictionary_page_offset)
    sizes = []
    for place in places:
        file.seek(place)
        sizes.append(min(_uncompressed_size(file.read(HEADER)), column.total_uncompressed_size))
    return sizes


def _uncompressed_size(header: bytes) -> int:
    """The second field of a page's header, which Thrift's compact protocol writes as two integers: type, size."""
    fields = []
    place = 0
    for _ in range(2):
        place += 1  # the number and type of the field
        value = shift = 0
        while True:
            byte = header[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        fields.append(value >> 1)  # zigzag: sizes are not negative
    return fields[1]
