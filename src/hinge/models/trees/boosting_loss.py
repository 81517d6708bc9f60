"""A loss prepared for boosting: its start, its curvature, and the computation of leaf values."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge._cached import cached_property
from hinge.problem.losses import (
    Absolute,
    CustomLoss,
    Exponential,
    Gamma,
    Huber,
    Logistic,
    Loss,
    Poisson,
    Quantile,
    Softmax,
    Squared,
    as_loss,
    normalise_weights,
)
from hinge.problem.losses.likelihood import LogLink
from hinge.problem.losses.native import native_loss

NAMES = {
    "squared_error": Squared(), "absolute_error": Absolute(), "huber": Huber(), "poisson": Poisson(),
    "gamma": Gamma(), "log_loss": Logistic(), "exponential": Exponential(),
}  # fmt: skip

# Below this many rows histograms use 64-bit fixed point. Above it gradients are rounded stochastically to 10 bits, so that
# sums are unbiased, which is several times faster and of the same quality; leaf values use 16 bits.
EXACT_ROWS = 16384


class Leaves(enum.Enum):
    """The ways to compute a leaf value v; each value is a description."""

    NEWTON = "one Newton step: v = −Σ g / (Σ h + l2), shortened beyond 2 for log-odds"
    BOUND = "a step on the quadratic bound of the loss: −Σ g / (Σ w · curvature + l2)"
    SEARCH = "the exact minimiser of Σ w ℓ(y, s + v) + l2/2 · v²; a local one if ℓ is not convex"


def named_loss(loss: Any, quantile: float | None = None) -> Loss:
    """A loss by its name in scikit-learn, or the loss itself."""
    if not isinstance(loss, str):
        return as_loss(loss)
    if loss == "quantile":
        if quantile is None:
            raise ValueError('loss="quantile" needs the level, for example quantile=0.9.')
        return Quantile(quantile)
    if loss not in NAMES:
        raise ValueError(
            f"loss must be a hinge loss or one of {', '.join(sorted([*NAMES, 'quantile']))}; got {loss!r}."
        )
    return NAMES[loss]


@dataclass(frozen=True)
class BoostedLoss:
    """A loss with the properties that boosting needs. ``outputs`` is the number of scores per row."""

    definition: Loss
    outputs: int

    @property
    def logistic(self) -> bool:
        return isinstance(self.definition, Logistic) and self.definition.scale == 1.0

    @cached_property
    def leaves(self) -> Leaves:
        loss = self.definition
        # A bounded second derivative may vanish far from the minimum, where Newton steps are arbitrarily long. The logistic
        # loss is an exception: its gradient is bounded too, and steps with the bound would be slow.
        if isinstance(loss, CustomLoss):
            return Leaves.SEARCH
        if isinstance(loss, Logistic) or (loss.twice_differentiable and not np.isfinite(loss.curvature)):
            return Leaves.NEWTON
        if np.isfinite(loss.curvature):
            return Leaves.BOUND
        return Leaves.SEARCH

    @property
    def bound(self) -> float:
        """The bound that replaces the second derivative."""
        curvature = self.definition.curvature
        return float(curvature) if np.isfinite(curvature) else 1.0

    @property
    def level(self) -> float:
        """The level of the residual quantile that is the minimiser in a leaf; 0 if it is not a quantile."""
        if isinstance(self.definition, Absolute):
            return 0.5
        return self.definition.quantile if isinstance(self.definition, Quantile) else 0.0

    @property
    def probabilistic(self) -> bool:
        return isinstance(self.definition, (Logistic, Softmax, Exponential, CustomLoss))

    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """The best constant scores, argmin_b Σ w ℓ(y, b)."""
        if self.outputs > 1:
            shares = np.bincount(y.astype(int), weights=weight, minlength=self.outputs)
            s = np.log(np.maximum(shares / shares.sum(), 1e-300))
            return s - s.mean()
        best = self.definition.baseline(y, weight)
        # For a single class, or counts that are all zero, the minimiser would be infinite.
        bounded = self.definition.target.is_classes or isinstance(self.definition, LogLink)
        return np.array([np.clip(best, -50.0, 50.0) if bounded else best])

    def mean(self, y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None) -> float:
        """The weighted mean loss of scores (n × outputs)."""
        values = self.definition.value(y, scores if self.outputs > 1 else scores[:, 0])
        return float(normalise_weights(weight, len(y)) @ values)


def rounds_of(
    booster: Any, loss: BoostedLoss, rate: float, rows: float, features: float, exact: bool = False
) -> Callable[[int], list[dict[str, np.ndarray]]]:
    """A function that runs one round from a seed and returns its trees, one per output.

    exact: leaf values are minimisers of the loss, for any loss (single output).
    """
    native = native_loss(loss.definition) if loss.outputs == 1 else None
    newton = loss.leaves is Leaves.NEWTON
    search = native is not None and (exact or loss.leaves is Leaves.SEARCH)
    logistic, bound, level, convex = loss.logistic, loss.bound, loss.level, loss.definition.convex
    return lambda seed: booster.boost(
        native, logistic, newton, bound, seed, rows, features, rate, search, level, convex
    )
