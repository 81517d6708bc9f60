"""Gaussian-process regression: Bayesian linear regression in the feature space of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state

from hinge._parameters import Constraints, Estimator, at_least, count, numbers, one_of, shared
from hinge.models.base import require_no_overflow
from hinge.models.bayes.hyperparameters import fit_kernel
from hinge.models.kernel.expansion import (
    Expansion,
    check_kernel_fit,
    check_kernel_predict,
    is_precomputed,
    takes_objects,
)
from hinge.problem.decisions import Normal, in_units_of_target
from hinge.problem.kernels import RBF, Kernel, as_kernel, evaluate, full_gram, refuse_indefinite

Array = NDArray[np.float64]

# Rows of the covariance with the training examples that are in memory at a time, for variances.
BLOCK_ROWS = 1024


def covariance(kernel: Kernel, X: Any) -> Array:
    """The matrix k(xᵢ, xⱼ), with an exact diagonal."""
    return full_gram(kernel, X, symmetric=False)


def chosen_kernel(kernel: Any) -> Kernel:
    """The kernel; by default a multiple of an RBF kernel, with both parameters starting at one."""
    if kernel is None:
        return 1.0 * RBF(1.0)
    if is_precomputed(kernel):
        raise ValueError("A Gaussian process needs a kernel it can evaluate, not kernel values.")
    return as_kernel(kernel)


def inputs_of(kernel: Kernel, X: Any) -> Any:
    """X in the form in which the kernel is evaluated: double precision."""
    return X if takes_objects(kernel) or X.dtype == np.float64 else X.astype(np.float64)


@dataclass(frozen=True)
class Factored:
    """K + noise = LL', c = (K + noise)⁻¹y and the log marginal likelihood of all columns of y."""

    L: Array
    dual: Array
    value: float

    def inverse(self) -> Array:
        """The lower triangle of (K + noise)⁻¹, zeros above it."""
        return scipy.linalg.lapack.dpotri(self.L, lower=1)[0]


def factor(kernel: Kernel, X: Any, Y: Array, noise: Any) -> Factored:
    """One Cholesky factorisation."""
    K = covariance(kernel, X)
    K[np.diag_indices_from(K)] += noise
    L, info = scipy.linalg.lapack.dpotrf(K.T, lower=1, clean=1, overwrite_a=1)
    if info:
        raise np.linalg.LinAlgError(
            f"The covariance of the examples under {kernel!r} is not positive definite. Raise alpha (the variance of "
            "the noise), or add hg.kernels.White to the kernel; repeated inputs need one of the two."
        )
    dual = scipy.linalg.lapack.dpotrs(L, Y, lower=1)[0]
    n, k = Y.shape
    value = -0.5 * float(np.sum(Y * dual)) - k * float(np.log(L.diagonal()).sum()) - 0.5 * n * k * np.log(2.0 * np.pi)
    return Factored(L, dual, value)


def likelihood_gradient(kernel: Kernel, X: Any, fitted: Factored) -> Array:
    """½ Σ_columns c'(∂K)c − ½ k tr((K + noise)⁻¹ ∂K), for one ∂K at a time."""
    inverse = fitted.inverse().T  # upper triangle, rows contiguous as in ∂K
    diagonal = inverse.diagonal()
    k = fitted.dual.shape[1]
    gradient = []
    for G in kernel.derivatives(X):
        trace = 2.0 * float(np.vdot(inverse, G)) - float(diagonal @ G.diagonal())
        gradient.append(0.5 * float(np.sum(fitted.dual * (G @ fitted.dual))) - 0.5 * k * trace)
    return np.array(gradient)


