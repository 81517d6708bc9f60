"""tune: the choices of brute force, with the work done once."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections import Counter
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneOut, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

import hinge as hg
from hinge.select.search import Search
from hinge.select.sharing import sharing_for
from hinge.select.sharing_base import Separately


def regression(n=90, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] - 0.5 * X[:, 1] ** 2 + 0.5 * rng.normal(size=n)


def classes(n=150, d=5, k=2, seed=0):
    X, y = regression(n, d, seed)
    return X, np.digitize(y, np.quantile(y, np.linspace(0, 1, k + 1)[1:-1]))


STRENGTHS = np.geomspace(1e-3, 1.0, 7).tolist()
CASES = [
    (hg.Lasso(tol=1e-9), {"alpha": STRENGTHS}, regression()),
    (hg.ElasticNet(tol=1e-9), {"alpha": STRENGTHS, "l1_ratio": [0.2, 0.9]}, regression()),
    (hg.Ridge(), {"alpha": [1e-3, 1.0, 1e3], "fit_intercept": [True, False]}, regression()),
    (hg.KernelRidge(kernel="rbf"), {"alpha": [1e-2, 1.0], "gamma": [0.1, 1.0]}, regression()),
    (hg.KernelRidge(kernel=hg.kernels.RBF("median")), {"alpha": [1e-2, 1.0]}, regression()),
    (hg.LogisticRegression(tol=1e-9), {"C": [0.01, 1.0, 100.0], "l1_ratio": [0.0, 1.0]}, classes()),
    (hg.LogisticRegression(tol=1e-9), {"C": [0.01, 1.0, 100.0]}, classes(k=3)),
    (hg.SVC(tol=1e-6), {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.05, "scale"]}, classes()),
    (hg.SVC(tol=1e-6, kernel="poly"), {"C": [1.0, 0.1]}, classes(k=3)),
    (hg.SVC(tol=1e-6, multi_class="ovr", class_weight="balanced"), {"C": [1.0, 10.0]}, classes(k=3)),
    (hg.SVR(tol=1e-6), {"C": [0.1, 1.0, 10.0], "epsilon": [0.1, 0.3]}, regression()),
    (hg.HistGradientBoostingClassifier(min_samples_leaf=5), {"max_iter": [3, 30, 10], "learning_rate": [0.1, 0.3]}, classes()),
    (hg.HistGradientBoostingClassifier(min_samples_leaf=5), {"max_iter": [3, 12]}, classes(k=3)),
    (hg.HistGradientBoostingRegressor(min_samples_leaf=5), {"max_iter": [5, 20], "max_leaf_nodes": [3, 8]}, regression()),
    (hg.HistGradientBoostingRegressor(min_samples_leaf=5, early_stopping=True), {"max_iter": [5, 50]}, regression()),
    (hg.DecisionTreeRegressor(), {"max_depth": [1, 3, None]}, regression()),
    (hg.LinearSVC(tol=1e-9), {"C": [0.01, 1.0]}, classes()),
]  # fmt: skip


def ids(case):
    return f"{case[0]} {list(case[1])}"


@pytest.mark.mission("V2")
@pytest.mark.parametrize("case", CASES, ids=ids)
def test_scores_and_choice_are_those_of_brute_force(case):
    learner, grid, (X, y) = case
    scoring = "r2" if hasattr(learner, "epsilon") or y.dtype.kind == "f" else None
    brute = GridSearchCV(learner, grid, cv=3, scoring=scoring).fit(X, y)
    found = hg.tune(learner, X, y, grid, cv=3, scoring=scoring)
    table = np.column_stack([brute.cv_results_[f"split{f}_test_score"] for f in range(3)])
    assert found.candidates == brute.cv_results_["params"]
    np.testing.assert_allclose(found.scores, table, rtol=1e-4, atol=1e-5)
    assert found.params == brute.best_params_
    np.testing.assert_allclose(found.model.predict(X[:5]), brute.predict(X[:5]), rtol=1e-6)


@pytest.mark.mission("V2")
def test_probabilities_and_scores_can_be_judged():
    X, y = classes(k=3)
    for learner, grid in (
        (hg.HistGradientBoostingClassifier(min_samples_leaf=5), {"max_iter": [2, 8]}),
        (hg.LogisticRegression(tol=1e-9), {"C": [0.1, 1.0]}),
    ):
        brute = GridSearchCV(learner, grid, cv=3, scoring="neg_log_loss").fit(X, y)
        found = hg.tune(learner, X, y, grid, cv=3, scoring="neg_log_loss")
        np.testing.assert_allclose(found.mean, brute.cv_results_["mean_test_score"], rtol=1e-6)
    X, y = classes()
    brute = GridSearchCV(hg.SVC(tol=1e-7), {"C": [0.1, 1.0]}, cv=3, scoring="roc_auc").fit(X, y)
    found = hg.tune(hg.SVC(tol=1e-7), X, y, {"C": [0.1, 1.0]}, cv=3, scoring="roc_auc")
    np.testing.assert_allclose(found.mean, brute.cv_results_["mean_test_score"], atol=1e-3)


@pytest.mark.mission("V2")
@pytest.mark.parametrize(
    ("learner", "grid"),
    [
        (make_pipeline(hg.StandardScaler(), hg.Lasso(tol=1e-9)), {"lasso__alpha": STRENGTHS}),
        (make_pipeline(hg.StandardScaler(), hg.SVR(tol=1e-6)), {"svr__C": [0.1, 1.0], "svr__gamma": [0.1, "scale"]}),
        (make_pipeline(hg.PolynomialFeatures(), hg.Ridge()), {"polynomialfeatures__degree": [1, 2], "ridge__alpha": [0.1, 1.0]}),
    ],
    ids=str,
)  # fmt: skip
def test_pipelines_are_prepared_inside_the_folds(learner, grid):
    X, y = regression()
    brute = GridSearchCV(learner, grid, cv=3).fit(X, y)
    found = hg.tune(learner, pd.DataFrame(X, columns=list("abcdefgh")), y, grid, cv=3)
    np.testing.assert_allclose(found.mean, brute.cv_results_["mean_test_score"], rtol=1e-5)
    assert found.params == brute.best_params_


@pytest.mark.mission("V1")
@pytest.mark.parametrize(
    "learner", [hg.Ridge(), hg.KernelRidge(kernel=hg.kernels.RBF(1.0)), hg.Ridge(fit_intercept=False)]
)
def test_leave_one_out_by_shortcut_is_leave_one_out(learner):
    X, y = regression(n=40)
    grid = {"alpha": [1e-2, 1.0, 30.0]}
    found = hg.tune(learner, X, y, grid, cv="loo")
    for alpha, scores in zip(grid["alpha"], found.scores, strict=True):
        left_out = cross_val_predict(learner.set_params(alpha=alpha), X, y, cv=LeaveOneOut())
        np.testing.assert_allclose(scores, -((y - left_out) ** 2), rtol=1e-8, atol=1e-12)
    absolute = hg.tune(learner, X, y, grid, cv=LeaveOneOut(), scoring="neg_mean_absolute_error")
    np.testing.assert_allclose(absolute.scores, -np.sqrt(-found.scores), rtol=1e-7, atol=1e-9)


@pytest.mark.mission("V1")
def test_the_number_of_support_vectors_bounds_leave_one_out():
    X, y = classes(n=60)
    found = hg.tune(hg.SVC(), X, y, {"C": [0.1, 1.0, 10.0]}, cv="loo", rule="min")
    for candidate, score in zip(found.candidates, found.mean, strict=True):
        assert 1.0 - score <= hg.SVC(**candidate).fit(X, y).loo_bound_ + 1e-12


@pytest.mark.mission("V1")
def test_any_splitter():
    X, y = classes(n=90)
    groups = np.repeat(np.arange(9), 10)
    for cv in (KFold(3, shuffle=True, random_state=0), StratifiedKFold(4), [(np.arange(60), np.arange(60, 90))]):
        brute = GridSearchCV(hg.SVC(), {"C": [0.1, 1.0]}, cv=cv).fit(X, y)
        found = hg.tune(hg.SVC(), X, y, {"C": [0.1, 1.0]}, cv=cv)
        np.testing.assert_allclose(found.mean, brute.cv_results_["mean_test_score"], atol=1e-12)
    found = hg.tune(hg.Ridge(), X, y.astype(float), {"alpha": [1.0]}, cv=GroupKFold(3), groups=groups)
    brute = GridSearchCV(hg.Ridge(), {"alpha": [1.0]}, cv=GroupKFold(3)).fit(X, y.astype(float), groups=groups)
    np.testing.assert_allclose(found.mean, brute.cv_results_["mean_test_score"])


@pytest.mark.mission("V2")
def test_one_standard_error_rule():
    X, y = regression(n=60)
    found = hg.tune(hg.Lasso(), X, y, 40, rule="1se")
    best, simple = found.best_["alpha"], found.params["alpha"]
    assert simple > best
    assert found.params == found.simplest_
    bar = found.mean[found.best_index] - found.standard_error[found.best_index]
    assert found.mean[found.index] >= bar
    stronger = [c["alpha"] > simple for c in found.candidates]
    assert not np.any(found.mean[stronger] >= bar)
    mine = hg.tune(hg.Lasso(), X, y, 40, rule="1se", complexity=lambda c: c["alpha"])
    assert mine.params["alpha"] <= best
    folds = found.scores[found.best_index]
    np.testing.assert_allclose(found.standard_error[found.best_index], folds.std(ddof=1) / np.sqrt(5))


@pytest.mark.parametrize(
    "learner",
    [hg.Lasso(), hg.Ridge(), hg.SVR(), hg.KernelRidge(kernel="rbf"), hg.HistGradientBoostingRegressor(max_iter=20),
     make_pipeline(hg.StandardScaler(), hg.ElasticNet())],
    ids=str,
)  # fmt: skip
def test_a_path_of_its_own(learner):
    X, y = regression()
    found = hg.tune(learner, X, y, 6, cv=3)
    assert len(found.candidates) == 6
    assert found.mean[found.index] >= found.mean.max() - 1e-12
    with pytest.raises(ValueError, match="has no path of its own"):
        hg.tune(hg.DecisionTreeRegressor(), X, y, 5)


@pytest.mark.mission("V2")
class CountsRows(hg.Ridge):
    """Ridge that notes how many rows each of its fits had."""

    seen: ClassVar[list[tuple[float, int]]] = []

    def fit(self, X, y, sample_weight=None):
        self.seen.append((self.alpha, len(y)))
        return super().fit(X, y, sample_weight)


@pytest.mark.mission("V1")
def test_rungs_of_halving_have_the_rows_they_should(rng):
    """Nine candidates on a ninth of the training rows, the best three on a third, the best one on all."""
    X = rng.normal(size=(900, 3))
    CountsRows.seen.clear()
    hg.tune(CountsRows(), X, X[:, 0], {"alpha": np.geomspace(1, 1e4, 9)}, cv=2, search="halving", refit=False)
    assert Counter(n for _, n in CountsRows.seen) == {50: 18, 150: 6, 450: 2}


def test_successive_halving_finds_a_good_candidate_with_less_work():
    X, y = classes(n=400)
    grid = {"C": np.geomspace(1e-3, 1e3, 9).tolist(), "gamma": [0.01, 0.1, 1.0]}
    full = hg.tune(hg.SVC(), X, y, grid, refit=False)
    quick = hg.tune(hg.SVC(), X, y, grid, search="halving", refit=False)
    assert full.mean[quick.index] > full.mean.max() - 0.02
    assert np.sum(quick.rows == 1.0) <= 3
    assert np.sum(quick.rows) < 0.3 * len(full.candidates)
    assert set(np.round(np.log(quick.rows) / np.log(3))) <= {0.0, -1.0, -2.0}
    again = hg.tune(hg.SVC(), X, y, grid, search="halving", refit=False)
    np.testing.assert_array_equal(again.scores, quick.scores)


def test_threads_and_weights_change_nothing_they_should_not():
    X, y = classes()
    grid = {"C": [0.1, 1.0], "gamma": [0.1, 1.0]}
    one = hg.tune(hg.SVC(), X, y, grid, n_jobs=1)
    filters = list(warnings.filters)
    for n_jobs in (2, None):
        np.testing.assert_array_equal(one.scores, hg.tune(hg.SVC(), X, y, grid, n_jobs=n_jobs).scores)
    assert warnings.filters == filters  # threads share them
    w = np.random.default_rng(0).integers(1, 3, size=len(y))
    fold = np.arange(len(y)) % 3
    weighted = hg.tune(
        hg.SVC(tol=1e-7),
        X,
        y,
        grid,
        cv=[(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)],
        sample_weight=w,
    )
    many, fold = np.repeat(np.arange(len(y)), w), np.repeat(fold, w)
    repeated = hg.tune(
        hg.SVC(tol=1e-7),
        X[many],
        y[many],
        grid,
        cv=[(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)],
    )
    np.testing.assert_allclose(weighted.mean, repeated.mean, atol=1e-6)
    S = scipy.sparse.csr_array(np.where(X > 0, X, 0))
    np.testing.assert_allclose(
        hg.tune(hg.SVC(), S, y, grid).mean, hg.tune(hg.SVC(), S.toarray(), y, grid).mean, atol=0.02
    )


def test_an_interrupted_search_is_resumed(tmp_path, monkeypatch, capsys):
    X, y = regression()
    grid, path = {"alpha": STRENGTHS}, tmp_path / "search.json"
    whole = hg.tune(hg.Lasso(), X, y, grid)
    real, calls = Search.score_fold, []

    def interrupted(self, which, train, test, share):
        calls.append(len(which))
        if len(calls) == 4:
            raise KeyboardInterrupt
        yield from real(self, which, train, test, share)

    monkeypatch.setattr(Search, "score_fold", interrupted)
    with pytest.raises(KeyboardInterrupt):
        hg.tune(hg.Lasso(), X, y, grid, state=path, n_jobs=1)
    calls.clear()
    found = hg.tune(hg.Lasso(), X, y, grid, state=path, progress=True)
    assert len(calls) == 2  # of five folds, three were known
    np.testing.assert_array_equal(found.scores, whole.scores)
    assert "35/35" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["search.json"]
    with pytest.raises(ValueError, match="another search"):
        hg.tune(hg.Lasso(), X, -y, grid, state=path)
    path.write_text(json.dumps([1]))
    with pytest.raises(ValueError, match=r"not a file of hinge.tune"):
        hg.tune(hg.Lasso(), X, y, grid, state=path)


@pytest.mark.mission("V2")
def test_nested_cross_validation_does_not_reward_the_search():
    """On labels that mean nothing, the best of many looks good; nested folds find no skill."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 30)), rng.permutation(np.repeat([0, 1], 30))
    grid = {"C": np.geomspace(1e-2, 1e2, 5).tolist(), "gamma": np.geomspace(1e-3, 1.0, 6).tolist()}
    best = hg.tune(hg.SVC(), X, y, grid, refit=False).mean.max()
    nested = hg.nested_cv(hg.SVC(), X, y, grid, outer=StratifiedKFold(5, shuffle=True, random_state=0))
    assert best > 0.55
    assert nested.mean < best
    assert len(nested.scores) == len(nested.params) == 5


