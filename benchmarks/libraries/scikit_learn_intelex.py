"""scikit-learn-intelex, its estimators imported directly: scikit-learn itself stays unpatched."""

from __future__ import annotations

from collections.abc import Iterator

import daal4py
from sklearnex.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearnex.linear_model import LogisticRegression, Ridge
from sklearnex.svm import SVC, SVR

from benchmarks.harness import Contender, Problem
from benchmarks.libraries._common import estimator, intercept, is_sparse, ladder, svc_with, svr_with

NAME = "scikit-learn-intelex"


def set_threads(count: int) -> None:
    daal4py.daalinit(count)


def ridge(problem: Problem) -> Iterator[Contender]:
    yield estimator(NAME, "Ridge", lambda p, tol: Ridge(alpha=p.params["alpha"], fit_intercept=intercept(p)))


def logistic_l2(problem: Problem) -> Iterator[Contender]:
    def using(solver: str):
        return lambda p, tol: LogisticRegression(
            C=p.params["C"], fit_intercept=intercept(p), solver=solver, tol=tol, max_iter=2_000
        )

    yield estimator(NAME, "lbfgs", using("lbfgs"), ladder=ladder(1, 8))
    if problem.kind == "logistic_l2" and not is_sparse(problem):
        yield estimator(NAME, "newton-cg", using("newton-cg"), ladder=ladder(1, 8))


def svc(problem: Problem) -> Iterator[Contender]:
    yield svc_with(NAME, SVC, ladder(1, 5), cache_size=500)


def svr(problem: Problem) -> Iterator[Contender]:
    yield svr_with(NAME, SVR, ladder(1, 5), cache_size=500)


def forest(problem: Problem) -> Iterator[Contender]:
    make = RandomForestClassifier if problem.kind == "forest_classes" else RandomForestRegressor
    yield estimator(
        NAME, "forest", lambda p, tol: make(n_estimators=p.params["trees"], random_state=p.params["seed"], n_jobs=2)
    )


OFFERS = {"ridge": ridge, "logistic_l2": logistic_l2, "multinomial_l2": logistic_l2, "svc": svc, "svr": svr} | {
    "forest_classes": forest,
    "forest_regression": forest,
}
