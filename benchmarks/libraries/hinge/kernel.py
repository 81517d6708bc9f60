"""hinge's kernel machines."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.harness import Contender, Problem
from benchmarks.libraries import HOME
from benchmarks.libraries._common import ladder, svc_with, svr_with
from benchmarks.libraries.hinge._public import named, public


def svc(problem: Problem) -> Iterator[Contender]:
    yield svc_with(HOME, public("SVC"), ladder(1, 9))


def svr(problem: Problem) -> Iterator[Contender]:
    yield svr_with(HOME, public("SVR"), ladder(1, 9))


OFFERS = {
    "svc": svc,
    "svr": svr,
    "kernel_ridge": named(
        "KernelRidge", lambda p: {"alpha": p.params["alpha"], "kernel": "rbf", "gamma": p.params["gamma"]}, (None,)
    ),
}
