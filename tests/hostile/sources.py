"""Sources of blocks (``hg.scan``) made of hostile arrays, sparse matrices, streams, files and arguments.

A case ends well if the source or the fit is refused by a ValueError or TypeError that names what is wrong, or if the fit
returns and its predictions of sound rows are finite. A sparse matrix that stands for no matrix is refused.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import hinge as hg
from hostile import tables
from hostile.api import PARAMETERS, WEIGHTS, X_KINDS, Y_KINDS, check_named
from hostile.runner import Group
from hostile.sparse import BROKEN, ODD

MODELS: dict[str, Any] = {
    "Ridge": hg.Ridge(), "Lasso": hg.Lasso(0.05), "LogisticRegression": hg.LogisticRegression(), "LinearSVC": hg.LinearSVC(),
    "PoissonRegressor": hg.PoissonRegressor(), "HistGradientBoostingRegressor": hg.HistGradientBoostingRegressor(max_iter=5),
    "HistGradientBoostingClassifier": hg.HistGradientBoostingClassifier(max_iter=3), "GaussianNB": hg.GaussianNB(),
    "RandomForestClassifier": hg.RandomForestClassifier(3), "GaussianMixture": hg.GaussianMixture(2), "SGDClassifier": hg.SGDClassifier(),
    "QuantileRegressor": hg.QuantileRegressor(alpha=0.01),
}  # fmt: skip
ARGUMENTS = ("columns", "filter", "block_rows", "executor", "memory", "progress", "target", "weight", "offset")
SLOTS = {"X": X_KINDS, "target": Y_KINDS, "weight": WEIGHTS, "block": X_KINDS, "block target": Y_KINDS, "broken": BROKEN, "odd": ODD} | {
    f"argument {name}": PARAMETERS for name in ARGUMENTS
}  # fmt: skip


@cache
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.round(64 * np.abs(rng.normal(size=(40, 6)))) / 64
    return X, (X[:, 0] > np.median(X[:, 0])).astype(float)


@cache
def all_cases() -> list[str]:
    return [f"{name}|{slot}|{kind}" for name in MODELS for slot, kinds in SLOTS.items() for kind in kinds]


def cases() -> Iterator[str]:
    yield from all_cases()[::29]
    yield from (f"Ridge|{slot}|{kind}" for slot in ("broken", "odd") for kind in SLOTS[slot])
    yield from (f"Ridge|file|{seed}" for seed in range(20))


def random(seed: int) -> str:
    """All cases once, in a fixed random order; then files."""
    if seed < len(all_cases()):
        return all_cases()[np.random.default_rng(1).permutation(len(all_cases()))[seed]]
    return f"{np.random.default_rng(seed).choice(list(MODELS))}|file|{seed}"


def run(case: str) -> None:
    name, slot, kind = case.split("|")
    try:
        attempt(name, slot, kind)
    except (ValueError, TypeError) as error:
        check_named(
            error, [name, "stream", "source", "file", "block", "cannot be read", slot.removeprefix("argument ")]
        )
        raise


def source_of(slot: str, kind: str) -> Any:
    X, y = data()
    if slot in ("broken", "odd"):
        return hg.scan(SLOTS[slot][kind](sp.csr_array(X)), target=y, block_rows=16)
    if slot == "X":
        rows = {"one row": 1, "two rows": 2, "no rows": 0, "pandas no rows": 0}.get(kind, len(X))
        return hg.scan(X_KINDS[kind](X), target=y[:rows], block_rows=16)
    if slot == "target":
        return hg.scan(X, target=Y_KINDS[kind](y), block_rows=16)
    if slot == "weight":
        return hg.scan(X, target=y, weight=WEIGHTS[kind](len(X)), block_rows=16)
    if slot.startswith("block"):  # a stream whose second block is not as the first
        second = (X_KINDS[kind](X), y) if slot == "block" else (X, Y_KINDS[kind](y))
        return hg.scan(lambda: iter([(X, y), second, (X, y)]))
    argument = slot.removeprefix("argument ")
    return hg.scan(X, **({"target": y} | {argument: PARAMETERS[kind]}))


def attempt(name: str, slot: str, kind: str) -> None:
    if slot == "file":
        fit_file(name, int(kind))
        return
    source = source_of(slot, kind)
    model = clone(MODELS[name]).fit(source)
    assert slot != "broken", "a broken matrix was accepted"
    if model.n_features_in_ != data()[0].shape[1]:
        return
    found = np.asarray(model.predict(data()[0]))
    assert found.dtype.kind not in "fc" or np.isfinite(found).all(), "predict gives NaN or infinity silently"


def fit_file(name: str, seed: int) -> None:
    rng = np.random.default_rng([seed, 2])
    with tempfile.TemporaryDirectory() as folder:
        made = tables.make(rng, Path(folder))
        rows = int(rng.choice([0, 7])) or None
        model = clone(MODELS[name]).fit(hg.scan(str(made.path), target=made.names[-1], block_rows=rows))
        model.predict(hg.scan(str(made.path), columns=made.names[:-1]))


GROUP = Group("sources", cases, run, random, seconds=10.0)
