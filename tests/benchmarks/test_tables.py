"""The comparison on tables: records survive a kill, ranks and errors are those of their definitions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from benchmarks.tables.summary import bootstrap_error, losses_place, markdown, read_records, summarise


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
        write(tmp_path, "b", split, "hinge", 1.1 + noise)
        write(tmp_path, "b", split, "forest", 1.0 + 2 * noise)
    write(tmp_path, "b", 2, "hinge", 99 + noise)  # a split that the forest has not finished
    found = summarise(tmp_path)
    assert found["mean rank"] == {"hinge": (1.5, 2), "forest": (1.5, 2)}
    assert found["at or above the best other"] == 0.5
    assert found["worst relative loss"] == pytest.approx(0.1, rel=0.02)
    row = found["tables"]["b"]
    assert row["splits"] == 2
    assert row["behind"] == pytest.approx(0.1, rel=0.02)
    assert row["error"] == pytest.approx(noise.std() / np.sqrt(2 * 500), rel=0.2)
    text = markdown(found)
    assert "| b | log loss | 1.1 | 1 (forest) |" in text
    assert "50 % of tables" in text
