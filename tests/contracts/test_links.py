"""Links and the losses made of them, against their definitions: inverses, derivatives, both tails, conjugates."""

from __future__ import annotations

import numpy as np
import pytest

from hinge.problem.distributions import Binomial, GammaAmounts
from hinge.problem.links import LINKS, Link, PowerLink, ProbabilityLink
from hinge.problem.losses.linked import LinkedProbability

EVERY: list[Link] = [*LINKS.values(), PowerLink(2.0), PowerLink(3.0), PowerLink(-0.7), PowerLink(1.5)]
PROBABILITIES = [link for link in EVERY if isinstance(link, ProbabilityLink)]


def name(link):
    return f"{link.name}"


def means(link):
    """Ordinary means, and such as lie near the ends of their interval."""
    low, high = link.means
    if high == 1.0:
        return np.array([1e-3, 0.1, 0.5, 0.8, 0.999])
    return np.array([1e-3, 0.2, 1.0, 3.0, 40.0]) if low == 0.0 else np.array([-30.0, -1.0, 0.0, 0.3, 20.0])


def slope(f, s, least=1e-2):
    h = 1e-5 * np.maximum(np.abs(s), least)
    return (f(s + h) - f(s - h)) / (2 * h)


@pytest.mark.mission("L2")
@pytest.mark.parametrize("link", EVERY, ids=name)
def test_inverses_and_derivatives(link):
    mu = means(link)
    s = np.asarray(link.link(mu))
    assert np.all((link.scores[0] < s) & (s < link.scores[1]))
    assert link.inverse(s) == pytest.approx(mu, rel=1e-9)
    least = 0.0 if link.scores[0] == 0 else 1e-2
    assert link.derivative(s) == pytest.approx(slope(link.inverse, s, least), rel=1e-6, abs=1e-9)
    assert link.second_derivative(s) == pytest.approx(slope(link.derivative, s, least), rel=1e-6, abs=1e-9)


@pytest.mark.mission("L2")
@pytest.mark.parametrize("power", [-2.0, -1.0, -0.7, 0.5, 1.0, 1.5, 2.0, 3.0])
def test_power_links_are_powers(power):
    link, mu = PowerLink(power), np.array([0.2, 1.0, 4.0])
    assert link.link(mu) == pytest.approx(mu**power)
    assert link.inverse(mu**power) == pytest.approx(mu)
    everywhere = (-np.inf, np.inf) if power == 1 else (0.0, np.inf)
    assert link.scores == everywhere
    assert link.means == everywhere
    assert link.derivative(mu) == pytest.approx(mu ** (1 / power - 1) / power)
    assert link.second_derivative(mu) == pytest.approx((1 / power) * (1 / power - 1) * mu ** (1 / power - 2))


@pytest.mark.mission("L2")
@pytest.mark.parametrize("link", PROBABILITIES, ids=name)
def test_both_tails(link):
    """log F, log(1 − F), their slopes and curvatures; far out they stay finite, and log F(s) → −∞ as s → −∞."""
    s = np.array([-3.0, -1.0, -0.2, 0.0, 0.4, 1.0, 2.0])
    F = link.inverse(s)
    assert np.all((F > 0) & (F < 1))
    up, down = link.log_both(s)
    assert up == pytest.approx(np.log(F), rel=1e-10)
    assert down == pytest.approx(np.log1p(-F), rel=1e-8)
    f, g = link.derivatives(s)
    assert f == pytest.approx(slope(lambda t: link.log_both(t)[0], s), rel=1e-5)
    assert g == pytest.approx(-slope(lambda t: link.log_both(t)[1], s), rel=1e-5)
    f2, g2 = link.second_derivatives(s)
    assert f2 == pytest.approx(-slope(lambda t: link.derivatives(t)[0], s), rel=1e-5, abs=1e-8)
    assert g2 == pytest.approx(slope(lambda t: link.derivatives(t)[1], s), rel=1e-5, abs=1e-8)
    assert link.log_concave == bool(
        np.all(np.concatenate(link.second_derivatives(np.linspace(-9.0, 9.0, 200))) >= -1e-12)
    )
    far = np.array([-25.0, 25.0])
    with np.errstate(over="ignore"):
        assert np.all(np.diff(link.log_both(far)[0]) > 0)
        assert np.all(np.diff(link.log_both(far)[1]) < 0)


