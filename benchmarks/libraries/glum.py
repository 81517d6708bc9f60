"""glum: penalised GLMs by iteratively reweighted least squares."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from glum import GeneralizedLinearRegressor

from benchmarks.harness import Contender, Problem
from benchmarks.libraries._common import estimator, intercept, ladder, training_means

NAME = "glum"


def ridge(problem: Problem) -> Iterator[Contender]:
    def make(p: Problem, tol: float) -> GeneralizedLinearRegressor:
        alpha = p.params["alpha"] / p.shape[0]
        return GeneralizedLinearRegressor(
            alpha=alpha, l1_ratio=0, family="normal", fit_intercept=intercept(p), gradient_tol=tol
        )

    yield estimator(NAME, "normal", make, ladder=ladder(2, 8))


def glm(family: str) -> Callable[[Problem], Iterator[Contender]]:
    def offer(problem: Problem) -> Iterator[Contender]:
        def make(p: Problem, tol: float) -> GeneralizedLinearRegressor:
            return GeneralizedLinearRegressor(alpha=p.params["alpha"], family=family, link="log", gradient_tol=tol)

        yield estimator(NAME, "irls", make, ladder=ladder(1, 8))

    return offer


def categorical_poisson_glm(problem: Problem) -> Iterator[Contender]:
    def make(p: Problem, tol: float) -> GeneralizedLinearRegressor:
        return GeneralizedLinearRegressor(alpha=0.0, family="poisson", drop_first=True, gradient_tol=tol)

    yield training_means(NAME, "irls on categories", make, ladder(2, 7))


OFFERS = {
    "ridge": ridge,
    "poisson_glm": glm("poisson"),
    "gamma_glm": glm("gamma"),
    "categorical_poisson_glm": categorical_poisson_glm,
}
