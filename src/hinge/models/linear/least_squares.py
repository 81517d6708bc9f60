"""Least squares and ridge regression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from hinge._cached import cached_property
from hinge._native import Design
from hinge._parameters import Constraints, at_least, numbers, shared
from hinge.models.base import check_predict, is_column
from hinge.models.linear.base import LinearRegressor
from hinge.models.linear.certify import Certifiable
from hinge.models.linear.inference import Inference, infer
from hinge.models.linear.outputs import solve_each_output
from hinge.problem.losses import Squared
from hinge.problem.numerics import weighted_sum
from hinge.problem.objective import make_objective
from hinge.problem.penalties import L2, Box, NoPenalty
from hinge.solvers.closed_form import Centred
from hinge.solvers.run import MODERATE

# For sparse matrices with more features inference_, rank_ and singular_ are not computed.
KEPT_FEATURES = 1000


class LinearRegression(Certifiable, LinearRegressor):
    """Least squares: minimises ½ Σ sᵢ (yᵢ − ⟨w, xᵢ⟩ − b)² / Σ sᵢ.

    If the minimiser is not unique, the one of least norm is returned. At the optimum the errors are orthogonal to every
    linear function of the inputs.

    Parameters
    ----------
    fit_intercept : bool
        Whether there is a bias b.
    copy_X, n_jobs
        Accepted for compatibility; X is never changed, and threads are set by ``hinge.set_num_threads``.
    tol : float
        The relative duality gap to reach (used with ``positive`` only; otherwise the solution is exact).
    positive : bool
        Only weights ≥ 0 are allowed.

    Attributes
    ----------
    coef_, intercept_ : weights and bias; one row of weights per target if y has several columns
    inference_ : Inference
        Standard errors, t- and p-values, confidence intervals (one target, no sign constraint, no more features than
        examples, and at most 1000 features if X is sparse).
    rank_, singular_ : int and array
        Rank and singular values of √S X, centred if there is a bias (where there is ``inference_``).
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> x = np.arange(6.0)[:, None]
    >>> model = hg.LinearRegression().fit(x, [1.1, 2.9, 5.2, 6.8, 9.1, 10.9])
    >>> print(model.coef_.round(3), round(float(model.inference_.p[1]), 8))
    [1.977] 9.8e-07
    >>> mean, low, high = model.predict([[7.0]], interval=0.95)
    """

    columns_stay = True

    ridge_form = True

    _parameter_constraints: ClassVar[Constraints] = shared("positive")

    _constant_tags: ClassVar[dict[str, bool]] = {"target_tags.multi_output": True}

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        positive: bool = False,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.tol = tol
        self.n_jobs = n_jobs
        self.positive = positive

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearRegression:
        """Fit by least squares; a weight of 2 means the same as having the example twice."""
        column = is_column(y)
        X, y, weights = self._check(X, y, sample_weight, several=True)
        objective = make_objective(
            X, y, Squared(), Box() if self.positive else NoPenalty(),
            sample_weight=weights, fit_intercept=self.fit_intercept,
        )  # fmt: skip
        several = self.positive and objective.outputs > 1
        result = solve_each_output(objective, self._solve) if several else self._solve(objective)
        self._adopt(result, X.dtype)
        self._show_as_column(column)
        for late in ("inference_", "singular_"):
            self.__dict__.pop(late, None)
        self._moments: tuple[Any, ...] | None = None
        n, d = X.shape
        if y.ndim == 1 and not self.positive and (min(n, d) <= KEPT_FEATURES or not objective.design.sparse):
            problem = Centred(
                objective.design, objective.y, objective.c, self.fit_intercept, moments=lambda: objective.moments
            )
            rss = objective.weight_sum * float(
                weighted_sum(objective.c, problem.residual(result.w[:, None])[:, 0] ** 2)
            )
            gram = problem.gram() if d <= n else problem.dual_gram(np.ones(d))
            self._moments = (gram * objective.weight_sum, problem.centre, result, rss, objective.weight_sum)
        return self

    @cached_property
    def inference_(self) -> Inference:
        gram, x_mean, result, rss, total = self._kept_moments("inference_")
        if len(gram) < len(result.w):
            raise AttributeError(
                f"inference_ does not exist for {len(gram)} examples and {len(result.w)} features: with more features than "
                "examples many weights fit equally well, so that standard errors and p-values are not defined. Use fewer "
                "features, or Ridge or Lasso, whose penalty chooses among the weights."
            )
        names = tuple(getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(gram))]))
        return infer(gram, x_mean, result.w, float(result.b[0]), rss, total, names, fit_intercept=self.fit_intercept)

    @cached_property
    def singular_(self) -> np.ndarray:
        gram = self._kept_moments("singular_")[0]
        return np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[::-1], 0.0))

    @property
    def rank_(self) -> int:
        gram, _, result, _, _ = self._kept_moments("rank_")
        if len(gram) < len(result.w):
            return int(np.linalg.matrix_rank(gram, hermitian=True))
        return self.inference_.rank - int(self.fit_intercept)

    def _kept_moments(self, name: str) -> tuple[Any, ...]:
        moments = getattr(self, "_moments", None)
        if moments is None:
            raise AttributeError(
                f"{name} exists after fitting one target without positive=True, with at most {KEPT_FEATURES} features "
                "if X is sparse: the distribution of the weights has no closed form otherwise, or takes too much memory."
            )
        return moments

    def predict(self, X: Any, *, interval: float | None = None, kind: str = "prediction") -> Any:
        """The predicted targets, with interval bounds on request.

        Parameters
        ----------
        X : array of shape (n, d)
        interval : float, optional
            A level such as 0.95. Then the answer is (prediction, low, high).
        kind : {"prediction", "confidence"}
            Where a new target will lie, or where the mean of the targets lies.
        """
        if interval is None:
            return self._scores(X)
        if kind not in ("prediction", "confidence"):
            raise ValueError(f"kind must be 'prediction' or 'confidence', got {kind!r}.")
        scores, known = self._scores(X).ravel(), self.inference_
        design = Design(check_predict(self, X))
        if self.fit_intercept:
            V = design.matmul(known.covariance[1:, :]) + known.covariance[0]
            variance = V[:, 0] + _row_products(design, V[:, 1:])
        else:
            variance = _row_products(design, design.matmul(known.covariance))
        if kind == "prediction":
            variance = variance + known.sigma2
        half = known.quantile(interval) * np.sqrt(np.maximum(variance, 0.0))
        return scores, scores - half, scores + half


def _row_products(design: Design, V: np.ndarray) -> np.ndarray:
    """⟨xᵢ, vᵢ⟩ for every row."""
    X = design.source
    if design.sparse:
        return np.asarray(X.multiply(V).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, V)


class Ridge(Certifiable, LinearRegressor):
    """Ridge regression: minimises Σ sᵢ (yᵢ − ⟨w, xᵢ⟩ − b)² + α‖w‖².

    Parameters
    ----------
    alpha : float, or one number per target
        The strength α ≥ 0.
    fit_intercept : bool
        Whether there is a bias b; it is not penalised.
    copy_X : bool
        Accepted for compatibility; X is never changed.
    max_iter : int, optional
        A limit on iterations of iterative solvers.
    tol : float
        The relative duality gap to reach.
    solver : str
        "auto" or the name of a solver, ours or scikit-learn's; ``solver_`` shows which one ran.
    positive : bool
        Only weights ≥ 0 are allowed.
    random_state : int, optional
        The seed of stochastic solvers.

    Attributes
    ----------
    coef_, intercept_, n_iter_ : as in scikit-learn
    solver_ : str
        The solver that was used.
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> model = hg.Ridge(alpha=1.0).fit(np.array([[0.0], [1.0], [2.0]]), [0.0, 1.0, 2.0])
    >>> model.coef_.round(6)
    array([0.666667])
    """

    ridge_form = True

    _parameter_constraints: ClassVar[Constraints] = {**shared("positive"), "alpha": [at_least(0), numbers(0)]}

    _constant_tags: ClassVar[dict[str, bool]] = {"target_tags.multi_output": True}

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-6,
        solver: Any = "auto",
        positive: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.positive = positive
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Ridge:
        """Fit; a weight of 2 means the same as having the example twice."""
        options = {"ensure_all_finite": False} if self._sums_reveal_nonfinite(X, y, sample_weight) else {}
        column = is_column(y)
        X, y, weights = self._check(X, y, sample_weight, several=True, **options)
        objective = make_objective(X, y, Squared(), None, sample_weight=weights, fit_intercept=self.fit_intercept)
        alphas = np.unique(np.ravel(self.alpha).astype(np.float64))
        if np.size(self.alpha) not in (1, objective.outputs):
            raise ValueError(
                f"alpha has {np.size(self.alpha)} entries; expected 1 or {objective.outputs}, one per target."
            )
        if len(alphas) == 1:
            result = self._ridge(objective, float(alphas[0]))
        else:
            strengths = iter(np.ravel(self.alpha))
            result = solve_each_output(objective, lambda o: self._ridge(o, float(next(strengths))))
        self._adopt(result, X.dtype)
        self._show_as_column(column)
        return self

    def _sums_reveal_nonfinite(self, X: Any, y: Any, sample_weight: Any) -> bool:
        """Whether the sums of the closed form reveal NaN or infinity in X, so that X need not be checked beforehand."""
        plain = self.solver == "auto" and not self.positive and np.size(self.alpha) == 1 and sample_weight is None
        if not (plain and type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and np.ndim(y) == 1):
            return False
        return X.flags.c_contiguous and 0 < X.shape[1] <= min(X.shape[0], MODERATE)

    def _ridge(self, objective: Any, alpha: float) -> Any:
        lam = alpha / objective.weight_sum
        penalty = L2(lam, positive=self.positive) if self.positive or lam > 0 else NoPenalty()
        objective = replace(objective, penalty=penalty)
        one_by_one = objective.outputs > 1 and self.positive
        return solve_each_output(objective, self._solve) if one_by_one else self._solve(objective)
