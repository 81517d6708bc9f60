"""Quantiles of the target given the inputs, from the leaves of a forest (Meinshausen 2006)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse


def leaf_quantiles(forest: Any, leaves: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Quantiles for rows in the given leaves (rows × trees): training targets weighted by shared leaves."""
    order = np.argsort(forest.targets_, kind="stable")
    targets, n, out = forest.targets_[order], len(forest.targets_), np.empty((len(leaves), len(levels)))
    membership = []
    for t in range(len(forest.trees_)):
        nodes = int(forest.trees_.start[t + 1] - forest.trees_.start[t])
        leaf, weight = forest.leaves_[order, t], forest.target_weights_[order]
        share = weight / np.bincount(leaf, weights=weight, minlength=nodes)[leaf]
        membership.append(scipy.sparse.csr_array((share, (leaf, np.arange(n))), shape=(nodes, n)))
    for begin in range(0, len(leaves), 256):
        rows = slice(begin, min(begin + 256, len(leaves)))
        weights = sum(
            (membership[t][leaves[rows, t]] for t in range(1, len(membership))), membership[0][leaves[rows, 0]]
        )
        cumulative = np.cumsum(weights.toarray(), axis=1)
        cumulative /= cumulative[:, -1:]
        for k, level in enumerate(levels):
            at = np.argmax(cumulative >= min(level, 1.0) - 1e-12, axis=1)
            out[rows, k] = targets[at]
    return out
