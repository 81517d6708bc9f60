"""Nearest-neighbour search: exhaustive, or by a k-d tree for many points in few dimensions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from hinge._native import core
from hinge.models.base import require_no_overflow
from hinge.problem.kernels.evaluate import points, spread

Array = NDArray[np.float64]

# The codes of native/neighbors/distance.hpp.
METRICS = {"euclidean": 0, "manhattan": 1, "chebyshev": 2, "minkowski": 3, "cosine": 4}
SPARSE_METRICS = ("euclidean", "cosine")
# A tree is worth it only in few dimensions: a query is surrounded by 2^d boxes.
MOST_TREE_FEATURES = 10
TREE_POINTS = 64


@dataclass(eq=False)
class NeighborSearch:
    """The points that are searched.

    Attributes
    ----------
    X : array or sparse matrix of shape (n, d)
        The points.
    metric : str
        One of METRICS.
    p : float
        The power of "minkowski".
    algorithm : {"auto", "brute", "kd_tree", "ball_tree"}
        How to search; the neighbours are the same.
    leaf_size : int
        Points in a leaf of the tree.
    """

    X: Any
    metric: str
    p: float
    algorithm: str
    leaf_size: int
    _index: Any = field(default=None, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_index": None}

    @property
    def uses_tree(self) -> bool:
        """Whether the search uses a k-d tree."""
        n, d = self.X.shape
        if scipy.sparse.issparse(self.X) or self.metric == "cosine" or self.algorithm == "brute":
            return False
        return self.algorithm == "kd_tree" or (d <= MOST_TREE_FEATURES and n >= TREE_POINTS * 2**d)

    @property
    def index(self) -> Any:
        """The native search structure, built when it is first needed."""
        if self._index is None:
            if self.uses_tree:
                self._index = core.KdTree(np.ascontiguousarray(self.X, dtype=np.float64), self.leaf_size)
            else:
                self._index = points(self._prepared(self.X, self.X.dtype))
        return self._index

    def nearest(self, Q: Any, k: int) -> tuple[Array, NDArray[np.intp]]:
        """Distances and indices of the k nearest points of every row of Q; of the points themselves if Q is None."""
        same = Q is None
        code, index = METRICS[self.metric], self.index
        if self.uses_tree:
            queries = np.ascontiguousarray(self.X if same else spread(Q), dtype=np.float64)
            keys, found = index.nearest(code, self.p, queries, k, same)
        else:
            queries = index if same else points(self._prepared(self._stored_alike(Q), self.X.dtype))
            if type(queries) is not type(index):  # float64 queries against float32 points
                index = points(self._prepared(self.X, np.float64))
            keys, found = core.nearest_of_all(code, self.p, queries, index, k, same)
        require_no_overflow(keys)
        return self._distances(keys), found.view(np.intp)

    def _stored_alike(self, Q: Any) -> Any:
        """The queries in the points' storage: sparse or dense."""
        if scipy.sparse.issparse(self.X):
            return Q if scipy.sparse.issparse(Q) else scipy.sparse.csr_array(Q)
        return spread(Q)

    def _prepared(self, X: Any, dtype: Any) -> Any:
        """Rows in the precision of the points or double; normalised for cosines, whose key is |a/‖a‖ − b/‖b‖|².

        Few columns are searched in double, as in a tree.
        """
        if X.dtype != dtype or (X.shape[1] <= MOST_TREE_FEATURES and not scipy.sparse.issparse(X)):
            X = X.astype(np.float64)
        return unit_rows(X) if self.metric == "cosine" else X

    def _distances(self, keys: Array) -> Array:
        match self.metric:
            case "euclidean":
                return np.sqrt(keys)
            case "minkowski":
                return keys ** (1.0 / self.p)
            case "cosine":
                return 0.5 * keys
        return keys

    def _check_loaded(self) -> None:
        """Checks points read from a file."""
        X = self.X
        if not (isinstance(X, np.ndarray) or scipy.sparse.issparse(X)) or X.ndim != 2 or 0 in X.shape:
            raise ValueError("it holds no table of points to search among.")
        if X.dtype not in (np.float32, np.float64) or self.metric not in METRICS or not self.p > 0:
            raise ValueError("it holds points or a metric that cannot be searched.")
        if not isinstance(self.leaf_size, int) or self.leaf_size < 1:
            raise ValueError("it holds a tree of neighbours without leaves.")


def unit_rows(X: Any) -> Any:
    """Rows divided by their norm; zero rows are unchanged. Dividing by the largest entry first avoids overflow."""
    if scipy.sparse.issparse(X):
        X = X.tocsr(copy=True)
        X.sum_duplicates()
        for scale in (abs(X).max(axis=1).toarray().ravel(), None):
            size = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel()) if scale is None else scale
            X.data /= np.repeat(np.where(size > 0, size, 1.0), np.diff(X.indptr)).astype(X.dtype)
        return X
    largest = np.max(np.abs(X), axis=1, keepdims=True)
    X = X / np.where(largest > 0, largest, 1.0)
    size = np.sqrt(np.sum(X * X, axis=1, keepdims=True))
    return X / np.where(size > 0, size, 1.0)
