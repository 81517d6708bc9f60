"""LightGBM, with and without its quantised gradients."""

from __future__ import annotations

from collections.abc import Iterator

from lightgbm import LGBMClassifier, LGBMRegressor

from benchmarks.harness import Contender, Problem
from benchmarks.libraries._common import estimator, prediction

NAME = "lightgbm"
THREADS = [2]


def set_threads(count: int) -> None:
    THREADS[0] = count


def boosting(problem: Problem) -> Iterator[Contender]:
    make = LGBMRegressor if problem.kind == "boosting_regression" else LGBMClassifier
    for label, quantised in (("", False), ("quantised", True)):

        def construct(p: Problem, tol: object, quantised: bool = quantised) -> object:
            return make(
                n_estimators=p.params["rounds"],
                learning_rate=p.params["rate"],
                num_leaves=p.params["leaves"],
                max_bin=p.params["bins"],
                min_child_samples=p.params["least"],
                use_quantized_grad=quantised,
                random_state=p.params["seed"],
                n_jobs=THREADS[0],
                verbose=-1,
            )

        yield estimator(NAME, label, construct)


def predicting(problem: Problem) -> Iterator[Contender]:
    def construct(p: Problem) -> object:
        return LGBMRegressor(
            n_estimators=p.params["rounds"],
            learning_rate=p.params["rate"],
            max_depth=p.params["depth"],
            num_leaves=2 ** p.params["depth"],
            random_state=p.params["seed"],
            n_jobs=THREADS[0],
            verbose=-1,
        )

    yield prediction(NAME, "", construct)


OFFERS = {
    "tree_predict": predicting,
    "boosting_binary": boosting,
    "boosting_classes": boosting,
    "boosting_regression": boosting,
}
