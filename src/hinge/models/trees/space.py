"""Trees, forests and boosted sums as hypothesis spaces of the Learner."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hinge._native import core
from hinge.models.learner import Fit, Task, minimise
from hinge.models.trees.anyboost import any_boost, stagewise
from hinge.models.trees.arrays import Trees
from hinge.models.trees.boosting_loss import EXACT_ROWS, BoostedLoss, rounds_of
from hinge.models.trees.inputs import Binned, Coder, is_frequency
from hinge.problem.losses import CustomLoss
from hinge.problem.penalties import L2, NoPenalty
from hinge.problem.tree_spaces import Boosted, Forest, Stagewise, Tree


@dataclass
class TreeFunction:
    """f(x) = start + scale · Σ trees."""

    start: np.ndarray
    trees: Trees
    scale: float

    def scores(self, X: Any) -> np.ndarray:
        s = self.start + self.scale * self.trees.sums(_dense(X))
        return s[:, 0] if s.shape[1] == 1 else s


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if hasattr(X, "toarray") else X


def _l2(task: Task, total: float) -> float:
    """λ of an L2 penalty on the leaf values, on the scale of sums over examples."""
    if isinstance(task.penalty, NoPenalty):
        return 0.0
    if isinstance(task.penalty, L2) and task.penalty.weights is None and not task.penalty.positive:
        return task.penalty.lam * total
    raise ValueError(f"Trees take no penalty or hg.L2(lam) on the values of their leaves; got {task.penalty!r}.")


class _Grower:
    """Boosting on the task's data, tree by tree."""

    def __init__(self, task: Task, tree: Tree, weight: np.ndarray | None, table: Binned) -> None:
        self.n, self.loss = len(task.y), BoostedLoss(task.loss, task.classes or 1)
        total = float(self.n if weight is None else weight.sum())
        leaves = tree.max_leaf_nodes or (2**tree.max_depth if tree.max_depth else self.n)
        options: dict[str, Any] = {
            "max_leaves": min(leaves, self.n), "max_depth": tree.max_depth or 0, "by_level": False, "min_split": 2,
            "l2": _l2(task, total), "min_hessian": 1e-12 if tree.min_samples_leaf == 1 else 1e-3,
            "min_count": tree.min_samples_leaf, "min_gain": 0.0, "prune": 0.0, "category_smoothing": 10.0, "monotone": [],
            "allowed": [],
        }  # fmt: skip
        self.booster = core.Booster(
            table.native, task.y, weight, self.loss.outputs, self.n < EXACT_ROWS, is_frequency(weight), options
        )
        self.start = self.loss.start(task.y, weight)
        self.booster.start(self.start)

    def grow(self, seed: int, eta: float, rows: float, features: float, exact: bool) -> list[dict[str, np.ndarray]]:
        """One tree per output. exact: leaf values minimise the loss (single output, no penalty)."""
        return rounds_of(self.booster, self.loss, eta, rows, features, exact)(seed)


def _table(task: Task) -> Binned:
    return Binned(np.ascontiguousarray(_dense(task.X)), Coder(), task.sample_weight)


@minimise.register
def _(space: Tree, task: Task) -> Fit:
    grower = _Grower(task, space, task.sample_weight, _table(task))
    exact = isinstance(task.penalty, NoPenalty) and (task.loss.convex or isinstance(task.loss, CustomLoss))
    trees = Trees.stack(grower.grow(task.random_state, 1.0, 1.0, 1.0, exact), grower.loss.outputs, additive=True)
    return Fit(TreeFunction(grower.start, trees, 1.0), None, {"trees_": trees, "n_iter_": 1})


@minimise.register
def _(space: Forest, task: Task) -> Fit:
    X, grown = np.ascontiguousarray(_dense(task.X)), []
    order = core.order_by_content(X, task.y)
    weight = task.sample_weight
    frequency = is_frequency(weight)
    draws = int(weight.sum()) if weight is not None and frequency else len(X)
    exact = isinstance(task.penalty, NoPenalty) and (task.loss.convex or isinstance(task.loss, CustomLoss))
    start = np.zeros(task.classes or 1)
    for t in range(space.trees):
        drawn = core.bootstrap(order, weight if frequency else None, draws, task.random_state, t + 1)
        rows = np.flatnonzero(drawn)
        bag = drawn[rows] if weight is None or frequency else drawn[rows] * weight[rows]
        sample = replace(task, X=X[rows], y=task.y[rows], sample_weight=bag)
        grower = _Grower(sample, space.tree, bag, _table(sample))
        start += grower.start
        grown += grower.grow(task.random_state + t, 1.0, 1.0, space.max_features, exact)
    trees = Trees.stack(grown, task.classes or 1, additive=True)
    return Fit(TreeFunction(start / space.trees, trees, 1.0 / space.trees), None, {"trees_": trees, "n_iter_": 1})


@minimise.register
def _(space: Boosted, task: Task) -> Fit:
    if not isinstance(space.base, Tree):
        if not isinstance(task.penalty, NoPenalty):
            raise ValueError(f"Boosted over {type(space.base).__name__} takes no penalty; got {task.penalty!r}.")
        function = any_boost(
            task.X, task.y, task.loss, space.base, weight=task.sample_weight, classes=task.classes,
            rounds=space.rounds, learning_rate=space.learning_rate, subsample=space.subsample,
            line_search=space.line_search, random_state=task.random_state, callback=task.callback,
        )  # fmt: skip
        return Fit(
            function,
            None,
            {"members_": function.members, "history_": function.history, "n_iter_": max(1, len(function.history))},
        )
    grower = _Grower(task, space.base, task.sample_weight, _table(task))
    grown = []
    for t in range(space.rounds):
        grown += grower.grow(task.random_state + 7919 * t, space.learning_rate, space.subsample, 1.0, False)
        if task.callback is not None and task.callback(None):
            break
    trees = Trees.stack(grown, grower.loss.outputs, additive=True)
    return Fit(
        TreeFunction(grower.start, trees, 1.0), None, {"trees_": trees, "n_iter_": len(trees) // grower.loss.outputs}
    )


@minimise.register
def _(space: Stagewise, task: Task) -> Fit:
    if not isinstance(task.penalty, NoPenalty):
        raise ValueError(f"Stagewise takes no penalty; got {task.penalty!r}.")
    if task.classes is not None:
        raise ValueError("Stagewise needs a loss of one score; use a margin loss for two classes.")
    function = stagewise(
        np.asarray(_dense(task.X), dtype=np.float64), task.y, task.loss, weight=task.sample_weight,
        rounds=space.rounds, max_thresholds=space.max_thresholds, callback=task.callback,
    )  # fmt: skip
    return Fit(
        function,
        None,
        {"members_": function.members, "history_": function.history, "n_iter_": max(1, len(function.history))},
    )
