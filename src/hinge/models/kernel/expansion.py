"""The common part of kernel machines: kernels by name, input checks, and functions f(x) = Σ αⱼ k(xⱼ, x) + b."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from hinge._native import check_indices, core
from hinge._parameters import Constraints, Estimator, at_least, between, one_of
from hinge._validation import validate_data
from hinge.models.base import FLOATS, check_objects, check_weights, require_no_overflow
from hinge.models.kernel.machines import dense_columns
from hinge.problem.kernels import (
    RBF,
    ChiSquared,
    Cosine,
    Kernel,
    Laplacian,
    LinearKernel,
    Matern,
    Polynomial,
    Precomputed,
    Sigmoid,
    as_kernel,
    evaluate,
)
from hinge.problem.kernels.translate import is_foreign, translate

Array = NDArray[np.float64]

# Rows of a kernel matrix computed in Python at a time.
BLOCK_ROWS = 512
# Kernel values in single precision may change scores by this fraction of their spread, measured at some of the points.
SINGLE_ERROR, MEASURED_POINTS = 3e-5, 64


NAMES: tuple[str, ...] = (
    "linear", "rbf", "poly", "polynomial", "sigmoid", "laplacian", "cosine", "matern", "chi2", "precomputed",
)  # fmt: skip


def named_kernel(kernel: Any, gamma: Any, degree: float, coef0: float) -> Kernel:
    """A kernel from scikit-learn's names and parameters, from a kernel of this library, or from a function."""
    if not isinstance(kernel, str):
        return as_kernel(kernel)
    if gamma is None:
        gamma = "auto"  # 1/d, as in scikit-learn's kernel ridge
    known: dict[str, Any] = {
        "linear": LinearKernel,
        "rbf": lambda: RBF(gamma=gamma),
        "poly": lambda: Polynomial(int(degree), gamma, coef0),
        "polynomial": lambda: Polynomial(int(degree), gamma, coef0),
        "sigmoid": lambda: Sigmoid(gamma, coef0),
        "laplacian": lambda: Laplacian(gamma),
        "cosine": Cosine,
        "matern": lambda: Matern("median"),
        "chi2": lambda: ChiSquared(1.0 if isinstance(gamma, str) else gamma),
        "precomputed": Precomputed,
    }
    if kernel not in known:
        raise ValueError(f"kernel={kernel!r} is unknown; choose one of {', '.join(sorted(known))}, or pass a kernel.")
    return known[kernel]()


def with_parameters(kernel: Any, parameters: dict[str, Any] | None) -> Any:
    """A function used as a kernel, with its further arguments; any other kernel is unchanged."""
    if not parameters:
        return kernel
    if isinstance(kernel, str | Kernel) or not callable(kernel):
        raise ValueError(
            f"kernel_params is for kernels that are functions; kernel={kernel!r} takes its parameters by itself."
        )
    return partial(kernel, **parameters)


def is_precomputed(kernel: Any) -> bool:
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")


def takes_objects(kernel: Any) -> bool:
    """Whether the inputs are strings or graphs rather than vectors."""
    if is_foreign(kernel):
        return not kernel.requires_vector_input and translate(kernel).takes == "objects"
    return isinstance(kernel, Kernel) and kernel.takes == "objects"


def check_kernel_fit(
    estimator: Any, kernel: Kernel, X: Any, y: Any, sample_weight: Any = None, **options: Any
) -> tuple[Any, NDArray[Any], Array | None]:
    """X, y and weights for a kernel machine: square for precomputed kernels, objects for string kernels."""
    if takes_objects(kernel):
        return check_objects(estimator, X, y, sample_weight, multi_output=options.get("multi_output", False))
    check_indices(X)
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=FLOATS, order="C", **options)
    X = _square_if_precomputed(kernel, evaluate.canonical(X))
    return X, y, check_weights(sample_weight, X)


def check_kernel_inputs(estimator: Any, kernel: Kernel, X: Any, sample_weight: Any = None) -> tuple[Any, Array | None]:
    """X and weights, if there are no targets."""
    if takes_objects(kernel):
        X = evaluate.objects(X)
        estimator.n_features_in_ = 1
        return X, check_weights(sample_weight, np.zeros((len(X), 1)))
    check_indices(X)
    X = validate_data(estimator, X, accept_sparse="csr", dtype=FLOATS, order="C")
    X = _square_if_precomputed(kernel, evaluate.canonical(X))
    return X, check_weights(sample_weight, X)


