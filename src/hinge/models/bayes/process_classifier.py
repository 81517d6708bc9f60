"""Gaussian-process classification by Laplace's approximation.

Model       f a Gaussian process with covariance k, P(y = +1 | x) = σ(f(x))
Mode        max_f Σ log σ(yᵢ fᵢ) − ½ f'K⁻¹f by Newton steps with B = I + W^½KW^½, W = diag p(1 − p)
Predictive  f(x) ≈ N(k(x)'∇, k(x, x) − k(x)'W^½B⁻¹W^½k(x)), averaged over the sigmoid
Evidence    log p(y) ≈ Σ log σ(yᵢ fᵢ) − ½ f'K⁻¹f − ½ log |B|, with its gradient in the parameters of the kernel
Reference   Rasmussen & Williams (2006), algorithms 3.1, 3.2 and 5.1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hinge._parameters import Constraints, Estimator, count, numbers, one_of, shared
from hinge.models.base import code_labels
from hinge.models.bayes.hyperparameters import Evidence, fit_kernel
from hinge.models.bayes.logistic import averaged_sigmoid
from hinge.models.bayes.process import BLOCK_ROWS, chosen_kernel, covariance, inputs_of
from hinge.models.kernel.expansion import check_kernel_fit, check_kernel_predict, takes_objects
from hinge.problem.kernels import Kernel, evaluate, refuse_indefinite
from hinge.problem.losses import Logistic

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Laplace:
    """The approximation for one kernel: f at the examples, ∇ log p(y | f), W^½, the factor of B, and the evidence."""

    f: Array
    gradient: Array
    root: Array
    L: Array
    value: float


def laplace(K: Array, y: Array, max_iter: int) -> Laplace:
    """Newton's iteration; the objective is concave, and each step is halved until the objective increases."""
    loss = Logistic()
    f, a = np.zeros(len(y)), np.zeros(len(y))
    value = -float(loss.value(y, f).sum())
    for _ in range(max_iter):
        root = np.sqrt(loss.hessian(y, f))
        L = _factor_of_b(K, root)
        right = root**2 * f - loss.gradient(y, f)
        step = right - root * scipy.linalg.cho_solve((L, True), root * (K @ right)) - a
        size = 1.0
        while True:
            new = a + size * step
            new_f = K @ new
            new_value = -float(loss.value(y, new_f).sum()) - 0.5 * float(new @ new_f)
            if new_value >= value - 1e-12 * abs(value) or size < 1e-6:
                break
            size *= 0.5
        gain, a, f, value = new_value - value, new, new_f, new_value
        if gain < 1e-11 * (1.0 + abs(value)):  # Newton's method squares the error at each step
            break
    root = np.sqrt(loss.hessian(y, f))
    L = _factor_of_b(K, root)
    return Laplace(f, -loss.gradient(y, f), root, L, value - float(np.log(L.diagonal()).sum()))


def _factor_of_b(K: Array, root: Array) -> Array:
    B = K * root[:, None]
    B *= root[None, :]
    B[np.diag_indices_from(B)] += 1.0
    L, info = scipy.linalg.lapack.dpotrf(B.T, lower=1, clean=1, overwrite_a=1)
    if info:
        raise ValueError(
            "The covariance of the examples is not positive semidefinite, or not finite; check the kernel."
        )
    return L


def laplace_gradient(kernel: Kernel, X: Any, K: Array, y: Array, fitted: Laplace) -> Array:
    """The gradient of the evidence: the explicit part, and the part through the mode, which depends on the kernel."""
    root = fitted.root
    half = scipy.linalg.solve_triangular(fitted.L, root[:, None] * K, lower=True, check_finite=False)
    R = root[:, None] * scipy.linalg.cho_solve((fitted.L, True), np.diag(root))
    p = Logistic().inverse_link(fitted.f)
    third = p * (1.0 - p) * (1.0 - 2.0 * p)  # minus the third derivative of log p(y | f)
    posterior = K.diagonal() - np.einsum("ij,ij->j", half, half)
    s2 = -0.5 * posterior * third
    gradient = []
    for G in kernel.derivatives(X):
        explicit = 0.5 * float(fitted.gradient @ G @ fitted.gradient) - 0.5 * float(np.vdot(R, G))
        b = G @ fitted.gradient
        gradient.append(explicit + float(s2 @ (b - K @ (R @ b))))
    return np.array(gradient)


