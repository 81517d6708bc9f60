"""Sequences and trees whose parts do not fit together: lengths, labels, attributes, parents, weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

import hinge as hg
from hostile.runner import Group

X = [[["a", "b"], ["c"], ["a"]], [["b"], ["c", "a"]], [["a"]], []]
Y = [["u", "v", "u"], ["v", "u"], ["u"], []]
PARENTS = [[-1, 0, 0], [1, -1], [-1], []]
MODELS: dict[str, Callable[[], Any]] = {
    "ChainCRF": hg.ChainCRF,
    "ChainCRF sgd": lambda: hg.ChainCRF(solver="sgd", max_iter=3),
    "ChainCRF pairs": lambda: hg.ChainCRF(pair_features="observed"),
    "ChainCRF order 2": lambda: hg.ChainCRF(order=2),
    "TreeCRF": hg.TreeCRF,
    "StructuredPerceptron": hg.StructuredPerceptron,
    "StructuredSVM": lambda: hg.StructuredSVM(alpha=0.1),
    "StructuredSVM held": lambda: hg.StructuredSVM(alpha=0.1, early_stopping=True, validation_fraction=0.5),
}


def _matrices(wide: int = 3) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(len(y), wide)) for y in Y]


def _broken_csr() -> list[Any]:
    rows = [sp.csr_array(m) for m in _matrices()]
    rows[0].indices[1] = 2**30
    return rows


def _short_csr() -> list[Any]:
    rows = [sp.csr_array(m) for m in _matrices()]
    rows[0].indptr = rows[0].indptr[:2].copy()
    return rows


class Changing:
    """A sequence that is shorter each time it is measured."""

    def __init__(self) -> None:
        self.left = 4

    def __len__(self) -> int:
        self.left = max(self.left - 1, 0)
        return self.left

    def __getitem__(self, i: int) -> Any:
        if i >= 3:
            raise IndexError(i)
        return X[i]


# Name → (X, y, parents); None stands for the sound one.
BAD: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
    "parent too large": lambda: (X, Y, [[-1, 3, 0], [1, -1], [-1], []]),
    "parent huge": lambda: (X, Y, [[-1, 2**30, 0], [1, -1], [-1], []]),
    "parent beyond int32": lambda: (X, Y, [[-1, 2**40, 0], [1, -1], [-1], []]),
    "parent negative": lambda: (X, Y, [[-1, -2, 0], [1, -1], [-1], []]),
    "parent very negative": lambda: (X, Y, [[-(2**31), 0, 0], [1, -1], [-1], []]),
    "own parent": lambda: (X, Y, [[-1, 1, 0], [1, -1], [-1], []]),
    "cycle": lambda: (X, Y, [[1, 0, 0], [1, -1], [-1], []]),
    "long cycle": lambda: (X, Y, [[1, 2, 0], [1, -1], [-1], []]),
    "parents as floats": lambda: (X, Y, [[-1.0, 0.5, 0.0], [1, -1], [-1], []]),
    "parents as text": lambda: (X, Y, [["a", "b", "c"], [1, -1], [-1], []]),
    "parents of NaN": lambda: (X, Y, [[np.nan, 0, 0], [1, -1], [-1], []]),
    "few parents": lambda: (X, Y, [[-1, 0], [1, -1], [-1], []]),
    "parents of few": lambda: (X, Y, [[-1, 0, 0]]),
    "parents nested": lambda: (X, Y, [[[-1], [0], [0]], [1, -1], [-1], []]),
    "parents a number": lambda: (X, Y, 5),
    "few labels": lambda: (X, [["u"], ["v", "u"], ["u"], []], PARENTS),
    "many labels": lambda: (X, [["u"] * 9, ["v", "u"], ["u"], []], PARENTS),
    "fewer sequences in y": lambda: (X, Y[:2], PARENTS),
    "labels of mixed kinds": lambda: (X, [["u", 1, None], ["v", "u"], ["u"], []], PARENTS),
    "labels unhashable": lambda: (X, [[["u"], ["v"], ["u"]], ["v", "u"], ["u"], []], PARENTS),
    "labels a number": lambda: (X, [3, 2, 1, 0], PARENTS),
    "X of numbers": lambda: ([1, 2, 3, 4], Y, PARENTS),
    "X of None": lambda: ([None] * 4, Y, PARENTS),
    "X one string": lambda: ("abcd", Y, PARENTS),
    "tokens as text": lambda: ([["a", "b", "c"], ["a", "b"], ["c"], []], Y, PARENTS),
    "tokens with NaN": lambda: ([[{"a": np.nan}, {}, {}], [{}, {}], [{}], []], Y, PARENTS),
    "attribute of a list": lambda: ([[{"a": [1]}, {}, {}], [{}, {}], [{}], []], Y, PARENTS),
    "attribute numbers": lambda: ([[[1], [2], [3]], [[1], [2]], [[3]], []], Y, PARENTS),
    "matrices of other widths": lambda: ([*_matrices(3)[:2], *_matrices(4)[2:]], Y, PARENTS),
    "matrices with NaN": lambda: ([m * np.nan for m in _matrices()], Y, PARENTS),
    "matrices and text": lambda: ([_matrices()[0], *X[1:]], Y, PARENTS),
    "broken sparse": lambda: (_broken_csr(), Y, PARENTS),
    "short sparse": lambda: (_short_csr(), Y, PARENTS),
    "one sparse matrix": lambda: (sp.csr_array(np.eye(4)), Y, PARENTS),
    "changing length": lambda: ([Changing(), *X[1:]], Y, PARENTS),
}  # fmt: skip
METHODS = ("fit", "predict", "decision_function", "score", "predict_top", "predict_marginals", "log_likelihood")
TREES = ("TreeCRF", "StructuredPerceptron", "StructuredSVM", "StructuredSVM held")


def trees(model: str) -> bool:
    return model in TREES


@cache
def fitted(model: str, matrices: bool) -> Any:
    more = {"parents": PARENTS} if model == "TreeCRF" else {}
    return MODELS[model]().fit(_matrices() if matrices else X, Y, **more)


def cases() -> Iterator[str]:
    for model in MODELS:
        for method in METHODS:
            for bad in BAD:
                if trees(model) or ("parent" not in bad and "cycle" not in bad):
                    yield f"{model}|{method}|{bad}"
    yield from (f"{model}|weights|{kind}" for model in MODELS for kind in WEIGHTS)


WEIGHTS: dict[str, Any] = {
    "few": [1.0], "many": np.ones(9), "negative": [-1.0, 1, 1, 1], "NaN": [np.nan, 1, 1, 1], "zero": np.zeros(4),
    "text": ["a", "b", "c", "d"], "two-dimensional": np.ones((4, 2)), "infinite": [np.inf, 1, 1, 1],
}  # fmt: skip
# Wrong for a fit, but not for a method that takes no labels, or never wrong.
HARMLESS = ("changing length", "attribute numbers", "tokens as text", "matrices and text")
LABELLED = ("fit", "score", "decision_function", "log_likelihood")


def run(case: str) -> None:
    name, method, bad = case.split("|")
    if method == "weights":
        model = MODELS[name]()
        if name == "StructuredPerceptron":
            return
        model.fit(X, Y, WEIGHTS[bad], **({"parents": PARENTS} if trees(name) else {}))
        raise AssertionError("bad weights were accepted")
    x, y, parents = BAD[bad]()
    more = {"parents": parents} if trees(name) else {}
    model = MODELS[name]() if method == "fit" else fitted(name, "matri" in bad or "sparse" in bad)
    call = getattr(model, method, None)
    if call is None:
        return
    call(x, y, **more) if method in LABELLED else call(x, **more)
    if (
        bad in HARMLESS
        or ("label" in bad and (method not in LABELLED or method == "score"))
        or bad == "fewer sequences in y"
    ):
        return
    raise AssertionError("accepted")


def random(seed: int) -> str:
    """Random parents, of which some are trees."""
    return f"TreeCRF|random|{seed}"


def run_any(case: str) -> None:
    _, method, seed = case.split("|")
    if method != "random":
        run(case)
        return
    rng = np.random.default_rng(int(seed))
    n = int(rng.integers(1, 12))
    wild = rng.random() < 0.3
    parents = rng.integers(-5, n + 4, size=n) if wild else np.where(rng.random(n) < 0.3, -1, rng.integers(0, n, size=n))
    sound = all(_reaches_root(parents, t) for t in range(n))
    tokens, labels = [[[str(a)] for a in rng.integers(0, 3, n)]], [list(rng.choice(["u", "v"], n))]
    try:
        model = hg.TreeCRF().fit(tokens, labels, parents=[parents])
        found = model.predict(tokens, parents=[parents])
    except ValueError as error:
        if sound:
            raise AssertionError(f"a tree was refused: {error}") from None
        raise
    assert sound, "what is not a tree was accepted"
    assert len(found[0]) == n


def _reaches_root(parents: np.ndarray, t: int) -> bool:
    for _ in range(len(parents) + 1):
        if t == -1:
            return True
        if not 0 <= t < len(parents):
            return False
        t = int(parents[t])
    return False


GROUP = Group("structured", cases, run_any, random)
