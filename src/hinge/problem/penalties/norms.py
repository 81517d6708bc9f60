"""Penalties that couple weights: balls, groups, the largest weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hinge.problem.penalties.base import Array, Penalty, Rows, check_strength

LARGEST = 1e-9  # weights within this fraction of the largest count as equally large


def project_simplex_sum(v: Array, total: float) -> Array:
    """The projection of v onto {w ≥ 0, Σw = total}: subtract a threshold and clip at zero."""
    ordered = np.sort(v)[::-1]
    ranks = np.arange(1, len(v) + 1)
    means = np.cumsum(ordered) / ranks
    # The largest entry is always kept, even if rounding leaves only its difference from the others.
    count = np.flatnonzero(ordered - means > -total / ranks)[-1:]
    last = int(count[0]) if len(count) else 0
    return np.maximum((v - means[last]) + total / ranks[last], 0.0)


def project_l1_ball(v: Array, radius: float) -> Array:
    """The projection of v onto {‖w‖₁ ≤ radius}."""
    size = np.abs(v)
    if size.sum() <= radius:
        return v.copy()
    if radius == 0:
        return np.zeros_like(v)
    return np.sign(v) * project_simplex_sum(size.ravel(), radius).reshape(v.shape)


@dataclass(frozen=True)
class _Ball(Penalty):
    """Ω = 0 if ‖w‖ ≤ radius, +∞ otherwise (Ivanov's form); its conjugate is radius times the dual norm."""

    radius: float = 1.0

    def __post_init__(self) -> None:
        check_strength(self.radius, "radius")

    def _norm(self, w: Array) -> float:
        raise NotImplementedError

    def value(self, w: Array) -> float:
        return 0.0 if self._norm(w) <= self.radius * (1.0 + 1e-9) else np.inf

    def _slack(self, w: Array, t: float) -> float:
        """t(1 − ‖w‖/r): a multiplier t > 0 needs weights on the sphere.

        With it the distance is continuous in w and bounds the objective: for v with ‖v‖ ≤ r the distance is at least
        ⟨−g, v − w⟩ divided by ‖v − w‖₁ + r.
        """
        return t * max(1.0 - self._norm(w) / self.radius, 0.0)

    def lambda_max(self, g: Array) -> float:
        """A constraint has no strength: 0 if w = 0 is optimal, infinity if not."""
        return 0.0 if self.radius == 0 or not np.any(g) else np.inf


@dataclass(frozen=True)
class L1Ball(_Ball):
    """‖w‖₁ ≤ radius: the lasso as a constraint.

    Parameters
    ----------
    radius : float
        The most that the absolute weights may add up to; above zero.
    """

    ball: ClassVar[str | None] = "l1"

    def _norm(self, w: Array) -> float:
        return float(np.abs(w).sum())

    def prox(self, v: Array, step: float) -> Array:
        return project_l1_ball(v, self.radius)

    def conjugate(self, g: Array) -> float:
        return self.radius * float(np.max(np.abs(g), initial=0.0))

    def subdifferential_distance(self, w: Array, g: Array) -> Array:
        """The distance from the cone {v : v_j = t sign(w_j) where w_j ≠ 0, |v_j| ≤ t elsewhere}, t ≥ 0, and t(1 − ‖w‖₁/r)."""
        if self.radius == 0:
            return np.zeros_like(g)
        t = max(-float(np.sum(g * w)), 0.0) / max(self._norm(w), np.finfo(float).tiny)
        return np.where(w != 0, np.abs(g + t * np.sign(w)), np.maximum(np.abs(g) - t, 0.0)) + self._slack(w, t)


@dataclass(frozen=True)
class L2Ball(_Ball):
    """‖w‖₂ ≤ radius: ridge as a constraint.

    Parameters
    ----------
    radius : float
        The most that the Euclidean length of w may be; above zero.
    """

    ball: ClassVar[str | None] = "l2"

    def _norm(self, w: Array) -> float:
        return float(np.linalg.norm(w))

    def prox(self, v: Array, step: float) -> Array:
        size = np.linalg.norm(v)
        return v.copy() if size <= self.radius else v * (self.radius / size)

    def conjugate(self, g: Array) -> float:
        return self.radius * float(np.linalg.norm(g))

    def subdifferential_distance(self, w: Array, g: Array) -> Array:
        """The distance from the cone {t w/‖w‖₂, t ≥ 0}, and t(1 − ‖w‖₂/r)."""
        if self.radius == 0:
            return np.zeros_like(g)
        direction = w / max(self._norm(w), np.finfo(float).tiny)
        t = max(-float(np.sum(g * direction)), 0.0)
        return np.abs(g + t * direction) + self._slack(w, t)


@dataclass(frozen=True)
class MaxNorm(Penalty):
    """Ω = λ max_j |w_j|. By Moreau's identity its prox is v minus the projection of v on an L1 ball.

    Parameters
    ----------
    lam : float
        The strength λ ≥ 0.
    """

    lam: float = 1.0

    def __post_init__(self) -> None:
        check_strength(self.lam)

    def value(self, w: Array) -> float:
        return self.lam * float(np.max(np.abs(w), initial=0.0))

    def prox(self, v: Array, step: float) -> Array:
        return v - project_l1_ball(v, step * self.lam)

    def conjugate(self, g: Array) -> float:
        return 0.0 if np.abs(g).sum() <= self.lam * (1.0 + 1e-12) else np.inf

    def dual_scale(self, g: Array) -> float:
        total = np.abs(g).sum()
        return 1.0 if total <= self.lam else float(self.lam / total)

    def subdifferential_distance(self, w: Array, g: Array) -> Array:
        """The distance from {λ p∘sign(w) : p ≥ 0, Σp = 1, p = 0 except at the largest weights}; at w = 0 from {Σ|v_j| ≤ λ}."""
        if not np.any(w):
            return np.abs(g + project_l1_ball(-g, self.lam))
        at = np.abs(w) >= (1.0 - LARGEST) * np.max(np.abs(w))
        distance = np.abs(g)
        pull = -g[at] * np.sign(w[at])
        distance[at] = np.abs(pull - project_simplex_sum(pull, self.lam))
        return distance

    def lambda_max(self, g: Array) -> float:
        return float(np.abs(g).sum())


@dataclass(frozen=True)
class GroupNorm(Penalty):
    """Ω = λ Σ_G c_G ‖w_G‖₂: the features of a group are selected together.

    Parameters
    ----------
    lam : float
        The strength λ.
    groups : array of d labels, optional
        The group of every feature. If absent, every feature is its own group: with several outputs the rows of w,
        which is the multi-task lasso.
    weights : array with one number per distinct label (in sorted order), optional
        The factors c_G; the square root of the group's size if absent (1 for groups of one).
    """

    lam: float = 1.0
    groups: Any = None
    weights: Any = None

    def __post_init__(self) -> None:
        check_strength(self.lam)

    def _layout(self, w: Array) -> tuple[np.ndarray, Array]:
        d = w.shape[0]
        if self.groups is None:
            codes, sizes = np.arange(d), np.ones(d)
        else:
            labels = np.asarray(self.groups)
            if labels.shape != (d,):
                raise ValueError(f"groups has shape {labels.shape}; expected ({d},), one label per feature.")
            _, codes = np.unique(labels, return_inverse=True)
            sizes = np.bincount(codes).astype(np.float64)
        factor = np.sqrt(sizes) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        if factor.shape != sizes.shape:
            raise ValueError(f"weights has shape {factor.shape}; expected {sizes.shape}, one per group.")
        return codes, factor

    def _norms(self, w: Array, codes: np.ndarray) -> Array:
        squares = w**2 if w.ndim == 1 else (w**2).sum(axis=1)
        return np.sqrt(np.bincount(codes, weights=squares))

    def _spread(self, per_group: Array, codes: np.ndarray, w: Array) -> Array:
        per_feature = per_group[codes]
        return per_feature if w.ndim == 1 else per_feature[:, None]

    def value(self, w: Array) -> float:
        codes, factor = self._layout(w)
        return self.lam * float(factor @ self._norms(w, codes))

    def prox(self, v: Array, step: float) -> Array:
        codes, factor = self._layout(v)
        norms = self._norms(v, codes)
        keep = np.maximum(1.0 - step * self.lam * factor / np.where(norms > 0, norms, 1.0), 0.0)
        return v * self._spread(keep, codes, v)

    def conjugate(self, g: Array) -> float:
        codes, factor = self._layout(g)
        return 0.0 if np.all(self._norms(g, codes) <= self.lam * factor * (1.0 + 1e-12)) else np.inf

    def dual_scale(self, g: Array) -> float:
        codes, factor = self._layout(g)
        norms = self._norms(g, codes)
        over = norms > self.lam * factor
        return float(np.min(self.lam * factor[over] / norms[over], initial=1.0))

    def rows(self, d: int) -> Rows | None:
        return None if self.groups is not None else Rows(self.lam * self._layout(np.empty(d))[1], np.zeros(d))

    def subdifferential_distance(self, w: Array, g: Array) -> Array:
        """One distance per group."""
        codes, factor = self._layout(w)
        norms = self._norms(w, codes)
        direction = w / np.where(self._spread(norms, codes, w) > 0, self._spread(norms, codes, w), 1.0)
        inside = np.maximum(self._norms(g, codes) - self.lam * factor, 0.0)
        active = self._norms(g + self.lam * self._spread(factor, codes, w) * direction, codes)
        return np.where(norms > 0, active, inside)

    def sizes_of_distances(self, sizes: Array) -> Array:
        """Those of the largest column of each group."""
        codes, factor = self._layout(sizes)
        largest = np.zeros(len(factor))
        np.maximum.at(largest, codes, sizes)
        return largest

    def lambda_max(self, g: Array) -> float:
        codes, factor = self._layout(g)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = self._norms(g, codes) / factor
        return float(np.nanmax(ratios, initial=0.0))
