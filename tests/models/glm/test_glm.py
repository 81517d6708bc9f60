"""Generalised linear models: likelihoods, inference, offsets, categories."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.sparse
import scipy.special
import scipy.stats
import statsmodels.api as sm
from sklearn.exceptions import ConvergenceWarning

import hinge as hg
from hinge._native import CodedTable, Design
from hinge.problem.distributions import DISTRIBUTIONS, as_distribution
from hinge.problem.links import LINKS, as_link
from hinge.problem.losses.linked import Linked, LinkedProbability, likelihood_loss
from kit.frames import in_library

FAMILIES, SM_LINKS = sm.families, sm.families.links


def coin(rng, n, p):
    return (rng.random(n) < p).astype(float)


# distribution, link, statsmodels' family, targets from scores, the constant that keeps scores in the domain
PAIRS = {
    "gaussian": ("gaussian", None, FAMILIES.Gaussian(), lambda r, z: z + r.normal(size=z.size), 0.4),
    "gaussian log": (
        "gaussian", "log", FAMILIES.Gaussian(SM_LINKS.Log()), lambda r, z: np.exp(z) + 0.3 * r.normal(size=z.size), 0.4,
    ),
    "poisson": ("poisson", None, FAMILIES.Poisson(), lambda r, z: r.poisson(np.exp(z)), 0.4),
    "poisson sqrt": ("poisson", "sqrt", FAMILIES.Poisson(SM_LINKS.Sqrt()), lambda r, z: r.poisson(z**2), 3.0),
    "poisson identity": (
        "poisson", "identity", FAMILIES.Poisson(SM_LINKS.Identity()), lambda r, z: r.poisson(z), 5.0,
    ),
    "gamma": ("gamma", None, FAMILIES.Gamma(SM_LINKS.Log()), lambda r, z: r.gamma(2.0, np.exp(z) / 2.0), 0.4),
    "gamma inverse": (
        "gamma", "inverse", FAMILIES.Gamma(SM_LINKS.InversePower()), lambda r, z: r.gamma(20.0, 0.05 / z), 3.0,
    ),
    "gamma identity": (
        "gamma", "identity", FAMILIES.Gamma(SM_LINKS.Identity()), lambda r, z: r.gamma(20.0, 0.05 * z), 3.0,
    ),
    "inverse gaussian": (
        "inverse-gaussian", "log", FAMILIES.InverseGaussian(SM_LINKS.Log()), lambda r, z: r.wald(np.exp(z), 2.0), 0.4,
    ),
    "inverse gaussian canonical": (
        "inverse-gaussian", "inverse-squared", FAMILIES.InverseGaussian(), lambda r, z: r.wald(z**-0.5, 20.0), 4.0,
    ),
    "tweedie": (
        hg.Tweedie(1.5), None, FAMILIES.Tweedie(SM_LINKS.Log(), var_power=1.5),
        lambda r, z: coin(r, z.size, 0.7) * r.gamma(2.0, np.exp(z) / 2.0), 0.4,
    ),
    "negative binomial": (
        hg.NegativeBinomial(0.7), None, FAMILIES.NegativeBinomial(SM_LINKS.Log(), alpha=0.7),
        lambda r, z: r.poisson(np.exp(z) * r.gamma(1 / 0.7, 0.7, size=z.size)), 0.4,
    ),
    "bernoulli": ("bernoulli", None, FAMILIES.Binomial(), lambda r, z: coin(r, z.size, 1 / (1 + np.exp(-z))), 0.4),
    "probit": (
        "bernoulli", "probit", FAMILIES.Binomial(SM_LINKS.Probit()),
        lambda r, z: coin(r, z.size, scipy.stats.norm.cdf(z)), 0.4,
    ),
    "cloglog": (
        "bernoulli", "cloglog", FAMILIES.Binomial(SM_LINKS.CLogLog()),
        lambda r, z: coin(r, z.size, -np.expm1(-np.exp(z))), -0.4,
    ),
    "cauchit": (
        "bernoulli", "cauchit", FAMILIES.Binomial(SM_LINKS.Cauchy()),
        lambda r, z: coin(r, z.size, 0.5 + np.arctan(z) / np.pi), 0.4,
    ),
}  # fmt: skip
every_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda name: name)


def problem(pair, n=400):
    """Data of a pair, with whole weights and an offset."""
    distribution, link, family, draw, constant = PAIRS[pair]
    rng = np.random.default_rng(0)
    X, offset = rng.normal(size=(n, 3)), 0.2 * rng.normal(size=n)
    y = np.asarray(draw(rng, 0.3 * X @ [1.0, -0.5, 0.2] + constant + offset), dtype=float)
    weight = rng.integers(1, 4, size=n).astype(float)
    return distribution, link, family, X, y, weight, offset


def log_density(pair, y, mean, dispersion):
    """log p(y | mean), written by SciPy and not by us."""
    s = scipy.stats
    match pair.split()[0]:
        case "gaussian":
            return s.norm.logpdf(y, mean, np.sqrt(dispersion))
        case "poisson":
            return s.poisson.logpmf(y, mean)
        case "gamma":
            return s.gamma.logpdf(y, 1 / dispersion, scale=mean * dispersion)
        case "inverse":
            return s.invgauss.logpdf(y, mean * dispersion, scale=1 / dispersion)
        case "negative":
            return s.nbinom.logpmf(y, 1 / 0.7, 1 / (1 + 0.7 * mean))
        case "tweedie":  # up to a factor and a constant, the quasi-likelihood
            return y * mean**-0.5 / -0.5 - mean**0.5 / 0.5
        case _:
            return s.bernoulli.logpmf(y.astype(int), mean)


@every_pair
@pytest.mark.mission("P1")
def test_the_gradient_of_the_log_likelihood_vanishes(pair):
    distribution, link, _, X, y, weight, offset = problem(pair)
    model = hg.GLM(distribution, link, tol=1e-10).fit(X, y, sample_weight=weight, offset=offset)
    inverse = model._pair()[1].inverse
    theta = np.append(model.intercept_, model.coef_)

    def likelihood(t):
        return float(weight @ log_density(pair, y, inverse(X @ t[1:] + t[0] + offset), 0.5))

    gradient = scipy.optimize.approx_fprime(theta, likelihood, 1e-6)
    backward = -scipy.optimize.approx_fprime(-theta, lambda t: likelihood(-t), 1e-6)
    away = scipy.optimize.approx_fprime(theta * 0.9, likelihood, 1e-6)
    assert np.max(np.abs(0.5 * (gradient + backward))) < 1e-4 * np.max(np.abs(away))


@every_pair
@pytest.mark.filterwarnings("ignore::statsmodels.tools.sm_exceptions.DomainWarning")  # the peer's word on such links
@pytest.mark.mission("P1")
def test_estimates_and_standard_errors_are_those_of_statsmodels(pair):
    distribution, link, family, X, y, weight, offset = problem(pair)
    known = hg.GLM(distribution, link, tol=1e-12).fit(X, y, sample_weight=weight, offset=offset).inference_
    peer = sm.GLM(y, sm.add_constant(X), family=family, freq_weights=weight, offset=offset).fit(tol=1e-14, maxiter=300)
    np.testing.assert_allclose(known.estimate, peer.params, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(known.standard_error, peer.bse, rtol=1e-6)
    np.testing.assert_allclose(known.covariance, peer.cov_params(), rtol=1e-4, atol=1e-9)
    assert known.deviance == pytest.approx(peer.deviance, rel=1e-9)
    assert known.null_deviance == pytest.approx(peer.null_deviance, rel=1e-9)
    assert known.pearson == pytest.approx(peer.pearson_chi2, rel=1e-5)
    assert known.dof == peer.df_resid
    if not known.dispersion_estimated:
        assert known.log_likelihood == pytest.approx(peer.llf, rel=1e-9)
        np.testing.assert_allclose(known.p, peer.pvalues, rtol=1e-4, atol=1e-12)
        np.testing.assert_allclose(known.interval(0.9), peer.conf_int(0.1), rtol=1e-3, atol=1e-6)


@pytest.mark.mission("P1")
def test_deviances_are_those_of_the_textbook():
    """2 Σ (log-likelihood of the saturated model − log-likelihood), over φ; by formula."""
    y, mean = np.array([0.0, 1.0, 3.0, 7.0]), np.array([0.5, 1.5, 2.0, 8.0])
    positive = y[1:], mean[1:]
    log = np.log
    expected = {
        "gaussian": np.sum((y - mean) ** 2),
        "poisson": 2 * (mean[0] + np.sum(positive[0] * log(positive[0] / positive[1]) - positive[0] + positive[1])),
    }
    for name, value in expected.items():
        assert 2 * as_distribution(name).half_deviance(y, mean).sum() == pytest.approx(value)
    y, mean = positive
    gamma = 2 * np.sum(-log(y / mean) + (y - mean) / mean)
    assert 2 * as_distribution("gamma").half_deviance(y, mean).sum() == pytest.approx(gamma)
    inverse = np.sum((y - mean) ** 2 / (y * mean**2))
    assert 2 * as_distribution("inverse-gaussian").half_deviance(y, mean).sum() == pytest.approx(inverse)
    share, p = np.array([0.0, 0.25, 1.0]), np.array([0.2, 0.5, 0.9])
    binomial = 2 * (-log(0.8) + 0.25 * log(0.25 / 0.5) + 0.75 * log(0.75 / 0.5) - log(0.9))
    assert 2 * as_distribution("binomial").half_deviance(share, p).sum() == pytest.approx(binomial)
    theta = 2.0
    negative = 2 * np.sum(y * log(y / mean) - (y + theta) * log((y + theta) / (mean + theta)))
    counts = as_distribution(hg.NegativeBinomial(1 / theta))
    assert 2 * counts.half_deviance(y, mean).sum() == pytest.approx(negative)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("link", [*LINKS, 1.7])
@pytest.mark.mission("P1")
def test_any_distribution_with_any_link(distribution, link):
    """Derivatives by differences; convexity is as declared; the Fisher information is the mean of ℓ''."""
    pair = as_distribution(distribution), as_link(link)
    loss = LinkedProbability(*pair) if distribution in ("bernoulli", "binomial") and link in (
        "logit", "probit", "cloglog", "loglog", "cauchit",
    ) else Linked(*pair)  # fmt: skip
    mean = np.array([0.15, 0.3, 0.5, 0.6, 0.85])
    s, y, step = np.asarray(pair[1].link(mean), dtype=float), np.array([0.2, 0.9, 0.4, 0.7, 0.6]), 1e-6
    np.testing.assert_allclose(pair[1].inverse(s), mean, rtol=1e-12)
    slope = (loss.value(y, s + step) - loss.value(y, s - step)) / (2 * step)
    np.testing.assert_allclose(loss.gradient(y, s), slope, rtol=1e-5, atol=1e-7)
    bend = (loss.gradient(y, s + step) - loss.gradient(y, s - step)) / (2 * step)
    np.testing.assert_allclose(loss.second_derivative(y, s), bend, rtol=1e-5, atol=1e-6)
    # ℓ'' is linear in y, so its mean over y is its value at y = μ.
    np.testing.assert_allclose(loss.second_derivative(mean, s), loss.information(s), rtol=1e-9)
    targets = np.linspace(0.01, 0.99, 25) if loss.target.name == "UNIT" else np.linspace(0.01, 30.0, 60)
    grid = pair[1].link(np.linspace(0.02, 0.98, 60))
    bends = np.array([loss.second_derivative(np.full(60, t), grid) for t in targets])
    assert bends.min() >= -1e-9 or not loss.convex
    assert np.all(loss.hessian(y, s) >= 0)


@pytest.mark.parametrize("link", ["probit", "cloglog", "loglog"])
def test_conjugates_of_probability_links(link):
    loss = LinkedProbability(as_distribution("bernoulli"), as_link(link))
    y, s = np.repeat([0.0, 0.3, 1.0], 5), np.tile(np.linspace(-4, 3, 5), 3)
    u = loss.gradient(y, s)
    np.testing.assert_allclose(loss.conjugate(y, u), u * s - loss.value(y, s), rtol=1e-8, atol=1e-9)  # Fenchel–Young
    assert np.all(loss.conjugate(y, 0.9 * u) >= 0.9 * u * (s + 0.3) - loss.value(y, s + 0.3) - 1e-9)
    assert np.isposinf(loss.conjugate(np.array([1.0]), np.array([0.1]))[0])


@pytest.mark.mission("L4")
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("link", ["usual", "log", "identity"])
def test_the_bayes_predictor_of_every_likelihood_is_the_mean(distribution, link):
    family = as_distribution(distribution)
    g = as_link(family.default_link if link == "usual" else link)
    loss = likelihood_loss(family, g)
    y, weight = np.array([0.1, 0.2, 0.7, 0.9]), np.array([1.0, 3.0, 2.0, 2.0])
    mean = weight @ y / weight.sum()
    best = loss.baseline(y, weight)
    assert float(loss.inverse_link(np.array([best]))[0]) == pytest.approx(mean)
    lower, at, upper = (weight @ loss.value(y, np.full(4, float(g.link(m)))) for m in (0.8 * mean, mean, 1.2 * mean))
    assert at < min(lower, upper)


@pytest.mark.mission("P1")
def test_exposure_is_an_offset_and_a_weighted_rate():
    _, _, _, X, y, weight, _ = problem("poisson")
    exposure = np.random.default_rng(1).uniform(0.2, 2.0, size=len(y))
    fit = hg.PoissonRegressor(alpha=0.0, tol=1e-12).fit
    one = fit(X, y, sample_weight=weight, exposure=exposure)
    found = one.predict(X, exposure=exposure), one.coef_.copy(), one.intercept_
    two = hg.PoissonRegressor(alpha=0.0, tol=1e-12).fit(X, y, sample_weight=weight, offset=np.log(exposure))
    np.testing.assert_array_equal(two.coef_, found[1])
    np.testing.assert_allclose(two.predict(X, offset=np.log(exposure)), found[0], rtol=1e-14)
    np.testing.assert_allclose(two.predict(X) * exposure, found[0], rtol=1e-12)
    # Σ (e μ − y log μ) is, up to a constant, Σ e (μ − (y/e) log μ): rates weighted by exposure.
    rate = hg.PoissonRegressor(alpha=0.0, tol=1e-12).fit(X, y / exposure, sample_weight=weight * exposure)
    np.testing.assert_allclose(np.append(rate.coef_, rate.intercept_), np.append(*found[1:]), rtol=1e-5)
    assert one.certificate_.kind == "gap"
    assert one.certificate_.converged


@pytest.mark.mission("P1")
@pytest.mark.parametrize("pair", ["poisson", "gamma", "tweedie", "negative binomial", "bernoulli", "probit", "cloglog"])
@pytest.mark.parametrize(
    "penalty", [{}, {"alpha": 0.1}, {"alpha": 0.05, "l1_ratio": 1.0}, {"alpha": 0.1, "l1_ratio": 0.5}]
)
def test_convex_fits_carry_a_duality_gap(pair, penalty):
    distribution, link, _, X, y, weight, offset = problem(pair)
    for data in (X, scipy.sparse.csr_array(X)):
        model = hg.GLM(distribution, link, tol=1e-8, **penalty).fit(data, y, sample_weight=weight, offset=offset)
        assert model.certificate_.kind == "gap"
        assert model.certificate_.relative_gap <= 1e-8


@pytest.mark.mission("P1")
def test_elastic_net_satisfies_its_optimality_conditions():
    _, _, _, X, y, weight, offset = problem("poisson")
    X = np.column_stack([X, np.random.default_rng(5).normal(size=(len(y), 5))])
    alpha, ratio = 0.1, 0.7
    model = hg.PoissonRegressor(alpha=alpha, l1_ratio=ratio, tol=1e-12).fit(X, y, sample_weight=weight, offset=offset)
    residual = weight * (model.predict(X, offset=offset) - y) / weight.sum()
    slope, w = X.T @ residual, model.coef_
    used = w != 0
    assert 0 < used.sum() < len(w)
    np.testing.assert_allclose(slope[used] + alpha * ((1 - ratio) * w + ratio * np.sign(w))[used], 0.0, atol=1e-6)
    assert np.all(np.abs(slope[~used]) <= alpha * ratio)
    assert abs(residual.sum()) < 1e-6


@pytest.mark.mission("P1")
def test_weights_are_repetitions_for_inference_too():
    _, _, _, X, y, weight, offset = problem("gamma")
    times = weight.astype(int)
    one = hg.GLM("gamma", tol=1e-12).fit(X, y, sample_weight=weight, offset=offset).inference_
    many = hg.GLM("gamma", tol=1e-12).fit(np.repeat(X, times, 0), np.repeat(y, times), offset=np.repeat(offset, times))
    np.testing.assert_allclose(one.standard_error, many.inference_.standard_error, rtol=1e-6)
    for name in ("deviance", "null_deviance", "pearson", "log_likelihood", "dispersion", "aic", "bic", "dof"):
        assert getattr(one, name) == pytest.approx(getattr(many.inference_, name), rel=1e-6), name


@pytest.mark.mission("P1")
def test_likelihood_ratio_and_wald_tests():
    _, _, _, X, y, _, _ = problem("poisson", n=2000)
    X = np.column_stack([X, np.random.default_rng(2).normal(size=(len(y), 2))])  # two columns that do not matter
    large, small = hg.GLM("poisson").fit(X, y), hg.GLM("poisson").fit(X[:, :3], y)
    test = large.inference_.likelihood_ratio(small.inference_)
    assert test.statistic == pytest.approx(small.inference_.deviance - large.inference_.deviance)
    assert test.dof == (2,)
    assert test.p == pytest.approx(np.exp(-test.statistic / 2))  # the tail of χ²(2)
    wald = large.inference_.wald(["x3", "x4"])
    assert wald.p == pytest.approx(test.p, abs=0.01)
    assert large.inference_.wald(["x0", "x1"]).p < 1e-10
    assert large.inference_.wald("x0").statistic == pytest.approx(large.inference_.z[1] ** 2)
    with pytest.raises(ValueError, match="fewer columns"):
        small.inference_.likelihood_ratio(large.inference_)
    # With a dispersion that is estimated it is the F test of nested least squares.
    t = y + 0.0
    full, part = hg.GLM().fit(X, t).inference_, hg.GLM().fit(X[:, :3], t).inference_
    f = full.likelihood_ratio(part)
    peer = sm.OLS(t, sm.add_constant(X)).fit().compare_f_test(sm.OLS(t, sm.add_constant(X[:, :3])).fit())
    assert (f.statistic, f.p) == pytest.approx(peer[:2], rel=1e-8)


@pytest.mark.mission("P1")
def test_p_values_are_uniform_under_the_null():
    rng = np.random.default_rng(7)
    p = []
    for _ in range(300):
        X = rng.normal(size=(120, 2))
        y = rng.poisson(np.exp(0.5 + 0.4 * X[:, 0])).astype(float)
        p.append(hg.GLM("poisson").fit(X, y).inference_.p[2])
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.01


@pytest.mark.mission("P1")
def test_gaussian_identity_is_least_squares():
    _, _, _, X, y, weight, _ = problem("gaussian")
    model, least = hg.GLM().fit(X, y, sample_weight=weight), hg.LinearRegression().fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, least.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.inference_.standard_error, least.inference_.standard_error, rtol=1e-9)
    np.testing.assert_allclose(model.inference_.p, least.inference_.p, rtol=1e-7)
    mean, low, high = model.predict(X[:5], interval=0.9)
    expected = least.predict(X[:5], interval=0.9, kind="confidence")
    np.testing.assert_allclose([mean, low, high], expected, rtol=1e-8)


@pytest.mark.mission("P1")
def test_the_interval_of_a_mean():
    """A Poisson rate from its events alone: log μ̂ has standard error 1/√(number of events)."""
    y = np.array([3.0, 5.0, 4.0, 8.0])
    mean, low, high = hg.GLM("poisson").fit(np.zeros((4, 1)), y).predict([[0.0]], interval=0.95)
    half = scipy.stats.norm.ppf(0.975) / np.sqrt(20.0)
    np.testing.assert_allclose([mean[0], low[0], high[0]], 5.0 * np.exp([0.0, -half, half]), rtol=1e-6)


@pytest.mark.mission("P1")
def test_the_shape_of_the_negative_binomial_is_fitted():
    _, _, _, X, y, _, _ = problem("negative binomial", n=800)
    model = hg.NegativeBinomialRegressor(alpha=0.0, tol=1e-12, inference=True).fit(X, y)
    peer = sm.NegativeBinomial(y, sm.add_constant(X)).fit(disp=False, maxiter=500)
    assert 1 / model.theta_ == pytest.approx(peer.params[-1], rel=1e-4)
    np.testing.assert_allclose(np.append(model.intercept_, model.coef_), peer.params[:-1], rtol=1e-3, atol=1e-5)
    assert model.inference_.log_likelihood == pytest.approx(peer.llf, rel=1e-8)
    assert model.inference_.aic == pytest.approx(peer.aic, rel=1e-8)
    given = hg.NegativeBinomialRegressor(theta=model.theta_, alpha=0.0, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(given.coef_, model.coef_, rtol=1e-5)
    # Counts that vary less than Poisson counts do have no finite shape.
    even = hg.NegativeBinomialRegressor(alpha=0.0).fit(X, np.round(np.exp(1.0 + 0.3 * X[:, 0])))
    assert np.isinf(even.theta_)
    poisson = hg.PoissonRegressor(alpha=0.0).fit(X, np.round(np.exp(1.0 + 0.3 * X[:, 0])))
    np.testing.assert_allclose(even.coef_, poisson.coef_, atol=1e-4)


@pytest.mark.mission("P1")
def test_overdispersion_is_reported():
    _, _, _, X, wild, _, _ = problem("negative binomial", n=800)
    model = hg.GLM("poisson").fit(X, wild)
    assert "Overdispersion" in model.summary()
    assert "NegativeBinomialRegressor" in model.summary()
    tame = hg.GLM("poisson").fit(X, np.random.default_rng(3).poisson(np.exp(0.3 * X[:, 0])))
    assert "Overdispersion" not in tame.summary()
    quasi = hg.GLM("poisson", dispersion="pearson").fit(X, wild).inference_
    ratio = quasi.pearson / quasi.dof
    assert ratio > 1.2
    np.testing.assert_allclose(quasi.standard_error, np.sqrt(ratio) * model.inference_.standard_error, rtol=1e-9)
    assert not quasi.notes


@pytest.mark.mission("W5", "P1")
def test_logistic_regression_is_the_bernoulli_model():
    _, _, _, X, y, weight, _ = problem("bernoulli")
    model = hg.GLM("bernoulli", tol=1e-12).fit(X, y, sample_weight=weight)
    logistic = hg.LogisticRegression(C=np.inf, tol=1e-12).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, logistic.coef_[0], rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), logistic.predict_proba(X)[:, 1], rtol=1e-6)
    odds = model.predict(X) / (1 - model.predict(X))
    np.testing.assert_allclose(np.log(odds), model.linear_predictor(X), rtol=1e-9, atol=1e-12)
    error = weight * (y - model.predict(X))  # orthogonal to every linear function of the inputs
    np.testing.assert_allclose(np.column_stack([np.ones(len(y)), X]).T @ error, 0.0, atol=1e-5)
    # k events in m trials are one example with y = k/m and weight m.
    trials, share = np.array([10.0, 20.0, 15.0]), np.array([0.2, 0.45, 0.8])
    x = np.array([[-1.0], [0.0], [1.0]])
    grouped = hg.GLM("binomial", tol=1e-12).fit(x, share, sample_weight=trials).inference_
    peer = sm.GLM(
        np.column_stack([share * trials, (1 - share) * trials]), sm.add_constant(x), family=FAMILIES.Binomial()
    )
    fitted = peer.fit(tol=1e-14)
    np.testing.assert_allclose(grouped.standard_error, fitted.bse, rtol=1e-6)
    assert grouped.deviance == pytest.approx(fitted.deviance, rel=1e-6)


@pytest.mark.mission("P1", "W5")
def test_the_categorical_model_is_multinomial_logistic_regression():
    """The gradient of Σ log softmax vanishes, which means: expected and observed feature sums of every class agree."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(500, 3))
    y = np.argmax(X @ rng.normal(size=(3, 3)) + rng.gumbel(size=(500, 3)), axis=1)
    model = hg.LogisticRegression(C=np.inf, tol=1e-12).fit(X, y)
    error = np.eye(3)[y] - model.predict_proba(X)
    np.testing.assert_allclose(np.column_stack([np.ones(500), X]).T @ error, 0.0, atol=1e-4)
    peer = sm.MNLogit(y, sm.add_constant(X)).fit(disp=False, method="newton")
    np.testing.assert_allclose((model.coef_ - model.coef_[0])[1:].T, peer.params[1:], rtol=1e-4, atol=1e-6)


