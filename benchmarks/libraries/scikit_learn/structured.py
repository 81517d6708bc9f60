"""scikit-learn's multiclass machines."""

from __future__ import annotations

from collections.abc import Iterator

from sklearn.svm import LinearSVC

from benchmarks.harness import Contender, Problem
from benchmarks.libraries._common import estimator, ladder

LIBRARY = "scikit-learn"


def multiclass_svm(problem: Problem) -> Iterator[Contender]:
    def make(p: Problem, tol: float) -> LinearSVC:
        return LinearSVC(
            C=p.params["C"], multi_class="crammer_singer", fit_intercept=False, tol=tol, max_iter=10_000, random_state=0
        )

    yield estimator(LIBRARY, "LinearSVC crammer_singer", make, ladder=ladder(1, 5))


def one_vs_rest_svm(problem: Problem) -> Iterator[Contender]:
    def make(p: Problem, tol: float) -> LinearSVC:
        return LinearSVC(C=p.params["C"], loss=p.params["loss"], dual=False, fit_intercept=False, tol=tol)

    yield estimator(LIBRARY, "LinearSVC primal", make, ladder=ladder(1, 5))


OFFERS = {"multiclass_svm": multiclass_svm, "one_vs_rest_svm": one_vs_rest_svm}
