"""hinge's kernel machines."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.harness import Contender, Problem
from benchmarks.libraries import HOME
from benchmarks.libraries._common import estimator, ladder, svc_with, svr_with
from benchmarks.libraries.hinge._public import named, public


def svc(problem: Problem) -> Iterator[Contender]:
    yield svc_with(HOME, public("SVC"), ladder(1, 9))


def svr(problem: Problem) -> Iterator[Contender]:
    yield svr_with(HOME, public("SVR"), ladder(1, 9))


def large_kernel_regression(problem: Problem) -> Iterator[Contender]:
    """The learner over as many centres, with scikit-learn's alpha: Σ(y − f)² + α‖f‖² is n times ½-mean form / 2."""
    learner, space = public("Learner"), public("RKHS")

    def make(p: Problem, tol: float):
        kernel = public("kernels.RBF")(gamma=p.params["gamma"])
        penalty = public("L2")(p.params["alpha"] / len(p.y))
        return learner(space(kernel, centres=p.params["centres"]), public("Squared")(), penalty, tol=tol)

    yield estimator(HOME, "Learner(RKHS(centres))", make, ladder=(1e-4,))


OFFERS = {
    "large_kernel_regression": large_kernel_regression,
    "svc": svc,
    "svr": svr,
    "kernel_ridge": named(
        "KernelRidge", lambda p: {"alpha": p.params["alpha"], "kernel": "rbf", "gamma": p.params["gamma"]}, (None,)
    ),
}
