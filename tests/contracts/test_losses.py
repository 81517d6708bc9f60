"""Laws that every loss obeys."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg
import zoo
from hinge._native import core
from hinge.problem.losses import CustomLoss, as_loss
from hinge.problem.losses.base import Target
from hinge.problem.losses.native import native_loss

every_loss = pytest.mark.parametrize("loss", zoo.LOSSES, ids=zoo.name)


def kink_free(loss, y, s):
    """Examples where the loss is differentiable with room for a finite difference."""
    low, high = loss.subgradients(y, s)
    near_low, near_high = loss.subgradients(y, s - 2e-3)[0], loss.subgradients(y, s + 2e-3)[1]
    return (low == high) if loss.smooth else (low == high) & (near_low == low) & (near_high == high)


def test_zoo_is_complete():
    """The zoo, the public names and the compiled registry hold the same losses."""
    in_zoo = {type(loss).__name__ for loss in zoo.LOSSES}
    compiled = {type(loss).__name__ for loss in zoo.LOSSES if loss.compiled}
    assert compiled == {name for name, _ in core.registered_losses()}
    public = {n for n in hg.__all__ if isinstance(getattr(hg, n), type) and issubclass(getattr(hg, n), hg.Loss)}
    several = {"MulticlassHinge", "Softmax", "StructuredHinge", "StructuredLogistic", "StructuredPerceptronLoss"}
    assert public - several - {"Loss", "ZeroOne"} == in_zoo


@pytest.mark.mission("R1", "R2", "R3")
@pytest.mark.parametrize(
    ("loss", "y", "s", "expected"),
    [
        (hg.Squared(), 1.0, 3.0, 2.0),
        (hg.Absolute(), 1.0, -2.0, 3.0),
        (hg.RelativeError(), 2.0, 3.0, 0.5),
        (hg.Huber(1.0), 0.0, 0.5, 0.125),
        (hg.Huber(1.0), 0.0, 3.0, 2.5),
        (hg.EpsilonInsensitive(0.5), 0.0, 0.4, 0.0),
        (hg.EpsilonInsensitive(0.5), 0.0, -2.0, 1.5),
        (hg.SquaredEpsilonInsensitive(0.5), 0.0, -2.0, 2.25),
        (hg.Quantile(0.9), 1.0, 0.0, 0.9),
        (hg.Quantile(0.9), 0.0, 1.0, 0.1),
        (hg.LogCosh(), 0.0, 1.0, np.log(np.cosh(1.0))),
        (hg.ZeroOne(), 1.0, 0.0, 1.0),
        (hg.ZeroOne(), -1.0, -0.1, 0.0),
        (hg.PerceptronLoss(), 1.0, -2.0, 2.0),
        (hg.Hinge(), 1.0, 0.25, 0.75),
        (hg.Hinge(), -1.0, -1.0, 0.0),
        (hg.SquaredHinge(), -1.0, 1.0, 4.0),
        (hg.ModifiedHuber(), -1.0, 0.5, 2.25),
        (hg.ModifiedHuber(), -1.0, 3.0, 12.0),
        (hg.Logistic(), 1.0, 0.0, np.log(2.0)),
        (hg.Logistic(1 / np.log(2)), 1.0, 0.0, 1.0),
        (hg.Exponential(), -1.0, 1.0, np.e),
        (hg.SquaredMargin(), 1.0, 3.0, 4.0),
        (hg.Poisson(), 0.0, 0.0, 1.0),
        (hg.Poisson(), 2.0, 1.0, np.e - 2.0 + 2.0 * np.log(2.0) - 2.0),
        (hg.Gamma(), 1.0, 0.0, 0.0),
        (hg.Gamma(), 1.0, 1.0, 1.0 + np.exp(-1.0) - 1.0),
        (hg.Tweedie(1.5), 0.0, 0.0, 2.0),
        (hg.NegativeBinomial(1.0), 0.0, 0.0, np.log(2.0)),
    ],
    ids=zoo.name,
)
def test_value_by_hand(loss, y, s, expected):
    assert loss.value(np.array([y]), np.array([s]))[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.mission("R3")
def test_likelihoods_are_densities():
    """Differences of ℓ are differences of scipy's −log densities: the constant aside, ℓ is the likelihood."""
    from scipy import stats

    s, t = 0.3, -0.8
    mu, nu = np.exp(s), np.exp(t)
    cases = [
        (hg.Poisson(), 3.0, -stats.poisson.logpmf(3, mu) + stats.poisson.logpmf(3, nu)),
        (hg.Gamma(), 2.0, -stats.gamma.logpdf(2.0, 1.0, scale=mu) + stats.gamma.logpdf(2.0, 1.0, scale=nu)),
        (hg.Squared(), 2.0, -stats.norm.logpdf(2.0, s) + stats.norm.logpdf(2.0, t)),
        (hg.Logistic(), 1.0, -stats.bernoulli.logpmf(1, 1 / (1 + 1 / mu)) + stats.bernoulli.logpmf(1, 1 / (1 + 1 / nu))),
        (hg.NegativeBinomial(0.5), 3.0, -stats.nbinom.logpmf(3, 2.0, 2 / (2 + mu)) + stats.nbinom.logpmf(3, 2.0, 2 / (2 + nu))),
    ]  # fmt: skip
    for loss, y, expected in cases:
        difference = loss.value(np.array([y]), np.array([s])) - loss.value(np.array([y]), np.array([t]))
        assert difference[0] == pytest.approx(expected, rel=1e-10), loss


