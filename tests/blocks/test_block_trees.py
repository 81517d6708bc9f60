"""Trees over blocks: the bits of the fit in memory, whatever the cut, the workers and the place where codes are kept."""

from __future__ import annotations

import gc
import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from test_laws import assert_same_bits

import hinge as hg
from hinge.blocks.exact import ExactSum
from hinge.blocks.memory import memory_bytes
from hinge.blocks.resident import Resident
from kit.frames import in_library

ROWS = 17_000  # gradients are rounded at random from 16384 rows on


def table(rng, rows=ROWS):
    X = rng.normal(size=(rows, 5))
    X[:, 3] = np.round(X[:, 3], 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    score = np.nan_to_num(X) @ [1.0, -0.7, 0.5, 0.3, 0.0]
    return X, score, rng.integers(0, 4, rows).astype(float)


def targets(kind, score, rng):
    return {
        "labels": lambda: np.where(score + rng.logistic(size=len(score)) > 0, "yes", "no"),
        "three": lambda: np.digitize(score + rng.normal(size=len(score)), [-0.6, 0.6]) + 5,
        "real": lambda: score + rng.normal(size=len(score)),
        "count": lambda: rng.poisson(np.exp(0.3 * score)).astype(float),
    }[kind]()


LARGE = [
    (hg.HistGradientBoostingRegressor(max_iter=3, early_stopping=False), "real"),
    (hg.HistGradientBoostingRegressor("poisson", max_iter=3, early_stopping=False), "count"),
    (hg.HistGradientBoostingClassifier(max_iter=3, early_stopping=False), "labels"),
    (hg.HistGradientBoostingClassifier(max_iter=2, early_stopping=False), "three"),
    (hg.HistGradientBoostingClassifier(max_iter=3, early_stopping=False, subsample=0.5, max_features=0.6), "labels"),
    (hg.HistGradientBoostingClassifier(max_iter=3, early_stopping=False, max_depth=4, max_leaf_nodes=None), "labels"),
    (hg.HistGradientBoostingClassifier(max_iter=2, early_stopping=False, class_weight="balanced"), "three"),
    (
        hg.HistGradientBoostingRegressor(
            max_iter=3, early_stopping=False, monotonic_cst=[1, -1, 0, 0, 0], interaction_cst="pairwise"
        ),
        "real",
    ),
    (hg.GradientBoostingClassifier(n_estimators=3, ccp_alpha=1e-4), "labels"),
    (hg.GradientBoostingRegressor(n_estimators=3), "real"),
]
EACH = pytest.mark.parametrize(("model", "kind"), LARGE, ids=lambda value: " ".join(repr(value).split()))


def unequal(X, y, w):
    """Blocks of one row, of weight zero only, and others."""
    w = w.copy()
    w[100:140] = 0.0

    def blocks():
        start = 0
        for stop in (1, 100, 140, 141, 5000, 5017, len(X)):
            yield X[start:stop], y[start:stop], w[start:stop]
            start = stop

    return blocks, w


@pytest.fixture(params=[0.0, 1.0], ids=["apart", "joined"])
def joined(request, monkeypatch):
    """Coded blocks as they come, or as few as there may be."""
    monkeypatch.setattr("hinge.models.blocks.boosting.STATE_SHARE", request.param)


@pytest.mark.usefixtures("joined")
@EACH
@pytest.mark.parametrize("weighted", [False, True])
def test_the_bits_of_one_block_whatever_the_cut_and_the_place(model, kind, weighted, rng, monkeypatch):
    X, score, w = table(rng)
    y, w = targets(kind, score, rng), w if weighted else np.ones(len(X))
    blocks, w = unequal(X, y, w)
    given = w if weighted else None
    whole = clone(model).fit(hg.scan(X, target=y, weight=given, block_rows=len(X)))
    for source in (
        hg.scan(X, target=y, weight=given, block_rows=1237),
        hg.scan(X, target=y, weight=given, block_rows=3001, executor=3),
        *((hg.scan(blocks),) if weighted else ()),
    ):
        assert_same_bits(whole, clone(model).fit(source))
    most, outputs = 0, whole.baseline_.size
    everything = int((w > 0).sum()) * (6 * outputs + 8 * (1 + weighted + outputs) + 32)
    for share in (0.9, 0.4, 0.05):  # codes go to files, then targets and scores, then the rest
        monkeypatch.setattr("hinge.models.blocks.boosting.IN_MEMORY", share * everything / 1e9)
        stored = clone(model).fit(hg.scan(X, target=y, weight=given, block_rows=2003, memory="1GB"))
        assert stored.reading_.coded_bytes > most
        most = stored.reading_.coded_bytes
        assert_same_bits(whole, stored)
    threads = clone(model).fit(hg.scan(X, target=y, weight=given, block_rows=2003, executor=3, memory="1GB"))
    assert threads.reading_.coded_bytes > 0
    assert_same_bits(whole, threads)
    # The mean that boosting starts from is rounded otherwise in memory; from the same start the trees have the same bits.
    monkeypatch.setattr("hinge.models.trees.boosting_loss.BoostedLoss.start", lambda *_: whole.baseline_)
    memory = clone(model).fit(X, y, sample_weight=given)
    for name, value in vars(memory.trees_).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(whole.trees_, name), err_msg=name)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_bins_do_not_depend_on_the_memory_allowed(weighted, rng):
    """Rows for the edges that do not fit go to files; the bins come from all of them."""
    X, score, w = table(rng)
    y, w = targets("labels", score, rng), w if weighted else None
    model = hg.HistGradientBoostingClassifier(max_iter=3, max_bins=31, early_stopping=False)
    roomy, tight, tiny = (
        clone(model).fit(hg.scan(X, target=y, weight=w, memory=memory)) for memory in ("1GB", "1MB", "200kB")
    )
    assert roomy.reading_.coded_bytes == 0 < tight.reading_.coded_bytes
    assert_same_bits(roomy, tight)
    assert_same_bits(roomy, tiny)


