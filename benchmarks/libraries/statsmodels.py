"""statsmodels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from statsmodels.api import add_constant
from statsmodels.regression.quantile_regression import QuantReg

from benchmarks.harness import Contender, Linear, Problem
from benchmarks.libraries._common import ladder

NAME = "statsmodels"


def with_constant(problem: Problem) -> tuple[np.ndarray, Problem]:
    return add_constant(problem.X), problem


def quantile(problem: Problem) -> Iterator[Contender]:
    if problem.params["alpha"] > 0:  # it has no penalty
        return

    def fit(prepared: tuple[np.ndarray, Problem], tol: float) -> np.ndarray:
        X, p = prepared
        return np.asarray(QuantReg(p.y, X).fit(q=p.params["quantile"], p_tol=tol, max_iter=10_000).params)

    yield Contender(
        NAME,
        "QuantReg",
        fit,
        ladder=ladder(2, 8),
        prepare=with_constant,
        answer=lambda params: Linear(params[1:], params[0]),
        predict=lambda params, X: X @ params[1:] + params[0],
    )


OFFERS = {"quantile": quantile}
