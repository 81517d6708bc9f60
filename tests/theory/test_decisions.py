"""Distributions against SciPy's, and Bayes actions against trying all actions of a grid."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

import hinge as hg
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

LAWS = [
    (Normal(0.7, 1.9), scipy.stats.norm(0.7, 1.9), 0.7),
    (StudentT(5.0, -1.2, 0.4), scipy.stats.t(5.0, -1.2, 0.4), -1.2),
    (Beta(2.5, 4.0), scipy.stats.beta(2.5, 4.0), 1.5 / 4.5),
    (Beta(0.6, 3.0), scipy.stats.beta(0.6, 3.0), 0.0),
    (Beta(3.0, 0.6), scipy.stats.beta(3.0, 0.6), 1.0),
    (Beta(0.5, 0.5), scipy.stats.beta(0.5, 0.5), 0.5),
    (Beta(0.9, 0.2), scipy.stats.beta(0.9, 0.2), 1.0),  # 6e-4 of it is within rounding of 1
    (Gamma(3.5, 2.0), scipy.stats.gamma(3.5, scale=0.5), 2.5 / 2.0),
    (Gamma(0.5, 2.0), scipy.stats.gamma(0.5, scale=0.5), 0.0),
    (InverseGamma(4.0, 3.0), scipy.stats.invgamma(4.0, scale=3.0), 3.0 / 5.0),
    (Bernoulli(0.3), scipy.stats.bernoulli(0.3), 0.0),
    (Bernoulli(0.8), scipy.stats.bernoulli(0.8), 1.0),
    (NegativeBinomial(4.5, 0.4), scipy.stats.nbinom(4.5, 0.4), math.floor(3.5 * 0.6 / 0.4)),
    (NegativeBinomial(0.5, 0.4), scipy.stats.nbinom(0.5, 0.4), 0.0),
]


@pytest.mark.parametrize("loss", [hg.Squared(), hg.Absolute(), hg.Quantile(0.9), hg.Huber(1.0)])
def test_a_normal_of_no_width_is_a_point(loss):
    """The prediction of a noise-free Gaussian process at a row of its data, of which SciPy's moments are NaN."""
    law = Normal([1.0, 2.0], [0.0, 3.0])
    np.testing.assert_allclose(law.bayes_action(loss)[0], 1.0)
    for found in (law.mean, law.mode, law.median, law.quantile(0.99), law.interval(0.9)[0], law.sample(1)[0]):
        assert found[0] == 1.0
    np.testing.assert_array_equal([law.std, law.variance], [[0.0, 3.0], [0.0, 9.0]])
    np.testing.assert_array_equal([law.cdf(0.99)[0], law.cdf(1.0)[0]], [0.0, 1.0])
    np.testing.assert_allclose(law.cdf(5.0)[1], 0.8413447460685429)


@pytest.mark.parametrize(("ours", "law", "mode"), LAWS, ids=[repr(ours) for ours, *_ in LAWS])
def test_a_distribution_is_scipys(ours, law, mode):
    assert ours.shape == ()
    assert float(ours.mean) == pytest.approx(law.mean())
    assert float(ours.variance) == pytest.approx(law.var())
    assert float(ours.std) == pytest.approx(law.std())
    assert float(ours.median) == pytest.approx(law.median())
    assert float(ours.mode) == pytest.approx(mode)
    low, high = ours.interval(0.8)
    assert (float(low), float(high)) == pytest.approx((law.ppf(0.1), law.ppf(0.9)))
    y = law.ppf([0.2, 0.5, 0.7])
    np.testing.assert_allclose(ours.cdf(y), law.cdf(y))
    np.testing.assert_allclose(ours.density(y), law.pmf(y) if ours.discrete else law.pdf(y))
    points, weight = ours.nodes()
    assert weight.sum() == pytest.approx(1.0)
    assert np.sum(weight * points) == pytest.approx(law.mean(), rel=1e-8)
    assert np.sum(weight * points**2) == pytest.approx(law.moment(2), rel=1e-6)
    inside = (points > law.ppf(0.05)) & (points <= law.ppf(0.9))
    exact = law.cdf(law.ppf(0.9)) - law.cdf(law.ppf(0.05))
    assert np.sum(weight[inside]) == pytest.approx(exact, abs=0.02)
    for level in (0.0, 1.0):
        with pytest.raises(ValueError, match="between 0 and 1"):
            ours.interval(level)


