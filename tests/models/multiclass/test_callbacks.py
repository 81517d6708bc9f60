"""Callbacks of the multiclass learners see every pass over the data and can end training after any of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import hinge as hg
from hinge.models.multiclass.perceptron import stacked
from test_estimators import Watcher

pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")

LEARNERS = [
    lambda **k: hg.MulticlassPerceptron(**{"max_iter": 9, **k}),
    lambda **k: hg.MulticlassPerceptron(joint=stacked, **{"max_iter": 9, **k}),
    lambda **k: hg.MulticlassSVM(**{"max_iter": 9, "tol": 1e-14, **k}),
    lambda **k: hg.MulticlassSVM(kernel=lambda A, B: A @ B.T, **{"max_iter": 9, "tol": 1e-14, **k}),
]


@pytest.mark.parametrize("make", LEARNERS, ids=["perceptron", "joint", "svm", "kernel"])
def test_every_pass_is_reported(make, rng):
    X, y = rng.normal(size=(60, 3)), rng.integers(3, size=60)  # noise: no pass is without mistakes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        free, third = Watcher(), Watcher(stop_after=3)
        full = make().set_callbacks(free).fit(X, y)
        stopped = make().set_callbacks(third).fit(X, y)
        short = make(max_iter=3).fit(X, y)
    assert free.iterations == full.n_iter_ == 9
    assert third.iterations == stopped.n_iter_ == 3
    np.testing.assert_array_equal(stopped.decision_function(X), short.decision_function(X))
    if isinstance(stopped, hg.MulticlassSVM):
        np.testing.assert_allclose(stopped.certificate_.primal, short.certificate_.primal, rtol=1e-12)