@pytest.mark.mission("L2")
@pytest.mark.parametrize("link", ["probit", "cloglog", "loglog", "logit"])
@pytest.mark.parametrize("y", [0.0, 0.3, 1.0])
def test_conjugates_of_probability_losses(link, y):
    """ℓ*(u) = sup_s us − ℓ(s), on a grid, inside the interval of slopes; infinite outside."""
    loss = LinkedProbability(Binomial(), LINKS[link])
    s = np.linspace(-12.0, 12.0, 200_001)
    y_all = np.full_like(s, y)
    with np.errstate(over="ignore"):
        value = loss.value(y_all, s)
    low, high = (float(end[0]) for end in loss.dual_interval(np.array([y])))
    slopes = loss.gradient(np.full(5, y), np.array([-1.5, -0.5, 0.0, 0.7, 1.2]))
    for u in slopes:
        found = float(loss.conjugate(np.array([y]), np.array([u]))[0])
        assert found == pytest.approx(np.max(u * s - value), abs=1e-7)
    for u in (low - 0.1, high + 0.1):
        if np.isfinite(u):
            assert loss.conjugate(np.array([y]), np.array([u]))[0] == np.inf


@pytest.mark.mission("L2")
@pytest.mark.parametrize("half", [1e-9, 1e-4, 0.02, 1.0, 30.0])
def test_the_dispersion_of_the_gamma_solves_its_likelihood_equation(half):
    """log k − ψ(k) = mean half deviance, for targets almost equal to their means and for wild ones."""
    from scipy.optimize import brentq
    from scipy.special import digamma

    law = GammaAmounts()
    ratio = brentq(lambda r: r - 1 - np.log(r) - half, 1.0, 1e3)  # y / μ of this half deviance
    found = law.best_dispersion(np.array([2.0 * ratio]), np.array([2.0]), np.ones(1))
    shape = 1.0 / found
    near = 1 / (2 * shape) + 1 / (12 * shape**2)  # log k − ψ(k) for large k, without cancellation
    assert (near if shape > 1e4 else np.log(shape) - digamma(shape)) == pytest.approx(half, rel=1e-6)


@pytest.mark.mission("L2")
@pytest.mark.parametrize("dispersion", [0.3, 1.0, 2.5])
def test_log_likelihoods_are_those_of_scipy(dispersion):
    """Gaussian and gamma with any dispersion: N(μ, φ) and Gamma(shape 1/φ, mean μ); the others have none."""
    import scipy.stats

    from hinge.problem.distributions import Gaussian, NegativeBinomialCounts, PoissonCounts

    y, mean = np.array([0.5, 1.0, 3.0]), np.array([0.8, 2.0, 2.5])
    assert Gaussian().log_likelihood(y, mean, dispersion) == pytest.approx(
        scipy.stats.norm(mean, np.sqrt(dispersion)).logpdf(y)
    )
    assert GammaAmounts().log_likelihood(y, mean, dispersion) == pytest.approx(
        scipy.stats.gamma(1 / dispersion, scale=mean * dispersion).logpdf(y)
    )
    counts = np.array([0.0, 1.0, 4.0])
    assert PoissonCounts().log_likelihood(counts, mean, 1.0) == pytest.approx(scipy.stats.poisson(mean).logpmf(counts))
    size = 1 / dispersion
    assert NegativeBinomialCounts(dispersion).log_likelihood(counts, mean, 1.0) == pytest.approx(
        scipy.stats.nbinom(size, size / (size + mean)).logpmf(counts)
    )
