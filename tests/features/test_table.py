"""TablePrep on tables as they come: mixed types, gaps, Unicode, dates, new levels; the same from every library."""

from __future__ import annotations

import datetime
import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.pipeline import make_pipeline

import hinge as hg

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")

N = 60


def dirty(n: int = N) -> dict[str, list]:
    """Columns of every kind, with gaps, stray blanks and junk."""
    rng = np.random.default_rng(0)
    start = datetime.datetime(2021, 3, 1, 6)
    return {
        "row_id": list(range(1000, 1000 + n)),
        "age": [None if i % 11 == 0 else float(a) for i, a in enumerate(rng.integers(18, 90, n))],
        "price": [f" {v:.2f}" if i != 5 else "" for i, v in enumerate(rng.normal(10, 3, n))],
        "città": [[" Roma", "Roma", "Oslo ", "Malmö", None][i] for i in rng.integers(0, 5, n)],
        "member": [["yes", "no", None][i] for i in rng.choice(3, n, p=[0.5, 0.4, 0.1])],
        "flag": [bool(v) for v in rng.integers(0, 2, n)],
        "zip": [f"0{v}" for v in rng.integers(1000, 1010, n)],
        "when": [start + datetime.timedelta(hours=37 * i) for i in range(n)],
        "day": [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2020" for i in range(n)],
        "note": [f"the {['good', 'bad', 'late'][i % 3]} order number {i} came today" for i in range(n)],
        "same": ["x"] * n,
        "empty": [None] * n,
    }


KINDS = {
    "row_id": "id", "age": "number", "price": "number", "città": "category", "member": "boolean", "flag": "boolean",
    "zip": "category", "when": "date", "day": "date", "note": "text", "same": "constant", "empty": "constant",
}  # fmt: skip


def as_objects(table: dict[str, list]) -> np.ndarray:
    return np.array([*zip(*table.values())], dtype=object)


@pytest.mark.mission("F4")
def test_kinds_are_inferred_and_overridable():
    frame = pd.DataFrame(dirty())
    prep = hg.TablePrep().fit(frame)
    assert prep.kinds_ == KINDS
    prepared = hg.TablePrep(kinds={"zip": "number", "note": "drop", "age": "category"}).fit(frame)
    assert {k: prepared.kinds_[k] for k in ("zip", "note", "age")} == {
        "zip": "number",
        "note": "drop",
        "age": "category",
    }
    assert prepared.columns_["note"] == []
    with pytest.raises(ValueError, match=r"kinds names 'ages', which X does not have. 'ages' may be 'age' now"):
        hg.TablePrep(kinds={"ages": "number"}).fit(frame)
    with pytest.raises(ValueError, match=r"kinds\['age'\] must be one of 'number'"):
        hg.TablePrep(kinds={"age": "integer"}).fit(frame)


@pytest.mark.mission("F4")
@pytest.mark.parametrize("options", [{}, {"encode": "codes", "missing": "keep"}, {"sparse": True}], ids=str)
def test_every_library_gives_the_same_numbers(options):
    table = dirty()
    frames = [
        pd.DataFrame(table),
        pd.DataFrame(table).convert_dtypes(),
        pl.DataFrame(table),
        pa.table(table),
        pl.DataFrame(table).with_columns(pl.col("città").cast(pl.Categorical)),
        pd.DataFrame(table).astype({"zip": "category"}),
    ]
    results = []
    for X in (*frames, as_objects(table)):
        prep = hg.TablePrep(**options).fit(X)
        Z = prep.transform(X)
        results.append((list(prep.get_feature_names_out(list(table))), Z.toarray() if scipy.sparse.issparse(Z) else Z))
    for names, Z in results[1:]:
        assert names == results[0][0]
        np.testing.assert_array_equal(Z, results[0][1], strict=True)


@pytest.mark.mission("F4")
def test_values_of_every_kind():
    table = {
        "x": [1.0, 2.0, None, 6.0],
        "c": ["a", "b", "a", None],
        "b": ["Y", "n", "y", None],
        "t": ["2020-01-06", "2020-01-08", "2020-01-11", None],
    }
    prep = hg.TablePrep(scale=False).fit(pl.DataFrame(table))
    Z = prep.transform(pl.DataFrame(table))
    names = list(prep.get_feature_names_out())
    out = {name: Z[:, k].tolist() for k, name in enumerate(names)}
    assert out["x"] == [1, 2, 2, 6]
    assert out["x=missing"] == [0, 0, 1, 0]
    assert out["c=a"] == [1, 0, 1, 0]
    assert out["c=(missing)"] == [0, 0, 0, 1]
    assert out["b"] == [1, 0, 1, 1]
    days = [(datetime.date(2020, 1, d) - datetime.date(1970, 1, 1)).days for d in (6, 8, 11)]
    assert out["t.days"] == [*days, days[1]]
    assert out["t.weekend"] == [0, 0, 1, 0]  # Monday, Wednesday, Saturday
    assert out["t=missing"] == [0, 0, 0, 1]
    np.testing.assert_allclose(out["t.weekly_cos"][1], np.cos(2 * np.pi * 2 / 7))
    scaled = hg.TablePrep().fit_transform(pl.DataFrame({"x": [1.0, 2.0, 6.0]}))
    np.testing.assert_allclose(scaled[:, 0], (np.array([1, 2, 6]) - 3) / np.std([1, 2, 6]))


@pytest.mark.mission("F4")
def test_every_output_knows_its_column():
    frame = pd.DataFrame(dirty())
    prep = hg.TablePrep().fit(frame)
    names = prep.get_feature_names_out()
    assert len(set(names)) == len(names) == len(prep.origin_) == prep.transform(frame).shape[1]
    for column, positions in prep.columns_.items():
        assert all(prep.origin_[k] == column and names[k].startswith(column) for k in positions)
    assert sorted(k for positions in prep.columns_.values() for k in positions) == list(range(len(names)))
    described = {row[0]: row for row in prep.describe()}
    assert described["age"][3] == frame["age"].isna().sum()
    assert "dropped" in described["row_id"][4]
    assert str(prep.describe()).count("\n") == len(KINDS)


@pytest.mark.mission("F4")
def test_values_that_are_new_after_training():
    train = pl.DataFrame({"c": ["a", "b"] * 10, "x": np.arange(20) / 3.0, "r": ["p"] * 9 + ["q"] * 9 + ["s", "u"]})
    prep = hg.TablePrep(max_categories=2, scale=False).fit(train)
    assert list(prep.get_feature_names_out()) == ["c=a", "c=b", "x", "r=p", "r=q", "r=(other)"]
    new = pl.DataFrame({"c": ["zebra", None], "x": [None, 4.0], "r": ["new", None]})
    median = np.median(np.arange(20) / 3.0)
    np.testing.assert_array_equal(prep.transform(new), [[0, 0, median, 0, 0, 1], [0, 0, 4, 0, 0, 0]])
    codes = hg.TablePrep(max_categories=2, scale=False, encode="codes", missing="keep").fit(train)
    assert codes.categorical_.tolist() == [True, False, True]
    np.testing.assert_array_equal(codes.transform(new), [[np.nan, np.nan, 2], [np.nan, 4, np.nan]])


@pytest.mark.mission("F4")
def test_only_training_rows_are_learned_from():
    frame = pd.DataFrame(dirty())
    prep = hg.TablePrep().fit(frame[:40])
    before = prep.transform(frame[:40])
    changed = frame.copy()
    changed.loc[40:, "age"] = 1e9
    np.testing.assert_array_equal(hg.TablePrep().fit(changed[:40]).transform(frame[:40]), before)
    rows = [5, 3, 30]
    np.testing.assert_array_equal(prep.transform(frame.iloc[rows]), before[rows])


def test_a_changed_table_is_refused_with_a_guess():
    frame = pd.DataFrame(dirty())
    prep = hg.TablePrep().fit(frame)
    with pytest.raises(ValueError, match=r"(?s)yet now missing:\n- age\n.*'age' may be 'Age' now"):
        prep.transform(frame.rename(columns={"age": "Age"}))
    with pytest.raises(ValueError, match="same order"):
        prep.transform(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="align"):
        prep.transform(frame.assign(extra=1))
    shuffled = frame.assign(extra=1)[["extra", *frame.columns[::-1]]]
    np.testing.assert_array_equal(prep.transform(prep.align(shuffled)), prep.transform(frame))
    with pytest.raises(ValueError, match=r"lacks columns that training had: 'price'"):
        prep.align(frame.drop(columns="price"))
    with pytest.raises(ValueError, match=r"Column 'age' held numbers in training; none of its values reads so now"):
        prep.transform(frame.assign(age="old"))
    with pytest.raises(ValueError, match=r"Column 'when' held dates in training"):
        prep.transform(frame.assign(when="soon"))
    with pytest.raises(ValueError, match=r"infinity in column 'age'"):
        prep.transform(frame.assign(age=np.inf))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2.5", "x", *map(str, range(100))], "number"),
        (["1", "2", "3", "x"] * 10, "category"),
        ([1, "a", 2.5, True] * 10, "category"),
        (["2020-01-01T10:00:00Z", "2020-02-01T10:00:00+02:00"] * 10, "date"),
        (["31/12/2020", "01/02/2021"] * 10, "date"),
        (["12/31/2020", "01/02/2021"] * 10, "date"),
        ([datetime.date(2020, 1, 1), datetime.date(2021, 1, 2)] * 10, "date"),
        ([f"u{i:05d}" for i in range(50)], "id"),
        (list(range(50)), "id"),
        (list(range(0, 100, 2)), "number"),
        ([3, None] * 10, "category"),
        ([True, False, None] * 10, "boolean"),
        (["on", "OFF"] * 10, "boolean"),
        (["caf\u00e9", "cafe\u0301"] * 10, "constant"),
        (["NA", "?", ""] * 10, "constant"),
        ([np.float32(1.5), np.int8(2)] * 10, "number"),
    ],
)
def test_kinds(values, kind):
    column = np.empty((len(values), 1), dtype=object)
    column[:, 0] = values
    table = np.column_stack([column, np.sin(np.arange(len(values)))])
    assert hg.TablePrep().fit(table).kinds_["x0"] == kind


