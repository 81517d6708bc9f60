"""The only importer of the compiled core.

Converts Python objects to those of the core (matrices to ``Design`` views, losses to native ones) and passes SciPy's BLAS to
the core. Arrays are not copied unless a docstring here states it.
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

core = _core
Report = Callable[[int, float, float], bool]


def _thread_controls() -> tuple[int, int]:
    """Addresses of SciPy's ``openblas_set_num_threads`` and its getter; zeros if SciPy has another BLAS."""
    # A symbol lookup in a library continues in the libraries it is linked to, so the path of the BLAS is not needed.
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
    """A table of numbers and categories, X = [numbers | one column per level of each category], never stored in full.

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

    def tocsr(self) -> scipy.sparse.csr_array:
        """The table with a column of zeros and ones for every level."""
        blocks = [scipy.sparse.csr_array(self.numbers)]
        for codes, levels in zip(self.codes, self.levels):
            rows = np.flatnonzero(codes >= 0)
            entries = np.ones(len(rows), dtype=self.dtype), (rows, codes[rows])
            blocks.append(scipy.sparse.coo_array(entries, shape=(len(codes), levels)).tocsr())
        return scipy.sparse.hstack(blocks, format="csr")


class Design:
    """A view of a matrix for the core: dense (rows or columns contiguous), CSR or CSC, float32 or float64, not copied.

    Keeps a reference to the arrays, so the view stays valid for as long as this object lives. ``checked``: the caller
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

    def matvec_and_rmatvec(self, w: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Xw and X'u of vectors, in one pass over X where its storage allows."""
        return self.native.matvec_and_rmatvec(*(np.ascontiguousarray(v, dtype=np.float64) for v in (w, u)))

    def _conformable(self, A: np.ndarray, size: int, what: str) -> np.ndarray:
        """A in the form of the native code. It is checked here because weights may come from a file."""
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
        """A dense copy of the chosen columns."""
        return self.native.columns(np.ascontiguousarray(which, dtype=np.int64))


def _canonical(X: Any, checked: bool) -> Any:
    """X itself; a copy in canonical format if it is sparse and its indices are unsorted or have duplicates."""
    if scipy.sparse.issparse(X) and X.format in ("csr", "csc"):
        if not checked:
            check_indices(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    return X


def check_indices(X: Any) -> None:
    """Raise for a sparse matrix whose arrays are inconsistent; anything that is not sparse is accepted.

    Compiled code, also that of SciPy, uses the indices without checks. The check takes one pass over them, on all threads. It
    also sets the flags ``has_sorted_indices`` and ``has_canonical_format`` of a CSR or CSC matrix, which are stale if a caller
    has written into its arrays.
    """
    if scipy.sparse.issparse(X) and (problem := _SPARSE_PROBLEMS[X.format](X)):
        raise ValueError(
            f"X is a broken sparse matrix of shape {X.shape}: {problem}. Build it again from its entries, for example "
            "with scipy.sparse.coo_array((data, (rows, columns)), shape=shape).tocsr()."
        )


def _compressed_problem(X: Any) -> str | None:
    """The inconsistency of a CSR, CSC or BSR matrix; None if there is none."""
    starts, indices, shape = X.indptr, X.indices, X.shape
    if X.format == "bsr":
        if X.data.ndim != 3 or 0 in X.blocksize or any(size % block for size, block in zip(shape, X.blocksize)):
            return f"its data is not made of blocks that divide the shape (data has shape {X.data.shape})"
        shape = tuple(size // block for size, block in zip(shape, X.blocksize))
    elif X.data.ndim != 1 or X.ndim != 2:
        return f"its data must be one-dimensional and its shape two-dimensional, got {X.data.shape}"
    major, minor = shape if X.format != "csc" else shape[::-1]
    for name, part in (("indptr", starts), ("indices", indices)):
        if not isinstance(part, np.ndarray) or part.ndim != 1 or part.dtype not in (np.int32, np.int64):
            return f"{name} must be an array of int32 or int64"
    if starts.dtype != indices.dtype:
        return f"indptr is {starts.dtype} and indices is {indices.dtype}; both must be of one type"
    if len(starts) != major + 1:
        return f"indptr has {len(starts)} entries, {major + 1} are needed"
    if starts[-1] > min(len(indices), len(X.data)):
        return f"indptr ends at {starts[-1]}, but there are {len(indices)} indices and {len(X.data)} values"
    found = _core.check_compressed(np.ascontiguousarray(starts), np.ascontiguousarray(indices), major, minor)
    if found == 0:
        return f"indptr decreases or does not start at 0, or an index lies outside 0 … {minor - 1}"
    X.has_sorted_indices = found == 2
    X.has_canonical_format = found == 2
    return None


def _coordinate_problem(X: Any) -> str | None:
    if any(len(axis) != len(X.data) for axis in X.coords):
        return f"it has {len(X.data)} values and coordinates of lengths {[len(axis) for axis in X.coords]}"
    for axis, size in zip(X.coords, X.shape):
        if axis.dtype.kind not in "iu" or (len(axis) and not 0 <= axis.min() <= axis.max() < size):
            return f"a coordinate lies outside 0 … {size - 1}"
    return None


def _list_problem(X: Any) -> str | None:
    if len(X.rows) != X.shape[0] or len(X.data) != X.shape[0]:
        return f"it has {len(X.rows)} lists of columns and {len(X.data)} lists of values"
    for columns, values in zip(X.rows, X.data):
        if len(columns) != len(values) or any(not 0 <= j < X.shape[1] for j in columns):
            return f"a row has more columns than values, or a column outside 0 … {X.shape[1] - 1}"
    return None


def _key_problem(X: Any) -> str | None:
    rows, columns = X.shape
    inside = all(0 <= i < rows and 0 <= j < columns for i, j in X.keys())  # noqa: SIM118 (a matrix, not a dict)
    return None if inside else "a key lies outside its shape"


def _diagonal_problem(X: Any) -> str | None:
    well_formed = X.data.ndim == 2 and X.offsets.ndim == 1 and X.offsets.dtype.kind in "iu"
    return None if well_formed and len(X.data) == len(X.offsets) else "it needs one row of data per offset"


_SPARSE_PROBLEMS: dict[str, Callable[[Any], str | None]] = {
    "csr": _compressed_problem, "csc": _compressed_problem, "bsr": _compressed_problem, "coo": _coordinate_problem,
    "lil": _list_problem, "dok": _key_problem, "dia": _diagonal_problem,
}  # fmt: skip


def _view(X: Any) -> Any:
    if isinstance(X, CodedTable):
        return _core.coded(_view(X.numbers), X.codes, X.levels)
    if scipy.sparse.issparse(X):
        if X.format not in ("csr", "csc"):
            raise TypeError(f"X is sparse in {X.format} format; convert it with X.tocsr() first.")
        if X.data.dtype not in (np.float32, np.float64):
            raise TypeError(f"X is a sparse matrix of {X.data.dtype}; convert it with X.astype(float) first.")
        make = _core.csr if X.format == "csr" else _core.csc
        return make(X.data, X.indices, X.indptr, *X.shape)
    return _core.dense(X)


def surely_finite(X: Any) -> bool:
    """Whether X is a dense or sparse array of finite floats; False also for types that cannot be checked here."""
    values = X.data if scipy.sparse.issparse(X) and X.format in ("csr", "csc") else X
    if not isinstance(values, np.ndarray) or values.dtype not in (np.float64, np.float32):
        return False
    return values.flags.forc and _core.all_finite(np.asarray(values).ravel(order="K"))


MOST_THREADS = 1024


def set_num_threads(threads: int | None) -> None:
    """Use this many threads from now on, at most 1024; None for as many as the process may use.

    Results do not depend on it. If the system cannot create a thread, fewer are used.

    Parameters
    ----------
    threads : int or None
        How many, from 1 to 1024; None for as many as the process may use.
    """
    if threads is None:
        _core.set_num_threads(0)
        return
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or not 1 <= threads <= MOST_THREADS:
        raise ValueError(f"threads must be a whole number between 1 and {MOST_THREADS}, or None; got {threads!r}.")
    _core.set_num_threads(int(threads))


def num_threads() -> int:
    """The number of threads of native code."""
    return _core.num_threads()
