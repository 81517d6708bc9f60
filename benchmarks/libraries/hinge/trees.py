"""hinge's trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.harness import Contender, Problem
from benchmarks.libraries._common import prediction
from benchmarks.libraries.hinge._public import named

NO_LADDER = (None,)


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
    return {"n_estimators": problem.params["trees"], "random_state": problem.params["seed"]}


def predicting(problem: Problem) -> Iterator[Contender]:
    def construct(p: Problem) -> Any:
        import hinge as hg

        return hg.HistGradientBoostingRegressor(
            n_estimators=p.params["rounds"], learning_rate=p.params["rate"], max_depth=p.params["depth"],
            max_leaf_nodes=2 ** p.params["depth"], grow="level", random_state=p.params["seed"],
        )  # fmt: skip

    yield prediction("hinge", "HistGradientBoostingRegressor", construct)


OFFERS = {
    "tree_predict": predicting,
    "boosting_binary": named("HistGradientBoostingClassifier", boosting, NO_LADDER),
    "boosting_classes": named("HistGradientBoostingClassifier", boosting, NO_LADDER),
    "boosting_regression": named("HistGradientBoostingRegressor", boosting, NO_LADDER),
    "forest_classes": named("RandomForestClassifier", forest, NO_LADDER),
    "forest_regression": named("RandomForestRegressor", forest, NO_LADDER),
    "tree_classes": named("DecisionTreeClassifier", lambda p: {"random_state": p.params["seed"]}, NO_LADDER),
    "tree_regression": named("DecisionTreeRegressor", lambda p: {"random_state": p.params["seed"]}, NO_LADDER),
    "adaboost": named("AdaBoostClassifier", lambda p: {"n_estimators": p.params["rounds"]}, NO_LADDER),
}
