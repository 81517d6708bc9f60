"""The common part of support vector machines: parameters, input checks, the call of the solver, and attributes."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from hinge._parameters import Constraints, above, between, count, one_of, shared
from hinge.models.base import require_no_overflow
from hinge.models.callbacks import CallbackSupportMixin, iterations
from hinge.models.kernel.expansion import (
    Expansion,
    KernelEstimator,
    check_kernel_fit,
    check_kernel_predict,
    is_precomputed,
    take,
)
from hinge.problem.certificates.kernel_machine import Dual
from hinge.problem.kernels import Definiteness, LinearKernel, warn_indefinite
from hinge.solvers.base import Status
from hinge.solvers.decomposition import DualSolution, make_certificate, solve_dual

Array = NDArray[np.float64]


class SupportVectorMachine(CallbackSupportMixin, KernelEstimator):
    """Base class of support vector machines."""

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("shrinking", "class_weight", "verbose", "random_state"),
        "nu": [between(0, 1, "right")],
        "probability": ["boolean", one_of("deprecated")],
        "tol": [above(0)],
        "cache_size": [above(0)],
        "max_iter": [count(-1)],
        "decision_function_shape": [one_of("ovo", "ovr")],
        "break_ties": ["boolean"],
        "multi_class": [one_of("ovo", "ovr")],
        "C": [above(0)],
    }

    def _solve(self, X: Any, dual: Dual, max_iter: int | None = None) -> DualSolution:
        limit = self.max_iter if max_iter is None else max_iter
        with iterations(self, X, None, self.max_iter if self.max_iter >= 0 else None) as report:
            return solve_dual(
                self.kernel_, X, dual,
                tol=self.tol, cache_bytes=1e6 * self.cache_size, shrinking=self.shrinking, max_iter=limit,
                callback=report,
            )  # fmt: skip

    def _certify(self, solutions: list[DualSolution]) -> None:
        self.certificate_ = make_certificate(solutions, self.tol)
        self.n_iter_: Any = max(1, *(solution.iterations for solution in solutions))
        self.fit_status_ = 0 if self.certificate_.converged else 1
        if any(solution.eigenvalues is Definiteness.INDEFINITE for solution in solutions):
            warn_indefinite(self.kernel_, "The fit is a stationary point of the dual.")
        if not self.certificate_.converged and self.certificate_.status != Status.STOPPED.value:
            warnings.warn(self.certificate_.explain(), ConvergenceWarning, stacklevel=3)

    def _adopt_one(self, X: Any, solution: DualSolution) -> None:
        """Set the attributes of a single function f + b."""
        support = np.flatnonzero(solution.coefficients)
        points = take(self.kernel_, X, support)
        self.n_train_ = len(solution.scores)
        self.support_ = support.astype(np.int32)
        self.n_support_ = np.array([len(support)], dtype=np.int32)
        self.support_vectors_ = np.zeros((0, 0)) if is_precomputed(self.kernel_) else points
        self.dual_coef_ = like(points, solution.coefficients[None, support])
        self.intercept_ = np.array([solution.bias])
        self.function_ = Expansion(self.kernel_, points, solution.coefficients[support], solution.bias)

    def _one_score(self, X: Any) -> Array:
        check_is_fitted(self)
        return self.function_.scores(check_kernel_predict(self, self.kernel_, X))

    @property
    def coef_(self) -> Array:
        """The weights w = Σ αⱼ yⱼ xⱼ, for the linear kernel; read-only, as ``predict`` does not use this copy."""
        check_is_fitted(self)
        if not isinstance(self.kernel_, LinearKernel):
            raise AttributeError("coef_ exists for the linear kernel only.")
        w = like(self.function_.points, np.array(self.function_.weights.T))
        (w.data if scipy.sparse.issparse(w) else w).flags.writeable = False
        return w

    @property
    def shape_fit_(self) -> tuple[int, int]:
        """The numbers of examples and features."""
        return self.n_train_, self.n_features_in_

    @property
    def loo_bound_(self) -> float:
        """#support vectors / n: an upper bound of the leave-one-out error (other examples do not change it)."""
        return len(self.support_) / self.n_train_


class SupportVectorRegressor(RegressorMixin, SupportVectorMachine):
    """Base class of support vector regression: f + b for targets, from the dual problem of a subclass."""

    C: float

    def _dual(self, y: Array, upper: Array) -> Dual:
        """The dual problem for targets and the largest multipliers."""
        raise NotImplementedError

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> DualSolution:
        X, y, weights = check_kernel_fit(self, self._kernel(), X, y, sample_weight, y_numeric=True)
        require_no_overflow(np.sum(np.square(y, dtype=np.float64)))
        self.kernel_ = self._kernel().resolve(X, weights)
        targets = np.ascontiguousarray(y, dtype=np.float64)
        upper = float(self.C) * ones_or(weights, len(targets))
        solution = self._solve(X, self._dual(targets, upper))
        self._certify([solution])
        self._adopt_one(X, solution)
        return solution

    def predict(self, X: Any) -> Array:
        """f(x) + b."""
        return self._one_score(X)


def like(points: Any, values: Array) -> Any:
    """Values as a sparse matrix if the examples are sparse, as in scikit-learn."""
    return scipy.sparse.csr_matrix(values) if scipy.sparse.issparse(points) else values


def ones_or(weights: Array | None, n: int) -> Array:
    """Weights, or ones if None."""
    return np.ones(n) if weights is None else weights
