"""Losses that users write: what the probe finds, what fits make of it, and what a certificate may claim."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg
import zoo
from hinge.problem.losses import CustomLoss, as_loss
from hinge.problem.losses.base import Target


class Bare:
    """Values and derivatives of a loss of the library without its declarations, but for the kind of target."""

    def __init__(self, loss, *extra):
        self.loss, self.target = loss, loss.target
        for name in extra:
            setattr(self, name, getattr(loss, name))

    def value(self, y, s):
        return self.loss.value(y, s)

    def gradient(self, y, s):
        return self.loss.gradient(y, s)


class Cauchy:
    def value(self, y, s):
        return np.log1p((y - s) ** 2)

    def gradient(self, y, s):
        return 2 * (s - y) / (1 + (y - s) ** 2)


class Welsch:
    """Bounded, with a gradient that vanishes far from the target."""

    def value(self, y, s):
        return 1 - np.exp(-((y - s) ** 2) / 2)

    def gradient(self, y, s):
        return (s - y) * np.exp(-((y - s) ** 2) / 2)


class Inherits(hg.Loss):
    """A subclass of hg.Loss with the two methods and nothing else."""

    def value(self, y, s):
        return 0.5 * (y - s) ** 2

    def gradient(self, y, s):
        return s - y


@pytest.mark.parametrize("sampled", [False, True], ids=["default targets", "own targets"])
@pytest.mark.parametrize("loss", zoo.LOSSES, ids=zoo.name)
def test_the_probe_finds_what_the_library_declares(loss, sampled, rng):
    y = zoo.targets(loss, 300, rng) if sampled else None
    facts = hg.probe_loss(Bare(loss, "hessian") if loss.twice_differentiable else Bare(loss), y)
    assert (facts.convex, facts.smooth, facts.twice_differentiable) == (
        loss.convex,
        loss.smooth,
        loss.twice_differentiable,
    )
    assert not facts.declared_convex
    if loss.smooth:
        assert facts.steepest <= loss.curvature * 1.001
    assert hg.probe_loss(loss, y).declared_convex


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("make", [Cauchy, Welsch], ids=["cauchy", "welsch"])
def test_losses_that_are_not_convex_are_found_out(make, scale, rng):
    facts = hg.probe_loss(make(), scale * rng.normal(size=100) + 3 * scale)
    assert facts.smooth
    assert not facts.twice_differentiable
    assert not facts.convex or scale < 1  # within a small range of targets both are close to a parabola near s = y
    assert not hg.probe_loss(make()).convex


@pytest.mark.parametrize("loss", zoo.LOSSES, ids=zoo.name)
@pytest.mark.parametrize("factor", [-1.0, 0.5, 1.05], ids=str)
def test_a_wrong_gradient_is_an_error_that_names_it(loss, factor, rng):
    class Wrong(Bare):
        def gradient(self, y, s):
            return factor * self.loss.gradient(y, s)

    with pytest.raises(ValueError, match="gradient of Wrong is not the derivative of its value") as caught:
        hg.probe_loss(Wrong(loss), zoo.targets(loss, 50, rng))
    assert f"{factor:.3g} times" in str(caught.value) or not loss.smooth


def test_a_gradient_with_one_wrong_entry_is_found():
    class Tail(Inherits):
        def gradient(self, y, s):
            return np.where(s - y > 5, 5.0, s - y)

    with pytest.raises(ValueError, match="gradient of Tail"):
        hg.HistGradientBoostingRegressor(Tail()).fit(np.arange(20.0)[:, None], np.arange(20.0))


class TestDeclarations:
    """What a loss declares is used unless the samples refute it."""

    def test_convexity(self):
        class Bent(Cauchy):
            convex = True

        with pytest.raises(ValueError, match="declares convex = True, but it is not"):
            hg.probe_loss(Bent())

    def test_curvature(self):
        class Steep(Inherits):
            curvature = 0.5

        with pytest.raises(ValueError, match=r"curvature = 0\.5"):
            hg.probe_loss(Steep())

    def test_conjugate(self):
        class False_(Inherits):
            convex = True

            def conjugate(self, y, u):  # too small: it would prove an optimum that is none
                return u * y + 0.25 * u**2

        with pytest.raises(ValueError, match="conjugate of False_"):
            hg.probe_loss(False_())

    def test_a_hessian_that_is_none_is_not_used_and_reported(self):
        class Substitute(Inherits):
            def hessian(self, y, s):
                return np.full_like(s, 3.0)

        facts = hg.probe_loss(Substitute())
        assert not facts.twice_differentiable
        assert "hessian" in facts.explain()

    def test_shape(self):
        class Mean(Inherits):
            def value(self, y, s):
                return np.mean((y - s) ** 2)

        with pytest.raises(ValueError, match="value of Mean returns an array of shape"):
            hg.probe_loss(Mean())


def test_what_a_subclass_inherits_is_no_declaration():
    loss = as_loss(Inherits())
    assert isinstance(loss, CustomLoss)
    assert loss.convex
    assert not loss.declared_convex
    assert not loss.twice_differentiable
    assert not loss.has_conjugate
    with pytest.raises(TypeError, match="has no gradient"):
        as_loss(type("Half", (hg.Loss,), {"value": lambda self, y, s: s})())


class TestCertificates:
    """A gap is a proof. Samples are none."""

    def fit(self, loss, rng):
        X = rng.normal(size=(80, 3))
        y = X @ [1.0, 2.0, 0.0] + rng.normal(size=80)
        return hg.Learner(loss=loss, penalty=hg.L2(0.1)).fit(X, y).certificate_

    def test_a_probed_convexity_proves_nothing(self, rng):
        loss = Bare(hg.Squared(), "conjugate", "hessian")
        judged = self.fit(loss, rng)
        assert judged.kind == "stationarity"
        assert judged.converged
        assert judged.dual == -np.inf
        assert not np.isfinite(judged.weight_error)
        assert "declare convex = True" in judged.explain()

    def test_a_declared_one_does(self, rng):
        loss = Bare(hg.Squared(), "conjugate", "hessian")
        loss.convex = True
        judged = self.fit(loss, rng)
        assert judged.kind == "gap"
        assert judged.converged
        assert judged.note == ""
        assert judged.gap <= 1e-6 * judged.primal

    def test_the_gap_from_strong_convexity_needs_the_declaration_too(self, rng):
        X = rng.normal(size=(50, 2))
        space = hg.RKHS(hg.kernels.RBF(1.0), centres=10)
        loss = Bare(hg.Squared(), "hessian")
        with pytest.raises(ValueError, match="declares convex = True"):
            hg.Learner(space, loss, hg.L2(0.1)).fit(X, X[:, 0])
        loss.convex = True
        assert hg.Learner(space, loss, hg.L2(0.1)).fit(X, X[:, 0]).certificate_.kind == "gap"


LEARNERS = {
    "boosting": lambda loss: hg.HistGradientBoostingRegressor(loss, max_iter=50),
    "tree": lambda loss: hg.Learner(hg.Tree(max_depth=3), loss),
    "forest": lambda loss: hg.Learner(hg.Forest(trees=5), loss),
    "boosted": lambda loss: hg.Learner(hg.Boosted(hg.Tree(max_depth=2), 50), loss),
    "stagewise": lambda loss: hg.ForwardStagewise(loss, n_estimators=8, max_thresholds=8),
    "anyboost": lambda loss: hg.AnyBoost(loss, n_estimators=20),
}
every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())
TWINS = [hg.Squared(), hg.Absolute(), hg.Huber(0.7), hg.LogCosh(), hg.Quantile(0.9)]


def data(rng, shift):
    X = rng.uniform(-2, 2, size=(300, 3))
    return X, shift + np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=300)


@pytest.mark.mission("O9")
@every_learner
@pytest.mark.parametrize("twin", TWINS, ids=zoo.name)
def test_a_users_loss_fits_as_well_as_its_twin(learner, twin, rng):
    """With no declarations, and targets far from zero."""
    X, y = data(rng, 1000.0)
    risk = [float(np.mean(twin.value(y, learner(loss).fit(X, y).predict(X)))) for loss in (twin, Bare(twin))]
    constant = float(np.mean(twin.value(y, np.full_like(y, twin.baseline(y)))))
    assert risk[1] <= 1.25 * risk[0] + 0.03 * constant


@pytest.mark.mission("O9")
@every_learner
def test_subclasses_fit_as_well_as_squared(learner, rng):
    X, y = data(rng, 1000.0)
    ours, theirs = (learner(loss).fit(X, y).predict(X) for loss in (Inherits(), hg.Squared()))
    if learner is not LEARNERS["forest"]:
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
        return
    # Two splits of a deep tree may be equally good up to rounding: then few rows differ, and the risk hardly does.
    assert np.mean(~np.isclose(ours, theirs, rtol=1e-6)) <= 0.02
    np.testing.assert_allclose(np.mean((y - ours) ** 2), np.mean((y - theirs) ** 2), rtol=1e-2)


@pytest.mark.mission("O9")
@every_learner
@pytest.mark.parametrize("make", [Cauchy, Welsch], ids=["cauchy", "welsch"])
def test_losses_that_are_not_convex_are_lowered(learner, make, rng):
    """Below the best constant by a wide margin, though the gradient at a score of zero is nothing."""
    X, y = data(rng, 1000.0)
    y[:10] += 500.0
    loss = make()
    fitted = loss.value(y, learner(loss).fit(X, y).predict(X)).mean()
    constant = min(loss.value(y, np.full_like(y, b)).mean() for b in np.linspace(990, 1010, 2001))
    assert fitted < 0.75 * constant + 0.25 * loss.value(0.0, 500.0) * 10 / len(y)


@pytest.mark.parametrize("make", [Cauchy, Welsch], ids=["cauchy", "welsch"])
def test_the_start_is_the_best_constant(make, rng):
    y = np.concatenate([rng.normal(size=60), 40.0 + rng.normal(size=30)])
    c = rng.integers(1, 4, size=90)
    loss = as_loss(make(), y)
    b = loss.baseline(y, c)
    grid = np.linspace(-5, 45, 5001)
    assert c @ loss.value(y, np.full_like(y, b)) <= min(c @ loss.value(y, np.full_like(y, g)) for g in grid) + 1e-9


def test_the_linear_learner_starts_there_too(rng):
    X = rng.normal(size=(200, 2))
    y = 1000.0 + X @ [1.0, -1.0]
    model = hg.Learner(loss=Welsch()).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-3)


def test_two_classes_with_a_loss_of_ones_own(rng):
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] + 0.2 * rng.normal(size=300) > 0, "yes", "no")

    class Savage:
        """A bounded margin loss: (1 + exp(2ys))⁻²."""

        target = Target.SIGN

        def value(self, y, s):
            return 1 / (1 + np.exp(2 * y * s)) ** 2

        def gradient(self, y, s):
            p = 1 / (1 + np.exp(2 * y * s))
            return -4 * y * p**2 * (1 - p)

    assert hg.HistGradientBoostingClassifier(Savage(), max_iter=30).fit(X, y).score(X, y) > 0.9
    assert hg.Learner(hg.Tree(max_depth=2), Savage()).fit(X, y).score(X, y) > 0.9
    assert hg.ForwardStagewise(Savage(), n_estimators=5).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("loss", [hg.Absolute(), hg.Quantile(0.8), hg.EpsilonInsensitive(0.1)], ids=zoo.name)
def test_searched_leaves_are_penalised(loss, rng):
    """A leaf minimises Σ ℓ(y, s + v) + n λ v²/2, so a huge λ leaves nothing of it."""
    X, y = data(rng, 0.0)
    free, bound, none = (
        hg.Learner(hg.Tree(max_depth=2), loss, penalty).fit(X, y).predict(X)
        for penalty in (None, hg.L2(1.0), hg.L2(1e9))
    )
    assert np.ptp(none) < 1e-6 < np.ptp(bound) < np.ptp(free)