def _square_if_precomputed(kernel: Kernel, X: Any) -> Any:
    if not isinstance(kernel, Precomputed):
        return X
    if X.shape[0] != X.shape[1]:
        raise ValueError(f"X must be a square kernel matrix with kernel='precomputed', got shape {X.shape}.")
    return evaluate.spread(X)


def check_kernel_predict(estimator: Any, kernel: Kernel, X: Any) -> Any:
    """X for prediction, checked against the training data of the estimator."""
    if takes_objects(kernel):
        return evaluate.objects(X)
    check_indices(X)
    X = validate_data(estimator, X, accept_sparse="csr", dtype=FLOATS, order="C", reset=False)
    return evaluate.spread(X) if isinstance(kernel, Precomputed) else evaluate.canonical(X)


@dataclass(frozen=True)
class Expansion:
    """f(x) = Σ_j α_j k(x_j, x) + b over the support points x_j, with one column of α per output.

    Prediction computes the kernel in blocks: the full matrix is never in memory. A linear kernel needs its weights only.
    """

    kernel: Kernel
    points: Any  # for precomputed kernels, the indices of the support columns
    coefficients: Array  # (support points) or (support points, outputs)
    bias: Any

    def _check_loaded(self) -> None:
        """Checks an expansion read from a file: one row of finite coefficients per point."""
        shape = np.shape(self.coefficients)
        sound = isinstance(self.kernel, Kernel) and getattr(self.coefficients, "dtype", None) == np.float64
        if not sound or len(shape) not in (1, 2) or evaluate.length(self.points) != shape[0]:
            raise ValueError("it holds a kernel expansion whose coefficients do not fit its points.")
        if np.size(self.bias) not in (1, *shape[1:]):
            raise ValueError("it holds a kernel expansion whose bias does not fit its coefficients.")
        if isinstance(self.kernel, Precomputed):
            points = np.asarray(self.points)
            if points.ndim != 1 or points.dtype.kind not in "iu" or np.any(points < 0):
                raise ValueError("it holds a kernel expansion over columns that cannot exist.")

    @property
    def columns(self) -> Array:
        """The coefficients, a column for every output."""
        outputs = 1 if self.coefficients.ndim == 1 else self.coefficients.shape[1]
        return self.coefficients.reshape(len(self.coefficients), outputs)

    def scores(self, X: Any) -> Array:
        z = self._product(X, np.ascontiguousarray(self.columns))
        require_no_overflow(z)
        return (z[:, 0] if self.coefficients.ndim == 1 else z) + self.bias

    def _product(self, X: Any, coefficients: Array) -> Array:
        n, kernel = evaluate.length(X), self.kernel
        if not len(coefficients):
            return np.zeros((n, coefficients.shape[1]))
        if isinstance(kernel, Precomputed):
            return X[:, self.points] @ coefficients
        if isinstance(kernel, LinearKernel) and self._has_few_weights:
            return _times(X, self.weights)
        program = kernel.program()
        if program is not None:
            return self._evaluate(program, X, coefficients, None if self._single_suffices else np.float64)
        parts = [kernel.block(X[i : i + BLOCK_ROWS], self.points) @ coefficients for i in range(0, n, BLOCK_ROWS)]
        return np.concatenate(parts) if parts else np.zeros((0, coefficients.shape[1]))

    def _evaluate(self, program: evaluate.Program, X: Any, coefficients: Array, precision: Any) -> Array:
        left, right = _centred(self.kernel, X, self.points, precision)
        return core.kernel_scores(program, *evaluate.both(program, left, right, precision), coefficients)

    @cached_property
    def weights(self) -> Array:
        """w = Σ α_j x_j of the linear kernel, a column for every output."""
        return np.asarray(self.points.T @ self.columns)

    @property
    def _has_few_weights(self) -> bool:
        """Whether the weights take no more memory than the points: sparse points may have very many columns."""
        stored = self.points.nnz if scipy.sparse.issparse(self.points) else self.points.size
        return self.points.shape[1] * self.columns.shape[1] <= stored

    @cached_property
    def _single_suffices(self) -> bool:
        """Whether scores may be computed in single precision if the inputs have it.

        The values of a polynomial of points far from zero, or large coefficients of both signs, cancel: scores would keep few
        of their digits.
        """
        m, program = evaluate.length(self.points), self.kernel.program()
        if self.points.dtype != np.float32 or program is None or m < MEASURED_POINTS:
            return False
        some = self.points[np.linspace(0, m - 1, MEASURED_POINTS).astype(np.intp)]
        coefficients = np.ascontiguousarray(self.columns)
        exact = self._evaluate(program, some, coefficients, np.float64)
        error = np.max(np.abs(self._evaluate(program, some, coefficients, np.float32) - exact), axis=0)
        return bool(np.all(error <= SINGLE_ERROR * np.std(exact, axis=0)))


