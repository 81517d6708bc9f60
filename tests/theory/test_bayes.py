"""Bayesian methods: conjugate pairs, Bayes actions, Gaussian linear regression, Laplace, Gaussian processes."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.sparse
import scipy.stats
from sklearn.exceptions import ConvergenceWarning

import hinge as hg
from hinge.models.bayes.logistic import averaged_sigmoid
from hinge.problem.decisions import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Empirical,
    Gamma,
    InverseGamma,
    NegativeBinomial,
    Normal,
    StudentT,
)

pytestmark = pytest.mark.filterwarnings(f"error::{ConvergenceWarning.__module__}.ConvergenceWarning")

# ------------------------------------------------------------------------------------------- B1: conjugate pairs

PAIRS = {
    "coin": (hg.conjugate.BetaBernoulli(2.0, 3.0), lambda rng, n: rng.integers(0, 2, n)),
    "die": (hg.conjugate.DirichletCategorical([1.0, 2.0, 0.5]), lambda rng, n: rng.integers(0, 3, n)),
    "counts": (hg.conjugate.GammaPoisson(2.0, 1.5), lambda rng, n: rng.poisson(3.0, n)),
    "mean": (hg.conjugate.NormalNormal(1.0, 2.0, noise=0.5), lambda rng, n: rng.normal(2.0, 0.7, n)),
    "mean and variance": (hg.conjugate.NormalInverseGamma(0.5, 2.0, 3.0, 1.0), lambda rng, n: rng.normal(2.0, 0.7, n)),
}
every_pair = pytest.mark.parametrize("pair", PAIRS)


def parameters(model):
    return np.concatenate([np.ravel(v) for k, v in vars(model).items() if k != "prior"])


@pytest.mark.mission("B1")
@every_pair
def test_sequential_updates_equal_one_batch_update(pair, rng):
    prior, draw = PAIRS[pair]
    data = draw(rng, 30)
    batch = prior.update(data)
    model = prior
    for value in rng.permutation(data):
        model = model.update([value])
    np.testing.assert_allclose(parameters(model), parameters(batch), rtol=1e-12)
    assert model.prior is prior
    weight = rng.integers(0, 4, 30)
    np.testing.assert_allclose(
        parameters(prior.update(data, weight)), parameters(prior.update(np.repeat(data, weight))), rtol=1e-12
    )


ONE_DIMENSION = {
    "coin": lambda y, t: scipy.stats.bernoulli.logpmf(y, t),
    "counts": lambda y, t: scipy.stats.poisson.logpmf(y, t),
    "mean": lambda y, t: scipy.stats.norm.logpdf(y, t, np.sqrt(0.5)),
}


@pytest.mark.mission("B1")
@pytest.mark.parametrize("pair", ONE_DIMENSION)
def test_posterior_is_prior_times_likelihood_and_predictive_its_average(pair, rng):
    """By quadrature, with nothing of the conjugate formulas."""
    prior, draw = PAIRS[pair]
    data = draw(rng, 12)
    after = prior.update(data)
    low, high = prior.posterior.quantile(1e-9), prior.posterior.quantile(1 - 1e-9)
    t = np.linspace(low, high, 20001)[1:-1]
    log = np.log(prior.posterior.density(t)) + ONE_DIMENSION[pair](data[:, None], t).sum(axis=0)
    density = np.exp(log - log.max())
    density /= scipy.integrate.trapezoid(density, t)
    np.testing.assert_allclose(after.posterior.density(t), density, rtol=1e-4, atol=1e-6)
    for y in (0.0, 1.0):
        averaged = scipy.integrate.trapezoid(np.exp(ONE_DIMENSION[pair](y, t)) * density, t)
        assert after.predictive.density(y) == pytest.approx(averaged, rel=1e-4)


@pytest.mark.mission("B1")
def test_normal_inverse_gamma_by_quadrature_over_mean_and_variance(rng):
    prior, data = hg.conjugate.NormalInverseGamma(0.5, 2.0, 3.0, 1.0), rng.normal(1.0, 0.7, 8)
    after = prior.update(data)
    v = np.exp(np.linspace(-4, 4, 801))[:, None]
    m = np.linspace(-4, 5, 1801)[None, :]
    log = scipy.stats.invgamma.logpdf(v, 3.0, scale=1.0) + scipy.stats.norm.logpdf(m, 0.5, np.sqrt(v / 2.0))
    for y in data:
        log = log + scipy.stats.norm.logpdf(y, m, np.sqrt(v))
    joint = np.exp(log - log.max()) * v  # dv = v d(log v)
    joint /= joint.sum()
    assert (joint * m).sum() == pytest.approx(float(after.posterior.mean), abs=1e-6)
    assert (joint * v).sum() == pytest.approx(float(after.posterior_variance.mean), rel=1e-4)
    for y in (-0.5, 1.3):
        averaged = float((joint * scipy.stats.norm.pdf(y, m, np.sqrt(v))).sum())
        assert after.predictive.density(y) == pytest.approx(averaged, rel=1e-4)


@pytest.mark.mission("B1")
def test_the_die_is_a_coin_for_each_face():
    die = hg.conjugate.DirichletCategorical([1.0, 2.0, 0.5]).update([0, 0, 2, 1])
    coin = hg.conjugate.BetaBernoulli(1.0, 2.5).update([1, 1, 0, 0])
    marginal = die.posterior.marginals()
    assert (marginal.a[0], marginal.b[0]) == (coin.alpha, coin.beta)
    assert die.predictive.p[0] == pytest.approx(float(coin.predictive.p))
    np.testing.assert_allclose(die.bayes_action(hg.Squared()), die.posterior.mean)


def test_bad_data_and_parameters_are_refused_by_name():
    with pytest.raises(ValueError, match="alpha"):
        hg.conjugate.BetaBernoulli(0.0, 1.0)
    for pair, bad in [("coin", [2]), ("die", [3]), ("counts", [0.5]), ("mean", [np.nan])]:
        with pytest.raises(ValueError, match="data"):
            PAIRS[pair][0].update(bad)
    with pytest.raises(ValueError, match="weight"):
        hg.conjugate.BetaBernoulli().update([1], weight=[-1.0])


@every_pair
def test_prior_and_posterior_are_drawn(pair, rng):
    pytest.importorskip("matplotlib").use("agg")
    prior, draw = PAIRS[pair]
    ax = prior.update(draw(rng, 20)).plot()
    labels = ax.get_legend_handles_labels()[1]
    assert any("prior" in label for label in labels)
    assert any("posterior" in label for label in labels)


# ---------------------------------------------------------------------------------------------- B2, L4: Bayes actions

LAWS = [
    Normal([0.5, -1.0], [1.0, 2.0]),
    StudentT([3.0, 5.0], [0.0, 1.0], [1.0, 0.5]),
    Gamma([2.0, 0.7], [1.0, 3.0]),
    Beta([2.0, 0.5], [3.0, 1.5]),
    InverseGamma([4.0, 3.0], [1.0, 2.0]),
    NegativeBinomial([3.0, 1.0], [0.4, 0.2]),
    Bernoulli([0.3, 0.8]),
    Empirical([[1.0, 2.0, 4.0], [0.5, 0.5, 3.0]], [0.2, 0.5, 0.3]),
]
REGRESSION = [
    hg.Squared(), hg.Absolute(), hg.Huber(0.4), hg.EpsilonInsensitive(0.2), hg.SquaredEpsilonInsensitive(0.3),
    hg.Quantile(0.2), hg.LogCosh(), hg.RelativeError(), hg.Poisson(), hg.Gamma(), hg.Tweedie(1.5),
    hg.NegativeBinomial(0.7),
]  # fmt: skip


@pytest.mark.mission("B2", "L4")
@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@pytest.mark.parametrize("loss", REGRESSION, ids=lambda loss: type(loss).__name__)
def test_no_other_action_has_less_posterior_risk(law, loss):
    """Against the expected loss by quadrature (sums for discrete laws), on a grid of other actions."""
    y, weight = law.nodes()
    defined = [loss.target.admits(row[w > 0]) for row, w in zip(y, weight)]
    if not all(defined) or (isinstance(loss, hg.RelativeError) and isinstance(law, (Normal, StudentT))):
        with pytest.raises(ValueError, match=type(loss).__name__):
            hg.decisions.bayes_action(law, loss)
        return
    action = hg.decisions.bayes_action(law, loss)
    assert np.shape(action) == law.shape
    best = hg.decisions.posterior_risk(law, loss, action)
    # With kinks the quadrature has an error of its own, so it cannot separate actions that are close.
    for step in (0.01, 0.1, 1.0) if loss.smooth else (0.1, 1.0):
        for sign in (-1, 1):
            other = hg.decisions.posterior_risk(law, loss, action + sign * step * law.std)
            assert np.all(best <= other * (1 + 1e-9) if loss.smooth else best <= other * (1 + 1e-4))


@pytest.mark.mission("L4", "B2")
@pytest.mark.parametrize("law", LAWS[:5], ids=lambda law: type(law).__name__)
def test_closed_forms_are_mean_median_mode_and_quantile(law):
    for i in range(2):
        density = law._law.pdf

        def integral(f, upper, i=i, density=density):
            """In pieces, by quantiles, so that the integrand is smooth on each."""
            ends = [law.quantile(p)[i] for p in (1e-13, 1e-9, 1e-6, 1e-3, 0.05, 0.5, 0.95, 0.999, 1 - 1e-6, 1 - 1e-9)]
            ends = [end for end in ends if end < upper] + [upper]
            pieces = itertools.pairwise(ends)
            return sum(scipy.integrate.quad(lambda t: f(t) * density(np.array([t, t]))[i], *ab)[0] for ab in pieces)

        most = law.quantile(1 - 1e-12)[i]
        assert hg.decisions.bayes_action(law, hg.Squared())[i] == pytest.approx(
            integral(lambda t: t, most), rel=1e-3, abs=1e-6
        )
        assert integral(lambda t: 1.0, hg.decisions.bayes_action(law, hg.Absolute())[i]) == pytest.approx(0.5, abs=1e-5)
        assert integral(lambda t: 1.0, hg.decisions.bayes_action(law, hg.Quantile(0.1))[i]) == pytest.approx(
            0.1, abs=1e-5
        )
        mode = hg.decisions.bayes_action(law, hg.ZeroOne())[i]
        if np.isfinite(density(np.array([mode, mode]))[i]):
            assert density(np.array([mode, mode]))[i] >= density(np.full(2, mode * 1.01 + 0.001))[i]
    # the mean is the action of a huge Huber threshold, which has no closed form
    np.testing.assert_allclose(hg.decisions.bayes_action(law, hg.Huber(1e6)), law.mean, rtol=1e-6, atol=1e-9)


@pytest.mark.mission("B2", "L4")
def test_scores_for_two_classes_are_functions_of_the_probability():
    p = np.array([0.1, 0.35, 0.9])
    odds = np.log(p / (1 - p))
    expected = {
        hg.Logistic(): odds,
        hg.Exponential(): 0.5 * odds,
        hg.SquaredMargin(): 2 * p - 1,
        hg.SquaredHinge(): 2 * p - 1,
        hg.Hinge(): np.sign(2 * p - 1),
        hg.ZeroOne(): (p > 0.5).astype(float),
    }
    for loss, scores in expected.items():
        np.testing.assert_allclose(hg.decisions.bayes_action(Bernoulli(p), loss), scores, atol=1e-9, err_msg=repr(loss))
    with pytest.raises(TypeError, match="Bernoulli"):
        hg.decisions.bayes_action(Normal(0.0, 1.0), hg.Hinge())


@pytest.mark.mission("B2")
def test_scores_over_classes(rng):
    p = rng.dirichlet([1.0, 1.0, 1.0], size=4)
    np.testing.assert_allclose(hg.Softmax().inverse_link(hg.decisions.bayes_action(Categorical(p), hg.Softmax())), p)
    loss = hg.MulticlassHinge(cost=((0.0, 1.0, 2.0), (1.0, 0.0, 1.0), (3.0, 1.0, 0.0)))
    scores = hg.decisions.bayes_action(Categorical(p), loss)
    best = hg.decisions.posterior_risk(Categorical(p), loss, scores)
    for _ in range(200):
        other = scores + rng.normal(size=scores.shape) * rng.choice([0.01, 0.3, 2.0])
        assert np.all(best <= hg.decisions.posterior_risk(Categorical(p), loss, other) + 1e-9)
    np.testing.assert_array_equal(hg.decisions.bayes_action(Categorical(p), hg.ZeroOne()), p.argmax(axis=1))


@pytest.mark.mission("B2")
def test_a_users_loss_convex_or_not_has_an_action():
    class Bounded:
        """Not convex: 1 − exp(−(y − a)²)."""

        def value(self, y, s):
            return 1.0 - np.exp(-((y - s) ** 2))

        def gradient(self, y, s):
            return 2.0 * (s - y) * np.exp(-((y - s) ** 2))

    law = Empirical(np.array([0.0, 0.1, 0.2, 5.0, 5.1]))
    found = hg.decisions.bayes_action(law, Bounded())
    assert found == pytest.approx(0.1, abs=0.01)  # three against two
    assert hg.decisions.bayes_action(law, "mean") == pytest.approx(2.08)


def test_draws_have_the_moments_they_should(rng):
    for law in [*LAWS, Dirichlet([2.0, 3.0, 1.5])]:
        draws = law.sample(20_000, random_state=1)
        spread = 6.0 * np.sqrt(np.max(law.variance) / 20_000) + 0.05 * isinstance(law, (StudentT, InverseGamma))
        np.testing.assert_allclose(draws.mean(axis=0), law.mean, atol=spread)
    p = np.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(np.bincount(Categorical(p).sample(20_000, 1).astype(int)) / 20_000, p, atol=0.02)


# ------------------------------------------------------------------------------------ B3: Gaussian linear regression


def line(rng, n=40, d=4, noise=0.5):
    X = rng.normal(size=(n, d)) + 0.5
    return X, X @ rng.normal(size=d) + noise * rng.normal(size=n)


def covariance_matrix(rng, d):
    A = rng.normal(size=(d, d))
    return A @ A.T / d + 0.2 * np.eye(d)


@pytest.mark.mission("B3")
def test_posterior_is_the_formula_and_evidence_the_density_of_y(rng):
    X, y = line(rng)
    S0, noise = covariance_matrix(rng, 4), 0.3
    model = hg.BayesianLinearRegression(S0, noise, fit_intercept=False).fit(X, y)
    mean = np.linalg.solve(X.T @ X + noise * np.linalg.inv(S0), X.T @ y)
    cov = np.linalg.inv(X.T @ X / noise + np.linalg.inv(S0))
    np.testing.assert_allclose(model.coef_, mean, rtol=1e-10)
    np.testing.assert_allclose(model.covariance_, cov, rtol=1e-9, atol=1e-12)
    marginal = scipy.stats.multivariate_normal(np.zeros(len(y)), X @ S0 @ X.T + noise * np.eye(len(y)))
    assert model.log_evidence_ == pytest.approx(marginal.logpdf(y), rel=1e-10)
    new = rng.normal(size=(5, 4))
    law = model.predictive(new)
    np.testing.assert_allclose(law.variance, np.einsum("ij,jk,ik->i", new, cov, new) + noise, rtol=1e-9)
    mean, std, (low, high) = model.predict(new, return_std=True, interval=0.9)
    np.testing.assert_allclose(scipy.stats.norm.cdf((high - mean) / std), 0.95)
    np.testing.assert_allclose(low + high, 2 * mean)
    np.testing.assert_allclose(model.predict(new, action=hg.Quantile(0.95)), high)


@pytest.mark.mission("B3")
def test_the_mode_with_an_isotropic_prior_is_ridge(rng):
    X, y = line(rng)
    noise, lam = 0.4, 3.0
    model = hg.BayesianLinearRegression(noise / lam, noise).fit(X, y)
    ridge = hg.Ridge(lam, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-9)
    assert model.intercept_ == pytest.approx(ridge.intercept_)


@pytest.mark.mission("B3", "B1")
@pytest.mark.parametrize("noise", [0.3, "conjugate"])
@pytest.mark.parametrize("bias", [True, False])
def test_learning_row_by_row_is_learning_at_once(noise, bias, rng):
    X, y = line(rng)
    weight = rng.integers(0, 3, len(y)).astype(float)
    weight[0] = 1.0
    S0 = covariance_matrix(rng, 4)
    whole = hg.BayesianLinearRegression(S0, noise, fit_intercept=bias).fit(X, y, weight)
    steps = hg.BayesianLinearRegression(S0, noise, fit_intercept=bias)
    for i in range(10):  # rank one
        steps.partial_fit(X[i : i + 1], y[i : i + 1], weight[i : i + 1] if weight[i] else None) if weight[i] else None
    steps.partial_fit(X[10:], y[10:], weight[10:])
    np.testing.assert_allclose(steps.coef_, whole.coef_, rtol=1e-8)
    np.testing.assert_allclose(steps.covariance_, whole.covariance_, rtol=1e-7, atol=1e-12)
    assert steps.intercept_ == pytest.approx(whole.intercept_)
    assert steps.log_evidence_ == pytest.approx(whole.log_evidence_)


@pytest.mark.mission("B3")
def test_unknown_noise_integrated_out_is_students_t(rng):
    """The conjugate model against quadrature over σ² of the model with known σ²."""
    X, y = line(rng, n=12, d=2)
    a0, b0, S0 = 2.0, 1.0, 1.5
    model = hg.BayesianLinearRegression(S0, "conjugate", fit_intercept=False, noise_shape=a0, noise_rate=b0).fit(X, y)
    v = np.exp(np.linspace(-5, 4, 181))
    known = [hg.BayesianLinearRegression(S0 * s2, s2, fit_intercept=False).fit(X, y) for s2 in v]
    log = np.array([m.log_evidence_ for m in known]) + scipy.stats.invgamma.logpdf(v, a0, scale=b0) + np.log(v)
    step = np.log(v[1] / v[0])
    assert model.log_evidence_ == pytest.approx(scipy.special.logsumexp(log) + np.log(step), abs=1e-6)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    assert model.noise_variance_ == pytest.approx(float(weight @ v), rel=1e-5)
    new = rng.normal(size=(1, 2))
    for target in (-1.0, 0.5):
        averaged = float(weight @ [m.predictive(new).density(target)[0] for m in known])
        assert model.predictive(new).density(target)[0] == pytest.approx(averaged, rel=1e-5)


@pytest.mark.mission("B3")
@pytest.mark.parametrize(("prior", "noise"), [(None, None), (1.5, None), (None, 0.3)])
def test_evidence_is_greatest_at_what_is_chosen(prior, noise, rng):
    X, y = line(rng, n=60)
    model = hg.BayesianLinearRegression(prior, noise).fit(X, y)
    tau = model.prior_variance_ * (1.0 if prior is None else prior)
    for a in (0.8, 1.0, 1.25) if prior is None else (1.0,):
        for b in (0.8, 1.0, 1.25) if noise is None else (1.0,):
            other = hg.BayesianLinearRegression(tau * a, model.noise_variance_ * b).fit(X, y)
            assert other.log_evidence_ <= model.log_evidence_ + 1e-9


@pytest.mark.mission("B3")
def test_drawn_functions_have_the_posterior_moments(rng):
    X, y = line(rng)
    for noise in (0.3, "conjugate"):
        model = hg.BayesianLinearRegression(1.0, noise).fit(X, y)
        new = rng.normal(size=(3, 4))
        drawn = model.sample_functions(new, 40_000, random_state=0)
        law = model.predictive(new, noise=False)
        np.testing.assert_allclose(drawn.mean(axis=1), law.mean, atol=0.02)
        np.testing.assert_allclose(drawn.std(axis=1), law.std, rtol=0.03)


@pytest.mark.mission("B3")
@pytest.mark.parametrize("shape", [(80, 6), (15, 40)])
def test_bayesian_ridge_is_stationary_and_agrees_with_scikit_learn(shape, rng):
    from sklearn.linear_model import BayesianRidge

    X, y = line(rng, *shape)
    ours = hg.BayesianRidge(compute_score=True, tol=1e-10, max_iter=5000).fit(X, y)
    theirs = BayesianRidge(compute_score=True, tol=1e-10, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose([ours.alpha_, ours.lambda_], [theirs.alpha_, theirs.lambda_], rtol=1e-4)
    np.testing.assert_allclose(ours.sigma_, theirs.sigma_, rtol=1e-4, atol=1e-8)
    assert ours.scores_[-1] == pytest.approx(theirs.scores_[-1], rel=1e-6)
    assert np.all(np.diff(ours.scores_) > -1e-12 * np.abs(ours.scores_[1:]))
    # The ridge solution for λ/α, with its posterior covariance.
    ridge = hg.Ridge(ours.lambda_ / ours.alpha_, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.coef_, ridge.coef_, rtol=1e-6, atol=1e-9)
    Z = X - X.mean(axis=0)
    np.testing.assert_allclose(
        np.linalg.inv(ours.alpha_ * Z.T @ Z + ours.lambda_ * np.eye(shape[1])), ours.sigma_, rtol=1e-6, atol=1e-9
    )


@pytest.mark.mission("B3")
def test_evidence_rises_and_settles_where_the_fit_is_nearly_perfect():
    """With more features than examples α is near 5e5: an error of ‖y‖²·1e-16 in the residual would show at 1e-8."""
    for seed in range(8):
        X, y = line(np.random.default_rng(seed), 15, 40)
        model = hg.BayesianRidge(compute_score=True, tol=1e-10, max_iter=5000).fit(X, y)
        assert model.alpha_ > 1e5
        assert np.all(np.diff(model.scores_) > -1e-12 * np.abs(model.scores_[1:]))
        assert model.n_iter_ < 100


@pytest.mark.mission("B3")
def test_bayesian_ridge_and_bayesian_linear_regression_choose_alike(rng):
    """Without hyperpriors they maximise the same evidence but for one observation, which the flat bias takes."""
    X, y = line(rng, n=400)
    ridge = hg.BayesianRidge(
        alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, tol=1e-10, max_iter=5000, fit_intercept=False
    )
    ridge.fit(X, y)
    model = hg.BayesianLinearRegression(fit_intercept=False).fit(X, y)
    assert 1 / ridge.alpha_ == pytest.approx(model.noise_variance_, rel=1e-6)
    assert 1 / ridge.lambda_ == pytest.approx(model.prior_variance_, rel=1e-5)


@pytest.mark.mission("B3")
def test_ard_finds_the_features_that_matter_and_agrees_with_scikit_learn(rng):
    from sklearn.linear_model import ARDRegression

    X = rng.normal(size=(120, 12))
    y = 2.0 * X[:, 3] - X[:, 7] + 0.1 * rng.normal(size=120)
    ours, theirs = hg.ARDRegression().fit(X, y), ARDRegression().fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert set(np.flatnonzero(np.abs(ours.coef_) > 0.05)) == {3, 7}
    assert ours.sigma_.shape == (len(ours._used),) * 2
    assert np.all(ours.predict(X, return_std=True)[1] >= 1 / np.sqrt(ours.alpha_))


@pytest.mark.mission("B3")
def test_intervals_have_their_nominal_coverage(rng):
    """Calibrated in the model's own world: w from the prior, y from the model, repeated."""
    inside = []
    for _ in range(150):
        X = rng.normal(size=(20, 3))
        w = rng.normal(size=3)
        y = X @ w + 0.5 * rng.normal(size=20)
        new = rng.normal(size=(4, 3))
        truth = new @ w + 0.5 * rng.normal(size=4)
        model = hg.BayesianLinearRegression(1.0, 0.25, fit_intercept=False).fit(X, y)
        _, (low, high) = model.predict(new, interval=0.8)
        inside.append((low < truth) & (truth < high))
    assert abs(np.mean(inside) - 0.8) < 0.06


