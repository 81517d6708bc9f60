"""Laws of every distribution, of every link it is used with, and of the losses made of the two."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import hinge as hg
from hinge.problem.distributions import (
    DISTRIBUTIONS,
    Binomial,
    GammaAmounts,
    Gaussian,
    NegativeBinomialCounts,
    PoissonCounts,
    Tweedie,
    as_distribution,
    tweedie,
)
from hinge.problem.links import LINKS, LogLink, PowerLink, ProbabilityLink, as_link
from hinge.problem.losses import likelihood
from hinge.problem.losses.base import Target
from hinge.problem.losses.linked import Linked, LinkedProbability, likelihood_loss

VARIANCES = {
    Gaussian(): lambda m: 1.0 + 0 * m, Binomial(): lambda m: m - m * m, PoissonCounts(): lambda m: m,
    NegativeBinomialCounts(0.7): lambda m: m + 0.7 * m * m, GammaAmounts(): lambda m: m * m, Tweedie(3.0): lambda m: m**3,
    Tweedie(1.5): lambda m: m**1.5, Tweedie(1.2): lambda m: m**1.2, Tweedie(2.5): lambda m: m**2.5,
    Tweedie(-1.0): lambda m: 1 / m,
}  # fmt: skip
every = pytest.mark.parametrize("law", list(VARIANCES), ids=repr)
pytestmark = pytest.mark.mission("L2")


def means(law):
    return np.array([0.15, 0.5, 0.9]) if law.means[1] == 1 else np.array([0.3, 1.0, 2.5])


def targets(law):
    """Targets in the domain, its ends included."""
    if law.target is Target.UNIT:
        return np.array([0.0, 0.25, 1.0])
    return np.array(
        {Target.REAL: [-1.5, 0.4, 2.0], Target.NONNEGATIVE: [0.0, 0.4, 3.0]}.get(law.target, [0.2, 1.0, 3.0])
    )


@every
def test_the_variance_and_its_derivative(law):
    m, h = means(law), 1e-6
    assert law.variance(m) == pytest.approx(VARIANCES[law](m))
    slope = (law.variance(m + h) - law.variance(m - h)) / (2 * h)
    assert law.variance_derivative(m) == pytest.approx(slope, abs=1e-7)
    assert np.shape(law.variance_derivative(m)) == (3,)


@every
def test_half_the_deviance_is_an_integral_of_the_variance(law):
    """½ d(y, μ) = ∫_μ^y (y − t)/V(t) dt, which is zero at μ = y; for any y its differences in μ are such integrals."""
    for y in targets(law):
        for m in means(law):
            for other in means(law):
                found = law.half_deviance(np.array([y, y]), np.array([m, other]))
                part = scipy.integrate.quad(lambda t, y=y: (y - t) / VARIANCES[law](t), m, other)[0]
                assert found[0] - found[1] == pytest.approx(part, abs=1e-9)
        if y > 0 and (law.means[1] != 1 or y < 1):
            assert law.half_deviance(np.array([y]), np.array([y]))[0] == pytest.approx(0.0, abs=1e-12)
        elif law.target in (Target.UNIT, Target.NONNEGATIVE):  # the deviance of the end itself is zero
            near = 1e-14 if y == 0 else 1 - 1e-14
            assert law.half_deviance(np.array([y]), np.array([near]))[0] == pytest.approx(0.0, abs=1e-2)


def test_log_likelihoods():
    y, m, phi = np.array([0.4, 1.0, 2.0]), np.array([0.7, 1.5, 1.0]), 0.6
    inverse = scipy.stats.invgauss(m * phi, scale=1 / phi)  # mean μ, shape 1/φ
    assert Tweedie(3.0).log_likelihood(y, m, phi) == pytest.approx(inverse.logpdf(y))
    events, p = np.array([0.0, 1.0, 1.0]), np.array([0.2, 0.3, 0.9])
    assert Binomial().log_likelihood(events, p, 1.0) == pytest.approx(scipy.stats.bernoulli(p).logpmf(events))
    for law in (Tweedie(2.5), Tweedie(-1.0)):
        assert np.all(np.isnan(law.log_likelihood(y, m, phi)))
    for power in (1.2, 1.5, 1.9):  # a Poisson number of gamma amounts
        rate = 1.3 ** (2 - power) / ((2 - power) * phi)
        shape, scale = (2 - power) / (power - 1), phi * (power - 1) * 1.3 ** (power - 1)
        n = np.arange(1, 200)
        for amount in (0.05, 1.0, 6.0):
            parts = scipy.stats.gamma(shape * n, scale=scale).pdf(amount) * scipy.stats.poisson(rate).pmf(n)
            found = Tweedie(power).log_likelihood(np.array([amount, 0.0]), np.array([1.3]), phi)
            assert found == pytest.approx([np.log(parts.sum()), -rate], rel=1e-9)


@pytest.mark.parametrize(
    "law", [Gaussian(), GammaAmounts(), Tweedie(3.0), Tweedie(1.5), Tweedie(1.8)], ids=repr
)  # fmt: skip
def test_the_best_dispersion_maximises_the_likelihood(law, rng):
    y, m, c = rng.gamma(2.0, size=30) + 0.05, rng.random(30) + 0.5, rng.random(30)
    if law.target is Target.NONNEGATIVE:
        y[:8] = 0.0
    c /= c.sum()
    best = law.best_dispersion(y, m, c)
    here = c @ law.log_likelihood(y, m, best)
    for factor in (0.99, 1.01, 0.5, 2.0):
        assert c @ law.log_likelihood(y, m, best * factor) < here


def test_dispersions_without_a_likelihood():
    """The mean deviance; also for amounts that are all zero, and the variance of counts is known."""
    y, m, c = np.zeros(3), np.array([0.5, 1.0, 2.0]), np.array([0.2, 0.3, 0.5])
    assert Tweedie(1.5).best_dispersion(y, m, c) == pytest.approx(2 * c @ Tweedie(1.5).half_deviance(y, m))
    y = np.array([1.0, 2.0, 0.3])
    assert Tweedie(2.5).best_dispersion(y, m, c) == pytest.approx(2 * c @ Tweedie(2.5).half_deviance(y, m))
    assert GammaAmounts().dispersion_of(0.0) == 1e-300
    known = {law for law in VARIANCES if law.unit_dispersion}
    assert known == {Binomial(), PoissonCounts(), NegativeBinomialCounts(0.7)}


def test_powers_and_their_targets():
    for power in (0.0, 0.5, 0.999, 1.0, 2.0, np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="power"):
            Tweedie(power)
    cases = {
        -0.1: Target.REAL,
        1.1: Target.NONNEGATIVE,
        1.99: Target.NONNEGATIVE,
        2.01: Target.POSITIVE,
        3.0: Target.POSITIVE,
    }
    for power, target in cases.items():
        assert Tweedie(power).target is target
        assert Tweedie(power).compound == (1 < power < 2)
        assert Tweedie(power).means == (0.0, np.inf)
    assert [tweedie(p) for p in (0, 1, 2, 1.5)] == [Gaussian(), PoissonCounts(), GammaAmounts(), Tweedie(1.5)]
    found = {
        name: (type(law), getattr(law, "power", getattr(law, "alpha", None))) for name, law in DISTRIBUTIONS.items()
    }
    assert found == {
        "gaussian": (Gaussian, None), "normal": (Gaussian, None), "bernoulli": (Binomial, None), "binomial": (Binomial, None),
        "poisson": (PoissonCounts, None), "gamma": (GammaAmounts, None), "inverse-gaussian": (Tweedie, 3.0),
        "tweedie": (Tweedie, 1.5), "negative-binomial": (NegativeBinomialCounts, 1.0),
    }  # fmt: skip


def test_distributions_by_name_and_by_loss():
    assert as_distribution("negative_binomial") == NegativeBinomialCounts(1.0)
    for loss, law in (
        (hg.Squared(), Gaussian()), (hg.Bernoulli(), Binomial()), (hg.Poisson(), PoissonCounts()), (hg.Gamma(), GammaAmounts()),
        (hg.Tweedie(1.3), Tweedie(1.3)), (hg.NegativeBinomial(0.4), NegativeBinomialCounts(0.4)), (Tweedie(4.0), Tweedie(4.0)),
    ):  # fmt: skip
        assert as_distribution(loss) == law
    for wrong in ("weibull", hg.Hinge(), 3):
        with pytest.raises(ValueError, match="distribution"):
            as_distribution(wrong)


def test_links_by_name_and_by_power():
    names = {1.0: "identity", -1.0: "inverse", -2.0: "inverse-squared", 0.5: "sqrt", 3.0: "power 3", 0.25: "power 0.25"}
    for power, name in names.items():
        assert PowerLink(power).name == name
        assert as_link(power) == PowerLink(power)
    assert as_link(0) == LogLink() == as_link("log")
    assert as_link("inverse_squared") == PowerLink(-2.0)
    assert {name: link.name for name, link in LINKS.items()} == {name: name for name in LINKS}
    assert as_link(PowerLink(7.0)) == PowerLink(7.0)
    for wrong in ("square", True, None):
        with pytest.raises(ValueError, match="link"):
            as_link(wrong)
    for power in (0.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="power"):
            PowerLink(power)


# --- Losses ---------------------------------------------------------------------------------------------------------

PAIRS = [
    (law, link)
    for law in VARIANCES
    for link in (
        LogLink(),
        PowerLink(1.0),
        PowerLink(-1.0),
        PowerLink(-2.0),
        PowerLink(0.5),
        PowerLink(2.0),
        PowerLink(-0.4),
    )
]
pairs = pytest.mark.parametrize(("law", "link"), PAIRS, ids=lambda part: part.name)


def examples(law, link):
    """Every target with every mean."""
    y, m = (grid.ravel() for grid in np.meshgrid(targets(law), means(law)))
    return y, m, np.asarray(link.link(m), dtype=float)


@pairs
def test_losses_are_deviances_and_their_derivatives_in_the_score(law, link):
    loss = Linked(law, link)
    y, m, s = examples(law, link)
    h = 1e-5 * np.abs(s).clip(0.1)
    assert loss.value(y, s) == pytest.approx(law.half_deviance(y, m))
    assert loss.gradient(y, s) == pytest.approx(
        (loss.value(y, s + h) - loss.value(y, s - h)) / (2 * h), rel=1e-5, abs=1e-7
    )
    curvature = (loss.gradient(y, s + h) - loss.gradient(y, s - h)) / (2 * h)
    assert loss.second_derivative(y, s) == pytest.approx(curvature, rel=1e-5, abs=1e-6)
    # The expectation over y replaces y by μ, in which ℓ'' is linear.
    assert loss.information(s) == pytest.approx(loss.second_derivative(m, s))
    assert loss.information(s) == pytest.approx(link.derivative(s) ** 2 / VARIANCES[law](m))
    assert loss.hessian(y, s) == pytest.approx(
        np.maximum(curvature, 0) if loss.convex else loss.information(s), rel=1e-5, abs=1e-6
    )
    assert loss.inverse_link(s) == pytest.approx(m)
    assert (loss.target, loss.has_conjugate, loss.params()) == (law.target, False, ())


@pairs
def test_what_is_declared_convex_is(law, link):
    """ℓ'' ≥ 0 for all targets and scores inside the domain, if and only if it is declared."""
    if isinstance(link, ProbabilityLink):
        return
    loss, width = Linked(law, link), law.means[1]
    m = (
        np.concatenate([np.geomspace(1e-3, 0.5, 40), 1 - np.geomspace(1e-3, 0.5, 40)])
        if width == 1
        else np.geomspace(1e-3, 1e3, 81)
    )
    if law.means[0] < 0 and link.means[0] < 0:
        m = np.concatenate([-m, m])
    y = {Target.UNIT: np.linspace(0, 1, 11), Target.REAL: np.array([-1e3, -1.0, 0.0, 1.0, 1e3])}.get(
        law.target,
        np.array([0.0, 1e-2, 1.0, 1e2]) if law.target is Target.NONNEGATIVE else np.array([1e-4, 1e-2, 1.0, 1e4]),
    )
    Y, S = (grid.ravel() for grid in np.meshgrid(y, link.link(m)))
    found = loss.second_derivative(Y, S)
    size = np.abs(loss.information(S)) + np.abs(found) + 1e-300
    assert loss.convex == bool(np.all(found >= -1e-9 * size))


@pairs
def test_scores_outside_the_domain_have_no_likelihood(law, link):
    loss = Linked(law, link)
    y = targets(law)[[1]]
    inside = [float(link.link(means(law)[1]))]
    outside = [-0.5, 0.0] if link.scores[0] == 0 else []
    if law.means[0] == 0 and link.means[0] < 0:
        outside += [-0.5, 0.0]
    if law.means[1] == 1:
        outside += [float(link.link(1.5)), float(link.link(1.0))] if not isinstance(link, LogLink) else [0.3, 0.0]
    for s, known in [(t, True) for t in inside] + [(t, False) for t in outside]:
        score = np.array([s])
        assert loss.inside(score)[0] == known
        assert np.isfinite(loss.value(y, score)[0]) == known
        assert np.isfinite(loss.gradient(y, score)[0]) == known
        assert known or loss.value(y, score)[0] == np.inf


@pairs
def test_the_best_constant_is_the_link_of_the_mean(law, link, rng):
    y, weight = np.array([0.2, 0.9, 0.4]), np.array([1.0, 3.0, 2.0])
    loss = Linked(law, link)
    mean = (0.2 + 2.7 + 0.8) / 6
    assert loss.baseline(y, weight) == pytest.approx(float(link.link(mean)))
    assert loss.baseline(y) == pytest.approx(float(link.link(0.5)))
    falling = loss.falling(np.array([0.0, 1.0]))
    assert (falling is None) == (link.name != "log")
    assert falling is None or list(falling) == [-1.0, 0.0]
    assert loss.falling(np.array([0.5, 1.0])) is None
    assert loss.score_span(np.array([-3.0, 2.0])) == (1e3 if law.target is Target.UNIT else 7.0)


@pytest.mark.parametrize("link", [k for k in LINKS.values() if isinstance(k, ProbabilityLink)], ids=lambda k: k.name)
def test_losses_of_probabilities(link):
    """The deviance of the mean; its curvature; the expectation of that over y; where it decreases without end."""
    loss = LinkedProbability(Binomial(), link)
    y, s = (grid.ravel() for grid in np.meshgrid([0.0, 0.3, 1.0], [-1.2, 0.0, 0.8]))
    m, h = link.inverse(s), 1e-5
    assert loss.value(y, s) == pytest.approx(Binomial().half_deviance(y, m))
    assert loss.gradient(y, s) == pytest.approx((loss.value(y, s + h) - loss.value(y, s - h)) / (2 * h), abs=1e-8)
    curvature = (loss.gradient(y, s + h) - loss.gradient(y, s - h)) / (2 * h)
    assert loss.second_derivative(y, s) == pytest.approx(curvature, abs=1e-7)
    assert loss.information(s) == pytest.approx(loss.second_derivative(m, s))
    assert loss.hessian(y, s) == pytest.approx(curvature if loss.convex else loss.information(s), abs=1e-7)
    assert loss.convex == loss.has_conjugate == (link.name != "cauchit")
    assert list(loss.falling(np.array([1.0, 0.0, 0.4]))) == [1.0, -1.0, 0.0]
    with np.errstate(all="ignore"):
        low, high = loss.dual_interval(np.array([0.0, 0.4, 1.0]))
        far = [loss.gradient(np.array([0.0, 0.4, 1.0]), np.full(3, t)) for t in (-600.0, 600.0)]
    for edge, limit in ((low, far[0]), (high, far[1])):
        bounded = np.isfinite(edge)
        assert edge[bounded] == pytest.approx(limit[bounded], abs=1e-2)
        assert np.all(np.abs(limit[~bounded]) > 100)
    if loss.convex:
        u = np.array([-0.3, 0.0, 0.2])
        target = np.array([1.0, 0.5, 0.0])
        score = np.linspace(-9, 9, 180_001)
        for t, v, found in zip(target, u, loss.conjugate(target, u)):
            assert found == pytest.approx(np.max(v * score - loss.value(np.full_like(score, t), score)), abs=1e-6)


def test_pairs_with_a_compiled_loss_use_it():
    log, identity, logit = LINKS["log"], LINKS["identity"], LINKS["logit"]
    for law, link, loss in (
        (Binomial(), logit, likelihood.Bernoulli()), (Gaussian(), identity, hg.Squared()), (PoissonCounts(), log, hg.Poisson()),
        (GammaAmounts(), log, hg.Gamma()), (NegativeBinomialCounts(0.3), log, hg.NegativeBinomial(0.3)),
        (Tweedie(1.4), log, hg.Tweedie(1.4)), (Tweedie(3.0), log, Linked(Tweedie(3.0), log)),
        (Gaussian(), log, Linked(Gaussian(), log)), (Gaussian(), PowerLink(2.0), Linked(Gaussian(), PowerLink(2.0))),
        (Binomial(), LINKS["probit"], LinkedProbability(Binomial(), LINKS["probit"])), (Binomial(), log, Linked(Binomial(), log)),
        (PoissonCounts(), identity, Linked(PoissonCounts(), identity)), (Tweedie(-1.0), log, Linked(Tweedie(-1.0), log)),
    ):  # fmt: skip
        assert likelihood_loss(law, link) == loss
        assert type(likelihood_loss(law, link)) is type(loss)
