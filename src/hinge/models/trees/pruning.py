"""Cost-complexity pruning: the subtree that minimises  Σ_m N_m Q_m / N + α |leaves|, for every α ≥ 0.

Weakest-link pruning (Breiman et al. 1984, chapter 3): the subtrees that are optimal for some α are nested. The branch
below node t is cut when α reaches g(t) = (R(t) − R(branch)) / (leaves of the branch − 1), where R = N_m Q_m / N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.models.trees.arrays import DETAILS, SHAPE, Trees


@dataclass(frozen=True)
class PruningPath:
    """The values of α at which the optimal subtree changes, with its risk and number of leaves."""

    ccp_alphas: np.ndarray
    impurities: np.ndarray
    leaves: np.ndarray


def node_risks(trees: Trees) -> np.ndarray:
    """R(t) = fraction of the tree's weight in node t × its impurity."""
    root_weight = np.repeat(trees.weight[trees.start[:-1]], np.diff(trees.start))
    return trees.weight / root_weight * trees.impurity


def _collapses(tree: Trees) -> tuple[np.ndarray, list[tuple[float, float, int]]]:
    """For each inner node the α at which it becomes a leaf, and the steps (α, risk, leaves) of the path."""
    risk, feature, left = node_risks(tree), tree.feature, tree.left
    n = tree.node_count
    parent = np.full(n, -1)
    inner = np.flatnonzero(feature >= 0)
    parent[left[inner]] = parent[left[inner] + 1] = inner
    branch, leaves = risk.copy(), np.ones(n, dtype=np.int64)
    for t in inner[::-1]:  # children come after their parents
        branch[t] = branch[left[t]] + branch[left[t] + 1]
        leaves[t] = leaves[left[t]] + leaves[left[t] + 1]
    alive = feature >= 0
    when = np.full(n, np.inf)
    steps = [(0.0, float(branch[0]), int(leaves[0]))]
    alpha = 0.0
    while alive[0]:
        link = np.full(n, np.inf)
        link[alive] = (risk[alive] - branch[alive]) / (leaves[alive] - 1)
        weakest = int(np.argmin(link))
        alpha = max(alpha, float(link[weakest]))
        removed_risk, removed_leaves = risk[weakest] - branch[weakest], leaves[weakest] - 1
        stack = [weakest]
        while stack:  # everything below the node is removed with it
            t = stack.pop()
            if alive[t]:
                alive[t] = False
                when[t] = alpha
                stack += [int(left[t]), int(left[t]) + 1]
        t = weakest
        while t >= 0:
            branch[t] += removed_risk
            leaves[t] -= removed_leaves
            t = int(parent[t])
        step = (alpha, float(branch[0]), int(leaves[0]))
        if alpha <= steps[-1][0] * (1 + 1e-12) + 1e-15:  # the same α prunes several branches
            steps[-1] = (steps[-1][0], *step[1:])
        else:
            steps.append(step)
    return when, steps


def pruning_path(tree: Trees) -> PruningPath:
    """The nested optimal subtrees of a fully grown tree."""
    alphas, risks, leaves = zip(*_collapses(tree)[1])
    return PruningPath(np.array(alphas), np.array(risks), np.array(leaves))


def prune_trees(trees: Trees, alpha: float) -> Trees:
    """For each tree, the smallest subtree that minimises Σ R(leaf) + alpha · |leaves|.

    From the bottom up: a branch whose own branches are pruned is removed if R(t) ≤ R(branch) + α (leaves − 1).
    """
    base = np.repeat(trees.start[:-1], np.diff(trees.start))
    levels = [trees.start[:-1]]
    while len(levels[-1]):
        levels.append(_children(trees, base, levels[-1][trees.feature[levels[-1]] >= 0]))
    risk = node_risks(trees)
    branch, leaves, keep = risk.copy(), np.ones(trees.node_count, dtype=np.int64), trees.feature >= 0
    least = alpha * (1 + 1e-12) + 1e-15
    for level in reversed(levels):
        inner = level[trees.feature[level] >= 0]
        left = base[inner] + trees.left[inner]
        branch[inner], leaves[inner] = branch[left] + branch[left + 1], leaves[left] + leaves[left + 1]
        cut = inner[risk[inner] - branch[inner] <= least * (leaves[inner] - 1)]
        branch[cut], leaves[cut], keep[cut] = risk[cut], 1, False
    return _without(trees, base, keep)


def _children(trees: Trees, base: np.ndarray, inner: np.ndarray) -> np.ndarray:
    left = base[inner] + trees.left[inner]
    return np.column_stack([left, left + 1]).ravel()


def _without(trees: Trees, base: np.ndarray, keep: np.ndarray) -> Trees:
    """The trees with every inner node outside ``keep`` turned into a leaf, nodes in order of level."""
    levels = [trees.start[:-1]]
    while len(levels[-1]):
        levels.append(_children(trees, base, levels[-1][keep[levels[-1]]]))
    at = np.concatenate(levels)
    at = at[np.argsort(base[at], kind="stable")]
    start = np.append(np.searchsorted(base[at], trees.start[:-1]), len(at))
    new = np.empty(trees.node_count, dtype=np.int64)
    new[at] = np.arange(len(at)) - np.repeat(start[:-1], np.diff(start))
    names = (*SHAPE, "value", *(name for name in DETAILS if getattr(trees, name) is not None))
    arrays = {name: getattr(trees, name)[at] for name in names}
    cut = ~keep[at]
    for name, blank in (("feature", -1), ("left", -1), ("set", -1), ("threshold", 0), ("gain", 0), ("missing_left", 0)):
        arrays[name][cut] = blank
    inner = at[~cut]
    arrays["left"][~cut] = new[base[inner] + trees.left[inner]]
    return Trees(trees.outputs, trees.additive, start, sets=trees.sets, **arrays)


def choose_alpha(estimator: Any, X: Any, y: Any, cv: Any) -> float:
    """The α of the path with the best cross-validated score; the largest (simplest tree) in case of ties.

    Candidates are the geometric means of adjacent α of the path on all the data, as in Breiman et al., section 3.4.
    """
    from sklearn.base import clone
    from sklearn.model_selection import check_cv
    from sklearn.utils import _safe_indexing

    alphas = estimator.cost_complexity_pruning_path(X, y).ccp_alphas
    candidates = np.append(np.sqrt(alphas[:-1] * alphas[1:]), alphas[-1])
    scores = np.zeros(len(candidates))
    splitter = check_cv(cv, y, classifier=hasattr(estimator, "classes_"))
    for train, test in splitter.split(X, y):
        full = clone(estimator).set_params(ccp_alpha=0.0).fit(_safe_indexing(X, train), _safe_indexing(y, train))
        for k, alpha in enumerate(candidates):
            scores[k] += full.prune(alpha).score(_safe_indexing(X, test), _safe_indexing(y, test)) * len(test)
    best = np.flatnonzero(scores >= scores.max() - 1e-12 * abs(scores.max()))
    return float(candidates[best[-1]])
