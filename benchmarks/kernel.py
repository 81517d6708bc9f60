"""Kernel machines: support vector machines, kernel ridge, and a regression too large for its Gram matrix."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks import data
from benchmarks.harness import Problem, Task
from benchmarks.machine import Work
from benchmarks.scores import ACCURACY, RMSE


def wavy(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Independent Gaussian columns and a smooth function of a few of them, of unit variance."""
    X = data.dense(n, d, seed=seed, correlation=0.0)
    f = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * np.square(X[:, 3]) + 0.5 * X[:, 4:10].sum(axis=1)
    return X, (f - f.mean()) / f.std()


def svc(n: int) -> Problem:
    X, f = wavy(n + 10_000, 50, seed=30)
    y = np.where(f + 0.3 * np.random.default_rng(31).standard_normal(f.size) > 0, 1.0, -1.0)
    X, y, X_test, y_test = data.split(X, y, 10_000)
    return Problem("svc", X, y, {"C": 1.0, "gamma": 1.0 / 50}, X_test, y_test)


def regression(kind: str, n: int, params: dict, test: int = 10_000) -> Problem:
    X, f = wavy(n + test, 50, seed=32)
    y = f + 0.3 * np.random.default_rng(33).standard_normal(f.size)
    X, y, X_test, y_test = data.split(X, y, test)
    return Problem(kind, X, y, {"gamma": 1.0 / 50, **params}, X_test, y_test)


def adult(n: int) -> Problem:
    X, y, X_test, y_test = data.adult()
    return Problem("svc", X[:n], y[:n], {"C": 1.0, "gamma": 1.0 / X.shape[1]}, X_test[:n], y_test[:n])


def mushrooms() -> Problem:
    X, y = data.svmlight("agaricus_train", 127)
    X_test, y_test = data.svmlight("agaricus_test", 127)
    signs, signs_test = 2.0 * y - 1.0, 2.0 * y_test - 1.0
    return Problem("svc", X.toarray(), signs, {"C": 1.0, "gamma": 1.0 / 127}, X_test.toarray(), signs_test)


def solve_gram(problem: Problem) -> Work:
    """Half of the Gram matrix and its Cholesky factor."""
    n, d = problem.shape
    return Work(problem.X.nbytes, float(n) * n * d + float(n) ** 3 / 3.0, "half of K and its Cholesky factor")


SVC = "C=1, γ=1/50, intercept; dual objective"

TASKS = [
    Task("svc-10k", f"{SVC} to 1e-6; predict 10k", partial(svc, 10_000), (ACCURACY,), goal=2),
    Task("svc-10k-1e-4", f"{SVC} to 1e-4", partial(svc, 10_000), (ACCURACY,), target=1e-4, goal=2),
    Task("svc-30k", f"{SVC} to 1e-6; predict 10k", partial(svc, 30_000), (ACCURACY,), goal=2),
    Task("svc-30k-1e-4", f"{SVC} to 1e-4", partial(svc, 30_000), (ACCURACY,), target=1e-4, goal=2),
    Task(
        "svr-10k",
        "C=1, ε=0.1, γ=1/50, intercept; dual objective",
        partial(regression, "svr", 10_000, {"C": 1.0, "epsilon": 0.1}),
        (RMSE,),
        goal=2,
    ),
    Task("svc-adult-10k", "Adult one-hot, C=1, γ=1/d: many support vectors", partial(adult, 10_000), (ACCURACY,)),
    Task("svc-mushrooms", "agaricus, C=1, γ=1/d: few support vectors", mushrooms, (ACCURACY,)),
    Task(
        "kernel-ridge-5k",
        "RBF, γ=1/50, α=1; predict 2k",
        partial(regression, "kernel_ridge", 5_000, {"alpha": 1.0}, test=2_000),
        (RMSE,),
        margin=1e-6,
        work=solve_gram,
    ),
    Task(
        "kernel-large-200k",
        "RBF, γ=1/50, 2000 centres or the nearest thing; equal test error",
        partial(regression, "large_kernel_regression", 200_000, {"centres": 2_000, "alpha": 1.0}),
        (RMSE,),
        margin=0.01,
    ),
]
