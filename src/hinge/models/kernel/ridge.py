"""Kernel ridge regression: closed form, exact leave-one-out, a whole path from one eigendecomposition."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hinge.models.kernel.expansion import (
    Expansion,
    check_kernel_fit,
    check_kernel_predict,
    is_precomputed,
    named_kernel,
    take,
    takes_objects,
    with_parameters,
)
from hinge.problem.certificates.linear import Certificate
from hinge.problem.kernels import full_gram
from hinge.solvers.base import Status

Array = NDArray[np.float64]


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
        """Which penalty has the smallest leave-one-out error."""
        return int(np.argmin(self.loo_error))


def ridge_path(K: Array, y: Array, alphas: Any, weights: Array | None = None) -> RidgePath:
    """Solve (K + αS⁻¹)c = y for every α from one eigendecomposition of S^½ K S^½.

    The residual at example i of the function learned without it is cᵢ / [(K + αS⁻¹)⁻¹]ᵢᵢ: no refitting.
    """
    alphas = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    root = np.ones(len(K)) if weights is None else np.sqrt(weights)
    values, vectors = scipy.linalg.eigh(K * root[:, None] * root[None, :], overwrite_a=True, driver="evd")
    values = np.maximum(values, 0.0)
    targets = y.reshape(len(y), -1)
    rotated = vectors.T @ (targets * root[:, None])
    squares = vectors**2
    coefficients, errors = [], []
    for alpha in alphas:
        u = vectors @ (rotated / (values + alpha)[:, None])
        diagonal = squares @ (1.0 / (values + alpha))
        coefficients.append((root[:, None] * u).reshape(y.shape))
        used = root > 0
        residual = u[used] / (root[used] * diagonal[used])[:, None]
        errors.append(float(np.average(np.mean(residual**2, axis=1), weights=root[used] ** 2)))
    return RidgePath(alphas, np.array(coefficients), np.array(errors))


class KernelRidge(RegressorMixin, BaseEstimator):
    """Kernel ridge regression.

    Minimises  Σ sᵢ (yᵢ − f(xᵢ))² + α‖f‖²  over f in the space of the kernel; f = Σ cⱼ k(xⱼ, ·), (K + αS⁻¹)c = y.

    Parameters
    ----------
    alpha : float
        The penalty, greater than 0.
    kernel : str, Kernel or function
        A name as for :class:`SVC`, or any kernel.
    gamma, degree, coef0
        Parameters of kernels given by name; gamma=None is 1/d.
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
        With ``loo=True`` or ``alphas``: what the function learned without example i says at xᵢ.
    loo_error_ : float
        The mean squared leave-one-out error.
    path_ : RidgePath
        With ``alphas``: coefficients and errors for all of them.
    certificate_ : Certificate
        Objective, dual objective and gap.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = hg.KernelRidge(kernel=hg.kernels.RBF(1.0), alphas=np.logspace(-6, 2, 9)).fit(X, np.sin(X[:, 0]))
    >>> bool(model.loo_error_ < 1e-4)
    True
    """

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not is_precomputed(self.kernel)
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.string = takes_objects(self.kernel)
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Learn from examples; a weight of 2 means the same as having an example twice."""
        began = time.perf_counter()
        alphas = np.atleast_1d(np.asarray(self.alpha if self.alphas is None else self.alphas, dtype=np.float64))
        if not len(alphas) or not np.all(alphas > 0):
            name = "alpha" if self.alphas is None else "alphas"
            raise ValueError(f"{name} must be greater than 0, got {getattr(self, name)!r}.")
        function = with_parameters(self.kernel, self.kernel_params)
        kernel = named_kernel(function, self.gamma, self.degree, self.coef0)
        X, y, weights = check_kernel_fit(self, kernel, X, y, sample_weight, multi_output=True, y_numeric=True)
        targets = np.asarray(y, dtype=np.float64)
        self.kernel_ = kernel.resolve(X, weights)
        K = full_gram(self.kernel_, X)
        if self.alphas is None:
            self.alpha_ = float(alphas[0])
            coefficients, loo, fitted = _solve(K, targets, self.alpha_, weights, self.loo)
        else:
            self.path_ = ridge_path(K.copy(), targets, alphas, weights)
            self.alpha_ = float(alphas[self.path_.best])
            coefficients, loo, fitted = _solve(K, targets, self.alpha_, weights, True)
        if loo is not None:
            self.loo_predictions_ = loo
            self.loo_error_ = float(np.average(_row_means((targets - loo) ** 2), weights=weights))
        self.certificate_ = _certify(fitted, targets, coefficients, self.alpha_, weights, began)
        self.dual_coef_ = coefficients
        every = np.arange(len(targets))
        self.X_fit_ = None if is_precomputed(self.kernel_) else X
        self.function_ = Expansion(self.kernel_, take(self.kernel_, X, every), coefficients, 0.0)
        return self

    def predict(self, X: Any) -> Array:
        """f(x)."""
        check_is_fitted(self)
        return self.function_.scores(check_kernel_predict(self, self.kernel_, X))


