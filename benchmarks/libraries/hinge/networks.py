"""hinge's multilayer perceptrons."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.harness import Contender, Problem
from benchmarks.libraries._common import mlp_with
from benchmarks.libraries.hinge._public import public


def classes(problem: Problem) -> Iterator[Contender]:
    yield mlp_with("hinge", public("MLPClassifier"))


def regression(problem: Problem) -> Iterator[Contender]:
    yield mlp_with("hinge", public("MLPRegressor"))


OFFERS = {"mlp_classes": classes, "mlp_regression": regression}
