"""Several targets that share their features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hinge._parameters import Constraints, at_least, shared
from hinge.models.linear.base import elastic_penalty
from hinge.models.linear.lasso import SquaredWithPenalty
from hinge.problem.penalties import GroupNorm, Penalty, Rows


@dataclass(frozen=True)
class RowNorms(Penalty):
    """Ω = λ Σ_j (ρ‖w_j‖₂ + (1−ρ)/2·‖w_j‖²) over the rows w_j of d × k weights."""

    lam: float = 1.0
    l1_ratio: float = 0.5

    @property
    def _rows(self) -> GroupNorm:
        return GroupNorm(self.lam * self.l1_ratio)

    @property
    def _ridge(self) -> float:
        return self.lam * (1.0 - self.l1_ratio)

    def value(self, w: np.ndarray) -> float:
        return self._rows.value(w) + 0.5 * self._ridge * float(np.sum(w**2))

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        shrink = 1.0 + step * self._ridge
        return self._rows.prox(v, step) / shrink

    def conjugate(self, g: np.ndarray) -> float:
        norms = np.linalg.norm(g.reshape(len(g), -1), axis=1)
        excess = np.maximum(norms - self.lam * self.l1_ratio, 0.0)
        if self._ridge == 0:
            return 0.0 if np.all(excess <= 1e-12 * self.lam) else np.inf
        return float(np.sum(excess**2)) / (2.0 * self._ridge)

    def dual_scale(self, g: np.ndarray) -> float:
        return self._rows.dual_scale(g) if self._ridge == 0 else 1.0

    def rows(self, d: int) -> Rows:
        return Rows(np.full(d, self.lam * self.l1_ratio), np.full(d, self._ridge))

    def subdifferential_distance(self, w: np.ndarray, g: np.ndarray) -> np.ndarray:
        return self._rows.subdifferential_distance(w, g + self._ridge * w)

    def lambda_max(self, g: np.ndarray) -> float:
        norms = np.linalg.norm(g.reshape(len(g), -1), axis=1)
        return float(np.max(norms, initial=0.0)) / self.l1_ratio if self.l1_ratio > 0 else np.inf


def row_penalty(strength: float, ratio: float) -> Penalty:
    """λ Σ_j (ρ‖w_j‖₂ + (1−ρ)/2·‖w_j‖²) as the simplest penalty that equals it."""
    if ratio == 0:
        return elastic_penalty(strength)
    if not 0 < ratio <= 1:
        raise ValueError(f"l1_ratio must lie between 0 and 1, got {ratio!r}.")
    return GroupNorm(strength) if ratio == 1 else RowNorms(strength, ratio)


class MultiTaskElasticNet(SquaredWithPenalty):
    """Multi-task elastic net: minimises ‖Y − XW − b‖²/(2n) + α(ρ Σ_j ‖w_j‖₂ + (1−ρ)/2·‖W‖²), w_j the weights of x_j.

    A feature is used for all targets or for none.

    Parameters
    ----------
    alpha : float
        The strength α ≥ 0.
    l1_ratio : float
        The share ρ of the norms of rows.
    fit_intercept, copy_X, max_iter, tol, warm_start, random_state, selection, solver
        As in :class:`ElasticNet`.

    Attributes
    ----------
    coef_, intercept_, n_iter_, dual_gap_ : as in scikit-learn
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> Y = np.column_stack([X[:, 0], 2 * X[:, 0]])
    >>> bool(np.all(hg.MultiTaskLasso(alpha=0.5).fit(X, Y).coef_[:, 1:] == 0))
    True
    """

    joint = columns_stay = True

    _parameter_constraints: ClassVar[Constraints] = {**shared("l1_ratio", "selection"), "alpha": [at_least(0)]}

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-6,
        warm_start: bool = False,
        random_state: int | None = None,
        selection: str = "cyclic",
        solver: Any = "auto",
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.selection = selection
        self.solver = solver

    def _penalty(self) -> Penalty:
        return row_penalty(float(self.alpha), self.l1_ratio)

    def _penalty_of_one(self) -> Penalty:
        """The norm of a row with one entry is its absolute value."""
        return elastic_penalty(float(self.alpha), self.l1_ratio)


class MultiTaskLasso(MultiTaskElasticNet):
    """Multi-task lasso: minimises ‖Y − XW − b‖²/(2n) + α Σ_j ‖w_j‖₂; :class:`MultiTaskElasticNet` with ρ = 1.

    Parameters
    ----------
    alpha : float
        The strength α ≥ 0.
    fit_intercept, copy_X, max_iter, tol, warm_start, random_state, selection, solver
        As in :class:`ElasticNet`.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-6,
        warm_start: bool = False,
        random_state: int | None = None,
        selection: str = "cyclic",
        solver: Any = "auto",
    ) -> None:
        super().__init__(
            alpha, l1_ratio=1.0, fit_intercept=fit_intercept, copy_X=copy_X, max_iter=max_iter, tol=tol,
            warm_start=warm_start, random_state=random_state, selection=selection, solver=solver,
        )  # fmt: skip
