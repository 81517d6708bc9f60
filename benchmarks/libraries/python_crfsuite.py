"""python-crfsuite: linear-chain CRFs over named features. Appending the data to its trainer is not timed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pycrfsuite

from benchmarks.harness import Contender, Problem
from benchmarks.judges import ChainWeights

NAME = "python-crfsuite"
DELTAS = (1e-2, 1e-3, 1e-5)


class Tagger:
    """A trained model, opened from the file it was written to."""

    def __init__(self, path: str) -> None:
        self._tagger = pycrfsuite.Tagger()
        self._tagger.open(path)
        os.unlink(path)

    def predict(self, X: Any) -> list[list[str]]:
        return [self._tagger.tag(sequence) for sequence in X]

    def weights(self) -> ChainWeights:
        info = self._tagger.info()
        labels = self._tagger.labels()
        columns = {label: j for j, label in enumerate(labels)}
        attributes = {attribute: i for i, attribute in enumerate(info.attributes)}
        state, transitions = np.zeros((len(attributes), len(labels))), np.zeros((len(labels), len(labels)))
        for (attribute, label), weight in info.state_features.items():
            state[attributes[attribute], columns[label]] = weight
        for (before, after), weight in info.transitions.items():
            transitions[columns[before], columns[after]] = weight
        return ChainWeights(attributes, labels, state, transitions)


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
            "feature.possible_transitions": False,  # weights for what was seen, as ours
        }
    )
    return trainer


def chain_crf(problem: Problem) -> Iterator[Contender]:
    def fit(trainer: pycrfsuite.Trainer, tol: float) -> Tagger:
        handle, path = tempfile.mkstemp(suffix=".crfsuite")
        os.close(handle)
        trainer.set_params({"delta": tol})  # the relative improvement over ten iterations at which it stops
        trainer.train(path)
        return Tagger(path)

    yield Contender(NAME, "lbfgs L2", fit, ladder=DELTAS, prepare=load, answer=Tagger.weights)


OFFERS = {"chain_crf": chain_crf}
