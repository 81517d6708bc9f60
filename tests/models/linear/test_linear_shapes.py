"""Linear fits on awkward shapes: methods that avoid large matrices give the solutions of those that form them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

import hinge as hg
from hinge.problem.certificates.dual_points import best_shift
from hinge.solvers import interior_point
from hinge.solvers.closed_form import Centred
from hinge.solvers.lsqr import lsqr
from hinge.solvers.row_space import pays
from hinge.solvers.run import minimise, solve


def sparse(rng, n, d, rank=None):
    X = scipy.sparse.random(n, d, density=0.1, format="csr", random_state=np.random.RandomState(1))
    X.data = rng.normal(size=X.nnz)
    return X if rank is None else scipy.sparse.csr_matrix(X[:, rng.integers(0, rank, d)])


@pytest.mark.parametrize(("n", "d", "rank"), [(400, 250, None), (250, 400, None), (300, 300, None), (400, 250, 60)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sparse_least_squares_has_least_norm(n, d, rank, fit_intercept, rng):
    X, y = sparse(rng, n, d, rank), rng.normal(size=n)
    model = hg.LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    dense = X.toarray()
    A, b = (dense - dense.mean(axis=0), y - y.mean()) if fit_intercept else (dense, y)
    expected = np.linalg.lstsq(A, b, rcond=1e-10)[0]
    np.testing.assert_allclose(model.coef_, expected, atol=1e-7 * np.abs(expected).max())
    assert model.certificate_.converged


@pytest.mark.parametrize(("n", "d"), [(30, 12), (12, 30), (20, 20)])
def test_lsqr_solves_every_column(n, d, rng):
    A, B = rng.normal(size=(n, d)), rng.normal(size=(n, 3))
    B[:, 1] = 0.0
    W, met, _ = lsqr(lambda V: A @ V, lambda U: A.T @ U, B, tol=1e-12, max_iter=500)
    assert met
    np.testing.assert_allclose(W, np.linalg.lstsq(A, B)[0], rtol=1e-5, atol=1e-6)


def test_lsqr_reports_that_it_did_not_end(rng):
    A = rng.normal(size=(30, 20)) * np.logspace(0, 6, 20)
    assert not lsqr(lambda V: A @ V, lambda U: A.T @ U, rng.normal(size=(30, 1)), tol=1e-13, max_iter=3)[1]


@pytest.mark.parametrize("alpha", [0.0, 1e-300, 1e-10, 1e-3, 1.0])
@pytest.mark.parametrize("kind", ["plain", "duplicate rows", "duplicate columns"])
@pytest.mark.parametrize(("n", "d"), [(10, 30), (30, 10), (20, 20)])
def test_ridge_of_singular_designs_is_the_limit_of_ridge(n, d, kind, alpha, rng):
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    if kind == "duplicate rows":
        X = X[: n // 2].repeat(2, axis=0)
    elif kind == "duplicate columns":
        X[:, 1] = X[:, 0]
    model = hg.Ridge(alpha=alpha).fit(X, y)
    U, s, V = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    kept = s > 1e-10 * s[0]
    expected = V[kept].T @ (s[kept] / (s[kept] ** 2 + alpha) * (U[:, kept].T @ (y - y.mean())))
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


LOSSES = [hg.Logistic(), hg.SquaredHinge(), hg.Hinge(), hg.Huber(1.0), hg.EpsilonInsensitive(0.1), hg.Poisson()]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_wide_problems_have_the_same_solution_in_their_row_space(loss, rng):
    X, y = rng.normal(size=(15, 60)), rng.integers(0, 2, 15) * 2.0 - 1.0
    y = np.abs(y) if isinstance(loss, hg.Poisson) else y
    objective = hg.make_objective(X, y, loss, hg.L2(0.1))
    assert pays(objective)
    result = solve(objective, tol=1e-10)
    assert result.certificate.converged
    direct = minimise(objective, solver="newton" if loss.twice_differentiable else "interior-point", tol=1e-10)[1]
    np.testing.assert_allclose(result.w, direct.w, atol=1e-4)


def test_callbacks_see_weights_of_all_features(rng):
    seen = []
    objective = hg.make_objective(
        rng.normal(size=(15, 60)), rng.integers(0, 2, 15) * 2.0 - 1.0, hg.Logistic(), hg.L2(1.0)
    )
    solve(objective, callback=lambda record: seen.append(record.w) or False)
    assert seen
    assert all(w is None or w.shape == (60,) for w in seen)


def huber_objective(w, b, scale, X, y, alpha, epsilon=1.35):
    r = np.abs(y - X @ w - b) / scale
    return np.sum(scale + scale * np.where(r < epsilon, r**2, 2 * epsilon * r - epsilon**2)) + alpha * w @ w


@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0, 10.0])
@pytest.mark.parametrize(("n", "d"), [(40, 60), (30, 30), (30, 29), (30, 25)])
def test_huber_with_as_many_features_as_examples_is_no_worse_than_any_other_fit(n, d, alpha, rng):
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    model = hg.HuberRegressor(alpha=alpha).fit(X, y)
    ours = huber_objective(model.coef_, model.intercept_, model.scale_, X, y, alpha)
    problem = Centred(hg.make_objective(X, y, hg.Squared()).design, y, np.full(n, 1.0 / n), True)
    for ridge in np.logspace(-10, 1, 12):
        W = problem.solve(np.full(d, ridge))
        for scale in np.logspace(-9, 0.5, 20):
            assert ours <= huber_objective(W[:, 0], problem.bias(W)[0], scale, X, y, alpha) * (1 + 1e-6)


def test_many_classes_balance_their_slopes(rng):
    X, y = rng.normal(size=(300, 5)), rng.integers(0, 30, 300)
    model = hg.LogisticRegression(tol=1e-8).fit(X, y)
    assert model.certificate_.kind == "gap"
    assert model.certificate_.converged


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("n", [40, 41])
def test_strong_l1_penalties_give_the_constant_and_weak_ones_do_not(n, quantile, rng):
    X = rng.normal(size=(n, 6))
    y = X[:, 0] + 0.1 * rng.normal(size=n)
    strong = hg.QuantileRegressor(quantile=quantile, alpha=10.0).fit(X, y)
    assert not np.any(strong.coef_)
    assert strong.certificate_.converged
    assert np.mean(y < strong.intercept_) <= quantile <= np.mean(y <= strong.intercept_)
    weak = hg.QuantileRegressor(quantile=quantile, alpha=1e-3).fit(X, y)
    assert weak.coef_[0] != 0
    assert weak.certificate_.converged


@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
def test_joint_penalties_of_one_target_are_those_of_single_weights(l1_ratio, rng):
    X = rng.normal(size=(50, 8)) * np.logspace(-3, 3, 8)
    y = X[:, 4:] @ rng.normal(size=4) + rng.normal(size=50)
    joint = hg.MultiTaskElasticNet(alpha=0.1, l1_ratio=l1_ratio, tol=1e-9).fit(X, y[:, None])
    single = hg.ElasticNet(alpha=0.1, l1_ratio=l1_ratio, tol=1e-9).fit(X, y)
    assert joint.certificate_.converged
    np.testing.assert_allclose(joint.predict(X).ravel(), single.predict(X), rtol=1e-3, atol=1e-3)


@pytest.mark.mission("W8")
def test_steps_that_are_too_long_at_first_do_not_spoil_a_fit(rng):
    """Gradients are cut to 1e12: columns of ten times unit size blow up in the first epoch and come back after it."""
    X = rng.integers(0, 20, size=(2000, 10))
    y = X @ rng.normal(size=10) / 20 + 0.1 * rng.normal(size=2000)
    model = hg.SGDRegressor(random_state=0).fit(X, y)
    best = hg.LinearRegression().fit(X, y)
    assert np.mean((y - model.predict(X)) ** 2) < 0.5 * np.var(y)
    np.testing.assert_allclose(model.coef_, best.coef_, atol=0.1)


def test_a_gradient_below_the_cut_is_taken_as_it_is(rng):
    X, y = rng.normal(size=(50, 3)), 1e6 * rng.normal(size=50)
    model = hg.SGDRegressor(learning_rate="constant", eta0=1e-3, alpha=0.0, max_iter=1, tol=None, shuffle=False)
    w, b = np.zeros(3), 0.0
    for x, target in zip(X, y):
        u = x @ w + b - target
        w, b = w - 1e-3 * u * x, b - 1e-3 * u
    np.testing.assert_allclose(model.fit(X, y).coef_, w, rtol=1e-10)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("d", [8, 600])
def test_fold_fits_without_a_proof_are_as_near_as_their_tolerance(d, storage, classes, rng):
    """Newton's decrement estimates the error: the objective is within some tolerances of the optimum's."""
    X = rng.normal(size=(300, d)) / np.sqrt(d / 8)
    y = np.digitize(X[:, 0] + rng.logistic(size=300), np.linspace(-1.5, 1.5, classes + 1)[1:-1]).astype(float)
    loss, options = (hg.Logistic(), {}) if classes == 2 else (hg.Softmax(), {"classes": classes})
    target = 2 * y - 1 if classes == 2 else y
    objective = hg.make_objective(storage(X), target, loss, hg.L2(1e-2), **options)
    quick = minimise(objective, tol=1e-4, proved=False)[1]
    best = solve(objective, tol=1e-9).certificate.primal
    assert best * (1 - 1e-9) <= objective.value(quick.w, quick.b) <= best * (1 + 1e-3)


@pytest.mark.parametrize("loss", [hg.Squared(), hg.SquaredMargin()], ids=repr)
def test_the_best_shift_of_a_parabola_balances(loss, rng):
    y = rng.choice([-1.0, 1.0], 40)
    objective = hg.make_objective(rng.normal(size=(40, 3)), y, loss, hg.L2(0.1), sample_weight=rng.uniform(0, 2, 40))
    z = 1e6 + rng.normal(size=40)
    u = objective.gradient_of_scores(z + best_shift(objective, z))
    assert abs(objective.c @ u) <= 1e-9 * (objective.c @ np.abs(u))


@pytest.mark.mission("O7")
@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "penalty",
    [hg.L1(1e-3), hg.L1(0.02, weights=np.linspace(0.5, 2.0, 300)), hg.Elastic(0.01, 0.7)],
    ids=["1", "2", "3"],
)
@pytest.mark.parametrize("loss", [hg.Quantile(0.3), hg.EpsilonInsensitive(0.1), hg.Hinge()], ids=repr)
def test_column_generation_finds_the_optimum_of_all_columns(loss, penalty, storage, monkeypatch, rng):
    X = rng.normal(size=(30, 300)) * (rng.uniform(size=(30, 300)) < 0.5)
    y = X[:, :3] @ np.ones(3) + rng.normal(size=30)
    objective = hg.make_objective(storage(X), np.sign(y) if isinstance(loss, hg.Hinge) else y, loss, penalty)
    monkeypatch.setattr(interior_point, "WIDE", 4)
    few = solve(objective, solver="interior-point", tol=1e-7)
    monkeypatch.setattr(interior_point, "WIDE", 1000)
    every = solve(objective, solver="interior-point", tol=1e-7)
    assert few.certificate.converged
    assert every.certificate.converged
    assert few.certificate.primal == pytest.approx(every.certificate.primal, rel=1e-6)


@pytest.mark.mission("W4", "O8")
@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, scipy.sparse.csr_matrix, scipy.sparse.csc_matrix])
@pytest.mark.parametrize("alpha", [1e-4, 1e-2])
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["bias", "no bias"])
def test_wide_quantile_regression_is_a_linear_program(fit_intercept, alpha, storage, rng):
    """min Σ cᵢ(τ pᵢ + (1−τ) qᵢ) + α Σ (w⁺ + w⁻) with X(w⁺ − w⁻) + b + p − q = y, by another solver."""
    n, d, tau = 40, 150, 0.3
    X = rng.normal(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.2)
    y, s = X[:, :4].sum(axis=1) + 0.5 * rng.normal(size=n) + 3.0, rng.integers(0, 3, n).astype(float)
    model = hg.QuantileRegressor(quantile=tau, alpha=alpha, fit_intercept=fit_intercept)
    model.fit(storage(X), y, sample_weight=s)
    c = s / s.sum()
    bias = np.ones((n, 1)) if fit_intercept else np.zeros((n, 0))
    costs = np.concatenate([np.full(2 * d, alpha), np.zeros(2 * bias.shape[1]), tau * c, (1 - tau) * c])
    program = scipy.optimize.linprog(costs, A_eq=np.hstack([X, -X, bias, -bias, np.eye(n), -np.eye(n)]), b_eq=y)
    assert model.solver_ == "interior-point"
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(program.fun, rel=2e-6)
    assert model.certificate_.dual <= program.fun * (1 + 1e-9)


@pytest.mark.mission("W7", "O8")
@pytest.mark.parametrize(
    "penalty", [hg.L2(1e-3), hg.L2(1e-6), hg.Elastic(0.01, 0.3), hg.L1(0.01, positive=True)], ids=repr
)
@pytest.mark.parametrize("loss", [hg.Hinge(), hg.EpsilonInsensitive(0.1)], ids=repr)
def test_equations_by_rows_have_the_optimum_of_equations_by_columns(loss, penalty, rng):
    """A column without a penalty makes the equations those of the columns: as a column of zeros it changes nothing."""
    X = rng.normal(size=(30, 70))
    y = X[:, :3].sum(axis=1) + 0.3 * rng.normal(size=30)
    y = np.sign(y) if isinstance(loss, hg.Hinge) else y
    options = {"offset": 0.1 * rng.normal(size=30), "sample_weight": rng.uniform(0.0, 2.0, 30)}
    by_rows = solve(hg.make_objective(X, y, loss, penalty, **options), solver="interior-point", tol=1e-9)
    free = hg.make_objective(
        np.column_stack([X, np.zeros(30)]), y, loss, replace(penalty, weights=np.append(np.ones(70), 0.0)), **options
    )
    by_columns = solve(free, solver="interior-point", tol=1e-9)
    assert by_rows.certificate.converged
    assert by_rows.certificate.primal == pytest.approx(by_columns.certificate.primal, rel=1e-8)


@pytest.mark.mission("W4")
@pytest.mark.parametrize("max_iter", [0, 1, 3, 5])
def test_hubers_limit_counts_the_iterations_of_all_scales(max_iter, rng):
    X = rng.normal(size=(80, 4))
    y = X[:, 0] + rng.standard_t(2, size=80)
    done = hg.HuberRegressor(max_iter=1000).fit(X, y)
    assert done.n_iter_ > 5
    assert done.certificate_.converged
    with pytest.warns(ConvergenceWarning):
        cut = hg.HuberRegressor(max_iter=max_iter).fit(X, y)
    assert cut.n_iter_ == max_iter

    def objective(model):
        r = np.abs(y - model.predict(X)) / model.scale_
        losses = np.where(r <= 1.35, r**2, 2 * 1.35 * r - 1.35**2)
        return model.scale_ * np.sum(1 + losses) + 1e-4 * np.sum(model.coef_**2)

    assert objective(cut) > objective(done)
    assert cut.scale_ > 0


def test_a_path_of_one_strength_has_a_time(rng):
    X = rng.normal(size=(60, 5))
    judged = hg.LassoCV(cv=3).fit(X, X[:, 0] + 0.1 * rng.normal(size=60)).certificate_
    assert 0 < judged.seconds < 60
    assert "nan" not in str(judged)
