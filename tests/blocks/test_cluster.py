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

ON_CLUSTER = [
    hg.Ridge, hg.LogisticRegression, hg.LinearSVC, hg.PoissonRegressor, hg.GaussianNB, hg.GaussianMixture, hg.StandardScaler,
    hg.HistGradientBoostingClassifier, hg.GradientBoostingRegressor,
]  # fmt: skip
CHOSEN = [next(case for case in CASES if type(case.model) is cls) for cls in ON_CLUSTER]


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
