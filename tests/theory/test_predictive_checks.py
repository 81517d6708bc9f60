"""Predictions before any data, checks after, and decisions by plain functions and tables of costs."""

import numpy as np
import pytest
import scipy.stats

import hinge as hg
from hinge.problem.decisions import Bernoulli, Beta, Categorical, Dirichlet, Empirical, Gamma, NegativeBinomial, Normal

PAIRS = [
    hg.conjugate.BetaBernoulli(2.0, 3.0),
    hg.conjugate.DirichletCategorical([1.0, 2.0, 3.0]),
    hg.conjugate.GammaPoisson(3.0, 1.5),
    hg.conjugate.NormalNormal(1.0, 2.0, 0.5),
    hg.conjugate.NormalInverseGamma(1.0, 2.0, 5.0, 4.0),
]
DRAWS = 20000


def close(found, wanted, spread, draws=DRAWS):
    """Six standard errors."""
    np.testing.assert_allclose(found, wanted, atol=float(6 * np.max(spread) / np.sqrt(draws)))


@pytest.mark.mission("B5")
@pytest.mark.parametrize("model", PAIRS, ids=lambda m: type(m).__name__)
def test_draws_of_pairs_have_the_predictive_law_and_share_a_parameter(model, rng):
    for pair in (model, model.update(model.sample_y(7, 1, int(rng.integers(2**31)))[:, 0])):
        draws = pair.sample_y(2, DRAWS, int(rng.integers(2**31)))
        law = pair.predictive
        if isinstance(law, Categorical):
            for j, p in enumerate(law.p):
                close(np.mean(draws == j), p, 0.5)
        else:
            close(draws.mean(axis=1), law.mean, law.std)
            for level in (0.1, 0.5, 0.9):
                q = float(law.quantile(level))
                close(np.mean(draws <= q, axis=1), float(law.cdf(q)), 0.5)
    # Two observations of one parameter are not independent, two of different ones are.
    assert np.corrcoef(draws[0], draws[1])[0, 1] > 0


@pytest.mark.mission("B5")
@pytest.mark.parametrize("noise", [0.7, "conjugate"])
def test_linear_prior_predictive_is_the_average_over_the_prior(noise, rng):
    X = rng.normal(size=(3, 2))
    prior = np.array([[2.0, 0.5], [0.5, 1.0]])
    model = hg.BayesianLinearRegression(prior, noise, fit_intercept=False, noise_shape=4.0, noise_rate=2.0)
    law = model.prior_predictive(X)
    covariance = X @ prior @ X.T + np.eye(3) * (1.0 if noise == "conjugate" else noise)
    factor = 2.0 / 3.0 if noise == "conjugate" else 1.0  # E σ² = rate/(shape − 1)
    np.testing.assert_allclose(law.variance, factor * np.diag(covariance))
    draws = model.sample_y(X, DRAWS, 0)
    close(draws.mean(axis=1), 0.0, law.std)
    np.testing.assert_allclose(np.cov(draws), factor * covariance, atol=0.1 * np.max(law.variance))
    # The same as a model that has seen nothing.
    empty = hg.BayesianLinearRegression(prior, noise, fit_intercept=False, noise_shape=4.0, noise_rate=2.0)
    empty.partial_fit(np.zeros((0, 2)), np.zeros(0))
    np.testing.assert_allclose(empty.predictive(X).std, law.std)
    np.testing.assert_allclose(empty.predictive(X, noise=False).std, model.prior_predictive(X, noise=False).std)


@pytest.mark.mission("B5")
@pytest.mark.parametrize("noise", [0.7, "conjugate"])
@pytest.mark.parametrize("bias", [False, True])
def test_linear_draws_have_the_predictive_law_after_fitting(noise, bias, rng):
    X, new = rng.normal(size=(30, 2)), rng.normal(size=(4, 2))
    model = hg.BayesianLinearRegression(2.0, noise, fit_intercept=bias).fit(X, X[:, 0] + rng.normal(size=30))
    law, draws = model.predictive(new), model.sample_y(new, DRAWS, 1)
    close(draws.mean(axis=1), law.mean, law.std)
    for level in (0.1, 0.9):
        close(np.mean(draws <= law.quantile(level)[:, None], axis=1), level, 0.5)
    lines = model.sample_y(new, DRAWS, 1, noise=False)
    np.testing.assert_allclose(lines.std(axis=1), model.predictive(new, noise=False).std, rtol=0.1)


