"""Sources whose features a transformer makes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import hinge as hg


@pytest.mark.parametrize(
    "model", [hg.Ridge(0.1), hg.LogisticRegression(), hg.LinearSVC(), hg.HistGradientBoostingClassifier(max_iter=3)],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("executor", [None, 3])
def test_kernel_machines_by_nystroem_features(model, executor, rng):
    X = rng.normal(size=(900, 3))
    y = (np.sum(X**2, axis=1) > 2.5).astype(int)
    s = rng.integers(0, 3, 900).astype(float)
    features = hg.Nystroem(gamma=0.5, n_components=30, random_state=0).fit(X[:300])
    source = hg.scan(X, target=y, weight=s, block_rows=130, executor=executor).map(features)
    assert source.n_features == 30
    blocks = model.fit(source)
    expected = model.__class__(**model.get_params()).fit(features.transform(X), y, sample_weight=s)
    np.testing.assert_allclose(blocks.predict(source), blocks.predict(features.transform(X)), rtol=1e-12)
    assert abs(blocks.score(source) - expected.score(features.transform(X), y, sample_weight=s)) < 0.01


@pytest.mark.parametrize("library", ["pandas", "arrow"])
def test_texts_by_hashing(library, rng):
    import pyarrow as pa

    words = np.array(["good", "bad", "film", "book", "plot"])
    texts = [" ".join(rng.choice(words, 6)) for _ in range(400)]
    y = np.array([text.count("good") > text.count("bad") for text in texts]).astype(int)
    frame = pd.DataFrame({"text": texts, "y": y})
    table = frame if library == "pandas" else pa.Table.from_pandas(frame)
    vectors = hg.HashingVectorizer(n_features=64).fit(texts)
    source = hg.scan(table, target="y", block_rows=70).map(vectors, column="text")
    blocks = hg.LogisticRegression(tol=1e-8).fit(source)
    whole = hg.LogisticRegression(tol=1e-8).fit(vectors.transform(texts), y)
    np.testing.assert_allclose(blocks.coef_, whole.coef_, atol=1e-3)
    np.testing.assert_array_equal(blocks.predict(source), whole.predict(vectors.transform(texts)))


def test_scaled_columns_with_names(rng, tmp_path):
    frame = pd.DataFrame(rng.normal(size=(300, 3)) * [1.0, 10.0, 100.0], columns=["a", "b", "c"])
    frame["y"] = frame["b"] + rng.normal(size=300)
    frame.to_parquet(tmp_path / "t.parquet")
    source = hg.scan(str(tmp_path / "t.parquet"), target="y", block_rows=50)
    scaled = source.map(hg.StandardScaler().fit(source))
    whole = hg.Ridge(5.0).fit(hg.StandardScaler().fit_transform(frame[["a", "b", "c"]].to_numpy()), frame["y"])
    np.testing.assert_allclose(hg.Ridge(5.0).fit(scaled).coef_, whole.coef_, rtol=1e-9)


def test_prepared_tables(rng):
    """Text categories and missing values, as a sample has shown them; columns in another order."""
    n = 500
    frame = pd.DataFrame({"x": rng.normal(size=n), "city": rng.choice(["Rome", "Oslo", "Bern"], n)})
    frame.loc[::17, "x"] = np.nan
    y = np.where(frame["city"] == "Oslo", 2.0, 0.0) + frame["x"].fillna(0.0).to_numpy()
    prep = hg.TablePrep().fit(frame[:200])
    source = hg.scan(frame[["city", "x"]].assign(y=y), target="y", block_rows=90).map(prep)
    whole = hg.Ridge().fit(prep.transform(frame), y)
    np.testing.assert_allclose(hg.Ridge().fit(source).coef_, whole.coef_, rtol=1e-9)


def test_columns_that_are_missing_are_named(rng):
    frame = pd.DataFrame({"a": rng.normal(size=30), "b": rng.normal(size=30)})
    scaler = hg.StandardScaler().fit(frame)
    with pytest.raises(ValueError, match="no column 'b'"):
        hg.scan(frame[["a"]]).map(scaler)
