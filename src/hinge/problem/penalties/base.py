"""The base class of penalties.

A penalty Ω(w) expresses which weights are preferred. It does not include the bias. Like a loss it is a small immutable
object that defines its mathematics: value, proximal operator, conjugate, distance to the subdifferential.

Conventions
-----------
w : d weights, or d × k when there are k outputs (then "feature j" means row j)
g : the gradient of the empirical risk at w, same shape; w is optimal if and only if −g ∈ ∂Ω(w)
prox_step(v) = argmin_w ½‖w − v‖² + step·Ω(w)
Ω*(g) = sup_w ⟨g, w⟩ − Ω(w), +∞ outside its domain
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hinge.problem.parameters import Parametrised

Array = NDArray[np.float64]

# The step, relative to the largest weight, at which a proximal step is taken as the limit of short ones.
SHORT_STEP = 1e-6


class Coordinates(NamedTuple):
    """A separable penalty: l1|w| + (l2/2)w² on [lower, upper], one number per feature."""

    l1: Array
    l2: Array
    lower: Array
    upper: Array


class Rows(NamedTuple):
    """A penalty on the rows of w: l1‖w_j‖₂ + (l2/2)‖w_j‖², one number per feature."""

    l1: Array
    l2: Array


@dataclass(frozen=True)
class Penalty(Parametrised):
    """Base class of the penalties. A subclass defines ``value`` and ``prox``; the other methods have defaults."""

    convex: ClassVar[bool] = True
    has_conjugate: ClassVar[bool] = True
    ball: ClassVar[str | None] = None  # "l1" or "l2": a bound ``radius`` on that norm
    concave: ClassVar[bool] = False  # a sum over single weights that is concave in |w_j| (Lq, L0)
    smooth: ClassVar[bool] = False  # differentiable, so gradient methods apply

    def value(self, w: Array) -> float:
        raise NotImplementedError

    def prox(self, v: Array, step: float) -> Array:
        raise NotImplementedError

    def gradient(self, w: Array) -> Array:
        """A (sub)gradient of Ω at w."""
        raise NotImplementedError

    def conjugate(self, g: Array) -> float:
        raise NotImplementedError

    def conjugate_along(self, g: Array) -> Callable[[float], float]:
        """The function s ↦ Ω*(s g)."""
        return lambda s: self.conjugate(s * g)

    def dual_scale(self, g: Array) -> float:
        """The largest c ≤ 1 for which Ω*(c g) is finite: 1 for penalties whose conjugate is finite everywhere."""
        return 1.0

    def subdifferential_distance(self, w: Array, g: Array) -> Array:
        """The distance of −g from ∂Ω(w) by coordinate: zero everywhere if and only if w is stationary.

        The default needs only ``prox``: it divides a short proximal gradient step by its length t. As t decreases,
        (w − prox_t(w − t g)) / t tends to the element of g + ∂Ω(w) with the smallest norm. A long step would measure
        the size of a constraint's set instead of the gradient.
        """
        size, gradient = float(np.max(np.abs(w), initial=0.0)), float(np.max(np.abs(g), initial=0.0))
        if gradient == 0.0:
            return np.zeros_like(g)
        # At w = 0 nothing cancels, so the step may be shorter.
        step = (SHORT_STEP * size if size > 0 else SHORT_STEP**2) / gradient
        return np.abs(w - self.prox(w - step * g, step)) / step

    def sizes_of_distances(self, sizes: Array) -> Array:
        """The size of the column that each entry of ``subdifferential_distance`` belongs to, from those of all columns."""
        return sizes

    def lambda_max(self, g: Array) -> float:
        """The smallest strength at which w = 0 is optimal, where g is the gradient of the risk at w = 0."""
        return np.inf if np.any(g != 0) else 0.0

    def coordinates(self, d: int) -> Coordinates | None:
        """The penalty by weight, or None if it is not a sum over weights of the form of :class:`Coordinates`."""
        return None

    def rows(self, d: int) -> Rows | None:
        """The penalty by feature, or None if it is not a sum over the norms of their weights."""
        return None

    def with_strength(self, lam: float) -> Self:
        """The same penalty with another strength λ."""
        return replace(self, lam=lam)  # type: ignore[call-arg]  # balls and boxes have none and refuse


@dataclass(frozen=True, eq=False)
class CustomPenalty(Penalty):
    """A user-defined penalty: any object with ``value(w)`` and ``prox(v, step)``."""

    definition: Any = None

    def __post_init__(self) -> None:
        missing = [name for name in ("value", "prox") if not callable(getattr(self.definition, name, None))]
        if missing:
            raise TypeError(
                "penalty must be a hinge penalty or an object with value(w) and prox(v, step); "
                f"{type(self.definition).__name__} has no {' and no '.join(missing)}."
            )

    @property
    def convex(self) -> bool:  # type: ignore[override]
        return bool(getattr(self.definition, "convex", False))

    @property
    def has_conjugate(self) -> bool:  # type: ignore[override]
        return self.convex and callable(getattr(self.definition, "conjugate", None))

    def value(self, w: Array) -> float:
        return float(self.definition.value(w))

    def prox(self, v: Array, step: float) -> Array:
        return np.asarray(self.definition.prox(v, step), dtype=np.float64)

    def conjugate(self, g: Array) -> float:
        return float(self.definition.conjugate(g))

    def dual_scale(self, g: Array) -> float:
        scale = getattr(self.definition, "dual_scale", None)
        return 1.0 if scale is None else float(scale(g))

    def __repr__(self) -> str:
        return repr(self.definition)


def as_penalty(penalty: Any) -> Penalty:
    """The penalty itself, a wrapped user-defined one, or no penalty for None."""
    if penalty is None:
        from hinge.problem.penalties.elastic import NoPenalty

        return NoPenalty()
    return penalty if isinstance(penalty, Penalty) else CustomPenalty(penalty)


def check_strength(lam: float, name: str = "lam") -> None:
    if not (isinstance(lam, (int, float, np.number)) and np.isfinite(lam) and lam >= 0):
        raise ValueError(f"{name} must be a finite number, zero or more, got {lam!r}.")


def columnwise(weights: Array, w: Array) -> Array:
    """Numbers per feature, shaped to multiply w with one or several outputs."""
    return weights if w.ndim == 1 else weights[:, None]
