"""What the test suites of LightGBM's and XGBoost's estimators require of boosting, required of hinge's."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss, make_scorer, mean_squared_error
from sklearn.model_selection import GridSearchCV

import hinge as hg
from hinge.problem.losses import Loss, Squared, Target

REGRESSORS = ["HistGradientBoostingRegressor", "GradientBoostingRegressor"]
CLASSIFIERS = ["HistGradientBoostingClassifier", "GradientBoostingClassifier"]
BOTH = [*REGRESSORS, *CLASSIFIERS]


def build(name, rounds=15, **given):
    rounds_by = "max_iter" if name.startswith("Hist") else "n_estimators"
    return getattr(hg, name)(**{rounds_by: rounds}, **given)


def example(rng, n=400, d=4):
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + 0.2 * rng.normal(size=n)


def targets(name, y):
    return y if name in REGRESSORS else (y > np.median(y)).astype(int)


def raw(model, X):
    return model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)


# -- custom objectives and metrics


class HalfSquare(Loss):
    """½ (y − s)², written by a user."""

    convex, smooth, curvature, target = True, True, 1.0, Target.REAL

    def value(self, y, s):
        return 0.5 * (y - s) ** 2

    def gradient(self, y, s):
        return s - y

    def hessian(self, y, s):
        return np.ones_like(s)

    def baseline(self, y, weight=None):
        return np.average(y, weights=weight)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", REGRESSORS)
def test_a_users_objective_gives_the_model_of_the_same_loss(name, weighted, rng):
    X, y = example(rng)
    weight = rng.uniform(0.5, 2.0, len(y)) if weighted else None
    mine = build(name, loss=HalfSquare()).fit(X, y, sample_weight=weight)
    theirs = build(name, loss=Squared()).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(mine.predict(X), theirs.predict(X), rtol=1e-6, atol=1e-8)


def test_a_users_metric_stops_boosting_where_its_loss_would(rng):
    """The metric is the loss, by other means: the same rounds."""
    X, y = example(rng, 600)
    new, truth = example(rng, 300)
    given = {"early_stopping": True, "n_iter_no_change": 5, "tol": 1e-4}
    by_loss = build("HistGradientBoostingRegressor", 400, **given).fit(X, y, X_val=new, y_val=truth)
    half = make_scorer(lambda a, b: 0.5 * mean_squared_error(a, b), greater_is_better=False)
    by_metric = build("HistGradientBoostingRegressor", 400, scoring=half, **given).fit(X, y, X_val=new, y_val=truth)
    assert by_metric.n_iter_ == by_loss.n_iter_ < 400
    np.testing.assert_allclose(-by_metric.validation_score_, by_loss.validation_score_)


# -- evaluation sets


@pytest.mark.parametrize("name", ["HistGradientBoostingRegressor", "HistGradientBoostingClassifier"])
def test_validation_losses_are_those_of_the_stages(name, rng):
    X, y = example(rng)
    new, truth = example(rng, 200)
    y, truth = targets(name, y), targets(name, truth)
    weight = rng.integers(0, 3, 200)
    model = build(name, 12, early_stopping=True).fit(X, y, X_val=new, y_val=truth, sample_weight_val=weight)
    if name in REGRESSORS:
        wanted = [0.5 * mean_squared_error(truth, p, sample_weight=weight) for p in model.staged_predict(new)]
    else:
        wanted = [log_loss(truth, p, sample_weight=weight) for p in model.staged_predict_proba(new)]
    np.testing.assert_allclose(model.validation_score_, wanted)
    kept = weight > 0
    repeated = build(name, 12, early_stopping=True).fit(
        X, y, X_val=np.repeat(new[kept], weight[kept], axis=0), y_val=np.repeat(truth[kept], weight[kept])
    )
    np.testing.assert_allclose(repeated.validation_score_, model.validation_score_)


def test_early_stopping_ends_before_the_model_overfits(rng):
    X, noise = rng.normal(size=(300, 5)), rng.normal(size=300)
    model = build("HistGradientBoostingRegressor", 1000, early_stopping=True, n_iter_no_change=5).fit(X, noise)
    assert model.n_iter_ < 100


@pytest.mark.parametrize("name", BOTH)
def test_the_first_rounds_are_the_shorter_model(name, rng):
    X, y = example(rng)
    y = targets(name, y)
    long, short = build(name, 20).fit(X, y), build(name, 8).fit(X, y)
    np.testing.assert_allclose(raw(long.first_rounds(8), X), raw(short, X))
    np.testing.assert_array_equal(long.apply(X)[:, :8].reshape(len(X), -1), short.apply(X).reshape(len(X), -1))


# -- categories


@pytest.mark.parametrize("name", ["HistGradientBoostingRegressor", "HistGradientBoostingClassifier"])
def test_names_and_order_of_categories_do_not_matter(name, rng):
    codes = rng.integers(0, 12, 500)
    y = targets(name, np.array([3, -1, 4, 1, -5, 9, -2, 6, 5, -3, 5, 8.0])[codes] + rng.normal(size=500))
    x = rng.normal(size=500)
    labels = np.array(list("abcdefghijkl"))[codes]
    tables = [
        pd.DataFrame({"x": x, "c": pd.Categorical(labels)}),
        pd.DataFrame({"x": x, "c": pd.Categorical(labels, categories=list("lkjihgfedcba"))}),
        pd.DataFrame({"x": x, "c": labels}),
        pd.DataFrame({"x": x, "c": pd.Categorical(labels, categories=list("abcdefghijklmnop"))}),  # some unused
    ]
    models = [build(name).fit(T, y) for T in tables]
    for model, T in zip(models, tables):
        np.testing.assert_array_equal(raw(model, T), raw(models[0], tables[0]))
        np.testing.assert_array_equal(raw(models[0], T), raw(models[0], tables[0]))
    by_code = build(name, categorical_features=[1]).fit(np.column_stack([x, codes]), y)
    np.testing.assert_array_equal(raw(by_code, np.column_stack([x, codes])), raw(models[0], tables[0]))


def test_unknown_categories_are_missing_ones(rng):
    known = pd.DataFrame({"c": pd.Categorical(rng.choice(["a", "b", None], 300))})
    y = known["c"].map({"a": 1.0, "b": 2.0}).astype(float).fillna(5.0)
    model = build("HistGradientBoostingRegressor", 50).fit(known, y)
    new = pd.DataFrame({"c": pd.Categorical(["z", None, "a"])})
    found = model.predict(new)
    assert found[0] == found[1]
    assert found[0] > 4 > 2 > found[2]


# -- missing values


@pytest.mark.parametrize("name", BOTH)
def test_a_column_without_values_changes_nothing(name, rng):
    X, y = example(rng)
    y = targets(name, y)
    wider = np.column_stack([X, np.full(len(X), np.nan), np.ones(len(X))])
    a, b = build(name).fit(X, y), build(name).fit(wider, y)
    np.testing.assert_array_equal(raw(a, X), raw(b, wider))
    np.testing.assert_array_equal(b.feature_importances_[4:], 0)


@pytest.mark.parametrize("name", BOTH)
def test_that_a_value_is_missing_is_learned(name, rng):
    X, _ = example(rng)
    absent = rng.random(len(X)) < 0.3
    X[absent, 2] = np.nan
    y = absent.astype(int)
    model = build(name, 60, learning_rate=0.3).fit(X, y)
    np.testing.assert_array_equal(np.round(model.predict(X)), y)


# -- constraints


def test_monotone_and_interaction_constraints_hold_together(rng):
    X = rng.uniform(-1, 1, (800, 3))
    y = X[:, 0] * X[:, 1] + np.sin(4 * X[:, 2]) + 0.1 * rng.normal(size=800)
    model = build("HistGradientBoostingRegressor", 60, monotonic_cst=[1, 0, 0], interaction_cst=[[0, 1], [2]]).fit(X, y)
    line = np.linspace(-1, 1, 60)
    for at in X[:20]:
        rows = np.repeat(at[None], 60, axis=0)
        rows[:, 0] = line
        assert np.all(np.diff(model.predict(rows)) >= -1e-12)
    # Without interactions across the groups, a change of x₂ has the same effect wherever the others are.
    moved = X.copy()
    moved[:, 2] = 0.9
    base = X.copy()
    base[:, 2] = -0.9
    effect = model.predict(moved) - model.predict(base)
    np.testing.assert_allclose(effect, effect[0], atol=1e-9)


# -- starts: scores given, models continued


@pytest.mark.parametrize("name", ["HistGradientBoostingRegressor", "HistGradientBoostingClassifier"])
def test_boosting_from_the_scores_of_a_model_continues_it(name, rng):
    X, y = example(rng)
    y = targets(name, y)
    whole, first = build(name, 12).fit(X, y), build(name, 5).fit(X, y)
    rest = build(name, 7).fit(X, y, init_score=raw(first, X))
    assert abs(raw(rest, X)).max() < abs(raw(whole, X)).max()  # the start is no part of the predictions
    np.testing.assert_allclose(raw(first, X) + raw(rest, X), raw(whole, X), rtol=1e-4, atol=1e-4)


def test_an_offset_takes_its_part_of_the_target(rng):
    """Poisson counts with exposure: scores begin at its logarithm."""
    X, _ = example(rng, 3000, 2)
    exposure = rng.uniform(0.1, 10.0, len(X))
    y = rng.poisson(exposure * np.exp(0.5 * X[:, 0]))
    model = build("HistGradientBoostingRegressor", 40, loss="poisson").fit(X, y, init_score=np.log(exposure))
    rate = np.log(model.predict(X))
    assert np.corrcoef(rate, X[:, 0])[0, 1] > 0.95
    assert abs(np.mean(rate - 0.5 * X[:, 0])) < 0.2


@pytest.mark.parametrize("way", ["pickle", "deepcopy"])
@pytest.mark.parametrize("name", BOTH)
def test_a_copy_made_between_two_fits_continues_as_the_original(name, way, rng):
    X, y = example(rng)
    y = targets(name, y)
    once = build(name, 14).fit(X, y)
    part = build(name, 6, warm_start=True).fit(X, y)
    part = pickle.loads(pickle.dumps(part)) if way == "pickle" else copy.deepcopy(part)
    part.set_params(**{"max_iter" if name.startswith("Hist") else "n_estimators": 14}).fit(X, y)
    np.testing.assert_allclose(raw(part, X), raw(once, X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", BOTH)
def test_a_saved_model_predicts_the_same_bits(name, rng, tmp_path):
    X, y = example(rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = build(name).fit(X, targets(name, y))
    hg.save(model, tmp_path / "model.hinge")
    again = hg.load(tmp_path / "model.hinge")
    np.testing.assert_array_equal(raw(again, X), raw(model, X))
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    assert [t.max_depth for t in again.estimators_[:, 0]] == [t.max_depth for t in model.estimators_[:, 0]]


# -- names, weights, sizes


@pytest.mark.parametrize("name", BOTH)
def test_columns_are_known_by_their_names(name, rng):
    X, y = example(rng)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = build(name).fit(frame, targets(name, y))
    np.testing.assert_array_equal(model.feature_names_in_, frame.columns)
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[["b", "a", "c", "d"]])
    with pytest.raises(ValueError, match="missing"):
        model.predict(frame[["a", "b", "c"]])
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_class_weights_are_weights_of_their_rows(name, rng):
    X, y = example(rng)
    y = (y > np.quantile(y, 0.8)).astype(int)
    weight = np.where(y == 1, len(y) / (2 * y.sum()), len(y) / (2 * (1 - y).sum()))
    b = build(name).fit(X, y, sample_weight=weight)
    if "Hist" in name:
        a = build(name, class_weight="balanced").fit(X, y)
        np.testing.assert_allclose(raw(a, X), raw(b, X))
    assert b.predict(X).mean() > build(name).fit(X, y).predict(X).mean()


@pytest.mark.parametrize("name", BOTH)
def test_rows_of_weight_zero_are_absent(name, rng):
    X, y = example(rng)
    y = targets(name, y)
    weight = rng.integers(0, 2, len(y)).astype(float)
    a = build(name).fit(X, y, sample_weight=weight)
    b = build(name).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(raw(a, X), raw(b, X))


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_constant_target_is_predicted(name, rng):
    X, _ = example(rng, 30)
    np.testing.assert_allclose(build(name).fit(X, np.full(30, 7.5)).predict(X), 7.5)


@pytest.mark.parametrize("name", BOTH)
def test_seeds_decide_samples(name, rng):
    X, y = example(rng)
    y = targets(name, y)
    a, b, c = (build(name, max_features=2, subsample=0.5, random_state=s).fit(X, y) for s in (1, 1, 2))
    np.testing.assert_array_equal(raw(a, X), raw(b, X))
    assert np.any(raw(a, X) != raw(c, X))


@pytest.mark.parametrize("name", BOTH)
def test_clones_and_searches(name, rng):
    X, y = example(rng, 120)
    y = targets(name, y)
    model = build(name, 5, learning_rate=0.3)
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(model, {"learning_rate": [0.01, 0.5]}, cv=3).fit(X, y)
    assert search.best_estimator_.learning_rate == search.best_params_["learning_rate"]
    assert "Classifier" in name or search.best_params_["learning_rate"] == 0.5


def test_scores_are_the_start_and_the_leaves(rng):
    """Predictions from their parts, for several classes."""
    X, y = example(rng)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    model = build("HistGradientBoostingClassifier", 6).fit(X, labels)
    leaves, scores = model.apply(X), np.repeat(model.baseline_[None], len(X), axis=0)
    for t in range(6):
        for k in range(3):
            nodes = model.trees_.nodes(3 * t + k)
            scores[:, k] += model.trees_.value[nodes].ravel()[leaves[:, t, k]]
    np.testing.assert_allclose(model.decision_function(X), scores)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(X), e / e.sum(axis=1, keepdims=True))
