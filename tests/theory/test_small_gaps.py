"""Formulas that a sample of mutations (tools/mutants.py) found without a test that checks their numbers."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg
from hinge.explain.diagnosis.alternatives import depends_on_scale
from hinge.explain.guarantees import _feature_rate
from hinge.problem.distributions import Tweedie
from hinge.problem.kernels import RBF, LinearKernel
from hinge.problem.kernels.inner_products import Quadratic
from hinge.problem.kernels.strings import Subsequence
from hinge.problem.losses.likelihood import Softmax
from hinge.problem.losses.regression import Squared
from hinge.problem.objective import make_objective
from hinge.select import resample


@pytest.mark.mission("W2")
def test_stored_predictions_are_those_of_models_that_left_one_out(rng):
    X, y, alphas = rng.normal(size=(9, 2)), rng.normal(size=9) + 3.0, (0.3, 4.0)
    model = hg.RidgeCV(alphas=alphas, scoring="neg_mean_squared_error", store_cv_results=True).fit(X, y)
    for i in range(9):
        kept = np.arange(9) != i
        centre, mean = X[kept].mean(axis=0), y[kept].mean()
        A = X[kept] - centre
        for k, alpha in enumerate(alphas):
            w = np.linalg.solve(A.T @ A + alpha * np.eye(2), A.T @ (y[kept] - mean))
            assert model.cv_results_[i, k] == pytest.approx(mean + (X[i] - centre) @ w)


@pytest.mark.mission("W2")
def test_each_target_has_the_weights_of_its_own_strength(rng):
    X = rng.normal(size=(40, 3))
    Y = np.column_stack([X @ [1.0, 2.0, 3.0], rng.normal(size=40), X @ [0.0, 1.0, 0.0] + rng.normal(size=40)])
    model = hg.RidgeCV(alphas=(1e-3, 1.0, 1e3), alpha_per_target=True).fit(X, Y)
    assert model.alpha_[0] != model.alpha_[1]
    A = X - X.mean(axis=0)
    for j, alpha in enumerate(model.alpha_):
        w = np.linalg.solve(A.T @ A + alpha * np.eye(3), A.T @ (Y[:, j] - Y[:, j].mean()))
        assert model.coef_[j] == pytest.approx(w)
        assert model.intercept_[j] == pytest.approx(Y[:, j].mean() - X.mean(axis=0) @ w)


def test_the_curvature_of_softmax_is_that_of_its_gradient(rng):
    y, s, h = np.array([0.0, 2.0]), rng.normal(size=(2, 3)), 1e-5
    found = Softmax().hessian(y, s)
    for k in range(3):
        step = h * np.eye(3)[k]
        change = Softmax().gradient(y, s + step) - Softmax().gradient(y, s - step)
        assert found[:, k] == pytest.approx(change[:, k] / (2 * h), rel=1e-6)


def test_the_rate_of_features_is_attained_by_short_steps():
    for kernel in (LinearKernel(), RBF(gamma=0.7), RBF(length_scale=(2.0, 0.5))):
        h = 1e-3 * np.array([[0.0, 0.0], [0.0, 1.0]])  # the second scale is the shorter one
        K = kernel.block(h, h)
        assert _feature_rate(kernel) == pytest.approx(np.sqrt(K[0, 0] + K[1, 1] - 2 * K[0, 1]) / 1e-3, rel=1e-4)


def test_the_quadratic_kernel(rng):
    A, B = rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
    assert Quadratic().block(A, B) == pytest.approx(A @ B.T + (A @ B.T) ** 2)


def test_both_sides_of_limits():
    assert Subsequence(decay=1.0).decay == 1.0
    for decay in (0.0, 1.5):
        with pytest.raises(ValueError, match="decay must lie in"):
            Subsequence(decay=decay)
    assert (Tweedie().power, Tweedie().name) == (1.5, "tweedie")
    assert (Tweedie(3.0).name, Tweedie(4.0).name) == ("inverse-gaussian", "tweedie")
    with pytest.raises(ValueError, match="y has missing or infinite"):
        make_objective(np.eye(3), np.array([1.0, np.nan, 2.0]), Squared())


def test_models_in_pipelines_may_be_scaled_before():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    assert depends_on_scale(hg.Ridge())
    assert not depends_on_scale(make_pipeline(StandardScaler(), hg.Ridge()))


def test_growing_fits_end_before_the_next_one_is_too_long(monkeypatch):
    """A fit of n rows takes n seconds; after 1 + 2 + 4 another would take about 2 · 4 more."""
    clock = [100.0]
    monkeypatch.setattr(resample.time, "perf_counter", lambda: clock[0])

    def fit(rows):
        clock[0] += len(rows)

    for seconds, expected in ((14.9, [1, 2, 4]), (15.1, [1, 2, 4, 8]), (0.0, [1, 2])):
        found = list(resample.growing_fits(fit, np.arange(99), [1, 2, 4, 8], seconds))
        assert [len(rows) for _, rows, _, _ in found] == expected
        assert [last for *_, last in found] == expected
