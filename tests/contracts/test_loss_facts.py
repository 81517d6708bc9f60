"""What losses declare about themselves, targets they admit, and their helpers."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg
import zoo
from hinge.problem.losses.base import Target, normalise_weights, weighted_quantile

every_loss = pytest.mark.parametrize("loss", zoo.LOSSES, ids=zoo.name)


@every_loss
def test_the_curvature_is_the_least_upper_bound_of_the_second_derivative(loss):
    """Not any bound: steps of first-order methods are as long as it allows. It is constant where that is declared."""
    y = np.array([-1.0, 1.0]) if loss.target in (Target.SIGN, Target.REAL, Target.NONZERO) else np.array([0.5, 1.0])
    most = np.max([loss.hessian(y, np.full(2, s)) for s in np.linspace(-6.0, 6.0, 241)], axis=0)
    if np.isfinite(loss.curvature):
        assert most.max() == pytest.approx(loss.curvature, rel=1e-3)
    else:
        assert most.max() == 0.0 or most.max() > 100 or np.max(loss.hessian(y + 50.0, np.zeros(2))) > 10
    every = [loss.hessian(y, np.full(2, s)) for s in (-9.0, -1.2, -0.9, 0.1, 0.95, 9.0)]
    flat = loss.twice_differentiable and bool(np.ptp(every) == 0)
    assert loss.constant_curvature == flat


@every_loss
def test_what_falls_without_end(loss):
    """``falling`` is the direction in which ℓ decreases towards an infimum that no score attains."""
    y = {
        Target.SIGN: [-1.0, 1.0], Target.NONNEGATIVE: [0.0, 2.0], Target.POSITIVE: [0.5, 2.0], Target.UNIT: [0.0, 0.3, 1.0],
    }.get(loss.target, [-1.5, 0.5])  # fmt: skip
    found = loss.falling(np.array(y))
    for i, target in enumerate(y):
        way = 0.0
        for side in (-1.0, 1.0):
            values = loss.value(np.full(3, target), side * np.array([5.0, 10.0, 20.0]))
            if values[0] > values[1] > values[2]:
                way = side
        assert (0.0 if found is None else found[i]) == way
    assert found is not None or not isinstance(loss, hg.Bernoulli | hg.Poisson | hg.Logistic | hg.Exponential)


@every_loss
def test_scores_beyond_the_span_are_as_good_as_infinite(loss):
    expected = 1e3 if loss.target is Target.SIGN else 7.0
    assert loss.score_span(np.array([-3.0, 2.0])) == expected
    assert loss.score_span(np.array([])) == (1e3 if loss.target is Target.SIGN else 1.0)


@pytest.mark.parametrize(
    ("loss", "y", "v"),
    [
        (hg.Exponential(), 1.0, -300.0),
        (hg.Exponential(), -1.0, 300.0),
        (hg.Poisson(), 2.0, 300.0),
        (hg.Gamma(), 2.0, -300.0),
    ],
    ids=zoo.name,
)
def test_prox_from_far_away(loss, y, v):
    """s − v + step·ℓ'(s) = 0 also where ℓ'(v) is about e^300: the root is searched outwards from v."""
    for step in (1e-3, 1.0, 1e3):
        s = loss.prox(np.array([y]), np.array([v]), step)
        change = (s - v)[0]
        assert change == pytest.approx(-step * loss.gradient(np.array([y]), s)[0], rel=1e-9)


def test_targets_that_a_loss_admits():
    cases = {
        Target.REAL: ([-1.0, 0.0], None), Target.NONZERO: ([-1.0, 2.0], [0.0]), Target.NONNEGATIVE: ([0.0, 2.0], [-1e-9]),
        Target.POSITIVE: ([1e-9, 2.0], [0.0]), Target.UNIT: ([0.0, 0.5, 1.0], [1.0 + 1e-9]), Target.SIGN: ([-1.0, 1.0], None),
    }  # fmt: skip
    for target, (good, bad) in cases.items():
        assert target.admits(np.array(good))
        assert bad is None or not target.admits(np.array([*good, *bad]))
        assert target.is_classes == (target is Target.SIGN)
    assert not Target.UNIT.admits(np.array([-1e-9]))
    assert Target.CLASSES.is_classes


def test_weights_are_shares():
    assert normalise_weights(None, 4) == pytest.approx([0.25] * 4)
    assert normalise_weights([1.0, 0.0, 3.0], 3) == pytest.approx([0.25, 0.0, 0.75])
    for wrong, message in (
        ([1.0, 2.0], "shape"), ([[1.0], [1.0], [1.0]], "shape"), ([1.0, -1e-9, 1.0], "negative"), ([1.0, np.inf, 1.0], "finite"),
        ([0.0, 0.0, 0.0], "every example"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            normalise_weights(wrong, 3)


@pytest.mark.parametrize("level", [0.1, 0.25, 0.5, 0.75, 0.9])
def test_a_weighted_quantile_is_the_middle_of_the_minimisers(level, rng):
    for n in (1, 2, 4, 8, 9):
        y, c = rng.permutation(np.arange(n) * 2.0), rng.integers(1, 3, n).astype(float)
        grid = np.arange(0.0, 2.0 * n - 1.0)  # the minimisers are a target, or all between two of them
        risks = np.array([c @ np.maximum(level * (y - b), (level - 1) * (y - b)) for b in grid])
        best = grid[risks <= risks.min() + 1e-9]
        assert weighted_quantile(y, c / c.sum(), level) == pytest.approx((best[0] + best[-1]) / 2)
