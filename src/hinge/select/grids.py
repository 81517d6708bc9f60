"""Candidates: a learner's own path of strengths, and the order of candidates by complexity."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from hinge.models.linear.base import LinearModel
from hinge.models.linear.lasso import ElasticNet
from hinge.models.trees.boosting_base import BaseBoosting
from hinge.problem.losses import Squared
from hinge.problem.objective import make_objective
from hinge.select.path import strength_grid

# Parameters whose larger values make a model more complex, and parameters whose larger values make it simpler.
COMPLEX = frozenset({
    "C", "gamma", "degree", "max_iter", "n_estimators", "max_depth", "max_leaf_nodes", "learning_rate", "n_components",
    "hidden_layer_sizes", "k", "n_features",
})  # fmt: skip
SIMPLE = frozenset({
    "alpha", "l1_ratio", "l2_regularization", "min_samples_leaf", "min_samples_split", "ccp_alpha", "min_gain",
    "n_neighbors", "length_scale", "epsilon", "var_smoothing",
})  # fmt: skip


def complexity_of(candidate: dict[str, Any], candidates: list[dict[str, Any]]) -> float:
    """The sum over parameters of a candidate's rank, from 0 (simplest) to 1; unknown parameters do not count.

    None for a limit (``max_depth=None``) means no limit: the most complex.
    """
    total = 0.0
    for name, value in candidate.items():
        parameter = name.rpartition("__")[2]
        if parameter not in COMPLEX | SIMPLE:
            continue
        sizes = sorted({_size(c[name]) for c in candidates if name in c and _size(c[name]) is not None})
        size = _size(value)
        if size is None or len(sizes) < 2:
            continue
        rank = sizes.index(size) / (len(sizes) - 1)
        total += rank if parameter in COMPLEX else 1.0 - rank
    return total


def _size(value: Any) -> Any:
    if value is None:
        return float("inf")
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return float(value)
    return None


def path_grid(learner: Any, X: Any, y: Any, count: int) -> dict[str, Any]:
    """``count`` strengths along the learner's own path, strongest penalty (or fewest rounds) first."""
    if count < 1:
        raise ValueError(f"grid must be at least 1 candidate, got {count}.")
    if isinstance(learner, Pipeline):
        last, step = learner.steps[-1]
        Z = learner[:-1].fit_transform(X, y) if len(learner.steps) > 1 else X
        return {f"{last}__{name}": values for name, values in path_grid(step, Z, y, count).items()}
    parameters = learner.get_params(deep=False)
    if isinstance(learner, ElasticNet):
        model = type(learner)(**parameters)
        Z, targets, _ = model._check(X, y, None)
        penalty = model.set_params(alpha=1.0)._penalty()
        objective = make_objective(Z, targets, Squared(), penalty, fit_intercept=learner.fit_intercept)
        return {"alpha": strength_grid(objective, 1e-3, count).tolist()}
    if isinstance(learner, BaseBoosting):
        rounds = np.unique(np.round(np.linspace(learner.rounds / count, learner.rounds, count)))
        name = "max_iter" if learner.n_estimators is None else "n_estimators"
        return {name: [int(r) for r in rounds if r >= 1]}
    if "C" in parameters:
        return {"C": np.geomspace(1e-3, 1e3, count).tolist()}
    if "alpha" in parameters:
        size = float(_mean_square(X)) if isinstance(learner, LinearModel) else 1.0
        return {"alpha": (size * np.geomspace(1e3, 1e-4, count)).tolist()}
    raise ValueError(f"{type(learner).__name__} has no path of its own; give grid as a dict of lists.")


def _mean_square(X: Any) -> float:
    """Σ x² / d: the average of the diagonal of X'X."""
    squares = X.multiply(X).sum() if hasattr(X, "multiply") and hasattr(X, "tocsr") else np.sum(np.asarray(X) ** 2)
    return max(float(squares) / X.shape[1], 1e-300)
