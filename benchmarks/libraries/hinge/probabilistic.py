"""hinge's GLMs, naive Bayes, mixtures and Bayesian models."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.harness import Contender, Problem
from benchmarks.libraries import HOME
from benchmarks.libraries._common import estimator, ladder, mixture_with, training_means
from benchmarks.libraries.hinge._public import named, public


def categorical_poisson_glm(problem: Problem) -> Iterator[Contender]:
    make = public("PoissonRegressor")
    yield training_means(HOME, "PoissonRegressor", lambda p, tol: make(alpha=0.0, tol=tol), ladder(2, 9))


def gaussian_mixture(problem: Problem) -> Iterator[Contender]:
    yield mixture_with(HOME, public("GaussianMixture"))


def gaussian_process(problem: Problem) -> Iterator[Contender]:
    make = public("GaussianProcessRegressor")
    kernel = public("kernels.Constant")(1.0) * public("kernels.RBF")(5.0) + public("kernels.White")(0.1)
    yield estimator(HOME, "GaussianProcessRegressor", lambda p, tol: make(kernel))


OFFERS = {
    "poisson_glm": named("PoissonRegressor", lambda p: {"alpha": p.params["alpha"]}),
    "gamma_glm": named("GammaRegressor", lambda p: {"alpha": p.params["alpha"]}),
    "categorical_poisson_glm": categorical_poisson_glm,
    "gaussian_nb": named("GaussianNB", lambda p: {}, (None,)),
    "multinomial_nb": named("MultinomialNB", lambda p: {}, (None,)),
    "gaussian_mixture": gaussian_mixture,
    "bayesian_ridge": named("BayesianRidge", lambda p: {}, (None,)),
    "gaussian_process": gaussian_process,
}
