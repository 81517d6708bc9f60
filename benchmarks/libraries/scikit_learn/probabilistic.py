"""scikit-learn's GLMs, naive Bayes, mixtures and Bayesian models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sklearn.compose import make_column_transformer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import ARDRegression, BayesianRidge, GammaRegressor, PoissonRegressor
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from benchmarks.harness import Contender, Problem
from benchmarks.libraries._common import estimator, ladder, mixture_with, training_means

LIBRARY = "scikit-learn"


def glm(model: type) -> Callable[[Problem], Iterator[Contender]]:
    def offer(problem: Problem) -> Iterator[Contender]:
        for solver in ("newton-cholesky", "lbfgs"):

            def make(p: Problem, tol: float, solver: str = solver) -> Any:
                return model(alpha=p.params["alpha"], solver=solver, tol=tol, max_iter=1_000)

            yield estimator(LIBRARY, solver, make, ladder=ladder(1, 8))

    return offer


def categorical_poisson_glm(problem: Problem) -> Iterator[Contender]:
    def make(p: Problem, tol: float) -> Any:
        categories = list(p.X.select_dtypes("category").columns)
        encode = make_column_transformer((OneHotEncoder(), categories), remainder="passthrough")
        return make_pipeline(encode, PoissonRegressor(alpha=0.0, tol=tol, max_iter=1_000))

    yield training_means(LIBRARY, "one-hot + lbfgs", make, ladder(2, 6))


def gaussian_nb(problem: Problem) -> Iterator[Contender]:
    yield estimator(LIBRARY, "GaussianNB", lambda p, tol: GaussianNB())


def multinomial_nb(problem: Problem) -> Iterator[Contender]:
    yield estimator(LIBRARY, "MultinomialNB", lambda p, tol: MultinomialNB())


def gaussian_mixture(problem: Problem) -> Iterator[Contender]:
    yield mixture_with(LIBRARY, GaussianMixture)


def bayesian_ridge(problem: Problem) -> Iterator[Contender]:
    yield estimator(LIBRARY, "BayesianRidge", lambda p, tol: BayesianRidge())
    yield estimator(LIBRARY, "ARDRegression", lambda p, tol: ARDRegression())


def gaussian_process(problem: Problem) -> Iterator[Contender]:
    def make(p: Problem, tol: None) -> GaussianProcessRegressor:
        kernel = ConstantKernel(1.0) * RBF(5.0) + WhiteKernel(0.1)
        return GaussianProcessRegressor(kernel, random_state=0)

    yield estimator(LIBRARY, "GaussianProcessRegressor", make)


OFFERS = {
    "poisson_glm": glm(PoissonRegressor),
    "gamma_glm": glm(GammaRegressor),
    "categorical_poisson_glm": categorical_poisson_glm,
    "gaussian_nb": gaussian_nb,
    "multinomial_nb": multinomial_nb,
    "gaussian_mixture": gaussian_mixture,
    "bayesian_ridge": bayesian_ridge,
    "gaussian_process": gaussian_process,
}
