"""Totals do not depend on who computes them, and Dask clusters that lose workers give the same total or one error."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

import hinge as hg
from hinge.blocks.executors import Cluster, Serial, Threads, as_executor
from hinge.blocks.passes import Passes
from hinge.blocks.totals import Pairwise, merge


def moments(block, power):
    return (block.X**power).sum(axis=0), float(block.y.sum()), block.rows


def scanned(rng, executor, rows=97):
    X, y = rng.normal(size=(2000, 5)) * 10.0 ** rng.integers(-8, 8, 5), rng.normal(size=2000)
    return hg.scan(X, target=y, block_rows=rows, executor=executor), X, y


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_any_number_of_threads_gives_the_same_bits(rng, workers):
    seed = rng.integers(2**31)
    one, X, _y = scanned(np.random.default_rng(seed), None)
    many, *_ = scanned(np.random.default_rng(seed), workers)
    expected, found = (Passes(source).total(moments, 2) for source in (one, many))
    np.testing.assert_array_equal(expected[0], found[0])
    assert expected[1:] == found[1:]
    np.testing.assert_allclose(expected[0], (X**2).sum(axis=0), rtol=1e-12)


def test_a_cluster_gives_the_same_bits(rng, cluster):
    seed = rng.integers(2**31)
    expected, found = (Passes(scanned(np.random.default_rng(seed), e)[0]).total(moments, 2) for e in (None, cluster))
    np.testing.assert_array_equal(expected[0], found[0])
    assert expected[1:] == found[1:]


def test_dask_collections_use_the_active_client(rng, cluster):
    da = pytest.importorskip("dask.array")
    X, y = rng.normal(size=(500, 3)), rng.normal(size=500)
    source = hg.scan(da.from_array(X, chunks=(100, 2)), target=da.from_array(y, chunks=125))
    assert isinstance(source.executor, Cluster)
    found = Passes(source).total(moments, 1)
    local = Passes(hg.scan(X, target=y, block_rows=100)).total(moments, 1)
    np.testing.assert_array_equal(found[0], local[0])
    assert found[2] == 500


def slow_sum(block):
    time.sleep(0.3)
    return block.X.sum(axis=0)


def test_a_killed_worker_changes_nothing(rng, cluster):
    X = rng.normal(size=(400, 3))
    source = hg.scan(X, block_rows=20, executor=cluster)
    victim = next(iter(cluster.run(os.getpid).values()))
    timer = threading.Timer(0.8, os.kill, (victim, signal.SIGKILL))
    timer.start()
    began = time.monotonic()
    try:
        found = Passes(source).total(slow_sum)
    finally:
        timer.cancel()
    assert time.monotonic() - began < 60
    np.testing.assert_array_equal(found, Passes(hg.scan(X, block_rows=20)).total(lambda b: b.X.sum(axis=0)))


def fail(block):
    raise ArithmeticError("no such sum")


@pytest.mark.parametrize("executor", [None, 3, "cluster"])
def test_an_error_in_a_statistic_reaches_the_caller(rng, executor, request):
    executor = request.getfixturevalue("cluster") if executor == "cluster" else executor
    source = hg.scan(rng.normal(size=(100, 2)), block_rows=10, executor=executor)
    with pytest.raises(ArithmeticError, match="no such sum"):
        Passes(source).total(fail)


def test_a_cluster_without_workers_is_an_error_and_no_hang(rng, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("hinge.blocks.executors.ALONE", 1.0)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0", silence_logs=50) as empty,
        distributed.Client(empty) as client,
    ):
        source = hg.scan(rng.normal(size=(100, 2)), block_rows=10, executor=client)
        with pytest.raises(RuntimeError, match="no worker"):
            Passes(source).total(moments, 1)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8, 13])
def test_pairwise_sums_every_term_once(count):
    sums = Pairwise()
    for k in range(count):
        sums.add(None)
        sums.add((k, np.array([k, 1])))
    total = sums.result()
    if count == 0:
        assert total is None
    else:
        assert total[0] == count * (count - 1) // 2
        assert total[1].tolist() == [total[0], count]


def test_pairwise_rounds_less_than_one_after_the_other():
    sums = Pairwise()
    for _ in range(1 << 16):
        sums.add(np.array([0.1]))
    assert abs(sums.result()[0] - 6553.6) < 1e-11


def test_merge_uses_what_a_statistic_defines():
    class Largest(float):
        def merge(self, other):
            return Largest(max(self, other))

    assert merge((Largest(2.0), 1), (Largest(5.0), 1)) == (5.0, 2)


def test_executors_by_name():
    assert isinstance(as_executor(None), Serial)
    assert isinstance(as_executor(1), Serial)
    assert isinstance(as_executor(3), Threads)
    for wrong in (0, True, -1, 2.5):
        with pytest.raises(TypeError, match="executor"):
            as_executor(wrong)


def test_reading_counts_passes_rows_and_bytes(rng, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": rng.normal(size=1000), "y": rng.normal(size=1000)}), tmp_path / "t.parquet")
    passes = Passes(hg.scan(tmp_path / "t.parquet", target="y", block_rows=300))
    for _ in range(2):
        passes.total(lambda block: block.X.sum())
    passes.total(lambda block: block.y.sum(), only_targets=True)
    assert (passes.reading.passes, passes.reading.rows) == (2, 3000)
    assert 30_000 < passes.reading.bytes < 60_000
    assert "2 passes, 3,000 rows" in str(passes.reading)


def test_progress_is_shown_on_request(rng, capsys):
    Passes(hg.scan(rng.normal(size=(100, 2)), block_rows=10, progress=True)).total(lambda block: block.rows)
    assert "pass 1: 10 of 10 parts, 100 rows" in capsys.readouterr().err
