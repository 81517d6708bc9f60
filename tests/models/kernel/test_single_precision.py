"""Inputs in single precision: functions of kernels have the same values as for the same inputs in double precision."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import hinge as hg

SIZE = 240

REGRESSORS = {
    "SVR, linear": hg.SVR(kernel="linear"),
    "SVR, polynomial": hg.SVR(kernel="poly", degree=2, coef0=1.0, gamma=0.2),
    "SVR, large C": hg.SVR(C=1e4, epsilon=1e-3, gamma=0.2),
    "ridge, linear": hg.KernelRidge(),
    "ridge, polynomial": hg.KernelRidge(kernel="poly", degree=2, gamma=0.2),
    "ridge, tiny penalty": hg.KernelRidge(kernel="rbf", gamma=0.05, alpha=1e-9),
    "process": hg.GaussianProcessRegressor(hg.kernels.RBF(2.0), alpha=1e-8),
}
CLASSIFIERS = {
    "SVC, linear": hg.SVC(kernel="linear"),
    "SVC, polynomial": hg.SVC(kernel="poly", degree=2, coef0=1.0, gamma=0.2),
    "SVC, sum of kernels": hg.SVC(kernel=hg.kernels.RBF(0.2) + hg.kernels.Polynomial(2)),
    "NuSVC": hg.NuSVC(kernel="poly", degree=2, coef0=1.0, gamma=0.2),
    "logistic": hg.KernelLogisticRegression(kernel="poly", degree=2, coef0=1.0, gamma=0.2),
}


def problem(shift):
    rng = np.random.default_rng(3)
    X = (rng.normal(size=(SIZE, 4)) + shift).astype(np.float32)
    return X, (X - X.mean(axis=0)) @ rng.normal(size=4) + 0.5 * rng.normal(size=SIZE)


def scores(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(model).fit(X, y)
    return getattr(model, "decision_function", model.predict)(X)


@pytest.mark.mission("K3")
@pytest.mark.mission("K4")
@pytest.mark.parametrize("shift", [0.0, 30.0, 300.0])
@pytest.mark.parametrize("name", [*REGRESSORS, *CLASSIFIERS])
def test_scores_do_not_depend_on_the_precision_of_the_inputs(name, shift):
    """Values of a polynomial of points far from zero agree in their first digits: in single precision nothing else is left."""
    X, y = problem(shift)
    model = REGRESSORS.get(name) or CLASSIFIERS[name]
    y = y if name in REGRESSORS else np.digitize(y, [-1.0, 1.0]) if name == "SVC, linear" else y > 0
    single, double = (scores(model, X.astype(dtype), y) for dtype in (np.float32, np.float64))
    tol = float(getattr(model, "tol", 1e-6))
    np.testing.assert_allclose(single, double, rtol=0, atol=max(10 * tol, 1e-4) * np.std(double))


@pytest.mark.mission("K4")
def test_many_support_vectors_of_a_bounded_kernel_are_evaluated_in_single_precision():
    """The measured error decides: an RBF kernel of inputs of moderate size keeps its digits, a steep polynomial does not."""
    X, y = problem(0.0)
    assert hg.SVC(gamma=0.2).fit(X, y > 0).function_._single_suffices
    assert not hg.SVC(gamma=0.2).fit(X.astype(np.float64), y > 0).function_._single_suffices
    X, y = problem(300.0)
    assert not hg.SVR(kernel="poly", degree=2, coef0=1.0, gamma=0.2).fit(X, y).function_._single_suffices


@pytest.mark.mission("K4")
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("classes", [2, 6])
def test_linear_kernels_predict_with_their_weights(container, classes):
    X, y = problem(0.0)
    labels = np.digitize(y, np.quantile(y, np.linspace(0, 1, classes + 1)[1:-1]))
    X = container(X.astype(np.float64))
    model = hg.SVC(kernel="linear", decision_function_shape="ovo").fit(X, labels)
    w = model.coef_.toarray() if scipy.sparse.issparse(model.coef_) else model.coef_
    np.testing.assert_allclose(model.decision_function(X).reshape(SIZE, -1), X @ w.T + model.intercept_, atol=1e-9)


def test_wide_sparse_points_are_not_turned_into_weights(rng):
    """With many columns and pairs of classes the weights would take far more memory than the support vectors."""
    X = scipy.sparse.random(60, 5000, density=0.002, format="csr", random_state=0)
    model = hg.SVC(kernel="linear", decision_function_shape="ovo").fit(X, np.arange(60) % 5)
    model.decision_function(X)
    assert not any("weights" in vars(part) for part in (model.function_, *model.function_._parts))
