"""Metadata routing: learners, splitters and scorers inside our estimators get what they have requested, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import GroupKFold
from sklearn.utils.metadata_routing import MetadataRouter

import hinge as hg

FOLDED = [hg.LassoCV, hg.ElasticNetCV, hg.MultiTaskLassoCV, hg.MultiTaskElasticNetCV, hg.RidgeCV]
FOLDED += [hg.RidgeClassifierCV, hg.LogisticRegressionCV]
SCORED = [hg.RidgeCV, hg.RidgeClassifierCV, hg.LogisticRegressionCV]
REDUCED = [hg.OneVsRestClassifier, hg.OneVsOneClassifier, hg.OutputCodeClassifier]


class Recorder(ClassifierMixin, BaseEstimator):
    """A classifier that keeps the arguments of its last fits in a list."""

    def __init__(self, seen=None):
        self.seen = seen

    def __sklearn_clone__(self):
        copy = Recorder(self.seen)
        copy._metadata_request = self.get_metadata_routing()
        return copy

    def fit(self, X, y, sample_weight=None, mark=None):
        self.classes_ = np.unique(y)
        self.seen.append((len(X), sample_weight, mark))
        return self

    def decision_function(self, X):
        return X[:, 0] if len(self.classes_) == 2 else np.tile(X[:, :1], len(self.classes_))

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]


@pytest.fixture
def table(rng):
    X = rng.normal(size=(60, 3))
    return X, np.tile([0, 1, 2], 20), np.repeat(np.arange(10), 6)


def targets(cls, X, y):
    if cls.__name__.startswith("MultiTask"):
        return X[:, :2] + 1.0
    return y if cls in (hg.RidgeClassifierCV, hg.LogisticRegressionCV) else X[:, 0] + 0.1 * y


@pytest.mark.parametrize("cls", FOLDED)
def test_groups_reach_the_splitter(cls, table):
    X, y, groups = table
    model = cls(cv=GroupKFold(5))
    t = targets(cls, X, y)
    with pytest.raises(ValueError, match="routing"):
        model.fit(X, t, groups=groups)
    with config_context(enable_metadata_routing=True):
        assert isinstance(model.get_metadata_routing(), MetadataRouter)
        model.fit(X, t, groups=groups)
    by_hand = cls(cv=list(GroupKFold(5).split(X, t, groups))).fit(X, t)
    np.testing.assert_array_equal(model.coef_, by_hand.coef_)


@pytest.mark.parametrize("cls", SCORED)
@pytest.mark.parametrize("requested", [True, False])
def test_weights_reach_the_scorer_if_it_requests_them(cls, table, rng, requested):
    X, y, _ = table
    seen = []

    def measure(y_true, y_pred, sample_weight=None):
        seen.append(sample_weight)
        return 0.0

    s, t = rng.uniform(1.0, 2.0, size=60), targets(cls, X, y)
    with config_context(enable_metadata_routing=True):
        scorer = make_scorer(measure)
        with pytest.raises(UnsetMetadataPassedError):
            cls(cv=3, scoring=scorer).fit(X, t, sample_weight=s)
        seen.clear()
        cls(cv=3, scoring=scorer.set_score_request(sample_weight=requested)).fit(X, t, sample_weight=s)
    assert seen
    assert all(set(part) <= set(s) if requested else part is None for part in seen)


@pytest.mark.parametrize("cls", REDUCED)
def test_learners_get_what_they_requested(cls, table, rng):
    X, y, marks = table
    seen, s = [], rng.uniform(1.0, 2.0, size=60)
    with pytest.raises(ValueError, match="routing"):
        cls(Recorder(seen)).fit(X, y, mark=marks)
    with config_context(enable_metadata_routing=True):
        with pytest.raises(UnsetMetadataPassedError):
            cls(Recorder(seen)).fit(X, y, mark=marks)
        learner = Recorder(seen).set_fit_request(sample_weight=True, mark=True)
        cls(learner).fit(X, y, sample_weight=s, mark=marks)
        assert seen
        for rows, weights, mark in seen:
            assert len(weights) == len(mark) == rows
            assert set(zip(weights, mark)) <= set(zip(s, marks))
        seen.clear()
        cls(learner.set_fit_request(sample_weight=False, mark=False)).fit(X, y)
        assert all(weights is None and mark is None for _, weights, mark in seen)


@pytest.mark.parametrize("ensemble", [True, False])
def test_arguments_of_a_calibrated_classifier_are_cut_to_its_folds(table, ensemble):
    X, y, marks = table
    seen = []
    hg.CalibratedClassifierCV(Recorder(seen), cv=4, ensemble=ensemble).fit(X, y % 2, mark=marks)
    assert [rows for rows, *_ in seen] == [45] * 4 + ([] if ensemble else [60])
    assert all(len(mark) == rows for rows, _, mark in seen)


def test_the_score_of_a_cross_validated_logistic_regression_is_that_of_scoring(table):
    X, y, _ = table
    model = hg.LogisticRegressionCV(Cs=2, cv=3, scoring="neg_log_loss").fit(X, y)
    assert model.score(X, y) < 0
    assert 0 <= hg.LogisticRegressionCV(Cs=2, cv=3).fit(X, y).score(X, y) <= 1


def test_folds_without_a_class_calibrate_the_others(rng):
    """Out-of-fold scores of a class are missing where its classifier did not know it; its map goes without them."""
    from sklearn.model_selection import KFold

    y = np.repeat(np.arange(4), 15)
    X = rng.normal(size=(60, 2)) + 4 * np.column_stack([y % 2, y // 2])
    model = hg.CalibratedClassifierCV(hg.GaussianNB(), cv=KFold(4), ensemble=False).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    with pytest.raises(ValueError, match="does not leave two classes"):
        hg.CalibratedClassifierCV(hg.GaussianNB(), cv=KFold(16), ensemble=True).fit(X, y)
