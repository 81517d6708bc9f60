"""Shapley values of boosted trees: the contribution of each feature to a prediction."""

from __future__ import annotations

import numpy as np

from hinge._native import core
from hinge.models.trees.arrays import Trees


def shap_values(trees: Trees, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(phi, base) with phi of shape (n, d, outputs): base + Σ_j phi_j is the sum of the trees (TreeSHAP).

    Unknown features follow the training rows: at a split, in proportion to the weight on each side.
    """
    phi = core.tree_shap(trees.arrays(), np.ascontiguousarray(trees.weight, dtype=np.float64), X)
    return phi.reshape(len(X), X.shape[1], trees.outputs), expected_values(trees)


def expected_values(trees: Trees) -> np.ndarray:
    """The mean of the trees over the training rows, by output."""
    total = np.zeros(trees.outputs)
    for t in range(len(trees)):
        at = trees.nodes(t)
        feature, left, weight = trees.feature[at], trees.left[at], trees.weight[at]
        mean = trees.value[at, 0].copy()
        for i in np.flatnonzero(feature >= 0)[::-1]:  # children come after their parents
            a, b = weight[left[i]], weight[left[i] + 1]
            share = a / (a + b) if a + b > 0 else 0.5
            mean[i] = share * mean[left[i]] + (1.0 - share) * mean[left[i] + 1]
        total[t % trees.outputs] += mean[0]
    return total
