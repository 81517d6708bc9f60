"""The multi-task lasso and elastic net with strengths chosen by cross-validation."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from hinge.models.linear.base import elastic_penalty
from hinge.models.linear.multitask import MultiTaskElasticNet, row_penalty
from hinge.problem.penalties import Penalty
from hinge.select.lasso import ElasticNetCV


class MultiTaskElasticNetCV(ElasticNetCV):
    """:class:`MultiTaskElasticNet`, ‖Y − XW − b‖²/(2n) + α(ρ Σ_j ‖w_j‖₂ + (1−ρ)/2·‖W‖²), with α and ρ chosen by folds.

    Attributes are those of :class:`ElasticNetCV`; the error of a fold is the mean over its examples and targets.

    Parameters
    ----------
    l1_ratio, eps, alphas, fit_intercept, max_iter, tol, cv, copy_X, verbose, n_jobs, random_state, selection, rule,
    solver
        As for :class:`ElasticNetCV`; ρ is the share of the norms of rows.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5))
    >>> model = hg.MultiTaskLassoCV(alphas=10).fit(X, X[:, :2] + 0.1 * rng.normal(size=(60, 2)))
    >>> model.coef_.shape, model.mse_path_.shape
    ((2, 5), (10, 5))
    """

    _constant_tags: ClassVar[dict[str, bool]] = {"target_tags.multi_output": True}

    columns_stay = several = True

    def __init__(
        self,
        *,
        l1_ratio: Any = 0.5,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-6,
        cv: Any = None,
        copy_X: bool = True,
        verbose: Any = 0,
        n_jobs: int | None = None,
        random_state: int | None = None,
        selection: str = "cyclic",
        rule: str = "best",
        solver: Any = "auto",
    ) -> None:
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.copy_X = copy_X
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.selection = selection
        self.rule = rule
        self.solver = solver

    def _chosen(self) -> Any:
        return MultiTaskElasticNet(self.alpha_, l1_ratio=self.l1_ratio_, fit_intercept=self.fit_intercept, tol=self.tol)

    def _penalty(self, ratio: float, y: np.ndarray) -> Penalty:
        return row_penalty(1.0, ratio) if y.ndim == 2 else elastic_penalty(1.0, ratio)


class MultiTaskLassoCV(MultiTaskElasticNetCV):
    """:class:`MultiTaskLasso`, ‖Y − XW − b‖²/(2n) + α Σ_j ‖w_j‖₂, with α chosen by folds: see :class:`ElasticNetCV`.

    Parameters
    ----------
    eps, alphas, fit_intercept, max_iter, tol, cv, copy_X, verbose, n_jobs, random_state, selection, rule, solver
        As for :class:`ElasticNetCV`.
    """

    def __init__(
        self,
        *,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-6,
        copy_X: bool = True,
        cv: Any = None,
        verbose: Any = False,
        n_jobs: int | None = None,
        random_state: int | None = None,
        selection: str = "cyclic",
        rule: str = "best",
        solver: Any = "auto",
    ) -> None:
        super().__init__(
            l1_ratio=1.0, eps=eps, alphas=alphas, fit_intercept=fit_intercept, max_iter=max_iter, tol=tol, cv=cv,
            copy_X=copy_X, verbose=verbose, n_jobs=n_jobs, random_state=random_state, selection=selection, rule=rule,
            solver=solver,
        )  # fmt: skip
