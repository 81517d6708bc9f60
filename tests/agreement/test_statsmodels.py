"""The theory of a fit, against statsmodels: least squares to 1e-8, information criteria of GLMs."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

import hinge as hg
from hinge.problem.distributions import as_distribution


def line(rng, n=80, d=4):
    """Correlated features of different sizes, with a mean."""
    X = (rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 2.0) * np.array([1.0, 10.0, 0.1, 3.0])
    return X, X @ [0.5, 0.02, 3.0, 0.0] - 1.0 + rng.normal(size=n)


@pytest.mark.mission("W1")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_least_squares(rng, bias, weighted):
    X, y = line(rng)
    s = rng.integers(1, 4, size=len(y)) if weighted else np.ones(len(y), dtype=int)
    A = sm.add_constant(X) if bias else X
    peer = sm.OLS(np.repeat(y, s), np.repeat(A, s, axis=0)).fit()
    model = hg.LinearRegression(fit_intercept=bias).fit(X, y, sample_weight=s if weighted else None)
    known = model.inference_
    close = {"rtol": 1e-8, "atol": 1e-12}
    np.testing.assert_allclose(known.estimate, peer.params, **close)
    np.testing.assert_allclose(known.standard_error, peer.bse, **close)
    np.testing.assert_allclose(known.covariance, peer.cov_params(), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(known.t, peer.tvalues, **close)
    np.testing.assert_allclose(known.p, peer.pvalues, rtol=1e-7, atol=1e-14)
    for level in (0.5, 0.95, 0.999):
        # An end near zero is the difference of larger numbers: rounding is relative to those.
        size = 1e-8 * (np.abs(peer.params) + peer.bse)[:, None]
        assert np.all(np.abs(known.interval(level) - peer.conf_int(1.0 - level)) <= size)
    assert known.sigma2 == pytest.approx(peer.mse_resid, rel=1e-10)
    assert known.dof == peer.df_resid
    assert model.rank_ == np.linalg.matrix_rank(X)
    centred = np.repeat(X, s, axis=0)
    centred = centred - bias * centred.mean(axis=0)
    np.testing.assert_allclose(model.singular_, np.linalg.svd(centred, compute_uv=False), rtol=1e-8)
    new = X[:10] + 1.0
    table = peer.get_prediction(sm.add_constant(new, has_constant="add") if bias else new).summary_frame(alpha=0.1)
    mean, low, high = model.predict(new, interval=0.9)
    near = {"rtol": 1e-8, "atol": 1e-8 * np.abs(table[["mean", "obs_ci_lower", "obs_ci_upper"]]).to_numpy().max()}
    np.testing.assert_allclose(
        np.column_stack([mean, low, high]), table[["mean", "obs_ci_lower", "obs_ci_upper"]], **near
    )
    mean, low, high = model.predict(new, interval=0.9, kind="confidence")
    np.testing.assert_allclose(np.column_stack([low, high]), table[["mean_ci_lower", "mean_ci_upper"]], **near)


@pytest.mark.mission("W1")
@pytest.mark.filterwarnings("ignore::statsmodels.tools.sm_exceptions.SingularMatrixWarning")  # it is meant to be
def test_least_squares_with_dependent_features(rng):
    """Where weights are not unique, statsmodels' pseudo-inverse and ours give the same weights and the same errors."""
    X, y = line(rng)
    X = (X - X.mean(axis=0)) / X.std(axis=0)  # so that the constant, which we do not count in the norm, is orthogonal
    X = np.column_stack([X, X[:, 0] - X[:, 1]])
    peer = sm.OLS(y, sm.add_constant(X)).fit(method="pinv")
    known = hg.LinearRegression().fit(X, y).inference_
    assert known.rank == 5
    np.testing.assert_allclose(known.estimate, peer.params, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(known.standard_error, peer.bse, rtol=1e-8)
    assert known.sigma2 == pytest.approx(peer.mse_resid, rel=1e-10)


@pytest.mark.mission("P1")
@pytest.mark.parametrize("distribution", ["poisson", "bernoulli", "gaussian", "gamma"])
def test_information_criteria(rng, distribution):
    """AIC = 2k − 2 log L and BIC = k log n − 2 log L. We count a dispersion that was fitted among the k, as R does;
    statsmodels does not."""
    X = rng.normal(size=(300, 3))
    z = 0.5 * X @ [1.0, -0.5, 0.2] + 0.3
    y, family = {
        "poisson": (rng.poisson(np.exp(z)), sm.families.Poisson()),
        "bernoulli": (rng.random(300) < 1 / (1 + np.exp(-z)), sm.families.Binomial()),
        "gaussian": (z + rng.normal(size=300), sm.families.Gaussian()),
        "gamma": (rng.gamma(2.0, np.exp(z) / 2.0), sm.families.Gamma(sm.families.links.Log())),
    }[distribution]
    known = hg.GLM(distribution, tol=1e-12).fit(X, y.astype(float)).inference_
    peer = sm.GLM(y.astype(float), sm.add_constant(X), family=family).fit(tol=1e-14)
    fitted_dispersion = int(known.dispersion_estimated)
    # statsmodels' likelihood takes a dispersion; ours is at the one that makes it largest.
    scale = (
        1.0
        if not fitted_dispersion
        else as_distribution(distribution).best_dispersion(y.astype(float), peer.mu, np.full(300, 1 / 300))
    )
    likelihood = peer.llf_scaled(scale) if fitted_dispersion else peer.llf
    k = 4 + fitted_dispersion
    assert known.log_likelihood == pytest.approx(likelihood, rel=1e-9)
    assert known.aic == pytest.approx(2 * k - 2 * likelihood, rel=1e-9)
    assert known.bic == pytest.approx(k * np.log(300) - 2 * likelihood, rel=1e-9)
    if not fitted_dispersion:
        assert known.aic == pytest.approx(peer.aic, rel=1e-9)
        assert known.bic == pytest.approx(peer.bic_llf, rel=1e-9)
    if distribution == "gaussian":
        ols = sm.OLS(y, sm.add_constant(X)).fit()
        assert known.aic == pytest.approx(ols.aic + 2, rel=1e-9)
        assert known.bic == pytest.approx(ols.bic + np.log(300), rel=1e-9)
    assert known.deviance == pytest.approx(peer.deviance, rel=1e-9)