@pytest.mark.mission("B3")
def test_the_posterior_of_the_seeds_example_contracts():
    """y = w₀ + w₁x + ε, ε ~ N(0, 0.2²), w ~ N(0, ½I): the prior, then 1, 2 and 20 examples."""
    pytest.importorskip("matplotlib").use("agg")
    figure = hg.plots.plot_posterior_contraction((0, 1, 2, 20))
    models = figure.models
    np.testing.assert_allclose(models[0].covariance_, 0.5 * np.eye(2))
    volumes = [np.linalg.det(m.covariance_) for m in models]
    assert all(a > b for a, b in itertools.pairwise(volumes))
    # One example fixes one direction only: its precision grows there, and the prior stays across.
    assert np.linalg.eigvalsh(models[1].covariance_)[-1] == pytest.approx(0.5)
    away = models[-1].coef_ - [-0.3, 0.5]
    assert away @ np.linalg.solve(models[-1].covariance_, away) < scipy.stats.chi2.ppf(0.999, 2)
    assert len(figure.axes) == 8


# -------------------------------------------------------------------------------------- B4: Laplace, Gaussian processes


def two_classes(rng, n=60):
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] - 0.5 * X[:, 1] + 0.7 * rng.normal(size=n) > 0.2).astype(int)


@pytest.mark.mission("B4")
def test_laplace_is_the_curvature_at_the_certified_mode(rng):
    X, y = two_classes(rng)
    model = hg.BayesianLogisticRegression(2.0).fit(X, y)
    assert model.certificate_.converged
    A, s = np.hstack([X, np.ones((len(X), 1))]), 2.0 * y - 1
    w = np.append(model.coef_[0], model.intercept_)

    def objective(w):
        return np.logaddexp(0, -s * (A @ w)).sum() + w[:2] @ w[:2] / 4.0

    h = 1e-3
    E = h * np.eye(3)
    H = np.array(
        [
            [
                (objective(w + a + b) - objective(w + a - b) - objective(w - a + b) + objective(w - a - b))
                / (4 * h * h)
                for b in E
            ]
            for a in E
        ]
    )
    np.testing.assert_allclose(np.linalg.inv(H), model.covariance_, rtol=1e-3)