@pytest.mark.usefixtures("joined")
@pytest.mark.parametrize(
    "model", [hg.HistGradientBoostingClassifier(max_iter=40), hg.HistGradientBoostingRegressor(max_iter=40)]
)
def test_early_stopping_does_not_depend_on_the_cut(model, rng):
    X, score, _ = table(rng, 12_000)
    y = targets("labels" if hasattr(model, "predict_proba") else "real", score, rng)
    one, two = (
        clone(model).set_params(max_iter=200, n_iter_no_change=2, tol=1e-3).fit(hg.scan(X, target=y, block_rows=rows))
        for rows in (977, 5000)
    )
    assert one.do_early_stopping_
    assert one.n_iter_ < 200
    assert len(one.validation_score_) == one.n_iter_
    assert_same_bits(one, two)
    assert one.score(X, y) > (0.6 if hasattr(model, "predict_proba") else 0.3)


@pytest.mark.usefixtures("joined")
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categories_that_appear_late(library, rng):
    import pandas as pd

    n = 3000
    city = rng.choice(["Rome", "Oslo", "Bern"], n).astype(object)
    city[-200:] = rng.choice(["Rome", "Lima"], 200)
    city[5] = None
    frame = pd.DataFrame({"x": rng.normal(size=n), "city": city})
    y = frame["x"].to_numpy() + 2.0 * (city == "Lima") - 1.0 * (city == "Oslo") + 0.1 * rng.normal(size=n)
    model = hg.HistGradientBoostingRegressor(max_iter=10)
    whole = clone(model).fit(frame, y)
    table = in_library(frame.assign(y=y), library)
    source = hg.scan(table, target="y", block_rows=400)
    blocks = clone(model).fit(source)
    np.testing.assert_allclose(blocks.predict(frame), whole.predict(frame), rtol=1e-9)
    np.testing.assert_array_equal(blocks.predict(source), blocks.predict(frame))
    assert blocks.is_categorical_.tolist() == [False, True]


def test_categories_by_name_of_columns_of_numbers(rng):
    import pandas as pd

    frame = pd.DataFrame({"a": rng.normal(size=900), "b": rng.integers(0, 5, 900).astype(float)})
    y = np.array([3.0, -1.0, 2.0, 0.0, 5.0])[frame["b"].astype(int)] + 0.1 * rng.normal(size=900)
    model = hg.HistGradientBoostingRegressor(max_iter=5, categorical_features=["b"])
    whole = clone(model).fit(frame, y)
    blocks = clone(model).fit(hg.scan(frame.assign(y=y), target="y", block_rows=100))
    np.testing.assert_allclose(blocks.predict(frame), whole.predict(frame), rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "absolute_error"}, "leaves are sums"),
        ({"loss": "huber"}, "starts at the mean"),
        ({"init": hg.Ridge()}, "init="),
        ({"scoring": "r2", "early_stopping": True}, "scoring"),
    ],
)
def test_what_needs_all_rows_in_memory_is_refused(options, message, rng):
    with pytest.raises(ValueError, match=message):
        hg.HistGradientBoostingRegressor(**options).fit(hg.scan(rng.normal(size=(60, 2)), target=rng.normal(size=60)))


