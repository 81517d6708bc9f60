"""Support vector machines: SVC and SVR."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hinge._parameters import Constraints, at_least, between
from hinge.models.callbacks import with_callbacks
from hinge.models.kernel.svc_multiclass import SupportVectorClassifier
from hinge.models.kernel.svm_base import SupportVectorRegressor
from hinge.problem.certificates.kernel_machine import Dual, classification, regression
from hinge.problem.kernels import Kernel, Precomputed
from hinge.solvers.decomposition import DualSolution

Array = NDArray[np.float64]

# C = ∞ means a hard margin; a multiplier this large (in units of 1/k) shows that there is none ...
HARD = 1e8
# ... and so does a solver that is far from the optimum after this many batches.
HARD_BATCHES = 2000


def hard_bound(kernel: Kernel, X: Any) -> float:
    """A multiplier that is reached only if there is no hard margin, in units of 1/k(x, x)."""
    diagonal = np.diagonal(X) if isinstance(kernel, Precomputed) else kernel.diagonal(X[:200])
    return HARD / max(float(np.mean(diagonal)), 1e-300)


def refuse_without_margin(solution: DualSolution, upper: Array) -> None:
    """Raises an error unless a hard margin exists, that is, unless all multipliers are below their bound."""
    if np.max(solution.alpha) >= 0.99 * np.max(upper) or solution.error > 0.5:
        raise ValueError(
            "The classes cannot be separated in the space of this kernel, so there is no hard margin (C=inf). "
            "Use a finite C, or a richer kernel."
        )


class SVC(SupportVectorClassifier):
    """Support vector classification.

    Minimises  ½‖f‖² + C Σ sᵢ max(0, 1 − yᵢ(f(xᵢ) + b))  over f in the space of the kernel, bias unpenalised, y = ±1.
    Several classes: one machine for each pair ("ovo") or for each class against the rest ("ovr").

    Parameters
    ----------
    C : float
        How much errors cost; ``np.inf`` for a hard margin.
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian", "cosine", "precomputed"}, Kernel or function
        A name, any kernel expression such as ``hg.kernels.RBF(2.0) + hg.Linear()``, or a function of two arrays.
    degree : int
        The degree of ``kernel="poly"``.
    gamma : float, "scale" or "auto"
        The width or slope of kernels given by name: a number, 1/(d·var X), or 1/d.
    coef0 : float
        The constant of ``kernel="poly"`` and "sigmoid".
    shrinking : bool
        Leave out points that are settled until the rest has converged.
    probability : bool
        Fit Platt's sigmoid to held-out scores (5 folds), for ``predict_proba``.
    tol : float
        The relative duality gap to reach.
    cache_size : float
        Megabytes for kernel rows.
    class_weight : dict or "balanced", optional
        Factors on C per class.
    max_iter : int
        A limit on batches of the solver; −1 for none.
    decision_function_shape : {"ovr", "ovo"}
        Whether ``decision_function`` has a column per class or per pair of classes.
    break_ties : bool
        Whether the sum of scores decides between classes that win as many pairs; otherwise the first of them is
        predicted, as in scikit-learn.
    random_state : int, optional
        Seed of the folds for ``probability``.
    verbose : bool
        Kept for scikit-learn; ``set_callbacks(ProgressBar())`` shows progress.
    multi_class : {"ovo", "ovr"}
        How several classes are reduced to two.

    Attributes
    ----------
    classes_ : array
        The labels.
    support_, support_vectors_ : arrays
        Numbers and rows of the training examples the function depends on.
    n_support_ : array
        How many of them there are in each class.
    dual_coef_ : array
        αⱼyⱼ of the support vectors (one row for two classes).
    intercept_ : array
        b, per machine.
    margin_ : array
        1/‖f‖, the geometric margin, per machine.
    slack_ : array
        For two classes: max(0, 1 − yᵢ(f(xᵢ) + b)) for every training example.
    loo_bound_ : float
        #support vectors / n, an upper bound of the leave-one-out error (for two classes).
    certificate_ : Certificate
        Objective, dual objective and gap, added up over machines.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> y = np.array([1, 0, 0, 1])
    >>> hg.SVC(kernel=hg.kernels.Polynomial(2), C=10.0).fit(X, y).predict([[0.0], [3.0]])
    array([0, 1])
    """

    _parameter_constraints: ClassVar[Constraints] = {"C": [between(0, None, "right")]}

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-3,
        cache_size: float = 500.0,
        class_weight: Any = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        multi_class: str = "ovo",
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.multi_class = multi_class

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVC:
        """Fit to labelled examples; a weight of 2 means the same as having an example twice."""
        self._fit(X, y, sample_weight)
        return self

    def _dual(self, y: Array, weights: Array, factors: Array) -> Dual:
        return classification(y, float(self.C) * weights * factors)

    def _fit_machine(self, X: Any, y: Array, weights: Array, factors: Array) -> DualSolution:
        if np.isfinite(self.C):
            return super()._fit_machine(X, y, weights, factors)
        upper = np.where(weights * factors > 0, hard_bound(self.kernel_, X), 0.0)
        solution = self._solve(X, classification(y, upper), HARD_BATCHES if self.max_iter < 0 else None)
        if not solution.stopped:
            refuse_without_margin(solution, upper)
        return solution


class SVR(SupportVectorRegressor):
    """Support vector regression.

    Minimises  ½‖f‖² + C Σ sᵢ max(0, |yᵢ − f(xᵢ) − b| − ε)  over f in the space of the kernel, bias unpenalised.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, C, shrinking, cache_size, verbose, max_iter
        As for :class:`SVC`.
    epsilon : float
        Errors up to ε cost nothing.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_, certificate_, loo_bound_
        As for :class:`SVC`.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = hg.SVR(C=100.0, epsilon=0.01).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 0.02)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {"epsilon": [at_least(0)]}

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float = 500.0,
        verbose: bool = False,
        max_iter: int = -1,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVR:
        """Fit to examples; a weight of 2 means the same as having an example twice."""
        self._fit(X, y, sample_weight)
        return self

    def _dual(self, y: Array, upper: Array) -> Dual:
        return regression(y, float(self.epsilon), upper)
