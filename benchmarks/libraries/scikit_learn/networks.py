"""scikit-learn's multilayer perceptrons."""

from __future__ import annotations

from collections.abc import Iterator

from sklearn.neural_network import MLPClassifier, MLPRegressor

from benchmarks.harness import Contender, Problem
from benchmarks.libraries._common import mlp_with

LIBRARY = "scikit-learn"


def classes(problem: Problem) -> Iterator[Contender]:
    yield mlp_with(LIBRARY, MLPClassifier)


def regression(problem: Problem) -> Iterator[Contender]:
    yield mlp_with(LIBRARY, MLPRegressor)


OFFERS = {"mlp_classes": classes, "mlp_regression": regression}