def _row_means(errors: Array) -> Array:
    return errors if errors.ndim == 1 else errors.mean(axis=1)


def _solve(K: Array, y: Array, alpha: float, weights: Array | None, loo: bool) -> tuple[Array, Array | None, Array]:
    """Coefficients, leave-one-out predictions if wanted, and the fitted values Kc. Overwrites one half of K."""
    n = len(K)
    root = np.ones(n) if weights is None else np.sqrt(weights)
    diagonal = K.diagonal().copy()
    targets = y.reshape(n, -1)
    G = np.asfortranarray(K.T)  # K is symmetric: no copy is made
    if weights is not None:
        G = G * root[:, None] * root[None, :]
    G[np.arange(n), np.arange(n)] = diagonal * root**2 + alpha
    factor, u, info = scipy.linalg.lapack.dposv(G, targets * root[:, None], lower=1, overwrite_a=1)
    if not np.all(np.isfinite(u)):
        raise ValueError("The kernel matrix is not finite: X has values so large that products overflow; rescale them.")
    if info > 0:
        raise ValueError(
            f"The kernel matrix plus alpha={alpha:g} is not positive definite; check it with hg.kernels.check_psd, or raise alpha."
        )
    coefficients = root[:, None] * u
    if weights is None:
        # The factor is in the lower half; the upper half still holds K, but for the diagonal.
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
    return coefficients.reshape(y.shape), held, fitted.reshape(y.shape)


def _certify(fitted: Array, y: Array, c: Array, alpha: float, weights: Array | None, began: float) -> Certificate:
    """P = Σ s(y − f)² + α‖f‖² and D = 2αc'y − αc'Kc − α²Σ c²/s, for any coefficients c."""
    s = (np.ones(len(y)) if weights is None else weights).reshape((-1,) + (1,) * (y.ndim - 1))
    square = float(np.sum(c * fitted))
    primal = float(np.sum(s * (y - fitted) ** 2)) + alpha * square
    used = np.broadcast_to(s > 0, c.shape)
    penalty = float(np.sum(c[used] ** 2 / np.broadcast_to(s, c.shape)[used]))
    dual = 2.0 * alpha * float(np.sum(c * y)) - alpha * square - alpha**2 * penalty
    gap = max(primal - dual, 0.0)
    size = max(abs(primal), 1e-12 * float(np.sum(s * y**2)), np.finfo(float).tiny)
    return Certificate(
        primal=primal, dual=dual, gap=gap, relative_gap=gap / size, residual=np.nan, kind="gap", tol=1e-6,
        weight_error=float(np.sqrt(gap / alpha)), solver="cholesky", iterations=1,
        seconds=time.perf_counter() - began, status=Status.CONVERGED.value,
    )  # fmt: skip
