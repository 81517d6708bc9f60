"""Options of linear models that scikit-learn's users rely on: warm starts, Gram matrices, folds without a class, callbacks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

import hinge as hg


@pytest.fixture
def table(rng):
    X = rng.normal(size=(60, 5))
    return X, X @ [1.0, -2.0, 0.0, 0.0, 0.5] + 0.1 * rng.normal(size=60)


@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize(
    "model", [hg.ElasticNet(0.01), hg.Lasso(0.01), hg.MultiTaskLasso(0.01), hg.LogisticRegression(), hg.GroupLasso()]
)
def test_a_warm_start_at_the_optimum_takes_no_step(model, storage, table):
    X, y = table
    target = np.column_stack([y, -y]) if isinstance(model, hg.MultiTaskLasso) else y
    target = (y > 0).astype(int) if isinstance(model, hg.LogisticRegression) else target
    model = model.set_params(warm_start=True).fit(storage(X), target)
    assert np.max(model.n_iter_) > 0
    before = model.coef_.copy()
    model.fit(storage(X), target)
    assert np.max(model.n_iter_) == 0
    assert model.certificate_.converged
    np.testing.assert_array_equal(model.coef_, before)
    model.fit(storage(X), target[::-1].copy())
    assert np.max(model.n_iter_) > 0


def test_a_warm_start_of_fits_within_a_fit(table):
    """HuberRegressor solves for several scales, each from the last, in the first fit as well."""
    X, y = table
    model = hg.HuberRegressor(warm_start=True).fit(X, y)
    cold = hg.HuberRegressor().fit(X, y)
    np.testing.assert_allclose(model.coef_, cold.coef_, atol=1e-2)
    again = model.fit(X, y)
    assert again.certificate_.converged
    np.testing.assert_allclose(again.coef_, cold.coef_, atol=1e-2)


def test_every_target_has_its_gap(table):
    X, y = table
    Y = np.column_stack([y, 10 * y[::-1]])
    both = hg.ElasticNet(0.01).fit(X, Y)
    assert both.dual_gap_.shape == (2,)
    for j in range(2):
        assert both.dual_gap_[j] == pytest.approx(hg.ElasticNet(0.01).fit(X, Y[:, j]).dual_gap_)


def test_a_gram_matrix_must_be_that_of_x(table, rng):
    X, y = table
    C = X - X.mean(axis=0)
    plain = hg.Lasso(0.1).fit(C, y)
    np.testing.assert_array_equal(hg.Lasso(0.1, precompute=C.T @ C).fit(C, y).coef_, plain.coef_)
    with pytest.raises(ValueError, match="did not pass validation"):
        hg.Lasso(0.1, precompute=2 * C.T @ C).fit(C, y)
    with pytest.raises(ValueError, match="shape"):
        hg.Lasso(0.1, precompute=np.eye(3)).fit(C, y)
    with pytest.warns(UserWarning, match="recomputing"):
        hg.Lasso(0.1, precompute=X.T @ X).fit(X + 1.0, y)
    s = rng.uniform(0.5, 2.0, size=60)
    weighted = X - np.average(X, axis=0, weights=s)
    gram = weighted.T @ ((60 * s / s.sum())[:, None] * weighted)
    hg.Lasso(0.1, precompute=gram).fit(weighted, y, sample_weight=s)


@pytest.mark.parametrize("cls", [hg.LassoCV, hg.ElasticNetCV])
def test_a_path_that_falls_short_warns(cls, rng):
    X = np.cumsum(rng.normal(size=(50, 25)), axis=1)
    y = X[:, -1] + rng.normal(size=50)
    with pytest.warns(ConvergenceWarning):
        cls(max_iter=1, tol=0.0).fit(scipy.sparse.csr_array(X), y)


def test_given_strengths_are_the_same_for_every_ratio(table):
    X, y = table
    model = hg.ElasticNetCV(l1_ratio=[0.5, 0.7], alphas=[0.1, 0.01]).fit(X, y)
    np.testing.assert_array_equal(model.alphas_, [0.1, 0.01])
    assert hg.ElasticNetCV(l1_ratio=[0.5, 0.7], alphas=3).fit(X, y).alphas_.shape == (2, 3)


@pytest.mark.parametrize("path", [hg.enet_path, hg.lasso_path])
def test_paths_refuse_unknown_options(path, table):
    X, y = table
    with pytest.raises(ValueError, match="Unexpected parameters in params: normalize"):
        path(X, y, normalize=True)
    assert len(path(X, y, alphas=3, selection="random", random_state=0)) == 3


@pytest.mark.parametrize("cls", [hg.LogisticRegression, hg.LogisticRegressionCV])
def test_an_elastic_net_needs_its_ratio(cls, table):
    X, y = table
    ratio = {"l1_ratios" if cls is hg.LogisticRegressionCV else "l1_ratio": None}
    with pytest.raises(ValueError, match="l1_ratio"):
        cls(penalty="elasticnet", **ratio).fit(X, y > 0)


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("scoring", [None, "accuracy", "neg_brier_score", "neg_log_loss"])
def test_folds_may_lack_a_class(classes, scoring, rng):
    """A class that a fold has not seen has probability zero there, and costs what its examples cost."""
    y = np.repeat(np.arange(classes), 10)
    X = rng.normal(size=(10 * classes, 2)) + y[:, None]
    model = hg.LogisticRegressionCV(Cs=[0.01, 1.0], cv=KFold(classes), scoring=scoring).fit(X, y)
    assert np.all(np.isfinite(model.scores_))
    assert np.all(model.scores_ <= (0 if scoring in (None, "accuracy", "neg_log_loss") else -1 + 1e-9))
    for fold, absent in enumerate(range(classes)):
        rows = model.coefs_paths_[fold, 0, 0]
        scores = X @ rows[:, :-1].T + rows[:, -1]
        predicted = (scores[:, 0] > 0).astype(int) if classes == 2 else np.argmax(scores, axis=1)
        assert not np.any(predicted == absent)


@pytest.mark.parametrize("classes", [2, 3])
def test_callbacks_see_the_weights_of_an_iteration(classes, rng):
    callback = pytest.importorskip("sklearn.callback.tests._utils").RecordingCallback()
    X = rng.normal(size=(90, 3))
    y = np.arange(90) % classes
    model = hg.LogisticRegression(solver="lbfgs").set_callbacks(callback).fit(X, y)
    hooks = [r for r in callback.record if "iter" in r["context"].task_name]
    begins, ends = ([r for r in hooks if r["name"] == f"on_fit_task_{at}"] for at in ("begin", "end"))
    assert len(ends) == model.n_iter_[0]
    assert begins[0]["kwargs"]["fitted_estimator"] is None
    for begin, end in zip(begins[1:], ends):
        np.testing.assert_array_equal(
            begin["kwargs"]["fitted_estimator"].coef_, end["kwargs"]["fitted_estimator"].coef_
        )
    last = ends[-1]["kwargs"]["fitted_estimator"]
    np.testing.assert_allclose(last.coef_, model.coef_)
    np.testing.assert_array_equal(last.predict(X), model.predict(X))
