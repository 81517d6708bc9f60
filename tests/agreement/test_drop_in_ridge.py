"""RidgeCV and RidgeClassifier(CV) where code written for scikit-learn takes them: interpolation, shapes, several labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import LeaveOneOut, cross_val_predict

import hinge as hg


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(12, 11), (12, 12), (12, 40)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_left_out_errors_of_fits_that_interpolate(rng, shape, fit_intercept, weighted):
    """Residual and 1 − leverage vanish together with α: their ratio is still the left-out residual."""
    X, y = rng.normal(size=shape), rng.normal(size=shape[0])
    weights = rng.uniform(0.2, 1.0, size=len(y)) if weighted else None
    model = hg.RidgeCV([1e-9], fit_intercept=fit_intercept, store_cv_results=True).fit(X, y, sample_weight=weights)
    ridge = linear_model.Ridge(1e-9, fit_intercept=fit_intercept, solver="svd")
    params = None if weights is None else {"sample_weight": weights}
    left_out = cross_val_predict(ridge, X, y, cv=LeaveOneOut(), params=params)
    if (shape[1] >= shape[0]) or not fit_intercept:  # otherwise a left-out fit is nearly singular in scikit-learn
        np.testing.assert_allclose(model.cv_results_[:, 0], (y - left_out) ** 2, rtol=1e-4, atol=1e-8)
    assert np.all(np.isfinite(model.cv_results_))


@pytest.mark.parametrize("targets", [None, 1, 3])
@pytest.mark.parametrize("per_target", [False, True])
def test_shapes_of_results(rng, targets, per_target):
    X = rng.normal(size=(15, 4))
    y = rng.normal(size=15 if targets is None else (15, targets))
    options = {"alphas": [0.1, 1.0], "store_cv_results": True, "alpha_per_target": per_target}
    ours, theirs = hg.RidgeCV(**options).fit(X, y), linear_model.RidgeCV(**options).fit(X, y)
    for name in ("cv_results_", "alpha_", "intercept_", "coef_"):
        assert np.shape(getattr(ours, name)) == np.shape(getattr(theirs, name)), name
    np.testing.assert_allclose(ours.cv_results_, theirs.cv_results_)


@pytest.mark.parametrize("option", ["store_cv_results", "alpha_per_target"])
def test_options_that_need_leave_one_out(rng, option):
    with pytest.raises(ValueError, match=f"cv!=None and {option}=True"):
        hg.RidgeCV(cv=3, **{option: True}).fit(rng.normal(size=(9, 2)), rng.normal(size=9))


@pytest.mark.parametrize("estimator", [hg.RidgeCV, hg.RidgeClassifierCV])
def test_no_penalty_is_a_candidate_with_folds_only(rng, estimator):
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 2
    assert estimator([0.0, 1.0], cv=3).fit(X, y).alpha_ in (0.0, 1.0)
    with pytest.raises(ValueError, match=r"alphas\[0\] == 0.0"):
        estimator([0.0, 1.0]).fit(X, y)


@pytest.mark.filterwarnings("ignore", category=UndefinedMetricWarning)
def test_a_score_that_is_undefined_chooses_the_first(rng):
    """R² of one example does not exist; scikit-learn takes the first strength."""
    X, y = rng.normal(size=(5, 2)), rng.normal(size=5)
    ours, theirs = hg.RidgeCV([3.0, 1.0], cv=5).fit(X, y), linear_model.RidgeCV([3.0, 1.0], cv=5).fit(X, y)
    assert ours.alpha_ == theirs.alpha_ == 3.0
    assert np.isnan(ours.best_score_)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("name", ["RidgeClassifier", "RidgeClassifierCV"])
def test_several_labels(rng, name, class_weight):
    X = rng.normal(size=(60, 5))
    Y = (X @ rng.normal(size=(5, 3)) + 0.1 * rng.normal(size=(60, 3)) > 0).astype(int)
    ours = getattr(hg, name)(class_weight=class_weight).fit(X, Y)
    theirs = getattr(linear_model, name)(class_weight=class_weight).fit(X, Y)
    if name == "RidgeClassifier" or class_weight is None:  # left-out errors are weighted here
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-5, atol=1e-8)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)


@pytest.mark.parametrize("options", [{"scoring": "accuracy"}, {"cv": 3}], ids=str)
def test_several_labels_are_scored(rng, options):
    X = rng.normal(size=(40, 5))
    Y = (X[:, :3] > 0).astype(int)
    model = hg.RidgeClassifierCV(**options).fit(X, Y)
    assert 0.3 < model.best_score_ <= 1
