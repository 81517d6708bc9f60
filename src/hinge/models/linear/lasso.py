"""The lasso and its relatives."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np

from hinge._parameters import Constraints, at_least, numbers, shared
from hinge.models.base import is_column
from hinge.models.linear.base import LinearRegressor, elastic_penalty
from hinge.models.linear.certify import Certifiable
from hinge.models.linear.outputs import each_output, together
from hinge.problem.losses import Squared
from hinge.problem.objective import Objective, make_objective
from hinge.problem.penalties import GroupNorm, Penalty

GRAM_TOLERANCE = 1e-3  # for float32


class SquaredWithPenalty(Certifiable, LinearRegressor):
    """Minimises ½ Σ sᵢ (yᵢ − ⟨w, xᵢ⟩ − b)² / Σ sᵢ + Ω(w) for the penalty of a subclass."""

    _constant_tags: ClassVar[dict[str, bool]] = {"target_tags.multi_output": True}

    dual_gap_: Any
    joint = False  # whether the penalty couples the targets

    def _penalty(self) -> Penalty:
        raise NotImplementedError

    def _penalty_of_one(self) -> Penalty:
        """The penalty for a single target."""
        return self._penalty()

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        """Fit; a weight of 2 means the same as having the example twice.

        ``check_input`` is accepted for compatibility; the input is always checked.
        """
        column = is_column(y)
        X, y, weights = self._check(X, y, sample_weight, several=True)
        penalty = self._penalty_of_one() if y.ndim == 1 else self._penalty()
        objective = make_objective(X, y, Squared(), penalty, sample_weight=weights, fit_intercept=self.fit_intercept)
        self._check_gram(objective)
        if objective.outputs > 1 and not self.joint:
            results = each_output(objective, self._solve)
            result = together(objective, results)
            self.dual_gap_ = np.array([r.certificate.gap for r in results])
        else:
            result = self._solve(objective, self._warm_start(objective))
            self.dual_gap_ = result.certificate.gap
        self._adopt(result, X.dtype)
        self._show_as_column(column)
        return self

    def _check_gram(self, objective: Objective) -> None:
        """Reject a Gram matrix that is not that of X: the solver does not need it, but the argument is a mistake."""
        gram = getattr(self, "precompute", False)
        if isinstance(gram, bool | str):
            return
        design, d = objective.design, objective.d
        try:
            gram = np.asarray(gram, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"precompute={gram!r} must be True, False or the Gram matrix of X.") from error
        if gram.shape != (d, d):
            raise ValueError(f"The Gram matrix passed as precompute has shape {gram.shape}; expected {(d, d)}.")
        c = objective.n * objective.c
        means, squares = design.rmatmul(c) / objective.n, design.square_sums(c)
        if objective.fit_intercept and np.any(np.abs(means) > GRAM_TOLERANCE * np.sqrt(squares / objective.n)):
            warnings.warn(
                "Gram matrix was provided but X was centered to fit intercept: recomputing Gram matrix.", stacklevel=4
            )
            return
        column = int(np.argmax(squares))
        unit = np.zeros(d)
        unit[column] = 1.0
        expected = design.rmatmul(c * design.matmul(unit))
        if not np.allclose(gram[:, column], expected, rtol=0, atol=GRAM_TOLERANCE * squares[column]):
            raise ValueError(
                "Gram matrix passed in via precompute did not pass validation: it is not X'X (with weights, those that "
                f"sum to n) in column {column}. Leave precompute=False: the solver decides when a Gram matrix pays."
            )

    @property
    def sparse_coef_(self) -> Any:
        """``coef_`` as a sparse matrix."""
        import scipy.sparse

        return scipy.sparse.csr_array(np.atleast_2d(self.coef_))


class ElasticNet(SquaredWithPenalty):
    """Elastic net: minimises ‖y − Xw − b‖²/(2n) + α(ρ‖w‖₁ + (1−ρ)/2·‖w‖²); weights sᵢ replace 1/n by sᵢ/Σs.

    Parameters
    ----------
    alpha : float
        The strength α ≥ 0.
    l1_ratio : float
        The share ρ of the L1 penalty: 1 is the lasso, 0 is ridge.
    fit_intercept : bool
        Whether there is a bias b; it is not penalised.
    precompute, copy_X, selection
        Accepted for compatibility: the solver decides for itself when Gram matrices pay, and X is never changed.
    max_iter : int, optional
        A limit on iterations; each solver has its own default.
    tol : float
        The relative duality gap to reach.
    warm_start : bool
        Begin at the weights of the last fit.
    positive : bool
        Only weights ≥ 0 are allowed.
    random_state : int, optional
        The seed of stochastic solvers.
    solver : str
        "auto" or the name of a solver.

    Attributes
    ----------
    coef_, sparse_coef_, intercept_, n_iter_, dual_gap_ : as in scikit-learn
        The duality gap is that of the stated objective.
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> hg.Lasso(alpha=0.5).fit(X, X @ [2.0, 0.25]).coef_.round(6)
    array([1.5, 0. ])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("l1_ratio", "positive", "selection"),
        "alpha": [at_least(0)],
        "precompute": ["boolean", "array-like"],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        precompute: Any = False,
        max_iter: int | None = None,
        copy_X: bool = True,
        tol: float = 1e-6,
        warm_start: bool = False,
        positive: bool = False,
        random_state: int | None = None,
        selection: str = "cyclic",
        solver: Any = "auto",
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.copy_X = copy_X
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.solver = solver

    def _penalty(self) -> Penalty:
        return elastic_penalty(float(self.alpha), self.l1_ratio, positive=self.positive)


