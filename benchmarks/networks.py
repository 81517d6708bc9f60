"""Multilayer perceptrons: the same layers, batches, optimiser and epochs for everybody; accuracy beside the time."""

from __future__ import annotations

import gzip
import itertools
from functools import partial
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.harness import Problem, Task
from benchmarks.machine import Work
from benchmarks.scores import ACCURACY, LOGLOSS, R2


def idx(name: str, header: int) -> np.ndarray:
    """Bytes of a file of the MNIST family."""
    return np.frombuffer(gzip.decompress((data.folder() / name).read_bytes())[header:], np.uint8)


def fashion_part(part: str) -> tuple[np.ndarray, np.ndarray]:
    pixels = idx(f"fashion-{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784)
    return pixels.astype(np.float32) / np.float32(255), idx(f"fashion-{part}-labels-idx1-ubyte.gz", 8).astype(np.int64)


def fashion(hidden: tuple[int, ...], batch: int, epochs: int) -> Problem:
    X, y = fashion_part("train")
    X_test, y_test = fashion_part("t10k")
    return Problem("mlp_classes", X, y, settings(hidden, batch, epochs), X_test, y_test)


def settings(hidden: tuple[int, ...], batch: int, epochs: int) -> dict[str, Any]:
    return {"hidden": hidden, "batch": batch, "epochs": epochs, "rate": 1e-3}


def table(kind: str, n: int, d: int, hidden: tuple[int, ...], batch: int, epochs: int) -> Problem:
    """A small table in float32 with smooth, mildly curved signal."""
    X = data.dense(n + 2_000, d, seed=70, dtype=np.float32)
    rng = np.random.default_rng(71)
    signal = np.tanh(X @ rng.standard_normal((d, 8)) / np.sqrt(d)) @ rng.standard_normal(8)
    y = signal + 0.3 * rng.standard_normal(len(X))
    if kind == "mlp_classes":
        y = (y > 0).astype(np.int64)
    return Problem(kind, *data.split(X, y, 2_000)[:2], settings(hidden, batch, epochs), *data.split(X, y, 2_000)[2:])


def multiply(problem: Problem) -> Work:
    """Forward, weight gradients, and blame below the last layer: about six operations per weight and example."""
    n, d = problem.shape
    k = len(np.unique(problem.y)) if problem.kind == "mlp_classes" else 1
    sizes = [d, *problem.params["hidden"], k if k > 2 else 1]
    products = [a * b for a, b in itertools.pairwise(sizes)]
    flops = n * problem.params["epochs"] * (4.0 * sum(products) + 2.0 * sum(products[1:]))
    return Work(problem.X.nbytes, flops, "the products of forward and backward passes", "float32")


TASKS = [
    Task(
        "mlp-fashion",
        "Fashion-MNIST, 2×128 ReLU, batch 128, Adam 1e-3, 5 epochs, float32",
        partial(fashion, (128, 128), 128, 5),
        (ACCURACY, LOGLOSS),
        margin=0.015,
        work=multiply,
        goal=2,
    ),
    Task(
        "mlp-table-classes",
        "10k × 30, two classes, 2×64 ReLU, batch 128, Adam 1e-3, 20 epochs, float32",
        partial(table, "mlp_classes", 10_000, 30, (64, 64), 128, 20),
        (ACCURACY, LOGLOSS),
        margin=0.015,
        work=multiply,
        goal=5,
    ),
    Task(
        "mlp-table-regression",
        "10k × 30, 2×64 ReLU, squared loss, batch 128, Adam 1e-3, 20 epochs, float32",
        partial(table, "mlp_regression", 10_000, 30, (64, 64), 128, 20),
        (R2,),
        margin=0.015,
        work=multiply,
        goal=5,
    ),
    *(
        Task(
            f"growth-mlp-width-{width}",
            f"10k × 30, two classes, 2×{width} ReLU, batch 128, Adam 1e-3, 5 epochs, float32",
            partial(table, "mlp_classes", 10_000, 30, (width, width), 128, 5),
            (ACCURACY,),
            margin=0.02,
            growth=("width", width),
        )
        for width in (64, 128, 256)
    ),
]
