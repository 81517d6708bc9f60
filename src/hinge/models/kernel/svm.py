"""Support vector machines: SVC and SVR."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from hinge.models.base import code_labels, signs
from hinge.models.callbacks import CallbackSupportMixin, with_callbacks
from hinge.models.kernel.function import (
    Expansion,
    check_kernel_fit,
    check_kernel_predict,
    is_precomputed,
    named_kernel,
    take,
    takes_objects,
)
from hinge.models.kernel.platt import couple, fit_sigmoid, sigmoid
from hinge.problem.kernels import Kernel, LinearKernel, Precomputed
from hinge.solve.decomposition import Dual, DualSolution, classification, make_certificate, regression, solve_dual

Array = NDArray[np.float64]

# C = ∞ asks for a hard margin; a multiplier this large (times the scale of 1/k) says that there is none.
HARD = 1e8
# … and so does a solver that has not come near the optimum after this many batches.
HARD_BATCHES = 2000
FOLDS = 5


def hard_bound(kernel: Kernel, X: Any) -> float:
    """A multiplier that is reached only if there is no margin, in the units of 1/k(x, x)."""
    diagonal = np.diagonal(X) if isinstance(kernel, Precomputed) else kernel.diagonal(X[:200])
    return HARD / max(float(np.mean(diagonal)), 1e-300)


def refuse_without_margin(solution: DualSolution, upper: Array) -> None:
    """A hard margin exists if no multiplier grew to its bound."""
    if np.max(solution.alpha) >= 0.99 * np.max(upper) or solution.relative_gap > 0.5:
        raise ValueError(
            "The classes cannot be separated in the space of this kernel, so there is no hard margin (C=inf). "
            "Use a finite C, or a richer kernel."
        )


class _SupportVectorMachine(CallbackSupportMixin, BaseEstimator):
    """Parameters, inputs and the call of the solver, for classification and regression."""

    def _kernel(self) -> Kernel:
        return named_kernel(self.kernel, self.gamma, self.degree, self.coef0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not is_precomputed(self.kernel)
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.string = takes_objects(self.kernel)
        return tags

    def _check_parameters(self) -> None:
        if not (np.isreal(self.C) and self.C > 0):
            raise ValueError(f"C must be greater than 0, got {self.C!r}.")
        if not self.tol > 0:
            raise ValueError(f"tol must be greater than 0, got {self.tol!r}.")
        if not self.cache_size > 0:
            raise ValueError(f"cache_size must be a positive number of megabytes, got {self.cache_size!r}.")

    def _solve(self, X: Any, dual: Dual) -> DualSolution:
        return solve_dual(
            self.kernel_, X, dual,
            tol=self.tol, cache_bytes=1e6 * self.cache_size, shrinking=self.shrinking,
            max_iter=self.max_iter if np.isfinite(self.C) or self.max_iter >= 0 else HARD_BATCHES,
        )  # fmt: skip

    def _upper(self, X: Any, weights: Array | None) -> Array:
        """C·sᵢ; for a hard margin a bound that is reached only if there is no margin."""
        n = X.shape[0]
        ones = np.ones(n) if weights is None else weights
        if np.isfinite(self.C):
            return float(self.C) * ones
        return np.where(ones > 0, hard_bound(self.kernel_, X), 0.0)

    def _certify(self, solutions: list[DualSolution]) -> None:
        self.certificate_ = make_certificate(solutions, self.tol)
        self.n_iter_ = max(1, self.certificate_.iterations)
        self.fit_status_ = 0 if self.certificate_.converged else 1
        if not self.certificate_.converged:
            warnings.warn(self.certificate_.explain(), ConvergenceWarning, stacklevel=3)

    @property
    def coef_(self) -> Array:
        """The weights w = Σ αⱼ yⱼ xⱼ, for the linear kernel."""
        check_is_fitted(self)
        if not isinstance(self.kernel_, LinearKernel):
            raise AttributeError("coef_ exists for the linear kernel only.")
        coefficients = self.function_.coefficients
        return np.atleast_2d(coefficients.T @ self.function_.points)

    @property
    def loo_bound_(self) -> float:
        """#support vectors / n: an upper bound of the leave-one-out error (leaving out any other changes nothing)."""
        return len(self.support_) / self.n_train_


