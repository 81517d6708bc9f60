"""CatBoost, whose trees ask the same question at all nodes of a level; raced in prediction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from catboost import CatBoostRegressor

from benchmarks.harness import Contender, Problem
from benchmarks.libraries._common import prediction

NAME = "catboost"
THREADS = [2]


def set_threads(count: int) -> None:
    THREADS[0] = count


def predicting(problem: Problem) -> Iterator[Contender]:
    def construct(p: Problem) -> Any:
        return CatBoostRegressor(
            iterations=p.params["rounds"],
            depth=p.params["depth"],
            learning_rate=p.params["rate"],
            thread_count=THREADS[0],
            random_seed=p.params["seed"],
            allow_writing_files=False,
            verbose=False,
        )

    yield prediction(NAME, "oblivious", construct, lambda model, X: model.predict(X, thread_count=THREADS[0]))


OFFERS = {"tree_predict": predicting}
