"""Cost-complexity pruning: the subtree that minimises  Σ_m N_m Q_m / N + α |leaves|, for every α ≥ 0.

Weakest-link pruning (Breiman et al. 1984, chapter 3): the subtrees that are optimal for some α are nested. The branch
below node t is cut when α reaches g(t) = (R(t) − R(branch)) / (leaves of the branch − 1), where R = N_m Q_m / N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.models.tree_arrays import DETAILS, SHAPE, Trees


@dataclass(frozen=True)
class PruningPath:
    """The values of α at which the optimal subtree changes, with what it costs and how many leaves it has."""

    ccp_alphas: np.ndarray
    impurities: np.ndarray
    leaves: np.ndarray


def node_risks(tree: Trees) -> np.ndarray:
    """R(t) = share of the weight in node t × its impurity."""
    return tree.weight / tree.weight[0] * tree.impurity


def _collapses(tree: Trees) -> tuple[np.ndarray, list[tuple[float, float, int]]]:
    """For every inner node the α at which it becomes a leaf, and the steps (α, risk, leaves) of the path."""
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
        while stack:  # everything below the node goes with it
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
        if alpha <= steps[-1][0] * (1 + 1e-12) + 1e-15:  # the same α cuts more than one branch
            steps[-1] = (steps[-1][0], *step[1:])
        else:
            steps.append(step)
    return when, steps


def pruning_path(tree: Trees) -> PruningPath:
    """The nested optimal subtrees of a fully grown tree."""
    alphas, risks, leaves = zip(*_collapses(tree)[1])
    return PruningPath(np.array(alphas), np.array(risks), np.array(leaves))


def prune_tree(tree: Trees, alpha: float) -> Trees:
    """The smallest subtree that minimises Σ R(leaf) + alpha · |leaves|."""
    when, _ = _collapses(tree)
    keep_inner = (tree.feature >= 0) & (when > alpha * (1 + 1e-12) + 1e-15)
    order, old_to_new = [0], {0: 0}
    for t in order:  # grows while it is read: children of kept nodes follow
        if keep_inner[t]:
            for child in (int(tree.left[t]), int(tree.left[t]) + 1):
                old_to_new[child] = len(order)
                order.append(child)
    at = np.array(order)
    arrays = {name: getattr(tree, name)[at].copy() for name in (*SHAPE, *DETAILS)}
    cut = ~keep_inner[at]
    for name, blank in (("feature", -1), ("left", -1), ("set", -1), ("threshold", 0), ("gain", 0), ("missing_left", 0)):
        arrays[name][cut] = blank
    arrays["left"][~cut] = [old_to_new[int(tree.left[t])] for t in at[~cut]]
    arrays["value"], arrays["sets"] = tree.value[at], tree.sets
    return Trees.stack([arrays], tree.outputs, tree.additive)


def choose_alpha(estimator: Any, X: Any, y: Any, cv: Any) -> float:
    """The α of the path with the best cross-validated score; the largest (simplest tree) among equals.

    Candidates are the geometric means of neighbouring α of the path on all the data, as in Breiman et al., section 3.4.
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
        tree = full.tree_
        for k, alpha in enumerate(candidates):
            full.tree_ = prune_tree(tree, alpha)
            scores[k] += full.score(_safe_indexing(X, test), _safe_indexing(y, test)) * len(test)
    best = np.flatnonzero(scores >= scores.max() - 1e-12 * abs(scores.max()))
    return float(candidates[best[-1]])