@every_loss
def test_gradient_is_the_derivative(loss, rng):
    y, s, step = zoo.targets(loss, 400, rng), rng.normal(scale=1.5, size=400), 1e-3
    keep = kink_free(loss, y, s)
    y, s = y[keep], s[keep]
    numeric = (
        loss.value(y, s - 2 * step) - 8 * loss.value(y, s - step) + 8 * loss.value(y, s + step) - loss.value(y, s + 2 * step)
    ) / (12 * step)  # fmt: skip
    exact = loss.gradient(y, s)
    # Where the second derivative jumps (Huber, squared hinge) the formula is only of second order.
    np.testing.assert_allclose(numeric, exact, rtol=1e-6, atol=2 * step)
    assert np.median(np.abs(numeric - exact)) < 1e-9


@every_loss
def test_hessian_is_the_derivative_of_the_gradient(loss, rng):
    y, s, step = zoo.targets(loss, 400, rng), rng.normal(scale=1.5, size=400), 1e-5
    keep = kink_free(loss, y, s)
    y, s = y[keep], s[keep]
    numeric = (loss.gradient(y, s + step) - loss.gradient(y, s - step)) / (2 * step)
    jump = np.abs(loss.hessian(y, s + step) - loss.hessian(y, s - step)) > 1e-3 * (1 + np.abs(numeric))
    np.testing.assert_allclose(numeric[~jump], loss.hessian(y, s)[~jump], rtol=1e-5, atol=1e-7)
    assert np.mean(jump) < 0.05


@pytest.mark.mission("R1", "R2", "R3")
@every_loss
def test_convex_along_chords(loss, rng):
    y, a, b = zoo.targets(loss, 500, rng), rng.normal(scale=3, size=500), rng.normal(scale=3, size=500)
    t = rng.random(500)
    chord = t * loss.value(y, a) + (1 - t) * loss.value(y, b)
    assert np.all(loss.value(y, t * a + (1 - t) * b) <= chord * (1 + 1e-12) + 1e-12)
    assert np.all(loss.hessian(y, a) >= 0)
    assert np.all(loss.hessian(y, a) <= loss.curvature * (1 + 1e-12))


@every_loss
def test_subgradients_support_the_loss(loss, rng):
    """ℓ(t) ≥ ℓ(s) + u (t − s) for both ends u of the interval, kinks included."""
    y, t = zoo.targets(loss, 300, rng), rng.normal(scale=2, size=300)
    for s in (rng.normal(size=300), y.copy(), 1 / y if loss.target is Target.SIGN else y - 0.2, np.zeros(300)):
        for u in loss.subgradients(y, s):
            assert np.all(loss.value(y, t) >= loss.value(y, s) + u * (t - s) - 1e-9)
        low, high = loss.subgradients(y, s)
        assert np.all(low <= high)
        assert np.all((loss.gradient(y, s) >= low - 1e-12) & (loss.gradient(y, s) <= high + 1e-12))


@pytest.mark.mission("O8")
@every_loss
def test_fenchel_young(loss, rng):
    """ℓ(s) + ℓ*(u) ≥ su for all slopes, with equality where u is a (sub)gradient at s."""
    y, s = zoo.targets(loss, 300, rng), rng.normal(size=300)
    u = loss.gradient(y, s)
    np.testing.assert_allclose(loss.value(y, s) + loss.conjugate(y, u), s * u, rtol=1e-9, atol=1e-9)
    low, high = loss.dual_interval(y)
    other = np.clip(rng.normal(scale=2, size=300), low, high)
    assert np.all(loss.value(y, s) + loss.conjugate(y, other) >= s * other - 1e-9)