@pytest.mark.mission("V2")
def test_nested_folds_weigh_their_rows(rng):
    """Rows of weight zero count neither for the choice inside nor for the score outside."""
    X = rng.normal(size=(80, 4))
    y = X[:, 0] + 0.1 * rng.normal(size=80)
    noise = np.arange(80) % 2 == 1  # every fold holds as many
    y[noise] = 50.0 * rng.normal(size=noise.sum())
    outer = [(np.setdiff1d(np.arange(80), part), part) for part in np.split(np.arange(80), 4)]
    grid = {"alpha": [1e-3, 1e4]}
    found = hg.nested_cv(hg.Ridge(), X, y, grid, outer=outer, cv=4, sample_weight=np.where(noise, 0.0, 1.0))
    assert [p["alpha"] for p in found.params] == [1e-3] * 4
    assert np.all(found.scores > 0.9)


@pytest.mark.mission("V1")
def test_ridge_on_several_targets_shares_its_factorisation(rng):
    X, Y = rng.normal(size=(40, 5)), rng.normal(size=(40, 3))
    grid = {"alpha": [0.1, 10.0]}
    shared = hg.tune(hg.Ridge(), X, Y, grid, cv=5)
    for alpha, mean in zip(grid["alpha"], shared.mean):
        folds = np.array_split(np.arange(40), 5)
        scores = []
        for part in folds:
            rest = np.setdiff1d(np.arange(40), part)
            scores.append(hg.Ridge(alpha).fit(X[rest], Y[rest]).score(X[part], Y[part]))
        assert mean == pytest.approx(np.mean(scores), rel=1e-9)


