"""Hypothesis spaces of trees and of sums of learners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hinge.problem.spaces import Space


@dataclass(frozen=True)
class Tree(Space):
    """f is constant on the cells of one decision tree.

    The tree is grown best leaf first on the second-order model of the loss; the value of each leaf minimises the loss
    exactly.

    Parameters
    ----------
    max_depth : int, optional
        The most splits between the root and a leaf.
    max_leaf_nodes : int, optional
        The most leaves. With neither limit, the tree stops at ``min_samples_leaf``.
    min_samples_leaf : int
        The fewest rows of a leaf.
    """

    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_leaf: int = 1

    family: ClassVar[str] = "hinge.models.trees.space"
    uses: ClassVar[frozenset[str]] = frozenset({"random_state"})


@dataclass(frozen=True)
class Forest(Space):
    """f is the mean of trees grown on bootstrap samples, each on a random subset of the features.

    Parameters
    ----------
    tree : Tree
        The form of each tree.
    trees : int
        How many.
    max_features : float
        The share of features each split may choose from.
    """

    tree: Tree = Tree()
    trees: int = 100
    max_features: float = 1.0

    family: ClassVar[str] = "hinge.models.trees.space"
    uses: ClassVar[frozenset[str]] = frozenset({"random_state"})


@dataclass(frozen=True)
class Boosted(Space):
    """f = f₀ + η Σ_t v_t h_t; each member is fitted to the negative gradient of the loss.

    Parameters
    ----------
    base : Tree or a regressor
        With a :class:`Tree` the fast histogram boosting is used; any other regressor is fitted to −∂ℓ/∂s, followed by
        an exact line search for v_t.
    rounds : int
        How many members.
    learning_rate : float
        The shrinkage η.
    subsample : float
        The share of rows each member is fitted to.
    line_search : bool
        Search for v_t (regressors only); otherwise v_t = 1.
    """

    base: Any = Tree(max_leaf_nodes=31, min_samples_leaf=20)
    rounds: int = 100
    learning_rate: float = 0.1
    subsample: float = 1.0
    line_search: bool = True

    family: ClassVar[str] = "hinge.models.trees.space"
    uses: ClassVar[frozenset[str]] = frozenset({"random_state"})


@dataclass(frozen=True)
class Stagewise(Space):
    """f = f₀ + Σ_t v_t h_t with (v_t, h_t) chosen jointly: argmin_{v, h} Σ w ℓ(y, f + v h), h a stump with values ±1.

    Parameters
    ----------
    rounds : int
        How many stumps.
    max_thresholds : int
        Candidates per feature: all midpoints if there are no more than this, otherwise that many quantiles.
    """

    rounds: int = 50
    max_thresholds: int = 64

    family: ClassVar[str] = "hinge.models.trees.space"
    uses: ClassVar[frozenset[str]] = frozenset({"random_state"})
