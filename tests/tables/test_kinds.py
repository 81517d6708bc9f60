"""One inference of column kinds: TablePrep, hg.profile and ``hinge fit`` agree on every difficult column."""

from __future__ import annotations

import datetime
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hinge as hg
from hinge.tables.dates import DATE_FORMATS, date_format, read_dates
from hinge.tables.kinds import infer_kind, typed_columns
from hinge.tables.reading import read_table

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")

N = 240
RNG = np.random.default_rng(5)
REAL = RNG.lognormal(3, 1, N)
DAYS = [datetime.date(2019, 1, 1) + datetime.timedelta(days=int(d)) for d in RNG.integers(0, 900, N)]
MOMENTS = [datetime.datetime(2020, 1, 1) + datetime.timedelta(minutes=int(m)) for m in RNG.integers(0, 500_000, N)]


def cycle(*values):
    return [values[k % len(values)] for k in range(N)]


# Texts as a file holds them, and the kind of the column.
DIFFICULT = {
    "running number": ([str(1000 + k) for k in range(N)], "id"),
    "shuffled number": ([str(k) for k in RNG.permutation(N)], "id"),
    "number with gaps between": ([str(5 * k) for k in range(N)], "number"),
    "customer_id": ([str(v) for v in RNG.permutation(10**6)[:N]], "id"),
    "customerId": ([str(v) for v in RNG.permutation(10**6)[:N]], "id"),
    "row_number": ([str(3 * k) for k in range(N)], "id"),
    "measured": ([str(v) for v in RNG.permutation(10**6)[:N]], "number"),
    "uuid": ([str(uuid.UUID(int=int(v), version=4)) for v in RNG.integers(0, 2**62, N)], "id"),
    "two words, all different": ([f"person {k}" for k in RNG.permutation(N)], "id"),
    "long codes, all different": ([str(10**18 + k) for k in range(N)], "id"),
    "long codes": ([str(10**17 + k % 3) for k in range(N)], "category"),
    "zip": ([f"{v:05d}" for v in RNG.integers(0, 12, N) * 977], "category"),
    "price": ([f"{v:,.2f} €".translate(str.maketrans(".,", ",.")) for v in 40 * REAL], "number"),
    "dollars": ([f"${v:,.2f}" for v in 40 * REAL], "number"),
    "percent": ([f"{v:.1f} %" for v in REAL], "number"),
    "weight": ([f"{v:.2f} kg" for v in REAL], "number"),
    "thousands": ([f"{v:,.0f}" for v in 1000 * REAL], "number"),
    "plain": ([f"{v:.6f}" for v in REAL], "number"),
    "words for missing": ([f"{v:.3f}" if k % 8 else "not measured" for k, v in enumerate(REAL)], "number"),
    "a word among many numbers": ([f"{v:.3f}" if k % 50 else "error" for k, v in enumerate(REAL)], "number"),
    "a word among few numbers": ([str(k % 5) if k % 50 else "five" for k in range(N)], "number"),
    "numbers and words": (cycle("1", "2", "3", "more"), "category"),
    "few numbers": (cycle("1", "2", "5"), "number"),
    "null words": ([f"{v:.3f}" if k % 3 else ("NA", "-", "None", "n.a.")[k % 4] for k, v in enumerate(REAL)], "number"),
    "yes": (cycle("yes", "no", "no", "yes", ""), "boolean"),
    "truth": (cycle("true", "false", "false"), "boolean"),
    "True": (cycle("True", "False", "?"), "boolean"),
    "letters": (cycle("Y", "n", "N"), "boolean"),
    "truth in many words": (cycle("yes", "No", "TRUE", "0", "1"), "boolean"),
    "letters of anything": (cycle("f", "n", "y"), "category"),
    "zero and one": (cycle("0", "1", "1"), "number"),
    "iso": ([str(d) for d in DAYS], "date"),
    "iso moment": ([m.isoformat() for m in MOMENTS], "date"),
    "offset": ([m.isoformat() + "+02:00" for m in MOMENTS], "date"),
    "german": ([f"{d:%d.%m.%Y}" for d in DAYS], "date"),
    "american": ([f"{d:%m/%d/%Y}" if k % 30 else "unknown" for k, d in enumerate(DAYS)], "date"),
    "named month": ([f"{d:%d %b %Y}" for d in DAYS], "date"),
    "slashes with time": ([f"{m:%d/%m/%Y %H:%M}" for m in MOMENTS], "date"),
    "comment": ([f"the {('good', 'bad')[k % 2]} order {k} came late" for k in range(N)], "text"),
    "comment that repeats": ([f"order {k % 80} was not so good" for k in range(N)], "text"),
    "place": (cycle("New York City", "Rio de Janeiro", "Addis Ababa"), "category"),
    "city": (cycle(" Roma", "Oslo ", "Malmö", "null"), "category"),
    "accents": (cycle("caf\u00e9", "cafe\u0301"), "constant"),
    "constant": (cycle("7"), "constant"),
    "constant word": (cycle("x"), "constant"),
    "empty": (cycle("", "NA", "?"), "constant"),
    "one value and gaps": (cycle("x", ""), "category"),
    "one number and gaps": (cycle("3", "", ""), "category"),
    "one date and gaps": (cycle("2020-02-29", "NaT"), "category"),
}  # fmt: skip
KINDS = {name: kind for name, (_, kind) in DIFFICULT.items()}
TEXTS = {name: texts for name, (texts, _) in DIFFICULT.items()}
TARGET = {"y": [f"{v:.6f}" for v in RNG.normal(size=N)]}


def as_csv(path):
    pl.DataFrame(TEXTS | TARGET).write_csv(path)
    return path


