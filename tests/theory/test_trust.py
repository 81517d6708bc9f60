"""L2 and L3: the parts of a risk add up, and equal the formulas of the textbook (also L4, L5 in use)."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import hinge as hg
from hinge.models.leave_one_out import leave_one_out

SLOW_LINE = hg.Learner(loss=hg.Squared(), solver=hg.solvers.GradientDescent(step=0.2), max_iter=3, tol=1e-12)
CASES = {
    "least squares": (hg.generators.StepCurve(), hg.LinearRegression(), {}),
    "ridge": (hg.generators.LinearGaussian([1.0, -2.0, 0.5]), hg.Ridge(alpha=5.0), {}),
    "cubic": (hg.generators.SineCurve(), make_pipeline(PolynomialFeatures(3), hg.LinearRegression()), {}),
    "tree": (hg.generators.StepCurve(), hg.DecisionTreeRegressor(max_depth=3), {}),
    "kernel": (hg.generators.SineCurve(), hg.KernelRidge(alpha=0.5, kernel="rbf", gamma=2.0), {"points": 600}),
    "few steps": (hg.generators.PolynomialCurve(), SLOW_LINE, {}),
    "logistic": (hg.generators.LogisticLabels([1.0, -1.0], curvature=0.3), hg.LogisticRegression(), {}),
}


@pytest.mark.mission("L2")
class TestDecomposition:
    @pytest.mark.parametrize("name", CASES)
    def test_the_parts_add_up_exactly(self, name):
        generator, learner, options = CASES[name]
        parts = hg.decompose_risk(generator, learner, n=40, repeats=8, **options)
        found, solved, limit, bayes = parts.risks.T
        total = (found - solved) + (solved - limit) + (limit - bayes) + bayes
        np.testing.assert_allclose(total, found, rtol=1e-13)
        whole = parts.optimisation.value + parts.estimation.value + parts.approximation + parts.bayes
        assert whole == pytest.approx(parts.risk.value, rel=1e-12)
        # The risk of a model is a mean over fresh examples, up to their noise.
        X, y = generator.sample(40, 5)
        model = type(learner)(**learner.get_params(deep=False)).fit(X, y) if name == "ridge" else None
        if model is not None:
            fresh, answers = generator.sample(200_000, 6)
            grid = generator.quadrature(8192)
            exact = generator.risk(model.predict(grid), grid)
            assert np.mean((model.predict(fresh) - answers) ** 2) == pytest.approx(exact, rel=0.02)

    def test_bayes_and_class_are_lower_bounds(self):
        """R(f*) ≤ R(f_F) ≤ R(f̂) for minimisers over a fixed class."""
        for name in ("least squares", "cubic", "few steps", "logistic"):
            generator, learner, options = CASES[name]
            parts = hg.decompose_risk(generator, learner, n=60, repeats=8, **options)
            _, solved, limit, bayes = parts.risks.T
            slack = 2e-3 * bayes if name == "logistic" else 1e-12  # its penalty keeps f_F a little off
            assert np.all(bayes <= limit)
            assert np.all(limit <= solved + slack)

    def test_a_linear_class_has_no_approximation_error_on_a_line(self):
        parts = hg.decompose_risk(
            hg.generators.LinearGaussian([1.0, -2.0, 0.5], noise=0.7), hg.LinearRegression(), n=30
        )
        assert parts.approximation == pytest.approx(0.0, abs=1e-20)
        assert parts.bayes == pytest.approx(0.49)

    def test_least_squares_estimation_error_is_the_textbooks(self):
        """E R(f̂) − σ² = σ² (d + 1/n·…)/(n − d − 2) for Gaussian inputs, d weights and a bias."""
        d, n, sigma = 4, 40, 0.8
        truth = hg.generators.LinearGaussian(np.ones(d), noise=sigma)
        parts = hg.decompose_risk(truth, hg.LinearRegression(), n=n, repeats=400, points=4096)
        # E tr(S⁻¹) = d/(n − d − 2) for the scatter of n − 1 degrees of freedom, plus 1/n for the mean.
        expected = sigma**2 * (d / (n - d - 2) * (1 + 1 / n) + 1 / n)
        assert abs(parts.estimation.value - expected) < 4 * parts.estimation.standard_error

    def test_the_step_seen_by_a_line_in_closed_form(self):
        """Best line for [x > e] on [−1, 1]: slope ¾(1 − e²), and what is left of the variance."""
        e = 0.2
        parts = hg.decompose_risk(
            hg.generators.StepCurve(edge=e, noise=0.3), hg.LinearRegression(), n=50, repeats=2, points=20_000
        )
        p = (1 - e) / 2
        covariance = (1 - e**2) / 4
        left = p * (1 - p) - covariance**2 * 3.0
        assert parts.approximation == pytest.approx(left, rel=1e-3)
        assert parts.bayes == pytest.approx(0.09)

    def test_optimisation_error_falls_with_steps(self):
        """Above zero at first; near the end it may be a little below, for stopping early is a penalty too."""
        source = hg.generators.PolynomialCurve()
        sizes = []
        for steps in (1, 6, 25):
            learner = hg.Learner(
                loss=hg.Squared(), solver=hg.solvers.GradientDescent(step=0.2), max_iter=steps, tol=1e-12
            )
            sizes.append(hg.decompose_risk(source, learner, n=200, repeats=6).optimisation.value)
        assert sizes[0] > sizes[1] > abs(sizes[2])

    def test_classes_grow_and_examples_grow(self):
        """Richer class: less approximation, more estimation error. More examples: less estimation error."""
        source = hg.generators.SineCurve(frequency=1.0, noise=0.3)

        def poly(degree):
            return make_pipeline(PolynomialFeatures(degree), hg.LinearRegression())

        grown = [hg.decompose_risk(source, poly(k), n=150, repeats=40, points=2000) for k in (3, 5, 9)]
        approximation = [p.approximation for p in grown]
        estimation = [p.estimation.value for p in grown]
        assert np.all(np.diff(approximation) < 0)
        assert np.all(np.diff(estimation) > 0)
        more = [hg.decompose_risk(source, poly(5), n=n, repeats=30, points=2000) for n in (20, 80, 320)]
        assert np.all(np.diff([p.estimation.value for p in more]) < 0)
        # Parametric rate: four times the examples, about a quarter of the error.
        assert more[1].estimation.value / more[2].estimation.value == pytest.approx(4.0, rel=0.4)

    @pytest.mark.mission("L4")
    @pytest.mark.parametrize(
        ("loss", "learner"),
        [
            (hg.Absolute(), hg.Learner(loss=hg.Absolute(), penalty=hg.L2(1e-9))),
            (hg.Quantile(0.9), hg.QuantileRegressor(quantile=0.9, alpha=0.0)),
            (hg.Quantile(0.2), hg.Learner(loss=hg.Quantile(0.2), penalty=hg.L2(1e-9))),
            (hg.Huber(0.5), hg.Learner(loss=hg.Huber(0.5))),
            (hg.LogCosh(), hg.Learner(loss=hg.LogCosh())),
        ],
        ids=lambda v: type(v).__name__,
    )
    def test_the_bayes_predictor_is_that_of_the_loss(self, loss, learner):
        """On a line with normal noise a linear class holds f*, whatever the loss: no approximation error."""
        source = hg.generators.LinearGaussian([1.0, -2.0], noise=0.7)
        parts = hg.decompose_risk(source, learner, n=80, repeats=3, points=64)
        assert parts.approximation == pytest.approx(0.0, abs=2e-3 * parts.bayes)
        _, solved, limit, bayes = parts.risks.T
        assert np.all(bayes <= limit + 1e-12)
        assert np.all(limit <= solved + 2e-3 * bayes)
        # The noise does not depend on x, so the Bayes risk is that of the best constant for it: a one-dimensional
        # integral, by the midpoint rule in the probability of the noise. f* − E[y | x] is that constant.
        noise = 0.7 * scipy.stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
        X = source.quadrature(16)
        shift = source.bayes(X, loss) - source.mean(X)
        np.testing.assert_allclose(shift, shift[0], atol=1e-6)
        risks = [
            np.mean(loss.value(noise, np.full(20_000, c))) for c in (shift[0], *(shift[0] + np.array([-0.02, 0.02])))
        ]
        assert risks[0] == pytest.approx(parts.bayes, rel=1e-3)
        assert risks[0] < min(risks[1:])

    @pytest.mark.mission("L4")
    def test_bayes_predictors_in_closed_form(self):
        source = hg.generators.SineCurve(noise=0.5)
        X = source.quadrature(16)
        mean = source.mean(X)
        np.testing.assert_allclose(source.bayes(X, hg.Squared()), mean)
        np.testing.assert_allclose(source.bayes(X, hg.Absolute()), mean, atol=1e-12)
        np.testing.assert_allclose(source.bayes(X, hg.Quantile(0.9)), mean + 0.5 * 1.2815515655446004)
        labels = hg.generators.LogisticLabels([1.0, -2.0], intercept=0.3)
        X = labels.quadrature(16)
        np.testing.assert_array_equal(labels.bayes(X, hg.ZeroOne()), labels.mean(X) > 0.5)
        p = labels.mean(X)
        np.testing.assert_allclose(labels.bayes(X, hg.Logistic()), np.log(p / (1 - p)), rtol=1e-6)
        assert labels.risk(labels.bayes(X, hg.ZeroOne()), X, hg.ZeroOne()) == pytest.approx(
            np.mean(np.minimum(p, 1 - p))
        )

    @pytest.mark.parametrize("loss", [hg.ZeroOne(), hg.Logistic(), hg.Hinge()], ids=lambda v: type(v).__name__)
    def test_losses_of_labels(self, loss):
        source = hg.generators.LogisticLabels([1.0, -2.0])
        learner = hg.LinearSVC() if isinstance(loss, hg.Hinge) else hg.LogisticRegression(C=1e6)
        parts = hg.decompose_risk(source, learner, n=100, repeats=3, points=256, loss=loss)
        assert parts.bayes <= parts.risks[:, 2].min() + 1e-9
        assert parts.excess > 0
        if not isinstance(loss, hg.Hinge):  # a linear score holds the Bayes predictor, which the hinge loss has not
            assert parts.approximation == pytest.approx(0.0, abs=1e-3)

    def test_losses_that_do_not_suit_the_generator_are_refused(self):
        with pytest.raises(ValueError, match="no loss of labels"):
            hg.decompose_risk(hg.generators.LogisticLabels([1.0]), hg.LogisticRegression(), n=20, loss=hg.Absolute())
        with pytest.raises(ValueError, match="draws real numbers"):
            hg.decompose_risk(hg.generators.SineCurve(), hg.LinearRegression(), n=20, loss=hg.Poisson())

    def test_wrong_arguments(self):
        with pytest.raises(ValueError, match="n must be"):
            hg.decompose_risk(hg.generators.SineCurve(), hg.LinearRegression(), n=1)
        with pytest.raises(ValueError, match="predict_proba"):
            hg.decompose_risk(hg.generators.LogisticLabels([1.0]), hg.LinearSVC(), n=20)


@pytest.mark.mission("L3")
class TestBiasVariance:
    @pytest.mark.parametrize("alpha", [0.0, 3.0])
    def test_ridge_is_its_closed_form(self, alpha):
        """Fixed inputs: variance tr(x'Cov x), bias² (x'b)², with Cov and b from ridge_moments."""
        theta, sigma, n = np.array([1.0, -2.0, 0.5]), 0.7, 25
        source = hg.generators.LinearGaussian(theta, noise=sigma)
        x = source.quadrature(64)
        learner = hg.Ridge(alpha=alpha, fit_intercept=False) if alpha else hg.LinearRegression(fit_intercept=False)
        parts = hg.bias_variance(learner, source, n=n, repeats=1500, x=x, noise_only=True, random_state=3)
        X = source.inputs(n, np.random.default_rng(3))
        moments = hg.ridge_moments(X, theta, sigma=sigma, alpha=alpha)
        variance = np.mean(np.einsum("ij,jk,ik->i", x, moments.covariance, x))
        bias2 = np.mean((x @ moments.bias) ** 2)
        assert abs(parts.variance.value - variance) < 4 * parts.variance.standard_error
        assert abs(parts.bias2.value - bias2) < 4 * parts.bias2.standard_error + 1e-12
        assert parts.noise == pytest.approx(sigma**2)

    LEARNERS = (
        hg.LinearRegression(),
        hg.Ridge(alpha=10.0),
        hg.DecisionTreeRegressor(max_depth=4),
        hg.KernelRidge(alpha=0.1, kernel="rbf", gamma=1.0),
        hg.RandomForestRegressor(n_estimators=10, random_state=0),
    )

    @pytest.mark.parametrize("learner", LEARNERS, ids=repr)
    def test_risk_is_variance_plus_bias_plus_noise(self, learner):
        source = hg.generators.SineCurve(noise=0.4)
        parts = hg.bias_variance(learner, source, n=40, repeats=40)
        total = parts.variance.value + parts.bias2.value + parts.noise
        assert total == pytest.approx(parts.risk.value, rel=1e-10)  # an identity, not a coincidence

    @pytest.mark.parametrize("learner", LEARNERS, ids=repr)
    def test_resampled_risk_is_variance_plus_the_rest(self, learner):
        X, y = hg.generators.SineCurve(noise=0.4).sample(80)
        parts = hg.bias_variance(learner, (X, y), repeats=30)
        assert parts.variance.value + parts.bias2_plus_noise.value == pytest.approx(parts.risk.value, rel=1e-10)
        assert parts.bias2 is None

    def test_labels(self):
        source = hg.generators.LogisticLabels([2.0, -1.0])
        parts = hg.bias_variance(hg.LogisticRegression(), source, n=60, repeats=40)
        total = parts.variance.value + parts.bias2.value + parts.noise
        assert total == pytest.approx(parts.risk.value, rel=1e-10)
        X, y = source.sample(120)
        parts = hg.bias_variance(hg.DecisionTreeClassifier(max_depth=3), (X, y), repeats=20)
        assert parts.variance.value + parts.bias2_plus_noise.value == pytest.approx(parts.risk.value, rel=1e-10)

    def test_deeper_trees_have_less_bias_and_more_variance(self):
        source = hg.generators.SineCurve(frequency=2.0, noise=0.5)
        parts = [
            hg.bias_variance(hg.DecisionTreeRegressor(max_depth=k), source, n=80, repeats=60) for k in (1, 3, None)
        ]
        assert parts[0].bias2.value > parts[1].bias2.value
        assert parts[0].variance.value < parts[1].variance.value < parts[2].variance.value

    def test_a_forest_averages_variance_away(self):
        source = hg.generators.SineCurve(frequency=2.0, noise=0.5)
        tree = hg.bias_variance(hg.DecisionTreeRegressor(), source, n=80, repeats=40)
        forest = hg.bias_variance(hg.RandomForestRegressor(n_estimators=30, random_state=0), source, n=80, repeats=40)
        assert forest.variance.value < 0.7 * tree.variance.value

    def test_wrong_arguments(self, rng):
        with pytest.raises(ValueError, match="number of examples"):
            hg.bias_variance(hg.Ridge(), hg.generators.SineCurve())
        with pytest.raises(ValueError, match="repeats must be"):
            hg.bias_variance(hg.Ridge(), hg.generators.SineCurve(), n=5, repeats=1)
        with pytest.raises(ValueError, match="predict_proba"):
            hg.bias_variance(hg.LinearSVC(), (rng.normal(size=(20, 2)), np.arange(20) % 2))


@pytest.mark.mission("L4")
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")  # few members, on purpose
def test_generators_give_the_bayes_predictor_of_the_squared_loss():
    """No other function of x has a lower risk than E[y | x], and its risk is E Var(y | x)."""
    for source in (
        hg.generators.StepCurve(),
        hg.generators.PolynomialCurve(),
        hg.generators.SineCurve(),
        hg.generators.LogisticLabels([1.0, 2.0]),
    ):
        X = source.quadrature(4096)
        best = source.risk(source.mean(X), X)
        for shift in (-0.05, 0.05):
            assert source.risk(np.clip(source.mean(X) + shift, 1e-3, 1 - 1e-3) if source.labels
                               else source.mean(X) + shift, X) > best  # fmt: skip
        x, y = source.sample(200_000)
        assert np.mean((y - source.mean(x)) ** 2) == pytest.approx(np.mean(source.variance(X)), rel=0.02)


@pytest.mark.mission("L5")
class TestGuarantees:
    def test_perceptron(self, rng):
        X = rng.normal(size=(200, 3))
        X = X[np.abs(X @ [1.0, 1.0, 0.0]) > 0.3]
        model = hg.Perceptron(tol=None).fit(X, (X @ [1.0, 1.0, 0.0] > 0).astype(int))
        promise = {g.name: g for g in hg.guarantees(model)}["mistake bound"]
        assert model.mistakes_[0] <= promise.value

    def test_support_vectors_bound_leave_one_out(self, rng):
        X = rng.normal(size=(60, 2))
        y = (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int)
        for model in (hg.SVC(kernel="linear", C=1.0, tol=1e-8), hg.LinearSVC(loss="hinge", C=1.0, tol=1e-10)):
            promise = {g.name: g for g in hg.guarantees(model.fit(X, y))}["support vectors"]
            margins = np.where(y == 1, 1, -1) * model.decision_function(X)
            near = np.sum(margins <= 1 + 1e-4)  # support vectors lie on the margin or on the wrong side of it
            assert promise.value == pytest.approx(near / 60)
            assert f"{near}/60" in promise.sentence
            assert getattr(model, "loo_bound_", promise.value) == promise.value
            wrong = 0
            for i in range(60):
                rest = np.arange(60) != i
                wrong += model.fit(X[rest], y[rest]).predict(X[i : i + 1])[0] != y[i]
            assert wrong / 60 <= promise.value

    @pytest.mark.mission("V1")
    @pytest.mark.parametrize(
        "model",
        [hg.LinearRegression(), hg.Ridge(alpha=2.0), hg.Ridge(alpha=2.0, fit_intercept=False),
         hg.KernelRidge(alpha=0.5, kernel="rbf", gamma=0.5)],
        ids=repr,
    )  # fmt: skip
    def test_leave_one_out_from_one_fit(self, rng, model):
        X = rng.normal(size=(30, 4)) + 1.0
        y, new = X[:, 0] ** 2 + rng.normal(size=30), rng.normal(size=(7, 4))
        exact = leave_one_out(model.fit(X, y), X, y)
        every = exact.predictions(model, new)
        for i in range(30):
            rest = np.arange(30) != i
            less = type(model)(**model.get_params()).fit(X[rest], y[rest])
            assert exact.residuals[i] == pytest.approx(y[i] - less.predict(X[i : i + 1])[0], rel=1e-6)
            np.testing.assert_allclose(every[:, i], less.predict(new), rtol=1e-6, atol=1e-8)
        promise = {g.name: g for g in hg.guarantees(model.fit(X, y), X, y)}["leave-one-out"]
        assert promise.value == pytest.approx(np.mean(exact.residuals**2), rel=1e-9)

    def test_out_of_bag_and_gap(self, rng):
        X = rng.normal(size=(80, 3))
        y = (X[:, 0] > 0).astype(int)
        forest = hg.RandomForestClassifier(n_estimators=20, oob_score=True, random_state=0).fit(X, y)
        assert {g.name: g.value for g in hg.guarantees(forest)}["out-of-bag"] == pytest.approx(1 - forest.oob_score_)
        model = hg.LogisticRegression().fit(X, y)
        gap = {g.name: g.value for g in hg.guarantees(model)}["duality gap"]
        assert gap == model.certificate_.relative_gap


@pytest.mark.mission("L9")
@pytest.mark.parametrize(
    "model",
    [hg.Ridge(), hg.Lasso(alpha=0.01), hg.LinearSVC(), hg.LogisticRegression(), hg.SVC(), hg.SVC(kernel="linear"),
     hg.SVR(), hg.KernelRidge(kernel="rbf"), hg.Learner(hg.RKHS(hg.kernels.RBF(2.0)), hg.Logistic(), hg.L2(0.1)),
     hg.Learner(hg.RKHS(hg.kernels.Matern(1.0)), hg.Squared(), hg.L2(0.1))],
    ids=lambda m: repr(m)[:60],
)  # fmt: skip
def test_a_norm_bounds_how_fast_the_score_changes(model, rng):
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=80) > 0).astype(int)
    model.fit(X, y)
    promise = next(g for g in hg.guarantees(model) if g.name == "sensitivity")
    score = model.decision_function if hasattr(model, "decision_function") else model.predict
    at, step = rng.normal(size=(500, 3)), rng.normal(size=(500, 3)) * 10.0 ** rng.uniform(-3, 1, size=(500, 1))
    change = np.abs(score(at + step) - score(at))
    length = np.linalg.norm(step, axis=1)
    if "Matern" in repr(model):  # the distance in the kernel's own space
        kernel = model.space.kernel
        length = np.sqrt(
            np.maximum(2.0 - 2.0 * np.array([kernel(a[None], b[None])[0, 0] for a, b in zip(at, at + step)]), 0)
        )
    assert np.all(change <= promise.value * length * (1 + 1e-9) + 1e-12)
    assert np.max(change / np.maximum(length, 1e-300)) >= 0.05 * promise.value  # and not idly


@pytest.mark.mission("L9")
def test_prices_of_errors_set_the_threshold(rng):
    """The threshold is where the two expected costs are equal; no other one costs less on calibrated probabilities."""
    assert hg.decisions.cost_threshold([[0, 1], [1, 0]]) == 0.5
    cost = np.array([[1.0, 3.0], [9.0, 2.0]])
    t = hg.decisions.cost_threshold(cost)
    assert (1 - t) * cost[0, 0] + t * cost[1, 0] == pytest.approx((1 - t) * cost[0, 1] + t * cost[1, 1])
    p = rng.random(20_000)
    y = (rng.random(20_000) < p).astype(int)
    costs = {at: cost[y, (p >= at).astype(int)].mean() for at in (t, 0.1, 0.5, 0.7)}
    assert min(costs, key=costs.get) == t
    proba = np.column_stack([1 - p, p])
    assert np.array_equal(hg.decisions.least_cost(proba, cost), (p >= t).astype(int))
    three = rng.dirichlet(np.ones(3), size=50)
    table = np.array([[0.0, 1, 5], [2, 0, 1], [9, 3, 0]])
    brute = [min("abc", key=lambda b: row @ table[:, "abc".index(b)]) for row in three]
    assert hg.decisions.least_cost(three, table, classes=["a", "b", "c"]).tolist() == brute
    with pytest.raises(ValueError, match="larger for a wrong decision"):
        hg.decisions.cost_threshold([[1, 0], [0, 1]])


@pytest.mark.mission("P6")
def test_three_estimates_of_the_noise(rng):
    """Maximum likelihood, unbiased, and the mode under a prior tied to σ²: closed forms, a search, and their biases."""
    X, theta = rng.normal(size=(12, 3)), np.array([1.0, -1.0, 0.5])
    y = X @ theta + rng.normal(size=12)
    known = hg.noise_variance(X, y, alpha=2.0)
    fit = hg.LinearRegression().fit(X, y)
    rss = np.sum((y - fit.predict(X)) ** 2)
    assert known.maximum_likelihood == pytest.approx(rss / 12)
    assert known.unbiased == pytest.approx(rss / (12 - 4))
    assert known.unbiased == pytest.approx(fit.inference_.sigma2)
    ridge = hg.Ridge(alpha=2.0, tol=1e-12).fit(X, y)
    left = np.sum((y - ridge.predict(X)) ** 2) + 2.0 * ridge.coef_ @ ridge.coef_
    grid = known.maximum_posterior * np.linspace(0.5, 2.0, 3001)
    log_posterior = -(12 + 3) / 2 * np.log(grid) - left / (2 * grid)
    assert grid[np.argmax(log_posterior)] == pytest.approx(known.maximum_posterior, rel=1e-3)
    many = [hg.noise_variance(X, X @ theta + 2.0 * rng.normal(size=12)) for _ in range(3000)]
    assert np.mean([m.unbiased for m in many]) == pytest.approx(4.0, rel=0.08)
    assert np.mean([m.maximum_likelihood for m in many]) == pytest.approx(4.0 * 8 / 12, rel=0.08)


@pytest.mark.mission("P6")
def test_naive_bayes_with_shared_variances_tends_to_logistic_regression(rng):
    """Where its assumptions hold both estimate the same line, and come closer as n grows."""
    distance = {}
    for n in (200, 50_000):
        y = rng.integers(0, 2, size=n)
        X = rng.normal(size=(n, 2)) * [1.0, 2.0] + np.outer(y, [1.0, -1.5])
        logistic = hg.LogisticRegression(C=np.inf).fit(X, y)
        means = [X[y == c].mean(axis=0) for c in (0, 1)]
        shared = np.mean((X - np.array(means)[y]) ** 2, axis=0)
        weights = (means[1] - means[0]) / shared
        distance[n] = np.linalg.norm(weights - logistic.coef_[0])
    exact = np.array([1.0, -1.5 / 4.0])
    assert distance[50_000] < 0.06
    assert distance[50_000] < distance[200] + 1e-3
    assert weights == pytest.approx(exact, abs=0.05)
    assert logistic.coef_[0] == pytest.approx(exact, abs=0.06)
