"""Blocks kept between passes: files are read once, memory is bounded, changed files are refused, workers keep nothing afterwards."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from sklearn.base import clone

import hinge as hg
from hinge._native import CodedTable
from hinge.blocks import kept as keeping
from hinge.blocks.block import Block
from hinge.blocks.kept import SHARE, Kept, block_bytes, choose_homes
from hinge.errors import UserError

ROWS, COLUMNS, FILES = 4000, 5, 4
PART = ROWS // FILES * 8 * (COLUMNS + 1)  # bytes of a part as numbers


@pytest.fixture
def pattern(tmp_path, rng):
    X = rng.normal(size=(ROWS, COLUMNS))
    y = (X[:, 0] - X[:, 1] + rng.logistic(size=ROWS) > 0).astype(float)
    for k, rows in enumerate(np.array_split(np.arange(ROWS), FILES)):
        table = pa.table({f"x{j}": X[rows, j] for j in range(COLUMNS)} | {"y": y[rows]})
        pq.write_table(table, tmp_path / f"part-{k}.parquet", compression=None, use_dictionary=False)
    return str(tmp_path / "part-*.parquet")


def scan(pattern, **options):
    return hg.scan(pattern, target="y", block_rows=300, **options)


def stored(source, *, only_targets=False):
    return sum(part.stored_bytes(source.roles, only_targets=only_targets) for part in source.parts)


def test_categories_are_kept(tmp_path, rng):
    """Blocks of numbers and codes count as the bytes of both."""
    city = np.array(["Lima", "Oslo", "Rome"])[rng.integers(3, size=ROWS)]
    y = rng.poisson(np.where(city == "Oslo", 3.0, 1.0))
    for k, rows in enumerate(np.array_split(np.arange(ROWS), FILES)):
        pq.write_table(
            pa.table({"x": rng.normal(size=len(rows)), "city": city[rows], "y": y[rows]}),
            tmp_path / f"part-{k}.parquet",
        )
    source = scan(str(tmp_path / "part-*.parquet"))
    model = hg.PoissonRegressor(categorical_features="from_dtype").fit(source)
    assert model.reading_.passes > 2
    assert model.reading_.bytes < 3 * stored(source)
    coded = Block(5, "here", matrix=CodedTable(np.zeros((5, 2)), [np.zeros(5, dtype=np.int32)], [3]), y=np.zeros(5))
    assert block_bytes(coded) == 5 * (2 * 8 + 4 + 8)


MODELS = [
    hg.LogisticRegression(C=0.1), hg.LinearSVC(), hg.PoissonRegressor(), hg.HuberRegressor(),
    hg.Learner(loss=hg.LogCosh(), penalty=hg.L1(0.01)), hg.SGDRegressor(max_iter=5, tol=None), hg.GaussianMixture(2, max_iter=5, tol=0.0),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_files_are_read_once_and_the_bits_are_the_same(model, pattern):
    source = scan(pattern)
    once = clone(model).fit(source)
    again = clone(model).fit(scan(pattern, memory=SHARE * (PART - 1)))  # no part fits
    assert once.reading_.passes == again.reading_.passes > 1
    features = stored(source)
    assert once.reading_.bytes < 2 * features
    assert again.reading_.bytes >= again.reading_.passes * features
    np.testing.assert_array_equal(np.ravel(_numbers(once)), np.ravel(_numbers(again)))


def _numbers(model):
    return model.means_ if hasattr(model, "means_") else model.coef_


@pytest.mark.parametrize("executor", [None, 2])
def test_the_parts_that_fit_are_kept_and_the_others_read_again(pattern, executor):
    source = scan(pattern, memory=SHARE * (2 * PART + PART // 2), executor=executor)
    found = hg.SGDRegressor(max_iter=4, tol=None, random_state=0).fit(source).reading_
    features, targets = stored(source), stored(source, only_targets=True)
    assert found.passes > 4
    assert found.bytes == features + (found.passes - 1) * features // 2 + targets // 2


def test_a_file_that_changes_after_its_blocks_were_kept_is_refused(pattern, tmp_path):
    source = scan(pattern)
    kept = Kept(1 << 30)
    reader = source.reader(kept=kept)
    assert sum(block.rows for part in source.parts for block in reader.blocks(part)) == ROWS
    assert all(part in kept and reader.bytes_to_read(part) == 0 for part in source.parts)
    os.utime(tmp_path / "part-2.parquet", ns=(1, 1))
    list(reader.blocks(source.parts[1]))
    with pytest.raises(UserError, match=r"part-2\.parquet changed after it was scanned"):
        list(reader.blocks(source.parts[2]))


def test_a_pass_that_ends_early_keeps_nothing(pattern):
    source = scan(pattern)
    kept = Kept(1 << 30)
    blocks = source.reader(kept=kept).blocks(source.parts[0])
    next(blocks)
    assert kept._bytes > 0
    blocks.close()
    assert kept._bytes == 0
    assert source.parts[0] not in kept


def test_arrays_in_memory_and_passes_over_targets_are_not_kept(pattern, rng):
    kept = Kept(1 << 30)
    arrays = hg.scan(rng.normal(size=(50, 3)), block_rows=10)
    files = scan(pattern)
    for source, only_targets in ((arrays, False), (files, True)):
        reader = source.reader(only_targets=only_targets, kept=kept)
        for part in source.parts:
            list(reader.blocks(part))
            assert part not in kept


def test_a_mapped_source_keeps_the_transformed_blocks(pattern):
    scaler = hg.StandardScaler().fit(scan(pattern))
    calls = []

    class Counting(hg.StandardScaler):
        def transform(self, X, copy=None):
            calls.append(len(X))
            return super().transform(X, copy=copy)

    counting = Counting()
    vars(counting).update(vars(scaler))
    source = scan(pattern).map(counting)
    calls.clear()
    model = hg.LogisticRegression(C=0.1).fit(source)
    assert model.reading_.passes > 1
    assert sum(calls) < 2 * ROWS


def test_bytes_of_a_block(rng):
    X, y = rng.normal(size=(10, 3)), np.arange(10.0)
    assert block_bytes(Block(10, "here", y=y, weight=y, matrix=X)) == 240 + 160
    sparse = scipy.sparse.csr_array(X)
    assert block_bytes(Block(10, "here", matrix=sparse)) == 240 + sparse.indices.nbytes + sparse.indptr.nbytes
    assert block_bytes(Block(2, "here", y=np.array(["a", "b"], dtype=object))) == 128


def test_parts_stay_with_their_worker_and_move_when_it_is_gone(pattern):
    parts, homes = scan(pattern).parts, {}
    choose_homes(homes, parts, ["a", "b", "a"])
    assert [homes[part.number] for part in parts] == ["a", "b", "a", "a"]
    choose_homes(homes, parts, ["b", "a"])
    assert [homes[part.number] for part in parts] == ["a", "b", "a", "a"]
    choose_homes(homes, parts, ["b", "c"])
    assert [homes[part.number] for part in parts] == ["b", "b", "b", "c"]
    choose_homes(homes, parts, [])
    assert [homes[part.number] for part in parts] == ["b", "b", "b", "c"]


def test_a_worker_reads_a_file_once_and_keeps_nothing_after_the_fit(pattern):
    """One worker, since a second one that takes over a part reads it too."""
    before = set(keeping._FITS)
    distributed = pytest.importorskip("distributed")
    model = hg.LogisticRegression(C=0.1)
    expected = clone(model).fit(scan(pattern))
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        source = scan(pattern, executor=client)
        found = clone(model).fit(source)
        client.run(lambda: None)  # after the message that drops the blocks
    assert set(keeping._FITS) <= before
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.reading_.bytes == expected.reading_.bytes < 2 * stored(source)