def test_output_is_sparse_where_most_entries_are_zero():
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"a": rng.choice([f"level {k}" for k in range(300)], 3000), "x": rng.normal(size=3000)})
    prep = hg.TablePrep(max_categories=200).fit(table)
    Z = prep.transform(table)
    assert scipy.sparse.issparse(Z)
    np.testing.assert_array_equal(Z.toarray(), hg.TablePrep(max_categories=200, sparse=False).fit_transform(table))
    assert not scipy.sparse.issparse(hg.TablePrep(max_categories=5).fit_transform(table))
    framed = prep.set_output(transform="pandas").transform(table)
    assert list(framed.columns) == list(prep.get_feature_names_out())


def test_files_and_pipelines(tmp_path):
    frame = pd.DataFrame(dirty())
    y = np.arange(N) % 2
    for options in ({}, {"encode": "codes", "missing": "impute"}):
        model = make_pipeline(hg.TablePrep(**options), hg.TablePrep(), hg.LogisticRegression()).fit(frame, y)
        hg.save(model, tmp_path / "model.hinge")
        np.testing.assert_array_equal(
            hg.load(tmp_path / "model.hinge").predict_proba(frame), model.predict_proba(frame)
        )


@pytest.mark.mission("F4")
def test_adult(real_data):
    """The raw census table, gaps written as question marks, to a better-than-published linear error."""
    with gzip.open(real_data("adult_train.csv.gz"), "rt") as f:
        train = pl.read_csv(f.read().encode())
    with gzip.open(real_data("adult_test.csv.gz"), "rt") as f:
        test = pl.read_csv(f.read().encode())
    target = train.columns[-1]
    y, y_test = (t[target].str.strip_chars(" .").to_numpy() == ">50K" for t in (train, test))
    model = make_pipeline(hg.TablePrep(), hg.LogisticRegression(C=1.0)).fit(train.drop(target), y)
    assert model.score(test.drop(target), y_test) > 0.845
    assert model[0].missing_["workclass"] > 0
