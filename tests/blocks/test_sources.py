"""Every kind of source gives the same rows, as often as it is read, and refuses data that are not sound."""

from __future__ import annotations

import os
import pickle
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse

import hinge as hg
from hinge.blocks.parts import recut
from hinge.blocks.passes import Passes
from hinge.blocks.spool import SpoolWarning
from hinge.errors import UserError

NAMES = ["x0", "x1", "x2", "x3"]
ROLES = {"target": "y", "weight": "s", "offset": "o"}
CUT = 37


def write_parquet(table, path, parts=3, group=40):
    frame = pa.table(table)
    step = -(-len(frame) // parts)
    for k in range(parts):
        pq.write_table(frame.slice(k * step, step), path / f"part-{k}.parquet", row_group_size=group)
    return path


def arrays(table):
    X = np.column_stack([table[name] for name in NAMES])
    return X, table["y"], table["s"], table["o"]


def cut(table, rows=50):
    n = len(table["y"])
    for start in range(0, n, rows):
        yield {name: values[start : start + rows] for name, values in table.items()}


def tuples(table):
    for piece in cut(table):
        yield arrays(piece)


def in_memory_arrays(table, path):
    X, y, s, o = arrays(table)
    return hg.scan(X, target=y, weight=s, offset=o, block_rows=CUT)


def sparse(table, path):
    X, y, s, o = arrays(table)
    return hg.scan(scipy.sparse.coo_array(X), target=y, weight=s, offset=o, block_rows=CUT)


def pandas(table, path):
    return hg.scan(pd.DataFrame(table), **ROLES, block_rows=CUT)


def polars(table, path):
    pl = pytest.importorskip("polars")
    return hg.scan(pl.DataFrame(table), **ROLES, block_rows=CUT)


def arrow(table, path):
    return hg.scan(pa.table(table), **ROLES, block_rows=CUT)


def parquet_pattern(table, path):
    write_parquet(table, path)
    return hg.scan(str(path / "part-*.parquet"), **ROLES, block_rows=CUT)


def parquet_folder(table, path):
    return hg.scan(write_parquet(table, path), **ROLES, block_rows=CUT)


def list_of_files(table, path):
    write_parquet(table, path)
    return hg.scan(sorted(path.iterdir()), **ROLES, block_rows=1000)


def feather(table, path):
    pyarrow.feather.write_feather(pa.table(table), path / "t.arrow", compression="uncompressed")
    return hg.scan(path / "t.arrow", **ROLES, block_rows=CUT)


def csv(table, path):
    pd.DataFrame(table).to_csv(path / "t.csv", index=False)
    return hg.scan(path / "t.csv", **ROLES, block_rows=CUT)


def semicolons(table, path):
    pd.DataFrame(table).to_csv(path / "t.csv", index=False, sep=";")
    return hg.scan(path / "t.csv", **ROLES)


def dataset(table, path):
    return hg.scan(ds.dataset(write_parquet(table, path)), **ROLES, block_rows=CUT)


def lazy(table, path):
    pl = pytest.importorskip("polars")
    return hg.scan(pl.scan_parquet(write_parquet(table, path) / "*.parquet"), **ROLES, block_rows=CUT)


def function(table, path):
    return hg.scan(lambda: tuples(table))


def function_of_frames(table, path):
    return hg.scan(lambda: (pd.DataFrame(piece) for piece in cut(table)), **ROLES)


def iterator(table, path):
    return hg.scan(tuples(table), spool=path / "spool")


def iterator_of_frames(table, path):
    pl = pytest.importorskip("polars")
    return hg.scan((pl.DataFrame(piece) for piece in cut(table)), **ROLES, spool=path / "spool")


def dask_array(table, path):
    da = pytest.importorskip("dask.array")
    X, y, s, o = arrays(table)
    return hg.scan(da.from_array(X, chunks=(50, 2)), target=da.from_array(y, chunks=50), weight=s, offset=o)


def dask_frame(table, path):
    dd = pytest.importorskip("dask.dataframe")
    return hg.scan(dd.from_pandas(pd.DataFrame(table), npartitions=4), **ROLES)


KINDS = [
    in_memory_arrays, sparse, pandas, polars, arrow, parquet_pattern, parquet_folder, list_of_files, feather, csv,
    semicolons, dataset, lazy, function, function_of_frames, iterator, iterator_of_frames, dask_array, dask_frame,
]  # fmt: skip


def gathered(source):
    """All rows of a source."""
    blocks = list(source.blocks())
    X = np.vstack([b.X.toarray() if scipy.sparse.issparse(b.X) else b.X for b in blocks])
    return X, *(np.concatenate([getattr(b, part) for b in blocks]) for part in ("y", "weight", "offset"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_same_rows_in_every_pass(kind, table, tmp_path):
    source = kind(table, tmp_path)
    for _ in range(2):
        for found, expected in zip(gathered(source), arrays(table)):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_targets_are_read_without_the_features(kind, table, tmp_path):
    blocks = list(kind(table, tmp_path).blocks(only_targets=True))
    np.testing.assert_array_equal(np.concatenate([b.y for b in blocks]), table["y"])
    for block in blocks:
        assert block.matrix is None
        assert block.frame is None


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in (function, function_of_frames, lazy)])
def test_parts_can_be_sent_to_another_process(kind, table, tmp_path):
    if "dask" in kind.__name__:
        pytest.skip("Dask sends its own graphs")
    source = kind(table, tmp_path)
    for part in source.parts:
        there = pickle.loads(pickle.dumps(part))
        one, two = (list(p.blocks(source.roles, source.block_rows)) for p in (part, there))
        assert [b.rows for b in one] == [b.rows for b in two]


def test_blocks_have_the_requested_rows(table, tmp_path):
    source = parquet_folder(table, tmp_path)
    for part in source.parts:
        rows = [b.rows for b in part.blocks(source.roles, CUT)]
        assert all(r == CUT for r in rows[:-1])


@pytest.mark.parametrize("rows", [1, 2, 7, 50, 211, 1000])
def test_recut_keeps_every_row(rows, table):
    from hinge.blocks.block import Piece

    pieces = list(recut((Piece(*p) for p in tuples(table)), rows))
    np.testing.assert_array_equal(np.concatenate([p.target for p in pieces]), table["y"])
    assert {len(p.target) for p in pieces[:-1]} <= {rows}


def test_columns_and_filters_reach_the_reader(table, tmp_path):
    write_parquet(table, tmp_path)
    source = hg.scan(tmp_path, target="y", columns=["x2", "x0"], filter=[("s", ">", 0), ("x1", "<", 0.5)])
    X = np.vstack([b.X for b in source.blocks()])
    keep = (table["s"] > 0) & (table["x1"] < 0.5)
    np.testing.assert_array_equal(X, np.column_stack([table["x2"], table["x0"]])[keep])
    again = hg.scan(tmp_path, target="y", columns=["x2", "x0"], filter=(ds.field("s") > 0) & (ds.field("x1") < 0.5))
    np.testing.assert_array_equal(np.vstack([b.X for b in again.blocks()]), X)
    narrow, wide = (
        sum(p.stored_bytes(s.roles, only_targets=False) for p in s.parts) for s in (source, hg.scan(tmp_path))
    )
    assert 0 < narrow < wide


def test_a_file_that_changes_between_passes_is_refused(table, tmp_path):
    source = parquet_folder(table, tmp_path)
    list(source.blocks())
    path = tmp_path / "part-1.parquet"
    os.utime(path, ns=(1, 1))
    with pytest.raises(UserError, match=r"part-1\.parquet changed after it was scanned"):
        list(source.blocks())


def test_a_stream_that_changes_between_passes_is_refused(table):
    sizes = [50, 40]
    source = hg.scan(lambda: ((np.ones((sizes[0], 2)), np.ones(sizes[0])) for _ in range(2)))
    list(source.blocks())
    sizes[0] = 40
    with pytest.raises(UserError, match="changed between two passes"):
        list(source.blocks())
    counts = [3]
    source = hg.scan(lambda: ((np.ones((5, 2)), np.ones(5)) for _ in range(counts[0])))
    list(source.blocks())
    counts[0] = 2
    with pytest.raises(UserError, match="gave 3 blocks first and 2 now"):
        list(source.blocks())


def test_a_column_that_one_file_lacks_is_named(table, tmp_path):
    write_parquet(table, tmp_path)
    pq.write_table(pa.table(table).drop_columns(["x2"]), tmp_path / "part-2.parquet")
    with pytest.raises(UserError, match=r"part-2\.parquet has no column 'x2'"):
        hg.scan(tmp_path, target="y")


def test_a_truncated_file_is_named(table, tmp_path):
    write_parquet(table, tmp_path)
    path = tmp_path / "part-1.parquet"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(UserError, match=r"part-1\.parquet cannot be read"):
        hg.scan(tmp_path, target="y")


def test_a_file_damaged_in_the_middle_is_named(table, tmp_path):
    write_parquet(table, tmp_path, parts=2)
    path = tmp_path / "part-1.parquet"
    raw = bytearray(path.read_bytes())
    raw[4:200] = bytes(196)
    path.write_bytes(bytes(raw))
    source = hg.scan(tmp_path, target="y")
    with pytest.raises(UserError, match=r"part-1\.parquet.* cannot be read"):
        list(source.blocks())


def test_misspelt_columns_get_a_suggestion(table, tmp_path):
    with pytest.raises(UserError, match="no column 'x9'"):
        hg.scan(pd.DataFrame(table), target="y", columns=["x9"])
    with pytest.raises(UserError, match="Did you mean 'y'"):
        hg.scan(write_parquet(table, tmp_path), target="Y")


def test_files_that_do_not_exist_or_fit_together(table, tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        hg.scan(tmp_path / "none.parquet")
    with pytest.raises(UserError, match="no file matches"):
        hg.scan(str(tmp_path / "*.parquet"))
    with pytest.raises(UserError, match="holds no files"):
        hg.scan(tmp_path)
    (tmp_path / "t.xyz").write_text("a")
    with pytest.raises(UserError, match=r"hg\.scan reads"):
        hg.scan(tmp_path / "t.xyz")


def test_folders_named_by_keys_give_columns(table, tmp_path):
    for k in range(2):
        (tmp_path / f"group={k}").mkdir()
        write_parquet(table, tmp_path / f"group={k}", parts=1)
    source = hg.scan(tmp_path, target="y", columns=["x0", "group"])
    X = np.vstack([b.X for b in source.blocks()])
    assert X[:, 1].tolist() == [0.0] * 211 + [1.0] * 211


def test_whole_numbers_first_and_fractions_later_in_a_csv_file(tmp_path):
    lines = ["a,y"] + ["1,2"] * 300_000 + ["1.5,2.5", ",1"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    source = hg.scan(tmp_path / "t.csv", target="y")
    last = list(source.blocks())[-1]
    assert last.X[-2, 0] == 1.5
    assert np.isnan(last.X[-1, 0])
    assert last.y[-2] == 2.5


def test_one_shot_streams_name_the_place_they_are_written_to(table):
    with pytest.warns(SpoolWarning, match="hinge-spool-"):
        source = hg.scan(tuples(table))
    folder = source.parts[0].folder.path
    assert folder.exists()
    np.testing.assert_array_equal(gathered(source)[0], arrays(table)[0])
    del source
    assert not folder.exists()


def test_empty_blocks_count_for_nothing(table):
    X, y, s, o = arrays(table)

    def blocks():
        yield X[:0], y[:0], s[:0], o[:0]
        yield X[:100], y[:100], s[:100], o[:100]
        yield X[:0], y[:0], s[:0], o[:0]
        yield X[100:], y[100:], s[100:], o[100:]

    source = hg.scan(blocks)
    np.testing.assert_array_equal(gathered(source)[0], X)
    assert all(b.rows for b in source.blocks())


def test_no_rows_at_all(table, tmp_path):
    source = hg.scan(write_parquet(table, tmp_path), target="y", filter=[("x0", ">", 1e9)])
    with pytest.raises(UserError, match="no rows"):
        Passes(source).total(lambda block: block.rows)


def test_text_is_refused_by_models_of_numbers_and_the_column_is_named(table, tmp_path):
    frame = pd.DataFrame(table).assign(city="Rome")
    source = hg.scan(frame, target="y")
    with pytest.raises(ValueError, match="column 'city' of rows 0–210, block 0 holds text"):
        next(iter(source.blocks())).X  # noqa: B018


def test_float32_stays_float32(table):
    frame = pd.DataFrame(table)[NAMES].astype(np.float32)
    assert next(iter(hg.scan(frame).blocks())).X.dtype == np.float32


def test_missing_values_are_nan(tmp_path):
    pq.write_table(
        pa.table({"a": [1, None, 3], "b": [True, None, False], "y": [1.0, 2.0, 3.0]}), tmp_path / "t.parquet"
    )
    block = next(iter(hg.scan(tmp_path / "t.parquet", target="y").blocks()))
    np.testing.assert_array_equal(block.X, [[1.0, 1.0], [np.nan, np.nan], [3.0, 0.0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weight": np.array([1.0, -1.0])}, "negative"),
        ({"weight": np.array([1.0, np.nan])}, "missing"),
        ({"offset": np.array([1.0, np.inf])}, "infinite"),
        ({"weight": np.array(["a", "b"])}, "numbers"),
    ],
)
def test_weights_and_offsets_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        list(hg.scan(np.ones((2, 1)), **arguments).blocks())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: hg.scan(X, target="y"), "no column names"),
        (lambda X: hg.scan(X, columns=["a"]), "no column names"),
        (lambda X: hg.scan(X, filter=[("a", ">", 1)]), "filter is for files"),
        (lambda X: hg.scan(X, target=np.ones(2)), "must have 3 entries"),
        (lambda X: hg.scan(X, block_rows=0), "block_rows"),
        (lambda X: hg.scan(X, executor="fast"), "executor"),
        (lambda X: hg.scan(hg.scan(X)), "a source already"),
        (lambda X: hg.scan(lambda: iter([])), "no blocks"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(np.ones((3, 2)))


def test_an_error_in_the_reader_reaches_the_caller_and_the_thread_ends():
    import threading

    def blocks():
        yield np.ones((3, 2)), np.ones(3)
        raise OSError("the disk is gone")

    source = hg.scan(blocks)
    with pytest.raises(OSError, match="the disk is gone"):
        list(source.blocks())
    reading = source.blocks()
    next(reading)
    reading.close()
    assert not [t for t in threading.enumerate() if t.name == "hinge-reader"]


def test_scanning_warns_of_nothing(table, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parquet_folder(table, tmp_path)
