"""Terms counted by arithmetic are those counted by dictionaries."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg
from hinge.features.terms import TermIndex, Terms
from hinge.features.text_encoders import CountedTexts, dependence
from hinge.features.tokenize import count_terms, cutter, document_frequencies
from hinge.tables.conversion import to_column

WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "sat",
    "on",
    "mat",
    "ÉTÉ",
    "été",
    "x1",
    "don't",
    "—",
    "東京",
    "now",
    "NOW",
    "7",
    "77",
]


def texts_of(rng, n=60):
    return ["  ".join(rng.choice(WORDS, rng.integers(0, 12))) for _ in range(n)]


@pytest.mark.mission("F3")
@pytest.mark.parametrize("least", [1, 3])
@pytest.mark.parametrize(
    ("analyzer", "ngrams"),
    [("word", (1, 1)), ("word", (1, 3)), ("word", (2, 2)), ("char_wb", (3, 3)), ("char_wb", (3, 5))],
)
def test_terms_are_those_of_dictionaries(rng, analyzer, ngrams, least):
    texts = texts_of(rng)
    cut = cutter(analyzer, ngrams)
    frequency = document_frequencies(texts, cut)
    kept = sorted(term for term, count in frequency.items() if count >= least)
    expected = count_terms(texts, cut, {t: (k, 1.0) for k, t in enumerate(kept)}.get, len(kept))
    terms = Terms(texts, analyzer, ngrams, least)
    names = terms.names(np.arange(terms.counts.shape[1]))
    order = np.argsort(np.array(names, dtype=object))
    assert [names[k] for k in order] == kept
    np.testing.assert_array_equal(terms.counts[:, order].toarray(), expected.toarray())
    # Any part of the terms is found again in other texts.
    part, other = [kept[k] for k in rng.permutation(len(kept))[: len(kept) // 2]], texts_of(rng)
    expected = count_terms(other, cut, {t: (k, 1.0) for k, t in enumerate(part)}.get, len(part))
    np.testing.assert_array_equal(TermIndex(part, analyzer).count(other).toarray(), expected.toarray())


def test_no_texts_and_no_words_give_empty_counts():
    assert Terms(["", "!"], "word", (1, 2)).counts.shape == (2, 0)
    assert TermIndex([], "word").count(["a word"]).shape == (1, 0)
    assert TermIndex(["one word"], "word").count([]).shape == (0, 1)


@pytest.mark.mission("F4")
@pytest.mark.parametrize("choice", ["frequent", "target"])
def test_counts_made_before_give_the_same_outputs(rng, choice):
    pl = pytest.importorskip("polars")
    texts = texts_of(rng, 80)
    frame = pl.DataFrame({"t": [*texts[:40], *texts[:30], *[None] * 10], "z": rng.normal(size=80)})
    y = np.where(rng.random(80) < 0.5, "yes", "no")
    options = {"word_ngrams": (1, 2), "char_ngrams": (3, 4), "min_df": 2, "sublinear_tf": True, "max_words": 25}
    prep = hg.TablePrep({"t": "text"}, word_choice=choice, **options)
    counted = {
        ("t", plan.analyzer, plan.ngrams): CountedTexts(to_column(frame["t"]), plan.analyzer, plan.ngrams, 2)
        for plan in prep.text_plans()
    }
    train, test = np.arange(60), np.arange(60, 80)
    plain = hg.TablePrep({"t": "text"}, word_choice=choice, **options).fit(frame[train], y[train])
    quick = prep.fit_counted(frame[train], y[train], counted)
    assert list(plain.get_feature_names_out()) == list(quick.get_feature_names_out())
    for rows in (train, test):
        np.testing.assert_allclose(quick.transform_counted(frame[rows], counted), plain.transform(frame[rows]))


def test_terms_are_chosen_by_the_target(rng):
    pl = pytest.importorskip("polars")
    n = 400
    y = rng.random(n) < 0.5
    texts = [f"common words in all of them {'signal' if own else 'other'} {rng.integers(0, 50)}th" for own in y]
    frame = pl.DataFrame({"t": texts})
    prep = hg.TablePrep({"t": "text"}, max_words=2, word_choice="target")
    assert list(prep.fit(frame, np.where(y, "a", "b")).get_feature_names_out()) == ["t:other", "t:signal"]
    assert list(prep.fit(frame, 3.0 * y).get_feature_names_out()) == ["t:other", "t:signal"]


def test_dependence_is_the_statistic_of_the_table(rng):
    from scipy.stats import chi2_contingency

    texts, y = texts_of(rng, 200), rng.integers(0, 3, 200)
    terms = Terms(texts, "word", (1, 1), 5)
    found = dependence(terms.counts, y)
    for j in range(terms.counts.shape[1]):
        present = terms.counts[:, [j]].toarray().ravel() > 0
        table = np.array([[np.sum((y == c) & (present == has)) for c in range(3)] for has in (True, False)])
        share = present.mean()
        # χ² of presences alone is that of the whole table times the share of texts without the term.
        assert found[j] == pytest.approx(chi2_contingency(table, correction=False)[0] * (1 - share))


def test_settings_of_texts_are_described(rng):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"t": ["one two three four", "two three four five", "one six seven two"] * 10})
    prep = hg.TablePrep({"t": "text"}, word_ngrams=(1, 2), char_ngrams=(3, 3)).fit(frame)
    text = str(prep.describe())
    assert "runs of up to 2" in text
    assert "runs of characters" in text
