"""Every loss and penalty, with targets that suit it: what the contract tests run over."""

from __future__ import annotations

import numpy as np

import hinge as hg
from hinge.problem.losses.base import Loss, Target

LOSSES: list[Loss] = [
    hg.Squared(),
    hg.Absolute(),
    hg.RelativeError(),
    hg.Huber(0.7),
    hg.Huber(1.35),
    hg.EpsilonInsensitive(0.2),
    hg.SquaredEpsilonInsensitive(0.2),
    hg.Quantile(0.5),
    hg.Quantile(0.9),
    hg.LogCosh(),
    hg.Hinge(),
    hg.SquaredHinge(),
    hg.ModifiedHuber(),
    hg.PerceptronLoss(),
    hg.Logistic(),
    hg.Logistic(1 / np.log(2)),
    hg.Exponential(),
    hg.SquaredMargin(),
    hg.Bernoulli(),
    hg.Poisson(),
    hg.Gamma(),
    hg.Tweedie(1.3),
    hg.Tweedie(1.8),
    hg.NegativeBinomial(0.5),
]


def targets(loss: Loss, n: int, rng: np.random.Generator) -> np.ndarray:
    """Random targets in the set the loss is defined on, its boundary included."""
    if loss.target is Target.CLASSES:
        return rng.integers(0, 3, size=n).astype(float)
    if loss.target is Target.SIGN:
        return rng.choice([-1.0, 1.0], size=n)
    if loss.target is Target.NONNEGATIVE:
        return rng.poisson(1.5, size=n).astype(float)
    if loss.target is Target.POSITIVE:
        return rng.gamma(2.0, size=n) + 0.05
    if loss.target is Target.UNIT:
        return rng.choice([0.0, 0.25, 0.7, 1.0], size=n)
    if loss.target is Target.NONZERO:
        return rng.choice([-1.0, 1.0], size=n) * (0.2 + rng.random(n))
    return rng.normal(size=n)


def penalties(d: int) -> list[hg.Penalty]:
    """Every penalty, for d features (d a multiple of 3)."""
    weights = np.linspace(0.5, 2.0, d)
    return [
        hg.NoPenalty(),
        hg.L2(0.3),
        hg.L2(0.3, weights=weights),
        hg.L2(0.3, positive=True),
        hg.L1(0.2),
        hg.L1(0.2, weights=weights),
        hg.L1(0.2, positive=True),
        hg.Elastic(0.4, 0.3),
        hg.Elastic(0.4, 0.7, weights=weights, positive=True),
        hg.Box(-0.3, 0.5),
        hg.Box(),
        hg.L1Ball(0.8),
        hg.L2Ball(0.8),
        hg.MaxNorm(0.5),
        hg.GroupNorm(0.3, groups=np.repeat(np.arange(d // 3), 3)),
        hg.GroupNorm(0.3),
        hg.Lq(0.3, 0.5),
        hg.L0(0.2),
    ]


def name(member: object) -> str:
    """A readable test id."""
    text = repr(member)
    return text if len(text) < 60 else text[:57] + "..."
