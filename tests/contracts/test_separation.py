"""Objectives without a minimiser are recognised by the solver layer, whatever the loss, the solver and the estimator."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

import hinge as hg
import zoo
from hinge.solvers.base import Status
from hinge.solvers.run import admissible, solve

FALLING = [hg.Logistic(), hg.Exponential(), hg.Bernoulli(), hg.Poisson(), hg.Tweedie(1.5), hg.NegativeBinomial(0.5)]
SLOW = ("sgd", "subgradient", "pegasos", "admm")  # their budget of steps does not carry the weights far


def groups(loss, rng, n=60):
    """Three groups as indicators; in the last one the loss falls for ever, in the others it does not."""
    g = np.arange(n) % 3
    y = zoo.targets(loss, n, rng)
    if loss.target is hg.problem.losses.base.Target.SIGN:
        y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        y[g == 2] = -1.0
    elif loss.target is hg.problem.losses.base.Target.UNIT:
        y = np.where(g == 2, 0.0, (np.arange(n) % 2).astype(float))
    else:
        y = np.where(g == 2, 0.0, 1.0 + rng.poisson(2.0, size=n))
    return np.eye(3)[g][:, 1:], y


@pytest.mark.mission("W5")
@pytest.mark.parametrize("loss", FALLING, ids=zoo.name)
def test_quasi_separation_names_the_feature(loss, rng):
    X, y = groups(loss, rng)
    for penalty in (hg.NoPenalty(), hg.L1(0.01, weights=[1.0, 0.0]), hg.L2(0.01, weights=[1.0, 0.0])):
        o = hg.make_objective(X, y, loss, penalty)
        with pytest.warns(ConvergenceWarning, match=r"no best fit without a penalty.* -1·x1.*add a penalty"):
            result = solve(o)
        found = result.separation
        assert not found.complete
        assert result.certificate.status == Status.UNBOUNDED.value
        assert found.direction == pytest.approx([0.0, -1.0], abs=1e-7)
        # Proof: from any point the objective falls, however far one goes.
        path = [o.risk(t * found.direction, result.b + t * found.bias) for t in (0.0, 3.0, 6.0)]
        assert path[0] > path[1] > path[2]
    for penalty in (hg.L2(0.01), hg.L1(0.01), hg.L1Ball(3.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert solve(hg.make_objective(X, y, loss, penalty)).separation is None


@pytest.mark.mission("W5")
@pytest.mark.parametrize("name", sorted(set(admissible(hg.make_objective(np.eye(4), np.array([1.0, -1, 1, -1]), hg.Logistic()))) - set(SLOW)))  # fmt: skip
def test_every_solver_notices(name, rng):
    X = rng.normal(size=(40, 3))
    o = hg.make_objective(X, np.where(X[:, 0] + 0.3 * X[:, 1] > 0, 1.0, -1.0), hg.Logistic())
    with pytest.warns(ConvergenceWarning, match="separated completely"):
        found = solve(o, solver=name).separation
    assert np.all(o.y * (X @ found.direction + found.bias) > 0)


@pytest.mark.mission("W5")
@pytest.mark.parametrize("loss", FALLING, ids=zoo.name)
@pytest.mark.parametrize("intercept", [True, False])
def test_attained_optima_raise_no_alarm(loss, intercept, rng):
    """With and without strong signals, and with perfectly predicted rows that others hold in place."""
    X = rng.normal(size=(200, 3))
    y = zoo.targets(loss, 200, rng)
    X[0], y[0] = 30.0, y[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert solve(hg.make_objective(X, y, loss, fit_intercept=intercept)).separation is None


@pytest.mark.mission("W5")
@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_softmax_with_a_class_of_its_own(make, rng):
    X = rng.normal(size=(90, 2))
    y = np.where(X[:, 0] > 1.0, 2, rng.integers(0, 2, size=90))
    with pytest.warns(ConvergenceWarning, match=r"separated partly .* of x0"):
        model = hg.LogisticRegression(C=np.inf).fit(make(X), y)
    v, t = model.separation_.direction, model.separation_.bias
    scores = X @ v + t
    lead = scores[np.arange(90), y][:, None] - scores
    assert lead.min() >= -1e-8
    assert lead.max() > 1e-3


@pytest.mark.mission("W5")
def test_one_class_only(rng):
    """The bias alone separates, penalty or not."""
    o = hg.make_objective(rng.normal(size=(9, 2)), np.ones(9), hg.Logistic(), hg.L2(0.1))
    with pytest.warns(ConvergenceWarning, match="direction of the bias"):
        assert solve(o).separation.complete


@pytest.mark.mission("W5", "P1")
@pytest.mark.parametrize(
    "model",
    [
        hg.GLM("poisson"), hg.GLM("negative-binomial"), hg.GLM("bernoulli"), hg.GLM("bernoulli", "probit"),
        hg.GLM("bernoulli", "cloglog"), hg.GLM("bernoulli", "loglog"), hg.GLM("bernoulli", "cauchit"),
        hg.GLM("gaussian", "log"), hg.TweedieRegressor(power=1.5, alpha=0.0, inference=True),
        hg.NegativeBinomialRegressor(alpha=0.0, inference=True),
    ],
    ids=repr,
)  # fmt: skip
def test_no_standard_errors_where_there_is_no_estimate(model, rng):
    g = np.arange(90) % 3
    y = np.where(g == 2, 0.0, np.arange(90) // 3 % 2)
    if "bernoulli" not in repr(model):
        y = np.where(g == 2, 0.0, 1.0 + rng.poisson(2.0, size=90))
    with pytest.warns(ConvergenceWarning, match="x1"):
        model.fit(np.eye(3)[g][:, 1:], y)
    assert not np.any(np.isfinite(model.inference_.standard_error))
    assert any("no best fit" in note for note in model.inference_.notes)


@pytest.mark.mission("P1")
def test_gamma_targets_cannot_separate(rng):
    X, y = np.eye(3)[np.arange(60) % 3][:, 1:], 1e-6 + rng.gamma(2.0, size=60) * (np.arange(60) % 3 != 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.all(np.isfinite(hg.GLM("gamma").fit(X, y).inference_.standard_error))


def test_signs_of_a_bounded_weight(rng):
    """A direction that the bounds forbid is none."""
    X = rng.normal(size=(40, 1))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    with pytest.warns(ConvergenceWarning, match="separated"):
        solve(hg.make_objective(X, y, hg.Logistic(), hg.Box(0.0, np.inf)))
    assert solve(hg.make_objective(X, y, hg.Logistic(), hg.Box(-np.inf, 0.0))).separation is None
