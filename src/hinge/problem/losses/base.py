"""The base class of losses.

A loss ℓ(y, s) compares a target y with a score s. It is a small immutable object with its value, its derivatives in s,
its Fenchel conjugate and a few declared properties. Everything is vectorised NumPy in float64: this is the definition,
and the reference for the compiled version in ``native/problem/losses.hpp``.

Conventions
-----------
y, s : arrays of n entries (s is n × k for losses over k classes)
u    : a dual variable, u = ∂ℓ/∂s; the conjugate is ℓ*(y, u) = sup_s us − ℓ(y, s), +∞ outside its domain
c    : weights ≥ 0 that sum to one
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, fields
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hinge.problem.numerics import weighted_sum
from hinge.problem.parameters import Parametrised
from hinge.problem.root import best_bias

Array = NDArray[np.float64]

MOST_DOUBLINGS = 1100  # from 1 to the largest float64


class Kink(NamedTuple):
    """A kink at the scores ``at``, with gradient ``low`` on its left and ``high`` on its right, one entry per example."""

    at: Array
    low: Array
    high: Array


class Pieces(NamedTuple):
    """A loss that is the maximum of lines α·s + β (rows are pieces), or h/2 times the square of that maximum."""

    slope: Array
    start: Array
    square: float  # h; 0 if the maximum itself is the loss


class Target(enum.Enum):
    """The kind of target of a loss; the value describes it."""

    REAL = "real numbers"
    NONZERO = "real numbers other than zero"
    NONNEGATIVE = "numbers that are zero or more"
    POSITIVE = "numbers greater than zero"
    UNIT = "numbers from zero to one"
    SIGN = "two classes, coded −1 and +1"
    CLASSES = "classes, coded 0 … k−1"

    @property
    def is_classes(self) -> bool:
        return self in (Target.SIGN, Target.CLASSES)

    def admits(self, y: Array) -> bool:
        """Whether all of y is in the domain of the loss (labels are coded elsewhere)."""
        if self is Target.NONZERO:
            return bool(np.all(y != 0))
        if self is Target.NONNEGATIVE:
            return bool(np.all(y >= 0))
        if self is Target.POSITIVE:
            return bool(np.all(y > 0))
        if self is Target.UNIT:
            return bool(np.all((y >= 0) & (y <= 1)))
        return True


@dataclass(frozen=True)
class Loss(Parametrised):
    """Base class of the losses.

    A subclass defines ``value`` and ``gradient`` and, if they exist, ``hessian``, ``conjugate`` with its domain
    ``dual_interval``, and ``subgradients`` at kinks. The class attributes declare properties that solvers rely on.
    """

    target: ClassVar[Target] = Target.REAL
    smooth: ClassVar[bool] = True  # differentiable everywhere
    convex: ClassVar[bool] = True
    twice_differentiable: ClassVar[bool] = True  # has a useful second derivative
    has_conjugate: ClassVar[bool] = True
    bounds_error: ClassVar[bool] = False  # ℓ ≥ 1[ys ≤ 0], for margin losses
    piecewise_linear: ClassVar[bool] = False  # see ``kinks``
    softness: ClassVar[float] = (
        0.0  # κ > 0 if ℓ(s) = Σ_k max {u (s − at_k) − κ/2 u² : low_k ≤ u ≤ high_k} over ``kinks``
    )
    piecewise_quadratic: ClassVar[bool] = False  # see ``pieces``; h/2 (s − y)² and Huber's loss have none
    constant_curvature: ClassVar[bool] = False  # ∂²ℓ/∂s² is the same everywhere, so quadratic models are exact
    outputs: ClassVar[str] = "one"  # scores per example: "one", or "classes"
    compiled: ClassVar[bool] = True  # in native/problem/losses.hpp; otherwise called once per array

    @property
    def declared_convex(self) -> bool:
        """Whether convexity is declared, and not inferred from samples of a user's loss: only a declaration proves bounds."""
        return self.convex

    @property
    def curvature(self) -> float:
        """An upper bound of ∂²ℓ/∂s² (infinity if there is none)."""
        return math.inf

    def value(self, y: Array, s: Array) -> Array:
        raise NotImplementedError

    def gradient(self, y: Array, s: Array) -> Array:
        raise NotImplementedError

    def hessian(self, y: Array, s: Array) -> Array:
        raise NotImplementedError

    def conjugate(self, y: Array, u: Array) -> Array:
        raise NotImplementedError

    def dual_interval(self, y: Array) -> tuple[Array | float, Array | float]:
        """The closed interval of u on which the conjugate is finite. It contains 0 for every loss of the library."""
        return -np.inf, np.inf

    def subgradients(self, y: Array, s: Array) -> tuple[Array, Array]:
        """The interval of subgradients at s; a single point where ℓ is differentiable."""
        g = self.gradient(y, s)
        return g, g

    def kinks(self, y: Array) -> list[Kink]:
        """The kinks of a loss that is piecewise linear or has a ``softness``, which smooths them.

        The gradients sum to ``dual_interval``. The default is one kink at s = y.
        """
        low, high = (np.array(np.broadcast_to(edge, y.shape), dtype=np.float64) for edge in self.dual_interval(y))
        return [Kink(y, low, high)]

    def pieces(self, y: Array) -> Pieces:
        """The linear pieces of a loss that is a maximum of lines, or the square of one, as (pieces × n) arrays.

        The default is for a piecewise linear loss with one kink, at which it is zero.
        """
        if not self.piecewise_linear:
            raise TypeError(f"{type(self).__name__} has no straight pieces.")
        ((at, low, high),) = self.kinks(y)
        return Pieces(np.array([low, high]), np.array([-low * at, -high * at]), 0.0)

    def falling(self, y: Array) -> Array | None:
        """The direction of s, −1 or +1, in which ℓ(y, s) decreases without reaching its infimum; 0 if there is none.

        None for losses that attain their infimum at every target: an unpenalised risk then has a minimiser.
        """
        return None

    def prox(self, y: Array, v: Array, step: float) -> Array:
        """argmin_s ½(s − v)² + step·ℓ(y, s), for convex losses.

        The optimality condition s − v + step·ℓ'(s) = 0 is an increasing function of s with derivative ≥ 1, so its root
        lies between v and v − step·ℓ'(v), and bisection finds it even if ℓ has kinks.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            pull = -step * self.gradient(y, v)
            side, most = np.sign(pull), np.abs(pull)
            width = np.minimum(most, 1.0)
            for _ in range(MOST_DOUBLINGS):  # outwards from v, because that bound may be far
                far = v + side * width
                short = (width < most) & (side * (far - v + step * self.gradient(y, far)) < 0)
                if not np.any(short):
                    break
                width = np.where(short, np.minimum(2.0 * width, most), width)
            low, high = np.minimum(v, v + side * width), np.maximum(v, v + side * width)
            for _ in range(100):
                middle = 0.5 * (low + high)
                above = middle - v + step * self.gradient(y, middle) > 0
                low, high = np.where(above, low, middle), np.where(above, middle, high)
        return 0.5 * (low + high)

    def project_dual(self, y: Array, u: Array) -> Array:
        """The nearest dual variables inside the domain of the conjugate."""
        lo, hi = self.dual_interval(y)
        return np.clip(u, lo, hi)

    def inverse_link(self, s: Array) -> Array:
        """The prediction for a score: for likelihoods the mean of y given s, otherwise the score."""
        return s

    def baseline(self, y: ArrayLike, weight: ArrayLike | None = None) -> float:
        """The best constant score, argmin_b Σ cᵢ ℓ(yᵢ, b): the Bayes predictor without inputs."""
        y = np.asarray(y, dtype=np.float64)
        c = normalise_weights(weight, len(y))
        if self.target.is_classes:  # two values only
            positive = float(c[y > 0].sum())
            y, c = np.array([-1.0, 1.0]), np.array([max(0.0, 1.0 - positive), positive])
            y, c = y[c > 0], c[c > 0]  # an absent class would otherwise contribute 0 · ∞

        def derivatives(b: float) -> tuple[float, float]:
            s = np.full_like(y, b)
            derivative = float(weighted_sum(c, self.gradient(y, s)))
            return derivative, float(weighted_sum(c, self.hessian(y, s))) if self.twice_differentiable else 0.0

        return best_bias(derivatives, self.score_span(y))

    def score_span(self, y: Array) -> float:
        """Scores beyond this are equivalent to infinite ones."""
        return 1e3 if self.target.is_classes else 1.0 + 2.0 * float(np.max(np.abs(y), initial=0.0))

    def params(self) -> tuple[float, ...]:
        """The arguments of the compiled version, in the order of the fields."""
        return tuple(float(getattr(self, name)) for name in (f.name for f in fields(self)))


def normalise_weights(weight: ArrayLike | None, n: int) -> Array:
    """Weights as fractions of their sum: (1/n, …, 1/n) if there are none."""
    if weight is None:
        return np.full(n, 1.0 / n)
    c = np.asarray(weight, dtype=np.float64)
    if c.shape != (n,):
        raise ValueError(f"sample_weight has shape {c.shape}; expected ({n},), one weight per example.")
    if not np.all(np.isfinite(c)) or np.any(c < 0):
        raise ValueError("sample_weight must be finite and not negative.")
    total = c.sum()
    if total <= 0:
        raise ValueError("sample_weight is zero for every example: there is nothing to learn from.")
    return c / total


def prox_of_kink(v: Array, kink: Array | float, lo: Array | float, hi: Array | float, step: float) -> Array:
    """The prox of a loss with gradient lo left of one kink and gradient hi right of it."""
    return v - step * np.clip((v - kink) / step, lo, hi)


def conjugate_by_bisection(loss: Loss, y: Array, u: Array, *, bound: float, steps: int) -> Array:
    """us − ℓ(y, s) at the score s with gradient u, which bisection on the increasing gradient finds within ±``bound``."""
    y, u = np.broadcast_arrays(np.asarray(y, dtype=np.float64), np.asarray(u, dtype=np.float64))
    low, high = np.full(y.shape, -bound), np.full(y.shape, bound)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for _ in range(steps):
            middle = 0.5 * (low + high)
            above = loss.gradient(y, middle) > u
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        s = 0.5 * (low + high)
        return u * s - loss.value(y, s)


def xlogx(x: Array) -> Array:
    """x log x, with 0 log 0 = 0."""
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0)


# Rounding may put dual variables this far outside the domain of a conjugate, relative to its edge.
EDGE = 1.0 + 1e-12


def where_finite(inside: NDArray[np.bool_], value: Array) -> Array:
    """`value` where `inside`, +∞ elsewhere, as every conjugate of the library."""
    return np.where(inside, value, np.inf)


def weighted_quantile(y: Array, c: Array, level: float) -> float:
    """A minimiser of Σ cᵢ ρ_level(yᵢ − b): the midpoint of the interval of minimisers if it is not unique."""
    order = np.argsort(y, kind="stable")
    cumulative = np.cumsum(c[order])
    cumulative /= cumulative[-1]
    slack = 1e-12
    first = int(np.searchsorted(cumulative, level - slack))
    last = int(np.searchsorted(cumulative, level + slack))
    last = min(last, len(y) - 1)
    return float(0.5 * (y[order][first] + y[order][last]))