@pytest.mark.mission("B4")
def test_predictive_probabilities_by_quadrature_and_probit(rng):
    X, y = two_classes(rng)
    exact = hg.BayesianLogisticRegression(5.0, predictive="quadrature").fit(X, y)
    probit = hg.BayesianLogisticRegression(5.0).fit(X, y)
    new = 3.0 * rng.normal(size=(30, 2))
    mean, variance = exact._score_moments(new)
    for i in range(5):
        value = scipy.integrate.quad(lambda a, i=i: scipy.special.expit(a) * scipy.stats.norm.pdf(a, mean[i], variance[i] ** 0.5), mean[i] - 12 * variance[i] ** 0.5, mean[i] + 12 * variance[i] ** 0.5, points=[mean[i], 0.0])[0]  # fmt: skip
        assert exact.predict_proba(new)[i, 1] == pytest.approx(value, abs=1e-9)
    assert np.abs(exact.predict_proba(new) - probit.predict_proba(new)).max() < 0.02
    plain = hg.LogisticRegression(C=5.0, tol=1e-10).fit(X, y)
    assert np.all(np.abs(exact.predict_proba(new)[:, 1] - 0.5) <= np.abs(plain.predict_proba(new)[:, 1] - 0.5) + 1e-6)
    np.testing.assert_array_equal(exact.predict(new), plain.predict(new))


