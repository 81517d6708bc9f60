"""Multiclass estimators keep scikit-learn's conventions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import hinge as hg
from kit.estimators import not_applicable

# A base learner whose own solution is exact enough for "weights = repetition" to hold to rounding.
BASE = LogisticRegression(solver="newton-cholesky", tol=1e-10)

ESTIMATORS = [
    hg.OneVsRestClassifier(BASE),
    hg.OneVsOneClassifier(BASE),
    hg.OneVsOneClassifier(BASE, vote="probability"),
    hg.OutputCodeClassifier(BASE),
    hg.MulticlassPerceptron(),
    hg.MulticlassSVM(tol=1e-9, max_iter=1_000_000),
]


@pytest.fixture
def blobs(rng):
    X, y = make_blobs(300, 4, centers=5, cluster_std=4.0, random_state=int(rng.integers(1000)))
    return X, np.array(list("abcde"))[y]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=not_applicable)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda m: type(m).__name__)
def test_same_bits_for_any_number_of_threads(model, rng):
    X, y = rng.normal(size=(3000, 8)), rng.integers(4, size=3000)
    before = hg.num_threads()
    try:
        results = []
        for threads in (1, 2):
            hg.set_num_threads(threads)
            results.append(model.fit(X, y).decision_function(X))
        np.testing.assert_array_equal(*results)
    finally:
        hg.set_num_threads(before)


def test_wrong_arguments_are_named(rng):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 3
    with pytest.raises(ValueError, match="cost has shape"):
        hg.MulticlassSVM(cost=np.eye(2)).fit(X, y)
    with pytest.raises(ValueError, match="zero on the diagonal"):
        hg.MulticlassSVM(cost=np.ones((3, 3))).fit(X, y)
    with pytest.raises(ValueError, match="'C' parameter"):
        hg.MulticlassSVM(C=0).fit(X, y)
    with pytest.raises(ValueError, match="'vote' parameter"):
        hg.OneVsOneClassifier(BASE, vote="loud").fit(X, y)
    with pytest.raises(ValueError, match="bits="):
        hg.OutputCodeClassifier(BASE, bits=1).fit(X, y)
    with pytest.raises(ValueError, match="'code_size' parameter"):
        hg.OutputCodeClassifier(BASE, code_size=0.0).fit(X, y)
    with pytest.raises(ValueError, match="give one"):
        hg.OutputCodeClassifier(BASE, bits=3, code_size=1.0).fit(X, y)


def test_code_size_counts_bits_per_class_as_scikit_learn_does(blobs):
    X, y = blobs
    k = len(np.unique(y))
    for size in (1.0, 1.5, 2.2):
        model = hg.OutputCodeClassifier(BASE, code_size=size).fit(X, y)
        peer = OutputCodeClassifier(BASE, code_size=size, random_state=0).fit(X, y)
        assert len(model.estimators_) == len(peer.estimators_) == int(k * size)
        assert model.code_book_.shape == peer.code_book_.shape
        assert len(np.unique(model.code_, axis=0)) == k
    assert hg.OutputCodeClassifier(BASE, code_size=100.0).fit(X, y).code_.shape == (k, 2 ** (k - 1) - 1)


@pytest.mark.parametrize("reduction", [hg.OneVsRestClassifier, hg.OneVsOneClassifier])
def test_pieces_of_data_make_the_same_machine_as_all_of_it(reduction, blobs, rng):
    """A naive Bayes learner that saw the pieces has seen the whole."""
    X, y = blobs
    weights = rng.integers(4, size=len(y)).astype(float)
    whole = reduction(hg.GaussianNB(var_smoothing=0.0)).fit(X, y, sample_weight=weights)
    stream = reduction(hg.GaussianNB(var_smoothing=0.0))
    for part in np.array_split(rng.permutation(len(y)), 5):
        stream.partial_fit(X[part], y[part], classes=np.unique(y), sample_weight=weights[part])
    np.testing.assert_allclose(stream.decision_function(X), whole.decision_function(X), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(stream.classes_, whole.classes_)


@pytest.mark.parametrize(
    "pair", [(hg.OneVsRestClassifier, OneVsRestClassifier), (hg.OneVsOneClassifier, OneVsOneClassifier)]
)
def test_pieces_of_data_in_the_order_scikit_learn_shows_them(pair, blobs):
    X, y = blobs[0], np.unique(blobs[1], return_inverse=True)[1]  # its one-vs-one takes numbers only
    mine, peer = (kind(SGDClassifier(random_state=0)) for kind in pair)
    for part in np.array_split(np.arange(len(y)), 4):
        mine.partial_fit(X[part], y[part], np.unique(y))
        peer.partial_fit(X[part], y[part], np.unique(y))
    for a, b in zip(mine.estimators_, peer.estimators_):
        # Which of a pair is called positive differs, and with it the sign.
        np.testing.assert_allclose(np.abs(a.coef_), np.abs(b.coef_), rtol=1e-10)
        np.testing.assert_allclose(np.abs(a.intercept_), np.abs(b.intercept_), rtol=1e-10)


def test_pieces_need_a_learner_and_labels_that_allow_them(rng):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 3
    assert not hasattr(hg.OneVsRestClassifier(BASE), "partial_fit")
    for reduction in (hg.OneVsRestClassifier, hg.OneVsOneClassifier):
        with pytest.raises(ValueError, match="classes"):
            reduction(hg.GaussianNB()).partial_fit(X, y)
        with pytest.raises(ValueError, match="not in classes"):
            reduction(hg.GaussianNB()).partial_fit(X, y, [0, 1])
        with pytest.raises(ValueError, match="at least two"):
            reduction(hg.GaussianNB()).partial_fit(X, y, [0])
