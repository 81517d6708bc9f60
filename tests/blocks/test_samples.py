"""The sample of the first pass: its size, its rows, and what it saves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hinge as hg
from hinge.blocks.survey import LEAST_BYTES, MOST_BYTES, SAMPLE_ROWS, SamplePlan, survey


def test_the_sample_follows_the_memory_allowed():
    X = np.zeros((4, 100))
    for memory, expected in (("1MB", LEAST_BYTES), ("64MB", 64_000_000 // 16), ("10GB", MOST_BYTES)):
        assert SamplePlan.of(hg.scan(X, memory=memory)).most == expected // 800
    assert SamplePlan.of(hg.scan(np.zeros((4, 2)))).most == SAMPLE_ROWS


def test_rows_are_known_of_arrays_and_of_parquet_files_without_a_filter(tmp_path):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"a": np.arange(100.0), "b": np.arange(100.0)}), path, row_group_size=30)
    assert hg.scan(str(path), block_rows=20).row_count == 100
    assert hg.scan(str(path), block_rows=20, filter=[("a", "<", 5)]).row_count is None
    assert hg.scan(np.zeros((7, 2)), block_rows=3).row_count == 7
    assert hg.scan(lambda: iter([np.zeros((7, 2))])).row_count is None


def test_each_block_gives_its_share_of_the_sample():
    rows = np.random.default_rng(0).normal(size=(1000, 2))
    source = hg.scan(rows, block_rows=130)
    drawn = [survey(block, 2, False, False, False, SamplePlan(200, 0.2)).sample for block in source.blocks()]
    assert [sample.rows for sample in drawn] == [26] * 7 + [18]
    joined = drawn[0]
    for sample in drawn[1:]:
        joined = joined.merge(sample)
    assert joined.rows == joined.most == 200
    assert joined.population == 1000
    found = joined.data[0]
    assert len(np.unique(found, axis=0)) == 200  # rows of the table, each once
    assert set(map(tuple, found)) <= set(map(tuple, rows))


def test_a_larger_sample_saves_a_pass():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300_000, 28))
    y = X @ rng.normal(size=28) / 10 + rng.logistic(size=len(X)) > 0
    passes = []
    for memory in ("16MB", "1GB"):
        model = hg.LogisticRegression().fit(hg.scan(X, target=y, memory=memory, block_rows=50_000))
        assert model.certificate_.converged
        passes.append(model.reading_.passes)
    assert passes == [4, 3]
