"""Multiclass and structured prediction."""

from __future__ import annotations

from functools import partial

import numpy as np

import hinge as hg
from benchmarks import data
from benchmarks.harness import Outcome, Problem, Score, Task
from benchmarks.scores import ACCURACY
from hinge.cli.tag import read_corpus


def classes(kind: str, n: int, d: int, k: int, params: dict) -> Problem:
    X = data.dense(n + 5_000, d, seed=60)
    rng = np.random.default_rng(61)
    scores = X @ rng.standard_normal((d, k)) * (2.0 / np.sqrt(d)) + rng.gumbel(size=(n + 5_000, k))
    X, y, X_test, y_test = data.split(X, scores.argmax(axis=1), 5_000)
    return Problem(kind, X, y, params, X_test, y_test)


def sentences(count: int, labels: int, length: int, features: int, *, seed: int) -> tuple[list, list]:
    """Markov chains of labels; every token has ``features`` named features, some of which betray its label."""
    rng = np.random.default_rng(seed)
    structure = np.random.default_rng(62)  # the same language whatever the seed of the sample
    transition = structure.dirichlet(np.full(labels, 0.3), size=labels).cumsum(axis=1)
    vocabulary = 10_000
    favourites = structure.integers(vocabulary, size=(labels, 500))
    X, Y = [], []
    for size in rng.integers(length // 2, length + length // 2 + 1, size=count):
        state, states = int(rng.integers(labels)), []
        for step in rng.random(size):
            state = min(int(np.searchsorted(transition[state], step)), labels - 1)
            states.append(state)
        words = rng.integers(vocabulary, size=(size, features))
        words[:, :2] = favourites[np.asarray(states)[:, None], rng.integers(500, size=(size, 2))]
        X.append([[f"f{word}" for word in np.unique(row)] for row in words])
        Y.append([f"L{state}" for state in states])
    return X, Y


def chain(count: int = 5_000, labels: int = 20, length: int = 20) -> Problem:
    X, y = sentences(count, labels, length, 50, seed=63)
    X_test, y_test = sentences(1_000, labels, length, 50, seed=64)
    return Problem("chain_crf", X, y, {"l2": 1.0, "iterations": 100}, X_test, y_test)


def treebank(iterations: int = 200) -> Problem:
    """Part-of-speech tags of the English Web Treebank, with the features of ``TextFeatures``."""
    extract = hg.structured.TextFeatures()
    train, test = (read_corpus(data.folder() / f"en_ewt-ud-{name}.conllu.gz") for name in ("train", "test"))
    X, X_test = ([extract(words) for words in corpus.words] for corpus in (train, test))
    return Problem("chain_crf", X, train.labels, {"l2": 1.0, "iterations": iterations}, X_test, test.labels)


def token_accuracy(problem: Problem, outcome: Outcome) -> float:
    pairs = [(a, b) for guess, truth in zip(outcome.prediction, problem.y_test) for a, b in zip(guess, truth)]
    return float(np.mean([a == b for a, b in pairs]))


TOKENS = Score("token accuracy", token_accuracy)
CRF = "50 features a token, −Σ log p + ‖w‖²/2, at most 100 L-BFGS steps, objective to 1e-3"
TREEBANK = "English Web Treebank, 204 577 tokens, 17 labels, 323 000 attributes, −Σ log p + ‖w‖²/2, objective to 1e-3"

TASKS = [
    Task("crf", f"5000 sequences of about 20, 20 labels, {CRF}", chain, (TOKENS,), target=1e-3, goal=8),
    Task("crf-treebank", TREEBANK, treebank, (TOKENS,), target=1e-3, goal=8),
    *(
        Task(
            f"growth-crf-tokens-{count}",
            f"{count} sequences of about 20, 10 labels, {CRF}",
            partial(chain, count, 10),
            (TOKENS,),
            target=1e-3,
            growth=("sequences", count),
        )
        for count in (500, 1_000, 2_000)
    ),
    *(
        Task(
            f"growth-crf-labels-{labels}",
            f"500 sequences of about 20, {labels} labels, {CRF}",
            partial(chain, 500, labels),
            (TOKENS,),
            target=1e-3,
            growth=("labels", labels),
        )
        for labels in (10, 20, 40)
    ),
    Task(
        "multiclass-svm",
        "Crammer–Singer, C=0.1, no intercept: C·Σ max_k(1[k≠y] + s_k − s_y) + ‖W‖²/2",
        partial(classes, "multiclass_svm", 20_000, 100, 10, {"C": 0.1}),
        (ACCURACY,),
        goal=2,
    ),
    Task(
        "one-vs-rest-svm",
        "squared hinge, C=1, no intercept, 10 classes: the binary objectives summed",
        partial(classes, "one_vs_rest_svm", 60_000, 100, 10, {"C": 1.0, "loss": "squared_hinge"}),
        (ACCURACY,),
        goal=2,
    ),
]
