"""Metadata routing of committees, stacks and thresholds: each part gets what it has requested, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.ensemble as theirs
from sklearn import config_context
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GroupKFold

import hinge as hg


@pytest.fixture
def data(rng):
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    return X, y, rng.integers(1, 5, size=120).astype(float)


def members():
    return [
        ("weighted", hg.LogisticRegression().set_fit_request(sample_weight=True)),
        ("plain", hg.LogisticRegression().set_fit_request(sample_weight=False)),
    ]


@pytest.mark.parametrize("cls", [hg.VotingClassifier, hg.StackingClassifier])
def test_weights_reach_the_members_that_have_requested_them(cls, data):
    X, y, weight = data
    with config_context(enable_metadata_routing=True):
        model = cls(members()).fit(X, y, sample_weight=weight)
    fitted = model.named_estimators_
    np.testing.assert_array_equal(fitted.weighted.coef_, hg.LogisticRegression().fit(X, y, weight).coef_)
    np.testing.assert_array_equal(fitted.plain.coef_, hg.LogisticRegression().fit(X, y).coef_)


def test_the_last_estimator_is_weighted_only_if_it_has_requested_it(data):
    X, y, weight = data
    with config_context(enable_metadata_routing=True):
        plain = hg.LogisticRegression()
        requesting = hg.LogisticRegression().set_fit_request(sample_weight=True)
        stacks = [
            hg.StackingClassifier(members(), last, cv=4).fit(X, y, sample_weight=weight) for last in (plain, requesting)
        ]
    inputs = stacks[0].transform(X)
    np.testing.assert_array_equal(inputs, stacks[1].transform(X))
    assert not np.array_equal(stacks[0].final_estimator_.coef_, stacks[1].final_estimator_.coef_)


@pytest.mark.parametrize(
    "model",
    [
        hg.VotingClassifier([("a", hg.GaussianNB())]),
        hg.StackingClassifier([("a", hg.GaussianNB())]),
        hg.FixedThresholdClassifier(hg.GaussianNB()),
        hg.TunedThresholdClassifierCV(hg.GaussianNB()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_arguments_without_a_request_are_refused(model, data):
    X, y, weight = data
    with pytest.raises(ValueError, match="enable_metadata_routing=True"):
        model.fit(X, y, color=weight)
    with (
        config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match=r"sample_weight.*not explicitly set as requested"),
    ):
        model.fit(X, y, sample_weight=weight)


def test_classifier_splitter_and_measure_of_a_tuned_threshold_get_their_own(data):
    X, y, weight = data
    groups = np.arange(120) // 10
    with config_context(enable_metadata_routing=True):
        tuned = hg.TunedThresholdClassifierCV(
            hg.LogisticRegression().set_fit_request(sample_weight=False),
            scoring=make_scorer(f1_score).set_score_request(sample_weight=True),
            cv=GroupKFold(4),
            store_cv_results=True,
        ).fit(X, y, sample_weight=weight, groups=groups)
    at, curves = tuned.cv_results_["thresholds"], []
    for learn, test in GroupKFold(4).split(X, y, groups):
        p = hg.LogisticRegression().fit(X[learn], y[learn]).predict_proba(X[test])[:, 1]
        own = np.linspace(p.min(), p.max(), 100)
        values = [f1_score(y[test], p >= t, sample_weight=weight[test]) for t in own]
        curves.append(np.interp(at, own, values))
    np.testing.assert_allclose(tuned.cv_results_["scores"], np.mean(curves, axis=0), rtol=1e-12)


def test_several_labels_are_stacked_as_in_scikit_learn(rng):
    X = rng.normal(size=(150, 4))
    Y = (X[:, :3] + 0.5 * rng.normal(size=(150, 3)) > 0).astype(int)
    layers = [("ridge", hg.RidgeClassifier()), ("near", hg.KNeighborsClassifier(7))]
    mine, other = (
        module.StackingClassifier(layers, hg.KNeighborsClassifier(5), cv=4).fit(X, Y) for module in (hg, theirs)
    )
    assert mine.stack_method_ == ["decision_function", "predict_proba"]
    assert mine.transform(X).shape == (150, 6)
    # scikit-learn's folds shuffle nothing for several labels, and neither do ours.
    np.testing.assert_array_equal(mine.predict(X), other.predict(X))
    assert [list(classes) for classes in mine.classes_] == [[0, 1]] * 3


def test_a_regressor_of_class_numbers_can_be_a_layer_of_a_stack(rng):
    X = rng.normal(size=(150, 3))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = hg.StackingClassifier([("line", hg.Ridge())], hg.DecisionTreeClassifier(max_depth=3)).fit(X, y)
    np.testing.assert_allclose(
        model.transform(X)[:, 0], hg.Ridge().fit(X, np.searchsorted(model.classes_, y)).predict(X)
    )
    assert model.score(X, y) > 0.9


def test_a_threshold_for_a_classifier_that_is_fitted_needs_no_fit(data):
    X, y, _ = data
    base = hg.LogisticRegression().fit(X, y)
    model = hg.FixedThresholdClassifier(base, threshold=0.3)
    np.testing.assert_array_equal(model.predict(X), (base.predict_proba(X)[:, 1] >= 0.3).astype(int))
    np.testing.assert_array_equal(model.classes_, [0, 1])
    with pytest.raises(AttributeError, match="not fitted"):
        _ = hg.FixedThresholdClassifier(hg.LogisticRegression()).classes_


def test_voting_prints_the_time_of_each_member(capsys, data):
    X, y, _ = data
    hg.VotingClassifier([("a", hg.GaussianNB()), ("b", hg.LogisticRegression())], verbose=True).fit(X, y)
    printed = capsys.readouterr().out
    assert "(1 of 2) Processing a, total=" in printed
    assert "(2 of 2) Processing b, total=" in printed


def test_voting_refuses_several_labels(rng):
    Y = rng.integers(0, 2, size=(30, 2))
    with pytest.raises(NotImplementedError, match="multi-output"):
        hg.VotingClassifier([("near", hg.KNeighborsClassifier())]).fit(rng.normal(size=(30, 2)), Y)
