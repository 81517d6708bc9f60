"""Checkpoints of fits over blocks with a right checksum and wrong content.

A fit is stopped after some totals; one of them is changed and sealed again; the fit goes on from there. It may find
anything, or fail in any way but by a crash: totals are data, and compiled code checks what it is given.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from sklearn.base import clone

import hinge as hg
from hinge.blocks.checkpoint import Checkpoint
from hostile.model_files import change_array, change_state, header, seal
from hostile.runner import Group

KEPT = 12  # totals that are there when a fit is stopped
MODELS: dict[str, tuple[Any, str | None]] = {
    "boosting": (hg.HistGradientBoostingClassifier(max_iter=8), "c"),
    "boosted classes": (hg.HistGradientBoostingClassifier(max_iter=4, early_stopping=True), "k"),
    "categories": (hg.HistGradientBoostingRegressor(max_iter=8, categorical_features=[2]), "y"),
    "logistic": (hg.LogisticRegression(tol=1e-9), "c"),
    "Poisson": (hg.PoissonRegressor(alpha=0.1), "n"),
    "hinge": (hg.LinearSVC(loss="hinge"), "c"),
    "mixture": (hg.GaussianMixture(2, random_state=0), None),
    "ridge": (hg.Ridge(), "y"),
    "forest": (hg.RandomForestClassifier(3, random_state=0), "k"),
    "naive Bayes": (hg.GaussianNB(), "k"),
}


@cache
def table() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    X[:, 2] = rng.integers(0, 5, 400)
    y = X[:, 0] - X[:, 1] + rng.normal(size=400)
    targets = {
        "y": y,
        "c": (y > 0).astype(float),
        "n": rng.poisson(np.exp(y / 4)).astype(float),
        "k": np.digitize(y, [-1, 1]) * 1.0,
    }
    return {"X": X} | targets  # fmt: skip


def fit(name: str, folder: Path) -> None:
    model, target = MODELS[name]
    X, y = table()["X"], None if target is None else table()[target]
    clone(model).fit(hg.scan(X, target=y, block_rows=100), checkpoint=folder)


class _Stopped(Exception):
    pass


@cache
def stopped(name: str) -> dict[str, bytes]:
    """The files of a checkpoint when the fit was stopped, by name."""
    record, kept = Checkpoint.record, []

    def stopping(self: Checkpoint, key: str, value: Any) -> None:
        record(self, key, value)
        kept.append({path.name: path.read_bytes() for path in self.folder.iterdir()})
        if self.next == KEPT:
            raise _Stopped

    Checkpoint.record = stopping  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(_Stopped):
            fit(name, Path(folder) / "kept")
    finally:
        Checkpoint.record = record  # type: ignore[method-assign]
    return kept[-1]


def prepare() -> None:
    for name in MODELS:
        stopped(name)


def cases() -> Iterator[str]:
    for i, name in enumerate(MODELS):
        yield from (f"{name}|{1000 * i + k}" for k in range(6))


def random(seed: int) -> str:
    return f"{np.random.default_rng(seed).choice(list(MODELS))}|{seed}"


def run(case: str) -> None:
    name, _, seed = case.partition("|")
    rng, files = np.random.default_rng(int(seed)), dict(stopped(name))
    chosen = str(rng.choice(sorted(file for file in files if file.endswith(".total"))))
    metadata, arrays = header(files[chosen]), safetensors.numpy.load(files[chosen])
    state = [json.loads(metadata["value"])]  # in a list, so that all of it can be replaced
    for _ in range(int(rng.integers(1, 4))):
        if arrays and rng.random() < 0.7:
            change_array(rng, arrays)
        else:
            change_state(rng, state)
    files[chosen] = seal(metadata | {"value": json.dumps(state[0] if state else None)}, arrays)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "kept"
        folder.mkdir()
        for file, content in files.items():
            (folder / file).write_bytes(content)
        with contextlib.suppress(Exception):
            fit(name, folder)
        shutil.rmtree(folder, ignore_errors=True)


GROUP = Group("checkpoints", cases, run, random, seconds=10.0, prepare=prepare)
