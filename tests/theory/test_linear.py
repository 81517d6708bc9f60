"""Linear models: what theory states about the optimum, and holds there (W1–W9, L3, L5)."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import PredefinedSplit, train_test_split

import hinge as hg
from hinge.solvers import solve


@pytest.fixture
def table(rng):
    """Correlated features, a target with few true weights, integer weights with zeros among them."""
    X = rng.normal(size=(150, 6)) @ (np.eye(6) + 0.15 * rng.normal(size=(6, 6))) + 2.0
    y = X @ np.array([1.5, 0.0, -2.0, 0.0, 0.5, 0.0]) + 3.0 + rng.normal(size=150)
    return X, y, rng.integers(0, 4, size=150).astype(float)


@pytest.fixture
def california(real_data):
    frame = pd.read_csv(real_data("california_housing.csv.gz")).dropna()
    numbers = frame.select_dtypes("number")
    X, y = numbers.iloc[:, :-1].to_numpy(dtype=float), numbers.iloc[:, -1].to_numpy(dtype=float)
    X, y = X[:2000], y[:2000]
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


def heart():
    data = hg.load_dataset("heart")
    X = hg.TablePrep().fit_transform(data.X)
    X = np.asarray(X.toarray() if scipy.sparse.issparse(X) else X, dtype=float)
    X = X[:, np.std(X, axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), np.unique(data.y, return_inverse=True)[1]


def with_ones(X):
    return np.column_stack([np.ones(len(X)), X])


@pytest.mark.mission("W1")
class TestLeastSquares:
    def test_errors_are_orthogonal_to_linear_functions(self, table, california):
        for X, y, s in (table, (*california, np.ones(len(california[1])))):
            r = y - hg.LinearRegression().fit(X, y, sample_weight=s).predict(X)
            assert np.max(np.abs(with_ones(X).T @ (s * r))) <= 1e-9 * np.abs(with_ones(X)).sum(axis=0).max()

    def test_rank_deficient_gives_least_norm(self, rng):
        X = rng.normal(size=(30, 4))
        X = np.column_stack([X, X[:, 0] + X[:, 1], X[:, 2]])
        y = rng.normal(size=30)
        model = hg.LinearRegression().fit(X, y)
        centred = X - X.mean(axis=0)
        np.testing.assert_allclose(model.coef_, np.linalg.pinv(centred) @ (y - y.mean()), atol=1e-10)
        assert model.inference_.rank == 5

    @pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
    def test_inference_is_the_textbook(self, table, make):
        X, y, s = table
        known = hg.LinearRegression().fit(make(X), y, sample_weight=s).inference_
        rows = np.repeat(np.arange(len(y)), s.astype(int))
        A, t = with_ones(X[rows]), y[rows]
        inverse = np.linalg.inv(A.T @ A)
        theta = inverse @ A.T @ t
        sigma2 = np.sum((t - A @ theta) ** 2) / (len(t) - 7)
        assert known.sigma2 == pytest.approx(sigma2, rel=1e-9)
        np.testing.assert_allclose(known.estimate, theta, rtol=1e-7)
        np.testing.assert_allclose(known.covariance, sigma2 * inverse, rtol=1e-6, atol=1e-12)

    def test_intervals_cover_as_often_as_their_level(self, rng):
        X = rng.normal(size=(20, 2))
        new, theta = np.array([[0.5, -1.0]]), np.array([1.0, 2.0])
        hits = np.zeros(3)
        for _ in range(1500):
            model = hg.LinearRegression().fit(X, X @ theta + rng.normal(size=20))
            low, high = model.inference_.interval(0.9)[1]
            hits[0] += low <= theta[0] <= high
            _, low, high = model.predict(new, interval=0.9, kind="confidence")
            hits[1] += low[0] <= new[0] @ theta <= high[0]
            _, low, high = model.predict(new, interval=0.9)
            hits[2] += low[0] <= new[0] @ theta + rng.normal() <= high[0]
        assert np.all(np.abs(hits / 1500 - 0.9) < 0.03)  # four standard deviations


@pytest.mark.mission("L3")
class TestMoments:
    def test_two_points(self):
        for alpha in (0.0, 0.5, 3.0):
            for sigma in (1.0, 2.0):
                theta = np.array([3.0, -1.0])
                moments = hg.ridge_moments(np.array([[1.0, 1.0], [1.0, -1.0]]), theta, sigma=sigma, alpha=alpha)
                expected = (4 * sigma**2 + alpha**2 * theta @ theta) / (2 + alpha) ** 2
                assert moments.mse == pytest.approx(expected, rel=1e-14)

    @pytest.mark.parametrize("alpha", [0.0, 5.0])
    def test_closed_forms_match_simulation(self, rng, alpha):
        X, theta, draws = rng.normal(size=(25, 3)), np.array([1.0, -2.0, 0.5]), 4000
        Y = (X @ theta)[:, None] + 0.7 * rng.normal(size=(25, draws))
        W = hg.Ridge(alpha=alpha, fit_intercept=False).fit(X, Y).coef_
        moments = hg.ridge_moments(X, theta, sigma=0.7, alpha=alpha)
        noise = 5 * np.sqrt(np.diag(moments.covariance) / draws)
        assert np.all(np.abs(W.mean(axis=0) - theta - moments.bias) < noise)
        np.testing.assert_allclose(np.cov(W.T), moments.covariance, atol=0.1 * np.abs(moments.covariance).max())
        assert np.mean(np.sum((W - theta) ** 2, axis=1)) == pytest.approx(moments.mse, rel=0.1)


@pytest.mark.mission("W2", "V1")
class TestRidge:
    @pytest.mark.parametrize("shape", [(40, 5), (12, 30)], ids=["primal", "dual"])
    @pytest.mark.parametrize("bias", [True, False])
    def test_leave_one_out_is_brute_force(self, rng, shape, bias):
        X, y = rng.normal(size=shape) + 1.0, rng.normal(size=shape[0])
        s = rng.integers(1, 4, size=shape[0]).astype(float)
        alphas = [0.1, 1.0, 30.0]
        model = hg.RidgeCV(alphas, fit_intercept=bias, store_cv_results=True).fit(X, y, sample_weight=s)
        for a, alpha in enumerate(alphas):
            whole = hg.Ridge(alpha, fit_intercept=bias).fit(X, y, sample_weight=s)
            np.testing.assert_allclose(model.coef_path_[a], whole.coef_, atol=1e-7)
            for i in range(0, shape[0], 5):
                less = s - np.eye(shape[0])[i]  # one unit of weight is left out
                left = hg.Ridge(alpha, fit_intercept=bias).fit(X, y, sample_weight=less)
                error = (y[i] - left.predict(X[i : i + 1])[0]) ** 2
                assert model.cv_results_[i, a] == pytest.approx(error, rel=1e-5)
        assert model.errors_.argmin() == alphas.index(model.alpha_)

    def test_primal_and_dual_agree(self, rng):
        X, Y = rng.normal(size=(15, 40)), rng.normal(size=(15, 2))
        for make in (np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array):
            model = hg.Ridge(2.0).fit(make(X), Y)
            centred = X - X.mean(axis=0)
            primal = np.linalg.solve(centred.T @ centred + 2.0 * np.eye(40), centred.T @ (Y - Y.mean(axis=0)))
            np.testing.assert_allclose(model.coef_, primal.T, atol=1e-9)
            assert model.certificate_.converged


@pytest.mark.mission("W3")
class TestLasso:
    def test_soft_threshold_conditions(self, table, california):
        for X, y, s in (table, (*california, np.ones(len(california[1])))):
            for alpha in (0.02, 0.3):
                model = hg.Lasso(alpha, tol=1e-12).fit(X, y, sample_weight=s)
                g = X.T @ (s * (y - model.predict(X))) / s.sum()
                used = model.coef_ != 0
                np.testing.assert_allclose(g[used], alpha * np.sign(model.coef_[used]), rtol=1e-5)
                assert np.all(np.abs(g[~used]) <= alpha * (1 + 1e-6))
                assert 0 <= model.dual_gap_ <= 1e-12 * model.certificate_.primal + 1e-15

    def test_orthogonal_columns_are_soft_thresholded(self, rng):
        Q = np.linalg.qr(rng.normal(size=(50, 4)))[0] * np.sqrt(50)
        y = rng.normal(size=50) * 2
        c = Q.T @ y / 50
        model = hg.Lasso(0.2, fit_intercept=False, tol=1e-12).fit(Q, y)
        np.testing.assert_allclose(model.coef_, np.sign(c) * np.maximum(np.abs(c) - 0.2, 0), atol=1e-8)

    def test_path(self, rng):
        X, y = rng.normal(size=(40, 60)), rng.normal(size=40)
        alphas, coefs, gaps = hg.lasso_path(X, y, alphas=20)
        assert np.all(np.diff(alphas) < 0)
        assert np.all(coefs[:, 0] == 0)
        assert np.any(coefs[:, 1] != 0)
        for k in (0, 7, 19):
            lone = hg.Lasso(alphas[k], fit_intercept=False, tol=1e-10).fit(X, y)
            value = np.mean((y - X @ coefs[:, k]) ** 2) / 2 + alphas[k] * np.abs(coefs[:, k]).sum()
            assert value - lone.certificate_.primal <= gaps[k] + 1e-12
            assert gaps[k] <= 1e-6 * value

    def test_cross_validation_and_the_one_standard_error_rule(self, rng):
        X = rng.normal(size=(80, 30))
        y = X[:, :3].sum(axis=1) + rng.normal(size=80)
        best, simple = hg.LassoCV().fit(X, y), hg.LassoCV(rule="one-standard-error").fit(X, y)
        assert best.alpha_ == best.alphas_[best.mse_path_.mean(axis=1).argmin()]
        assert simple.alpha_ >= best.alpha_
        assert np.count_nonzero(simple.coef_) <= np.count_nonzero(best.coef_)
        assert np.all(simple.coef_[:3] != 0)

    def test_groups_and_tasks_enter_together(self, rng):
        X = rng.normal(size=(60, 6))
        Y = np.column_stack([X[:, 0] - X[:, 1], X[:, 0] + X[:, 1]]) + 0.1 * rng.normal(size=(60, 2))
        tasks = hg.MultiTaskLasso(0.1, tol=1e-10).fit(X, Y)
        used = np.any(tasks.coef_ != 0, axis=0)
        assert np.array_equal(used, np.all(tasks.coef_ != 0, axis=0))
        assert used[:2].all()
        G = X.T @ (Y - tasks.predict(X)) / 60
        np.testing.assert_allclose(np.linalg.norm(G[used], axis=1), 0.1, rtol=1e-3)
        assert np.all(np.linalg.norm(G[~used], axis=1) <= 0.1)
        groups = hg.GroupLasso([0, 0, 1, 1, 2, 2], alpha=0.1).fit(X, Y[:, 0])
        assert np.all(groups.coef_[:2] != 0)
        assert np.all(groups.coef_[2:] == 0)


@pytest.mark.mission("W4", "L4")
class TestRobust:
    @pytest.mark.parametrize("level", [0.2, 0.5, 0.9])
    def test_a_share_of_the_targets_lies_below_the_quantile(self, table, level):
        X, y, _ = table
        r = y - hg.QuantileRegressor(quantile=level, alpha=0.0).fit(X, y).predict(X)
        scale = 1e-5 * np.abs(r).max()
        assert np.mean(r < -scale) <= level <= np.mean(r < scale)

    @pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
    def test_every_penalty(self, table, l1_ratio):
        X, y, s = table
        for model in (
            hg.QuantileRegressor(alpha=0.05, l1_ratio=l1_ratio),
            hg.LeastAbsoluteDeviations(0.05, l1_ratio=l1_ratio),
            hg.LinearSVR(epsilon=0.3, l1_ratio=l1_ratio),
            hg.HuberRegressor(alpha=1.0, l1_ratio=l1_ratio),
        ):
            assert model.fit(X, y, sample_weight=s).certificate_.converged

    def test_huber_is_stationary_in_weights_and_scale(self, table):
        X, y, s = table
        y = y.copy()
        y[::10] += 40.0
        model = hg.HuberRegressor(alpha=0.5).fit(X, y, sample_weight=s)
        z = (y - model.predict(X)) / model.scale_
        assert s @ np.minimum(z**2, 1.35**2) == pytest.approx(s.sum(), rel=1e-6)
        slopes = X.T @ (s * 2 * np.clip(z, -1.35, 1.35))
        np.testing.assert_allclose(slopes, 2 * 0.5 * model.coef_, atol=1e-4 * np.abs(X).sum(axis=0).max())
        assert np.array_equal(model.outliers_, np.abs(z) > 1.35)
        assert model.outliers_[::10].all()

    def test_one_wild_target_does_not_move_the_median(self, table):
        """A target above the fit may move up as far as it likes: the fit stays where it is."""
        X, y, _ = table
        calm = hg.LeastAbsoluteDeviations(tol=1e-9).fit(X, y)
        wild = y.copy()
        wild[np.argmax(y - calm.predict(X))] += 1e3
        np.testing.assert_allclose(hg.LeastAbsoluteDeviations(tol=1e-9).fit(X, wild).coef_, calm.coef_, atol=1e-3)


@pytest.mark.mission("W5", "M2")
class TestLogistic:
    def test_errors_are_orthogonal(self, rng):
        """Without a penalty, Σ (y − p) x = 0 and Σ (y − p) = 0."""
        X = rng.normal(size=(300, 4))
        y = rng.random(300) < 1 / (1 + np.exp(-X @ [1.0, -1.0, 0.5, 0.0] - 0.3))
        model = hg.LogisticRegression(C=np.inf, tol=1e-12).fit(X, y)
        np.testing.assert_allclose(with_ones(X).T @ (y - model.predict_proba(X)[:, 1]), 0, atol=1e-4)
        log_odds = np.log(model.predict_proba(X)[:, 1] / model.predict_proba(X)[:, 0])
        np.testing.assert_allclose(log_odds, model.decision_function(X), atol=1e-8)
        assert model.separation_ is None

    def test_errors_are_orthogonal_on_real_data(self):
        X, y = heart()
        model = hg.LogisticRegression(C=np.inf, tol=1e-12).fit(X, y)
        np.testing.assert_allclose(with_ones(X).T @ (y - model.predict_proba(X)[:, 1]), 0, atol=1e-4)
        sparse = hg.LogisticRegression(C=0.05, l1_ratio=1.0, tol=1e-10).fit(X, y)
        slope = 0.05 * X.T @ (y - sparse.predict_proba(X)[:, 1])  # C Σ (y − p) x is the sign of w, or within ±1
        used = sparse.coef_[0] != 0
        assert 0 < used.sum() < len(used)
        np.testing.assert_allclose(slope[used], np.sign(sparse.coef_[0][used]), atol=1e-3)
        assert np.all(np.abs(slope[~used]) <= 1 + 1e-6)

    def test_multinomial_gradient_vanishes(self, rng):
        X, y = rng.normal(size=(150, 3)), rng.integers(0, 3, size=150)
        model = hg.LogisticRegression(C=2.0, tol=1e-10).fit(X, y)
        error = np.eye(3)[y] - model.predict_proba(X)
        np.testing.assert_allclose(2.0 * error.T @ X, model.coef_, atol=1e-3)
        np.testing.assert_allclose(error.sum(axis=0), 0, atol=1e-3)

    @pytest.mark.parametrize("l1_ratio", [0.0, 0.4, 1.0])
    def test_every_penalty_on_every_storage(self, rng, l1_ratio):
        X = rng.normal(size=(120, 5)) * (rng.random((120, 5)) < 0.6)
        y = X[:, 0] + 0.5 * rng.normal(size=120) > 0
        fits = [
            hg.LogisticRegression(l1_ratio=l1_ratio, tol=1e-8, class_weight="balanced").fit(make(X), y)
            for make in (np.asarray, np.asfortranarray, scipy.sparse.csr_array, scipy.sparse.csc_array)
        ]
        for fit in fits:
            assert fit.certificate_.converged
            np.testing.assert_allclose(fit.coef_, fits[0].coef_, atol=1e-4)

    @pytest.mark.parametrize("gap", [1.0, 0.0], ids=["separable", "quasi-separable"])
    def test_separation_is_found_and_reported(self, gap):
        X = np.array([[-2.0, 0.3], [-1.0, -0.4], [0.0, 0.2], [0.0 + gap, -0.1], [1.5, 0.9], [3.0, -1.0]])
        y = np.array([0, 0, 0, 1, 1, 1])
        if gap == 0.0:
            X[3] = X[2]
        with pytest.warns(ConvergenceWarning, match="separated"):
            model = hg.LogisticRegression(C=np.inf).fit(X, y)
        found = model.separation_
        margins = np.where(y == 1, 1, -1) * (X @ found.direction + found.bias)
        assert margins.min() >= -1e-9 * np.abs(margins).max()
        assert margins.max() > 0
        assert found.complete == (gap > 0)

    def test_no_false_alarm(self, rng):
        X = rng.normal(size=(60, 2))
        y = rng.random(60) < 0.5
        assert hg.separating_direction(X, np.where(y, 1.0, -1.0)) is None


@pytest.mark.mission("W6", "L5")
class TestPerceptron:
    @pytest.mark.parametrize("bias", [True, False])
    def test_mistakes_stay_below_the_bound(self, rng, bias):
        X = rng.normal(size=(200, 3))
        u, level = np.array([1.0, -2.0, 0.5]), 0.8 * bias
        X = X[np.abs(X @ u - level) > 0.3]
        y = X @ u > level
        model = hg.Perceptron(fit_intercept=bias, tol=None).fit(X, y)
        assert bool(model.intercept_ != 0) == bias  # or its part in the norm would not show
        assert model.mistakes_per_epoch_[0][-1] == 0
        assert model.score(X, y) == 1.0
        bound = model.bound_
        assert bound.mistakes == model.mistakes_[0] <= bound.bound == pytest.approx((bound.radius / bound.margin) ** 2)
        # The bias is the weight of a constant input: R, the margin and ‖w‖ are those of (x, 1).
        A = np.hstack([X, np.full((len(X), 1), float(bias))])
        w = np.append(model.coef_, model.intercept_ if bias else 0.0)
        assert bound.radius == pytest.approx(np.linalg.norm(A, axis=1).max())
        assert bound.margin == pytest.approx(np.min(np.where(y, 1, -1) * (A @ w)) / np.linalg.norm(w))
        best = hg.MaxMarginClassifier(fit_intercept=False).fit(A, y).geometric_margin_
        assert model.mistakes_[0] <= (bound.radius / best) ** 2
        if not bias:
            assert bound.margin <= best * (1 + 1e-6)
            assert model.mistakes_[0] <= (bound.radius / best) ** 2

    def test_it_is_rosenblatts_rule(self, rng):
        X, y = rng.normal(size=(50, 3)), np.where(rng.random(50) < 0.5, 1, -1)
        w, b, mistakes, total, visits = np.zeros(3), 0.0, 0, np.zeros(4), 0
        states = []
        for _ in range(4):
            for xi, yi in zip(X, y):
                if yi * (w @ xi + b) <= 0:
                    w, b, mistakes = w + yi * xi, b + yi, mistakes + 1
                total, visits = total + np.append(w, b), visits + 1
                states.append((w, b))
        options = {"shuffle": False, "max_iter": 4, "tol": None}
        last = hg.Perceptron(**options).fit(X, y)
        np.testing.assert_allclose(np.append(last.coef_[0], last.intercept_), np.append(w, b))
        assert last.mistakes_[0] == mistakes
        mean = hg.Perceptron(average=True, **options).fit(X, y)
        np.testing.assert_allclose(np.append(mean.coef_[0], mean.intercept_), total / visits)
        voted = hg.Perceptron(average="voted", **options).fit(X, y)
        votes = sum(np.sign(X @ w + b) for w, b in states)
        assert np.array_equal(voted.predict(X)[votes != 0], np.sign(votes)[votes != 0])

    def test_a_weight_scales_the_step_and_lengthens_the_visit(self, rng):
        X, y, s = rng.normal(size=(50, 3)), np.where(rng.random(50) < 0.5, 1, -1), rng.uniform(0.2, 3.0, size=50)
        w, b, total, age, votes = np.zeros(3), 0.0, np.zeros(4), 0.0, np.zeros(50)
        for _ in range(4):
            for xi, yi, si in zip(X, y, s):
                if yi * (w @ xi + b) <= 0:
                    w, b = w + si * yi * xi, b + si * yi
                total, age, votes = total + si * np.append(w, b), age + si, votes + si * np.sign(X @ w + b)
        options = {"shuffle": False, "max_iter": 4, "tol": None}
        last = hg.Perceptron(**options).fit(X, y, sample_weight=s)
        np.testing.assert_allclose(np.append(last.coef_[0], last.intercept_), np.append(w, b))
        mean = hg.Perceptron(average=True, **options).fit(X, y, sample_weight=s)
        np.testing.assert_allclose(np.append(mean.coef_[0], mean.intercept_), total / age)
        voted = hg.Perceptron(average="voted", **options).fit(X, y, sample_weight=s)
        np.testing.assert_allclose(voted.decision_function(X), votes / age, atol=1e-12)
        by_class = hg.Perceptron(class_weight={-1: 2.0, 1: 0.5}, **options).fit(X, y, sample_weight=s)
        same = hg.Perceptron(**options).fit(X, y, sample_weight=s * np.where(y == 1, 0.5, 2.0))
        np.testing.assert_array_equal(by_class.coef_, same.coef_)
        pieces = hg.Perceptron(shuffle=False, average=True)
        for _ in range(4):
            pieces.partial_fit(X, y, classes=[-1, 1], sample_weight=s)
        np.testing.assert_array_equal(pieces.coef_, mean.coef_)

    def test_weighted_mistakes_stay_below_their_bound(self, rng):
        X = rng.normal(size=(200, 3))
        X = X[np.abs(X @ [1.0, -2.0, 0.5]) > 0.3]
        y, s = X @ [1.0, -2.0, 0.5] > 0, rng.uniform(0.5, 2.0, size=len(X))
        model = hg.Perceptron(tol=None, fit_intercept=False).fit(X, y, sample_weight=s)
        bound, spread = model.bound_, s.max() / s.min()
        assert model.mistakes_[0] <= bound.bound == pytest.approx((spread * bound.radius / bound.margin) ** 2)
        best = hg.MaxMarginClassifier(fit_intercept=False).fit(X, y).geometric_margin_
        assert model.mistakes_[0] <= (spread * bound.radius / best) ** 2

    @pytest.mark.parametrize(("penalty", "ratio"), [("l2", 0.0), ("l1", 1.0), ("elasticnet", 0.3)])
    def test_a_penalty_shrinks_at_every_visit(self, rng, penalty, ratio):
        X, y, s = rng.normal(size=(50, 3)), np.where(rng.random(50) < 0.5, 1, -1), rng.uniform(0.2, 3.0, size=50)
        w, b, total, eta, alpha, wrong = np.zeros(3), 0.0, np.zeros(4), 0.5, 0.05, 0
        owed, paid = 0.0, np.zeros(3)  # the running total of the lasso part, and what each weight has paid of it
        for _ in range(4):
            for xi, yi, si in zip(X, y, s):
                mistaken = yi * (w @ xi + b) <= 0
                w = (1 - eta * alpha * (1 - ratio)) * w
                if mistaken:
                    w, b = w + eta * si * yi * xi, b + eta * si * yi
                owed += eta * alpha * ratio
                left = np.where(w > 0, np.maximum(0, w - owed - paid), np.minimum(0, w + owed - paid))
                w, paid = left, paid + (left - w)
                total += np.append(w, b)
            wrong += np.sum(y * (X @ w + b) <= 0)
        options = {"shuffle": False, "max_iter": 4, "tol": None, "penalty": penalty, "alpha": alpha, "l1_ratio": ratio}
        last = hg.Perceptron(eta0=eta, **options).fit(X, y, sample_weight=s)
        np.testing.assert_allclose(np.append(last.coef_[0], last.intercept_), np.append(w, b), atol=1e-12)
        assert last.mistakes_[0] == wrong
        assert last.bound_ is None
        mean = hg.Perceptron(eta0=eta, average=True, **options).fit(X, y, sample_weight=s)
        np.testing.assert_allclose(np.append(mean.coef_[0], mean.intercept_), total / 200, atol=1e-12)
        pieces = hg.Perceptron(eta0=eta, average=True, **options)
        for _ in range(4):
            pieces.partial_fit(scipy.sparse.csr_array(X), y, classes=[-1, 1], sample_weight=s)
        np.testing.assert_allclose(pieces.coef_, mean.coef_, atol=1e-12)

    @pytest.mark.parametrize("penalty", [None, "l2"])
    def test_examples_held_out_may_stop_it(self, rng, penalty):
        X = rng.normal(size=(400, 3))
        y = np.where(X @ [1.0, -2.0, 0.5] + rng.normal(size=400) > 0, 1, -1)
        options = {"early_stopping": True, "validation_fraction": 0.25, "penalty": penalty, "random_state": 3}
        model = hg.Perceptron(n_iter_no_change=4, **options).fit(X, y)
        train, held = train_test_split(np.arange(400), test_size=0.25, random_state=3)
        shares, best, idle, epochs = [], np.inf, 0, 0
        while idle < 4:
            epochs += 1
            part = hg.Perceptron(max_iter=epochs, tol=None, penalty=penalty, random_state=3).fit(X[train], y[train])
            shares.append(np.mean(y[held] * part.decision_function(X[held]) <= 0))
            idle, best = (0 if shares[-1] < best - 1e-3 else idle + 1), min(best, shares[-1])
        assert model.n_iter_ == epochs
        np.testing.assert_array_equal(model.coef_, part.coef_)

    def test_a_generator_may_be_the_seed(self, rng):
        X, y = rng.normal(size=(50, 3)), np.where(rng.random(50) < 0.5, 1, -1)
        one, two = (hg.Perceptron(random_state=np.random.RandomState(5), max_iter=2).fit(X, y) for _ in range(2))
        np.testing.assert_array_equal(one.coef_, two.coef_)


def noisy_classes(rng, n=120):
    X = rng.normal(size=(n, 3))
    return X, np.where(X @ [1.0, 1.0, 0.0] + 0.6 * rng.normal(size=n) > 0, 1, -1)


@pytest.mark.mission("W7", "M4")
@pytest.mark.parametrize("labels", [["a", "b"], ["a", "b", "c"]])
def test_crammer_and_singers_machine_goes_by_its_other_name(rng, labels):
    X, y = rng.normal(size=(90, 3)), rng.choice(labels, size=90)
    s = np.where(y == "a", 2.0, 1.0)
    named = hg.LinearSVC(multi_class="crammer_singer", C=0.5, class_weight={"a": 2.0}).fit(X, y)
    model = hg.MulticlassSVM(C=0.5, tol=1e-6).fit(X, y, sample_weight=s)
    np.testing.assert_allclose(named.decision_function(X), model.decision_function(X), atol=1e-9)
    assert named.coef_.shape == ((1, 3) if len(labels) == 2 else (3, 3))
    assert np.array_equal(named.predict(X), model.predict(X))


@pytest.mark.mission("W2")
def test_ridge_may_be_chosen_by_a_score_that_takes_no_weights(table):
    X, y, _ = table
    for cv in (None, 5):
        assert hg.RidgeCV(scoring="neg_max_error", cv=cv).fit(X, y).best_score_ < 0


@pytest.mark.mission("W7")
class TestMargins:
    def test_a_hard_margin_ignores_positive_weights(self, rng):
        X, y = noisy_classes(rng, 60)
        X = X + 2.0 * np.outer(y, [1.0, 1.0, 0.0])
        s = rng.uniform(0.1, 10.0, size=60)
        s[hg.MaxMarginClassifier().fit(X, y).support_] = 0.0
        there = s > 0
        model, rest = hg.MaxMarginClassifier().fit(X, y, s), hg.MaxMarginClassifier().fit(X[there], y[there])
        np.testing.assert_array_equal(model.coef_, rest.coef_)
        np.testing.assert_array_equal(model.dual_coef_[there], rest.dual_coef_)
        assert not model.dual_coef_[~there].any()
        np.testing.assert_array_equal(model.support_, np.flatnonzero(there)[rest.support_])
        assert model.margins_.shape == (60,)
        assert model.margins_.min() < 1.0 - 1e-3 < rest.margins_.min()
        deep = np.argmax(np.where(there, model.margins_, -np.inf))
        y[deep] = -y[deep]
        with pytest.raises(hg.NotSeparableError) as caught:
            hg.MaxMarginClassifier().fit(X, y, s)
        alpha = caught.value.weights
        assert alpha.shape == (60,)
        assert alpha[deep] > 0
        assert not alpha[~there].any()
        np.testing.assert_allclose((alpha * y) @ X, 0.0, atol=1e-9)

    def test_hard_margin(self, rng):
        X, y = noisy_classes(rng)
        X = X + 2.0 * np.outer(y, [1.0, 1.0, 0.0])
        model = hg.MaxMarginClassifier().fit(X, y)
        assert model.margins_.min() == pytest.approx(1.0, abs=1e-4)
        w = model.coef_[0]
        assert model.geometric_margin_ == pytest.approx(1 / np.linalg.norm(w))
        np.testing.assert_allclose((model.dual_coef_ * y) @ X, w, atol=1e-3 * np.abs(w).max())
        np.testing.assert_allclose(model.margins_[model.support_], 1.0, atol=1e-3)
        for _ in range(200):  # no other direction does better
            v = w / np.linalg.norm(w) + 0.1 * rng.normal(size=3)
            v /= np.linalg.norm(v)
            width = 0.5 * ((X @ v)[y > 0].min() - (X @ v)[y < 0].max())
            assert width <= model.geometric_margin_ * (1 + 1e-4)

    def test_hard_margin_on_inseparable_data_is_a_clear_error(self, rng):
        X, y = noisy_classes(rng)
        with pytest.raises(hg.NotSeparableError, match="soft margin") as caught:
            hg.MaxMarginClassifier().fit(X, y)
        alpha = caught.value.weights
        assert alpha.min() >= 0
        assert alpha.sum() == pytest.approx(1.0)
        np.testing.assert_allclose((alpha * y) @ with_ones(X), 0, atol=1e-8)

    def test_slacks_are_hinge_losses_and_the_bias_is_free(self, rng):
        X, y = noisy_classes(rng)
        model = hg.LinearSVC(loss="hinge", C=0.7, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(model.slacks_, np.maximum(0, 1 - y * model.decision_function(X)), atol=1e-10)
        moved = hg.LinearSVC(loss="hinge", C=0.7, tol=1e-6).fit(X + 100.0, y)
        # Both gaps bound the distance from the one optimum: (λ/2)‖w − w*‖² ≤ gap, λ = 1/(nC).
        reach = sum(np.sqrt(2 * fit.certificate_.gap * len(y) * 0.7) for fit in (model, moved))
        assert np.linalg.norm(moved.coef_ - model.coef_) <= reach + 1e-9
        assert reach < 0.05

    def test_forms_agree(self, rng):
        """C Σ ξ + ½‖w‖², (C/n) Σ ξ with C·n, and mean hinge + (λ/2)‖w‖² with λ = 1/(nC)."""
        X, y = noisy_classes(rng)
        svm = hg.LinearSVC(loss="hinge", C=0.3, tol=1e-10).fit(X, y)
        learner = hg.Learner(loss=hg.Hinge(), penalty=hg.L2(1 / (0.3 * len(y))), tol=1e-10).fit(X, y)
        np.testing.assert_allclose(svm.coef_[0], learner.coef_, atol=1e-6)


@pytest.mark.mission("W8", "O6")
@pytest.mark.parametrize(("C", "data"), [(0.05, "random"), (1.0, "random"), (0.1, "heart")])
def test_svm_dual_relations(rng, C, data):
    """Equations (78)–(83) with the α of the quadratic program, which are also those of the fit."""
    pytest.importorskip("clarabel")
    X, y = noisy_classes(rng) if data == "random" else heart()
    y = np.where(y > 0, 1, -1)
    model = hg.LinearSVC(loss="hinge", C=C, tol=1e-10).fit(X, y)
    reference = hg.LinearSVC(loss="hinge", C=C, tol=1e-8, solver="quadratic-program").fit(X, y)
    for fit in (model, reference):
        alpha, m = fit.dual_coef_, fit.margins_
        eps, near = 1e-4 * C, 1e-4
        assert alpha.min() >= -eps
        assert alpha.max() <= C + eps
        assert abs(alpha @ y) <= 1e-5 * C * len(y)
        np.testing.assert_allclose((alpha * y) @ X, fit.coef_[0], atol=1e-4)
        assert np.all(m[alpha < eps] >= 1 - near)  # α = 0 ⇒ margin ≥ 1
        assert np.all(np.abs(m[(alpha > eps) & (alpha < C - eps)] - 1) <= near)  # 0 < α < C ⇒ margin = 1
        assert np.all(m[alpha > C - eps] <= 1 + near)  # α = C ⇒ margin ≤ 1
        assert np.all(alpha[m < 1 - near] >= C - eps)  # margin < 1 ⇒ α = C
        assert np.all(alpha[m > 1 + near] <= eps)  # margin > 1 ⇒ α = 0
        on = np.abs(m - 1) <= near  # margin = 1 ⇒ α anywhere in [0, C]
        assert np.all((alpha[on] >= -eps) & (alpha[on] <= C + eps))
        w = fit.coef_[0]
        primal = C * fit.slacks_.sum() + 0.5 * w @ w
        dual = alpha.sum() - 0.5 * np.sum(((alpha * y) @ X) ** 2)
        assert dual == pytest.approx(primal, rel=1e-4)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-3)


@pytest.mark.mission("W9")
class TestFeatureSelection:
    def test_best_subset_is_exhaustive(self, rng):
        X = rng.normal(size=(60, 8)) @ rng.normal(size=(8, 8))
        y = X[:, 0] - X[:, 4] + 2 * rng.normal(size=60)

        def error(features):
            A = with_ones(X[:, list(features)])
            return np.mean((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2)

        search = hg.BestSubset().fit(X, y)
        for step in search.path_:
            best = min(error(s) for s in combinations(range(8), len(step.features)))
            assert step.error == pytest.approx(best, rel=1e-6)
            assert error(step.features) == pytest.approx(best, rel=1e-6)
        for greedy in (hg.ForwardSelector(), hg.BackwardSelector()):
            for step, best in zip(greedy.fit(X, y).path_, search.path_):
                assert step.error == pytest.approx(error(step.features), rel=1e-6)
                assert step.error >= best.error * (1 - 1e-6)

    @pytest.mark.parametrize(("n", "d"), [(6, 9), (8, 8), (5, 12), (10, 11)])
    def test_best_subset_with_more_features_than_examples(self, rng, n, d):
        X, y = rng.normal(size=(n, d)), rng.normal(size=n)

        def error(features):
            A = with_ones(X[:, list(features)])
            return np.mean((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2)

        search = hg.BestSubset().fit(X, y)
        assert [len(step.features) for step in search.path_] == list(range(d + 1))
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        for step in search.path_:
            best = min(combinations(range(d), len(step.features)), key=error)
            # From X'X: rounding is enlarged by the square of the condition, of the better set or of the one found.
            worst = max((np.linalg.cond(Z[:, s]) for s in (list(best), list(step.features)) if s), default=1.0)
            rounding = 100 * np.finfo(float).eps * worst**2 * y.var() if len(best) < n - 1 else 1e-9 * y.var()
            assert error(best) - 1e-12 <= error(step.features) <= error(best) + rounding
            assert step.error == pytest.approx(error(step.features), abs=rounding)
        assert search.n_features_ == n - 1  # the first size that fits perfectly

    @pytest.mark.parametrize("noise", [1.0, 1e-3])
    def test_best_subset_with_copies_of_features_has_exact_errors(self, rng, noise):
        """Dependent features: the search needs a ridge there, the errors it reports have none."""
        X = rng.normal(size=(30, 5))
        X = np.column_stack([X, X[:, 0], X[:, 1] + X[:, 2]])
        y = X[:, 0] + X[:, 3] + noise * rng.normal(size=30)

        def error(features):
            A = with_ones(X[:, list(features)])
            return np.mean((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2)

        for cls in (hg.BestSubset, hg.ForwardSelector, hg.BackwardSelector):
            for step in cls().fit(X, y).path_:
                assert step.error == pytest.approx(error(step.features), rel=1e-7)
        for step in hg.BestSubset().fit(X, y).path_:
            best = min(error(s) for s in combinations(range(7), len(step.features)))
            assert step.error == pytest.approx(best, rel=1e-6)

    def test_weights_of_a_learner_are_repetitions(self, rng):
        X, y = noisy_classes(rng, 60)
        s = rng.integers(0, 4, size=60)
        fold = np.arange(60) % 3
        for cls in (hg.ForwardSelector, hg.BackwardSelector, hg.BestSubset):
            one = cls(hg.LogisticRegression(), lam=0.01, scoring="neg_log_loss", cv=PredefinedSplit(fold))
            many = cls(
                hg.LogisticRegression(), lam=0.01, scoring="neg_log_loss", cv=PredefinedSplit(np.repeat(fold, s))
            )
            one.fit(X, y, s)
            many.fit(np.repeat(X, s, axis=0), np.repeat(y, s))
            np.testing.assert_allclose(
                [step.error for step in one.path_], [step.error for step in many.path_], rtol=1e-4
            )
        with pytest.raises(ValueError, match="does not take it"):
            hg.ForwardSelector(hg.GaussianProcessClassifier()).fit(X, y, s)

    def test_price_of_a_feature(self, rng):
        X = rng.normal(size=(100, 6))
        y = 2 * X[:, 1] - X[:, 4] + 0.1 * rng.normal(size=100)
        for cls in (hg.ForwardSelector, hg.BackwardSelector, hg.BestSubset):
            search = cls(lam=0.05).fit(X, y)
            assert np.flatnonzero(search.support_).tolist() == [1, 4]
            assert search.objective_ == pytest.approx(search.error_ + 0.1)
            assert search.transform(X).shape == (100, 2)

    def test_any_learner_and_score(self, rng):
        X, y = noisy_classes(rng, 80)
        learner = hg.LogisticRegression()
        searches = [
            cls(learner, n_features_to_select=2, scoring="neg_log_loss", cv=3).fit(X, y)
            for cls in (hg.ForwardSelector, hg.BackwardSelector, hg.BestSubset)
        ]
        for search in searches:
            assert search.support_.tolist() == [True, True, False]


@pytest.mark.mission("O2", "O9")
def test_stochastic_descent_is_near_the_optimum(rng):
    X, y = noisy_classes(rng, 400)
    exact = hg.Learner(loss=hg.Logistic(), penalty=hg.L2(0.01)).fit(X, y)
    rough = hg.SGDClassifier(hg.Logistic(), alpha=0.01, average=True, tol=None, max_iter=50, random_state=0).fit(X, y)
    assert rough.certificate_.primal <= exact.certificate_.primal * 1.01
    pieces = hg.SGDClassifier("log_loss", alpha=0.01, random_state=0)
    for part in np.array_split(np.arange(400), 8):
        pieces.partial_fit(X[part], y[part], classes=[-1, 1])
    assert pieces.score(X, y) > 0.8


@pytest.mark.mission("O2", "L1")
def test_weights_of_stochastic_descent_mean_the_weighted_objective(rng):
    """A step of double length is not two steps, but both go to the optimum of the same weighted risk."""
    X, y = noisy_classes(rng, 300)
    s = rng.integers(0, 5, size=300)
    exact = hg.Learner(loss=hg.Logistic(), penalty=hg.L2(0.05)).fit(X, y, sample_weight=s)
    objective = hg.make_objective(X, y, hg.Logistic(), hg.L2(0.05), sample_weight=s)
    options = {"alpha": 0.05, "average": True, "tol": None, "max_iter": 100, "random_state": 0}
    weighted = hg.SGDClassifier(hg.Logistic(), **options).fit(X, y, sample_weight=s)
    repeated = hg.SGDClassifier(hg.Logistic(), **options).fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    for model in (weighted, repeated):
        assert objective.value(model.coef_[0], model.intercept_) <= exact.certificate_.primal * 1.001
        np.testing.assert_allclose(model.coef_[0], exact.coef_, atol=0.05)
    unweighted = hg.SGDClassifier(hg.Logistic(), **options).fit(X, y)
    assert weighted.certificate_.primal == pytest.approx(objective.value(weighted.coef_[0], weighted.intercept_))
    assert abs(unweighted.intercept_[0] - exact.intercept_) > abs(weighted.intercept_[0] - exact.intercept_)
    # In pieces a weight has the same meaning in every piece: it is the length of the step.
    x = np.array([[1.0, 2.0]])
    plain, double = (
        hg.SGDRegressor(penalty=None).partial_fit(x, [3.0], sample_weight=[weight]) for weight in (1.0, 2.0)
    )
    np.testing.assert_allclose(double.coef_, 2.0 * plain.coef_)


@pytest.mark.mission("W4", "O7")
def test_newton_leaves_the_flat_parts_of_hubers_loss(rng):
    """With all residuals on the straight parts the curvature is that of the penalty alone, next to nothing."""
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 1.0, 2.0, 30.0])
    model = hg.Learner(loss=hg.Huber(0.1), penalty=hg.L2(1e-6)).fit(X, y)
    assert model.certificate_.converged
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), [1.2, -0.1], atol=1e-3)
    for _ in range(20):
        X = rng.normal(size=(40, 3))
        objective = hg.make_objective(X, 10.0 * rng.standard_t(1.5, size=40), hg.Huber(0.05), hg.L2(1e-5))
        for solver in ("newton", "newton-cg", "proximal-newton"):
            assert solve(objective, solver=solver).certificate.converged
        sparse = solve(objective.with_penalty(hg.L1(1e-5)), solver="proximal-newton")
        assert sparse.certificate.converged


@pytest.mark.mission("W8", "O7")
@pytest.mark.parametrize("loss", [hg.Hinge(), hg.Absolute(), hg.EpsilonInsensitive(0.1)], ids=repr)
def test_momentum_takes_dual_coordinate_descent_to_the_optimum(rng, loss):
    """To the same objective as an interior point method; and to a tight gap where moves end in the rounding of w."""
    X = scipy.sparse.random(400, 60, 0.1, format="csr", random_state=1)
    z = X @ rng.normal(size=60) + 0.3 * rng.normal(size=400) + 0.2
    y = np.where(z > 0, 1.0, -1.0) if isinstance(loss, hg.Hinge) else z
    for fit_intercept in (False, True):
        objective = hg.make_objective(X, y, loss, hg.L2(1e-3), fit_intercept=fit_intercept)
        found, known = (
            solve(objective, solver=name, tol=1e-7, max_iter=limit)
            for name, limit in (("dual-coordinate-descent", 100_000), ("interior-point", None))
        )
        assert found.certificate.converged
        assert found.certificate.primal == pytest.approx(known.certificate.primal, rel=2e-7)
    wide = scipy.sparse.random(100, 300, 0.1, format="csr", random_state=2)
    objective = hg.make_objective(wide, y[:100], loss, hg.L2(1e-5), fit_intercept=False)
    assert solve(objective, solver="dual-coordinate-descent", tol=1e-6).certificate.converged


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_ridge_finds_what_is_not_finite_in_its_sums(bad, rng):
    """Dense doubles are not searched for NaN and infinity beforehand; they are refused all the same, wherever they are."""
    X, y = rng.normal(size=(300, 20)), rng.normal(size=300)
    for row, column in ((0, 0), (299, 19), (128, 7)):
        broken = X.copy()
        broken[row, column] = bad
        with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
            hg.Ridge().fit(broken, y)
    with pytest.raises(ValueError, match="overflowed"):
        hg.Ridge().fit(1e200 * X, y)


@pytest.mark.mission("W9")
@pytest.mark.parametrize("search", [hg.BestSubset, hg.ForwardSelector, hg.BackwardSelector])
@pytest.mark.parametrize("learner", [None, hg.LinearRegression(), hg.LogisticRegression()], ids=repr)
def test_no_features_at_all_is_an_answer(search, learner, rng):
    """Where every feature costs more than it brings, the empty set is chosen, whatever the learner."""
    X = rng.normal(size=(60, 3))
    y = (rng.random(60) < 0.4) * 1.0
    scoring = (
        None if learner is None else "neg_brier_score" if "Logistic" in repr(learner) else "neg_mean_squared_error"
    )
    found = search(learner, lam=10.0, scoring=scoring).fit(X, y)
    assert found.n_features_ == 0
    assert found.path_[0].features == ()
    assert found.error_ == pytest.approx(np.var(y), rel=1e-6)