@pytest.mark.mission("F4")
@pytest.mark.parametrize(
    "make", [dict, pd.DataFrame, pl.DataFrame, pa.table], ids=["dict", "pandas", "polars", "arrow"]
)
def test_profile_of_every_library_finds_the_kinds(make):
    assert hg.profile(make(TEXTS | TARGET), target="y").kinds == KINDS


@pytest.mark.mission("F4")
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow", ".jsonl"])
def test_profile_of_every_file_finds_the_kinds(tmp_path, ending):
    path, frame = tmp_path / f"t{ending}", pl.DataFrame(TEXTS | TARGET)
    {".csv": frame.write_csv, ".parquet": frame.write_parquet, ".arrow": frame.write_ipc, ".jsonl": frame.write_ndjson}[
        ending
    ](path)
    assert hg.profile(path, target="y").kinds == KINDS


@pytest.mark.mission("F4")
@pytest.mark.parametrize("read", ["texts", "hinge", "polars", "pandas"])
def test_table_prep_finds_the_same_kinds(tmp_path, read):
    path = as_csv(tmp_path / "t.csv")
    frame = {
        "texts": lambda: pd.DataFrame(TEXTS),
        "hinge": lambda: read_table(path).frame.drop("y"),
        "polars": lambda: pl.read_csv(path, infer_schema_length=None).drop("y"),
        "pandas": lambda: pd.read_csv(path).drop(columns="y"),
    }[read]()
    expected = KINDS if read in ("texts", "hinge") else KINDS | {"zip": "number"}  # these readers drop leading zeros
    kinds = hg.TablePrep().fit(frame).kinds_
    assert {name: kinds[name] for name in expected} == expected


@pytest.mark.mission("F4")
def test_table_prep_reads_the_values_that_profile_reads():
    profile = hg.profile(TEXTS | TARGET, target="y", keep=["zip"])
    raw = pd.DataFrame(TEXTS)
    names = [c.name for c in profile.columns if c.kind in ("number", "date")]
    options = {"scale": False, "missing": "keep", "encode": "codes"}
    ours = hg.TablePrep(**options).fit(raw[names]).transform(raw[names])
    theirs = hg.TablePrep({c.name: c.kind for c in profile.columns if c.name in names}, **options)
    frame = profile.frame.select(names)
    np.testing.assert_array_equal(ours, theirs.fit(frame).transform(frame))


@pytest.mark.parametrize("pattern", DATE_FORMATS)
def test_every_date_format_is_recognised(pattern):
    moments = [datetime.datetime(2021, 1, 1, 5, 7, 9) + datetime.timedelta(hours=31 * k) for k in range(200)]
    texts = sorted({m.isoformat() if pattern == "iso" else m.strftime(pattern) for m in moments})
    assert date_format(texts) == pattern
    assert not np.isnat(read_dates(texts, pattern)).any()


def test_types_of_the_table_come_before_its_texts():
    frame = pl.DataFrame({"year": cycle("2019", "2020", "2021"), "when": cycle("1.1.2020", "2.1.2020")})
    frame = frame.with_columns(pl.all().cast(pl.Categorical))
    assert hg.TablePrep().fit(frame).kinds_ == {"year": "category", "when": "category"}
    assert hg.profile(frame.with_columns(y=REAL), target="y").kinds == {"year": "category", "when": "category"}
    times = pl.DataFrame({"at": [m.time() for m in MOMENTS], "for": [m - MOMENTS[0] for m in MOMENTS], "y": REAL})
    assert hg.profile(times, target="y").kinds == {"at": "number", "for": "number"}
    assert hg.TablePrep().fit(times.to_pandas()).kinds_ == {"at": "number", "for": "number", "y": "number"}


def test_the_first_rows_decide_unless_they_are_all_alike(monkeypatch):
    monkeypatch.setattr("hinge.tables.kinds.LOOK", 100)
    for module in ("profile", "converted"):
        monkeypatch.setattr(f"hinge.tables.{module}.LOOK", 100)
    table = {
        "late": ["a"] * 150 + ["b"] * (N - 150),
        "words after numbers": [str(v) for v in REAL[:150]] + ["x"] * (N - 150),
    }
    expected = {"late": "category", "words after numbers": "number"}
    assert hg.TablePrep().fit(pl.DataFrame(table)).kinds_ == expected
    assert hg.profile(table | TARGET, target="y").kinds == expected


def test_explain_reads_the_same_columns():
    columns = typed_columns(pd.DataFrame(TEXTS))
    assert {c.name for c in columns if infer_kind(c) == "id"} == {name for name, kind in KINDS.items() if kind == "id"}
    assert all(
        (c.codes is None) == (KINDS[c.name] in ("number", "date"))
        for c in columns
        if KINDS[c.name] != "id" and c.varies()
    )


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.arange(20), "id"),
        (np.arange(20)[::-1], "id"),
        (np.arange(19), "number"),  # too few rows to decide
        (RNG.permutation(49), "number"),
        (RNG.permutation(50), "id"),
        (np.sort(RNG.permutation(60)[:45]), "id"),  # a running number after some rows were left out
        (np.sort(RNG.permutation(900)[:300]), "number"),
        (np.sort(RNG.permutation(9000)[:1000]), "id"),  # a sample of a running number
        (np.arange(1000) * 60, "number"),  # a time axis
        (np.sort(RNG.normal(size=1000)), "number"),
        (RNG.integers(0, 10**6, 1000), "number"),
    ],
)
def test_running_numbers_are_ids(values, kind):
    frame = pl.DataFrame({"v": values, "x": RNG.normal(size=len(values))})
    assert hg.TablePrep().fit(frame).kinds_["v"] == kind
    assert hg.profile(frame.with_columns(y=np.sin(np.arange(len(values)) ** 2)), target="y").kinds["v"] == kind
    assert infer_kind(typed_columns(frame)[0]) == kind
