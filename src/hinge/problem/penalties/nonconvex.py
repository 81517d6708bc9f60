"""Nonconvex penalties: the certificate of a fit is a stationarity residual, never a duality gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hinge.problem.penalties.base import Array, Penalty, check_strength


@dataclass(frozen=True)
class Lq(Penalty):
    """Ω = λ Σ_j |w_j|^q with 0 < q < 1: sparser than the lasso, with local minima.

    Parameters
    ----------
    lam : float
        The strength λ ≥ 0.
    q : float
        The exponent, strictly between 0 and 1.
    """

    lam: float = 1.0
    q: float = 0.5

    concave: ClassVar[bool] = True
    convex: ClassVar[bool] = False
    has_conjugate: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_strength(self.lam)
        if not 0 < self.q < 1:
            raise ValueError(f"q must lie strictly between 0 and 1, got {self.q}. Use L1 for 1, L0 for 0.")

    def value(self, w: Array) -> float:
        return self.lam * float(np.sum(np.abs(w) ** self.q))

    def prox(self, v: Array, step: float) -> Array:
        """The larger stationary point, by Newton's method from v, if it is better than zero; otherwise zero.

        On t > 0 the function ½(t − |v|)² + c t^q is convex to the right of t₀ = (c q (1−q))^{1/(2−q)}, and its nonzero
        minimiser, if there is one, is there.
        """
        c, q = step * self.lam, self.q
        size = np.abs(v)
        if c == 0:
            return v.copy()
        start = (c * q * (1.0 - q)) ** (1.0 / (2.0 - q))
        t = np.maximum(size, start)
        for _ in range(50):
            derivative = t - size + c * q * t ** (q - 1.0)
            bend = 1.0 - c * q * (1.0 - q) * t ** (q - 2.0)
            t = np.maximum(t - derivative / np.maximum(bend, 1e-12), start)
        better = 0.5 * (t - size) ** 2 + c * t**q < 0.5 * size**2
        return np.where(better & (size > 0), np.sign(v) * t, 0.0)

    def subdifferential_distance(self, w: Array, g: Array) -> Array:
        """|w|^q is infinitely steep at zero, so any derivative is allowed there."""
        size = np.where(w != 0, np.abs(w), 1.0)
        return np.where(w != 0, np.abs(g + self.lam * self.q * np.sign(w) * size ** (self.q - 1.0)), 0.0)


@dataclass(frozen=True)
class L0(Penalty):
    """Ω = λ · (number of weights that are not zero). Exact minimisation is subset search.

    Parameters
    ----------
    lam : float
        What each weight that is not zero costs, λ ≥ 0.
    """

    lam: float = 1.0

    concave: ClassVar[bool] = True
    convex: ClassVar[bool] = False
    has_conjugate: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_strength(self.lam)

    def value(self, w: Array) -> float:
        return self.lam * float(np.count_nonzero(w))

    def prox(self, v: Array, step: float) -> Array:
        return np.where(0.5 * v**2 > step * self.lam, v, 0.0)

    def subdifferential_distance(self, w: Array, g: Array) -> Array:
        """Nonzero weights must be stationary for the risk; any derivative is allowed at zero, where Ω jumps."""
        return np.where(w != 0, np.abs(g), 0.0)