@pytest.mark.mission("B4")
@pytest.mark.parametrize("deviation", [1e-3, 0.5, 3.0, 10.0, 35.0])
def test_the_quadrature_is_exact_for_wide_and_narrow_posteriors(deviation, rng):
    """∫ σ(a) N(a; m, s²) da by adaptive integration, from scores that are almost known to those that are hardly known."""
    mean = deviation * rng.normal(size=6) + rng.normal(size=6)
    found = averaged_sigmoid(mean, np.full(6, deviation**2), "quadrature")
    for m, value in zip(mean, found):
        ends = (m - 9 * deviation, m + 9 * deviation)
        inside = [x for x in (m, 0.0, -3.0, 3.0) if ends[0] < x < ends[1]]
        exact = scipy.integrate.quad(
            lambda a, m=m: scipy.special.expit(a) * scipy.stats.norm.pdf(a, m, deviation), *ends,
            points=inside, epsabs=1e-12, limit=200,
        )[0]  # fmt: skip
        assert value == pytest.approx(exact, abs=1e-9)


@pytest.mark.mission("B4")
def test_laplace_evidence_is_near_the_truth_and_greatest_where_chosen(rng):
    X, y = two_classes(rng, 40)
    X = X[:, :1]
    tau = 1.7
    model = hg.BayesianLogisticRegression(tau, fit_intercept=False).fit(X, y)
    w = np.linspace(-12, 12, 4001)
    log = -np.logaddexp(0, -(2 * y - 1)[:, None] * X * w).sum(axis=0) + scipy.stats.norm.logpdf(w, 0, tau**0.5)
    assert model.log_evidence_ == pytest.approx(scipy.special.logsumexp(log) + np.log(w[1] - w[0]), abs=0.1)
    best = hg.BayesianLogisticRegression(None, fit_intercept=False).fit(X, y)
    for factor in (0.7, 1.4):
        other = hg.BayesianLogisticRegression(best.prior_variance_ * factor, fit_intercept=False).fit(X, y)
        assert other.log_evidence_ <= best.log_evidence_ + 1e-6


