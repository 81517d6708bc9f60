"""scikit-learn's kernel machines."""

from __future__ import annotations

from collections.abc import Iterator

from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR

from benchmarks.harness import Contender, Problem
from benchmarks.libraries._common import estimator, ladder, svc_with, svr_with

LIBRARY = "scikit-learn"


def svc(problem: Problem) -> Iterator[Contender]:
    yield svc_with(LIBRARY, SVC, ladder(1, 5), cache_size=500)


def svr(problem: Problem) -> Iterator[Contender]:
    yield svr_with(LIBRARY, SVR, ladder(1, 5), cache_size=500)


def kernel_ridge(problem: Problem) -> Iterator[Contender]:
    def make(p: Problem, tol: None) -> KernelRidge:
        return KernelRidge(alpha=p.params["alpha"], kernel="rbf", gamma=p.params["gamma"])

    yield estimator(LIBRARY, "KernelRidge", make)


def large_kernel_regression(problem: Problem) -> Iterator[Contender]:
    def make(p: Problem, tol: None):
        features = Nystroem(gamma=p.params["gamma"], n_components=p.params["centres"], random_state=0)
        return make_pipeline(features, Ridge(alpha=p.params["alpha"]))

    yield estimator(LIBRARY, "Nystroem + Ridge", make)


OFFERS = {
    "svc": svc,
    "svr": svr,
    "kernel_ridge": kernel_ridge,
    "large_kernel_regression": large_kernel_regression,
}
