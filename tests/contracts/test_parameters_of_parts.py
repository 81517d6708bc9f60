"""Losses, penalties, kernels and spaces have parameters that grids reach; the objects themselves never change."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import hinge as hg
from hinge.problem.losses.names import LOSSES as NAMED
from zoo import LOSSES, penalties

KERNELS = [hg.kernels.RBF(0.5), hg.kernels.RBF(0.5) + hg.kernels.LinearKernel(), hg.kernels.Polynomial(2)]
SPACES = [hg.Linear(), hg.RKHS(hg.kernels.RBF(0.5))]
PARTS = [*LOSSES, *penalties(6), *KERNELS, *SPACES]
every_part = pytest.mark.parametrize("part", PARTS, ids=lambda part: repr(part)[:60])


@every_part
def test_parameters_make_the_object_again(part):
    own = part.get_params(deep=False)
    assert own.keys() == {f.name for f in dataclasses.fields(part) if f.init}
    again = type(part)(**own)
    assert repr(again) == repr(part)
    assert clone(part) is part
    assert set(own) <= set(part.get_params())


@every_part
def test_setting_a_parameter_leaves_the_object_alone(part):
    before = pickle.dumps(part.get_params(deep=False))
    for name, value in part.get_params().items():
        if isinstance(value, float) and np.isfinite(value):
            other = part.set_params(**{name: 0.9 * value})
            assert type(other) is type(part)
            assert other.get_params()[name] == 0.9 * value
    assert pickle.dumps(part.get_params(deep=False)) == before
    with pytest.raises(ValueError, match="Invalid parameter 'nothing'"):
        part.set_params(nothing=1)


def test_a_grid_reaches_the_strength_of_a_penalty(rng):
    X = rng.normal(size=(120, 4))
    y = X @ [1.0, -1.0, 0.0, 2.0] + rng.normal(size=120)
    penalty = hg.L2(0.1)
    learner = hg.Learner(loss=hg.Huber(1.0), penalty=penalty)
    grid = {"penalty__lam": [1e-3, 0.1, 100.0], "loss__delta": [0.5, 2.0]}
    search = GridSearchCV(learner, grid, cv=3, n_jobs=1).fit(X, y)
    best = search.best_params_
    assert best["penalty__lam"] < 100.0
    assert search.best_estimator_.penalty == hg.L2(best["penalty__lam"])
    assert search.best_estimator_.loss == hg.Huber(best["loss__delta"])
    assert penalty == hg.L2(0.1) == learner.penalty
    wanted = hg.Learner(loss=hg.Huber(best["loss__delta"]), penalty=hg.L2(best["penalty__lam"])).fit(X, y)
    np.testing.assert_array_equal(search.best_estimator_.coef_, wanted.coef_)


def test_nested_parameters_of_an_estimator():
    learner = hg.Learner(space=hg.RKHS(hg.kernels.RBF(0.5)), penalty=hg.L2(1.0))
    names = learner.get_params()
    gamma = next(name for name in names if name.startswith("space__kernel__"))
    pipeline = make_pipeline(hg.StandardScaler(), learner)
    pipeline.set_params(**{f"learner__{gamma}": 0.25, "learner__penalty": hg.L1(3.0), "learner__penalty__lam": 2.0})
    assert pipeline[-1].get_params()[gamma] == 0.25
    assert pipeline[-1].penalty == hg.L1(2.0)
    with pytest.raises(ValueError, match="Invalid parameter 'alpha' for L2"):
        hg.Learner(penalty=hg.L2(1.0)).set_params(penalty__alpha=1.0)
    with pytest.raises(ValueError, match="Invalid parameter"):
        hg.Learner().set_params(nothing__lam=1.0)


@pytest.mark.parametrize("name", NAMED)
def test_a_loss_by_name_is_the_loss(name, rng):
    X = rng.normal(size=(60, 3))
    target = NAMED[name].target
    signal = X[:, 0] + rng.normal(size=60)
    y = {
        hg.Target.SIGN: signal > 0,
        hg.Target.CLASSES: np.digitize(signal, [-0.5, 0.5]),
        hg.Target.UNIT: (signal > 0).astype(float),
    }.get(target, np.exp(signal))
    named, given = (hg.Learner(loss=loss, penalty=hg.L2(0.1)) for loss in (name, NAMED[name]()))
    assert named.score_loss() == NAMED[name]()
    if not NAMED[name].convex:
        return  # a global search, or starts at random: the loss is the same, see above
    np.testing.assert_array_equal(named.fit(X, y).predict(X), given.fit(X, y).predict(X))
    assert hasattr(named, "predict_proba") == hasattr(given, "predict_proba")


def test_an_unknown_name_of_a_loss_is_refused_with_the_names():
    with pytest.raises(ValueError, match=r"logistic.*squared_error"):
        hg.Learner(loss="logistik").fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match=r"'logistik'.*logistic.*squared_error"):
        hg.Learner(loss="logistik").score_loss()
