"""The trees of an ensemble as single estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.models.trees.arrays import Trees
from hinge.models.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor

LIMITS = (
    "max_depth", "max_leaf_nodes", "max_features", "min_samples_leaf", "min_samples_split", "min_weight_fraction_leaf",
    "min_impurity_decrease", "ccp_alpha",
)  # fmt: skip


def tree_limits(model: Any) -> dict[str, Any]:
    """The parameters that bound single trees."""
    return {name: getattr(model, name) for name in LIMITS}


def boosted_trees(model: Any) -> np.ndarray:
    """Fitted trees of shape (rounds, outputs): score = baseline_ + learning_rate · Σ predictions.

    They predict, can be drawn, and map rows to leaves. They have no impurities, so they cannot be pruned.
    """
    outputs = model.n_trees_per_iteration_
    found = np.empty((model.n_iter_, outputs), dtype=object)
    fits = vars(model).get("_limits") or [(model.n_iter_, tree_limits(model))]  # files of older versions do not have it
    for t in range(len(model.trees_)):
        limits = next(limits for rounds, limits in fits if t // outputs < rounds)  # of the fit that grew it
        view = DecisionTreeRegressor(splitter="hist", random_state=model.random_state, **limits)
        tree = _alone(model.trees_, t, 1, unit=model.learning_rate)
        found[divmod(t, outputs)] = view.keep_member(tree, model, model._coder, outputs=1)
    return found


def forest_trees(model: Any) -> list[Any]:
    """Fitted trees whose mean is the forest. They predict and have importances, but no node counts or impurities."""
    template, views = model.estimator_, []
    names = ["classes_", "n_classes_"] if isinstance(template, DecisionTreeClassifier) else []
    for t in range(len(model.trees_)):
        view = type(template)(**template.get_params())
        shares = model._gains[[t]].toarray()[0].astype(np.float64)
        tree = _alone(model.trees_, t, model.trees_.outputs)
        view.keep_member(tree, model, model._coder, outputs=model.n_outputs_, shares_of_gain=shares)
        for name in names:
            setattr(view, name, getattr(model, name))
        views.append(view)
    return views


def _alone(trees: Trees, t: int, outputs: int, unit: float = 1.0) -> Trees:
    """Tree t with its values in another unit; the other arrays are shared."""
    at = trees.nodes(t)
    names = ("feature", "threshold", "left", "missing_left", "set", "gain", "weight", "count")
    nodes = {name: array[at] for name in names if (array := getattr(trees, name)) is not None}
    start = np.array([0, at.stop - at.start])
    return Trees(outputs, False, start, sets=trees.sets, value=trees.value[at] / unit, **nodes)


class Members:
    """An ensemble as the sequence of its ``estimators_``."""

    estimators_: Any

    def __len__(self) -> int:
        return len(self.estimators_)

    def __getitem__(self, index: Any) -> Any:
        return self.estimators_[index]

    def __iter__(self) -> Any:
        return iter(self.estimators_)