class GaussianProcessRegressor(RegressorMixin, Estimator):
    """Gaussian-process regression.

    f is a Gaussian process with covariance k, and y = f(x) + noise of variance ``alpha``. Given the examples, f(x) is
    normal with mean k(x)'c, c = (K + αI)⁻¹y, and variance k(x, x) − k(x)'(K + αI)⁻¹k(x). The mean is kernel ridge
    regression with penalty α. The parameters of the kernel maximise

        log p(y) = −½ y'(K + αI)⁻¹y − ½ log |K + αI| − (n/2) log 2π.

    Parameters
    ----------
    kernel : Kernel, optional
        Any kernel expression, such as ``hg.kernels.RBF(1.0) + hg.kernels.White(0.1)``, or a kernel object of scikit-learn, which is
        translated with its bounds. All positive parameters are fitted, but those under ``.fixed()``. By default
        ``1.0 * hg.kernels.RBF(1.0)``.
    alpha : float or array of n numbers
        The variance of the noise, added to the diagonal; not fitted (``hg.kernels.White`` is).
    optimizer : "fmin_l_bfgs_b", callable or None
        How to fit: the name means from coarse to fine with quasi-Newton steps; a function is called as in
        scikit-learn, ``(objective, theta, bounds) → (theta, value)``; None keeps the kernel as it is.
    n_restarts_optimizer : int
        Further starts, drawn at random from the bounds; the best maximum is kept.
    normalize_y : bool
        Model (y − mean)/std instead of y.
    copy_X_train : bool
        Accepted for compatibility; the training inputs are kept in any case.
    n_targets : int, optional
        How many targets predictions before fitting have.
    random_state : int, optional
        Of the restarts.
    bounds : (float, float)
        Fitted parameters stay between these, where the kernel has no bounds of its own (``.within``).
    tol : float
        Fitting stops when the log marginal likelihood promises to grow by less than this.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with fitted parameters.
    X_train_, y_train_, L_, alpha_
        Training examples (y normalised), Cholesky factor and coefficients c.
    log_marginal_likelihood_value_ : float
        Its maximum.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> model = hg.GaussianProcessRegressor(1.0 * hg.kernels.RBF(1.0), alpha=1e-4).fit(X, np.sin(X[:, 0]))
    >>> mean, std = model.predict([[3.0], [30.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(3.0)) < 0.01), bool(std[0] < 0.01 < std[1])
    (True, True)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("random_state", "tol"),
        "kernel": [Kernel, callable, None],
        "alpha": [at_least(0), np.ndarray],
        "optimizer": [one_of("fmin_l_bfgs_b"), callable, None],
        "n_restarts_optimizer": [count(0)],
        "normalize_y": ["boolean"],
        "copy_X_train": ["boolean"],
        "n_targets": [count(), None],
        "bounds": [numbers(0, open_low=True, size=2)],
    }

    def __init__(
        self,
        kernel: Any = None,
        *,
        alpha: Any = 1e-10,
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        normalize_y: bool = False,
        copy_X_train: bool = True,
        n_targets: int | None = None,
        random_state: Any = None,
        bounds: tuple[float, float] = (1e-5, 1e5),
        tol: float = 1e-3,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.normalize_y = normalize_y
        self.copy_X_train = copy_X_train
        self.n_targets = n_targets
        self.random_state = random_state
        self.bounds = bounds
        self.tol = tol

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.sparse = True
        tags.input_tags.string = takes_objects(self.kernel)
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> GaussianProcessRegressor:
        """Fit the parameters of the kernel, and condition on the examples."""
        kernel = chosen_kernel(self.kernel)
        X, y, _ = check_kernel_fit(self, kernel, X, y, multi_output=True, y_numeric=True)
        X = inputs_of(kernel, X)
        y = np.asarray(y, dtype=np.float64)
        targets = 1 if y.ndim == 1 else y.shape[1]
        if self.n_targets not in (None, targets):
            raise ValueError(f"The number of targets seen in `y` is {targets}, but n_targets={self.n_targets}.")
        y = y.ravel() if targets == 1 else y
        with np.errstate(over="ignore"):
            require_no_overflow(np.sum(np.square(y)))
        self._y_train_mean = y.mean(axis=0) if self.normalize_y else np.zeros(y.shape[1:])
        spread = y.std(axis=0) if self.normalize_y else np.ones(y.shape[1:])
        self._y_train_std = np.where(spread > 0, spread, 1.0)
        self.X_train_, self.y_train_ = X, (y - self._y_train_mean) / self._y_train_std
        self._noise = self._check_noise(evaluate.length(X))
        self.kernel_ = kernel.resolve(X)
        refuse_indefinite(self.kernel_, X)
        rng = check_random_state(self.random_state)
        self.kernel_ = fit_kernel(self.kernel_, self._evidence, self, evaluate.length(X), rng)
        fitted = factor(self.kernel_, X, self._targets(), self._noise)
        self.L_, self.alpha_ = fitted.L, fitted.dual.reshape(y.shape)
        self.log_marginal_likelihood_value_ = fitted.value
        return self

    def _targets(self) -> Array:
        return self.y_train_.reshape(len(self.y_train_), -1)

    def _check_noise(self, n: int) -> Any:
        noise = np.asarray(self.alpha, dtype=np.float64)
        if noise.ndim and noise.shape != (n,):
            raise ValueError(f"alpha must be a number or one number per example ({n}), got shape {noise.shape}.")
        if not np.all(np.isfinite(noise)) or np.any(noise < 0):
            raise ValueError(f"alpha must be zero or more, got {self.alpha!r}.")
        return noise

    def _evidence(self, kernel: Kernel, rows: Any = None) -> tuple[float, Array]:
        """The log marginal likelihood and its gradient on some of the rows (all if None); −∞ if the factorisation fails."""
        X, Y, noise = self.X_train_, self._targets(), self._noise
        if rows is not None:
            X, Y, noise = X[rows], Y[rows], noise[rows] if np.ndim(noise) else noise
        try:
            fitted = factor(kernel, X, Y, noise)
        except ValueError:
            return -np.inf, np.zeros(len(kernel.theta))
        return fitted.value, likelihood_gradient(kernel, X, fitted)

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True) -> Any:
        """log p(y) for the logarithms ``theta`` of the kernel's parameters, summed over targets, and its gradient.

        ``clone_kernel`` is accepted for compatibility: the fitted kernel is never changed.
        """
        if theta is None:
            if eval_gradient:
                raise ValueError("The gradient is computed for a given theta only.")
            return self.log_marginal_likelihood_value_
        value, gradient = self._evidence(self.kernel_.with_theta(np.asarray(theta, dtype=np.float64)))
        return (np.float64(value), gradient) if eval_gradient else np.float64(value)

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, *, interval: Any = None, action: Any = None
    ) -> Any:
        """The mean of y at new inputs; before fitting, the mean of the prior.

        Parameters
        ----------
        X : inputs
        return_std : bool
            Also the standard deviation of each.
        return_cov : bool
            Also the covariance of all of them.
        interval : float, optional
            Also the central intervals that hold y with this probability, as a pair of arrays.
        action : "median", "mode" or a loss, optional
            The Bayes action of the predictive distribution instead of the mean.

        ``hg.kernels.White`` in the kernel is part of the variance, ``alpha`` is not, as in scikit-learn.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        if action is None and not (return_std or return_cov) and interval is None:
            return self._moments(X, "mean")[0]
        if return_cov:
            return self._moments(X, "covariance")
        law = self.predictive(X)
        mean = law.mean if action is None else law.bayes_action(action)
        if action is not None:
            mean = in_units_of_target(action, mean)
        more = ([law.std] if return_std else []) + ([law.interval(interval)] if interval is not None else [])
        return (mean, *more) if more else mean

    def predictive(self, X: Any) -> Normal:
        """The predictive distribution at every input."""
        mean, variance = self._moments(X, "variance")
        return Normal(mean, np.sqrt(variance))

    def _moments(self, X: Any, second: str) -> tuple[Array, Array]:
        """Means and, with "variance" or "covariance", second moments."""
        if not hasattr(self, "L_"):
            return self._prior_moments(X, second)
        kernel = self.kernel_
        X = inputs_of(kernel, check_kernel_predict(self, kernel, X))
        old = self.X_train_[:]  # a view, because the same object as X would mean the same draws of the noise
        mean = Expansion(kernel, old, self.alpha_, 0.0).scores(X) * self._y_train_std + self._y_train_mean
        if second == "mean":
            return mean, np.zeros(0)
        scale = self._y_train_std**2
        if second == "covariance":
            V = scipy.linalg.solve_triangular(self.L_, kernel.block(X, old).T, lower=True, check_finite=False)
            C = covariance(kernel, X) - V.T @ V
            return mean, C * scale if np.ndim(scale) == 0 else C[:, :, None] * scale
        variance = kernel.diagonal(X)
        for i in range(0, len(variance), BLOCK_ROWS):
            block = kernel.block(X[i : i + BLOCK_ROWS], old)
            V = scipy.linalg.solve_triangular(self.L_, block.T, lower=True, check_finite=False)
            variance[i : i + BLOCK_ROWS] -= np.einsum("ij,ij->j", V, V)
        variance = np.maximum(variance, 0.0)  # rounding may make it negative
        return mean, variance * scale if np.ndim(scale) == 0 else np.multiply.outer(variance, scale)

    def _prior_moments(self, X: Any, second: str) -> tuple[Array, Array]:
        kernel = chosen_kernel(self.kernel)
        X = evaluate.inputs(X, X, kernel.takes)[0]
        n = evaluate.length(X)
        kernel = kernel.resolve(X)
        shape = () if self.n_targets in (None, 1) else (self.n_targets,)
        moment = covariance(kernel, X) if second == "covariance" else kernel.diagonal(X)
        if shape:
            moment = np.repeat(moment[..., None], shape[0], axis=-1)
        return np.zeros((n, *shape)), moment

    def prior_predictive(self, X: Any) -> Normal:
        """The prior distribution of f(x) at every input, for the given kernel."""
        mean, variance = self._prior_moments(X, "variance")
        return Normal(mean, np.sqrt(variance))

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0, *, noise: bool = False) -> Array:
        """Draws of the function at X: an array of (inputs, draws) or (inputs, targets, draws).

        With ``noise`` they are draws of y, with errors of variance ``alpha``. Before fitting they are drawn from the prior.
        """
        rng = check_random_state(random_state)
        mean, C = self._moments(X, "covariance")
        if noise:
            C = C.copy()
            scale = getattr(self, "_y_train_std", 1.0) ** 2
            C[np.diag_indices(len(C))] += np.multiply.outer(self._check_noise(len(C)) * np.ones(len(C)), scale)
        if mean.ndim == 1:
            return mean[:, None] + _root(C) @ rng.standard_normal((len(mean), n_samples))
        draws = [
            mean[:, [t]] + _root(C[:, :, t]) @ rng.standard_normal((len(mean), n_samples)) for t in range(mean.shape[1])
        ]
        return np.stack(draws, axis=1)

    def leave_one_out(self) -> Normal:
        """The predictive distribution of each example given all others, without refitting.

        The mean is yᵢ − cᵢ/[(K + αI)⁻¹]ᵢᵢ and the variance 1/[(K + αI)⁻¹]ᵢᵢ; the parameters of the kernel are fixed.
        """
        inverse = Factored(self.L_, self.alpha_, 0.0).inverse().diagonal()
        shape = (-1,) + (1,) * (self.y_train_.ndim - 1)
        inverse = inverse.reshape(shape)
        mean = (self.y_train_ - self.alpha_ / inverse) * self._y_train_std + self._y_train_mean
        return Normal(mean, np.sqrt(1.0 / inverse) * self._y_train_std)


def _root(C: Array) -> Array:
    """A matrix R with RR' = C, for covariances that may be singular."""
    values, vectors = np.linalg.eigh(C)
    return vectors * np.sqrt(np.maximum(values, 0.0))