class SVC(ClassifierMixin, _SupportVectorMachine):
    """Support vector classification.

    Minimises  ½‖f‖² + C Σ sᵢ max(0, 1 − yᵢ(f(xᵢ) + b))  over f in the space of the kernel, bias unpenalised, y = ±1.
    Several classes: one machine for each pair ("ovo") or for each class against the rest ("ovr").

    Parameters
    ----------
    C : float
        How much errors cost; ``np.inf`` for a hard margin.
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian", "cosine", "precomputed"}, Kernel or function
        A name, any kernel expression such as ``hg.RBF(2.0) + hg.Linear()``, or a function of two arrays.
    degree, gamma, coef0
        Parameters of kernels given by name; gamma is a number, "scale" for 1/(d·var X) or "auto" for 1/d.
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
        Kept for scikit-learn; ties are always broken by the sum of scores.
    random_state : int, optional
        Seed of the folds for ``probability``.
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
    >>> hg.SVC(kernel=hg.Polynomial(2), C=10.0).fit(X, y).predict([[0.0], [3.0]])
    array([0, 1])
    """

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
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.multi_class = multi_class

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVC:
        """Learn from labelled examples; a weight of 2 means the same as having an example twice."""
        self._check_parameters()
        if self.multi_class not in ("ovo", "ovr"):
            raise ValueError(f"multi_class must be 'ovo' or 'ovr', got {self.multi_class!r}.")
        if self.decision_function_shape not in ("ovo", "ovr"):
            raise ValueError(f"decision_function_shape must be 'ovo' or 'ovr', got {self.decision_function_shape!r}.")
        X, y, weights = check_kernel_fit(self, self._kernel(), X, y, sample_weight)
        codes = code_labels(self, y)
        self.kernel_ = self._kernel().resolve(X, weights)
        weights = self._class_weights(y, codes, weights)
        self._fit_machines(X, codes, weights)
        if self.probability:
            self._fit_sigmoids(X, codes, weights)
        return self

    def _class_weights(self, y: Any, codes: NDArray[np.int64], weights: Array | None) -> Array | None:
        """Sample weights times class weights; classes without any weight are refused."""
        if weights is not None:
            lost = [c for k, c in enumerate(self.classes_) if not np.any(weights[codes == k] > 0)]
            if lost:
                raise ValueError(f"sample_weight is zero for every example of class {lost[0]!r}: drop the class.")
        if self.class_weight is None:
            self.class_weight_ = np.ones(len(self.classes_))
            return weights
        if isinstance(self.class_weight, str) and self.class_weight == "balanced" and weights is not None:
            totals = np.bincount(codes, weights)
            self.class_weight_ = totals.sum() / (len(totals) * totals)
        else:
            self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        factors = self.class_weight_[codes]
        return factors if weights is None else weights * factors

    def _machines(self) -> list[tuple[int, int | None]]:
        """Which classes meet: (positive, negative), the first of a pair being positive; None for all the others."""
        k = len(self.classes_)
        if k == 2:
            return [(1, 0)]
        return list(combinations(range(k), 2)) if self.multi_class == "ovo" else [(c, None) for c in range(k)]

    def _fit_machines(self, X: Any, codes: NDArray[np.int64], weights: Array | None) -> None:
        machines, n = self._machines(), len(codes)
        upper = self._upper(X, weights)
        coefficients, bias, solutions = np.zeros((n, len(machines))), np.zeros(len(machines)), []
        for m, (positive, negative) in enumerate(machines):
            rows = np.arange(n) if negative is None else np.flatnonzero((codes == positive) | (codes == negative))
            y = signs(codes[rows] == positive)
            part = X if len(rows) == n else (X[np.ix_(rows, rows)] if is_precomputed(self.kernel_) else X[rows])
            solution = self._solve(part, classification(y, upper[rows]))
            if not np.isfinite(self.C):
                refuse_without_margin(solution, upper)
            coefficients[rows, m], bias[m] = solution.coefficients, solution.bias
            solutions.append(solution)
            if len(machines) == 1:
                self.slack_ = np.maximum(1.0 - y * (solution.scores + solution.bias), 0.0)
        self._certify(solutions)
        square = [max(float(s.coefficients @ s.scores), 0.0) for s in solutions]
        with np.errstate(divide="ignore"):
            self.margin_ = 1.0 / np.sqrt(np.array(square))
        support = np.flatnonzero(np.any(coefficients != 0, axis=1))
        support = support[np.argsort(codes[support], kind="stable")]  # by class, as scikit-learn has it
        self._adopt(X, codes, support, coefficients[support], bias)

    def _adopt(self, X: Any, codes: Any, support: Any, coefficients: Array, bias: Array) -> None:
        self.n_train_ = len(codes)
        self.support_ = support.astype(np.int32)
        self.n_support_ = np.bincount(codes[support], minlength=len(self.classes_)).astype(np.int32)
        points = take(self.kernel_, X, support)
        self.support_vectors_ = np.zeros((0, 0)) if is_precomputed(self.kernel_) else points
        two = len(self.classes_) == 2
        self.function_ = Expansion(self.kernel_, points, coefficients[:, 0] if two else coefficients, 0.0)
        self.intercept_ = bias
        self.dual_coef_ = coefficients.T if two or self.multi_class == "ovr" else self._paired(coefficients, codes)

    def _paired(self, coefficients: Array, codes: NDArray[np.int64]) -> Array:
        """scikit-learn's layout: one row per other class, in order, for the class the support vector is of."""
        k = len(self.classes_)
        own = codes[self.support_]
        table = np.zeros((k - 1, len(own)))
        for m, (i, j) in enumerate(combinations(range(k), 2)):
            table[j - 1, own == i] = coefficients[own == i, m]
            table[i, own == j] = coefficients[own == j, m]
        return table

    def _machine_scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = check_kernel_predict(self, self.kernel_, X)
        scores = self.function_.scores(X)
        return scores + (self.intercept_[0] if scores.ndim == 1 else self.intercept_)

    def decision_function(self, X: Any) -> Array:
        """The score f(x) + b; for several classes a column per class (or per pair of classes).

        From pairs to classes: the number of pairs won, plus the sum of scores squeezed into (−1/3, 1/3) for ties.
        """
        scores = self._machine_scores(X)
        if scores.ndim == 1 or self.multi_class == "ovr" or self.decision_function_shape == "ovo":
            return scores
        return self._votes(scores)

    def _votes(self, scores: Array) -> Array:
        votes = np.zeros((len(scores), len(self.classes_)))
        sums = np.zeros_like(votes)
        for m, (i, j) in enumerate(self._machines()):
            first = scores[:, m] > 0
            votes[:, i] += first
            votes[:, j] += ~first
            sums[:, i] += scores[:, m]
            sums[:, j] -= scores[:, m]
        return votes + sums / (3.0 * (np.abs(sums) + 1.0))

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels."""
        scores = self._machine_scores(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(int)]
        return self.classes_[np.argmax(scores if self.multi_class == "ovr" else self._votes(scores), axis=1)]

    def _fit_sigmoids(self, X: Any, codes: NDArray[np.int64], weights: Array | None) -> None:
        """Platt's sigmoids, from scores of examples that were held out."""
        smallest = int(np.bincount(codes).min())
        folds = min(FOLDS, smallest)
        if folds < 2:
            raise ValueError("probability=True needs at least two examples of every class, to hold some out.")
        seed = 0 if self.random_state is None else self.random_state
        held = np.zeros((len(codes), len(self._machines())))
        for learn, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(np.zeros(len(codes)), codes):
            part = SVC(**{**self.get_params(deep=False), "probability": False, "class_weight": None})
            part.kernel_, part.classes_, part.n_features_in_ = self.kernel_, self.classes_, self.n_features_in_
            inner = X[np.ix_(learn, learn)] if is_precomputed(self.kernel_) else X[learn]
            part._fit_machines(inner, codes[learn], None if weights is None else weights[learn])
            outer = X[np.ix_(test, learn)] if is_precomputed(self.kernel_) else X[test]
            held[test] = (part.function_.scores(outer) + part.intercept_).reshape(len(test), -1)
        self.sigmoids_ = []
        for m, (positive, negative) in enumerate(self._machines()):
            rows = np.arange(len(codes)) if negative is None else (codes == positive) | (codes == negative)
            weight = None if weights is None else weights[rows]
            self.sigmoids_.append(fit_sigmoid(held[rows, m], codes[rows] == positive, weight))

    def _has_probability(self) -> bool:
        if not self.probability:
            raise AttributeError("predict_proba needs probability=True.")
        return True

    @available_if(_has_probability)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, by Platt's sigmoid (coupled over pairs for several classes)."""
        scores = self._machine_scores(X).reshape(-1, len(self._machines()))
        p = np.column_stack([sigmoid(scores[:, m], *self.sigmoids_[m]) for m in range(scores.shape[1])])
        if len(self.classes_) == 2:
            return np.column_stack([1.0 - p[:, 0], p[:, 0]])
        if self.multi_class == "ovr":
            return p / p.sum(axis=1, keepdims=True)
        pairwise = np.zeros((len(p), len(self.classes_), len(self.classes_)))
        for m, (i, j) in enumerate(self._machines()):
            pairwise[:, i, j], pairwise[:, j, i] = p[:, m], 1.0 - p[:, m]
        return couple(pairwise)

    @available_if(_has_probability)
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities."""
        return np.log(self.predict_proba(X))


class SVR(RegressorMixin, _SupportVectorMachine):
    """Support vector regression.

    Minimises  ½‖f‖² + C Σ sᵢ max(0, |yᵢ − f(xᵢ) − b| − ε)  over f in the space of the kernel, bias unpenalised.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, C, shrinking, cache_size, max_iter
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
        self.max_iter = max_iter

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVR:
        """Learn from examples; a weight of 2 means the same as having an example twice."""
        self._check_parameters()
        if not np.isfinite(self.C):
            raise ValueError("C must be finite for regression.")
        if not self.epsilon >= 0:
            raise ValueError(f"epsilon must not be negative, got {self.epsilon!r}.")
        X, y, weights = check_kernel_fit(self, self._kernel(), X, y, sample_weight, y_numeric=True)
        self.kernel_ = self._kernel().resolve(X, weights)
        targets = np.ascontiguousarray(y, dtype=np.float64)
        solution = self._solve(X, regression(targets, float(self.epsilon), self._upper(X, weights)))
        self._certify([solution])
        support = np.flatnonzero(solution.coefficients)
        points = take(self.kernel_, X, support)
        self.n_train_ = len(targets)
        self.support_ = support.astype(np.int32)
        self.n_support_ = np.array([len(support)], dtype=np.int32)
        self.support_vectors_ = np.zeros((0, 0)) if is_precomputed(self.kernel_) else points
        self.dual_coef_ = solution.coefficients[None, support]
        self.intercept_ = np.array([solution.bias])
        self.function_ = Expansion(self.kernel_, points, solution.coefficients[support], solution.bias)
        return self

    def predict(self, X: Any) -> Array:
        """f(x) + b."""
        check_is_fitted(self)
        return self.function_.scores(check_kernel_predict(self, self.kernel_, X))
