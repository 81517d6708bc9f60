"""Multiclass estimators keep scikit-learn's conventions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
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
    with pytest.raises(ValueError, match="C="):
        hg.MulticlassSVM(C=0).fit(X, y)
    with pytest.raises(ValueError, match="vote="):
        hg.OneVsOneClassifier(BASE, vote="loud").fit(X, y)
    with pytest.raises(ValueError, match="bits="):
        hg.OutputCodeClassifier(BASE, bits=1).fit(X, y)
