"""hinge's linear models."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.harness import Contender, Problem
from benchmarks.libraries import HOME
from benchmarks.libraries._common import intercept, matrix
from benchmarks.libraries.hinge._public import LADDER, named, public


def elastic_net_path(problem: Problem) -> Iterator[Contender]:
    path = public("enet_path")

    def fit(p: Problem, tol: float) -> np.ndarray:
        return path(p.X, p.y, l1_ratio=p.params["l1_ratio"], alphas=p.params["alphas"], tol=tol)[1]

    yield Contender(HOME, "enet_path", fit, ladder=LADDER, answer=matrix)


OFFERS = {
    "ridge": named("Ridge", lambda p: {"alpha": p.params["alpha"], "fit_intercept": intercept(p)}),
    "lasso": named("Lasso", lambda p: {"alpha": p.params["alpha"], "fit_intercept": intercept(p)}),
    "elastic_net_path": elastic_net_path,
    "logistic_l2": named("LogisticRegression", lambda p: {"C": p.params["C"], "fit_intercept": intercept(p)}),
    "multinomial_l2": named("LogisticRegression", lambda p: {"C": p.params["C"], "fit_intercept": intercept(p)}),
    "logistic_l1": named(
        "LogisticRegression",
        lambda p: {"C": 1.0 / (p.params["alpha"] * p.shape[0]), "l1_ratio": 1.0, "fit_intercept": intercept(p)},
    ),
    "linear_svm": named(
        "LinearSVC", lambda p: {"C": p.params["C"], "loss": p.params["loss"], "fit_intercept": intercept(p)}
    ),
    "huber": named("HuberRegressor", lambda p: {"alpha": p.params["alpha"], "epsilon": p.params["epsilon"]}),
    "quantile": named("QuantileRegressor", lambda p: {"alpha": p.params["alpha"], "quantile": p.params["quantile"]}),
    "sgd": named(
        "SGDClassifier",
        lambda p: {
            "loss": p.params["loss"],
            "alpha": p.params["alpha"],
            "average": p.params.get("average", False),
            "max_iter": 1,
            "tol": None,
            "random_state": 0,
        },
        (None,),
    ),
    "perceptron": named("Perceptron", lambda p: {"max_iter": 1, "tol": None, "random_state": 0}, (None,)),
}
