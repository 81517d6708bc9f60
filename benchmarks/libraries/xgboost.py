"""XGBoost's histogram method, best leaf first."""

from __future__ import annotations

from collections.abc import Iterator

from xgboost import XGBClassifier, XGBRegressor

from benchmarks.harness import Contender, Problem
from benchmarks.libraries._common import estimator, prediction

NAME = "xgboost"
THREADS = [2]


def set_threads(count: int) -> None:
    THREADS[0] = count


def boosting(problem: Problem) -> Iterator[Contender]:
    make = XGBRegressor if problem.kind == "boosting_regression" else XGBClassifier

    def construct(p: Problem, tol: object) -> object:
        return make(
            n_estimators=p.params["rounds"],
            learning_rate=p.params["rate"],
            max_leaves=p.params["leaves"],
            max_depth=0,
            grow_policy="lossguide",
            tree_method="hist",
            max_bin=p.params["bins"],
            n_jobs=THREADS[0],
        )

    yield estimator(NAME, "hist lossguide", construct)


def predicting(problem: Problem) -> Iterator[Contender]:
    def construct(p: Problem) -> object:
        return XGBRegressor(
            n_estimators=p.params["rounds"],
            learning_rate=p.params["rate"],
            max_depth=p.params["depth"],
            tree_method="hist",
            n_jobs=THREADS[0],
        )

    yield prediction(NAME, "", construct)


OFFERS = {
    "tree_predict": predicting,
    "boosting_binary": boosting,
    "boosting_classes": boosting,
    "boosting_regression": boosting,
}
