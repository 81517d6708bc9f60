"""Fits that were killed go on from their checkpoints, to the same bits."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.base import clone
from test_laws import assert_same_bits

import hinge as hg
from hinge.errors import UserError

MODELS = [
    (hg.LogisticRegression(tol=1e-9), "y"),
    (hg.GaussianMixture(3, tol=1e-7, max_iter=40, random_state=0), None),
    (hg.HistGradientBoostingClassifier(max_iter=12), "y"),
    (hg.PoissonRegressor(alpha=0.1), "c"),
    (hg.Ridge(), "c"),
    (hg.RandomForestClassifier(3), "y"),
    (hg.ExtraTreesRegressor(3), "c"),
    (hg.HuberRegressor(), "c"),
    (hg.LinearSVC(loss="hinge"), "y"),
    (hg.GLM("poisson"), "c"),
    (hg.GaussianNB(), "y"),
    (hg.QuadraticDiscriminantAnalysis(), "y"),
    (hg.StandardScaler(), None),
]
EACH = pytest.mark.parametrize(("model", "target"), MODELS, ids=lambda value: repr(value))


@pytest.fixture
def path(rng, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = 3000
    X = rng.normal(size=(n, 3)) + 3.0 * rng.integers(0, 3, n)[:, None]
    score = X[:, 0] - X[:, 1]
    columns = {f"x{j}": X[:, j] for j in range(3)}
    columns |= {
        "y": (score + rng.logistic(size=n) > 0).astype(int),
        "c": rng.poisson(np.exp(0.1 * score)).astype(float),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def source_of(path, target):
    return hg.scan(str(path), target=target, columns=["x0", "x1", "x2"], block_rows=400)


class Interrupted(Exception):
    pass


@EACH
@pytest.mark.parametrize("after", [1, 2, 4, 9])
def test_a_fit_is_resumed_where_it_ended(model, target, after, path, tmp_path, monkeypatch):
    """Stopped after some totals were written; the second run does not compute those again."""
    from hinge.blocks.checkpoint import Checkpoint

    expected = clone(model).fit(source_of(path, target))
    record, calls, armed = Checkpoint.record, [], [True]

    def stopping(self, key, value):
        record(self, key, value)
        calls.append(key)
        if armed and len(calls) == after:
            raise Interrupted

    monkeypatch.setattr(Checkpoint, "record", stopping)
    folder = tmp_path / "kept"
    try:
        clone(model).fit(source_of(path, target), checkpoint=folder)
    except Interrupted:
        assert len(list(folder.glob("*.total"))) == after
    first = len(calls)
    armed.clear()
    found = clone(model).fit(source_of(path, target), checkpoint=folder)
    assert_same_bits(expected, found)
    assert not folder.exists()
    if first == after:  # the first run did not reach its end
        assert not set(calls[:first]) & set(calls[first:])


CHILD = """
import sys, pickle, time
import hinge as hg
from hinge.blocks.checkpoint import Checkpoint
model = pickle.load(open(sys.argv[1], "rb"))
record = Checkpoint.record
def slow(self, key, value):
    record(self, key, value)
    print("recorded", flush=True)
    time.sleep(0.2)
Checkpoint.record = slow
target = None if sys.argv[3] == "None" else sys.argv[3]
model.fit(hg.scan(sys.argv[2], target=target, columns=["x0", "x1", "x2"], block_rows=400), checkpoint=sys.argv[4])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize(("model", "target"), MODELS[:3], ids=lambda value: repr(value))
def test_a_fit_that_is_killed_goes_on_to_the_same_bits(model, target, path, tmp_path):
    expected = clone(model).fit(source_of(path, target))
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
    folder = tmp_path / "kept"
    arguments = [str(tmp_path / "model.pickle"), str(path), str(target), str(folder)]
    child = subprocess.Popen([sys.executable, "-c", CHILD, *arguments], stdout=subprocess.PIPE, text=True)
    for _ in range(3):
        assert child.stdout.readline().strip() == "recorded"
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()
    assert len(list(folder.glob("*.total"))) >= 3
    assert_same_bits(expected, clone(model).fit(source_of(path, target), checkpoint=folder))


@pytest.mark.parametrize("change", ["parameter", "estimator", "cut", "data"])
def test_the_checkpoint_of_another_problem_is_refused(change, path, tmp_path, monkeypatch):
    from hinge.blocks.checkpoint import Checkpoint

    folder, model = tmp_path / "kept", hg.LogisticRegression()
    monkeypatch.setattr(Checkpoint, "remove", lambda self: None)
    model.fit(source_of(path, "y"), checkpoint=folder)
    model, source = clone(model), source_of(path, "y")
    if change == "parameter":
        model.set_params(C=2.0)
    elif change == "estimator":
        model = hg.GaussianNB()
    elif change == "cut":
        source = hg.scan(str(path), target="y", columns=["x0", "x1", "x2"], block_rows=401)
    else:
        time.sleep(0.01)
        path.write_bytes(path.read_bytes())
        source = source_of(path, "y")
    with pytest.raises(UserError, match="checkpoint of another problem"):
        model.fit(source, checkpoint=folder)


def test_arrays_are_recognised_by_their_contents(rng, tmp_path, monkeypatch):
    from hinge.blocks.checkpoint import Checkpoint

    monkeypatch.setattr(Checkpoint, "remove", lambda self: None)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    one = hg.LogisticRegression().fit(hg.scan(X, target=y), checkpoint=tmp_path / "a")
    two = hg.LogisticRegression().fit(hg.scan(X.copy(), target=y.copy()), checkpoint=tmp_path / "a")
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert two.reading_.passes == 0
    X[17, 1] += 1e-9
    with pytest.raises(UserError, match="another problem"):
        hg.LogisticRegression().fit(hg.scan(X, target=y), checkpoint=tmp_path / "a")


def test_streams_have_no_checkpoint(rng, tmp_path):
    blocks = [(rng.normal(size=(50, 2)), rng.normal(size=50))]
    with pytest.raises(ValueError, match="recognised"):
        hg.Ridge().fit(hg.scan(lambda: iter(blocks)), checkpoint=tmp_path / "a")
