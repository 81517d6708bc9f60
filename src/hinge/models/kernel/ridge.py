"""Kernel ridge regression: closed form, exact leave-one-out, a path of penalties from one eigendecomposition."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hinge._native import core
from hinge._parameters import Constraints, at_least, numbers, one_of
from hinge.models.kernel.expansion import (
    Expansion,
    KernelEstimator,
    check_kernel_fit,
    check_kernel_predict,
    is_precomputed,
    named_kernel,
    take,
    with_parameters,
)
from hinge.problem.certificates.certificate import with_run
from hinge.problem.certificates.kernel_expansion import ridge_certificate, ridge_residual
from hinge.problem.kernels import Definiteness, definiteness, full_gram, warn_indefinite
from hinge.solvers.base import Status

Array = NDArray[np.float64]

# Eigenvalues below this fraction of the largest, times n, are rounding errors.
RANK_TOLERANCE = 1e-15
# The tolerance of the certificate; direct methods have none.
TOLERANCE = 1e-6
# Kernel values up to this have products that do not overflow.
LARGEST = 1e150
OVERFLOW = "The kernel matrix is not finite: X has values so large that products overflow; rescale them."


@dataclass(frozen=True)
class RidgePath:
    """Kernel ridge for many penalties.

    Attributes
    ----------
    alphas : array
        The penalties, as given.
    dual_coef : array of shape (alphas, n) or (alphas, n, outputs)
        The coefficients for each.
    loo_error : array
        The exact mean squared leave-one-out error for each.
    """

    alphas: Array
    dual_coef: Array
    loo_error: Array

    @property
    def best(self) -> int:
        """The index of the penalty with the smallest leave-one-out error."""
        return int(np.argmin(self.loo_error))


def ridge_path(K: Array, y: Array, alphas: Any, weights: Array | None = None, *, definite: bool = True) -> RidgePath:
    """Solve (K + αS⁻¹)c = y for every α from one eigendecomposition of S^½ K S^½.

    The residual at example i of the function fitted without it is cᵢ / [(K + αS⁻¹)⁻¹]ᵢᵢ: no refitting. With
    ``definite=False`` negative eigenvalues are not treated as rounding errors.
    """
    alphas = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    _refuse_overflow(K)
    root = np.ones(len(K)) if weights is None else np.sqrt(weights)
    values, vectors = scipy.linalg.eigh(K * root[:, None] * root[None, :], overwrite_a=True, driver="evd")
    if definite:
        values = np.maximum(values, 0.0)
    targets = y.reshape(len(y), -1)
    rotated = vectors.T @ (targets * root[:, None])
    squares = vectors**2
    coefficients, errors = [], []
    for alpha in alphas:
        inverse = inverse_values(values, alpha)
        u = vectors @ (rotated * inverse[:, None])
        diagonal = squares @ inverse
        coefficients.append((root[:, None] * u).reshape(y.shape))
        used = root > 0
        residual = u[used] / (root[used] * diagonal[used])[:, None]
        errors.append(float(np.average(np.mean(residual**2, axis=1), weights=root[used] ** 2)))
    return RidgePath(alphas, np.array(coefficients), np.array(errors))


def inverse_values(values: Array, alpha: float) -> Array:
    """1/(λ + α); zero where the denominator is rounding, for the solution of least norm."""
    shifted = values + alpha
    lost = np.abs(shifted) <= RANK_TOLERANCE * len(values) * np.abs(values).max(initial=0.0)
    return np.where(lost, 0.0, 1.0 / np.where(lost, 1.0, shifted))


class KernelRidge(RegressorMixin, KernelEstimator):
    """Kernel ridge regression.

    Minimises  Σ sᵢ (yᵢ − f(xᵢ))² + α‖f‖²  over f in the space of the kernel; f = Σ cⱼ k(xⱼ, ·), (K + αS⁻¹)c = y.

    Parameters
    ----------
    alpha : float, or array of one number per target
        The penalty, zero or more. With zero, of the functions of least squared error the one of least norm.
    kernel : str, Kernel or function
        A name as for :class:`SVC`, or any kernel.
    gamma : float, optional
        The width or slope of kernels given by name; None is 1/d.
    degree : int
        The degree of ``kernel="poly"``.
    coef0 : float
        The constant of ``kernel="poly"`` and "sigmoid".
    kernel_params : dict, optional
        Further arguments of a kernel that is a function.
    alphas : array, optional
        Penalties to choose from by exact leave-one-out error, instead of ``alpha``.
    loo : bool
        Compute the leave-one-out predictions, at two more factorisations' cost.

    Attributes
    ----------
    dual_coef_ : array of shape (n,) or (n, outputs)
        The coefficients c.
    alpha_ : float
        The penalty used.
    loo_predictions_ : array
        With ``loo=True`` or ``alphas``: the prediction at xᵢ of the function learned without example i.
    loo_error_ : float
        The mean squared leave-one-out error.
    path_ : RidgePath
        With ``alphas``: coefficients and errors for all of them.
    certificate_ : Certificate
        Objective, dual objective and gap; a stationarity residual where there is no gap: alpha=0, or a kernel that is
        not known to be positive semidefinite.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = hg.KernelRidge(kernel=hg.kernels.RBF(1.0), alphas=np.logspace(-6, 2, 9)).fit(X, np.sin(X[:, 0]))
    >>> bool(model.loo_error_ < 1e-4)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "alpha": [at_least(0), numbers(0)],
        "gamma": [one_of("scale", "auto", "median"), at_least(0), None],
        "kernel_params": [dict, None],
        "alphas": [numbers(0, open_low=True, flat=True), None],
        "loo": ["boolean"],
    }
    _constant_tags: ClassVar[dict[str, bool]] = {"target_tags.multi_output": True, "target_tags.single_output": True}

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: int = 3,
        coef0: float = 1.0,
        kernel_params: dict[str, Any] | None = None,
        alphas: Any = None,
        loo: bool = False,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alphas = alphas
        self.loo = loo

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Fit to examples; a weight of 2 means the same as having an example twice."""
        began = time.perf_counter()
        function = with_parameters(self.kernel, self.kernel_params)
        kernel = named_kernel(function, self.gamma, self.degree, self.coef0)
        X, y, weights = check_kernel_fit(self, kernel, X, y, sample_weight, multi_output=True, y_numeric=True)
        targets = np.asarray(y, dtype=np.float64)
        alphas = self._check_alphas(targets)
        self.kernel_ = kernel.resolve(X, weights)
        K = full_gram(self.kernel_, X)
        eigenvalues = definiteness(self.kernel_, X, K)
        if eigenvalues is Definiteness.INDEFINITE:
            warn_indefinite(self.kernel_, "The fit is a stationary point: (K + αS⁻¹)c = y.")
        definite = eigenvalues is not Definiteness.INDEFINITE
        if self.alphas is not None:
            self.path_ = ridge_path(K.copy(), targets, alphas, weights, definite=definite)
            alphas = alphas[self.path_.best]
        self.alpha_ = float(alphas) if np.ndim(alphas) == 0 else alphas
        solution = solve_ridge(K, targets, self.alpha_, weights, self.loo or self.alphas is not None, definite)
        if solution.loo is not None:
            self.loo_predictions_ = solution.loo
            self.loo_error_ = float(np.average(_row_means((targets - solution.loo) ** 2), weights=weights))
        provable = eigenvalues is Definiteness.PROVEN and solution.exact and np.all(np.asarray(alphas) > 0)
        posed = targets, solution.coefficients, self.alpha_, weights
        if provable:
            certified = ridge_certificate(solution.fitted, *posed, tol=TOLERANCE)
        else:
            certified = ridge_residual(full_gram(self.kernel_, X), *posed, tol=TOLERANCE)
        self.certificate_ = with_run(
            certified, solver="cholesky" if provable else "eigendecomposition", iterations=1,
            seconds=time.perf_counter() - began, status=Status.CONVERGED.value,
        )  # fmt: skip
        self.dual_coef_ = solution.coefficients
        every = np.arange(len(targets))
        self.X_fit_ = None if is_precomputed(self.kernel_) else X
        self.function_ = Expansion(self.kernel_, take(self.kernel_, X, every), solution.coefficients, 0.0)
        return self

    def _check_alphas(self, y: Array) -> Any:
        """The penalty, one per target, or the candidates to choose from."""
        name = "alpha" if self.alphas is None else "alphas"
        values = np.asarray(getattr(self, name), dtype=np.float64)
        if self.alphas is not None:
            return values
        outputs = 1 if y.ndim == 1 else y.shape[1]
        if values.ndim and values.shape not in ((1,), (outputs,)):
            raise ValueError(f"alpha must be a number, or one per target ({outputs}); got {values.size} numbers.")
        return values.reshape(-1)[0] if values.size == 1 else values

    def predict(self, X: Any) -> Array:
        """f(x)."""
        check_is_fitted(self)
        return self.function_.scores(check_kernel_predict(self, self.kernel_, X))


def _row_means(errors: Array) -> Array:
    return errors if errors.ndim == 1 else errors.mean(axis=1)


def _refuse_overflow(K: Array) -> None:
    if not float(np.max(np.abs(K), initial=0.0)) <= LARGEST:
        raise ValueError(OVERFLOW)


@dataclass(frozen=True)
class RidgeSolution:
    """Coefficients c, fitted values Kc and leave-one-out predictions; ``exact`` if K + αS⁻¹ could be inverted."""

    coefficients: Array
    fitted: Array
    loo: Array | None
    exact: bool


def solve_ridge(
    K: Array, y: Array, alpha: Any, weights: Array | None, loo: bool, definite: bool = True
) -> RidgeSolution:
    """(K + αS⁻¹)c = y by a Cholesky factor; by eigenvalues if there is none, or if α differs by target.

    Overwrites one triangle of K.
    """
    n = len(K)
    if np.ndim(alpha) == 0 and alpha > 0:
        found = _by_cholesky(K, y, float(alpha), weights, loo)
        if found is not None:
            return found
        lower = np.tril(K, -1)  # the triangle of K that is not overwritten
        K = lower + lower.T + np.diag(np.diagonal(K))
    root = np.ones(n) if weights is None else np.sqrt(weights)
    _refuse_overflow(K)
    values, vectors = scipy.linalg.eigh(K * root[:, None] * root[None, :], driver="evd")
    if definite:
        values = np.maximum(values, 0.0)
    targets, exact = y.reshape(n, -1), True
    coefficients, residuals = np.empty(targets.shape), np.zeros(targets.shape)
    used = root > 0
    for j, a in enumerate(np.broadcast_to(alpha, targets.shape[1])):
        inverse = inverse_values(values, float(a))
        exact = exact and bool(np.all(inverse != 0))
        u = vectors @ (inverse * (vectors.T @ (targets[:, j] * root)))
        coefficients[:, j] = root * u
        diagonal = np.square(vectors[used]) @ inverse
        # If no other example determines f(x_i), it is zero without example i.
        known = np.abs(diagonal) > RANK_TOLERANCE * np.abs(inverse).max(initial=0.0)
        left = np.divide(u[used], root[used] * diagonal, out=np.zeros(int(used.sum())), where=known)
        residuals[used, j] = left
    fitted = K @ coefficients
    if not np.all(np.isfinite(fitted)):
        raise ValueError(OVERFLOW)
    residuals[~used] = (targets - fitted)[~used]
    held = (targets - residuals).reshape(y.shape) if loo else None
    return RidgeSolution(coefficients.reshape(y.shape), fitted.reshape(y.shape), held, exact)


def _by_cholesky(K: Array, y: Array, alpha: float, weights: Array | None, loo: bool) -> RidgeSolution | None:
    """None if K + αS⁻¹ has no Cholesky factor; the strict lower triangle and the diagonal of K are unchanged."""
    n = len(K)
    root = np.ones(n) if weights is None else np.sqrt(weights)
    diagonal = K.diagonal().copy()
    targets = y.reshape(n, -1)
    G = np.asfortranarray(K.T)  # K is symmetric: no copy is made
    if weights is not None:
        G = G * root[:, None] * root[None, :]
    G[np.arange(n), np.arange(n)] = diagonal * root**2 + alpha
    factored = core.cholesky(G.T)
    u = np.ascontiguousarray((targets * root[:, None]).T)
    if factored:
        core.cholesky_solve(G.T, u)
    if not np.all(np.isfinite(diagonal)) or (factored and not np.all(np.isfinite(u))):
        raise ValueError(OVERFLOW)
    if not factored:
        K[np.arange(n), np.arange(n)] = diagonal
        return None
    factor, u = G, u.T
    coefficients = root[:, None] * u
    if weights is None:
        # The factor is in the lower triangle; the strict upper triangle still holds K.
        upper = factor
        saved = factor.diagonal().copy()
        upper[np.arange(n), np.arange(n)] = diagonal
        fitted = scipy.linalg.blas.dsymm(1.0, upper, coefficients, lower=0)
        upper[np.arange(n), np.arange(n)] = saved
    else:
        fitted = K @ coefficients
    held = None
    if loo:
        inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
        used = root > 0
        residual = (targets - fitted).copy()
        residual[used] = u[used] / (root[used] * inverse.diagonal()[used])[:, None]
        held = (targets - residual).reshape(y.shape)
    return RidgeSolution(coefficients.reshape(y.shape), fitted.reshape(y.shape), held, True)
