"""What code written for scikit-learn finds when the import is changed: shapes, choices, members."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import ensemble, linear_model, neural_network
from sklearn.metrics import balanced_accuracy_score, mean_absolute_error

import hinge as hg


@pytest.fixture
def table(rng):
    X = rng.normal(size=(90, 6))
    Y = X[:, :3] @ rng.normal(size=(3, 2)) + 0.3 * rng.normal(size=(90, 2))
    return X, Y


@pytest.mark.parametrize("name", ["LinearRegression", "Ridge", "RidgeCV", "Lasso", "ElasticNet", "MultiTaskLasso"])
def test_a_target_in_a_frame_of_one_column(table, name):
    X, Y = table
    frame = pd.DataFrame({"price": Y[:, 0]})
    ours, theirs = getattr(hg, name)().fit(X, frame), getattr(linear_model, name)().fit(X, frame)
    assert np.shape(ours.coef_) == np.shape(theirs.coef_)
    assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3)
    assert ours.score(X, frame) == pytest.approx(theirs.score(X, frame), abs=1e-4)


def left_out_score(X, y, alpha, scoring=None, class_weight=None):
    """The accuracy on left-out rows, or minus their squared error in the codes −1 and 1, by refitting without each.

    A weight of 2 is a row twice: one unit of weight is left out, or all of it where there is less.
    """
    labels, counts = np.unique(y, return_counts=True)
    s = np.ones(len(y)) if class_weight is None else (len(y) / (len(labels) * counts))[np.searchsorted(labels, y)]
    codes = np.where(y[:, None] == (labels[1:] if len(labels) == 2 else labels), 1.0, -1.0)
    right, errors = [], []
    for i in range(len(y)):
        left = s - np.where(np.arange(len(y)) == i, np.minimum(s, 1.0), 0.0)
        model = linear_model.RidgeClassifier(alpha).fit(X, y, sample_weight=left)
        right.append(model.predict(X[[i]])[0] == y[i])
        errors.append(np.mean((model.decision_function(X[[i]]).ravel() - codes[i]) ** 2))
    return np.mean(right) if scoring == "accuracy" else -np.average(errors, weights=s)


@pytest.mark.mission("W2")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("options", [{}, {"scoring": "accuracy"}, {"cv": 3}, {"class_weight": "balanced"}], ids=str)
def test_ridge_on_classes(table, classes, options):
    X, Y = table
    y = np.array(["low", "mid", "high"])[np.digitize(Y[:, 0], [-0.5, 0.7][: classes - 1])]
    ours, theirs = hg.RidgeClassifierCV(**options).fit(X, y), linear_model.RidgeClassifierCV(**options).fit(X, y)
    if "scoring" in options or "class_weight" in options:
        # scikit-learn 1.9 returns 1.0 for the accuracy of two classes, and does not weight the left-out errors.
        scores = {alpha: left_out_score(X, y, alpha, **options) for alpha in (0.1, 1.0, 10.0)}
        assert ours.best_score_ == pytest.approx(scores[ours.alpha_])
        assert scores[ours.alpha_] == pytest.approx(max(scores.values()))
    else:
        assert ours.alpha_ == theirs.alpha_
        assert ours.best_score_ == pytest.approx(theirs.best_score_)
    settings = {"alpha": ours.alpha_, "class_weight": options.get("class_weight")}
    peer = linear_model.RidgeClassifier(**settings).fit(X, y)
    single = hg.RidgeClassifier(**settings).fit(X, y)
    for model in (ours, single):
        np.testing.assert_allclose(model.coef_, np.atleast_2d(peer.coef_), atol=1e-9)
        np.testing.assert_array_equal(model.predict(X), peer.predict(X))
        assert model.certificate_.converged
    # The errors on ±1 are orthogonal to the inputs up to the penalty: X'S(y − f) = α w, and they sum to zero.
    weight = np.ones(len(y))
    if "class_weight" in options:
        weight = (len(y) / classes / np.array([np.sum(y == c) for c in single.classes_]))[
            np.searchsorted(single.classes_, y)
        ]
    target = np.where(y[:, None] == single.classes_[-1:] if classes == 2 else y[:, None] == single.classes_, 1.0, -1.0)
    error = weight[:, None] * (target - single.decision_function(X).reshape(len(y), -1))
    np.testing.assert_allclose(X.T @ error, single.alpha * single.coef_.T, atol=1e-8)
    np.testing.assert_allclose(error.sum(axis=0), 0, atol=1e-9)


@pytest.mark.mission("W3")
@pytest.mark.parametrize(
    ("name", "options"), [("MultiTaskLassoCV", {}), ("MultiTaskElasticNetCV", {"l1_ratio": [0.3, 0.9]})]
)
def test_joint_strengths_are_chosen_as_there(table, name, options):
    X, Y = table
    ours = getattr(hg, name)(cv=3, alphas=8, tol=1e-9, **options).fit(X, Y)
    theirs = getattr(linear_model, name)(cv=3, alphas=8, tol=1e-10, **options).fit(X, Y)
    assert ours.alpha_ == pytest.approx(theirs.alpha_)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-3)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    alphas, coefs, gaps = hg.enet_path(X, Y, l1_ratio=0.5, alphas=6, tol=1e-9)
    known = linear_model.enet_path(X, Y, l1_ratio=0.5, alphas=6, tol=1e-10)
    np.testing.assert_allclose(alphas, known[0])
    np.testing.assert_allclose(coefs, known[1], atol=1e-3)
    assert gaps.shape == known[2].shape


@pytest.mark.mission("T3")
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")  # four members, on purpose
def test_bagging_goes_on_where_it_was(table):
    X, Y = table
    y = Y[:, 0] > 0
    options = {"oob_score": balanced_accuracy_score, "random_state": 3}
    short = hg.BaggingClassifier(hg.LogisticRegression(), 4, warm_start=True, **options).fit(X, y)
    longer = short.set_params(n_estimators=25).fit(X, y)
    whole = hg.BaggingClassifier(hg.LogisticRegression(), 25, **options).fit(X, y)
    np.testing.assert_array_equal(longer.predict_proba(X), whole.predict_proba(X))
    assert longer.oob_score_ == whole.oob_score_ == balanced_accuracy_score(y, whole.oob_decision_function_[:, 1] > 0.5)
    drawn = whole.estimators_samples_[0]
    assert len(drawn) == len(X)
    alone = hg.LogisticRegression().fit(X[drawn], y[drawn])
    np.testing.assert_allclose(whole[0].coef_, alone.coef_, atol=1e-3)
    np.testing.assert_allclose(np.mean([m.decision_function(X) for m in whole], axis=0), whole.decision_function(X))
    with pytest.warns(UserWarning, match="adds no members"):
        longer.fit(X, y)
    with pytest.raises(ValueError, match="at least the 25 members"):
        longer.set_params(n_estimators=3).fit(X, y)
    forest = hg.RandomForestRegressor(60, oob_score=mean_absolute_error).fit(X, Y[:, 0])
    assert forest.oob_score_ == pytest.approx(mean_absolute_error(Y[:, 0], forest.oob_prediction_))


@pytest.mark.mission("T5")
@pytest.mark.parametrize("loss", ["linear", "square", "exponential"])
def test_adaboost_of_numbers_is_druckers(table, loss):
    """The weights of every round are those of the algorithm, step by step, and the answer is the weighted median."""
    X, Y = table
    y = Y[:, 0]
    model = hg.AdaBoostRegressor(n_estimators=5, learning_rate=0.7, loss=loss).fit(X, y)
    w = np.full(len(y), 1 / len(y))
    for member, voice, mean in zip(model, model.estimator_weights_, model.estimator_errors_, strict=True):
        alone = hg.DecisionTreeRegressor(max_depth=3).fit(X, y, sample_weight=w)
        np.testing.assert_allclose(member.predict(X), alone.predict(X), atol=1e-9)
        e = np.abs(alone.predict(X) - y)
        e /= e.max()
        losses = {"linear": e, "square": e**2, "exponential": 1 - np.exp(-e)}[loss]
        assert mean == pytest.approx(w @ losses)
        beta = mean / (1 - mean)
        assert voice == pytest.approx(0.7 * np.log(1 / beta))
        w = w * beta ** (0.7 * (1 - losses))
        w /= w.sum()
    predictions = np.array([m.predict(X) for m in model])
    for i in range(20):
        below = model.estimator_weights_[predictions[:, i] <= model.predict(X)[i]].sum()
        under = model.estimator_weights_[predictions[:, i] < model.predict(X)[i]].sum()
        assert below >= 0.5 * model.estimator_weights_.sum() > under
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    theirs = ensemble.AdaBoostRegressor(n_estimators=50, loss=loss, random_state=0).fit(X, y)
    ours = hg.AdaBoostRegressor(n_estimators=50, loss=loss).fit(X, y)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=0.06)
    assert np.argmax(ours.feature_importances_) == np.argmax(theirs.feature_importances_)


@pytest.mark.mission("R2")
def test_modified_huber_estimates_probabilities(rng):
    """Of all scores 2p − 1 is the best where a label has probability p, and so the score determines p."""
    for p in (0.1, 0.4, 0.8):
        grid = np.linspace(-2, 2, 4001)
        one = np.ones_like(grid)
        mean = p * hg.ModifiedHuber().value(one, grid) + (1 - p) * hg.ModifiedHuber().value(-one, grid)
        assert grid[np.argmin(mean)] == pytest.approx(2 * p - 1, abs=1e-3)
        assert hg.ModifiedHuber().inverse_link(np.array([2 * p - 1]))[0] == pytest.approx(p)
    X = rng.normal(size=(200, 3))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    ours = hg.SGDClassifier("modified_huber", random_state=0).fit(X, y)
    s = np.clip(ours.decision_function(X), -1, 1) + 1
    seen = s.sum(axis=1) > 0
    np.testing.assert_allclose(ours.predict_proba(X[seen]), s[seen] / s[seen].sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(ours.predict_proba(X[~seen]), 1 / 3)


@pytest.mark.mission("L8", "N2", "T7")
@pytest.mark.parametrize("patience", [1, 2, 5])
@pytest.mark.parametrize(
    ("ours", "theirs", "options"),
    [
        (hg.SGDClassifier, linear_model.SGDClassifier, {"early_stopping": False}),
        (hg.SGDClassifier, linear_model.SGDClassifier, {"early_stopping": True}),
        (hg.Perceptron, linear_model.Perceptron, {}),
        (hg.MLPClassifier, neural_network.MLPClassifier, {"solver": "sgd"}),
        (hg.MLPClassifier, neural_network.MLPClassifier, {"solver": "adam", "early_stopping": True}),
        (hg.GradientBoostingClassifier, ensemble.GradientBoostingClassifier, {"n_estimators": 50}),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_patience_is_counted_alike(ours, theirs, options, patience, table):
    """With a tolerance that no epoch meets the first one is the best, and only the patience decides when to stop."""
    X, Y = table
    y = (Y[:, 0] + Y[:, 1] * np.sin(40 * X[:, 0]) > 0).astype(int)
    options = {"tol": 1e6, "n_iter_no_change": patience, "random_state": 0, **options}
    if "n_estimators" not in options:
        options["max_iter"] = 50
    peer = theirs(**options).fit(X, y)
    assert np.max(ours(**options).fit(X, y).n_iter_) == getattr(peer, "n_estimators_", getattr(peer, "n_iter_", None))