@every_loss
def test_conjugate_is_the_supremum(loss, rng):
    """ℓ*(u) is the maximum of us − ℓ(s) over a fine grid of scores, up to what the grid can miss."""
    y = zoo.targets(loss, 40, rng)
    u = loss.gradient(y, rng.normal(size=40)) * 0.7
    grid = np.linspace(-12, 12, 20001)[:, None]
    with np.errstate(over="ignore"):
        brute = np.max(u * grid - loss.value(y, grid), axis=0)
    missed = 1.2e-3 * (1.0 + np.abs(loss.dual_interval(y)[0]) if not loss.smooth else 0.01) * 2
    assert np.all(loss.conjugate(y, u) >= brute - 1e-9)
    assert np.all(loss.conjugate(y, u) <= brute + missed)


@every_loss
def test_dual_interval_is_the_domain(loss, rng):
    y = zoo.targets(loss, 100, rng)
    low, high = (np.broadcast_to(edge, y.shape) for edge in loss.dual_interval(y))
    assert np.all(low <= 0)
    assert np.all(high >= 0)
    inside = np.clip(rng.normal(size=100), low, high)
    assert np.all(np.isfinite(loss.conjugate(y, inside)))
    for edge, sign in ((low, -1), (high, 1)):
        out = np.isfinite(edge)
        assert np.all(np.isinf(loss.conjugate(y[out], edge[out] + sign * 1e-3)))


@pytest.mark.mission("R2")
@every_loss
def test_surrogates_bound_the_zero_one_loss(loss, rng):
    if loss.target is not Target.SIGN:
        return
    y = zoo.targets(loss, 500, rng)
    s = np.concatenate([rng.normal(size=499), [0.0]])
    holds = bool(np.all(loss.value(y, s) >= hg.ZeroOne().value(y, s)))
    assert holds == loss.bounds_error


@pytest.mark.mission("L1", "L4")
@every_loss
def test_baseline_minimises_the_weighted_risk(loss, rng):
    y, weight = zoo.targets(loss, 41, rng), rng.integers(0, 4, size=41).astype(float)
    best = loss.baseline(y, weight)
    risk = lambda b: float(weight @ loss.value(y, np.full(41, b)))  # noqa: E731
    assert risk(best) <= min(risk(best + t) for t in np.linspace(-0.5, 0.5, 201)) + 1e-9
    repeated = np.repeat(y, weight.astype(int))
    assert risk(loss.baseline(repeated)) == pytest.approx(risk(best), rel=1e-9)


@every_loss
def test_extreme_scores_stay_finite(loss):
    y = {Target.SIGN: 1.0, Target.REAL: 0.5}.get(loss.target, 1.0)
    for s in (-1e3, 1e3):
        if isinstance(loss, hg.Exponential | hg.Poisson | hg.Gamma | hg.Tweedie | hg.NegativeBinomial):
            s = np.sign(s) * 300.0  # e^1000 is not a double
        assert np.isfinite(loss.value(np.array([y]), np.array([s]))[0])
        assert np.isfinite(loss.gradient(np.array([y]), np.array([s]))[0])
        assert 0 <= loss.hessian(np.array([y]), np.array([s]))[0] < np.inf


