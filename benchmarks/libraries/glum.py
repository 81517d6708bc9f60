"""glum: penalised GLMs by iteratively reweighted least squares."""

from __future__ import annotations

from collections.abc import Iterator

from glum import GeneralizedLinearRegressor

from benchmarks.harness import Contender, Problem
from benchmarks.libraries._common import estimator, intercept, ladder

NAME = "glum"


def ridge(problem: Problem) -> Iterator[Contender]:
    def make(p: Problem, tol: float) -> GeneralizedLinearRegressor:
        alpha = p.params["alpha"] / p.shape[0]
        return GeneralizedLinearRegressor(
            alpha=alpha, l1_ratio=0, family="normal", fit_intercept=intercept(p), gradient_tol=tol
        )

    yield estimator(NAME, "normal", make, ladder=ladder(2, 8))


OFFERS = {"ridge": ridge}
