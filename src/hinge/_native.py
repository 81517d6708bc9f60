"""The only importer of the compiled core.

Turns Python objects into what the core takes (matrices into ``Design`` views, losses into native ones) and hands the
core SciPy's BLAS. Arrays are never copied on the way unless a docstring here says so.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg.cython_blas
import scipy.linalg.cython_lapack
import scipy.sparse

from hinge import _core
from hinge.problem.losses.base import Loss
from hinge.problem.losses.custom import CustomLoss

core = _core
Report = Callable[[int, float, float], bool]


def _thread_controls() -> tuple[int, int]:
    """Addresses of SciPy's ``openblas_set_num_threads`` and its getter; zeros if SciPy has another BLAS."""
    # A look-up in a library goes on in those it was linked to: nothing has to be searched for.
    handle = ctypes.CDLL(scipy.linalg.cython_blas.__file__)
    for suffix in ("", "64_"):
        try:
            setter = getattr(handle, f"scipy_openblas_set_num_threads{suffix}")
            getter = getattr(handle, f"scipy_openblas_get_num_threads{suffix}")
        except AttributeError:
            continue
        return ctypes.cast(setter, ctypes.c_void_p).value or 0, ctypes.cast(getter, ctypes.c_void_p).value or 0
    return 0, 0


_core.set_blas(scipy.linalg.cython_blas.__pyx_capi__, scipy.linalg.cython_lapack.__pyx_capi__, *_thread_controls())


@dataclass(frozen=True, eq=False)
class CodedTable:
    """A table of numbers and categories, X = [numbers | one column per level of each category], never written out.

    Attributes
    ----------
    numbers : array or sparse matrix of shape (n, d)
    codes : list of int32 arrays of n entries
        The level of every row; −1 for a row of zeros.
    levels : list of int
        How many columns each array of codes stands for.
    """

    numbers: Any
    codes: list[np.ndarray]
    levels: list[int]

    @property
    def shape(self) -> tuple[int, int]:
        return self.numbers.shape[0], self.numbers.shape[1] + sum(self.levels)

    @property
    def dtype(self) -> np.dtype:
        return self.numbers.dtype