@pytest.mark.mission("B5")
def test_a_flat_prior_has_no_prediction(rng):
    X = rng.normal(size=(5, 2))
    with pytest.raises(ValueError, match="flat"):
        hg.BayesianLinearRegression(1.0, 1.0).prior_predictive(X)
    with pytest.raises(ValueError, match="prior_covariance"):
        hg.BayesianLinearRegression().prior_predictive(X)
    with pytest.raises(ValueError, match="prior_covariance"):
        hg.BayesianLinearRegression().sample_y(X)
    with pytest.raises(ValueError, match="flat"):
        hg.BayesianLogisticRegression(1.0).prior_predictive(X)
    with pytest.raises(ValueError, match="prior_variance"):
        hg.BayesianLogisticRegression(None, fit_intercept=False).prior_predictive(X)
    held = hg.BayesianLinearRegression(1.0, 1.0).prior_predictive(X, intercept=3.0)
    np.testing.assert_allclose(held.mean, 3.0)


@pytest.mark.mission("B5")
def test_logistic_prior_and_posterior_draws(rng):
    X = rng.normal(size=(4, 2))
    model = hg.BayesianLogisticRegression(5.0, predictive="quadrature")
    for b in (0.0, 1.5):
        p = model.prior_predictive(X, intercept=b).p
        w = rng.normal(size=(2, DRAWS)) * np.sqrt(5.0)
        close(p, np.mean(1 / (1 + np.exp(-X @ w - b)), axis=1), 0.5)
        close(model.sample_y(X, DRAWS, 0, intercept=b).mean(axis=1), p, 0.5)
    np.testing.assert_allclose(model.prior_predictive(X, intercept=0.0).p, 0.5)
    Z = rng.normal(size=(60, 2))
    model.fit(Z, np.where(Z[:, 0] + rng.normal(size=60) > 0, "b", "a"))
    close(np.mean(model.sample_y(X, DRAWS, 2) == "b", axis=1), model.predict_proba(X)[:, 1], 0.5)


@pytest.mark.mission("B5")
def test_process_prior_and_draws_with_noise(rng):
    X = rng.normal(size=(5, 1))
    model = hg.GaussianProcessRegressor(2.0 * hg.kernels.RBF(1.0), alpha=0.5, optimizer=None)
    law = model.prior_predictive(X)
    np.testing.assert_allclose(law.variance, 2.0)
    np.testing.assert_allclose(law.mean, 0.0)
    draws = model.sample_y(X, DRAWS, 0, noise=True)
    np.testing.assert_allclose(np.cov(draws), 2.0 * hg.kernels.RBF(1.0)(X) + 0.5 * np.eye(5), atol=0.25)
    model.fit(X, 3.0 + np.sin(X[:, 0]))
    np.testing.assert_allclose(model.prior_predictive(X).variance, 2.0)
    draws = model.sample_y(X, DRAWS, 0, noise=True)
    np.testing.assert_allclose(draws.var(axis=1), model.predictive(X).variance + 0.5, rtol=0.1)
    scaled = hg.GaussianProcessRegressor(2.0 * hg.kernels.RBF(1.0), alpha=0.5, optimizer=None, normalize_y=True)
    y = 10.0 * np.sin(X[:, 0])
    wanted = scaled.fit(X, y).predictive(X).variance + 0.5 * y.var()
    np.testing.assert_allclose(scaled.sample_y(X, DRAWS, 0, noise=True).var(axis=1), wanted, rtol=0.1)


def models_and_data(rng):
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60)
    labels = np.where(y > 0, "up", "down")
    yield hg.BayesianLinearRegression(1.0, 1.0, fit_intercept=False), X, y
    yield hg.BayesianLinearRegression(1.0, "conjugate", fit_intercept=False), X, y
    yield hg.BayesianLogisticRegression(1.0, fit_intercept=False), X, labels
    yield hg.GaussianProcessRegressor(1.0 * hg.kernels.RBF(1.0), alpha=1.0, optimizer=None), X, y


