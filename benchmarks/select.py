"""Choosing parameters by five-fold cross-validation: the same grid, folds and score for everybody."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks import data
from benchmarks.harness import Outcome, Problem, Score, Task
from benchmarks.networks import fashion_part
from benchmarks.scores import ACCURACY, R2


def lasso(n: int, d: int, count: int) -> Problem:
    """Strengths from the one where all weights are zero down to a hundredth of it."""
    X = data.dense(n + 1000, d, seed=80)
    rng = np.random.default_rng(81)
    y = X[:, :20] @ rng.standard_normal(20) + 3.0 * rng.standard_normal(len(X))
    X, y, X_test, y_test = data.split(X, y, 1000)
    top = float(np.abs(X.T @ (y - y.mean())).max()) / len(y)
    return Problem(
        "tune_lasso", X, y, {"grid": {"alpha": np.geomspace(top, top / 100, count).tolist()}}, X_test, y_test
    )


def pullovers(n: int) -> Problem:
    """Fashion-MNIST, pullovers and shirts: an RBF machine, five C by three widths."""
    (X, y), (X_test, y_test) = fashion_part("train"), fashion_part("t10k")
    rows, test = np.flatnonzero(np.isin(y, (2, 6)))[:n], np.flatnonzero(np.isin(y_test, (2, 6)))
    grid = {"C": [0.1, 1.0, 10.0, 100.0, 1000.0], "gamma": [0.001, 0.01, 0.1]}
    return Problem(
        "tune_svc", X[rows].astype(np.float64), y[rows], {"grid": grid}, X_test[test].astype(np.float64), y_test[test]
    )


def boosted(n: int, d: int) -> Problem:
    """Ten numbers of rounds by three learning rates."""
    X = data.dense(n + 1000, d, seed=82)
    rng = np.random.default_rng(83)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(len(X))
    X, y, X_test, y_test = data.split(X, y, 1000)
    grid = {"max_iter": list(range(20, 201, 20)), "learning_rate": [0.05, 0.1, 0.2]}
    return Problem("tune_boost", X, y, {"grid": grid}, X_test, y_test)


def _choice(problem: Problem, outcome: Outcome) -> float:
    """The cross-validated score of the choice: equal scores are equal choices."""
    return float(outcome.answer)


CHOICE = Score("CV score of the choice", _choice)

TASKS = [
    Task("tune-lasso", "lasso 1000 × 500, 100 strengths, 5 folds", partial(lasso, 1000, 500, 100), (CHOICE, R2), margin=1e-3, goal=5),
    Task("tune-svc", "RBF SVC, Fashion-MNIST 2000 × 784, 15 candidates, 5 folds", partial(pullovers, 2000), (CHOICE, ACCURACY), margin=2e-3, goal=5),
    Task("tune-boost", "boosted trees 5000 × 10, 30 candidates, 5 folds", partial(boosted, 5000, 10), (CHOICE, R2), margin=2e-2, goal=5),
]  # fmt: skip