class Design:
    """A matrix as the core sees it: dense (rows or columns contiguous), CSR or CSC, float32 or float64, not copied.

    Keeps a reference to the arrays, so the view stays valid for as long as this object lives. ``checked``: somebody
    has called :func:`check_indices` already.
    """

    def __init__(self, X: Any, *, checked: bool = False) -> None:
        self.source: Any = X.source if isinstance(X, Design) else _canonical(X, checked)
        self.native: Any = X.native if isinstance(X, Design) else _view(self.source)
        self.shape: tuple[int, int] = self.native.shape

    @property
    def sparse(self) -> bool:
        return self.native.sparse

    @property
    def coded(self) -> bool:
        """Whether it is a :class:`CodedTable`."""
        return isinstance(self.source, CodedTable)

    def matmul(self, W: np.ndarray) -> np.ndarray:
        """X W, for a vector or a matrix W."""
        W = self._conformable(W, self.shape[1], "columns")
        if W.ndim == 2 and W.shape[1] == 1:
            return self.native.matvec(W[:, 0].copy())[:, None]
        return self.native.matvec(W) if W.ndim == 1 else self.native.matmat(W)

    def rmatmul(self, U: np.ndarray) -> np.ndarray:
        """X'U, for a vector or a matrix U."""
        U = self._conformable(U, self.shape[0], "rows")
        if U.ndim == 2 and U.shape[1] == 1:
            return self.native.rmatvec(U[:, 0].copy())[:, None]
        return self.native.rmatvec(U) if U.ndim == 1 else self.native.rmatmat(U)

    def both_ways(self, w: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Xw and X'u of vectors, in one pass over X where its storage allows."""
        return self.native.both_ways(*(np.ascontiguousarray(v, dtype=np.float64) for v in (w, u)))

    def _conformable(self, A: np.ndarray, size: int, what: str) -> np.ndarray:
        """A as native code takes it. Checked here because weights may come from a file."""
        A = np.ascontiguousarray(A, dtype=np.float64)
        if A.ndim not in (1, 2) or A.shape[0] != size:
            raise ValueError(f"cannot multiply: the matrix has {size} {what}, the other factor has shape {A.shape}.")
        return A

    def gram(self, h: np.ndarray | None = None) -> np.ndarray:
        """X' diag(h) X for h ≥ 0."""
        return self.native.gram(None if h is None else np.ascontiguousarray(h, dtype=np.float64))

    def moments(self, h: np.ndarray, y: np.ndarray) -> np.ndarray:
        """[X 1 y]' diag(h) [X 1 y] for h ≥ 0, in one pass where X is dense."""
        return self.native.moments(*(np.ascontiguousarray(v, dtype=np.float64) for v in (h, y)))

    def square_sums(self, h: np.ndarray | None = None) -> np.ndarray:
        """Σᵢ hᵢ xᵢⱼ² for every column j."""
        return self.native.square_sums(None if h is None else np.ascontiguousarray(h, dtype=np.float64))

    def columns(self, which: np.ndarray) -> np.ndarray:
        """Chosen columns as a dense array of their own (a copy)."""
        return self.native.columns(np.ascontiguousarray(which, dtype=np.int64))


def _canonical(X: Any, checked: bool) -> Any:
    """X itself; a copy with sorted indices if it is sparse and has them unsorted or twice."""
    if scipy.sparse.issparse(X) and X.format in ("csr", "csc"):
        if not checked:
            check_indices(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    return X


def check_indices(X: Any) -> None:
    """Refuses a sparse matrix whose indices lie outside it: compiled code, SciPy's too, reads and writes where they say."""
    if not (scipy.sparse.issparse(X) and X.format in ("csr", "csc")):
        return
    starts, minor = X.indptr, X.shape[1 if X.format == "csr" else 0]
    ok = starts[0] == 0 and starts[-1] <= min(len(X.indices), len(X.data)) and bool(np.all(starts[1:] >= starts[:-1]))
    if not (ok and _core.all_within(np.ascontiguousarray(X.indices), minor)):
        raise ValueError(f"X is a broken sparse matrix: its indices or indptr point outside its shape {X.shape}.")


def _view(X: Any) -> Any:
    if isinstance(X, CodedTable):
        return _core.coded(_view(X.numbers), X.codes, X.levels)
    if scipy.sparse.issparse(X):
        if X.format not in ("csr", "csc"):
            raise TypeError(f"X is sparse in {X.format} format; convert it with X.tocsr() first.")
        make = _core.csr if X.format == "csr" else _core.csc
        return make(X.data, X.indices, X.indptr, *X.shape)
    return _core.dense(X)


def surely_finite(X: Any) -> bool:
    """Whether X is an array, or a sparse matrix, of floats without NaN or infinity; False also where it cannot tell."""
    values = X.data if scipy.sparse.issparse(X) and X.format in ("csr", "csc") else X
    if not isinstance(values, np.ndarray) or values.dtype not in (np.float64, np.float32):
        return False
    return values.flags.forc and _core.all_finite(np.asarray(values).ravel(order="K"))


def native_loss(loss: Loss) -> Any:
    """The compiled twin of a loss, or a wrapper that calls the Python one once per array."""
    if not isinstance(loss, CustomLoss):
        twin = _core.loss(type(loss).__name__, list(loss.params()))
        if twin is not None:
            return twin
    return _core.python_loss(loss)


def set_num_threads(threads: int | None) -> None:
    """Use this many threads from now on; None for as many as the process may use."""
    _core.set_num_threads(0 if threads is None else int(threads))


def num_threads() -> int:
    """How many threads native code uses."""
    return _core.num_threads()