@pytest.mark.mission("B5")
def test_checks_pass_models_that_made_the_data_and_fail_those_that_did_not(rng):
    for model, X, y in models_and_data(rng):
        before = hg.predictive_check(model, X, y, n_draws=400)
        after = hg.predictive_check(model.fit(X, y), X, y, n_draws=400)
        assert not before.fitted
        assert after.fitted
        for check in (before, after):
            assert check.draws.shape == (60, 400)
            assert set(check.tail) == set(check.observed) == set(check.replicated)
            assert "predictive check" in str(check)
            assert all(0 <= t <= 1 for t in check.tail.values())
        assert 0.001 < after.tail["mean"] < 0.999
        # After seeing data the model makes data that are more like them.
        assert np.std(after.replicated["mean"]) <= np.std(before.replicated["mean"]) + 1e-12
        if y.dtype.kind == "f":
            wild = hg.predictive_check(model, X, y + 100.0 * (np.arange(60) == 7), n_draws=400)
            assert wild.tail["max"] == 0.0


@pytest.mark.mission("B5")
@pytest.mark.parametrize("model", PAIRS, ids=lambda m: type(m).__name__)
def test_checks_of_pairs(model, rng):
    data = model.sample_y(40, 1, int(rng.integers(2**31)))[:, 0]
    assert not hg.predictive_check(model, data, n_draws=100).fitted
    check = hg.predictive_check(model.update(data), data, n_draws=400)
    assert check.fitted
    assert 0.001 < check.tail["mean"] < 0.999


@pytest.mark.mission("B5")
def test_the_prior_tail_of_data_from_the_prior_is_uniform(rng):
    """The tail probability is a p-value before fitting: uniform, if the data come from the model."""
    model = hg.conjugate.NormalNormal(1.0, 2.0, 0.5)
    data = model.sample_y(10, 200, int(rng.integers(2**31)))
    tails = [
        hg.predictive_check(model, column, n_draws=200, random_state=i).tail["mean"] for i, column in enumerate(data.T)
    ]
    assert scipy.stats.kstest(tails, "uniform").pvalue > 1e-4


def test_the_picture_of_a_check(rng):
    plt = pytest.importorskip("matplotlib.pyplot")
    check = hg.predictive_check(hg.conjugate.GammaPoisson(2.0, 1.0), rng.poisson(2.0, 30), n_draws=50)
    axes = check.plot()
    assert len(axes) == 5
    assert "tail" in axes[1].get_title()
    plt.close("all")


def test_wrong_uses_of_checks_are_named(rng):
    with pytest.raises(ValueError, match="in place of X"):
        hg.predictive_check(hg.conjugate.GammaPoisson(), [1, 2], [1, 2])
    with pytest.raises(ValueError, match="y is missing"):
        hg.predictive_check(hg.BayesianLinearRegression(1.0, 1.0), np.zeros((3, 1)))
    with pytest.raises(TypeError, match="sample_y"):
        hg.predictive_check(hg.Ridge(), np.zeros((3, 1)), np.zeros(3))


@pytest.mark.parametrize(
    "law", [Normal(1.0, 2.0), Gamma(2.0, 1.0), Beta(2.0, 3.0), NegativeBinomial(3.0, 0.4), Normal([0.0, 5.0], [1.0, 2.0])]
)  # fmt: skip
def test_functions_have_the_actions_of_the_losses_they_are(law):
    pairs = [
        (lambda a, y: 0.5 * (a - y) ** 2, hg.Squared()),
        (lambda a, y: np.abs(a - y), hg.Absolute()),
        (lambda a, y: np.where(y > a, 0.8 * (y - a), 0.2 * (a - y)), hg.Quantile(0.8)),
    ]
    for function, loss in pairs:
        found, wanted = hg.decisions.bayes_action(law, function), hg.decisions.bayes_action(law, loss)
        risks = hg.decisions.posterior_risk(law, loss, found), hg.decisions.posterior_risk(law, loss, wanted)
        np.testing.assert_allclose(risks[0], risks[1], rtol=1e-3)  # a kink costs the quadrature as much
        np.testing.assert_allclose(hg.decisions.posterior_risk(law, function, found), risks[0], rtol=1e-9)
    # A function of numbers, which cannot take arrays.
    scalar = hg.decisions.bayes_action(law, lambda a, y: (a - y) ** 2 if a > y else 3 * (a - y) ** 2)
    array = hg.decisions.bayes_action(law, lambda a, y: np.where(a > y, 1, 3) * (a - y) ** 2)
    np.testing.assert_allclose(scalar, array, rtol=1e-6, atol=1e-6)
    assert np.all(np.asarray(scalar) > law.mean)