KERNELS = [
    hg.kernels.RBF(1.3), hg.kernels.RBF(gamma=0.4), hg.kernels.RBF([1.0, 2.0, 0.5]), hg.kernels.Matern(1.2, 0.5), hg.kernels.Matern(1.2, 1.5),
    hg.kernels.Matern(1.2, 2.5), hg.kernels.Matern(1.2, 3.3), hg.kernels.Matern(1.2, np.inf), hg.kernels.Matern([1.0, 2.0, 0.7], 1.5),
    hg.kernels.Matern([1.0, 2.0, 0.7], 2.5), hg.kernels.RationalQuadratic(1.1, 0.7), hg.kernels.Laplacian(0.3), hg.kernels.Constant(2.0), hg.kernels.White(0.3),
    hg.kernels.Polynomial(3, 0.5, 1.0), hg.kernels.Polynomial(1, 0.5, 0.0), 2.0 * hg.kernels.RBF(1.3) + hg.kernels.White(0.1),
    (hg.kernels.RBF(0.8) + hg.kernels.Constant(0.5)) * hg.kernels.Matern(1.0), hg.kernels.RBF(1.0) ** 3,
    (2.0 * hg.kernels.RBF(1.0) + hg.kernels.LinearKernel()).normalised(), hg.kernels.RBF(1.0).of(np.sin), 3.0 * hg.kernels.ChiSquared(0.3).of(np.abs),
    hg.kernels.RBF(1.0).fixed() * hg.kernels.Constant(2.0) + 1.5 * hg.kernels.LinearKernel(),
]  # fmt: skip


