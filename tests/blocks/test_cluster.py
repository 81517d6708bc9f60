"""Fits on a Dask cluster: the bits of the serial fit, a killed worker included."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from cases import CASES, data
from sklearn.base import clone
from test_laws import assert_same_bits, fitted, parts_of

import hinge as hg
from hinge.models.blocks.fit import FITTERS, fitter_of

# One for every function that fits over blocks, and the variants of those that go their own way.
ON_CLUSTER = [
    hg.Ridge, hg.LogisticRegression, hg.LinearSVC, hg.QuantileRegressor, hg.PoissonRegressor, hg.HuberRegressor, hg.Learner,
    hg.SGDClassifier, hg.GaussianNB, hg.MixedNB, hg.LinearDiscriminantAnalysis, hg.GaussianMixture, hg.StandardScaler,
    hg.HistGradientBoostingClassifier, hg.GradientBoostingRegressor, hg.RandomForestClassifier, hg.ExtraTreesRegressor,
]  # fmt: skip
APART = {("text", "fit_vectorizer"), ("tables", "fit_table")}  # with tests of their own
CHOSEN = [next(case for case in reversed(CASES) if type(case.model) is cls) for cls in ON_CLUSTER]


def test_every_way_of_fitting_is_chosen():
    assert {fitter_of(cls) for cls in ON_CLUSTER} == set(FITTERS.values()) - APART


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("case", CHOSEN, ids=repr)
def test_a_cluster_gives_the_bits_of_one_thread(case, client, rng):
    X, y, s = data(case, rng)
    one, many = (
        fitted(case, hg.scan(X, target=y, weight=s, block_rows=97, executor=executor)) for executor in (None, client)
    )
    for name, value in parts_of(one).items():
        np.testing.assert_array_equal(value, parts_of(many)[name], err_msg=name)


def test_a_worker_killed_in_the_middle_of_a_fit(client, rng):
    """SIGKILL: the same model, and no hang."""
    X = rng.normal(size=(20_000, 20))
    y = (X[:, 0] + rng.logistic(size=20_000) > 0).astype(int)
    model = hg.LogisticRegression()
    expected = clone(model).fit(hg.scan(X, target=y, block_rows=500))
    victim = next(iter(client.run(os.getpid).values()))
    timer = threading.Timer(0.3, os.kill, (victim, signal.SIGKILL))
    timer.start()
    began = time.monotonic()
    found = clone(model).fit(hg.scan(X, target=y, block_rows=500, executor=client))
    timer.join()
    assert time.monotonic() - began < 120
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_a_worker_killed_while_trees_are_boosted(client, rng):
    """Its blocks are coded and scored again by others: the same trees."""
    X = rng.normal(size=(20_000, 10))
    y = (X[:, 0] * X[:, 1] + rng.logistic(size=20_000) > 0).astype(int)
    model = hg.HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=15, early_stopping=False)
    expected = clone(model).fit(hg.scan(X, target=y, block_rows=4000))
    victim = next(iter(client.run(os.getpid).values()))
    timer = threading.Timer(1.0, os.kill, (victim, signal.SIGKILL))
    timer.start()
    found = clone(model).fit(hg.scan(X, target=y, block_rows=4000, executor=client))
    timer.join()
    assert_same_bits(expected, found)


@pytest.mark.slow  # a cluster of its own
def test_a_cluster_that_loses_all_workers_is_an_error_and_no_hang(rng, monkeypatch):
    """Kills all workers during a fit; the cluster does not restart them."""
    from distributed import Client, LocalCluster

    monkeypatch.setattr("hinge.blocks.executors.ALONE", 3.0)
    X, y = rng.normal(size=(4000, 5)), rng.integers(0, 2, 4000)

    def blocks_of_slow_rows():
        time.sleep(0.02)
        return X[:40], y[:40]

    import dask
    import dask.array as da

    parts = [dask.delayed(blocks_of_slow_rows, pure=False)() for _ in range(100)]
    slow_X = da.concatenate([da.from_delayed(p[0], (40, 5), float) for p in parts])
    slow_y = da.concatenate([da.from_delayed(p[1], (40,), int) for p in parts])
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50) as one,
        Client(one) as alone,
    ):
        victim = next(iter(alone.run(os.getpid).values()))
        nanny = next(iter(one.workers.values()))
        nanny.close_gracefully()  # it starts no other worker from now on
        timer = threading.Timer(0.5, os.kill, (victim, signal.SIGKILL))
        timer.start()
        began = time.monotonic()
        with pytest.raises(RuntimeError, match=r"no worker|died|dropped"):
            hg.LogisticRegression().fit(hg.scan(slow_X, target=slow_y, executor=alone))
        timer.join()
        assert time.monotonic() - began < 30


def test_vocabularies_on_a_cluster(client, rng):
    import pandas as pd

    frame = pd.DataFrame({"text": [" ".join(rng.choice(["good", "bad", "film"], 4)) for _ in range(200)] + ["late"]})
    many = hg.TfidfVectorizer().fit(hg.scan(frame, columns=["text"], block_rows=30, executor=client))
    np.testing.assert_array_equal(many.idf_, hg.TfidfVectorizer().fit(frame["text"]).idf_)


def test_encoders_of_tables_on_a_cluster(client, rng):
    import pandas as pd

    frame = pd.DataFrame({"x": rng.normal(size=200), "city": [*rng.choice(["Rome", "Oslo"], 190), *["Lima"] * 10]})
    many = hg.TablePrep().fit(hg.scan(frame, block_rows=30, executor=client))
    assert str(many.describe()) == str(hg.TablePrep().fit(frame).describe())


def test_predictions_on_a_cluster(client, rng):
    X, y = rng.normal(size=(1000, 3)), rng.normal(size=1000)
    model = hg.Ridge().fit(X, y)
    np.testing.assert_array_equal(model.predict(hg.scan(X, block_rows=100, executor=client)), model.predict(X))


def test_dask_frames(client, rng):
    import pandas as pd

    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(rng.normal(size=(600, 3)), columns=["a", "b", "c"])
    frame["y"] = np.where(frame["a"] + rng.normal(size=600) > 0, "yes", "no")
    blocks = hg.LogisticRegression().fit(dd.from_pandas(frame, npartitions=4), "y")
    whole = hg.LogisticRegression().fit(frame[["a", "b", "c"]], frame["y"])
    np.testing.assert_allclose(blocks.coef_, whole.coef_, rtol=1e-3)
    assert blocks.feature_names_in_.tolist() == ["a", "b", "c"]
