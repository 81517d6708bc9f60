"""Multiclass estimators keep scikit-learn's conventions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_blobs
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
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
        np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-10)
        np.testing.assert_allclose(a.intercept_, b.intercept_, rtol=1e-10)


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


@pytest.fixture
def labelled(rng):
    X = np.abs(rng.normal(size=(80, 6)))
    scores = X @ rng.normal(size=(6, 4))
    return X, (scores > np.median(scores, axis=0)).astype(int)  # every label is in half of the rows


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.coo_array, scipy.sparse.lil_matrix])
@pytest.mark.parametrize("learner", [BASE, MultinomialNB(), Ridge()], ids=lambda m: type(m).__name__)
def test_several_labels_per_row(kind, learner, labelled):
    """One learner per label, as in scikit-learn, for classifiers and for regressions of 0 and 1."""
    X, Y = labelled
    ours, theirs = (c(learner).fit(X, kind(Y)) for c in (hg.OneVsRestClassifier, OneVsRestClassifier))
    assert ours.multilabel_
    assert scipy.sparse.issparse(ours.predict(X)) == (kind is not np.asarray)
    np.testing.assert_array_equal(
        *(m.predict(X) if kind is np.asarray else m.predict(X).toarray() for m in (ours, theirs))
    )
    if hasattr(learner, "predict_proba"):
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X))
    assert ours.score(X, kind(Y)) == theirs.score(X, kind(Y))


def test_labels_that_never_change(labelled):
    X, Y = labelled
    Y = np.column_stack([Y[:, 0], np.ones(len(Y), int), np.zeros(len(Y), int)])
    with pytest.warns(UserWarning, match="Label (not )?. is present in all"):
        model = hg.OneVsRestClassifier(BASE).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X)[:, 1:], Y[:, 1:])


@pytest.mark.parametrize("reduction", [OneVsRestClassifier, OneVsOneClassifier])
@pytest.mark.parametrize("learner", [BASE, Ridge(), MultinomialNB()], ids=lambda m: type(m).__name__)
def test_learners_without_classes_vote_alike(reduction, learner, blobs):
    X, y = np.abs(blobs[0]), blobs[1]
    ours, theirs = getattr(hg, reduction.__name__)(learner).fit(X, y), reduction(learner).fit(X, y)
    if reduction is OneVsOneClassifier and isinstance(learner, Ridge):
        # scikit-learn counts no vote for a number that is neither 0 nor 1; here it votes for the nearer one.
        assert ours.score(X, y) > theirs.score(X, y)
        return
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.99
    if reduction is OneVsOneClassifier:
        np.testing.assert_array_equal(np.round(ours.decision_function(X)), np.round(theirs.decision_function(X)))


@pytest.mark.parametrize("reduction", [hg.OneVsRestClassifier, hg.OneVsOneClassifier, hg.OutputCodeClassifier])
def test_the_learner_checks_the_inputs(reduction, rng):
    """Pipelines over missing values and over text, and precomputed kernels."""
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 3
    X += 3 * np.eye(3)[y]  # a line parts each class from the others: no bias is as good as another
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    assert reduction(make_pipeline(SimpleImputer(), BASE)).fit(holes, y).score(holes, y) > 0.5
    words = [f"{['red', 'green', 'blue'][c]} car" for c in y]
    assert reduction(make_pipeline(hg.CountVectorizer(), BASE)).fit(words, y).score(words, y) == 1.0
    kernel, plain = (reduction(hg.SVC(kernel=name, tol=1e-8)) for name in ("precomputed", "linear"))
    assert kernel.__sklearn_tags__().input_tags.pairwise
    assert not plain.__sklearn_tags__().input_tags.pairwise
    np.testing.assert_array_equal(kernel.fit(X @ X.T, y).predict(X @ X.T), plain.fit(X, y).predict(X))


def test_one_class_is_predicted_of_everything(rng):
    model = hg.OneVsRestClassifier(BASE).fit(rng.normal(size=(5, 2)), ["a"] * 5)
    np.testing.assert_array_equal(model.predict(np.zeros((2, 2))), ["a", "a"])
