"""Parquet files with large row groups: decoded a few rows at a time, within the memory allowed."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import hinge as hg
from hinge.blocks.parquet import PageWarning

COLUMNS = 20

READ = """
import sys
import hinge as hg

def resident(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024

for name in ("small", "large"):
    source = hg.scan(f"{sys.argv[1]}/{name}.parquet", target="y", memory=sys.argv[2])
    before = resident("VmRSS")
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    rows = sum(len(block.X) for _ in range(2) for block in source.blocks())
print(rows, resident("VmHWM") - before)
"""


def write_group(path, rows, columns=COLUMNS, **options):
    """A file of one row group."""
    X = np.random.default_rng(rows).normal(size=(rows, columns))
    table = pa.table({f"x{j}": X[:, j] for j in range(columns)} | {"y": X[:, 0] > 0, "g": X[:, 1].round(1)})
    pq.write_table(table, path, row_group_size=rows, **options)
    return table


def added_by_reading(folder, memory):
    """The rows of two passes over ``large.parquet``, and the MB they add to the process after a pass over ``small.parquet``."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(READ), str(folder), memory],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows, added = done.stdout.split()
    return int(rows), float(added)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    "rows", [300_000, pytest.param(2_000_000, marks=pytest.mark.slow)], ids=["50 MB", "320 MB"]
)  # fmt: skip
def test_a_row_group_is_decoded_in_pieces(rows, tmp_path):
    write_group(tmp_path / "small.parquet", 5000)
    write_group(tmp_path / "large.parquet", rows, use_dictionary=False)
    read, added = added_by_reading(tmp_path, "8MB")
    print("peak MB above the start, data of", rows * COLUMNS * 8 / 1e6, "MB, 8 MB allowed:", added)
    assert read == 2 * rows
    assert added < 24


def test_batches_of_a_row_group_are_its_rows_in_order(tmp_path):
    table = write_group(tmp_path / "t.parquet", 10_000, columns=3)
    names = ["x0", "x1", "x2"]
    X = np.column_stack([table[name].to_numpy() for name in names])
    keep = table["g"].to_numpy() > 0.5
    for rows in (999, 10_000, 70_000):
        source = hg.scan(str(tmp_path / "t.parquet"), target="y", columns=names, block_rows=rows)
        again = [block.X for block in source.blocks()]
        assert [len(x) for x in again[:-1]] == [rows] * (len(again) - 1)
        np.testing.assert_array_equal(np.vstack(again), X)
        kept = hg.scan(
            str(tmp_path / "t.parquet"), target="y", columns=names, block_rows=rows, filter=ds.field("g") > 0.5
        )
        np.testing.assert_array_equal(np.vstack([block.X for block in kept.blocks()]), X[keep])


def test_values_of_folders_and_filters_on_them(tmp_path):
    for year in (2001, 2002):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(pa.table({"a": [1.0, 2.0], "y": [1, 0]}), tmp_path / f"year={year}" / "t.parquet")
    source = hg.scan(str(tmp_path), target="y", filter=ds.field("year") == 2002)
    np.testing.assert_array_equal(next(source.blocks()).X, [[1.0, 2002.0], [2.0, 2002.0]])
    only = hg.scan(str(tmp_path), target="y", columns=["year"])
    assert [block.X.tolist() for block in only.blocks()] == [[[2001.0]] * 2, [[2002.0]] * 2]


def test_a_file_with_pages_larger_than_the_limit_is_named(tmp_path):
    write_group(
        tmp_path / "wide.parquet", 100_000, use_dictionary=False, data_page_size=1 << 30, max_rows_per_page=1 << 30
    )
    with pytest.warns(PageWarning, match=r"wide\.parquet .* row groups of 100,000 rows have pages of up to 0\.8 MB"):
        source = hg.scan(str(tmp_path / "wide.parquet"), target="y", memory="8MB")
    assert sum(block.rows for block in source.blocks()) == 100_000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hg.scan(str(tmp_path / "wide.parquet"), target="y", columns=["x0"], memory="8MB")
        write_group(tmp_path / "narrow.parquet", 100_000, use_dictionary=False)
        hg.scan(str(tmp_path / "narrow.parquet"), target="y", memory="8MB")


def test_blocks_of_long_texts_have_fewer_rows(tmp_path):
    texts = [f"{k} " + "word " * 400 for k in range(4000)]
    pq.write_table(pa.table({"text": texts, "y": [0, 1] * 2000}), tmp_path / "t.parquet")
    path = str(tmp_path / "t.parquet")
    assert hg.scan(path, target="y", memory="64MB").block_rows < 3000 < hg.scan(path, target="y").block_rows