def test_the_result_has_a_readable_summary(tmp_path):
    import matplotlib

    matplotlib.use("agg")
    X, y = regression()
    found = hg.tune(hg.ElasticNet(), X, y, {"alpha": STRENGTHS, "l1_ratio": [0.1, 0.9]})
    assert found.table[0]["rank"] == 1
    assert found.table[0]["mean_score"] == found.mean.max()
    assert str(found).startswith(str(found.params))
    assert len(hg.plots.plot_tuning(found).lines) == 4  # two lines, the best and the chosen
    with pytest.raises(ValueError, match="parameter must be one of"):
        hg.plots.plot_tuning(found, "gamma")
    with pytest.raises(AttributeError, match="refit=False"):
        hg.tune(hg.Ridge(), X, y, {"alpha": [1.0]}, refit=False).predict(X)


def test_bad_arguments_are_named():
    X, y = regression()
    for options, message in (
        ({"rule": "max"}, "rule must be"), ({"search": "random"}, "search must be"), ({"cv": "ten"}, "cv must be"),
        ({"grid": {"alpha": []}}, "grid|Parameter"), ({"grid": 0}, "at least 1"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            hg.tune(hg.Ridge(), X, y, **{"grid": {"alpha": [1.0]}, **options})


def test_learners_that_share():
    for learner in (
        hg.Lasso(),
        hg.Ridge(),
        hg.SVC(),
        hg.KernelRidge(),
        hg.HistGradientBoostingRegressor(),
        hg.LinearSVC(),
    ):
        has = hasattr(learner, "warm_start") or not isinstance(learner, hg.LinearSVC)
        assert isinstance(sharing_for(learner), Separately) is not has
    assert isinstance(sharing_for(hg.DecisionTreeRegressor()), Separately)


INTERRUPTED = """
import os, signal, threading
import numpy as np, hinge as hg
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 20))
y = (X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=3000) > 0).astype(int)
calls, counted = [], threading.Lock()
def scoring(model, X, y):
    with counted:
        calls.append(threading.current_thread())
        third = len(calls) == 3
    if third:  # one thread is here, the other in a fit or here too, the main one waits
        os.kill(os.getpid(), signal.SIGINT)
    return model.score(X, y)
try:
    hg.tune(hg.SVC(), X, y, {"C": [1.0, 10.0, 100.0], "gamma": [0.01, 0.1, 1.0]}, n_jobs=2, scoring=scoring)
except KeyboardInterrupt:
    assert threading.main_thread() not in calls
    assert len(calls) < 45
    print("interrupted with", threading.active_count(), "thread")
"""


def test_an_interrupted_search_leaves_no_thread_in_the_core():
    child = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120)
    assert (child.returncode, child.stdout) == (0, "interrupted with 1 thread\n"), child.stderr
