"""Risk as a function of the number of examples: R(n) = a + b n^(−c), fitted and extrapolated.

a is the risk of the best function of the hypothesis class, R(f_F), and b n^(−c) is the estimation error at n. Parametric
classes under squared loss have c = 1, richer classes a smaller c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from hinge.select.estimate import Estimate

Array = np.ndarray
# Slower laws than n^(−0.2) cannot be distinguished from a constant on a curve of one or two decades.
EXPONENTS = np.linspace(0.2, 1.5, 53)


@dataclass(frozen=True)
class PowerLaw:
    """R(n) = limit + scale · n^(−exponent), with bootstrap copies that measure its uncertainty.

    Attributes
    ----------
    limit, scale, exponent : float
        The risk of infinitely many examples, the part that shrinks, and how fast it does.
    copies : array of shape (draws, 3)
        The same three numbers fitted to resampled curves.
    floor : float
        The limit was not allowed below this.
    free : array of shape (draws,)
        Limits fitted to the resampled curves with no floor.
    bracket : float
        The length of the interval that certainly holds the limit.
    level_error : float
        The standard error of the level of the whole curve.
    """

    limit: float
    scale: float
    exponent: float
    copies: Array = field(repr=False)
    floor: float = field(default=-np.inf, repr=False)
    free: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    bracket: float = field(default=np.inf, repr=False)
    level_error: float = field(default=0.0, repr=False)

    def __call__(self, n: float) -> float:
        return self.limit + self.scale * float(n) ** -self.exponent

    def at(self, n: float) -> Estimate:
        """The risk at n, with its standard error."""
        a, b, c = self.copies.T
        return Estimate(self(n), math.hypot(float(np.std(a + b * float(n) ** -c)), self.level_error))

    @property
    def on_floor(self) -> bool:
        """Whether the curve without a floor would have a smaller limit."""
        return self.limit <= self.floor

    @property
    def asymptote(self) -> Estimate:
        """The limit, with its standard error.

        On its floor the limit hardly varies between bootstrap copies, which does not mean that it is well known. Its error is
        then the root mean square distance to the limits of the copies without a floor, but at most that of a uniform
        distribution over the bracket, bracket/√3.
        """
        error = float(np.std(self.copies[:, 0]))
        if self.on_floor and len(self.free):
            distance = math.sqrt(float(np.mean((self.free - self.limit) ** 2)))
            error = max(error, min(distance, self.bracket / math.sqrt(3)))
        return Estimate(self.limit, math.hypot(error, self.level_error))


def fit_power_law(
    sizes: Array, risks: Array, *, floor: float = 0.0, bound: float | None = None, level_error: float = 0.0,
    draws: int = 200, random_state: int = 0,
) -> PowerLaw:  # fmt: skip
    """Fit the law to a learning curve.

    Minimises Σ (R̄ᵢ − a − b nᵢ^(−c))² / sᵢ² over floor ≤ a ≤ min R̄, b ≥ 0 and a grid of c, where R̄ᵢ is the mean risk at
    size nᵢ and sᵢ its standard error times √(n_max/nᵢ), because the law holds for large n.

    Parameters
    ----------
    sizes : array of m numbers of examples
        How many examples each fit saw.
    risks : array of shape (m, repeats)
        The held-out risk of every repeat at every size.
    floor : float
        The limit is not below this. The mean training risk of a risk minimiser is one: it is below R(f_F).
    bound : float, optional
        What the limit is certainly not below, where ``floor`` is only a judgement; the floor by default. From here to the
        smallest mean risk is the bracket of a limit that sits on its floor.
    level_error : float
        The standard error of the level of the curve, which repeats on the same examples do not show.
    draws : int
        How many resampled curves (repeats drawn with replacement) are fitted for the standard errors.
    random_state : int
        Seed of the resampled curves.

    Examples
    --------
    >>> n = np.array([10.0, 20, 40, 80, 160])
    >>> law = fit_power_law(n, (0.5 + 2.0 / n)[:, None].repeat(3, axis=1))
    >>> round(law.limit, 3), round(law.exponent, 2)
    (0.5, 1.0)
    """
    sizes, risks = np.asarray(sizes, dtype=np.float64), np.asarray(risks, dtype=np.float64)
    if len(sizes) < 3:
        raise ValueError(f"a law with three unknowns needs at least three sizes, got {len(sizes)}.")
    mean = risks.mean(axis=1)
    spread = risks.std(axis=1) / np.sqrt(risks.shape[1]) + 1e-2 * np.abs(mean).max() + 1e-300
    spread = spread * np.sqrt(sizes[-1] / sizes)  # the law holds for large n, so the end of the curve has more weight
    rng = np.random.default_rng(random_state)
    drawn = rng.integers(0, risks.shape[1], size=(draws, risks.shape[1]))
    copies = np.array([_fit(sizes, risks[:, rows].mean(axis=1), spread, floor) for rows in drawn])
    free = np.array([_fit(sizes, risks[:, rows].mean(axis=1), spread, -np.inf)[0] for rows in drawn])
    low, top = min(floor, float(mean.min())), float(mean.min())
    bracket = top - (low if bound is None else min(bound, low))
    return PowerLaw(*_fit(sizes, mean, spread, floor), copies, low, free, bracket, level_error)


def _fit(sizes: Array, mean: Array, spread: Array, floor: float) -> tuple[float, float, float]:
    top = float(mean.min())
    best = (np.inf, top, 0.0, 1.0)
    for c in EXPONENTS:
        u = (sizes / sizes[-1]) ** -c  # scaled to one at the largest size
        w = 1.0 / spread**2
        du = u - (w @ u) / w.sum()
        b = max(float((w * du) @ mean / ((w * du) @ u)), 0.0)
        a = float(np.clip((w @ (mean - b * u)) / w.sum(), min(floor, top), top))
        b = max(float((w * u) @ (mean - a) / ((w * u) @ u)), 0.0)
        misfit = float(w @ (mean - a - b * u) ** 2)
        if misfit < best[0] * (1 - 1e-9):
            best = (misfit, a, b * float(sizes[-1]) ** c, float(c))
    return best[1], best[2], best[3]
