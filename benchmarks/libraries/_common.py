"""What adapters of libraries with scikit-learn's interface share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.sparse as sp

from benchmarks.harness import Contender, Problem


def ladder(loosest: int, tightest: int) -> tuple[float, ...]:
    """Powers of ten, 10^−loosest down to 10^−tightest."""
    return tuple(10.0**-k for k in range(loosest, tightest + 1))


def estimator(library: str, label: str, make: Callable[[Problem, Any], Any], **options: Any) -> Contender:
    """A contender that is an estimator: ``make(problem, tolerance)`` constructs it, ``fit(X, y)`` is timed."""
    return Contender(library, label, lambda problem, tol: make(problem, tol).fit(problem.X, problem.y), **options)


def matrix(columns: Any) -> Any:
    """The coefficients of a path are the answer themselves."""
    return columns


def is_sparse(problem: Problem) -> bool:
    return sp.issparse(problem.X)


def intercept(problem: Problem) -> bool:
    """Whether the task has an unpenalised bias."""
    return bool(problem.params.get("intercept", False))