@every_loss
def test_native_twin(loss, rng):
    """The compiled loss equals the Python one: pointwise, and in weighted sums."""
    y, s = zoo.targets(loss, 1000, rng), rng.normal(scale=2, size=1000)
    twin = native_loss(loss)
    np.testing.assert_allclose(twin.pointwise(0, y, s), loss.value(y, s), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(twin.pointwise(1, y, s), loss.gradient(y, s), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(twin.pointwise(2, y, s), loss.hessian(y, s), rtol=1e-12, atol=1e-14)
    low, high = loss.dual_interval(y)
    u = np.clip(rng.normal(size=1000), low, high)
    np.testing.assert_allclose(twin.pointwise(3, y, u), loss.conjugate(y, u), rtol=1e-9, atol=1e-10)
    c = rng.random(1000)
    assert twin.value(y, s, c) == pytest.approx(c @ loss.value(y, s), rel=1e-11)
    value, cu = twin.gradient(y, s, c)
    assert value == pytest.approx(c @ loss.value(y, s), rel=1e-11)
    np.testing.assert_allclose(cu, c * loss.gradient(y, s), rtol=1e-11, atol=1e-14)
    assert twin.conjugate(y, c * u, c) == pytest.approx(c @ loss.conjugate(y, u), rel=1e-8, abs=1e-9)


def test_native_exponential_and_logarithm_are_accurate():
    """The vectorised exp and log1p behind the losses, against mpmath: within four units in the last place."""
    import mpmath

    with mpmath.workdps(40):
        scores = np.concatenate([np.linspace(-700, 700, 401), np.linspace(-2, 2, 101)])
        exp = native_loss(hg.Exponential()).pointwise(0, np.ones_like(scores), -scores)
        for s, value in zip(scores, exp):
            assert abs(mpmath.mpf(float(value)) / mpmath.exp(float(s)) - 1) < 4 * 2.3e-16
        logistic = native_loss(hg.Logistic()).pointwise(0, np.ones_like(scores), scores)
        for s, value in zip(scores, logistic):
            exact = mpmath.log1p(mpmath.exp(-float(s)))
            assert abs(mpmath.mpf(float(value)) - exact) <= 4 * 2.3e-16 * exact


class TestSoftmax:
    """The one loss over several scores."""

    def test_value_gradient_conjugate(self, rng):
        loss, y, s = hg.Softmax(), rng.integers(0, 4, 50).astype(float), rng.normal(size=(50, 4))
        direct = -np.log(np.exp(s)[np.arange(50), y.astype(int)] / np.exp(s).sum(axis=1))
        np.testing.assert_allclose(loss.value(y, s), direct, rtol=1e-12)
        u = loss.gradient(y, s)
        for j in range(4):
            step = np.zeros(4)
            step[j] = 1e-5
            numeric = (loss.value(y, s + step) - loss.value(y, s - step)) / 2e-5
            np.testing.assert_allclose(u[:, j], numeric, atol=1e-9)
        np.testing.assert_allclose(loss.value(y, s) + loss.conjugate(y, u), (s * u).sum(axis=1), atol=1e-12)

    def test_large_scores(self):
        assert np.isfinite(hg.Softmax().value(np.array([0.0]), np.array([[1e4, -1e4]]))[0])

    def test_two_classes_are_logistic(self, rng):
        codes, s = rng.integers(0, 2, 30).astype(float), rng.normal(size=30)
        two = hg.Softmax().value(codes, np.column_stack([np.zeros(30), s]))
        np.testing.assert_allclose(two, hg.Logistic().value(2 * codes - 1, s), rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: hg.Huber(0.0), "delta"),
        (lambda: hg.Quantile(1.0), "quantile"),
        (lambda: hg.EpsilonInsensitive(-1.0), "epsilon"),
        (lambda: hg.Tweedie(2.0), "power"),
        (lambda: hg.NegativeBinomial(0.0), "alpha"),
    ],
)
def test_bad_parameters_are_named(make, word):
    with pytest.raises(ValueError, match=word):
        make()


def test_custom_losses_need_value_and_gradient():
    class Half:
        def value(self, y, s):
            return s

    with pytest.raises(TypeError, match="no gradient"):
        as_loss(Half())
    assert isinstance(as_loss(hg.Hinge()), hg.Hinge)
    assert not isinstance(as_loss(hg.Hinge()), CustomLoss)


@pytest.mark.parametrize("loss", [loss for loss in zoo.LOSSES if loss.convex], ids=zoo.name)
def test_prox_is_the_minimiser(loss, rng):
    """(v − s)/step ∈ ∂ℓ(s), by the values to the left and right of s."""
    y = zoo.targets(loss, 200, rng)
    v = 2.0 * rng.normal(size=200)
    for step in (0.1, 1.0, 5.0):
        s = loss.prox(y, v, step)
        best = 0.5 * (s - v) ** 2 + step * loss.value(y, s)
        for shift in (-1.0, -1e-3, -1e-5, 1e-5, 1e-3, 1.0):
            other = 0.5 * (s + shift - v) ** 2 + step * loss.value(y, s + shift)
            assert np.all(other >= best - 1e-9 * (1 + np.abs(best)))


@pytest.mark.mission("R3", "O8")
def test_the_dual_variables_of_softmax_are_projected_to_probabilities(rng):
    """u + e_y lies on the simplex; feasible u stay; where nothing positive is left, u is zero."""
    y = np.arange(30) % 4.0
    one_hot = np.eye(4)[y.astype(int)]
    u = rng.normal(size=(30, 4))
    p = hg.Softmax().project_dual(y, u) + one_hot
    assert np.all(p >= 0)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    positive = np.maximum(u + one_hot, 0.0)
    some = positive.sum(axis=1) > 0
    np.testing.assert_allclose(p[some], positive[some] / positive[some].sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(hg.Softmax().project_dual(y, -3.0 - np.abs(u)), np.zeros((30, 4)))
    feasible = rng.dirichlet(np.ones(4), size=30) - one_hot
    np.testing.assert_allclose(hg.Softmax().project_dual(y, feasible), feasible, atol=1e-12)
    assert np.all(np.isfinite(hg.Softmax().conjugate(y, hg.Softmax().project_dual(y, u))))
