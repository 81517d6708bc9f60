"""The optimum of a small convex problem, found without any solver or certificate of the library.

The ellipsoid method with deep cuts (Bland, Goldfarb & Todd 1981) in extended precision. It needs values and subgradients
only, so it takes every loss and every penalty alike, kinks and constraints included; and with all minimisers in the
first ellipsoid it proves its own answer: f* ≥ f(x) − √(g'Pg) at every centre x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import hinge as hg

LONG = np.longdouble
# The bias and the weights, one column after the other; ``inside`` is False at a cut by a constraint.
Oracle = Callable[[np.ndarray], tuple[bool, np.longdouble, np.ndarray]]


@dataclass(frozen=True)
class Optimum:
    """The lowest value met, where, and a lower bound of all values in the first ellipsoid."""

    value: float
    x: np.ndarray
    bound: float


class Problem:
    """An objective in extended precision, from the definitions in NumPy; x = (w, b) in units of the columns' sizes."""

    def __init__(self, objective: hg.Objective) -> None:
        o = self.objective = objective
        self.X = np.asarray(o.design.source, dtype=LONG)
        self.y, self.c = o.y.astype(LONG), o.c.astype(LONG)
        self.offset = None if o.offset is None else o.offset.astype(LONG)
        size = np.sqrt(self.c @ self.X**2)
        self.size = np.where(size > 0, size, 1)
        self.dimension = (o.d + int(o.fit_intercept)) * o.outputs

    def split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        o = self.objective
        w = x[: o.d * o.outputs].reshape(o.d, o.outputs) / self.size[:, None]
        b = x[o.d * o.outputs :] if o.fit_intercept else np.zeros(o.outputs, dtype=LONG)
        return (w[:, 0] if o.outputs == 1 else w), b

    def join(self, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        o = self.objective
        scaled = (w.reshape(o.d, o.outputs).astype(LONG) * self.size[:, None]).ravel()
        return np.concatenate([scaled, b.astype(LONG)]) if o.fit_intercept else scaled

    def scores(self, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        z = self.X @ w.astype(LONG) + (b[0] if self.objective.outputs == 1 else b)
        return z if self.offset is None else z + (self.offset if z.ndim == 1 else self.offset[:, None])

    def risk(self, w: np.ndarray, b: np.ndarray) -> np.longdouble:
        with np.errstate(all="ignore"):
            losses = self.objective.loss.value(self.y, self.scores(w, b))
        losses = losses if losses.ndim == 1 else losses.sum(axis=1)
        return np.sum(np.where(self.c > 0, self.c * losses, 0))

    def value(self, w: np.ndarray, b: np.ndarray) -> np.longdouble:
        """The objective at the nearest weights that obey the constraints."""
        w = feasible(self.objective.penalty, w.astype(LONG))
        return self.risk(w, b) + penalty_value(self.objective.penalty, w)

    def magnitude(self, w: np.ndarray, b: np.ndarray) -> float:
        """√(Σ c ℓ'²)(Σ_j |w_j| √(Σ c x_j²) + |b|): the sizes of the products whose rounding a bound inherits."""
        with np.errstate(all="ignore"):
            u = self.objective.loss.gradient(self.y, self.scores(w, b))
        squares = (
            np.sum(np.where(np.isfinite(u), u, 0) ** 2, axis=-1) if u.ndim == 2 else np.where(np.isfinite(u), u, 0) ** 2
        )
        size = np.sqrt(self.c @ self.X**2)
        reach = np.sum(size @ np.abs(w)) + np.sum(np.abs(b))
        with np.errstate(all="ignore"):
            size = float(np.sqrt(self.c @ squares) * reach)
        return size if np.isfinite(size) else np.inf

    def __call__(self, x: np.ndarray) -> tuple[bool, np.longdouble, np.ndarray]:
        o = self.objective
        w, b = self.split(x)
        cut = constraint_cut(o.penalty, w)
        if cut is not None:
            return False, LONG(np.inf), self._in_units(cut, np.zeros(o.outputs, dtype=LONG))
        z = self.scores(w, b)
        with np.errstate(all="ignore"):
            u = np.where((self.c > 0) if z.ndim == 1 else (self.c > 0)[:, None], o.loss.gradient(self.y, z), 0)
        cu = self.c * u if u.ndim == 1 else self.c[:, None] * u
        g = self._in_units(self.X.T @ cu + penalty_subgradient(o.penalty, w), np.atleast_1d(cu.sum(axis=0)))
        return True, self.risk(w, b) + penalty_value(o.penalty, w), g

    def _in_units(self, gw: np.ndarray, gb: np.ndarray) -> np.ndarray:
        o = self.objective
        scaled = (gw.reshape(o.d, o.outputs) / self.size[:, None]).ravel()
        return np.concatenate([scaled, gb]) if o.fit_intercept else scaled


def feasible(penalty: hg.Penalty, w: np.ndarray) -> np.ndarray:
    """w moved into the constraints of the penalty, in extended precision."""
    if isinstance(penalty, hg.L1Ball | hg.L2Ball):
        norm = np.abs(w).sum() if isinstance(penalty, hg.L1Ball) else np.sqrt(np.sum(w * w))
        return w * (LONG(penalty.radius) / norm * (1 - LONG(1e-18))) if norm > penalty.radius else w
    parts = penalty.coordinates(w.shape[0])
    if parts is None:
        return w
    lower, upper = (part if w.ndim == 1 else part[:, None] for part in parts[2:])
    return np.minimum(np.maximum(w, lower), upper)


def penalty_value(penalty: hg.Penalty, w: np.ndarray) -> np.longdouble:
    """Ω(w) of weights that obey the constraints."""
    parts = penalty.coordinates(w.shape[0])
    if parts is not None:
        l1, l2 = (part if w.ndim == 1 else part[:, None] for part in parts[:2])
        return np.sum(l1 * np.abs(w)) + np.sum(l2 * w * w) / 2
    if isinstance(penalty, hg.MaxNorm):
        return LONG(penalty.lam) * np.max(np.abs(w))
    if isinstance(penalty, hg.GroupNorm):
        return LONG(penalty.lam) * sum(factor * np.sqrt(np.sum(w[group] ** 2)) for group, factor in groups(penalty, w))
    return LONG(0)


def penalty_subgradient(penalty: hg.Penalty, w: np.ndarray) -> np.ndarray:
    parts = penalty.coordinates(w.shape[0])
    if parts is not None:
        l1, l2 = (part if w.ndim == 1 else part[:, None] for part in parts[:2])
        return l1 * np.sign(w) + l2 * w
    g = np.zeros_like(w)
    if isinstance(penalty, hg.MaxNorm) and np.any(w):
        at = np.unravel_index(np.argmax(np.abs(w)), w.shape)
        g[at] = penalty.lam * np.sign(w[at])
    if isinstance(penalty, hg.GroupNorm):
        for group, factor in groups(penalty, w):
            norm = np.sqrt(np.sum(w[group] ** 2))
            g[group] = penalty.lam * factor * w[group] / (norm if norm > 0 else 1)
    return g


def groups(penalty: hg.GroupNorm, w: np.ndarray) -> list[tuple[np.ndarray, np.longdouble]]:
    labels = np.arange(w.shape[0]) if penalty.groups is None else np.asarray(penalty.groups)
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return [(group, np.sqrt(LONG(len(group)))) for group in members]


def constraint_cut(penalty: hg.Penalty, w: np.ndarray) -> np.ndarray | None:
    """A vector with a positive product with w − v for every v that obeys the constraint which w breaks; None if none."""
    if isinstance(penalty, hg.L1Ball):
        return np.sign(w) if np.abs(w).sum() > penalty.radius else None
    if isinstance(penalty, hg.L2Ball):
        return w if np.sum(w * w) > LONG(penalty.radius) ** 2 else None
    parts = penalty.coordinates(w.shape[0])
    if parts is None:
        return None
    lower, upper = (part if w.ndim == 1 else part[:, None] for part in parts[2:])
    excess = np.where(w > upper, w - upper, np.where(w < lower, w - lower, 0))
    if not np.any(excess):
        return None
    cut, at = np.zeros_like(w), np.unravel_index(np.argmax(np.abs(excess)), w.shape)
    cut[at] = np.sign(excess[at])
    return cut


def optimum(objective: hg.Objective, start: tuple[np.ndarray, np.ndarray], *, accuracy: float = 1e-14) -> Optimum:
    """The minimum over a large ball around ``start``, by the ellipsoid method."""
    problem = Problem(objective)
    x = problem.join(*start)
    m = max(problem.dimension, 2)  # one variable gets an idle companion
    x = np.concatenate([x, np.zeros(m - problem.dimension, dtype=LONG)])
    radius = 10 * (1 + np.sqrt(np.sum(x * x)) + np.max(np.abs(objective.y)))
    P = radius**2 * np.eye(m, dtype=LONG)
    best = Optimum(float(problem.value(*start)), x[: problem.dimension], -np.inf)
    value, bound = LONG(best.value), LONG(-np.inf)
    for _ in range(80 * m * (m + 1)):
        inside, f, g = problem(x[: problem.dimension])
        g = np.concatenate([g, 2 * x[problem.dimension :]])
        if inside:
            f = f + np.sum(x[problem.dimension :] ** 2)
            if f < value:
                value, best = f, Optimum(float(f), x[: problem.dimension].copy(), -np.inf)
        if not np.all(np.isfinite(g)) or not (f < np.inf or not inside):
            break
        Pg = P @ g
        length = np.sqrt(max(g @ Pg, LONG(0)))
        if length <= 0:
            bound = max(bound, f) if inside else bound
            break
        depth = LONG(0)
        if inside:
            bound = max(bound, f - length)
            depth = min((f - value) / length, LONG(0.999))
            if value - bound <= accuracy * max(abs(value), LONG(1e-300)):
                break
        Pg /= length
        x = x - (1 + m * depth) / (m + 1) * Pg
        P = (m * m * (1 - depth**2) / LONG(m * m - 1)) * (
            P - 2 * (1 + m * depth) / ((m + 1) * (1 + depth)) * np.outer(Pg, Pg)
        )
        P = (P + P.T) / 2
    return Optimum(float(value), best.x, float(bound))
