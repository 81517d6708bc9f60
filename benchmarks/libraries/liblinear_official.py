"""LIBLINEAR's own Python package (one thread: its multicore form is not on the package index)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from liblinear import liblinearutil

from benchmarks.harness import Contender, Linear, Problem
from benchmarks.libraries._common import intercept, ladder

NAME = "liblinear-official"


def convert(problem: Problem) -> tuple[Any, Problem]:
    """LIBLINEAR's array of nodes, built once."""
    return liblinearutil.problem(problem.y, sp.csr_matrix(problem.X)), problem


def coefficients(model: Any) -> np.ndarray:
    """One row of weights a class in the order of the labels; for two classes, those of label +1."""
    rows = 1 if model.nr_class == 2 else model.nr_class
    w = np.ctypeslib.as_array(model.w, (model.nr_feature * rows,)).reshape(model.nr_feature, rows).T.copy()
    labels = model.get_labels()
    return (w if labels[0] == 1 else -w)[0] if rows == 1 else w[np.argsort(labels)]


def predict(model: Any, X: Any) -> np.ndarray:
    scores = np.asarray(X @ coefficients(model).T)
    return np.where(scores > 0, 1.0, -1.0) if scores.ndim == 1 else scores.argmax(axis=1)


def contender(solver: int, strength: Callable[[Problem], float], tolerances: tuple[float, ...]) -> Contender:
    def fit(prepared: tuple[Any, Problem], tol: float) -> Any:
        nodes, problem = prepared
        options = f"-s {solver} -c {strength(problem)!r} -e {tol!r} -B -1 -q"
        return liblinearutil.train(nodes, liblinearutil.parameter(options))

    return Contender(
        NAME,
        f"-s {solver}",
        fit,
        ladder=tolerances,
        prepare=convert,
        answer=lambda model: Linear(coefficients(model)),
        predict=predict,
    )


def logistic_l2(problem: Problem) -> Iterator[Contender]:
    if not intercept(problem):  # LIBLINEAR penalises the bias
        yield contender(0, lambda p: p.params["C"], ladder(1, 6))
        yield contender(7, lambda p: p.params["C"], ladder(1, 6))


def logistic_l1(problem: Problem) -> Iterator[Contender]:
    if not intercept(problem):
        yield contender(6, lambda p: 1.0 / (p.params["alpha"] * p.shape[0]), ladder(1, 6))


def linear_svm(problem: Problem) -> Iterator[Contender]:
    if not intercept(problem):
        for solver in (3,) if problem.params["loss"] == "hinge" else (1, 2):
            yield contender(solver, lambda p: p.params["C"], ladder(1, 6))


def multiclass_svm(problem: Problem) -> Iterator[Contender]:
    yield contender(4, lambda p: p.params["C"], ladder(1, 5))


def one_vs_rest_svm(problem: Problem) -> Iterator[Contender]:
    yield contender(2, lambda p: p.params["C"], ladder(1, 5))


OFFERS = {
    "logistic_l2": logistic_l2,
    "logistic_l1": logistic_l1,
    "linear_svm": linear_svm,
    "multiclass_svm": multiclass_svm,
    "one_vs_rest_svm": one_vs_rest_svm,
}