@dataclass(frozen=True)
class PairExpansion(Expansion):
    """One function for every pair of classes. The points are ordered by class; each is used in the pairs of its class.

    A point of class c has k − 1 coefficients, against the other classes in order.
    """

    sizes: Any  # the number of points of each class

    def _check_loaded(self) -> None:
        super()._check_loaded()
        sizes, shape = np.asarray(self.sizes), np.shape(self.coefficients)
        are_counts = sizes.ndim == 1 and sizes.dtype.kind in "iu" and bool(np.all(sizes >= 0))
        if not are_counts or len(shape) != 2 or sizes.sum() != shape[0] or shape[1] != len(sizes) - 1:
            raise ValueError("it holds a kernel expansion whose classes do not fit its coefficients.")

    @property
    def columns(self) -> Array:
        return dense_columns(self.coefficients, self.sizes)

    def scores(self, X: Any) -> Array:
        first, second = np.triu_indices(len(self.sizes), 1)
        scores = np.zeros((evaluate.length(X), len(first)))
        for c, part in enumerate(self._parts):
            scores[:, (first == c) | (second == c)] += part.scores(X)
        return scores + self.bias

    @cached_property
    def _parts(self) -> list[Expansion]:
        """The points of each class, with their coefficients."""
        ends = np.cumsum(self.sizes)
        return [
            Expansion(self.kernel, self.points[begin:end], self.coefficients[begin:end], 0.0)
            for begin, end in zip(ends - self.sizes, ends)
        ]


def _times(X: Any, weights: Array) -> Array:
    """X·w in double precision, in blocks of rows."""
    if scipy.sparse.issparse(X) or X.dtype == np.float64:
        return np.asarray(X @ weights)
    parts = [X[i : i + BLOCK_ROWS] @ weights for i in range(0, len(X), BLOCK_ROWS)]
    return np.concatenate(parts) if parts else np.zeros((0, weights.shape[1]))


def _centred(kernel: Kernel, X: Any, points: Any, precision: Any) -> tuple[Any, Any]:
    """Both sets shifted to the mean of the points, if that changes nothing but the rounding."""
    if not kernel.stationary or scipy.sparse.issparse(X) or scipy.sparse.issparse(points):
        return X, points
    centre = points.mean(axis=0, dtype=precision)
    return np.subtract(X, centre, dtype=precision), np.subtract(points, centre, dtype=precision)


def take(kernel: Kernel, X: Any, which: NDArray[np.int64]) -> Any:
    """The support points of an expansion: rows of X, or indices of columns for precomputed kernels."""
    return which if isinstance(kernel, Precomputed) else X[which]


class KernelEstimator(Estimator):
    """Base class of estimators with a kernel: its parameters, the kernel they name, and input checks."""

    _parameter_constraints: ClassVar[Constraints] = {
        "kernel": [one_of(*NAMES), Kernel, callable],
        "gamma": [one_of("scale", "auto", "median"), at_least(0)],
        "degree": [at_least(0)],
        "coef0": [between(None, None, "neither")],
    }

    def _kernel(self) -> Kernel:
        """The kernel that the parameters name."""
        return named_kernel(self.kernel, self.gamma, self.degree, self.coef0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not is_precomputed(self.kernel)
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.string = takes_objects(self.kernel)
        return tags
