"""A proof costs at most a tenth of its fit; the tightest one is there on demand."""

from __future__ import annotations

import copy
import warnings
from dataclasses import asdict

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import hinge as hg
from hinge.problem.certificates import newton
from hinge.problem.cost import FREE, budget
from hinge.solvers.run import SOLVERS, get_solver
from kit.estimators import make_data, name, public_estimators

ESTIMATORS = [e for e in public_estimators() if hasattr(e, "certify")]


def fitted(estimator, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return clone(estimator).fit(X, y)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name)
def test_certificates_on_demand_are_at_least_as_tight_and_change_nothing(estimator):
    X, y = make_data(estimator, classes=2)
    model = fitted(estimator, X, y)
    before = copy.deepcopy(vars(model))
    tight = model.certify(X, y)
    assert tight.exact
    assert tight.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert tight.gap <= model.certificate_.gap * (1 + 1e-9) + 1e-6 * abs(tight.primal)
    assert set(vars(model)) == set(before)
    np.testing.assert_array_equal(model.coef_, before["coef_"])
    # Field by field, with NaN equal to NaN: from Python 3.13 on, == of dataclasses does not take one NaN for itself.
    np.testing.assert_equal(asdict(model.certificate_), asdict(before["certificate_"]))


def test_most_linear_estimators_certify_on_demand():
    names = {type(estimator).__name__ for estimator in ESTIMATORS}
    assert len(names) >= 20
    assert names >= {
        "ElasticNetCV", "LassoCV", "LogisticRegressionCV", "MultiTaskLassoCV", "RidgeCV", "RidgeClassifier",
        "RidgeClassifierCV", "GLM", "PoissonRegressor", "NegativeBinomialRegressor",
    }  # fmt: skip


def test_certificates_of_generalised_models_take_their_offsets(rng):
    X, exposure = rng.normal(size=(80, 3)), rng.uniform(0.5, 5.0, 80)
    y = rng.poisson(exposure * np.exp(0.3 * X[:, 0]))
    model = hg.PoissonRegressor(alpha=0.1).fit(X, y, exposure=exposure)
    tight = model.certify(X, y, exposure=exposure)
    assert tight.converged
    assert tight.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert model.certify(X, y).primal > tight.primal  # without the exposure it is another problem


def test_the_missing_inference_of_wide_least_squares_is_explained(rng):
    model = hg.LinearRegression().fit(rng.normal(size=(5, 9)), rng.normal(size=5))
    with pytest.raises(AttributeError, match=r"5 examples and 9 features.*fewer features, or Ridge or Lasso"):
        _ = model.inference_


def large(rng, penalty):
    """A problem whose Newton step would factor a matrix of order 1200."""
    X = scipy.sparse.random(300, 1200, density=0.02, format="csr", random_state=np.random.RandomState(0))
    y = rng.normal(size=300)
    return hg.make_objective(X, y, hg.Squared(), penalty)


def test_a_step_beyond_the_budget_is_not_taken(rng, monkeypatch):
    objective = large(rng, hg.L1(1e-4))
    w = rng.normal(size=objective.d)
    tight = hg.certificate(objective, w, np.zeros(1), exact=True)

    def refuse(*_):
        raise AssertionError("the Newton step costs more than the budget")

    monkeypatch.setattr(newton, "newton_dual", refuse)
    cheap = hg.certificate(objective, w, np.zeros(1))
    assert not cheap.exact
    assert tight.exact
    assert cheap.primal == tight.primal
    assert cheap.dual <= tight.dual + 1e-12 * abs(tight.primal)
    with pytest.raises(AssertionError, match="budget"):
        hg.certificate(objective, w, np.zeros(1), fit_flops=1e12)


def test_the_budget_is_a_tenth_of_the_fit_or_ten_milliseconds():
    assert budget(0.0) == FREE
    assert budget(1e12) == pytest.approx(1e11)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_cost_of_a_fit_follows_from_shape_and_iterations(solver, rng):
    objective = hg.make_objective(rng.normal(size=(20, 3)), rng.normal(size=20), hg.Squared(), hg.L2(0.1))
    one, ten = (get_solver(solver).flops(objective, k) for k in (1, 10))
    assert one > 0
    assert ten == pytest.approx(10 * one)


def test_an_unproved_fit_does_not_warn(rng):
    """The solver met its own rule, so nothing is wrong with the fit; the certificate explains what is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = hg.HuberRegressor(scale=1.0, alpha=1e-3).fit(large(rng, None).design.source, rng.normal(size=300))
    assert model.certificate_.converged or "exact=True" in model.certificate_.explain()
