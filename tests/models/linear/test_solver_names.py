"""``solver=``: a name of ours runs that solver, one of scikit-learn's its counterpart, and ``solver_`` shows which."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.base import clone

import hinge as hg
from hinge.solvers.base import Solver
from hinge.solvers.run import SOLVERS, admissible, choose
from hinge.solvers.scikit_learn_names import COUNTERPARTS, counterpart
from kit.estimators import make_data, public_classes, public_estimators

# Estimators that take any solver; the others list the names that they take.
WITH_SOLVER = [e for e in public_estimators() if Solver in type(e)._parameter_constraints.get("solver", ())]
DROP_IN = [
    "Ridge", "RidgeClassifier", "LogisticRegression", "PoissonRegressor", "GammaRegressor", "TweedieRegressor",
    "QuantileRegressor",
]  # fmt: skip
THEIR_NAMES = [
    (name, solver)
    for name in DROP_IN
    for constraint in getattr(linear_model, name)._parameter_constraints["solver"]
    for solver in sorted(getattr(constraint, "options", ()))
    if solver != "auto"
]


@pytest.mark.parametrize("estimator", WITH_SOLVER, ids=lambda e: type(e).__name__)
def test_the_solver_that_ran_is_shown(estimator):
    X, y = make_data(estimator)
    assert estimator.fit(X, y).solver_ == estimator.certificate_.solver
    assert estimator.solver_ in SOLVERS


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", WITH_SOLVER, ids=lambda e: type(e).__name__)
def test_the_name_of_the_solver_that_ran_runs_it_again(estimator):
    X, y = make_data(estimator)
    ran = clone(estimator).fit(X, y)
    again = clone(estimator).set_params(solver=ran.solver_).fit(X, y)
    assert again.solver_ == ran.solver_
    # Two solutions may differ, as where every number between two targets is a median; their objective may not.
    assert again.certificate_.primal == pytest.approx(ran.certificate_.primal, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("estimator", WITH_SOLVER, ids=lambda e: type(e).__name__)
def test_a_name_of_no_solver_is_refused(estimator):
    X, y = make_data(estimator)
    with pytest.raises(ValueError, match="nonsense"):
        clone(estimator).set_params(solver="nonsense").fit(X, y)


def test_every_estimator_with_a_solver_is_checked_here_or_lists_its_names():
    several = {type(e).__name__ for e in WITH_SOLVER}
    assert len(several) >= 24
    for cls in public_classes():
        if "solver" in inspect.signature(cls).parameters and cls.__name__ not in several:
            (names,) = cls._parameter_constraints["solver"]
            assert len(names.options) >= 2
            assert inspect.signature(cls).parameters["solver"].default in names.options


@pytest.mark.parametrize(
    ("l1_ratio", "solver", "ran"), [(0.0, "lbfgs", "lbfgs"), (0.5, "lbfgs", "owlqn"), (0.0, "sgd", "sgd")]
)
def test_chains_show_the_solver_that_ran(l1_ratio, solver, ran):
    X = [[{"a": 1.0}, {"b": 1.0}], [{"b": 1.0}, {"a": 1.0}, {"a": 1.0}]]
    model = hg.ChainCRF(alpha=0.1, l1_ratio=l1_ratio, solver=solver)
    assert model.fit(X, [["x", "y"], ["y", "x", "x"]]).solver_ == ran


def test_trees_have_no_solver(rng):
    X = rng.normal(size=(30, 2))
    model = hg.Learner(hg.Tree(max_depth=2)).fit(X, X[:, 0])
    with pytest.raises(AttributeError, match="not fitted by a solver"):
        _ = model.solver_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "solver"), THEIR_NAMES)
def test_names_of_scikit_learns_run_their_counterpart(name, solver):
    assert solver in COUNTERPARTS
    estimator = getattr(hg, name)(solver=solver)
    X, y = make_data(estimator)
    estimator.fit(X, y)
    assert not COUNTERPARTS[solver] or estimator.solver_ in COUNTERPARTS[solver]
    by_default = getattr(hg, name)().fit(X, y)
    np.testing.assert_allclose(estimator.coef_, by_default.coef_, rtol=0.05, atol=0.01)


@pytest.mark.parametrize("solver", sorted(COUNTERPARTS))
def test_rows_name_solvers_of_ours(solver):
    assert set(COUNTERPARTS[solver]) <= set(SOLVERS)
    assert solver not in SOLVERS or COUNTERPARTS[solver][0] == solver


def test_a_counterpart_that_cannot_take_the_problem_is_replaced(rng):
    problem = hg.make_objective(rng.normal(size=(30, 3)), rng.normal(size=30), hg.Squared(), hg.L1(0.1))
    assert counterpart("lbfgs", problem) == counterpart("saga", problem) == "auto"
    assert choose(problem) in admissible(problem)
    sparse = hg.LogisticRegression(l1_ratio=1.0, C=0.1, solver="lbfgs").fit(problem.design.source, problem.y > 0)
    assert sparse.solver_ in set(SOLVERS) - {"lbfgs"}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["newton", "newton-cg", "lbfgs", "gradient-descent", "proximal-gradient"])
def test_a_name_of_ours_runs_that_solver(solver, rng):
    X = rng.normal(size=(60, 3))
    assert hg.LogisticRegression(solver=solver).fit(X, X[:, 0] > 0).solver_ == solver


def test_a_solver_that_plays_no_part_is_refused(rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 3
    with pytest.raises(ValueError, match="solver='lbfgs' has no effect"):
        hg.LinearSVC(multi_class="crammer_singer", solver="lbfgs").fit(X, y)
