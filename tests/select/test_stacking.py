"""Stacking: the last estimator sees out-of-fold predictions only, as scikit-learn's does."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import sklearn.ensemble as theirs
from sklearn.model_selection import KFold, ShuffleSplit, cross_val_predict

import hinge as hg

MEMBERS = [
    ("linear", hg.LogisticRegression()),
    ("bayes", hg.GaussianNB()),
    ("tree", hg.DecisionTreeClassifier(max_depth=2)),
]
REGRESSORS = [("linear", hg.Ridge()), ("tree", hg.DecisionTreeRegressor(max_depth=3))]


@pytest.fixture
def data(rng):
    X = rng.normal(size=(160, 4))
    return X, X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=160)


def labels(signal, k):
    edges = np.quantile(signal, np.linspace(0, 1, k + 1)[1:-1])
    return np.array(["x", "y", "z"])[np.digitize(signal, edges)]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("passthrough", [False, True])
@pytest.mark.parametrize("method", ["auto", "predict_proba", "predict"])
def test_classifiers_are_stacked_as_in_scikit_learn(k, passthrough, method, data):
    X, signal = data
    y = labels(signal, k)
    mine, other = (
        module.StackingClassifier(
            MEMBERS, hg.LogisticRegression(), stack_method=method, passthrough=passthrough
        ).fit(X, y)
        for module in (hg, theirs)
    )  # fmt: skip
    np.testing.assert_allclose(mine.predict_proba(X), other.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(mine.transform(X), other.transform(X), atol=1e-8)
    np.testing.assert_array_equal(mine.predict(X), other.predict(X))
    assert mine.stack_method_ == other.stack_method_
    assert list(mine.get_feature_names_out()) == list(other.get_feature_names_out())


@pytest.mark.parametrize("passthrough", [False, True])
def test_regressors_are_stacked_as_in_scikit_learn(passthrough, data):
    X, y = data
    mine, other = (
        module.StackingRegressor(REGRESSORS, hg.RidgeCV(), cv=4, passthrough=passthrough).fit(X, y)
        for module in (hg, theirs)
    )
    np.testing.assert_allclose(mine.predict(X), other.predict(X), atol=1e-8)
    assert type(hg.StackingRegressor(REGRESSORS).fit(X, y).final_estimator_) is hg.RidgeCV


def test_the_last_estimator_sees_predictions_out_of_fold(data):
    X, y = data
    folds = KFold(4, shuffle=True, random_state=0)
    model = hg.StackingRegressor(REGRESSORS, hg.LinearRegression(), cv=folds).fit(X, y)
    Z = np.column_stack([cross_val_predict(member, X, y, cv=folds) for _, member in REGRESSORS])
    np.testing.assert_allclose(model.final_estimator_.coef_, hg.LinearRegression().fit(Z, y).coef_, atol=1e-10)


def test_an_example_does_not_leak_into_its_own_row(rng):
    """A member that remembers its examples is worth nothing out of fold where the labels are noise."""
    X, y = rng.normal(size=(300, 3)), rng.normal(size=300)
    model = hg.StackingRegressor([("memory", hg.KNeighborsRegressor(1))], hg.LinearRegression()).fit(X, y)
    assert abs(model.final_estimator_.coef_[0]) < 0.3
    assert model.score(X, y) < 0.6


def test_members_that_are_fitted_already(data):
    X, signal = data
    y = labels(signal, 3)
    members = [(name, member.fit(X[:80], y[:80])) for name, member in MEMBERS]
    for method in ("auto", "predict"):
        model = hg.StackingClassifier(members, cv="prefit", stack_method=method).fit(X[80:], y[80:])
        assert model.estimators_[0] is members[0][1]
        assert model.score(X[80:], y[80:]) > 0.5
    with pytest.raises(Exception, match="not fitted"):
        hg.StackingClassifier([("new", hg.GaussianNB())], cv="prefit").fit(X, y)


def test_a_fold_without_a_class(rng):
    X = rng.normal(size=(60, 2))
    y = np.repeat([0, 1, 2], 20)
    model = hg.StackingClassifier([("bayes", hg.GaussianNB())], cv=KFold(3)).fit(X, y)  # each fold leaves out a class
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="lacks one of the classes"):
        hg.StackingClassifier([("svm", hg.LinearSVC())], cv=KFold(3)).fit(X, y)


def test_sparse_inputs_pass_through(data):
    X, signal = data
    y = labels(signal, 2)
    members = [("linear", hg.LogisticRegression())]
    sparse, dense = (hg.StackingClassifier(members, passthrough=True).fit(Z, y) for Z in (scipy.sparse.csr_array(X), X))
    assert scipy.sparse.issparse(sparse.transform(scipy.sparse.csr_array(X)))
    np.testing.assert_allclose(sparse.predict_proba(scipy.sparse.csr_array(X)), dense.predict_proba(X), atol=1e-5)


def test_errors_name_the_remedy(data):
    X, signal = data
    y = labels(signal, 2)
    with pytest.raises(ValueError, match="exactly once"):
        hg.StackingClassifier(MEMBERS, cv=ShuffleSplit(3, random_state=0)).fit(X, y)
    with pytest.raises(ValueError, match="should be a classifier"):
        hg.StackingClassifier(MEMBERS, hg.Ridge()).fit(X, y)
    with pytest.raises(ValueError, match="should be a regressor"):
        hg.StackingRegressor(REGRESSORS, hg.LogisticRegression()).fit(X, signal)
    with pytest.raises(ValueError, match="does not implement the method"):
        hg.StackingClassifier([("svm", hg.LinearSVC())], stack_method="predict_proba").fit(X, y)
