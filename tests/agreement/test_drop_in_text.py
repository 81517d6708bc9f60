"""Text vectorisers and monomials refuse, warn and pickle as scikit-learn's do."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import hinge as hg

TEXTS = ["The first one, and THE last.", "Déjà vu: a second one."]
VECTORIZERS = [hg.CountVectorizer, hg.TfidfVectorizer, hg.HashingVectorizer]


@pytest.mark.parametrize("cls", VECTORIZERS)
@pytest.mark.parametrize("options", [{}, {"strip_accents": "ascii"}, {"analyzer": "char_wb", "ngram_range": (2, 3)}])
def test_what_is_built_can_be_pickled(cls, options):
    model = cls(**options)
    for function in (model.build_analyzer(), model.build_preprocessor(), model.build_tokenizer()):
        again = pickle.loads(pickle.dumps(function))
        assert again(TEXTS[1]) == function(TEXTS[1])


@pytest.mark.parametrize("cls", VECTORIZERS)
def test_what_is_refused(cls):
    with pytest.raises(ValueError, match="capturing group"):
        cls(token_pattern=r"(\w)(\w)").fit_transform(TEXTS)
    with pytest.raises(ValueError, match="lower boundary larger"):
        cls(ngram_range=(2, 1)).fit(TEXTS)
    with pytest.raises(ValueError, match="stop_words"):
        cls(stop_words="klingon").get_stop_words()
    with pytest.raises(ValueError, match="strip_accents"):
        cls(strip_accents="all").build_preprocessor()
    assert not hasattr(cls(), "set_output")


@pytest.mark.parametrize("cls", VECTORIZERS)
def test_stop_words_that_would_stop_nothing_are_reported(cls):
    with pytest.warns(UserWarning, match=r"\['and', 'll'\] not in stop_words"):
        cls(stop_words=["you'll", "you", "AND"]).fit_transform(TEXTS)
    cls(stop_words=["the", "and"]).fit_transform(TEXTS)


def test_given_terms_in_capitals_are_reported_once():
    model = hg.CountVectorizer(vocabulary=["The", "one"])
    with pytest.warns(UserWarning, match="Upper case"):
        model.fit(TEXTS)
    assert model.transform(TEXTS).toarray().tolist() == [[0, 1], [0, 1]]
    hg.CountVectorizer(vocabulary=["The"], lowercase=False).fit(TEXTS)


def test_factors_are_checked_and_have_the_type_of_the_output():
    model = hg.TfidfVectorizer(dtype=np.float32).fit(TEXTS)
    assert model.idf_.dtype == np.float32
    copy = hg.TfidfVectorizer(vocabulary=model.vocabulary_)
    with pytest.raises(ValueError, match="factors"):
        copy.idf_ = [1.0]
    copy.idf_ = model.idf_
    np.testing.assert_allclose(copy.transform(TEXTS).toarray(), model.transform(TEXTS).toarray(), rtol=1e-6)
    without = hg.TfidfVectorizer(use_idf=False).fit(TEXTS)
    assert not hasattr(without, "idf_")
    with pytest.raises(ValueError, match="cannot be set"):
        without.idf_ = model.idf_
    with pytest.warns(UserWarning, match="converted to np.float64"):
        assert hg.TfidfVectorizer(dtype=np.int32).fit_transform(TEXTS).dtype == np.float64


def test_no_monomials_of_two_features_where_there_is_one():
    X = np.arange(3.0)[:, None]
    assert hg.PolynomialFeatures((2, 3), include_bias=False, interaction_only=True).fit_transform(X).shape == (3, 0)
    with pytest.raises(ValueError, match="no outputs"):
        hg.PolynomialFeatures(0, include_bias=False).fit(X)
