"""celer: lasso-type problems by working sets and dual extrapolation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from celer import Lasso, LogisticRegression, celer_path

from benchmarks.harness import Contender, Problem
from benchmarks.libraries._common import estimator, intercept, ladder, matrix

NAME = "celer"


def lasso(problem: Problem) -> Iterator[Contender]:
    def make(p: Problem, tol: float) -> Lasso:
        return Lasso(alpha=p.params["alpha"], fit_intercept=intercept(p), tol=tol)

    yield estimator(NAME, "Lasso", make, ladder=ladder(2, 9))


def elastic_net_path(problem: Problem) -> Iterator[Contender]:
    def fit(p: Problem, tol: float) -> np.ndarray:
        rho = p.params["l1_ratio"]
        return celer_path(p.X, p.y, "lasso", alphas=p.params["alphas"], l1_ratio=rho, tol=tol, max_iter=100)[1]

    yield Contender(NAME, "celer_path", fit, ladder=ladder(2, 8), answer=matrix)


def logistic_l1(problem: Problem) -> Iterator[Contender]:
    def make(p: Problem, tol: float) -> LogisticRegression:
        return LogisticRegression(C=1.0 / (p.params["alpha"] * p.shape[0]), tol=tol)

    if not intercept(problem):
        yield estimator(NAME, "celer-pn", make, ladder=ladder(1, 8))


OFFERS = {"lasso": lasso, "elastic_net_path": elastic_net_path, "logistic_l1": logistic_l1}
