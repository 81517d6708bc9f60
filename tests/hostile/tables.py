"""Random tables as files: every cell, name, separator, quote and encoding that spreadsheets and programs write, and damage.

A table is made of columns of some kind each; a kind is a function from a random generator and a row number to the text
of a cell. The text is rendered as CSV in some dialect, as JSON, Parquet, Arrow or LIBSVM text, maybe compressed, and maybe
damaged afterwards.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Random = np.random.Generator
Cell = Callable[[Random, int], str]


def _one_of(*texts: str) -> Cell:
    return lambda rng, i: texts[rng.integers(len(texts))]


def _number(form: str, scale: float = 1.0) -> Cell:
    return lambda rng, i: form.format(scale * rng.normal())


def _date(form: str) -> Cell:
    days = np.datetime64("1970-01-01")
    return lambda rng, i: (days + rng.integers(-20_000, 40_000)).astype(object).strftime(form)


CELLS: dict[str, Cell] = {
    "number": _number("{:.4f}"), "whole": lambda rng, i: str(rng.integers(-99, 100)), "row number": lambda rng, i: str(i + 1),
    "comma": lambda rng, i: f"{rng.normal():.3f}".replace(".", ","), "thousands": _number("{:,.2f}", 1e5), "money": _number("$ {:.2f}", 1e3),
    "percent": _number("{:.1f} %", 30), "exponent": _number("{:.3e}", 1e20), "huge": _number("{:.3e}", 1e307), "beyond": _one_of("1e400", "-1e999", "9" * 400),
    "tiny": _one_of("1e-400", "4.9e-324", "-1e-310"), "hex": _one_of("0x1F", "0b11", "0o7"), "not numbers": _one_of("nan", "inf", "-Infinity", "1"),
    "code": lambda rng, i: f"{rng.integers(1000):06d}", "big whole": lambda rng, i: str(2**63 + int(rng.integers(9))), "18 digits": lambda rng, i: str(10**18 + i),
    "signs": _one_of("+1", "−3", "(5)", "1-", "--2", "½", "٣", "1_000", "1'000"), "ISO date": _date("%Y-%m-%d"), "German date": _date("%d.%m.%Y"),
    "US date": _date("%m/%d/%y"), "months": _date("%d %b %Y"), "time": lambda rng, i: f"{rng.integers(25)}:{rng.integers(61):02d}", "year": _date("%Y"),
    "stamp": lambda rng, i: f"20{rng.integers(10, 30)}-01-01T00:00:{rng.integers(60):02d}+0{rng.integers(10)}:00", "no date": _one_of("2024-02-31", "0000-00-00", "99999-01-01"),
    "class": _one_of("red", "green", "blue"), "levels": lambda rng, i: f"level {rng.integers(40)}", "distinct": lambda rng, i: f"id{i}",
    "Unicode": _one_of("Zürich", "東京", "é", "e\u0301", "İ", "ß", "ﬀ"), "signs of control": _one_of("a\u200bb", "\u202eabc", "\ufeff", "a\x07", "\x1b[31m", "\x7f"),
    "emoji": _one_of("👩‍👩‍👧", "🇨🇭", "x"), "formula": _one_of("=1+1", "@SUM(A1)", "+A1", "-A1", "=cmd|' /C calc'!A0"), "script": _one_of("<script>alert(1)</script>", "</td>", "&amp;", "x"),
    "quotes": _one_of('"', '""', "'", '"a', 'a"b', "“a”"), "lines": _one_of("a\nb", "\r", "\n", "a\r\nb"), "separators": _one_of(",", ";", "\t", "|", "a,b;c"),
    "NUL": _one_of("a\0b", "\0", "a"), "long": lambda rng, i: "x" * int(rng.integers(1, 3000)), "very long": lambda rng, i: "y " * 40_000 if i == 3 else "y",
    "truth": _one_of("true", "false"), "TRUE": _one_of("TRUE", "FALSE", "T", "yes"), "mixed": _one_of("1", "a", "", "2020-01-01", "1,5", "true"),
    "empty": _one_of(""), "blank": _one_of(" ", "\t", "\u00a0"), "constant": _one_of("7"), "missing": _one_of("NA", "n/a", "NULL", "-", "?", "1", "None", "#DIV/0!"),
    "backslash": _one_of("\\", "\\N", '\\"', "C:\\x"), "JSON": _one_of('{"a": 1}', "[1, 2]"), "spaces": _one_of(" 1", "2 ", " 3 "), "words": _one_of("a long text of some words", "another one of them"),
    "lists": _one_of("[]", "1;2", "1 2 3"), "format": _one_of("{}", "%s", "%n", "{0.__class__}"), "rare": lambda rng, i: "a" if i == 5 else "1",
}  # fmt: skip
NAMES = [
    "a", "b", "c", "y", "y", "a", "", " ", "A", "target", "x" * 300, "=1+1", "a,b", 'a"b', "a\nb", "1", "2.5", "é", "e\u0301", "<b>", "\0", "\ufeffy", "y.2",
    "unnamed_1", "column_1", "__index__", "東京", "None", "nan", "'", "\\", "../y", "id", "--target", "%s", "{}", "row", "prediction", "__proto__",
]  # fmt: skip
ENCODINGS = (
    "utf-8",
    "utf-8",
    "utf-8",
    "utf-8",
    "utf-8-sig",
    "utf-16",
    "utf-16-le",
    "utf-32",
    "latin-1",
    "cp1252",
    "shift_jis",
    "utf-7",
)
ENDS = ("\n", "\n", "\n", "\r\n", "\r\n", "\r", "\n\n", "\n\r")
SUFFIXES = (".csv",) * 12 + (
    ".tsv",
    ".txt",
    ".csv.gz",
    ".parquet",
    ".parquet",
    ".arrow",
    ".jsonl",
    ".jsonl",
    ".json",
    ".svm",
)


@dataclass
class Made:
    """A file, and its cells where every reader must find the same ones."""

    path: Path
    names: list[str]
    rows: list[list[str]] = field(default_factory=list)
    regular: bool = False


def make(rng: Random, folder: Path, names: list[str] | None = None, rows: int | None = None) -> Made:
    """A random file in the folder; with the names of columns that a model knows, those are among its columns."""
    width = int(rng.integers(1, 9)) if names is None else len(names)
    height = rows or int(rng.choice([0, 1, 2, 5, 30, 60, 120]))
    kinds = [str(kind) for kind in rng.choice(list(CELLS), size=width)]
    if rng.random() < 0.5:  # some columns are as they should be
        kinds = ["class" if rng.random() < 0.3 else "number" if rng.random() < 0.7 else kind for kind in kinds]
    if names is None:
        plain = rng.random() < 0.6
        names = ["y" if j == width - 1 else f"c{j}" if plain else str(rng.choice(NAMES)) for j in range(width)]
    elif rng.random() < 0.2:
        names = [str(rng.choice(NAMES)) if rng.random() < 0.3 else name for name in names]
    cells = [[CELLS[kind](rng, i) for kind in kinds] for i in range(height)]
    suffix = str(rng.choice(SUFFIXES))
    made = Made(folder / f"t{suffix}", list(names), cells)
    content = _render(rng, made, suffix)
    if suffix.endswith(".gz"):
        content = gzip.compress(content, 1)
    if rng.random() < 0.2:
        content, made.regular = damage(rng, content), False
    made.path.write_bytes(content)
    return made


def _render(rng: Random, made: Made, suffix: str) -> bytes:
    if suffix in (".parquet", ".arrow"):
        return _columnar(rng, made, suffix)
    if suffix in (".json", ".jsonl"):
        return _json(rng, made, suffix)
    if suffix == ".svm":
        return _svm(rng, made)
    return _csv(rng, made, suffix)


def _csv(rng: Random, made: Made, suffix: str) -> bytes:
    separator = "\t" if suffix == ".tsv" else str(rng.choice([",", ",", ",", ";", "\t", "|", " ", ":"]))
    quoting = int(rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    end, encoding, careless = str(rng.choice(ENDS)), str(rng.choice(ENCODINGS)), rng.random() < 0.25
    text, doubled = io.StringIO(), bool(rng.random() < 0.9)
    writer = csv.writer(
        text, delimiter=separator, quoting=quoting, lineterminator=end, doublequote=doubled, escapechar="\\"
    )
    lines = [made.names, *made.rows] if rng.random() < 0.95 else made.rows
    for k, row in enumerate(lines):
        if careless and k and rng.random() < 0.1:
            row = _ragged(rng, row)
        if careless:
            text.write(separator.join(row) + end)
        else:
            writer.writerow(row)
    content = text.getvalue()
    if rng.random() < 0.1:
        content = (
            str(rng.choice(["# comment\n", "\n\n", "sep=;\n", "title of the table\n\n", "\ufeff\ufeff"])) + content
        )
    elif rng.random() < 0.1:
        content = content.rstrip("\r\n") + str(rng.choice(["", '"', "\x1a", "\n\n\n", "total,,,\n", "\0"]))
    else:
        plain = doubled and all(
            c.isprintable() and c.isascii() and c != "\\" for r in lines for cell in r for c in cell
        )
        plain = plain and encoding not in ("utf-7", "shift_jis", "utf-16-le", "utf-32")
        made.regular = (
            plain and not careless and separator in ",;\t|" and end in ("\n", "\r\n") and len(lines) > len(made.rows)
        )
    return content.encode(encoding, errors="replace")


def _ragged(rng: Random, row: list[str]) -> list[str]:
    return [*row, *["x"] * int(rng.integers(1, 4))] if rng.random() < 0.5 else row[: int(rng.integers(0, len(row)))]


def _json(rng: Random, made: Made, suffix: str) -> bytes:
    def value(text: str) -> Any:
        kind = rng.integers(12)
        if kind == 0:
            return [None, True, 10**30, 1.5, [1, [2]], {"a": {"b": 1}}, float("nan"), -0.0, "", [], {}][
                rng.integers(11)
            ]
        try:
            return float(text) if kind < 6 else text
        except ValueError:
            return text

    records = [dict(zip(made.names, map(value, row))) for row in made.rows]
    if records and rng.random() < 0.2:
        records[rng.integers(len(records))] = dict(list(records[0].items())[:1]) | {"more": 1}
    if suffix == ".json":
        shape: Any = records if rng.random() < 0.7 else {name: [r.get(name) for r in records] for name in made.names}
        return json.dumps(shape).encode()
    lines = [json.dumps(r) for r in records]
    if rng.random() < 0.1:
        lines.insert(
            int(rng.integers(len(lines) + 1)), str(rng.choice(["", "[]", "1", "{", "null", "[" * 2000, '{"a": NaN}']))
        )
    return "\n".join(lines).encode()


def _svm(rng: Random, made: Made) -> bytes:
    odd = (
        "0:1",
        "-1:2",
        "3:nan",
        "4:inf",
        "2:1 1:2",
        "99999999999:1",
        "a:b",
        "1:",
        ":",
        "1:1e400",
        "1073741824:1",
        "qid:3 1:1",
        "1:1 1:1",
        "# x",
    )
    lines = []
    for _i in range(len(made.rows)):
        pairs = [f"{j + 1}:{rng.normal():.3f}" for j in range(6) if rng.random() < 0.6]
        if rng.random() < 0.05:
            pairs.append(str(rng.choice(odd)))
        lines.append(" ".join([str(rng.choice(["1", "-1", "2.5", "a", ""], p=[0.5, 0.44, 0.02, 0.02, 0.02])), *pairs]))
    return "\n".join(lines).encode()


def _columnar(rng: Random, made: Made, suffix: str) -> bytes:
    """Parquet or Arrow with columns of odd types."""
    import polars as pl

    n = len(made.rows)
    columns: dict[str, Any] = {}
    for j, name in enumerate(made.names):
        texts = [row[j] for row in made.rows]
        columns[name] = _typed(rng, pl, texts, n)
    out = io.BytesIO()
    frame = pl.DataFrame(columns)
    frame.write_parquet(out) if suffix == ".parquet" else frame.write_ipc(out)
    return out.getvalue()


def _typed(rng: Random, pl: Any, texts: list[str], n: int) -> Any:
    numbers = rng.normal(size=n)
    kinds: list[Callable[[], Any]] = [
        lambda: pl.Series(texts, dtype=pl.String), lambda: pl.Series(numbers), lambda: pl.Series(numbers.astype(np.float32)),
        lambda: pl.Series(np.where(numbers > 1, np.nan, numbers)), lambda: pl.Series(np.where(numbers > 1, np.inf, numbers)),
        lambda: pl.Series([None] * n, dtype=pl.Null), lambda: pl.Series([None] * n, dtype=pl.Float64), lambda: pl.Series(numbers > 0),
        lambda: pl.Series(texts, dtype=pl.Categorical), lambda: pl.Series([[1, 2]] * n, dtype=pl.List(pl.Int64)),
        lambda: pl.Series([{"a": 1}] * n, dtype=pl.Struct({"a": pl.Int64})), lambda: pl.Series([b"\xff\0"] * n, dtype=pl.Binary),
        lambda: pl.Series(np.arange(n)).cast(pl.Date), lambda: pl.Series(np.arange(n) * 2**50).cast(pl.Datetime("us", "Asia/Kathmandu")),
        lambda: pl.Series(np.arange(n)).cast(pl.Duration("ns")), lambda: pl.Series(np.arange(n)).cast(pl.Time), lambda: pl.Series(np.full(n, 2**64 - 1, dtype=np.uint64)),
        lambda: pl.Series(np.full(n, -(2**63))), lambda: pl.Series(np.arange(n) % 100).cast(pl.Decimal(20, 5)), lambda: pl.Series(["a"] * n, dtype=pl.Enum(["a", "b"])),
        lambda: pl.Series([[1.0, 2.0]] * n, dtype=pl.Array(pl.Float64, 2)), lambda: pl.Series((np.arange(n) % 100).astype(np.int8)), lambda: pl.Series(np.full(n, 1e308)),
    ]  # fmt: skip
    return kinds[rng.integers(len(kinds))]()


def damage(rng: Random, content: bytes) -> bytes:
    """The bytes cut, flipped, doubled, or with others between them."""
    data = bytearray(content)
    if not data:
        return bytes(data)
    at, kind = int(rng.integers(len(data))), rng.integers(7)
    span = slice(at, at + int(rng.integers(1, 40)))
    if kind == 0:
        del data[at:]
    elif kind == 1:
        del data[span]
    elif kind == 2:
        data[span] = rng.bytes(len(data[span]))
    elif kind == 3:
        data[at:at] = data[span] * 5
    elif kind == 4:
        data[at:at] = [b"\0", b"\xff\xfe", b'"', b"\r", b"\xef\xbb\xbf", b"\n\n", b"\xc3", b"\\"][rng.integers(8)]
    elif kind == 5:
        data[at] ^= 1 << int(rng.integers(8))
    else:
        data = data[::-1]
    return bytes(data)
