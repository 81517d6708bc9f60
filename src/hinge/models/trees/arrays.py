"""Tree ensembles as a few arrays: compact, picklable, fast to evaluate.

Siblings are adjacent (right = left + 1) and come after their parent; a leaf has feature −1. A row goes left if
x ≤ threshold or, if ``set`` is not −1, if its category is in that set of 256 bits; a missing value goes left if
``missing_left``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse

from hinge._native import core

SHAPE = ("feature", "threshold", "left", "missing_left", "set")
DETAILS = ("gain", "weight", "count", "impurity")
BLOCK = 1 << 20  # cells of a sparse table that are converted to dense at a time


@dataclass(eq=False)
class Trees:
    """Concatenated trees.

    Attributes
    ----------
    outputs : int
        Numbers per prediction.
    additive : bool
        True: tree t adds one number to output t mod outputs. False: every tree adds a vector of all outputs.
    start : array of trees + 1 integers
        Where the nodes of each tree begin; child numbers count from there.
    feature, threshold, left, missing_left, set, value : arrays over the nodes
    sets : array
        The sets of categories, 8 words of 32 bits each.
    gain, weight, count, impurity : arrays over the nodes, or None
        What pruning, explanations and drawings need.
    """

    outputs: int
    additive: bool
    start: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    missing_left: np.ndarray
    set: np.ndarray
    sets: np.ndarray
    value: np.ndarray
    gain: Any = None
    weight: Any = None
    count: Any = None
    impurity: Any = None
    _predictor: Any = field(default=None, init=False, repr=False)

    @classmethod
    def stack(cls, grown: list[dict[str, np.ndarray]], outputs: int, additive: bool, details: bool = True) -> Trees:
        """Concatenates trees returned by the native code, with or without the details of the nodes."""
        start = np.concatenate([[0], np.cumsum([len(t["feature"]) for t in grown])]).astype(np.int64)
        names = [*SHAPE, "sets", "value", *(d for d in DETAILS if details and d in grown[0])]
        arrays = {name: np.concatenate([t[name] for t in grown]) for name in names}
        sets = np.concatenate([[0], np.cumsum([len(t["sets"]) // 8 for t in grown])])
        for t, (begin, end) in enumerate(pairwise(start)):
            here = arrays["set"][begin:end]
            here[here >= 0] += sets[t]
        return cls(outputs, additive, start, **arrays)

    def followed_by(self, others: Trees) -> Trees:
        """These trees followed by the others, which must be of the same kind."""
        names = [n for n in (*SHAPE, "sets", "value", *DETAILS) if getattr(self, n) is not None]
        arrays = {n: np.concatenate([getattr(self, n), getattr(others, n)]) for n in names}
        arrays["set"][self.node_count :][others.set >= 0] += len(self.sets) // 8
        start = np.concatenate([self.start, self.start[-1] + others.start[1:]])
        return Trees(self.outputs, self.additive, start, **arrays)

    def without_details(self) -> Trees:
        """Only the arrays that predictions need."""
        return replace(self, gain=None, weight=None, count=None, impurity=None)

    def first(self, count: int) -> Trees:
        """The first ``count`` trees; the arrays are shared."""
        nodes: dict[str, Any] = {}
        for name in (*SHAPE, "value", *DETAILS):
            array = getattr(self, name)
            nodes[name] = None if array is None else array[: self.start[count]]
        return Trees(self.outputs, self.additive, self.start[: count + 1], sets=self.sets, **nodes)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_predictor": None}

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def node_count(self) -> int:
        return len(self.feature)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return sum(a.nbytes for a in self.__dict__.values() if isinstance(a, np.ndarray))

    def arrays(self) -> dict[str, Any]:
        """All arrays that the native code needs to evaluate the trees."""
        names = ("start", *SHAPE, "sets", "value")
        return {n: getattr(self, n) for n in names} | {"outputs": self.outputs, "additive": self.additive}

    @property
    def predictor(self) -> Any:
        if self._predictor is None:
            self._predictor = core.TreePredictor(self.arrays())
        return self._predictor

    def _check_loaded(self) -> None:
        """Checks trees read from a file: in native code, that every node has one parent, before it, and fits its arrays."""
        details = [getattr(self, name) for name in DETAILS]
        if any(array is not None and np.shape(array) != (self.node_count,) for array in details):
            raise ValueError("it holds trees whose details do not fit their nodes.")
        if not isinstance(self.outputs, int) or not isinstance(self.additive, bool):
            raise ValueError("it holds trees without a number of outputs.")
        self._predictor = core.TreePredictor(self.arrays())

    def add(self, X: Any, out: np.ndarray, first: int = 0, last: int | None = None) -> np.ndarray:
        """Add the trees first … last − 1, evaluated on X, to out (n × outputs)."""
        for rows, part, predictor in self._blocks(X):
            predictor.add(part, first, len(self) if last is None else last, out[rows])
        return out

    def _blocks(self, X: Any) -> Iterator[tuple[slice, np.ndarray, Any]]:
        """Dense blocks of rows and their native evaluator; of a sparse table only the columns that the trees use."""
        if not scipy.sparse.issparse(X):
            yield slice(0, len(X)), X, self.predictor
            return
        inner = self.feature >= 0
        used, at = np.unique(self.feature[inner], return_inverse=True)
        feature = np.full(len(self.feature), -1, dtype=self.feature.dtype)
        feature[inner] = at
        predictor = core.TreePredictor(self.arrays() | {"feature": feature})
        X = X[:, used]
        step = max(1, BLOCK // max(1, len(used)))
        for begin in range(0, X.shape[0], step):
            rows = slice(begin, min(begin + step, X.shape[0]))
            yield rows, X[rows].toarray(), predictor

    def sums(self, X: Any, first: int = 0, last: int | None = None) -> np.ndarray:
        """The sum of the trees first … last − 1."""
        return self.add(X, np.zeros((X.shape[0], self.outputs)), first, last)

    def leaves(self, X: Any) -> np.ndarray:
        """The leaf of each row, for every tree."""
        return np.concatenate([predictor.leaves(part) for _, part, predictor in self._blocks(X)])

    def out_of_bag(self, X: Any, bags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The sum and the number of the trees for which each row is out of bag; bags: trees × n."""
        found = [p.out_of_bag(part, np.ascontiguousarray(bags[:, rows])) for rows, part, p in self._blocks(X)]
        return np.concatenate([sums for sums, _ in found]), np.concatenate([count for _, count in found])

    def paths(self, X: Any) -> Any:
        """A sparse (row, node) matrix with ones for the nodes on each row's paths; the nodes of all trees are columns."""
        parent = np.full(self.node_count, -1)
        inner = np.flatnonzero(self.feature >= 0)
        begin = np.repeat(self.start[:-1], np.diff(self.start))[inner]
        parent[begin + self.left[inner]] = parent[begin + self.left[inner] + 1] = inner
        if np.any(parent >= np.arange(self.node_count)):
            raise ValueError("The trees hold nodes that come before their parents; the model was altered.")
        at = (self.leaves(X) + self.start[:-1]).ravel()
        row = np.repeat(np.arange(X.shape[0]), len(self))
        rows, nodes = [], []
        while len(at):
            rows.append(row)
            nodes.append(at)
            at = parent[at]
            row, at = row[at >= 0], at[at >= 0]
        found = np.concatenate(rows), np.concatenate(nodes)
        return scipy.sparse.csr_array(
            (np.ones(len(found[0]), dtype=np.int64), found), shape=(X.shape[0], self.node_count)
        )

    def nodes(self, t: int) -> slice:
        """The range of tree t in the arrays."""
        return slice(int(self.start[t]), int(self.start[t + 1]))

    def depths(self, t: int = 0) -> np.ndarray:
        """The depth of every node of tree t; the root has 0."""
        at = self.nodes(t)
        feature, left = self.feature[at], self.left[at]
        depth = np.zeros(len(feature), dtype=np.int64)
        for i in np.flatnonzero(feature >= 0):
            depth[left[i]] = depth[left[i] + 1] = depth[i] + 1
        return depth

    def categories(self, node: int) -> np.ndarray:
        """The category codes that go left at a node (an index into the arrays)."""
        bits = self.sets[8 * self.set[node] : 8 * self.set[node] + 8]
        return np.flatnonzero((bits[np.arange(256) >> 5] >> (np.arange(256) & 31)) & 1)

    def gains(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        """Features and gains of the nodes of tree t."""
        return self.feature[self.nodes(t)], self.gain[self.nodes(t)]

    def walk(self, t: int = 0) -> Iterator[tuple[int, int]]:
        """(node, depth) of tree t in depth-first order, left before right."""
        stack = [(0, 0)]
        begin = int(self.start[t])
        while stack:
            node, depth = stack.pop()
            yield node, depth
            if self.feature[begin + node] >= 0:
                left = int(self.left[begin + node])
                stack += [(left + 1, depth + 1), (left, depth + 1)]


def add_gains(total: np.ndarray, trees: Iterable[tuple[np.ndarray, np.ndarray]], scaled: bool = True) -> np.ndarray:
    """total += gain by feature, tree by tree (each scaled to one if ``scaled``), from features and gains of their nodes."""
    for feature, gain in trees:
        inner = feature >= 0
        gains = np.bincount(feature[inner], weights=gain[inner], minlength=len(total))
        total += gains / gains.sum() if scaled and gains.sum() > 0 else gains
    return total


def as_shares(gains: np.ndarray) -> np.ndarray:
    """Importances: gains scaled to sum to one, unless there are none."""
    return gains / gains.sum() if gains.sum() > 0 else gains.copy()