def test_infinite_values_are_taken_or_refused_as_in_memory(rng):
    X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
    X[70, 1] = np.inf
    model = hg.HistGradientBoostingRegressor
    over_blocks, in_memory = (model().fit(*data) for data in ((hg.scan(X, target=y, block_rows=30),), (X, y)))
    np.testing.assert_allclose(over_blocks.predict(X), in_memory.predict(X), rtol=1e-12)
    with pytest.raises(ValueError, match="infinity"):
        hg.GradientBoostingRegressor().fit(hg.scan(X, target=y, block_rows=30))


def test_exact_sums_are_those_of_fsum_in_any_order(rng):
    x = rng.normal(size=1000) * 10.0 ** rng.integers(-200, 200, 1000)
    x[3] = 5e-324
    parts = [ExactSum.of(part) for part in np.array_split(rng.permutation(x), 7)]
    total = ExactSum()
    for part in parts:
        total = total.merge(part)
    assert float(total) == math.fsum(x)
    assert float(ExactSum.of(np.array([1e308, 1e308]))) == math.inf
    assert pickle.loads(pickle.dumps(total)) == total


@pytest.mark.parametrize(
    ("text", "expected"), [("4GB", 4 * 10**9), ("1.5 GiB", 1610612736), ("500mb", 5 * 10**8), (1000, 1000), ("77", 77)]
)
def test_amounts_of_memory(text, expected):
    assert memory_bytes(text) == expected


@pytest.mark.parametrize("amount", ["", "much", "-1GB", 0, "1..2GB", "3XB"])
def test_amounts_of_memory_that_are_none(amount):
    with pytest.raises(ValueError, match="memory must be"):
        hg.scan(np.eye(3), memory=amount)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (hg.RandomForestRegressor(oob_score=True), "oob_score"),
        (hg.RandomForestRegressor(warm_start=True), "warm_start"),
        (hg.RandomForestRegressor(), "memory="),
    ],
)
def test_forests_name_what_they_need(model, message, rng):
    with pytest.raises(ValueError, match=message):
        model.fit(hg.scan(rng.normal(size=(2000, 2)), target=rng.normal(size=2000), memory="100kB"))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("model", [hg.ExtraTreeRegressor(random_state=0), hg.ExtraTreeClassifier(random_state=0)])
def test_random_thresholds_part_values_as_they_part_bins(model, known, rng, monkeypatch):
    """Bins of many values, with values outside of the sample: the rows are in the leaves that they were counted in."""
    if not known:
        monkeypatch.setattr("hinge.models.blocks.trees.SAMPLE", 300)
        monkeypatch.setattr("hinge.models.blocks.forests.SAMPLE", 300)
    X = rng.normal(size=(2000, 3))
    X[::7, 1] = np.nan
    y = (X[:, 0] + X[:, 2] > 0).astype(int)
    tree = clone(model).set_params(min_samples_leaf=20).fit(hg.scan(X, target=y, block_rows=300))
    leaves = tree.apply(X)
    counted = tree.tree_.n_node_samples
    found = np.bincount(leaves, minlength=len(counted))
    at = np.flatnonzero(tree.tree_.children_left < 0)
    np.testing.assert_array_equal(found[at], counted[at])
    assert tree.score(X, y) > 0.5


def test_an_interrupt_ends_boosting_and_removes_its_files(rng, monkeypatch, tmp_path):
    import signal
    import tempfile
    import threading

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    X, score, _ = table(rng)
    source = hg.scan(X, target=targets("labels", score, rng), memory="200kB")
    model, passes = hg.HistGradientBoostingClassifier(max_iter=500, early_stopping=False), []
    visit = Resident.visit

    def counted(self, *arguments, **options):
        passes.append(1)
        if len(passes) == 20:
            assert list(tmp_path.iterdir())
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return visit(self, *arguments, **options)

    monkeypatch.setattr(Resident, "visit", counted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(source)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(passes) == 20
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_progress_and_reading_of_boosting(rng, capsys):
    X, score, _ = table(rng, 2000)
    model = hg.HistGradientBoostingRegressor(max_iter=3).fit(hg.scan(X, target=score, block_rows=300, progress=True))
    assert "round 3 of 3" in capsys.readouterr().err
    reading = model.reading_
    assert (reading.passes, reading.rows) == (2, 6000)
    assert reading.coded_passes >= 1 + 3 * 3
    assert "passes over codes" in str(reading)
