"""User-defined kernels, precomputed kernel values, and conversion to kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from hinge.problem.kernels import evaluate
from hinge.problem.kernels.base import Array, Kernel, name_of
from hinge.problem.spaces import Linear


@dataclass(frozen=True, eq=False)
class Function(Kernel):
    """Any function of two arrays that returns a matrix, as a kernel.

    Parameters
    ----------
    function : callable
        k(A, B), the matrix of all pairs of a row of A and a row of B.
    accepts : {"vectors", "objects"}
        What the rows are.
    psd : bool
        Whether all its Gram matrices are known to be positive semidefinite. They are not checked then, and fits are
        certified by a duality gap however many examples there are; :func:`check_psd` decides on given data.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge.problem.kernels import Function
    >>> smallest = Function(lambda A, B: np.minimum(A, B.T), psd=True)  # the covariance of Brownian motion
    >>> smallest(np.array([[1.0], [3.0]]))
    array([[1., 1.],
           [1., 3.]])
    """

    function: Callable[[Any, Any], Any]
    accepts: str = "vectors"
    psd: bool = False

    @property
    def takes(self) -> str:  # type: ignore[override]
        return self.accepts

    def block(self, A: Any, B: Any) -> Array:
        K = self.function(A, B)
        K = np.asarray(K.toarray() if scipy.sparse.issparse(K) else K, dtype=np.float64)
        expected = (evaluate.length(A), evaluate.length(B))
        if K.shape != expected:
            raise ValueError(f"The kernel function returned shape {K.shape}; expected {expected}.")
        return np.ascontiguousarray(K)

    def __repr__(self) -> str:
        return f"Function({name_of(self.function)})"


@dataclass(frozen=True, eq=False)
class Rank1(Kernel):
    """f(x) f(x') for a real function f of whole arrays: one feature.

    Parameters
    ----------
    function : callable
        From an array of n inputs to n numbers.
    """

    function: Callable[[Any], Any]

    psd: ClassVar[bool] = True

    def block(self, A: Any, B: Any) -> Array:
        return np.outer(self.features(A), self.features(B))

    def diagonal(self, A: Any) -> Array:
        return self.features(A)[:, 0] ** 2

    def features(self, X: Any) -> Array:
        values = np.asarray(self.function(X), dtype=np.float64)
        if values.size != evaluate.length(X):
            raise ValueError(f"f must return one number per row; got shape {values.shape}.")
        return values.reshape(-1, 1)

    def __repr__(self) -> str:
        return f"Rank1({name_of(self.function)})"


@dataclass(frozen=True, eq=False)
class Precomputed(Kernel):
    """The inputs are kernel values: rows of k(x, x₁), …, k(x, xₙ) for the n training examples."""

    def block(self, A: Any, B: Any) -> Array:
        if A.shape[1] < evaluate.length(B):
            raise ValueError(
                f"With precomputed kernels a row holds one value per training example: expected {evaluate.length(B)} "
                f"columns, got {A.shape[1]}."
            )
        return np.ascontiguousarray(A, dtype=np.float64)


def as_kernel(kernel: Any) -> Kernel:
    """A kernel from a kernel of hinge or scikit-learn, a function of two arrays, a number or ``hg.Linear()``."""
    from hinge.problem.kernels.inner_products import Constant, LinearKernel
    from hinge.problem.kernels.translate import is_foreign, translate

    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, Linear) or kernel is Linear:
        return LinearKernel()
    if np.isscalar(kernel) and not isinstance(kernel, str):
        return Constant(float(kernel))  # type: ignore[arg-type]
    if is_foreign(kernel):
        return translate(kernel)
    if callable(kernel):
        return Function(kernel)
    raise TypeError(f"kernel must be a kernel such as hg.kernels.RBF(1.0) or a function of two arrays, got {kernel!r}.")


def full_gram(kernel: Kernel, X: Any, *, symmetric: bool = True) -> Array:
    """The n × n matrix in double precision; without ``symmetric`` the two triangles may differ by rounding errors."""
    if isinstance(kernel, Precomputed):
        return np.array(X, dtype=np.float64)
    if kernel.takes != "objects" and X.dtype != np.float64:
        X = X.astype(np.float64)
    if symmetric:
        return kernel(X)
    K = np.ascontiguousarray(kernel.block(X, X), dtype=np.float64)
    np.fill_diagonal(K, kernel.diagonal(X))
    return K
