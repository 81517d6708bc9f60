"""The series in the density of the compound Poisson–gamma distribution (Tweedie with 1 < p < 2).

    W(ρ, z) = Σ_{j ≥ 1} z^j / (j! Γ(ρj)),   ρ > 0, z > 0,

Wright's generalised Bessel function with second parameter zero. Its terms are log-concave in j, with their peak near
j* = Y/ρ and width √(j*/(1 + ρ)), where Y = (ρz)^{1/(1+ρ)}; for large z

    log W ≈ (1 + 1/ρ)Y + ½ log Y − ½ log(2π(1 + ρ)),

with an error of order 1/Y. If the peak is far from zero, the sum over integers equals that over any other fine grid (the
trapezoidal rule on a smooth bump is exact to rounding), so a few dozen terms are enough for any z.

Reference: Dunn & Smyth (2005), Series evaluation of Tweedie exponential dispersion model densities; Wright (1935) for
the asymptotics.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import gammaln, logsumexp

Array = NDArray[np.float64]

REACH = 10.0  # widths on either side of the peak; the remainder is below e⁻⁵⁰ of the sum
NODES = 61  # in that interval: the step is a third of the width
FEW = 2000  # for more values than this a spline is used
STEP = 0.05  # of that spline in log z, on the difference from the asymptotics: errors below 1e-8
ROWS = 4096  # at a time


def log_series(rho: float, log_z: Array) -> Array:
    """log W(ρ, z), given log z."""
    u = np.asarray(log_z, dtype=np.float64)
    span = float(np.ptp(u)) if u.size else 0.0
    if u.size <= FEW or span / STEP > u.size:
        return _summed(rho, u)
    grid = np.linspace(u.min(), u.max(), max(8, math.ceil(span / STEP)))
    return _leading(rho, u) + CubicSpline(grid, _summed(rho, grid) - _leading(rho, grid))(u)


def _leading(rho: float, u: Array) -> Array:
    log_y = (math.log(rho) + u) / (1.0 + rho)
    return (1.0 + 1.0 / rho) * np.exp(log_y) + 0.5 * log_y - 0.5 * math.log(2.0 * math.pi * (1.0 + rho))


def _summed(rho: float, u: Array) -> Array:
    out = np.empty_like(u)
    peak = np.exp((math.log(rho) + u) / (1.0 + rho)) / rho
    width = np.sqrt(peak / (1.0 + rho))
    far = (peak - REACH * width > 2.0) & (width > 3.0)
    steps = np.linspace(-REACH, REACH, NODES)
    for rows in _pieces(np.flatnonzero(far)):
        j = peak[rows, None] + width[rows, None] * steps
        out[rows] = logsumexp(_log_terms(rho, u[rows, None], j), axis=1) + np.log(width[rows] * (steps[1] - steps[0]))
    near = np.flatnonzero(~far)
    for rows in _pieces(near[np.argsort(peak[near])]):  # values with equally many terms are processed together
        last = math.ceil(float(np.max(peak[rows] + REACH * width[rows]))) + 25
        out[rows] = logsumexp(_log_terms(rho, u[rows, None], np.arange(1.0, last + 1.0)), axis=1)
    return out


def _log_terms(rho: float, u: Array, j: Array) -> Array:
    return j * u - gammaln(j + 1.0) - gammaln(rho * j)


def _pieces(rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    return [rows[k : k + ROWS] for k in range(0, len(rows), ROWS)]
