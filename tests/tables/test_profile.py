"""What is seen in a table before anything is fitted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hinge.errors import UserError
from hinge.tables.notes import DIAGNOSES
from hinge.tables.profile import profile
from hinge.tables.reading import Table, read_table
from kit.command import dirty

RNG = np.random.default_rng(0)
N = 400


def look(columns, y, task="auto", **options):
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
        (RNG.geometric(0.01, N), "count"),
    ],
)
def test_the_task_is_told_from_the_target(y, task):
    assert look(NOISE, y).task == task


def test_a_dirty_file_is_seen_through(tmp_path):
    seen = profile(read_table(dirty(tmp_path / "d.csv")), "target")
    assert {c.name: c.kind for c in seen.columns} == {
        "age": "number", "age.2": "number", "income": "number", "city": "category", "signup": "date",
    }  # fmt: skip
    said = {(n.code, n.column) for n in seen.notes}
    assert said >= {
        ("D01", "constant"), ("D01", "empty"), ("D01", "note"), ("D02", "id"), ("D03", "copy of age"), ("D04", "leak"),
        ("D06", "target"), ("D07", "age"), ("D12", ""),
    }  # fmt: skip
    assert len(seen.y) == seen.frame.height < 600
    assert list(seen.classes) == ["no", "yes"]
    assert set(seen.y) == {0.0, 1.0}


def test_leaks_are_left_out_unless_asked_for():
    y = RNG.normal(size=N)
    copies = {"same": y, "scaled": 3 * y - 1, "curved": np.exp(y), "x": RNG.normal(size=N)}
    seen = look(copies, y)
    assert set(seen.left_out) == {"same", "scaled", "curved"}
    kept = look(copies, y, keep=("same",))
    assert "same" in kept.frame.columns


def test_a_sum_that_makes_the_target_is_a_leak():
    a, b = RNG.poisson(3, N), RNG.poisson(5, N)
    seen = look({"a": a, "b": b, "x": RNG.normal(size=N)}, a + b)
    assert set(seen.left_out) == {"a", "b"}


def test_an_honest_good_column_is_kept_with_a_question():
    y = RNG.normal(size=N)
    seen = look({"good": y + 0.02 * RNG.normal(size=N), "x": RNG.normal(size=N)}, y)
    assert "good" in seen.frame.columns
    assert ("D05", "good") in {(n.code, n.column) for n in seen.notes}


def test_real_numbers_that_are_all_different_are_no_identifier():
    assert look(NOISE | {"z": RNG.normal(size=N).round(6)}, RNG.normal(size=N)).frame.columns == ["x", "z"]


def test_missing_targets_are_left_out_not_filled():
    y = pl.Series([None, float("nan"), 1.0, 2.0] * 30)
    seen = look({"x": np.arange(120) % 7}, y, "real")
    assert len(seen.y) == 60
    assert np.all(np.isfinite(seen.y))


@pytest.mark.parametrize(
    ("columns", "y", "options", "message"),
    [
        (NOISE, ["a"] * N, {}, "in every row"),
        (NOISE, [f"name {i}" for i in range(N)], {}, "too many for classes"),
        (NOISE, ["a", "b"] * (N // 2), {"task": "real"}, "holds text"),
        (NOISE, RNG.normal(size=N), {"task": "count"}, "not a count"),
        (NOISE, [1.0, np.inf] * (N // 2), {"task": "real"}, "row 2"),
        (NOISE, RNG.choice(["a", "b", "c"], N), {"task": "binary"}, "not two"),
        (NOISE, RNG.normal(size=N), {"task": "rank"}, "--task rank"),
        (NOISE, RNG.normal(size=N), {"drop": ("z",)}, "no column 'z'"),
        (NOISE, RNG.normal(size=N), {"drop": ("y",)}, "target"),
        (NOISE, [None] * N, {}, "missing"),
        ({"x": [1.0] * N}, RNG.normal(size=N), {}, "no column is left"),
    ],
)
def test_a_target_that_cannot_be_learned_is_refused(columns, y, options, message):
    with pytest.raises(UserError, match=message):
        look(columns, y, **options)


def test_a_misspelt_target_is_guessed():
    with pytest.raises(UserError, match="Did you mean 'Price'"):
        profile(Table(pl.DataFrame({"Price": [1.0, 2.0], "x": [1.0, 2.0]}), Path("t.csv")), "prise")


@pytest.mark.parametrize(
    ("name", "target", "task", "left_out"),
    [
        ("bike_sharing_hour", "cnt", "count", {"instant", "casual", "registered"}),
        ("abalone", "rings", "count", set()),
        ("pendigits", "class", "multiclass", set()),
        ("splice", "Class", "multiclass", {"Instance_name"}),
        ("california_housing", "median_house_value", "real", set()),
        ("mushroom", "class", "binary", {"veil-type"}),
    ],
)
def test_real_tables_are_understood(real_data, name, target, task, left_out):
    seen = profile(read_table(real_data(f"{name}.csv.gz")), target)
    assert seen.task == task
    assert set(seen.left_out) == left_out


def test_every_remark_has_a_page():
    page = (Path(__file__).parents[2] / "docs" / "remarks.md").read_text(encoding="utf-8")
    for code, diagnosis in DIAGNOSES.items():
        assert f"## {code} {diagnosis.title}" in page
