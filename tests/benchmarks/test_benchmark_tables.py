"""The comparison on tables: records survive a kill, ranks and errors are those of their definitions."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("polars", reason="the tables of the comparison are read with polars")
from benchmarks.tables.sources import SOURCES, load, pack
from benchmarks.tables.summary import (
    bootstrap_error,
    losses_place,
    markdown,
    order_of,
    read_records,
    restore,
    store,
    summarise,
)


def write(folder, table, split, library, losses):
    record = {
        "table": table, "split": split, "library": library, "metric": "log loss", "state": "done", "seconds": 1.0,
        "megabytes": 100.0, "loss": float(np.mean(losses)),
    }  # fmt: skip
    with (folder / "records.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")
    np.save(losses_place(folder, (table, split, library)), np.asarray(losses, dtype=np.float32))


def test_the_bootstrap_error_is_that_of_a_mean(rng):
    values = rng.normal(size=2000)
    assert bootstrap_error(values, rng) == pytest.approx(values.std() / np.sqrt(len(values)), rel=0.15)


def test_a_line_cut_short_is_no_record(tmp_path):
    write(tmp_path, "a", 0, "hinge", [1.0])
    with (tmp_path / "records.jsonl").open("a") as file:
        file.write('{"table": "a", "split": 1, "lib')
    assert list(read_records(tmp_path)) == [("a", 0, "hinge")]


def test_ranks_and_differences(rng, tmp_path):
    noise = rng.normal(size=500) * 0.01
    noise -= noise.mean()
    for split in (0, 1):
        write(tmp_path, "a", split, "hinge", 1.0 + noise)
        write(tmp_path, "a", split, "forest", 1.2 + 2 * noise)
        write(tmp_path, "banana", split, "hinge", 1.1 + noise)
        write(tmp_path, "banana", split, "forest", 1.0 + 2 * noise)
    write(tmp_path, "banana", 2, "hinge", 99 + noise)  # a split that the forest has not finished
    found = summarise(tmp_path)
    whole = found["all"]
    assert whole["mean rank"] == {"hinge": (1.5, 2), "forest": (1.5, 2)}
    assert whole["at or above the best other"] == 0.5
    assert whole["worst relative loss"] == pytest.approx(0.1, rel=0.02)
    assert whole["more than 1 % worse"] == 1
    assert found["held out"]["mean rank"] == {"hinge": (2.0, 1), "forest": (1.0, 1)}
    row = found["tables"]["banana"]
    assert row["splits"] == 2
    assert row["behind"] == pytest.approx(0.1, rel=0.02)
    assert row["error"] == pytest.approx(noise.std() / np.sqrt(2 * 500), rel=0.2)
    text = markdown(found)
    assert "| banana * | log loss | 2 | 1.1 | 1 (forest) |" in text
    assert "50 % of tables" in text


def test_a_library_without_time_leaves_the_table_to_the_others(rng, tmp_path):
    for library, level in (("hinge", 1.0), ("forest", 1.1)):
        write(tmp_path, "a", 0, library, level + 0.01 * rng.normal(size=50))
    record = {"table": "a", "split": 0, "library": "CatBoost", "state": "no time"}
    with (tmp_path / "records.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")
    assert set(summarise(tmp_path)["tables"]["a"]["loss"]) == {"hinge", "forest"}


def test_a_failure_of_hinge_is_named(rng, tmp_path):
    write(tmp_path, "a", 0, "forest", rng.normal(size=50))
    record = {"table": "a", "split": 0, "library": "hinge", "state": "failed"}
    with (tmp_path / "records.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")
    assert "hinge failed on: a." in markdown(summarise(tmp_path))


def test_results_survive_in_one_file(rng, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "back").mkdir()
    write(tmp_path / "there", "a", 0, "hinge", rng.normal(size=50))
    store(tmp_path / "there", tmp_path / "results.zip")
    restore(tmp_path / "results.zip", tmp_path / "back")
    assert read_records(tmp_path / "back") == read_records(tmp_path / "there")
    write(tmp_path / "back", "a", 1, "hinge", rng.normal(size=50))
    restore(tmp_path / "results.zip", tmp_path / "back")  # a folder with results keeps them
    assert len(read_records(tmp_path / "back")) == 2


def test_all_libraries_of_a_table_come_before_the_next_table():
    keys = order_of(["a", "b"], 2, ["hinge", "forest"])
    assert keys[:3] == [("a", 0, "hinge"), ("a", 0, "forest"), ("b", 0, "hinge")]
    assert keys[4] == ("a", 1, "hinge")


def test_packed_tables_are_the_tables(tmp_path):
    pack(tmp_path, ["heart_cleveland"])
    assert load("heart_cleveland", tmp_path).frame.equals(load("heart_cleveland").frame)


def test_half_of_the_tables_were_not_used_in_development():
    # The first tables of a run, which a run that ends early has finished, alternate.
    first = [source.held_out for source in list(SOURCES.values())[:44]]
    assert sum(first) == len(first) // 2