@pytest.mark.mission("W5")
def test_separation_is_reported():
    x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    with pytest.warns(ConvergenceWarning, match="no best fit without a penalty"):
        hg.GLM("bernoulli").fit(x, [0, 0, 1, 1])


# ---------------------------------------------------------------------------------------------------------- categories


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 2))
    codes = [rng.integers(-1, 4, size=n).astype(np.int32), rng.integers(0, 6, size=n).astype(np.int32)]
    dense = np.hstack([numbers, *(np.eye(k + 1)[c][:, :k] for c, k in zip(codes, (4, 6)))])
    return numbers, codes, dense


@pytest.mark.mission("P1")
@pytest.mark.parametrize(
    "make", [np.asarray, np.asfortranarray, np.float32, scipy.sparse.csr_array, scipy.sparse.csc_array]
)
def test_a_table_of_codes_is_its_one_hot_matrix(make):
    numbers, codes, dense = table()
    numbers = np.round(64 * numbers) / 64  # exact in float32
    dense[:, :2] = numbers
    design, rng = Design(CodedTable(make(numbers), codes, [4, 6])), np.random.default_rng(1)
    h, w, u = rng.random(300), rng.normal(size=12), rng.normal(size=300)
    W, U = rng.normal(size=(12, 3)), rng.normal(size=(300, 3))
    assert design.shape == dense.shape
    for got, expected in [
        (design.matmul(w), dense @ w),
        (design.rmatmul(u), dense.T @ u),
        (design.matmul(W), dense @ W),
        (design.rmatmul(U), dense.T @ U),
        (design.square_sums(h), h @ dense**2),
        (design.square_sums(), (dense**2).sum(axis=0)),
        (design.columns(np.array([7, 0, 3])), dense[:, [7, 0, 3]]),
    ]:
        single = make is np.float32 and got.ndim == 2  # products of several columns are in the storage's precision
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-4 if single else 1e-11)
    np.testing.assert_allclose(design.gram(h), (dense * h[:, None]).T @ dense, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(design.gram()[2:, 2:], dense[:, 2:].T @ dense[:, 2:])
    np.testing.assert_array_equal(Design(CodedTable(numbers[:, :0], codes, [4, 6])).gram(), design.gram()[2:, 2:])
    with pytest.raises(ValueError, match="code"):
        Design(CodedTable(numbers, codes, [3, 6]))


def frames(n=600, seed=0):
    """A table with categories, its one-hot matrix, and counts."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 2))
    colour, size = rng.integers(0, 3, size=n), rng.integers(0, 5, size=n)
    names = [np.array(["blue", "green", "red"])[colour], np.array(list("ABCDE"))[size]]
    effects = 0.2 * numbers[:, 0] + 0.5 * (colour == 2) - 0.3 * (size == 1)
    y = rng.poisson(np.exp(0.5 + effects)).astype(float)
    columns = {"a": numbers[:, 0], "colour": names[0], "b": numbers[:, 1], "size": names[1]}
    table = pd.DataFrame(columns).astype({"colour": "category", "size": "category"})
    hot = np.hstack([numbers, np.eye(3)[colour], np.eye(5)[size]])
    return table, hot, y


@pytest.mark.mission("P1", "F4")
@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_categories_are_fitted_as_their_one_hot_matrix(alpha, library):
    table, hot, y = frames()
    frame = in_library(table, library)
    kept = [0, 1, 3, 4, 6, 7, 8, 9] if alpha == 0 else list(range(10))  # without a penalty first levels are references
    plain = hg.PoissonRegressor(alpha=alpha, tol=1e-12).fit(hot[:, kept], y)
    model = hg.PoissonRegressor(alpha=alpha, tol=1e-12).fit(frame, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(model.predict(frame), plain.predict(hot[:, kept]), rtol=1e-6)
    assert model.certificate_.kind == "gap"
    assert model.coef_names_[:3] == ["a", "b", "colour=green" if alpha == 0 else "colour=blue"]
    assert len(model.coef_names_) == len(model.coef_) == len(kept)
    lasso = hg.GLM("poisson", alpha=0.02, l1_ratio=1.0, tol=1e-10).fit(frame, y)
    dense = hg.GLM("poisson", alpha=0.02, l1_ratio=1.0, tol=1e-10).fit(hot, y)
    np.testing.assert_allclose(lasso.coef_, dense.coef_, atol=1e-4)
    numeric = np.column_stack([hot[:, 0], hot[:, 2:5] @ [0, 1, 2], hot[:, 1], hot[:, 5:] @ np.arange(5.0)])
    chosen = hg.PoissonRegressor(alpha=alpha, tol=1e-12, categorical_features=[1, 3]).fit(numeric, y)
    np.testing.assert_allclose(chosen.coef_, plain.coef_, rtol=1e-5, atol=1e-8)


@pytest.mark.mission("P1")
def test_inference_with_categories(tmp_path):
    table, hot, y = frames()
    model = hg.GLM("poisson", tol=1e-12).fit(table, y)
    peer = sm.GLM(y, sm.add_constant(hot[:, [0, 1, 3, 4, 6, 7, 8, 9]]), family=FAMILIES.Poisson()).fit(tol=1e-14)
    np.testing.assert_allclose(model.inference_.standard_error, peer.bse, rtol=1e-6)
    smaller = hg.GLM("poisson", tol=1e-12).fit(table.drop(columns="colour"), y)
    ratio, wald = model.inference_.likelihood_ratio(smaller.inference_), model.inference_.wald("colour")
    assert ratio.dof == wald.dof == (2,)
    assert ratio.statistic == pytest.approx(wald.statistic, rel=0.15)
    mean, low, high = model.predict(table, interval=0.9)
    assert np.all((low < mean) & (mean < high))
    hg.save(model, tmp_path / "m.hinge")
    np.testing.assert_array_equal(hg.load(tmp_path / "m.hinge").predict(table), mean)
    # Levels in another order, levels that are not there, a level never seen: the names decide.
    part = table.iloc[:50].copy()
    part["colour"] = pd.Categorical(part["colour"].astype(str), categories=["red", "violet", "blue", "green"])
    np.testing.assert_allclose(model.predict(part), mean[:50], rtol=1e-12)
    part.loc[part.index[0], "colour"] = "violet"
    base = part.assign(colour=pd.Categorical(["blue"] * 50, categories=["blue"]))
    assert model.predict(part)[0] == pytest.approx(model.predict(base)[0])  # the reference level


def test_large_tables_of_codes_agree_with_one_hot_in_any_number_of_threads():
    """Enough levels for the factor to be kept and its largest block to be eliminated."""
    rng = np.random.default_rng(4)
    n, levels = 20_000, 150
    codes = rng.integers(levels, size=(n, 2))
    x = rng.normal(size=(n, 2))
    effects = 0.3 * rng.normal(size=(2, levels))
    y = rng.poisson(np.exp(0.5 + 0.2 * x.sum(axis=1) + effects[0, codes[:, 0]] + effects[1, codes[:, 1]])).astype(float)
    frame = pd.DataFrame(x, columns=["a", "b"])
    for k, name in enumerate("uv"):
        frame[name] = pd.Categorical.from_codes(codes[:, k], [f"{name}{level:03d}" for level in range(levels)])
    fits = []
    try:
        for threads in (1, 2):
            hg.set_num_threads(threads)
            fits.append(hg.PoissonRegressor(alpha=0.0, tol=1e-10).fit(frame, y))
    finally:
        hg.set_num_threads(None)
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].certificate_.kind == "gap"
    hot = scipy.sparse.hstack([x, *(scipy.sparse.csr_array(np.eye(levels)[codes[:, k]][:, 1:]) for k in (0, 1))])
    plain = hg.PoissonRegressor(alpha=0.0, tol=1e-10).fit(hot.tocsr(), y)
    np.testing.assert_allclose(fits[0].coef_, plain.coef_, atol=1e-3)


# -------------------------------------------------------------------------------------------------------------- errors


def test_wrong_input_is_refused_by_name():
    X, y = np.ones((4, 1)), np.array([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ValueError, match="exposure needs link='log'"):
        hg.GLM("gaussian").fit(X, y, exposure=np.ones(4))
    with pytest.raises(ValueError, match="exposure must be greater than zero"):
        hg.PoissonRegressor().fit(X, y, exposure=[0, 1, 1, 1])
    with pytest.raises(ValueError, match="offset must be 4 finite numbers"):
        hg.PoissonRegressor().fit(X, y, offset=[0.0, 1.0])
    with pytest.raises(ValueError, match="poisson distribution"):
        hg.PoissonRegressor().fit(X, -y)
    with pytest.raises(ValueError, match="distribution='cauchy' is unknown"):
        hg.GLM("cauchy").fit(X, y)
    with pytest.raises(ValueError, match="link='banana' is unknown"):
        hg.GLM("poisson", "banana").fit(X, y)
    with pytest.raises(ValueError, match="no such distribution"):
        hg.TweedieRegressor(power=0.5).fit(X, y)
    with pytest.raises(AttributeError, match="inference=True"):
        hg.PoissonRegressor().fit(X, y).summary()
    with pytest.raises(AttributeError, match="penalised"):
        _ = hg.GLM("poisson", alpha=0.1).fit(X, y).inference_.standard_error
    assert "no standard errors" in hg.GLM("poisson", alpha=0.1).fit(X, y).summary()
    with pytest.raises(ValueError, match="hold text"):
        hg.PoissonRegressor(categorical_features=["b"]).fit(pd.DataFrame({"a": list("abcd"), "b": list("abcd")}), y)


# ---------------------------------------------------------------------------------------------------------- real data


@pytest.mark.slow
@pytest.mark.mission("P1")
def test_french_motor_claims(real_data):
    """678 013 policies: the model is balanced in every level of every category, and within 1e-6 of the optimum."""
    raw = pd.read_csv(real_data("freMTPL2freq.csv.gz"))
    claims, exposure = raw.ClaimNb.clip(upper=4).to_numpy(float), raw.Exposure.clip(upper=1).to_numpy()
    categories = ["Area", "VehBrand", "VehGas", "Region"]
    X = raw[["VehPower", "VehAge", "DrivAge", "BonusMalus"]].astype(float)
    X[categories] = raw[categories].astype("category")
    model = hg.PoissonRegressor(alpha=0.0, tol=1e-10, inference=True).fit(X, claims, exposure=exposure)
    assert model.certificate_.kind == "gap"
    assert model.certificate_.converged
    expected = model.predict(X, exposure=exposure)
    for name in categories:  # the score equations: as many claims are expected as were made
        sums = pd.DataFrame({"made": claims, "expected": expected}).groupby(X[name], observed=True).sum()
        np.testing.assert_allclose(sums.expected, sums.made, rtol=1e-4)
    assert "Overdispersion" in model.summary()
    assert model.inference_.deviance < model.inference_.null_deviance


@pytest.mark.mission("P1", "R3")
@pytest.mark.parametrize("power", [1.05, 1.3, 1.5, 1.8, 1.97])
@pytest.mark.parametrize("phi", [0.02, 1.0, 8.0])
def test_tweedie_likelihood_is_that_of_a_poisson_number_of_gamma_amounts(power, phi):
    family, mean = as_distribution(hg.Tweedie(power)), 1.7
    count, shape = mean ** (2 - power) / (phi * (2 - power)), (2 - power) / (power - 1)
    scale = phi * (power - 1) * mean ** (power - 1)
    y = mean * np.array([0.05, 0.4, 1.0, 1.6, 3.0])
    k = np.arange(1, int(4 * count + 200))
    terms = scipy.stats.poisson.logpmf(k, count) + scipy.stats.gamma.logpdf(y[:, None], k * shape, scale=scale)
    expected = scipy.special.logsumexp(terms, axis=1)
    found = family.log_likelihood(y, np.full(5, mean), phi)
    seen = expected > -500.0  # elsewhere the brute force underflows term by term
    np.testing.assert_allclose(found[seen], expected[seen], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(family.log_likelihood(np.zeros(1), np.full(1, mean), phi), -count, rtol=1e-12)
    many = np.repeat(y, 1000)  # so many that they are read off a spline
    np.testing.assert_allclose(
        family.log_likelihood(many, np.full(5000, mean), phi), np.repeat(found, 1000), rtol=1e-9, atol=1e-7
    )


@pytest.mark.mission("P1")
def test_information_criteria_of_tweedie():
    _, _, _, X, y, weight, offset = problem("tweedie")
    model = hg.GLM(hg.Tweedie(1.5), tol=1e-12).fit(X, y, sample_weight=weight, offset=offset)
    known, family = model.inference_, as_distribution(hg.Tweedie(1.5))
    mean = model.predict(X, offset=offset)

    def likelihood(phi):
        return float(weight @ family.log_likelihood(y, mean, phi))

    best = scipy.optimize.minimize_scalar(lambda phi: -likelihood(phi), bounds=(0.05, 20.0), method="bounded")
    assert known.log_likelihood == pytest.approx(-best.fun, rel=1e-8)
    assert known.aic == pytest.approx(2 * 5 + 2 * best.fun, rel=1e-8)  # four weights and the dispersion
    assert known.bic == pytest.approx(5 * np.log(weight.sum()) + 2 * best.fun, rel=1e-8)
    peer = FAMILIES.Tweedie(SM_LINKS.Log(), var_power=1.5, eql=False)
    for phi in (0.5, 1.0, 3.0):
        assert likelihood(phi) == pytest.approx(peer.loglike(y, mean, freq_weights=weight, scale=phi), rel=1e-9)


@pytest.mark.mission("P1")
@pytest.mark.parametrize("name", ["gaussian", "gamma", "poisson", "binomial"])
def test_wald_uses_f_exactly_where_a_dispersion_was_estimated(name, rng):
    """θ'Σ⁻¹θ/q on F(q, n − p) with φ̂, θ'Σ⁻¹θ on χ²(q) without; for least squares it is the F of the two sums of squares."""
    X = rng.normal(size=(25, 3))
    mean = np.exp(0.3 * X[:, 0])
    y = {
        "gaussian": mean + rng.normal(size=25), "gamma": rng.gamma(2.0, mean / 2.0), "poisson": rng.poisson(mean),
        "binomial": np.arange(25) % 2,
    }[name]  # fmt: skip
    found = hg.GLM(name, "log" if name in ("gamma", "poisson") else None, tol=1e-12).fit(X, y).inference_
    test = found.wald(["x1", "x2"])
    theta, part = found.estimate[2:], found.covariance[2:, 2:]
    square = theta @ np.linalg.solve(part, theta)
    if name in ("gaussian", "gamma"):
        assert (test.reference, test.dof) == ("F", (2, 21))
        assert test.statistic == pytest.approx(square / 2)
        assert test.p == pytest.approx(scipy.stats.f.sf(square / 2, 2, 21))
        assert test.p > scipy.stats.chi2.sf(square, 2)  # the normal reference is too sure
    else:
        assert (test.reference, test.dof) == ("χ²", (2,))
        assert test.statistic == pytest.approx(square)
        assert test.p == pytest.approx(scipy.stats.chi2.sf(square, 2))
    if name == "gaussian":
        sums = [
            np.sum((y - A @ np.linalg.lstsq(A, y)[0]) ** 2)
            for A in (np.c_[np.ones(25), X], np.c_[np.ones(25), X[:, 0]])
        ]
        assert test.statistic == pytest.approx((sums[1] - sums[0]) / 2 / (sums[0] / 21))
        smaller = hg.GLM(name, tol=1e-12).fit(X[:, :1], y).inference_
        assert found.likelihood_ratio(smaller).p == pytest.approx(test.p)


@pytest.mark.mission("P1")
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("rows", [60, 4])
def test_categories_whose_columns_are_dependent(rng, rows, fit_intercept):
    """Coded tables without full rank: the predictions and the norm of least squares on the table of zeros and ones."""
    city = pd.Categorical(rng.choice(["a", "b", "c"], size=60)[:rows], categories=["a", "b", "c"])
    frame = pd.DataFrame({"x": rng.normal(size=rows), "city": city, "same": city})
    y = rng.normal(size=rows)
    model = hg.GLM("gaussian", categorical_features="from_dtype", fit_intercept=fit_intercept, inference=False)
    model.fit(frame, y)
    table = pd.get_dummies(frame, dtype=float).to_numpy()
    kept = hg.LinearRegression(fit_intercept=fit_intercept).fit(table, y)
    np.testing.assert_allclose(model.predict(frame), kept.predict(table), rtol=1e-9, atol=1e-9)
    assert model.certificate_.gap <= 1e-12
    penalised = model.set_params(alpha=0.5).fit(frame, y)
    dense = hg.GLM("gaussian", alpha=0.5, fit_intercept=fit_intercept, inference=False).fit(table, y)
    np.testing.assert_allclose(penalised.predict(frame), dense.predict(table), rtol=1e-7, atol=1e-7)
