"""CSV and TSV files, piece by piece: memory holds the table and one piece of the text, whatever the size of the file."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hinge.errors import UserError
from hinge.tables.columns import CODES, MISSING_TEXTS
from hinge.tables.decoding import MAX_LINE, NotUtf8, TextFile
from hinge.tables.frames import polars_errors
from hinge.tables.kinds import LEADING_ZERO

PIECE = 1 << 25
MAX_WIDTH = 20_000  # columns
SEPARATORS = ",\t;|"
LOOK = 10_000  # the types of columns are inferred from this many rows
FEW_LEVELS, MAX_LEVELS = 0.1, 20_000  # a text column with fewer levels (per row, in total) is stored as categorical


@dataclass
class CsvFile:
    """The layout of a CSV file.

    Attributes
    ----------
    text : TextFile
    separator : str
    header : bool
        The first line holds names.
    width : int
        The number of fields of the first line.
    repeated : list of str
        Names that occur more than once.
    schema : dict
        The type of every column, inferred from the first piece and widened where a later one does not fit.
    as_text : collection of str
        Columns to read as text even if their first values are numbers.
    narrowed : set of str
        Columns whose first pieces were read as numbers though they hold words further down.
    """

    text: TextFile
    separator: str
    header: bool
    width: int
    repeated: list[str]
    schema: dict[str, Any] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    as_text: Collection[str] = ()
    narrowed: set[str] = field(default_factory=set)

    @classmethod
    def detect(cls, text: TextFile) -> CsvFile:
        """Detect the separator and the header from the first lines."""
        try:
            head = text.head()
        except NotUtf8 as fault:
            text.decode_as_windows(fault)
            head = text.head()
        if not head.strip():
            raise UserError(f"{text.path} is empty.")
        named_tsv = text.path.name.lower().endswith((".tsv", ".tsv.gz"))
        separator = "\t" if named_tsv else _separator(head)
        first: list[str] = next((row for row in _fields(head.splitlines()[:50], separator) if row), [])
        if len(first) > MAX_WIDTH:
            raise UserError(
                f"{text.path}, line 1 has {len(first)} fields; tables of more than {MAX_WIDTH} columns are not read."
            )
        header = not all(_is_number(name) for name in first)
        occurrences = Counter(name for name in first if name.strip())
        repeated = sorted(name for name, count in occurrences.items() if count > 1) if header else []
        bare = [str(k) for k, name in enumerate(first, 1) if not name.strip()] if header else []
        if bare:
            shown = ", ".join(bare[:5]) + (", …" if len(bare) > 5 else "")
            text.notes.append(f"no name for column {shown}; named unnamed_{bare[0]} and so on")
        if not header:
            text.notes.append("the first line is all numbers, so the columns were named column_1, column_2, …")
        for name in repeated:
            again = f"{name.strip()}.2"
            text.notes.append(f"the column name {name!r} occurs {occurrences[name]} times; later ones are {again}, …")
        return cls(text, separator, header, len(first), repeated)

    def frames(self) -> Iterator[Any]:
        """The table in parts, under its final names. Types may widen from one part to the next."""
        import polars as pl

        frame: Any = None
        for k, piece in enumerate(self.text.pieces(PIECE)):
            if k == 0 and not self.schema:
                frame = self._first(piece)
                if frame.width != self.width:  # without a header, polars takes the longest of the first lines
                    raise UserError(self._fault("lines of different lengths"))
                self.schema = dict(frame.schema)
                self.names = _names(frame.columns, self.header, self.repeated)
                texts = {
                    n for n, new in zip(self.schema, self.names) if new in self.as_text and frame[n].dtype.is_numeric()
                }
                texts |= self._codes(piece)
                if texts:
                    self.schema |= dict.fromkeys(texts, pl.String)
                    frame = self._parse(piece, self.header, again=False)
            else:
                if k == 1:
                    self._store_levels_once(frame)
                frame = self._parse(piece, self.header and k == 0, again=k > 0)
            yield frame.rename(dict(zip(frame.columns, self.names, strict=True)))

    def _options(self) -> dict[str, Any]:
        return {"separator": self.separator, "null_values": list(MISSING_TEXTS), "raise_if_empty": False}

    def _first(self, piece: bytes) -> Any:
        import polars as pl

        options = self._options() | {"has_header": self.header}
        try:
            return pl.read_csv(piece, infer_schema_length=LOOK, **options)
        except polars_errors():
            # Some column changes its type after the first LOOK rows.
            try:
                texts = pl.read_csv(piece, infer_schema=False, **options)
                some = pl.read_csv(piece, infer_schema_length=LOOK, n_rows=1, ignore_errors=True, **options)
            except polars_errors() as error:
                raise UserError(self._fault(str(error))) from None
            self.schema = dict(some.schema)
            self._widen(texts, first=True)
            return self._parse(piece, self.header, again=False)

    def _codes(self, piece: bytes) -> set[str]:
        """Columns of integers with leading zeros, such as postal codes, which are not quantities."""
        import polars as pl

        integers = [name for name, dtype in self.schema.items() if dtype.is_integer()]
        options = self._options() | {"has_header": self.header, "schema": dict.fromkeys(self.schema, pl.String)}
        if not integers or b"0" not in piece:
            return set()
        try:
            texts = pl.read_csv(piece, columns=integers, n_rows=LOOK, truncate_ragged_lines=True, **options)
        except polars_errors() as error:
            raise UserError(self._fault(str(error))) from None
        coded = texts.select(pl.all().str.strip_chars().str.contains(LEADING_ZERO).mean() >= CODES)
        return {name for name in integers if coded[name][0]}

    def _parse(self, piece: bytes, header: bool, *, again: bool) -> Any:
        import polars as pl

        options = self._options() | {"has_header": header}
        try:
            return pl.read_csv(piece, schema=self.schema, **options)
        except polars_errors():
            try:
                texts = pl.read_csv(piece, schema=dict.fromkeys(self.schema, pl.String), **options)
                self._widen(texts, first=not again)
                return pl.read_csv(piece, schema=self.schema, **options)
            except polars_errors() as error:
                raise UserError(self._fault(str(error))) from None

    def _widen(self, texts: Any, *, first: bool) -> None:
        """Give every column that does not fit its type a wider one: numbers with decimals, or text."""
        import polars as pl

        fitting = dict(self.schema)
        for name, dtype in self.schema.items():
            if dtype in (pl.String, pl.Categorical):
                continue
            values = texts[name].str.strip_chars()
            for wider in (dtype, pl.Float64):
                if dtype == pl.Boolean:
                    fits = bool(values.drop_nulls().str.to_lowercase().is_in(["true", "false"]).all())
                else:
                    fits = values.cast(wider, strict=False).null_count() == values.null_count()
                if fits:
                    fitting[name] = wider if dtype != pl.Boolean else dtype
                    break
            else:
                fitting[name] = pl.String
        if fitting == self.schema:  # the parser is stricter than the casts: read all columns as text
            fitting = dict.fromkeys(self.schema, pl.String)
        changed = {
            n for n, t in fitting.items() if t == pl.String and self.schema[n] not in (pl.String, pl.Categorical)
        }
        if not first:
            self.narrowed |= changed
        self.schema = fitting

    def _store_levels_once(self, first: Any) -> None:
        """Store text columns with few levels as categorical from the second piece on."""
        import polars as pl

        for name, dtype in self.schema.items():
            if dtype == pl.String:
                levels = first[name].n_unique()
                if levels <= min(FEW_LEVELS * first.height, MAX_LEVELS):
                    self.schema[name] = pl.Categorical()

    def _fault(self, error: str) -> str:
        """The message for a file that cannot be parsed, with the number of the invalid line."""
        path = self.text.path
        stream = io.TextIOWrapper(self.text.open(), encoding=self.text.encoding, errors="replace", newline="")
        with stream as file:
            rows = _fields(file, self.separator)
            try:
                width = len(next(rows, []))
                for row in rows:
                    if len(row) > width == 1:
                        return (
                            f"{path}, line {rows.line_num} has {len(row)} fields, line 1 has one; remove the lines that "
                            "stand before the names of the columns."
                        )
                    if len(row) > width:
                        return (
                            f"{path}, line {rows.line_num} has {len(row)} fields, the header has {width}; quote values "
                            f"that hold the separator {self.separator!r}."
                        )
            except csv.Error as fault:
                return f"{path}, line {rows.line_num}: {fault}."
        if "malformed" in error:
            return f'{path}: a quote opens a value and is never closed; within a value a quote is written twice ("").'
        return f"{path} cannot be read as a table: {error.splitlines()[0]}."


def csv_parts(text: TextFile, as_text: Collection[str]) -> Iterator[Any]:
    """The table in parts, for readers that need one at a time."""
    text.detect_encoding()
    file = CsvFile.detect(text)
    file.as_text = as_text
    for frame in file.frames():
        yield without_blank_rows(frame, text.notes)[0]


def read_csv(text: TextFile, as_text: Collection[str] = ()) -> tuple[Any, np.ndarray | None]:
    """The table as a polars frame, and the numbers of its rows if some were left out; notes go to ``text.notes``."""
    began = len(text.notes)
    file = CsvFile.detect(text)
    for _ in range(3):
        file.as_text = as_text
        try:
            parts = list(file.frames())
        except NotUtf8 as fault:
            del text.notes[began:]
            text.decode_as_windows(fault)
            file = CsvFile.detect(text)
            continue
        if not file.narrowed:
            break
        file.narrowed.clear()  # read again: the schema now has these columns as text
    return without_blank_rows(_joined(parts, file), text.notes)


def _joined(parts: list[Any], file: CsvFile) -> Any:
    """One table of the parts, column by column, so that at most one column is held twice."""
    import polars as pl

    if len(parts) == 1:
        return parts[0]
    columns = []
    for name, dtype in zip(file.names, file.schema.values(), strict=True):
        pieces = [part.drop_in_place(name).cast(dtype) for part in parts]
        columns.append(pl.concat(pieces, rechunk=True))
    return pl.DataFrame(columns)


def _fields(lines: Iterable[str], separator: str) -> Any:
    """A reader of rows whose fields may be as long as a line."""
    csv.field_size_limit(MAX_LINE)
    return csv.reader(lines, delimiter=separator)


def _separator(head: str) -> str:
    """The separator with the most consistent number of fields in the first lines; ties go to the larger number."""
    lines = [line for line in head.splitlines() if line.strip()][:20]
    if len(lines) > 2:
        lines = lines[:-1]  # the last may be incomplete

    def quality(separator: str) -> tuple[float, int]:
        counts = [len(row) for row in _fields(lines, separator)]
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


def _names(columns: list[str], header: bool, repeated: list[str]) -> list[str]:
    """The names without surrounding blanks; duplicates get a number, and columns without a header are numbered."""
    if not header:
        return [f"column_{k}" for k in range(1, len(columns) + 1)]
    names: list[str] = []
    taken = set(columns)
    for k, column in enumerate(columns, 1):
        plain = column.strip()
        if not plain.partition("_duplicated_")[0]:
            names.append(free_name(f"unnamed_{k}", taken))
            continue
        names.append(column if plain in taken else plain)
        taken.add(names[-1])
    return [_unique_name(c, taken) if "_duplicated_" in c and repeated else c for c in names]


def free_name(name: str, taken: set[str]) -> str:
    """The name, with underscores appended until it is unique; it is added to the names in use."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _unique_name(name: str, taken: set[str]) -> str:
    """A name for a column that polars called ``name_duplicated_k``."""
    stem, _, number = name.rpartition("_duplicated_")
    k = int(number) + 2 if number.isdigit() else 2
    while f"{stem}.{k}" in taken:
        k += 1
    taken.add(f"{stem}.{k}")
    return f"{stem}.{k}"


def without_blank_rows(frame: Any, notes: list[str]) -> tuple[Any, np.ndarray | None]:
    """The rows with any value, and, if others were left out, their numbers in the file (from 1, below the header)."""
    import polars as pl

    if frame.width < 2:
        return frame, None
    blank = frame.select(pl.all_horizontal(pl.all().is_null()).alias("blank")).to_series()
    if blank.any():
        count = int(blank.sum())
        notes.append(
            "a row without any value was left out" if count == 1 else f"{count} rows without any value were left out"
        )
        return frame.filter(~blank), np.flatnonzero(~blank.to_numpy()) + 1
    return frame, None
