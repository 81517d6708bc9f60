"""Linear models against scikit-learn's at the same objective."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.linear_model
import sklearn.svm

import hinge as hg

LINEAR, SVM = sklearn.linear_model, sklearn.svm


@pytest.fixture
def data(rng):
    X = rng.normal(size=(300, 8)) + 1.0
    y = X @ (rng.normal(size=8) * (rng.random(8) < 0.6)) + rng.normal(size=300)
    return X, y, rng.integers(0, 4, size=300).astype(float)


def same(ours, theirs, X, y, s, atol):
    ours.fit(X, y, sample_weight=s)
    theirs.fit(X, y, sample_weight=s)
    assert ours.coef_.shape == theirs.coef_.shape
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=atol)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=10 * atol)
    assert ours.certificate_.converged


@pytest.mark.mission("W1", "W2", "W3", "W4")
@pytest.mark.parametrize(
    ("ours", "theirs", "atol"),
    [
        (hg.LinearRegression(), LINEAR.LinearRegression(), 1e-9),
        (hg.LinearRegression(positive=True), LINEAR.LinearRegression(positive=True), 1e-4),
        (hg.Ridge(2.0), LINEAR.Ridge(2.0), 1e-7),
        (hg.RidgeCV(alphas=[0.7], cv=3), LINEAR.RidgeCV(alphas=[0.7], cv=3), 1e-7),
        (hg.Lasso(0.1, tol=1e-10), LINEAR.Lasso(0.1, tol=1e-12), 1e-6),
        (hg.ElasticNet(0.1, tol=1e-10), LINEAR.ElasticNet(0.1, tol=1e-12), 1e-6),
        (hg.ElasticNet(0.1, positive=True, tol=1e-10), LINEAR.ElasticNet(0.1, positive=True, tol=1e-12), 1e-6),
        (hg.HuberRegressor(alpha=0.1), LINEAR.HuberRegressor(alpha=0.1, tol=1e-9, max_iter=10000), 1e-3),
        (
            hg.QuantileRegressor(quantile=0.3, alpha=0.01, tol=1e-9),
            LINEAR.QuantileRegressor(quantile=0.3, alpha=0.01),
            1e-4,
        ),
    ],
    ids=lambda v: repr(v)[:40],
)
def test_regressors(data, ours, theirs, atol):
    same(ours, theirs, *data, atol)


@pytest.mark.mission("W2")
@pytest.mark.parametrize("cv", [None, 3])
def test_ridge_chooses_the_same_strength(data, cv):
    """Without weights: with them scikit-learn weights the fits of the folds, and not their scores."""
    X, y, _ = data
    ours, theirs = hg.RidgeCV(np.logspace(-2, 3, 6), cv=cv).fit(X, y), LINEAR.RidgeCV(np.logspace(-2, 3, 6), cv=cv)
    theirs.fit(X, y)
    assert ours.alpha_ == pytest.approx(theirs.alpha_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)


@pytest.mark.mission("W5", "W7")
@pytest.mark.parametrize(
    ("ours", "theirs", "atol"),
    [
        (hg.LogisticRegression(tol=1e-10), LINEAR.LogisticRegression(tol=1e-10, max_iter=10000), 1e-4),
        (
            hg.LogisticRegression(C=0.1, class_weight="balanced", tol=1e-10),
            LINEAR.LogisticRegression(C=0.1, class_weight="balanced", tol=1e-10, max_iter=10000),
            1e-4,
        ),
        (
            hg.LogisticRegression(C=0.1, l1_ratio=1.0, fit_intercept=False, tol=1e-9),
            LINEAR.LogisticRegression(C=0.1, l1_ratio=1.0, fit_intercept=False, tol=1e-9, solver="liblinear"),
            1e-3,
        ),
        (
            hg.LinearSVC(fit_intercept=False, tol=1e-9),
            SVM.LinearSVC(fit_intercept=False, tol=1e-9, max_iter=100000),
            1e-4,
        ),
        (
            hg.LinearSVC("l1", fit_intercept=False, tol=1e-9),
            SVM.LinearSVC("l1", fit_intercept=False, dual=False, tol=1e-8, max_iter=100000),
            1e-3,
        ),
    ],
    ids=lambda v: repr(v)[:60],
)
def test_classifiers(data, ours, theirs, atol):
    X, y, s = data
    same(ours, theirs, X, y > np.median(y), s + 1.0, atol)


@pytest.mark.mission("W5", "M2")
def test_multinomial(data):
    X, y, _ = data
    classes = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    same(
        hg.LogisticRegression(tol=1e-9), LINEAR.LogisticRegression(tol=1e-9, max_iter=10000), X, classes,
        np.ones(len(y)), 1e-2,
    )  # fmt: skip


@pytest.mark.mission("W3")
def test_paths(data):
    X, y, _ = data
    alphas, coefs, _ = hg.lasso_path(X, y, alphas=15, tol=1e-10)
    theirs = LINEAR.lasso_path(X, y, alphas=alphas, tol=1e-12)
    np.testing.assert_allclose(coefs, theirs[1], atol=1e-5)
    ours, sk = hg.LassoCV(cv=4, tol=1e-9).fit(X, y), LINEAR.LassoCV(cv=4, tol=1e-10).fit(X, y)
    assert ours.alpha_ == pytest.approx(sk.alpha_, rel=1e-6)
    np.testing.assert_allclose(ours.mse_path_, sk.mse_path_, rtol=1e-4)
    tasks = np.column_stack([y, X[:, 0] - y])
    np.testing.assert_allclose(
        hg.MultiTaskElasticNet(0.2, tol=1e-10).fit(X, tasks).coef_,
        LINEAR.MultiTaskElasticNet(0.2, tol=1e-12).fit(X, tasks).coef_,
        atol=1e-4,
    )


@pytest.mark.mission("W2")
def test_leave_one_out(data):
    X, y, _ = data
    ours = hg.RidgeCV([0.1, 1.0, 10.0], store_cv_results=True).fit(X, y)
    theirs = LINEAR.RidgeCV([0.1, 1.0, 10.0], store_cv_results=True).fit(X, y)
    assert ours.alpha_ == theirs.alpha_
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
    np.testing.assert_allclose(ours.cv_results_, theirs.cv_results_, rtol=1e-7)