@pytest.mark.parametrize(("ours", "law"), [(ours, law) for ours, law, _ in LAWS[:3]], ids=["normal", "t", "beta"])
def test_samples_have_the_law(ours, law, rng):
    """The Kolmogorov–Smirnov test at a level of 1e-6."""
    drawn = ours.sample(2000, rng)
    assert drawn.shape == (2000,)
    assert scipy.stats.kstest(drawn, law.cdf).pvalue > 1e-6


def test_one_object_holds_many_distributions():
    many = Gamma([[1.5, 2.5], [3.5, 4.5]], [1.0, 2.0])
    assert many.shape == (2, 2)
    points, weight = many.nodes()
    assert points.shape == weight.shape
    for i in range(2):
        for j in range(2):
            one = Gamma(many.concentration[i, j], many.rate[j])
            assert np.sum(weight[i, j] * points[i, j] ** 2) == pytest.approx(float(one.variance + one.mean**2))
            assert many.bayes_action(hg.Absolute())[i, j] == pytest.approx(float(one.median))
    assert many.sample(3, 0).shape == (3, 2, 2)
    counts = NegativeBinomial([2.0, 5.0], [0.3, 0.5])
    points, weight = counts.nodes()
    np.testing.assert_allclose(np.sum(weight * points, axis=-1), counts.mean)
    np.testing.assert_allclose(np.sum(weight, axis=-1), 1.0)


class TestClasses:
    def test_categories(self, rng):
        p = rng.dirichlet(np.ones(4), 3)
        law = Categorical(p)
        assert law.shape == (3,)
        np.testing.assert_array_equal(law.mode, p.argmax(axis=1))
        np.testing.assert_allclose(law.density(2), p[:, 2])
        drawn = law.sample(4000, rng)
        assert drawn.shape == (4000, 3)
        for i in range(3):
            share = np.bincount(drawn[:, i].astype(int), minlength=4) / 4000
            assert np.all(np.abs(share - p[i]) < 5 * np.sqrt(p[i] * (1 - p[i]) / 4000) + 1e-12)
        points, weight = law.nodes()
        np.testing.assert_array_equal(points, np.tile(np.arange(4.0), (3, 1)))
        np.testing.assert_array_equal(weight, p)
        with pytest.raises(TypeError, match="no mean"):
            _ = law.mean
        with pytest.raises(TypeError, match="no order"):
            law.quantile(0.5)

    def test_dirichlet(self, rng):
        alpha = np.array([2.0, 3.5, 1.0])
        law, scipys = Dirichlet(alpha), scipy.stats.dirichlet(alpha)
        np.testing.assert_allclose(law.mean, scipys.mean())
        np.testing.assert_allclose(law.variance, scipys.var())
        np.testing.assert_allclose(law.mode, [1 / 3.5, 2.5 / 3.5, 0.0])
        point = np.array([0.2, 0.5, 0.3])
        assert float(law.density(point)) == pytest.approx(scipys.pdf(point))
        marginal = [scipy.stats.beta(a, alpha.sum() - a) for a in alpha]
        np.testing.assert_allclose(law.quantile(0.3), [m.ppf(0.3) for m in marginal])
        np.testing.assert_allclose(law.bayes_action(hg.Absolute()), [m.median() for m in marginal])
        drawn = law.sample(3000, rng)
        assert np.all(np.abs(drawn.mean(axis=0) - law.mean) < 5 * np.sqrt(law.variance / 3000))
        for flat in ([0.5, 2.0], [1.0, 1.0]):
            with pytest.raises(ValueError, match="no single highest point"):
                _ = Dirichlet(flat).mode

    def test_draws_with_weights(self, rng):
        values, weight = rng.integers(0, 5, 40).astype(float), rng.random(40)
        law, share = Empirical(values, weight), weight / weight.sum()
        totals = np.array([share[values == v].sum() for v in range(5)])
        assert float(law.mean) == pytest.approx(share @ values)
        assert float(law.variance) == pytest.approx(share @ (values - share @ values) ** 2)
        assert float(law.mode) == totals.argmax()
        assert float(law.density(2.0)) == pytest.approx(totals[2])
        assert float(law.cdf(2.0)) == pytest.approx(totals[:3].sum())
        for level in (0.0, 0.1, 0.5, 0.9, 1.0):
            smallest = next(v for v in range(5) if totals[: v + 1].sum() >= level - 1e-12 and totals[: v + 1].sum() > 0)
            assert float(law.quantile(level)) == smallest
        drawn = law.sample(4000, rng)
        found = np.bincount(drawn.astype(int), minlength=5) / 4000
        assert np.all(np.abs(found - totals) < 5 * np.sqrt(totals * (1 - totals) / 4000))
        rows = Empirical(np.stack([values, values + 1]))
        np.testing.assert_allclose(rows.mean, [values.mean(), values.mean() + 1])
        assert rows.sample(7, 0).shape == (7, 2)
        assert rows.shape == (2,)


