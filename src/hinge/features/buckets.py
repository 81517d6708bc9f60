"""Discretisation of numbers into intervals."""

from __future__ import annotations

import heapq
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from hinge._parameters import Constraints, Estimator, count, one_of
from hinge._validation import validate_data
from hinge.features.encoders import one_hot
from hinge.features.precision import KeepsPrecision

STRATEGIES = ("uniform", "quantile", "tree", "given")
ENCODINGS = ("onehot", "onehot-dense", "ordinal", "thermometer")


class Buckets(KeepsPrecision, Estimator):
    """Cuts every feature at edges e₁ < … < e_{k−1}; bucket i is [eᵢ, eᵢ₊₁), the outer ones reach to infinity.

    A linear function of the one-hot outputs is any step function of the feature: non-monotone effects become linear.

    Parameters
    ----------
    n_bins : int
        Buckets per feature; equal edges and empty gains leave fewer.
    encode : {"onehot", "onehot-dense", "ordinal", "thermometer"}
        A sparse or dense output per bucket; the number of the bucket; or an output per edge, 1 from there on, so that
        weights are steps and an L1 penalty merges neighbours.
    strategy : {"quantile", "uniform", "tree", "given"}
        Equally many training rows per bucket; equal widths; the leaves of a regression tree on this feature alone (for
        labels: the tree of least Gini impurity), which needs y; or ``edges``.
    edges : list of arrays, or one array for all features, optional
        The inner edges for strategy="given".

    Attributes
    ----------
    bin_edges_ : array of arrays
        The edges, with the smallest and largest training value at the ends.
    n_bins_ : array
        Buckets per feature.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> x = np.arange(8.0)[:, None]
    >>> hg.Buckets(2, encode="ordinal").fit_transform(x).ravel().astype(int).tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    >>> tree = hg.Buckets(2, encode="ordinal", strategy="tree").fit(x, [0, 0, 5, 5, 5, 5, 5, 5])
    >>> float(tree.bin_edges_[0][1])
    1.5
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_bins": [count(2)],
        "encode": [one_of(*ENCODINGS)],
        "strategy": [one_of(*STRATEGIES)],
        "edges": ["array-like", None],
    }

    def __init__(
        self, n_bins: int = 5, *, encode: str = "onehot", strategy: str = "quantile", edges: Any = None
    ) -> None:
        self.n_bins = n_bins
        self.encode = encode
        self.strategy = strategy
        self.edges = edges

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.strategy == "tree"
        return tags

    def fit(self, X: Any, y: Any = None) -> Buckets:
        """Find the edges."""
        targets = None
        if self.strategy == "tree":
            X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
            targets = _targets(y)
        else:
            X = validate_data(self, X, dtype=[np.float64, np.float32])
        given = self._given(X.shape[1]) if self.strategy == "given" else None
        edges = []
        for j in range(X.shape[1]):
            x = X[:, j].astype(np.float64)
            inner = given[j] if given is not None else _inner(x, self.strategy, int(self.n_bins), targets)
            edges.append(np.concatenate([[x.min()], inner, [x.max()]]))
        self.bin_edges_ = np.empty(len(edges), dtype=object)
        self.bin_edges_[:] = edges
        self.n_bins_ = np.array([len(e) - 1 for e in edges])
        self._n_features_out = int(self._widths().sum())
        return self

    def transform(self, X: Any) -> Any:
        """Buckets of any rows."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        at = np.column_stack(
            [np.searchsorted(e[1:-1], X[:, j].astype(np.float64), side="right") for j, e in enumerate(self.bin_edges_)]
        )
        if self.encode == "ordinal":
            return at.astype(X.dtype)
        if self.encode == "thermometer":
            return np.hstack([at[:, [j]] > np.arange(k - 1) for j, k in enumerate(self.n_bins_)]).astype(X.dtype)
        blocks = [one_hot(at[:, j].astype(np.int64), k) for j, k in enumerate(self.n_bins_)]
        out = scipy.sparse.hstack(blocks, format="csr", dtype=X.dtype)
        return out if self.encode == "onehot" else out.toarray()

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names such as "age in [20, 30)" and "age ≥ 30"."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if self.encode == "ordinal":
            return np.asarray(names, dtype=object)
        out = []
        for name, edges in zip(names, self.bin_edges_):
            inner = [f"{e:.6g}" for e in edges[1:-1]]
            if self.encode == "thermometer":
                out += [f"{name} ≥ {e}" for e in inner]
            else:
                ends = ["-inf", *inner, "inf"]
                out += [f"{name} in [{a}, {b})" for a, b in pairwise(ends)]
        return np.array(out, dtype=object)

    def _widths(self) -> np.ndarray:
        if self.encode == "ordinal":
            return np.ones(len(self.n_bins_), dtype=int)
        return self.n_bins_ - (self.encode == "thermometer")

    def _given(self, d: int) -> list[np.ndarray]:
        if self.edges is None:
            raise ValueError('strategy="given" needs edges: an array, or one per feature.')
        several = any(np.ndim(e) for e in self.edges)
        edges = [np.asarray(e, dtype=np.float64).ravel() for e in (self.edges if several else [self.edges] * d)]
        if len(edges) != d:
            raise ValueError(f"edges has {len(edges)} arrays; X has {d} features.")
        if any(np.any(np.diff(e) <= 0) or not np.all(np.isfinite(e)) for e in edges):
            raise ValueError("edges must be finite numbers in increasing order.")
        return edges