@pytest.mark.mission("B4", "K2")
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernel_derivatives_match_finite_differences(kernel, rng):
    X = rng.normal(size=(12, 3))
    theta = kernel.theta
    derivatives = list(kernel.derivatives(X))
    assert len(derivatives) == len(theta) == len(kernel.tunable)
    np.testing.assert_allclose(kernel.with_theta(theta)(X), kernel(X), rtol=1e-12)
    for j, G in enumerate(derivatives):
        h = np.zeros(len(theta))
        h[j] = 1e-5
        difference = (kernel.with_theta(theta + h)(X) - kernel.with_theta(theta - h)(X)) / 2e-5
        np.testing.assert_allclose(G, difference, atol=1e-7)


def wave(rng, n=40, d=2):
    X = rng.uniform(-2, 2, size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, -1] + 0.1 * rng.normal(size=n)


@pytest.mark.mission("B4")
def test_the_marginal_likelihood_is_the_density_of_y_and_its_gradient_is_right(rng):
    X, y = wave(rng)
    Y = np.column_stack([y, -2.0 * y + 1.0])
    kernel = 1.5 * hg.kernels.RBF([0.8, 1.5]) + hg.kernels.Matern(1.0, 2.5) + hg.kernels.White(0.05)
    for target in (y, Y):
        model = hg.GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None).fit(X, target)
        law = scipy.stats.multivariate_normal(np.zeros(len(y)), kernel(X) + 0.01 * np.eye(len(y)))
        density = sum(law.logpdf(column) for column in target.reshape(len(y), -1).T)
        assert model.log_marginal_likelihood_value_ == pytest.approx(density, rel=1e-9)
        theta = kernel.theta + 0.1
        _, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
        for j in range(len(theta)):
            h = np.zeros(len(theta))
            h[j] = 1e-5
            up, down = model.log_marginal_likelihood(theta + h), model.log_marginal_likelihood(theta - h)
            assert gradient[j] == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-5)


