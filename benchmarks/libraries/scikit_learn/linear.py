"""scikit-learn's linear models."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import (
    HuberRegressor,
    Lasso,
    LogisticRegression,
    Perceptron,
    QuantileRegressor,
    Ridge,
    SGDClassifier,
    enet_path,
)
from sklearn.svm import LinearSVC

from benchmarks.harness import Contender, Problem
from benchmarks.libraries._common import estimator, intercept, is_sparse, ladder, matrix

LIBRARY = "scikit-learn"


def ridge(problem: Problem) -> Iterator[Contender]:
    def using(solver: str):
        return lambda p, tol: Ridge(
            alpha=p.params["alpha"], fit_intercept=intercept(p), solver=solver, tol=tol or 1e-4, max_iter=10_000
        )

    yield estimator(LIBRARY, "cholesky", using("cholesky"))
    for solver in ("lsqr", "sparse_cg"):
        yield estimator(LIBRARY, solver, using(solver), ladder=ladder(2, 9))


def lasso(problem: Problem) -> Iterator[Contender]:
    def make(p: Problem, tol: float) -> Lasso:
        return Lasso(alpha=p.params["alpha"], fit_intercept=intercept(p), tol=tol, max_iter=100_000)

    yield estimator(LIBRARY, "coordinate descent", make, ladder=ladder(2, 9))


def elastic_net_path(problem: Problem) -> Iterator[Contender]:
    def fit(p: Problem, tol: float) -> np.ndarray:
        alphas = p.params["alphas"]
        return enet_path(p.X, p.y, l1_ratio=p.params["l1_ratio"], alphas=alphas, tol=tol, max_iter=100_000)[1]

    yield Contender(LIBRARY, "enet_path", fit, ladder=ladder(2, 8), answer=matrix)


def logistic_l2(problem: Problem) -> Iterator[Contender]:
    def using(solver: str):
        return lambda p, tol: LogisticRegression(
            C=p.params["C"], fit_intercept=intercept(p), solver=solver, tol=tol, max_iter=2_000
        )

    yield estimator(LIBRARY, "lbfgs", using("lbfgs"), ladder=ladder(1, 8))
    yield estimator(LIBRARY, "newton-cg", using("newton-cg"), ladder=ladder(1, 8))
    wide = problem.shape[1] * (np.unique(problem.y).size if problem.kind == "multinomial_l2" else 1) > 2_000
    if not wide and not is_sparse(problem):  # a d×d Hessian, dk×dk with k classes
        yield estimator(LIBRARY, "newton-cholesky", using("newton-cholesky"), ladder=ladder(1, 8))


def logistic_l1(problem: Problem) -> Iterator[Contender]:
    def using(solver: str):
        return lambda p, tol: LogisticRegression(
            C=1.0 / (p.params["alpha"] * p.shape[0]),
            l1_ratio=1.0,
            fit_intercept=intercept(p),
            solver=solver,
            tol=tol,
            max_iter=1_000,
            random_state=0,
        )

    if not intercept(problem):  # LIBLINEAR penalises the bias
        yield estimator(LIBRARY, "liblinear", using("liblinear"), ladder=ladder(1, 7))
    if is_sparse(problem):  # on the dense row it ends far from the optimum after minutes
        yield estimator(LIBRARY, "saga", using("saga"), ladder=ladder(2, 5))


def linear_svm(problem: Problem) -> Iterator[Contender]:
    def using(dual: bool):
        return lambda p, tol: LinearSVC(
            C=p.params["C"], loss=p.params["loss"], dual=dual, fit_intercept=False, tol=tol, random_state=0
        )

    if intercept(problem):  # it penalises the bias: another problem
        return
    yield estimator(LIBRARY, "LinearSVC dual", using(True), ladder=ladder(1, 6))
    if problem.params["loss"] == "squared_hinge":
        yield estimator(LIBRARY, "LinearSVC primal", using(False), ladder=ladder(1, 6))


def huber(problem: Problem) -> Iterator[Contender]:
    def make(p: Problem, tol: float) -> HuberRegressor:
        return HuberRegressor(epsilon=p.params["epsilon"], alpha=p.params["alpha"], tol=tol, max_iter=10_000)

    yield estimator(LIBRARY, "HuberRegressor", make, ladder=ladder(1, 7))


def quantile(problem: Problem) -> Iterator[Contender]:
    def make(p: Problem, tol: None) -> QuantileRegressor:
        return QuantileRegressor(quantile=p.params["quantile"], alpha=p.params["alpha"], solver="highs-ipm")

    yield estimator(LIBRARY, "QuantileRegressor highs-ipm", make)


def sgd(problem: Problem) -> Iterator[Contender]:
    averaged = problem.params.get("average", False)

    def make(p: Problem, tol: None) -> SGDClassifier:
        return SGDClassifier(
            loss=p.params["loss"], alpha=p.params["alpha"], max_iter=1, tol=None, average=averaged, random_state=0
        )

    yield estimator(LIBRARY, "SGDClassifier", make)


def perceptron(problem: Problem) -> Iterator[Contender]:
    yield estimator(LIBRARY, "Perceptron", lambda p, tol: Perceptron(max_iter=1, tol=None, random_state=0))


OFFERS = {
    "ridge": ridge,
    "lasso": lasso,
    "elastic_net_path": elastic_net_path,
    "logistic_l2": logistic_l2,
    "logistic_l1": logistic_l1,
    "multinomial_l2": logistic_l2,
    "linear_svm": linear_svm,
    "huber": huber,
    "quantile": quantile,
    "sgd": sgd,
    "perceptron": perceptron,
}
