"""One tree with scikit-learn's attribute names (``tree_``), for code that traverses the nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from hinge.models.trees.arrays import Trees, add_gains, as_shares

LEAF, NO_FEATURE = -1, -2


def _rows(X: Any) -> Any:
    """Rows in a form that the trees can read: sparse in any format, otherwise contiguous."""
    return X.tocsr() if scipy.sparse.issparse(X) else np.ascontiguousarray(X)


class TreeView:
    """The nodes of a tree, as in scikit-learn's ``Tree``.

    Attributes
    ----------
    node_count, n_leaves, max_depth, n_features, n_outputs, max_n_classes, capacity : int
    n_classes : array of int
        Classes of every target; one where the target is a number.
    children_left, children_right : arrays of int
        −1 for leaves.
    feature, threshold : arrays
        −2 for leaves. Where a node divides categories its threshold is NaN; :meth:`DecisionTreeClassifier.rules`
        names them.
    value : array of shape (nodes, targets, classes)
        Shares of the classes, or means.
    missing_go_to_left, impurity, n_node_samples, weighted_n_node_samples : arrays
        The last three are not kept by forests, and impurities not by boosting.
    """

    def __init__(self, trees: Trees, n_features: int, n_classes: Any) -> None:
        self._trees, self.n_features, self.n_classes = trees, n_features, np.atleast_1d(n_classes)
        leaf = trees.feature < 0
        self.children_left = np.where(leaf, LEAF, trees.left).astype(np.int64)
        self.children_right = np.where(leaf, LEAF, trees.left + 1).astype(np.int64)
        self.feature = np.where(leaf, NO_FEATURE, trees.feature).astype(np.int64)
        self.threshold = np.where(leaf, float(NO_FEATURE), np.where(trees.set >= 0, np.nan, trees.threshold))
        self.missing_go_to_left = trees.missing_left.astype(np.uint8)
        self.node_count = self.capacity = trees.node_count
        self.n_leaves = int(np.sum(leaf))
        self.n_outputs, self.max_n_classes = len(self.n_classes), int(np.max(self.n_classes))

    @property
    def max_depth(self) -> int:
        return int(self._trees.depths().max())

    @property
    def value(self) -> np.ndarray:
        value = self._trees.value.reshape(self.node_count, -1)
        if self.n_outputs == 1:
            return value[:, None, :]
        out = np.zeros((self.node_count, self.n_outputs, self.max_n_classes))
        for k, columns in enumerate(np.split(value, np.cumsum(self.n_classes)[:-1], axis=1)):
            out[:, k, : columns.shape[1]] = columns
        return out

    @property
    def impurity(self) -> np.ndarray:
        return self._kept("impurity")

    @property
    def n_node_samples(self) -> np.ndarray:
        return self._kept("count")

    @property
    def weighted_n_node_samples(self) -> np.ndarray:
        return self._kept("weight")

    def _kept(self, name: str) -> np.ndarray:
        values = getattr(self._trees, name)
        if values is None:
            raise AttributeError(
                f"The {name} of nodes is not kept in ensembles, which store what predictions need. rules() and plot() "
                "show such a tree without it; a single tree has it."
            )
        return values

    def predict(self, X: Any) -> np.ndarray:
        """The value of the leaf of every row: (rows, classes), or (rows, targets, classes) for several targets."""
        values = self.value[self.apply(X)]
        return values[:, 0] if self.n_outputs == 1 else values

    def apply(self, X: Any) -> np.ndarray:
        """The node number of every row's leaf."""
        return self._trees.leaves(_rows(X))[:, 0].astype(np.int64)

    def decision_path(self, X: Any) -> Any:
        """A sparse (row, node) matrix with ones for the nodes on each row's path."""
        return self._trees.paths(_rows(X))

    def compute_feature_importances(self, normalize: bool = True) -> np.ndarray:
        """Decrease of impurity by feature, scaled to sum to one or as a fraction of the tree's weight."""
        self._kept("gain")
        gains = add_gains(np.zeros(self.n_features), [self._trees.gains(0)], scaled=False)
        return as_shares(gains) if normalize else gains / self._kept("weight")[0]