class Compound(tuple[Kernel, ...]):
    """The kernels of several classes, with concatenated parameters."""

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels one by one."""
        return list(self)

    @property
    def theta(self) -> Array:
        """The logarithms of the parameters of all kernels."""
        return np.concatenate([kernel.theta for kernel in self])

    @property
    def bounds(self) -> Array:
        """The logarithms of their bounds."""
        return np.concatenate([kernel.bounds for kernel in self])


class GaussianProcessClassifier(ClassifierMixin, Estimator):
    """Gaussian-process classification: P(y | f) = σ(y f), f a Gaussian process, by Laplace's approximation.

    Probabilities are averaged over the posterior of f. The parameters of the kernel maximise the approximate evidence
    log p(y). More than two classes are treated one against the rest, each with its own kernel, and normalised.

    Parameters
    ----------
    kernel : Kernel, optional
        Any kernel expression, or a kernel object of scikit-learn; by default an RBF kernel of length one, which is not
        fitted.
    optimizer : "fmin_l_bfgs_b", callable or None
        How the positive parameters of the kernel are fitted, as for :class:`GaussianProcessRegressor`; None keeps them.
    n_restarts_optimizer : int
        Further starts, drawn at random from the bounds.
    max_iter_predict : int
        A limit on Newton steps to the mode.
    warm_start, copy_X_train, n_jobs
        Accepted for compatibility.
    random_state : int, optional
        Of the restarts.
    multi_class : {"one_vs_rest"}
        How several classes are handled.
    bounds : (float, float)
        Fitted parameters stay between these, where the kernel has no bounds of its own (``.within``).
    predictive : {"quadrature", "probit"}
        How probabilities are averaged over f(x).
    tol : float
        Fitting stops when the evidence promises to grow by less than this.

    Attributes
    ----------
    classes_, log_marginal_likelihood_value_ : as in scikit-learn
    kernel_ : Kernel, or a tuple of them for several classes
    X_train_ : the training inputs
    approximations_ : list of Laplace
        One for two classes, one per class for more.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> model = hg.GaussianProcessClassifier(1.0 * hg.kernels.RBF(1.0)).fit(X, ["a", "a", "b", "b"])
    >>> model.predict([[-1.5], [1.5]]).tolist(), model.predict_proba([[50.0]]).round(3).tolist()
    (['a', 'b'], [[0.5, 0.5]])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("warm_start", "random_state", "n_jobs", "tol"),
        "kernel": [Kernel, callable, None],
        "optimizer": [one_of("fmin_l_bfgs_b"), callable, None],
        "n_restarts_optimizer": [count(0)],
        "max_iter_predict": [count()],
        "copy_X_train": ["boolean"],
        "multi_class": [one_of("one_vs_rest")],
        "bounds": [numbers(0, open_low=True, size=2)],
        "predictive": [one_of("probit", "quadrature")],
    }

    def __init__(
        self,
        kernel: Any = None,
        *,
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        max_iter_predict: int = 100,
        warm_start: bool = False,
        copy_X_train: bool = True,
        random_state: Any = None,
        multi_class: str = "one_vs_rest",
        n_jobs: int | None = None,
        bounds: tuple[float, float] = (1e-5, 1e5),
        predictive: str = "quadrature",
        tol: float = 1e-3,
    ) -> None:
        self.kernel = kernel
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.max_iter_predict = max_iter_predict
        self.warm_start = warm_start
        self.copy_X_train = copy_X_train
        self.random_state = random_state
        self.multi_class = multi_class
        self.n_jobs = n_jobs
        self.bounds = bounds
        self.predictive = predictive
        self.tol = tol

    @property
    def kernel_(self) -> Any:
        """The kernel with fitted parameters; for several classes a tuple of kernels with ``theta`` and ``bounds``."""
        check_is_fitted(self)
        return self._kernels[0] if len(self._kernels) == 1 else Compound(self._kernels)

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        return len(self.classes_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = takes_objects(self.kernel)
        return tags

    def fit(self, X: Any, y: Any) -> GaussianProcessClassifier:
        """Fit the parameters of the kernel, and find the mode."""
        kernel = chosen_kernel(self.kernel)
        if self.kernel is None:
            kernel = kernel.fixed()
        X, y, _ = check_kernel_fit(self, kernel, X, y)
        codes = code_labels(self, y)
        self.X_train_ = inputs_of(kernel, X)
        kernel = kernel.resolve(self.X_train_)
        refuse_indefinite(kernel, self.X_train_)
        k = len(self.classes_)
        rng = check_random_state(self.random_state)
        self._signs = [np.where(codes == j, 1.0, -1.0) for j in ([1] if k == 2 else range(k))]
        n = evaluate.length(self.X_train_)
        self._kernels = [fit_kernel(kernel, self._evidence_for(y), self, n, rng) for y in self._signs]
        self.approximations_ = [
            laplace(covariance(kernel, self.X_train_), y, self.max_iter_predict)
            for kernel, y in zip(self._kernels, self._signs)
        ]
        self.log_marginal_likelihood_value_ = float(np.mean([a.value for a in self.approximations_]))
        return self

    def _evidence_for(self, y: Array) -> Evidence:
        return lambda kernel, rows: self._evidence(kernel, y, rows)

    def _evidence(self, kernel: Kernel, y: Array, rows: Any = None) -> tuple[float, Array]:
        X = self.X_train_
        if rows is not None:
            X, y = X[rows], y[rows]
        K = covariance(kernel, X)
        try:
            fitted = laplace(K, y, self.max_iter_predict)
        except ValueError:  # not positive semidefinite up to rounding
            return -np.inf, np.zeros(len(kernel.theta))
        return fitted.value, laplace_gradient(kernel, X, K, y, fitted)

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True) -> Any:
        """The evidence (its mean over the classes) for the logarithms ``theta`` of the kernel's parameters.

        For several classes ``theta`` has the parameters of all their kernels, concatenated, or one set for each of them.
        ``clone_kernel`` is accepted for compatibility.
        """
        check_is_fitted(self)
        if theta is None:
            if eval_gradient:
                raise ValueError("The gradient is computed for a given theta only.")
            return self.log_marginal_likelihood_value_
        theta, k = np.asarray(theta, dtype=np.float64), len(self._kernels)
        each = len(self._kernels[0].theta)
        shared = len(theta) == each
        parts = [theta] * k if shared else np.split(theta, k)
        evidences = [self._evidence(kernel.with_theta(t), y) for kernel, t, y in zip(self._kernels, parts, self._signs)]
        value = np.mean([v for v, _ in evidences])
        gradients = [g / k for _, g in evidences]
        return (value, sum(gradients) if shared else np.concatenate(gradients)) if eval_gradient else value

    def latent_mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        """Mean and variance of f(x): arrays of n, or of n × k for k > 2 classes."""
        check_is_fitted(self)
        X = inputs_of(self._kernels[0], check_kernel_predict(self, self._kernels[0], X))
        old = self.X_train_[:]  # a view, never the same object as X
        n = evaluate.length(X)
        means, variances = np.empty((n, len(self._kernels))), np.empty((n, len(self._kernels)))
        for j, (kernel, fitted) in enumerate(zip(self._kernels, self.approximations_)):
            variances[:, j] = kernel.diagonal(X)
            for i in range(0, n, BLOCK_ROWS):
                block = kernel.block(X[i : i + BLOCK_ROWS], old)
                means[i : i + BLOCK_ROWS, j] = block @ fitted.gradient
                V = scipy.linalg.solve_triangular(fitted.L, (block * fitted.root).T, lower=True, check_finite=False)
                variances[i : i + BLOCK_ROWS, j] -= np.einsum("ij,ij->j", V, V)
        variances = np.maximum(variances, 0.0)
        return (means[:, 0], variances[:, 0]) if len(self.classes_) == 2 else (means, variances)

    def predict_proba(self, X: Any) -> Array:
        """The probabilities of the classes."""
        means, variances = self.latent_mean_and_variance(X)
        if means.ndim == 1:
            p = averaged_sigmoid(means, variances, self.predictive)
            return np.column_stack([1.0 - p, p])
        p = np.column_stack([averaged_sigmoid(m, v, self.predictive) for m, v in zip(means.T, variances.T)])
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """The most probable class."""
        means, _ = self.latent_mean_and_variance(X)
        if means.ndim == 1:
            return self.classes_[(means > 0).astype(np.intp)]
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
