"""Free text in hg.learn: sparse linear models of many terms, words in the report and in explain."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import clone

import hinge as hg
from hinge.learning.candidates import families
from hinge.learning.words import word_effects, words_of_row
from hinge.models.linear.log_count_ratio import LogCountRatioClassifier

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")

THEMES = {
    "space": ["orbit", "launch", "rocket", "moon", "shuttle", "satellite"],
    "hockey": ["goal", "ice", "puck", "team", "playoff", "coach"],
    "cooking": ["salt", "oven", "butter", "recipe", "flour", "sauce"],
}
FILLER = [f"w{k}" for k in range(400)]


def news(rng, n=600, kinds=3):
    """Texts of many words, few of which depend on the class."""
    names = list(THEMES)[:kinds]
    y = rng.choice(names, n)
    texts = []
    for own in y:
        words = [
            *rng.choice(FILLER, 25),
            *rng.choice(THEMES[own], rng.integers(2, 4)),
            rng.choice(THEMES[rng.choice(names)]),
        ]
        texts.append(" ".join(rng.permutation(words)))
    return pl.DataFrame({"text": texts, "theme": y})


@pytest.mark.parametrize("kinds", [2, 3])
def test_text_alone_is_learned(rng, kinds):
    frame = news(rng, kinds=kinds)
    found = hg.learn(frame[:450], "theme", models=["linear", "ratio"], seconds=600.0)
    assert found.profile.columns[0].kind == "text"
    assert found.model.score(frame[450:]) > 0.85
    assert found.evidence.words
    named = {w.name.strip("“”") for w in found.evidence.words}
    assert named & {word for theme in THEMES.values() for word in theme}


def test_several_texts_and_numbers_are_learned_together(rng, tmp_path):
    frame = news(rng, 500).rename({"text": "body"})
    title = [f"about {rng.choice(FILLER)} and {rng.choice(FILLER)} {k % 97}x" for k in range(500)]
    size = rng.normal(size=500)
    y = (frame["theme"] == "space").to_numpy() * 2.0 + size + 0.1 * rng.normal(size=500)
    frame = frame.drop("theme").with_columns(pl.Series("title", title), pl.Series("size", size), pl.Series("y", y))
    found = hg.learn(frame, "y", models=["linear", "boosting"], seconds=600.0)
    kinds = {c.name: c.kind for c in found.profile.columns}
    assert kinds == {"body": "text", "title": "text", "size": "number"}
    assert found.evidence.explained > 0.8
    assert any("body" in w.name for w in found.evidence.words)
    found.save(tmp_path / "m.hinge")
    again = hg.load(tmp_path / "m.hinge")
    np.testing.assert_array_equal(again.predict(found.profile.frame), found.model.pipeline.predict(found.profile.frame))


def test_explain_names_the_words_of_a_row(rng, hinge, tmp_path):
    frame = news(rng, 400, kinds=2)
    path = tmp_path / "news.csv"
    frame.write_csv(path)
    assert hinge("fit", path, "-t", "theme", "--models", "linear", "--time", "600", "-o", tmp_path / "out")[0] == 0
    model = tmp_path / "out" / "model.hinge"
    page = (tmp_path / "out" / "report.html").read_text()
    assert "when a word is removed" in page
    code, out, _ = hinge("explain", model, path, "--row", "3", "--json")
    assert code == 0
    row = json.loads(out)["words"]["text"]
    assert row[0]["word"] in {word for theme in THEMES.values() for word in theme}
    code, out, _ = hinge("explain", model, path, "--row", "3")
    assert "words of text" in out
    assert json.loads(hinge("explain", model, path, "--json")[1])["words"]


def test_the_effect_of_a_word_is_the_change_of_the_prediction(rng):
    frame = news(rng, 300, kinds=2)
    found = hg.learn(frame, "theme", models="linear", seconds=600.0)
    row = 5
    shares = dict(words_of_row(found.model, frame.select("text"), row, "text"))
    word = next(iter(shares))
    less = frame[row : row + 1].with_columns(pl.col("text").str.replace_all(rf"\b{word}\b", " "))
    change = found.model.predict_proba(frame[row : row + 1])[0, 1] - found.model.predict_proba(less)[0, 1]
    assert shares[word] == pytest.approx(change)
    rises = word_effects(
        found.model.pipeline, frame.select("text"), found.profile.y.astype(int), ["text"], found.model.measure
    )
    assert rises[0].value > 0


def test_ratio_classifier_is_a_logistic_model_of_weighed_columns(rng):
    from scipy.sparse import csr_array

    X = np.abs(rng.normal(size=(200, 12))) * (rng.random((200, 12)) < 0.4)
    y = np.where(X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=200) > 0, "b", "a")
    model = LogCountRatioClassifier(C=2.0).fit(X, y)
    sparse = clone(model).fit(csr_array(X), y)
    np.testing.assert_allclose(model.predict_proba(X), sparse.predict_proba(csr_array(X)), atol=1e-3)
    own = y == "b"
    ratio = np.log((1 + X[own].sum(0)) / (1 + own.sum())) - np.log((1 + X[~own].sum(0)) / (1 + (~own).sum()))
    plain = hg.LogisticRegression(C=2.0, tol=1e-8).fit(X * ratio, y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X * ratio), atol=1e-3)
    many = LogCountRatioClassifier().fit(X, rng.integers(0, 4, 200))
    np.testing.assert_allclose(many.predict_proba(X).sum(axis=1), 1.0)


def test_every_family_of_text_tables_can_be_named():
    for task in ("binary", "real"):
        names = [f.name for f in families(None, task, 5000, text=True)]
        assert names[:2] == ["baseline", "linear"]
        assert ("ratio" in names) == (task == "binary")
        assert [f.name for f in families("network", task, 5000, text=True)] == ["baseline", "network"]
