"""Singular, repeated, huge and tiny inputs: a finite answer, or an error of this library that names the remedy."""

import warnings
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone

import hinge as hg

SIZE = 20


def inputs(rng):
    X = rng.normal(size=(SIZE, 3))
    return {
        "zeros": np.zeros((SIZE, 3)),
        "repeated": np.repeat(X[:4], 5, axis=0),
        "huge": X * 1e150,
        "tiny": X * 1e-150,
        "constant": np.full((SIZE, 3), 7.0),
        "collinear": X[:, :1] @ np.ones((1, 3)),
        "far": X + 1e12,
        "wide": rng.normal(size=(SIZE, 60)),
    }


def targets(rng):
    return {"real": rng.normal(size=SIZE), "zero": np.zeros(SIZE), "huge": 1e200 * rng.normal(size=SIZE),
            "tiny": 1e-250 * rng.normal(size=SIZE), "outlier": np.r_[np.zeros(SIZE - 1), 1e30]}  # fmt: skip


MODELS = {
    "ridge, no penalty": hg.KernelRidge(alpha=0.0),
    "ridge, no penalty, rbf": hg.KernelRidge(alpha=0.0, kernel="rbf", loo=True),
    "ridge, tiny penalty": hg.KernelRidge(alpha=1e-300, kernel="rbf"),
    "ridge path": hg.KernelRidge(kernel="poly", alphas=[1e-12, 1.0]),
    "SVR": hg.SVR(kernel="linear", C=1e10, max_iter=5),
    "least absolute": hg.Learner(hg.RKHS(hg.kernels.Polynomial(2)), hg.Absolute(), hg.L2(1e-3), max_iter=5),
    "centres": hg.Learner(hg.RKHS(hg.kernels.RBF(1.0), centres=9), hg.Squared(), hg.L2(1e-9)),
    "process, no noise": hg.GaussianProcessRegressor(alpha=0.0),
    "process, standardised": hg.GaussianProcessRegressor(hg.kernels.Matern(1.0, 0.7), normalize_y=True),
    "ARDRegression": hg.ARDRegression(compute_score=True),
    "BayesianRidge": hg.BayesianRidge(compute_score=True),
    "Bayesian, evidence": hg.BayesianLinearRegression(),
    "Bayesian, given": hg.BayesianLinearRegression(1.0, 1.0),
    "Bayesian, conjugate": hg.BayesianLinearRegression(1.0, "conjugate"),
}


def outcome(model, X, y, options):
    """Predictions, or the error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return clone(model).fit(X, y, **options).predict(X)
        except ValueError as error:
            return error


@pytest.mark.parametrize("name", MODELS)
def test_a_finite_answer_or_our_own_error(name, rng):
    ours = ("rescale", "scale", "raise alpha", "singular", "overflow", "too large", "too few")
    weights = 10.0 ** rng.uniform(-200, 200, SIZE)
    for X, y, options in product(
        inputs(rng).values(), targets(rng).values(), [{}] if "process" in name else [{}, {"sample_weight": weights}]
    ):
        found = outcome(MODELS[name], X, y, options)
        if isinstance(found, ValueError):  # LinAlgError is one, and so are SciPy's "infs or NaNs"
            # For covariances that are not positive definite it has scikit-learn's type, and our words.
            assert type(found) is ValueError or "Raise alpha" in str(found)
            assert any(word in str(found).lower() for word in ours), found
        else:
            assert np.all(np.isfinite(found)), (X, y, options)


def test_without_penalty_the_least_squares_function_of_least_norm(rng):
    """Linear kernel, fewer features than examples: the least squares solution through the origin, of least norm."""
    X = rng.normal(size=(30, 3))
    X = np.column_stack([X, X[:, 0] + X[:, 1]])  # a singular kernel of singular features
    y, new = rng.normal(size=30), rng.normal(size=(7, 4))
    s = rng.integers(1, 4, 30).astype(float)
    for weights in (None, s):
        root = np.ones(30) if weights is None else np.sqrt(weights)
        w = np.linalg.pinv(root[:, None] * X, rcond=1e-10) @ (root * y)
        model = hg.KernelRidge(alpha=0.0).fit(X, y, weights)
        np.testing.assert_allclose(model.predict(new), new @ w, atol=1e-8)
        assert model.certificate_.kind == "stationarity"
        assert model.certificate_.converged
    # As the penalty vanishes, ridge regression leads there.
    limit, near = (hg.KernelRidge(alpha=alpha).fit(X, y).predict(new) for alpha in (0.0, 1e-9))
    # |f_α(x) − f_0(x)| = α |x'(X'X + αI)⁻¹ w| ≤ α ‖x‖ ‖w‖ / σ², and rounding of K + αI: ε ‖K‖/α of the prediction.
    values = np.linalg.svd(X, compute_uv=False)
    w = np.linalg.pinv(X, rcond=1e-10) @ y
    bias = 1e-9 * np.linalg.norm(new, axis=1) * np.linalg.norm(w) / values[2] ** 2
    rounding = np.finfo(float).eps * values[0] ** 2 / 1e-9 * np.linalg.norm(new, axis=1) * np.linalg.norm(w)
    assert np.all(np.abs(near - limit) <= bias + 30 * rounding)


def test_a_regular_kernel_without_penalty_interpolates(rng):
    X, y = rng.normal(size=(15, 2)), rng.normal(size=(15, 2))
    model = hg.KernelRidge(alpha=0.0, kernel="laplacian", gamma=1.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-9)


def test_one_penalty_per_target(rng):
    X, Y = rng.normal(size=(25, 3)), rng.normal(size=(25, 2))
    for weights in (None, rng.uniform(0.5, 2.0, 25)):
        both = hg.KernelRidge(alpha=[0.1, 10.0], kernel="rbf", loo=True).fit(X, Y, weights)
        assert both.certificate_.kind == "gap"
        assert both.certificate_.converged
        for j, alpha in enumerate((0.1, 10.0)):
            one = hg.KernelRidge(alpha=alpha, kernel="rbf", loo=True).fit(X, Y[:, j], weights)
            np.testing.assert_allclose(both.dual_coef_[:, j], one.dual_coef_, atol=1e-9)
            np.testing.assert_allclose(both.loo_predictions_[:, j], one.loo_predictions_, atol=1e-8)
    with pytest.raises(ValueError, match="one per target"):
        hg.KernelRidge(alpha=[0.1, 1.0, 10.0]).fit(X, Y)
