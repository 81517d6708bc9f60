"""The profile of a table: kinds, notes, task and target."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hinge as hg
from hinge.errors import UserError
from hinge.tables.notes import DIAGNOSES
from hinge.tables.profile import profile
from hinge.tables.reading import Table, read_table
from kit.command import dirty

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")

RNG = np.random.default_rng(0)
N = 400


def profile_of(columns, y, task="auto", **options):
    return profile(Table(pl.DataFrame({**columns, "y": y}), Path("t.csv")), "y", task, **options)


NOISE = {"x": RNG.normal(size=N)}


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (RNG.choice(["a", "b"], N), "binary"),
        (RNG.random(N) < 0.5, "binary"),
        (RNG.integers(0, 2, N), "binary"),
        (RNG.choice([1.0, 2.0], N), "binary"),
        (RNG.choice(["a", "b", "c"], N), "multiclass"),
        (RNG.integers(0, 10, N), "multiclass"),
        (RNG.normal(size=N), "real"),
        (RNG.integers(1900, 2020, N), "real"),
        (RNG.normal(50, 9, N).round(), "real"),
        (RNG.poisson(0.1, N), "count"),
        (RNG.poisson(3.0, N), "count"),
        (RNG.binomial(1, 0.05, N) * RNG.geometric(0.1, N), "count"),
        (RNG.geometric(0.01, N), "real"),
        (RNG.binomial(1, 0.3, N) * RNG.integers(100, 90_000, N), "real"),  # amounts
        (RNG.permutation(N), "real"),  # integers that are all different are no classes …
        (1900 + RNG.permutation(N), "real"),
    ],
)
def test_the_task_is_inferred_from_the_target(y, task):
    assert profile_of(NOISE, y).task == task


@pytest.mark.parametrize(
    ("y", "text"),
    [
        (RNG.poisson(3.0, 10 * N), "read as counts"),
        (RNG.poisson(40.0, 10 * N), "read as numbers"),
    ],
)
def test_the_reading_of_integers_is_stated(y, text):
    found = profile_of({"x": RNG.normal(size=10 * N)}, y)
    assert [text in note.text for note in found.notes if note.code == "D19"] == [True]


def test_the_faults_of_a_dirty_file_are_noted(tmp_path):
    found = profile(read_table(dirty(tmp_path / "d.csv")), "target")
    assert {c.name: c.kind for c in found.columns} == {
        "age": "number", "age.2": "number", "income": "number", "city": "category", "signup": "date",
    }  # fmt: skip
    noted = {(n.code, n.column) for n in found.notes}
    assert noted >= {
        ("D01", "constant"), ("D01", "empty"), ("D01", "note"), ("D02", "id"), ("D03", "copy of age"), ("D04", "leak"),
        ("D06", "target"), ("D07", "age"), ("D12", ""),
    }  # fmt: skip
    assert len(found.y) == found.frame.height < 600
    assert list(found.classes) == ["no", "yes"]
    assert set(found.y) == {0.0, 1.0}


def test_leaks_are_left_out_unless_kept():
    y = RNG.normal(size=N)
    copies = {"same": y, "scaled": 3 * y - 1, "curved": np.exp(y), "x": RNG.normal(size=N)}
    found = profile_of(copies, y)
    assert set(found.left_out) == {"same", "scaled", "curved"}
    kept = profile_of(copies, y, keep=("same",))
    assert "same" in kept.frame.columns


def test_a_sum_that_makes_the_target_is_a_leak():
    a, b = RNG.poisson(3, N), RNG.poisson(5, N)
    found = profile_of({"a": a, "b": b, "x": RNG.normal(size=N)}, a + b)
    assert set(found.left_out) == {"a", "b"}


def test_a_good_column_is_kept_with_a_note():
    y = RNG.normal(size=N)
    found = profile_of({"good": y + 0.02 * RNG.normal(size=N), "x": RNG.normal(size=N)}, y)
    assert "good" in found.frame.columns
    assert ("D05", "good") in {(n.code, n.column) for n in found.notes}


def test_real_numbers_that_are_all_different_are_no_identifier():
    assert profile_of(NOISE | {"z": RNG.normal(size=N).round(6)}, RNG.normal(size=N)).frame.columns == ["x", "z"]


def test_missing_targets_are_left_out_not_filled():
    y = pl.Series([None, float("nan"), 1.0, 2.0] * 30)
    found = profile_of({"x": np.arange(120) % 7}, y, "real")
    assert len(found.y) == 60
    assert np.all(np.isfinite(found.y))


@pytest.mark.parametrize(
    ("columns", "y", "options", "message"),
    [
        (NOISE, ["a"] * N, {}, "in every row"),
        (NOISE, [f"name {i}" for i in range(N)], {}, "too many for classes"),
        (NOISE, ["a", "b"] * (N // 2), {"task": "real"}, "holds text"),
        (NOISE, RNG.normal(size=N), {"task": "count"}, "not a count"),
        (NOISE, [1.0, np.inf] * (N // 2), {"task": "real"}, "row 2"),
        (NOISE, RNG.choice(["a", "b", "c"], N), {"task": "binary"}, "not two"),
        (NOISE, RNG.normal(size=N), {"task": "rank"}, 'task="rank" is not known'),
        (NOISE, RNG.normal(size=N), {"drop": ("z",)}, "no column 'z'"),
        (NOISE, RNG.normal(size=N), {"drop": ("y",)}, "target"),
        (NOISE, [None] * N, {}, "missing"),
        ({"x": [1.0] * N}, RNG.normal(size=N), {}, "no column is left"),
    ],
)
def test_a_target_that_cannot_be_learned_is_an_error(columns, y, options, message):
    with pytest.raises(UserError, match=message):
        profile_of(columns, y, **options)


def test_the_error_for_a_misspelt_target_suggests_a_column():
    with pytest.raises(UserError, match="Did you mean 'Price'"):
        profile(Table(pl.DataFrame({"Price": [1.0, 2.0], "x": [1.0, 2.0]}), Path("t.csv")), "prise")


@pytest.mark.parametrize(
    ("name", "target", "task", "left_out"),
    [
        ("bike_sharing_hour", "cnt", "real", {"instant", "casual", "registered"}),
        ("abalone", "rings", "real", set()),
        ("pendigits", "class", "multiclass", set()),
        ("splice", "Class", "multiclass", {"Instance_name"}),
        ("california_housing", "median_house_value", "real", set()),
        ("mushroom", "class", "binary", {"veil-type"}),
    ],
)
def test_profiles_of_real_tables(real_data, name, target, task, left_out):
    found = profile(read_table(real_data(f"{name}.csv.gz")), target)
    assert found.task == task
    assert set(found.left_out) == left_out


def test_every_remark_has_a_page():
    page = (Path(__file__).parents[2] / "docs" / "remarks.md").read_text(encoding="utf-8")
    for code, diagnosis in DIAGNOSES.items():
        assert f"## {code} {diagnosis.title}" in page


@pytest.mark.parametrize("n", [20, 25, 30])
@pytest.mark.parametrize("name", ["y", "type"])
def test_few_integers_that_are_all_different_are_no_classes(n, name):
    """… nor are they if they are as few as classes may be, or if their name is that of a class."""
    table = {"x": RNG.normal(size=n), name: RNG.permutation(n)}
    assert hg.profile(table, target=name).task == "real"
    with pytest.raises(UserError, match=r"too many for classes. Its values are numbers: use task=.real."):
        hg.profile(table, target=name, task="multiclass")


SMALL = {"n": [1.5, None, 3.0, 4.0] * 10, "when": ["2020-01-01", "2021-05-06"] * 20, "y": ["a", "b", "b"] * 13 + ["a"]}


@pytest.mark.parametrize(
    "make",
    [dict, pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table, lambda t: pd.DataFrame(t).convert_dtypes(),
     lambda t: {name: np.array(values, dtype=object) for name, values in t.items()}],
)  # fmt: skip
def test_profiles_of_frames(make):
    table = make(SMALL)
    for _ in range(2):  # the table of the caller does not change
        found = hg.profile(table, target="y")
        assert (found.task, found.target, list(found.classes)) == ("binary", "y", ["a", "b"])
        columns = [(c.name, c.kind, c.missing, c.distinct, c.example) for c in found.columns]
        assert columns == [
            ("n", "number", 0.25, 3, "1.5 … 4"), ("when", "date", 0.0, 2, "2020-01-01 00:00:00 … 2021-05-06 00:00:00"),
        ]  # fmt: skip
        assert found.frame.schema == {"n": pl.Float64, "when": pl.Datetime("us")}


def test_profiles_print():
    table = SMALL | {"same": [1] * 40, "<b>": ["x", "y", "z", "<i>"] * 10}
    found = hg.profile(table, target="y")
    text, page = repr(found), found._repr_html_()
    assert text.startswith("40 rows, target y (binary, 2 classes)\ncolumn  kind      missing  distinct  example\n")
    assert "same    constant" in text
    for note in found.notes:
        assert str(note) in text
    assert "<th>column</th>" in page
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def test_arrays_have_positions_for_names():
    found = hg.profile(RNG.normal(size=(60, 3)), target="x2")
    assert [c.name for c in found.columns] == ["x0", "x1"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"y": [1, 2], "x": [1]}, "must have one length"),
        ({"y": [], "x": []}, "no rows"),
        ({"x": [1, 2], "z": [3, 4]}, "no column 'y'"),
        (np.zeros((3, 20_001)), "20001 columns; 20000 are the most"),
    ],
)
def test_tables_that_have_no_profile(table, message):
    with pytest.raises(UserError, match=message):
        hg.profile(table, target="y")
    with pytest.raises(UserError, match=r"name the column to predict|one length|no rows|are the most"):
        hg.profile(table)


@pytest.mark.parametrize("table", [3, None, np.zeros(5), {"x": 3}])
def test_objects_that_are_no_tables(table):
    with pytest.raises(TypeError, match="table must be a path or a data frame"):
        hg.profile(table, target="y")


def test_without_polars_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"hinge-learn\[cli\]"):
        hg.profile(SMALL, target="y")
