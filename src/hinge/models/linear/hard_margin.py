"""The maximum-margin hyperplane."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.optimize
import scipy.sparse

from hinge._parameters import Constraints, one_of
from hinge.models.base import drop_absent, signs
from hinge.models.linear.svm import MarginClassifier
from hinge.problem.losses import Hinge
from hinge.problem.objective import Objective, make_objective
from hinge.problem.penalties import L2
from hinge.solvers.run import Result, solve
from hinge.solvers.scikit_learn_names import counterpart
from hinge.solvers.separation import Separation, separating_direction

# The soft margin with C equal to this many times the hard margin's largest α is the hard margin.
ROOM = 4.0
ROUNDS = 30


class NotSeparableError(ValueError):
    """No hyperplane separates the classes.

    Attributes
    ----------
    weights : array
        The proof: αᵢ ≥ 0, not all zero, with Σ αᵢ yᵢ xᵢ = 0 and Σ αᵢ yᵢ = 0 (the latter if there is a bias): a point
        that is a mixture of examples of both classes. Were yᵢ(⟨w, xᵢ⟩ + b) > 0 for all i, Σ αᵢ yᵢ(⟨w, xᵢ⟩ + b) would be
        positive and zero at once.
    examples : array of int
        Those with αᵢ > 0.
    """

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights
        self.examples = np.flatnonzero(weights > 1e-9)
        shown = ", ".join(map(str, self.examples[:6])) + (" …" if len(self.examples) > 6 else "")
        super().__init__(
            "No hyperplane separates the classes, so there is no hard margin: the convex hulls of the two classes meet "
            f"in a mixture of examples {shown} (see the weights of this error). Use LinearSVC for a soft margin."
        )


class MaxMarginClassifier(MarginClassifier):
    """Hard-margin support vector machine: minimises ½‖w‖² subject to yᵢ(⟨w, xᵢ⟩ + b) ≥ 1 for all i.

    Of all hyperplanes that separate two classes it is the one furthest from the nearest examples; the distance is
    ``geometric_margin_`` = 1/‖w‖. Data that cannot be separated raise :class:`NotSeparableError`, with a proof.

    Parameters
    ----------
    fit_intercept : bool
        Whether there is a bias; without one the hyperplane goes through the origin.
    inseparable : {"raise", "soft"}
        What to do with data that no hyperplane separates: raise the error, or fit a soft margin with C = 1 instead.
    tol : float
        The relative duality gap to reach.
    max_iter : int, optional
        A limit on iterations; each solver has its own default.
    solver : str
        "auto" or the name of a solver.

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_ : as in scikit-learn
    solver_ : str
        The solver that ran, by its name here.
    margins_ : array
        yᵢ f(xᵢ) of the training data, all at least 1 (to the tolerance).
    dual_coef_ : array
        αᵢ ≥ 0 with w = Σ αᵢ yᵢ xᵢ and Σ αᵢ yᵢ = 0.
    support_, n_support_ : arrays
        The examples with αᵢ > 0, which lie on the margin.
    geometric_margin_ : float
        1/‖w‖.
    separable_ : bool
        Whether the margin is hard.
    certificate_ : Certificate
        Of the soft-margin problem with so large a C that no slack is left, which has the same solution.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> model = hg.MaxMarginClassifier().fit(np.array([[-3.0], [-1.0], [2.0]]), [0, 0, 1])
    >>> round(float(model.geometric_margin_), 4), round(float(-model.intercept_[0] / model.coef_[0, 0]), 4)
    (1.5, 0.5)
    """

    _parameter_constraints: ClassVar[Constraints] = {"inseparable": [one_of("raise", "soft")]}

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        inseparable: str = "raise",
        tol: float = 1e-8,
        max_iter: int | None = None,
        solver: Any = "auto",
    ) -> None:
        self.fit_intercept = fit_intercept
        self.inseparable = inseparable
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MaxMarginClassifier:
        """Find the separating hyperplane of largest margin.

        A constraint cannot be weighted, so a hard margin distinguishes only zero weights (absent) from others; for the
        soft margin of ``inseparable="soft"`` a weight of 2 means the example twice.
        """
        X, codes, weights = self._check(X, y, sample_weight)
        if len(self.classes_) > 2:
            raise ValueError(
                f"Only binary classification is supported by MaxMarginClassifier; y has {len(self.classes_)} classes."
            )
        present = np.arange(len(codes)) if weights is None else np.flatnonzero(weights)
        result, scale = self._fit_present(*drop_absent(X, signs(codes), weights), present, len(codes))
        self._adopt(result, X.dtype)
        self._adopt_margins(X, codes, [result], scale)
        return self

    def _fit_present(
        self, X: Any, targets: np.ndarray, weights: np.ndarray | None, present: np.ndarray, n: int
    ) -> tuple[Result, np.ndarray]:
        """The solution for the examples present, and the bound Cᵢ on αᵢ of all n examples, zero for absent ones."""
        found = separating_direction(X, targets, fit_intercept=self.fit_intercept)
        self.separable_ = found is not None and found.complete
        if found is not None and found.complete:
            objective = make_objective(X, targets, Hinge(), L2(1.0), fit_intercept=self.fit_intercept)
            result, C = self._hard(objective, X, found)
            most = np.full(len(targets), C)
        elif self.inseparable == "soft":
            total = float(len(targets) if weights is None else weights.sum())
            objective = make_objective(
                X, targets, Hinge(), L2(1.0 / total), sample_weight=weights, fit_intercept=self.fit_intercept
            )
            result, most = self._solve(objective), np.ones(len(targets)) if weights is None else weights
        else:
            raise NotSeparableError(with_zeros(hull_weights(X, targets, fit_intercept=self.fit_intercept), present, n))
        if result.solution.dual is not None:
            dual = with_zeros(result.solution.dual, present, n)
            result = replace(result, solution=replace(result.solution, dual=dual))
        return result, with_zeros(most, present, n)

    def _hard(self, objective: Objective, X: Any, found: Separation) -> tuple[Result, float]:
        """The soft margin with growing C until every α is below C and no slack is used, and that C."""
        y = objective.y
        margins = y * (X @ found.direction + found.bias)
        # ½‖w‖² of a feasible w bounds Σα/2, so no α of the hard margin is above its ‖w‖².
        most = float(found.direction @ found.direction) / float(margins.min()) ** 2
        C = max(most / len(y), 1e-12)
        for _ in range(ROUNDS):
            lam = 1.0 / (C * len(y))
            result = solve(
                objective.with_penalty(L2(lam)),
                solver=counterpart(self.solver, objective),
                tol=self.tol,
                max_iter=self.max_iter,
                warn=False,
            )
            alphas = self._alphas(result, y, margins)
            slack = float(np.max(1.0 - y * objective.scores(result.w, result.b)))
            if slack <= 1e-5 and (alphas.max() < 1.0 - 1e-3 or most <= C):
                break
            C *= ROOM
        return result, C

    def _alphas(self, result: Result, y: np.ndarray, margins: np.ndarray) -> np.ndarray:
        u = result.solution.dual
        if u is None:
            u = Hinge().gradient(y, y * margins)
        return np.maximum(-y * u, 0.0)


def with_zeros(values: np.ndarray, present: np.ndarray, n: int) -> np.ndarray:
    """Values of the present examples, with zeros for the others."""
    full = np.zeros(n)
    full[present] = values
    return full


def hull_weights(X: Any, y: np.ndarray, *, fit_intercept: bool) -> np.ndarray:
    """α ≥ 0 with Σα = 1, Σ αᵢyᵢxᵢ = 0 and, with a bias, Σ αᵢyᵢ = 0: by a linear program."""
    n = len(y)
    rows = scipy.sparse.csr_array(X).T @ scipy.sparse.diags_array(y) if scipy.sparse.issparse(X) else (y[:, None] * X).T
    stack = scipy.sparse.vstack if scipy.sparse.issparse(rows) else np.vstack
    extra = [np.ones((1, n))] + ([y[None, :]] if fit_intercept else [])
    A = stack([rows, *extra])
    b = np.append(np.zeros(X.shape[1]), [1.0] + ([0.0] if fit_intercept else []))
    program = scipy.optimize.linprog(np.zeros(n), A_eq=A, b_eq=b, bounds=(0, None), method="highs")
    return program.x if program.status == 0 else np.zeros(n)
