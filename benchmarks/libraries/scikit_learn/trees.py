"""scikit-learn's trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sklearn.ensemble import (
    AdaBoostClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.harness import Contender, Problem
from benchmarks.libraries._common import estimator

NAME = "scikit-learn"


def offer(make: Any, parameters: Callable[[Problem], dict]) -> Callable[[Problem], Iterator[Contender]]:
    def contenders(problem: Problem) -> Iterator[Contender]:
        yield estimator(NAME, make.__name__, lambda p, tol: make(**parameters(p)))

    return contenders


def boosting(problem: Problem) -> dict:
    p = problem.params
    return {
        "max_iter": p["rounds"],
        "learning_rate": p["rate"],
        "max_leaf_nodes": p["leaves"],
        "max_bins": p["bins"],
        "min_samples_leaf": p["least"],
        "early_stopping": False,
        "random_state": p["seed"],
    }


def forest(problem: Problem) -> dict:
    return {"n_estimators": problem.params["trees"], "random_state": problem.params["seed"], "n_jobs": 2}


OFFERS = {
    "boosting_binary": offer(HistGradientBoostingClassifier, boosting),
    "boosting_classes": offer(HistGradientBoostingClassifier, boosting),
    "boosting_regression": offer(HistGradientBoostingRegressor, boosting),
    "forest_classes": offer(RandomForestClassifier, forest),
    "forest_regression": offer(RandomForestRegressor, forest),
    "tree_classes": offer(DecisionTreeClassifier, lambda p: {"random_state": p.params["seed"]}),
    "tree_regression": offer(DecisionTreeRegressor, lambda p: {"random_state": p.params["seed"]}),
    "adaboost": offer(AdaBoostClassifier, lambda p: {"n_estimators": p.params["rounds"]}),
}