@pytest.mark.mission("B4", "B3")
def test_a_process_with_a_linear_kernel_is_bayesian_linear_regression(rng):
    X, y = line(rng)
    noise, tau = 0.3, 2.0
    linear = hg.BayesianLinearRegression(tau, noise, fit_intercept=False).fit(X, y)
    process = hg.GaussianProcessRegressor(tau * hg.kernels.LinearKernel(), alpha=noise, optimizer=None).fit(X, y)
    new = rng.normal(size=(7, 4))
    mean, std = process.predict(new, return_std=True)
    law = linear.predictive(new, noise=False)
    np.testing.assert_allclose(mean, law.mean, rtol=1e-8)
    np.testing.assert_allclose(std, law.std, rtol=1e-7)
    assert process.log_marginal_likelihood_value_ == pytest.approx(linear.log_evidence_, rel=1e-9)
    ridge = hg.KernelRidge(noise, kernel=tau * hg.kernels.LinearKernel()).fit(X, y)
    np.testing.assert_allclose(mean, ridge.predict(new), rtol=1e-8)


@pytest.mark.mission("B4", "V1")
def test_leave_one_out_is_refitting_without_one(rng):
    X, y = wave(rng, 25)
    options = {"kernel": 2.0 * hg.kernels.RBF(0.9) + hg.kernels.White(0.02), "alpha": 1e-3, "optimizer": None}
    shortcut = hg.GaussianProcessRegressor(**options).fit(X, y).leave_one_out()
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        mean, std = hg.GaussianProcessRegressor(**options).fit(X[rest], y[rest]).predict(X[[i]], return_std=True)
        assert shortcut.mean[i] == pytest.approx(mean[0], rel=1e-6, abs=1e-8)
        assert shortcut.std[i] == pytest.approx(np.sqrt(std[0] ** 2 + 1e-3), rel=1e-6)


@pytest.mark.mission("B4")
def test_the_process_agrees_with_scikit_learn(rng):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    X, y = wave(rng, 60)
    ours = hg.GaussianProcessRegressor(
        hg.kernels.Constant(1.0) * hg.kernels.RBF(1.0) + hg.kernels.White(0.1), normalize_y=True, tol=1e-8
    )
    theirs = GaussianProcessRegressor(ConstantKernel() * RBF() + WhiteKernel(0.1), normalize_y=True)
    ours.fit(X, y)
    theirs.fit(X, y)
    assert ours.log_marginal_likelihood_value_ >= theirs.log_marginal_likelihood_value_ - 1e-6
    np.testing.assert_allclose(ours.kernel_.theta, theirs.kernel_.theta, atol=1e-3)
    new = rng.uniform(-2, 2, size=(9, 2))
    for found, other in zip(ours.predict(new, return_std=True), theirs.predict(new, return_std=True)):
        np.testing.assert_allclose(found, other, atol=1e-4)
    np.testing.assert_allclose(
        ours.predict(new, return_cov=True)[1], theirs.predict(new, return_cov=True)[1], atol=1e-4
    )


@pytest.mark.mission("B4")
def test_from_coarse_to_fine_reaches_the_maximum_of_all_rows(rng, monkeypatch):
    from hinge.models.bayes import hyperparameters

    X, y = wave(rng, 160)
    y = y + 0.2 * rng.normal(size=len(y))
    kernel = 1.0 * hg.kernels.RBF([1.0, 1.0]) + hg.kernels.White(1.0)
    direct = hg.GaussianProcessRegressor(kernel, tol=1e-7).fit(X, y)
    monkeypatch.setattr(hyperparameters, "COARSE_ROWS", 40)
    stepwise = hg.GaussianProcessRegressor(kernel, tol=1e-6).fit(X, y)
    assert stepwise.log_marginal_likelihood_value_ == pytest.approx(direct.log_marginal_likelihood_value_, abs=1e-4)
    _, gradient = stepwise.log_marginal_likelihood(stepwise.kernel_.theta, eval_gradient=True)
    assert np.abs(gradient).max() < 0.05


@pytest.mark.mission("B4")
def test_prior_draws_actions_and_messages(rng):
    X, y = wave(rng, 20)
    prior = hg.GaussianProcessRegressor(2.0 * hg.kernels.RBF(1.0), n_targets=1)
    drawn = prior.sample_y(X[:4], 20_000, random_state=0)
    np.testing.assert_allclose(np.cov(drawn), (2.0 * hg.kernels.RBF(1.0))(X[:4]), atol=0.1)
    model = hg.GaussianProcessRegressor(2.0 * hg.kernels.RBF(1.0), alpha=0.1, optimizer=None).fit(X, y)
    mean, (_, high) = model.predict(X, interval=0.5)
    np.testing.assert_allclose(model.predict(X, action=hg.Quantile(0.75)), high)
    np.testing.assert_allclose(model.predict(X, action="median"), mean)
    with pytest.raises(ValueError, match="alpha"):
        hg.GaussianProcessRegressor(alpha=0.0).fit(np.zeros((3, 1)), [0.0, 1.0, 2.0])
    strings = hg.GaussianProcessRegressor(hg.kernels.Spectrum(2).normalised(), alpha=0.1).fit(
        ["abab", "abba", "cdcd"], [1.0, 1.0, 0.0]
    )
    assert strings.predict(["abab"])[0] > strings.predict(["cdcd"])[0]


