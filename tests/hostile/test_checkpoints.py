"""Checkpoints and journals from elsewhere: nothing in them runs, and damage is mended by computing again."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import hinge as hg
from hinge.errors import UserError
from hostile.checkpoints import MODELS, stopped, table

EACH = pytest.mark.parametrize("name", MODELS)


def fit(name: str, folder: Path | None):
    model, target = MODELS[name]
    X, y = table()["X"], None if target is None else table()[target]
    return clone(model).fit(hg.scan(X, target=y, block_rows=100), checkpoint=folder)


def put(files: dict[str, bytes], folder: Path) -> Path:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


class _Runs:
    """A pickle that makes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@EACH
def test_a_total_that_is_a_program_does_not_run(name, tmp_path):
    mark, files = tmp_path / "it ran", stopped(name)
    program = pickle.dumps("key") + pickle.dumps(_Runs(mark))
    pickle.loads(pickle.dumps(_Runs(mark)))
    assert mark.exists()  # it would
    mark.unlink()
    forged = {file: program if file.endswith(".total") else content for file, content in files.items()}
    fit(name, put(forged, tmp_path / "kept"))
    assert not mark.exists()


@EACH
@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "of another problem"])
def test_a_damaged_total_is_computed_again(name, damage, tmp_path):
    files = dict(stopped(name))
    totals = sorted(file for file in files if file.endswith(".total"))
    for file in totals:
        content = files[file]
        middle = len(content) // 2
        files[file] = {
            "cut": content[:middle],
            "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            "empty": b"",
            "of another problem": stopped("ridge" if name != "ridge" else "naive Bayes")["000000.total"],
        }[damage]
    expected, found = fit(name, None), fit(name, put(files, tmp_path / "kept"))
    np.testing.assert_array_equal(found.predict(table()["X"]), expected.predict(table()["X"]))
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("content", [b"", b"[]", b"3", b"\xff", b"[" * 10**5, b"null"])
def test_a_folder_of_something_else_is_refused(content, tmp_path):
    folder = put({"problem.json": content}, tmp_path / "kept")
    with pytest.raises(UserError, match=r"problem\.json is not of a checkpoint|another problem"):
        fit("ridge", folder)
    assert (folder / "problem.json").read_bytes() == content


@pytest.mark.parametrize(
    "scores", [[], 3, None, {"1/0": []}, {"1/0": {"x": 1.0}}, {"1/0": {"0": None}}, {"1/0": {"0": [1]}}, {"1/0": {"0": 10**400}}]
)  # fmt: skip
def test_a_journal_of_wrong_form_is_refused(scores, tmp_path):
    X, y = table()["X"], table()["y"]
    path = tmp_path / "state.json"
    hg.tune(hg.Ridge(), X, y, {"alpha": [1.0, 2.0]}, state=path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"scores": scores}))
    with pytest.raises(ValueError, match=r"is not a file of hinge\.tune"):
        hg.tune(hg.Ridge(), X, y, {"alpha": [1.0, 2.0]}, state=path)
