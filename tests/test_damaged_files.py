"""Every byte of a model file matters: one small model of every family, every flip and every truncation."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import hinge as hg
from hinge.files import load_with_card, save

rng = np.random.default_rng(0)
X = rng.normal(size=(24, 2))
Y = np.where(X[:, 0] > 0, "yes", "no")
TABLE = pd.DataFrame({"a": X[:, 0], "city": np.where(X[:, 1] > 0, "Rome", "Oslo")})

MODELS = {
    "linear": lambda: hg.LogisticRegression().fit(X, Y),
    "learner": lambda: hg.Learner(loss=hg.Huber(1.0), penalty=hg.L1(0.1)).fit(X, X[:, 1]),
    "svm": lambda: hg.LinearSVC().fit(X, Y),
    "kernel": lambda: hg.SVC().fit(X[:8], Y[:8]),
    "multiclass": lambda: hg.MulticlassSVM().fit(X, np.arange(24) % 3),
    "tree": lambda: hg.DecisionTreeClassifier(max_depth=2).fit(X, Y),
    "forest": lambda: hg.RandomForestRegressor(2, max_depth=2).fit(X, X[:, 0]),
    "boosting": lambda: hg.GradientBoostingClassifier(max_iter=2, min_samples_leaf=3).fit(X, Y),
    "network": lambda: hg.MLPClassifier(3, max_iter=2, random_state=0).fit(X, Y),
    "sequence": lambda: hg.StructuredPerceptron(features=hg.structured.TextFeatures()).fit([["a", "b"]], [["x", "y"]]),
    "table": lambda: make_pipeline(hg.TablePrep(), hg.LogisticRegression()).fit(TABLE, Y),
}


@pytest.fixture(params=MODELS)
def file(request, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[request.param]()
    path = tmp_path / "m.hinge"
    save(model, path, card={"family": request.param, "columns": ["größe"]})
    return path


def refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cannot be loaded"):
        load_with_card(path)


def check(file, step):
    whole = file.read_bytes()
    _, card = load_with_card(file)
    assert card["columns"] == ["größe"]
    bad = file.with_name("bad.hinge")
    flips = np.random.default_rng(0).integers(0, 8, len(whole))
    for i in range(0, len(whole), step):
        refused(bad, whole[:i] + bytes([whole[i] ^ (1 << int(flips[i]))]) + whole[i + 1 :])
    for length in range(0, len(whole), step):
        refused(bad, whole[:length])


def test_flips_and_truncations_are_noticed(file):
    check(file, 41)


@pytest.mark.slow
def test_every_flip_and_every_truncation_is_noticed(file):
    check(file, 1)
