"""The interface between kernel expressions and the compiled core: inputs, programs, blocks.

``Points`` holds a set of inputs for the core; ``gram`` and ``scores`` evaluate a program on two of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from hinge._native import check_indices, core

Array = NDArray[np.float64]
Program = list[tuple[int, float, float, float]]

# In the order of KernelOp in native/problem/kernels.hpp.
(
    LINEAR, POLYNOMIAL, RBF, SIGMOID, COSINE, MATERN, RATIONAL, LAPLACIAN, CHI2, CONSTANT,
    SUM, PRODUCT, SCALE, POWER, DISTANCE,
) = range(15)  # fmt: skip


def looks_at_coordinates(program: Program) -> bool:
    """Whether the program needs single coordinates, not only inner products, and hence dense inputs."""
    return any(operation in (LAPLACIAN, CHI2) for operation, *_ in program)


def length(X: Any) -> int:
    """The number of inputs."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def inputs(A: Any, B: Any, takes: str) -> tuple[Any, Any]:
    """Inputs of kernels: matrices with rows of the same length, or one-dimensional arrays of objects."""
    if takes == "objects":
        left = objects(A)
        return left, left if B is A else objects(B)
    left = matrix(A)
    right = left if B is A else matrix(B)
    return left, right


def matrix(X: Any) -> Any:
    """A CSR matrix or a two-dimensional float array; float32 is preserved."""
    if scipy.sparse.issparse(X):
        check_indices(X)
        X = canonical(X.tocsr())
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"Expected a matrix with one row per example, got an array of shape {X.shape}.")
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def canonical(X: Any) -> Any:
    """A sparse matrix without repeated entries; a copy if there are any, so that the caller's matrix does not change."""
    if scipy.sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def objects(X: Any) -> NDArray[Any]:
    """A one-dimensional array of objects (strings, graphs) from a list, an array or a single column."""
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    if isinstance(X, np.ndarray):
        if X.ndim == 2 and X.shape[1] == 1:
            X = X[:, 0]
        if X.ndim != 1:
            raise ValueError(f"Expected one object per example, got an array of shape {X.shape}.")
        return X.astype(object)
    out = np.empty(len(X), dtype=object)
    out[:] = list(X)
    return out


def points(X: Any, dtype: Any = None) -> Any:
    """A set of vectors for the core: contiguous rows, or CSR with 32-bit indices; copied only if necessary."""
    dtype = X.dtype if dtype is None else np.dtype(dtype)
    make = core.KernelPoints32 if dtype == np.float32 else core.KernelPoints64
    if scipy.sparse.issparse(X):
        X = canonical(X.tocsr())
        if X.nnz > np.iinfo(np.int32).max:
            raise ValueError("X has more than 2³¹ stored entries: too many for a kernel method.")
        return make(
            np.ascontiguousarray(X.data, dtype=dtype),
            np.ascontiguousarray(X.indices, dtype=np.int32),
            np.ascontiguousarray(X.indptr, dtype=np.int32),
            X.shape[1],
        )
    return make(np.ascontiguousarray(X, dtype=dtype))


def both(program: Program, A: Any, B: Any, dtype: Any = None) -> tuple[Any, Any]:
    """Two sets of vectors in one storage and precision."""
    if A.shape[1] != B.shape[1]:
        raise ValueError(f"Inputs have {A.shape[1]} and {B.shape[1]} features; they must have the same number.")
    sparse = scipy.sparse.issparse(A) and scipy.sparse.issparse(B) and not looks_at_coordinates(program)
    left, right = (A, B) if sparse else (spread(A), spread(B))
    dtype = np.result_type(A.dtype, B.dtype) if dtype is None else dtype
    a = points(left, dtype)
    return a, a if B is A else points(right, dtype)


def spread(X: Any) -> Any:
    """A dense array."""
    return X.toarray() if scipy.sparse.issparse(X) else X


def gram(program: Program, A: Any, B: Any) -> Array:
    """The matrix of kernel values, in double precision: values of points far from zero differ in their last digits only."""
    if not length(A) or not length(B):
        return np.zeros((length(A), length(B)))
    return core.kernel_gram(program, *both(program, A, B, np.float64))


def symmetrise(K: Array, *, in_place: bool = False) -> Array:
    """(K + K')/2: a matrix product leaves different rounding errors on the two sides of the diagonal."""
    if K.shape[0] != K.shape[1]:
        return K
    if K.dtype != np.float64 or not K.flags.c_contiguous:
        return 0.5 * (K + K.T)
    out = K if in_place else K.copy()
    core.symmetrise(out)
    return out


def side_by_side(left: Any, right: Any) -> Any:
    if scipy.sparse.issparse(left) or scipy.sparse.issparse(right):
        return scipy.sparse.hstack([left, right], format="csr")
    return np.hstack([left, right])


def all_products(left: Any, right: Any) -> Array:
    """All products of entries of the two, row by row."""
    left, right = spread(left), spread(right)
    return np.einsum("ij,ik->ijk", left, right).reshape(len(left), -1)
