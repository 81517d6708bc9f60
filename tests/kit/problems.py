"""Random small problems of every kind, badly scaled ones above all, each from one seed."""

from __future__ import annotations

from typing import Any

import numpy as np

import hinge as hg
import zoo
from hinge.problem.losses.base import Target

LOSSES = [*zoo.LOSSES, hg.Softmax()]


def random_penalty(rng: np.random.Generator, d: int) -> hg.Penalty:
    """Any convex penalty with a strength between 1e-6 and 1e2; some features may be free of it."""
    lam = float(10.0 ** rng.uniform(-6, 2))
    weights = rng.choice([None, 1]) and np.where(rng.random(d) < 0.4, 0.0, rng.random(d) + 0.1)
    positive = bool(rng.random() < 0.3)
    kinds: list[Any] = [
        lambda: hg.NoPenalty(),
        lambda: hg.L2(lam, weights=weights, positive=positive),
        lambda: hg.L1(lam, weights=weights, positive=positive),
        lambda: hg.Elastic(lam, float(rng.random()), weights=weights, positive=positive),
        lambda: hg.Box(-float(rng.exponential()), float(rng.exponential())),
        lambda: hg.Box(),
        lambda: hg.L1Ball(lam),
        lambda: hg.L2Ball(lam),
        lambda: hg.MaxNorm(lam),
        lambda: hg.GroupNorm(lam, groups=rng.integers(0, 2, size=d)),
        lambda: hg.GroupNorm(lam),
    ]
    return kinds[rng.integers(len(kinds))]()


def random_inputs(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    X = rng.normal(size=(n, d))
    style = rng.integers(7)
    if style == 1:
        X = rng.integers(-2, 3, size=(n, d)).astype(float)
    if style == 2:
        X *= 10.0 ** rng.uniform(-5, 5, size=d)
    if style == 3:
        X += 10.0 ** rng.uniform(0, 4)
    if style == 4:
        X = X[rng.integers(0, max(n // 2, 1), size=n)]
    if style == 5:
        X *= 10.0 ** rng.uniform(-6, 6)
    if style == 6:
        X[rng.random((n, d)) < 0.6] = 0.0
    if d > 1 and rng.random() < 0.3:  # collinear, exactly or nearly
        X[:, -1] = X[:, 0] * rng.choice([1.0, -2.0]) + rng.choice([0.0, 0.0, 1e-9, 1e-5]) * rng.normal(size=n)
    return X


def random_problem(seed: int) -> hg.Objective:
    rng = np.random.default_rng([20261116, seed])
    loss = LOSSES[rng.integers(len(LOSSES))]
    n = int(rng.integers(3, 15))
    d = int(rng.integers(1, 3 if loss.outputs == "classes" else 5))
    X, y = random_inputs(rng, n, d), zoo.targets(loss, n, rng)
    if loss.target is Target.CLASSES:
        y[:3] = [0.0, 1.0, 2.0]
    if loss.target is Target.REAL and rng.random() < 0.5:
        y = y * 10.0 ** rng.uniform(-12, 6)
    if loss.target is Target.REAL and rng.random() < 0.2:
        y = X @ rng.normal(size=d)  # a perfect fit
    if loss.target in (Target.REAL, Target.NONNEGATIVE) and rng.random() < 0.1:
        y = np.round(y)
    weight = rng.choice([None, 1]) and rng.integers(0, 3, size=n).astype(float)
    if weight is not None and rng.random() < 0.3:
        weight = 10.0 ** rng.uniform(-8, 2, size=n)
    if weight is not None and not np.any(weight):
        weight = None
    offset = rng.normal(size=n) if loss.outputs == "one" and rng.random() < 0.3 else None
    return hg.make_objective(
        X, y, loss, random_penalty(rng, d), sample_weight=weight, fit_intercept=bool(rng.random() < 0.6), offset=offset,
        classes=3 if loss.target is Target.CLASSES else None,
    )  # fmt: skip
