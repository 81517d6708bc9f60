"""Voting: the formulas, and the decisions of scikit-learn's namesakes for the same members."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.ensemble as theirs
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier

import hinge as hg


def classifiers():
    return [("a", hg.LogisticRegression()), ("b", hg.GaussianNB()), ("c", KNeighborsClassifier(3))]


def regressors():
    return [("a", hg.Ridge()), ("b", hg.DecisionTreeRegressor(max_depth=3)), ("c", hg.KNeighborsRegressor(4))]


@pytest.fixture
def data(rng):
    X = rng.normal(size=(150, 4))
    return X, np.array(["x", "y", "z"])[np.digitize(X[:, 0] + 0.5 * rng.normal(size=150), [-0.4, 0.4])]


@pytest.mark.parametrize("voting", ["hard", "soft"])
@pytest.mark.parametrize("weights", [None, [1, 0.5, 2]])
@pytest.mark.parametrize("flatten", [True, False])
def test_classifiers_vote_as_in_scikit_learn(voting, weights, flatten, data):
    X, y = data
    mine, other = (
        module.VotingClassifier(classifiers(), voting=voting, weights=weights, flatten_transform=flatten).fit(X, y)
        for module in (hg, theirs)
    )
    np.testing.assert_array_equal(mine.predict(X), other.predict(X))
    np.testing.assert_allclose(mine.transform(X), other.transform(X))
    assert hasattr(mine, "predict_proba") == (voting == "soft")
    if voting == "soft":
        np.testing.assert_allclose(mine.predict_proba(X), other.predict_proba(X))
    if flatten:
        assert list(mine.get_feature_names_out()) == list(other.get_feature_names_out())


def test_the_vote_is_the_argmax_of_the_formula(data):
    X, y = data
    w = np.array([0.2, 1.0, 0.7])
    hard = hg.VotingClassifier(classifiers(), weights=w).fit(X, y)
    each = np.stack([hard.classes_[member.predict(X)] for member in hard.estimators_])
    counts = np.stack([w @ (each == label) for label in hard.classes_], axis=1)
    np.testing.assert_array_equal(hard.predict(X), hard.classes_[np.argmax(counts, axis=1)])


def test_regressors_are_averaged_and_the_spread_is_gained(rng):
    X = rng.normal(size=(200, 3))
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=200)
    w = np.array([1.0, 2.0, 3.0])
    mine, other = (module.VotingRegressor(regressors(), weights=w).fit(X, y) for module in (hg, theirs))
    np.testing.assert_allclose(mine.predict(X), other.predict(X))
    each, together = mine.transform(X), mine.predict(X)
    share = w / w.sum()
    np.testing.assert_allclose(together, each @ share)
    spread = ((each - together[:, None]) ** 2) @ share
    np.testing.assert_allclose((y - together) ** 2, ((y[:, None] - each) ** 2) @ share - spread, atol=1e-12)


def test_members_are_reached_and_dropped_by_name(data):
    X, y = data
    model = hg.VotingClassifier(classifiers(), voting="soft", weights=[1, 5, 1])
    model.set_params(a__C=0.125, b="drop").fit(X, y)
    assert model.named_estimators["a"].C == model.named_estimators_.a.C == 0.125
    assert model.named_estimators_["b"] == "drop"
    assert len(model.estimators_) == 2
    p = np.mean([member.predict_proba(X) for member in model.estimators_], axis=0)
    np.testing.assert_allclose(model.predict_proba(X), p)
    search = GridSearchCV(model, {"a__C": [0.01, 1.0], "b": ["drop", hg.GaussianNB()]}, cv=2).fit(X, y)
    assert set(search.best_params_) == {"a__C", "b"}


@pytest.mark.parametrize(
    ("members", "match"),
    [
        ([], "non-empty list"),
        ([("a", hg.Ridge())], "should be a classifier"),
        ([("a", "drop")], "All estimators are dropped"),
        ([("a", hg.GaussianNB()), ("a", hg.GaussianNB())], "not unique"),
        ([("voting", hg.GaussianNB())], "conflict"),
        ([("a__b", hg.GaussianNB())], "must not contain __"),
    ],
)
def test_wrong_lists_of_members_are_refused(members, match, data):
    for cls in (hg.VotingClassifier, hg.StackingClassifier):
        if match == "should be a classifier" and cls is hg.StackingClassifier:
            members = [("a", hg.StandardScaler())]  # regressors of the class numbers are admitted
        if members and members[0][0] == "voting" and cls is hg.StackingClassifier:
            members = [("cv", members[0][1])]
        with pytest.raises(ValueError, match=match):
            cls(members).fit(*data)


def test_weights_need_members_that_take_them(data):
    X, y = data
    for cls in (hg.VotingClassifier, hg.StackingClassifier):
        with pytest.raises(TypeError, match="does not support sample weights"):
            cls(classifiers()).fit(X, y, sample_weight=np.ones(len(y)))
    with pytest.raises(ValueError, match="weights must be equal"):
        hg.VotingClassifier(classifiers(), weights=[1.0]).fit(X, y)
