"""skglm: datafit + penalty + solver, compiled by Numba at the first fit (not timed)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from skglm import GeneralizedLinearEstimator
from skglm.datafits import Logistic, Quadratic
from skglm.penalties import L1, L1_plus_L2
from skglm.solvers import AndersonCD, ProxNewton
from skglm.utils.jit_compilation import compiled_clone

from benchmarks.harness import Contender, Problem
from benchmarks.libraries._common import estimator, intercept, ladder, matrix

NAME = "skglm"


def lasso(problem: Problem) -> Iterator[Contender]:
    def make(p: Problem, tol: float) -> GeneralizedLinearEstimator:
        solver = AndersonCD(tol=tol, fit_intercept=intercept(p), max_iter=100)
        return GeneralizedLinearEstimator(Quadratic(), L1(p.params["alpha"]), solver)

    yield estimator(NAME, "AndersonCD", make, ladder=ladder(2, 9), jit=True)


def elastic_net_path(problem: Problem) -> Iterator[Contender]:
    def fit(p: Problem, tol: float) -> np.ndarray:
        alphas = p.params["alphas"]
        penalty = compiled_clone(L1_plus_L2(float(alphas[0]), p.params["l1_ratio"]))
        solver = AndersonCD(tol=tol, fit_intercept=False, max_iter=100)
        return solver.path(p.X, p.y, compiled_clone(Quadratic()), penalty, alphas=alphas)[1]

    yield Contender(NAME, "AndersonCD path", fit, ladder=ladder(2, 8), answer=matrix, jit=True)


def logistic_l1(problem: Problem) -> Iterator[Contender]:
    def make(p: Problem, tol: float) -> GeneralizedLinearEstimator:
        solver = ProxNewton(tol=tol, fit_intercept=intercept(p), max_iter=100)
        return GeneralizedLinearEstimator(Logistic(), L1(p.params["alpha"]), solver)

    yield estimator(NAME, "ProxNewton", make, ladder=ladder(2, 9), jit=True)


OFFERS = {"lasso": lasso, "elastic_net_path": elastic_net_path, "logistic_l1": logistic_l1}
