"""Trees, forests and boosting."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks import data
from benchmarks.harness import Problem, Task
from benchmarks.machine import Work
from benchmarks.scores import ACCURACY, LOGLOSS, RMSE

BOOSTING = {"seed": 0, "rounds": 100, "rate": 0.1, "leaves": 31, "bins": 255, "least": 20}


def response(X: np.ndarray) -> np.ndarray:
    """Interactions, a wave, a kink and a few plain effects."""
    f = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.5 * X[:, 3] ** 2 * (X[:, 4] > 0)
    return f + 0.3 * X[:, 5:10].sum(axis=1) + 0.5 * np.abs(X[:, 10]) * X[:, 11]


def table(kind: str, n: int, d: int, test: int, classes: int, params: dict, draw: int = 0) -> Problem:
    rng = np.random.default_rng(60 + draw)
    X = rng.standard_normal((n + test, d)).astype(np.float32)
    f = response(X)
    if classes == 0:
        y = f + rng.standard_normal(n + test)
    elif classes == 2:
        y = (rng.random(n + test) < 1 / (1 + np.exp(-f))).astype(int)
    else:
        y = np.digitize(f + rng.standard_normal(n + test), np.quantile(f, np.arange(1, classes) / classes))
    X, y, X_test, y_test = data.split(X, y, test)
    return Problem(kind, X, y, {**params, "seed": draw}, X_test, y_test)


def real(name: str) -> Problem:
    if name == "adult":
        X, y, X_test, y_test = data.adult()
        return Problem("boosting_binary", X, (y > 0).astype(int), BOOSTING, X_test, (y_test > 0).astype(int))
    frame = data.table("covtype_scale01_93k").to_numpy(dtype=np.float32)
    order = np.random.default_rng(61).permutation(len(frame))
    X, y, X_test, y_test = data.split(frame[order, :-1], frame[order, -1].astype(int) - 1, 20_000)
    return Problem("boosting_classes", X, y, BOOSTING, X_test, y_test)


def histogram_work(problem: Problem) -> Work:
    """Every tree reads each row's bins about 2.5 times (the smaller children of 31 leaves), one addition a cell."""
    n, d = problem.shape
    trees = problem.params["rounds"] * max(1, len(np.unique(problem.y[:1000])) if problem.kind.endswith("s") else 1)
    cells = 2.5 * trees * float(n) * d
    return Work(cells, cells, "one byte and one addition for each cell of the smaller children")


NONE: dict = {}
FOREST = {"trees": 100}
SHAPE = "100 rounds, η=0.1, 31 leaves, 255 bins, float32; binning in the time"

TASKS = [
    Task(
        "boosting-1m", f"{SHAPE}; predict 200k rows",
        partial(table, "boosting_binary", 1_000_000, 28, 200_000, 2, BOOSTING),
        (LOGLOSS,), draws=3, margin=0.002, goal=1.5,
        work=histogram_work,
    ),
    Task(
        "boosting-regression-500k", f"{SHAPE}; predict 100k rows",
        partial(table, "boosting_regression", 500_000, 100, 100_000, 0, BOOSTING),
        (RMSE,), draws=3, margin=0.005, goal=1.5,
        work=histogram_work,
    ),
    Task(
        "boosting-10-classes", f"{SHAPE}; predict 20k rows",
        partial(table, "boosting_classes", 100_000, 50, 20_000, 10, BOOSTING),
        (LOGLOSS,), draws=3, margin=0.02, goal=1.5,
    ),
    Task("boosting-adult", SHAPE, partial(real, "adult"), (ACCURACY,), margin=0.003, goal=1.5),
    Task("boosting-covertype", SHAPE, partial(real, "covertype"), (ACCURACY,), margin=0.005, goal=1.5),
    Task(
        "forest-classes", "100 trees, unlimited depth; predict 20k rows",
        partial(table, "forest_classes", 100_000, 50, 20_000, 2, FOREST),
        (ACCURACY,), draws=3, margin=0.005, goal=1.5,
    ),
    Task(
        "forest-regression", "100 trees, unlimited depth, all features; predict 20k rows",
        partial(table, "forest_regression", 100_000, 50, 20_000, 0, FOREST), (RMSE,), draws=3, margin=0.01, goal=3,
    ),
    Task(
        "tree-classes", "one tree, unlimited depth; predict 20k rows",
        partial(table, "tree_classes", 100_000, 50, 20_000, 2, NONE), (ACCURACY,), draws=3, margin=0.01, goal=5,
    ),
    Task(
        "tree-regression", "one tree, unlimited depth; predict 20k rows",
        partial(table, "tree_regression", 100_000, 50, 20_000, 0, NONE), (RMSE,), draws=3, margin=0.02, goal=5,
    ),
    Task(
        "adaboost", "200 stumps; predict 20k rows",
        partial(table, "adaboost", 50_000, 50, 20_000, 2, {"rounds": 200}),
        (ACCURACY,), draws=3, margin=0.01, goal=30,
    ),
    Task(
        "predict-1m", "1M rows by 100 trees of depth 6, as full as each library makes them; growing is not in the time",
        partial(table, "tree_predict", 100_000, 28, 1_000_000, 0, {"rounds": 100, "depth": 6, "rate": 0.1}),
        (RMSE,), margin=0.2, goal=1,
    ),
    *(
        Task(
            f"boosting-growth-{n // 1000}k", SHAPE, partial(table, "boosting_binary", n, 28, 10_000, 2, BOOSTING),
            (LOGLOSS,), margin=0.005, growth=("boosting rows", n),
        )
        for n in (10_000, 100_000, 4_000_000)
    ),
]  # fmt: skip