def _inner(x: np.ndarray, strategy: str, k: int, targets: np.ndarray | None) -> np.ndarray:
    """The edges between buckets, inside the range of x."""
    low, high = x.min(), x.max()
    if low == high:
        return np.empty(0)
    if strategy == "uniform":
        inner = low + (high - low) * (np.arange(1, k) / k)
    elif strategy == "quantile":
        inner = np.quantile(x, np.arange(1, k) / k)
    else:
        assert targets is not None
        inner = tree_edges(x, targets, k)
    inner = np.unique(inner)
    return inner[(inner > low) & (inner <= high)]


def _targets(y: np.ndarray) -> np.ndarray:
    """Numbers unchanged; labels one-hot, for which the squared error is the Gini impurity."""
    y = np.asarray(y)
    if y.dtype.kind == "f" and np.any(y != np.floor(y)):
        return y.astype(np.float64).reshape(len(y), -1)
    labels, codes = np.unique(y, return_inverse=True)
    if y.dtype.kind in "iuf" and len(labels) > 20:
        return y.astype(np.float64).reshape(len(y), -1)
    return np.eye(len(labels))[codes.ravel()]


def tree_edges(x: np.ndarray, targets: np.ndarray, leaves: int) -> np.ndarray:
    """Thresholds of a regression tree on one feature, grown best-first to a number of leaves."""
    order = np.argsort(x, kind="stable")
    x = x[order]
    y = targets[order] - targets.mean(axis=0)
    sums = np.vstack([np.zeros(y.shape[1]), np.cumsum(y, axis=0)])
    cuts = np.flatnonzero(x[1:] > x[:-1]) + 1  # a split at i sends the rows before i to the left

    def best(begin: int, end: int) -> tuple[float, int]:
        at = cuts[np.searchsorted(cuts, begin, side="right") : np.searchsorted(cuts, end)]
        if not len(at):
            return 0.0, -1
        parent = np.sum((sums[end] - sums[begin]) ** 2) / (end - begin)
        left = np.sum((sums[at] - sums[begin]) ** 2, axis=1) / (at - begin)
        right = np.sum((sums[end] - sums[at]) ** 2, axis=1) / (end - at)
        gains = left + right - parent
        i = int(np.argmax(gains))
        return float(gains[i]), int(at[i])

    heap: list[tuple[float, int, int, int]] = []

    def push(begin: int, end: int) -> None:
        gain, at = best(begin, end)
        if at >= 0 and gain > 1e-12 * float(np.sum(y**2)):
            heapq.heappush(heap, (-gain, begin, end, at))

    push(0, len(x))
    found: list[float] = []
    while heap and len(found) < leaves - 1:
        _, begin, end, at = heapq.heappop(heap)
        found.append(0.5 * x[at - 1] + 0.5 * x[at])
        push(begin, at)
        push(at, end)
    return np.sort(np.array(found))
