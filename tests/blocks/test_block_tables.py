"""The encoders of a raw table over blocks are those of the table in memory, up to the size of the sample."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import hinge as hg
from kit.frames import in_library

PREPS = [
    hg.TablePrep(),
    hg.TablePrep(encode="codes", missing="keep", scale=False),
    hg.TablePrep(kinds={"city": "drop"}, max_categories=2, text="counts"),
    hg.TablePrep(encode="codes", target_means=2, word_choice="target", max_words=3),
]
EACH = pytest.mark.parametrize("prep", PREPS, ids=lambda prep: " ".join(repr(prep).split()))


@pytest.fixture
def frame(rng):
    n = 400
    city = rng.choice(["Rome", "Oslo", "Bern"], n).astype(object)
    city[-25:] = "Lima"  # a category of the last block alone
    city[17] = None
    age = rng.normal(50, 10, n)
    age[rng.integers(0, n, 20)] = np.nan
    words = ["good", "dull", "plot", "film", "cast"]
    return pd.DataFrame(
        {
            "age": age,
            "price": [f"{p:.2f} €" for p in rng.gamma(2.0, 10.0, n)],
            "city": city,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 500, n), unit="D"),
            "note": [" ".join(rng.choice(words, 6)) + f" {k}" for k in range(n)],
            "y": (age > 50).astype(int),
        }
    )


def in_memory(prep, frame):
    return clone(prep).fit(frame.drop(columns="y"), frame["y"].to_numpy())


def dense(Z):
    return Z.toarray() if hasattr(Z, "toarray") else np.asarray(Z)


@EACH
@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_the_encoders_of_a_source(prep, library, frame):
    source = hg.scan(in_library(frame, library), target="y", block_rows=70)
    whole, blocks = in_memory(prep, frame), clone(prep).fit(source)
    assert blocks.kinds_ == whole.kinds_
    assert blocks.missing_ == whole.missing_
    assert str(blocks.describe()) == str(whole.describe())
    np.testing.assert_array_equal(
        dense(blocks.transform(frame.drop(columns="y"))), dense(whole.transform(frame.drop(columns="y")))
    )
    assert blocks.reading_.passes == 1
    assert blocks.feature_names_in_.tolist() == ["age", "price", "city", "day", "note"]


@pytest.mark.parametrize("rows", [17, 400])
@pytest.mark.parametrize("executor", [None, 2, 7])
def test_workers_and_cuts_do_not_matter(rows, executor, frame):
    whole = in_memory(hg.TablePrep(), frame)
    blocks = hg.TablePrep().fit(hg.scan(frame, target="y", block_rows=rows, executor=executor))
    assert str(blocks.describe()) == str(whole.describe())


def test_tables_of_numbers_and_missing_values(rng):
    X = np.column_stack([rng.normal(size=300), rng.integers(0, 3, 300), rng.normal(size=300)])
    X[::9, 2] = np.nan
    whole = hg.TablePrep().fit(X)
    blocks = hg.TablePrep().fit(hg.scan(X, block_rows=40))
    np.testing.assert_array_equal(dense(blocks.transform(X)), dense(whole.transform(X)))
    named = hg.TablePrep().fit(hg.scan(pd.DataFrame(X, columns=["a", "b", "c"]), block_rows=40))
    assert list(named.kinds_) == ["a", "b", "c"]


def test_rows_of_weight_zero_are_left_out(frame, rng):
    weight = rng.integers(0, 2, len(frame))
    blocks = hg.TablePrep().fit(hg.scan(frame.assign(s=weight), target="y", weight="s", block_rows=50))
    assert str(blocks.describe()) == str(in_memory(hg.TablePrep(), frame[weight > 0]).describe())
    with pytest.raises(ValueError, match="weight zero"):
        hg.TablePrep().fit(hg.scan(frame.assign(s=0), target="y", weight="s", block_rows=50))


def test_a_sample_of_more_rows_is_uniform(rng, monkeypatch):
    monkeypatch.setattr("hinge.models.blocks.tables.SAMPLE", 2000)
    x = np.arange(40_000.0) + rng.random(40_000)  # in order: an early or late sample would show
    frame = pd.DataFrame({"x": x, "odd": np.where(np.arange(40_000) % 2, "yes", "no")})
    prep = hg.TablePrep(kinds={"x": "number"}).fit(hg.scan(frame, block_rows=3000))
    encoder = prep.encoders_[0]
    deviation = x.std() / np.sqrt(2000)
    assert abs(encoder.centre - x.mean()) < 5 * deviation
    assert encoder.scale == pytest.approx(x.std(), rel=0.1)
    again = hg.TablePrep(kinds={"x": "number"}).fit(hg.scan(frame, block_rows=3000, executor=3))
    assert str(again.describe()) == str(prep.describe())


def test_models_on_a_source_mapped_by_a_prep_of_the_source(frame, tmp_path):
    source = hg.scan(frame, target="y", block_rows=60)
    prep = hg.TablePrep().fit(source)
    mapped = source.map(prep)
    blocks = hg.LogisticRegression().fit(mapped)
    assert blocks.certificate_.converged
    assert blocks.score(mapped) > 0.9
    hg.save(prep, tmp_path / "prep.hinge")
    loaded = hg.load(tmp_path / "prep.hinge")
    np.testing.assert_array_equal(blocks.predict(source.map(loaded)), blocks.predict(mapped))