class Lasso(ElasticNet):
    """The lasso: minimises ‖y − Xw − b‖²/(2n) + α‖w‖₁; weights sᵢ replace 1/n by sᵢ/Σs.

    At the optimum |⟨x_j, y − Xw − b⟩|/n = α where w_j ≠ 0 and ≤ α where w_j = 0. Attributes are those
    of :class:`ElasticNet`.

    Parameters
    ----------
    alpha, fit_intercept, precompute, copy_X, max_iter, tol, warm_start, positive, random_state, selection, solver
        As in :class:`ElasticNet`; ``alpha=0`` is least squares.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        precompute: Any = False,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-6,
        warm_start: bool = False,
        positive: bool = False,
        random_state: int | None = None,
        selection: str = "cyclic",
        solver: Any = "auto",
    ) -> None:
        super().__init__(
            alpha=alpha, l1_ratio=1.0, fit_intercept=fit_intercept, precompute=precompute, max_iter=max_iter,
            copy_X=copy_X, tol=tol, warm_start=warm_start, positive=positive, random_state=random_state,
            selection=selection, solver=solver,
        )  # fmt: skip


class GroupLasso(SquaredWithPenalty):
    """Group lasso: minimises ‖y − Xw − b‖²/(2n) + α Σ_G c_G ‖w_G‖₂: groups of features enter or stay out together.

    Parameters
    ----------
    groups : array of d labels, optional
        The group of every feature; every feature is its own group if absent.
    alpha : float
        The strength α ≥ 0.
    group_weights : array with one number per distinct label (in sorted order), optional
        The factors c_G; the square root of the group's size if absent.
    fit_intercept, max_iter, tol, warm_start, random_state, solver
        As in :class:`ElasticNet`.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = hg.GroupLasso([0, 0, 1, 1], alpha=0.1).fit(X, X[:, 0])
    >>> np.abs(model.coef_[2:])
    array([0., 0.])
    """

    joint = True

    _parameter_constraints: ClassVar[Constraints] = {
        "groups": ["array-like", None],
        "alpha": [at_least(0)],
        "group_weights": [numbers(0), None],
    }

    def __init__(
        self,
        groups: Any = None,
        *,
        alpha: float = 1.0,
        group_weights: Any = None,
        fit_intercept: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-6,
        warm_start: bool = False,
        random_state: int | None = None,
        solver: Any = "auto",
    ) -> None:
        self.groups = groups
        self.alpha = alpha
        self.group_weights = group_weights
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.solver = solver

    def _penalty(self) -> Penalty:
        return GroupNorm(float(self.alpha), self.groups, self.group_weights)
