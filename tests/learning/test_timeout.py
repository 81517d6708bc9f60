"""Fits that end when their time is up."""

from __future__ import annotations

import importlib
import signal
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import hinge as hg
from hinge.learning.timeout import OutOfTime, limit


def endless(rng):
    X = rng.normal(size=(4000, 30))
    return X, X[:, 0] * X[:, 1] + rng.normal(size=4000)


@pytest.mark.parametrize(
    "model",
    [
        hg.HistGradientBoostingRegressor(max_iter=10**6, early_stopping=False),
        hg.MLPRegressor(hidden_layer_sizes=(200, 200), max_iter=10**6, n_iter_no_change=10**6, tol=0.0),
        hg.RandomForestRegressor(n_estimators=10**5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_fit_that_would_never_end_ends(rng, model):
    X, y = endless(rng)
    with pytest.raises(OutOfTime), limit(0.3):
        model.fit(X, y)
    hg.Ridge().fit(X, y)  # and the next fit is as ever


def test_what_is_done_in_time_is_left_alone():
    before = signal.getsignal(signal.SIGALRM)
    with limit(60):
        pass
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    with limit(np.inf):
        pass


def test_other_threads_have_no_alarm():
    seen = []

    def work():
        with limit(0.01):
            time.sleep(0.05)
        seen.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [True]


def test_a_module_is_imported_whole_though_time_is_up(tmp_path, monkeypatch):
    code = """
        import time
        end = time.perf_counter() + 0.2
        while time.perf_counter() < end:
            pass
        whole = True
    """
    (tmp_path / "slow_module.py").write_text(textwrap.dedent(code))
    monkeypatch.syspath_prepend(tmp_path)

    def work():
        importlib.import_module("slow_module")
        time.sleep(60)

    with pytest.raises(OutOfTime), limit(0.02):
        work()
    assert sys.modules.pop("slow_module").whole
