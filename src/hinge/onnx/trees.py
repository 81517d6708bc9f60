"""Trees as the ONNX operator TreeEnsemble: double thresholds, double sums, sets of categories."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.onnx.graph import ML, Graph
from hinge.onnx.inputs import MISSING

LEQ, MEMBER = 0, 6


def tree_sums(graph: Graph, X: str, trees: Any, targets: int, columns: list[int] | None = None) -> str:
    """Σ_t tree_t(x) per target.

    Tree t of a boosting model adds to the target t mod ``targets``. Trees whose leaves hold one number per class are
    repeated once per class of ``columns``, since leaves of ONNX trees hold a single number.
    """
    builder = _Builder(trees)
    for k, column in enumerate([0] if trees.additive else (columns or range(trees.outputs))):
        for t in range(len(trees)):
            builder.add(t, column, t % targets if trees.additive else k)
    return graph.node("TreeEnsemble", X, domain=ML, n_targets=targets, aggregate_function=1, post_transform=0,
                      **builder.attributes())  # fmt: skip


class _Builder:
    """Lists of nodes and leaves, tree after tree."""

    def __init__(self, trees: Any) -> None:
        self.trees = trees
        self.roots: list[int] = []
        self.feature: list[int] = []
        self.split: list[float] = []
        self.mode: list[int] = []
        self.true: list[int] = []
        self.true_leaf: list[int] = []
        self.false: list[int] = []
        self.false_leaf: list[int] = []
        self.missing: list[int] = []
        self.members: list[float] = []
        self.leaf_target: list[int] = []
        self.leaf_weight: list[float] = []

    def add(self, t: int, column: int, target: int) -> None:
        """Append tree t, whose leaves add column ``column`` of their values to a target."""
        trees = self.trees
        base = int(trees.start[t])
        at = trees.nodes(t)
        feature, left = trees.feature[at], trees.left[at]
        value = trees.value[at].reshape(len(feature), -1)[:, column]
        inner = np.flatnonzero(feature >= 0)
        place = {int(i): len(self.feature) + k for k, i in enumerate(inner)}
        self.roots.append(len(self.feature))
        if not len(inner):  # a single leaf becomes a split with two equal leaves
            leaf = self._leaf(target, value[0])
            self._node(0, 0.0, LEQ, (leaf, 1), (leaf, 1), 0)
            return
        for i in inner:
            node = base + int(i)
            sides = []
            for child in (int(left[i]), int(left[i]) + 1):
                sides.append((place[child], 0) if feature[child] >= 0 else (self._leaf(target, value[child]), 1))
            missing = int(trees.missing_left[node])
            if trees.set[node] >= 0:
                codes = [c for c in map(float, trees.categories(node)) if c != MISSING]
                self.members += [*codes, *[float(MISSING)] * missing, np.nan]
                self._node(int(feature[i]), 0.0, MEMBER, sides[0], sides[1], 0)
            else:
                self._node(int(feature[i]), float(trees.threshold[node]), LEQ, sides[0], sides[1], missing)

    def _leaf(self, target: int, weight: float) -> int:
        self.leaf_target.append(target)
        self.leaf_weight.append(float(weight))
        return len(self.leaf_target) - 1

    def _node(self, feature: int, split: float, mode: int, true: Any, false: Any, missing: int) -> None:
        self.feature.append(feature)
        self.split.append(split)
        self.mode.append(mode)
        self.true.append(true[0])
        self.true_leaf.append(true[1])
        self.false.append(false[0])
        self.false_leaf.append(false[1])
        self.missing.append(missing)

    def attributes(self) -> dict[str, Any]:
        from onnx import numpy_helper

        def tensor(values: Any, dtype: Any) -> Any:
            return numpy_helper.from_array(np.asarray(values, dtype=dtype))

        found = {
            "tree_roots": self.roots, "nodes_featureids": self.feature, "nodes_splits": tensor(self.split, np.float64),
            "nodes_modes": tensor(self.mode, np.uint8), "nodes_truenodeids": self.true,
            "nodes_trueleafs": self.true_leaf, "nodes_falsenodeids": self.false, "nodes_falseleafs": self.false_leaf,
            "nodes_missing_value_tracks_true": self.missing, "leaf_targetids": self.leaf_target,
            "leaf_weights": tensor(self.leaf_weight, np.float64),
        }  # fmt: skip
        if self.members:
            found["membership_values"] = tensor(self.members, np.float64)
        return found
