"""LIBSVM's own Python package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from libsvm import svmutil

from benchmarks.harness import Contender, Problem
from benchmarks.judges import Expansion
from benchmarks.libraries._common import ladder

NAME = "libsvm-official"


def convert(problem: Problem) -> tuple[Any, Problem]:
    """LIBSVM's array of nodes, built once."""
    return svmutil.svm_problem(problem.y, problem.X), problem


def answer(model: Any) -> Expansion:
    support = np.asarray(model.get_sv_indices(), dtype=np.intp) - 1
    return Expansion(support, np.asarray([coef[0] for coef in model.get_sv_coef()]))


def predict(model: Any, X: np.ndarray) -> np.ndarray:
    return np.asarray(svmutil.svm_predict([], X, model, "-q")[0])


def contender(label: str, options: Callable[[Problem], str]) -> Contender:
    def fit(prepared: tuple[Any, Problem], tol: float) -> Any:
        nodes, p = prepared
        parameter = svmutil.svm_parameter(f"{options(p)} -t 2 -g {p.params['gamma']!r} -e {tol!r} -m 500 -q")
        return svmutil.svm_train(nodes, parameter)

    return Contender(NAME, label, fit, ladder=ladder(1, 4), prepare=convert, answer=answer, predict=predict)


def svc(problem: Problem) -> Iterator[Contender]:
    yield contender("C-SVC", lambda p: f"-s 0 -c {p.params['C']!r}")


def svr(problem: Problem) -> Iterator[Contender]:
    yield contender("epsilon-SVR", lambda p: f"-s 3 -c {p.params['C']!r} -p {p.params['epsilon']!r}")


OFFERS = {"svc": svc, "svr": svr}