@pytest.mark.mission("B4")
def test_process_classifier_mode_gradient_and_peers(rng):
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    X, y = two_classes(rng, 50)
    kernel = hg.kernels.Constant(2.0) * hg.kernels.RBF(1.0)
    model = hg.GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
    (fitted,) = model.approximations_
    K, s = kernel(X), 2.0 * y - 1
    # At the mode f = K∇ log p(y | f).
    np.testing.assert_allclose(K @ (s * scipy.special.expit(-s * fitted.f)), fitted.f, atol=1e-7)
    theta = np.array([0.3, -0.2])
    _, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    for j, h in enumerate(1e-4 * np.eye(2)):
        difference = (model.log_marginal_likelihood(theta + h) - model.log_marginal_likelihood(theta - h)) / 2e-4
        assert gradient[j] == pytest.approx(difference, rel=1e-4)
    for target in (y, y + (X[:, 0] > 1)):
        ours = hg.GaussianProcessClassifier(kernel, optimizer=None).fit(X, target)
        theirs = GaussianProcessClassifier(ConstantKernel(2.0) * RBF(1.0), optimizer=None).fit(X, target)
        assert np.abs(ours.predict_proba(X) - theirs.predict_proba(X)).max() < 1e-3
    tuned = hg.GaussianProcessClassifier(kernel).fit(X, y)
    assert tuned.log_marginal_likelihood_value_ > model.log_marginal_likelihood_value_


@pytest.mark.parametrize("make", [hg.ARDRegression, hg.MixtureOfRegressions])
def test_weights_of_any_size_give_a_fit_or_name_themselves(make, rng):
    for trial in range(12):
        n = int(rng.integers(4, 30))
        X = rng.normal(size=(n, 3))
        y = X[:, 0] + 0.1 * rng.normal(size=n)
        sizes = np.full(n, [1e-150, 1.0, 1e150][trial % 3]) if trial < 6 else 10.0 ** rng.integers(-150, 151, n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of the overflow that is then refused
            try:
                found = make(max_iter=20).fit(X, y, sample_weight=sizes).predict(X)
            except ValueError as error:
                found = 0.0 if "sample_weight" in str(error) else np.nan
        assert np.all(np.isfinite(found))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_ard_of_fewer_rows_than_columns_follows_the_formulas_of_many(rng, sparse, weighted):
    """Σ by n × n inner products is (αX̃'SX̃ + Λ)⁻¹, and the mean is αΣX̃'Sỹ."""
    X = rng.normal(size=(15, 40)) + 3.0
    y = X[:, 0] + 0.1 * rng.normal(size=15)
    s = rng.uniform(0.5, 2.0, 15) if weighted else np.ones(15)
    model = hg.ARDRegression(max_iter=3, threshold_lambda=1e3)
    model.fit(scipy.sparse.csr_array(X) if sparse else X, y, sample_weight=s if weighted else None)
    Xc, yc = X - s @ X / s.sum(), y - s @ y / s.sum()
    kept = np.flatnonzero(model.lambda_ < 1e3)
    A = Xc[:, kept]
    sigma = np.linalg.inv(model.alpha_ * A.T @ (s[:, None] * A) + np.diag(model.lambda_[kept]))
    np.testing.assert_allclose(model.sigma_, sigma, rtol=1e-6, atol=1e-8 * np.abs(sigma).max())
    np.testing.assert_allclose(model.coef_[kept], model.alpha_ * sigma @ A.T @ (s * yc), rtol=1e-6, atol=1e-9)
    # Copies of the rows with weights divided by their number are the same data in more rows than columns.
    tall = hg.ARDRegression(max_iter=3, threshold_lambda=1e3)
    tall.fit(np.tile(X, (4, 1)), np.tile(y, 4), sample_weight=np.tile(s, 4) / 4)
    np.testing.assert_allclose(model.coef_, tall.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose([model.alpha_, *model.lambda_], [tall.alpha_, *tall.lambda_], rtol=1e-5)


@pytest.mark.mission("B3")
@pytest.mark.parametrize("unit", [1.0, 1e4, 1e6, 1e9])
@pytest.mark.parametrize("shape", [(200, 5), (12, 20)])
@pytest.mark.parametrize("cls", [hg.BayesianRidge, hg.ARDRegression])
def test_the_evidence_is_maximal_in_any_unit_of_the_target(cls, shape, unit, rng):
    """With targets of 1e6 the iteration that starts at a precision of one ends at weights of zero, where the evidence is lower."""
    X = rng.normal(size=shape)
    y = X[:, :3] @ np.array([3.0, -2.0, 1.0]) + 0.1 * rng.normal(size=len(X))
    model = cls(compute_score=True).fit(X, unit * y)
    assert model.score(X, unit * y) > 0.9
    nothing = -0.5 * len(X) * (1.0 + np.log(2.0 * np.pi * np.var(unit * y)))
    assert model.scores_[-1] > nothing