def test_tables_of_costs(rng):
    p = rng.dirichlet(np.ones(3), size=50)
    costs = rng.uniform(size=(5, 3))
    wanted = np.argmin(p @ costs.T, axis=1)
    np.testing.assert_array_equal(hg.decisions.bayes_action(Categorical(p), costs), wanted)
    np.testing.assert_array_equal(hg.decisions.bayes_action(Categorical(p), costs.tolist()), wanted)
    np.testing.assert_allclose(hg.decisions.posterior_risk(Categorical(p), costs, wanted), np.min(p @ costs.T, axis=1))
    table = 1.0 - np.eye(3)
    np.testing.assert_array_equal(
        hg.decisions.bayes_action(Categorical(p), table), hg.decisions.bayes_action(Categorical(p), hg.ZeroOne())
    )
    np.testing.assert_array_equal(
        hg.decisions.bayes_action(Categorical(p), lambda a, y: costs[int(a), int(y)]),
        np.argmin(p @ costs[:3].T, axis=1),
    )
    q = rng.random(20)
    np.testing.assert_array_equal(
        hg.decisions.bayes_action(Bernoulli(q), [[0.0, 9.0], [1.0, 0.0]]), (q > 0.1).astype(int)
    )
    draws = Empirical(rng.integers(0, 3, (4, 500)))
    share = np.stack([np.mean(draws.values == j, axis=1) for j in range(3)], axis=1)
    np.testing.assert_array_equal(hg.decisions.bayes_action(draws, costs), np.argmin(share @ costs.T, axis=1))
    assert hg.conjugate.BetaBernoulli(2, 2).predictive.bayes_action([[0.0, 9.0], [1.0, 0.0]]) == 1


def test_wrong_costs_are_named():
    for costs, match in [([[1.0, np.nan]], "finite"), ([1.0, 2.0], "row per action"), ([[1.0, 2.0, 3.0]], "columns")]:
        with pytest.raises(ValueError, match=match):
            hg.decisions.bayes_action(Bernoulli(0.5), costs)
    with pytest.raises(TypeError, match="function"):
        hg.decisions.bayes_action(Normal(0.0, 1.0), [[0.0, 1.0]])
    with pytest.raises(TypeError, match="function"):
        hg.decisions.bayes_action(Dirichlet([1.0, 1.0]), [[0.0, 1.0]])
    with pytest.raises(ValueError, match="columns"):
        hg.decisions.bayes_action(Empirical([0.0, 5.0]), [[0.0, 1.0]])
    with pytest.raises(ValueError, match="finite"):
        hg.decisions.bayes_action(Normal(0.0, 1.0), lambda a, y: np.where(y > a, np.inf, 0.0))


def test_predictions_by_functions(rng):
    X = rng.normal(size=(30, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=30)

    def careful(a, y):
        return np.where(y > a, 9.0, 1.0) * np.abs(y - a)

    for model in (
        hg.BayesianLinearRegression(1.0, 0.5),
        hg.GaussianProcessRegressor(hg.kernels.RBF(1.0) + hg.kernels.White(0.1)),
    ):
        model.fit(X, y)
        np.testing.assert_allclose(
            model.predict(X[:4], action=careful), model.predict(X[:4], action=hg.Quantile(0.9)), atol=2e-2
        )
