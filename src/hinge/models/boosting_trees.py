"""The trees of a boosted model one by one, as regression trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.models.tree import DecisionTreeRegressor, feature_count
from hinge.models.tree_arrays import Trees


def regression_trees(model: Any) -> np.ndarray:
    """Fitted trees of shape (rounds, outputs): score = baseline_ + learning_rate · Σ predictions.

    They predict, are drawn, and say where a row ends. They hold no impurities, so they cannot be pruned.
    """
    trees, outputs = model.trees_, model.n_trees_per_iteration_
    found = np.empty((model.n_iter_, outputs), dtype=object)
    for t in range(len(trees)):
        view = DecisionTreeRegressor(
            max_depth=model.max_depth, max_leaf_nodes=model.max_leaf_nodes, max_features=model.max_features,
            min_samples_leaf=model.min_samples_leaf, splitter="hist", random_state=model.random_state,
        )  # fmt: skip
        view.tree_ = _alone(trees, t, model.learning_rate)
        view._coder = model._coder
        view.n_features_in_ = model.n_features_in_
        view.max_features_ = feature_count(model.max_features, model.n_features_in_)
        view.missing_features_ = np.ones(model.n_features_in_, dtype=bool)  # rules say where a missing value would go
        if hasattr(model, "feature_names_in_"):
            view.feature_names_in_ = model.feature_names_in_
        found[divmod(t, outputs)] = view
    return found


def _alone(trees: Trees, t: int, unit: float) -> Trees:
    """Tree t with its values in another unit; the other arrays are shared."""
    at = trees.nodes(t)
    names = ("feature", "threshold", "left", "missing_left", "set", "gain", "weight", "count")
    nodes = {name: getattr(trees, name)[at] for name in names}
    start = np.array([0, at.stop - at.start])
    return Trees(1, False, start, sets=trees.sets, value=trees.value[at] / unit, **nodes)


__all__ = ["regression_trees"]
