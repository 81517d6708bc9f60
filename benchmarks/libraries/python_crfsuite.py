"""python-crfsuite: linear-chain CRFs over named features. Appending the data to its trainer is not timed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any

import pycrfsuite

from benchmarks.harness import Contender, Problem

NAME = "python-crfsuite"


class Tagger:
    """A trained model with the file it lives in."""

    def __init__(self, path: str) -> None:
        self._tagger = pycrfsuite.Tagger()
        self._tagger.open(path)
        os.unlink(path)

    def predict(self, X: Any) -> list[list[str]]:
        return [self._tagger.tag(sequence) for sequence in X]


def load(problem: Problem) -> pycrfsuite.Trainer:
    trainer = pycrfsuite.Trainer("lbfgs", verbose=False)
    for sequence, labels in zip(problem.X, problem.y):
        trainer.append(sequence, labels)
    # Its penalty is c2·‖w‖², ours λ‖w‖²/2.
    trainer.set_params(
        {
            "c1": 0.0,
            "c2": problem.params["l2"] / 2.0,
            "max_iterations": problem.params["iterations"],
            "feature.possible_transitions": True,
        }
    )
    return trainer


def chain_crf(problem: Problem) -> Iterator[Contender]:
    def fit(trainer: pycrfsuite.Trainer, tol: None) -> Tagger:
        handle, path = tempfile.mkstemp(suffix=".crfsuite")
        os.close(handle)
        trainer.train(path)
        return Tagger(path)

    yield Contender(NAME, "lbfgs L2", fit, prepare=load)


OFFERS = {"chain_crf": chain_crf}
