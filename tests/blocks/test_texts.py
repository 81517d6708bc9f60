"""Vocabularies over blocks of texts are those of the texts in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import hinge as hg

VECTORIZERS = [
    hg.TfidfVectorizer(),
    hg.TfidfVectorizer(min_df=2, max_df=0.9, ngram_range=(1, 2), sublinear_tf=True),
    hg.TfidfVectorizer(max_features=4),
    hg.TfidfVectorizer(vocabulary=["good", "bad"]),
    hg.CountVectorizer(analyzer="char", ngram_range=(2, 2), binary=True),
    hg.CountVectorizer(max_features=3),
]
EACH = pytest.mark.parametrize("vectorizer", VECTORIZERS, ids=lambda v: " ".join(repr(v).split()))


@pytest.fixture
def frame(rng):
    words = np.array(["good", "bad", "film", "book", "plot", "dull"])
    texts = [" ".join(rng.choice(words, 6, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1])) for _ in range(300)]
    texts[-1] = "late words good"  # terms of the last block alone
    texts[3] = ""
    y = [int(text.count("good") > text.count("bad")) for text in texts]
    return pd.DataFrame({"text": texts, "y": y})


@EACH
@pytest.mark.parametrize("executor", [None, 2, 7])
def test_vocabularies_and_factors(vectorizer, executor, frame, tmp_path):
    whole = clone(vectorizer).fit(frame["text"])
    frame.to_parquet(tmp_path / "t.parquet")
    source = hg.scan(str(tmp_path / "t.parquet"), columns=["text"], target="y", block_rows=37, executor=executor)
    blocks = clone(vectorizer).fit(source)
    assert blocks.vocabulary_ == whole.vocabulary_
    if hasattr(whole, "idf_"):
        np.testing.assert_array_equal(blocks.idf_, whole.idf_)
    expected = whole.transform(frame["text"])
    assert abs(blocks.transform(source) - expected).max() == 0
    model = hg.LogisticRegression(tol=1e-8).fit(source.map(blocks))
    np.testing.assert_allclose(model.coef_, hg.LogisticRegression(tol=1e-8).fit(expected, frame["y"]).coef_, atol=1e-2)


def test_texts_are_one_column_of_texts(frame):
    with pytest.raises(ValueError, match="one column of texts"):
        hg.TfidfVectorizer().fit(hg.scan(frame.assign(other="x"), target="y"))
    with pytest.raises(TypeError, match="two passes"):
        hg.TfidfVectorizer().fit_transform(hg.scan(frame, target="y"))
    with pytest.raises(ValueError, match="column="):
        hg.scan(frame, target="y").map(hg.TfidfVectorizer().fit(["good film"]))
    with pytest.raises(ValueError, match="No terms are left"):
        hg.CountVectorizer(min_df=1000).fit(hg.scan(frame, columns=["text"]))


def test_missing_texts_are_refused(frame):
    frame.loc[200, "text"] = None
    with pytest.raises(ValueError, match="fill missing texts"):
        hg.TfidfVectorizer().fit(hg.scan(frame, columns=["text"], block_rows=50))
