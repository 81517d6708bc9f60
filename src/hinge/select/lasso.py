"""The lasso and the elastic net with strengths chosen by cross-validation along warm-started paths."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import check_cv

from hinge._native import Design
from hinge._parameters import Constraints, above, between, count, numbers, one_of, shared
from hinge.models.base import is_column
from hinge.models.linear.base import LinearRegressor, elastic_penalty
from hinge.models.linear.certify import CertifiedAs
from hinge.models.linear.lasso import ElasticNet
from hinge.models.routing import Arguments, consumes, folds_of, route, router
from hinge.problem.losses import Squared
from hinge.problem.objective import Objective, make_objective
from hinge.problem.penalties import Penalty
from hinge.select.choice import choose_candidate
from hinge.select.path import path_weights, solve_path, strength_grid
from hinge.solvers.run import warn_unless_met


class ElasticNetCV(CertifiedAs, LinearRegressor):
    """The elastic net, ‖y − Xw − b‖²/(2n) + α(ρ‖w‖₁ + (1−ρ)/2·‖w‖²), with α and ρ chosen by cross-validation.

    Parameters
    ----------
    l1_ratio : float or list of floats
        The candidates for ρ.
    eps : float
        The smallest α as a fraction of the largest, where all weights are zero.
    alphas : int or array
        How many strengths per ρ, or the strengths.
    fit_intercept : bool
        Whether there is a bias b; it is not penalised.
    max_iter : int, optional
        A limit on iterations.
    tol : float
        The relative duality gap to reach.
    cv : int, splitter or iterable, optional
        Five folds if absent.
    positive : bool
        Only weights ≥ 0 are allowed.
    rule : {"best", "one-standard-error"}
        The best α, or the largest whose error is within one standard error of the best.
    solver : str
        "auto" or the name of a solver.
    precompute, copy_X, verbose, n_jobs, random_state, selection
        Accepted for compatibility.

    Attributes
    ----------
    alpha_, l1_ratio_, coef_, intercept_, n_iter_, dual_gap_, alphas_, mse_path_ : as in scikit-learn
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 8))
    >>> model = hg.LassoCV().fit(X, 3 * X[:, 0] + rng.normal(size=60))
    >>> int(np.argmax(np.abs(model.coef_)))
    0
    """

    several = False  # whether there may be several targets

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("cv", "positive", "selection", "rule"),
        "l1_ratio": [between(0, 1), numbers(0, flat=True)],
        "eps": [above(0)],
        "alphas": [count(), numbers(0, flat=True)],
        "precompute": ["boolean", one_of("auto"), "array-like"],
    }

    def __init__(
        self,
        *,
        l1_ratio: Any = 0.5,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        precompute: Any = "auto",
        max_iter: int | None = None,
        tol: float = 1e-6,
        cv: Any = None,
        copy_X: bool = True,
        verbose: Any = 0,
        n_jobs: int | None = None,
        positive: bool = False,
        random_state: int | None = None,
        selection: str = "cyclic",
        rule: str = "best",
        solver: Any = "auto",
    ) -> None:
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.copy_X = copy_X
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.rule = rule
        self.solver = solver

    def get_metadata_routing(self) -> Any:
        """The splitter receives the arguments of ``fit`` that it has requested."""
        return router(self, splitter=(check_cv(self.cv), {"fit": "split"}))

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> ElasticNetCV:
        """Choose α and ρ and fit with them to all data; ``params`` are passed to the splitter if routing is enabled."""
        weighs = sample_weight is not None and consumes(check_cv(self.cv), "split", "sample_weight")
        routed = route(self, "fit", params, **({"sample_weight": sample_weight} if weighs else {}))
        column = is_column(y)
        X, y, weights = self._check(X, y, sample_weight, several=self.several)
        ratios = np.atleast_1d(self.l1_ratio).astype(float)
        full = [self._objective(X, y, weights, ratio) for ratio in ratios]
        grids = [self._grid(objective) for objective in full]
        errors, shares = self._errors(X, y, weights, ratios, grids, routed.splitter.split)  # ρ × α × folds
        flat = errors.reshape(-1, errors.shape[-1])
        strengths = np.concatenate(grids)
        choice = choose_candidate(flat, -strengths * np.repeat(ratios, len(grids[0])), shares)
        at, position = divmod(choice.pick(self.rule), len(grids[0]))
        self.l1_ratio_, self.alpha_ = float(ratios[at]), float(grids[at][position])
        result = solve_path(full[at], [self.alpha_], tol=self.tol, max_iter=self.max_iter, solver=self.solver)[0]
        if self.solver == "auto":  # other solvers have warned already
            warn_unless_met(result.certificate)
        self._adopt(result, X.dtype)
        self._show_as_column(column and self.columns_stay)
        self.dual_gap_ = result.certificate.gap
        several = np.ndim(self.l1_ratio) > 0
        self.alphas_ = np.array(grids) if several and np.ndim(self.alphas) == 0 else grids[0]
        self.mse_path_ = errors if several else errors[0]
        return self

    def _chosen(self) -> Any:
        return ElasticNet(
            self.alpha_, l1_ratio=self.l1_ratio_, fit_intercept=self.fit_intercept, positive=self.positive, tol=self.tol
        )

    def _objective(self, X: Any, y: np.ndarray, weights: np.ndarray | None, ratio: float) -> Objective:
        return make_objective(
            X, y, Squared(), self._penalty(ratio, y), sample_weight=weights, fit_intercept=self.fit_intercept
        )

    def _penalty(self, ratio: float, y: np.ndarray) -> Penalty:
        return elastic_penalty(1.0, ratio, positive=self.positive)

    def _grid(self, objective: Objective) -> np.ndarray:
        if np.ndim(self.alphas) == 0:
            return strength_grid(objective, self.eps, int(self.alphas))
        return np.sort(np.asarray(self.alphas, dtype=np.float64))[::-1]

    def _errors(
        self, X: Any, y: np.ndarray, weights: np.ndarray | None, ratios: np.ndarray, grids: list[np.ndarray],
        split: Arguments,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Mean squared errors, ρ × α × folds, and the weight of every fold."""
        rows = X.tocsr() if hasattr(X, "tocsr") else X
        s = np.ones(len(y)) if weights is None else weights
        folds, shares = [], []
        for train, test in folds_of(self.cv, X, y, split):
            if not np.any(s[test] > 0) or not np.any(s[train] > 0):
                continue
            design, c = Design(rows[test]), s[test] / s[test].sum()
            fold = []
            for ratio, grid in zip(ratios, grids):
                objective = self._objective(rows[train], y[train], s[train], ratio)
                W, B = path_weights(objective, grid, tol=self.tol, max_iter=self.max_iter, solver=self.solver)
                scores = design.matmul(W.reshape(len(W), -1)).reshape(-1, *W.shape[1:])
                with np.errstate(over="ignore"):
                    squares = (y[test][..., None] - scores - B) ** 2  # examples × targets, if several, × α
                    fold.append(c @ (squares.mean(axis=1) if squares.ndim == 3 else squares))
            folds.append(fold)
            shares.append(s[test].sum())
        if not folds:
            raise ValueError(
                "sample_weight leaves no fold with examples to learn from and to judge by; use another cv."
            )
        return np.array(folds).transpose(1, 2, 0), np.array(shares)


class LassoCV(ElasticNetCV):
    """The lasso, ‖y − Xw − b‖²/(2n) + α‖w‖₁, with α chosen by cross-validation; see :class:`ElasticNetCV`.

    Parameters
    ----------
    eps, alphas, fit_intercept, precompute, max_iter, tol, copy_X, cv, verbose, n_jobs, positive, random_state,
    selection, rule, solver
        As for :class:`ElasticNetCV`.
    """

    def __init__(
        self,
        *,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        precompute: Any = "auto",
        max_iter: int | None = None,
        tol: float = 1e-6,
        copy_X: bool = True,
        cv: Any = None,
        verbose: Any = False,
        n_jobs: int | None = None,
        positive: bool = False,
        random_state: int | None = None,
        selection: str = "cyclic",
        rule: str = "best",
        solver: Any = "auto",
    ) -> None:
        super().__init__(
            l1_ratio=1.0, eps=eps, alphas=alphas, fit_intercept=fit_intercept, precompute=precompute,
            max_iter=max_iter, tol=tol, cv=cv, copy_X=copy_X, verbose=verbose, n_jobs=n_jobs, positive=positive,
            random_state=random_state, selection=selection, rule=rule, solver=solver,
        )  # fmt: skip