def best_on_grid(law, value, low, high, count=4001):
    """The least risk on a grid of actions, by the quadrature."""
    y, w = law.nodes()
    actions = np.linspace(low, high, count)
    risks = np.array([np.sum(w * value(y, np.full_like(y, a))) for a in actions])
    return actions[np.argmin(risks)], risks.min(), (high - low) / (count - 1)


class TestActions:
    @pytest.mark.parametrize(
        "loss",
        [
            hg.Huber(0.4),
            hg.LogCosh(),
            hg.EpsilonInsensitive(0.3),
            hg.RelativeError(),
            hg.SquaredEpsilonInsensitive(0.3),
        ],
        ids=repr,
    )
    @pytest.mark.parametrize("law", [Gamma(3.0, 2.0), Gamma(1.2, 0.5)], ids=repr)
    def test_no_action_of_a_grid_is_better(self, loss, law):
        best, least, step = best_on_grid(law, loss.value, 1e-3, 8.0)
        action = float(hg.decisions.bayes_action(law, loss))
        assert action == pytest.approx(best, abs=0.02 if loss.smooth else 0.05)
        assert float(hg.decisions.posterior_risk(law, loss, action)) <= least * (1 + 1e-4)
        assert step < 0.01

    @pytest.mark.parametrize("loss", [hg.Logistic(), hg.Exponential(), hg.SquaredHinge()], ids=repr)
    def test_margins(self, loss):
        """p ℓ(+1, s) + (1 − p) ℓ(−1, s)."""
        p = np.array([0.1, 0.45, 0.8])
        actions, grid = hg.decisions.bayes_action(Bernoulli(p), loss), np.linspace(-4, 4, 8001)
        for q, action in zip(p, actions):
            risks = q * loss.value(np.ones(8001), grid) + (1 - q) * loss.value(-np.ones(8001), grid)
            assert action == pytest.approx(grid[np.argmin(risks)], abs=2e-3)
        risk = p * loss.value(np.ones(3), actions) + (1 - p) * loss.value(-np.ones(3), actions)
        np.testing.assert_allclose(hg.decisions.posterior_risk(Bernoulli(p), loss, actions), risk)

    def test_log_links(self):
        for loss in (hg.Poisson(), hg.Gamma()):
            assert float(hg.decisions.bayes_action(Gamma(3.0, 2.0), loss)) == pytest.approx(math.log(1.5))

    def test_classes(self, rng):
        p = rng.dirichlet(np.ones(3), 2)
        scores = hg.decisions.bayes_action(Categorical(p), hg.Softmax())
        np.testing.assert_allclose(np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), p)
        np.testing.assert_allclose(
            hg.decisions.posterior_risk(Categorical(p), hg.Softmax(), scores), -np.sum(p * np.log(p), axis=1)
        )
        loss = hg.MulticlassHinge()
        scores = hg.decisions.bayes_action(Categorical(p), loss)
        found = hg.decisions.posterior_risk(Categorical(p), loss, scores)
        for i in range(2):
            for other in 3 * rng.normal(size=(300, 3)):
                risk = sum(p[i, y] * loss.value(np.array([float(y)]), other[None])[0] for y in range(3))
                assert found[i] <= risk + 1e-9

    def test_tables_of_costs(self, rng):
        p, costs = rng.dirichlet(np.ones(4), 5), rng.random((3, 4))
        expected = p @ costs.T
        np.testing.assert_array_equal(hg.decisions.bayes_action(Categorical(p), costs), expected.argmin(axis=1))
        chosen = rng.integers(0, 3, 5)
        np.testing.assert_allclose(
            hg.decisions.posterior_risk(Categorical(p), costs, chosen), expected[np.arange(5), chosen]
        )
        two = rng.random((3, 2))
        np.testing.assert_array_equal(
            hg.decisions.bayes_action(Bernoulli(p[:, 0]), two.tolist()),
            np.argmin(np.column_stack([1 - p[:, 0], p[:, 0]]) @ two.T, axis=1),
        )
        draws = rng.integers(0, 4, 30).astype(float)
        means = costs[:, draws.astype(int)].mean(axis=1)
        assert hg.decisions.bayes_action(Empirical(draws), costs) == means.argmin()
        assert float(hg.decisions.posterior_risk(Empirical(draws), costs, 1)) == pytest.approx(means[1])
        for wrong, law, match in (
            (costs[:, :3], Categorical(p), "3 columns, and there are 4"), (costs[:, :3], Empirical([0.0, 3.0]), "there are 4"),
            (costs, Empirical([0.5]), "outcomes 0, 1"), (costs, Empirical([-1.0]), "outcomes 0, 1"),
            (costs[0], Categorical(p), "matrix"), (np.full((2, 4), np.nan), Categorical(p), "finite"),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=match):
                hg.decisions.bayes_action(law, wrong)
        assert hg.decisions.bayes_action(Empirical([0.0, 2.0]), costs) in (0, 1, 2)  # class 3 did not occur

    def test_plain_functions(self, rng):
        law = Gamma(3.0, 2.0)
        assert float(hg.decisions.bayes_action(law, lambda a, y: (a - y) ** 2)) == pytest.approx(1.5, abs=1e-5)
        lopsided = float(hg.decisions.bayes_action(law, lambda a, y: 3.0 * (y - a) if y > a else a - y))
        assert lopsided == pytest.approx(float(law.quantile(0.75)), abs=0.02)  # a kink: the nodes are 0.02·y apart
        p = rng.dirichlet(np.ones(3))
        action = hg.decisions.bayes_action(Categorical(p), lambda a, y: abs(a - y))
        assert action == np.argmin([sum(p[y] * abs(a - y) for y in range(3)) for a in range(3)])
        risk = float(hg.decisions.posterior_risk(law, lambda a, y: (a - y) ** 2, 1.0))
        assert risk == pytest.approx(float(law.variance) + 0.25)
        assert float(hg.decisions.bayes_action(Empirical([2.0, 2.0]), lambda a, y: (a - y) ** 2)) == 2.0
        with pytest.raises(ValueError, match="finite"):
            hg.decisions.bayes_action(law, lambda a, y: math.nan)
        for name in ("mean", "median", "mode"):
            assert float(hg.decisions.bayes_action(law, name)) == pytest.approx(float(getattr(law, name)))

    def test_targets_outside_a_loss_are_refused(self):
        with pytest.raises(ValueError, match="may be something else"):
            hg.decisions.bayes_action(Normal(0.0, 1.0), hg.Gamma())
        with pytest.raises(ValueError, match="may be something else"):
            hg.decisions.bayes_action(Normal(0.0, 1.0), hg.RelativeError())
        assert float(hg.decisions.bayes_action(Empirical([-1.0, 2.0]), hg.RelativeError())) == pytest.approx(
            -1.0, abs=1e-6
        )
        with pytest.raises(TypeError, match="Bernoulli"):
            hg.decisions.bayes_action(Normal(0.0, 1.0), hg.Logistic())
        with pytest.raises(TypeError, match="do not go together"):
            hg.decisions.bayes_action(Categorical([0.5, 0.5]), hg.Squared())
