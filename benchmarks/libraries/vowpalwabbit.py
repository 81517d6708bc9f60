"""Vowpal Wabbit: one pass over examples in its own text format, whose writing is not timed (its parsing is)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import vowpalwabbit

from benchmarks.harness import Contender, Problem

NAME = "vowpalwabbit"


def lines(X: Any, y: np.ndarray | None = None) -> list[str]:
    """``label | column:value …`` for every row."""
    text = []
    for i in range(X.shape[0]):
        part = slice(X.indptr[i], X.indptr[i + 1])
        features = " ".join(f"{j}:{v:.6g}" for j, v in zip(X.indices[part], X.data[part]))
        text.append(f"{'' if y is None else int(y[i])} | {features}")
    return text


def sgd(problem: Problem) -> Iterator[Contender]:
    if problem.params.get("average", False):
        return
    loss = {"hinge": "hinge", "log_loss": "logistic"}[problem.params["loss"]]

    def fit(prepared: list[str], tol: None) -> Any:
        workspace = vowpalwabbit.Workspace(f"--loss_function {loss} -b 18 --quiet")
        for line in prepared:
            workspace.learn(line)
        return workspace

    def predict(workspace: Any, X: Any) -> np.ndarray:
        return np.where(np.array([workspace.predict(line) for line in lines(X)]) > 0, 1.0, -1.0)

    yield Contender(NAME, "text in", fit, prepare=lambda p: lines(p.X, p.y), predict=predict)


OFFERS = {"sgd": sgd}
