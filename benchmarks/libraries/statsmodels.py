"""statsmodels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from statsmodels.api import GLM, add_constant
from statsmodels.genmod import families
from statsmodels.regression.quantile_regression import QuantReg

from benchmarks.harness import Contender, Linear, Problem
from benchmarks.libraries._common import ladder

NAME = "statsmodels"


def with_constant(problem: Problem) -> tuple[np.ndarray, Problem]:
    return add_constant(problem.X), problem


def contender(label: str, fit: Callable[[np.ndarray, Problem, float], Any], tolerances: tuple[float, ...]) -> Contender:
    """A model whose first parameter is the constant; ``fit(X with constant, problem, tolerance)``."""
    return Contender(
        NAME,
        label,
        lambda prepared, tol: np.asarray(fit(*prepared, tol).params),
        ladder=tolerances,
        prepare=with_constant,
        answer=lambda params: Linear(params[1:], params[0]),
        predict=lambda params, X: X @ params[1:] + params[0],
    )


def quantile(problem: Problem) -> Iterator[Contender]:
    if problem.params["alpha"] > 0:  # it has no penalty
        return

    def fit(X: np.ndarray, p: Problem, tol: float) -> Any:
        return QuantReg(p.y, X).fit(q=p.params["quantile"], p_tol=tol, max_iter=10_000)

    yield contender("QuantReg", fit, ladder(2, 8))


def glm(family: Any) -> Callable[[Problem], Iterator[Contender]]:
    def fit(X: np.ndarray, p: Problem, tol: float) -> Any:
        return GLM(p.y, X, family=family(link=families.links.Log())).fit(tol=tol)

    return lambda problem: iter([contender("IRLS", fit, ladder(1, 6))])


OFFERS = {"quantile": quantile, "poisson_glm": glm(families.Poisson), "gamma_glm": glm(families.Gamma)}
